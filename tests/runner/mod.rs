//! What runs attempts.

mod contract;
mod engines;
mod windows;
