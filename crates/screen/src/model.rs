//! The state of the screen. Only `update` changes it and only `view` reads it for drawing.
//!
//! What is shown about jobs is one [`Snapshot`]; the screen computes no status of its own.

mod boards;
mod form;
mod over;
mod usage;

use std::collections::BTreeSet;

pub use boards::{
    Asked, BoardRow, Boards, Choosing, concerns, jobs_of as board_jobs, rows as board_rows,
};
pub use form::{FIELDS, FieldId, Form, SWEEPS};
pub use over::{
    Body, Choice, ChoiceOf, ColumnChoice, CommandLine, Confirm, Help, Overlay, Page, Tells, Toast,
};
pub use usage::{ALL_TOGETHER, Measure, Usage, UsageSeen};

use super::chart::Chart;
use super::keys::{Command, Context, KeyMap};
use super::log_filter::{LogFilter, LogSearch};
use super::message::{Act, Problem, Scope, Ticket};
use super::pane::PaneText;
use super::rows::{self, Arrangement, Row};
use super::tabs::Tab;
use super::theme::Theme;
use super::trace::{self, Traces};
use super::typed::Commands;
use tpu_core::model::groups;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::{JobView, Snapshot, Whose};
use tpu_core::plan::filter::Filter;

/// Which columns the flags `-wdtsv` ask for; without flags all but the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// `w`: the window.
    pub window: bool,
    /// `d`: directory and tags.
    pub dir: bool,
    /// `t`: the target.
    pub target: bool,
    /// `s`: status, progress and age.
    pub status: bool,
    /// `v`: the newest line of output.
    pub output: bool,
    /// The columns that somebody has chosen by name instead.
    pub chosen: Option<BTreeSet<&'static str>>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { window: true, dir: true, target: true, status: true, output: false, chosen: None }
    }
}

impl Columns {
    /// Reads the letters of `-wdtsv` (any order, no dash); `None` when another letter is among them.
    pub fn from_flags(letters: &str) -> Option<Self> {
        let has = |letter| letters.contains(letter);
        let known = !letters.is_empty() && letters.chars().all(|c| "wdtsv".contains(c));
        known.then(|| Self {
            window: has('w'),
            dir: has('d'),
            target: has('t'),
            status: has('s'),
            output: has('v'),
            chosen: None,
        })
    }
}

/// How this person wants the screen.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Styles.
    pub theme: Theme,
    /// Whether only ASCII may be drawn.
    pub ascii: bool,
    /// Columns of the list.
    pub columns: Columns,
    /// Zone for the clock and for start times.
    pub zone: Zone,
    /// Keys.
    pub keys: KeyMap,
    /// Seconds between two looks, so that old data can be told from fresh.
    pub refresh_s: u64,
    /// The commands of `tpu`.
    pub commands: Commands,
}

impl Setup {
    /// The first key of a command, as it is shown; empty where it has none.
    pub fn key(&self, context: Context, command: Command) -> String {
        let keys = self.keys.lines(context).find(|(line, _)| line.command == command);
        let first = keys.and_then(|(_, keys)| keys.first());
        first.map(|key| key.label(self.ascii)).unwrap_or_default()
    }
}

/// The list of jobs.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The rows that the filter lets through.
    pub rows: Vec<Row>,
    /// What each column could use for the jobs of the newest look; nothing where it has nothing to say.
    pub widths: Vec<Option<usize>>,
    /// The selection: a job, not a row.
    pub selected: Option<JobId>,
    /// What was begun from the form, which is selected as soon as it is seen.
    pub begun: Option<NewRun>,
    /// First row on the screen.
    pub top: usize,
    /// The filter.
    pub filter: Filter,
    /// Marked jobs.
    pub marked: BTreeSet<JobId>,
    /// Leaves whose earlier attempts are shown.
    pub unfolded: BTreeSet<JobId>,
    /// The groups of the arrangement whose rows are hidden.
    pub folded: BTreeSet<String>,
    /// Order and groups.
    pub arrangement: Arrangement,
}

/// A job that is begun from the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// What was selected then: whoever has gone on to something else stays there.
    pub from: Option<JobId>,
    /// The job, once it is known.
    pub job: Option<JobId>,
}

/// The end of the selected job's pane.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Whose pane it is.
    pub job: Option<JobId>,
    /// What it shows; `None` before the first answer and when the window is gone.
    pub text: Option<PaneText>,
    /// Whether an answer is awaited.
    pub waiting: bool,
}

/// The log view: all that a job has printed.
#[derive(Clone, Debug)]
pub struct Log {
    /// Whose output it is.
    pub job: JobId,
    /// The output; `None` before the first answer and when the window is gone.
    pub text: Option<PaneText>,
    /// Why there is none, or why it is old.
    pub problem: Option<Problem>,
    /// Whether an answer is awaited.
    pub waiting: bool,
    /// First line on the screen.
    pub top: usize,
    /// First column on the screen.
    pub left: usize,
    /// Whether the newest line stays in sight.
    pub follow: bool,
    /// Lines that have come since following stopped.
    pub unseen: usize,
    /// What is searched for.
    pub search: LogSearch,
    /// Lines that contain it.
    pub hits: Vec<usize>,
    /// The line of the hit that was jumped to.
    pub hit: Option<usize>,
    /// Which lines are shown.
    pub filter: LogFilter,
    /// The only worker whose lines are shown.
    pub worker: Option<String>,
    /// The lines that filter and worker let through.
    pub shown: Vec<usize>,
    /// Whether long lines are broken.
    pub wrap: bool,
}

/// The whole screen.
#[derive(Clone, Debug)]
pub struct Model {
    /// The instant of the last message.
    pub now: Timestamp,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The tab.
    pub tab: Tab,
    /// What the tabs beside the jobs show.
    pub boards: Boards,
    /// What is remembered of each lineage.
    pub traces: Traces,
    /// How this person wants it.
    pub setup: Setup,
    /// Whose jobs.
    pub scope: Scope,
    /// The newest look that succeeded.
    pub snapshot: Option<Snapshot>,
    /// Why there is no newer one.
    pub problem: Option<Problem>,
    /// The line above the bottom line, in fewer and fewer words; empty where there is none.
    pub caption: Vec<String>,
    /// The list.
    pub list: List,
    /// Whether the detail has the full width.
    pub wide: bool,
    /// What is looked at of the curves there.
    pub chart: Chart,
    /// Whose curves they are.
    pub charted: Option<trace::Key>,
    /// The list's share of the screen in percent, once somebody has moved the border.
    pub split: Option<u16>,
    /// Whether the border is being moved.
    pub dragging: bool,
    /// Whether the mouse is ours.
    pub mouse: bool,
    /// The user whose jobs are shown when not everybody's are.
    pub home: Whose,
    /// Whose jobs this screen was opened for: those of anybody else are somebody else's.
    pub own: Whose,
    /// The lines that were typed, here and on other screens, oldest first.
    pub remembered: Vec<String>,
    /// The selected job's pane.
    pub live: Live,
    /// The log view, while it is open.
    pub log: Option<Log>,
    /// What lies on top.
    pub overlay: Option<Overlay>,
    /// The help, over that.
    pub help: Option<Help>,
    /// Results, oldest first.
    pub toasts: Vec<Toast>,
    /// Actions under way.
    pub running: Vec<(Ticket, Act)>,
    /// The number of the next action.
    pub next_ticket: u64,
    /// Position of the spinner.
    pub spinner: usize,
    /// Whether the screen must be drawn.
    pub changed: bool,
    /// Whether the person has been told that leaving now leaves something unfinished.
    pub warned: bool,
    /// Whether the screen is to be left.
    pub quit: bool,
}

impl Model {
    /// A screen that has seen nothing yet. `select` is chosen as soon as it appears.
    pub fn new(setup: Setup, scope: Scope, now: Timestamp, select: Option<JobId>) -> Self {
        Self {
            now,
            size: (80, 24),
            tab: Tab::Jobs,
            boards: Boards::default(),
            traces: Traces::default(),
            setup,
            home: scope.whose.clone(),
            own: scope.whose.clone(),
            scope,
            snapshot: None,
            problem: None,
            caption: Vec::new(),
            list: List { selected: select, ..List::default() },
            wide: false,
            chart: Chart::default(),
            charted: None,
            split: None,
            dragging: false,
            mouse: true,
            remembered: Vec::new(),
            live: Live::default(),
            log: None,
            overlay: None,
            help: None,
            toasts: Vec::new(),
            running: Vec::new(),
            next_ticket: 0,
            spinner: 0,
            changed: true,
            warned: false,
            quit: false,
        }
    }

    /// What keys mean now.
    pub fn context(&self) -> Context {
        match &self.help {
            Some(help) if help.typing => Context::HelpSearch,
            Some(_) => Context::Help,
            None => self.context_without_help(),
        }
    }

    /// What keys mean where no help is; it is about this.
    pub(crate) fn context_without_help(&self) -> Context {
        match &self.overlay {
            Some(Overlay::Confirm(_)) => Context::Confirm,
            Some(Overlay::Choice(_)) => Context::Choice,
            Some(Overlay::Columns(_)) => Context::Columns,
            Some(Overlay::Tag(..)) => Context::Tag,
            Some(Overlay::Page(_)) => Context::Page,
            Some(Overlay::Filter(..) | Overlay::BoardFilter(..)) => Context::Filter,
            Some(Overlay::Search(_)) => Context::Search,
            Some(Overlay::LogFilter(_)) => Context::LogFilter,
            Some(Overlay::CommandLine(_)) => Context::CommandLine,
            Some(Overlay::Form(_)) => Context::Form,
            None => self.context_below(),
        }
    }

    /// What keys would mean if nothing lay over the tab.
    pub(crate) fn context_below(&self) -> Context {
        match (&self.log, self.tab, self.wide) {
            (Some(_), ..) => Context::Log,
            (None, Tab::Jobs, true) => Context::Detail,
            (None, tab, _) => tab.context(),
        }
    }

    /// All jobs of the newest look.
    pub fn jobs(&self) -> &[JobView] {
        self.snapshot.as_ref().map(|snapshot| snapshot.jobs.as_slice()).unwrap_or_default()
    }

    /// A job of the newest look.
    pub fn job(&self, id: &JobId) -> Option<&JobView> {
        self.jobs().iter().find(|job| job.id == *id)
    }

    /// The selected job, if it has a row.
    pub fn selected(&self) -> Option<&JobView> {
        let row = self.list.rows.get(self.selected_row()?)?;
        self.jobs().get(row.job)
    }

    /// The row of the selection.
    pub fn selected_row(&self) -> Option<usize> {
        let selected = self.list.selected.as_ref()?;
        self.list.rows.iter().position(|row| row.can_be_chosen() && row.id == *selected)
    }

    /// The jobs that an action is about: the marked ones, else the selected one.
    pub fn subjects(&self) -> Vec<&JobView> {
        if !self.list.marked.is_empty() {
            let is_marked = |job: &&JobView| self.list.marked.contains(&job.id);
            let marked: Vec<_> = self.jobs().iter().filter(is_marked).collect();
            if !marked.is_empty() {
                return marked;
            }
        }
        let members = self.selected_members();
        if members.is_empty() { self.selected().into_iter().collect() } else { members }
    }

    /// The name of the folded group whose head is selected.
    pub fn selected_head(&self) -> Option<&str> {
        self.list.rows.get(self.selected_row()?)?.head.as_deref()
    }

    /// The members for which the selected row stands, if it is that of a group of jobs.
    pub(crate) fn selected_members(&self) -> Vec<&JobView> {
        let row = self.selected_row().and_then(|at| self.list.rows.get(at));
        row.into_iter().flat_map(|row| &row.members).filter_map(|at| self.jobs().get(*at)).collect()
    }

    /// The job that broke last, hidden by the filter or not; where none has failed, the newest with which something is
    /// amiss. Earlier attempts do not count: somebody has already reacted to them.
    pub fn newest_broken(&self) -> Option<&JobView> {
        // Whoever has not ended is as old as its beginning: nobody knows since when its output shows a failure.
        let broke_at = |job: &&JobView| (job.ended_at.or(job.started_at), job.id.window);
        let leaves = || self.jobs().iter().filter(|job| job.leaf);
        let failed = leaves().filter(|job| job.failure().is_some()).max_by_key(broke_at);
        failed.or_else(|| leaves().filter(|job| groups::amiss(job).is_some()).max_by_key(broke_at))
    }

    /// Whether more than one user's jobs are shown.
    pub fn everybody(&self) -> bool {
        self.scope.whose.only().is_none()
    }

    /// Seconds since the newest look that succeeded.
    pub(crate) fn look_age_s(&self) -> Option<u64> {
        self.snapshot.as_ref().map(|snapshot| self.now.seconds_since(snapshot.at))
    }

    /// The jobs whose records `clean` would archive: lineages whose leaf has ended, with all attempts.
    pub(crate) fn cleanable(&self, user: &UserName) -> Vec<JobId> {
        let mut found = Vec::new();
        for job in self.jobs().iter().filter(|job| job.leaf && job.id.user == *user) {
            let ended = match job.shown.status {
                Status::Finished | Status::Error(_) | Status::Killed(_) => {
                    job.shown.unknown.is_none()
                }
                Status::Unset
                | Status::Starting
                | Status::Running
                | Status::Resumed(_)
                | Status::Rerunned(_) => false,
            };
            if ended {
                found.push(job.id.clone());
                found.extend(rows::attempts(job).map(|window| JobId::new(user.clone(), window)));
            }
        }
        found
    }
}
