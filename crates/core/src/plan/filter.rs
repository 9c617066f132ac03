//! The filter language of the jobs, of the targets and of the archive: `status:error tag:sweep tpu:v4 type:v3+ zone:eu
//! dir:net user:bob age>2h !text`.
//!
//! Terms stand side by side and all must hold; of `status:oom|grpc` one of the two, and `!` before a term turns it round. What
//! is half typed (`status:`) holds for every job, so that the list does not jump while somebody types.

use crate::model::facts::{ErrorKind, TargetState};
use crate::model::groups;
use crate::model::job::Job;
use crate::model::time::{self, Timestamp};
use crate::model::view::JobView;
use crate::plan::board::{Row, Standing};
use crate::plan::types::TypeExpr;

/// A filter as typed, and read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
    problem: Option<String>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    inverse: bool,
    /// One of them must hold; never empty.
    tests: Vec<Test>,
}

impl Term {
    fn holds(&self, one: impl FnMut(&Test) -> bool) -> bool {
        self.tests.iter().any(one) != self.inverse
    }
}

/// What a condition looks at. All text is in lower case.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    Text(String),
    Status(String),
    Tag(String),
    Target(String),
    /// As typed, and as `find` reads it.
    Type(String, Option<TypeExpr>),
    Zone(String),
    Dir(String),
    User(String),
    /// Age in seconds; `true` for older than, `false` for younger than.
    Age(bool, u64),
}

/// The keys that a filter knows, for the prompt.
pub const HINT: &str = "text  status:oom|grpc  tag:  tpu:  type:  zone:  dir:  user:  age>2h  !not";

impl Filter {
    /// Reads a filter. Never fails: what cannot be read is left out and named by [`Filter::problem`].
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.trim().to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            let (inverse, word) = word.strip_prefix('!').map_or((false, word), |rest| (true, rest));
            match read_alternatives(&word.to_lowercase()) {
                Ok(tests) if tests.is_empty() => {}
                Ok(tests) => filter.terms.push(Term { inverse, tests }),
                Err(problem) => filter.problem = Some(problem),
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
        self.text.is_empty()
    }

    /// What could not be understood, if anything.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether a job passes.
    pub fn matches(&self, job: &JobView) -> bool {
        self.terms.iter().all(|term| term.holds(|test| holds(test, job)))
    }

    /// Whether a record passes of which nothing but the record is left.
    pub fn matches_record(&self, of: &RecordFacts<'_>) -> bool {
        self.terms.iter().all(|term| term.holds(|test| holds_of_record(test, of)))
    }

    /// Whether a target passes.
    pub fn matches_target(&self, row: &Row, now: Timestamp) -> bool {
        self.terms.iter().all(|term| term.holds(|test| holds_of_target(test, row, now)))
    }
}

/// A record, and what is known of it beside that.
#[derive(Clone, Copy, Debug)]
pub struct RecordFacts<'a> {
    /// The record.
    pub job: &'a Job,
    /// The short name of its target.
    pub label: &'a str,
    /// The type and the zone of its target, as far as they are known.
    pub accelerator: Option<&'a str>,
    /// See there.
    pub zone: Option<&'a str>,
    /// Seconds since it began.
    pub age_s: Option<u64>,
}

/// Reads a term that may be one of several, as in `status:oom|grpc`: a key holds for all behind it that name none of their
/// own. Those that are not finished are left out.
fn read_alternatives(word: &str) -> Result<Vec<Test>, String> {
    let mut key = None;
    let mut tests = Vec::new();
    for one in word.split('|') {
        let own = one.split_once(':').map(|(own, _)| own);
        let is_age = ["age>", "age<"].iter().any(|age| one.starts_with(age));
        let typed = match (own, key) {
            (None, Some(key)) if !is_age => read_test(&format!("{key}:{one}"))?,
            _ => read_test(one)?,
        };
        // What stands before a colon and is no key is text, and of no concern to the others.
        key = own.filter(|_| !matches!(typed, Some(Test::Text(_)))).or(key);
        tests.extend(typed);
    }
    Ok(tests)
}

/// Reads one test; `None` for one that is not finished.
fn read_test(word: &str) -> Result<Option<Test>, String> {
    if let Some(rest) = word.strip_prefix("age") {
        for (sign, older) in [('>', true), ('<', false)] {
            let Some(span) = rest.strip_prefix(sign) else { continue };
            if span.is_empty() {
                return Ok(None);
            }
            return match time::parse_age(span) {
                Some(seconds) => Ok(Some(Test::Age(older, seconds))),
                None => Err(format!("'{span}' is no span: write 90s, 20m, 2h or 3d")),
            };
        }
    }
    let test: fn(String) -> Test = match word.split_once(':') {
        Some(("status", _)) => Test::Status,
        Some(("tag", _)) => Test::Tag,
        Some(("tpu" | "target", _)) => Test::Target,
        Some(("type", _)) => |text| Test::Type(text.clone(), TypeExpr::parse(&text)),
        Some(("zone", _)) => Test::Zone,
        Some(("dir", _)) => Test::Dir,
        Some(("user", _)) => Test::User,
        Some(_) | None => return Ok((!word.is_empty()).then(|| Test::Text(word.to_owned()))),
    };
    let value = word.split_once(':').map_or("", |(_, value)| value);
    Ok((!value.is_empty()).then(|| test(value.to_owned())))
}

fn has(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(part)
}

fn is_of_age(age_s: Option<u64>, older: bool, limit: u64) -> bool {
    age_s.is_some_and(|age| if older { age > limit } else { age < limit })
}

fn holds(test: &Test, job: &JobView) -> bool {
    let tag = job.tags.as_deref().unwrap_or_default();
    let name = job.name.as_deref().unwrap_or_default();
    let title = job.title.as_deref().unwrap_or_default();
    let target = |part: &str| has(&job.target_label, part) || has(job.target.as_str(), part);
    match test {
        Test::Status(part) => status_words(job).iter().any(|word| has(word, part)),
        Test::Tag(part) => has(tag, part),
        // The name of its target is all that a job has of its type.
        Test::Target(part) | Test::Type(part, _) => target(part),
        Test::Zone(part) => job.zone.as_deref().is_some_and(|zone| has(zone, part)),
        Test::Dir(part) => {
            has(&job.dir.1, part) || job.dir.0.is_some_and(|slot| slot.to_string() == *part)
        }
        Test::User(part) => has(job.id.user.as_str(), part),
        Test::Age(older, limit) => is_of_age(job.age_s, *older, *limit),
        Test::Text(part) => {
            job.id.window.to_string() == *part
                || job.label() == *part
                || target(part)
                || [&job.dir.1, tag, name, title, job.id.user.as_str(), &job.configs]
                    .into_iter()
                    .any(|text| has(text, part))
                || status_words(job).iter().any(|word| has(word, part))
        }
    }
}

/// The same of a record: it is as it was when it was cleaned away.
fn holds_of_record(test: &Test, of: &RecordFacts<'_>) -> bool {
    let job = of.job;
    let some = |text: Option<&str>, part: &str| text.is_some_and(|text| has(text, part));
    let tag = |part: &str| some(job.job_tags.as_deref(), part);
    let target = |part: &str| has(of.label, part) || has(job.tpu.as_str(), part);
    let user = |part: &str| has(job.user.as_str(), part);
    let status = |part: &str| {
        let words = [job.status.word(), job.status.error().map(ErrorKind::as_str)];
        words.into_iter().flatten().any(|word| has(word, part))
    };
    match test {
        Test::Status(part) => status(part),
        Test::Tag(part) => tag(part),
        Test::Target(part) => target(part),
        Test::Type(_, Some(wanted)) => wanted.includes(of.accelerator),
        Test::Type(part, None) => some(of.accelerator, part),
        Test::Zone(part) => some(of.zone, part),
        Test::Dir(part) => {
            has(&job.job_dir, part) || job.job_dir_id.is_some_and(|slot| slot.to_string() == *part)
        }
        Test::User(part) => user(part),
        Test::Age(older, limit) => is_of_age(of.age_s, *older, *limit),
        Test::Text(part) => {
            job.windows_id.to_string() == *part
                || target(part)
                || tag(part)
                || user(part)
                || status(part)
                || has(&job.job_dir, part)
                || has(&job.extra_configs, part)
                || some(job.name(), part)
                || some(job.verdict.as_ref().map(|verdict| verdict.line.as_str()), part)
        }
    }
}

/// The same of a target: its age is that of its state, a tag may as well stand in its notes, and of
/// directories it has none.
fn holds_of_target(test: &Test, row: &Row, now: Timestamp) -> bool {
    let any = |texts: &[String], part: &str| texts.iter().any(|text| has(text, part));
    let some = |text: Option<&str>, part: &str| text.is_some_and(|text| has(text, part));
    let tag = |part: &str| any(&row.tags, part) || has(&row.notes, part);
    let target = |part: &str| {
        has(&row.label, part) || has(row.target.as_str(), part) || any(&row.aliases, part)
    };
    let user = |part: &str| {
        some(row.user.as_deref(), part) || row.jobs.iter().any(|job| has(job.user.as_str(), part))
    };
    let status = |part: &str| target_words(row).iter().any(|word| has(word, part));
    match test {
        Test::Status(part) => status(part),
        Test::Tag(part) => tag(part),
        Test::Target(part) => target(part),
        Test::Type(_, Some(of)) => of.includes(row.accelerator.as_deref()),
        Test::Type(part, None) => some(row.accelerator.as_deref(), part),
        Test::Zone(part) => some(row.zone.as_deref(), part),
        Test::Dir(_) => false,
        Test::User(part) => user(part),
        Test::Age(older, limit) => {
            is_of_age(row.fact.since.map(|at| now.seconds_since(at)), *older, *limit)
        }
        Test::Text(part) => {
            target(part)
                || tag(part)
                || user(part)
                || status(part)
                || some(row.accelerator.as_deref(), part)
                || some(row.zone.as_deref(), part)
                || has(row.pricing.as_str(), part)
                || row.jobs.iter().any(|job| has(&job.to_string(), part))
        }
    }
}

/// The words that describe how a target is: `reserved`, `ready`, `unhealthy`.
fn target_words(row: &Row) -> Vec<&str> {
    if row.is_shared {
        return vec!["shared"];
    }
    let mut words = vec![row.standing.as_str()];
    // Where the control plane says no more than the board, `unknown` is not said twice.
    if !matches!(row.fact.state, TargetState::NotWatched | TargetState::Unknown) {
        words.push(&row.fact.raw_state);
    }
    if row.fact.is_flagged() {
        words.push("unhealthy");
    }
    if row.disagreement.is_some() && row.standing != Standing::Unknown {
        words.push("disagreement");
    }
    words
}

/// The words that describe how a job is: `error`, `oom`, `unknown`, `compiling`.
fn status_words(job: &JobView) -> Vec<&str> {
    // The same word that the list shows: what cannot be seen from here is not running.
    if job.shown.unknown.is_some() && job.shown.status.is_live() {
        return vec!["unknown"];
    }
    let mut words = vec![job.shown.word()];
    words.extend(job.shown.status.error().map(ErrorKind::as_str));
    // The phase of a job that has ended is how its pane looks, not how the job is.
    let phase = job.shown.phase.filter(|_| job.shown.status.is_live());
    words.extend(phase.map(crate::model::facts::Phase::as_str));
    words.extend(job.intent.as_deref());
    words.extend(job.needs_person.then_some(groups::NEEDS_YOU));
    words
}
