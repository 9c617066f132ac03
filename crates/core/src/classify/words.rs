//! Finds many words in a text at once, whatever their case.
//!
//! A word is filed under the rarest of its grams: pieces of four letters, or of two where it is shorter.
//! At nearly every place of a text one bit says that nothing is filed under what stands there. The bits
//! fit the nearest cache and are set in microseconds; an automaton of a thousand words takes milliseconds
//! to build and waits for memory when it is used.

/// Letters of a gram.
const GRAM: usize = 4;
/// Letters of the gram of a word that has no four.
const PAIR: usize = 2;
/// Values of a gram's hash.
const HASHES: usize = 1 << 16;
/// Bits of one piece of a table.
const PIECE: usize = 64;
/// Hashes that share one place in the index of a table.
const SHARED: usize = 16;

/// Words to look for.
#[derive(Debug)]
pub(super) struct Words {
    long: Table,
    short: Table,
}

/// One word at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Index of the word.
    pub(super) word: usize,
}

impl Words {
    /// Prepares the search. An empty word is found nowhere.
    pub(super) fn new(words: &[String]) -> Self {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for (word, letters) in words.iter().enumerate() {
            let letters = letters.to_ascii_lowercase().into_bytes().into_boxed_slice();
            let file =
                |hash: usize, before: usize| Entry { hash, before, letters: letters.clone(), word };
            if let Some((before, gram)) = rarest(&letters) {
                long.push(file(hash(gram), before));
            } else if let Some(pair) = letters.first_chunk::<PAIR>() {
                short.push(file(hash_pair(*pair), 0));
            } else if let Some(letter) = letters.first() {
                // Whatever follows it.
                let mut pairs: Vec<usize> =
                    (0..=u8::MAX).map(|next| hash_pair([*letter, next])).collect();
                pairs.sort_unstable();
                pairs.dedup();
                short.extend(pairs.into_iter().map(|hash| file(hash, 0)));
            }
        }
        Self { long: Table::new(long), short: Table::new(short) }
    }

    /// All occurrences of all words, also of words within words, line by line. No word spans lines.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Found> {
        let mut all = Vec::new();
        self.each(text, |found| all.push(found));
        all
    }

    /// Calls `found` with each occurrence of each word, line by line.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(Found)) {
        if self.short.entries.is_empty() {
            for (at, gram) in grams(text) {
                self.long.look(text, at, hash(gram), &mut found);
            }
        } else {
            for (at, gram) in grams(text) {
                let [one, two, ..] = gram;
                self.long.look(text, at, hash(gram), &mut found);
                self.short.look(text, at, hash_pair([one, two]), &mut found);
            }
        }
        // Too little follows the last places: ends of lines stand for it.
        let last = text.len().saturating_sub(GRAM - 1);
        let rest = text.get(last..).unwrap_or_default();
        let mut padded = [b'\n'; 2 * GRAM];
        padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        for (at, gram) in grams(&padded).take(rest.len()) {
            let [one, two, ..] = gram;
            self.short.look(text, last + at, hash_pair([one, two]), &mut found);
        }
    }
}

/// Words by the hash of their gram.
#[derive(Debug)]
struct Table {
    /// One bit for each hash: whether a word is filed there.
    bits: Box<[u64; HASHES / PIECE]>,
    /// For each group of hashes, how many entries stand before its own.
    index: Vec<u32>,
    /// In order of their hashes.
    entries: Vec<Entry>,
}

/// A word as it is filed.
#[derive(Debug)]
struct Entry {
    hash: usize,
    /// Bytes of the word before its gram.
    before: usize,
    /// The word in lower case.
    letters: Box<[u8]>,
    /// Index of the word.
    word: usize,
}

impl Table {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.hash);
        let mut bits = Box::new([0; HASHES / PIECE]);
        for Entry { hash, .. } in &entries {
            if let Some(piece) = bits.get_mut(hash / PIECE) {
                *piece |= 1 << (hash % PIECE);
            }
        }
        let mut index = Vec::with_capacity(HASHES / SHARED + 1);
        let mut filed = 0_u32;
        let mut rest = entries.iter().peekable();
        for group in 0..=HASHES / SHARED {
            while rest.next_if(|entry| entry.hash / SHARED < group).is_some() {
                filed += 1;
            }
            index.push(filed);
        }
        Self { bits, index, entries }
    }

    /// Calls `found` with the words whose gram of that hash stands at `at`.
    #[inline]
    fn look(&self, text: &[u8], at: usize, hash: usize, found: &mut impl FnMut(Found)) {
        if let Some(piece) = self.bits.get(hash / PIECE)
            && piece >> (hash % PIECE) & 1 == 1
        {
            self.compare(text, at, hash, found);
        }
    }

    #[inline(never)]
    fn compare(&self, text: &[u8], at: usize, hash: usize, found: &mut impl FnMut(Found)) {
        let bound = |group: usize| self.index.get(group).map_or(0, |filed| *filed as usize);
        let group = hash / SHARED;
        let entries = self.entries.get(bound(group)..bound(group + 1)).unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.hash == hash) {
            let Some(start) = at.checked_sub(entry.before) else { continue };
            let end = start + entry.letters.len();
            if text.get(start..end).is_some_and(|there| there.eq_ignore_ascii_case(&entry.letters))
            {
                found(Found { start, end, word: entry.word });
            }
        }
    }
}

/// Every four neighbouring letters with their place.
fn grams(text: &[u8]) -> impl Iterator<Item = (usize, [u8; GRAM])> {
    text.windows(GRAM).filter_map(|window| window.first_chunk().copied()).enumerate()
}

/// The gram of a word that is met least in texts, and the bytes before it.
fn rarest(letters: &[u8]) -> Option<(usize, [u8; GRAM])> {
    let often = |letter: &u8| match letter {
        b' ' => 15,
        b'a' | b'e' | b'i' | b'n' | b'o' | b'r' | b's' | b't' => 8,
        b'a'..=b'z' => 4,
        _ => 2,
    };
    grams(letters).min_by_key(|(_, gram)| gram.iter().map(often).product::<u32>())
}

/// Makes letters that differ in case the same, and some others too: the words themselves are compared.
const FOLD: u32 = 0x2020_2020;
/// Spreads grams over the hashes: 2³² by the golden ratio, odd.
const SPREAD: u32 = 0x9e37_79b1;

#[inline]
fn hash(gram: [u8; GRAM]) -> usize {
    (((u32::from_le_bytes(gram) | FOLD).wrapping_mul(SPREAD)) >> 16) as usize
}

#[inline]
fn hash_pair([one, two]: [u8; PAIR]) -> usize {
    hash([one, two, 0, 0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is found by looking for each word at each place.
    fn one_by_one(words: &[String], text: &[u8]) -> Vec<Found> {
        let mut all = Vec::new();
        for (word, letters) in words.iter().enumerate() {
            for start in 0..text.len() {
                let end = start + letters.len();
                let there = text.get(start..end);
                if there.is_some_and(|there| there.eq_ignore_ascii_case(letters.as_bytes())) {
                    all.push(Found { start, end, word });
                }
            }
        }
        all.sort_unstable();
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_word_is_found_at_every_place(
            mut words in prop::collection::vec("[a-cA-C%_ \u{2501}]{1,7}", 0..40),
            text in "[a-cA-C%_ \u{2501}\n]{0,200}",
        ) {
            words.sort_unstable();
            words.dedup();
            let mut found = Words::new(&words).find(text.as_bytes());
            let line = |f: &Found| text.bytes().take(f.start).filter(|b| *b == b'\n').count();
            let lines: Vec<_> = found.iter().map(line).collect();
            prop_assert!(lines.is_sorted());
            found.sort_unstable();
            prop_assert_eq!(found, one_by_one(&words, text.as_bytes()));
        }
    }

    #[test]
    fn words_at_both_ends_and_in_one_endless_line() {
        let words: Vec<String> = ["killed", "%", "ab"].map(str::to_owned).into();
        let text = "Killed".to_owned() + &"y".repeat(5_000) + "KILLED%AB%";
        let found = Words::new(&words).find(text.as_bytes());
        let found: Vec<_> = found.iter().map(|f| (f.start, f.word)).collect();
        assert_eq!(found, [(0, 0), (5_006, 0), (5_012, 1), (5_013, 2), (5_015, 1)]);
    }
}
