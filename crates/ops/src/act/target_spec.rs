//! What a target that is to be made is asked for as: what somebody wishes, what the control plane last said, what is
//! registered.

use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_engine::provider::TargetSpec;

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
    /// Whether it is asked for by a queued resource.
    pub queued: Option<bool>,
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
    let remembered = data.registration(name);
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
        runtime_version: wish
            .runtime_version
            .clone()
            .or_else(|| remembered.and_then(|registration| registration.runtime_version.clone())),
        queued: wish
            .queued
            .or_else(|| was_there.then(|| seen.queued.is_some()))
            .unwrap_or_else(|| remembered.is_some_and(|registration| registration.queued)),
        options: remembered.map(|registration| registration.options.clone()).unwrap_or_default(),
    })
}

/// Keeps what was asked for, so that it can be asked for again when nothing is left of the target.
pub fn remember(ctx: &Ctx, spec: &TargetSpec) -> Result<(), Error> {
    ctx.transact(|tx| {
        let mut registration = tx.data.registration(&spec.name).cloned().unwrap_or_default();
        let before = registration.clone();
        registration.zone = Some(spec.zone.clone());
        registration.accelerator = Some(spec.accelerator.clone());
        registration.pricing = spec.pricing;
        registration.runtime_version.clone_from(&spec.runtime_version);
        registration.queued = spec.queued;
        if registration != before || tx.data.registration(&spec.name).is_none() {
            tx.data.registry_mut().register(spec.name.clone(), registration);
        }
        Ok(())
    })
}
