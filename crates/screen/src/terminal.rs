//! The terminal: taken over, and given back however we end.
//!
//! A panic hook is in place before raw mode begins, and a guard restores on every other way out: return,
//! error, and the signals that the run loop turns into a return.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::model::Model;
use super::view::view;
use tpu_core::text;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// What the run loop draws on.
pub(super) trait Canvas {
    /// Columns and rows.
    fn size(&self) -> io::Result<(u16, u16)>;

    /// Draws the model. Only cells that changed are written.
    fn draw(&mut self, model: &Model) -> io::Result<()>;

    /// Gives it back for a while.
    fn leave(&mut self);

    /// Takes it over (again); the next frame is drawn whole.
    fn take(&mut self) -> io::Result<()>;

    /// Takes the mouse, or releases it.
    fn mouse(&mut self, taken: bool) -> io::Result<()>;
}

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// Whether there is something to restore. Shared with the panic hook: restoring twice would put the
    /// cursor back to where it was before the panic was reported.
    taken: Arc<AtomicBool>,
    hook: Arc<Hook>,
    /// Whether the mouse is wanted while the terminal is ours.
    mouse: bool,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open() -> io::Result<Self> {
        let taken = Arc::new(AtomicBool::new(false));
        let hook = install_hook(Arc::clone(&taken));
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())));
        let mut screen = match terminal {
            Ok(terminal) => Self { terminal, taken, hook, mouse: true },
            Err(error) => {
                uninstall_hook(&hook);
                return Err(error);
            }
        };
        // From here on `drop` restores, also when this fails half way.
        screen.take()?;
        Ok(screen)
    }
}

impl Canvas for Screen {
    fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| view(model, frame))?;
        Ok(())
    }

    fn leave(&mut self) {
        restore(&self.taken);
    }

    fn take(&mut self) -> io::Result<()> {
        self.taken.store(true, Ordering::SeqCst);
        fail::fail_point!("no-raw-mode", |_| Err(io::Error::other("it takes no keys one by one")));
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        self.mouse(self.mouse)?;
        // Not `clear`: that asks the terminal where the cursor is, and the answer would have to come past
        // the thread that reads keys.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    fn mouse(&mut self, taken: bool) -> io::Result<()> {
        self.mouse = taken;
        if taken {
            execute!(io::stdout(), EnableMouseCapture)
        } else {
            execute!(io::stdout(), DisableMouseCapture)
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.taken);
        uninstall_hook(&self.hook);
    }
}

/// A terminal whose keys stop nothing (Ctrl-Z), for as long as this lives.
pub(super) struct Unstoppable(Termios);

impl Unstoppable {
    /// Takes the meaning from the key; `None` where there is no terminal that could give it one.
    pub(super) fn new() -> Option<Self> {
        /// No character has the meaning.
        const NONE: u8 = 0;
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut without = before.clone();
        without.special_codes[SpecialCodeIndex::VSUSP] = NONE;
        tcsetattr(&stdin, OptionalActions::Now, &without).ok()?;
        Some(Self(before))
    }
}

impl Drop for Unstoppable {
    fn drop(&mut self) {
        // What fails cannot be mended: the terminal may be gone.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.0).ok();
    }
}

/// Asks the terminal to put a text into its clipboard (OSC 52), which works through ssh. A terminal
/// that does not know this does nothing.
pub(super) fn copy(text: &str) -> io::Result<()> {
    // Whoever pastes it may paste it into a shell.
    let lines: Vec<_> = text.split('\n').map(text::escape).collect();
    let mut out = io::stdout();
    write!(out, "\u{1b}]52;c;{}\u{7}", STANDARD.encode(lines.join("\n")))?;
    out.flush()
}

/// Puts the terminal back as it was. What fails cannot be mended: the terminal may be gone.
fn restore(taken: &AtomicBool) {
    if !taken.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show)
        .ok();
    out.flush().ok();
    disable_raw_mode().ok();
}

/// Restores the terminal before a panic of this thread is reported. Panics of the worker threads are
/// caught there and shown on the screen, so they are not written across it.
fn install_hook(taken: Arc<AtomicBool>) -> Arc<Hook> {
    let before: Arc<Hook> = Arc::new(panic::take_hook());
    let report = Arc::clone(&before);
    let ours = std::thread::current().id();
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == ours {
            restore(&taken);
            report(info);
        }
    }));
    before
}

/// Brings back the hook from before. In a panic that is not possible and not needed.
fn uninstall_hook(before: &Arc<Hook>) {
    if !std::thread::panicking() {
        let before = Arc::clone(before);
        panic::set_hook(Box::new(move |info| before(info)));
    }
}
