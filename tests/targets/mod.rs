//! Who has which target.
//!
//! slow: targets are made and taken away in their own time.

mod board;
mod deleted;
mod usable;
