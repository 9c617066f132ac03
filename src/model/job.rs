//! One attempt of a logical run: its record, and the only function that changes its status.

use std::ffi::OsString;

use serde_json::Value;

use super::exit::Exit;
use super::facts::{ErrorKind, Evidence, Place, Progress};
use super::ids::{JobId, JobNumber, LaunchToken, TargetName, UserName};
use super::rules::Rules;
pub use super::source::Raw;
use super::spec::StoredSpec;
pub use super::status::Status;
use super::time::Timestamp;

/// How a child relates to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// From the parent's checkpoint, in the parent's stage directory.
    Resume,
    /// From scratch.
    Rerun,
}

impl Succession {
    /// The verb, as typed.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Rerun => "rerun",
        }
    }
}

/// What happens to a job's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The program has shown itself (`upd-log`, first output).
    Started,
    /// It ended well (`finish-job`, exit 0 in native mode).
    Finished,
    /// It ended well for certain, whatever the text has shown: exit code 0 of a command, `finish-job` after
    /// the text has gone on, or a person who insists.
    FinishedByProof,
    /// It failed.
    Failed(ErrorKind),
    /// A person stopped it.
    Killed,
    /// A child takes over from a failed attempt.
    Superseded(Succession),
    /// A child takes over from an attempt that ended in another way, because a person insists.
    SupersededByForce(Succession),
    /// A person says that the error is none, or there is progress again.
    ErrorWithdrawn,
}

impl Event {
    /// The event in words, for refusals.
    fn verb(&self) -> &'static str {
        match self {
            Self::Started => "start",
            Self::Finished | Self::FinishedByProof => "finish",
            Self::Failed(_) => "fail",
            Self::Killed => "be killed",
            Self::Superseded(s) | Self::SupersededByForce(s) => match s {
                Succession::Resume => "be resumed",
                Succession::Rerun => "be rerun",
            },
            Self::ErrorWithdrawn => "lose its error",
        }
    }
}

/// An event that the status of a job does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} is {status} and cannot {verb}")]
pub struct Refused {
    /// Which job.
    pub job: JobId,
    /// Its status.
    pub status: Status,
    /// What was asked.
    pub verb: &'static str,
}

/// Which way a job is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchMode {
    /// The users' own `staging.sh` does the work and calls back.
    Script,
    /// A command; staging, log and exit code are ours.
    Native,
}

impl LaunchMode {
    /// The spelling in data.json.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Native => "native",
        }
    }

    /// Reads the spelling in data.json.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "script" => Some(Self::Script),
            "native" => Some(Self::Native),
            _ => None,
        }
    }
}

/// How and when the window of a job was opened (`extra_msgs.launch`). Absent in records of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The mark that record, pane and processes share.
    pub token: LaunchToken,
    /// Script or native.
    pub mode: LaunchMode,
    /// When the claim was made.
    pub at: Timestamp,
    /// Whether the window is known to exist. Until then the launch can be healed or given up.
    pub confirmed: bool,
    /// Exit code of the job's command, once recorded.
    pub exit: Option<i32>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When the machine that it began on was created, once its control plane has been seen to say so. A
    /// target of the same name that was created at another instant is another machine.
    pub machine: Option<Timestamp>,
}

/// The intent of a kill: whoever began it, no rule fires on the job any more.
pub const KILLING: &str = "killing";

/// The intent of clearing a record away. It is withdrawn when its owner is dead: the record then stays.
pub const CLEANING: &str = "cleaning";

/// An action that has begun and must be finished by somebody (`extra_msgs.intent`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is being done: [`KILLING`], [`CLEANING`], or the name of an action of a rule.
    pub action: String,
    /// Since when.
    pub at: Timestamp,
    /// Who began it: an owner as in [`Lease::owner`].
    pub by: String,
}

/// The right to act on a lineage, with a fencing number (`extra_msgs.lease`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Owner: `host:boot:pid:start`.
    pub owner: String,
    /// Rises with each owner; a commit with an older number is refused.
    pub fence: u64,
    /// Free after this instant, unless renewed.
    pub until: Timestamp,
}

impl Lease {
    /// No lease is given for longer than this many seconds, whatever the clocks of two machines differ.
    const LONGEST_S: u64 = 300;

    /// Whether it holds at `now`. One that would hold for much longer than any is given for was written by
    /// a clock that has been set back since.
    pub fn runs(&self, now: Timestamp) -> bool {
        self.until > now && self.until.seconds_since(now) <= Self::LONGEST_S
    }

    /// Gives it back, whatever any clock says. Its number stays.
    pub fn free(&mut self) {
        self.until = Timestamp::from_second(0);
    }
}

/// An owner as people call it: `process 12 on host` for `host:boot:12:start`.
pub fn who(owner: &str) -> String {
    let mut parts = owner.rsplitn(4, ':').skip(1);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(pid), Some(_boot), Some(host)) => format!("process {pid} on {host}"),
        _ => owner.to_owned(),
    }
}

/// What MONITOR remembers of a lineage, on its leaf (`extra_msgs.recovery`); a child begins with its
/// parent's, brought up to date. The counts are kept and not read off the ancestors, because those may
/// be archived while the leaf lives. `plan::budget` gives the numbers their meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Reactions to preemptions and missing capacity, in the whole life of the lineage.
    pub capacity: u32,
    /// Of those, the ones in a row without progress: what the back-off grows with.
    pub capacity_row: u32,
    /// Reactions to other failures of infrastructure, in a row without progress.
    pub infra: u32,
    /// Children in a row that died at once, up to the parent of this attempt.
    pub quick: u32,
    /// How far the lineage had come at the last reaction.
    pub best: Mark,
    /// Whether this attempt was seen to come further than `best`.
    pub progressed: bool,
    /// When the last reaction was begun.
    pub last_action_at: Option<Timestamp>,
    /// When the control plane gave the answer on which the end of this attempt was judged.
    pub judged: Option<Timestamp>,
    /// Why nothing is done any more, once a budget has ended the lineage.
    pub stopped: Option<String>,
}

/// How far a run has come. The epoch leads, since many programs count steps anew in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Mark {
    /// Epoch, if the program prints one.
    pub epoch: Option<f64>,
    /// Step, if the program prints one.
    pub step: Option<u64>,
}

/// When a job began, as found in the file.
#[derive(Clone, Debug, PartialEq)]
pub enum StartTime {
    /// Unknown (`null` or missing).
    Unset,
    /// One of ours.
    At(Timestamp),
    /// Text of the original in the machine's local time, `20250420_011026`, or its map of three zones.
    Original(Value),
}

/// One attempt. The record in `job_data`; what the program does not know by name stays in `raw`.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Owner.
    pub user: UserName,
    /// Window index and id.
    pub windows_id: JobNumber,
    /// Slot of the working directory.
    pub job_dir_id: Option<u32>,
    /// Working directory at launch.
    pub job_dir: String,
    /// Full name of the target.
    pub tpu: TargetName,
    /// Tag.
    pub job_tags: Option<String>,
    /// Where the job logs and keeps its checkpoints.
    pub log_dir: Option<String>,
    /// Where its code was copied to.
    pub stage_dir: Option<String>,
    /// Config arguments as one shell-quoted string.
    pub extra_configs: String,
    /// Status and error together.
    pub status: Status,
    /// Number of resumes before this attempt.
    pub stage: u32,
    /// Whether MONITOR may act on it.
    pub monitor: bool,
    /// Event -> action.
    pub rules: Rules,
    /// When it began.
    pub start_time: StartTime,
    /// Window of the attempt it continues (`extra_msgs.father`).
    pub father: Option<JobNumber>,
    /// Window of the attempt that continues it (`extra_msgs.child`).
    pub child: Option<JobNumber>,
    /// Where its window lives (`extra_msgs.place`).
    pub place: Option<Place>,
    /// Its launch (`extra_msgs.launch`).
    pub launch: Option<Launch>,
    /// An unfinished action on it (`extra_msgs.intent`).
    pub intent: Option<Intent>,
    /// Who may act on its lineage (`extra_msgs.lease`).
    pub lease: Option<Lease>,
    /// Attempts and progress of its lineage so far (`extra_msgs.recovery`).
    pub recovery: Option<Recovery>,
    /// The line that decided its failure (`extra_msgs.verdict`): rule and text.
    pub verdict: Option<StoredVerdict>,
    /// How far it had come at its end (`extra_msgs.reached`).
    pub reached: Option<Progress>,
    /// Whether the number of resumes is passed to the program (`customized_settings.log_stage`).
    pub log_stage: bool,
    /// Notes about the run (`extra_msgs.spreadsheet_notes`, the original's key).
    pub notes: Option<String>,
    /// The command of native mode, word by word (`customized_settings.command`).
    pub command: Option<Vec<OsString>>,
    /// What else it was to do (`extra_msgs.spec`).
    pub spec: Option<StoredSpec>,
    /// The record as it was read, with every key that is not named above, in order.
    pub raw: Raw,
}

/// Evidence worth keeping after the pane is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVerdict {
    /// The kind it led to.
    pub kind: ErrorKind,
    /// Pattern or fact.
    pub rule: String,
    /// The line.
    pub line: String,
    /// A person said that this is no error; it holds until other text appears.
    pub ignored: bool,
}

impl StoredVerdict {
    /// What is kept of the evidence for a failure; evidence may be missing.
    pub fn new(kind: ErrorKind, evidence: Option<&Evidence>) -> Self {
        let (rule, line) = match evidence {
            Some(evidence) => (evidence.rule.clone(), evidence.line.clone()),
            None => ("unknown".to_owned(), String::new()),
        };
        Self { kind, rule, line, ignored: false }
    }
}

impl Job {
    /// A record for a new attempt; the rest is filled in by the launch.
    pub fn new(id: &JobId, tpu: TargetName, job_dir: String) -> Self {
        Self {
            user: id.user.clone(),
            windows_id: id.window,
            job_dir_id: None,
            job_dir,
            tpu,
            job_tags: None,
            log_dir: None,
            stage_dir: None,
            extra_configs: String::new(),
            status: Status::Starting,
            stage: 0,
            monitor: true,
            rules: Rules::default(),
            start_time: StartTime::Unset,
            father: None,
            child: None,
            place: None,
            launch: None,
            intent: None,
            lease: None,
            recovery: None,
            verdict: None,
            reached: None,
            log_stage: false,
            notes: None,
            command: None,
            spec: None,
            raw: Raw::default(),
        }
    }

    /// `alice/7`.
    pub fn id(&self) -> JobId {
        JobId::new(self.user.clone(), self.windows_id)
    }

    /// Whether it runs a command of which the exit code, the logs and the stage directory are ours.
    pub fn is_native(&self) -> bool {
        self.launch.as_ref().is_some_and(|launch| launch.mode == LaunchMode::Native)
    }

    /// What an exit code of its command says of it.
    pub fn exit(&self, code: i32) -> Exit {
        Exit::of(self.launch.as_ref().map(|launch| launch.mode), code)
    }

    /// Whether a kill has begun and is not complete: no rule fires on it, and nothing starts it again.
    pub fn is_being_killed(&self) -> bool {
        self.intent.as_ref().is_some_and(|intent| intent.action == KILLING)
    }

    /// Notes that its window exists: the launch, and the action that asked for it, are complete. What has
    /// been begun since then is another matter.
    pub fn confirm_launch(&mut self) {
        let Some(launch) = self.launch.as_mut() else { return };
        let is_news = !std::mem::replace(&mut launch.confirmed, true);
        if is_news && !self.is_being_killed() {
            self.intent = None;
        }
    }

    /// Keeps how far it has come, since it ends and its text may go. Where nothing can be read any more, what
    /// was kept before stays.
    pub fn keep_reached(&mut self, progress: &Progress) {
        let reached = progress.reached();
        if !reached.is_empty() {
            self.reached = Some(reached);
        }
    }

    /// Changes the status by an event, or refuses. The only way a status changes.
    ///
    /// Final statuses stay; a job with a child is never finished by a callback; an error is left only by
    /// withdrawal, by a kill, or by a child.
    pub fn apply(&mut self, event: &Event) -> Result<(), Refused> {
        match Self::next(&self.status, self.child.is_some(), event) {
            Some(status) => {
                if *event == Event::ErrorWithdrawn {
                    // It goes on: how far it had come when it seemed to end is old.
                    self.reached = None;
                }
                self.status = status;
                Ok(())
            }
            None => {
                Err(Refused { job: self.id(), status: self.status.clone(), verb: event.verb() })
            }
        }
    }

    /// The table of transitions; `None` where an event is not allowed.
    fn next(status: &Status, has_child: bool, event: &Event) -> Option<Status> {
        use Status as S;
        if has_child {
            return None;
        }
        let live = status.is_live();
        let error = status.error();
        match event {
            Event::Started if live => Some(S::Running),
            Event::Finished if live => Some(S::Finished),
            Event::FinishedByProof if live || matches!(status, S::Error(_)) => Some(S::Finished),
            Event::Failed(kind) if live || matches!(status, S::Error(_)) => Some(S::Error(*kind)),
            Event::Killed if live || matches!(status, S::Error(_)) => Some(S::Killed(error)),
            Event::Superseded(how) if matches!(status, S::Error(_)) => {
                Some(Self::superseded(*how, error))
            }
            Event::SupersededByForce(how) if !live => Some(Self::superseded(*how, error)),
            Event::ErrorWithdrawn if matches!(status, S::Error(_)) => Some(S::Running),
            Event::Started
            | Event::Finished
            | Event::FinishedByProof
            | Event::Failed(_)
            | Event::Killed
            | Event::Superseded(_)
            | Event::SupersededByForce(_)
            | Event::ErrorWithdrawn => None,
        }
    }

    fn superseded(how: Succession, error: Option<ErrorKind>) -> Status {
        match how {
            Succession::Resume => Status::Resumed(error),
            Succession::Rerun => Status::Rerunned(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::status::one_of_each;

    fn job(status: Status) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        Job { status, ..Job::new(&id, TargetName::from("local"), "/d".to_owned()) }
    }

    /// One row per event: the statuses that allow it and what they become. All others must refuse.
    #[test]
    fn every_event_against_every_status() {
        let grpc = ErrorKind::Grpc;
        let oom = ErrorKind::Oom;
        let live = [Status::Unset, Status::Starting, Status::Running];
        let row = |event: Event, from: &[Status], to: fn(&Status) -> Status| {
            for status in one_of_each() {
                let mut subject = job(status.clone());
                let got = subject.apply(&event);
                if from.contains(&status) {
                    assert_eq!(got, Ok(()), "{event:?} from {status:?}");
                    assert_eq!(subject.status, to(&status), "{event:?} from {status:?}");
                } else {
                    assert!(got.is_err(), "{event:?} from {status:?}");
                    assert_eq!(subject.status, status, "a refusal changes nothing");
                }
                let mut parent = Job { child: Some(JobNumber(8)), ..job(status) };
                assert!(parent.apply(&event).is_err(), "{event:?} on a job with a child");
            }
        };
        let with_error: Vec<_> = live.iter().cloned().chain([Status::Error(grpc)]).collect();
        row(Event::Started, &live, |_| Status::Running);
        row(Event::Finished, &live, |_| Status::Finished);
        row(Event::FinishedByProof, &with_error, |_| Status::Finished);
        row(Event::Failed(oom), &with_error, |_| Status::Error(ErrorKind::Oom));
        row(Event::Killed, &with_error, |s| Status::Killed(s.error()));
        row(Event::Superseded(Succession::Resume), &[Status::Error(grpc)], |s| {
            Status::Resumed(s.error())
        });
        row(Event::ErrorWithdrawn, &[Status::Error(grpc)], |_| Status::Running);
        let ended: Vec<_> = one_of_each().into_iter().filter(|s| !s.is_live()).collect();
        row(Event::SupersededByForce(Succession::Rerun), &ended, |s| Status::Rerunned(s.error()));
    }

    #[test]
    fn what_goes_on_forgets_how_far_it_had_come_when_it_seemed_to_end() {
        let mut job = job(Status::Error(ErrorKind::Grpc));
        job.keep_reached(&Progress { step: Some(14), ..Progress::default() });
        job.apply(&Event::ErrorWithdrawn).unwrap();
        assert_eq!(job.reached, None);
    }

    #[test]
    fn an_owner_is_named_so_that_a_person_can_find_it() {
        assert_eq!(who("fe80::1:b:12:99"), "process 12 on fe80::1", "hosts may hold colons");
        assert_eq!(who("somebody"), "somebody");
    }
}
