//! Doing something beside what is being done. A simulation decides itself who goes on when.

/// The door to threads.
pub trait Threads: Send + Sync {
    /// Begins `work`, and does not wait for it. Whoever wants to know its end has `work` tell it.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>);
}

/// The machine's own threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsThreads;

impl Threads for OsThreads {
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        drop(std::thread::spawn(work));
    }
}
