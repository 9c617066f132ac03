//! What waits in a data file.

use super::env::TestEnv;

impl TestEnv {
    /// How many entries wait in the queue.
    pub(crate) fn queued(&self) -> usize {
        self.data()["queue"]["entries"].as_array().map_or(0, Vec::len)
    }
}
