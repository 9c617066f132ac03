//! The queue, and whose jobs a request means.
//!
//! The queue decides whose turn it is and calls `act` to start it. [`begin`] is the door to both.

// How jobs begin, and the queue.
pub mod ack;
pub mod begin;
pub mod preview;
pub mod queue;
pub mod unhold;
pub mod words;

// What the words of a request mean, and whose they are about.
pub mod request;
pub mod whose;

// What users have.
pub mod rules;
pub mod settings_files;
pub mod users;
