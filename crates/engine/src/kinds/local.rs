//! This machine: always there, whatever else is.

use super::{Destination, Door, KindOfTarget, Refusal, Within};
use tpu_core::model::target::TargetKind;

/// The kind of the target `local`.
pub struct Local;

impl KindOfTarget for Local {
    fn word(&self) -> TargetKind {
        TargetKind::LOCAL
    }

    fn in_words(&self) -> &'static str {
        "this machine"
    }

    fn workers(&self, asked: &Destination<'_>, _within: Within<'_>) -> Result<Door, Refusal> {
        Err(Refusal::new(
            format!("{} is this machine: there is nothing to reach", asked.name),
            "run a command here: tpu run local -- COMMAND",
        ))
    }

    fn is_disk_ours(&self) -> bool {
        true
    }
}
