//! The run at Weights & Biases to which a job logs, as that says in what the job prints (wandb 0.31.0).

use std::sync::LazyLock;

use regex::bytes::Regex;

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::variables::TRACKED_RUN;
use tpu_engine::runner::environment;

use super::logs;
use crate::Ctx;
use crate::base::ctx::job_of;

/// So many bytes are read of the beginning of the output, where a run says who it is. It says so at its end again.
const BEGINNING: u64 = 256 * 1024;

/// `wandb: Run data is saved locally in …/wandb/run-20261130_112401-v08xhtmm`, with `offline-` before it where nothing is
/// sent; and `wandb: 🚀 View run at https://wandb.ai/ENTITY/PROJECT/runs/v08xhtmm`. With or without colours.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let says = r"(?m)(?:^|\s|\x1b\[[\d;]*m)wandb(?:\x1b\[[\d;]*m)*: .*?";
    let run = r"(?:/(?:offline-)?run-\d{8}_\d{6}-|(https?://[^\s\x1b]+/runs/))([^\s/\x1b]+)";
    Regex::new(&format!("{says}{run}")).expect("the patterns above are valid")
});

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TrackedRun {
    /// Its id, by which it goes on (`WANDB_RUN_ID`).
    id: String,
    /// Where it is seen; none where nothing is sent.
    link: Option<String>,
}

/// Where the run of a job is seen; `None` where it logs to none or to several, or where that cannot be read.
pub fn link(ctx: &Ctx, id: &JobId) -> Option<String> {
    match runs(ctx, job_of(&*ctx.data().ok()?, id).ok()?)?.as_slice() {
        [only] => only.link.clone(),
        _ => None,
    }
}

/// The id of the run with which a successor goes on: the only one of the job; of one that has named none that with which it
/// was to go on itself.
pub(crate) fn to_go_on(ctx: &Ctx, job: &Job) -> Option<String> {
    match runs(ctx, job)?.as_slice() {
        [] => {
            let kept = environment::kept(ctx, &job.id())?;
            let named = kept.into_iter().find(|(name, _)| name == TRACKED_RUN[0]);
            named.and_then(|(_, id)| id.into_string().ok())
        }
        [only] => Some(only.id.clone()),
        _ => None,
    }
}

/// The runs of a job, as far as it has named them.
fn runs(ctx: &Ctx, job: &Job) -> Option<Vec<TrackedRun>> {
    let (beginning, next) = logs::piece(ctx, &job.id(), 0, BEGINNING).ok()??;
    let is_more = next >= BEGINNING;
    let end = if is_more { logs::tail_of_output(ctx, job, 0) } else { None };
    Some(read(&[&beginning, &end.unwrap_or_default()]))
}

fn read(printed: &[&[u8]]) -> Vec<TrackedRun> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut runs: Vec<TrackedRun> = Vec::new();
    for named in printed.iter().flat_map(|part| NAMED.captures_iter(part)) {
        let id = named.get(2).map(|id| text(id.as_bytes())).unwrap_or_default();
        let link = named.get(1).map(|start| text(start.as_bytes()) + &id);
        match runs.iter_mut().find(|known| known.id == id) {
            Some(known) => known.link = known.link.take().or(link),
            None => runs.push(TrackedRun { id, link }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, link: Option<&str>) -> TrackedRun {
        TrackedRun { id: id.to_owned(), link: link.map(str::to_owned) }
    }

    #[test]
    fn runs_are_known_by_what_they_say_of_themselves() {
        let saved =
            "wandb: Run data is saved locally in /x/wandb/offline-run-20261130_112401-v08xhtmm\n";
        let logs = "wandb: Find logs at: ./wandb/offline-run-20261130_112401-v08xhtmm/logs\n";
        assert_eq!(read(&[saved.as_bytes(), logs.as_bytes()]), [run("v08xhtmm", None)]);
        let link = "https://wandb.ai/a/b/runs/res.net-v2";
        let coloured = "[worker 0] \x1b[34m\x1b[1mwandb\x1b[0m: 🚀 View run x at: \x1b[34m";
        let seen = format!("step 1\n{coloured}{link}\x1b[0m\n");
        assert_eq!(read(&[seen.as_bytes()]), [run("res.net-v2", Some(link))]);
        let both = [run("res.net-v2", Some(link)), run("v08xhtmm", None)];
        assert_eq!(read(&[seen.as_bytes(), saved.as_bytes()]), both);
        for words in [
            "see https://wandb.ai/a/b/runs/other",
            "wandb_utils: restoring /x/wandb/run-20250101_101010-oldid/files",
            "wandb: Syncing run lively-dew-1",
        ] {
            assert_eq!(read(&[words.as_bytes()]), [], "{words}");
        }
    }
}
