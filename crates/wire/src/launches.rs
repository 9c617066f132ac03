//! What starts, continues and ends jobs: `run`, `resume`, `rerun`, `kill`.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_core::model::job::LaunchMode;
use tpu_core::model::member::Member;
use tpu_ops::Error;
use tpu_ops::act::kill::Killed;
use tpu_ops::act::launch::attempt::Launched;
use tpu_ops::act::launch::group::LaunchedGroup;

use super::hosts::SharePart;
use super::jobs::JobIdPart;
use super::words::Word;

/// A job that has started.
#[derive(Serialize, JsonSchema)]
pub struct LaunchedDocument<'a> {
    /// The job.
    pub launched: LaunchedPart<'a>,
}

/// A job that has started.
#[derive(Serialize, JsonSchema)]
pub struct LaunchedPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// Full name of what it computes on.
    pub target: &'a TargetName,
    /// tmux session.
    pub session: &'a str,
    /// tmux pane, as in %12.
    pub pane: &'a str,
    /// What it was given of its target; null where nothing is counted there.
    pub share: Option<SharePart<'a>>,
    /// What the engine calls it that has it; null where nobody calls it so.
    pub called: Option<&'a str>,
}

impl<'a> From<&'a Launched> for LaunchedDocument<'a> {
    fn from(launched: &'a Launched) -> Self {
        Self {
            launched: LaunchedPart {
                user: &launched.job.user,
                window: launched.job.window,
                target: &launched.target,
                session: &launched.session,
                pane: &launched.pane,
                share: launched.share.as_ref().map(SharePart::from),
                called: launched.called.as_deref(),
            },
        }
    }
}

/// The jobs of a group that have started.
#[derive(Serialize, JsonSchema)]
pub struct LaunchedGroupDocument<'a> {
    /// The group.
    pub group: LaunchedGroupPart<'a>,
}

/// The jobs of a group that have started.
#[derive(Serialize, JsonSchema)]
pub struct LaunchedGroupPart<'a> {
    /// Whose jobs they are.
    pub user: &'a UserName,
    /// Number of the group.
    pub group: JobNumber,
    /// Full name of what they compute on.
    pub target: &'a TargetName,
    /// The members that have started.
    pub members: Vec<LaunchedMemberPart<'a>>,
    /// The members that have not.
    pub failed: Vec<FailedMemberPart<'a>>,
    /// The members of which that is not known: they are not to be started once more.
    pub unsure: Vec<FailedMemberPart<'a>>,
}

/// A member of a group that has started.
#[derive(Serialize, JsonSchema)]
pub struct LaunchedMemberPart<'a> {
    /// Which member of the group.
    pub member: u32,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// tmux session.
    pub session: &'a str,
    /// tmux pane, as in %12.
    pub pane: &'a str,
}

/// A member of a group that has not started, or of which that is not known.
#[derive(Serialize, JsonSchema)]
pub struct FailedMemberPart<'a> {
    /// Which member of the group.
    pub member: u32,
    /// What went wrong.
    pub reason: &'a str,
}

impl<'a> From<&'a LaunchedGroup> for LaunchedGroupDocument<'a> {
    fn from(LaunchedGroup { group, target, members, failed, unsure }: &'a LaunchedGroup) -> Self {
        let started = |(member, launched): &'a (Member, Launched)| LaunchedMemberPart {
            member: member.index,
            window: launched.job.window,
            session: &launched.session,
            pane: &launched.pane,
        };
        let not = |(member, error): &'a (Member, Error)| FailedMemberPart {
            member: member.index,
            reason: &error.message,
        };
        Self {
            group: LaunchedGroupPart {
                user: &group.user,
                group: group.window,
                target,
                members: members.iter().map(started).collect(),
                failed: failed.iter().map(not).collect(),
                unsure: unsure.iter().map(not).collect(),
            },
        }
    }
}

/// Jobs that continue others.
#[derive(Serialize, JsonSchema)]
pub struct SuccessorsDocument<'a> {
    /// The new attempts.
    pub successors: Vec<SuccessorPart<'a>>,
}

/// A job that continues another.
#[derive(Serialize, JsonSchema)]
pub struct SuccessorDocument<'a> {
    /// The new attempt.
    pub launched: SuccessorPart<'a>,
}

/// An attempt that continues another.
#[derive(Serialize, JsonSchema)]
pub struct SuccessorPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// The attempt it continues.
    pub parent: Option<JobNumber>,
    /// Full name of what it computes on.
    pub target: &'a TargetName,
    /// tmux session.
    pub session: &'a str,
    /// tmux pane, as in %12.
    pub pane: &'a str,
}

impl<'a> From<&'a Launched> for SuccessorPart<'a> {
    fn from(launched: &'a Launched) -> Self {
        Self {
            user: &launched.job.user,
            window: launched.job.window,
            parent: launched.parent,
            target: &launched.target,
            session: &launched.session,
            pane: &launched.pane,
        }
    }
}

impl<'a> From<&'a Launched> for SuccessorDocument<'a> {
    fn from(launched: &'a Launched) -> Self {
        Self { launched: SuccessorPart::from(launched) }
    }
}

/// What a dry run would start.
#[derive(Serialize, JsonSchema)]
pub struct LaunchPlanDocument<'a> {
    /// The plan.
    pub plan: LaunchPlanPart<'a>,
}

/// What a dry run would start.
#[derive(Serialize, JsonSchema)]
pub struct LaunchPlanPart<'a> {
    /// Whose job it would be.
    pub user: &'a UserName,
    /// Full name of what it would compute on.
    pub target: &'a TargetName,
    /// Zone of the target.
    pub zone: Option<&'a str>,
    /// Working directory.
    pub dir: &'a str,
    /// Whether the users' own script does the work.
    pub mode: Word<LaunchMode>,
    /// What would be run.
    pub argv: Vec<String>,
    /// What its engine would be given; only where one runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub script: Option<String>,
    /// Why its engine would not take it; only where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub refused: Option<String>,
    /// The members of the group that it would be; null where it would be one job.
    pub members: Option<Vec<u32>>,
}

/// What a dry run would start in place of another attempt.
#[derive(Serialize, JsonSchema)]
pub struct SuccessorPlanDocument<'a> {
    /// The plan.
    pub plan: SuccessorPlanPart<'a>,
}

/// What a dry run would start in place of another attempt.
#[derive(Serialize, JsonSchema)]
pub struct SuccessorPlanPart<'a> {
    /// Whose job it would be.
    pub user: &'a UserName,
    /// The attempt it would continue.
    pub parent: JobNumber,
    /// Full name of what it would compute on.
    pub target: &'a TargetName,
    /// Working directory.
    pub dir: &'a str,
    /// Resumes before it.
    pub stage: u32,
    /// What would be run.
    pub argv: Vec<String>,
    /// What its engine would be given; only where one runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub script: Option<String>,
    /// Why its engine would not take it; only where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub refused: Option<String>,
}

/// What a dry run would wait for before anything starts.
#[derive(Serialize, JsonSchema)]
pub struct WaitPlanDocument<'a> {
    /// The plan.
    pub plan: WaitPlanPart<'a>,
}

/// What a dry run would wait for.
#[derive(Serialize, JsonSchema)]
pub struct WaitPlanPart<'a> {
    /// Whose job it would be.
    pub user: &'a UserName,
    /// What would be waited for, in words.
    pub waits_for: &'a str,
}

/// Jobs that were stopped.
#[derive(Serialize, JsonSchema)]
pub struct KilledDocument<'a> {
    /// Each of them.
    pub killed: Vec<KilledPart<'a>>,
}

/// A job that was stopped.
#[derive(Serialize, JsonSchema)]
pub struct KilledPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// Processes that were ended.
    pub processes: usize,
    /// Whether its window was there, and is gone.
    pub window_closed: bool,
}

impl<'a> From<&'a Killed> for KilledPart<'a> {
    fn from(killed: &'a Killed) -> Self {
        Self {
            user: &killed.job.user,
            window: killed.job.window,
            processes: killed.processes,
            window_closed: killed.window,
        }
    }
}

/// The jobs that would be meant, were it no dry run.
#[derive(Serialize, JsonSchema)]
pub struct WouldConcernDocument<'a> {
    /// Each of them.
    pub would: Vec<JobIdPart<'a>>,
}
