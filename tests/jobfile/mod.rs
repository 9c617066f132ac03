//! Jobs as files: what a file says is what the same words do; a file that is wrong does nothing.
//!
//! slow: jobs in real windows, set up on real hosts behind sshd.

mod again;
mod begun;
mod buckets;
mod conda;
mod container;
mod converted;
mod defects;
mod given_back;
mod jobman;
mod malformed;
mod orders;
mod page;
mod printed;
mod readme;
mod recipes;
mod requested;
mod retried;
mod schema;
mod secrets;
mod setup;
mod submitted;
mod tasks;
mod verbs;
mod wandb;
mod workplace;
mod written;
