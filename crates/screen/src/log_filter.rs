//! Which lines of a log are shown: those that match an expression, or with `!` before it those that do not; and what is
//! searched for in them.

use std::ops::Range;

use regex::{Error, Regex, RegexBuilder};

/// An expression in which capitals count if it has any.
fn expression(text: &str) -> Result<Regex, Error> {
    let exact = text.chars().any(char::is_uppercase);
    RegexBuilder::new(text).case_insensitive(!exact).size_limit(1 << 20).build()
}

/// What is searched for: an expression, or just a text where it cannot be read as one.
#[derive(Clone, Debug, Default)]
pub struct LogSearch {
    text: String,
    pattern: Option<Regex>,
    literal: bool,
}

impl LogSearch {
    /// Reads what was typed.
    pub fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let (pattern, literal) = match expression(text) {
            Ok(pattern) => (Some(pattern), false),
            Err(_) => (expression(&regex::escape(text)).ok(), true),
        };
        Self { text: text.to_owned(), pattern, literal }
    }

    /// As typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether nothing is searched for.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is searched for and how it is read, in words.
    pub fn in_words(&self) -> String {
        if self.literal { format!("'{}' (as text)", self.text) } else { format!("/{}/", self.text) }
    }

    /// Whether a line holds it.
    pub fn is_in(&self, line: &str) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
    }

    /// Where a line holds it, in bytes.
    pub fn places(&self, line: &str) -> Vec<Range<usize>> {
        let found = self.pattern.iter().flat_map(|pattern| pattern.find_iter(line));
        found.map(|hit| hit.range()).filter(|place| !place.is_empty()).collect()
    }
}

/// A filter as typed, and read.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    text: String,
    inverse: bool,
    pattern: Option<Regex>,
    problem: Option<String>,
}

impl LogFilter {
    /// Reads a filter. What is no expression lets every line through and says why.
    pub fn parse(text: &str) -> Self {
        let (inverse, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut filter = Self { text: text.to_owned(), inverse, ..Self::default() };
        if pattern.is_empty() {
            return filter;
        }
        match expression(pattern) {
            Ok(pattern) => filter.pattern = Some(pattern),
            Err(error) => {
                let last = error.to_string().lines().last().unwrap_or_default().to_owned();
                filter.problem = Some(last.trim_start_matches("error: ").to_owned());
            }
        }
        filter
    }

    /// As typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.pattern.is_none()
    }

    /// Why it cannot be used, if it cannot.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether a line is shown.
    pub fn matches(&self, line: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(line) != self.inverse)
    }
}

/// The worker whose line this is: `[worker 3] …`, `[3] …`, `3: …` as the launcher prefixes them.
pub(crate) fn worker_of(line: &str) -> Option<&str> {
    let inside = line.strip_prefix('[')?.split_once(']')?.0;
    let name = inside.strip_prefix("worker ").unwrap_or(inside);
    (!name.is_empty() && name.len() <= 4 && name.chars().all(|c| c.is_ascii_digit()))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_choose_lines() {
        let shows = |filter: &str, line: &str| LogFilter::parse(filter).matches(line);
        assert!(shows("loss", "step 3 LOSS 0.2") && !shows("Loss", "step 3 loss 0.2"));
        assert!(shows("!warn", "step 3") && !shows("!warn", "a warning"));
        assert!(shows("", "anything") && shows("!", "anything"));
        let broken = LogFilter::parse("(");
        assert!(broken.matches("anything") && broken.problem().is_some());
    }

    #[test]
    fn workers_are_named_by_their_prefix() {
        assert_eq!(worker_of("[worker 12] step 3"), Some("12"));
        assert_eq!(worker_of("[0] step 3"), Some("0"));
        assert_eq!(worker_of("[INFO] step 3"), None);
        assert_eq!(worker_of("step 3"), None);
    }

    #[test]
    fn a_search_is_an_expression_or_else_a_text_and_capitals_count_if_there_are_any() {
        let holds = |search: &str, line: &str| LogSearch::parse(search).is_in(line);
        assert!(holds("loss|ERROR", "an ERROR") && !holds("loss|ERROR", "an error"));
        assert!(holds("step \\d+0 ", "Step 120 loss") && !holds("step \\d+0 ", "step 121 "));
        let broken = LogSearch::parse("f(X");
        assert!(broken.is_in("f(X)") && !broken.is_in("f(x)"), "{broken:?}");
        assert_eq!(broken.in_words(), "'f(X' (as text)");
        assert!(!LogSearch::parse("").is_in("anything"));
        assert_eq!(LogSearch::parse("日|本").places("x日本"), [1..4, 4..7]);
        assert!(LogSearch::parse("q*").places("abc").is_empty(), "nothing is no place");
    }
}
