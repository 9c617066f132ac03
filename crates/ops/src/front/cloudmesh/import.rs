//! Takes over what files of Cloudmesh say: hosts and clusters become hosts and pools, a policy the user's setting. Of all
//! files together these are one change, and what somebody has set here already stays. Jobs that are ready are then held
//! in our queue, each for itself: what is cut short in between is completed by the same import again.

use std::path::PathBuf;

use crate::act::hosts::add::{self, NewHosts};
use crate::act::hosts::detect::Asked;
use crate::act::hosts::{Limit, Limits};
use crate::base::account::name_at_work;
use crate::base::ctx::user_of;
use crate::base::names;
use crate::waiting::queue::edit::{self, QueueEdit};
use crate::{Ctx, Error};
use tpu_core::model::capacity::Capacity;
use tpu_core::model::data::Data;
use tpu_core::model::host::Drained;
use tpu_core::model::ids::{QueueName, TargetName, UserName};
use tpu_core::model::policy::Policy;
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::target::Registration;
use tpu_jobfile::cloudmesh::{
    CloudmeshFile, CloudmeshKind, ImportedHost, ImportedJob, ImportedState, ReadField,
};

use super::ready::{self, Adding, JobFate};

/// What became of a host of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFate {
    /// It is a host from now on.
    Added,
    /// It was one already, and is in this pool from now on.
    Joined(String),
    /// It was one already, and is as the file says.
    Known,
    /// It was one already and is left as it is; how the file differs.
    Differs(Vec<String>),
}

/// What became of the policy of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyFate {
    /// It is this user's from now on.
    Set(UserName),
    /// It was this user's already.
    Same(UserName),
    /// This user has another one, which stays; and who says so.
    Other(UserName, Policy, String),
    /// Nobody is known here whose it could be.
    Nobody,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub file: CloudmeshFile,
    /// What became of its hosts, in their order.
    pub hosts: Vec<HostFate>,
    /// What became of its policy, where it has one.
    pub policy: Option<PolicyFate>,
    /// What became of its jobs, in their order.
    pub jobs: Vec<JobFate>,
}

/// What became of several.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudmeshImport {
    /// Each of them.
    pub files: Vec<ImportedFile>,
    /// What the new hosts said of themselves, those that were asked; of one that said nothing, why.
    pub answers: Vec<Asked>,
}

/// Who imports, and how.
#[derive(Clone, Debug)]
pub struct CloudmeshRequest<'a> {
    /// The files.
    pub paths: &'a [PathBuf],
    /// Whose the policy and the jobs become.
    pub user: Option<UserName>,
    /// Whether the new hosts are tried.
    pub is_asked: bool,
    /// Words that no name may be.
    pub commands: &'a [String],
}

/// Takes over what files say. What is wrong in any of them is said, and nothing is changed then.
pub fn import(ctx: &Ctx, request: &CloudmeshRequest<'_>) -> Result<CloudmeshImport, Error> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in request.paths {
        match super::read(ctx, path) {
            Ok(mut file) => {
                file.jobs.iter_mut().for_each(check_name);
                files.push((path.clone(), file));
            }
            Err(error) => problems.push(error),
        }
    }
    if let Some(error) = Error::all(problems) {
        return Err(error);
    }
    let mut tried = Data::clone(&*ctx.data()?);
    let planned = settle(ctx, &mut tried, &files, request)?;
    let answers = if request.is_asked { asked(ctx, &tried, &planned)? } else { Vec::new() };
    let mut done = planned;
    if done.iter().any(ImportedFile::changes) {
        done = ctx.transact(|tx| {
            let done = settle(ctx, &mut tx.data, &files, request)?;
            for line in done.iter().flat_map(ImportedFile::edits) {
                tx.edited(None, line);
            }
            Ok(done)
        })?;
    }
    add_jobs(ctx, &tried, &mut done, request)?;
    Ok(CloudmeshImport { files: done, answers })
}

/// Holds the jobs of the files in our queue. `tried` is what is known when their hosts are taken over.
fn add_jobs(
    ctx: &Ctx,
    tried: &Data,
    files: &mut [ImportedFile],
    request: &CloudmeshRequest<'_>,
) -> Result<(), Error> {
    let mut seen = Vec::new();
    for imported in files {
        let file = &imported.file;
        let names: Vec<String> = file.hosts.iter().map(|host| host.name.clone()).collect();
        let is_ready = |job: &ImportedJob| {
            [ImportedState::Held, ImportedState::HeldWithoutTarget].contains(&job.state)
        };
        let queue = match &file.kind {
            CloudmeshKind::Queue(name) if file.jobs.iter().any(is_ready) => made(ctx, name)?,
            _ => QueueName::usual(),
        };
        let to = Adding { user: request.user.as_ref(), queue, among: &names };
        // What the transaction above has changed is in it; what others have meanwhile is seen by each of the next.
        let known = if ctx.store.is_dry_run() { tried.clone() } else { Data::clone(&*ctx.data()?) };
        imported.jobs = ready::add(ctx, &known, (&file.jobs, &mut seen), &to)?;
    }
    Ok(())
}

/// The queue of this name, which is made where there is none.
fn made(ctx: &Ctx, name: &str) -> Result<QueueName, Error> {
    let name = QueueName::new(name.to_owned());
    if ctx.data()?.queues().queue(&name).is_none() {
        if ctx.store.is_dry_run() {
            return Ok(QueueName::usual());
        }
        edit::create(ctx, &name, &QueueEdit::default())?;
    }
    Ok(name)
}

/// Says of a job that it cannot be called here what it is called in its file.
fn check_name(job: &mut ImportedJob) {
    if let Err(error) = names::refuse_as_job(&job.name) {
        let becomes = format!("nothing: it needs another name here, for {}", error.message);
        job.fields.retain(|field| field.name != "name");
        let (name, value) = ("name".to_owned(), job.name.clone());
        job.fields.insert(0, ReadField { name, value, becomes });
    }
}

impl ImportedFile {
    /// Its hosts, each with what became of it.
    pub fn each_host(&self) -> impl Iterator<Item = (&ImportedHost, &HostFate)> {
        self.file.hosts.iter().zip(&self.hosts)
    }

    /// Its jobs, each with what became of it.
    pub fn each_job(&self) -> impl Iterator<Item = (&ImportedJob, &JobFate)> {
        self.file.jobs.iter().zip(&self.jobs)
    }

    /// Whether anything is other than before.
    pub fn changes(&self) -> bool {
        let is_new = |fate: &JobFate| matches!(fate, JobFate::Added(_));
        self.edits().next().is_some() || self.jobs.iter().any(is_new)
    }

    /// What is other than before, for the journal.
    fn edits(&self) -> impl Iterator<Item = String> {
        let hosts = self.each_host().filter_map(|(host, fate)| match fate {
            HostFate::Added => Some(format!("{} is a host", host.name)),
            HostFate::Joined(pool) => Some(format!("{} is in the pool {pool}", host.name)),
            HostFate::Known | HostFate::Differs(_) => None,
        });
        let policy = match (&self.policy, self.file.policy) {
            (Some(PolicyFate::Set(user)), Some(policy)) => {
                Some(format!("policy of {user} is {}", policy.as_str()))
            }
            _ => None,
        };
        hosts.chain(policy)
    }
}

/// What the new hosts say of themselves.
fn asked(ctx: &Ctx, data: &Data, files: &[ImportedFile]) -> Result<Vec<Asked>, Error> {
    let added = files.iter().flat_map(ImportedFile::each_host);
    let added = added.filter(|(_, fate)| **fate == HostFate::Added);
    let new: Vec<(TargetName, Registration)> = added
        .filter_map(|(host, _)| {
            let name = TargetName::from(host.name.as_str());
            let registration = data.registration(&name)?.clone();
            Some((name, registration))
        })
        .collect();
    let answers = add::answers(ctx, data, &new)?;
    Ok(new.into_iter().map(|(name, _)| name).zip(answers).collect())
}

/// Makes of the data what the files want, and says what became of each.
fn settle(
    ctx: &Ctx,
    data: &mut Data,
    files: &[(PathBuf, CloudmeshFile)],
    request: &CloudmeshRequest<'_>,
) -> Result<Vec<ImportedFile>, Error> {
    let mut all = Vec::new();
    for (path, file) in files {
        let pool = match &file.kind {
            CloudmeshKind::Cluster(name) => Some(name.as_str()),
            CloudmeshKind::Jobset | CloudmeshKind::Queue(_) => None,
        };
        let mut fates = Vec::new();
        for host in &file.hosts {
            let fate = settle_host(ctx, data, (host, pool), request.commands);
            fates.push(fate.map_err(|error| Error {
                message: format!("{}:{}: {}", path.display(), host.line, error.message),
                ..error
            })?);
        }
        let policy = file.policy.map(|policy| settle_policy(ctx, data, request, policy));
        let (path, file) = (path.clone(), file.clone());
        let policy = policy.transpose()?;
        all.push(ImportedFile { path, file, hosts: fates, policy, jobs: Vec::new() });
    }
    Ok(all)
}

fn settle_host(
    ctx: &Ctx,
    data: &mut Data,
    (host, pool): (&ImportedHost, Option<&str>),
    commands: &[String],
) -> Result<HostFate, Error> {
    let name = TargetName::from(host.name.as_str());
    let Some(known) = data.registration(&name) else {
        let (name, registration) = new(ctx, host, pool)?;
        add::refuse_known(data, &name, commands)?;
        data.registry_mut().register(name, registration);
        return Ok(HostFate::Added);
    };
    let differences = differences(known, host);
    if !differences.is_empty() {
        return Ok(HostFate::Differs(differences));
    }
    let is_in = |pool: &&str| {
        known.host.as_ref().is_some_and(|host| host.pools.iter().any(|known| known == pool))
    };
    let Some(pool) = pool.filter(|pool| !is_in(pool)) else { return Ok(HostFate::Known) };
    let mut registration = known.clone();
    registration.host.get_or_insert_default().pools.push(pool.to_owned());
    data.registry_mut().register(name, registration);
    Ok(HostFate::Joined(pool.to_owned()))
}

/// A host of a file as it is to be registered.
fn new(
    ctx: &Ctx,
    host: &ImportedHost,
    pool: Option<&str>,
) -> Result<(TargetName, Registration), Error> {
    let said = NewHosts {
        user: host.user.clone(),
        limits: Limits {
            jobs: Some(Limit(Some(host.jobs))),
            gpus: host.gpus.map(|count| Limit(Some(count))),
            cpus: host.cpus.map(|count| Limit(Some(count))),
            memory: None,
        },
        pools: pool.map(str::to_owned).into_iter().collect(),
        pyenv: host.pyenv.clone(),
        ..NewHosts::default()
    };
    let (name, mut registration) = add::registration(ctx, &host.name, host.address.clone(), &said)?;
    if let Some(why) = &host.closed {
        let by = name_at_work(ctx, &*ctx.data()?);
        let drained = Drained { by, since: ctx.clock.now(), why: Some(why.clone()) };
        registration.host.get_or_insert_default().drained = Some(drained);
    }
    Ok((name, registration))
}

/// How a host is said to be other than it is known. What a file does not say makes no difference.
fn differences(known: &Registration, host: &ImportedHost) -> Vec<String> {
    fn text(value: Option<impl ToString>) -> String {
        value.map_or_else(|| "none".to_owned(), |value| value.to_string())
    }
    let Capacity { jobs, gpus, cpus, .. } = known.capacity();
    let is_drained = known.host.as_ref().is_some_and(|host| host.drained.is_some());
    let one = |what: &str, here: String, there: String| {
        (here != there).then(|| format!("{what}: {here} here, {there} in the file"))
    };
    let said = |what: &str, here: Option<u32>, there: Option<u32>| {
        there.and_then(|there| one(what, text(here), there.to_string()))
    };
    let environment = known.host.as_ref().and_then(|host| host.pyenv.as_ref());
    let pyenv = |file: &String| one("pyenv", text(environment), file.clone());
    let account = |user: &String| one("account", text(known.ssh_user.as_ref()), user.clone());
    let parts = [
        one("address", known.addresses.join(", "), host.address.clone()),
        host.user.as_ref().and_then(account),
        said("jobs at a time", jobs, Some(host.jobs)),
        said("CPUs", cpus, host.cpus),
        said("GPUs", gpus, host.gpus),
        host.pyenv.as_ref().and_then(pyenv),
        host.closed.as_ref().filter(|_| !is_drained).and_then(|_| {
            one("jobs", "it takes new ones".to_owned(), "none begins there".to_owned())
        }),
    ];
    parts.into_iter().flatten().collect()
}

/// The policy becomes the user's where nobody has said anything yet.
fn settle_policy(
    ctx: &Ctx,
    data: &mut Data,
    request: &CloudmeshRequest<'_>,
    policy: Policy,
) -> Result<PolicyFate, Error> {
    let Some(user) = request.user.clone() else { return Ok(PolicyFate::Nobody) };
    let settings = ctx.settings(Some(user_of(data, &user)?))?;
    if settings.policy == policy {
        return Ok(PolicyFate::Same(user));
    }
    let origin = settings.origin("policy").clone();
    if origin != SettingOrigin::BuiltIn {
        return Ok(PolicyFate::Other(user, settings.policy, origin.to_string()));
    }
    let origin = SettingOrigin::User(user.as_str().to_owned());
    if let Some(owner) = data.user_mut(&user) {
        owner.settings.set("policy", policy.as_str(), &origin)?;
    }
    Ok(PolicyFate::Set(user))
}
