//! Who has which target.

mod board;
