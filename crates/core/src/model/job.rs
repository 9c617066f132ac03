//! One attempt of a logical run: its record, and the only function that changes its status.

use std::ffi::OsString;

use serde_json::Value;

use super::arguments::ArgumentStyle;
use super::capacity::Share;
use super::execution::Execution;
use super::exit::Exit;
use super::facts::{ErrorKind, Place, Progress};
pub use super::handle::{EngineRun, Handle};
use super::ids::{JobId, JobNumber, TargetName, UserName};
pub use super::launch::{Checkpoint, Launch, LaunchMode, Stretch};
pub use super::lease::{CLEANING, Intent, KILLING, Lease, who};
use super::member::Member;
pub use super::recovery::{Mark, Recovery, StoredVerdict};
use super::rules::Rules;
pub use super::source::Raw;
use super::spec::{CodeDir, JobSpec, Staged, StoredSpec, TargetRequest};
pub use super::status::Status;
use super::time::Timestamp;
use super::waited::Waited;

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
    /// It had been lost, works on, and its successor, which has not begun, gives way to it.
    Returned,
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
            Self::Returned => "go on instead of its successor",
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

/// When a job began, as found in the file.
#[derive(Clone, Debug, PartialEq)]
pub enum StartTime {
    /// Unknown (`null` or missing).
    Unset,
    /// One of ours.
    At(Timestamp),
    /// Text of the original in the machine's local time, `20250420_011026`, or its map of three zones.
    Original(Box<Value>),
}

/// One attempt. The record in `job_data`; what the program does not know by name stays in `raw`. Large parts that most
/// jobs lack are boxed, since every command reads all jobs.
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
    /// Whether the daemon may act on it.
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
    /// Where an engine knows its run (`extra_msgs.engine`); then it has no window.
    pub engine: Option<Box<EngineRun>>,
    /// Its launch (`extra_msgs.launch`).
    pub launch: Option<Launch>,
    /// What it was in the queue, until it has begun (`extra_msgs.waited`).
    pub waited: Option<Box<Waited>>,
    /// An unfinished action on it (`extra_msgs.intent`).
    pub intent: Option<Intent>,
    /// Who may act on its lineage (`extra_msgs.lease`).
    pub lease: Option<Lease>,
    /// Attempts and progress of its lineage so far (`extra_msgs.recovery`).
    pub recovery: Option<Box<Recovery>>,
    /// The line that decided its failure (`extra_msgs.verdict`): rule and text.
    pub verdict: Option<StoredVerdict>,
    /// How far it had come at its end (`extra_msgs.reached`).
    pub reached: Option<Box<Progress>>,
    /// Whether the number of resumes is passed to the program (`customized_settings.log_stage`).
    pub log_stage: bool,
    /// How its program takes arguments (`customized_settings.arguments`); as the original's without a word.
    pub arguments: Option<ArgumentStyle>,
    /// Notes about the run (`extra_msgs.spreadsheet_notes`, the original's key).
    pub notes: Option<String>,
    /// The command of native mode, word by word (`customized_settings.command`).
    pub command: Option<Vec<OsString>>,
    /// What else it was to do (`extra_msgs.spec`).
    pub spec: Option<Box<StoredSpec>>,
    /// What it was given of its target, where that is counted (`extra_msgs.share`).
    pub share: Option<Share>,
    /// The record as it was read, with every key that is not named above, in order.
    pub raw: Raw,
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
            engine: None,
            launch: None,
            waited: None,
            intent: None,
            lease: None,
            recovery: None,
            verdict: None,
            reached: None,
            log_stage: false,
            arguments: None,
            notes: None,
            command: None,
            spec: None,
            share: None,
            raw: Raw::default(),
        }
    }

    /// The specification of its successor, which is its own. The arguments are those that were passed, whatever
    /// has become of the aliases since: `words` are those, without the ones that follow from the lineage.
    pub fn spec_with(&self, words: Vec<String>) -> JobSpec {
        let stored = self.spec.clone().unwrap_or_default();
        let named = || TargetRequest::Named(self.tpu.as_str().to_owned());
        let code = CodeDir { top: self.job_dir.clone(), below: stored.below };
        JobSpec {
            name: stored.name,
            array: None,
            member: stored.member,
            target: stored.any_of.map_or_else(named, TargetRequest::Any),
            chosen: None,
            dir: self.job_dir_id,
            code: self.stands_in_no_slot().then_some(code),
            configs: Vec::new(),
            words,
            command: self.command.clone(),
            tag: self.job_tags.clone(),
            notes: self.notes.clone(),
            rules: Some(self.rules.to_string()),
            monitor: self.monitor,
            log_stage: self.log_stage,
            arguments: self.arguments,
            ask: stored.ask,
            options: stored.options,
            queue: stored.queue,
            staged: stored.staged,
            execution: stored.execution,
        }
    }

    /// Whether its code was copied from a directory that no slot has named.
    pub fn stands_in_no_slot(&self) -> bool {
        let is_clone = self.staged().is_some_and(Staged::is_clone);
        self.job_dir_id.is_none() && !is_clone && self.workplace().is_none()
    }

    /// Takes over what it is to do. Target, directory, rules and arguments stand in the record as what they
    /// were resolved to, which the caller knows.
    pub fn keep_spec(&mut self, spec: &JobSpec) {
        self.job_dir_id = spec.dir;
        self.job_tags.clone_from(&spec.tag);
        self.notes.clone_from(&spec.notes);
        self.monitor = spec.monitor;
        self.log_stage = spec.log_stage;
        self.arguments = spec.arguments;
        let stored = StoredSpec {
            name: spec.name.clone(),
            member: spec.member,
            any_of: match &spec.target {
                TargetRequest::Named(_) => None,
                TargetRequest::Any(any_of) => Some(any_of.clone()),
            },
            chosen: spec.chosen.clone(),
            ask: spec.ask.clone(),
            options: spec.options.clone(),
            queue: spec.queue.clone(),
            staged: spec.staged.clone(),
            below: spec.code.as_ref().and_then(|code| code.below.clone()),
            execution: spec.execution.clone(),
        };
        self.spec = (stored != StoredSpec::default()).then(|| Box::new(stored));
    }

    /// The copy of its code that was made when it was submitted, if it runs from that or a copy of it.
    pub fn staged(&self) -> Option<&Staged> {
        self.spec.as_ref()?.staged.as_ref()
    }

    /// Where its command begins, by the directory that holds the copy of its code.
    pub fn within(&self, copy: &str) -> String {
        match self.spec.as_ref().and_then(|spec| spec.below.as_deref()) {
            Some(below) => format!("{copy}/{below}"),
            None => copy.to_owned(),
        }
    }

    /// Variables of its own, over those that are kept of whoever asked for it.
    pub fn variables(&self) -> &[(String, String)] {
        self.execution().map(|execution| execution.variables.as_slice()).unwrap_or_default()
    }

    /// How its command is carried out, where somebody has said so.
    pub fn execution(&self) -> Option<&Execution> {
        self.spec.as_ref().map(|spec| &spec.execution)
    }

    /// The directory of its machines in which it runs as it lies there, if nothing is copied for it.
    pub fn workplace(&self) -> Option<&str> {
        self.execution()?.workplace.as_deref()
    }

    /// The name by which people call it.
    pub fn name(&self) -> Option<&str> {
        self.spec.as_ref()?.name.as_deref()
    }

    /// Whether the record says already that it is over: its engine is not asked about it again.
    pub fn is_past(&self) -> bool {
        self.status.is_final() || self.launch.as_ref().is_none_or(|launch| launch.ended.is_some())
    }

    /// What its engine calls this very attempt, where people call it so.
    pub fn engine_name(&self) -> Option<&str> {
        self.engine.as_ref()?.name.as_deref()
    }

    /// Which member of which group it is.
    pub fn member(&self) -> Option<Member> {
        self.spec.as_ref()?.member
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

    /// Whether its launch failed before anything ran: it has no window and no process, and gets none any more, since a
    /// launcher of what is not live is refused. An engine may have what was sent to it.
    pub fn never_began(&self) -> bool {
        let is_open = |launch: &Launch| !launch.confirmed && launch.exit.is_none();
        let is_failed = |kind| kind == ErrorKind::Launch || self.engine.is_none();
        self.status.error().is_some_and(is_failed) && self.launch.as_ref().is_some_and(is_open)
    }

    /// How often its engine has begun it anew by itself, as far as that is counted.
    pub fn restarts(&self) -> u32 {
        self.recovery.as_ref().map_or(0, |recovery| recovery.restarts)
    }

    /// Attempts and progress of its lineage so far; nothing yet where none are kept.
    pub fn counts(&self) -> Recovery {
        self.recovery.as_deref().cloned().unwrap_or_default()
    }

    /// The same, to be changed.
    pub fn counts_mut(&mut self) -> &mut Recovery {
        self.recovery.get_or_insert_default()
    }

    /// Keeps the attempts and the progress of its lineage so far.
    pub fn keep_counts(&mut self, counts: Recovery) {
        *self.counts_mut() = counts;
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
            self.reached = Some(Box::new(reached));
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
                if status == Status::Finished {
                    // What was taken for its failure was none.
                    self.verdict = None;
                }
                self.status = status;
                self.waited = None;
                Ok(())
            }
            None => {
                Err(Refused { job: self.id(), status: self.status.clone(), verb: event.verb() })
            }
        }
    }

    /// The handle of its run. `None` in records of the original, whose windows carry no mark.
    pub fn handle(&self) -> Option<Handle> {
        let token = self.launch.as_ref()?.token.clone();
        if let Some(run) = self.engine.clone() {
            return Some(Handle::Engine { run: *run, token });
        }
        Some(Handle::Window { place: self.place.clone()?, token })
    }

    /// Keeps the handle of its run.
    pub fn keep_handle(&mut self, handle: Handle) {
        match handle {
            Handle::Window { place, .. } => self.place = Some(place),
            Handle::Engine { run, .. } => self.engine = Some(Box::new(run)),
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
            Event::Returned if status.is_superseded() => Some(S::Running),
            Event::Started
            | Event::Finished
            | Event::FinishedByProof
            | Event::Failed(_)
            | Event::Killed
            | Event::Superseded(_)
            | Event::SupersededByForce(_)
            | Event::ErrorWithdrawn
            | Event::Returned => None,
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
    use crate::model::options::KindOptions;
    use crate::model::spec::AnyOf;
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
        let superseded = [Status::Resumed(Some(grpc)), Status::Rerunned(None)];
        row(Event::Returned, &superseded, |_| Status::Running);
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
    fn what_a_record_keeps_of_its_specification_gives_it_back() {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let any_of =
            AnyOf { types: vec!["v2-8".to_owned()], reclaimable: Some(true), ..AnyOf::default() };
        let spec = JobSpec {
            name: Some("llama".to_owned()),
            member: Some(Member { group: JobNumber(12), index: 3 }),
            tag: Some("sweep".to_owned()),
            notes: Some("a note".to_owned()),
            monitor: false,
            log_stage: true,
            dir: Some(3),
            rules: Some(Rules::default().to_string()),
            words: vec!["--config.lr=1".to_owned()],
            options: [("gres", "gpu:1"), ("sbatch", "a=1"), ("sbatch", "b=2")]
                .into_iter()
                .collect(),
            staged: Some(Staged { from: "/d".to_owned(), copy: "/stage/9".to_owned() }),
            execution: Execution {
                variables: vec![
                    ("B".to_owned(), " x=1\n".to_owned()),
                    ("A".to_owned(), String::new()),
                ],
                ..Execution::default()
            },
            ..JobSpec::on(TargetRequest::Any(any_of))
        };
        let mut job = Job::new(&id, "t".into(), "/d".to_owned());
        job.keep_spec(&spec);
        let job = Job::from_value(&job.to_value(), &id.user).unwrap();
        assert_eq!(job.spec_with(spec.words.clone()), spec);
        let named = JobSpec {
            name: None,
            member: None,
            target: TargetRequest::Named("t".to_owned()),
            options: KindOptions::default(),
            staged: None,
            execution: Execution::default(),
            ..spec
        };
        let mut job = job;
        job.keep_spec(&named);
        assert_eq!(job.spec, None, "nothing is kept that the record says itself");
        assert!(job.to_value()["extra_msgs"].get("spec").is_none());
        assert_eq!(job.spec_with(named.words.clone()), named);
    }
}
