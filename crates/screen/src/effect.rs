//! Effects, carried out on threads, with the answer coming back as a message.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::backend::Backend;
use super::feed::{Event, Looks};
use super::message::{Act, Did, Effect, Message, Problem, Ticket};
use super::pane::PaneText;
use tpu_core::model::ids::{JobId, UserName};

/// Actions of one key that are carried out at the same time; the others wait for their turn.
const AT_ONCE: usize = 16;

/// What this process carries out and must not leave half-way: actions of keys, and lines that are written down.
#[derive(Clone, Default)]
pub struct InHand(Arc<(Mutex<usize>, Condvar)>);

/// A piece of it; done when this is dropped.
pub struct Piece(InHand);

impl InHand {
    fn begin(&self) -> Piece {
        *self.count() += 1;
        Piece(self.clone())
    }

    /// Waits until there is none, or `at_most`; whether there is none.
    pub fn wait(&self, at_most: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.count(), at_most, |count| *count > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.0.1.notify_all();
    }
}

/// A line that somebody typed, and whose screen it was.
type Typed = (Option<UserName>, String, Piece);

/// Carries out effects.
pub struct Effects {
    backend: Arc<dyn Backend>,
    looks: Looks,
    panes: Sender<(JobId, u32)>,
    lines: Sender<Typed>,
    events: Sender<Event>,
    colours: bool,
    in_hand: InHand,
}

/// An effect that needs the terminal, and so the run loop itself.
pub enum Own {
    /// Stop until `fg`.
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Take the mouse, or release it.
    Mouse(bool),
    /// Put a text into the terminal's clipboard.
    Copy(String),
}

impl Effects {
    /// Starts the threads that read panes and remember lines; answers go to `events`.
    pub fn new(
        backend: Arc<dyn Backend>,
        looks: Looks,
        events: Sender<Event>,
        colours: bool,
    ) -> Result<Self, std::io::Error> {
        let (panes, wanted) = channel();
        let (reader, answers) = (Arc::clone(&backend), events.clone());
        std::thread::Builder::new()
            .name("panes".to_owned())
            .spawn(move || read_panes(&*reader, &wanted, &answers, colours))?;
        let (lines, typed) = channel();
        let writer = Arc::clone(&backend);
        std::thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || remember_lines(&*writer, &typed))?;
        Ok(Self { backend, looks, panes, lines, events, colours, in_hand: InHand::default() })
    }

    /// What must not be left half-way.
    pub fn in_hand(&self) -> InHand {
        self.in_hand.clone()
    }

    /// Begins an effect; gives back what only the run loop can do.
    pub fn begin(&self, effect: Effect) -> Option<Own> {
        match effect {
            Effect::Suspend => return Some(Own::Suspend),
            Effect::Redraw => return Some(Own::Redraw),
            Effect::Mouse(taken) => return Some(Own::Mouse(taken)),
            Effect::Copy(text) => {
                let copied = text.clone();
                self.aside(
                    move |backend| {
                        // The terminal's own clipboard has it too, so a tmux that refuses is no loss.
                        backend.to_tmux_buffer(&copied).ok();
                        None
                    },
                    |_| None,
                );
                return Some(Own::Copy(text));
            }
            Effect::Remember(user, line) => {
                // The one who writes lives as long as its sender, as the reader of panes does.
                self.lines.send((user, line, self.in_hand.begin())).ok();
            }
            Effect::Scope(scope) => {
                self.looks.scope(scope);
                self.looks.now();
            }
            Effect::Ask(ask) => {
                let asked = ask.clone();
                self.aside(
                    move |backend| {
                        let answer = backend.ask(&ask).map(Box::new);
                        Some(Event::Message(Message::Answer(ask, answer)))
                    },
                    move |problem| Some(Event::Message(Message::Answer(asked, Err(problem)))),
                );
            }
            Effect::Look => self.looks.now(),
            Effect::Pane { job, lines } => {
                // The reader lives as long as its sender; if it could not, the pane just stays old.
                self.panes.send((job, lines)).ok();
            }
            Effect::Log { job } => {
                let colours = self.colours;
                let asked = job.clone();
                self.aside(
                    move |backend| {
                        let read = read(backend, &job, None, colours);
                        Some(Event::Message(Message::Log(job, read)))
                    },
                    move |problem| Some(Event::Message(Message::Log(asked, Err(problem)))),
                );
            }
            Effect::Act(acts) => self.act(acts),
            Effect::Leave { ticket, door } => self.aside(
                move |backend| {
                    Some(match backend.door(&door) {
                        Ok(argv) => Event::Leave { ticket, argv },
                        Err(problem) => Event::Message(Message::Failed { ticket, problem }),
                    })
                },
                move |problem| Some(Event::Message(Message::Failed { ticket, problem })),
            ),
        }
        None
    }

    /// Carries actions out on threads, each of which takes the next one as soon as it is free.
    fn act(&self, acts: Vec<(Ticket, Act)>) {
        let threads = acts.len().min(AT_ONCE);
        let acts = acts.into_iter().map(|(ticket, act)| {
            let piece = (!act.is_apart()).then(|| self.in_hand.begin());
            (ticket, act, piece)
        });
        let waiting = Arc::new(Mutex::new(acts.collect::<VecDeque<_>>()));
        let next = move || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        for nth in 0..threads {
            let (backend, events, take) =
                (Arc::clone(&self.backend), self.events.clone(), next.clone());
            let work = move || {
                while let Some((ticket, act, piece)) = take() {
                    let done = catch_unwind(AssertUnwindSafe(|| backend.act(&act)));
                    let message = answer(ticket, done.unwrap_or_else(|_| Err(bug())));
                    events.send(Event::Message(message)).ok();
                    drop(piece);
                }
            };
            let spawned = std::thread::Builder::new().name("action".to_owned()).spawn(work);
            if let Err(error) = spawned {
                // Threads that could be had before do the rest; without one, nothing is done.
                while nth == 0
                    && let Some((ticket, ..)) = next()
                {
                    let problem = no_thread(&error);
                    self.events.send(Event::Message(Message::Failed { ticket, problem })).ok();
                }
                return;
            }
        }
    }

    /// Does something on a thread of its own and sends what it returns, if anything, or what `broken` makes of
    /// an error inside it.
    fn aside(
        &self,
        work: impl FnOnce(&dyn Backend) -> Option<Event> + Send + 'static,
        broken: impl FnOnce(Problem) -> Option<Event> + Send + 'static,
    ) {
        let (backend, events) = (Arc::clone(&self.backend), self.events.clone());
        let work = move || {
            let event = catch_unwind(AssertUnwindSafe(|| work(&*backend)));
            if let Some(event) = event.unwrap_or_else(|_| broken(bug())) {
                events.send(event).ok();
            }
        };
        let spawned = std::thread::Builder::new().name("action".to_owned()).spawn(work);
        if let Err(error) = spawned {
            let lost = Message::Failed { ticket: Ticket(0), problem: no_thread(&error) };
            self.events.send(Event::Message(lost)).ok();
        }
    }
}

/// The message about an action that ended.
pub(super) fn answer(ticket: Ticket, result: Result<Did, Problem>) -> Message {
    match result {
        Ok(Did { words, began }) => Message::Done { ticket, toast: words, began },
        Err(problem) => Message::Failed { ticket, problem },
    }
}

/// What is said when no thread is to be had.
fn no_thread(error: &std::io::Error) -> Problem {
    Problem::new(
        format!("this machine has no thread left for an action: {error}"),
        "close something, then press the key again",
    )
}

/// What is said about an error in the program itself.
fn bug() -> Problem {
    Problem::new(
        "an error inside tpu ended this action",
        "see how the job is with `tpu check`; please report what you did",
    )
}

/// Reads and parses a pane here, away from the screen's thread.
fn read(
    backend: &dyn Backend,
    job: &JobId,
    lines: Option<u32>,
    colours: bool,
) -> Result<Option<PaneText>, Problem> {
    let read = catch_unwind(AssertUnwindSafe(|| {
        let bytes = backend.pane(job, lines, colours)?;
        Ok(bytes.map(|bytes| PaneText::from_capture(&bytes)))
    }));
    read.unwrap_or_else(|_| Err(bug()))
}

/// Remembers lines one after the other, so that they stand in the order in which they were typed.
fn remember_lines(backend: &dyn Backend, typed: &Receiver<Typed>) {
    while let Ok((user, line, piece)) = typed.recv() {
        // The line is still known to this session; nobody is told of a comfort that is missing.
        catch_unwind(AssertUnwindSafe(|| backend.remember(user.as_ref(), &line).ok())).ok();
        drop(piece);
    }
}

/// Reads panes one after the other. Of several requests that wait, only the newest counts.
fn read_panes(
    backend: &dyn Backend,
    wanted: &Receiver<(JobId, u32)>,
    answers: &Sender<Event>,
    colours: bool,
) {
    while let Ok(first) = wanted.recv() {
        let (job, lines) = wanted.try_iter().last().unwrap_or(first);
        let read = read(backend, &job, Some(lines), colours);
        if answers.send(Event::Message(Message::Pane(job, read))).is_err() {
            return;
        }
    }
}
