//! What the cluster does by itself, all the time: Jobs, what ends by itself, placing, kubelets.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::collector;
use super::jobs::JobController;
use super::kubelet::{self, Kubelets};
use super::logs::LogShelf;
use super::scheduler;
use super::shared::Shared;
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// How often it looks at what has to be done.
const TURN: Duration = Duration::from_millis(20);
/// How often it does so where nothing has changed: for what happens only because time goes by.
const IDLE_TURNS: u32 = 10;

/// All of it.
#[derive(Debug)]
pub(super) struct Works {
    shared: Arc<Shared>,
    inner: Mutex<(JobController, Kubelets)>,
    /// Whether the controllers stand still: Jobs, the garbage collector, eviction, the scheduler.
    stand_still: AtomicBool,
}

impl Works {
    /// For a cluster, with so many nodes of its own. What its containers keep lies in a directory.
    pub(super) fn new(
        shared: &Arc<Shared>,
        shelf: &Arc<LogShelf>,
        (dir, nodes): (&Path, usize),
    ) -> io::Result<Self> {
        let mut kubelets = Kubelets::new(dir, Arc::clone(shelf));
        for number in 1..=nodes {
            shared
                .act(|cluster| kubelets.add_node(cluster, &format!("node-{number}")))
                .map_err(io::Error::other)?;
        }
        let inner = Mutex::new((JobController::default(), kubelets));
        Ok(Self { shared: Arc::clone(shared), inner, stand_still: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, (JobController, Kubelets)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the kubelets.
    pub(super) fn with_kubelets<T>(&self, work: impl FnOnce(&mut Kubelets) -> T) -> T {
        work(&mut self.lock().1)
    }

    /// Lets the controllers stand still, or go on. A turn that has begun is over when this returns.
    pub(super) fn let_stand_still(&self, still: bool) {
        let turn = self.lock();
        self.stand_still.store(still, Ordering::Relaxed);
        drop(turn);
    }

    /// Works until it is to stop; then ends all that runs.
    pub(super) fn run(&self, stop: &AtomicBool) {
        let clock = SystemClock::new();
        let mut seen = None;
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) {
            let began = clock.monotonic();
            let mut inner = self.lock();
            let (jobs, kubelets) = &mut *inner;
            self.shared.act(|cluster| {
                idle += 1;
                let has_changed = seen != Some(cluster.store.version());
                let is_due = has_changed || idle >= IDLE_TURNS;
                if is_due && !self.stand_still.load(Ordering::Relaxed) {
                    idle = 0;
                    jobs.turn(cluster);
                    collector::turn(cluster);
                    kubelet::evict(cluster);
                    scheduler::turn(cluster);
                    seen = Some(cluster.store.version());
                }
                kubelets.turn(cluster);
            });
            drop(inner);
            // Who asks has his turn too, however many objects there are.
            clock.sleep(TURN.max(clock.monotonic().saturating_sub(began)));
        }
        self.lock().1.end();
    }
}
