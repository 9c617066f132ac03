//! The way to the workers of a target. **The one place where a kind of target becomes a door to its
//! workers.** Addresses that somebody registered come first, then those that the control plane names.

use std::sync::Arc;

use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState};
use crate::model::ids::TargetName;
use crate::model::job::Job;
use crate::model::settings::{CloudKind, WorkersBy};
use crate::model::target::Registration;
use crate::plan::answer;
use crate::remote::gcloud::{self, GcloudConfig};
use crate::remote::local::LocalRemote;
use crate::remote::ssh::{self, SshConfig};
use crate::remote::{Remote, Worker};

use super::fleet::Fleet;
use super::{Ctx, Error};

/// The way to the workers of one target.
pub struct Door {
    /// The door.
    pub remote: Box<dyn Remote>,
    /// Whether they are other machines, with programs and disks of their own.
    pub is_elsewhere: bool,
    /// Whether each is reached by its address.
    is_by_address: bool,
}

/// The registration of a target whose workers somebody has named.
fn registered<'a>(data: &'a Data, name: &TargetName) -> Option<&'a Registration> {
    data.registration(name).filter(|registration| !registration.addresses.is_empty())
}

/// Whether a target's workers are those that somebody registered.
pub fn are_registered(data: &Data, name: &TargetName) -> bool {
    registered(data, name).is_some()
}

/// The way to the workers of a target.
pub fn to(ctx: &Ctx, data: &Data, name: &TargetName) -> Result<Door, Error> {
    let elsewhere = |remote, is_by_address| Ok(Door { remote, is_elsewhere: true, is_by_address });
    let registration = registered(data, name);
    if registration.is_some() {
        return elsewhere(ssh::open(by_ssh(ctx, registration, None)), true);
    }
    match ctx.cloud().kind() {
        CloudKind::Sim => {
            let remote = Box::new(LocalRemote::new(Arc::clone(&ctx.clock)));
            Ok(Door { remote, is_elsewhere: false, is_by_address: true })
        }
        CloudKind::Google => {
            let settings = ctx.cloud_settings();
            if settings.workers == WorkersBy::Gcloud {
                let target = data.target(name);
                let config = GcloudConfig {
                    program: None,
                    target: name.as_str().to_owned(),
                    zone: target.and_then(|target| target.zone),
                    project: settings.project.clone(),
                    user: settings.ssh_user.clone(),
                    key: settings.ssh_key.clone(),
                    options: settings.ssh_options.unwrap_or_default(),
                };
                return elsewhere(gcloud::open(config), false);
            }
            // A machine that is made anew may get the address of an old one, and has other keys.
            let created = Fleet::ask(ctx).fact(data, name).created_at;
            let alias = created.map(|at| format!("tpu.{name}.{}", at.as_second()));
            elsewhere(ssh::open(by_ssh(ctx, data.registration(name), alias)), true)
        }
        CloudKind::None => Err(Error::refused(format!(
            "no way to the workers of {name} is known, so a command cannot be run there"
        ))
        .hint(format!(
            "name the cloud (--cloud, TPU_CLOUD) or their addresses: tpu register {name} --address \
             HOST,…; or use a directory with a staging.sh, which brings its own way, or the target `local`"
        ))),
    }
}

/// OpenSSH, as the registration of a target wants it, else as the settings do.
fn by_ssh(ctx: &Ctx, registration: Option<&Registration>, alias: Option<String>) -> SshConfig {
    let settings = ctx.cloud_settings();
    SshConfig {
        user: registration.and_then(|known| known.ssh_user.clone()).or(settings.ssh_user),
        key: registration.and_then(|known| known.ssh_key.clone()).or(settings.ssh_key),
        options: settings.ssh_options.unwrap_or_default(),
        sockets: ctx.env.non_empty("TPU_SSH_DIR").map_or_else(
            || ssh::sockets(ctx.env.non_empty("XDG_RUNTIME_DIR"), ctx.env.uid),
            Into::into,
        ),
        known_hosts: ctx.store.paths().state().join("known_hosts"),
        alias,
    }
}

/// The workers of a target, as they are known now.
pub fn workers(ctx: &Ctx, data: &Data, name: &TargetName) -> Result<Vec<Worker>, Error> {
    if let Some(registration) = registered(data, name) {
        return Ok(Worker::all(&registration.addresses));
    }
    to(ctx, data, name)?;
    let fact = Fleet::ask(ctx).fact(data, name);
    if fact.endpoints.is_empty() {
        return Err(Error::unreachable(format!("{name} has no workers: it is {}", fact.raw_state))
            .hint(format!("`tpu check-status {name}` shows how it is")));
    }
    Ok(Worker::all(&fact.endpoints))
}

/// The workers of a target for a new launch, which keeps to the addresses that they have now.
pub fn workers_to_start(ctx: &Ctx, data: &Data, name: &TargetName) -> Result<Vec<Worker>, Error> {
    let workers = workers(ctx, data, name)?;
    match workers.iter().find(|worker| worker.address.is_empty()) {
        Some(worker) if to(ctx, data, name)?.is_by_address => {
            let what = format!("worker {} of {name} has no address yet", worker.index);
            Err(Error::unreachable(what).hint("try again in a moment"))
        }
        Some(_) | None => Ok(workers),
    }
}

/// The workers of a job whose machines may still be there, by the control plane's word.
pub fn still_there(ctx: &Ctx, data: &Data, job: &Job, workers: Vec<Worker>) -> Vec<Worker> {
    if are_registered(data, &job.tpu) {
        // Whatever else has this name, these machines are not the control plane's.
        return workers;
    }
    there_by(&Fleet::ask(ctx).fact(data, &job.tpu), job, workers)
}

/// The same by one answer of the control plane.
pub fn there_by(fact: &TargetFact, job: &Job, mut workers: Vec<Worker>) -> Vec<Worker> {
    match fact.state {
        TargetState::Preempted | TargetState::Gone | TargetState::Stopped => workers.clear(),
        TargetState::Ready | TargetState::Pending | TargetState::Deleting => {
            if answer::another_machine(job, fact).is_some() {
                workers.clear();
            }
            // A list that is shorter leaves out what it cannot tell.
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
    use crate::model::ids::{JobId, JobNumber};
    use crate::model::time::Timestamp;

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
