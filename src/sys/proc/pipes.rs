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
    let mut running = Running::begin(spawn, stdin).map_err(|error| spawn.error(error))?;
    let in_our_words =
        |source| ProcError::Io { program: spawn.program.to_string_lossy().into_owned(), source };
    match running.run_to_its_end(input, spawn.timeout).map_err(in_our_words)? {
        Some(status) => {
            let (stdout, stderr) = std::mem::take(&mut running.read);
            Ok(Output { status, stdout, stderr })
        }
        None => Err(ProcError::TimedOut {
            program: spawn.program.to_string_lossy().into_owned(),
            after: spawn.timeout,
        }),
    }
}

/// A program that runs. It is killed and reaped when this is dropped.
struct Running {
    child: Child,
    /// Whether it leads a process group, which ends with it.
    own_group: bool,
    /// Its standard input, while there is something left to write.
    input: Option<File>,
    outputs: (Option<ChildStdout>, Option<ChildStderr>),
    /// What it has written to either.
    read: (Vec<u8>, Vec<u8>),
    has_ended: bool,
}

impl Running {
    fn begin(spawn: &Spawn, stdin: Stdio) -> io::Result<Self> {
        let mut command = spawn.command();
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = super::start(&mut command)?;
        let input = child.stdin.take().map(|stdin| File::from(OwnedFd::from(stdin)));
        let outputs = (child.stdout.take(), child.stderr.take());
        let running = Self {
            child,
            own_group: spawn.own_group,
            input,
            outputs,
            read: (Vec::new(), Vec::new()),
            has_ended: false,
        };
        let outputs = &running.outputs;
        let pipes =
            [fd_of(running.input.as_ref()), fd_of(outputs.0.as_ref()), fd_of(outputs.1.as_ref())];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(running)
    }

    /// Writes all of `input`, closes the pipe behind it, and reads until the program ends. `None` if it has
    /// not ended in time.
    fn run_to_its_end(
        &mut self,
        mut input: &[u8],
        timeout: Duration,
    ) -> io::Result<Option<ProcessStatus>> {
        let clock = SystemClock::new();
        let mut nap = Duration::from_micros(50);
        loop {
            if input.is_empty() {
                self.input = None;
            }
            // The end is asked for before the last reading, so nothing written before it is missed.
            let ended = self.child.try_wait()?;
            self.has_ended = ended.is_some();
            drain(&mut self.outputs.0, &mut self.read.0)?;
            drain(&mut self.outputs.1, &mut self.read.1)?;
            if let Some(status) = ended {
                return Ok(Some(ProcessStatus::from(status)));
            }
            let Some(left) = timeout.checked_sub(clock.monotonic()) else { return Ok(None) };
            if self.outputs.0.is_none() && self.outputs.1.is_none() && input.is_empty() {
                // It has closed everything: mostly because it is about to end.
                clock.sleep(left.min(nap));
                nap = (nap * 2).min(LOOK);
                continue;
            }
            let written = self.talk(input, left.min(LOOK))?;
            input = input.get(written..).unwrap_or_default();
        }
    }

    /// Waits until there is something to do, and writes what it takes of `input`; how much that is.
    fn talk(&mut self, input: &[u8], at_most: Duration) -> io::Result<usize> {
        let writes = self.input.as_ref();
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
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended {
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
