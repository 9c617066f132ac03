//! Fetching what pods have printed, and keeping it here.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::{Chunk, OutputMark, Want, printed};
use tpu_system::effects::Effects;
use tpu_system::store::StoreError;

use super::facts;
use super::kept::{KeptLog, LogBegins};
use super::manifest::MAIN;
use super::note;
use super::request::{LogQuestion, Trouble};
use super::site::Site;
use super::stamped::Stamped;

/// A pod whose log is wanted, and the launch that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'p> {
    /// The pod.
    pub(super) pod: &'p Pod,
    /// The launch token.
    pub(super) token: &'p str,
}

/// The kept log of a launch.
pub(super) fn of_launch(effects: &Effects, token: &str) -> KeptLog {
    KeptLog::new(&effects.store, note::directory(effects, token))
}

/// Brings kept logs up to what the pods have printed by now, several side by side. What each came to, in their order:
/// whether everything is kept that the pod will ever have printed.
pub(super) fn bring_up(
    site: &Site<'_>,
    wanted: &[Wanted<'_>],
    limit: Duration,
) -> Vec<Result<bool, Trouble>> {
    let logs: Vec<KeptLog> =
        wanted.iter().map(|wanted| of_launch(site.effects, wanted.token)).collect();
    let mut all: Vec<Result<bool, Trouble>> = wanted.iter().map(|_| Ok(true)).collect();
    let (mut places, mut questions) = (Vec::new(), Vec::new());
    for (place, (wanted, log)) in wanted.iter().zip(&logs).enumerate() {
        let uid = facts::uid(wanted.pod);
        if log.is_whole(uid) {
            continue;
        }
        places.push(place);
        questions.push(LogQuestion {
            pod: facts::name(wanted.pod),
            container: MAIN,
            since: log.since(uid),
            limit,
        });
    }
    if questions.is_empty() {
        return all;
    }
    let answers = site.namespace().logs(&questions);
    for (place, answer) in places.into_iter().zip(answers) {
        let (Some(wanted), Some(log)) = (wanted.get(place), logs.get(place)) else { continue };
        let kept = answer.and_then(|answer| {
            let mut stamped = Stamped::default();
            let mut lines = stamped.feed(&answer.body);
            // It was over before this was asked: nothing comes behind this, unless it was cut off.
            let is_all = facts::is_over(wanted.pod) && !answer.is_cut && answer.status == 200;
            lines.extend(stamped.rest().filter(|_| is_all));
            // A kubelet that cannot read a log says so in its place, as if that were it.
            if let Some(said) = stamped.aside() {
                log.keep(facts::uid(wanted.pod), (LogBegins::Anew, &lines), false)
                    .map_err(failed)?;
                return Err(Trouble::Failed(said.to_owned()));
            }
            let kept = log.keep(facts::uid(wanted.pod), (LogBegins::Anew, &lines), is_all);
            kept.map(|()| is_all).map_err(failed)
        });
        if let Some(of) = all.get_mut(place) {
            *of = kept;
        }
    }
    all
}

/// That something cannot be kept here.
#[expect(clippy::needless_pass_by_value, reason = "an error that is handed on")]
fn failed(error: StoreError) -> Trouble {
    Trouble::Failed(error.to_string())
}

/// Where the kept log of a launch lies.
pub(super) fn path(effects: &Effects, token: &str) -> PathBuf {
    of_launch(effects, token).text()
}

/// How far a kept log has come, and when it last grew; `None` where there is none.
pub(super) fn grown(effects: &Effects, token: &str) -> Option<(OutputMark, Timestamp)> {
    let stat = effects.store.disk().stat(&path(effects, token)).ok()?;
    let written = Timestamp::from_second(stat.modified.0);
    (stat.size > 0).then(|| (printed::mark(stat.size, written), written))
}

/// A piece of a kept log; `None` where there is none.
pub(super) fn chunk(effects: &Effects, token: &str, want: Want) -> std::io::Result<Option<Chunk>> {
    let disk = effects.store.disk();
    let path = path(effects, token);
    let size = match disk.stat(&path) {
        Ok(stat) => stat.size,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let (from, most) = match (want, printed::end(want)) {
        (Want::Kept { from, most }, _) => (from, most),
        (_, Some(most)) => (size.saturating_sub(most), u64::MAX),
        (_, None) => (0, u64::MAX),
    };
    let length = usize::try_from(size.saturating_sub(from).min(most)).unwrap_or(usize::MAX);
    let bytes = disk.read_at(&path, from, length)?;
    Ok(Some(printed::piece(bytes, from, want)))
}
