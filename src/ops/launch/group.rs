//! Starts the jobs of a group: all are claimed in one transaction, then handed to their runner together. Each is a
//! job as any other from there on: what fails to be submitted is that member's failed launch, and what a crash
//! leaves is settled as for single launches.

use std::time::Duration;

use crate::model::ids::{JobId, JobNumber, LaunchToken, TargetName};
use crate::model::job::{Handle, Job};
use crate::model::member::{Array, Member};
use crate::model::spec::JobSpec;
use crate::ops::{Ctx, Error, Kind, runners};
use crate::runner::{Attempt, Ground};

use super::attempt::{self, Claim, Launched};
use super::plan::LaunchPlan;
use super::unsubmitted;

/// The jobs of a group, as far as they could be started.
#[derive(Debug)]
pub struct LaunchedGroup {
    /// The number of the group, as that of a job.
    pub group: JobId,
    /// What they compute on.
    pub target: TargetName,
    /// The members that have started.
    pub members: Vec<(Member, Launched)>,
    /// Those that have not, each with the reason.
    pub failed: Vec<(Member, Error)>,
    /// Those of which that is not known, or could not be written down, each with the reason. None of them may be
    /// started once more: the next look settles what they are.
    pub unsure: Vec<(Member, Error)>,
}

impl LaunchedGroup {
    /// Sorts a member by what came of it: whose record is still open may have started, whatever went wrong.
    fn sort(&mut self, ctx: &Ctx, one: &Claimed, settled: Result<Launched, Error>) {
        let error = match settled {
            Ok(started) => return self.members.push((one.member, started)),
            Err(error) => error,
        };
        let is_open = ctx.data().map_or(true, |data| {
            data.job(&one.job.id())
                .is_some_and(|job| job.status.is_live() && !job.is_being_killed())
        });
        let list = if is_open { &mut self.unsure } else { &mut self.failed };
        list.push((one.member, error));
    }
}

/// A member that is claimed: what it is to do, and its record.
struct Claimed {
    member: Member,
    plan: LaunchPlan,
    job: Job,
}

/// Starts the group that a plan has.
pub fn start(ctx: &Ctx, plan: &LaunchPlan) -> Result<LaunchedGroup, Error> {
    let Some(array) = &plan.spec.array else {
        return Err(Error::usage("a group has members").hint("as in: --array 0-3"));
    };
    let runner = runners::of_target(ctx, &*ctx.data()?, &plan.target)?;
    let tokens: Vec<LaunchToken> =
        array.indexes().iter().map(|_| LaunchToken::new(ctx.random.hex(16))).collect();
    let first = tokens.first().expect("an array has members");
    let ground = runner.ground(&plan.session, first)?;
    let (group, claimed) = claim(ctx, plan, (array, &tokens), &ground)?;
    fail::fail_point!("launch-claimed");

    let mut launched = LaunchedGroup {
        group: JobId::new(plan.user.clone(), group),
        target: plan.target.name.clone(),
        members: Vec::new(),
        failed: Vec::new(),
        unsure: Vec::new(),
    };
    let mut ready: Vec<&Claimed> = Vec::new();
    let all: Vec<&Job> = claimed.iter().map(|one| &one.job).collect();
    unsubmitted::while_at(ctx, &all, || {
        let mut staged = None;
        for one in &claimed {
            match attempt::prepare(ctx, &one.plan, &one.job, (&*runner, staged)) {
                Ok(()) => {
                    staged = one.job.stage_dir.as_deref();
                    ready.push(one);
                }
                Err(error) => launched.sort(ctx, one, Err(error)),
            }
        }
    });
    let mut waiting = Waiting { ctx, said: ctx.clock.monotonic(), claimed: &claimed, done: 0 };
    let jobs: Vec<&Job> = ready.iter().map(|one| &one.job).collect();
    let stand = unsubmitted::still_stand(ctx, &jobs)?;
    let mut stand = stand.into_iter();
    ready.retain(|one| {
        let stands = stand.next().unwrap_or_default();
        if !stands {
            launched.failed.push((one.member, unsubmitted::fallen(&one.job)));
        }
        stands
    });
    let at_once = array.at_once();
    let attempts = ready.iter().map(|one| attempt::attempt(ctx, &one.plan, &one.job));
    let attempts: Vec<Attempt<'_>> =
        attempts.map(|attempt| Attempt { at_once, ..attempt }).collect();
    runner.submit_all(&attempts, &mut |place, submitted| {
        let Some(one) = ready.get(place) else { return };
        let settled = attempt::settle(ctx, &one.plan, &one.job, (&*runner, submitted));
        launched.sort(ctx, one, settled);
        waiting.done += 1;
        waiting.say_again();
    });
    if launched.members.is_empty()
        && launched.unsure.is_empty()
        && let Some((_, error)) = launched.failed.first()
    {
        let (group, why) = (&launched.group, &error.message);
        let hint = match error.kind {
            // There is no record that could be run again.
            Kind::Usage => error.advice().to_owned(),
            _ => format!("once that is mended: tpu rerun {group}"),
        };
        let error = Error::new(error.kind, format!("no member of {group} was started: {why}"));
        return Err(error.hint(hint));
    }
    Ok(launched)
}

/// The one transaction of all members: the number of the group, then a record for each.
fn claim(
    ctx: &Ctx,
    plan: &LaunchPlan,
    (array, tokens): (&Array, &[LaunchToken]),
    Ground { handle, highest }: &Ground,
) -> Result<(JobNumber, Vec<Claimed>), Error> {
    ctx.transact(|tx| {
        let now = ctx.clock.now();
        attempt::still_right(tx, plan, now)?;
        let group = attempt::next_number(tx, plan, *highest)?;
        // Each window lays its own copy of the code ready; at an engine all members run from one.
        let id = JobId::new(plan.user.clone(), group);
        let stage_dir = match (handle, tokens.first()) {
            (Handle::Engine { .. }, Some(first)) => {
                Some(attempt::stage_dir(plan, &attempt::directory_name(&id, first, now)))
            }
            _ => plan.stage_dir.clone(),
        };
        let mut claimed = Vec::new();
        for (index, token) in array.indexes().iter().zip(tokens) {
            let member = Member { group, index: *index };
            let spec = JobSpec { array: None, member: Some(member), ..plan.spec.clone() };
            let plan = LaunchPlan { spec, stage_dir: stage_dir.clone(), ..plan.clone() };
            let handle = &handle.beside(token);
            let claim = Claim { token, handle, highest: *highest, now, lease: None };
            let job = attempt::append(tx, &plan, &claim)?;
            claimed.push(Claimed { member, plan, job });
        }
        Ok((group, claimed))
    })
}

/// The members that have not been submitted yet.
struct Waiting<'a> {
    ctx: &'a Ctx,
    /// When it was last said that they are about to be.
    said: Duration,
    claimed: &'a [Claimed],
    done: usize,
}

impl Waiting<'_> {
    /// Says from time to time that somebody is still at it: a launch of which nothing is heard is given up by
    /// whoever looks next.
    fn say_again(&mut self) {
        let now = self.ctx.clock.monotonic();
        if now.saturating_sub(self.said) < unsubmitted::SAY_AGAIN || self.done >= self.claimed.len()
        {
            return;
        }
        self.said = now;
        unsubmitted::say_again(self.ctx, self.claimed.iter().map(|one| &one.job));
    }
}
