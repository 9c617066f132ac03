//! A terminal of a job's own, and the window that it is shown in.
//!
//! A terminal has two sides. A program sits at the one ([`adopt`]) and finds there what it would find if it
//! had been typed in the window. What it writes comes out at the other side, which somebody must hold open
//! for as long as the program lives; a [`Relay`] is who carries it on. Here the other side is always our
//! standard input, so that whoever started us can hold it as well, and a window that was killed can be
//! followed by another one.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::stdio;
use rustix::termios::{self, OptionalActions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGWINCH};

use super::clock::{Clock as _, SystemClock};
use super::procs::{self, Process, Table};

/// What was typed and waits for a job that does not read (bytes).
const TYPED: usize = 64 * 1024;
/// What a terminal can hold on its way (bytes), and more.
const ON_ITS_WAY: usize = 256 * 1024;
/// How often a kernel that cannot tell of an end is asked, and how long a job has to hear that its window has closed.
const LOOK: Duration = Duration::from_millis(500);

/// Makes a new terminal, of which our standard input is the other side, one like our standard error.
pub fn unlock() -> io::Result<()> {
    let other_side = stdio::stdin();
    rustix::pty::unlockpt(other_side)?;
    // On this side as well they are those of the terminal itself.
    let modes = termios::tcgetattr(stdio::stderr())?;
    termios::tcsetattr(other_side, OptionalActions::Now, &modes)?;
    resize()
}

/// Every key in the window is the job's own business, and its terminal is as large.
fn make_raw() -> io::Result<()> {
    let mut modes = termios::tcgetattr(stdio::stderr())?;
    modes.make_raw();
    termios::tcsetattr(stdio::stderr(), OptionalActions::Now, &modes)?;
    resize()
}

/// Gives the terminal the size of the window.
fn resize() -> io::Result<()> {
    termios::tcsetwinsize(stdio::stdin(), termios::tcgetwinsize(stdio::stderr())?)?;
    Ok(())
}

/// Begins a session at the terminal of which our standard input is the other side: from now on it is our
/// standard input and outputs, and Ctrl-C is what it is to a program that was typed there.
pub fn adopt() -> io::Result<()> {
    // A shell starts what is not in the foreground with these ignored; a handler ends with the program.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let name = rustix::pty::ptsname(stdio::stdin(), Vec::new())?;
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    stdio::dup2_stdin(&terminal)?;
    stdio::dup2_stdout(&terminal)?;
    stdio::dup2_stderr(&terminal)?;
    Ok(())
}

/// Columns of the terminal that is our standard output, if it is one.
pub fn columns() -> Option<u16> {
    let size = termios::tcgetwinsize(stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// What there is to know of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So many bytes were written there.
    Output(usize),
    /// The job has ended and everything it had written was heard. What it left behind still sits there.
    Ended,
    /// Nobody sits there any more, and everything was heard.
    Closed,
}

/// Shows in the window, our standard error, what is written at the terminal, and hands on what is typed.
#[derive(Debug)]
pub struct Relay {
    job: Option<Job>,
    /// The job's process.
    pid: Option<u32>,
    clock: SystemClock,
    /// Whether the window is there; one that has closed does not come back.
    has_window: bool,
    /// When to look for a program that has not heard that it closed.
    tell_again: Option<Duration>,
    resized: UnixStream,
    typed: Vec<u8>,
    /// Bytes that were heard after the end of the job.
    after_the_end: usize,
}

/// The process whose end is the end of the job.
#[derive(Debug)]
enum Job {
    /// The kernel tells of its end.
    Watched(OwnedFd),
    /// It must be asked for.
    Asked(u32),
    Ended,
}

impl Relay {
    /// A window for as long as process `job` lives; without one nothing is typed, and nobody waits for an end.
    ///
    /// A job outlives its window as far as it wants: it is told (SIGHUP), as by any terminal that closes, and
    /// what it then says and saves is heard to its end.
    pub fn open(job: Option<u32>) -> io::Result<Self> {
        let (resized, told) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGWINCH, told)?;
        resized.set_nonblocking(true)?;
        rustix::io::ioctl_fionbio(stdio::stdin(), true)?;
        let mut relay = Self {
            job: job.map(Job::of),
            pid: job,
            clock: SystemClock::new(),
            has_window: true,
            tell_again: None,
            resized,
            typed: Vec::new(),
            after_the_end: 0,
        };
        if job.is_some() {
            signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
            if make_raw().is_err() {
                relay.lose_window();
            }
        }
        Ok(relay)
    }

    /// The window has closed: tells whoever is in the foreground of the terminal.
    fn lose_window(&mut self) {
        if !std::mem::replace(&mut self.has_window, false) {
            return;
        }
        if let Ok(group) = termios::tcgetpgrp(stdio::stdin()) {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::HUP);
            let _ = kill_process_group(group, Signal::CONT);
        }
        self.tell_again = Some(self.clock.monotonic() + LOOK);
    }

    /// Tells the program of the job once more if it has not heard it. A shell that forks loses the signal until the
    /// program begins. A program that has heard it has ended, or handles it.
    fn tell_unheard(&mut self) {
        let now = self.clock.monotonic();
        if self.tell_again.take_if(|at| *at <= now).is_none() {
            return;
        }
        let Some((pid, table)) = self.pid.zip(Table::read().ok()) else { return };
        if tell_programs(&table, pid) {
            self.tell_again = Some(now + LOOK);
        }
    }

    /// Waits for what is written at the terminal, and puts it into `buffer`.
    pub fn hear(&mut self, buffer: &mut [u8]) -> io::Result<Moment> {
        loop {
            self.wait()?;
            // In this order: what was written before the end is not missed.
            let has_ended = self.job.as_mut().is_some_and(Job::has_ended);
            match rustix::io::read(stdio::stdin(), &mut *buffer) {
                // Linux has no end of this file; it is an error once the last one has left.
                Ok(0) | Err(Errno::IO) => return Ok(Moment::Closed),
                Ok(count) => {
                    self.after_the_end += if has_ended { count } else { 0 };
                    // Somebody else may go on writing for ever.
                    let is_enough = self.after_the_end > ON_ITS_WAY;
                    return Ok(if is_enough { Moment::Ended } else { Moment::Output(count) });
                }
                Err(Errno::AGAIN) if has_ended => return Ok(Moment::Ended),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until something is to be done, and carries to the job what was typed and resized.
    fn wait(&mut self) -> io::Result<()> {
        self.tell_unheard();
        let (terminal, window) = (stdio::stdin(), stdio::stderr());
        let has_typed = !self.typed.is_empty();
        let writes = if has_typed { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::from_borrowed_fd(terminal, PollFlags::IN | writes),
            PollFd::from_borrowed_fd(self.resized.as_fd(), PollFlags::IN),
        ];
        // Without anything to ask of it, it says when it has closed.
        let keys = if self.job.is_some() { PollFlags::IN } else { PollFlags::empty() };
        let listens = self.has_window && self.typed.len() < TYPED;
        if listens {
            fds.push(PollFd::from_borrowed_fd(window, keys));
        }
        let mut at_most = self.tell_again.and_then(|_| Timespec::try_from(LOOK).ok());
        match &self.job {
            Some(Job::Watched(job)) => {
                fds.push(PollFd::from_borrowed_fd(job.as_fd(), PollFlags::IN));
            }
            Some(Job::Asked(_)) => at_most = Timespec::try_from(LOOK).ok(),
            Some(Job::Ended) => at_most = Some(Timespec::default()),
            None => {}
        }
        match poll(&mut fds, at_most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let can = |fd: usize, flags| fds.get(fd).is_some_and(|fd| fd.revents().intersects(flags));
        let (can_write, is_resized) = (can(0, PollFlags::OUT), can(1, PollFlags::IN));
        let has_keys = listens && can(2, !PollFlags::empty());
        if is_resized {
            let mut told = [0; 64];
            while rustix::io::read(&self.resized, &mut told).is_ok_and(|count| count > 0) {}
            // A window that is closing has no size.
            drop(resize());
        }
        if can_write && has_typed {
            self.hand_on();
        }
        if has_keys {
            let mut keys = [0; 4096];
            match rustix::io::read(window, &mut keys) {
                Ok(0) | Err(Errno::IO) if self.job.is_some() => self.lose_window(),
                Ok(0) => return Err(Errno::IO.into()),
                Ok(count) => self.typed.extend_from_slice(keys.get(..count).unwrap_or_default()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn hand_on(&mut self) {
        match rustix::io::write(stdio::stdin(), &self.typed) {
            Ok(count) => drop(self.typed.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody sits there; the next read says so.
            Err(_) => self.typed.clear(),
        }
    }

    /// Shows something in the window. As long as it takes nothing, the job is held back.
    pub fn show(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.has_window && !bytes.is_empty() {
            match rustix::io::write(stdio::stderr(), bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::IO) if self.job.is_some() => self.lose_window(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The name of what runs a command as its job wants it (`assets/command.sh`).
pub const COMMAND: &str = "tpu-command";

/// Hangs up on the programs below a launcher that would end by it. Whether to look again: there was one, or one is only
/// being started.
fn tell_programs(table: &Table, launcher: u32) -> bool {
    let words = |process: &Process| std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok();
    let mut is_any = false;
    let attends = table.children(launcher);
    let shells = attends.iter().flat_map(|shell| table.children(shell.pid));
    let commands = shells.clone().filter(|shell| shell.name == COMMAND);
    let below = |shell: &Process| table.children(shell.pid);
    let programs = shells.chain(commands.flat_map(below)).filter(|process| !process.zombie);
    for program in programs {
        let is_unstarted = table.get(program.ppid).and_then(words) == words(program);
        let ends = procs::ends_by(program.pid, procs::Signal::HangUp);
        if ends {
            // It may have ended since.
            drop(procs::signal(program, procs::Signal::HangUp));
        }
        is_any |= is_unstarted || ends;
    }
    is_any
}

impl Job {
    fn of(pid: u32) -> Self {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        match raw.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(handle)) => Self::Watched(handle),
            None | Some(Err(Errno::SRCH)) => Self::Ended,
            // Kernels before 5.3, and sandboxes that do not know the call.
            Some(Err(_)) => Self::Asked(pid),
        }
    }

    fn has_ended(&mut self) -> bool {
        let has_ended = match self {
            Self::Watched(handle) => {
                let mut fds = [PollFd::new(handle, PollFlags::IN)];
                poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
            }
            Self::Asked(pid) => Process::read(*pid).is_none_or(|process| process.zombie),
            Self::Ended => true,
        };
        if has_ended {
            *self = Self::Ended;
        }
        has_ended
    }
}
