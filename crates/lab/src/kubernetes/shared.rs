//! What all connections and the cluster's own work share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::cluster::Cluster;

/// The cluster, and who waits for changes of it.
#[derive(Debug)]
pub(super) struct Shared {
    cluster: Mutex<Cluster>,
    version: watch::Sender<u64>,
    cut: AtomicBool,
    expired: AtomicU64,
}

impl Shared {
    /// Around a cluster.
    pub(super) fn new(cluster: Cluster) -> Self {
        let version = watch::Sender::new(cluster.store.version());
        Self {
            cluster: Mutex::new(cluster),
            version,
            cut: AtomicBool::new(false),
            expired: AtomicU64::new(0),
        }
    }

    /// Looks at the cluster, or changes it; whoever waits for a change is woken.
    pub(super) fn act<T>(&self, work: impl FnOnce(&mut Cluster) -> T) -> T {
        let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut cluster);
        let now = cluster.store.version();
        drop(cluster);
        self.version.send_if_modified(|known| std::mem::replace(known, now) != now);
        done
    }

    /// Looks at the cluster.
    pub(super) fn look<T>(&self, work: impl FnOnce(&Cluster) -> T) -> T {
        work(&self.cluster.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells of changes from now on.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Forgets what happened: every watch ends with the word that it is too old.
    pub(super) fn expire(&self) {
        self.act(|cluster| cluster.store.forget());
        self.expired.fetch_add(1, Ordering::Relaxed);
        self.version.send_modify(|_| ());
    }

    /// How often that was done.
    pub(super) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Ends all watches.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.version.send_modify(|_| ());
    }

    /// Whether watches are to end.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
}
