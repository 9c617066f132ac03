//! Whoever makes machines and takes them away.

mod asked_once;
mod contract;
mod emulator;
pub(super) mod gcloud;
mod google;
mod settings_gone;
mod side_by_side;
mod sim;
mod slow_answers;
