//! The rules of every installation, as `build.rs` took them from `assets/patterns.toml`.
//!
//! Nothing is derived or checked here: a command that reads one pane spends its time on the pane.

use serde::Deserialize;

use super::needles::{Needle, Needles};
use super::rules::{FADE, Pattern, Rule, RuleFile, Scope, Weight};
use crate::model::facts::{Class, Phase};

/// What `build.rs` wrote: all rules, in the order of their file.
const WRITTEN: &str = include_str!(concat!(env!("OUT_DIR"), "/patterns.json"));

/// A rule as it is written; [`Rule`] says what the fields mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    class: String,
    regex: Vec<Expression>,
    #[serde(default)]
    unless: Vec<Expression>,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    weight: Weight,
    #[serde(default)]
    needs: Vec<String>,
    phase: Option<Phase>,
    #[serde(default)]
    clears: Vec<String>,
    fade: Option<usize>,
    note: String,
}

/// A regular expression, whether its needles begin its matches, and the needles: a word and whether its
/// case matters.
type Expression = (String, bool, Vec<(String, bool)>);

/// The built-in rules.
pub(super) fn rules() -> RuleFile {
    let written: Vec<Written> =
        serde_json::from_str(WRITTEN).expect("the test below reads the same text");
    RuleFile { rules: written.into_iter().map(rule).collect() }
}

fn rule(written: Written) -> Rule {
    let class = |word: &str| Class::parse(word).expect("the test below reads the same text");
    Rule {
        class: class(&written.class),
        id: written.id,
        patterns: written.regex.into_iter().map(pattern).collect(),
        unless: written.unless.into_iter().map(pattern).collect(),
        scope: written.scope,
        weight: written.weight,
        needs: written.needs,
        phase: written.phase,
        clears: written.clears.iter().map(|word| class(word)).collect(),
        fade: written.fade.unwrap_or(FADE),
        note: written.note,
    }
}

fn pattern((source, leading, words): Expression) -> Pattern {
    let words = words.into_iter().map(|(word, exact)| Needle { word, exact }).collect();
    Pattern::with_needles(source, Needles { words, leading })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the build took down is what reading the file as a lab's own gives, with every check.
    #[test]
    fn the_built_in_rules_are_those_of_the_file() {
        let text = include_str!("../../../../assets/patterns.toml");
        let read = RuleFile::read(RuleFile::default(), text, "patterns.toml").expect("no mistakes");
        let built = rules();
        assert_eq!(built.rules.len(), read.rules.len());
        for (built, read) in built.rules.iter().zip(&read.rules) {
            assert_eq!(format!("{built:?}"), format!("{read:?}"));
        }
    }
}
