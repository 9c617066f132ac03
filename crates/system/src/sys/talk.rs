//! A program that is heard while it runs.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{PollFd, PollFlags, poll};

use super::proc::{self, ProcError, ProcessStatus, Spawn};

/// What a running program says, on both its outputs.
#[derive(Debug)]
pub struct Voice {
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
}

/// What was heard at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// So many bytes of its standard output.
    Out(usize),
    /// So many bytes of its standard error.
    Err(usize),
    /// Nothing more: it has closed both.
    End,
}

impl Voice {
    /// Waits until it says something, and puts that into `buffer`. What it says waits for us: nothing is
    /// kept here.
    pub fn listen(&mut self, buffer: &mut [u8]) -> io::Result<Heard> {
        loop {
            let mut fds = Vec::new();
            fds.extend(
                self.out.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
            );
            fds.extend(
                self.err.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
            );
            if fds.is_empty() {
                return Ok(Heard::End);
            }
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let is_out_ready = self.out.is_some() && fds.first().is_some_and(is_ready);
            if is_out_ready && let Some(out) = &mut self.out {
                match out.read(buffer) {
                    Ok(0) => self.out = None,
                    Ok(count) => return Ok(Heard::Out(count)),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            } else if let Some(err) = &mut self.err {
                match err.read(buffer) {
                    Ok(0) => self.err = None,
                    Ok(count) => return Ok(Heard::Err(count)),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }
}

fn is_ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}

/// The right to have a program running: it is killed and reaped when this is dropped.
#[derive(Debug)]
pub struct Hold {
    child: Child,
    /// As long as this is there, its standard input stays open.
    _input: Option<Sender<()>>,
}

impl Hold {
    /// Waits for its end, and says how it ended.
    pub fn wait(&mut self) -> io::Result<ProcessStatus> {
        Ok(self.child.wait()?.into())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What becomes of a program's standard input once it has read what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// It ends.
    Ends,
    /// It stays open for as long as the [`Hold`] is there, so that the program sees our end; that of a file
    /// ends as any file does.
    Stays,
}

/// Starts a program; the time-out of `spawn` does not hold.
pub fn begin(spawn: &Spawn, input: Stdin) -> Result<(Voice, Hold), ProcError> {
    let mut command = spawn.command();
    let (stdin, to_write) = spawn.input()?;
    let is_open = spawn.stdin.is_none() && input == Stdin::Stays;
    command
        .stdin(if is_open { Stdio::piped() } else { stdin })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = proc::start(&mut command).map_err(|error| spawn.error(error))?;
    let (hold, held): (Sender<()>, Receiver<()>) = channel();
    if let Some(mut stdin) = child.stdin.take() {
        let bytes = to_write.to_vec();
        std::thread::spawn(move || {
            // A program that does not want to read on is its own business.
            drop(stdin.write_all(&bytes).and_then(|()| stdin.flush()));
            if input == Stdin::Stays {
                // Nothing is ever sent: this is the end of the hold.
                let _end = held.recv();
            }
        });
    }
    let voice = Voice { out: child.stdout.take(), err: child.stderr.take() };
    Ok((voice, Hold { child, _input: Some(hold) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(voice: &mut Voice) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut err, mut buffer) = (Vec::new(), Vec::new(), [0; 100]);
        loop {
            match voice.listen(&mut buffer).unwrap() {
                Heard::Out(count) => out.extend_from_slice(&buffer[..count]),
                Heard::Err(count) => err.extend_from_slice(&buffer[..count]),
                Heard::End => return (out, err),
            }
        }
    }

    #[test]
    fn both_outputs_are_heard_to_their_end() {
        let spawn = Spawn::new("sh").args(["-c", "cat; echo err >&2; head -c 300000 /dev/zero"]);
        let (mut voice, _hold) = begin(&spawn.stdin("in\n"), Stdin::Ends).unwrap();
        let (out, err) = hear(&mut voice);
        assert_eq!(out.len(), 300_003);
        assert_eq!(err, b"err\n");
    }

    #[test]
    fn its_input_stays_open_until_nobody_holds_it() {
        let spawn = Spawn::new("sh").args(["-c", "echo ready; cat; echo over"]);
        let (mut voice, hold) = begin(&spawn.stdin("in\n"), Stdin::Stays).unwrap();
        let mut buffer = [0; 100];
        // How many reads that takes is the pipe's.
        let mut out = Vec::new();
        while out.len() < 9 {
            match voice.listen(&mut buffer).unwrap() {
                Heard::Out(count) => out.extend_from_slice(&buffer[..count]),
                other => panic!("{other:?} after {out:?}"),
            }
        }
        assert_eq!(out, b"ready\nin\n");
        drop(hold);
        let (out, _) = hear(&mut voice);
        assert!(out.is_empty() || out == b"over\n", "{out:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let missing = begin(&Spawn::new("no-such-program"), Stdin::Ends);
        assert!(matches!(missing, Err(ProcError::Missing { .. })));
    }
}
