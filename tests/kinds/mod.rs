//! Kinds of target that are added to the program from outside.
//!
//! slow: jobs that end and are resumed by the turns of a real daemon.

mod added;
mod disks;
mod followed;
mod groups;
