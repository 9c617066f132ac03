//! What a job is to do, whoever said so, as a job of a file.

use std::ffi::OsString;

use tpu_core::model::capacity::{Ask, GpuAsk};
use tpu_core::model::ids::QueueName;
use tpu_core::model::rules::{Action, Rules};
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};

use super::{KeyPlaces, OwnCode, OwnJob, OwnTarget, OwnWaits};

/// A job of a file, and what of it no file can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidAgain {
    /// The job.
    pub job: OwnJob,
    /// What is not said in it, for people.
    pub left_out: Vec<String>,
}

/// A specification as a job of a file. `kind` is that of its target, whose options it may have.
pub fn of_spec(spec: &JobSpec, kind: &str) -> SaidAgain {
    let mut left_out = Vec::new();
    let (mut asks, mut configs) = (asked(spec), spec.configs.clone());
    let (mut tag, mut notes, mut rules) = (spec.tag.clone(), spec.notes.clone(), rules(spec));
    let words = || spec.words.iter().map(OsString::from);
    let command =
        spec.command.as_ref().map(|command| command.iter().cloned().chain(words()).collect());
    // Without a command the directory's own script is given them.
    for word in spec.words.iter().filter(|_| spec.command.is_none()) {
        match word.strip_prefix("--").and_then(|word| word.split_once('=')) {
            // A config cannot have the name of a key: the key says it.
            Some(("tag", value)) => tag = Some(value.to_owned()),
            Some(("ssn", value)) => notes = Some(value.to_owned()),
            Some(("rule", value)) => rules = Some(value.to_owned()),
            Some((key, value)) if Ask::KEYS.contains(&key) => {
                asks.insert(0, (key.to_owned(), value.to_owned()));
            }
            Some((key, value)) => configs.push((key.to_owned(), value.to_owned())),
            None => left_out.push(format!("the argument {word}: there is no command:")),
        }
    }
    if let Some(staged) = spec.staged.as_ref().filter(|staged| staged.is_clone()) {
        left_out.push(format!("code: the repository of which {} is a copy", staged.copy));
    }
    if !spec.monitor {
        left_out.push("monitor=false: no rule acts on it".to_owned());
    }
    if spec.log_stage {
        left_out.push("--log-stage: the number of resumes as an argument".to_owned());
    }
    if spec.execution.copies_each {
        left_out.push("--copy-each: each of its members has its own copy of the code".to_owned());
    }
    let any_of = match &spec.target {
        TargetRequest::Any(any_of) => Some(any_of),
        TargetRequest::Named(_) => None,
    };
    let queue = spec.queue.as_ref().filter(|queue| **queue != QueueName::usual());
    let job = OwnJob {
        name: spec.name.clone(),
        target: target(spec, kind),
        dir: spec.dir.filter(|slot| *slot != 1),
        code: spec.code.as_ref().map(|code| OwnCode::Dir(code.begins_in())),
        asks,
        configs,
        arguments: spec.arguments,
        tag,
        notes,
        rules,
        command,
        array: spec.array.clone(),
        policy: any_of.and_then(|any_of| any_of.policy),
        execution: spec.execution.clone(),
        waits: OwnWaits { queue: queue.map(ToString::to_string), ..OwnWaits::default() },
        ..OwnJob::at((0, 0), KeyPlaces::default())
    };
    SaidAgain { job, left_out }
}

fn target(spec: &JobSpec, kind: &str) -> OwnTarget {
    let mut target = OwnTarget::at((0, 0));
    match &spec.target {
        TargetRequest::Named(name) => target.words = vec![name.clone()],
        TargetRequest::Any(AnyOf { types, among, reclaimable, zones, .. }) => {
            target.words = match (among.as_slice(), types.as_slice()) {
                ([], []) => vec!["v*".to_owned()],
                ([], types) => types.to_vec(),
                (among, _) => among.to_vec(),
            };
            target.zones.clone_from(zones);
            target.reclaimable = *reclaimable;
        }
    }
    if !spec.options.is_empty() {
        target.kind = Some(kind.to_owned());
        target.options = spec.options.clone();
    }
    target
}

/// What it asks of its target, as it is typed.
fn asked(spec: &JobSpec) -> Vec<(String, String)> {
    let pair = |key: &str, value: String| (key.to_owned(), value);
    let gpus = match &spec.ask.gpus {
        GpuAsk::Unsaid => None,
        GpuAsk::Count(count) => Some(pair("gpus", count.to_string())),
        GpuAsk::These(all) => {
            let all: Vec<String> = all.iter().map(u32::to_string).collect();
            Some(pair("gpu", all.join(",")))
        }
    };
    let cpus = spec.ask.cpus.map(|cpus| pair("cpus", cpus.to_string()));
    let memory = spec.ask.memory.map(|memory| pair("mem", memory.to_string()));
    gpus.into_iter().chain(cpus).chain(memory).collect()
}

/// What is done after failures, but for those that `retry:` answers.
fn rules(spec: &JobSpec) -> Option<String> {
    let rules = Rules::parse(spec.rules.as_deref()?).ok()?;
    let retried = spec.execution.retry.iter().flat_map(|retry| &retry.on);
    let retried: Vec<_> = retried.copied().collect();
    let is_own = |(kind, action): &(_, Action)| *action != Action::Pass && !retried.contains(kind);
    let each = rules.iter().filter(is_own);
    let each: Vec<String> =
        each.map(|(kind, action)| format!("{kind}:{}", action.as_str())).collect();
    Some(if each.is_empty() { "pass".to_owned() } else { each.join(",") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such as a script of the original was given: the keys of a file say them.
    #[test]
    fn words_that_have_a_key_of_their_own_are_no_configs() {
        let words = ["--tag=night", "--ssn=slow", "--rule=pre", "--gpus=2", "--lr=0.01"];
        let words = words.map(str::to_owned).to_vec();
        let spec = JobSpec { words, ..JobSpec::on(TargetRequest::Named("local".to_owned())) };
        let SaidAgain { job, left_out } = of_spec(&spec, "local");
        assert_eq!(left_out, [""; 0]);
        let said = [job.tag, job.notes, job.rules].map(Option::unwrap);
        assert_eq!(said, ["night", "slow", "pre"]);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!((job.asks, job.configs), (vec![pair("gpus", "2")], vec![pair("lr", "0.01")]));
    }
}
