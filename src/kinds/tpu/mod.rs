//! Machines that a control plane makes and takes away: Cloud TPU, and the simulator that stands in for it.
//!
//! [`google`] and [`sim`] are its providers, [`emulator`] is the simulator behind the API that [`google`]
//! speaks. [`states`] is the table of what each word of that API means to us.

pub mod accelerators;
pub mod emulator;
pub mod google;
mod queued;
pub mod sim;
pub mod states;
