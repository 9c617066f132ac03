//! Starts the jobs of a group: all are claimed in one transaction, then handed to their runner together. Each is a
//! job as any other from there on: what fails to be submitted is that member's failed launch, and what a crash
//! leaves is settled as for single launches.

use std::time::Duration;

use crate::base::launch_paths::{directory_name, stage_dir};
use crate::base::lease;
use crate::observe::runners;
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName};
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::member::{Array, Member};
use tpu_core::model::spec::JobSpec;
use tpu_core::model::variables::Secrets;
use tpu_core::text::counted;
use tpu_engine::runner::{Attempt, Ground, Preparation, Runner};

use super::attempt::{self, Claim, Laid, Launched};
use super::plan::LaunchPlan;
use super::settle::{self, Came, Outcome};
use super::{shares_copy, unsubmitted};

/// Where members are submitted one by one, what came of them is written down so often.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

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

/// Nobody reads more of the members that have not started.
const MOST_NAMED: usize = 10;

impl LaunchedGroup {
    /// In words: how many have started, on what, and under which numbers.
    pub fn in_words(&self) -> String {
        let number = |of: &(Member, Launched)| of.1.job.window;
        let which = match self.members.as_slice() {
            [only] => format!(": member {} is job {}", only.0, number(only)),
            [first, .., last] => {
                let (from, to) = (number(first), number(last));
                format!(": members {} to {} are jobs {from} to {to}", first.0, last.0)
            }
            [] => String::new(),
        };
        let jobs = counted(self.members.len(), "job");
        format!("Started {jobs} of group {} on {}{which}.", self.group, self.target)
    }

    /// In lines: which members have not started, and of which that is not known.
    pub fn remarks(&self) -> Vec<String> {
        let lists =
            [(&self.failed, "were not started"), (&self.unsure, "may have started: tpu check")];
        let mut lines = Vec::new();
        for (list, what) in lists {
            let named = list.iter().take(MOST_NAMED);
            lines.extend(named.map(|(member, error)| format!("{member}: {error}")));
            if list.len() > MOST_NAMED {
                lines.push(format!("and {} more {what}", list.len() - MOST_NAMED));
            }
        }
        lines
    }

    /// Sorts a member by what came of it: whose record is still open may have started, whatever went wrong.
    fn sort(&mut self, data: Option<&Data>, one: &Claimed, settled: Result<Launched, Error>) {
        let error = match settled {
            Ok(started) => return self.members.push((one.member, started)),
            Err(error) => error,
        };
        let is_open = data.is_none_or(|data| {
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
    let secrets = attempt::secrets_of(ctx, plan)?;
    let runner = runners::of_target(ctx, &*ctx.data()?, &plan.target)?;
    let tokens: Vec<LaunchToken> =
        array.indexes().iter().map(|_| LaunchToken::new(ctx.random.hex(16))).collect();
    let first = tokens.first().expect("an array has members");
    let ground = runner.ground(&plan.session, first)?;
    plan.turn.as_ref().map_or(Ok(()), |turn| turn.stays_in_server(&ground.handle))?;
    fail::fail_point!("launch-planned");
    let (group, claimed) = claim(ctx, plan, (array, &tokens), &ground)?;
    fail::fail_point!("launch-claimed");

    let mut launched = LaunchedGroup {
        group: JobId::new(plan.user.clone(), group),
        target: plan.target.name.clone(),
        members: Vec::new(),
        failed: Vec::new(),
        unsure: Vec::new(),
    };
    let all: Vec<&Job> = claimed.iter().map(|one| &one.job).collect();
    for one in &claimed {
        attempt::warn_of_devices(ctx, &one.plan, &one.job);
    }
    let env = claimed.first().map(|one| attempt::env_of(&one.plan, &one.job));
    let env = env.unwrap_or_default();
    let prepared =
        unsubmitted::while_at(ctx, &all, || attempt::prepare(ctx, (plan, &env), &all, &*runner));
    let laid = prepared.and_then(|()| match claimed.first() {
        Some(one) => {
            let set_up = attempt::set_up(ctx, &one.plan, &one.job)?;
            Laid::of(ctx, set_up.as_ref(), &*runner)
        }
        None => Ok(Laid::default()),
    });
    let mut settling = Settling::new(ctx, &*runner, &claimed);
    match laid {
        Err(error) => {
            for one in &claimed {
                settling.came(one, Outcome::Failed(error.again()));
            }
        }
        Ok(laid) => {
            let preparation = laid.preparation();
            submit(ctx, &mut settling, (&secrets, array.at_once(), preparation.as_ref()))?;
        }
    }
    settling.into(&mut launched);
    if launched.members.is_empty()
        && launched.unsure.is_empty()
        && let Some((_, error)) = launched.failed.first()
    {
        let (group, why) = (&launched.group, &error.message);
        let hint = match error.kind {
            // There is no record that could be run again.
            Kind::Usage => error.advice().to_owned(),
            _ => format!("once that is repaired: tpu rerun {group}"),
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
    ground: &Ground,
) -> Result<(JobNumber, Vec<Claimed>), Error> {
    let owner = lease::me(&ctx.env);
    ctx.transact(|tx| {
        let now = ctx.clock.now();
        let plan = &attempt::still_right(tx, plan, now)?;
        let Ground { handle, taken } = ground;
        let group = attempt::next_number(tx, plan, taken)?;
        let is_copied = plan.stage_dir.is_none() && plan.spec.execution.workplace.is_none();
        let shares = plan.mode == LaunchMode::Native && is_copied && shares_copy(&plan.spec);
        let stage_dir = match tokens.first() {
            Some(first) if shares => {
                let name = directory_name(group, first, now);
                Some(stage_dir(&plan.roots, &plan.user, &name))
            }
            _ => plan.stage_dir.clone(),
        };
        let mut claimed = Vec::new();
        for (index, token) in array.indexes().iter().zip(tokens) {
            let member = Member { group, index: *index };
            let spec = JobSpec { array: None, member: Some(member), ..plan.spec.clone() };
            let (stage_dir, turn) = (stage_dir.clone(), None);
            let plan = LaunchPlan { spec, stage_dir, turn, ..plan.clone() };
            let handle = &handle.beside(token);
            let claim = Claim { owner: &owner, token, handle, taken, now, lease: None };
            let job = attempt::append(tx, &plan, &claim)?;
            claimed.push(Claimed { member, plan, job });
        }
        Ok((group, claimed))
    })
}

/// Submits the members that still stand.
fn submit(
    ctx: &Ctx,
    settling: &mut Settling<'_>,
    (secrets, at_once, preparation): (&Secrets, Option<u32>, Option<&Preparation>),
) -> Result<(), Error> {
    let (claimed, runner) = (settling.claimed, settling.runner);
    let jobs: Vec<&Job> = claimed.iter().map(|one| &one.job).collect();
    let stand = unsubmitted::still_stand(ctx, &jobs)?;
    let (ready, fallen): (Vec<_>, Vec<_>) =
        claimed.iter().zip(stand).partition(|(_, stands)| *stands);
    settling.fallen = fallen.into_iter().map(|(one, _)| one).collect();
    let attempts = ready.iter().map(|(one, _)| attempt::attempt(ctx, &one.plan, &one.job));
    let mut attempts: Vec<Attempt<'_>> = attempts.collect::<Result<_, Error>>()?;
    for attempt in &mut attempts {
        attempt.at_once = at_once;
        attempt.secrets = attempt::without_devices(secrets, attempt.job);
        attempt.preparation = preparation.cloned();
    }
    runner.submit_all(&attempts, &mut |place, said| {
        let Some((one, _)) = ready.get(place) else { return };
        settling.came(one, Outcome::of(&one.job, said));
        settling.say_again();
    });
    Ok(())
}

/// What comes of the members, one after the other, and is written down together.
struct Settling<'a> {
    ctx: &'a Ctx,
    runner: &'a dyn Runner,
    claimed: &'a [Claimed],
    /// When it was last said that those which have not been submitted are about to be.
    said: Duration,
    /// When something was last written down.
    written: Duration,
    /// What is still to be written down.
    came: Vec<(&'a Claimed, Came<'a>)>,
    settled: Vec<(&'a Claimed, Result<Launched, Error>)>,
    /// Those that were killed or given up before they were submitted.
    fallen: Vec<&'a Claimed>,
}

impl<'a> Settling<'a> {
    fn new(ctx: &'a Ctx, runner: &'a dyn Runner, claimed: &'a [Claimed]) -> Self {
        let now = ctx.clock.monotonic();
        let (came, settled, fallen) = (Vec::new(), Vec::new(), Vec::new());
        Self { ctx, runner, claimed, said: now, written: now, came, settled, fallen }
    }

    /// Takes what came of a member. Where the next ones take their time, it is written down.
    fn came(&mut self, one: &'a Claimed, outcome: Outcome) {
        self.came.push((one, Came { plan: &one.plan, job: &one.job, outcome }));
        let now = self.ctx.clock.monotonic();
        if now.saturating_sub(self.written) >= WRITTEN_EVERY {
            self.write();
        }
    }

    fn write(&mut self) {
        let (members, came): (Vec<_>, Vec<_>) = std::mem::take(&mut self.came).into_iter().unzip();
        let settled = settle::settle(self.ctx, self.runner, came);
        self.settled.extend(members.into_iter().zip(settled));
        self.written = self.ctx.clock.monotonic();
    }

    /// Writes the rest down, and sorts all.
    fn into(mut self, launched: &mut LaunchedGroup) {
        self.write();
        let data = self.ctx.data();
        for (one, settled) in self.settled {
            launched.sort(data.as_deref().ok(), one, settled);
        }
        let fallen = self.fallen.into_iter();
        launched.failed.extend(fallen.map(|one| (one.member, unsubmitted::fallen(&one.job))));
    }

    /// Says from time to time that somebody is still at it: a launch of which nothing is heard is given up by
    /// whoever looks next.
    fn say_again(&mut self) {
        let now = self.ctx.clock.monotonic();
        let done = self.settled.len() + self.came.len();
        if now.saturating_sub(self.said) < unsubmitted::SAY_AGAIN || done >= self.claimed.len() {
            return;
        }
        self.said = now;
        unsubmitted::say_again(self.ctx, self.claimed.iter().map(|one| &one.job));
    }
}
