//! What the lock of the original says.

/// A flag that was set longer ago is left over from a process that died: the original itself waits this
/// long for one before it gives up.
pub const STALE_S: u64 = 30 * 60;

/// What `lock.json` says about the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Who set it, if that was written down.
    pub user: Option<String>,
    /// Seconds since the file was written.
    pub age_s: u64,
}

impl Flag {
    /// Whether somebody may still be at work.
    pub fn is_fresh(&self) -> bool {
        self.age_s < STALE_S
    }
}
