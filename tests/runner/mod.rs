//! What runs attempts.

mod contract;
mod windows;
