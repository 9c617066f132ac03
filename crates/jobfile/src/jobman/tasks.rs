//! `tasks.yaml`: the tasks that JobMan's workers take one after the other, each as a job of ours.
//!
//! Of what a task does not say, its accelerator's `overrides:` and then `defaults:` are asked; variables are put together.

use std::collections::BTreeSet;

use crate::BadFile;
use crate::yaml::{self, Yaml, YamlValue};
use tpu_core::text::did_you_mean;

use super::ConversionNote;
use super::block::{Block, made, map_of, word};
use super::parts::{literal, parted, place, prefixes};

const EXAMPLE: &str = "as in accelerators: {v4-8: {tasks: [{id: train, run: python train.py}]}}";

/// How often JobMan starts a task that says nothing of it, until it has ended well.
const TRIES: u32 = 3;

/// The keys that a task may leave to its accelerator and to `defaults:`.
const INHERITED: [&str; 6] = ["repo", "branch", "workdir", "max_jobs", "max_retries", "prefix"];

/// The tasks of a file, in an order in which whatever has to end before stands before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// A document of ours with a job for each of them, by its id.
    pub document: Yaml,
    /// The tasks, in the order of those jobs.
    pub tasks: Vec<JobmanTask>,
    /// What is not as it was.
    pub notes: Vec<ConversionNote>,
}

/// What of a task is no part of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobmanTask {
    /// By what the file calls it.
    pub id: String,
    /// Below which accelerator it stands.
    pub accelerator: String,
    /// Whether lists leave it out.
    pub is_hidden: bool,
    /// So many may be at work on it at once.
    pub most: u32,
    /// Its job as text: whether the file has changed since it was submitted.
    pub said: String,
}

/// Whether a document is a file of tasks.
pub fn is_tasks(document: &Yaml) -> bool {
    let has = |key: &str| document.get(key).is_some();
    (has("accelerators") || has("tasks")) && !has("target") && !has("jobs")
}

/// Reads the tasks of a document.
pub fn tasks(document: &Yaml) -> Result<Tasks, BadFile> {
    let mut notes = Vec::new();
    let mut file = Block::below(document, String::new())?;
    let repos = file.take("repos");
    let defaults = file.take("defaults");
    let accelerators =
        file.need("accelerators", "{v4-8: {tasks: [{id: train, run: python3 train.py}]}}")?;
    file.rest(&mut notes);
    if let Some(defaults) = defaults {
        refuse_misplaced(defaults)?;
    }
    let mut read: Vec<Read> = Vec::new();
    for (name, of) in accelerators.members("accelerators")? {
        let mut block = Block::below(of, format!("accelerators.{name}"))?;
        let overrides = block.take("overrides");
        for task in block.list("tasks")? {
            let above = Above { accelerator: name, overrides, defaults, repos };
            let next = above.task(task, &mut notes)?;
            if read.iter().any(|known| known.task.id == next.task.id) {
                let what = format!("two tasks are called {}", next.task.id);
                return Err(at(task, "tasks.id", what, "each has an id of its own"));
            }
            read.push(next);
        }
        block.rest(&mut notes);
    }
    if read.is_empty() {
        return Err(at(accelerators, "accelerators", "there is no task in it", EXAMPLE));
    }
    let read = in_order(read)?;
    let jobs = read.iter().map(|read| (read.task.id.clone(), read.job.clone())).collect();
    let jobs = made(document, YamlValue::Map(jobs));
    let document = map_of(document, vec![("jobs", Some(jobs))]);
    let tasks = read.into_iter().map(|read| read.task).collect();
    Ok(Tasks { document, tasks, notes })
}

/// A task that was read.
struct Read {
    task: JobmanTask,
    job: Yaml,
    after: Vec<(Yaml, String)>,
}

/// What holds for a task beside what it says itself.
#[derive(Clone, Copy)]
struct Above<'a> {
    accelerator: &'a str,
    overrides: Option<&'a Yaml>,
    defaults: Option<&'a Yaml>,
    repos: Option<&'a Yaml>,
}

impl Above<'_> {
    fn task(&self, said: &Yaml, notes: &mut Vec<ConversionNote>) -> Result<Read, BadFile> {
        let mut block = Block::below(said, format!("accelerators.{}.tasks", self.accelerator))?;
        let id = text(block.need("id", "train")?, "tasks.id")?.to_owned();
        let run = block.need("run", "python train.py")?.clone();
        text(&run, "tasks.run")?;
        let [repo, branch, workdir, most, tries, prefix] =
            INHERITED.map(|key| self.inherited(&mut block, key));
        // JobMan does not ask the accelerator for it.
        let zone = block.take("zone").or(self.defaults.and_then(|of| known(of, "zone"))).cloned();
        let workers = block.take("workers").cloned();
        let is_hidden = block.truth("hide")?.is_some_and(|(_, is)| is);
        let after = texts(block.take("depends_on"))?;
        let most = most.map_or(Ok(1), |most| number(&most, "tasks.max_jobs", 1))?;
        let tries = tries.map_or(Ok(TRIES), |tries| number(&tries, "tasks.max_retries", 0))?;
        if let Some(dir) = workdir {
            let what = "left out: it runs in a copy of its code of its own";
            notes.push(block.note(&dir, "workdir", what));
        }
        let (env, secrets) = parted(said, self.environment(&mut block)?, notes);
        block.rest(notes);
        let code = repo.map(|repo| self.code(&repo, branch.as_ref())).transpose()?;
        let setup = prefix.map(|prefix| prefixes(&prefix, notes)).transpose()?;
        let is_type = self.is_type();
        let names = after.iter().map(|(value, _)| value.clone()).collect();
        let members = vec![
            ("target", Some(self.target(said, zone, notes))),
            ("code", code),
            ("env", env),
            ("secrets", secrets),
            ("setup", setup.map(|steps| made(said, YamlValue::List(steps)))),
            ("workers", workers.or_else(|| is_type.then(|| word(said, "0")))),
            ("array", (most > 1).then(|| word(said, format!("0-{}", most - 1)))),
            // What takes its machine away is no failure of the task.
            ("rules", is_type.then(|| word(said, "pre"))),
            ("retry", (tries > 1).then(|| word(said, (tries - 1).to_string()))),
            ("after", (!after.is_empty()).then(|| made(said, YamlValue::List(names)))),
            ("command", Some(run)),
        ];
        let job = literal(&map_of(said, members));
        let said = yaml::written(std::slice::from_ref(&job));
        let accelerator = self.accelerator.to_owned();
        Ok(Read { task: JobmanTask { id, accelerator, is_hidden, most, said }, job, after })
    }

    /// Whether it names a type and no target, pool or machine.
    fn is_type(&self) -> bool {
        let rest = self.accelerator.strip_prefix('v').unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Any of its type that is there, in the zone of the task.
    fn target(&self, at: &Yaml, zone: Option<Yaml>, notes: &mut Vec<ConversionNote>) -> Yaml {
        let name = word(at, self.accelerator);
        if self.is_type() {
            return map_of(at, vec![("type", Some(name)), ("zone", zone)]);
        }
        if let Some(zone) = zone {
            let what = format!("left out: {} is where it is", self.accelerator);
            notes.push(ConversionNote {
                place: place(&zone),
                field: "tasks.zone".to_owned(),
                what,
            });
        }
        name
    }

    fn inherited(&self, block: &mut Block<'_>, key: &'static str) -> Option<Yaml> {
        let above = || [self.overrides, self.defaults].into_iter().flatten();
        block.take(key).or_else(|| above().find_map(|of| known(of, key))).cloned()
    }

    /// Its variables, over those of its accelerator and of all.
    fn environment(&self, block: &mut Block<'_>) -> Result<Vec<(String, Yaml)>, BadFile> {
        let mut all: Vec<(String, Yaml)> = Vec::new();
        let above = [self.defaults, self.overrides].map(|of| of.and_then(|of| known(of, "env")));
        for of in above.into_iter().chain([block.take("env")]).flatten() {
            let members = of.members("env").map_err(|bad| bad.at_column(of.column))?;
            for (name, value) in members {
                all.retain(|(known, _)| known != name);
                all.push((name.clone(), value.clone()));
            }
        }
        Ok(all)
    }

    /// The repository of that key, or the one that stands there itself.
    fn code(&self, said: &Yaml, branch: Option<&Yaml>) -> Result<Yaml, BadFile> {
        let key = text(said, "tasks.repo")?;
        let of = self.repos.and_then(|repos| known(repos, key));
        let (url, own) = match of {
            Some(of) if of.text().is_some() => (of.clone(), None),
            Some(of) => {
                let url = known(of, "url").cloned();
                let missing = || {
                    at(
                        of,
                        &format!("repos.{key}"),
                        "url: is missing",
                        "as in url: https://host/lab/train.git",
                    )
                };
                (url.ok_or_else(missing)?, known(of, "branch").cloned())
            }
            None if key.contains(['/', ':']) => (said.clone(), None),
            None => {
                let all = self.repos.map(|repos| repos.members("repos")).transpose()?;
                let names = all.unwrap_or_default().iter().map(|(name, _)| name.as_str());
                let hint = did_you_mean(key, names).unwrap_or_else(|| {
                    format!("as in repos: {{{key}: https://host/lab/{key}.git}}")
                });
                return Err(at(said, "tasks.repo", format!("there is no repo {key}"), hint));
            }
        };
        let branch = branch.cloned().or(own);
        Ok(map_of(said, vec![("repo", Some(url)), ("branch", branch)]))
    }
}

/// Whatever has to end before stands before, and else as in the file.
fn in_order(mut all: Vec<Read>) -> Result<Vec<Read>, BadFile> {
    let known: BTreeSet<String> = all.iter().map(|read| read.task.id.clone()).collect();
    for (value, id) in all.iter().flat_map(|read| &read.after) {
        if !known.contains(id) {
            let hint = did_you_mean(id, known.iter().map(String::as_str))
                .unwrap_or_else(|| "name a task of this file".to_owned());
            return Err(at(value, "tasks.depends_on", format!("there is no task {id}"), hint));
        }
    }
    let mut placed: Vec<Read> = Vec::new();
    while !all.is_empty() {
        let is_free = |read: &Read| {
            let is_placed = |(_, id): &(Yaml, String)| placed.iter().any(|p| p.task.id == *id);
            read.after.iter().all(is_placed)
        };
        if let Some(next) = all.iter().position(is_free) {
            placed.push(all.remove(next));
            continue;
        }
        let names: Vec<&str> = all.iter().map(|read| read.task.id.as_str()).collect();
        let what = format!("{} wait for one another", names.join(", "));
        let first = all.iter().flat_map(|read| &read.after).next();
        let (value, _) = first.expect("who is not free waits for somebody");
        return Err(at(value, "tasks.depends_on", what, "leave one of them out"));
    }
    Ok(placed)
}

/// An accelerator below `defaults:`, as in an example of JobMan's, defines nothing.
fn refuse_misplaced(defaults: &Yaml) -> Result<(), BadFile> {
    for (name, of) in defaults.members("defaults").map_err(|bad| bad.at_column(defaults.column))? {
        if known(of, "tasks").is_some() {
            let what = format!("{name} stands below defaults:, where nobody looks for tasks");
            return Err(at(of, &format!("defaults.{name}"), what, EXAMPLE));
        }
    }
    Ok(())
}

fn at(value: &Yaml, field: &str, what: impl Into<String>, hint: impl Into<String>) -> BadFile {
    let (line, column) = place(value);
    BadFile::new(line, field, what, hint).at_column(column)
}

/// The value of a key, where one stands there.
fn known<'a>(of: &'a Yaml, key: &str) -> Option<&'a Yaml> {
    of.get(key).filter(|value| value.value != YamlValue::Blank)
}

fn text<'a>(value: &'a Yaml, field: &str) -> Result<&'a str, BadFile> {
    let said = value.text().filter(|said| !said.trim().is_empty());
    said.ok_or_else(|| at(value, field, "one value is wanted here", EXAMPLE))
}

/// One value, or a list of them, or none.
fn texts(value: Option<&Yaml>) -> Result<Vec<(Yaml, String)>, BadFile> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let all = match &value.value {
        YamlValue::List(all) => all.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let one = |one: &Yaml| Ok((one.clone(), text(one, "tasks.depends_on")?.to_owned()));
    all.iter().map(one).collect()
}

fn number(value: &Yaml, field: &str, least: u32) -> Result<u32, BadFile> {
    let said = text(value, field)?;
    let number = said.parse().ok().filter(|number| (least..=1000).contains(number));
    let hint = format!("a number from {least} to 1000");
    number.ok_or_else(|| at(value, field, format!("'{said}' is none"), hint))
}
