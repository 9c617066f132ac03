//! What clusters have said last, so that silence can be told with the age of what is known: to this process, how each of
//! our jobs was; to this account, when they answered. That is one small file beside the notes of submissions, from which
//! also a new process can tell it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tpu_core::model::time::age;
use tpu_system::effects::Effects;
use tpu_system::store::cache::{AnswerCache, CacheFile};

use super::cluster::Cluster;
use super::note;

/// So often it is written down that a cluster answers.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// What is older is forgotten, in seconds.
const KEPT_S: u64 = 30 * 24 * 3600;

/// Mode of the file: whoever sees the jobs may see this.
const MODE: u32 = 0o644;

/// What was heard, by cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterMemory {
    heard: Mutex<HashMap<Cluster, HeardOf>>,
    /// Held by whoever writes it down.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct HeardOf {
    /// When it last answered.
    at: Option<Duration>,
    /// When that was last written down.
    noted: Option<Duration>,
    /// How its jobs were then, by their launches.
    states: HashMap<String, String>,
    /// Whether `sacct` has a database to ask, once that is known.
    has_accounting: Option<bool>,
}

impl ClusterMemory {
    /// What is kept is whole whatever happened to the thread that last held it.
    fn lock(&self) -> MutexGuard<'_, HashMap<Cluster, HeardOf>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps how jobs are now.
    pub(super) fn keep(
        &self,
        cluster: &Cluster,
        now: Duration,
        states: impl Iterator<Item = (String, String)>,
    ) {
        let mut all = self.lock();
        let heard = all.entry(cluster.clone()).or_default();
        heard.at = Some(now);
        heard.states.extend(states);
    }

    /// Has it written down that a cluster has answered, at most every few seconds. Nobody waits for that: who finds
    /// another one writing leaves it to the next answer.
    pub(super) fn noting(&self, cluster: &Cluster, now: Duration, write: impl FnOnce()) {
        let Ok(_writing) = self.writing.try_lock() else { return };
        if self.is_due(cluster, now) {
            write();
        }
    }

    fn is_due(&self, cluster: &Cluster, now: Duration) -> bool {
        let mut all = self.lock();
        let noted = &mut all.entry(cluster.clone()).or_default().noted;
        let is_due = noted.is_none_or(|noted| now.saturating_sub(noted) >= NOTED_EVERY);
        if is_due {
            *noted = Some(now);
        }
        is_due
    }

    /// What was last known of a job, in words.
    pub(super) fn last(&self, cluster: &Cluster, launch: &str, now: Duration) -> Option<String> {
        let all = self.lock();
        let heard = all.get(cluster)?;
        let (at, state) = (heard.at?, heard.states.get(launch)?);
        Some(format!("{} ago it was {state}", age(now.saturating_sub(at).as_secs())))
    }

    /// Whether `sacct` is worth asking.
    pub(super) fn may_have_accounting(&self, cluster: &Cluster) -> bool {
        self.lock().get(cluster).and_then(|heard| heard.has_accounting).unwrap_or(true)
    }

    /// Whether `sacct` is known to have all that there was.
    pub(super) fn has_accounting(&self, cluster: &Cluster) -> bool {
        self.lock().get(cluster).and_then(|heard| heard.has_accounting).unwrap_or(false)
    }

    /// Remembers whether it is.
    pub(super) fn set_accounting(&self, cluster: &Cluster, has: bool) {
        self.lock().entry(cluster.clone()).or_default().has_accounting = Some(has);
    }
}

/// When each cluster has last answered. One file for each account: in that directory nobody replaces the file of another.
fn answers(effects: &Effects) -> AnswerCache<'_> {
    let path = note::all(effects).root().join(format!("answered-{}", effects.env.uid));
    AnswerCache { file: CacheFile { store: &effects.store, path, mode: MODE }, kept_s: KEPT_S }
}

/// Notes that a cluster has answered now.
pub(super) fn note_answer(effects: &Effects, cluster: &Cluster) {
    let (now, cluster) = (effects.clock.now(), cluster.to_string());
    let last = answers(effects).last::<()>(&cluster);
    let is_noted = last.is_some_and(|last| now.seconds_since(last.at) < NOTED_EVERY.as_secs());
    if is_noted || effects.store.is_dry_run() || note::all(effects).make_root().is_err() {
        return;
    }
    answers(effects).keep(&cluster, now, ());
}

/// How long ago a cluster has last answered, in words.
pub(super) fn last_answer(effects: &Effects, cluster: &Cluster) -> Option<String> {
    let at = answers(effects).last::<()>(&cluster.to_string())?.at;
    Some(format!("it last answered {} ago", age(effects.clock.now().seconds_since(at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_with_the_age_of_what_is_known() {
        let (heard, cluster) = (ClusterMemory::default(), Cluster::default());
        let at = Duration::from_secs;
        assert_eq!(heard.last(&cluster, "t", at(5)), None);
        heard.keep(&cluster, at(5), [("t".to_owned(), "RUNNING".to_owned())].into_iter());
        let said = heard.last(&cluster, "t", at(17)).unwrap();
        assert!(said.contains("12") && said.ends_with("it was RUNNING"), "{said}");
        assert!(heard.may_have_accounting(&cluster) && !heard.has_accounting(&cluster));
        heard.set_accounting(&cluster, false);
        assert!(!heard.may_have_accounting(&cluster));
    }
}
