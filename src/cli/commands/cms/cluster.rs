//! `tpu cms cluster`: pools of hosts.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{
    CmsClusterName, CmsClusterStep, DrainHosts, HostLimits, Hosts, HostsStep, Pools, SetHosts,
    SomeHosts,
};
use crate::cli::commands::hosts;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::act::hosts::add::NewHosts;
use tpu_ops::act::hosts::refuse_no_pool;
use tpu_wire::pages::TextDocument;

use super::job::refuse_closed;

/// The cluster of whoever names none.
const USUAL: &str = "default";

/// `tpu cms cluster …`.
pub(super) fn run(app: &App, step: &CmsClusterStep) -> Outcome {
    let some = |id: &str| SomeHosts { targets: vec![id.to_owned()] };
    let step = match step {
        CmsClusterStep::Create(cluster) => return Ok(created(cluster)),
        CmsClusterStep::List(CmsClusterName { cluster: None }) => {
            return hosts::pools(app, &Pools { step: None });
        }
        CmsClusterStep::List(CmsClusterName { cluster: Some(cluster) }) => {
            refuse_no_pool(app.ctx()?, std::slice::from_ref(cluster))?;
            HostsStep::List(some(cluster))
        }
        CmsClusterStep::Add { .. } => return add(app, step),
        CmsClusterStep::Delete(ids) => HostsStep::Remove(some(&ids.id)),
        CmsClusterStep::Activate(ids) => HostsStep::Undrain(some(&ids.id)),
        CmsClusterStep::Deactivate(ids) => drain(&ids.id),
        CmsClusterStep::Set { ids, key, value } => set(&ids.id, key, value)?,
    };
    hosts::run(app, &Hosts { step: Some(step) })
}

fn drain(id: &str) -> HostsStep {
    HostsStep::Drain(DrainHosts { targets: vec![id.to_owned()], why: None })
}

fn created(cluster: &CmsClusterName) -> Output {
    let name = cluster.cluster.as_deref().unwrap_or(USUAL);
    let name = tpu_core::text::escape(name);
    let text = format!(
        "Nothing is to be made: the cluster {name} is there as soon as a host is in it, as by\n\
         tpu cms cluster add --cluster={name} --id=NAME\n"
    );
    Output::new(text.clone(), &TextDocument { text: &text })
}

fn add(app: &App, step: &CmsClusterStep) -> Outcome {
    let CmsClusterStep::Add { id, name, ip, status, gpu, pyenv, no_probe, cluster } = step else {
        return Err(Error::usage("nothing to add"));
    };
    refuse_closed(status.as_deref())?;
    let said = NewHosts {
        addresses: ip.as_ref().or(name.as_ref()).into_iter().cloned().collect(),
        user: app.global.user.clone(),
        pyenv: pyenv.clone(),
        pools: vec![cluster.cluster.clone().unwrap_or_else(|| USUAL.to_owned())],
        ..NewHosts::default()
    };
    let mut notes = Vec::new();
    if gpu.is_some() {
        notes.push("--gpu says nothing here; so many GPUs: tpu hosts set NAME --gpus N".to_owned());
    }
    let names = std::slice::from_ref(id);
    hosts::added(app, names, &said, !no_probe).map(|output| output.notes(notes))
}

/// `set --id --key --value` as what it says of a host here.
fn set(id: &str, key: &str, value: &str) -> Result<HostsStep, Error> {
    let none = HostLimits { max_jobs: None, gpus: None, cpus: None, mem: None };
    let (value, mut pyenv) = (Some(value.to_owned()), None);
    let limits = match (key, value.as_deref()) {
        ("max_jobs_allowed", _) => HostLimits { max_jobs: value, ..none },
        ("cpus" | "cpu_count" | "cores", _) => HostLimits { cpus: value, ..none },
        ("gpus", _) => HostLimits { gpus: value, ..none },
        ("pyenv", _) => {
            pyenv = value;
            none
        }
        ("status", Some("active" | "free")) => {
            return Ok(HostsStep::Undrain(SomeHosts { targets: vec![id.to_owned()] }));
        }
        ("status", Some("inactive")) => return Ok(drain(id)),
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
    };
    let targets = vec![id.to_owned()];
    Ok(HostsStep::Set(SetHosts { targets, limits, pool: Vec::new(), tag: Vec::new(), pyenv }))
}
