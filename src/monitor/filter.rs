//! The filter language of the list: `status:error tag:sweep tpu:v4 dir:net user:bob age>2h !text`.
//!
//! Terms stand side by side and all must hold; `!` before a term turns it round. What is half typed
//! (`status:`) holds for every job, so that the list does not jump while somebody types.

use crate::model::time;
use crate::model::view::JobView;

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
    test: Test,
}

/// What a condition looks at. All text is in lower case.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    Text(String),
    Status(String),
    Tag(String),
    Target(String),
    Dir(String),
    User(String),
    /// Age in seconds; `true` for older than, `false` for younger than.
    Age(bool, u64),
}

/// The keys that a filter knows, for the prompt.
pub const HINT: &str = "text  status:error  tag:  tpu:  dir:  user:  age>2h  !not";

impl Filter {
    /// Reads a filter. Never fails: what cannot be read is left out and named by [`Filter::problem`].
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.trim().to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            let (inverse, word) = word.strip_prefix('!').map_or((false, word), |rest| (true, rest));
            match read_test(&word.to_lowercase()) {
                Ok(Some(wanted)) => filter.terms.push(Term { inverse, test: wanted }),
                Ok(None) => {}
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
        self.terms.iter().all(|term| holds(&term.test, job) != term.inverse)
    }
}

/// Reads one term; `None` for one that is not finished.
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
        Some(("dir", _)) => Test::Dir,
        Some(("user", _)) => Test::User,
        Some(_) | None => return Ok((!word.is_empty()).then(|| Test::Text(word.to_owned()))),
    };
    let value = word.split_once(':').map_or("", |(_, value)| value);
    Ok((!value.is_empty()).then(|| test(value.to_owned())))
}

fn holds(test: &Test, job: &JobView) -> bool {
    let has = |text: &str, part: &str| text.to_lowercase().contains(part);
    let tag = job.tags.as_deref().unwrap_or_default();
    let target = |part: &str| has(&job.target_label, part) || has(job.target.as_str(), part);
    match test {
        Test::Status(part) => status_words(job).iter().any(|word| has(word, part)),
        Test::Tag(part) => has(tag, part),
        Test::Target(part) => target(part),
        Test::Dir(part) => {
            has(&job.dir.1, part) || job.dir.0.is_some_and(|slot| slot.to_string() == *part)
        }
        Test::User(part) => has(job.id.user.as_str(), part),
        Test::Age(older, limit) => {
            job.age_s.is_some_and(|age| if *older { age > *limit } else { age < *limit })
        }
        Test::Text(part) => {
            job.id.window.to_string() == *part
                || target(part)
                || [&job.dir.1, tag, job.id.user.as_str(), &job.configs]
                    .into_iter()
                    .any(|text| has(text, part))
                || status_words(job).iter().any(|word| has(word, part))
        }
    }
}

/// The words that describe how a job is: `error`, `oom`, `unknown`, `compiling`.
fn status_words(job: &JobView) -> Vec<&str> {
    // The same word that the list shows: what cannot be seen from here is not running.
    if job.shown.unknown.is_some() && job.shown.status.is_live() {
        return vec!["unknown"];
    }
    let mut words = vec![job.shown.status.word().unwrap_or("starting")];
    words.extend(job.shown.status.error().map(crate::model::facts::ErrorKind::as_str));
    // The phase of a job that has ended is how its pane looks, not how the job is.
    let phase = job.shown.phase.filter(|_| job.shown.status.is_live());
    words.extend(phase.map(crate::model::facts::Phase::as_str));
    words.extend(job.intent.as_deref());
    words
}
