//! The kinds of target of this program: one line for each.

use std::sync::Arc;

use tpu_engine::kinds::local::Local;
use tpu_engine::kinds::ssh::SshHosts;
use tpu_engine::kinds::{KindOfTarget, Kinds};
use tpu_gcp::Tpu;

/// The kinds that every `tpu` has, but for those that it was built without.
pub fn kinds() -> Kinds {
    let tpu = Tpu {
        #[cfg(feature = "lab")]
        simulated: Some(|effects| Arc::new(tpu_lab::sim::beside(effects))),
        #[cfg(not(feature = "lab"))]
        simulated: None,
    };
    let all: &[Arc<dyn KindOfTarget>] = &[
        Arc::new(Local),
        Arc::new(tpu),
        Arc::new(SshHosts),
        #[cfg(feature = "slurm")]
        Arc::new(tpu_slurm::Slurm::default()),
        #[cfg(feature = "kubernetes")]
        Arc::new(tpu_kubernetes::Kubernetes::default()),
    ];
    Kinds::new(all.to_vec())
}
