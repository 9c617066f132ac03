//! Cloudmesh's clusters, which are pools of hosts here.

use crate::act::hosts::add::{self, Additions, NewHosts};
use crate::act::hosts::edit::{HostChange, HostEdit};
use crate::act::hosts::{self, Host, limit, refuse_no_pool};
use crate::{Ctx, Error};
use tpu_core::text::escape;

/// Said to whoever says the GPUs of a new host.
pub const NO_GPUS: &str = "--gpu says nothing here; so many GPUs: tpu hosts set NAME --gpus N";

/// The cluster of whoever names none.
const USUAL: &str = "default";

/// Says how a cluster comes to be.
pub fn create(cluster: Option<&str>) -> String {
    let name = escape(cluster.unwrap_or(USUAL));
    format!(
        "Nothing is to be made: the cluster {name} is there as soon as a host is in it, as by\n\
         tpu cms cluster add --cluster={name} --id=NAME\n"
    )
}

/// The hosts of a cluster.
pub fn hosts(ctx: &Ctx, cluster: &str) -> Result<Vec<Host>, Error> {
    let words = [cluster.to_owned()];
    refuse_no_pool(ctx, &words)?;
    hosts::list(ctx, &words)
}

/// Hosts that are put into a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct CmsNewHosts<'a> {
    /// The cluster.
    pub cluster: Option<&'a str>,
    /// What they are called: names, or patterns of names.
    pub id: &'a str,
    /// Where they are.
    pub name: Option<&'a str>,
    /// The same, which outranks it.
    pub ip: Option<&'a str>,
    /// The account there.
    pub user: Option<&'a str>,
    /// Their state.
    pub status: Option<&'a str>,
    /// The activate of a Python environment.
    pub pyenv: Option<&'a str>,
}

/// Makes hosts known and puts them into a cluster; each is asked unless `is_asked` says otherwise. `commands` are words
/// that no name may be.
pub fn add(
    ctx: &Ctx,
    new: &CmsNewHosts<'_>,
    is_asked: bool,
    commands: &[String],
) -> Result<Additions, Error> {
    refuse_closed(new.status)?;
    let said = NewHosts {
        addresses: new.ip.or(new.name).into_iter().map(str::to_owned).collect(),
        user: new.user.map(str::to_owned),
        pyenv: new.pyenv.map(str::to_owned),
        pools: vec![new.cluster.unwrap_or(USUAL).to_owned()],
        ..NewHosts::default()
    };
    add::add(ctx, &[new.id.to_owned()], &said, (is_asked, commands))
}

/// Refuses a new host that takes no jobs: it is told so afterwards.
pub fn refuse_closed(status: Option<&str>) -> Result<(), Error> {
    match status {
        None | Some("free" | "active") => Ok(()),
        Some(other) => Err(Error::usage(format!("--status={other}: a new host is free"))
            .hint("add it without --status; nothing begins there after: tpu hosts drain NAME")),
    }
}

/// What it does to hosts that a value of theirs is set.
pub fn change_of(id: &str, key: &str, value: &str) -> Result<HostChange<'static>, Error> {
    let mut edit = HostEdit::default();
    match (key, value) {
        ("max_jobs_allowed", _) => edit.limits.jobs = Some(limit("max-jobs", value)?),
        ("cpus" | "cpu_count" | "cores", _) => edit.limits.cpus = Some(limit("cpus", value)?),
        ("gpus", _) => edit.limits.gpus = Some(limit("gpus", value)?),
        ("pyenv", _) => edit.pyenv = Some(Some(value.to_owned()).filter(|file| file != "none")),
        ("status", "active" | "free") => return Ok(HostChange::Undrain),
        ("status", "inactive") => return Ok(HostChange::Drain(None)),
        ("status", _) => {
            return Err(Error::usage("a status is active or inactive")
                .hint("as in: tpu cms cluster set --id=j1 --key=status --value=inactive"));
        }
        ("ip" | "name" | "user", _) => {
            return Err(Error::usage(format!("{key} of a host is what it was added with"))
                .hint(format!("tpu hosts remove {id}, then add it again")));
        }
        _ => {
            return Err(Error::usage(format!("'{key}' is no value of a host"))
                .hint("max_jobs_allowed, cpus, gpus, pyenv or status"));
        }
    }
    Ok(HostChange::Set(edit))
}
