//! What every verb gets and gives: the surroundings, errors, records and names.
//!
//! Nothing here asks a provider, an engine or tmux how something is.

// What every verb gets and gives.
pub mod another_tpu;
pub mod ctx;
pub mod disk;
pub mod error;
pub mod watch;

// Records, and the right to change them.
pub mod confined;
pub mod data;
pub mod insisted;
pub mod lease;
pub mod original;
pub mod queue_entries;
pub mod records;
pub mod reservations;

// What words and names mean.
pub mod account;
pub mod called;
pub(crate) mod code_copies;
pub mod code_dir;
pub(crate) mod code_files;
pub mod conda;
pub mod known_as;
pub mod launch_paths;
pub mod named;
pub mod names;

// Settings, secrets, providers.
pub mod environment;
pub mod providers;
pub mod scripts;
pub mod secrets;
pub mod setting_layers;

// What is remembered between two questions.
pub mod ancestors;
pub mod answer_cache;
pub(crate) mod fact_cache;
pub mod seen_lately;
