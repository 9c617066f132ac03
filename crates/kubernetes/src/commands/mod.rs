//! The commands of the program that this kind brings along.

mod flavors;
mod images;
mod kjob;
mod table;

pub(super) use kjob::usual_target;

use tpu_engine::kinds::KindCommand;

/// All of them.
pub(super) const ALL: &[KindCommand] =
    &[flavors::COMMAND, images::IMAGES, images::DETAILS, kjob::COMMAND];
