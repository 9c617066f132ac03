//! What Slurm's programs read and write, as far as the cluster in memory plays them.

use tpu_core::model::time::Timestamp;
use tpu_slurm::client::{ProgramAnswer, ProgramCall};

use super::SimJob;

/// What stands behind each field of a row.
const SEPARATOR: char = '\u{1f}';

/// A submission as the controller accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) tasks: Vec<u32>,
    pub(super) at_once: usize,
    pub(super) is_held: bool,
    /// Where a job that is no task writes.
    pub(super) output: Option<String>,
}

/// The submission that a call of `sbatch` is.
pub(super) fn order(call: &ProgramCall) -> Option<Order> {
    let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
    let name = option(&words, "--job-name")?;
    let (tasks, at_once) = match option(&words, "--array") {
        None => (Vec::new(), usize::MAX),
        Some(array) => {
            let (tasks, most) = array.split_once('%').unwrap_or((&array, ""));
            (indexes(tasks)?, most.parse().unwrap_or(usize::MAX))
        }
    };
    let output = option(&words, "--output").filter(|_| tasks.is_empty());
    Some(Order { name, tasks, at_once, is_held: words.contains(&"--hold"), output })
}

/// The tasks in `0-9,12`.
fn indexes(text: &str) -> Option<Vec<u32>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// What a call of `scancel` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled {
    /// Only jobs of this name.
    name: Option<String>,
    /// Numbers, each with the tasks of it that are meant, where not all are.
    ids: Vec<(u32, Option<Vec<u32>>)>,
}

impl Cancelled {
    /// Reads `--name=a 12 21_7 21_[0-4,9]`.
    pub(crate) fn of(call: &ProgramCall) -> Option<Self> {
        let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
        let id = |word: &&&str| match word.split_once('_') {
            None => Some((word.parse().ok()?, None)),
            Some((base, tasks)) => {
                let tasks = tasks.trim_start_matches('[').trim_end_matches(']');
                Some((base.parse().ok()?, Some(indexes(tasks)?)))
            }
        };
        let ids: Option<Vec<_>> =
            words.iter().filter(|word| !word.starts_with('-')).map(|word| id(&word)).collect();
        Some(Self { name: option(&words, "--name"), ids: ids? })
    }

    /// Whether a job is meant. A number alone is that of an array, or the own number of one task.
    pub(crate) fn has(&self, job: &SimJob) -> bool {
        let is_meant = |(base, tasks): &(u32, Option<Vec<u32>>)| match tasks {
            Some(tasks) => *base == job.base && job.task.is_some_and(|task| tasks.contains(&task)),
            None => *base == job.base || *base == job.id,
        };
        self.name.as_ref().is_none_or(|name| job.name == *name) && self.ids.iter().any(is_meant)
    }
}

/// The value of an option, in either spelling.
pub(super) fn option(words: &[&str], name: &str) -> Option<String> {
    let joined = format!("{name}=");
    let place = words.iter().position(|word| *word == name || word.starts_with(&joined))?;
    match words[place].strip_prefix(&joined) {
        Some(value) => Some(value.to_owned()),
        None => words.get(place + 1).map(|&value| value.to_owned()),
    }
}

pub(super) fn said(stdout: &str) -> ProgramAnswer {
    ProgramAnswer { code: 0, stdout: stdout.to_owned(), stderr: String::new() }
}

pub(super) fn refused(stderr: &str) -> ProgramAnswer {
    ProgramAnswer { code: 1, stdout: String::new(), stderr: stderr.to_owned() }
}

/// A time as Slurm writes it, in UTC.
pub(super) fn written(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "N/A".to_owned(), |at| at.to_rfc3339().trim_end_matches('Z').to_owned())
}

pub(super) fn row(job: &SimJob, tasks: &str) -> String {
    let (start, end) = (written(job.start), written(job.end));
    let (restarts, status) = (job.restarts.to_string(), job.status.to_string());
    let node = job.node.clone().unwrap_or_default();
    let (id, base) = (job.id.to_string(), job.base.to_string());
    let fields = [
        &id, &base, tasks, job.state, job.reason, &start, &end, &restarts, &status, &node,
        &job.name,
    ];
    let mut row: String = fields.map(|field| format!("{field}{SEPARATOR}")).concat();
    row.push('\n');
    row
}

pub(super) fn shown(job: &SimJob) -> String {
    let array = job
        .task
        .map_or_else(String::new, |task| format!("ArrayJobId={} ArrayTaskId={task} ", job.base));
    format!(
        "JobId={} {array}JobName={}\n   UserId=alice({}) GroupId=alice(0)\n   JobState={} Reason={} \
         Dependency=(null)\n   Requeue=0 Restarts={} BatchFlag=1 ExitCode={}:{}\n   StartTime={} EndTime={}\n   \
         NodeList={}\n\n",
        job.id,
        job.name,
        job.by,
        job.state,
        job.reason,
        job.restarts,
        job.status >> 8,
        job.status & 0x7f,
        written(job.start),
        written(job.end),
        job.node.as_deref().unwrap_or("(null)"),
    )
}
