//! How jobs have ended that Slurm's controller does not know any more: by its accounting, by its list of completed
//! jobs, or by what the batch script has written down itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::Want;

use super::array::Tasks;
use super::ask::{TimeLeft, complaint};
use super::client::{ProgramAnswer, ProgramCall, Silence};
use super::controller::Controller;
use super::facts::JobEnd;
use super::job_id::JobRef;
use super::limits::WHY_FILE;
use super::log;
use super::states;
use super::told::EndNote;

/// The file in the log directory in which a batch script says how it has ended: `JOBID RESTARTS CODE`.
pub(super) const EXIT_FILE: &str = "slurm-exit";

/// So many bytes at the end of a log hold what Slurm has written there last.
const LAST_WORDS: u64 = 4096;

/// What is known of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It has ended so.
    Ended(JobEnd),
    /// It is there, by a word that the controller does not confirm.
    Odd(String),
    /// Nobody knows it.
    Nothing,
    /// The question failed.
    Unanswered(String),
}

/// What is kept of jobs that are over.
struct Accounts {
    /// The newest end of each job or task, by its name, and its number with the task that it is.
    ends: HashMap<String, BTreeMap<(u64, Option<u32>), JobEnd>>,
    /// Whether it says which of an array each task is.
    knows_tasks: bool,
}

impl Accounts {
    fn of(ends: impl Iterator<Item = Account>, knows_tasks: bool) -> Self {
        let mut accounts = Self { ends: HashMap::new(), knows_tasks };
        for Account { name, base, task, end } in ends {
            accounts.ends.entry(name).or_default().insert((base, task), end);
        }
        accounts
    }

    /// The end of a job: by its number where that is known, else by its name alone.
    fn find(&self, job: &JobRef) -> Option<&JobEnd> {
        if !self.knows_tasks && job.id.is_some_and(|id| id.task.is_some()) {
            return None;
        }
        let is_it = |(base, task): (u64, Option<u32>)| {
            job.id.is_none_or(|id| id.base == base) && (task.is_none() || task == job.task)
        };
        job.names().find_map(|name| {
            let ends = self.ends.get(name)?;
            let mut found = ends.iter().filter(|(key, _)| is_it(**key)).map(|(_, end)| end);
            let first = found.next()?;
            // Several tasks under numbers of which nothing says which is which.
            let is_open = !self.knows_tasks && job.id.is_none() && found.next().is_some();
            (!is_open).then_some(first)
        })
    }
}

/// How one job has ended.
struct Account {
    name: String,
    base: u64,
    task: Option<u32>,
    end: JobEnd,
}

/// Asks about jobs that began after a time; the result keeps their order.
pub(super) fn ask(
    controller: &Controller<'_>,
    jobs: &[JobRef],
    since: Timestamp,
    budget: TimeLeft<'_>,
) -> Vec<Afterwards> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let accounts = match by_accounting(controller, jobs, since, budget.left()) {
        Some(accounts) => accounts,
        None => by_completion(controller, budget.left()),
    };
    let accounts = match accounts {
        Ok(accounts) => accounts,
        Err(why) => return jobs.iter().map(|_| Afterwards::Unanswered(why.clone())).collect(),
    };
    jobs.iter().map(|job| told(&accounts, job)).collect()
}

fn told(accounts: &Accounts, job: &JobRef) -> Afterwards {
    match accounts.find(job) {
        Some(end) if states::stage(&end.word).is_over() => Afterwards::Ended(end.clone()),
        Some(end) => Afterwards::Odd(end.word.clone()),
        None => Afterwards::Nothing,
    }
}

/// By the database of accounting. `None` where there is none.
fn by_accounting(
    controller: &Controller<'_>,
    jobs: &[JobRef],
    since: Timestamp,
    limit: Duration,
) -> Option<Result<Accounts, String>> {
    let Controller { client, cluster, heard, .. } = controller;
    if !heard.may_have_accounting(cluster) {
        return None;
    }
    let names: BTreeSet<&str> = jobs.iter().flat_map(JobRef::names).collect();
    let names: Vec<&str> = names.into_iter().collect();
    // A day before: the clocks of two machines may differ.
    let since = since.plus_seconds(-24 * 3600).to_rfc3339();
    let mut call = ProgramCall::new("sacct", limit)
        .args(["--noheader", "--parsable2", "--allocations"])
        .arg("--format=JobID,State,ExitCode,NodeList,JobName")
        .arg(format!("--name={}", names.join(",")))
        .arg(format!("--starttime={}", since.trim_end_matches('Z')));
    if let Some(uid) = controller.other_account() {
        call = call.arg(format!("--uid={uid}"));
    }
    match client.run(&call) {
        Ok(ProgramAnswer { code: 0, stdout, .. }) => {
            heard.set_accounting(cluster, true);
            Some(Ok(Accounts::of(accounts(&stdout), true)))
        }
        Ok(answer) if answer.stderr.contains("storage is disabled") => {
            heard.set_accounting(cluster, false);
            None
        }
        Err(Silence::NotStarted(_)) => {
            heard.set_accounting(cluster, false);
            None
        }
        Ok(answer) => Some(Err(complaint("sacct", &answer))),
        Err(silence) => Some(Err(silence.to_string())),
    }
}

/// By the list of completed jobs, which small clusters keep in a file. Not every account may read it.
fn by_completion(controller: &Controller<'_>, limit: Duration) -> Result<Accounts, String> {
    let call = ProgramCall::new("sacct", limit)
        .args(["--completion", "--noheader", "--parsable2"])
        .arg("--format=JobID,State,ExitCode,NodeList,JobName");
    match controller.client.run(&call) {
        // It knows tasks by numbers of their own.
        Ok(ProgramAnswer { code: 0, stdout, .. }) => Ok(Accounts::of(accounts(&stdout), false)),
        Ok(_) | Err(Silence::NotStarted(_)) => Ok(Accounts::of(std::iter::empty(), false)),
        Err(silence) => Err(silence.to_string()),
    }
}

/// Reads `JobID|State|ExitCode|NodeList|JobName`.
fn accounts(text: &str) -> impl Iterator<Item = Account> {
    text.lines().filter_map(account)
}

fn account(line: &str) -> Option<Account> {
    let mut fields = line.splitn(5, '|');
    let mut next = || fields.next();
    let (id, word, exit, nodes, name) = (next()?, next()?, next()?, next()?, next()?);
    let (base, task) = match id.split_once('_') {
        None => (id, None),
        Some((base, task)) => match Tasks::parse(task)? {
            Tasks::One(task) => (base, Some(task)),
            // These have never begun.
            Tasks::NoArray | Tasks::Several { .. } => return None,
        },
    };
    let base = base.parse().ok()?;
    let (code, signal) = exit.split_once(':').unwrap_or((exit, "0"));
    let end = JobEnd {
        word: word.to_owned(),
        reason: "None".to_owned(),
        code: code.parse().unwrap_or(0),
        signal: signal.parse().unwrap_or(0),
        nodes: nodes.to_owned(),
    };
    Some(Account { name: name.to_owned(), base, task, end })
}

/// How a job has ended by its own account, where Slurm has none.
pub(super) fn by_itself(controller: &Controller<'_>, job: &Job) -> Option<JobEnd> {
    let dir = Path::new(job.log_dir.as_deref()?);
    let code = |name: &str| -> Option<i32> {
        let bytes = controller.client.disk().read(&dir.join(name), 0, 256).ok()??;
        EndNote::read(&String::from_utf8_lossy(&bytes))?.code
    };
    let end = |word: &str| JobEnd { word: word.to_owned(), ..JobEnd::default() };
    if let Some(signal) = code(WHY_FILE) {
        return Some(JobEnd { signal, ..end("FAILED") });
    }
    code(EXIT_FILE)
        .map(|code| JobEnd { code, ..end(if code == 0 { "COMPLETED" } else { "FAILED" }) })
}

/// When a job has written down how it ended.
pub(super) fn noted_at(controller: &Controller<'_>, job: &Job) -> Option<Timestamp> {
    let note = Path::new(job.log_dir.as_deref()?).join(EXIT_FILE);
    let marks = controller.client.disk().marks(&[note]).ok()?;
    Some(marks.into_iter().next()??.written)
}

/// Slurm's own last word in the log of a job, for when nobody else tells any more how it has ended: what ends a job on its
/// node writes `slurmstepd-n1: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-22T07:04:33 DUE TO TIME LIMIT ***` (22.05.8).
pub(super) fn by_log(controller: &Controller<'_>, job: &Job, known: &JobRef) -> Option<JobEnd> {
    let want = Want::KeptEnd { bytes: LAST_WORDS };
    let chunk = log::chunk(&*controller.client.disk(), &log::path(job)?, want).ok()??;
    last_word(&String::from_utf8_lossy(&chunk.bytes), known.id?.base)
}

fn last_word(text: &str, id: u64) -> Option<JobEnd> {
    let marked = format!("error: *** JOB {id} ON ");
    let line =
        text.lines().rfind(|line| line.starts_with("slurmstepd") && line.contains(&marked))?;
    let (_, rest) = line.split_once(&marked)?;
    let (nodes, why) = rest.split_once(" CANCELLED AT ")?;
    let why = why.split_once(" DUE TO ").map(|(_, why)| why.trim_end_matches([' ', '*']));
    let word = match why {
        None => "CANCELLED",
        Some("TIME LIMIT") => "TIMEOUT",
        Some("PREEMPTION") => "PREEMPTED",
        Some(why) if why.starts_with("NODE FAILURE") => "NODE_FAIL",
        Some(_) => return None,
    };
    Some(JobEnd { word: word.to_owned(), nodes: nodes.to_owned(), ..JobEnd::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_id::SlurmId;

    #[test]
    fn accounts_are_read_by_name_and_task() {
        let accounts = of(
            "6|FAILED|7:0|n1|tpu-a\n1_3|TIMEOUT|0:15|n[1-2]|tpu-b\n1_[4-9%2]|PENDING|0:0||tpu-b\n\
             7|CANCELLED by 1000|0:0|None assigned|tpu-c\nodd\n",
            true,
        );
        let Afterwards::Ended(failed) = told(&accounts, &job("tpu-a", None)) else { panic!() };
        assert_eq!((failed.code, failed.signal, failed.nodes.as_str()), (7, 0, "n1"));
        let Afterwards::Ended(late) = told(&accounts, &job("tpu-b", Some(3))) else { panic!() };
        assert_eq!((late.word.as_str(), late.signal), ("TIMEOUT", 15));
        assert_eq!(told(&accounts, &job("tpu-b", Some(4))), Afterwards::Nothing);
        let Afterwards::Ended(gone) = told(&accounts, &job("tpu-c", None)) else { panic!() };
        assert_eq!(gone.word, "CANCELLED by 1000");
        let running = of("8|RUNNING|0:0|n1|tpu-d\n", true);
        assert_eq!(told(&running, &job("tpu-d", None)), Afterwards::Odd("RUNNING".to_owned()));
    }

    /// As 22.05.8 has written it: a job that was preempted and started again, a copy of it by somebody else, and two
    /// tasks of an array.
    #[test]
    fn the_end_of_another_job_of_its_name_is_not_taken_for_its_own() {
        let text = "1|PREEMPTED|0:0|n1|tpu-a\n1|COMPLETED|0:0|n1|tpu-a\n2|FAILED|3:0|n1|tpu-a\n\
                    15|FAILED|3:0|n1|tpu-b\n17|COMPLETED|0:0|n1|tpu-b\n";
        let accounts = of(text, false);
        let with = |name, base, task| {
            let id = Some(SlurmId { base, task });
            told(&accounts, &JobRef { id, ..job(name, task) })
        };
        let word = |told| match told {
            Afterwards::Ended(end) => end.word,
            other => panic!("{other:?}"),
        };
        assert_eq!(word(with("tpu-a", 1, None)), "COMPLETED", "its newest end");
        assert_eq!(word(with("tpu-a", 2, None)), "FAILED");
        assert_eq!(with("tpu-a", 3, None), Afterwards::Nothing);
        assert_eq!(with("tpu-b", 15, Some(1)), Afterwards::Nothing, "which of them is it?");
        assert_eq!(told(&accounts, &job("tpu-b", Some(1))), Afterwards::Nothing);
    }

    #[test]
    fn the_last_word_of_a_log_is_slurms_own_about_this_job() {
        let said = |rest: &str| {
            format!(
                "slurmstepd-n1: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-22T07:04:33{rest} ***\n"
            )
        };
        let word = |text: &str, id| last_word(text, id).map(|end| end.word);
        for (rest, expected) in [
            ("", "CANCELLED"),
            (" DUE TO TIME LIMIT", "TIMEOUT"),
            (" DUE TO PREEMPTION", "PREEMPTED"),
            (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "NODE_FAIL"),
        ] {
            let text = format!("step 1\n{}srun: error: n1: task 0: Terminated\n", said(rest));
            assert_eq!(word(&text, 12).as_deref(), Some(expected), "{rest}");
            assert_eq!(word(&text, 1), None, "another job");
            assert_eq!(word(&format!("it said: {text}"), 1), None);
        }
        assert_eq!(word(&said(" DUE TO JOB REQUEUE"), 12), None);
        assert_eq!(last_word(&said(""), 12).unwrap().nodes, "n1");
    }

    fn of(text: &str, knows_tasks: bool) -> Accounts {
        Accounts::of(accounts(text), knows_tasks)
    }

    fn job(name: &str, task: Option<u32>) -> JobRef {
        JobRef { name: name.to_owned(), own: None, id: None, task }
    }
}
