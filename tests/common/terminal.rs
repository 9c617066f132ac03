//! A person's terminal: the window of a private tmux server of its own, in which keys are typed and the
//! screen is read. The jobs' own server stays only what the jobs need.

use std::cell::Cell;

use tpu_system::sys::procs::{Process, Table};

use super::env::TestEnv;
use super::tmux::{PrivateTmux, write_file};
use super::wait::{wait_for, wait_until};

/// A person's terminal.
pub(crate) struct Terminal {
    /// The server whose only window it is.
    pub(crate) tmux: PrivateTmux,
    /// How often its settings were noted.
    noted: Cell<u32>,
}

impl Terminal {
    /// A terminal of 120 × 30 with a shell that has the test's environment.
    pub(crate) fn new(env: &TestEnv) -> Self {
        let tmux = PrivateTmux::new("");
        let spawn = env.spawn_program("/bin/bash", &["--norc", "--noprofile"]);
        let vars: Vec<String> = spawn
            .env
            .iter()
            .filter_map(|(name, value)| {
                let value = value.as_ref()?;
                Some(format!("{}={}", name.to_str()?, value.to_str()?))
            })
            .collect();
        let mut args: Vec<&str> =
            vec!["new-session", "-d", "-s", "person", "-x", "120", "-y", "30"];
        args.extend(["env", "-i", "TERM=screen-256color", "LANG=C.UTF-8", "PS1=ready> "]);
        args.extend(vars.iter().map(String::as_str));
        args.extend(["/bin/bash", "--norc", "--noprofile"]);
        tmux.run(&args);
        let terminal = Self { tmux, noted: Cell::new(0) };
        terminal.shows("ready>");
        terminal
    }

    /// What it shows.
    pub(crate) fn screen(&self) -> String {
        self.tmux.run(&["capture-pane", "-p", "-t", "person"])
    }

    /// Waits until something is so; what the screen showed is part of the failure.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(what, &mut is_so);
        }));
        assert!(caught.is_ok(), "waited in vain: {what}\n{}", self.screen());
    }

    /// Waits until the screen holds `text`.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        self.until(&format!("the screen shows {text:?}"), || self.screen().contains(text));
    }

    /// Waits until the shell waits for a command.
    #[track_caller]
    pub(crate) fn prompts(&self) {
        // The line with the last command shows a prompt too.
        self.until("the shell waits for a command", || {
            self.screen()
                .trim_end()
                .lines()
                .next_back()
                .is_some_and(|line| line.trim_end() == "ready>")
        });
    }

    /// Waits until the screen no longer holds `text`.
    #[track_caller]
    pub(crate) fn hides(&self, text: &str) {
        self.until(&format!("the screen hides {text:?}"), || !self.screen().contains(text));
    }

    /// Presses a key by its name.
    pub(crate) fn press(&self, key: &str) {
        self.tmux.run(&["send-keys", "-t", "person", key]);
    }

    /// Gives it another size: columns and rows.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux.run(&["resize-window", "-t", "person", "-x", &columns, "-y", &rows]);
    }

    /// Types text.
    pub(crate) fn types(&self, text: &str) {
        self.tmux.run(&["send-keys", "-t", "person", "-l", text]);
    }

    /// Types a command at the shell's prompt.
    pub(crate) fn command(&self, line: &str) {
        self.types(line);
        self.press("Enter");
    }

    /// Presses keys by their names, parted by blanks.
    pub(crate) fn keys(&self, names: &str) {
        for name in names.split(' ') {
            self.press(name);
        }
    }

    /// The mouse as a terminal reports it: button or wheel, at a column and a row from 1.
    pub(crate) fn mouse(&self, button: u32, (x, y): (usize, usize), end: char) {
        self.types(&format!("\u{1b}[<{button};{x};{y}{end}"));
    }

    /// Column and row, from 1, of a text on the screen.
    #[track_caller]
    pub(crate) fn place(&self, text: &str) -> (usize, usize) {
        self.shows(text);
        let screen = self.screen();
        let found = screen.lines().enumerate().find_map(|(y, line)| {
            let at = line.find(text)?;
            Some((tpu_core::text::width(&line[..at]) + 1, y + 1))
        });
        found.unwrap_or_else(|| panic!("{text:?} has gone:\n{screen}"))
    }

    /// Pastes text as a terminal with bracketed paste does.
    pub(crate) fn pastes(&self, text: &str) {
        let path = self.tmux.dir().join("paste");
        write_file(&path, text);
        self.tmux.run(&["load-buffer", path.to_str().unwrap()]);
        self.tmux.run(&["paste-buffer", "-p", "-t", "person"]);
    }

    /// Remembers how the terminal is set, as a person's shell sees it, and clears the screen: what was there before stands
    /// for nothing any more.
    pub(crate) fn note_settings(&self) {
        // A word of its own for each time: that of the time before stands on the screen until the shell has cleared it.
        let times = self.noted.get() + 1;
        self.noted.set(times);
        let word = format!("noted {times}");
        self.command(&format!("stty -a >\"$HOME/before\"; clear; echo {word}"));
        self.until("the settings are noted", || self.screen().lines().any(|line| line == word));
    }

    /// Insists that the terminal is as it was noted, and that the alternate screen is left.
    #[track_caller]
    pub(crate) fn is_as_before(&self) {
        self.command(
            "stty -a >\"$HOME/after\"; cmp \"$HOME/before\" \"$HOME/after\" && echo as-before",
        );
        self.until("the terminal is as before", || {
            self.screen().lines().any(|line| line == "as-before")
        });
        let modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        let modes = self.tmux.run(&["display-message", "-p", "-t", "person", modes]);
        assert_eq!(modes, "0 0 1", "{}", self.screen());
    }

    /// The `tpu` that runs in it.
    pub(crate) fn tpu(&self) -> Process {
        let pane = self.tmux.run(&["list-panes", "-t", "person", "-F", "#{pane_pid}"]);
        let shell: u32 = pane.trim().parse().unwrap();
        wait_for("a tpu in the terminal", || {
            let table = Table::read().unwrap();
            table.descendants(shell).into_iter().find(|process| process.name == "tpu").cloned()
        })
    }
}
