//! What every surface shows of a job: the screen, `check` and `--json` print these values and compute
//! no status of their own.

use std::fmt;
use std::sync::Arc;

use super::capacity::Share;
use super::entry::Priority;
use super::exit::Exit;
use super::facts::{
    COPYING, ErrorKind, Evidence, Phase, Progress, SETTING_UP, WINDOW_CLOSED, WITHOUT_WINDOW,
};
use super::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use super::job::Status;
use super::member::Member;
use super::rules::{Action, Rules};
use super::target::{Machines, TargetKind};
use super::time::Timestamp;
use super::title::{Runs, titles};

/// The shown status: stored status and facts together. **Every rule about "status" means this one.**
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The status after the facts have been heard.
    pub status: Status,
    /// Why nothing certain can be said now (another host, tmux unreachable, …). The status is then the
    /// stored one and no automatic action follows.
    pub unknown: Option<String>,
    /// Why it has not been started yet, where an engine has it. The stored status is `starting` meanwhile.
    pub pending: Option<Pending>,
    /// How it waits, where it has no attempt yet because it stands in a queue. Nothing is stored of its status.
    pub queued: Option<InQueue>,
    /// What it is doing.
    pub phase: Option<Phase>,
    /// How far it is.
    pub progress: Progress,
    /// Why this is so.
    pub evidence: Option<Evidence>,
}

/// The word of a job that an engine has and has not started yet. It is shown, and never stored.
pub const PENDING: &str = "pending";

/// The word of what waits in a queue for its turn. It is shown, and never stored.
pub const QUEUED: &str = "queued";

/// The word of what waits in a queue and has no turn while somebody holds it. It is shown, and never stored.
pub const HELD: &str = "held";

impl Shown {
    /// Every word of [`Shown::word`].
    pub fn words() -> impl Iterator<Item = &'static str> {
        [QUEUED, HELD, PENDING].into_iter().chain(Status::WORDS)
    }

    /// The status in one word, without the kind of failure.
    pub fn word(&self) -> &'static str {
        match (&self.queued, &self.pending) {
            (Some(queued), _) => queued.word(),
            (None, Some(_)) => PENDING,
            (None, None) => self.status.word().unwrap_or("starting"),
        }
    }

    /// The status in words, with what ended it where the record keeps no word for that.
    pub fn status_in_words(&self) -> String {
        if self.status == Status::Killed(None) && self.rests_on(WINDOW_CLOSED) {
            return "killed (window closed)".to_owned();
        }
        self.status.to_string()
    }

    /// Where it goes on without its window, if it does.
    pub fn without_window(&self) -> Option<&str> {
        let is_so = self.status.is_live() && self.rests_on(WITHOUT_WINDOW);
        self.evidence.as_ref().filter(|_| is_so).map(|evidence| evidence.line.as_str())
    }

    /// What is being made ready for its command, and how far that is, if somebody says so.
    pub fn made_ready(&self) -> Option<&str> {
        let is_so = self.status.is_live() && (self.rests_on(SETTING_UP) || self.rests_on(COPYING));
        self.evidence.as_ref().filter(|_| is_so).map(|evidence| evidence.line.as_str())
    }

    /// How far the copy of its code is, while it is made.
    pub fn copying(&self) -> Option<&str> {
        self.made_ready().filter(|_| self.phase == Some(Phase::Staging))
    }

    fn rests_on(&self, rule: &str) -> bool {
        self.evidence.as_ref().is_some_and(|evidence| evidence.rule == rule)
    }
}

/// A wait in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InQueue {
    /// In which queue.
    pub queue: QueueName,
    /// Its place there, from 1.
    pub position: usize,
    /// How urgent it is.
    pub priority: Priority,
    /// Why it does not begin, where that is known without asking machines: `tpu explain` asks them.
    pub reason: Option<String>,
    /// Whether somebody holds it.
    pub held: bool,
    /// The members that wait, where it is a group; never none. `None` for a job, and for a member by itself.
    pub members: Option<Vec<u32>>,
}

impl InQueue {
    /// How it waits, in one word.
    pub fn word(&self) -> &'static str {
        if self.held { HELD } else { QUEUED }
    }

    /// Where it stands, and why it does not begin: `place 3 in default: held by bob`.
    pub fn in_words(&self) -> String {
        let place = format!("place {} in {}", self.position, self.queue);
        match &self.reason {
            Some(reason) => format!("{place}: {reason}"),
            None => place,
        }
    }
}

/// A wait that an engine has ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Why it waits, for people.
    pub reason: Option<String>,
    /// When it is expected to start.
    pub expected_start: Option<Timestamp>,
    /// The engine's own word.
    pub raw: String,
}

/// What will happen by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// The action, as in [`Action::as_str`].
    pub action: String,
    /// In how many seconds, if that is known.
    pub in_s: Option<u64>,
    /// How often it may still happen.
    pub budget_left: Option<u32>,
    /// Why, or why not, in words.
    pub reason: String,
    /// Whether nothing happens only for now: what is waited for comes by itself.
    pub waits: bool,
}

/// One job as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// Which job.
    pub id: JobId,
    /// Windows of its lineage from the first attempt to the leaf.
    pub lineage: Vec<JobNumber>,
    /// Whether it is the youngest attempt.
    pub leaf: bool,
    /// Slot and path of its working directory.
    pub dir: (Option<u32>, String),
    /// Target, full name.
    pub target: TargetName,
    /// The kind of target.
    pub kind: TargetKind,
    /// The shortest alias of the target, else its full name.
    pub target_label: String,
    /// Why nobody knows how its target is now, and what was last heard of it.
    pub target_unknown: Option<String>,
    /// Whose the machines are that it runs on.
    pub machines: Machines,
    /// What it was given of its target; `None` where nothing was counted.
    pub share: Option<Share>,
    /// Zone of the target, if known.
    pub zone: Option<String>,
    /// The name by which people call it.
    pub name: Option<String>,
    /// What its command runs; `None` where it is a script form's.
    pub runs: Option<Runs>,
    /// What its command runs, in a few words that tell it from others of the same look; see [`entitle`].
    pub title: Option<String>,
    /// Which member of which group it is.
    pub member: Option<Member>,
    /// Tags.
    pub tags: Option<String>,
    /// Status, phase, progress, evidence.
    pub shown: Shown,
    /// Status as stored.
    pub stored: Status,
    /// Number of resumes before it.
    pub stage: u32,
    /// The step of the checkpoint from which it went on, where that is known.
    pub from_step: Option<u64>,
    /// How often its engine has begun it anew by itself.
    pub restarts: u32,
    /// Its rules.
    pub rules: Rules,
    /// Whether the daemon may act on it.
    pub monitor: bool,
    /// What will happen by itself.
    pub next: Option<Next>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended, once that is written down.
    pub ended_at: Option<Timestamp>,
    /// Seconds since then, or its whole duration when it has ended and the end is known; of what waits in a queue,
    /// seconds since it was submitted.
    pub age_s: Option<u64>,
    /// How long it and the attempts before it have waited for their turns, in seconds; what still waits, so far. `None`
    /// where none is known to have waited.
    pub waited_s: Option<u64>,
    /// What it and the attempts before it have cost, in the money of the prices that its user has set; `None` where nobody
    /// says that of any.
    pub cost: Option<f64>,
    /// Log directory.
    pub log_dir: Option<String>,
    /// Stage directory.
    pub stage_dir: Option<String>,
    /// How its command has ended.
    pub exit: Option<Exit>,
    /// Whether its window exists; `None` when that is unknown.
    pub window_alive: Option<bool>,
    /// Its pane, `%12`, when the window exists.
    pub pane_id: Option<String>,
    /// The last lines of the pane, stripped, oldest first, each with its line end. Shared with whoever
    /// remembers them for the next look.
    pub tail: Arc<str>,
    /// The machines that it runs on, or ran on last, as far as its engine names them.
    pub nodes: Vec<String>,
    /// The config arguments it was started with.
    pub configs: String,
    /// The unfinished action on it (`killing`), if any.
    pub intent: Option<String>,
}

impl JobView {
    /// What it is called in lists: `12_3` for a member of a group, of which that names the newest attempt; else
    /// its number.
    pub fn label(&self) -> String {
        match self.member.filter(|_| self.leaf) {
            Some(member) => member.to_string(),
            None => self.id.window.to_string(),
        }
    }

    /// What people know it by: its name, else what it runs.
    pub fn known_as(&self) -> Option<&str> {
        self.name.as_deref().or(self.title.as_deref())
    }

    /// The same with its user.
    pub fn called(&self) -> String {
        format!("{}/{}", self.id.user, self.label())
    }

    /// The same with what people know it by: `alice/7 (llama)`. What others wrote is in it as it is.
    pub fn in_words(&self) -> String {
        match self.known_as() {
            Some(known) => format!("{} ({known})", self.called()),
            None => self.called(),
        }
    }

    /// How many jobs it stands for: of a group that waits all members that do, else one.
    pub fn jobs(&self) -> usize {
        let waiting = self.shown.queued.as_ref().and_then(|queued| queued.members.as_ref());
        waiting.map_or(1, Vec::len)
    }

    /// How it is, in words: what is under way on it, that nothing certain is known, how it waits, its status. What it
    /// does while all is well (compiling, saving) is its phase, and no other state.
    pub fn state(&self) -> String {
        let (shown, status) = (&self.shown, &self.shown.status);
        if let Some(intent) = self.intent.as_ref().filter(|_| status.is_live()) {
            return intent.clone();
        }
        if shown.unknown.is_some() && status.is_live() {
            return "unknown".to_owned();
        }
        if let Some(queued) = &shown.queued {
            return queued.word().to_owned();
        }
        if shown.pending.is_some() {
            return PENDING.to_owned();
        }
        let because = |word: &str, kind: Option<ErrorKind>| {
            kind.map_or_else(|| word.to_owned(), |kind| format!("{word} ({kind})"))
        };
        match (status, shown.phase) {
            (Status::Running, Some(phase)) if phase.is_warning() => phase.as_str().to_owned(),
            (
                Status::Running
                | Status::Unset
                | Status::Starting
                | Status::Finished
                | Status::Error(_),
                _,
            ) => status.to_string(),
            (Status::Killed(None), _) => shown.status_in_words(),
            (Status::Killed(kind), _) => because("killed", *kind),
            (Status::Resumed(kind), _) => because("resumed", *kind),
            (Status::Rerunned(kind), _) => because("rerun", *kind),
        }
    }

    /// The last part of its working directory.
    pub fn dir_name(&self) -> &str {
        self.dir.1.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// Whether it waits in a queue and has no attempt yet.
    pub fn is_queued(&self) -> bool {
        self.shown.queued.is_some()
    }

    /// The kind of failure it shows, if it failed.
    pub fn failure(&self) -> Option<ErrorKind> {
        self.shown.status.failure()
    }

    /// What its rules are going to do with it, if they are; whether the daemon runs to do it or not.
    pub fn planned(&self) -> Option<&Next> {
        self.next.as_ref().filter(|next| next.action != Action::Pass.as_str())
    }

    /// Whether its rules are going to do something with it, or may once it is known what has happened.
    pub fn may_come_back(&self) -> bool {
        self.planned().is_some() || self.next.as_ref().is_some_and(|next| next.waits)
    }

    /// The action that its rules name for the failure it shows.
    pub fn rule_action(&self) -> Option<Action> {
        self.failure().map(|kind| self.rules.action(kind))
    }
}

/// Gives each job of a look a title, where it runs a command. Of a script that several jobs of one user run, the arguments
/// that differ tell them apart.
pub fn entitle(jobs: &mut [JobView]) {
    let mut users: Vec<UserName> = jobs.iter().map(|job| job.id.user.clone()).collect();
    users.sort_unstable();
    users.dedup();
    for user in users {
        let all = || jobs.iter().filter(|job| job.id.user == user);
        let runs = all().filter_map(|job| Some((job.runs.as_ref()?, job.leaf)));
        let mut titles = titles(runs).into_iter();
        let of_user = jobs.iter_mut().filter(|job| job.id.user == user && job.runs.is_some());
        of_user.for_each(|job| job.title = titles.next());
    }
}

/// A window of a user's session that no record claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Session.
    pub session: String,
    /// Window index.
    pub window: u32,
}

/// How the tmux server is, for the header and for errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TmuxHealth {
    /// It answered.
    Up,
    /// No server runs.
    Down,
    /// The question failed, for this reason; what is shown about windows is old.
    Unknown(String),
}

/// Whether the daemon runs, and since when it has been silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorHealth {
    /// No daemon holds the lock.
    NotRunning,
    /// It runs; seconds since its last turn.
    Running {
        /// Seconds since the last turn ended.
        turn_age_s: u64,
    },
    /// It runs and does nothing about what it sees.
    Watching {
        /// Seconds since the last turn ended.
        turn_age_s: u64,
        /// Why it does nothing.
        why: String,
    },
}

impl MonitorHealth {
    /// Seconds since its last turn ended, if it runs.
    pub fn turn_age_s(&self) -> Option<u64> {
        match self {
            Self::NotRunning => None,
            Self::Running { turn_age_s } | Self::Watching { turn_age_s, .. } => Some(*turn_age_s),
        }
    }

    /// Why it only watches, if it does.
    pub fn watches(&self) -> Option<&str> {
        match self {
            Self::Watching { why, .. } => Some(why),
            Self::Running { .. } | Self::NotRunning => None,
        }
    }
}

/// Whose jobs a look is at: those of some users, or, where none is named, everybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose(Vec<UserName>);

impl Whose {
    /// Those of these users; of nobody in particular if there are none.
    pub fn of(users: impl IntoIterator<Item = UserName>) -> Self {
        let mut named: Vec<UserName> = Vec::new();
        for user in users {
            if !named.contains(&user) {
                named.push(user);
            }
        }
        Self(named)
    }

    /// The users who are named; empty for everybody.
    pub fn named(&self) -> &[UserName] {
        &self.0
    }

    /// The user, if it is one user's jobs alone.
    pub fn only(&self) -> Option<&UserName> {
        match self.0.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether everybody's jobs are meant.
    pub fn is_everybody(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this user's jobs are among them.
    pub fn includes(&self, user: &UserName) -> bool {
        self.is_everybody() || self.0.contains(user)
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_everybody() {
            return f.write_str("all users");
        }
        let names: Vec<&str> = self.0.iter().map(UserName::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

/// Everything that one look gave: what a frame of the screen or one `check` is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When the look was made.
    pub at: Timestamp,
    /// Whose jobs these are.
    pub whose: Whose,
    /// All users, in the order of the file.
    pub users: Vec<UserName>,
    /// Jobs in the order of the file.
    pub jobs: Vec<JobView>,
    /// Windows without a record, in the sessions of those users.
    pub orphans: Vec<Orphan>,
    /// How tmux is.
    pub tmux: TmuxHealth,
    /// Whether the daemon runs.
    pub monitor: MonitorHealth,
}

impl Snapshot {
    /// Whether it matters that tmux does not answer: not to those whose jobs are all at engines, which need none.
    pub fn misses_tmux(&self) -> bool {
        self.tmux != TmuxHealth::Up
            && (self.jobs.is_empty()
                || self.jobs.iter().any(|job| job.machines != Machines::Engine))
    }
}
