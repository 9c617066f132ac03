//! Our own files: text becomes jobs, each in the parts that the words of `tpu submit` become.
//!
//! ```text
//! text ─ yaml ─ one map for each job (documents, or jobs: over defaults:)
//!      ─ filled: {{field}} of the job and of --set; those of its array stay, for each member has its own
//!      ─ job: each key read as the table of keys says, all others refused with the nearest
//!      → OwnJob; the command line makes requests of them as of words, and enters all or none
//! ```
//! What a value means is decided where the words decide it, in `model`; what exists is known to `ops` alone.

mod file;
mod file_schema;
mod filled;
mod job;
pub mod keys;
mod notify;
mod of_spec;
mod order;
mod repeat;
mod retry;
mod schema;
mod setup;
mod several;
mod shape;
mod target;
mod values;
mod written;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsString;

use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::entry::{AfterWhich, Priority};
use tpu_core::model::execution::Execution;
use tpu_core::model::member::Array;
use tpu_core::model::options::KindOptions;
use tpu_core::model::order::TargetOrder;
use tpu_core::model::policy::Policy;
use tpu_core::model::repository::Repository;
use tpu_core::model::sweep::Sweep;

use super::BadFile;
use super::yaml::{self, Yaml};

pub use file::{document, documents};
pub use file_schema::schema;
pub use of_spec::{SaidAgain, of_spec};
pub(crate) use written::literal;

/// Line and column, each counted from 1.
pub type Place = (u64, u64);

/// Where the values of a job stand, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPlaces(Vec<(String, Place)>);

impl KeyPlaces {
    /// The place of the first of these keys that is said.
    pub fn of(&self, keys: &[&str]) -> Option<Place> {
        let said = |key: &&str| self.0.iter().find(|(known, _)| known == *key);
        keys.iter().find_map(said).map(|(_, place)| *place)
    }
}

/// What a file is read with.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// `--set KEY=VALUE`, in order.
    pub set: &'a [(String, String)],
    /// The kinds of target that a file may name.
    pub kinds: &'a [KindWords],
}

/// What a file may say of a target of some kind.
#[derive(Clone, Debug)]
pub struct KindWords {
    /// The kind.
    pub word: String,
    /// What it may say of a job.
    pub options: Vec<KindKey>,
}

/// An option of a kind, as a key of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindKey {
    /// As it is kept, and typed behind `--`.
    pub option: &'static str,
    /// What else a file may call it.
    pub also: Option<&'static str>,
    /// Whether it may be said several times.
    pub is_many: bool,
    /// Whether a value may be a map, which is kept as JSON.
    pub takes_map: bool,
}

impl KindKey {
    /// One of this name whose values are text.
    pub const fn plain(option: &'static str, is_many: bool) -> Self {
        Self { option, also: None, is_many, takes_map: false }
    }

    /// Whether a key of a file means it: a dash may be written as a line there.
    fn is_called(&self, key: &str) -> bool {
        let key = key.replace('_', "-");
        self.option == key || self.also == Some(key.as_str())
    }

    /// Its key, as a file should have it.
    fn key(&self) -> &'static str {
        self.also.unwrap_or(self.option)
    }
}

/// A job as its file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnJob {
    /// Where it stands.
    pub place: Place,
    /// Where each of its values does.
    pub places: KeyPlaces,
    /// Its name.
    pub name: Option<String>,
    /// The words that name its target.
    pub target: OwnTarget,
    /// What is made for it, where no target is named.
    pub order: Option<TargetOrder>,
    /// Slot of its directory, if one is said.
    pub dir: Option<u32>,
    /// Where its code is, if it is in no slot by its number.
    pub code: Option<OwnCode>,
    /// Whether it runs where its code lies, without a copy.
    pub is_in_place: bool,
    /// What is asked of its target beside a place, as it is typed: `gpus=2`.
    pub asks: Vec<(String, String)>,
    /// Names and values that its program is given.
    pub configs: Vec<(String, String)>,
    /// How it takes them, if that is said.
    pub arguments: Option<ArgumentStyle>,
    /// Tag.
    pub tag: Option<String>,
    /// Notes.
    pub notes: Option<String>,
    /// Rules, as they are typed.
    pub rules: Option<String>,
    /// The command, word by word.
    pub command: Option<Vec<OsString>>,
    /// The members of the group that it is to be.
    pub array: Option<Array>,
    /// What differs between them.
    pub sweep: Option<Sweep>,
    /// How one of several machines is chosen.
    pub policy: Option<Policy>,
    /// How its command is carried out.
    pub execution: Execution,
    /// How it waits.
    pub waits: OwnWaits,
}

impl OwnJob {
    /// One of which nothing else is said.
    fn at(place: Place, places: KeyPlaces) -> Self {
        Self { place, places, target: OwnTarget::at(place), ..Self::default() }
    }

    /// `key=value`, as they are typed: what is asked of the target, configs, tag, notes and rules.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let own = [("tag", &self.tag), ("ssn", &self.notes), ("rule", &self.rules)];
        let own = own.into_iter().filter_map(|(key, said)| Some((key.to_owned(), said.clone()?)));
        self.asks.iter().chain(&self.configs).cloned().chain(own).collect()
    }
}

/// Where the code of a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnCode {
    /// `.`: in the directory of the file.
    Here(Place),
    /// In this directory: a whole path, or one below `~/`.
    Dir(String),
    /// In a repository.
    Repository(Repository),
}

/// The target of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTarget {
    /// Where it is said.
    pub place: Place,
    /// Names, aliases, types, pools and patterns.
    pub words: Vec<String>,
    /// Of which kind the target has to be, if that is said.
    pub kind: Option<String>,
    /// The options of that kind.
    pub options: KindOptions,
    /// Of a type: in which zones, regions or continents it may be; none means anywhere.
    pub zones: Vec<String>,
    /// Of a type: reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
}

impl OwnTarget {
    /// None that has a name.
    fn at(place: Place) -> Self {
        Self { place, ..Self::default() }
    }
}

/// How a job waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnWaits {
    /// In which queue.
    pub queue: Option<String>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// Whether it is held.
    pub is_held: bool,
    /// What has to end before.
    pub after: Vec<(AfterWhich, Before)>,
}

/// What has to end before a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// A job above it in its file, counted from 0.
    OfFile(usize),
    /// Any other, as typed behind `after=`.
    Other(Place, String),
}

impl OwnWaits {
    /// The same without the jobs that have to end before.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { after: Vec::new(), ..self }
    }

    /// Whether nothing is said of waiting.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads the jobs of a file, in its order. There is at least one; all of them are right by themselves, or none is
/// returned.
pub fn read(text: &str, given: &Given<'_>) -> Result<Vec<OwnJob>, BadFile> {
    read_documents(&yaml::read_all(text)?, given)
}

/// The same of documents that were read.
pub fn read_documents(documents: &[Yaml], given: &Given<'_>) -> Result<Vec<OwnJob>, BadFile> {
    let (asked, room) = (RefCell::new(BTreeSet::new()), Cell::new(filled::MOST_FILLED));
    let mut jobs: Vec<OwnJob> = Vec::new();
    for said in several::jobs(documents, &room)? {
        let above: Vec<Option<&str>> = jobs.iter().map(|job| job.name.as_deref()).collect();
        let read = job::read(&said, given, (&room, &asked), &above)?;
        jobs.push(read);
    }
    for (index, job) in jobs.iter().enumerate() {
        let below = jobs.get(index..).unwrap_or_default();
        for (_, before) in &job.waits.after {
            let Before::Other((line, column), word) = before else { continue };
            if below.iter().any(|job| job.name.as_ref() == Some(word)) {
                let what = format!("{word} stands below in this file");
                let hint = "put it above: what has to end before stands before";
                return Err(BadFile::new(*line, "after", what, hint).at_column(*column));
            }
        }
    }
    if jobs.is_empty() {
        let what = "there is no job in it";
        let hint = "as in:\ntarget: local\ncommand: echo hello";
        return Err(BadFile::new(1, "", what, hint).at_column(1));
    }
    for (key, _) in given.set {
        if !asked.borrow().contains(key) {
            let what = format!("--set {key}=…: no {{{{{key}}}}} stands in it");
            let hint = "leave it away, or write the field where the value is to stand";
            return Err(BadFile::new(1, "", what, hint).at_column(1));
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Vec<KindWords> {
        let slurm = vec![KindKey::plain("nodes", false), KindKey::plain("sbatch", true)];
        let volumes = KindKey {
            also: Some("volumes"),
            takes_map: true,
            ..KindKey::plain("pod-volume", true)
        };
        let flavor =
            KindKey { also: Some("flavor"), takes_map: true, ..KindKey::plain("asks-for", false) };
        let words = |word: &str, options| KindWords { word: word.to_owned(), options };
        vec![words("slurm", slurm), words("pods", vec![volumes, flavor])]
    }

    fn with(text: &str, set: &[(&str, &str)]) -> Result<Vec<OwnJob>, BadFile> {
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        read(text, &Given { set: &set, kinds: &kinds() })
    }

    fn one(text: &str) -> OwnJob {
        with(text, &[]).unwrap().remove(0)
    }

    fn words(job: &OwnJob) -> Vec<&str> {
        job.command.iter().flatten().map(|word| word.to_str().unwrap()).collect()
    }

    #[test]
    fn every_key_becomes_what_the_words_become() {
        let job = one("name: train\ntarget: {slurm: gpu, nodes: 2, sbatch: [a=b, c=d], gpus: 1}\n\
                       dir: 2\ncommand: [python, train.py, '']\nconfigs: {lr: 1e-3}\ntag: base\n\
                       notes: first try\nrules: {preempted: resume, grpc: rerun}\nqueue: night\n\
                       priority: 70\nhold: true\nafter: [12, tok]\nafter_any: 3\npolicy: smart\n");
        assert_eq!((job.name.as_deref(), job.dir, job.place), (Some("train"), Some(2), (1, 1)));
        assert_eq!(job.target.words, ["gpu"]);
        assert_eq!(job.target.kind.as_deref(), Some("slurm"));
        assert_eq!(job.target.options.all("sbatch"), ["a=b", "c=d"]);
        assert_eq!(words(&job), ["python", "train.py", ""]);
        let pairs: Vec<String> = job.pairs().iter().map(|(k, v)| format!("{k}={v}")).collect();
        let rules = "rule=preempted:resume,grpc:rerun";
        assert_eq!(pairs, ["gpus=1", "lr=1e-3", "tag=base", "ssn=first try", rules]);
        assert_eq!(job.waits.priority.map(Priority::number), Some(70));
        assert!(job.waits.is_held && job.policy == Some(Policy::Smart));
        assert_eq!(job.waits.after.len(), 3);
    }

    #[test]
    fn what_a_kind_takes_as_a_map_is_kept_as_json() {
        let job = one(
            "target:\n  pods: lab\n  flavor: {name: big, resources: {cpu: 2, gpu: '1', memory: 1.50}}\n  \
                       volumes: [data:/d, {claim: 'x y', mount: /x, read_only: true, at: '{{tag}}'}]\ntag: 010\n",
        );
        assert_eq!(job.target.kind.as_deref(), Some("pods"));
        let big = r#"{"name":"big","resources":{"cpu":2,"gpu":1,"memory":"1.50"}}"#;
        assert_eq!(job.target.options.all("asks-for"), [big]);
        let claim = r#"{"claim":"x y","mount":"/x","read_only":true,"at":"010"}"#;
        assert_eq!(job.target.options.all("pod-volume"), ["data:/d", claim]);
        let again = documents(std::slice::from_ref(&job)).unwrap();
        let again = one(&yaml::written(&again));
        assert_eq!(again.target.options, job.target.options);
    }

    #[test]
    fn fields_are_filled_in_as_they_stand() {
        let text = "target: local\ntag: 010\nname: a-{{tag}}-{{x}}\n\
                    command: run --lr {{lr}} --seed {{ seed }}\narray: {lr: [1e-3, 1e-4], seed: 0-1}\n";
        let job = with(text, &[("x", "1e5")]).unwrap().remove(0);
        assert_eq!(job.name.as_deref(), Some("a-010-1e5"));
        assert_eq!(job.array.unwrap().indexes().len(), 4);
        let (sweep, command) = (job.sweep.unwrap(), job.command.unwrap());
        let third = sweep.command(2, &command);
        assert_eq!(third, ["bash", "-c", "run --lr 1e-4 --seed 0", "bash"].map(OsString::from));
        assert_eq!(sweep.given(2), []);
    }

    #[test]
    fn a_field_that_is_filled_in_itself_may_stand_in_others() {
        let text = "target: local\ntag: t-{{x}}\nname: n-{{tag}}\ncommand: [run, '{{name}}']\n";
        let job = with(text, &[("x", "3")]).unwrap().remove(0);
        assert_eq!((job.name.as_deref(), words(&job)), (Some("n-t-3"), vec!["run", "n-t-3"]));
        let round = "target: local\nname: a-{{tag}}\ntag: b-{{name}}\ncommand: x\n";
        let error = with(round, &[]).unwrap_err();
        assert!(error.what.contains("stands for itself"), "{error:?}");
    }

    #[test]
    fn a_small_file_fills_in_no_more_than_a_large_one_holds() {
        let long = "x".repeat(100_000);
        let many = "{{notes}}".repeat(1_000);
        let filled = format!("target: local\nnotes: {long}\ncommand: [run, '{many}']\n");
        let error = with(&filled, &[]).unwrap_err();
        assert!(error.what.contains("filled in"), "{error:?}");
        let mut jobs = String::new();
        (0..1_000).for_each(|n| jobs += &format!("  j{n}: {{command: x}}\n"));
        let shared = format!("defaults: {{target: local, notes: {long}}}\njobs:\n{jobs}");
        let error = with(&shared, &[]).unwrap_err();
        assert!(error.what.contains("holds for all jobs"), "{error:?}");
        let usual = format!("defaults: {{target: local, notes: short}}\njobs:\n{jobs}");
        assert_eq!(with(&usual, &[]).unwrap().len(), 1_000);
    }

    #[test]
    fn an_axis_that_the_command_does_not_name_is_an_argument() {
        let job = one("target: local\ncommand: [run, '{{lr}}']\narray: {lr: [1, 2], seed: 0-1}\n");
        let sweep = job.sweep.unwrap();
        assert_eq!(sweep.given(3), [("seed".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn several_jobs_are_documents_or_stand_below_their_names() {
        let text = "defaults: {target: local, configs: {a: 1, b: 2}}\n\
                    jobs:\n  tok: {command: [x]}\n  train: {command: [y], after: tok, configs: {b: 3}}\n\
                    ---\ntarget: v4-8\nname: last\nafter_each: train\n";
        let jobs = with(text, &[]).unwrap();
        let names: Vec<_> = jobs.iter().map(|job| job.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["tok", "train", "last"]);
        let pair = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
        assert_eq!(jobs[1].configs, [("a", "1"), ("b", "3")].map(pair));
        assert_eq!(jobs[1].waits.after, [(AfterWhich::Ok, Before::OfFile(0))]);
        assert_eq!(jobs[2].waits.after, [(AfterWhich::Each, Before::OfFile(1))]);
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_column() {
        for (text, place, says) in [
            ("", (1, 1), "no job"),
            ("target: local\ncomand: x\n", (2, 1), "no such key"),
            ("target: local\nkeep: 2h\n", (2, 1), "not supported yet"),
            ("target: local\nnotify: {on: eror, mail: a@b.c}\n", (2, 9), "no event"),
            ("target: local\nnotify: [tmux, {mail: a b}]\n", (2, 16), "no address"),
            ("target: local\ncommand: a {{nope}}\n", (2, 10), "nothing is called nope"),
            ("target: local\ncommand: 'a {{nope'\n", (2, 10), "without }}"),
            ("command: x\n", (1, 1), "no target"),
            ("target: {slurm: gpu, node: 2}\n", (1, 22), "no such key"),
            ("target: {nowhere: c}\n", (1, 10), "no such key"),
            ("target: {pods: c, volumes: {}}\n", (1, 28), "one value is wanted"),
            ("target: {pods: c, flavor: [a, b]}\n", (1, 31), "said twice"),
            ("target: {pods: c, flavor: a, asks_for: b}\n", (1, 40), "said twice"),
            ("target: {slurm: gpu, nodes: {a: b}}\n", (1, 29), "one value is wanted"),
            ("target: local\ngpus: many\n", (2, 7), "not a number of GPUs"),
            ("target: local\npriority: 101\n", (2, 11), "0 to 100"),
            ("target: local\nhold: yes\n", (2, 7), "a truth"),
            ("target: local\narray: 5-1\n", (2, 8), "5-1"),
            ("target: local\ncommand: x\nscript: y\n", (3, 1), "already"),
            ("target: local\ncommand: x\narray: {lr: [1, 2]}\n", (3, 9), "no member gets it"),
            (
                "target: local\ncommand: x {{lr}}\narray: {lr: 0.1,0.2}\n",
                (3, 17),
                "where a name is",
            ),
            ("target: local\ntag: '{{lr}}'\narray: {lr: [1, 2]}\n", (2, 6), "differs from member"),
            ("target: local\nrules: {nope: resume}\n", (2, 15), "the event 'nope'"),
            ("target: local\n---\ntarget: local\nzip: 3\n", (4, 1), "there is none"),
            ("target: local\ntarget: local\n", (2, 1), ""),
            ("target: 'a=b'\n", (1, 9), "cannot name a target"),
            ("target: {accelerator: v4-8}\nname: a\n", (1, 9), "zone: is missing"),
            ("jobs: {a: {target: x, after: a}}\n", (1, 30), "wait for itself"),
            ("target: x\nname: a\n---\ntarget: x\nname: a\n", (4, 1), "the same name"),
            ("target: x\nafter: b\n---\ntarget: x\nname: b\n", (2, 8), "stands below"),
            ("target: x\ncommand: \"a\\0b\"\n", (2, 10), "byte 0"),
        ] {
            let bad = with(text, &[]).unwrap_err();
            assert_eq!((bad.line, bad.column), (Some(place.0), Some(place.1)), "{text}: {bad:?}");
            assert!(bad.what.contains(says) && !bad.hint.is_empty(), "{text}: {bad:?}");
        }
        let bad = with("target: local\ncomand: x\n", &[]).unwrap_err();
        assert_eq!(bad.hint, "did you mean 'command'?");
        let bad = with("target: local\n", &[("lr", "1")]).unwrap_err();
        assert!(bad.what.contains("--set lr"), "{bad:?}");
    }
}
