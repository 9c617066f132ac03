//! The commands of the program that this kind brings along.

mod flavors;
mod images;
mod kjob;
mod table;

pub(super) use kjob::usual_target;

use tpu_engine::kinds::{KindAnswer, KindCommand, KindList};
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use crate::settings::KubernetesSettings;

/// All of them.
pub(super) const ALL: &[KindCommand] =
    &[flavors::COMMAND, images::IMAGES, images::DETAILS, kjob::COMMAND];

/// What is in a list, by the settings that hold.
pub(super) fn listed(list: KindList<'_>, effects: &Effects) -> Result<KindAnswer, RunError> {
    let settings = settings()?;
    match list {
        KindList::Flavors => Ok(flavors::listed(&settings)),
        KindList::Images(filter) => images::listed(effects, &settings, filter),
    }
}

fn settings() -> Result<KubernetesSettings, RunError> {
    KubernetesSettings::read()
        .map_err(|why| RunError::usage(why, "correct the file, or move it away"))
}
