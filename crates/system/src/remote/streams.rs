//! What several programs say at once, each heard by a thread of its own, none faster than the listener.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sys::proc::{ProcError, ProcessStatus, Spawn};
use crate::sys::talk::{self, Heard, Hold, Stdin, Voice};

use super::lines::Lines;
use super::{End, Output, Reply, Worker};

/// Messages that wait for the listener; each holds what was heard at once.
const IN_FLIGHT: usize = 16;
/// The most that is heard at once.
const GULP: usize = 64 * 1024;
/// The end of what a program complained about that is kept.
const COMPLAINT: usize = 16 * 1024;

/// The programs that run for one listener. Whoever drops the listener ends them.
#[derive(Debug, Default)]
struct Holds {
    is_over: bool,
    held: BTreeMap<u32, Hold>,
}

/// One worker's program, for the thread that hears it.
pub(super) struct Program {
    voice: Voice,
    worker: u32,
    holds: Arc<Mutex<Holds>>,
}

/// How a program ended, and what it said last on its standard error.
pub(super) struct Over {
    /// Its status; `None` if it could not be asked.
    pub(super) status: Option<ProcessStatus>,
    /// The end of its standard error.
    pub(super) complaint: Vec<u8>,
}

impl Program {
    /// Hears it to its end. `out` and `err` get what it says, and `err` before that the end of all it said
    /// there; one that returns false has heard enough.
    pub(super) fn hear(
        mut self,
        mut out: impl FnMut(&[u8]) -> bool,
        mut err: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Over {
        let mut buffer = vec![0; GULP];
        let mut complaint = Vec::new();
        let is_heard_out = loop {
            let goes_on = match self.voice.listen(&mut buffer) {
                Ok(Heard::Out(count)) => out(buffer.get(..count).unwrap_or_default()),
                Ok(Heard::Err(count)) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    complaint.extend_from_slice(bytes);
                    let goes_on = err(&complaint, bytes);
                    let surplus = complaint.len().saturating_sub(COMPLAINT);
                    complaint.drain(..surplus);
                    goes_on
                }
                Ok(Heard::End) => break true,
                Err(_) => break false,
            };
            if !goes_on {
                break false;
            }
        };
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let hold = holds.held.remove(&self.worker);
        drop(holds);
        // One that was not heard to its end is ended, not waited for.
        let status = hold.filter(|_| is_heard_out).and_then(|mut hold| hold.wait().ok());
        Over { status, complaint }
    }
}

impl Program {
    /// Hands on both outputs as replies, line by line.
    pub(super) fn reply(self, ear: &Ear<Reply>) -> Over {
        self.reply_until(|_| false, |line| line, ear)
    }

    /// The same until `is_broken` says, of the end of its standard error, that the rest is another try.
    /// `theirs` takes out of a line there what is not for the listener.
    pub(super) fn reply_until(
        self,
        is_broken: impl Fn(&[u8]) -> bool,
        mut theirs: impl FnMut(Vec<u8>) -> Vec<u8>,
        ear: &Ear<Reply>,
    ) -> Over {
        let (mut out, mut err) = (Lines::default(), Lines::default());
        let over = self.hear(
            |bytes| ear.say(replies(&mut out, Some(bytes), |line| Some(Reply::Out(line)))),
            |complaint, bytes| {
                let said = replies(&mut err, Some(bytes), |line| complained(theirs(line)));
                ear.say(said) && !is_broken(complaint)
            },
        );
        ear.say(replies(&mut out, None, |line| Some(Reply::Out(line))));
        ear.say(replies(&mut err, None, |line| complained(theirs(line))));
        over
    }
}

fn complained(line: Vec<u8>) -> Option<Reply> {
    (!line.is_empty()).then_some(Reply::Err(line))
}

/// Lines of one output as replies; at the end (`None`) what is left.
fn replies(
    lines: &mut Lines,
    bytes: Option<&[u8]>,
    mut reply: impl FnMut(Vec<u8>) -> Option<Reply>,
) -> Vec<Reply> {
    let mut said = Vec::new();
    match bytes {
        Some(bytes) => lines.take(bytes, &mut said),
        None => lines.end(&mut said),
    }
    let line = |said| match said {
        Output::Line { bytes, .. } => reply(bytes),
        Output::End(_) => None,
    };
    said.into_iter().filter_map(line).collect()
}

/// What a thread needs to hear one worker.
pub(super) struct Ear<T> {
    say: SyncSender<(u32, Vec<T>)>,
    worker: u32,
    holds: Arc<Mutex<Holds>>,
}

impl<T> Ear<T> {
    /// Starts the program that reaches the worker. `Ok(None)` if nobody listens any more.
    pub(super) fn begin(&self, spawn: &Spawn, input: Stdin) -> Result<Option<Program>, ProcError> {
        let (voice, hold) = talk::begin(spawn, input)?;
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        if holds.is_over {
            return Ok(None);
        }
        holds.held.insert(self.worker, hold);
        Ok(Some(Program { voice, worker: self.worker, holds: Arc::clone(&self.holds) }))
    }

    /// Hands on what was heard; false if nobody listens any more.
    pub(super) fn say(&self, said: Vec<T>) -> bool {
        said.is_empty() || self.say.send((self.worker, said)).is_ok()
    }
}

/// All of them, in the order in which they are heard.
pub(super) struct Streams<T> {
    heard: Receiver<(u32, Vec<T>)>,
    now: (u32, std::vec::IntoIter<T>),
    holds: Arc<Mutex<Holds>>,
}

impl<T: Send + 'static> Streams<T> {
    /// Hears every worker in a thread of its own, which `hear` is.
    pub(super) fn begin(
        workers: &[Worker],
        hear: impl Fn(&Worker, &Ear<T>) + Clone + Send + 'static,
    ) -> Self {
        let (say, heard) = sync_channel(IN_FLIGHT);
        let holds = Arc::new(Mutex::new(Holds::default()));
        for worker in workers.iter().cloned() {
            let ear = Ear { say: say.clone(), worker: worker.index, holds: Arc::clone(&holds) };
            let hear = hear.clone();
            std::thread::spawn(move || hear(&worker, &ear));
        }
        Self { heard, now: (0, Vec::new().into_iter()), holds }
    }
}

impl<T> Iterator for Streams<T> {
    type Item = (u32, T);

    fn next(&mut self) -> Option<(u32, T)> {
        loop {
            if let Some(said) = self.now.1.next() {
                return Some((self.now.0, said));
            }
            let (worker, said) = self.heard.recv().ok()?;
            self.now = (worker, said.into_iter());
        }
    }
}

impl<T> Drop for Streams<T> {
    fn drop(&mut self) {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.is_over = true;
        let held = std::mem::take(&mut holds.held);
        drop(holds);
        drop(held);
    }
}

/// The end of a command that nobody knows.
pub(super) fn lost(error: &impl std::fmt::Display) -> End {
    End::Lost(error.to_string())
}
