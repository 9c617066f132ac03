//! What people are told: one thing that has happened, in words that no screen, mail or chat can take for anything else.

use serde::{Deserialize, Serialize};

use super::ids::{JobNumber, UserName};
use super::notify::Occasion;
use super::time::Timestamp;
use crate::text;

/// Characters of a field, whatever a job has printed.
const LONGEST: usize = 500;

/// One thing that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The same wherever and how often it is told; of nothing else.
    pub id: String,
    /// When it happened.
    pub time: Timestamp,
    /// What.
    pub event: Occasion,
    /// Whose affair it is.
    pub user: UserName,
    /// Which of that user's jobs.
    pub job: Option<JobNumber>,
    /// The name of the job.
    pub name: Option<String>,
    /// The target that it is about.
    pub target: Option<String>,
    /// The status of the job as it was told.
    pub status: Option<String>,
    /// The kind of failure.
    pub error: Option<String>,
    /// The line that shows it.
    pub evidence: Option<String>,
    /// All of it for people.
    pub text: String,
}

/// What a notice is made of.
#[derive(Clone, Debug, Default)]
pub struct NoticeFacts<'a> {
    /// The job, of that user.
    pub job: Option<JobNumber>,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its target.
    pub target: Option<&'a str>,
    /// Its status, in a word.
    pub status: Option<&'a str>,
    /// The kind of failure.
    pub error: Option<&'a str>,
    /// The line that shows it, or what else is to be said.
    pub evidence: Option<&'a str>,
}

impl Notice {
    /// Puts it into words. What a job, a name or a provider says is escaped and cut; `told` is what tells this from
    /// everything else that happened at the same time.
    pub fn new(
        (event, time): (Occasion, Timestamp),
        user: &UserName,
        of: &NoticeFacts<'_>,
        told: &str,
    ) -> Self {
        let safe = |text: &str| {
            let escaped = text::escape(text.trim());
            match escaped.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", escaped.get(..end).unwrap_or_default()),
                None => escaped.into_owned(),
            }
        };
        let said = |text: Option<&str>| text.map(safe).filter(|text| !text.is_empty());
        let (name, target) = (said(of.name), said(of.target));
        let (error, evidence) = (said(of.error), said(of.evidence));
        let mut words = safe(user.as_str());
        words.extend(of.job.iter().map(|job| format!("/{job}")));
        words.extend(name.iter().map(|name| format!(" ({name})")));
        words += &format!(": {}", event.as_str());
        words.extend(target.iter().map(|target| format!(" on {target}")));
        let kind = error.as_ref().filter(|error| *error != event.as_str());
        words.extend(kind.iter().map(|kind| format!(": {kind}")));
        words.extend(evidence.iter().map(|line| format!(": {line}")));
        Self {
            id: id(time, &[user.as_str(), event.as_str(), told]),
            time,
            event,
            user: user.clone(),
            job: of.job,
            name,
            target,
            status: said(of.status),
            error,
            evidence,
            text: words,
        }
    }
}

/// A name that the same words at the same time always have.
pub fn id(time: Timestamp, parts: &[&str]) -> String {
    format!("{}-{:016x}", time.compact(), text::fnv1a(parts.join("\0").bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_prints_stays_one_line_that_acts_on_nothing() {
        let long = "x".repeat(10_000);
        for line in ["\u{1b}]0;owned\u{7}", "a\r\nBcc: all@lab.org", "\u{202e}abc", long.as_str()] {
            let of = NoticeFacts {
                job: Some(JobNumber(3)),
                name: Some(line),
                evidence: Some(line),
                ..NoticeFacts::default()
            };
            let at = Timestamp::from_second(0);
            let notice = Notice::new((Occasion::Error, at), &UserName::from("alice"), &of, "");
            for text in [&notice.text, notice.evidence.as_ref().unwrap()] {
                assert!(text.chars().count() < 1_200, "{}", text.len());
                assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
            }
        }
    }

    #[test]
    fn an_id_is_of_one_thing() {
        let notice = |seconds: i64, user: &str, told: &str| {
            let when = (Occasion::Error, Timestamp::from_second(seconds));
            Notice::new(when, &UserName::from(user), &NoticeFacts::default(), told).id
        };
        assert_eq!(notice(1, "alice", "x"), notice(1, "alice", "x"));
        let other = [notice(2, "alice", "x"), notice(1, "bob", "x"), notice(1, "alice", "y")];
        assert!(!other.contains(&notice(1, "alice", "x")));
    }
}
