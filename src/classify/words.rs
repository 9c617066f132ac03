//! Finds many words in a text at once, whatever their case.
//!
//! An automaton reads a byte at a time and waits for memory at each. Four of them, each in a quarter of
//! the text, wait together: that is most of the speed of this module.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::dfa::DFA;

/// Texts shorter than this are read by one automaton.
const SHORT: usize = 1 << 10;
/// Automata that read together.
const LANES: usize = 4;

/// Words to look for.
#[derive(Debug)]
pub(super) struct Words {
    automaton: DFA,
    lengths: Vec<usize>,
}

/// One word at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Index of the word.
    pub(super) word: usize,
}

impl Words {
    /// Prepares the search; `None` if there are too many words.
    pub(super) fn new(words: &[String]) -> Option<Self> {
        let automaton =
            DFA::builder().ascii_case_insensitive(true).prefilter(false).build(words).ok()?;
        Some(Self { automaton, lengths: words.iter().map(String::len).collect() })
    }

    /// All occurrences of all words, also of words within words, by their ends. No word spans lines.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Found> {
        let mut found: [Vec<Found>; LANES] = Default::default();
        let [first, second, third, fourth] = &mut found;
        if text.len() < SHORT {
            self.read(text, 0, first);
        } else {
            let cuts = cuts(text);
            let lane = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
            let [a, b, c] = cuts;
            let lanes = [lane(0, a), lane(a, b), lane(b, c), lane(c, text.len())];
            let least = lanes.iter().map(|lane| lane.len()).min().unwrap_or(0);
            let Some(start) = self.start() else { return Vec::new() };
            let mut states = [start; LANES];
            let [l0, l1, l2, l3] = lanes.map(|lane| lane.get(..least).unwrap_or_default());
            for (at, (((b0, b1), b2), b3)) in l0.iter().zip(l1).zip(l2).zip(l3).enumerate() {
                let [s0, s1, s2, s3] = &mut states;
                *s0 = self.automaton.next_state(Anchored::No, *s0, *b0);
                *s1 = self.automaton.next_state(Anchored::No, *s1, *b1);
                *s2 = self.automaton.next_state(Anchored::No, *s2, *b2);
                *s3 = self.automaton.next_state(Anchored::No, *s3, *b3);
                let special = self.automaton.is_special(*s0)
                    | self.automaton.is_special(*s1)
                    | self.automaton.is_special(*s2)
                    | self.automaton.is_special(*s3);
                if special {
                    self.note(*s0, at + 1, first);
                    self.note(*s1, a + at + 1, second);
                    self.note(*s2, b + at + 1, third);
                    self.note(*s3, c + at + 1, fourth);
                }
            }
            for (((lane, state), from), found) in
                lanes.iter().zip(states).zip([0, a, b, c]).zip([first, second, third, fourth])
            {
                let rest = lane.get(least..).unwrap_or_default();
                self.read_from(state, rest, from + least, found);
            }
        }
        found.concat()
    }

    /// Calls `found` with the index of each word that occurs in a short text, once for each place.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize)) {
        let Some(mut state) = self.start() else { return };
        for byte in text {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if self.automaton.is_match(state) {
                for index in 0..self.automaton.match_len(state) {
                    found(self.automaton.match_pattern(state, index).as_usize());
                }
            }
        }
    }

    fn start(&self) -> Option<StateID> {
        self.automaton.start_state(Anchored::No).ok()
    }

    fn read(&self, text: &[u8], from: usize, found: &mut Vec<Found>) {
        if let Some(start) = self.start() {
            self.read_from(start, text, from, found);
        }
    }

    fn read_from(&self, mut state: StateID, text: &[u8], from: usize, found: &mut Vec<Found>) {
        for (at, byte) in text.iter().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if self.automaton.is_special(state) {
                self.note(state, from + at + 1, found);
            }
        }
    }

    /// Notes the words that end at `end`, if `state` is one in which words end.
    fn note(&self, state: StateID, end: usize, found: &mut Vec<Found>) {
        if !self.automaton.is_match(state) {
            return;
        }
        for index in 0..self.automaton.match_len(state) {
            let word = self.automaton.match_pattern(state, index).as_usize();
            let length = self.lengths.get(word).copied().unwrap_or(0);
            found.push(Found { start: end.saturating_sub(length), end, word });
        }
    }
}

/// Where the second, third and fourth quarter of a text begin: at the starts of lines.
fn cuts(text: &[u8]) -> [usize; LANES - 1] {
    [1, 2, 3].map(|quarter| {
        let about = text.len() / LANES * quarter;
        let rest = text.get(about..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(text.len(), |end| about + end + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_find_what_one_reading_finds() {
        let words = Words::new(&["error".into(), "err".into(), "killed".into()]).unwrap();
        for lines in [0, 1, 7, 100, 999] {
            let mut text = String::new();
            for n in 0..lines {
                text += &format!("{n} an ErRor, {}\n", ["", "Killed"][n % 2]);
            }
            let mut one = Vec::new();
            words.read(text.as_bytes(), 0, &mut one);
            assert_eq!(words.find(text.as_bytes()), one);
            assert_eq!(one.len(), lines * 2 + lines / 2);
        }
    }

    #[test]
    fn one_endless_line_is_read_whole() {
        let words = Words::new(&["killed".into()]).unwrap();
        let text = "x".repeat(5_000) + "Killed" + &"y".repeat(5_000);
        assert_eq!(words.find(text.as_bytes()), [Found { start: 5_000, end: 5_006, word: 0 }]);
    }
}
