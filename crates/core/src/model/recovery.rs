//! What is remembered of the failures of a lineage and of what was done about them.

use super::facts::{ErrorKind, Evidence};
use super::time::Timestamp;

/// What the daemon remembers of a lineage, on its leaf (`extra_msgs.recovery`); a child begins with its
/// parent's, brought up to date. The counts are kept and not read off the ancestors, because those may
/// be archived while the leaf lives. `plan::budget` gives the numbers their meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Reactions to preemptions and missing capacity, in the whole life of the lineage.
    pub capacity: u32,
    /// Of those, the ones in a row without progress: what the back-off grows with.
    pub capacity_row: u32,
    /// Reactions to other failures of infrastructure, in a row without progress.
    pub infra: u32,
    /// Reactions to failures after which its file wants it retried, until a person has it go on.
    pub retried: u32,
    /// The last failure of its program that was answered by a retry, in words that two alike have in common.
    pub failed_with: Option<String>,
    /// How often in a row it has failed like that.
    pub alike: u32,
    /// Children in a row that died at once, up to the parent of this attempt.
    pub quick: u32,
    /// How often its engine has begun this attempt anew by itself, as far as that is counted among those.
    pub restarts: u32,
    /// How far the lineage had come at the last reaction.
    pub best: Mark,
    /// Whether this attempt was seen to come further than `best`.
    pub progressed: bool,
    /// When the last reaction was begun.
    pub last_action_at: Option<Timestamp>,
    /// Since when the quick reactions to failures of infrastructure are used up, without progress since then: it is tried
    /// less often. Reactions since then are those of `infra` above their limit.
    pub patient_since: Option<Timestamp>,
    /// Whether the next reaction waits for no pause, since a person said so (`tpu ack`).
    pub roused: bool,
    /// Which login is missing, in words, since a reaction failed for it: nothing is tried until a person says so.
    pub login: Option<String>,
    /// When the control plane gave the answer on which the end of this attempt was judged.
    pub judged: Option<Timestamp>,
    /// Since when its target, which is not there, is asked for: until it goes on.
    pub waits_since: Option<Timestamp>,
    /// Nodes that were lost under the lineage, and until when it is not to begin there again.
    pub avoid: Vec<(String, Timestamp)>,
    /// Why nothing is done any more, once a budget has ended the lineage.
    pub stopped: Option<String>,
    /// Whether a person has killed what had failed: no rule brings this attempt back.
    pub killed: bool,
    /// Whether the record says `monitor: false` for that: the original's monitor knows no other sign of such a kill. Whether
    /// somebody watches the lineage is unchanged.
    pub unwatched: bool,
    /// Whether nothing is done until a person does something: it is brought back no more than what is stopped, and may
    /// be yet.
    pub blocked: bool,
}

impl Recovery {
    /// Whether no rule brings the attempt back any more.
    pub fn is_over(&self) -> bool {
        self.stopped.is_some() || self.killed
    }
}

/// How far a run has come. The epoch leads, since many programs count steps anew in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Mark {
    /// Epoch, if the program prints one.
    pub epoch: Option<f64>,
    /// Step, if the program prints one.
    pub step: Option<u64>,
}

/// Evidence worth keeping after the pane is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVerdict {
    /// The kind it led to.
    pub kind: ErrorKind,
    /// Pattern or fact.
    pub rule: String,
    /// The line.
    pub line: String,
    /// A person said that this is no error; it holds until other text appears.
    pub ignored: bool,
}

impl StoredVerdict {
    /// What is kept of the evidence for a failure; evidence may be missing.
    pub fn new(kind: ErrorKind, evidence: Option<&Evidence>) -> Self {
        let (rule, line) = match evidence {
            Some(evidence) => (evidence.rule.clone(), evidence.line.clone()),
            None => ("unknown".to_owned(), String::new()),
        };
        Self { kind, rule, line, ignored: false }
    }
}
