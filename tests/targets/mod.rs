//! Who has which target.

mod board;
mod deleted;
