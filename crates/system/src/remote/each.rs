//! Something on every worker at once.

use std::sync::{Condvar, Mutex, PoisonError};

use super::{PerWorker, RemoteError, Worker};

/// Does something on every worker at the same time, and waits for all of them.
pub(super) fn on_each<T: Send>(
    workers: &[Worker],
    act: impl Fn(&Worker) -> Result<T, RemoteError> + Sync,
) -> PerWorker<T> {
    let act = &act;
    std::thread::scope(|scope| {
        let begun: Vec<_> =
            workers.iter().map(|worker| (worker.index, scope.spawn(move || act(worker)))).collect();
        let what = || RemoteError::Request { what: "a thread of ours ended early".to_owned() };
        begun
            .into_iter()
            .map(|(index, thread)| (index, thread.join().unwrap_or_else(|_| Err(what()))))
            .collect()
    })
}

/// Lets so many through at a time.
#[derive(Debug)]
pub(super) struct Gate {
    free: Mutex<usize>,
    left: Condvar,
}

/// A place within a [`Gate`]; dropped, it lets the next one in.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Gate);

impl Gate {
    /// A gate with so many places.
    pub(super) const fn new(places: usize) -> Self {
        Self { free: Mutex::new(places), left: Condvar::new() }
    }

    /// Waits for a place.
    pub(super) fn enter(&self) -> Place<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.left.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_are_inside_than_there_are_places() {
        let gate = Gate::new(3);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let workers = Worker::all(&vec![String::new(); 64]);
        let done = on_each(&workers, |_| {
            let place = gate.enter();
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(place);
            Ok(())
        });
        assert_eq!(done.len(), 64);
        assert!(most.load(Ordering::SeqCst) <= 3);
    }
}
