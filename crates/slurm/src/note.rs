//! What is kept here of a submission: the batch script, and a note that is written before `sbatch` is run and says
//! what has come of it. Whoever comes later knows by it whether a job can be on its way to Slurm.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::RunError;
use tpu_engine::runner::submissions::{Submissions, Submitter};
use tpu_system::effects::Effects;

use super::WORD;
use super::config::ControllerConfig;
use super::job_id::JobRef;

const NOTE: &str = "note";
const SCRIPT: &str = "script";

/// `sbatch` never lives longer: it is killed then, by us or by what guards it.
pub(super) const SUBMITTING: Duration = Duration::from_secs(30);

/// A submission that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubmissionNote {
    /// When.
    at: i64,
    /// By which process.
    by: Submitter,
    /// When the controller had been started, in its own words.
    pub(super) controller: String,
    /// For how long `sbatch` may be at work.
    lasts_s: u64,
    /// For how long a message of it may be on its way.
    message_s: u64,
    /// For how long a job that is over is remembered.
    memory_s: u64,
    /// When our `sbatch` was gone without having said what came of it.
    over: Option<i64>,
    /// The number of the job, once Slurm has said it.
    pub(super) id: Option<u64>,
}

impl SubmissionNote {
    /// Of a submission that this process begins now.
    pub(super) fn begun(effects: &Effects, config: &ControllerConfig, is_here: bool) -> Self {
        // Elsewhere it begins when the way there is open, and nobody here can end it.
        let lasts = if is_here { SUBMITTING } else { SUBMITTING * 2 };
        Self {
            at: effects.clock.now().as_second(),
            by: Submitter::this(effects),
            controller: config.boot.clone(),
            lasts_s: lasts.as_secs(),
            message_s: config.message_timeout.as_secs(),
            memory_s: config.min_job_age.as_secs(),
            over: None,
            id: None,
        }
    }

    /// Notes that our `sbatch` is gone, without an answer.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        self.over = Some(now.as_second());
    }

    /// From when on a job of which Slurm knows nothing then is not there, and will not come.
    pub(super) fn settled_at(&self) -> Timestamp {
        let gone = Timestamp::from_second(self.over.unwrap_or(self.at));
        let rest = if self.over.is_some() { 0 } else { self.lasts_s };
        // Both ends of the way count in whole seconds.
        gone.plus(Duration::from_secs(rest + self.message_s + 1))
    }

    /// Until when Slurm can have forgotten nothing of it.
    pub(super) fn remembered_until(&self) -> Timestamp {
        Timestamp::from_second(self.at).plus(Duration::from_secs(self.memory_s))
    }

    /// Whether another process is at it.
    pub(super) fn is_at_work(&self, effects: &Effects) -> bool {
        self.over.is_none() && self.id.is_none() && self.by.is_another_at_work(effects)
    }
}

/// All of them.
pub(super) fn all(effects: &Effects) -> Submissions<'_> {
    Submissions::of(effects, WORD)
}

/// Writes the note of a submission.
pub(super) fn write(effects: &Effects, name: &str, note: &SubmissionNote) -> Result<(), RunError> {
    all(effects).write(name, NOTE, note)
}

/// Adds to the note of a submission what has come of it. No failure: what has begun has begun, and without it whoever comes
/// later asks by the name.
pub(super) fn add(effects: &Effects, name: &str, note: &SubmissionNote) {
    drop(write(effects, name, note));
}

/// The note of a submission; `None` where none was begun.
pub(super) fn read(effects: &Effects, name: &str) -> io::Result<Option<SubmissionNote>> {
    all(effects).read(name, NOTE)
}

/// Keeps a batch script.
pub(super) fn keep_script(effects: &Effects, name: &str, script: &str) -> Result<(), RunError> {
    all(effects).keep_text(name, SCRIPT, script)
}

/// The batch script of a submission.
pub(super) fn script(effects: &Effects, name: &str) -> Option<String> {
    all(effects).text(name, SCRIPT)
}

/// Removes old submissions of which no record is left.
pub(super) fn sweep(effects: &Effects) {
    let Ok(data) = effects.data() else { return };
    let begun_at = |name: &str| {
        let note = read(effects, name).ok().flatten();
        note.map(|note| Timestamp::from_second(note.at))
    };
    let is_named =
        |name: &str| data.jobs().any(|job| JobRef::of(job).names().any(|known| known == name));
    all(effects).sweep(begun_at, is_named);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_waited_for() {
        let text = r#"{"at":1000,"by":[1,1,"boot"],"controller":"then","lasts_s":30,"message_s":10,
            "memory_s":300,"over":null,"id":null}"#;
        let begun: SubmissionNote = serde_json::from_str(text).unwrap();
        assert_eq!(begun.settled_at().as_second(), 1_000 + 30 + 10 + 1, "nobody saw sbatch end");
        let mut over = begun.clone();
        over.give_up(Timestamp::from_second(1_002));
        assert_eq!(over.settled_at().as_second(), 1_002 + 10 + 1);
        let text = serde_json::to_vec(&over).unwrap();
        assert_eq!(serde_json::from_slice::<SubmissionNote>(&text).unwrap(), over);
    }
}
