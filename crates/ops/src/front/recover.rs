//! Brings a lineage back whose target has to be made usable first: intent, then effect, then the child.
//!
//! The intent stands in the leaf before anything is asked of a control plane, with what it costs; every
//! step after that follows from the state of the target. Whoever finds the intent of a dead owner goes on.

use std::time::Duration;

use tpu_core::model::facts::{ErrorKind, Evidence, Source, TargetState};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Intent, Job, StoredVerdict, Succession};
use tpu_core::model::rules::Action;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::answer::{self, TAKEN};
use tpu_core::plan::budget;
use tpu_engine::provider::{RequestId, Trouble, Verb};
use tpu_engine::runner::{StopOrder, StopPart, Unreached};

use crate::act::launch::plan::Reaction;
use crate::act::provision;
use crate::act::resume::{self, Again};
use crate::act::target_spec::{self, Wish};
use crate::base::ctx::{job_mut, job_of, user_of};
use crate::base::lease::{self, Held};
use crate::base::queue_entries::occupancy;
use crate::base::records;
use crate::observe::fleet::ProviderFacts;
use crate::observe::waits::{self, AskedFor};
use crate::observe::{runners, snapshot};
use crate::{Ctx, Error, Kind};

/// What is left of other jobs has so long to end, and is looked at so often.
const LEAVE: Duration = Duration::from_secs(20);
const LEAVE_POLL: Duration = Duration::from_millis(500);

/// A lease is renewed when it has less than this many seconds left.
const RENEW_S: u64 = 20;

/// Carries out `reapply`, `wait` or `restart` for a lineage, and then resumes it.
pub fn recover(ctx: &Ctx, id: &JobId, action: Action, reaction: &Reaction) -> Result<Again, Error> {
    let lease = lease::take(ctx, id, |job| records::still_holds(job, &reaction.seen))?;
    let request = resume::by_rules(id, Succession::Resume);
    // Nothing is made anew for what could not begin there.
    let may_begin = || {
        resume::could_begin(ctx, &request)?;
        let data = ctx.data()?;
        let most = ctx.settings(Some(user_of(&data, &id.user)?))?.max_parallel;
        occupancy::may_be_brought_back(&data, job_of(&data, id)?, most)?;
        Ok(most)
    };
    let most = may_begin().map_err(|error| resume::not_made(ctx, &lease, reaction, error))?;
    let done = intend(ctx, &lease, (action, most), reaction).and_then(|()| {
        fail::fail_point!("reapply-intended");
        provide(ctx, &lease, action)?;
        fail::fail_point!("reapply-ready");
        others_leave(ctx, &lease)?;
        let data = ctx.data()?;
        let reaction = Reaction { seen: job_of(&data, id)?.clone(), ..reaction.clone() };
        resume::by_rule_under(ctx, &request, &reaction, &lease)
    });
    done.map_err(|error| given_up(ctx, &lease, error))
}

/// Writes the intent and counts the reaction, unless an earlier daemon has. Of two for whom there is one place one is
/// begun.
fn intend(
    ctx: &Ctx,
    lease: &Held,
    (action, most): (Action, Option<u32>),
    reaction: &Reaction,
) -> Result<(), Error> {
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_of(&tx.data, &lease.job)?;
        lease.check(job)?;
        if job.intent.is_none() {
            occupancy::may_be_brought_back(&tx.data, job, most)?;
        }
        let job = job_mut(&mut tx.data, &lease.job)?;
        if job.intent.is_none() {
            job.keep_counts(budget::spent(job, &reaction.progress, reaction.event, now));
        }
        let at = job.intent.as_ref().map_or(now, |intent| intent.at);
        let tpu = job.tpu.clone();
        if job.status.is_live() {
            // Once the target is there again, only the record can tell what had happened to the job.
            job.keep_reached(&reaction.progress);
            let line = format!("{tpu} was not usable any more");
            let rule = if reaction.event == ErrorKind::Preempted { TAKEN } else { "decided" };
            let fact = Evidence::fact(Source::Api, rule, line);
            let verdict = StoredVerdict::new(reaction.event, Some(&fact));
            records::failed(tx, &lease.job, reaction.event, &verdict)?;
        }
        let job = job_mut(&mut tx.data, &lease.job)?;
        job.intent =
            Some(Intent { action: action.as_str().to_owned(), at, by: lease.owner.clone() });
        records::note(
            tx,
            &lease.job,
            action.as_str(),
            format!("of {tpu}, after {}", reaction.event),
        );
        Ok(())
    })
}

/// Waits for what is left of other jobs from which the target was taken as well: each lineage that is
/// brought back stops its own.
fn others_leave(ctx: &Ctx, lease: &Held) -> Result<(), Error> {
    let until = ctx.clock.monotonic() + LEAVE;
    let name = job_of(&*ctx.data()?, &lease.job)?.tpu.clone();
    while ctx.clock.monotonic() < until {
        let left = snapshot::users_of_target(ctx, &*ctx.data()?, &name).left;
        if left.iter().all(|job| *job == lease.job) {
            break;
        }
        may_go_on(ctx, lease)?;
        ctx.clock.sleep(LEAVE_POLL);
    }
    Ok(())
}

/// Makes the target usable.
fn provide(ctx: &Ctx, lease: &Held, action: Action) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, &lease.job)?;
    let name = &job.tpu;
    let seen = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
    if answer::is_taken(&seen) {
        // What attends here to machines that are gone only keeps others from the next ones.
        runners::stop(
            ctx,
            &data,
            job,
            StopOrder { part: StopPart::Here, unreached: Unreached::Refuse },
        )?;
    }
    provision::alone(ctx, name, || {
        provision::unused(ctx, name, Some(&lease.job))?;
        let seen = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
        let spec = target_spec::spec(&data, name, &Wish::default(), &seen)?;
        target_spec::remember(ctx, &spec)?;
        let mut go_on = || may_go_on(ctx, lease);
        if action == Action::Restart && seen.state == TargetState::Ready {
            return provision::turn(ctx, name, Some(&spec.zone), Verb::Reboot, &mut go_on);
        }
        let request = request_of(job);
        if seen.state == TargetState::Ready {
            return provision::make_ready(ctx, &spec, &request, false, &mut go_on).map(drop);
        }
        let since = waits_since(ctx, lease)?;
        let made = provision::make_once(ctx, &spec, &request, &mut go_on);
        let is_answered = match &made {
            Ok(_) => true,
            Err(unmade) => matches!(unmade.trouble, Some(Trouble::NoCapacity | Trouble::Quota)),
        };
        if is_answered {
            let asked = AskedFor { target: name, job: &lease.job, since };
            waits::note(ctx, &data, &asked, made.is_ok());
        }
        made.map(drop).map_err(|unmade| unmade.error)
    })
}

/// Since when the target is asked for this time; notes since when it is in all, which outlives tries that come to
/// nothing.
fn waits_since(ctx: &Ctx, lease: &Held) -> Result<Timestamp, Error> {
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, &lease.job)?;
        lease.check(job)?;
        let since = job.intent.as_ref().map_or(now, |intent| intent.at);
        job.counts_mut().waits_since.get_or_insert(since);
        Ok(since)
    })
}

/// The mark of what is asked for: the same after a crash, another one for the next reaction.
fn request_of(job: &Job) -> RequestId {
    let counts = job.counts();
    let mark = match &job.launch {
        Some(launch) => launch.token.as_str().to_owned(),
        None => job.id().to_string(),
    };
    RequestId(format!("{mark}-{}-{}", counts.capacity, counts.infra))
}

/// Whether the lease is still ours and nobody kills the job; puts the deadline off in time.
fn may_go_on(ctx: &Ctx, lease: &Held) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, &lease.job)?;
    lease.check(job)?;
    if job.is_being_killed() {
        return Err(Error::refused(format!("{} is being killed", lease.job))
            .hint("its target is left as it is"));
    }
    let left = job.lease.as_ref().map_or(0, |held| held.until.seconds_since(ctx.clock.now()));
    if left < RENEW_S { lease::renew(ctx, lease) } else { Ok(()) }
}

/// What did not succeed is not begun any more: the rules decide again, with back-off. What could not be
/// written stays begun.
fn given_up(ctx: &Ctx, lease: &Held, error: Error) -> Error {
    let written = ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, &lease.job)?;
        lease.check(job)?;
        lease::free(job);
        // While its owner lives an intent is his: kept after a failed call, nobody would ever go on.
        let is_over = !matches!(error.kind, Kind::State | Kind::Interrupted);
        if is_over && !job.is_being_killed() && !records::needs_login(tx, &lease.job, &error)? {
            let job = job_mut(&mut tx.data, &lease.job)?;
            job.intent = None;
            let why = error.message.lines().next().unwrap_or_default();
            records::note(tx, &lease.job, "not-resumed", why.to_owned());
        }
        Ok(())
    });
    // The lease may be lost or the record gone; the first error says more.
    drop(written);
    error
}
