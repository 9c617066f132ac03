//! The only doors to the operating system: clock, environment, programs, processes, randomness.
//!
//! Each door has a twin for tests and simulation where its answer decides something: [`clock::Clock`] and
//! [`random::Random`] are traits, [`env::Env`] is a value. Nothing in here knows a job, a file of ours, or
//! tmux. `clippy.toml` lists the methods that only these files may call.

pub mod accounts;
pub mod beneath;
pub mod clock;
pub mod env;
pub mod files;
pub mod proc;
pub mod procs;
pub mod pty;
pub mod random;
pub mod shared;
pub mod stop;
pub mod talk;
pub mod threads;
