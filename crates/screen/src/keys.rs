//! Keys: one table of what they do and where. The bar, the help and the dispatcher all read it.
//!
//! A key is looked up in the [`Context`] of the moment and gives a [`Command`]; nothing else in the
//! screen knows keys. The settings may give a command other keys ([`KeyMap::new`]).

mod groups;
mod table;

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use groups::KeyGroup;
pub use table::{Binding, Command, Context, Needs, TABLE};

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

    /// Whether it is a character and nothing else, which somebody has pressed on purpose.
    pub(crate) fn is_character(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.ctrl && !self.alt
    }

    /// The modifiers that are no part of the character.
    pub fn modifiers(self) -> KeyModifiers {
        let of = |held, modifier| if held { modifier } else { KeyModifiers::NONE };
        of(self.ctrl, KeyModifiers::CONTROL) | of(self.alt, KeyModifiers::ALT)
    }

    /// Esc and another key that came so close together that the terminal could not tell them from Alt with
    /// that key: the two, if it may have been so.
    pub(crate) fn split_alt(self) -> Option<[Self; 2]> {
        let esc = Self { code: KeyCode::Esc, ctrl: false, alt: false };
        self.alt.then_some([esc, Self { alt: false, ..self }])
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

    /// Every context.
    pub fn contexts() -> &'static [Context] {
        table::ALL
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
    use super::Command as C;
    use super::Context::List;
    use super::table::ALL;
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
        for context in ALL.iter().copied() {
            let command = map.command(context, esc);
            assert!(matches!(command, Some(C::Back | C::No)), "{context:?}: {command:?}");
        }
    }

    #[test]
    fn settings_move_keys() {
        let map = KeyMap::new(&[("kill".to_owned(), "X ctrl-k".to_owned())]).unwrap();
        assert_eq!(map.command(List, Key::parse("X").unwrap()), Some(C::Kill));
        assert_eq!(map.command(List, Key::parse("ctrl-k").unwrap()), Some(C::Kill));
        assert_eq!(map.command(List, Key::parse("x").unwrap()), None);
    }

    #[test]
    fn wrong_settings_are_refused_by_name() {
        let error = |name: &str, keys: &str| {
            KeyMap::new(&[(name.to_owned(), keys.to_owned())]).unwrap_err().to_string()
        };
        assert!(error("kil", "X").contains("keys.kil"));
        assert!(error("kill", "meta-x").contains("'meta-x' is no key"));
        let clash = error("kill", "r");
        assert!(clash.contains("resume") && clash.contains("kill"), "{clash}");
    }
}
