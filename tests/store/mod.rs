//! The state file: nothing lost, whatever fails and whoever writes.
//!
//! slow: writers are killed at one step after the other, and each change reaches the disk.

mod accounts;
pub(super) mod document;
mod failing_disk;
pub(super) mod killed_writers;
mod long_archive;
mod many_writers;
mod no_space;
mod only_the_change;
mod original_lock;
mod read_on;
mod reading;
mod strange_files;
