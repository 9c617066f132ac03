//! Jobs as JSON: the schema that scripts rely on.

use serde_json::{Map, Value, json};

use crate::model::facts::{ErrorKind, Progress};
use crate::model::view::{JobView, MonitorHealth, Snapshot};

/// The document of `check --json`.
pub(in crate::cli) fn snapshot(snapshot: &Snapshot) -> Value {
    json!({
        "generated_at": snapshot.at.to_rfc3339(),
        "jobs": snapshot.jobs.iter().map(job).collect::<Vec<_>>(),
        "orphans": snapshot.orphans,
        "monitor": monitor(&snapshot.monitor),
    })
}

/// Whether MONITOR runs, and how long ago it last turned.
fn monitor(health: &MonitorHealth) -> Value {
    match health {
        MonitorHealth::NotRunning => json!({ "running": false }),
        MonitorHealth::Running { turn_age_s } => {
            json!({ "running": true, "turn_age_s": turn_age_s })
        }
    }
}

/// One job.
pub(in crate::cli) fn job(view: &JobView) -> Value {
    let rules: Map<String, Value> = ErrorKind::ALL
        .into_iter()
        .map(|kind| (kind.as_str().to_owned(), json!(view.rules.action(kind).as_str())))
        .collect();
    json!({
        "user": view.id.user,
        "window": view.id.window,
        "lineage": view.lineage,
        "leaf": view.leaf,
        "dir": { "id": view.dir.0, "path": view.dir.1 },
        "target": view.target,
        "zone": view.zone,
        "tags": view.tags,
        "status": view.shown.status.word().unwrap_or("starting"),
        "error": view.shown.status.error().map(ErrorKind::as_str),
        "unknown": view.shown.unknown,
        "phase": view.shown.phase,
        "progress": progress(&view.shown.progress),
        "stage": view.stage,
        "rule": rules,
        "monitor": view.monitor,
        "evidence": view.shown.evidence,
        "next": view.next,
        "intent": view.intent,
        "started_at": view.started_at.map(crate::model::time::Timestamp::to_rfc3339),
        "log_dir": view.log_dir,
        "stage_dir": view.stage_dir,
        "exit_code": view.exit_code,
        "window_alive": view.window_alive,
    })
}

/// Progress, or `null` if there is none.
pub(in crate::cli) fn progress(progress: &Progress) -> Value {
    if progress.is_empty() { Value::Null } else { json!(progress) }
}
