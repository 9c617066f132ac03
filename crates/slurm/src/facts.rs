//! What Slurm says of a job, as a fact about its run.

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::job::Job;
use tpu_core::model::pattern;
use tpu_core::model::time::Timestamp;

use super::listing::JobRow;
use super::reasons;
use super::states::{self, JobStage};

/// The signal by which Slurm, and our script, end what cannot begin: its directories are not seen where it runs.
pub(super) const UNSEEN: i32 = 53;

/// The signal by which our script ends what was given up before it was submitted.
pub(super) const GIVEN_UP: i32 = 54;

/// The signal by which our script ends what could not be set up.
pub(super) const NOT_SET_UP: i32 = 55;

/// The one for what has printed nothing for too long.
pub(super) const SILENT: i32 = 56;

/// The one for what has had its time.
pub(super) const TIMED_OUT: i32 = 57;

/// Why our script has ended a job, by the signal; its own words stand in a file.
pub(super) fn ended_by_script(signal: i32) -> Option<(ErrorKind, &'static str)> {
    Some(match signal {
        NOT_SET_UP => (ErrorKind::Setup, "what it needs could not be set up"),
        SILENT => (ErrorKind::Stalled, "it has printed nothing for its idle_timeout"),
        TIMED_OUT => (ErrorKind::Timeout, "its time is over: its timeout"),
        _ => return None,
    })
}

/// How a job has ended, whoever says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JobEnd {
    /// Slurm's word, with what hangs on it: `CANCELLED by 1000`.
    pub(super) word: String,
    /// Slurm's word for why.
    pub(super) reason: String,
    /// Its exit code.
    pub(super) code: i32,
    /// The signal that ended it, or 0.
    pub(super) signal: i32,
    /// Its nodes, as Slurm writes them.
    pub(super) nodes: String,
}

/// What a row of a listing says.
pub(super) fn of_row(job: &Job, row: &JobRow) -> RunFact {
    let stage = states::stage(&row.state);
    let there = |state, reason| RunFact {
        nodes: node_names(&row.nodes),
        restarts: row.restarts,
        began: began(row),
        ..RunFact::of_engine(state, states::bare(&row.state), reason)
    };
    match stage {
        JobStage::Waiting => {
            let why = waiting(row);
            RunFact { expected: row.start, began: None, ..there(RunState::Pending, Some(why)) }
        }
        JobStage::Starting => {
            there(RunState::Starting, Some("its nodes are being made ready".to_owned()))
        }
        JobStage::Working => RunFact {
            text_waits: states::bare(&row.state) == "COMPLETING",
            ..there(RunState::Running, at_work(&row.state).map(str::to_owned))
        },
        JobStage::Unclear => there(RunState::Unknown, Some(format!("Slurm says {}", row.state))),
        JobStage::Done | JobStage::Failed | JobStage::Cancelled | JobStage::Ended(_) => {
            let end = JobEnd {
                word: row.state.clone(),
                reason: row.reason.clone(),
                code: row.status >> 8 & 0xff,
                signal: row.status & 0x7f,
                nodes: row.nodes.clone(),
            };
            RunFact { restarts: row.restarts, began: began(row), ..of_end(job, &end) }
        }
    }
}

/// When it began. What never had a node has a time there as well, at which it was cancelled.
fn began(row: &JobRow) -> Option<Timestamp> {
    row.start.filter(|_| !node_names(&row.nodes).is_empty())
}

/// Why it waits.
fn waiting(row: &JobRow) -> String {
    match states::bare(&row.state) {
        "REQUEUE_HOLD" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
            format!("Slurm holds it: scontrol release {} lets it go", row.base)
        }
        _ => reasons::sentence(&row.reason),
    }
}

/// What there is to say of one that is there.
fn at_work(state: &str) -> Option<&'static str> {
    match states::bare(state) {
        "COMPLETING" => Some("it is coming to its end"),
        "SUSPENDED" | "STOPPED" => Some("Slurm has suspended it"),
        _ => None,
    }
}

/// What an end says.
pub(super) fn of_end(job: &Job, end: &JobEnd) -> RunFact {
    let nodes = node_names(&end.nodes);
    let on = match nodes.as_slice() {
        [] => "its node".to_owned(),
        [one] => format!("node {one}"),
        several => format!("one of the nodes {}", several.join(", ")),
    };
    let exit = exit_of(job, end);
    let raw = states::bare(&end.word).to_owned();
    let over = |cause, reason: Option<String>| RunFact {
        exit,
        cause,
        nodes: nodes.clone(),
        ..RunFact::of_engine(RunState::Ended, raw.clone(), reason)
    };
    match states::stage(&end.word) {
        JobStage::Done => RunFact { exit: Some(job.exit(0)), ..over(None, None) },
        JobStage::Failed if end.signal == UNSEEN => {
            let log = job.log_dir.as_deref().unwrap_or("its log directory");
            let why = if let Some(there) = job.workplace() {
                format!(
                    "{on} does not see {log} or {there}: log_root must lie on a disk that the nodes share, and dir: be \
                     a directory that they have"
                )
            } else {
                let code = job.stage_dir.as_deref().unwrap_or("the copy of the code");
                format!(
                    "{on} does not see {log} or {code}: log_root and stage_root must lie on a disk that the nodes share"
                )
            };
            RunFact { exit: None, ..over(Some(ErrorKind::Setup), Some(why)) }
        }
        JobStage::Failed if end.signal == GIVEN_UP => {
            let why =
                "its launch was given up before it was submitted, so it ran nothing".to_owned();
            RunFact { exit: None, ..over(Some(ErrorKind::Launch), Some(why)) }
        }
        JobStage::Failed if ended_by_script(end.signal).is_some() => {
            let (kind, why) = ended_by_script(end.signal).unzip();
            RunFact { exit: None, ..over(kind, why.map(str::to_owned)) }
        }
        JobStage::Failed if exit.is_none() || is_unstarted(&end.reason) => {
            let why = reasons::sentence(&end.reason);
            RunFact { exit: None, ..over(Some(ErrorKind::Setup), Some(why)) }
        }
        JobStage::Failed => over(None, None),
        JobStage::Cancelled => RunFact { nodes, ..cancelled(Some(&end.word)) },
        JobStage::Ended(kind) => {
            RunFact { exit: None, ..over(Some(kind), Some(why_ended(&end.word, kind, &on))) }
        }
        JobStage::Waiting | JobStage::Starting | JobStage::Working | JobStage::Unclear => {
            RunFact::of_engine(
                RunState::Unknown,
                raw.clone(),
                Some(format!("Slurm says {}", end.word)),
            )
        }
    }
}

/// Whether a reason says that a job has ended before it began: Slurm lists some that it has not taken.
fn is_unstarted(reason: &str) -> bool {
    reasons::plain(reason).is_some_and(|plain| plain.advice.is_some())
}

/// One that somebody has cancelled; Slurm's word may say who.
pub(super) fn cancelled(word: Option<&str>) -> RunFact {
    let why = match word.and_then(|word| word.split_once(" by ")) {
        Some((_, uid)) => format!("cancelled by uid {}", uid.trim()),
        None => "somebody has cancelled it".to_owned(),
    };
    RunFact { is_cancelled: true, ..RunFact::of_engine(RunState::Ended, "CANCELLED", Some(why)) }
}

/// A job that is cancelled within so many seconds, and has printed nothing, was never launched.
const LAUNCHING_S: u64 = 10;

/// Whether a cancelled job may never have been launched: Slurm cancels what its node does not take, such as a number
/// that another job has there ("Job 2 already running, do not launch second copy", 22.05.8).
pub(super) fn may_be_unlaunched(row: &JobRow) -> bool {
    let lasted = row.start.zip(row.end).map(|(start, end)| end.seconds_since(start));
    let has_node = !node_names(&row.nodes).is_empty();
    states::stage(&row.state) == JobStage::Cancelled
        && has_node
        && lasted.is_some_and(|lasted| lasted <= LAUNCHING_S)
}

/// Whether the word of an account says that a person has cancelled a job. What a node does not take is cancelled by root.
pub(super) fn is_by_somebody(word: &str) -> bool {
    word.split_once(" by ").is_some_and(|(_, uid)| uid.trim() != "0")
}

/// One that Slurm has cancelled by itself: it has forgotten it, or has given its number twice.
pub(super) fn ended_by_slurm(nodes: &str) -> RunFact {
    let why = "Slurm itself has cancelled it, and nobody else".to_owned();
    RunFact {
        cause: Some(ErrorKind::Lost),
        nodes: node_names(nodes),
        ..RunFact::of_engine(RunState::Ended, "CANCELLED", Some(why))
    }
}

/// Why Slurm has ended it.
fn why_ended(word: &str, kind: ErrorKind, on: &str) -> String {
    match (states::bare(word), kind) {
        ("DEADLINE", _) => "its deadline has passed".to_owned(),
        ("BOOT_FAIL", _) => format!("{on} could not be started"),
        (_, ErrorKind::Timeout) => "its time is over: ask for more with --time".to_owned(),
        (_, ErrorKind::Oom) => {
            format!("it needed more memory than it had on {on}: ask for more with --sbatch mem=…")
        }
        (_, ErrorKind::Preempted) => "a job of higher rank has its place".to_owned(),
        (_, ErrorKind::Lost) => format!("{on} failed"),
        (word, _) => format!("Slurm says {word}"),
    }
}

/// Its exit code. A signal is 128 and its number, as a shell tells it.
fn exit_of(job: &Job, end: &JobEnd) -> Option<Exit> {
    match (end.code, end.signal) {
        (0, 0) => None,
        (0, signal) => Some(job.exit(128 + signal)),
        (code, _) => Some(job.exit(code)),
    }
}

/// The names of nodes that Slurm has written as `n[1-3],m7`.
pub(super) fn node_names(text: &str) -> Vec<String> {
    if matches!(text, "" | "(null)" | "None" | "None assigned" | "N/A") {
        return Vec::new();
    }
    let (mut parts, mut depth) = (vec![String::new()], 0_u32);
    for c in text.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.into_iter().flat_map(|part| pattern::names(&part).unwrap_or(vec![part])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::Source;
    use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
    use tpu_core::model::job::{Launch, LaunchMode};

    fn job() -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&id, TargetName::from("gpu"), "/d".to_owned());
        job.log_dir = Some("/logs/7".to_owned());
        job.launch = Some(Launch {
            confirmed: true,
            ..Launch::claimed("t", LaunchMode::Native, Timestamp::from_second(0))
        });
        job
    }

    fn row(state: &str, reason: &str, status: i32) -> RunFact {
        let (state, reason) = (state.to_owned(), reason.to_owned());
        let row = JobRow { state, reason, status, nodes: "n1".to_owned(), ..JobRow::default() };
        of_row(&job(), &row)
    }

    #[test]
    fn each_end_has_its_kind_and_its_reason() {
        for (state, status, cause, says) in [
            ("TIMEOUT", 15, Some(ErrorKind::Timeout), "--time"),
            ("OUT_OF_MEMORY", 9, Some(ErrorKind::Oom), "node n1"),
            ("PREEMPTED", 15, Some(ErrorKind::Preempted), "higher rank"),
            ("NODE_FAIL", 0, Some(ErrorKind::Lost), "node n1 failed"),
            ("FAILED", UNSEEN, Some(ErrorKind::Setup), "/logs/7"),
            ("FAILED", GIVEN_UP, Some(ErrorKind::Launch), "given up"),
            ("FAILED", NOT_SET_UP, Some(ErrorKind::Setup), "set up"),
            ("FAILED", SILENT, Some(ErrorKind::Stalled), "idle_timeout"),
            ("FAILED", TIMED_OUT, Some(ErrorKind::Timeout), "timeout"),
        ] {
            let fact = row(state, "None", status);
            assert_eq!(
                (fact.state, fact.cause, fact.exit),
                (RunState::Ended, cause, None),
                "{state}"
            );
            assert!(fact.why().contains(says), "{state}: {}", fact.why());
            assert_eq!((fact.raw.as_ref(), fact.source), (state, Source::Engine));
        }
        assert_eq!(row("FAILED", "NonZeroExitCode", 7 << 8).exit, Some(Exit::Program(7)));
        assert_eq!(row("FAILED", "RaisedSignal:11", 11).exit, Some(Exit::Program(139)));
        assert_eq!(row("COMPLETED", "None", 0).exit, Some(Exit::Program(0)));
        for (reason, status) in [("JobLaunchFailure", 1 << 8), ("BadConstraints", 1)] {
            let unstarted = row("FAILED", reason, status);
            assert_eq!(
                (unstarted.cause, unstarted.exit),
                (Some(ErrorKind::Setup), None),
                "{reason}"
            );
        }
    }

    #[test]
    fn what_is_unclear_is_never_over() {
        for state in ["REVOKED", "SOMETHING_NEW", ""] {
            assert_eq!(row(state, "None", 0).state, RunState::Unknown, "{state}");
        }
    }

    #[test]
    fn who_cancelled_it_is_said_where_that_is_known() {
        let end = |word: &str| JobEnd { word: word.to_owned(), ..JobEnd::default() };
        let fact = of_end(&job(), &end("CANCELLED by 1000"));
        assert_eq!((fact.why(), fact.raw.as_ref()), ("cancelled by uid 1000", "CANCELLED"));
        assert_eq!(of_end(&job(), &end("CANCELLED")).why(), "somebody has cancelled it");
        let by = ["CANCELLED by 1000", "CANCELLED by 0", "CANCELLED"].map(is_by_somebody);
        assert_eq!(by, [true, false, false], "a node cancels as root what it does not take");
    }

    #[test]
    fn only_what_was_cancelled_at_once_on_a_node_may_never_have_been_launched() {
        let row = |state: &str, nodes: &str, lasted: i64| {
            let (start, end) = (Timestamp::from_second(100), Timestamp::from_second(100 + lasted));
            let (state, nodes) = (state.to_owned(), nodes.to_owned());
            let (start, end) = (Some(start), Some(end));
            may_be_unlaunched(&JobRow { state, start, end, nodes, ..JobRow::default() })
        };
        assert!(row("CANCELLED", "n1", 1));
        assert!(!row("CANCELLED", "", 0), "it waited");
        assert!(!row("CANCELLED", "n1", 60) && !row("FAILED", "n1", 1));
    }

    #[test]
    fn nodes_are_named_one_by_one() {
        assert_eq!(node_names("n[1-3],m7"), ["n1", "n2", "n3", "m7"]);
        assert_eq!(node_names("n[1,3]-x"), ["n1-x", "n3-x"]);
        assert!(node_names("(null)").is_empty());
    }

    #[test]
    fn a_restart_of_slurms_own_is_said() {
        let waits = |restarts| {
            let (state, reason) = ("PENDING".to_owned(), "BeginTime".to_owned());
            let start = Some(Timestamp::from_second(99));
            of_row(&job(), &JobRow { state, reason, start, restarts, ..JobRow::default() })
        };
        assert_eq!((waits(0).restarts, waits(2).restarts), (0, 2));
        assert_eq!(waits(1).expected, Some(Timestamp::from_second(99)));
        assert_eq!(waits(1).began, None);
    }

    #[test]
    fn only_what_has_had_a_node_has_begun() {
        let began = |state: &str, nodes: &str| {
            let start = Some(Timestamp::from_second(99));
            let (state, nodes) = (state.to_owned(), nodes.to_owned());
            of_row(&job(), &JobRow { state, start, nodes, ..JobRow::default() }).began
        };
        assert_eq!(began("PENDING", "n1"), None);
        assert_eq!(began("CANCELLED", ""), None, "its start is when it was cancelled");
        for state in ["CONFIGURING", "RUNNING", "COMPLETED", "TIMEOUT", "CANCELLED"] {
            assert_eq!(began(state, "n1"), Some(Timestamp::from_second(99)), "{state}");
        }
    }
}
