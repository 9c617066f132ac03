//! Where messages come from: the keyboard, the looks at the jobs, signals. Each is a thread that sends
//! into the one channel that the run loop reads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::{self, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

use super::backend::Backend;
use super::keys::Key;
use super::message::{Message, Mouse, MouseDid, Problem, Scope, Ticket};

/// How long is waited for what is there already. Nothing is read within less than a millisecond.
const AT_ONCE: Duration = Duration::from_millis(1);

/// How long what was read with the last event is looked for.
const IN_HAND: Duration = Duration::from_millis(20);

/// Everything that can wake the run loop.
#[derive(Debug)]
pub enum Event {
    /// Something for the model.
    Message(Message),
    /// The command that takes the terminal is known.
    Leave {
        /// Which action.
        ticket: Ticket,
        /// What to run.
        argv: Vec<String>,
    },
    /// The terminal has another size now. Whoever is told asks for it: of two who had read it, the slower
    /// one might tell an older one.
    Resized,
    /// We were continued after a stop.
    Continued,
    /// A signal asks us to end.
    Terminate(i32),
    /// The terminal cannot be read any more.
    InputLost(io::Error),
}

/// How often is looked.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// From one look to the next.
    pub refresh: Duration,
    /// From one cheap check, whether anything has changed or broken, to the next.
    pub wake: Duration,
}

/// The thread that looks at the jobs.
pub struct Looks {
    wake: Sender<()>,
    scope: Arc<Mutex<Scope>>,
}

impl Looks {
    /// Starts looking. It ends when this value, or the other end of `events`, is dropped.
    pub fn start(
        backend: Arc<dyn Backend>,
        scope: Scope,
        rhythm: Rhythm,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let (wake, woken) = channel();
        let scope = Arc::new(Mutex::new(scope));
        let shared = Arc::clone(&scope);
        let mut caption = Vec::new();
        let look = move || loop {
            let scope = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if look_once(&*backend, &scope, rhythm, (&events, &woken), &mut caption).is_none() {
                return;
            }
        };
        std::thread::Builder::new().name("looks".to_owned()).spawn(look)?;
        Ok(Self { wake, scope })
    }

    /// Looks at other people's jobs from the next look on.
    pub fn scope(&self, scope: Scope) {
        *self.scope.lock().unwrap_or_else(PoisonError::into_inner) = scope;
    }

    /// Asks for a look at once.
    pub fn now(&self) {
        // Fails only if the thread is gone; then its last message has said why.
        self.wake.send(()).ok();
    }
}

/// One look, and the wait until the next one is due. `None` when nobody listens any more.
fn look_once(
    backend: &dyn Backend,
    scope: &Scope,
    rhythm: Rhythm,
    (events, woken): (&Sender<Event>, &Receiver<()>),
    caption_said: &mut Vec<String>,
) -> Option<()> {
    // The pulse is taken first: what changes during the look is noticed by the next pulse.
    let before = wake_mark(backend, scope);
    let looked = catch_unwind(AssertUnwindSafe(|| backend.snapshot(scope)));
    let broken = || Problem::new("an error inside tpu", "tpu check may say more; please report it");
    let failed = !matches!(looked, Ok(Ok(_)));
    let message = match looked.unwrap_or_else(|_| Err(broken())) {
        Ok(snapshot) => Message::Looked(Box::new(snapshot)),
        Err(problem) => Message::LookFailed(problem),
    };
    events.send(Event::Message(message)).ok()?;
    if let Ok(caption) = catch_unwind(AssertUnwindSafe(|| backend.caption())) {
        // One message for each that is new is enough, and nobody pays for a line that is not there.
        let said = std::mem::replace(caption_said, caption);
        if said != *caption_said {
            events.send(Event::Message(Message::Caption(caption_said.clone()))).ok()?;
        }
    }
    let due = backend.monotonic() + rhythm.refresh;
    loop {
        match woken.recv_timeout(rhythm.wake) {
            Ok(()) => {
                // Several actions may have ended together: one look serves them all.
                while woken.try_recv().is_ok() {}
                return Some(());
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                // After a failure every pulse is a new try.
                if failed || backend.monotonic() >= due || wake_mark(backend, scope) != before {
                    return Some(());
                }
            }
        }
    }
}

fn wake_mark(backend: &dyn Backend, scope: &Scope) -> Option<u64> {
    catch_unwind(AssertUnwindSafe(|| backend.wake_mark(scope))).ok()?.ok()
}

/// Holds the reading of keys while another program has the terminal.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    closed: bool,
    reader_waits: bool,
}

impl Gate {
    /// Closes the gate; returns once the reader has let go of the terminal.
    pub fn close(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed = true;
        // The reader passes here several times a second; it is not waited for if it has ended.
        let patience = Duration::from_secs(1);
        let waits = changed.wait_timeout_while(state, patience, |state| !state.reader_waits);
        drop(waits.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the reader go on.
    pub fn open(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap_or_else(PoisonError::into_inner).closed = false;
        changed.notify_all();
    }

    /// Called by the reader between two reads: waits while the gate is closed.
    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.closed {
            state.reader_waits = true;
            changed.notify_all();
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.reader_waits = false;
    }
}

/// Starts the thread that reads the terminal.
pub(crate) fn read_input(gate: Gate, events: Sender<Event>) -> io::Result<()> {
    let read = move || {
        let mut more = false;
        loop {
            gate.pass();
            // What was read with the last event is no longer to be seen on the terminal.
            let waits = if more { Ok(true) } else { waits_for_input() };
            // A busy machine may take the thread away before it has looked into what was read already.
            let patience = if more { IN_HAND } else { AT_ONCE };
            let event = match waits {
                Ok(true) => event::poll(patience),
                other => other,
            };
            more = matches!(event, Ok(true));
            let event = match event {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let (event, last) = match event {
                Ok(event) => (translate(event), false),
                Err(error) => (Some(Event::InputLost(error)), true),
            };
            let heard = event.is_none_or(|event| events.send(event).is_ok());
            if last || !heard {
                return;
            }
        }
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(read)?;
    Ok(())
}

/// Waits until there is something to read on the terminal, or a moment has passed; whether there is.
///
/// crossterm can wait as well, but counts in whole milliseconds and spends what is left of the last one
/// busily: ten times a second that was a seventh of what the idle screen cost.
fn waits_for_input() -> io::Result<bool> {
    /// A key wakes the reader at once; this is how soon it notices a closed gate.
    const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut fds, Some(&PAUSE)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    // A terminal that has been hung up can be read without end, and nothing will ever come. Not everybody
    // is told by a signal: it may be ignored, or the terminal not be the one that controls us.
    let is_gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if fds.iter().any(|fd| fd.revents().intersects(is_gone)) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was hung up"));
    }
    Ok(true)
}

/// What a terminal event means to us, if anything.
fn translate(event: event::Event) -> Option<Event> {
    let message = match event {
        event::Event::Key(key) if key.kind != KeyEventKind::Release => Message::Key(Key::of(&key)),
        event::Event::Paste(text) => Message::Paste(text),
        event::Event::Resize(..) => return Some(Event::Resized),
        event::Event::Mouse(mouse) => Message::Mouse(translate_mouse(mouse)?),
        event::Event::Key(_) | event::Event::FocusGained | event::Event::FocusLost => return None,
    };
    Some(Event::Message(message))
}

/// What the mouse did, as far as it matters here.
fn translate_mouse(mouse: MouseEvent) -> Option<Mouse> {
    let what = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseDid::Press,
        MouseEventKind::Drag(MouseButton::Left) => MouseDid::Drag,
        MouseEventKind::Up(MouseButton::Left) => MouseDid::Release,
        MouseEventKind::ScrollDown => MouseDid::Wheel(1),
        MouseEventKind::ScrollUp => MouseDid::Wheel(-1),
        _ => return None,
    };
    Some(Mouse { x: mouse.column, y: mouse.row, what })
}

/// Turns of the wheel that came together, as one; a mouse that is dragged, only where it is now.
pub fn coalesce(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        if let (Some(Event::Message(Message::Mouse(last))), Event::Message(Message::Mouse(next))) =
            (kept.last_mut(), &event)
        {
            match (last.what, next.what) {
                (MouseDid::Wheel(so_far), MouseDid::Wheel(more)) => {
                    *last = Mouse { what: MouseDid::Wheel(so_far + more), ..*next };
                    continue;
                }
                (MouseDid::Drag, MouseDid::Drag) => {
                    *last = *next;
                    continue;
                }
                _ => {}
            }
        }
        kept.push(event);
    }
    kept
}

/// Signals, until dropped.
pub(crate) struct SignalFeed {
    thread: Handle,
    interrupted: Arc<AtomicBool>,
}

impl SignalFeed {
    /// Starts the thread that waits for signals. SIGTSTP keeps its default: it stops us, also where no
    /// shell could continue us (then the kernel ignores it).
    pub(crate) fn start(events: Sender<Event>) -> io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        // Set at once, while an event may come late.
        flag::register(SIGINT, Arc::clone(&interrupted))?;
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCONT, SIGWINCH])?;
        let handle = signals.handle();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                fail::fail_point!("screen-signal");
                let event = match signal {
                    SIGCONT => Event::Continued,
                    // crossterm notices as well, but not before the next key.
                    SIGWINCH => Event::Resized,
                    _ => Event::Terminate(signal),
                };
                if events.send(event).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { thread: handle, interrupted })
    }

    /// A Ctrl-C until now was meant for somebody else.
    pub(crate) fn forget_interrupts(&self) {
        self.interrupted.store(false, Ordering::SeqCst);
    }

    /// Whether a signal that the thread has told of asks us to end: a Ctrl-C that is forgotten does not.
    pub(crate) fn ends(&self, signal: i32) -> bool {
        signal != SIGINT || self.interrupted.load(Ordering::SeqCst)
    }
}

impl Drop for SignalFeed {
    fn drop(&mut self) {
        self.thread.close();
    }
}
