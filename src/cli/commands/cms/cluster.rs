//! `tpu cms cluster`: pools of hosts.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{CmsClusterName, CmsClusterStep, Pools};
use crate::cli::commands::hosts;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_ops::act::hosts::edit::HostChange;
use tpu_ops::act::hosts::words;
use tpu_ops::front::cloudmesh::cluster::{self, CmsNewHosts, NO_GPUS};
use tpu_wire::hosts::{HostsAddedDocument, HostsDocument};
use tpu_wire::pages::TextDocument;

/// `tpu cms cluster …`.
pub(super) fn run(app: &App, step: &CmsClusterStep) -> Outcome {
    let (ids, change) = match step {
        CmsClusterStep::Create(CmsClusterName { cluster }) => {
            let text = cluster::create(cluster.as_deref());
            return Ok(Output::new(text.clone(), &TextDocument { text: &text }));
        }
        CmsClusterStep::List(CmsClusterName { cluster: None }) => {
            return hosts::pools(app, &Pools { step: None });
        }
        CmsClusterStep::List(CmsClusterName { cluster: Some(cluster) }) => {
            let ctx = app.ctx()?;
            let (hosts, now) = (cluster::hosts(ctx, cluster)?, ctx.clock.now());
            return Ok(Output::new(words::table(&hosts, now), &HostsDocument::at(&hosts, now)));
        }
        CmsClusterStep::Add { id, name, ip, status, gpu, pyenv, no_probe, cluster } => {
            let new = CmsNewHosts {
                cluster: cluster.cluster.as_deref(),
                id,
                name: name.as_deref(),
                ip: ip.as_deref(),
                user: app.global.user.as_deref(),
                status: status.as_deref(),
                pyenv: pyenv.as_deref(),
            };
            let added = cluster::add(app.ctx()?, &new, !no_probe, &legacy::command_words())?;
            let (text, notes) = words::added(&added);
            let no_gpus = gpu.iter().map(|_| NO_GPUS.to_owned()).collect();
            let document = HostsAddedDocument::from(&added);
            return Ok(Output::new(text, &document).notes(notes).notes(no_gpus));
        }
        CmsClusterStep::Delete(ids) => (ids, HostChange::Remove),
        CmsClusterStep::Activate(ids) => (ids, HostChange::Undrain),
        CmsClusterStep::Deactivate(ids) => (ids, HostChange::Drain(None)),
        CmsClusterStep::Set { ids, key, value } => (ids, cluster::change_of(&ids.id, key, value)?),
    };
    hosts::changed(app, std::slice::from_ref(&ids.id), change)
}
