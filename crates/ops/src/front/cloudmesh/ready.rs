//! Jobs that are ready: entries of our queue that are held until somebody runs them, as Cloudmesh does it.

use std::collections::HashMap;

use crate::act::hosts;
use crate::act::launch::RunRequest;
use crate::base::ctx::user_of;
use crate::base::{names, records};
use crate::waiting::queue::submit::{self, Submission};
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::lineage::Links;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_jobfile::cloudmesh::{ImportedJob, ImportedState};

use super::translate::{self, translate};

/// Why a job is held that is ready.
pub const READY: &str = "ready: tpu cms job run starts it";
/// Why a job is held of which nobody has said where it runs.
pub(crate) const UNDEFINED: &str = "undefined: it names no host";

/// What became of a job of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobFate {
    /// It is ready from now on; what a person should know of it.
    Added(Vec<String>),
    /// It is ready or waits already, as it is said to be.
    Known(JobId),
    /// The same, and it is said to be other than it is, which is left alone.
    Differs(JobId, Vec<String>),
    /// It has begun here; how it is.
    Begun(JobId, String),
    /// By its state it is over, and is left alone.
    Over,
    /// By its state it may be at work without our doing: it is never started again.
    AtWork,
    /// It cannot be one of ours as it is.
    Refused(String),
    /// Nobody is known whose job it could be.
    Nobody,
}

impl JobFate {
    /// The word of it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Added(_) => "added",
            Self::Known(_) => "known",
            Self::Differs(..) => "differs",
            Self::Begun(..) => "begun",
            Self::Over => "over",
            Self::AtWork => "at work",
            Self::Refused(_) => "refused",
            Self::Nobody => "nobody",
        }
    }

    /// What became of it, for people.
    pub fn in_words(&self, name: &str) -> String {
        match self {
            Self::Added(_) => format!("held; to start it: tpu cms job run --name={name}"),
            Self::Known(id) => format!("waits already as {id}"),
            Self::Differs(id, how) => format!(
                "waits already as {id} with other values, and left as it is: {}; take this one: \
                 tpu cms job delete --name={name}, then again",
                how.join("; ")
            ),
            Self::Begun(id, how) => {
                format!(
                    "known already as {id}, which is {how}; again: tpu cms job reset --name={name}"
                )
            }
            Self::Over => {
                format!("left alone, as it is over; again: tpu cms job reset --name={name}")
            }
            Self::AtWork => format!(
                "left alone, as it may be at work: it is never started again; look there, then: \
                 tpu cms job reset --name={name}"
            ),
            Self::Refused(why) => format!("not taken over: {why}"),
            Self::Nobody => "not taken over, as no user is named: --user NAME".to_owned(),
        }
    }
}

/// To whom and where jobs are added.
#[derive(Clone, Debug)]
pub struct Adding<'a> {
    /// Whose they become.
    pub user: Option<&'a UserName>,
    /// In which queue they wait.
    pub queue: QueueName,
    /// The hosts among which a scheduler chooses where a job names none.
    pub among: &'a [String],
}

/// Adds the jobs of a file or of a command line, each for itself. `data` is what is known when hosts of the same file
/// are taken over, and `seen` are the names that earlier files have given away.
pub fn add(
    ctx: &Ctx,
    data: &Data,
    (jobs, seen): (&[ImportedJob], &mut Vec<String>),
    to: &Adding<'_>,
) -> Result<Vec<JobFate>, Error> {
    let mut fates = Vec::new();
    for job in jobs {
        let is_twice = seen.contains(&job.name);
        seen.push(job.name.clone());
        let fate = if is_twice {
            JobFate::Refused("another job of these files has its name".to_owned())
        } else {
            add_one(ctx, data, job, to)?
        };
        fates.push(fate);
    }
    Ok(fates)
}

fn add_one(ctx: &Ctx, data: &Data, job: &ImportedJob, to: &Adding<'_>) -> Result<JobFate, Error> {
    match job.state {
        ImportedState::Held | ImportedState::HeldWithoutTarget => {}
        ImportedState::LookedFor => return Ok(JobFate::AtWork),
        ImportedState::Finished
        | ImportedState::Killed
        | ImportedState::FailedToLaunch
        | ImportedState::Lost
        | ImportedState::Failed
        | ImportedState::TimedOut => return Ok(JobFate::Over),
    }
    let Some(user) = to.user else { return Ok(JobFate::Nobody) };
    let Some(job_here) = translate(data, job, to.among) else {
        return Ok(JobFate::Refused("nothing says what it runs".to_owned()));
    };
    if let Some(fate) = known(data, user, &job.name, Some(&job_here.spec))? {
        return Ok(fate);
    }
    let refused = names::refuse_for_job(data, user_of(data, user)?, &job.name);
    let how = held(to.queue.clone(), &job_here.spec);
    let request = RunRequest::new(user.clone(), job_here.spec);
    match refused.and_then(|()| submit::enter(ctx, &request, &how)) {
        Ok(_) => Ok(JobFate::Added(job_here.notes)),
        // What it is can be mended; that the state cannot be written cannot.
        Err(error) if error.kind == crate::Kind::State => Err(error),
        Err(error) => Ok(JobFate::Refused(error.message)),
    }
}

/// How a job of this specification waits: until somebody runs it.
pub(super) fn held(queue: QueueName, spec: &JobSpec) -> Submission {
    let why = if translate::has_place(spec) { READY } else { UNDEFINED };
    Submission {
        queue,
        is_held: true,
        held_for: Some(why.to_owned()),
        is_target_later: true,
        ..Submission::default()
    }
}

/// What a job of this name is here already.
fn known(
    data: &Data,
    user: &UserName,
    name: &str,
    wanted: Option<&JobSpec>,
) -> Result<Option<JobFate>, Error> {
    if let Some(entry) = entry(data, user, name) {
        let how = wanted.map(|wanted| translate::differences(&entry.spec, wanted));
        return Ok(Some(match how {
            Some(how) if !how.is_empty() => JobFate::Differs(entry.id(), how),
            _ => JobFate::Known(entry.id()),
        }));
    }
    let begun = newest(data, user, name)?;
    Ok(begun.map(|job| JobFate::Begun(job.id(), job.status.to_string())))
}

/// The entry of this name.
pub fn entry<'a>(data: &'a Data, user: &UserName, name: &str) -> Option<&'a QueueEntry> {
    let mut all = data.queues().entries.iter();
    all.find(|entry| entry.user == *user && entry.spec.name.as_deref() == Some(name))
}

/// The attempt that a name means: the live one, else the newest.
pub fn newest<'a>(data: &'a Data, user: &UserName, name: &str) -> Result<Option<&'a Job>, Error> {
    let user = user_of(data, user)?;
    let links = Links::of(user);
    let named = user.jobs().iter().rev().filter(|job| job.name() == Some(name));
    let leaves = named.filter(|job| {
        links.lineage(job.windows_id).and_then(|of| of.leaf()) == Some(job.windows_id)
    });
    let leaves: Vec<&Job> = leaves.collect();
    Ok(leaves.iter().find(|job| job.status.is_live()).or(leaves.first()).copied())
}

/// Which jobs are to be run.
#[derive(Clone, Debug, Default)]
pub struct WhichReady {
    /// Those of these names; all that are ready, where none is said.
    pub names: Option<Vec<String>>,
    /// Those of this queue alone.
    pub queue: Option<QueueName>,
    /// Also those that name no host.
    pub placeless_too: bool,
}

/// What came of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Those that begin when their turn comes from now on.
    pub released: Vec<JobId>,
    /// What is to be said of others.
    pub said: Vec<String>,
}

/// The entries that are meant, and what is to be said of names that call something else.
pub fn chosen(
    data: &Data,
    user: &UserName,
    chosen: &WhichReady,
) -> Result<(Vec<JobId>, Vec<String>), Error> {
    let Some(names) = &chosen.names else {
        let ready = data.queues().entries.iter().filter(|entry| entry.user == *user);
        let ready = ready.filter(|entry| is_ready(entry, chosen));
        return Ok((ready.map(QueueEntry::id).collect(), Vec::new()));
    };
    let (mut ids, mut said) = (Vec::new(), Vec::new());
    for name in names {
        if let Some(entry) = entry(data, user, name) {
            ids.push(entry.id());
            continue;
        }
        match newest(data, user, name)? {
            Some(job) if job.status.is_live() => {
                said.push(format!("{name} is {} already, as {}", job.status, job.id()));
            }
            Some(job) => {
                return Err(Error::refused(format!("{name} is {}", job.status))
                    .hint(format!("make it ready again: tpu cms job reset --name={name}")));
            }
            None => return Err(unknown(user, name)),
        }
    }
    Ok((ids, said))
}

/// Lets jobs begin. One that is ready and whose own host is full may begin on one of `others`, as the policy says.
pub fn run(
    ctx: &Ctx,
    user: &UserName,
    which: &WhichReady,
    others: &[String],
) -> Result<Released, Error> {
    let data = ctx.data()?;
    let (ids, said) = chosen(&data, user, which)?;
    let mut done = Released { released: Vec::new(), said };
    let mut room = if others.is_empty() { HashMap::new() } else { rooms(ctx)? };
    ctx.transact(|tx| {
        for id in &ids {
            let Some(entry) = tx.data.queues_mut().entry_mut(id) else { continue };
            let name = entry.spec.name.clone().unwrap_or_else(|| id.window.to_string());
            if entry.held.take().is_none() {
                done.said.push(format!("{name} waits for its turn already, as {id}"));
                continue;
            }
            let own = match &entry.spec.target {
                TargetRequest::Named(host) => match translate::known(&data, host) {
                    None => {
                        done.said.push(format!("{name} waits until {host} is a registered host"));
                        None
                    }
                    known => known,
                },
                TargetRequest::Any(_) => None,
            };
            if let Some(own) = &own {
                // Its address may have become a host since, under another name.
                entry.spec.target = TargetRequest::Named(own.name.as_str().to_owned());
            }
            if let Some(left) = own.as_ref().and_then(|own| room.get_mut(&own.name)) {
                if *left == 0 {
                    let among = others.to_vec();
                    let host = own.map(|own| own.name.to_string()).unwrap_or_default();
                    done.said.push(format!(
                        "{name}: {host} is full, so it starts on one of {}",
                        among.join(", ")
                    ));
                    entry.spec.target = TargetRequest::Any(AnyOf { among, ..AnyOf::default() });
                } else {
                    *left -= 1;
                }
            }
            records::note(tx, id, "unhold", "it starts when its turn comes");
            done.released.push(id.clone());
        }
        Ok(())
    })?;
    Ok(done)
}

fn is_ready(entry: &QueueEntry, chosen: &WhichReady) -> bool {
    let why = entry.held.as_ref().and_then(|held| held.why.as_deref());
    let is_of_queue = chosen.queue.as_ref().is_none_or(|queue| entry.queue == *queue);
    is_of_queue && (why == Some(READY) || chosen.placeless_too && why == Some(UNDEFINED))
}

/// How many more jobs each machine takes that takes no more than so many.
fn rooms(ctx: &Ctx) -> Result<HashMap<TargetName, usize>, Error> {
    let all = hosts::list(ctx, &[])?.into_iter();
    let room = |host: hosts::Host| {
        let most = usize::try_from(host.capacity.jobs?).unwrap_or(usize::MAX);
        Some((host.name, most.saturating_sub(host.jobs.len())))
    };
    Ok(all.filter_map(room).collect())
}

/// Nobody knows a job of this name.
pub fn unknown(user: &UserName, name: &str) -> Error {
    Error::not_found(format!("no job of {user} is called '{name}'"))
        .hint("`tpu cms job list` lists them; add one: tpu cms job add --name=NAME --executable=…")
}
