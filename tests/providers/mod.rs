//! Whoever makes machines and takes them away.
//!
//! slow: whoever is silent is waited for until that is an answer.

mod asked_once;
mod contract;
mod emulator;
pub(super) mod gcloud;
mod google;
mod settings_gone;
mod side_by_side;
mod sim;
mod slow_answers;
