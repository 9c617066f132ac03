//! Kubernetes. So far the cluster that tests and whoever wants to try things work against: [`emulator`]. It knows
//! nothing of the rest of the program, so that a runner is tested over it as over a real cluster.

pub mod emulator;
