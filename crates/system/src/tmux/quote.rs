//! Text that tmux would otherwise read as something else: words of its command language, ends of
//! commands, formats. Pure.

use std::borrow::Cow;

/// One argument of the `tmux` program. A `;` at the end of an argument would end the command.
pub(super) fn argument(text: &str) -> Cow<'_, str> {
    match text.strip_suffix(';') {
        Some(start) => Cow::Owned(format!("{start}\\;")),
        None => Cow::Borrowed(text),
    }
}

/// One word of a command that tmux parses itself (a line of a sourced file, an argument of `if-shell`).
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/%@=:.,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', "'\\''")))
}

/// A command of such words.
pub(super) fn line<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|each| word(each.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Text inside a format, as a plain value: what would start a format or end a part of one is escaped.
pub(super) fn in_format(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        if matches!(c, '#' | ',' | '}') {
            safe.push('#');
        }
        safe.push(c);
    }
    safe
}

/// A name that tmux expands as a format once (`-n`, `-s`).
pub(super) fn name(text: &str) -> String {
    text.replace('#', "##")
}

/// A line that tmux shows as a message: it expands formats in it, and the date. What begins like an option stands behind a
/// blank.
pub(super) fn message(text: &str) -> String {
    let blank = if text.starts_with('-') { " " } else { "" };
    format!("{blank}{}", text.replace('#', "##").replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_a_command_only_at_the_end_of_an_argument() {
        assert_eq!(argument("a;b"), "a;b");
        assert_eq!(argument("a;"), "a\\;");
        assert_eq!(argument(";"), "\\;");
        assert_eq!(argument("a\\;"), "a\\\\;");
    }

    #[test]
    fn words_are_quoted_when_they_are_not_plain() {
        assert_eq!(line(&["capture-pane", "-t", "%12"]), "capture-pane -t %12");
        assert_eq!(line(&["x", "", "it's $HOME"]), "x '' 'it'\\''s $HOME'");
    }

    #[test]
    fn values_in_formats_are_inert() {
        assert_eq!(in_format("a,b}#{c}"), "a#,b#}##{c#}");
        assert_eq!(name("run#{pid}"), "run##{pid}");
    }
}
