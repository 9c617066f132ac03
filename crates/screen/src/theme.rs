//! Looks: which role of the screen has which style. Themes are files in `assets/themes/`.
//!
//! A status is never told by colour alone, so a theme may make all of them equal without losing anything.

use std::str::FromStr as _;

use ratatui::style::{Color, Modifier, Style};

use tpu_core::model::words::words;

/// What a piece of the screen is, independent of how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything that has no role of its own.
    Base,
    /// Less important text.
    Dim,
    /// Titles of panels.
    Title,
    /// Lines around and between panels.
    Border,
    /// The line at the top.
    Header,
    /// Keys in the bar and in the help.
    Key,
    /// The selected row.
    Selected,
    /// The mark of a marked row.
    Marked,
    /// A job at work.
    Running,
    /// A job that is being started.
    Starting,
    /// A job that ended well.
    Finished,
    /// A job that failed.
    Error,
    /// A job that a person stopped.
    Killed,
    /// A job that another one continues.
    Superseded,
    /// A job of which nothing certain is known.
    Unknown,
    /// A warning: diverged, stalled, old data.
    Warning,
    /// The done part of a progress bar.
    BarDone,
    /// The rest of a progress bar.
    BarTodo,
    /// A search hit.
    Hit,
    /// The background of dialogs.
    Dialog,
    /// A button.
    Button,
    /// The marked button.
    ButtonOn,
    /// A result.
    ToastGood,
    /// A failure.
    ToastBad,
}

words! {
    /// The spelling in theme files.
    Role {
        Base: "base",
        Dim: "dim",
        Title: "title",
        Border: "border",
        Header: "header",
        Key: "key",
        Selected: "selected",
        Marked: "marked",
        Running: "running",
        Starting: "starting",
        Finished: "finished",
        Error: "error",
        Killed: "killed",
        Superseded: "superseded",
        Unknown: "unknown",
        Warning: "warning",
        BarDone: "bar_done",
        BarTodo: "bar_todo",
        Hit: "hit",
        Dialog: "dialog",
        Button: "button",
        ButtonOn: "button_on",
        ToastGood: "toast_good",
        ToastBad: "toast_bad",
    }
}

/// The themes that come with the program, by the name that the setting `theme` takes.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../../assets/themes/dark.toml")),
    ("light", include_str!("../../../assets/themes/light.toml")),
    ("high-contrast", include_str!("../../../assets/themes/high-contrast.toml")),
    ("colour-blind", include_str!("../../../assets/themes/colour-blind.toml")),
    ("ansi16", include_str!("../../../assets/themes/ansi16.toml")),
    ("plain", include_str!("../../../assets/themes/plain.toml")),
];

/// The theme when none is chosen: the terminal's own colours suit its background for certain.
pub(crate) const DEFAULT: &str = "ansi16";

/// Why a theme cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    /// No theme has this name.
    #[error("there is no theme '{name}'; there are {}", names())]
    Unknown {
        /// As asked for.
        name: String,
    },
    /// The file cannot be read as a theme.
    #[error("theme: {message}")]
    Syntax {
        /// What is wrong, with the place.
        message: String,
    },
}

fn names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

/// A style for each role.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: &'static str,
    styles: [Style; Role::ALL.len()],
    monochrome: bool,
}

impl Theme {
    /// The built-in theme of that name; both spellings of colour are understood.
    pub fn named(name: &str) -> Result<Self, ThemeError> {
        let wanted = match name {
            "color-blind" | "colour-blind-safe" | "color-blind-safe" => "colour-blind",
            other => other,
        };
        let (name, text) = BUILT_IN
            .into_iter()
            .find(|(known, _)| *known == wanted)
            .ok_or_else(|| ThemeError::Unknown { name: name.to_owned() })?;
        let theme = Self::parse(text)?;
        Ok(Self { name, monochrome: wanted == "plain", ..theme })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The next built-in theme. A monochrome one stays: colours were declined.
    #[must_use]
    pub fn next(&self) -> Self {
        let at = BUILT_IN.iter().position(|(name, _)| *name == self.name).map_or(0, |at| at + 1);
        let coloured = BUILT_IN.iter().filter(|(name, _)| *name != "plain").count();
        let next = BUILT_IN.get(at % coloured.max(1)).filter(|_| !self.monochrome);
        next.and_then(|(name, _)| Self::named(name).ok()).unwrap_or_else(|| self.clone())
    }

    /// Reads a theme file. Every role must be there, and nothing else.
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        let syntax = |message: String| ThemeError::Syntax { message };
        let table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| syntax(e.to_string()))?;
        if let Some(key) = table.keys().find(|key| Role::ALL.iter().all(|r| r.as_str() != *key)) {
            return Err(syntax(format!("'{key}' is no role")));
        }
        let mut styles = [Style::new(); Role::ALL.len()];
        for (role, style) in Role::ALL.into_iter().zip(&mut styles) {
            let value = table.get(role.as_str()).and_then(toml::Value::as_str);
            let value = value.ok_or_else(|| syntax(format!("'{}' is missing", role.as_str())))?;
            *style = parse_style(value)
                .ok_or_else(|| syntax(format!("{} = \"{value}\" is no style", role.as_str())))?;
        }
        Ok(Self { name: "", styles, monochrome: false })
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        let styles = Role::ALL.into_iter().zip(self.styles);
        styles.into_iter().find(|(r, _)| *r == role).map_or_else(Style::new, |(_, style)| style)
    }

    /// Whether it uses no colour, so that the colours of panes go too.
    pub(crate) fn is_monochrome(&self) -> bool {
        self.monochrome
    }
}

/// Reads `117 on 234 bold`.
fn parse_style(text: &str) -> Option<Style> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let modifier = match word {
            "bold" => Modifier::BOLD,
            "dim" => Modifier::DIM,
            "italic" => Modifier::ITALIC,
            "underlined" => Modifier::UNDERLINED,
            "reversed" => Modifier::REVERSED,
            "on" => {
                style = style.bg(Color::from_str(words.next()?).ok()?);
                continue;
            }
            colour => {
                style = style.fg(Color::from_str(colour).ok()?);
                continue;
            }
        };
        style = style.add_modifier(modifier);
    }
    Some(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_theme_reads() {
        for (name, _) in BUILT_IN {
            Theme::named(name).unwrap();
        }
        assert!(Theme::named("solarized").unwrap_err().to_string().contains("high-contrast"));
    }

    #[test]
    fn a_wrong_theme_says_what_is_wrong() {
        let text = BUILT_IN[0].1;
        let without = text.replace("hit  ", "hat  ");
        assert!(Theme::parse(&without).unwrap_err().to_string().contains("'hat' is no role"));
        let wrong = text.replace("16 on 221", "16 upon 221");
        assert!(Theme::parse(&wrong).unwrap_err().to_string().contains("hit = "));
        assert!(Theme::parse("").unwrap_err().to_string().contains("'base' is missing"));
    }

    #[test]
    fn the_plain_theme_has_no_colour() {
        let theme = Theme::named("plain").unwrap();
        assert!(theme.is_monochrome());
        for role in Role::ALL {
            assert_eq!((theme.style(role).fg, theme.style(role).bg), (None, None));
        }
    }
}
