//! Makes a target usable, or anew, whatever state it is in: one step at a time, each from what the control
//! plane says at that moment. So whoever begins in the middle, after a crash, just goes on.
//!
//! One process at a time works on a target; the lock dies with it.

use std::time::Duration;

use crate::cloud::adopt::{self, Created};
use crate::cloud::retry::persistently;
use crate::cloud::{
    Cloud, CloudError, Operation, Progress, RequestId, TargetAt, TargetSpec, Trouble, Verb,
};
use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState, TargetStep};
use crate::model::ids::{JobId, TargetName};
use crate::model::settings::CloudKind;
use crate::model::target::{LOCAL, Pricing, Target};

use crate::plan::answer;

use super::fleet::Fleet;
use super::{Ctx, Error, record_facts, snapshot, watch};

/// Nothing that a control plane does takes longer.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The first wait for an operation; it doubles up to the last one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What is not to be taken from the registration.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Zone.
    pub zone: Option<String>,
    /// Accelerator type.
    pub accelerator: Option<String>,
    /// How it is paid for.
    pub pricing: Option<Pricing>,
    /// Version of the machine's software.
    pub runtime_version: Option<String>,
}

/// What to ask for: the wish, else what the control plane last said, else the registration.
pub fn spec(
    data: &Data,
    name: &TargetName,
    wish: &Wish,
    seen: &TargetFact,
) -> Result<TargetSpec, Error> {
    let known = data.target(name);
    let known = known.as_ref();
    let missing = |what: &str, flag: &str| {
        Error::usage(format!("the {what} of {name} is not known"))
            .hint(format!("tpu register {name} {flag}, or give it here: {flag}"))
    };
    let was_there = !matches!(seen.state, TargetState::Gone | TargetState::Unknown);
    Ok(TargetSpec {
        name: name.clone(),
        zone: wish
            .zone
            .clone()
            .or_else(|| seen.zone.clone())
            .or_else(|| known.and_then(|target| target.zone.clone()))
            .ok_or_else(|| missing("zone", "--zone ZONE"))?,
        accelerator: wish
            .accelerator
            .clone()
            .or_else(|| seen.accelerator.clone())
            .or_else(|| known.and_then(|target| target.accelerator.clone()))
            .ok_or_else(|| missing("type", "--type TYPE"))?,
        pricing: wish
            .pricing
            .or_else(|| was_there.then_some(seen.pricing))
            .or_else(|| known.map(|target| target.pricing))
            .unwrap_or_default(),
        runtime_version: wish.runtime_version.clone(),
    })
}

/// Keeps what was asked for, so that it can be asked for again when nothing is left of the target.
pub fn remember(ctx: &Ctx, spec: &TargetSpec) -> Result<(), Error> {
    ctx.transact(|tx| {
        let mut registration = tx.data.registration(&spec.name).cloned().unwrap_or_default();
        if registration.kind.is_empty() {
            "tpu".clone_into(&mut registration.kind);
        }
        let before = registration.clone();
        registration.zone = Some(spec.zone.clone());
        registration.accelerator = Some(spec.accelerator.clone());
        registration.pricing = spec.pricing;
        if registration != before || tx.data.registration(&spec.name).is_none() {
            tx.data.registry_mut().register(spec.name.clone(), registration);
        }
        Ok(())
    })
}

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

/// Brings a target to READY. `anew` deletes it first even if it is; `go_on` is asked before each step
/// and may end it. The caller works on the target [`alone`].
pub fn make_ready(
    ctx: &Ctx,
    spec: &TargetSpec,
    request: &RequestId,
    anew: bool,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<TargetFact, Error> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let mut anew = anew || trusts_an_old_fact();
    let mut wait = FIRST_WAIT;
    let mut asked = 0;
    loop {
        go_on()?;
        let fact = Fleet::ask(ctx).fact(&*ctx.data()?, &spec.name);
        let step = match fact.state.step() {
            TargetStep::Launch | TargetStep::Start if anew => TargetStep::DeleteThenCreate,
            step => step,
        };
        if ctx.clock.monotonic() > deadline {
            return Err(Error::unreachable(format!(
                "{} is {} for longer than {} min",
                spec.name,
                fact.raw_state,
                PATIENCE.as_secs() / 60
            ))
            .hint("nothing more was done; look at it in the console of the cloud"));
        }
        match step {
            TargetStep::Launch => return Ok(fact),
            TargetStep::Wait => {
                ctx.clock.sleep(wait);
                wait = (wait * 2).min(LAST_WAIT);
            }
            TargetStep::DeleteThenCreate => {
                call(ctx, go_on, |cloud| cloud.delete(&spec.at(), true))?;
                anew = false;
                fail::fail_point!("reapply-deleted");
            }
            TargetStep::Create => {
                anew = false;
                let request = numbered(request, asked);
                let created = persistently(&*ctx.clock, &*ctx.random, || {
                    adopt::create(ctx.cloud(), spec, &request)
                })?;
                // Should it be gone again, asking for the same would answer that it was done.
                asked += 1;
                fail::fail_point!("reapply-asked");
                if let Created::Operation(operation) = created {
                    finish(ctx, go_on, operation)?;
                }
                fail::fail_point!("reapply-created");
            }
            TargetStep::Start => call(ctx, go_on, |cloud| cloud.start(&spec.at()))?,
            TargetStep::Nothing => {
                return Err(Error::unreachable(format!(
                    "the state of {} is unknown: {}",
                    spec.name, fact.raw_state
                ))
                .hint("nothing was done; try again when its control plane answers"));
            }
        }
    }
}

/// Whether a target is made anew because it was once seen to be gone: never, it is asked about each time.
fn trusts_an_old_fact() -> bool {
    fail::fail_point!("bug-old-fact", |_| true);
    false
}

/// The mark of the n-th creation for one request. Whoever begins again after a crash counts from the first
/// one: what was done is answered at once, and what was begun is waited for.
fn numbered(request: &RequestId, asked: u32) -> RequestId {
    fail::fail_point!("bug-same-request", |_| request.clone());
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

/// Makes a target usable for a person: creates it if it is not there, or waits for it; `anew` deletes it
/// first. Noted before it is asked for.
pub fn provide(ctx: &Ctx, name: &TargetName, wish: &Wish, anew: bool) -> Result<TargetFact, Error> {
    is_watched(ctx, name)?;
    alone(ctx, name, || {
        let data = ctx.data()?;
        if anew {
            unused(ctx, name, None)?;
        }
        let seen = Fleet::ask(ctx).fact(&data, name);
        if answer::is_taken(&seen) {
            // Once the target is there again, nobody could tell any more that it was taken from its job.
            let survey = snapshot::survey(ctx, &mut snapshot::Memory::default())?;
            record_facts::record_facts(ctx, &survey)?;
            let data = ctx.data()?;
            if let Some(job) = data.jobs().find(|job| job.tpu == *name && job.status.is_live()) {
                return Err(Error::refused(format!(
                    "{name} was taken from {}, which cannot be seen from here",
                    job.id()
                ))
                .hint("do it where that job was started; MONITOR there does so by itself"));
            }
        }
        let seen_nothing = seen.state == TargetState::Unknown && data.target(name).is_none();
        let spec = spec(&data, name, wish, &seen)?;
        remember(ctx, &spec)?;
        let verb = if anew { "reapply" } else { "apply" };
        let was = if seen_nothing { "new" } else { seen.raw_state.as_str() };
        watch::note(ctx, &ctx.actor, verb, &format!("{name}, which is {was}"))?;
        let request = RequestId(ctx.random.hex(16));
        make_ready(ctx, &spec, &request, anew, &mut || Ok(()))
    })
}

/// Changes a target for a person; returns what it is afterwards.
pub fn change(ctx: &Ctx, target: &Target, change: Change) -> Result<TargetFact, Error> {
    let name = &target.name;
    is_watched(ctx, name)?;
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
        let seen = Fleet::ask(ctx).fact(&*ctx.data()?, name);
        let at = TargetAt::new(name.clone(), seen.zone.or_else(|| target.zone.clone()));
        turn(ctx, &at, verb, &mut || Ok(()))?;
        Ok(Fleet::ask(ctx).fact(&*ctx.data()?, name))
    })
}

/// Refuses what has no control plane.
fn is_watched(ctx: &Ctx, name: &TargetName) -> Result<(), Error> {
    if name.as_str() == LOCAL {
        return Err(Error::refused("`local` is this machine and always there")
            .hint("run there with: tpu run local -- COMMAND"));
    }
    if ctx.cloud().kind() == CloudKind::None {
        let doing = format!("change {name}");
        return Err(CloudError::new(Trouble::NoCloud, doing, "no cloud is set up").into());
    }
    Ok(())
}

/// One change of a target, until it is done. The caller works on the target [`alone`].
pub fn turn(
    ctx: &Ctx,
    at: &TargetAt,
    verb: Verb,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    call(ctx, go_on, |cloud| match verb {
        Verb::Delete => cloud.delete(at, true),
        Verb::Start => cloud.start(at),
        Verb::Stop => cloud.stop(at),
        Verb::Reboot => cloud.reboot(at),
        Verb::Create => Err(CloudError::new(Trouble::User, "create", "it takes more than a name")),
    })
}

/// Makes a call, and waits until what it began has ended.
fn call(
    ctx: &Ctx,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
    ask: impl Fn(&dyn Cloud) -> Result<Operation, CloudError>,
) -> Result<(), Error> {
    let operation = persistently(&*ctx.clock, &*ctx.random, || ask(ctx.cloud()))?;
    finish(ctx, go_on, operation)
}

/// Waits until an operation has ended.
fn finish(
    ctx: &Ctx,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
    mut operation: Operation,
) -> Result<(), Error> {
    let mut wait = FIRST_WAIT;
    loop {
        match operation.progress {
            Progress::Done => return Ok(()),
            Progress::Failed { error } => return Err(error.into()),
            Progress::Running => {}
        }
        go_on()?;
        ctx.clock.sleep(wait);
        wait = (wait * 2).min(LAST_WAIT);
        let name = operation.name.clone();
        operation = persistently(&*ctx.clock, &*ctx.random, || ctx.cloud().operation(&name))?;
    }
}
