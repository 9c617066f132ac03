//! When clusters have last answered, whoever of this account had asked: one small file beside the notes of submissions,
//! from which also a new process can tell how old is what is known while a cluster is silent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tpu_core::model::time::{Timestamp, age};
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::cluster::Cluster;
use super::heard::NOTED_EVERY;
use super::note;

/// What is older is forgotten.
const KEPT_S: u64 = 30 * 24 * 3600;

/// Mode of the file: whoever sees the jobs may see this.
const MODE: u32 = 0o644;

/// When each cluster has last answered, in seconds since the epoch.
type Answers = BTreeMap<String, i64>;

/// One for each account: in that directory nobody replaces the file of another one.
fn path(effects: &Effects) -> PathBuf {
    note::all(effects).root().join(format!("answered-{}", effects.env.uid))
}

fn read(effects: &Effects) -> Answers {
    let contents = effects.store.disk().read(&path(effects)).ok();
    contents.and_then(|contents| serde_json::from_slice(&contents.bytes).ok()).unwrap_or_default()
}

/// Notes that a cluster has answered now. What cannot be written is not known to others: that is all.
pub(super) fn note(effects: &Effects, cluster: &Cluster) {
    let now = effects.clock.now();
    let mut answers = read(effects);
    let since = |at: i64| now.seconds_since(Timestamp::from_second(at));
    let cluster = cluster.to_string();
    let is_noted = answers.get(&cluster).is_some_and(|at| since(*at) < NOTED_EVERY.as_secs());
    if is_noted || effects.store.is_dry_run() || note::all(effects).make_root().is_err() {
        return;
    }
    answers.retain(|_, at| since(*at) < KEPT_S);
    answers.insert(cluster, now.as_second());
    let text = serde_json::to_vec(&answers).unwrap_or_default();
    drop(atomic::write_file(&**effects.store.disk(), &path(effects), &text, MODE));
}

/// How long ago a cluster has last answered, in words.
pub(super) fn last(effects: &Effects, cluster: &Cluster) -> Option<String> {
    let at = Timestamp::from_second(*read(effects).get(&cluster.to_string())?);
    Some(format!("it last answered {} ago", age(effects.clock.now().seconds_since(at))))
}
