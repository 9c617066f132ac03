//! Jobs as JSON: the schema that scripts rely on. A look at a thousand jobs is written as it is walked
//! through, without a tree of values in between.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value, json};

use crate::model::exit::Exit;
use crate::model::facts::{ErrorKind, Evidence, Phase, Progress};
use crate::model::ids::{JobNumber, TargetName, UserName};
use crate::model::rules::Rules;
use crate::model::time::Timestamp;
use crate::model::view::{JobView, MonitorHealth, Next, Orphan, Snapshot};

/// The document of `check --json`, as text.
pub(in crate::cli) fn snapshot(snapshot: &Snapshot) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        generated_at: String,
        jobs: Vec<Job<'a>>,
        orphans: &'a [Orphan],
        monitor: Value,
    }
    let document = Document {
        schema: 1,
        generated_at: snapshot.at.to_rfc3339(),
        jobs: snapshot.jobs.iter().map(Job::of).collect(),
        orphans: &snapshot.orphans,
        monitor: monitor(&snapshot.monitor),
    };
    serde_json::to_string(&document).unwrap_or_default()
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
    json!(Job::of(view))
}

/// One job, as it stands in a document.
#[derive(Serialize)]
struct Job<'a> {
    user: &'a UserName,
    window: JobNumber,
    lineage: &'a [JobNumber],
    leaf: bool,
    dir: Dir<'a>,
    target: &'a TargetName,
    target_unknown: Option<&'a str>,
    zone: Option<&'a str>,
    tags: Option<&'a str>,
    status: &'static str,
    error: Option<&'static str>,
    unknown: Option<&'a str>,
    phase: Option<Phase>,
    progress: Option<&'a Progress>,
    stage: u32,
    rule: Rule<'a>,
    monitor: bool,
    evidence: Option<&'a Evidence>,
    next: Option<&'a Next>,
    intent: Option<&'a str>,
    started_at: Option<String>,
    log_dir: Option<&'a str>,
    stage_dir: Option<&'a str>,
    exit_code: Option<i32>,
    window_alive: Option<bool>,
}

/// Slot and path of the working directory.
#[derive(Serialize)]
struct Dir<'a> {
    id: Option<u32>,
    path: &'a str,
}

impl<'a> Job<'a> {
    fn of(view: &'a JobView) -> Self {
        let JobView { shown, .. } = view;
        Self {
            user: &view.id.user,
            window: view.id.window,
            lineage: &view.lineage,
            leaf: view.leaf,
            dir: Dir { id: view.dir.0, path: &view.dir.1 },
            target: &view.target,
            target_unknown: view.target_unknown.as_deref(),
            zone: view.zone.as_deref(),
            tags: view.tags.as_deref(),
            status: shown.status.word().unwrap_or("starting"),
            error: shown.status.error().map(ErrorKind::as_str),
            unknown: shown.unknown.as_deref(),
            phase: shown.phase,
            progress: (!shown.progress.is_empty()).then_some(&shown.progress),
            stage: view.stage,
            rule: Rule(&view.rules),
            monitor: view.monitor,
            evidence: shown.evidence.as_ref(),
            next: view.next.as_ref(),
            intent: view.intent.as_deref(),
            started_at: view.started_at.map(Timestamp::to_rfc3339),
            log_dir: view.log_dir.as_deref(),
            stage_dir: view.stage_dir.as_deref(),
            exit_code: view.exit.map(Exit::code),
            window_alive: view.window_alive,
        }
    }
}

/// What happens after each kind of failure.
struct Rule<'a>(&'a Rules);

impl Serialize for Rule<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kinds = serializer.serialize_map(Some(ErrorKind::ALL.len()))?;
        for kind in ErrorKind::ALL {
            kinds.serialize_entry(kind.as_str(), self.0.action(kind).as_str())?;
        }
        kinds.end()
    }
}

/// Progress, or `null` if there is none.
pub(in crate::cli) fn progress(progress: &Progress) -> Value {
    if progress.is_empty() { Value::Null } else { json!(progress) }
}
