//! Finds, for a regular expression, words of which at least one occurs in whatever it matches.
//!
//! Those words feed one Aho-Corasick automaton, so that a line of a healthy run costs one pass over its
//! bytes and no regular expression at all.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Words shorter than this occur everywhere and would sieve nothing.
const SHORTEST: usize = 2;
/// More letters than this make the automaton larger and hardly sieve better.
const LONGEST: usize = 10;
/// More alternatives than this are not worth a place in the automaton.
const MOST: usize = 64;

/// A word that a match must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needle {
    /// The word as the pattern has it, or in lower case where case does not matter.
    pub(super) word: String,
    /// Whether case matters.
    pub(super) exact: bool,
}

/// The needles of a pattern; empty if there are none, so that every line must be tried.
pub(super) fn of(hir: &Hir) -> Vec<Needle> {
    let mut words = required(hir).filter(|words| weight(words) >= SHORTEST).unwrap_or_default();
    for needle in &mut words {
        let end = (0..=LONGEST).rev().find(|end| needle.word.is_char_boundary(*end));
        if needle.word.len() > LONGEST {
            needle.word.truncate(end.unwrap_or(0));
        }
    }
    words
}

/// The shortest word decides how well a set sieves.
fn weight(words: &[Needle]) -> usize {
    words.iter().map(|needle| needle.word.len()).min().unwrap_or(0)
}

/// Words of which one is in every match, or `None` where nothing is known.
fn required(hir: &Hir) -> Option<Vec<Needle>> {
    match hir.kind() {
        HirKind::Literal(_) | HirKind::Class(_) => letters(hir).map(|needle| vec![needle]),
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
        HirKind::Concat(parts) => best_part(parts),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// The set of words that sieves best among the parts of a sequence; neighbouring letters are one word.
fn best_part(parts: &[Hir]) -> Option<Vec<Needle>> {
    let mut best: Option<Vec<Needle>> = None;
    let mut keep = |words: Vec<Needle>| {
        if best.as_ref().is_none_or(|old| weight(&words) > weight(old)) {
            best = Some(words);
        }
    };
    let mut run: Option<Needle> = None;
    for part in parts {
        if let Some(next) = letters(part) {
            run = Some(match run.take() {
                None => next,
                Some(run) if run.exact && next.exact => {
                    Needle { word: run.word + &next.word, exact: true }
                }
                Some(run) => {
                    let word = (run.word + &next.word).to_ascii_lowercase();
                    Needle { word, exact: false }
                }
            });
            continue;
        }
        for words in [run.take().map(|run| vec![run]), required(part)].into_iter().flatten() {
            keep(words);
        }
    }
    if let Some(run) = run {
        keep(vec![run]);
    }
    best
}

/// The text that `hir` stands for if it is one text up to case: a literal, or a class such as `[Aa]`.
fn letters(hir: &Hir) -> Option<Needle> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let word = std::str::from_utf8(&literal.0).ok()?.to_owned();
            Some(Needle { word, exact: true })
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
            folded.map(|letter| Needle { word: letter.to_string(), exact: false })
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
        let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
        let needles = of(&parser.parse(pattern).unwrap());
        needles.into_iter().map(|n| if n.exact { n.word } else { format!("~{}", n.word) }).collect()
    }

    #[test]
    fn the_longest_required_word_wins() {
        assert_eq!(needles("Broken pipe"), ["Broken pip"]);
        assert_eq!(needles(r"\bport (?:22|2222): Connection (?:refused|reset)"), [": Connecti"]);
        assert_eq!(needles("(?i)out of Memory"), ["~out of mem"]);
        assert_eq!(needles(r"a+b*(?:memory)?x"), Vec::<String>::new());
        assert_eq!(needles(r"(?:Killed|(?i:aborted))$"), ["Killed", "~aborted"]);
        assert_eq!(needles(r"\d+ of \d+|x"), Vec::<String>::new());
    }
}
