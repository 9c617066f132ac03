//! A pod that is at work, for whoever follows what it prints.

use super::kept::KeptLog;

/// A pod that is at work, and where what it prints is kept.
#[derive(Clone)]
pub struct Life {
    /// Its name.
    pub(super) pod: String,
    /// Its identity.
    pub(super) uid: String,
    /// Its namespace.
    pub(super) namespace: String,
    /// Where what it prints is kept.
    pub(super) log: KeptLog,
}
