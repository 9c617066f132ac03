//! Makes a target usable, or anew, whatever state it is in: one step at a time, each from what the control
//! plane says at that moment. So whoever begins in the middle, after a crash, just goes on.
//!
//! One process at a time works on a target; the lock dies with it.

use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::facts::{QueuedFact, QueuedState, TargetFact, TargetState, TargetStep};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::{self, Timestamp};
use tpu_engine::provider::adopt::{self, Created};
use tpu_engine::provider::retry::persistently;
use tpu_engine::provider::{
    Operation, Progress, Provider, ProviderError, RequestId, TargetAt, TargetSpec, Trouble, Verb,
};

use tpu_core::plan::answer;

use super::target_spec::{Wish, remember, spec};
use super::{outlook, reconcile, record_facts};
use crate::base::ctx::job_mut;
use crate::base::{records, watch};
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot::LookMemory;
use crate::observe::{doors, snapshot};
use crate::{Ctx, Error};

/// Nothing that a control plane does takes longer.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Works on a target alone; refused while another process does.
pub fn alone<T>(
    ctx: &Ctx,
    name: &TargetName,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    ctx.store.on_target(name, work)?.map_err(|holder| {
        Error::refused(format!("{name} is being worked on by {holder}"))
            .hint(format!("`tpu check-status {name}` shows how it is"))
    })?
}

/// Refuses while a live job of another lineage uses the target.
pub fn unused(ctx: &Ctx, name: &TargetName, but: Option<&JobId>) -> Result<(), Error> {
    let data = ctx.data()?;
    let live = snapshot::users_of_target(ctx, &data, name).live;
    match live.iter().find(|job| Some(*job) != but) {
        Some(job) => Err(Error::refused(format!("{name} is in use by {job}"))
            .hint(format!("kill it first: tpu kill w={} {}", job.window, job.user))),
        None => Ok(()),
    }
}

/// Callbacks around each step of a provision: one that may end it, and one that hears how the target is.
pub struct Steps<'a> {
    /// May end it.
    pub go_on: &'a mut dyn FnMut() -> Result<(), Error>,
    /// Is told each new state.
    pub tell: &'a mut dyn FnMut(&TargetFact),
}

/// Why a target was not brought to READY.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The control plane would not.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] Error),
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Provider(error) => error.into(),
            Stop::Other(error) => error,
        }
    }
}

/// Brings a target to READY. `anew` deletes it first even if it is; `go_on` is asked before each step
/// and may end it. The caller works on the target [`alone`].
pub fn make_ready(
    ctx: &Ctx,
    spec: &TargetSpec,
    request: &RequestId,
    anew: bool,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<TargetFact, Error> {
    let mut steps = Steps { go_on, tell: &mut |_| () };
    Ok(bring(ctx, spec, request, anew, &mut steps)?)
}

/// Why a target was not made.
#[derive(Debug)]
pub(crate) struct Unmade {
    /// What was wrong at its control plane, where that is it.
    pub trouble: Option<Trouble>,
    /// For people.
    pub error: Error,
}

impl From<Error> for Unmade {
    fn from(error: Error) -> Self {
        Self { trouble: None, error }
    }
}

/// The same as [`make_ready`] where it matters what kept it from being made.
pub(crate) fn make_once(
    ctx: &Ctx,
    spec: &TargetSpec,
    request: &RequestId,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<TargetFact, Unmade> {
    let mut steps = Steps { go_on, tell: &mut |_| () };
    bring(ctx, spec, request, false, &mut steps).map_err(|stop| match stop {
        Stop::Provider(error) => Unmade { trouble: Some(error.trouble), error: error.into() },
        Stop::Other(error) => error.into(),
    })
}

fn bring(
    ctx: &Ctx,
    spec: &TargetSpec,
    request: &RequestId,
    is_asked_anew: bool,
    steps: &mut Steps<'_>,
) -> Result<TargetFact, Stop> {
    let mut deadline = ctx.clock.monotonic() + PATIENCE;
    let mut anew = is_asked_anew;
    let (mut wait, last_wait) = ctx.provider_of(&spec.name)?.pace();
    let mut told = String::new();
    let mut asked = 0;
    loop {
        (steps.go_on)()?;
        let fact = how_is(ctx, &spec.name)?;
        if told != fact.raw_state {
            told.clone_from(&fact.raw_state);
            (steps.tell)(&fact);
        }
        let step = match fact.state.step() {
            TargetStep::Launch | TargetStep::Start if anew => TargetStep::DeleteThenCreate,
            step => step,
        };
        // A queued request waits as long as it takes; what comes after that has its own time.
        let queued = fact.queued.as_ref();
        if queued.is_some_and(|queued| queued.state == QueuedState::Waiting) {
            deadline = ctx.clock.monotonic() + PATIENCE;
        }
        if ctx.clock.monotonic() > deadline && step != TargetStep::Launch {
            return Err(Error::unreachable(format!(
                "{} is {} for longer than {} min",
                spec.name,
                fact.raw_state,
                PATIENCE.as_secs() / 60
            ))
            .hint("nothing more was done; look at it in the console of the cloud")
            .into());
        }
        match step {
            TargetStep::Launch => return Ok(fact),
            TargetStep::Wait => {
                ctx.clock.sleep(wait);
                wait = (wait * 2).min(last_wait);
            }
            TargetStep::DeleteThenCreate => {
                if is_asked_anew {
                    unused(ctx, &spec.name, None)?;
                }
                let at = seen_at(spec, &fact);
                note_machine(ctx, &fact)?;
                call(ctx, &spec.name, steps.go_on, |cloud| cloud.delete(&at, true))?;
                anew = false;
                fail::fail_point!("reapply-deleted");
                // What has just been asked for and is refused is not asked for again in the same breath.
                if let Some(ended) = queued.filter(|queued| queued.state == QueuedState::Ended)
                    && asked > 0
                {
                    return Err(refused(&spec.name, ended).into());
                }
            }
            TargetStep::Create => {
                anew = false;
                if is_there_after_all(ctx, spec)? {
                    ctx.clock.sleep(wait);
                    continue;
                }
                let request = numbered(request, asked);
                let provider = ctx.provider_of(&spec.name)?;
                let asked_for = TargetSpec { name: spec.name.of_provider(), ..spec.clone() };
                let created = persistently(&*ctx.clock, &*ctx.random, || {
                    adopt::create(&*provider, &asked_for, &request)
                })?;
                // Should it be gone again, asking for the same would answer that it was done.
                asked += 1;
                fail::fail_point!("reapply-asked");
                if let Created::Operation(operation) = created {
                    finish(ctx, &spec.name, steps.go_on, operation)?;
                }
                fail::fail_point!("reapply-created");
            }
            TargetStep::Start => {
                let at = seen_at(spec, &fact);
                call(ctx, &spec.name, steps.go_on, |cloud| cloud.start(&at))?;
            }
            TargetStep::Nothing => {
                return Err(unknown(&spec.name, &fact.raw_state).into());
            }
        }
    }
}

/// Nobody knows how a target is, so nothing can be done to it.
pub(crate) fn unknown(name: &TargetName, raw_state: &str) -> Error {
    Error::unreachable(format!("the state of {name} is unknown: {raw_state}"))
        .hint("nothing was done; try again when its control plane answers")
}

/// That a queued request has ended without its target: its place, its quota or its time is used up.
fn refused(name: &TargetName, ended: &QueuedFact) -> ProviderError {
    let message = format!("its queued resource {} ended as {}", ended.name, ended.raw_state);
    ProviderError::new(Trouble::NoCapacity, format!("create {name}"), message)
}

/// Where the target is that was seen.
fn seen_at(spec: &TargetSpec, fact: &TargetFact) -> TargetAt {
    let zone = fact.zone.clone().unwrap_or_else(|| spec.zone.clone());
    TargetAt::new(spec.name.of_provider(), Some(zone))
}

/// Writes into the records of the jobs on a target which machine it has, before that is deleted: nobody
/// could tell afterwards that the next one of its name is not the one that they began on. What is launched
/// while it is being deleted may begin on either, and stays unknown.
fn note_machine(ctx: &Ctx, fact: &TargetFact) -> Result<(), Error> {
    let of = |data: &Data| -> Vec<(JobId, Timestamp)> {
        data.jobs()
            .filter_map(|job| Some((job.id(), answer::machine_until_now(job, fact)?)))
            .collect()
    };
    if of(&*ctx.data()?).is_empty() {
        return Ok(());
    }
    ctx.transact(|tx| {
        for (id, created) in of(&tx.data) {
            if let Some(launch) = job_mut(&mut tx.data, &id)?.launch.as_mut() {
                launch.machine = Some(created);
            }
            let text = format!("{} was created at {}", fact.name, created.to_rfc3339());
            records::note(tx, &id, "machine", text);
        }
        Ok(())
    })
}

/// Asks about a target that is in no list: only both together say that it is gone.
fn is_there_after_all(ctx: &Ctx, spec: &TargetSpec) -> Result<bool, Stop> {
    let provider = ctx.provider_of(&spec.name)?;
    let at = TargetAt::new(spec.name.of_provider(), Some(spec.zone.clone()));
    let asked = || provider.describe(&at);
    match persistently(&*ctx.clock, &*ctx.random, asked) {
        Ok(_) => Ok(true),
        Err(error) if error.trouble == Trouble::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The mark of the n-th creation for one request. Whoever begins again after a crash counts from the first
/// one: what was done is answered at once, and what was begun is waited for.
fn numbered(request: &RequestId, asked: u32) -> RequestId {
    if asked == 0 { request.clone() } else { RequestId(format!("{request}.{asked}")) }
}

/// What a person can do to a target, beside making it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Take it away for good.
    Delete,
    /// Start it.
    Start,
    /// Stop it; it keeps its name and its disk.
    Stop,
    /// Restart its machines.
    Restart,
}

impl Change {
    /// As typed.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }
}

/// How often a person wants a target to be asked for while there is no capacity.
#[derive(Clone, Copy, Debug)]
pub struct Insistence {
    /// At most so many times.
    pub times: u32,
    /// So far apart.
    pub every: Duration,
}

impl Insistence {
    /// Once.
    pub const ONCE: Self = Self { times: 1, every: Duration::ZERO };
}

/// Is told how far a target is, a line for each step.
pub type Tell<'a> = &'a mut dyn FnMut(&str);

/// Makes a target usable for a person: creates it if it is not there, or waits for it; `anew` deletes it
/// first.
pub fn provide(ctx: &Ctx, name: &TargetName, wish: &Wish, anew: bool) -> Result<TargetFact, Error> {
    insist(ctx, name, wish, (anew, Insistence::ONCE), &mut |_| ())
}

/// Makes a target usable as it is registered, and tells each step until it is.
pub(super) fn make_usable(ctx: &Ctx, name: &TargetName, tell: Tell<'_>) -> Result<(), Error> {
    insist(ctx, name, &Wish::default(), (false, Insistence::ONCE), tell).map(drop)
}

/// The same, as often as somebody wants, and with word of how it goes. Noted and remembered before it is
/// asked for.
pub fn insist(
    ctx: &Ctx,
    name: &TargetName,
    wish: &Wish,
    (anew, insistence): (bool, Insistence),
    tell: Tell<'_>,
) -> Result<TargetFact, Error> {
    is_watched(ctx, name)?;
    reconcile::reconcile(ctx)?;
    alone(ctx, name, || {
        let data = ctx.data()?;
        if anew {
            unused(ctx, name, None)?;
        }
        let seen = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
        if answer::is_taken(&seen) {
            // Once the target is there again, nobody could tell any more that it was taken from its job.
            let survey = outlook::survey(ctx, &mut LookMemory::default(), snapshot::ASKED_AT_MOST)?;
            record_facts::record_facts(ctx, &survey)?;
            let data = ctx.data()?;
            if let Some(job) = data.jobs().find(|job| job.tpu == *name && job.status.is_live()) {
                return Err(Error::refused(format!(
                    "{name} was taken from {}, which cannot be seen from here",
                    job.id()
                ))
                .hint("do it where that job was started; the daemon there does so by itself"));
            }
        }
        let seen_nothing = seen.state == TargetState::Unknown && data.target(name).is_none();
        let spec = spec(&data, name, wish, &seen)?;
        remember(ctx, &spec)?;
        let verb = if anew { "reapply" } else { "apply" };
        let was = if seen_nothing { "new" } else { seen.raw_state.as_str() };
        watch::note(ctx, &ctx.actor, verb, &format!("{name}, which is {was}"))?;
        let mut left = insistence.times;
        let mut anew = anew;
        loop {
            left = left.saturating_sub(1);
            let request = RequestId(ctx.random.hex(16));
            let mut say = |fact: &TargetFact| tell(&progress(ctx, fact));
            let mut steps = Steps { go_on: &mut || Ok(()), tell: &mut say };
            match bring(ctx, &spec, &request, anew, &mut steps) {
                Ok(fact) => return Ok(fact),
                Err(Stop::Provider(error)) if error.trouble == Trouble::NoCapacity && left > 0 => {
                    let every = insistence.every.as_secs();
                    let tries = tpu_core::text::counted(left as usize, "more try");
                    tell(&format!("{error}; asked again in {every} s, {tries} at most"));
                    ctx.clock.sleep(insistence.every);
                    // What was there is deleted by now.
                    anew = false;
                }
                Err(stop) => return Err(stop.into()),
            }
        }
    })
}

/// How a target is, for somebody who waits for it.
fn progress(ctx: &Ctx, fact: &TargetFact) -> String {
    let now = ctx.clock.now();
    let since = fact.since.map(|since| format!(" for {}", time::age(now.seconds_since(since))));
    let queued = fact
        .queued
        .as_ref()
        .map(|queued| format!(" (queued resource {}: {})", queued.name, queued.raw_state));
    let stuck = fact.stuck_for_s(now).map_or("", |_| ", longer than it should");
    format!(
        "{} is {}{}{stuck}{}",
        fact.name,
        fact.raw_state,
        since.unwrap_or_default(),
        queued.unwrap_or_default()
    )
}

/// Changes a target for a person; returns what it is afterwards.
pub fn change(ctx: &Ctx, target: &Target, change: Change) -> Result<TargetFact, Error> {
    let name = &target.name;
    may_change(ctx, name, change)?;
    alone(ctx, name, || {
        if change != Change::Start {
            unused(ctx, name, None)?;
        }
        watch::note(ctx, &ctx.actor, change.verb(), name.as_str())?;
        let verb = match change {
            Change::Delete => Verb::Delete,
            Change::Start => Verb::Start,
            Change::Stop => Verb::Stop,
            Change::Restart => Verb::Reboot,
        };
        let seen = how_is(ctx, name)?;
        if change == Change::Delete {
            note_machine(ctx, &seen)?;
        }
        let zone = seen.zone.or_else(|| target.zone.clone());
        turn(ctx, name, zone.as_deref(), verb, &mut || Ok(()))?;
        after(ctx, name, verb)
    })
}

/// Why nothing of a target is there to be deleted, where that is so; refuses one about which nobody can be asked.
pub fn nothing_to_delete(ctx: &Ctx, target: &Target) -> Result<Option<String>, Error> {
    let name = &target.name;
    is_watched(ctx, name)?;
    let seen = how_is(ctx, name)?;
    if seen.zone.is_none() && target.zone.is_none() && seen.state == TargetState::Unknown {
        let what = format!(
            "{name} is registered without its zone, so nobody can be asked whether it is there"
        );
        return Err(Error::refused(what).hint(format!(
            "say it: tpu register {name} --zone ZONE; or forget it: tpu del-registered {name}"
        )));
    }
    Ok((seen.state == TargetState::Gone).then(|| {
        format!(
            "to forget what is known of it: tpu del-registered {name}; to have a machine made: tpu apply {name}"
        )
    }))
}

/// Whether a target can be deleted without a loss: it was preempted or does not exist, and no job is live on it.
pub fn loses_nothing(ctx: &Ctx, name: &TargetName) -> Result<bool, Error> {
    let is_lost = matches!(how_is(ctx, name)?.state, TargetState::Preempted | TargetState::Gone);
    Ok(is_lost && unused(ctx, name, None).is_ok())
}

/// Refuses a change of what nobody watches or somebody uses.
pub fn may_change(ctx: &Ctx, name: &TargetName, change: Change) -> Result<(), Error> {
    is_watched(ctx, name)?;
    reconcile::reconcile(ctx)?;
    if change == Change::Start { Ok(()) } else { unused(ctx, name, None) }
}

/// What a target is after a change. A deletion is complete only when target and request are both gone.
fn after(ctx: &Ctx, name: &TargetName, verb: Verb) -> Result<TargetFact, Error> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let (mut wait, last_wait) = ctx.provider_of(name)?.pace();
    loop {
        let fact = how_is(ctx, name)?;
        let is_going = verb == Verb::Delete && fact.state == TargetState::Deleting;
        if !is_going || ctx.clock.monotonic() > deadline {
            return Ok(fact);
        }
        ctx.clock.sleep(wait);
        wait = (wait * 2).min(last_wait);
    }
}

/// How a target is, by its provider's word.
fn how_is(ctx: &Ctx, name: &TargetName) -> Result<TargetFact, Error> {
    let data = ctx.data()?;
    let said = ProviderFacts::ask_of(ctx, &data, name);
    let fact = said.fact(&data, name);
    match said.login(&data, name).filter(|_| fact.state == TargetState::Unknown) {
        Some(error) => Err(error.clone().into()),
        None => Ok(fact),
    }
}

/// Refuses what has no provider.
pub(crate) fn is_watched(ctx: &Ctx, name: &TargetName) -> Result<(), Error> {
    let data = ctx.data()?;
    if let Some(target) = data.target(name) {
        if target.is_here() {
            return Err(Error::refused("`local` is this machine and always there")
                .hint("run there with: tpu run local -- COMMAND"));
        }
        let kind = ctx.kinds.of(&target).map_err(|unknown| doors::unusable(name, &unknown))?;
        // Whatever else has this name at some provider, it is another target.
        if target.machines != Machines::Provided {
            let what = format!("{name} is {}: nobody makes it or takes it away", kind.in_words());
            return Err(Error::refused(what).hint("its jobs: `tpu kill`, `tpu resume`"));
        }
    }
    if ctx.places().of(&data, name).name.is_none() {
        let doing = format!("change {name}");
        return Err(ProviderError::new(Trouble::NoProvider, doing, "no cloud is set up").into());
    }
    Ok(())
}

/// One change of a target, until it is done. The caller works on the target [`alone`].
pub fn turn(
    ctx: &Ctx,
    name: &TargetName,
    zone: Option<&str>,
    verb: Verb,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    if verb == Verb::Reboot && !ctx.provider_of(name)?.can_reboot() {
        turn(ctx, name, zone, Verb::Stop, go_on)?;
        return turn(ctx, name, zone, Verb::Start, go_on);
    }
    let at = &TargetAt::new(name.of_provider(), zone.map(str::to_owned));
    let changed = call(ctx, name, go_on, |cloud| match verb {
        Verb::Delete => cloud.delete(at, true),
        Verb::Start => cloud.start(at),
        Verb::Stop => cloud.stop(at),
        Verb::Reboot => cloud.reboot(at),
        Verb::Create => {
            Err(ProviderError::new(Trouble::User, "create", "it takes more than a name"))
        }
    });
    Ok(changed?)
}

/// Makes a call, and waits until what it began has ended.
fn call(
    ctx: &Ctx,
    name: &TargetName,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
    ask: impl Fn(&dyn Provider) -> Result<Operation, ProviderError>,
) -> Result<(), Stop> {
    let provider = ctx.provider_of(name)?;
    let operation = persistently(&*ctx.clock, &*ctx.random, || ask(&*provider))?;
    finish(ctx, name, go_on, operation)
}

/// Waits until an operation has ended. Where nobody remembers it, or it never ends, the state of its
/// target tells.
fn finish(
    ctx: &Ctx,
    name: &TargetName,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
    mut operation: Operation,
) -> Result<(), Stop> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let (mut wait, last_wait) = ctx.provider_of(name)?.pace();
    loop {
        match operation.progress {
            Progress::Done => return Ok(()),
            Progress::Failed { error } => return Err(error.into()),
            Progress::Running if ctx.clock.monotonic() > deadline => return Ok(()),
            Progress::Running => {}
        }
        go_on()?;
        ctx.clock.sleep(wait);
        wait = (wait * 2).min(last_wait);
        let provider = ctx.provider_of(name)?;
        let asked = || provider.operation(&operation.name);
        operation = match persistently(&*ctx.clock, &*ctx.random, asked) {
            Ok(operation) => operation,
            Err(error) if error.trouble == Trouble::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
    }
}
