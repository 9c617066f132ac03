//! A sign that one line gives.

use super::rules::Weight;
use crate::model::facts::Class;

/// A failure or a sign of a finish that still counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sign {
    pub(super) line: usize,
    pub(super) rule: usize,
    pub(super) class: Class,
    pub(super) weight: Weight,
    /// Where in the line it was found.
    pub(super) at: usize,
    pub(super) worker: Option<Vec<u8>>,
}
