//! The kinds of target of this program: one line for each.

use std::sync::Arc;

use tpu_engine::kinds::local::Local;
use tpu_engine::kinds::ssh::SshHosts;
use tpu_engine::kinds::{KindOfTarget, Kinds};
use tpu_gcp::Tpu;
use tpu_kubernetes::Kubernetes;
use tpu_lab::sim;
use tpu_slurm::Slurm;

/// The kinds that every `tpu` has.
pub fn kinds() -> Kinds {
    let all: [Arc<dyn KindOfTarget>; 5] = [
        Arc::new(Local), //
        Arc::new(Tpu { simulated: |effects| Arc::new(sim::beside(effects)) }),
        Arc::new(SshHosts),
        Arc::new(Slurm::default()),
        Arc::new(Kubernetes::default()),
    ];
    Kinds::new(all.to_vec())
}
