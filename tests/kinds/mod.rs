//! Kinds of target that are added to the program from outside.

mod added;
mod disks;
mod followed;
mod groups;
