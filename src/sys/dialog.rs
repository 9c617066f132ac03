//! The pipes of a running program: both outputs are read while it runs, what it is to read may depend on
//! what it has said, and there is an end to the waiting.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::{Clock as _, SystemClock};
use super::proc::{Output, ProcError, Spawn, Status};

/// How long to listen before looking whether the program still lives, when it holds no pipe open or a
/// child of it holds one.
const LOOK: Duration = Duration::from_millis(20);

/// A pipe that a program of this machine opens by its name and reads to its end, like a file.
///
/// What was written waits in it until then. It ends with us, whoever may still have it open.
#[derive(Debug)]
pub struct NamedPipe {
    name: PipeName,
    writer: PipeWriter,
}

/// The name of a [`NamedPipe`]. Once this is dropped the name may be another file's: it is kept until
/// whoever was told of it has opened it, or has ended.
#[derive(Debug)]
pub struct PipeName {
    reader: PipeReader,
    path: String,
}

impl NamedPipe {
    /// Makes one; its name is our link to it (proc(5): `/proc/<pid>/fd`).
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // Not by our own id: in a namespace of its own a process may have another one there.
        let us = std::fs::read_link("/proc/self")?;
        let path = format!("/proc/{}/fd/{}", us.display(), reader.as_raw_fd());
        Ok(Self { name: PipeName { reader, path }, writer })
    }

    /// Its name.
    pub fn path(&self) -> &str {
        &self.name.path
    }

    /// The name, and the end to write to.
    pub fn split(self) -> (PipeName, PipeWriter) {
        (self.name, self.writer)
    }
}

impl PipeName {
    /// Keeps the name for as long as we live.
    pub fn keep(self) {
        let _ = OwnedFd::from(self.reader).into_raw_fd();
    }
}

/// A program that runs. It is killed and reaped when this is dropped.
#[derive(Debug)]
pub struct Dialog {
    /// Its name, for messages.
    program: String,
    child: Child,
    /// Whether it leads a process group, which ends with it.
    own_group: bool,
    timeout: Duration,
    /// Counts from the start of the program, or of its answer.
    clock: SystemClock,
    /// Where it reads what we write: its standard input, or a [`NamedPipe`].
    input: Option<File>,
    outputs: (Option<ChildStdout>, Option<ChildStderr>),
    /// What it has said on either.
    read: (Vec<u8>, Vec<u8>),
    /// How it ended, once it has.
    ended: Option<Status>,
    /// Whether it is left to end by itself.
    let_go: bool,
}

impl Dialog {
    /// Starts a program with this standard input. The time-out of `spawn` begins; what `spawn` would let it
    /// read plays no part.
    pub fn begin(spawn: &Spawn, stdin: Stdio) -> Result<Self, ProcError> {
        let mut command = spawn.command();
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| spawn.error(error))?;
        let input = child.stdin.take().map(|stdin| File::from(OwnedFd::from(stdin)));
        let outputs = (child.stdout.take(), child.stderr.take());
        let pipes = [fd_of(input.as_ref()), fd_of(outputs.0.as_ref()), fd_of(outputs.1.as_ref())];
        let set = pipes.into_iter().flatten().map(|pipe| rustix::io::ioctl_fionbio(pipe, true));
        let set: Result<(), rustix::io::Errno> = set.collect();
        let dialog = Self {
            program: spawn.program.to_string_lossy().into_owned(),
            child,
            own_group: spawn.own_group,
            timeout: spawn.timeout,
            clock: SystemClock::new(),
            input,
            outputs,
            read: (Vec::new(), Vec::new()),
            ended: None,
            let_go: false,
        };
        set.map_err(|error| spawn.error(error.into()))?;
        Ok(dialog)
    }

    /// Listens until `is_enough` of what it has said on its standard output, or until it has ended, which
    /// [`Dialog::has_ended`] tells; returns that.
    pub fn hear(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, ProcError> {
        self.go_on(&[], is_enough)?;
        Ok(std::mem::take(&mut self.read.0))
    }

    /// Lets it read `input` and no more from a [`NamedPipe`] that it has been told of, and listens as
    /// [`Dialog::hear`] does. What it has complained of before is forgotten.
    ///
    /// The time-out begins anew: between two parts whoever asks may have had other things to do.
    pub fn answer(
        &mut self,
        pipe: PipeWriter,
        input: &[u8],
        is_enough: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, ProcError> {
        self.input = Some(File::from(OwnedFd::from(pipe)));
        self.read.1.clear();
        self.clock = SystemClock::new();
        self.go_on(input, is_enough)?;
        Ok(std::mem::take(&mut self.read.0))
    }

    /// Whether it has ended. It may end at any time.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Lets it read `input` and no more, and waits for its end. What was heard before is not in the output.
    ///
    /// A child of the program that keeps its outputs open does not keep us waiting: once the program itself
    /// has ended, what is there is taken.
    pub fn finish(mut self, input: &[u8]) -> Result<Output, ProcError> {
        if input.is_empty() {
            self.input = None;
        }
        self.clock = SystemClock::new();
        self.go_on(input, |_| false)?;
        let status = self.ended.expect("nothing is enough but its end");
        let (stdout, stderr) = std::mem::take(&mut self.read);
        Ok(Output { status, stdout, stderr })
    }

    /// Changes how long is waited for it from now on.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets it end by itself, which it does when there is nothing more to read. It is not waited for: if we
    /// live on, what is left of it lives as long.
    pub fn let_go(mut self) {
        self.let_go = true;
    }

    /// Writes all of `input` and closes the pipe behind it; with nothing to write it stays as it is. Reads
    /// meanwhile, until `is_enough` or the end.
    fn go_on(
        &mut self,
        mut input: &[u8],
        is_enough: impl Fn(&[u8]) -> bool,
    ) -> Result<(), ProcError> {
        let mut nap = Duration::from_micros(50);
        while self.ended.is_none() {
            // The end is asked for before the last reading, so nothing written before it is missed.
            let ended = self.child.try_wait().map_err(|error| self.error(error))?;
            self.ended = ended.map(Status::from);
            let drained = drain(&mut self.outputs.0, &mut self.read.0)
                .and_then(|()| drain(&mut self.outputs.1, &mut self.read.1));
            drained.map_err(|error| self.error(error))?;
            if self.ended.is_some() || is_enough(&self.read.0) {
                break;
            }
            let Some(left) = self.timeout.checked_sub(self.clock.monotonic()) else {
                return Err(ProcError::TimedOut {
                    program: self.program.clone(),
                    after: self.timeout,
                });
            };
            if self.outputs.0.is_none() && self.outputs.1.is_none() && input.is_empty() {
                // It has closed everything: mostly because it is about to end.
                self.clock.sleep(left.min(nap));
                nap = (nap * 2).min(LOOK);
                continue;
            }
            let talked = self.talk(input, left.min(LOOK));
            let written = talked.map_err(|error| self.error(error))?;
            input = input.get(written..).unwrap_or_default();
            if written > 0 && input.is_empty() {
                self.input = None;
            }
        }
        Ok(())
    }

    /// Waits until there is something to do, and writes what it takes of `input`; how much that is.
    fn talk(&mut self, input: &[u8], at_most: Duration) -> io::Result<usize> {
        let writes = self.input.as_ref().filter(|_| !input.is_empty());
        let reads = [fd_of(self.outputs.0.as_ref()), fd_of(self.outputs.1.as_ref())];
        wait(fd_of(writes), reads, at_most)?;
        let Some(pipe) = self.input.as_mut().filter(|_| !input.is_empty()) else {
            return Ok(0);
        };
        match pipe.write(input) {
            Ok(count) => Ok(count),
            Err(error) if is_later(&error) => Ok(0),
            // It does not want to read on: its own business, its status tells.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(input.len()),
            Err(error) => Err(error),
        }
    }

    fn error(&self, source: io::Error) -> ProcError {
        ProcError::Io { program: self.program.clone(), source }
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        if self.ended.is_some() || self.let_go {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::procs;

    fn sh(script: &str) -> Spawn {
        Spawn::new("sh").args(["-c", script]).timeout(Duration::from_secs(20))
    }

    fn begin(script: &str) -> Dialog {
        Dialog::begin(&sh(script), Stdio::piped()).unwrap()
    }

    #[test]
    fn what_it_reads_may_depend_on_what_it_said() {
        let mut dialog = begin("echo 41; read -r answer; echo got $answer; cat; exit 3");
        let heard = dialog.hear(|said| said.ends_with(b"\n")).unwrap();
        assert_eq!((heard.as_slice(), dialog.has_ended()), (&b"41\n"[..], false));
        let output = dialog.finish(b"42\nmore\n").unwrap();
        assert_eq!((output.text().as_str(), output.status), ("got 42\nmore\n", Status::Code(3)));
    }

    #[test]
    fn one_pipe_after_the_other_is_read_to_its_end() {
        let (one, two) = (NamedPipe::new().unwrap(), NamedPipe::new().unwrap());
        let script = "echo why >&2; cat $1; echo over; cat $2; echo over; exec sleep 1000";
        let args = ["-c", script, "sh", one.path(), two.path()];
        let spawn = Spawn::new("sh").args(args).timeout(Duration::from_secs(20));
        let mut dialog = Dialog::begin(&spawn, Stdio::null()).unwrap();
        // More than a pipe holds.
        let long = "a line\n".repeat(100_000);
        for (pipe, input) in [(one, long.as_str()), (two, "b\n")] {
            let said = |said: &[u8]| said.ends_with(b"over\n");
            let (_name, pipe) = pipe.split();
            let heard = dialog.answer(pipe, input.as_bytes(), said).unwrap();
            assert!(!dialog.has_ended());
            assert!(heard == (input.to_owned() + "over\n").as_bytes(), "{} bytes", heard.len());
        }
        let pid = dialog.child.id();
        drop(dialog);
        assert!(procs::Process::read(pid).is_none());
    }

    #[test]
    fn one_that_is_let_go_reads_to_the_end_of_its_pipe_and_goes_on() {
        let pipe = NamedPipe::new().unwrap();
        let (mut heard, _open) = io::pipe().unwrap();
        let to = format!("/proc/{}/fd/{}", std::process::id(), heard.as_raw_fd());
        let script = "echo ready; cat $1; echo over >$2";
        let args = ["-c", script, "sh", pipe.path(), &to];
        let spawn = Spawn::new("sh").args(args).timeout(Duration::from_secs(20));
        let mut dialog = Dialog::begin(&spawn, Stdio::null()).unwrap();
        dialog.hear(|said| said.ends_with(b"ready\n")).unwrap();
        let (name, end) = pipe.split();
        dialog.let_go();
        drop(end);
        let mut said = [0; 5];
        heard.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"over\n");
        drop(name);
    }

    #[test]
    fn one_that_ends_before_it_has_said_enough_is_heard_to_its_end() {
        let mut dialog = begin("echo half; echo why >&2; exit 1");
        let heard = dialog.hear(|said| said.ends_with(b"whole\n")).unwrap();
        assert_eq!((heard.as_slice(), dialog.has_ended()), (&b"half\n"[..], true));
        let output = dialog.finish(b"too late").unwrap();
        assert_eq!((output.complaint().as_str(), output.status), ("why", Status::Code(1)));
    }

    #[test]
    fn an_empty_answer_is_an_end_of_input() {
        let mut dialog = begin("echo ready; cat; echo over");
        dialog.hear(|said| said.ends_with(b"ready\n")).unwrap();
        assert_eq!(dialog.finish(b"").unwrap().text(), "over\n");
    }

    #[test]
    fn one_that_says_nothing_is_waited_for_so_long_and_not_left_behind() {
        let spawn = sh("exec sleep 1000").timeout(Duration::from_millis(50));
        let mut dialog = Dialog::begin(&spawn, Stdio::piped()).unwrap();
        let pid = dialog.child.id();
        let error = dialog.hear(|said| !said.is_empty()).unwrap_err();
        assert!(matches!(error, ProcError::TimedOut { .. }), "{error}");
        drop(dialog);
        assert!(procs::Process::read(pid).is_none());
    }
}
