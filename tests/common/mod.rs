//! Helpers that several test files share.
pub(crate) mod screen;
