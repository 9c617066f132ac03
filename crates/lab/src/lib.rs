//! Stand-ins for what cannot be had on a desk: a simulated fleet, the Cloud TPU API before it, a Kubernetes cluster.
//!
//! * [`sim`]: a fleet of TPUs that is preempted, runs out of capacity and comes back.
//! * [`emulator`]: the same fleet behind the REST API that `tpu_gcp` speaks.
//! * [`kubernetes`]: an API server with controllers, whose pods are processes of this machine.

pub mod emulator;
pub mod kubernetes;
pub mod sim;
