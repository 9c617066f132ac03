//! What the script of a job tells of itself in files beside its log: why it ends or has ended it, and how far its set-up
//! is. They are read only of jobs that may have such files, of all of them by one question.

use std::path::{Path, PathBuf};

use tpu_core::model::execution::Execution;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState, SETTING_UP};
use tpu_core::model::job::Job;
use tpu_engine::runner::RunRef;

use super::client::ClusterDisk;
use super::laid;
use super::limits::{WHY_FILE, WHY_FILE_BEFORE};

/// The file in which a node says how far its set-up is.
const PROGRESS_FILE: &str = "set-up";

/// A reason has no more bytes.
const MOST: u64 = 4096;

/// What a script has written down of an end: which life of its job it is about, the exit code or the signal, and why.
/// The first line is the job's number, how often it was started again, and the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndNote<'t> {
    /// How often the job had been started again.
    pub(super) restarts: Option<u32>,
    /// The exit code, or the signal.
    pub(super) code: Option<i32>,
    why: &'t str,
}

impl<'t> EndNote<'t> {
    /// Reads it; one whose first line is not whole yet is none.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let (head, why) = text.split_once('\n')?;
        let mut words = head.split_whitespace().skip(1);
        Some(Self {
            restarts: words.next().and_then(|count| count.parse().ok()),
            code: words.next().and_then(|code| code.parse().ok()),
            why: why.trim_end(),
        })
    }
}

/// What a file may say of a run.
#[derive(Clone, Copy)]
enum Tells {
    /// Why our script has ended it.
    Ended,
    /// Why our script is just ending it.
    Ending,
    /// Why our script is about to: what its programs print then can be there before the file that says so has its name.
    AboutToEnd,
    /// How far its set-up is.
    Progress,
}

impl Tells {
    /// What counts more comes later.
    const ALL: [Self; 4] = [Self::Progress, Self::Ended, Self::AboutToEnd, Self::Ending];

    fn file(self) -> &'static str {
        match self {
            Self::Ended | Self::Ending => WHY_FILE,
            Self::AboutToEnd => WHY_FILE_BEFORE,
            Self::Progress => PROGRESS_FILE,
        }
    }

    /// Whether a run may have a file that says so.
    fn may_be(self, job: &Job, fact: &RunFact) -> bool {
        match self {
            Self::Ended => {
                let kinds = [ErrorKind::Setup, ErrorKind::Stalled, ErrorKind::Timeout].map(Some);
                fact.state == RunState::Ended
                    && kinds.contains(&fact.cause)
                    && matches!(fact.raw.as_ref(), "FAILED" | "ENDED")
                    && job.launch.as_ref().is_some_and(|launch| launch.ended.is_none())
            }
            Self::Ending | Self::AboutToEnd => {
                fact.state == RunState::Running
                    && job.execution().is_some_and(Execution::is_limited)
            }
            Self::Progress => fact.state == RunState::Running && laid::sets_up(job),
        }
    }

    fn add(self, text: &str, fact: &mut RunFact) {
        match self {
            Self::Ended => {
                if let Some(note) = EndNote::read(text) {
                    fact.reason = Some(note.why.to_owned().into());
                }
            }
            // What its programs still print when they are told to end, such as a shell's notice of a signal, is no failure
            // of its own: how it has ended is told when it has. What an earlier life was ended for stands there until the
            // script of this one begins.
            Self::Ending | Self::AboutToEnd => {
                let note = EndNote::read(text).filter(|note| note.restarts == Some(fact.restarts));
                if let Some(note) = note {
                    fact.reason = Some(format!("it is being ended: {}", note.why).into());
                    fact.text_waits = true;
                }
            }
            Self::Progress => {
                fact.reason = Some(text.trim_end().to_owned().into());
                fact.raw = SETTING_UP.into();
            }
        }
    }
}

/// Adds to what is known of runs what their scripts tell. What cannot be read is not known.
pub(super) fn add(disk: &dyn ClusterDisk, runs: &[RunRef<'_>], facts: &mut [RunFact]) {
    let mut asked: Vec<(usize, Tells)> = Vec::new();
    let mut paths: Vec<(PathBuf, u64)> = Vec::new();
    for (at, (run, fact)) in runs.iter().zip(&*facts).enumerate() {
        let Some(dir) = run.job.log_dir.as_deref() else { continue };
        for tells in Tells::ALL.into_iter().filter(|tells| tells.may_be(run.job, fact)) {
            asked.push((at, tells));
            paths.push((Path::new(dir).join(tells.file()), MOST));
        }
    }
    if paths.is_empty() {
        return;
    }
    for ((at, tells), end) in asked.into_iter().zip(disk.ends(&paths).unwrap_or_default()) {
        if let (Some(end), Some(fact)) = (end, facts.get_mut(at)) {
            tells.add(&String::from_utf8_lossy(&end.bytes), fact);
        }
    }
}
