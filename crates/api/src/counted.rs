//! How many requests were answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Requests that were answered, by method and status.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<BTreeMap<(String, u16), u64>>);

impl Counted {
    /// One more.
    pub(super) fn add(&self, method: &str, status: u16) {
        // Any word can be a method: whoever makes them up shall not fill this.
        const KNOWN: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
        let method = if KNOWN.contains(&method) { method } else { "OTHER" };
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.entry((method.to_owned(), status)).or_default() += 1;
    }

    /// All of them.
    pub(super) fn all(&self) -> BTreeMap<(String, u16), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
