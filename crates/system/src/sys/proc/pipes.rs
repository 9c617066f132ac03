//! The pipes of a running program: its input is written while both outputs are read, and there is an end to
//! the waiting.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Output, ProcError, ProcessStatus, Spawn};
use crate::sys::clock::{Clock as _, SystemClock};

/// How long to listen before looking whether the program still lives, when it holds no pipe open or a
/// child of it holds one.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program to its end and returns what it wrote; `input` goes to its standard input if that is a pipe.
///
/// A child of the program that keeps its outputs open does not keep us waiting: once the program itself has
/// ended, what is there is taken. After the time-out of `spawn` it is killed and reaped.
pub(super) fn exchange(spawn: &Spawn, stdin: Stdio, input: &[u8]) -> Result<Output, ProcError> {
    let mut running = Running::begin(spawn, stdin)?;
    let mut turn = Turn::new(input, true);
    loop {
        if let Some(status) = running.hear()? {
            return Ok(running.ended(status));
        }
        running.talk(&mut turn)?;
    }
}

/// A program that says something, and then waits for what it is told. It is killed and reaped when this is
/// dropped, unless it was left to itself.
#[derive(Debug)]
pub struct Dialog(Running);

/// What came of a turn in a [`Dialog`].
#[derive(Debug)]
pub enum DialogTurn {
    /// It has said so much, and waits now.
    All(Vec<u8>),
    /// It has ended instead.
    Ended(Output),
}

impl Dialog {
    /// Starts a program whose standard input stays open. The time-out of `spawn` holds for each turn.
    pub fn begin(spawn: &Spawn) -> Result<Self, ProcError> {
        Running::begin(spawn, Stdio::piped()).map(Self)
    }

    /// Hears what it says until that ends in `mark`, which it has to wait behind.
    pub fn listen(&mut self, mark: &[u8]) -> Result<DialogTurn, ProcError> {
        self.turn(Turn::new(&[], false), mark)
    }

    /// Tells it the last that it is told, and hears what it says to that, until that ends in `mark`. Its end is
    /// not waited for.
    pub fn tell(mut self, input: &[u8], mark: &[u8]) -> Result<DialogTurn, ProcError> {
        self.turn(Turn::new(input, true), mark)
    }

    /// Tells it nothing more, and leaves it to end by itself, also when this is dropped; whether it has ended by now.
    pub fn hang_up(&mut self) -> bool {
        let Self(running) = self;
        running.input = None;
        running.is_left = true;
        !matches!(running.child.try_wait(), Ok(None))
    }

    fn turn(&mut self, mut turn: Turn<'_>, mark: &[u8]) -> Result<DialogTurn, ProcError> {
        let Self(running) = self;
        loop {
            let ended = running.hear()?;
            if running.read.0.ends_with(mark) {
                return Ok(DialogTurn::All(std::mem::take(&mut running.read.0)));
            }
            if let Some(status) = ended {
                return Ok(DialogTurn::Ended(running.ended(status)));
            }
            running.talk(&mut turn)?;
        }
    }
}

/// What is told to a program, and how long that has taken.
struct Turn<'a> {
    /// What is still to be written.
    input: &'a [u8],
    /// Whether nothing comes after it.
    is_last: bool,
    since: SystemClock,
    /// How long to look away from a program that has closed everything.
    nap: Duration,
}

impl<'a> Turn<'a> {
    fn new(input: &'a [u8], is_last: bool) -> Self {
        Self { input, is_last, since: SystemClock::new(), nap: Duration::from_micros(50) }
    }
}

/// A program that runs. It is killed and reaped when this is dropped, unless it is left to itself.
#[derive(Debug)]
struct Running {
    program: String,
    timeout: Duration,
    child: Child,
    /// Whether it leads a process group, which ends with it.
    own_group: bool,
    /// Its standard input, while there is something left to write.
    input: Option<File>,
    outputs: (Option<ChildStdout>, Option<ChildStderr>),
    /// What it has written to either.
    read: (Vec<u8>, Vec<u8>),
    has_ended: bool,
    is_left: bool,
}

impl Running {
    fn begin(spawn: &Spawn, stdin: Stdio) -> Result<Self, ProcError> {
        let wrong = |error| spawn.error(error);
        let mut command = spawn.command();
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = super::start(&mut command).map_err(wrong)?;
        let input = child.stdin.take().map(|stdin| File::from(OwnedFd::from(stdin)));
        let outputs = (child.stdout.take(), child.stderr.take());
        let running = Self {
            program: spawn.program.to_string_lossy().into_owned(),
            timeout: spawn.timeout,
            child,
            own_group: spawn.own_group,
            input,
            outputs,
            read: (Vec::new(), Vec::new()),
            has_ended: false,
            is_left: false,
        };
        let outputs = &running.outputs;
        let pipes =
            [fd_of(running.input.as_ref()), fd_of(outputs.0.as_ref()), fd_of(outputs.1.as_ref())];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| wrong(error.into()))?;
        }
        Ok(running)
    }

    /// Reads what it has written by now. How it ended, if it has: then nothing more comes.
    fn hear(&mut self) -> Result<Option<ProcessStatus>, ProcError> {
        let mut hear = || {
            // The end is asked for before the last reading, so nothing written before it is missed.
            let ended = self.child.try_wait()?;
            self.has_ended = ended.is_some();
            drain(&mut self.outputs.0, &mut self.read.0)?;
            drain(&mut self.outputs.1, &mut self.read.1)?;
            Ok(ended.map(ProcessStatus::from))
        };
        hear().map_err(|source| self.wrong(source))
    }

    /// Waits until there is something to do, at most until the time is over, and writes what it takes of the
    /// input; closes the pipe behind the last of it.
    fn talk(&mut self, turn: &mut Turn<'_>) -> Result<(), ProcError> {
        let Some(left) = self.timeout.checked_sub(turn.since.monotonic()) else {
            let (program, after) = (self.program.clone(), self.timeout);
            return Err(ProcError::TimedOut { program, after });
        };
        if turn.input.is_empty() {
            if turn.is_last {
                self.input = None;
            }
            if self.outputs.0.is_none() && self.outputs.1.is_none() {
                // It has closed everything: mostly because it is about to end.
                turn.since.sleep(left.min(turn.nap));
                turn.nap = (turn.nap * 2).min(LOOK);
                return Ok(());
            }
        }
        let written = self.exchange(turn.input, left.min(LOOK));
        let written = written.map_err(|source| self.wrong(source))?;
        turn.input = turn.input.get(written..).unwrap_or_default();
        Ok(())
    }

    /// Waits until a pipe is ready, and writes what it takes of `input`; how much that is.
    fn exchange(&mut self, input: &[u8], at_most: Duration) -> io::Result<usize> {
        let writes = self.input.as_ref().filter(|_| !input.is_empty());
        let reads = [fd_of(self.outputs.0.as_ref()), fd_of(self.outputs.1.as_ref())];
        wait(fd_of(writes), reads, at_most)?;
        let Some(pipe) = self.input.as_mut() else { return Ok(0) };
        match pipe.write(input) {
            Ok(count) => Ok(count),
            Err(error) if is_later(&error) => Ok(0),
            // It does not want to read on: its own business, its status tells.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(input.len()),
            Err(error) => Err(error),
        }
    }

    fn ended(&mut self, status: ProcessStatus) -> Output {
        let (stdout, stderr) = std::mem::take(&mut self.read);
        Output { status, stdout, stderr }
    }

    fn wrong(&self, source: io::Error) -> ProcError {
        ProcError::Io { program: self.program.clone(), source }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended || self.is_left {
            return;
        }
        // All of it fails only if the program is gone already.
        if self.own_group {
            let group = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn fd_of<T: AsFd>(pipe: Option<&T>) -> Option<BorrowedFd<'_>> {
    pipe.map(AsFd::as_fd)
}

/// Waits until a pipe can be read or written, or `at_most` is over.
fn wait(
    write: Option<BorrowedFd<'_>>,
    read: [Option<BorrowedFd<'_>>; 2],
    at_most: Duration,
) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> =
        read.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    fds.extend(write.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
    let timeout = Timespec::try_from(at_most).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes all that a pipe holds at the moment; closes it at its end.
fn drain(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    match open.read_to_end(into) {
        Ok(_) => *pipe = None,
        Err(error) if is_later(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
