//! What is known of targets: aliases and registrations.

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::Job;
use tpu_core::model::target::{Machines, ProviderName, Registration, Target, TargetKind};
use tpu_core::text;
use tpu_engine::kinds::KindOfTarget;

use crate::base::names::{refuse_group, refuse_taken};
use crate::base::providers::Places;
use crate::base::records;
use crate::observe::{doors, worker_processes};
use crate::{Ctx, Error};

/// Gives a target a short name, which is none of `commands`. Returns whether the target was known before.
pub fn add_alias(ctx: &Ctx, alias: &str, full: &str, commands: &[String]) -> Result<bool, Error> {
    checked_name(full)?;
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if alias.is_empty() || alias.starts_with('-') || !alias.chars().all(plain) {
        return Err(Error::usage(format!("'{alias}' cannot be a target alias"))
            .hint("letters, digits, '_', '-' and '.', and no '-' in front"));
    }
    ctx.transact(|tx| {
        refuse_taken(&tx.data, alias, commands)?;
        let full = TargetName::from(full);
        let known = tx.data.target(&full).is_some();
        tx.edited(None, format!("{alias} stands for {full}"));
        tx.data.registry_mut().set_alias(alias, full);
        Ok(known)
    })
}

/// The kind of a target of which these options are `said`: the one that somebody names, else the usual one if
/// it understands them all, else the first that does.
pub fn kind(ctx: &Ctx, told: Option<&str>, said: &[&str]) -> Result<TargetKind, Error> {
    let has = |kind: &dyn KindOfTarget, word: &str| {
        kind.options().contains(&word) || kind.own_options().iter().any(|own| own.name == word)
    };
    let strange = |kind: &dyn KindOfTarget| said.iter().find(|word| !has(kind, word));
    let Some(told) = told else {
        let all = std::iter::once(ctx.kinds.usual()).chain(ctx.kinds.to_register());
        let fits = all.into_iter().find(|kind| strange(*kind).is_none());
        return fits.map(KindOfTarget::word).ok_or_else(|| {
            Error::usage(format!("no kind of target has all of --{}", said.join(", --")))
                .hint("`tpu help register` says what belongs together")
        });
    };
    let known: Vec<TargetKind> = ctx.kinds.to_register().map(KindOfTarget::word).collect();
    let found = ctx.kinds.to_register().find(|kind| kind.word().as_str() == told);
    let kind = found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(TargetKind::as_str).collect();
        Error::usage(format!("'{told}' is no kind of target that can be registered"))
            .hint(format!("--kind is {}", text::either(&names)))
    })?;
    match strange(kind) {
        Some(word) => {
            let own = kind.own_options().iter().map(|own| own.name);
            let has = kind.options().iter().copied().chain(own);
            let has: Vec<String> = has.map(|word| format!("--{word}")).collect();
            Err(Error::usage(format!("--{word} says nothing of {}", kind.in_words()))
                .hint(format!("of one can be said: {}", has.join(", "))))
        }
        None => Ok(kind.word()),
    }
}

/// A registration that makes sense, as its kind wants it.
pub(super) fn checked(ctx: &Ctx, registration: &Registration) -> Result<Registration, Error> {
    checked_way(registration)?;
    checked_by_kind(ctx, registration)
}

/// A registration as its kind wants it.
fn checked_by_kind(ctx: &Ctx, registration: &Registration) -> Result<Registration, Error> {
    let mut registration = registration.clone();
    let kind = ctx.kinds.of_registration(&registration);
    let kind = kind.map_err(|unknown| Error::usage(unknown.to_string()))?;
    let its = kind.providers();
    if let Some(provider) = registration.provider.as_ref().filter(|told| !its.contains(told)) {
        let names: Vec<&str> = its.iter().map(ProviderName::as_str).collect();
        return Err(Error::usage(format!("'{provider}' is no provider of {}", kind.in_words()))
            .hint(format!("--provider is {}", text::either(&names))));
    }
    kind.register(&mut registration, &ctx.env)?;
    Ok(registration)
}

/// Makes a target known. Refused, unless it is forced, while the command of a job may live on workers to
/// which no way would lead any more; that job is returned.
pub fn register(
    ctx: &Ctx,
    name: &str,
    registration: &Registration,
    force: bool,
) -> Result<Option<JobId>, Error> {
    checked_name(name)?;
    let registration = &checked(ctx, registration)?;
    let full = TargetName::from(name);
    let is_other_way =
        |data: &Data| doors::are_fixed(data, &full) == registration.addresses.is_empty();
    let checked = |job: Option<&Job>| match job {
        Some(job) if !force => {
            let or = "or keep its addresses; --force continues without a connection to it";
            Err(in_use(job, &full, or))
        }
        job => Ok(job.map(Job::id)),
    };
    let places = ctx.places();
    // Whoever is asked about it from then on would say that it is not there, of a job that is at work.
    let is_others = |data: &Data| match data.registration(&full) {
        Some(was) => {
            (was.engine, &was.options) != (registration.engine, &registration.options)
                || places.told(was) != places.told(registration)
        }
        None => *places.usual() != *places.told(registration),
    };
    let data = ctx.data()?;
    if data.registration(&full).is_none() {
        refuse_group(&data, name)?;
    }
    let left = data.jobs().find(|job| is_other_way(&data) && may_be_there(ctx, &data, &full, job));
    let left = checked(left)?;
    let begun = ctx.transact(|tx| {
        if let Some(other) = other_name(&tx.data, &places, (&full, registration)) {
            let what = format!("{full} would be a second name of {other}: both are the same machines");
            return Err(Error::refused(what).hint(format!(
                "a short name for it: tpu -ta ALIAS {other}; machines of another provider: say whose, with \
                 --provider or --project"
            )));
        }
        // Looking has taken its time: meanwhile somebody may have begun there.
        let begun = tx.data.jobs().find(|job| is_other_way(&tx.data) && is_live_there(&full, job));
        let begun = checked(begun)?;
        let claims =
            |job: &&Job| job.tpu == full && (job.status.is_live() || records::may_be_at_work(job));
        if let Some(job) = tx.data.jobs().filter(|_| is_others(&tx.data) && !force).find(claims) {
            let or =
                "or leave it whose it is: give the same --provider, --project and options again";
            return Err(in_use(job, &full, or));
        }
        // What somebody has set of it stays, whatever else is said anew.
        let set = tx.data.registration(&full);
        let capacity = registration.capacity.or(set.and_then(|known| known.capacity));
        let kept = || set.and_then(|known| known.host.clone());
        let host = registration.host.clone().or_else(kept);
        let registration = Registration { capacity, host, ..registration.clone() };
        tx.data.registry_mut().register(full.clone(), registration);
        tx.edited(None, format!("{name} is registered"));
        Ok(begun)
    })?;
    Ok(left.or(begun))
}

/// What may be wrong with a target that is registered. What cannot be found out is not said.
pub fn doubts(ctx: &Ctx, name: &str) -> Vec<String> {
    let data = ctx.data().ok();
    let known = data.as_ref().and_then(|data| data.registration(&TargetName::from(name)));
    let doubts = |known: &Registration| {
        let kind = ctx.kinds.of_registration(known).ok()?;
        Some(kind.doubts(known, ctx))
    };
    known.and_then(doubts).unwrap_or_default()
}

/// What the data file calls the machines of a registration already: two names of one target would not keep two
/// jobs apart.
fn other_name(
    data: &Data,
    places: &Places,
    (name, registration): (&TargetName, &Registration),
) -> Option<TargetName> {
    if registration.machines() != Machines::Provided {
        return None;
    }
    let at = places.told(registration);
    let is_same = |other: &TargetName| {
        let Some(known) = data.target(other) else { return false };
        let zones = known.zone.as_ref().zip(registration.zone.as_ref());
        *other != *name
            && other.of_provider() == name.of_provider()
            && known.machines == Machines::Provided
            && zones.is_none_or(|(one, another)| one == another)
            && places.of(data, other) == at
    };
    data.registry().names().into_iter().find(is_same)
}

/// Whether the command of a job may live on the workers of a target.
fn may_be_there(ctx: &Ctx, data: &Data, name: &TargetName, job: &Job) -> bool {
    is_live_there(name, job) || job.tpu == *name && worker_processes::may_live(ctx, data, job)
}

/// Whether a job is at work on the workers of a target, by its record alone.
fn is_live_there(name: &TargetName, job: &Job) -> bool {
    job.tpu == *name && job.status.is_live() && job.is_native()
}

fn in_use(job: &Job, name: &TargetName, or: &str) -> Error {
    Error::refused(format!("{} may be at work on the workers of {name}", job.id()))
        .hint(format!("end it: tpu kill w={} {}; {or}", job.windows_id, job.user))
}

/// Forgets a target and its aliases. Refused while a record claims it, or a job may live on its workers.
pub fn forget(ctx: &Ctx, typed: &str) -> Result<TargetName, Error> {
    let data = ctx.data()?;
    let target = crate::base::named::resolve_target(&data, typed)?;
    refuse_forgetting(ctx, &data, &target)?;
    ctx.transact(|tx| {
        let target = crate::base::named::resolve_target(&tx.data, typed)?;
        let user = tx.data.jobs().find(|job| job.tpu == target.name && job.status.is_live());
        if let Some(job) = user {
            return Err(Error::refused(format!("{} is in use by {}", target.name, job.id()))
                .hint(format!("tpu kill w={} {}", job.windows_id, job.user)));
        }
        tx.data.registry_mut().forget(&target.name);
        tx.edited(None, format!("{} is forgotten", target.name));
        Ok(target.name)
    })
}

/// Refuses to forget a target that is always there, and one on whose workers a job may live.
pub(super) fn refuse_forgetting(ctx: &Ctx, data: &Data, target: &Target) -> Result<(), Error> {
    if target.is_here() {
        return Err(Error::refused("`local` is this machine and is always there")
            .hint("run there with: tpu run local -- COMMAND"));
    }
    match data.jobs().find(|job| may_be_there(ctx, data, &target.name, job)) {
        Some(job) => Err(in_use(job, &target.name, "then repeat the command")),
        None => Ok(()),
    }
}

pub(crate) fn checked_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_built_in = Target::built_in().iter().any(|target| target.name.as_str() == name);
    let (own, whose) = name.split_once('@').unwrap_or((name, "-"));
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins_well
        || is_built_in
        || whose.is_empty()
        || ![own, whose].iter().all(|part| part.chars().all(plain))
    {
        return Err(Error::usage(format!("'{name}' cannot be the full name of a target"))
            .hint(
                "a letter or a digit, then letters, digits, '-', '_' and '.'; behind that may stand @ and \
                 whose it is",
            ));
    }
    Ok(())
}

/// Whether what leads to the workers can be a word of ssh's or gcloud's: no option, and nothing that a shell on
/// the way would understand.
fn checked_way(registration: &Registration) -> Result<(), Error> {
    let is_word = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric() || more.contains(c))
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c) || more.contains(c))
    };
    let refused = |what: &str, text: &str, hint: &str| {
        Err(Error::usage(format!("'{text}' cannot be {what}")).hint(hint.to_owned()))
    };
    for address in &registration.addresses {
        if !is_word(address, ":[]%") {
            let hint = "HOST or HOST:PORT, with commas between them; the account: --ssh-user";
            return refused("the address of a worker", address, hint);
        }
    }
    let words = [
        ("the account on workers", &registration.ssh_user),
        ("a zone", &registration.zone),
        ("a type", &registration.accelerator),
    ];
    for (what, text) in words {
        if let Some(text) = text.as_deref().filter(|text| !is_word(text, "_@")) {
            return refused(what, text, "letters, digits, '-', '_' and '.'");
        }
    }
    match registration.ssh_key.as_deref().filter(|key| key.starts_with('-')) {
        Some(key) => {
            refused("the file of a key", key, "its path, as in: --ssh-key ~/.ssh/id_ed25519")
        }
        None => Ok(()),
    }
}
