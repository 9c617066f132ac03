//! What is kept here of a submission: its manifest, a note that is written before the server is asked and says what has
//! come of it, and the last that was seen of its run. Whoever comes later knows by it whether a Job can be on its way.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::RunError;
use tpu_engine::runner::submissions::{Submissions, Submitter};
use tpu_system::effects::Effects;

use super::WORD;
use super::kept::KeptLog;
use super::request::CREATING;

const NOTE: &str = "note";
const MANIFEST: &str = "manifest.json";
const LAST_SEEN: &str = "last-seen";

/// A request that nobody waits for any more is done, or given up by the server, so long after it was sent: its own limit
/// and the way there.
const ON_ITS_WAY: Duration = Duration::from_secs(CREATING.as_secs() + 5);

/// A submission that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubmissionNote {
    /// When.
    at: i64,
    /// By which process.
    by: Submitter,
    /// When its request was given up without an answer.
    over: Option<i64>,
    /// The identity of the Job, once the server has said it.
    pub(super) uid: Option<String>,
}

impl SubmissionNote {
    /// Of a submission that this process begins now.
    pub(super) fn begun(effects: &Effects) -> Self {
        let at = effects.clock.now().as_second();
        Self { at, by: Submitter::this(effects), over: None, uid: None }
    }

    /// Notes that the request itself begins now: what had to be made before it may have taken its time.
    pub(super) fn renew(&mut self, now: Timestamp) {
        self.at = now.as_second();
    }

    /// Notes that the request was given up without an answer.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        self.over = Some(now.as_second());
    }

    /// Notes that the server has it, as it has just said.
    pub(super) fn arrived(&mut self, uid: String) {
        self.uid = Some(uid);
    }

    /// From when on a Job that is not there then will not come.
    pub(super) fn settled_at(&self) -> Timestamp {
        Timestamp::from_second(self.over.unwrap_or(self.at)).plus(ON_ITS_WAY).plus_seconds(1)
    }

    /// Whether another process of this machine is at it.
    pub(super) fn is_at_work(&self, effects: &Effects) -> bool {
        self.over.is_none() && self.uid.is_none() && self.by.is_another_at_work(effects)
    }
}

fn all(effects: &Effects) -> Submissions<'_> {
    Submissions::of(effects, WORD)
}

/// The directory of a launch, by its token.
pub(super) fn directory(effects: &Effects, token: &str) -> PathBuf {
    all(effects).directory(token)
}

/// Writes the note of a submission.
pub(super) fn write(effects: &Effects, token: &str, note: &SubmissionNote) -> Result<(), RunError> {
    all(effects).write(token, NOTE, note)
}

/// Adds to the note of a submission what has come of it. No failure: what has begun has begun, and without it whoever comes
/// later asks by the name.
pub(super) fn add(effects: &Effects, token: &str, note: &SubmissionNote) {
    drop(write(effects, token, note));
}

/// The note of a submission; `None` where none was begun.
pub(super) fn read(effects: &Effects, token: &str) -> io::Result<Option<SubmissionNote>> {
    all(effects).read(token, NOTE)
}

/// Keeps a manifest.
pub(super) fn keep_manifest(effects: &Effects, token: &str, text: &str) -> Result<(), RunError> {
    all(effects).keep_text(token, MANIFEST, text)
}

/// The manifest of a submission.
pub(super) fn manifest(effects: &Effects, token: &str) -> Option<String> {
    all(effects).text(token, MANIFEST)
}

/// How a run was when it was last seen: what is left of it once its Job is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LastSeen {
    /// Whether it had ended.
    pub(super) is_over: bool,
    /// Its exit code.
    pub(super) code: Option<i32>,
    /// Why it ended, as a record spells it.
    pub(super) cause: Option<String>,
    /// The same in words.
    pub(super) reason: Option<String>,
    /// Kubernetes' own word.
    pub(super) raw: String,
    /// Its nodes.
    pub(super) nodes: Vec<String>,
    /// How many pods there had been before the last one.
    pub(super) restarts: u32,
    /// The identities of the pods that had begun; `None` where an earlier version has seen it.
    pub(super) begun: Option<Vec<String>>,
    /// When its command began, in seconds since the epoch; `None` if it had not.
    pub(super) began: Option<i64>,
}

impl LastSeen {
    /// Whether another look has seen something else. The list of a look may be older than what was seen meanwhile: an end
    /// stands, unless another pod was begun after it.
    pub(super) fn is_outdated_by(&self, seen: &Self) -> bool {
        if self.is_over && !seen.is_over && seen.restarts <= self.restarts {
            return false;
        }
        let known = (self.is_over, self.code, &self.cause, self.restarts, &self.nodes);
        known != (seen.is_over, seen.code, &seen.cause, seen.restarts, &seen.nodes)
            || self.begun.is_none()
    }
}

/// Keeps how a run was seen.
pub(super) fn keep_seen(effects: &Effects, token: &str, seen: &LastSeen) -> Result<(), RunError> {
    all(effects).write(token, LAST_SEEN, seen)
}

/// How a run was when it was last seen.
pub(super) fn last_seen(effects: &Effects, token: &str) -> Option<LastSeen> {
    all(effects).read(token, LAST_SEEN).ok().flatten()
}

/// Takes a submission back that has come to nothing.
pub(super) fn remove(effects: &Effects, token: &str) {
    all(effects).remove(token);
}

/// Removes old submissions of which no record is left and nothing is kept: a log is here for whoever looks into the archive.
pub(super) fn sweep(effects: &Effects) {
    let Ok(data) = effects.data() else { return };
    let begun_at = |token: &str| {
        let note = read(effects, token).ok().flatten();
        note.map(|note| Timestamp::from_second(note.at))
    };
    let is_named = |token: &str| {
        data.jobs().any(|job| job.launch.as_ref().is_some_and(|of| of.token.as_str() == token))
            || KeptLog::new(&effects.store, directory(effects, token)).is_there()
    };
    all(effects).sweep(begun_at, is_named);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_waited_for() {
        let text = r#"{"at":1000,"by":[1,1,"boot"],"over":null,"uid":null}"#;
        let begun: SubmissionNote = serde_json::from_str(text).unwrap();
        assert_eq!(begun.settled_at().as_second(), 1_000 + 15 + 1, "nobody saw it end");
        let mut over = begun.clone();
        over.give_up(Timestamp::from_second(1_010));
        assert_eq!(over.settled_at().as_second(), 1_010 + 15 + 1);
        let text = serde_json::to_vec(&over).unwrap();
        assert_eq!(serde_json::from_slice::<SubmissionNote>(&text).unwrap(), over);
    }
}
