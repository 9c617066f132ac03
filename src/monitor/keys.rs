//! Keys: one table of what they do and where. The bar, the help and the dispatcher all read it.
//!
//! A key is looked up in the [`Context`] of the moment and gives a [`Command`]; nothing else in the
//! screen knows keys. The settings may give a command other keys ([`KeyMap::new`]).

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the person is doing, which decides what keys mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Choosing in the list of jobs.
    List,
    /// Looking at one job in full width.
    Detail,
    /// Reading the whole output of a job.
    Log,
    /// Reading the help.
    Help,
    /// Answering a question.
    Confirm,
    /// Typing a filter.
    Filter,
    /// Typing what to search for in the log.
    Search,
    /// Typing a tag.
    Tag,
}

/// What a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// One up.
    Up,
    /// One down.
    Down,
    /// One screenful up.
    PageUp,
    /// One screenful down.
    PageDown,
    /// To the first.
    Top,
    /// To the last; in the log this follows again.
    Bottom,
    /// Shows one job in full width.
    Details,
    /// Opens the whole output.
    Log,
    /// Continues from the checkpoint.
    Resume,
    /// Starts from scratch.
    Rerun,
    /// Stops jobs (asks).
    Kill,
    /// Archives what has ended (asks).
    Clean,
    /// Sets the tag.
    Tag,
    /// Goes to the tmux window.
    Attach,
    /// Marks or unmarks a job.
    Mark,
    /// Shows the earlier attempts of a lineage.
    Unfold,
    /// Hides them.
    Fold,
    /// Types a filter.
    Filter,
    /// Types a search.
    Search,
    /// To the next hit.
    NextHit,
    /// To the previous hit.
    PreviousHit,
    /// Scrolls to the left.
    Left,
    /// Scrolls to the right.
    Right,
    /// Follows new output or stops following.
    Follow,
    /// Confirms.
    Yes,
    /// Declines.
    No,
    /// Presses the marked button.
    Press,
    /// Marks the other button.
    OtherButton,
    /// Takes what was typed.
    Accept,
    /// Goes back.
    Back,
    /// Opens the help.
    Help,
    /// Draws everything again.
    Redraw,
    /// Stops the program until `fg`.
    Suspend,
    /// Leaves.
    Quit,
}

/// Whether a command makes sense at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Always.
    Nothing,
    /// Any job, even if the filter hides them all.
    Jobs,
    /// A selected job.
    Job,
    /// A selected job with earlier attempts.
    Attempts,
    /// A filter, marks or a message to take back.
    Something,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What it does.
    pub command: Command,
    /// The name under which the setting `keys` knows it.
    pub name: &'static str,
    /// Where it works.
    pub contexts: &'static [Context],
    /// Keys, the first being the one that is shown first.
    pub keys: &'static [&'static str],
    /// The word in the bar; empty when it stands only in the help.
    pub bar: &'static str,
    /// The line in the help.
    pub help: &'static str,
    /// When it makes sense.
    pub needs: Needs,
}

use Command as C;
use Context::{Confirm, Detail, Filter, Help, List, Log, Search, Tag};

const JOBS: &[Context] = &[List, Detail];
const PROMPTS: &[Context] = &[Filter, Search, Tag];

/// A line of the table, in short.
const fn line(
    (command, name): (Command, &'static str),
    contexts: &'static [Context],
    keys: &'static [&'static str],
    (bar, help): (&'static str, &'static str),
    needs: Needs,
) -> Binding {
    Binding { command, name, contexts, keys, bar, help, needs }
}

/// Every key. The order is that of the bar and of the help.
#[rustfmt::skip] // One line per key reads as the table that it is.
pub const TABLE: &[Binding] = &[
    line((C::Details, "details"), &[List], &["enter"], ("details", "show the job in full width"), Needs::Job),
    line((C::Back, "back"), &[Detail], &["esc", "enter"], ("list", "back to the list"), Needs::Nothing),
    line((C::Log, "log"), JOBS, &["l"], ("log", "the whole output, with search"), Needs::Job),
    line((C::Resume, "resume"), JOBS, &["r"], ("resume", "continue from the last checkpoint"), Needs::Job),
    line((C::Rerun, "rerun"), JOBS, &["R"], ("rerun", "start again from scratch"), Needs::Job),
    line((C::Kill, "kill"), JOBS, &["x"], ("kill", "stop the marked jobs, or this one (asks first)"), Needs::Job),
    line((C::Clean, "clean"), JOBS, &["c"], ("clean", "archive what has ended (asks first)"), Needs::Job),
    line((C::Attach, "attach"), JOBS, &["a"], ("attach", "go to its tmux window"), Needs::Job),
    line((C::Filter, "filter"), JOBS, &["/"], ("filter", "show only what matches"), Needs::Jobs),
    line((C::Tag, "tag"), JOBS, &["t"], ("tag", "give it a tag"), Needs::Job),
    line((C::Mark, "mark"), JOBS, &["space"], ("mark", "mark or unmark it, for kill"), Needs::Job),
    line((C::Unfold, "unfold"), JOBS, &["right"], ("", "show its earlier attempts"), Needs::Attempts),
    line((C::Fold, "fold"), JOBS, &["left"], ("", "hide its earlier attempts"), Needs::Attempts),
    line((C::Down, "down"), JOBS, &["j", "down"], ("", "next job"), Needs::Jobs),
    line((C::Up, "up"), JOBS, &["k", "up"], ("", "previous job"), Needs::Jobs),
    line((C::Top, "top"), JOBS, &["g", "home"], ("", "first job"), Needs::Jobs),
    line((C::Bottom, "bottom"), JOBS, &["G", "end"], ("", "last job"), Needs::Jobs),
    line((C::PageDown, "page-down"), JOBS, &["pgdn", "ctrl-f"], ("", "a screenful down"), Needs::Jobs),
    line((C::PageUp, "page-up"), JOBS, &["pgup", "ctrl-b"], ("", "a screenful up"), Needs::Jobs),
    line((C::Back, "clear"), &[List], &["esc"], ("", "take back message, filter, marks"), Needs::Something),
    // The log.
    line((C::Search, "log-search"), &[Log], &["/"], ("search", "search"), Needs::Nothing),
    line((C::NextHit, "next-hit"), &[Log], &["n"], ("next", "next hit"), Needs::Nothing),
    line((C::PreviousHit, "previous-hit"), &[Log], &["N"], ("previous", "previous hit"), Needs::Nothing),
    line((C::Follow, "follow"), &[Log], &["f"], ("follow", "follow new output, or stop following"), Needs::Nothing),
    line((C::Down, "log-down"), &[Log], &["j", "down"], ("", "a line down"), Needs::Nothing),
    line((C::Up, "log-up"), &[Log], &["k", "up"], ("", "a line up (stops following)"), Needs::Nothing),
    line((C::PageDown, "log-page-down"), &[Log], &["pgdn", "space", "ctrl-f"], ("", "a screenful down"), Needs::Nothing),
    line((C::PageUp, "log-page-up"), &[Log], &["pgup", "b", "ctrl-b"], ("", "a screenful up"), Needs::Nothing),
    line((C::Top, "log-top"), &[Log], &["g", "home"], ("", "to the first line"), Needs::Nothing),
    line((C::Bottom, "log-bottom"), &[Log], &["G", "end"], ("end", "to the last line, and follow"), Needs::Nothing),
    line((C::Left, "log-left"), &[Log], &["left", "h"], ("", "to the left"), Needs::Nothing),
    line((C::Right, "log-right"), &[Log], &["right", "l"], ("", "to the right"), Needs::Nothing),
    line((C::Back, "log-back"), &[Log], &["esc", "q"], ("back", "back to the jobs"), Needs::Nothing),
    // The help.
    line((C::Down, "help-down"), &[Help], &["j", "down"], ("", "down"), Needs::Nothing),
    line((C::Up, "help-up"), &[Help], &["k", "up"], ("", "up"), Needs::Nothing),
    line((C::PageDown, "help-page-down"), &[Help], &["pgdn", "space"], ("", "a screenful down"), Needs::Nothing),
    line((C::PageUp, "help-page-up"), &[Help], &["pgup", "b"], ("", "a screenful up"), Needs::Nothing),
    line((C::Back, "help-back"), &[Help], &["esc", "q", "?"], ("back", "back"), Needs::Nothing),
    // Questions.
    line((C::Yes, "yes"), &[Confirm], &["y"], ("yes", "yes"), Needs::Nothing),
    line((C::No, "no"), &[Confirm], &["n", "esc", "q"], ("no", "no"), Needs::Nothing),
    line((C::Press, "press"), &[Confirm], &["enter"], ("the marked button", "the marked button"), Needs::Nothing),
    line((C::OtherButton, "other-button"), &[Confirm], &["tab", "left", "right", "backtab"], ("other button", "mark the other button"), Needs::Nothing),
    line((C::Down, "confirm-down"), &[Confirm], &["j", "down"], ("", "more of the list"), Needs::Nothing),
    line((C::Up, "confirm-up"), &[Confirm], &["k", "up"], ("", "back up the list"), Needs::Nothing),
    // Typing.
    line((C::Accept, "accept"), PROMPTS, &["enter"], ("take it", "take what is typed"), Needs::Nothing),
    line((C::Back, "cancel"), PROMPTS, &["esc"], ("leave it", "leave it as it was"), Needs::Nothing),
    line((C::Down, "filter-down"), &[Filter], &["down"], ("", "next job"), Needs::Nothing),
    line((C::Up, "filter-up"), &[Filter], &["up"], ("", "previous job"), Needs::Nothing),
    // Everywhere.
    line((C::Help, "help"), &[List, Detail, Log], &["?"], ("help", "this list"), Needs::Nothing),
    line((C::Quit, "quit"), JOBS, &["q"], ("quit", "leave; the jobs go on"), Needs::Nothing),
    line((C::Quit, "leave"), &[List, Detail, Log, Help, Confirm, Filter, Search, Tag], &["ctrl-c"], ("", "leave at once; the jobs go on"), Needs::Nothing),
    line((C::Suspend, "suspend"), &[List, Detail, Log, Help, Confirm, Filter, Search, Tag], &["ctrl-z"], ("", "stop this screen until `fg`"), Needs::Nothing),
    line((C::Redraw, "redraw"), &[List, Detail, Log, Help, Confirm], &["ctrl-l"], ("", "look again and draw everything anew"), Needs::Nothing),
];

/// One key with its modifiers. Shift is part of the character (`R`), as terminals send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

/// Names of keys that are no characters: as written in settings, as shown, as shown in ASCII.
const NAMED: &[(&str, KeyCode, &str, &str)] = &[
    ("enter", KeyCode::Enter, "↵", "Enter"),
    ("esc", KeyCode::Esc, "Esc", "Esc"),
    ("space", KeyCode::Char(' '), "Space", "Space"),
    ("tab", KeyCode::Tab, "Tab", "Tab"),
    ("backtab", KeyCode::BackTab, "⇧Tab", "S-Tab"),
    ("backspace", KeyCode::Backspace, "⌫", "BS"),
    ("delete", KeyCode::Delete, "Del", "Del"),
    ("insert", KeyCode::Insert, "Ins", "Ins"),
    ("up", KeyCode::Up, "↑", "Up"),
    ("down", KeyCode::Down, "↓", "Down"),
    ("left", KeyCode::Left, "←", "Left"),
    ("right", KeyCode::Right, "→", "Right"),
    ("home", KeyCode::Home, "Home", "Home"),
    ("end", KeyCode::End, "End", "End"),
    ("pgup", KeyCode::PageUp, "PgUp", "PgUp"),
    ("pgdn", KeyCode::PageDown, "PgDn", "PgDn"),
];

impl Key {
    /// The key of a terminal event.
    pub fn of(event: &KeyEvent) -> Self {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        Self { code: event.code, ctrl, alt }
    }

    /// The key itself.
    pub fn code(self) -> KeyCode {
        self.code
    }

    /// The modifiers that are no part of the character.
    pub fn modifiers(self) -> KeyModifiers {
        let of = |held, modifier| if held { modifier } else { KeyModifiers::NONE };
        of(self.ctrl, KeyModifiers::CONTROL) | of(self.alt, KeyModifiers::ALT)
    }

    /// Reads `j`, `R`, `/`, `enter`, `ctrl-f`, `alt-x`, `f5`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("ctrl-").filter(|rest| !rest.is_empty()) {
            return Some(Self { ctrl: true, ..Self::parse(rest)? });
        }
        if let Some(rest) = text.strip_prefix("alt-").filter(|rest| !rest.is_empty()) {
            return Some(Self { alt: true, ..Self::parse(rest)? });
        }
        let mut chars = text.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => match NAMED.iter().find(|(name, ..)| *name == text) {
                Some((_, code, ..)) => *code,
                None => KeyCode::F(text.strip_prefix('f')?.parse().ok()?),
            },
        };
        Some(Self { code, ctrl: false, alt: false })
    }

    /// How it is shown.
    pub fn label(self, ascii: bool) -> String {
        let name = match NAMED.iter().find(|(_, code, ..)| *code == self.code) {
            Some((_, _, shown, plain)) => (if ascii { *plain } else { *shown }).to_owned(),
            None => match self.code {
                KeyCode::Char(c) if self.ctrl => c.to_ascii_uppercase().to_string(),
                KeyCode::Char(c) => c.to_string(),
                KeyCode::F(n) => format!("F{n}"),
                other => format!("{other:?}"),
            },
        };
        let ctrl = if self.ctrl { "^" } else { "" };
        let alt = if self.alt { "Alt-" } else { "" };
        format!("{ctrl}{alt}{name}")
    }
}

/// What is wrong with the setting `keys`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// No command has this name.
    #[error("settings: keys.{name}: there is no such command; `?` in the monitor lists them")]
    UnknownCommand {
        /// As written.
        name: String,
    },
    /// The key cannot be read.
    #[error(
        "settings: keys.{name}: '{key}' is no key (write j, R, enter, space, ctrl-f, alt-x, f5)"
    )]
    UnknownKey {
        /// The command.
        name: String,
        /// As written.
        key: String,
    },
    /// One key would do two things in one place.
    #[error("settings: keys: '{key}' would mean both {first} and {second}")]
    Clash {
        /// The key.
        key: String,
        /// One command.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

/// The table with the keys of this person.
#[derive(Clone, Debug)]
pub struct KeyMap {
    lines: Vec<(Binding, Vec<Key>)>,
}

impl KeyMap {
    /// The table, with other keys where the settings give them: command name and keys, parted by blanks.
    pub fn new(overrides: &[(String, String)]) -> Result<Self, KeysError> {
        for (name, _) in overrides {
            if TABLE.iter().all(|binding| binding.name != name) {
                return Err(KeysError::UnknownCommand { name: name.clone() });
            }
        }
        let mut lines = Vec::with_capacity(TABLE.len());
        for binding in TABLE {
            let own = overrides.iter().rfind(|(name, _)| name == binding.name);
            let words: Vec<&str> = match own {
                Some((_, keys)) => keys.split_whitespace().collect(),
                None => binding.keys.to_vec(),
            };
            let mut keys = Vec::with_capacity(words.len());
            for word in words {
                let key = Key::parse(word).ok_or_else(|| KeysError::UnknownKey {
                    name: binding.name.to_owned(),
                    key: word.to_owned(),
                })?;
                keys.push(key);
            }
            lines.push((*binding, keys));
        }
        let map = Self { lines };
        map.check()?;
        Ok(map)
    }

    /// Refuses a key with two meanings in one context.
    fn check(&self) -> Result<(), KeysError> {
        for (at, (first, keys)) in self.lines.iter().enumerate() {
            for (second, others) in self.lines.iter().skip(at + 1) {
                let meet = first.contexts.iter().any(|context| second.contexts.contains(context));
                if let Some(key) = keys.iter().find(|key| meet && others.contains(key)) {
                    return Err(KeysError::Clash {
                        key: key.label(false),
                        first: first.name,
                        second: second.name,
                    });
                }
            }
        }
        Ok(())
    }

    /// What a key means in a context.
    pub fn command(&self, context: Context, key: Key) -> Option<Command> {
        let here = |binding: &Binding| binding.contexts.contains(&context);
        let line = self.lines.iter().find(|(binding, keys)| here(binding) && keys.contains(&key));
        line.map(|(binding, _)| binding.command)
    }

    /// What works in a context, in the order of the table.
    pub fn lines(&self, context: Context) -> impl Iterator<Item = (&Binding, &[Key])> {
        let here = move |binding: &Binding| binding.contexts.contains(&context);
        let lines =
            self.lines.iter().filter(move |(binding, keys)| here(binding) && !keys.is_empty());
        lines.map(|(binding, keys)| (binding, keys.as_slice()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        KeyMap::new(&[]).unwrap();
        for (at, binding) in TABLE.iter().enumerate() {
            assert!(!binding.help.is_empty(), "{} has no help", binding.name);
            let twin = TABLE.iter().skip(at + 1).find(|other| other.name == binding.name);
            assert!(twin.is_none(), "two lines are named {}", binding.name);
            for key in binding.keys {
                assert!(Key::parse(key).is_some(), "{key}");
            }
        }
    }

    #[test]
    fn every_context_has_a_way_back() {
        let map = KeyMap::new(&[]).unwrap();
        let esc = Key::parse("esc").unwrap();
        for context in [List, Detail, Log, Help, Confirm, Filter, Search, Tag] {
            let command = map.command(context, esc);
            assert!(matches!(command, Some(C::Back | C::No)), "{context:?}: {command:?}");
        }
    }

    #[test]
    fn settings_move_keys() {
        let map = KeyMap::new(&[("kill".to_owned(), "D ctrl-k".to_owned())]).unwrap();
        assert_eq!(map.command(List, Key::parse("D").unwrap()), Some(C::Kill));
        assert_eq!(map.command(List, Key::parse("ctrl-k").unwrap()), Some(C::Kill));
        assert_eq!(map.command(List, Key::parse("x").unwrap()), None);
    }

    #[test]
    fn wrong_settings_are_refused_by_name() {
        let error = |name: &str, keys: &str| {
            KeyMap::new(&[(name.to_owned(), keys.to_owned())]).unwrap_err().to_string()
        };
        assert!(error("kil", "D").contains("keys.kil"));
        assert!(error("kill", "meta-x").contains("'meta-x' is no key"));
        let clash = error("kill", "r");
        assert!(clash.contains("resume") && clash.contains("kill"), "{clash}");
    }
}
