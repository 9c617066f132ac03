//! Finds, for a regular expression, words of which at least one occurs in whatever it matches.
//!
//! Those words feed one Aho-Corasick automaton, so that a line of a healthy run costs one pass over its
//! bytes and no regular expression at all.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Words shorter than this occur everywhere and would sieve nothing.
const SHORTEST: usize = 2;
/// More alternatives than this are not worth a place in the automaton.
const MOST: usize = 64;

/// The needles of `pattern` in lower case; empty if there are none, so that every line must be tried.
pub(super) fn of(hir: &Hir) -> Vec<String> {
    required(hir).filter(|words| weight(words) >= SHORTEST).unwrap_or_default()
}

/// The shortest word decides how well a set sieves.
fn weight(words: &[String]) -> usize {
    words.iter().map(String::len).min().unwrap_or(0)
}

/// Words of which one is in every match, or `None` where nothing is known.
fn required(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let word = std::str::from_utf8(&literal.0).ok()?;
            Some(vec![word.to_ascii_lowercase()])
        }
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Alternation(branches) => {
            let mut words = Vec::new();
            for branch in branches {
                words.extend(required(branch)?);
            }
            words.sort();
            words.dedup();
            (words.len() <= MOST).then_some(words)
        }
        HirKind::Concat(parts) => {
            let mut best: Option<Vec<String>> = None;
            let mut run = String::new();
            let mut keep = |words: Vec<String>| {
                if best.as_ref().is_none_or(|old| weight(&words) > weight(old)) {
                    best = Some(words);
                }
            };
            for part in parts {
                if let Some(text) = letters(part) {
                    run.push_str(&text);
                    continue;
                }
                if !run.is_empty() {
                    keep(vec![std::mem::take(&mut run)]);
                }
                if let Some(words) = required(part) {
                    keep(words);
                }
            }
            if !run.is_empty() {
                keep(vec![run]);
            }
            best
        }
        HirKind::Class(_) => letters(hir).map(|word| vec![word]),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// The text that `hir` stands for if it is one text up to case: a literal, or a class such as `[Aa]`.
fn letters(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            Some(std::str::from_utf8(&literal.0).ok()?.to_ascii_lowercase())
        }
        HirKind::Class(class) => {
            let ranges: Vec<(u32, u32)> = match class {
                Class::Unicode(c) => {
                    c.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
                }
                Class::Bytes(c) => {
                    c.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
                }
            };
            let mut folded = None;
            for (start, end) in ranges {
                let (first, last) = (char::from_u32(start)?, char::from_u32(end)?);
                let low = first.to_ascii_lowercase();
                if first != last || !first.is_ascii() || *folded.get_or_insert(low) != low {
                    return None;
                }
            }
            folded.map(String::from)
        }
        HirKind::Empty
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Capture(_)
        | HirKind::Concat(_)
        | HirKind::Alternation(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needles(pattern: &str) -> Vec<String> {
        let hir = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
        of(&{ hir }.parse(pattern).unwrap())
    }

    #[test]
    fn the_longest_required_word_wins() {
        assert_eq!(needles("Broken pipe"), ["broken pipe"]);
        assert_eq!(needles(r"\bport (?:22|2222): Connection (?:refused|reset)"), [": connection "]);
        assert_eq!(needles("(?i)out of memory"), ["out of memory"]);
        assert_eq!(needles(r"a+b*(?:memory)?x"), Vec::<String>::new());
        assert_eq!(needles(r"(?:Killed|Aborted)$"), ["aborted", "killed"]);
        assert_eq!(needles(r"\d+ of \d+|x"), Vec::<String>::new());
    }
}
