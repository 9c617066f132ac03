//! `squeue`: one question about all of our jobs, and how its rows are read.
//!
//! Every field is asked for by name and followed by a character that occurs in none, so that neither widths nor the
//! settings of whoever asks change a row.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use tpu_core::model::time::Timestamp;

use super::array::Tasks;
use super::client::ProgramCall;
use super::job_id::JobRef;

/// What stands behind each field.
pub(super) const SEPARATOR: char = '\u{1f}';

/// The fields, in their order. The name comes last: whatever it holds, what is before it is read.
const FIELDS: [&str; 11] = [
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "State",
    "Reason",
    "StartTime",
    "EndTime",
    "RestartCnt",
    "exit_code",
    "NodeList",
    "Name",
];

/// The question: all jobs of an account, of our own without one, or those of some names. Jobs in hidden partitions and
/// those that have ended, as long as Slurm remembers them, are among them.
pub(super) fn question(account: Option<u32>, names: Option<&str>, limit: Duration) -> ProgramCall {
    let format: Vec<String> = FIELDS.iter().map(|field| format!("{field}:{SEPARATOR}")).collect();
    let call = ProgramCall::new("squeue", limit)
        .args(["--noheader", "--all", "--states=all", "--noconvert"])
        .arg(account.map_or_else(|| "--me".to_owned(), |uid| format!("--user={uid}")))
        .arg(format!("--Format={}", format.join(",")));
    match names {
        Some(names) => call.arg(format!("--name={names}")),
        None => call,
    }
}

/// One row: a job, a task of an array, or the tasks of an array that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JobRow {
    /// The number by which its steps are found; each task that has begun has one of its own.
    pub(super) raw_id: u64,
    /// The number of the job, or of the array.
    pub(super) base: u64,
    /// Which tasks of an array.
    pub(super) tasks: Tasks,
    /// Slurm's word for how it is.
    pub(super) state: String,
    /// Slurm's word for why.
    pub(super) reason: String,
    /// When it began, or is expected to begin.
    pub(super) start: Option<Timestamp>,
    /// When it ended, or has to end at the latest.
    pub(super) end: Option<Timestamp>,
    /// How often Slurm has started it anew.
    pub(super) restarts: u32,
    /// How it ended, as wait(2) tells it.
    pub(super) status: i32,
    /// Its nodes, as Slurm writes them.
    pub(super) nodes: String,
    /// Its name.
    pub(super) name: String,
}

/// The rows of an answer. A line that is no row is part of somebody's name for another job.
pub(super) fn rows(text: &str) -> Vec<JobRow> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<JobRow> {
    let mut fields = line.splitn(FIELDS.len(), SEPARATOR).map(str::trim);
    let mut next = || fields.next();
    let raw_id = next()?.parse().ok()?;
    let base = next()?.parse().ok();
    Some(JobRow {
        raw_id,
        base: base.unwrap_or(raw_id),
        tasks: Tasks::parse(next()?)?,
        state: next()?.to_owned(),
        reason: next()?.to_owned(),
        start: time(next()?),
        end: time(next()?),
        restarts: next()?.parse().unwrap_or(0),
        status: wait_status(next()?),
        nodes: next()?.to_owned(),
        name: next()?.trim_end_matches(SEPARATOR).to_owned(),
    })
}

/// The jobs of an answer of `scontrol show job`: words `Key=Value`, of which the first of each job is its number. Of a
/// key that occurs again, in what somebody has written, the first one counts.
fn shown(text: &str) -> Vec<JobRow> {
    let mut jobs: Vec<HashMap<&str, &str>> = Vec::new();
    for (key, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
        if key == "JobId" {
            jobs.push(HashMap::new());
        }
        if let Some(job) = jobs.last_mut() {
            job.entry(key).or_insert(value);
        }
    }
    jobs.iter().filter_map(shown_row).collect()
}

fn shown_row(job: &HashMap<&str, &str>) -> Option<JobRow> {
    let said = |key: &str| job.get(key).copied().unwrap_or_default();
    let raw_id = said("JobId").parse().ok()?;
    Some(JobRow {
        raw_id,
        base: said("ArrayJobId").parse().unwrap_or(raw_id),
        tasks: Tasks::parse(said("ArrayTaskId"))?,
        state: said("JobState").to_owned(),
        reason: said("Reason").to_owned(),
        start: time(said("StartTime")),
        end: time(said("EndTime")),
        restarts: said("Restarts").parse().unwrap_or(0),
        status: wait_status(said("ExitCode")),
        nodes: said("NodeList").to_owned(),
        name: said("JobName").to_owned(),
    })
}

/// How a job ended: up to 22.05 as wait(2) tells it, from 23.02 on as `CODE:SIGNAL`.
fn wait_status(text: &str) -> i32 {
    let number = |text: &str| text.parse::<i32>().unwrap_or(0);
    match text.split_once(':') {
        Some((code, signal)) => (number(code) & 0xff) << 8 | number(signal) & 0x7f,
        None => number(text),
    }
}

/// A time as Slurm writes it where the zone is UTC.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let time: DateTime = text.parse().ok()?;
    Some(Timestamp::from_jiff(time.to_zoned(TimeZone::UTC).ok()?.timestamp()))
}

/// The rows of an answer, by which jobs are found: those of each name, by the number of what was submitted under it.
#[derive(Debug, Default)]
pub(super) struct JobTable {
    by_name: HashMap<String, BTreeMap<u64, Submitted>>,
}

/// The rows of one submission.
#[derive(Debug, Default)]
struct Submitted {
    single: Option<JobRow>,
    started: HashMap<u32, JobRow>,
    waiting: Vec<JobRow>,
}

impl Submitted {
    fn add(&mut self, row: JobRow) {
        match row.tasks {
            Tasks::NoArray => self.single = Some(row),
            Tasks::One(task) => drop(self.started.insert(task, row)),
            Tasks::Several { .. } => self.waiting.push(row),
        }
    }

    /// A member that was brought back by itself is no task of an array; and the rest of an array that was cancelled
    /// before it began is listed as if it were none.
    fn row(&self, task: Option<u32>) -> Option<&JobRow> {
        let of_array = task.and_then(|task| {
            let waits = || self.waiting.iter().find(|row| row.tasks.may_have(task));
            self.started.get(&task).or_else(waits)
        });
        of_array.or(self.single.as_ref())
    }
}

impl JobTable {
    /// The rows of an answer of `squeue`.
    pub(super) fn read(text: &str) -> Self {
        Self::of(rows(text))
    }

    /// The jobs of an answer of `scontrol show job`.
    pub(super) fn shown(text: &str) -> Self {
        Self::of(shown(text))
    }

    fn of(rows: Vec<JobRow>) -> Self {
        let mut table = Self::default();
        for row in rows {
            let named = table.by_name.entry(row.name.clone()).or_default();
            named.entry(row.base).or_default().add(row);
        }
        table
    }

    /// The row that a job is in.
    pub(super) fn find(&self, job: &JobRef) -> Option<&JobRow> {
        self.submissions(job).find_map(|(_, submitted)| submitted.row(job.task))
    }

    /// The number of the job or the array that was submitted for a job.
    pub(super) fn base(&self, job: &JobRef) -> Option<u64> {
        self.submissions(job).map(|(base, _)| *base).next()
    }

    /// What may be a job. Others may submit something under its name, which they see as soon as it is there: so one
    /// whose number is known is only what has that, and of what has its name the first one is it otherwise.
    fn submissions(&self, job: &JobRef) -> impl Iterator<Item = (&u64, &Submitted)> {
        let of_name = |name: &str| {
            let named = self.by_name.get(name)?;
            match job.id {
                Some(id) => named.get_key_value(&id.base),
                None => named.first_key_value(),
            }
        };
        let found: Vec<_> = job.names().filter_map(of_name).collect();
        found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_id::SlurmId;

    /// As 22.05.8 has written it.
    const SEEN: &str = "4\u{1f}4\u{1f}N/A\u{1f}PENDING\u{1f}Resources\u{1f}2027-11-22T03:03:27\u{1f}2027-11-23T03:03:27\u{1f}0\u{1f}0\u{1f}\u{1f}tpu-nodir\u{1f}
5\u{1f}1\u{1f}0\u{1f}FAILED\u{1f}NonZeroExitCode\u{1f}2026-11-22T03:03:25\u{1f}2026-11-22T03:03:27\u{1f}1\u{1f}1792\u{1f}n1\u{1f}tpu-abc1\u{1f}
1\u{1f}1\u{1f}4-9%2\u{1f}PENDING\u{1f}JobArrayTaskLimit\u{1f}N/A\u{1f}N/A\u{1f}0\u{1f}0\u{1f}\u{1f}tpu-abc1\u{1f}
9\u{1f}1\u{1f}2\u{1f}RUNNING\u{1f}None\u{1f}2026-11-22T03:03:27\u{1f}NONE\u{1f}0\u{1f}0\u{1f}n1\u{1f}tpu-abc1\u{1f}
12\u{1f}12\u{1f}N/A\u{1f}RUNNING\u{1f}None\u{1f}2026-11-22T03:03:27\u{1f}NONE\u{1f}0\u{1f}0\u{1f}n1\u{1f}some
body's
name\u{1f}
";

    fn job(name: &str, task: Option<u32>) -> JobRef {
        JobRef { name: name.to_owned(), own: None, id: None, task }
    }

    #[test]
    fn each_member_is_found_in_the_row_that_it_is_in() {
        let table = JobTable::read(SEEN);
        let state = |name: &str, task| table.find(&job(name, task)).map(|row| row.state.as_str());
        assert_eq!(state("tpu-nodir", None), Some("PENDING"));
        assert_eq!(state("tpu-nodir", Some(3)), Some("PENDING"), "brought back by itself");
        assert_eq!(state("tpu-abc1", Some(0)), Some("FAILED"));
        assert_eq!(state("tpu-abc1", Some(2)), Some("RUNNING"));
        assert_eq!(state("tpu-abc1", Some(7)), Some("PENDING"));
        assert_eq!(state("tpu-abc1", Some(10)), None);
        assert_eq!(state("tpu-abc1", None), None);
        assert_eq!(state("tpu-gone", None), None);
        assert_eq!(table.base(&job("tpu-abc1", Some(9))), Some(1));
        let own = JobRef { own: Some("tpu-nodir".to_owned()), ..job("tpu-first", None) };
        assert!(table.find(&own).is_some(), "by the name of its own launch");
    }

    /// As the sources of 23.02 and later have it be written.
    #[test]
    fn how_a_job_ended_is_read_as_every_version_writes_it() {
        let status = |text: &str| {
            let table = JobTable::read(&SEEN.replace("1792", text));
            table.find(&job("tpu-abc1", Some(0))).unwrap().status
        };
        assert_eq!((status("1792"), status("7:0"), status("0:53")), (7 << 8, 7 << 8, 53));
        assert_eq!((status("0"), status("0:0"), status("")), (0, 0, 0));
    }

    #[test]
    fn another_job_of_its_name_is_not_taken_for_it() {
        let theirs = "13\u{1f}13\u{1f}N/A\u{1f}RUNNING\u{1f}None\u{1f}N/A\u{1f}N/A\u{1f}0\u{1f}0\u{1f}n2\u{1f}tpu-nodir\u{1f}\n";
        let table = JobTable::read(&format!("{theirs}{SEEN}"));
        let with = |id| JobRef { id, ..job("tpu-nodir", None) };
        let numbered = |base| with(Some(SlurmId { base, task: None }));
        let raw_id = |job: &JobRef| table.find(job).map(|row| row.raw_id);
        assert_eq!(raw_id(&numbered(4)), Some(4));
        assert_eq!((raw_id(&numbered(5)), table.base(&numbered(5))), (None, None), "it has ended");
        assert_eq!(raw_id(&with(None)), Some(4), "nobody copies a name before it is there");
    }

    /// As 22.05.8 has written it of an array of which task 0 runs when the others are cancelled.
    #[test]
    fn the_cancelled_rest_of_an_array_is_not_what_has_begun() {
        let rest = SEEN.replace("4-9%2\u{1f}PENDING", "N/A\u{1f}CANCELLED");
        let table = JobTable::read(&rest);
        let state = |task| table.find(&job("tpu-abc1", Some(task))).map(|row| row.state.as_str());
        assert_eq!((state(2), state(7)), (Some("RUNNING"), Some("CANCELLED")));
    }

    #[test]
    fn a_row_is_read_whole() {
        let table = JobTable::read(SEEN);
        let row = table.find(&job("tpu-abc1", Some(0))).unwrap();
        assert_eq!((row.raw_id, row.base, row.restarts, row.status), (5, 1, 1, 7 << 8));
        assert_eq!((row.nodes.as_str(), row.reason.as_str()), ("n1", "NonZeroExitCode"));
        assert_eq!(row.start.unwrap().to_rfc3339(), "2026-11-22T03:03:25Z");
        assert_eq!(table.find(&job("tpu-abc1", Some(2))).unwrap().end, None);
    }

    /// As 22.05.8 has written it, with somebody's comment that looks like more of it.
    #[test]
    fn a_job_that_scontrol_shows_is_read_like_a_row() {
        let text = "JobId=9 ArrayJobId=1 ArrayTaskId=2 JobName=tpu-abc1\n   UserId=alice(1000) GroupId=lab(1000)\n   \
            JobState=RUNNING Reason=None Dependency=(null)\n   Requeue=0 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=7:0\n   \
            RunTime=00:00:02 TimeLimit=UNLIMITED\n   StartTime=2026-11-22T03:03:27 EndTime=Unknown\n   \
            ReqNodeList=(null) ExcNodeList=n2\n   NodeList=n1\n   Comment=JobState=FAILED NodeList=n9\n\n\
            JobId=4 JobName=tpu-nodir\n   JobState=PENDING Reason=Resources ExitCode=0:0 StartTime=N/A NodeList=\n";
        let table = JobTable::shown(text);
        let task = table.find(&job("tpu-abc1", Some(2))).unwrap();
        assert_eq!((task.raw_id, task.base, task.restarts, task.status), (9, 1, 1, 7 << 8));
        assert_eq!((task.state.as_str(), task.nodes.as_str()), ("RUNNING", "n1"));
        assert_eq!(task.start.unwrap().to_rfc3339(), "2026-11-22T03:03:27Z");
        let single = table.find(&job("tpu-nodir", None)).unwrap();
        assert_eq!((single.state.as_str(), single.reason.as_str()), ("PENDING", "Resources"));
        assert_eq!(table.find(&job("tpu-abc1", Some(3))), None);
    }

    #[test]
    fn whatever_comes_nothing_panics() {
        for odd in ["", "\u{1f}", "1\u{1f}2", "a\u{1f}b\u{1f}c", "squeue: error: no\n\u{1f}\u{1f}"]
        {
            assert!(rows(odd).is_empty() && shown(odd).is_empty(), "{odd}");
        }
    }
}
