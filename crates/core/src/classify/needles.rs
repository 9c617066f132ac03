//! Finds, for a regular expression, words of which at least one occurs in whatever it matches.
//!
//! Those words are looked for all at once, so that a line of a healthy run costs one pass over its bytes
//! and no regular expression at all. For the built-in rules `build.rs`, which shares this file, finds them.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Words shorter than this occur everywhere and would sieve nothing.
const SHORTEST: usize = 2;
/// Punctuation is rare enough on its own.
const PUNCTUATION: [&str; 8] = ["%", "=", "[", "(", "<", "@", ":", "#"];
/// More letters than this hardly sieve better.
const LONGEST: usize = 12;
/// More alternatives than this are not worth looking for.
const MOST: usize = 64;

/// A word that a match must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needle {
    /// The word as the pattern has it, or in lower case where case does not matter.
    pub(super) word: String,
    /// Whether case matters.
    pub(super) exact: bool,
}

/// The words that a pattern's matches must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needles {
    /// One of these is in every match; empty if nothing is known, so that every line must be tried.
    pub(super) words: Vec<Needle>,
    /// Every match begins with one of them, so that a word elsewhere in a line is worth no try.
    pub(super) leading: bool,
}

/// The needles of a regular expression on bytes.
pub(super) fn read(pattern: &str) -> Result<Needles, Box<regex_syntax::Error>> {
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    Ok(of(&parser.parse(pattern)?))
}

fn of(hir: &Hir) -> Needles {
    let usable = |words: &Vec<Needle>| sieves(words);
    let best = required(hir).filter(usable);
    let leading = leading(hir).filter(usable);
    let cost = |words: &Option<Vec<Needle>>| words.as_ref().map_or(f64::MAX, |words| rarity(words));
    // A word at the start is worth more than its rarity says: its place is checked before anything else.
    let at_start = leading.is_some() && cost(&leading) <= cost(&best) * 1e4;
    let mut words = if at_start { leading } else { best }.unwrap_or_default();
    for needle in &mut words {
        let whole = needle.word.as_str();
        let bounds = (0..=whole.len()).filter(|at| whole.is_char_boundary(*at));
        // What sentences have in common stands at their beginning: `failed to …`, `connection …`.
        let cut = if at_start {
            bounds.rev().find(|end| *end <= LONGEST).and_then(|end| whole.get(..end))
        } else {
            let mut bounds = bounds;
            bounds.find(|from| whole.len() - from <= LONGEST).and_then(|from| whole.get(from..))
        };
        needle.word = cut.unwrap_or_default().to_owned();
    }
    Needles { words, leading: at_start }
}

/// Whether each word of a set sieves at all.
fn sieves(words: &[Needle]) -> bool {
    let one = |n: &Needle| n.word.len() >= SHORTEST || PUNCTUATION.contains(&n.word.as_str());
    !words.is_empty() && words.iter().all(one)
}

/// About how often one of the words occurs at a place of a text: what a set of words costs.
fn rarity(words: &[Needle]) -> f64 {
    let letter = |exact: bool, c: char| match c {
        ' ' => 0.15,
        'A'..='Z' if exact => 0.01,
        'a'..='z' | 'A'..='Z' => 0.06,
        _ => 0.02,
    };
    words.iter().map(|n| n.word.chars().map(|c| letter(n.exact, c)).product::<f64>()).sum()
}

/// Words of which one begins every match, where a pattern is bound to the start of the content.
fn leading(hir: &Hir) -> Option<Vec<Needle>> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let (first, rest) = parts.split_first()?;
    if !matches!(first.kind(), HirKind::Look(Look::Start)) {
        return None;
    }
    starts(rest)
}

/// Words of which one stands at the start of whatever a sequence matches.
fn starts(parts: &[Hir]) -> Option<Vec<Needle>> {
    let run = parts.iter().map_while(letters).reduce(|one, two| glue(one, &two));
    if let Some(run) = run {
        return Some(vec![run]);
    }
    let first = parts.first()?;
    match first.kind() {
        HirKind::Capture(capture) => starts(std::slice::from_ref(&capture.sub)),
        HirKind::Concat(parts) => starts(parts),
        HirKind::Alternation(branches) => {
            let mut words = Vec::new();
            for branch in branches {
                words.extend(starts(std::slice::from_ref(branch))?);
            }
            words.sort_unstable();
            words.dedup();
            (words.len() <= MOST).then_some(words)
        }
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_) => None,
    }
}

/// Two neighbouring words as one.
fn glue(one: Needle, two: &Needle) -> Needle {
    let exact = one.exact && two.exact;
    let word = one.word + &two.word;
    Needle { word: if exact { word } else { word.to_ascii_lowercase() }, exact }
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
            words.sort_unstable();
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
        if sieves(&words) && best.as_ref().is_none_or(|old| rarity(&words) < rarity(old)) {
            best = Some(words);
        }
    };
    let mut run: Option<Needle> = None;
    for part in parts {
        if let Some(next) = letters(part) {
            run = Some(match run.take() {
                None => next,
                Some(run) => glue(run, &next),
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
        let Needles { words, leading } = read(pattern).unwrap();
        let words =
            words.into_iter().map(|n| if n.exact { n.word } else { format!("~{}", n.word) });
        words.map(|word| if leading { format!("^{word}") } else { word }).collect()
    }

    #[test]
    fn the_rarest_required_word_wins() {
        assert_eq!(needles("Broken pipe"), ["Broken pipe"]);
        assert_eq!(needles(r"\bport (?:22|2222): Connection (?:refused|reset)"), [" Connection "]);
        assert_eq!(needles("(?i)out of Memory"), ["~ut of memory"]);
        assert_eq!(needles(r"a+b*(?:memory)?x"), Vec::<String>::new());
        assert_eq!(needles(r"(?:Killed|(?i:aborted))$"), ["Killed", "~aborted"]);
        assert_eq!(needles(r"\d+ of \d+|x"), Vec::<String>::new());
        assert_eq!(needles(r"\bOOM (?:error|killed)\b"), ["OOM "]);
    }

    #[test]
    fn a_word_at_the_start_is_looked_for_there() {
        assert_eq!(needles("^Error(?: in|: )"), ["^Error"]);
        assert_eq!(needles("^(?:Killed|Done): "), ["^Done", "^Killed"]);
        assert_eq!(needles(r"^\w+: Stale file handle"), ["e file handle".get(1..).unwrap()]);
    }
}
