//! What starts, continues and ends jobs: `run`, `resume`, `rerun`, `kill`.

use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_core::model::job::LaunchMode;
use tpu_core::model::member::Member;
use tpu_ops::Error;
use tpu_ops::act::kill::Killed;
use tpu_ops::act::launch::attempt::Launched;
use tpu_ops::act::launch::group::LaunchedGroup;

use super::document::{documents, part};
use super::hosts::SharePart;
use super::jobs::JobIdPart;
use super::words::Word;

documents! {
    /// A job that has started.
    pub struct LaunchedDocument<'a> from launched: &'a Launched {
        /// The job.
        launched: LaunchedPart<'a> = part(launched),
    }

    /// A job that has started.
    pub struct LaunchedPart<'a> from launched: &'a Launched {
        /// Whose job it is.
        user: &'a UserName = &launched.job.user,
        /// Number of the job and of its tmux window.
        window: JobNumber = launched.job.window,
        /// Full name of what it computes on.
        target: &'a TargetName,
        /// tmux session.
        session: &'a str,
        /// tmux pane, as in %12.
        pane: &'a str,
        /// What it was given of its target; null where nothing is counted there.
        share: Option<SharePart<'a>>,
        /// What the engine calls it that has it; null where nobody calls it so.
        called: Option<&'a str>,
    }

    /// The jobs of a group that have started.
    pub struct LaunchedGroupDocument<'a> from group: &'a LaunchedGroup {
        /// The group.
        group: LaunchedGroupPart<'a> = part(group),
    }

    /// The jobs of a group that have started.
    pub struct LaunchedGroupPart<'a> from launched: &'a LaunchedGroup {
        /// Whose jobs they are.
        user: &'a UserName = &launched.group.user,
        /// Number of the group.
        group: JobNumber = launched.group.window,
        /// Full name of what they compute on.
        target: &'a TargetName,
        /// The members that have started.
        members: Vec<LaunchedMemberPart<'a>>,
        /// The members that have not.
        failed: Vec<FailedMemberPart<'a>>,
        /// The members of which that is not known: they are not to be started once more.
        unsure: Vec<FailedMemberPart<'a>>,
    }

    /// A member of a group that has started.
    pub struct LaunchedMemberPart<'a> from (member, launched): &'a (Member, Launched) {
        /// Which member of the group.
        member: u32 = member.index,
        /// Number of the job and of its tmux window.
        window: JobNumber = launched.job.window,
        /// tmux session.
        session: &'a str = &launched.session,
        /// tmux pane, as in %12.
        pane: &'a str = &launched.pane,
    }

    /// A member of a group that has not started, or of which that is not known.
    pub struct FailedMemberPart<'a> from (member, error): &'a (Member, Error) {
        /// Which member of the group.
        member: u32 = member.index,
        /// What went wrong.
        reason: &'a str = &error.message,
    }

    /// Jobs that continue others.
    pub struct SuccessorsDocument<'a> {
        /// The new attempts.
        successors: Vec<SuccessorPart<'a>>,
    }

    /// A job that continues another.
    pub struct SuccessorDocument<'a> from launched: &'a Launched {
        /// The new attempt.
        launched: SuccessorPart<'a> = SuccessorPart::from(launched),
    }

    /// An attempt that continues another.
    pub struct SuccessorPart<'a> from launched: &'a Launched {
        /// Whose job it is.
        user: &'a UserName = &launched.job.user,
        /// Number of the job and of its tmux window.
        window: JobNumber = launched.job.window,
        /// The attempt it continues.
        parent: Option<JobNumber>,
        /// Full name of what it computes on.
        target: &'a TargetName,
        /// tmux session.
        session: &'a str,
        /// tmux pane, as in %12.
        pane: &'a str,
    }

    /// What a dry run would start.
    pub struct LaunchPlanDocument<'a> {
        /// The plan.
        plan: LaunchPlanPart<'a>,
    }

    /// What a dry run would start.
    pub struct LaunchPlanPart<'a> {
        /// Whose job it would be.
        user: &'a UserName,
        /// Full name of what it would compute on.
        target: &'a TargetName,
        /// Zone of the target.
        zone: Option<&'a str>,
        /// Working directory.
        dir: &'a str,
        /// Whether the users' own script does the work.
        mode: Word<LaunchMode>,
        /// What would be run.
        argv: Vec<String>,
        /// What its engine would be given; only where one runs it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        script: Option<String>,
        /// Why its engine would not take it; only where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        refused: Option<String>,
        /// The members of the group that it would be; null where it would be one job.
        members: Option<Vec<u32>>,
    }

    /// What a dry run would start in place of another attempt.
    pub struct SuccessorPlanDocument<'a> {
        /// The plan.
        plan: SuccessorPlanPart<'a>,
    }

    /// What a dry run would start in place of another attempt.
    pub struct SuccessorPlanPart<'a> {
        /// Whose job it would be.
        user: &'a UserName,
        /// The attempt it would continue.
        parent: JobNumber,
        /// Full name of what it would compute on.
        target: &'a TargetName,
        /// Working directory.
        dir: &'a str,
        /// Resumes before it.
        stage: u32,
        /// What would be run.
        argv: Vec<String>,
        /// What its engine would be given; only where one runs it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        script: Option<String>,
        /// Why its engine would not take it; only where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        refused: Option<String>,
    }

    /// What a dry run would wait for before anything starts.
    pub struct WaitPlanDocument<'a> {
        /// The plan.
        plan: WaitPlanPart<'a>,
    }

    /// What a dry run would wait for.
    pub struct WaitPlanPart<'a> {
        /// Whose job it would be.
        user: &'a UserName,
        /// What would be waited for, in words.
        waits_for: &'a str,
    }

    /// Jobs that were stopped.
    pub struct KilledDocument<'a> {
        /// Each of them.
        killed: Vec<KilledPart<'a>>,
    }

    /// A job that was stopped.
    pub struct KilledPart<'a> from killed: &'a Killed {
        /// Whose job it is.
        user: &'a UserName = &killed.job.user,
        /// Number of the job and of its tmux window.
        window: JobNumber = killed.job.window,
        /// Processes that were ended.
        processes: usize,
        /// Whether its window was there, and is gone.
        window_closed: bool = killed.window,
    }

    /// The jobs that would be meant, were it no dry run.
    pub struct WouldConcernDocument<'a> {
        /// Each of them.
        would: Vec<JobIdPart<'a>>,
    }
}
