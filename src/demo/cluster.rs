//! The demo's cluster: a simulated one, whose pods are processes of this machine. How it is reached, it says itself.

use std::ffi::OsString;
use std::path::Path;

use crate::emulate::ClusterBehind;
use tpu_ops::act::targets;
use tpu_ops::{Ctx, Error};

/// Its name as a target.
pub(super) const CLUSTER: &str = "cluster";

/// So many nodes it has.
const NODES: usize = 2;

/// Starts it. It ends when it is dropped.
pub fn start() -> Result<ClusterBehind, Error> {
    ClusterBehind::start(NODES)
}

/// Makes it known as a target.
pub(super) fn register(ctx: &Ctx, cluster: &ClusterBehind) -> Result<(), Error> {
    targets::register(ctx, CLUSTER, cluster.registration(), false).map(drop)
}

/// The command that trains in a pod, where the program of this machine is at hand.
pub(super) fn command(program: &Path, args: &[&str]) -> Vec<OsString> {
    let train = "program=$1; shift; exec \"$program\" demo-train --workdir=\"$TPU_LOG_DIR\" \"$@\"";
    let mut command: Vec<OsString> = ["sh", "-c", train, "train"].map(OsString::from).to_vec();
    command.push(program.into());
    command.extend(args.iter().map(OsString::from));
    command
}
