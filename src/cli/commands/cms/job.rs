//! `tpu cms set`, `tpu cms job`: the jobset, its hosts and its scheduler.

use std::path::PathBuf;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CmsHostsStep, CmsJobStep, SetSettings};
use crate::cli::commands::hosts::{self as hosts_cmds, limits_of};
use crate::cli::commands::settings;
use crate::cli::print::Output;
use crate::cli::print::table::columns;
use tpu_core::model::ids::UserName;
use tpu_core::text::{counted, escape};
use tpu_ops::act::hosts::add::NewHosts;
use tpu_ops::act::hosts::{self, Host};
use tpu_ops::front::cloudmesh::cluster::refuse_closed;
use tpu_ops::front::cloudmesh::list::{CmsChoice, list};
use tpu_ops::front::cloudmesh::{self, jobset};
use tpu_ops::{Ctx, Error};
use tpu_wire::cloudmesh::{JobsetDocument, PolicyDocument};
use tpu_wire::hosts::HostsDocument;

use super::{changes, listed, manual, template, user_at_work};

/// `tpu cms job …`.
pub(super) fn run(app: &App, step: &CmsJobStep) -> Outcome {
    match step {
        CmsJobStep::Set { file } => set(app, file),
        CmsJobStep::Info => info(app),
        CmsJobStep::Template { file, force, fields } => {
            template::write(app, file.as_deref(), *force, fields)
        }
        CmsJobStep::Add { file, fields } => changes::add(app, file.as_deref(), fields),
        CmsJobStep::List { what: Some(_), .. } => list_hosts(app),
        CmsJobStep::List { what: None, name, status } => {
            let (name, status) = (name.as_deref(), status.as_deref());
            Ok(listed(&list(&app.requester()?, CmsChoice { queue: None, name, status })?))
        }
        CmsJobStep::Status => {
            Ok(listed(&list(&app.requester()?, CmsChoice::default())?.by_status()))
        }
        CmsJobStep::Kill(names) => changes::kill(app, names),
        CmsJobStep::Run(names) => changes::run(app, names),
        CmsJobStep::Reset(names) => changes::reset(app, names),
        CmsJobStep::Delete(names) => changes::delete(app, names),
        CmsJobStep::Hosts { step } => add_hosts(app, step),
        CmsJobStep::Scheduler { policy: Some(policy), .. } => settings::set(
            app,
            &SetSettings {
                key: Some("policy".to_owned()),
                value: Some(policy.clone()),
                words: Vec::new(),
            },
        ),
        CmsJobStep::Scheduler { policy: None, what: Some(_) } => scheduler(app),
        CmsJobStep::Scheduler { policy: None, what: None } => Err(Error::usage("which policy?")
            .hint(
                "as in: tpu cms job scheduler --policy=random; tpu cms job scheduler info shows it",
            )),
        CmsJobStep::Help => Ok(manual::page()),
    }
}

/// Whose jobset is meant; of nobody in particular where nobody is named.
fn whose(app: &App) -> Result<Option<UserName>, Error> {
    Ok(app.known_user(&*app.ctx()?.data()?))
}

/// `tpu cms set jobset[=FILE]`.
pub(super) fn variable(app: &App, variable: &str) -> Outcome {
    match variable.split_once('=') {
        None if variable == "jobset" => shown(app),
        Some(("jobset", file)) => set(app, file),
        _ => {
            let name = variable.split('=').next().unwrap_or_default();
            Err(Error::usage(format!("'{name}' is no variable that tpu keeps"))
                .hint("as in: tpu cms set jobset=FILE; other values: tpu get-settings"))
        }
    }
}

fn no_jobset() -> Error {
    Error::not_found("no jobset is set").hint(format!(
        "as in: tpu cms set jobset=FILE; `tpu cms job template FILE` writes one; Cloudmesh keeps it in {}",
        jobset::USUAL
    ))
}

fn current(app: &App) -> Result<PathBuf, Error> {
    jobset::current(app.ctx()?, whose(app)?.as_ref())?.ok_or_else(no_jobset)
}

fn shown(app: &App) -> Outcome {
    let path = current(app)?;
    let text = format!("jobset='{}'", escape(&path.display().to_string()));
    let is_there = app.ctx()?.store.disk().stat(&path).is_ok();
    Ok(Output::new(text, &JobsetDocument { jobset: &path, is_there }))
}

/// What is said wherever somebody could think that a file follows.
const READ_ONLY: &str = "the file is read and never written: what is changed here stays in tpu";

fn set(app: &App, file: &str) -> Outcome {
    let ctx = app.ctx()?;
    let path = cloudmesh::place(ctx, file)?;
    let is_there = jobset::remember(ctx, whose(app)?.as_ref(), &path)?;
    let shown = escape(&path.display().to_string()).into_owned();
    let next = if is_there {
        format!("import its hosts and jobs: tpu import cloudmesh {shown}")
    } else {
        "it is not there yet: tpu cms job template writes it".to_owned()
    };
    let document = JobsetDocument { jobset: &path, is_there };
    Ok(Output::new(format!("jobset='{shown}'"), &document).notes(vec![READ_ONLY.to_owned(), next]))
}

fn info(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let path = current(app)?;
    let file = cloudmesh::read(ctx, &path)?;
    let text = format!(
        "{}: {}, {}\n",
        escape(&path.display().to_string()),
        counted(file.hosts.len(), "host"),
        counted(file.jobs.len(), "job")
    );
    Ok(Output::new(text, &JobsetDocument { jobset: &path, is_there: true })
        .notes(vec![READ_ONLY.to_owned()]))
}

/// The hosts that jobs can begin on, and those of the jobset that are none yet.
fn list_hosts(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let own = hosts::list(ctx, &[])?;
    let own: Vec<Host> = own.into_iter().filter(|host| !host.addresses.is_empty()).collect();
    let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let row = |host: &Host| {
        let jobs = u32::try_from(host.jobs.len()).unwrap_or(u32::MAX);
        let status = match (&host.record.drained, host.capacity.jobs) {
            (Some(_), _) => "inactive",
            (None, Some(most)) if jobs >= most => "full",
            (None, _) => "free",
        };
        vec![
            escape(host.name.as_str()).into_owned(),
            escape(&host.addresses.join(",")).into_owned(),
            number(host.capacity.cpus),
            status.to_owned(),
            jobs.to_string(),
            number(host.capacity.jobs),
        ]
    };
    let rows: Vec<Vec<String>> = own.iter().map(row).collect();
    let titles = ["NAME", "IP", "CPUS", "STATUS", "JOB_COUNTER", "MAX_JOBS_ALLOWED"];
    let text = if rows.is_empty() {
        "No hosts. As in: tpu cms job hosts add --hostname=NAME --ip=IP --cpus=N\n".to_owned()
    } else {
        columns(&titles, &rows)
    };
    let missing = missing(ctx, whose(app)?.as_ref(), &own)?;
    Ok(Output::new(text, &HostsDocument::at(&own, ctx.clock.now())).notes(missing))
}

/// What to say of the hosts of the jobset that are not known here.
fn missing(ctx: &Ctx, user: Option<&UserName>, known: &[Host]) -> Result<Vec<String>, Error> {
    let Some(path) = jobset::current(ctx, user)? else { return Ok(Vec::new()) };
    if ctx.store.disk().stat(&path).is_err() {
        return Ok(Vec::new());
    }
    let file = match cloudmesh::read(ctx, &path) {
        Ok(file) => file,
        Err(error) => return Ok(vec![jobset::unread(&error)]),
    };
    let is_known = |name: &str| known.iter().any(|host| host.name.as_str() == name);
    let missing = file.hosts.iter().filter(|host| !is_known(&host.name));
    let names: Vec<&str> = missing.map(|host| host.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let note = format!(
        "in the jobset and not known here: {}; take them over: tpu import cloudmesh {}",
        names.join(", "),
        path.display()
    );
    Ok(vec![escape(&note).into_owned()])
}

fn add_hosts(app: &App, step: &CmsHostsStep) -> Outcome {
    let CmsHostsStep::Add { hostname, ip, cpus, status, job_counter, max_jobs_allowed, no_probe } =
        step;
    refuse_closed(status.as_deref())?;
    let said = NewHosts {
        addresses: ip.iter().cloned().collect(),
        user: app.global.user.clone(),
        limits: limits_of(max_jobs_allowed.as_deref(), cpus.as_deref())?,
        ..NewHosts::default()
    };
    let mut notes = Vec::new();
    if job_counter.is_some() {
        notes.push("--job_counter says nothing here: tpu counts what runs".to_owned());
    }
    if jobset::current(app.ctx()?, user_at_work(app)?.as_ref())?.is_some() {
        notes.push(READ_ONLY.to_owned());
    }
    let names = std::slice::from_ref(hostname);
    hosts_cmds::added(app, names, &said, !no_probe).map(|output| output.notes(notes))
}

fn scheduler(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let user = whose(app)?;
    let data = ctx.data()?;
    let settings = ctx.settings(user.as_ref().and_then(|name| data.user(name)))?;
    let policy = settings.policy.as_str();
    let origin = settings.origin("policy").to_string();
    let text = format!("policy: {policy}  ({})", escape(&origin));
    Ok(Output::new(text, &PolicyDocument { user: user.as_ref(), policy, origin }))
}
