//! What is written on the board for people and targets that are not there.

use super::{Finding, warning};
use crate::Ctx;
use crate::waiting::queue::presence;
use tpu_core::model::data::Data;
use tpu_core::model::ids::TargetName;

/// Tells of it.
pub(super) fn look(ctx: &Ctx, data: &Data, findings: &mut Vec<Finding>) {
    let ghosts = ghosts(ctx, data);
    if ghosts > 0 {
        let places = tpu_core::text::counted(ghosts, "place");
        let what = format!("in the queue: {places} of processes that are dead");
        findings.push(warning(what, "nobody waits for them; tpu doctor --fix clears them away"));
    }
    for name in strangers(data) {
        findings.push(warning(
            format!("the board has notes about {name}, which is no target any more"),
            format!("tpu register {name}, or: tpu doctor --fix"),
        ));
    }
}

/// Places in the queue whose processes are dead.
pub(super) fn ghosts(ctx: &Ctx, data: &Data) -> usize {
    data.queues().entries.iter().filter(|entry| presence::is_ghost(ctx, entry)).count()
}

/// Targets that the board knows and nothing else does.
pub(super) fn strangers(data: &Data) -> Vec<TargetName> {
    data.board().names().filter(|name| data.target(name).is_none()).cloned().collect()
}
