//! The rules as written in `patterns.toml`: reading, checking, laying a lab's file over the built-in one.
//!
//! A rule is data. What its fields mean is said at [`Rule`]; the same words head `assets/patterns.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use toml::Spanned;

use super::needles::{self, Needles};
use crate::model::facts::{Class, ErrorKind, Phase};

/// Where a rule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Any line, also one that stands alone.
    #[default]
    Line,
    /// Any line of a block; a line alone decides nothing.
    Block,
    /// Only the last lines of a block.
    Tail,
}

/// Text after a failure that belongs to nothing known: more of it than this, in bytes, and the failure
/// is an old one. What belongs to failures (indented frames, other workers) is not counted.
pub(super) const FADE: usize = 4_500;

/// How much a match proves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Says so only for a job that is known to have stopped: the text itself speaks of another try.
    Retry,
    /// Decides if nothing else does.
    Hint,
    /// Decides.
    #[default]
    Proof,
    /// Decides, and tells which of several processes failed first: outranks what the others say of having
    /// lost it.
    Summary,
    /// Decides its line whatever else matches there: known noise, or a sentence that names its cause.
    Overrules,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Name, unique, `family.what`.
    pub id: String,
    /// What a match means.
    pub class: Class,
    /// Regular expressions of which one must match a line. `^` is any place where content may begin:
    /// after worker tags, dates, log headers and unfinished progress bars.
    pub(super) patterns: Vec<Pattern>,
    /// Regular expressions that take a match back.
    pub(super) unless: Vec<Pattern>,
    /// Where it counts.
    pub scope: Scope,
    /// How much it proves.
    pub weight: Weight,
    /// Rules that must also match somewhere in the block.
    pub needs: Vec<String>,
    /// What the job is doing while this is its newest text.
    pub phase: Option<Phase>,
    /// Classes whose earlier failures this text shows to be overcome.
    pub clears: Vec<Class>,
    /// Bytes of other text after which such a failure is an old one. A shell goes on past what most of its
    /// tools complain of.
    pub fade: usize,
    /// Why the rule is as it is.
    pub note: String,
}

/// A regular expression that is compiled when a line first needs it.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    /// It begins with `^`.
    pub(super) anchored: bool,
    /// Words of which a match holds at least one.
    pub(super) needles: Needles,
    compiled: OnceLock<Regex>,
}

/// Bytes that one compiled expression may take: a pattern file is no place for a bomb.
const REGEX_BYTES: usize = 4 << 20;

impl Pattern {
    /// Reads and checks an expression.
    fn new(source: &str) -> Result<Self, String> {
        let needles = needles::read(source).map_err(|error| last_line(&error))?;
        Self::build(source)?;
        Ok(Self::with_needles(source.to_owned(), needles))
    }

    /// An expression that was checked before, and whose needles are known.
    pub(super) fn with_needles(source: String, needles: Needles) -> Self {
        let anchored = source.trim_start_matches("(?i)").starts_with('^');
        Self { source, anchored, needles, compiled: OnceLock::new() }
    }

    fn build(source: &str) -> Result<Regex, String> {
        RegexBuilder::new(source)
            .unicode(false)
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| last_line(&error))
    }

    /// The first match in `text`.
    pub(super) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        let regex = self
            .compiled
            .get_or_init(|| Self::build(&self.source).expect("checked when the file was read"));
        regex.find(text).map(|m| m.range())
    }
}

/// The sentence of a regex error; the lines above it repeat the pattern with a pointer.
fn last_line(error: &impl ToString) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// A mistake in a pattern file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PatternError {
    /// Name of the file, as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The rule it is about, if one could be told.
    pub rule: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(rule) = &self.rule {
            write!(f, "rule '{rule}': ")?;
        }
        f.write_str(&self.message)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    disable: Vec<Spanned<String>>,
    /// Lists that rules name in `unless_lists`.
    #[serde(default)]
    unless: BTreeMap<String, Spanned<OneOrMany>>,
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: Spanned<String>,
    class: Spanned<String>,
    regex: Spanned<OneOrMany>,
    unless: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    unless_lists: Vec<Spanned<String>>,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    weight: Weight,
    #[serde(default)]
    needs: Vec<Spanned<String>>,
    phase: Option<Phase>,
    #[serde(default)]
    clears: Vec<Spanned<String>>,
    fade: Option<usize>,
    #[serde(default)]
    note: String,
    /// Texts that it decides. Who tries them reads them in the file; the program needs none.
    #[serde(default, rename = "examples")]
    _examples: Vec<String>,
    /// Texts that it must not decide.
    #[serde(default, rename = "counterexamples")]
    _counterexamples: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// The rules of one or two files, in order.
#[derive(Debug, Default)]
pub(super) struct RuleFile {
    /// Rules by their order of appearance.
    pub(super) rules: Vec<Rule>,
}

impl RuleFile {
    /// Reads `text` and lays it over `base`: same ids replace, new ids are added, `disable` removes.
    ///
    /// All mistakes of the file are returned together; nothing of a broken file is used.
    pub(super) fn read(base: Self, text: &str, file: &str) -> Result<Self, Vec<PatternError>> {
        let mut reader = Reader { text, file, errors: Vec::new() };
        let raw: RawFile = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                let rule = reader.rule_at(at.start);
                reader.fail(&at, rule, error.message().to_owned());
                return Err(reader.errors);
            }
        };
        let mut rules = base.rules;
        let own = reader.rules(raw.rule, &raw.unless);
        for id in &raw.disable {
            let before = rules.len();
            rules.retain(|rule| rule.id != today(id.get_ref()));
            if rules.len() == before {
                let message = "no built-in rule has this id, so it cannot be disabled".to_owned();
                reader.fail(&id.span(), Some(id.get_ref().clone()), message);
            }
        }
        let mut spans = BTreeMap::new();
        for (rule, needs) in own {
            spans.insert(rule.id.clone(), needs);
            match rules.iter_mut().find(|old| old.id == today(&rule.id)) {
                Some(old) => *old = rule,
                None => rules.push(rule),
            }
        }
        reader.check_needs(&rules, &spans);
        if reader.errors.is_empty() { Ok(Self { rules }) } else { Err(reader.errors) }
    }
}

/// Ids of built-in rules of earlier versions, and those of today: files of labs may name them.
const RENAMED: [(&str, &str); 1] = [("grpc.collective", "network.collective")];

/// The id of today of a rule.
fn today(id: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == id).map_or(id, |(_, new)| new)
}

/// Turns what the file says into rules, collecting mistakes.
struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    errors: Vec<PatternError>,
}

impl Reader<'_> {
    fn fail(&mut self, at: &Range<usize>, rule: Option<String>, message: String) {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let file = self.file.to_owned();
        self.errors.push(PatternError { file, line, rule, message });
    }

    /// The id of the rule in whose table the byte `at` lies, where the file could not be read.
    fn rule_at(&self, at: usize) -> Option<String> {
        let before = self.text.get(..at)?;
        let table = before.rfind("[[rule]]").and_then(|start| self.text.get(start + 8..))?;
        let table = table.split("[[rule]]").next()?;
        let id = table.lines().find_map(|line| line.trim().strip_prefix("id"))?;
        let id = id.trim_start().strip_prefix('=')?.trim();
        Some(id.trim_matches(['"', '\'']).to_owned())
    }

    fn rules(
        &mut self,
        raw: Vec<RawRule>,
        lists: &BTreeMap<String, Spanned<OneOrMany>>,
    ) -> Vec<(Rule, Vec<Spanned<String>>)> {
        let mut rules: Vec<(Rule, Vec<Spanned<String>>)> = Vec::new();
        for raw in raw {
            let id = raw.id.get_ref().clone();
            if rules.iter().any(|(rule, _)| rule.id == id) {
                self.fail(&raw.id.span(), Some(id), "this id is used twice in the file".to_owned());
                continue;
            }
            let class = self.class(&raw.class, &id);
            let patterns = self.patterns(Some(&raw.regex), &id);
            if raw.regex.get_ref().all().is_empty() {
                self.fail(&raw.regex.span(), Some(id.clone()), "'regex' is empty".to_owned());
            }
            let mut unless = self.patterns(raw.unless.as_ref(), &id);
            for name in &raw.unless_lists {
                unless.extend(self.shared(name, lists, &id));
            }
            let clears = raw.clears.iter().map(|class| self.class(class, &id)).collect();
            let rule = Rule {
                id,
                class,
                patterns,
                unless,
                scope: raw.scope,
                weight: raw.weight,
                needs: raw.needs.iter().map(|need| need.get_ref().clone()).collect(),
                phase: raw.phase,
                clears,
                fade: raw.fade.unwrap_or(FADE),
                note: raw.note,
            };
            rules.push((rule, raw.needs));
        }
        rules
    }

    fn class(&mut self, class: &Spanned<String>, id: &str) -> Class {
        Class::parse(class.get_ref()).unwrap_or_else(|| {
            let kinds = ErrorKind::ALL.map(ErrorKind::as_str).join(", ");
            let message = format!(
                "unknown class '{}'; known: running, finished, {kinds}, none",
                class.get_ref()
            );
            self.fail(&class.span(), Some(id.to_owned()), message);
            Class::None
        })
    }

    /// The expressions of a list that a rule names.
    fn shared(
        &mut self,
        name: &Spanned<String>,
        lists: &BTreeMap<String, Spanned<OneOrMany>>,
        id: &str,
    ) -> Vec<Pattern> {
        let list = lists.get(name.get_ref());
        if list.is_none() {
            let message =
                format!("no list '{}' stands under [unless] in this file", name.get_ref());
            self.fail(&name.span(), Some(id.to_owned()), message);
        }
        self.patterns(list, id)
    }

    fn patterns(&mut self, sources: Option<&Spanned<OneOrMany>>, id: &str) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        let Some(sources) = sources else { return patterns };
        for source in sources.get_ref().all() {
            match Pattern::new(source) {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => {
                    let message = format!("bad regex '{source}': {why}");
                    self.fail(&sources.span(), Some(id.to_owned()), message);
                }
            }
        }
        patterns
    }

    /// Every need names a rule, and following needs never comes back.
    fn check_needs(&mut self, rules: &[Rule], own: &BTreeMap<String, Vec<Spanned<String>>>) {
        let known: BTreeMap<&str, &Rule> = rules.iter().map(|r| (r.id.as_str(), r)).collect();
        for (id, needs) in own {
            for need in needs {
                if !known.contains_key(need.get_ref().as_str()) {
                    let message = format!("needs '{}', which is no rule", need.get_ref());
                    self.fail(&need.span(), Some(id.clone()), message);
                } else if reaches(&known, need.get_ref(), id) {
                    let message = format!("needs '{}', which needs it in turn", need.get_ref());
                    self.fail(&need.span(), Some(id.clone()), message);
                }
            }
        }
    }
}

/// Whether following the needs of `from` leads to `to`.
fn reaches(rules: &BTreeMap<&str, &Rule>, from: &str, to: &str) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if id == to {
            return true;
        }
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        if let Some((id, rule)) = rules.get_key_value(id) {
            seen.push(id);
            open.extend(rule.needs.iter().map(String::as_str));
        }
    }
    false
}
