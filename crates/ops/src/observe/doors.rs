//! The way to the workers of a target, which its kind knows. Addresses that somebody registered come first, then
//! those that its provider names.

use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::{TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::settings::Settings;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::answer;
use tpu_engine::kinds::{Destination, Door, Refusal, UnknownKind, Within};
use tpu_system::remote::Worker;

use super::fleet::AskedOnce;
use crate::{Ctx, Error};

/// Whether a target's workers are those that somebody registered.
pub(crate) fn are_fixed(data: &Data, name: &TargetName) -> bool {
    data.registration(name).is_some_and(|known| known.machines() == Machines::Fixed)
}

/// The way to the workers of a target.
pub fn to(ctx: &Ctx, asked: &AskedOnce<'_>) -> Result<Door, Error> {
    door(ctx, asked.data, asked.name, &|| asked.fact().created_at)
}

/// Refuses a target to whose workers there is no way as things are set up, however long somebody waits. Nobody is
/// asked.
pub(crate) fn must_lead_to(ctx: &Ctx, data: &Data, target: &Target) -> Result<(), Error> {
    match target.machines {
        Machines::Here | Machines::Engine => Ok(()),
        Machines::Provided | Machines::Fixed => door(ctx, data, &target.name, &|| None).map(drop),
    }
}

fn door(
    ctx: &Ctx,
    data: &Data,
    name: &TargetName,
    created_at: &dyn Fn() -> Option<Timestamp>,
) -> Result<Door, Error> {
    let target = data.target(name);
    let kind = match &target {
        Some(target) => ctx.kinds.of(target).map_err(|unknown| unusable(name, &unknown))?,
        None => ctx.kinds.usual(),
    };
    let places = ctx.places();
    let destination = Destination {
        name,
        target: target.as_ref(),
        registration: data.registration(name),
        provider: &places.of(data, name),
        created_at,
    };
    let settings = settings(ctx, data);
    Ok(kind.workers(&destination, Within { effects: &ctx.effects, settings: &settings })?)
}

/// The settings about workers. Where nobody has said for all how ssh reaches them, what the user says on whose behalf
/// the program acts; else the first user who says it, whoever's job it is: a launcher and the daemon act on nobody's
/// behalf.
fn settings(ctx: &Ctx, data: &Data) -> Settings {
    let mut known = ctx.provider_settings();
    let says = |said: &Settings| {
        said.ssh_user.is_some() || said.ssh_key.is_some() || said.ssh_options.is_some()
    };
    if says(&known) {
        return known;
    }
    let asks = known.user.as_deref();
    let (own, others): (Vec<&User>, Vec<&User>) =
        data.users().iter().partition(|user| asks == Some(user.name.as_str()));
    let mut all = own.into_iter().chain(others).filter_map(|user| ctx.settings(Some(user)).ok());
    if let Some(said) = all.find(says) {
        (known.ssh_user, known.ssh_key, known.ssh_options) =
            (said.ssh_user, said.ssh_key, said.ssh_options);
    }
    known
}

/// Nothing is done with a target whose kind nobody here knows.
pub(crate) fn unusable(name: &TargetName, unknown: &UnknownKind) -> Error {
    Error::refused(format!("nothing can be done with {name}: {unknown}"))
        .hint("use the version of tpu that registered it")
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::refused(refusal.what).hint(refusal.hint)
    }
}

/// The workers of a target, as they are known now.
pub fn workers(ctx: &Ctx, asked: &AskedOnce<'_>) -> Result<Vec<Worker>, Error> {
    to(ctx, asked)?;
    let (name, fact) = (asked.name, asked.fact());
    if fact.endpoints.is_empty() {
        return Err(Error::unreachable(format!("{name} has no workers: it is {}", fact.raw_state))
            .hint(format!("`tpu check-status {name}` shows how it is")));
    }
    Ok(Worker::all(&fact.endpoints))
}

/// The workers of a target for a new launch, which keeps to the addresses that they have now.
pub(crate) fn workers_to_start(ctx: &Ctx, asked: &AskedOnce<'_>) -> Result<Vec<Worker>, Error> {
    let workers = workers(ctx, asked)?;
    match workers.iter().find(|worker| worker.address.is_empty()) {
        Some(worker) if to(ctx, asked)?.is_by_address => {
            let what = format!("worker {} of {} has no address yet", worker.index, asked.name);
            Err(Error::unreachable(what).hint("try again in a moment"))
        }
        Some(_) | None => Ok(workers),
    }
}

/// The workers of a job whose machines may still be there, by the control plane's word.
pub fn still_there(asked: &AskedOnce<'_>, job: &Job, workers: Vec<Worker>) -> Vec<Worker> {
    if are_fixed(asked.data, asked.name) {
        // Whatever else has this name, these machines are not the control plane's.
        return workers;
    }
    there_by(asked.fact(), job, workers)
}

/// The same by one answer of the control plane.
pub(crate) fn there_by(fact: &TargetFact, job: &Job, mut workers: Vec<Worker>) -> Vec<Worker> {
    match fact.state {
        TargetState::Preempted | TargetState::Gone | TargetState::Stopped => workers.clear(),
        TargetState::Ready | TargetState::Pending | TargetState::Deleting => {
            if answer::another_machine(job, fact).is_some() {
                workers.clear();
            }
            // A list that is shorter than the workers are does not say which of them are gone.
            if fact.endpoints.len() >= workers.len() {
                workers.retain(|worker| is_listed(fact, worker));
            }
        }
        TargetState::NotWatched | TargetState::Unknown => {}
    }
    workers
}

/// Whether a worker may be one of those that the control plane lists. One whose address was not known, or is
/// not wholly said now, may be.
fn is_listed(fact: &TargetFact, Worker { index, address }: &Worker) -> bool {
    let of = |addresses: &[String]| {
        let at = usize::try_from(*index).ok()?;
        addresses.get(at).map(String::is_empty)
    };
    let is_unsaid = of(&fact.endpoints) == Some(true) || of(&fact.internal) == Some(true);
    let mut said = fact.endpoints.iter().chain(&fact.internal);
    address.is_empty() || is_unsaid || said.any(|known| known == address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::{JobId, JobNumber};

    #[test]
    fn a_worker_is_gone_only_by_what_was_said_of_its_own_place() {
        let job = Job::new(&JobId::new("alice".into(), JobNumber(1)), "n1".into(), "/d".to_owned());
        let list = |words: &[&str]| -> Vec<String> {
            words.iter().map(|address| (*address).to_owned()).collect()
        };
        let left_of = |said: &[&str], inside: &[&str], recorded: &[&str]| -> Vec<u32> {
            let now = Timestamp::from_second(1_000);
            let mut fact = TargetFact::new("n1".into(), TargetState::Ready, "READY", now);
            (fact.endpoints, fact.internal) = (list(said), list(inside));
            let workers = Worker::all(&list(recorded));
            there_by(&fact, &job, workers).iter().map(|worker| worker.index).collect()
        };
        let left = |said: &[&str], recorded: &[&str]| left_of(said, &[], recorded);
        assert_eq!(left(&["a", "b"], &["a", "b"]), [0, 1]);
        assert_eq!(left(&["a", "z"], &["a", "b"]), [0], "another machine is there");
        assert_eq!(left(&["a", ""], &["a", "b"]), [0, 1], "it is not said where it is");
        assert_eq!(left(&["", "z"], &["a", "b"]), [0]);
        assert_eq!(left(&["a", "b"], &["a", ""]), [0, 1], "it was not known where it was");
        assert_eq!(left(&["a"], &["a", "b"]), [0, 1]);
        assert_eq!(left_of(&["a", "i"], &["h", ""], &["a", "b"]), [0, 1], "it is not said outside");
        assert_eq!(left_of(&["a", "b"], &["h", "i"], &["a", "i"]), [0, 1], "it was not said then");
        assert_eq!(left_of(&["a", "z"], &["h", "i"], &["a", "b"]), [0]);
    }
}
