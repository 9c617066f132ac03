//! Finds which rules match which lines: one search for all the words that rules require, and a regular
//! expression only on a line that holds such a word.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::frames::Frames;
use super::rules::{Pattern, Rule, RuleFile, Scope, Weight};
use super::words::Words;
use crate::model::facts::{Class, ErrorKind};

/// Lines at the end of a block that count as its tail.
const TAIL: usize = 20;

/// A rule that matches a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Index of the logical line.
    pub(super) line: usize,
    /// Index of the rule.
    pub(super) rule: usize,
    /// Which of the rule's expressions matched.
    pattern: usize,
    /// The matched part of the line.
    pub(super) at: Range<usize>,
}

/// All rules, ready to be used.
#[derive(Debug)]
pub(super) struct RuleSet {
    rules: Vec<Rule>,
    /// Rules that end or excuse something: looked for in the whole text.
    deciding: Sieve,
    /// Rules that only say that a job lives: looked for at the end of a text.
    living: Sieve,
    /// For each rule, whether another one needs it.
    needed: Vec<bool>,
}

/// Which lines are worth trying with which expressions.
#[derive(Debug)]
struct Sieve {
    words: Words,
    /// All expressions that this sieve is for.
    tries: Vec<Try>,
    /// For each word, the expressions that look for it.
    owners: Vec<Vec<Owner>>,
    /// Expressions without a needle: tried on every line. Indexes of `tries`.
    always: Vec<usize>,
}

/// One expression of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Try {
    rule: usize,
    pattern: usize,
}

/// An expression that looks for a word.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    /// Index of `Sieve::tries`.
    attempt: usize,
    /// The word as it must be written, where case matters.
    exact: Option<String>,
    /// The word must stand where content begins.
    leading: bool,
}

impl Sieve {
    fn new(rules: &[Rule], wanted: impl Fn(&Rule) -> bool) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut owners: Vec<Vec<Owner>> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut tries = Vec::new();
        let mut always = Vec::new();
        let all = rules.iter().enumerate().filter(|(_, rule)| wanted(rule));
        let all = all.flat_map(|(index, rule)| {
            let patterns = rule.patterns.iter().enumerate();
            patterns.map(move |(at, pattern)| (Try { rule: index, pattern: at }, pattern))
        });
        for (attempt, pattern) in all {
            let attempt_index = tries.len();
            tries.push(attempt);
            if pattern.needles.words.is_empty() {
                always.push(attempt_index);
            }
            for needle in &pattern.needles.words {
                let word = needle.word.to_ascii_lowercase();
                let at = *known.entry(word.clone()).or_insert(words.len());
                if at == words.len() {
                    words.push(word);
                    owners.push(Vec::new());
                }
                let exact = needle.exact.then(|| needle.word.clone());
                let leading = pattern.needles.leading;
                let owner = Owner { attempt: attempt_index, exact, leading };
                if let Some(owners) = owners.get_mut(at)
                    && !owners.contains(&owner)
                {
                    owners.push(owner);
                }
            }
        }
        Self { words: Words::new(&words), tries, owners, always }
    }

    /// Calls `found` with each line and expression that are worth a try. Expressions that are always
    /// tried come first, for all lines; otherwise lines rise.
    fn candidates(
        &self,
        frames: &Frames<'_>,
        range: Range<usize>,
        mut found: impl FnMut(usize, Try),
    ) {
        let lines = frames.spans().get(range.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        let mut call = |line: usize, attempt: usize| {
            if let Some(attempt) = self.tries.get(attempt) {
                found(range.start + line, *attempt);
            }
        };
        for line in 0..lines.len() {
            self.always.iter().for_each(|attempt| call(line, *attempt));
        }
        let text = frames.buffer().get(first.at.start..last.at.end).unwrap_or_default();
        let mut line = 0;
        let mut tried: Vec<usize> = Vec::new();
        for found in self.words.find(text) {
            let end = first.at.start + found.end;
            if lines.get(line).is_some_and(|span| span.at.end < end) {
                line += lines.get(line..).unwrap_or_default().partition_point(|s| s.at.end < end);
                tried.clear();
            }
            let start = first.at.start + found.start;
            let word = frames.buffer().get(start..end).unwrap_or_default();
            for owner in self.owners.get(found.word).into_iter().flatten() {
                let spelt = owner.exact.as_ref().is_none_or(|exact| exact.as_bytes() == word);
                if !spelt || tried.contains(&owner.attempt) {
                    continue;
                }
                if owner.leading && !begins(frames, range.start + line, start) {
                    continue;
                }
                tried.push(owner.attempt);
                call(line, owner.attempt);
            }
        }
    }
}

/// Lines to be read.
#[derive(Clone, Copy)]
struct Lines<'a> {
    frames: &'a Frames<'a>,
    from: usize,
    to: usize,
    /// They are no block: each stands for itself.
    alone: bool,
}

impl<'a> Lines<'a> {
    fn all(frames: &'a Frames<'a>, alone: bool) -> Self {
        Self { frames, from: 0, to: frames.len(), alone }
    }
}

/// Whether content may begin at `at`, a place of the buffer that lies in the line of that index.
fn begins(frames: &Frames<'_>, line: usize, at: usize) -> bool {
    let from = frames.spans().get(line).map_or(0, |span| span.at.start);
    let Some(at) = at.checked_sub(from) else { return false };
    // What stands before content ends in a blank or in punctuation: most words are spared the rest.
    let before = at.checked_sub(1).and_then(|before| frames.line(line).get(before));
    before.is_none_or(|b| !b.is_ascii_alphanumeric())
        && frames.prefix(line).starts().any(|start| start == at)
}

impl RuleSet {
    /// Prepares the rules of a file.
    pub(super) fn new(file: RuleFile) -> Self {
        let rules = file.rules;
        let lives = |rule: &Rule| rule.class == Class::Running;
        let excuses = |rule: &Rule| rule.weight == Weight::Overrules || !rule.clears.is_empty();
        let deciding = Sieve::new(&rules, |rule| !lives(rule) || excuses(rule));
        let living = Sieve::new(&rules, lives);
        let needs: Vec<&String> = rules.iter().flat_map(|rule| &rule.needs).collect();
        let needed = rules.iter().map(|rule| needs.contains(&&rule.id)).collect();
        Self { rules, deciding, living, needed }
    }

    /// Ids of rules that cost an expression on every line, for want of a word to look for.
    #[cfg(test)]
    fn unsieved(&self) -> Vec<&str> {
        // Living rules are tried on the last lines only.
        let tries = self.deciding.always.iter().filter_map(|index| self.deciding.tries.get(*index));
        tries.filter_map(|a| self.rules.get(a.rule)).map(|rule| rule.id.as_str()).collect()
    }

    /// All rules, in the order of their files.
    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule of a hit.
    pub(super) fn rule(&self, hit: &Hit) -> Option<&Rule> {
        self.rules.get(hit.rule)
    }

    /// For each line that any deciding rule matches, the hit that decides it. `alone` is for lines
    /// that are no block.
    pub(super) fn deciding(&self, frames: &Frames<'_>, alone: bool) -> Vec<Hit> {
        self.best(&self.deciding, Lines::all(frames, alone), deciding_rank)
    }

    /// The living rule that describes a line of a block best.
    pub(super) fn living(&self, frames: &Frames<'_>, line: usize) -> Option<Hit> {
        let line = Lines { frames, from: line, to: line + 1, alone: false };
        self.best(&self.living, line, living_rank).pop()
    }

    /// For each line that any living rule describes, the one that does it best: lines that are no block.
    pub(super) fn living_alone(&self, frames: &Frames<'_>) -> Vec<Hit> {
        self.best(&self.living, Lines::all(frames, true), living_rank)
    }

    /// The hit of the highest rank for each line that has one.
    fn best(
        &self,
        sieve: &Sieve,
        lines: Lines<'_>,
        rank: impl Fn(&Rule) -> (Weight, u8),
    ) -> Vec<Hit> {
        // Between equals the order of the file decides.
        let rank = |index: usize| Some((rank(self.rules.get(index)?), Reverse(index)));
        let Lines { frames, alone, .. } = lines;
        let mut hits = self.hits(sieve, lines, rank);
        self.drop_unmet(&mut hits, frames, alone);
        let mut best: Vec<Hit> = Vec::new();
        for hit in hits {
            match best.last_mut() {
                Some(old) if old.line != hit.line => best.push(hit),
                Some(old) if rank(hit.rule) > rank(old.rule) => *old = hit,
                Some(_) => {}
                None => best.push(hit),
            }
        }
        best
    }

    /// All hits that may be the best of their lines, in order of lines.
    fn hits<R: Ord>(
        &self,
        sieve: &Sieve,
        Lines { frames, from, to, alone }: Lines<'_>,
        rank: impl Fn(usize) -> R,
    ) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        // The line at hand and the best rule that surely counts there.
        let mut won: Option<(usize, usize)> = None;
        sieve.candidates(frames, from..to, |line, Try { rule: index, pattern }| {
            let Some(rule) = self.rules.get(index) else { return };
            let best = won.filter(|(at, _)| *at == line).map(|(_, best)| best);
            // What cannot win its line and is needed by no other rule is not worth a look.
            if best.is_some_and(|best| rank(index) < rank(best)) && !self.is_needed(index) {
                return;
            }
            let counts = match rule.scope {
                Scope::Line => true,
                Scope::Block => !alone,
                Scope::Tail => !alone && line + TAIL >= frames.len(),
            };
            if !counts {
                return;
            }
            let Some(at) = rule.patterns.get(pattern).and_then(|p| find(p, frames, line)) else {
                return;
            };
            if taken_back(rule, frames, line) {
                return;
            }
            if rule.needs.is_empty() && best.is_none_or(|best| rank(index) > rank(best)) {
                won = Some((line, index));
            }
            hits.push(Hit { line, rule: index, pattern, at });
        });
        // Expressions without a needle come first, for all lines; the others as their words end.
        hits.sort_unstable_by_key(|hit| (hit.line, hit.rule, hit.pattern));
        hits.dedup_by_key(|hit| (hit.line, hit.rule));
        hits
    }

    fn is_needed(&self, rule: usize) -> bool {
        self.needed.get(rule) == Some(&true)
    }

    /// Takes out the hits of rules that need another rule which does not match anywhere.
    fn drop_unmet(&self, hits: &mut Vec<Hit>, frames: &Frames<'_>, alone: bool) {
        let has_needs = |hit: &Hit| self.rule(hit).is_some_and(|rule| !rule.needs.is_empty());
        if !hits.iter().any(has_needs) {
            return;
        }
        let met = |id: &str, hits: &[Hit]| {
            let index = self.rules.iter().position(|rule| rule.id == id);
            index.is_some_and(|index| {
                hits.iter().any(|hit| hit.rule == index) || self.occurs(index, frames)
            })
        };
        if alone {
            hits.retain(|hit| !has_needs(hit));
            return;
        }
        // Needs have no cycles, so this ends: each turn drops something or is the last.
        loop {
            let unmet: Vec<usize> = hits
                .iter()
                .filter(|hit| {
                    let needs = self.rule(hit).map_or(&[][..], |rule| &rule.needs);
                    needs.iter().any(|id| !met(id, hits))
                })
                .map(|hit| hit.rule)
                .collect();
            if unmet.is_empty() {
                return;
            }
            hits.retain(|hit| !unmet.contains(&hit.rule));
        }
    }

    /// Whether a living rule matches any line; deciding rules are found among the hits.
    fn occurs(&self, index: usize, frames: &Frames<'_>) -> bool {
        let Some(rule) = self.rules.get(index).filter(|rule| rule.class == Class::Running) else {
            return false;
        };
        (0..frames.len()).any(|line| matches(rule, frames, line).is_some())
    }
}

/// Of several deciding rules that match one line, the highest says most about it.
fn deciding_rank(rule: &Rule) -> (Weight, u8) {
    (rule.weight, class_rank(rule.class))
}

/// Of several living rules, one that knows the phase says more than one that does not.
fn living_rank(rule: &Rule) -> (Weight, u8) {
    (Weight::Proof, u8::from(rule.phase.is_some()))
}

/// Which class wins a line that several describe: the narrower cause before the wider.
fn class_rank(class: Class) -> u8 {
    let Class::Failed(kind) = class else { return u8::from(class == Class::Finished) };
    match kind {
        ErrorKind::Preempted => 14,
        ErrorKind::Oom => 13,
        ErrorKind::Locked => 12,
        ErrorKind::NoCapacity => 11,
        ErrorKind::CommandNotFound => 10,
        ErrorKind::FileError => 9,
        ErrorKind::Network => 8,
        ErrorKind::Grpc => 7,
        ErrorKind::SshLost => 6,
        ErrorKind::KilledBySignal => 5,
        ErrorKind::PythonError => 4,
        // Facts say these, and a lab's own patterns.
        ErrorKind::Launch
        | ErrorKind::Lost
        | ErrorKind::Timeout
        | ErrorKind::Stalled
        | ErrorKind::Setup
        | ErrorKind::Dependency
        | ErrorKind::Unknown => 3,
    }
}

/// Where `rule` matches the line of that index.
fn matches(rule: &Rule, frames: &Frames<'_>, index: usize) -> Option<Range<usize>> {
    let at = rule.patterns.iter().find_map(|pattern| find(pattern, frames, index))?;
    if taken_back(rule, frames, index) { None } else { Some(at) }
}

/// Whether the rule's `unless` takes its match on a line back.
fn taken_back(rule: &Rule, frames: &Frames<'_>, index: usize) -> bool {
    rule.unless.iter().any(|pattern| find(pattern, frames, index).is_some())
}

/// Where `pattern` matches the line of that index.
fn find(pattern: &Pattern, frames: &Frames<'_>, index: usize) -> Option<Range<usize>> {
    let line = frames.line(index);
    if !pattern.anchored {
        return pattern.find(line);
    }
    frames.prefix(index).starts().find_map(|start| {
        let at = pattern.find(line.get(start..)?)?;
        Some(start + at.start..start + at.end)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Classifier;

    #[test]
    fn every_built_in_rule_is_sieved() {
        assert_eq!(Classifier::builtin().set.unsieved(), Vec::<&str>::new());
    }
}
