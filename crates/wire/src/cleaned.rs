//! What is cleared away: `clean`, its parts, and `kill-window`.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_ops::front::clean::{Cleaned, Kept};
use tpu_ops::observe::orphans::{Closing, Left};

use super::jobs::JobIdPart;

/// What was cleared away.
#[derive(Serialize, JsonSchema)]
pub struct CleanedDocument<'a> {
    /// Jobs whose records are in the archive now.
    pub archived: Vec<JobIdPart<'a>>,
    /// How many windows were closed.
    pub closed: usize,
    /// Those windows, and the panes of windows that stay.
    pub windows: Vec<ClosingPart<'a>>,
    /// Lineages that have ended and stay.
    pub kept: Vec<KeptPart<'a>>,
    /// Windows that are left open.
    pub left: Vec<LeftPart<'a>>,
}

impl<'a> From<&'a Cleaned> for CleanedDocument<'a> {
    fn from(cleaned: &'a Cleaned) -> Self {
        Self {
            archived: cleaned.archived.iter().map(JobIdPart::from).collect(),
            closed: cleaned.closed.iter().filter(|closing| closing.whole).count(),
            windows: cleaned.closed.iter().map(ClosingPart::from).collect(),
            kept: cleaned.kept.iter().map(KeptPart::from).collect(),
            left: cleaned.left.iter().map(LeftPart::from).collect(),
        }
    }
}

/// What a dry run would clear away.
#[derive(Serialize, JsonSchema)]
pub struct WouldCleanDocument<'a> {
    /// All of it.
    pub would: WouldCleanPart<'a>,
}

/// What a dry run would clear away.
#[derive(Serialize, JsonSchema)]
pub struct WouldCleanPart<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Windows whose records would go to the archive.
    pub windows: Vec<JobNumber>,
    /// What would be closed.
    pub close: Vec<ClosingPart<'a>>,
    /// Lineages that have ended and would stay.
    pub kept: Vec<KeptPart<'a>>,
    /// Windows that would be left open.
    pub left: Vec<LeftPart<'a>>,
}

impl<'a> From<(&'a UserName, &'a Cleaned)> for WouldCleanDocument<'a> {
    fn from((user, cleaned): (&'a UserName, &'a Cleaned)) -> Self {
        Self {
            would: WouldCleanPart {
                user,
                windows: cleaned.archived.iter().map(|id| id.window).collect(),
                close: cleaned.closed.iter().map(ClosingPart::from).collect(),
                kept: cleaned.kept.iter().map(KeptPart::from).collect(),
                left: cleaned.left.iter().map(LeftPart::from).collect(),
            },
        }
    }
}

/// A window, or the pane of a job in one, that is closed.
#[derive(Serialize, JsonSchema)]
pub struct ClosingPart<'a> {
    /// tmux session.
    pub session: &'a str,
    /// Index of the window there.
    pub window: u32,
    /// The job that its mark names.
    pub job: Option<JobIdPart<'a>>,
    /// Whether the window goes; else it stays with what somebody else has in it.
    pub whole: bool,
}

impl<'a> From<&'a Closing> for ClosingPart<'a> {
    fn from(closing: &'a Closing) -> Self {
        let Closing { session, window, job, whole } = closing;
        let job = job.as_ref().map(JobIdPart::from);
        Self { session, window: *window, job, whole: *whole }
    }
}

/// A lineage that has ended and is not archived.
#[derive(Serialize, JsonSchema)]
pub struct KeptPart<'a> {
    /// Its leaf.
    pub job: JobIdPart<'a>,
    /// Why.
    pub reason: &'a str,
}

impl<'a> From<&'a Kept> for KeptPart<'a> {
    fn from(kept: &'a Kept) -> Self {
        Self { job: JobIdPart::from(&kept.job), reason: &kept.reason }
    }
}

/// A window that is left open.
#[derive(Serialize, JsonSchema)]
pub struct LeftPart<'a> {
    /// tmux session.
    pub session: &'a str,
    /// Index of the window there.
    pub window: u32,
    /// What runs in it.
    pub programs: &'a [String],
    /// The job that its mark names.
    pub job: Option<JobIdPart<'a>>,
    /// Whether somebody looks at it now.
    pub watched: bool,
}

impl<'a> From<&'a Left> for LeftPart<'a> {
    fn from(left: &'a Left) -> Self {
        let Left { session, window, programs, job, watched } = left;
        let job = job.as_ref().map(JobIdPart::from);
        Self { session, window: *window, programs, job, watched: *watched }
    }
}
