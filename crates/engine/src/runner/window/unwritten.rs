//! Logs that take nothing more, since their disk is full or gone. The relay that keeps a log writes that down: beside the
//! launcher for as long as the job is known, and while it lasts in one directory for all, which a look reads and which is
//! empty while all is well.

use std::collections::BTreeSet;

use tpu_core::model::facts::{LOG_UNWRITTEN, RunFact, RunState};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;
use tpu_core::text::counted;
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::beside;

/// The file beside the launcher that says what of the output is not in the log: the token of the launch, whether that
/// [lasts](LASTS), how many bytes, and why.
pub(super) const UNWRITTEN: &str = "unwritten";

/// The word for a log that takes nothing more.
pub(super) const LASTS: &str = "lasts";

/// The word for one that does again.
pub(super) const OVER: &str = "over";

/// Readable for everybody who looks at the job.
const MODE: u32 = 0o664;
/// The same for their directory, in which each account writes its own.
const DIR_MODE: u32 = 0o775;

/// The launches whose logs take nothing more now.
pub(crate) struct Unwritten(BTreeSet<String>);

impl Unwritten {
    /// Those that are written down now.
    pub(crate) fn read(effects: &Effects) -> Self {
        let names = effects.store.disk().list(&effects.store.paths().unwritten());
        // Without the directory all is well.
        Self(names.unwrap_or_default().into_iter().collect())
    }

    /// The same look at a run at work, with what is wrong with its log.
    pub(crate) fn over(&self, effects: &Effects, job: &Job, fact: RunFact) -> RunFact {
        let is_of = |token: &LaunchToken| self.0.contains(token.as_str());
        let is_meant = job.launch.as_ref().is_some_and(|launch| is_of(&launch.token));
        let is_at_work = fact.state == RunState::Running && fact.exit.is_none();
        if !is_meant || !is_at_work || fact.reason.is_some() {
            return fact;
        }
        let loss = LogLoss::of(effects, job);
        let said =
            loss.map_or_else(|| "its log takes nothing more".to_owned(), |of| of.in_words(false));
        RunFact { raw: LOG_UNWRITTEN.into(), reason: Some(said.into()), ..fact }
    }
}

/// Has each look see that the log of a launch takes nothing more.
pub fn begins(effects: &Effects, token: &LaunchToken) {
    let (disk, dir) = (effects.store.disk(), effects.store.paths().unwritten());
    // Where it cannot be written down, what lies beside the launcher says it to whoever asks about the job.
    if disk.make_dir(&dir, DIR_MODE).is_ok() {
        drop(atomic::write_passing(&**disk, &dir.join(token.as_str()), b"", MODE));
    }
}

/// Takes that away: the log goes on, or nobody keeps it any more.
pub fn ends(effects: &Effects, token: &LaunchToken) {
    // It is not there where all was well.
    drop(effects.store.disk().remove(&effects.store.paths().unwritten().join(token.as_str())));
}

/// What a job has printed and its log does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLoss {
    /// Whether the log took nothing more when this was written down last.
    pub lasts: bool,
    /// How many bytes are missing.
    pub bytes: u64,
    /// Why they could not be written.
    pub why: String,
}

impl LogLoss {
    /// What lies beside the launcher of a job; `None` where nothing is missing.
    pub fn of(effects: &Effects, job: &Job) -> Option<Self> {
        let token = job.launch.as_ref()?.token.as_str();
        let bytes = beside::file(effects, &job.id(), UNWRITTEN)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        match lines.next() {
            Some(of) if of == token => Some(Self {
                lasts: lines.next()? == LASTS,
                bytes: lines.next()?.parse().ok()?,
                why: lines.next().unwrap_or_default().to_owned(),
            }),
            // The disk that is full took the name alone.
            None if beside::is_of_launch(effects, &job.id(), token) => {
                Some(Self { lasts: true, bytes: 0, why: "its disk is full".to_owned() })
            }
            Some(_) | None => None,
        }
    }

    /// The loss in words, of a job that is over or at work.
    pub fn in_words(&self, is_over: bool) -> String {
        let Self { lasts, bytes, why } = self;
        let count = counted(usize::try_from(*bytes).unwrap_or(usize::MAX), "byte");
        match (lasts, is_over) {
            (true, _) if *bytes == 0 => format!("its log takes nothing more: {why}"),
            (true, false) => format!("its log takes nothing more: {why}; {count} missing so far"),
            (true, true) => format!("its log ends early: {why}; {count} missing"),
            (false, _) => format!("its log lacks {count}, and says where: {why}"),
        }
    }
}
