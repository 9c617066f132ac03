//! What is cleared away: `clean`, its parts, and `kill-window`.

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_ops::front::clean::{Cleaned, Kept};
use tpu_ops::front::old_code::CodeGone;
use tpu_ops::observe::orphans::{Closing, Left};

use super::document::{documents, part};
use super::jobs::JobIdPart;

documents! {
    /// What was cleared away.
    pub struct CleanedDocument<'a> from cleaned: &'a Cleaned {
        /// Jobs whose records are in the archive now.
        archived: Vec<JobIdPart<'a>>,
        /// How many windows were closed.
        closed: usize = cleaned.closed.iter().filter(|closing| closing.whole).count(),
        /// Those windows, and the panes of windows that stay.
        windows: Vec<ClosingPart<'a>> = part(&cleaned.closed),
        /// Lineages that have ended and stay.
        kept: Vec<KeptPart<'a>>,
        /// Windows that are left open.
        left: Vec<LeftPart<'a>>,
        /// Code that was removed from the copies of jobs that were archived long ago.
        code: CodeGonePart,
        /// Copies of code that were removed with what their jobs wrote.
        copies: CodeGonePart = part(&cleaned.whole),
    }

    /// What a dry run would clear away.
    pub struct WouldCleanDocument<'a> from (user, cleaned): (&'a UserName, &'a Cleaned) {
        /// All of it.
        would: WouldCleanPart<'a> = WouldCleanPart::from((cleaned, user)),
    }

    /// What a dry run would clear away.
    pub struct WouldCleanPart<'a> from (cleaned, user): (&'a Cleaned, &'a UserName) {
        /// Whose.
        user: &'a UserName = user,
        /// Windows whose records would go to the archive.
        windows: Vec<JobNumber> = cleaned.archived.iter().map(|id| id.window).collect(),
        /// What would be closed.
        close: Vec<ClosingPart<'a>> = part(&cleaned.closed),
        /// Lineages that have ended and would stay.
        kept: Vec<KeptPart<'a>>,
        /// Windows that would be left open.
        left: Vec<LeftPart<'a>>,
        /// Copies of code that would be removed with what their jobs wrote.
        copies: CodeGonePart = part(&cleaned.whole),
    }

    /// What is removed of copies of code.
    pub struct CodeGonePart from gone: &'a CodeGone {
        /// Of how many.
        copies: usize,
        /// Its bytes.
        bytes: u64,
    }

    /// A window, or the pane of a job in one, that is closed.
    pub struct ClosingPart<'a> from closing: &'a Closing {
        /// tmux session.
        session: &'a str,
        /// Index of the window there.
        window: u32,
        /// The job that its mark names.
        job: Option<JobIdPart<'a>>,
        /// Whether the window goes; else it stays with what somebody else has in it.
        whole: bool,
    }

    /// A lineage that has ended and is not archived.
    pub struct KeptPart<'a> from kept: &'a Kept {
        /// Its leaf.
        job: JobIdPart<'a>,
        /// Why.
        reason: &'a str,
    }

    /// A window that is left open.
    pub struct LeftPart<'a> from left: &'a Left {
        /// tmux session.
        session: &'a str,
        /// Index of the window there.
        window: u32,
        /// What runs in it.
        programs: &'a [String],
        /// The job that its mark names.
        job: Option<JobIdPart<'a>>,
        /// Whether somebody looks at it now.
        watched: bool,
    }
}
