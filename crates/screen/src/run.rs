//! The run loop: takes in all that has happened, then draws at most one frame.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use signal_hook::consts::SIGHUP;

use super::backend::Backend;
use super::effect::{Effects, InHand, Own, answer};
use super::feed::{Event, Gate, Looks, Rhythm, SignalFeed, coalesce, read_input};
use super::keys::{KeyMap, KeysError};
use super::message::{Did, Effect, Message, Problem, Scope};
use super::model::{Columns, Model, Setup};
use super::recording::{Film, Recording};
use super::terminal::{Canvas, Screen, Unstoppable, copy};
use super::theme::{self, Theme, ThemeError};
use super::typed::Commands;
use super::update::{complain, update};
use super::view::columns::{self, UnknownColumn};
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Zone;
use tpu_core::model::view::Whose;
use tpu_core::text;
use tpu_system::sys::proc;

/// From one frame to the next, at least.
const FRAME: Duration = Duration::from_millis(16);
/// From one tick to the next while nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// The same while the spinner turns.
const BUSY_TICK: Duration = Duration::from_millis(250);

/// So long a frame that only a tick asks for waits for the text of the pane that the tick has asked for: mostly
/// one frame a second shows both.
const COMPANY: Duration = Duration::from_millis(50);

/// How the screen is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose jobs; `None` for everybody's.
    pub whose: Whose,
    /// Columns of the list.
    pub columns: Columns,
    /// The columns by name, in place of those.
    pub column_names: Option<Vec<String>>,
    /// Name of the theme; `None` for the default.
    pub theme: Option<String>,
    /// Draw only ASCII.
    pub ascii: bool,
    /// Draw no colours (`NO_COLOR`), whatever the theme.
    pub no_color: bool,
    /// Between two looks (`monitor_upd_time`); less than a second counts as one.
    pub refresh: Duration,
    /// Zone in which times are shown (`time_zone`).
    pub zone: Zone,
    /// Keys of this person: command name and keys parted by blanks (`keys`).
    pub keys: Vec<(String, String)>,
    /// The job to select first.
    pub select: Option<JobId>,
    /// The commands of `tpu`, for the command line.
    pub commands: Commands,
    /// The global flags that those commands are to have.
    pub flags: Vec<String>,
}

/// Why the screen could not be opened, or ended.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// There is nothing to draw on.
    #[error("the monitor needs a terminal; `tpu check` prints the same as text")]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// A theme of the program's own cannot be used.
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// The program's own keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A signal ended it; the terminal has been restored.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// Opens the screen and runs it until the person leaves.
pub fn run(backend: &Arc<dyn Backend>, options: Options) -> Result<(), MonitorError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(MonitorError::NoTerminal);
    }
    show(backend, options, Show::Terminal)
}

/// Writes the screen down as it is drawn, with nobody at its keys, until the recording is to end.
pub fn record(
    backend: &Arc<dyn Backend>,
    options: Options,
    recording: Recording,
) -> Result<(), MonitorError> {
    show(backend, options, Show::Recording(recording))
}

/// Where the screen is shown.
enum Show {
    /// On the terminal of this process, whose keys are read.
    Terminal,
    /// In a file; there are no keys.
    Recording(Recording),
}

fn show(backend: &Arc<dyn Backend>, options: Options, show: Show) -> Result<(), MonitorError> {
    let refresh = options.refresh.max(Duration::from_secs(1));
    let mut odd = Vec::new();
    let theme = theme_of(&options, &mut odd)?;
    let keys = keys_of(&options, &mut odd)?;
    let chosen = chosen_columns(&options, &mut odd);
    let colours = !theme.is_monochrome();
    let setup = Setup {
        theme,
        ascii: options.ascii,
        columns: Columns { chosen, ..options.columns },
        zone: options.zone,
        keys,
        refresh_s: refresh.as_secs(),
        commands: options.commands,
    };
    let scope = Scope { whose: options.whose };
    let mut model = Model::new(setup, scope.clone(), backend.now(), options.select);
    for problem in odd {
        complain(&mut model, problem);
    }

    let (events, happened) = channel();
    let signals = SignalFeed::start(events.clone())?;
    let (screen, over): (Box<dyn Canvas>, _) = match show {
        Show::Terminal => (Box::new(Screen::open()?), None),
        Show::Recording(recording) => {
            let over = Arc::clone(&recording.over);
            (Box::new(Film::begin(Arc::clone(backend), recording)?), Some(over))
        }
    };
    model.size = screen.size()?;
    let rhythm = Rhythm { refresh, wake: TICK };
    let looks = Looks::start(Arc::clone(backend), scope, rhythm, events.clone())?;
    let effects = Effects::new(Arc::clone(backend), looks, events.clone(), colours)?;
    let gate = Gate::default();
    if over.is_none() {
        read_input(gate.clone(), events)?;
    }
    let mut turn = Loop {
        backend: &**backend,
        model,
        screen,
        in_hand: effects.in_hand(),
        effects,
        gate,
        happened,
        later: VecDeque::new(),
        signals,
        over,
    };
    let ended = turn.run();
    turn.finish();
    ended
}

/// The columns that somebody has chosen; where he has named one that is not there, a word about it.
fn chosen_columns(options: &Options, odd: &mut Vec<Problem>) -> Option<BTreeSet<&'static str>> {
    let names = options.column_names.as_deref()?;
    match columns::chosen(names) {
        Ok(chosen) => Some(chosen).filter(|chosen| !chosen.is_empty()),
        Err(error) => {
            odd.push(Problem::new(
                format!("{error}: the usual ones are shown"),
                UnknownColumn::hint(),
            ));
            None
        }
    }
}

/// The theme that is asked for, else the usual one, with a word about it: a setting that is wrong is no reason
/// to show nothing.
fn theme_of(options: &Options, odd: &mut Vec<Problem>) -> Result<Theme, ThemeError> {
    if options.no_color {
        return Theme::named("plain");
    }
    let name = options.theme.as_deref().unwrap_or(theme::DEFAULT);
    Theme::named(name).or_else(|error| {
        let hint = "tpu set-settings theme default, or the settings file";
        odd.push(Problem::new(format!("{error}: the usual theme is shown"), hint));
        Theme::named(theme::DEFAULT)
    })
}

/// The keys that are asked for, else the usual ones.
fn keys_of(options: &Options, odd: &mut Vec<Problem>) -> Result<KeyMap, KeysError> {
    KeyMap::new(&options.keys).or_else(|error| {
        let hint = "tpu set-settings keys '{}', or the settings file";
        odd.push(Problem::new(format!("{error}: the usual keys are used"), hint));
        KeyMap::new(&[])
    })
}

/// What the loop holds.
struct Loop<'a> {
    backend: &'a dyn Backend,
    model: Model,
    screen: Box<dyn Canvas>,
    effects: Effects,
    /// What must not be left half-way.
    in_hand: InHand,
    gate: Gate,
    happened: Receiver<Event>,
    /// Events that came while we waited for another one.
    later: VecDeque<Event>,
    signals: SignalFeed,
    /// Set when a recording is to end; nobody presses keys there.
    over: Option<Arc<AtomicBool>>,
}

impl Loop<'_> {
    fn run(&mut self) -> Result<(), MonitorError> {
        let mut last_frame: Option<Duration> = None;
        let mut last_tick = self.backend.monotonic();
        let mut alone_until = Duration::ZERO;
        loop {
            let now = self.backend.monotonic();
            let frame_due = last_frame.map_or(now, |last| last + FRAME).max(alone_until);
            if self.model.changed && now >= frame_due {
                self.model.changed = false;
                self.screen.draw(&self.model)?;
                last_frame = Some(now);
            }
            let tick = if self.model.running.is_empty() { TICK } else { BUSY_TICK };
            let tick_due = last_tick + tick;
            let wake = if self.model.changed { frame_due.min(tick_due) } else { tick_due };
            let wait = wake.saturating_sub(self.backend.monotonic());
            for event in self.events_within(wait) {
                self.take(event)?;
                alone_until = Duration::ZERO;
            }
            if self.backend.monotonic() >= tick_due {
                last_tick = self.backend.monotonic();
                let is_alone = !self.model.changed;
                self.message(Message::Tick)?;
                if is_alone && self.model.live.waiting {
                    alone_until = last_tick + COMPANY;
                }
            }
            let is_over = self.over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed));
            if self.model.quit || is_over {
                return Ok(());
            }
        }
    }

    /// Waits for the first event, then takes all that have come.
    fn events_within(&mut self, wait: Duration) -> Vec<Event> {
        let mut events: Vec<Event> = self.later.drain(..).collect();
        if events.is_empty() {
            match self.happened.recv_timeout(wait) {
                Ok(event) => events.push(event),
                // The input thread holds a sender as long as it lives, and says so when it ends.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        events.extend(self.happened.try_iter());
        coalesce(events)
    }

    fn take(&mut self, event: Event) -> Result<(), MonitorError> {
        match event {
            Event::Message(message) => self.message(message),
            Event::Leave { ticket, argv } => {
                self.gate.close();
                self.screen.leave();
                // What stops there would stop us with it, and what we hold.
                let unstoppable = Unstoppable::new();
                let result = self.backend.foreground(&argv);
                drop(unstoppable);
                // A Ctrl-C in there was meant for what ran there.
                self.signals.forget_interrupts();
                self.return_to_screen()?;
                self.message(answer(ticket, result.map(|()| Did::default())))
            }
            Event::Resized => match self.screen.size() {
                Ok((columns, rows)) => self.message(Message::Resize(columns, rows)),
                // Whether it is gone for good is seen by who reads it.
                Err(_) => Ok(()),
            },
            Event::Continued => self.return_to_screen(),
            Event::Terminate(signal) if self.signals.ends(signal) => {
                Err(MonitorError::Signal(signal))
            }
            Event::Terminate(_) => Ok(()),
            Event::InputLost(error) => Err(MonitorError::Terminal(error)),
        }
    }

    fn message(&mut self, message: Message) -> Result<(), MonitorError> {
        if matches!(message, Message::Key(_)) {
            fail::fail_point!("screen-key");
        }
        let now = self.backend.now();
        let effects: Vec<Effect> = update(&mut self.model, message, now);
        for effect in effects {
            match self.effects.begin(effect) {
                Some(Own::Suspend) => self.suspend()?,
                Some(Own::Redraw) => self.screen.take()?,
                Some(Own::Mouse(taken)) => self.screen.mouse(taken)?,
                Some(Own::Copy(text)) => copy(&text)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Gives the terminal back, stops with our whole process group as a shell expects of Ctrl-Z, and goes
    /// on when continued.
    fn suspend(&mut self) -> Result<(), MonitorError> {
        /// A line that is being written down takes no longer, unless it waits itself.
        const A_LINE: Duration = Duration::from_secs(2);
        /// The stop may take a moment to reach us; and where nobody could continue us, none comes.
        const PATIENCE: Duration = Duration::from_millis(300);
        self.in_hand.wait(A_LINE);
        self.gate.close();
        self.screen.leave();
        proc::stop_group()?;
        let deadline = self.backend.monotonic() + PATIENCE;
        loop {
            let left = deadline.saturating_sub(self.backend.monotonic());
            match self.happened.recv_timeout(left) {
                Ok(Event::Continued) | Err(_) => break,
                Ok(event) => self.later.push_back(event),
            }
        }
        self.return_to_screen()
    }

    /// Gives the terminal back and stays until what was begun is done: nothing is left half-way because a person
    /// leaves, a terminal is hung up or somebody ends us. Who is in a hurry asks once more.
    fn finish(&mut self) {
        /// Most are done within that, and need no words.
        const SOON: Duration = Duration::from_millis(200);
        if self.over.is_none() {
            self.gate.close();
        }
        self.screen.leave();
        if self.in_hand.wait(SOON) {
            return;
        }
        let say = |line: &str| {
            // Whoever hung up does not want to know.
            drop(writeln!(io::stderr(), "{}", text::escape(line)));
        };
        say("What was begun is not done yet; it ends by itself. Ctrl-C leaves it half-way.");
        loop {
            let is_done = self.in_hand.wait(SOON);
            for event in self.later.drain(..).chain(self.happened.try_iter()) {
                match event {
                    Event::Message(Message::Done { toast, .. }) => say(&toast),
                    Event::Message(Message::Failed { problem, .. }) => {
                        say(&problem.message);
                        problem.hint.iter().for_each(|hint| say(hint));
                    }
                    // A terminal that was hung up hangs up everybody in it, one after the other.
                    Event::Terminate(signal) if signal != SIGHUP && self.signals.ends(signal) => {
                        return;
                    }
                    _ => {}
                }
            }
            if is_done {
                return;
            }
        }
    }

    /// After another program had the terminal: everything is drawn anew, at the size that it has now.
    fn return_to_screen(&mut self) -> Result<(), MonitorError> {
        self.screen.take()?;
        self.gate.open();
        self.model.size = self.screen.size()?;
        self.model.changed = true;
        Ok(())
    }
}
