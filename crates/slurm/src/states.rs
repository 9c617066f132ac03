//! Slurm's words for how a job is, and what each means here.

use tpu_core::model::facts::ErrorKind;

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobStage {
    /// It has not been started, or is to be started anew.
    Waiting,
    /// Its nodes are being made ready.
    Starting,
    /// It is there.
    Working,
    /// It has ended well.
    Done,
    /// It has ended with a code.
    Failed,
    /// Somebody has cancelled it.
    Cancelled,
    /// It was ended for this reason.
    Ended(ErrorKind),
    /// Nothing can be said.
    Unclear,
}

/// The table: each word of `squeue` and `sacct`, from 20.11 to 25.05.
const WORDS: &[(&str, JobStage)] = &[
    ("PENDING", JobStage::Waiting),
    ("REQUEUED", JobStage::Waiting),
    ("REQUEUE_FED", JobStage::Waiting),
    ("REQUEUE_HOLD", JobStage::Waiting),
    ("RESV_DEL_HOLD", JobStage::Waiting),
    ("SPECIAL_EXIT", JobStage::Waiting),
    ("CONFIGURING", JobStage::Starting),
    ("POWER_UP_NODE", JobStage::Starting),
    ("RUNNING", JobStage::Working),
    ("COMPLETING", JobStage::Working),
    ("STAGE_OUT", JobStage::Working),
    ("SIGNALING", JobStage::Working),
    ("SUSPENDED", JobStage::Working),
    ("STOPPED", JobStage::Working),
    ("RESIZING", JobStage::Working),
    ("EXPEDITING", JobStage::Waiting),
    ("COMPLETED", JobStage::Done),
    ("FAILED", JobStage::Failed),
    ("CANCELLED", JobStage::Cancelled),
    ("TIMEOUT", JobStage::Ended(ErrorKind::Timeout)),
    ("DEADLINE", JobStage::Ended(ErrorKind::Timeout)),
    ("OUT_OF_MEMORY", JobStage::Ended(ErrorKind::Oom)),
    ("PREEMPTED", JobStage::Ended(ErrorKind::Preempted)),
    ("NODE_FAIL", JobStage::Ended(ErrorKind::Lost)),
    ("BOOT_FAIL", JobStage::Ended(ErrorKind::Lost)),
    ("LAUNCH_FAILED", JobStage::Ended(ErrorKind::Setup)),
    ("RECONFIG_FAIL", JobStage::Ended(ErrorKind::Setup)),
    // A federation has given it to another cluster, which is not asked.
    ("REVOKED", JobStage::Unclear),
    ("UPDATE_DB", JobStage::Unclear),
];

/// The bare word: `sacct` writes `CANCELLED by 1000`.
pub(super) fn bare(word: &str) -> &str {
    word.split_whitespace().next().unwrap_or_default().trim_end_matches('+')
}

/// What a word says.
pub(super) fn stage(word: &str) -> JobStage {
    let word = bare(word);
    let known = WORDS.iter().find(|(known, _)| *known == word);
    known.map_or(JobStage::Unclear, |(_, stage)| *stage)
}

impl JobStage {
    /// Whether it is over.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Ended(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_with_what_hangs_on_it() {
        assert_eq!(stage("CANCELLED by 1000"), JobStage::Cancelled);
        assert_eq!(stage("NODE_FAIL"), JobStage::Ended(ErrorKind::Lost));
        assert_eq!(stage("COMPLETED+"), JobStage::Done);
        assert_eq!(stage("REVOKED"), JobStage::Unclear);
        assert_eq!(stage("A_NEW_WORD"), JobStage::Unclear, "what is not known is not over");
        assert_eq!(stage(""), JobStage::Unclear);
    }

    #[test]
    fn no_word_is_there_twice() {
        for (i, (word, _)) in WORDS.iter().enumerate() {
            assert!(WORDS.iter().skip(i + 1).all(|(other, _)| other != word), "{word}");
        }
    }
}
