//! Finds which rules match which lines: one pass of an automaton over the words that rules require,
//! and a regular expression only on a line that holds such a word.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::frames::Frames;
use super::rules::{Pattern, Rule, RuleFile, Scope, Weight};
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
}

/// Which lines are worth trying with which rules.
#[derive(Debug)]
struct Sieve {
    automaton: Option<AhoCorasick>,
    /// For each word of the automaton, the rules that look for it.
    owners: Vec<Vec<Owner>>,
    /// Rules without a needle: tried on every line.
    always: Vec<usize>,
}

/// A rule that looks for a word.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    rule: usize,
    /// The word as it must be written, where case matters.
    exact: Option<String>,
}

impl Sieve {
    fn new(rules: &[Rule], kind: AhoCorasickKind, wanted: impl Fn(&Rule) -> bool) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut owners: Vec<Vec<Owner>> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut always = Vec::new();
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| wanted(rule)) {
            if rule.patterns.iter().any(|pattern| pattern.needles.is_empty()) {
                always.push(index);
                continue;
            }
            for needle in rule.patterns.iter().flat_map(|pattern| &pattern.needles) {
                let word = needle.word.to_ascii_lowercase();
                let at = *known.entry(word.clone()).or_insert(words.len());
                if at == words.len() {
                    words.push(word);
                    owners.push(Vec::new());
                }
                let owner = Owner { rule: index, exact: needle.exact.then(|| needle.word.clone()) };
                if let Some(owners) = owners.get_mut(at)
                    && !owners.contains(&owner)
                {
                    owners.push(owner);
                }
            }
        }
        // If it cannot be built (too large), every rule is tried on every line: slow, never wrong.
        let automaton =
            AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(kind)).build(&words).ok();
        if automaton.is_none() {
            always = (0..rules.len()).filter(|i| rules.get(*i).is_some_and(&wanted)).collect();
        }
        Self { automaton, owners, always }
    }

    /// Calls `found` with each line and rule that are worth a try. Rules that are always tried come
    /// first, for all lines; otherwise lines rise.
    fn candidates(
        &self,
        frames: &Frames<'_>,
        range: Range<usize>,
        mut found: impl FnMut(usize, usize),
    ) {
        let lines = frames.spans().get(range.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        for line in range.clone() {
            self.always.iter().for_each(|rule| found(line, *rule));
        }
        let Some(automaton) = &self.automaton else { return };
        let text = frames.buffer().get(first.at.start..last.at.end).unwrap_or_default();
        let mut line = 0;
        let mut tried: Vec<usize> = Vec::new();
        for needle in automaton.find_overlapping_iter(text) {
            let at = first.at.start + needle.end() - 1;
            if lines.get(line).is_some_and(|span| span.at.end <= at) {
                line += lines.get(line..).unwrap_or_default().partition_point(|s| s.at.end <= at);
                tried.clear();
            }
            let word = text.get(needle.range()).unwrap_or_default();
            for owner in self.owners.get(needle.pattern().as_usize()).into_iter().flatten() {
                let spelt = owner.exact.as_ref().is_none_or(|exact| exact.as_bytes() == word);
                if spelt && !tried.contains(&owner.rule) {
                    tried.push(owner.rule);
                    found(range.start + line, owner.rule);
                }
            }
        }
    }
}

impl RuleSet {
    /// Prepares the rules of a file.
    pub(super) fn new(file: RuleFile) -> Self {
        let rules = file.rules;
        let lives = |rule: &Rule| rule.class == Class::Running;
        let excuses = |rule: &Rule| rule.weight == Weight::Overrules || !rule.clears.is_empty();
        let deciding =
            Sieve::new(&rules, AhoCorasickKind::DFA, |rule| !lives(rule) || excuses(rule));
        // It reads a few lines only, so being quick to build counts for more than being quick.
        let living = Sieve::new(&rules, AhoCorasickKind::ContiguousNFA, lives);
        Self { rules, deciding, living }
    }

    /// Ids of rules that cost an expression on every line, for want of a word to look for.
    #[cfg(test)]
    fn unsieved(&self) -> Vec<&str> {
        // Living rules are tried on the last lines only.
        let indexes = self.deciding.always.iter();
        indexes.filter_map(|index| self.rules.get(*index)).map(|rule| rule.id.as_str()).collect()
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
        let mut hits = self.hits(&self.deciding, frames, 0..frames.len(), alone);
        self.drop_unmet(&mut hits, frames, alone);
        self.best_per_line(hits)
    }

    /// The living rule that describes a line best.
    pub(super) fn living(&self, frames: &Frames<'_>, line: usize, alone: bool) -> Option<Hit> {
        let mut hits = self.hits(&self.living, frames, line..line + 1, alone);
        self.drop_unmet(&mut hits, frames, alone);
        // A rule that knows the phase says more than one that does not.
        hits.into_iter().max_by_key(|hit| {
            let rule = self.rule(hit);
            (rule.is_some_and(|r| r.phase.is_some()), std::cmp::Reverse(hit.rule))
        })
    }

    fn hits(
        &self,
        sieve: &Sieve,
        frames: &Frames<'_>,
        range: Range<usize>,
        alone: bool,
    ) -> Vec<Hit> {
        let mut hits = Vec::new();
        sieve.candidates(frames, range, |line, index| {
            let Some(rule) = self.rules.get(index) else { return };
            let counts = match rule.scope {
                Scope::Line => true,
                Scope::Block => !alone,
                Scope::Tail => !alone && line + TAIL >= frames.len(),
            };
            if !counts {
                return;
            }
            if let Some(at) = matches(rule, frames, line) {
                hits.push(Hit { line, rule: index, at });
            }
        });
        // Rules without a needle come first, for all lines.
        hits.sort_by_key(|hit| hit.line);
        hits
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

    /// Of several rules that match one line, the one that says most about it.
    fn best_per_line(&self, hits: Vec<Hit>) -> Vec<Hit> {
        let mut best: Vec<Hit> = Vec::new();
        for hit in hits {
            match best.last_mut() {
                Some(old) if old.line == hit.line => {
                    if self.rank(&hit) > self.rank(old) {
                        *old = hit;
                    }
                }
                _ => best.push(hit),
            }
        }
        best
    }

    /// Higher wins its line.
    fn rank(&self, hit: &Hit) -> (Weight, u8, std::cmp::Reverse<usize>) {
        let (weight, class) =
            self.rule(hit).map_or((Weight::Retry, 0), |rule| (rule.weight, rank(rule.class)));
        (weight, class, std::cmp::Reverse(hit.rule))
    }
}

/// Which class wins a line that several describe: the narrower cause before the wider.
fn rank(class: Class) -> u8 {
    let Class::Failed(kind) = class else { return u8::from(class == Class::Finished) };
    match kind {
        ErrorKind::Preempted => 12,
        ErrorKind::Oom => 11,
        ErrorKind::Locked => 10,
        ErrorKind::NoCapacity => 9,
        ErrorKind::FileError => 8,
        ErrorKind::Grpc => 7,
        ErrorKind::SshLost => 6,
        ErrorKind::KilledBySignal => 5,
        ErrorKind::PythonError => 4,
        ErrorKind::Launch | ErrorKind::Lost | ErrorKind::Unknown => 3,
    }
}

/// Where `rule` matches the line of that index.
fn matches(rule: &Rule, frames: &Frames<'_>, index: usize) -> Option<Range<usize>> {
    let line = frames.line(index);
    let find = |pattern: &Pattern| {
        if !pattern.anchored {
            return pattern.find(line);
        }
        frames.prefix(index).starts().find_map(|start| {
            let at = pattern.find(line.get(start..)?)?;
            Some(start + at.start..start + at.end)
        })
    };
    let at = rule.patterns.iter().find_map(find)?;
    if rule.unless.iter().any(|pattern| find(pattern).is_some()) { None } else { Some(at) }
}

#[cfg(test)]
mod tests {
    use super::super::Classifier;

    #[test]
    fn every_built_in_rule_is_sieved() {
        assert_eq!(Classifier::builtin().set.unsieved(), Vec::<&str>::new());
    }
}
