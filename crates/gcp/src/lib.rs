//! Cloud TPU targets: machines that a control plane creates and takes away.
//!
//! [`google`] is the provider. The simulated one is in `tpu-lab`, and the root hands it in. [`states`] is the table of what
//! each word of the API means to tpu; [`quota`] and [`queued`] read quotas and queued resources.

pub mod google;
pub mod queued;
pub mod quota;
pub mod states;

use std::sync::Arc;

use google::{Google, GoogleConfig};
use tpu_core::model::settings::WorkersBy;
use tpu_core::model::target::{ProviderAt, ProviderName, Registration, TargetKind};
use tpu_engine::kinds::{Destination, Door, KindOfTarget, Refusal, Within};
use tpu_engine::provider::{Provider, retry};
use tpu_system::effects::Effects;
use tpu_system::remote::gcloud::{self, GcloudConfig};
use tpu_system::remote::local::LocalRemote;
use tpu_system::remote::ssh;
use tpu_system::sys::env::Env;

/// The Cloud TPU API.
pub(crate) const GOOGLE: ProviderName = ProviderName::of("google");
/// The simulator.
pub const SIM: ProviderName = ProviderName::of("sim");

/// Opens a provider that stands in for the control plane.
pub type OpenSimulated = fn(&Effects) -> Arc<dyn Provider>;

/// The kind of targets that come and go by a control plane's word.
pub struct Tpu {
    /// Opens the simulated provider, which this crate does not know, in programs that have one.
    pub simulated: Option<OpenSimulated>,
}

impl KindOfTarget for Tpu {
    fn word(&self) -> TargetKind {
        TargetKind::TPU
    }

    fn in_words(&self) -> &'static str {
        "machines that a cloud makes and takes away"
    }

    fn options(&self) -> &'static [&'static str] {
        &["provider", "project", "endpoint", "zone", "type", "pre", "spot"]
    }

    fn register(&self, registration: &mut Registration, _: &Env) -> Result<(), Refusal> {
        let Registration { provider, project, endpoint, .. } = registration;
        let place = if project.is_some() { "--project" } else { "--endpoint" };
        match provider {
            Some(name) if *name != GOOGLE && (project.is_some() || endpoint.is_some()) => {
                Err(Refusal::new(
                    format!("{name} knows neither projects nor endpoints"),
                    format!("leave {place} out, or name its provider: --provider {GOOGLE}"),
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn providers(&self) -> Vec<ProviderName> {
        self.simulated.map(|_| SIM).into_iter().chain([GOOGLE]).collect()
    }

    fn at(&self, wanted: ProviderAt) -> ProviderAt {
        if wanted.name == GOOGLE {
            wanted
        } else {
            ProviderAt { name: wanted.name, ..ProviderAt::default() }
        }
    }

    fn open(&self, at: &ProviderAt, within: Within<'_>) -> Option<Arc<dyn Provider>> {
        let Within { effects, settings } = within;
        if at.name == SIM {
            return self.simulated.map(|open| open(effects));
        }
        Some(Arc::new(Google::open(GoogleConfig {
            endpoint: at.endpoint.clone(),
            project: at.project.clone(),
            auth: settings.cloud_auth,
            node: settings.cloud_node.clone(),
            env: effects.env.clone(),
            clock: Arc::clone(&effects.clock),
            random: Arc::clone(&effects.random),
            list_tries: retry::TRIES,
        })))
    }

    fn workers(&self, asked: &Destination<'_>, within: Within<'_>) -> Result<Door, Refusal> {
        let Within { effects, settings } = within;
        let name = asked.name;
        if asked.provider.name == SIM && self.simulated.is_some() {
            let remote = Box::new(LocalRemote::new(Arc::clone(&effects.clock)));
            return Ok(Door { remote, is_elsewhere: false, is_by_address: true });
        }
        if asked.provider.name != GOOGLE {
            let practice = if self.simulated.is_some() { " (or sim, for practice)" } else { "" };
            return Err(Refusal::new(
                format!(
                    "no way to the workers of {name} is known, so a command cannot be run there"
                ),
                format!(
                    "say where they are: tpu register {name} --address HOST,…; or whose: tpu set-settings cloud \
                     google{practice}, or --cloud; the target `local` is this machine; a directory with \
                     a staging.sh brings its own way"
                ),
            ));
        }
        if settings.workers == WorkersBy::Gcloud {
            let remote = gcloud::open(GcloudConfig {
                program: None,
                target: name.of_provider().as_str().to_owned(),
                zone: asked.target.and_then(|target| target.zone.clone()),
                project: asked.provider.project.clone(),
                user: settings.ssh_user.clone(),
                key: settings.ssh_key.clone(),
                options: settings.ssh_options.clone().unwrap_or_default(),
            });
            return Ok(Door { remote, is_elsewhere: true, is_by_address: false });
        }
        // A machine that is made anew may get the address of an old one, and has other keys.
        let alias = (asked.created_at)().map(|at| format!("tpu.{name}.{}", at.as_second()));
        let remote = ssh::open(asked.by_ssh(within, alias));
        Ok(Door { remote, is_elsewhere: true, is_by_address: true })
    }
}
