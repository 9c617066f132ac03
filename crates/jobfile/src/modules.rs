//! What a worker does for the modules of a job, as shell text, and in what its command runs.
//!
//! The programs lie in `assets/setup`: `setup.sh` goes through the steps, and each module has one of its own, which is
//! asked whether it is so (`check`) and told to bring it about (`run`). Here is decided which words they are given. A
//! step names what it takes from the machine that starts it; who reads that is `ops::act::setup`.

use std::ffi::OsString;
use std::fmt;

use tpu_core::model::setup::{
    Conda, Docker, Gcsfuse, Identity, Module, Nfs, OwnStep, SshKeys, Venv, Wandb,
};

/// The program that goes through the steps on a worker.
pub const SETUP: &str = include_str!("../../../assets/setup/setup.sh");

/// The programs of the modules, by their names.
pub const PROGRAMS: [(&str, &str); 10] = [
    ("lib.sh", include_str!("../../../assets/setup/lib.sh")),
    ("ssh_keys.sh", include_str!("../../../assets/setup/ssh_keys.sh")),
    ("gcsfuse.sh", include_str!("../../../assets/setup/gcsfuse.sh")),
    ("nfs.sh", include_str!("../../../assets/setup/nfs.sh")),
    ("docker.sh", include_str!("../../../assets/setup/docker.sh")),
    ("conda.sh", include_str!("../../../assets/setup/conda.sh")),
    ("venv.sh", include_str!("../../../assets/setup/venv.sh")),
    ("wandb.sh", include_str!("../../../assets/setup/wandb.sh")),
    ("put.sh", include_str!("../../../assets/setup/put.sh")),
    ("node.sh", include_str!("../../../assets/setup/node.sh")),
];

/// What runs a command in a container.
const CONTAINER: &str = include_str!("../../../assets/setup/container.sh");

/// What runs a command in an environment of conda. It is no `conda run`, which takes no line feed in an argument
/// (conda's documentation of `run`).
const IN_CONDA: &str = r#"for c in conda ~/miniconda3/bin/conda ~/miniforge3/bin/conda ~/anaconda3/bin/conda /opt/conda/bin/conda; do
    c=$(command -v "$c") && break
done
begin() {
    activated=$("$c" shell.posix activate "$0") && [ -n "$activated" ] && eval "$activated" && return
    echo "tpu: the environment $0 of conda cannot be activated" >&2
    exit 126
}
begin && exec "$@""#;

/// What runs a command in a virtual environment.
const IN_VENV: &str = r#"begin() { . ~/.venvs/"$0"/bin/activate; }
begin && exec "$@""#;

/// Seconds that a step may take, where its writer says nothing; an image or an environment may be large.
const USUAL_S: u64 = 1_800;
const LONG_S: u64 = 7_200;

/// One step on a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleStep {
    /// The module that it belongs to, and its log.
    pub module: String,
    /// Shell text that ends with 0 where it is so.
    pub check: Option<String>,
    /// Shell text that brings it about.
    pub run: Option<String>,
    /// What it takes from the machine that starts it.
    pub taken: Vec<Taken>,
    /// The workers; all without a word.
    pub workers: Option<Vec<u32>>,
    /// Seconds that each of the two may take.
    pub timeout_s: u64,
    /// Whether it is done once on each machine.
    pub is_once: bool,
}

/// A file beside the programs on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its name there.
    pub name: String,
    /// What is in it.
    pub from: TakenFrom,
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenFrom {
    /// A file of the machine that starts the job; `~/` is its home, and what is relative lies beside the code.
    Path(String),
    /// This text.
    Text(String),
    /// What was read already; it may be a secret.
    Read(ReadBytes),
}

/// Bytes that no text for people shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ReadBytes(pub Vec<u8>);

impl fmt::Debug for ReadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// What a step of a recipe takes from the machine that starts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipeNeeds {
    /// Files: what is in each, its place there, and its rights.
    pub files: Vec<(ReadBytes, String, u32)>,
    /// What its set-up reads on its standard input.
    pub input: Option<ReadBytes>,
}

/// A step of a recipe, with what it takes from here or why that is not there: that matters only where it is set up.
/// `number` is its place among the modules of its job, `index` its own in the recipe.
pub fn of_recipe(
    step: ModuleStep,
    (number, index): (usize, usize),
    needs: Result<RecipeNeeds, String>,
) -> ModuleStep {
    let Some(set_up) = step.run.clone() else { return step };
    let RecipeNeeds { files, input } = match needs {
        Ok(needs) => needs,
        Err(why) => {
            let run = Some(format!("echo {} >&2\nexit 1", quoted(&why)));
            return ModuleStep { run, ..step };
        }
    };
    let (mut taken, mut run) = (Vec::new(), String::new());
    let mut words = Vec::new();
    for (place, (bytes, to, mode)) in files.into_iter().enumerate() {
        let name = format!("taken-{number}-{}", index * MOST_FILES + place);
        words.extend([name.clone(), quoted(&to), format!("{mode:o}")]);
        taken.push(Taken { name, from: TakenFrom::Read(bytes) });
    }
    if !words.is_empty() {
        run += &format!("bash \"$TPU_SETUP/put.sh\" run {} || exit\n", words.join(" "));
    }
    if let Some(bytes) = input {
        // Nothing is made of it but what the step reads: no mark of a machine, as of files.
        let name = format!("input-{number}-{index}");
        run += &format!("exec <\"$TPU_SETUP/{name}\"\n");
        taken.push(Taken { name, from: TakenFrom::Read(bytes) });
    }
    ModuleStep { run: Some(run + &set_up), taken, ..step }
}

/// No step of a recipe copies more files.
const MOST_FILES: usize = 1_000;

/// The steps of a module, `number` being its place among those of its job. `None` for a recipe, which the lab's own
/// file says.
pub fn steps(module: &Module, number: usize) -> Option<Vec<ModuleStep>> {
    let new = Names { module: module.name(), number };
    Some(match module {
        Module::SshKeys(keys) => ssh_keys(&new, keys),
        Module::Gcsfuse(buckets) => gcsfuse(&new, buckets),
        Module::Nfs(of) => vec![nfs(&new, of)],
        Module::Docker(of) => vec![ModuleStep {
            timeout_s: LONG_S,
            ..new.by_program("docker.sh", &[&of.image], Vec::new())
        }],
        Module::Conda(of) => vec![ModuleStep { timeout_s: LONG_S, ..conda(&new, of) }],
        Module::Venv(of) => vec![ModuleStep { timeout_s: LONG_S, ..venv(&new, of) }],
        Module::Wandb(of) => {
            let host = of.host.as_deref().unwrap_or(Wandb::HOST);
            vec![new.by_program("wandb.sh", &[&of.key, host], Vec::new())]
        }
        Module::Step(step) => vec![own(&new, step)],
        Module::Recipe(_) => return None,
    })
}

/// What makes steps of a module.
struct Names<'a> {
    module: &'a str,
    number: usize,
}

impl Names<'_> {
    /// A file of the worker's that holds what `from` says, the `index`-th of this module.
    fn taken(&self, index: usize, from: TakenFrom) -> Taken {
        Taken { name: format!("taken-{}-{index}", self.number), from }
    }

    /// A step for which a program is asked and told.
    fn by_program(&self, program: &str, words: &[&str], taken: Vec<Taken>) -> ModuleStep {
        let text = |what: &str| {
            let words = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            format!("bash \"$TPU_SETUP/{program}\" {what} {words}")
        };
        ModuleStep {
            module: self.module.to_owned(),
            check: Some(text("check")),
            run: Some(text("run")),
            taken,
            timeout_s: USUAL_S,
            ..ModuleStep::default()
        }
    }
}

/// A word for a shell. What holds a NUL was refused when it was read.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map(std::borrow::Cow::into_owned).unwrap_or_default()
}

fn ssh_keys(new: &Names<'_>, keys: &SshKeys) -> Vec<ModuleStep> {
    let step = |(index, identity): (usize, &Identity)| {
        let mut taken: Vec<Taken> = Vec::new();
        let mut take = |from: Option<TakenFrom>| {
            let Some(from) = from else { return String::new() };
            taken.push(new.taken(3 * index + taken.len(), from));
            taken.last().map(|taken| taken.name.clone()).unwrap_or_default()
        };
        let private = take(identity.private_key.clone().map(TakenFrom::Path));
        let public = take(identity.public_key.clone().map(TakenFrom::Path));
        let entry = take(identity.config_entry.clone().map(TakenFrom::Text));
        let named = |path: &String, end: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            name.strip_suffix(end).unwrap_or(name).to_owned()
        };
        let name = identity.private_key.as_ref().map(|path| named(path, ""));
        let name = name.or_else(|| identity.public_key.as_ref().map(|path| named(path, ".pub")));
        let name = name.unwrap_or_else(|| format!("entry-{index}"));
        new.by_program("ssh_keys.sh", &[&private, &public, &entry, &name], taken)
    };
    keys.identities.iter().enumerate().map(step).collect()
}

fn gcsfuse(new: &Names<'_>, buckets: &Gcsfuse) -> Vec<ModuleStep> {
    let step = |of: &tpu_core::model::setup::BucketMount| {
        let options: Vec<String> =
            of.options.iter().map(|(option, value)| format!("--{option}={value}")).collect();
        let mut words = vec![of.bucket.as_str(), &of.mount];
        words.extend(options.iter().map(String::as_str));
        new.by_program("gcsfuse.sh", &words, Vec::new())
    };
    buckets.mounts.iter().map(step).collect()
}

fn nfs(new: &Names<'_>, of: &Nfs) -> ModuleStep {
    let options = of.options.as_deref().unwrap_or_default();
    new.by_program("nfs.sh", &[&of.export, &of.mount, options], Vec::new())
}

fn conda(new: &Names<'_>, of: &Conda) -> ModuleStep {
    let file = of.file.clone().map(|path| new.taken(0, TakenFrom::Path(path)));
    let name = file.as_ref().map(|taken| taken.name.clone()).unwrap_or_default();
    new.by_program("conda.sh", &[&of.name, &name], file.into_iter().collect())
}

fn venv(new: &Names<'_>, of: &Venv) -> ModuleStep {
    let file = of.requirements.clone().map(|path| new.taken(0, TakenFrom::Path(path)));
    let name = file.as_ref().map(|taken| taken.name.clone()).unwrap_or_default();
    let python = of.python.as_deref().unwrap_or_default();
    new.by_program("venv.sh", &[&of.name, python, &name], file.into_iter().collect())
}

/// A step that its writer says himself. Its files are put there before it is brought about; without anything to run they
/// are what it is.
fn own(new: &Names<'_>, step: &OwnStep) -> ModuleStep {
    let mut taken = Vec::new();
    let mut words = Vec::new();
    for (index, file) in step.files.iter().enumerate() {
        let from = new.taken(index, TakenFrom::Path(file.from.clone()));
        words.extend([from.name.clone(), file.to.clone(), format!("{:o}", file.mode)]);
        taken.push(from);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let files = new.by_program("put.sh", &words, taken);
    let run = match (&step.run, step.files.is_empty()) {
        (Some(run), true) => Some(run.clone()),
        (Some(run), false) => {
            let put = files.run.as_deref().unwrap_or_default();
            Some(format!("{put} || exit\n{run}"))
        }
        (None, _) => files.run.clone(),
    };
    let are_all = step.run.is_none() && step.check.is_none();
    ModuleStep {
        check: if are_all { files.check.clone() } else { step.check.clone() },
        run,
        workers: step.workers.clone(),
        timeout_s: step.timeout_s.unwrap_or(USUAL_S),
        is_once: step.is_once,
        ..files
    }
}

/// The words before a command that let it run in the environment of its job. `variables` are the names of those that a
/// container is given; their values are in nobody's list of words.
pub fn around(modules: &[Module], variables: &[String]) -> Vec<OsString> {
    let Some(environment) = modules.iter().find(|module| module.is_environment()) else {
        return Vec::new();
    };
    let words: Vec<String> = match environment {
        Module::Docker(of) => container(of, variables),
        Module::Conda(of) => vec!["bash".into(), "-c".into(), IN_CONDA.into(), of.name.clone()],
        Module::Venv(of) => vec!["bash".into(), "-c".into(), IN_VENV.into(), of.name.clone()],
        Module::SshKeys(_)
        | Module::Gcsfuse(_)
        | Module::Nfs(_)
        | Module::Wandb(_)
        | Module::Step(_)
        | Module::Recipe(_) => Vec::new(),
    };
    words.into_iter().map(OsString::from).collect()
}

fn container(of: &Docker, variables: &[String]) -> Vec<String> {
    let workdir = of.workdir.clone().unwrap_or_default();
    let mut words: Vec<String> = ["bash", "-c", CONTAINER, "container"].map(str::to_owned).to_vec();
    words.extend([of.image.clone(), workdir]);
    for list in [of.mounts.as_slice(), &of.flags, variables] {
        words.push(list.len().to_string());
        words.extend_from_slice(list);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::setup::{BucketMount, StepFile};

    #[test]
    fn words_of_a_module_reach_its_program_as_they_are() {
        let options = vec![("cache-dir".to_owned(), "/a b".to_owned())];
        let mount = BucketMount { bucket: "b".to_owned(), mount: "/m x".to_owned(), options };
        let steps = steps(&Module::Gcsfuse(Gcsfuse { mounts: vec![mount] }), 0).unwrap();
        let text = steps[0].run.as_deref().unwrap();
        let words = shlex::split(text).unwrap();
        assert_eq!(words[2..], ["run", "b", "/m x", "--cache-dir=/a b"].map(str::to_owned));
    }

    #[test]
    fn files_of_a_step_are_there_before_it_runs_and_are_all_of_one_that_runs_nothing() {
        let file = StepFile { from: "t".to_owned(), to: "~/.t".to_owned(), mode: 0o640 };
        let only = OwnStep { name: "a".to_owned(), files: vec![file], ..OwnStep::default() };
        let of = |step: &OwnStep| steps(&Module::Step(step.clone()), 2).unwrap().remove(0);
        assert!(of(&only).check.unwrap().contains("check taken-2-0 '~/.t' 640"));
        let more = OwnStep { run: Some("make".to_owned()), ..only };
        let (check, run) = (of(&more).check, of(&more).run.unwrap());
        assert!(check.is_none() && run.ends_with("640 || exit\nmake"), "{run}");
    }

    #[test]
    fn a_job_without_an_environment_runs_as_it_is() {
        assert!(around(&[Module::Recipe("x".to_owned())], &[]).is_empty());
    }
}
