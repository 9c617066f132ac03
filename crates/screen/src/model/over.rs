//! What lies over the tab: questions, prompts, pages, the form, the help; and toasts.

use std::collections::BTreeSet;

use tui_input::Input;

use super::form::Form;
use crate::keys::{Command, Context};
use crate::message::{Act, Ask};
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::filter::Filter;

/// A question before something is destroyed.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// What will be done.
    pub act: Act,
    /// Exactly the jobs that it will be done to.
    pub jobs: Vec<JobId>,
    /// Whether the button that confirms is the marked one.
    pub yes: bool,
    /// How far the list of jobs is scrolled.
    pub top: usize,
    /// What a command says that it would do.
    pub plan: Option<Body>,
    /// What is left alone, and why; or what else is to be known.
    pub note: Option<String>,
    /// Whose jobs these are where they are somebody else's.
    pub others: Option<String>,
}

/// One of several answers.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What is chosen.
    pub title: String,
    /// The answers, each with what it means.
    pub options: Vec<(String, String)>,
    /// The marked one.
    pub at: usize,
    /// What the answer is for.
    pub of: ChoiceOf,
}

/// The columns of the list, while somebody chooses them: the list shows at once what is chosen.
#[derive(Clone, Debug, Default)]
pub struct ColumnChoice {
    /// The marked column, by its place in the table.
    pub at: usize,
    /// What was chosen before.
    pub before: Option<BTreeSet<&'static str>>,
}

/// What a choice is for.
#[derive(Clone, Debug)]
pub enum ChoiceOf {
    /// The rule of a job.
    Rule(JobId),
    /// What is copied: the answer's own words.
    Copy,
    /// The action whose plan is shown: for each answer its key's command, and the action.
    Plan(Vec<(Command, Act)>),
}

/// Something to read.
#[derive(Clone, Debug)]
pub struct Page {
    /// What it is.
    pub title: String,
    /// What there is to read.
    pub body: Body,
    /// How far it is scrolled.
    pub top: usize,
}

/// What there is to read on a page or in a question.
#[derive(Clone, Debug)]
pub enum Body {
    /// Words that are awaited: what was asked for.
    Awaited(Ask),
    /// Words.
    Text(String),
    /// Two runs beside each other.
    Diff(Box<(JobId, JobId)>),
}

/// A command being typed.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// The text.
    pub input: Input,
    /// What it was before an earlier command was fetched.
    pub kept: String,
    /// The earlier command that was fetched, counted from the newest.
    pub fetched: Option<usize>,
    /// What the last word may become, while somebody goes through it: the text before it, and the place.
    pub completing: Option<(String, usize)>,
}

/// What lies over the tab and gets the keys.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// A question.
    Confirm(Confirm),
    /// A question with several answers.
    Choice(Choice),
    /// The choice of columns.
    Columns(ColumnChoice),
    /// Something to read.
    Page(Page),
    /// A command being typed.
    CommandLine(CommandLine),
    /// A new run being described.
    Form(Box<Form>),
    /// A filter of another tab than the jobs' being typed; Esc brings back the one from before.
    BoardFilter(Input, String),
    /// A filter of the log being typed.
    LogFilter(Input),
    /// A tag being typed.
    Tag(JobId, Input),
    /// A filter being typed; Esc brings back the one from before.
    Filter(Input, Filter),
    /// A search being typed.
    Search(Input),
}

/// The help, which lies over everything else and takes nothing away from it.
#[derive(Clone, Debug)]
pub struct Help {
    /// What the person was doing when it was opened: the keys for that are listed.
    pub about: Context,
    /// The first line that is seen.
    pub top: usize,
    /// What is looked for in it.
    pub search: Input,
    /// Whether that is being typed.
    pub typing: bool,
}

/// What a toast tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Something was done.
    Result,
    /// Nothing was done, and why there was nothing to do.
    Note,
    /// Something failed.
    Failure,
}

/// A result that is shown for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// The result.
    pub text: String,
    /// What to do next, with a failure.
    pub hint: Option<String>,
    /// Whether it is a result, a note or a failure.
    pub tells: Tells,
    /// When it goes.
    pub until: Timestamp,
}
