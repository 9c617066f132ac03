//! Jobs as JobMan lists them.

use std::collections::BTreeMap;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::{Output, block, table::columns};
use tpu_core::model::data::Data;
use tpu_core::model::facts::{ErrorKind, TargetFact};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Status;
use tpu_core::model::lineage::Lineage;
use tpu_core::model::time::Zone;
use tpu_core::model::view::JobView;
use tpu_core::text::{counted, escape};
use tpu_ops::Error;
use tpu_ops::observe::fleet::ProviderFacts;
use tpu_ops::observe::snapshot;
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_wire::jobman::{JobmanCoresPart, JobmanJobPart, JobmanJobsDocument};

use super::called::{self, padded};

/// What of a job is listed.
struct Row {
    id: String,
    job: JobView,
    accelerator: Option<String>,
    zone: Option<String>,
    host0: Option<String>,
    state: &'static str,
}

/// `jobman list`.
pub(super) fn list(app: &App) -> Outcome {
    let rows = rows(app)?;
    let head = ["Job ID", "User", "Name", "Accelerator", "Zone", "Host0 IP", "Status", "Now"];
    let cells = |row: &Row| {
        vec![
            row.id.clone(),
            escape(row.job.id.user.as_str()).into_owned(),
            shown_or_dash(row.job.name.as_deref()),
            shown_or_dash(row.accelerator.as_deref()),
            shown_or_dash(row.zone.as_deref()),
            shown_or_dash(row.host0.as_deref()),
            row.state.to_owned(),
            block::status(&row.job),
        ]
    };
    let mut text = match rows.as_slice() {
        [] => "No jobs. As in: tpu jobman create config.yaml\n".to_owned(),
        rows => columns(&head, &rows.iter().map(cells).collect::<Vec<_>>()),
    };
    for (zone, cores) in cores(&rows) {
        text += &format!("{zone}: {}\n", counted(usize::try_from(cores).unwrap_or(0), "core"));
    }
    Ok(Output::new(text, &document(&rows)))
}

/// `jobman status [ID]`.
pub(super) fn status(app: &App, id: Option<&str>) -> Outcome {
    let called = id.map(|id| called::one(app, id)).transpose()?;
    let mut rows = rows(app)?;
    if let Some(called) = &called {
        rows.retain(|row| row.id == called.padded() && row.job.id.user == called.id.user);
    }
    let data = app.ctx()?.data()?;
    let zone: Zone = app.zone(&data, None)?;
    let head = ["Job ID", "Name", "Status", "Start Time", "Notes"];
    let cells = |row: &Row| {
        let began = row.job.started_at.map(|at| zone.stamp(at));
        vec![
            row.id.clone(),
            shown_or_dash(row.job.name.as_deref()),
            row.state.to_owned(),
            began.unwrap_or_else(|| "-".to_owned()),
            block::status(&row.job),
        ]
    };
    let text = match rows.as_slice() {
        [] => "No jobs. As in: tpu jobman create config.yaml\n".to_owned(),
        rows => columns(&head, &rows.iter().map(cells).collect::<Vec<_>>()),
    };
    Ok(Output::new(text, &document(&rows)))
}

/// One row for each job: its newest attempt, or what waits for it.
fn rows(app: &App) -> Result<Vec<Row>, Error> {
    let ctx = app.ctx()?;
    let (whose, _) = app.requester()?.users_and_jobs_of_list(&[])?;
    let memory = &mut snapshot::LookMemory::default();
    let look = shown::look(ctx, memory, &whose, WaitingMembers::Folded)?;
    let data = ctx.data()?;
    let asked = ProviderFacts::ask(ctx);
    let row = |job: JobView| {
        let target = data.target(&job.target);
        let fact = asked.fact(&data, &job.target).with_registered(target.as_ref());
        Row {
            id: padded(first(&data, &job.id).window),
            accelerator: fact.accelerator.clone(),
            zone: fact.zone.clone().or_else(|| job.zone.clone()),
            host0: first_address(&fact),
            state: state(&job),
            job,
        }
    };
    let mut rows: Vec<Row> = look.jobs.into_iter().filter(|job| job.leaf).map(row).collect();
    // Whoever goes on from one that waits stands in its place.
    let waiting: Vec<String> =
        rows.iter().filter(|row| row.job.is_queued()).map(|row| row.id.clone()).collect();
    rows.retain(|row| row.job.is_queued() || !waiting.contains(&row.id));
    rows.sort_unstable_by(|a, b| (&a.job.id.user, &a.id).cmp(&(&b.job.id.user, &b.id)));
    Ok(rows)
}

/// The number that a job keeps.
fn first(data: &Data, id: &JobId) -> JobId {
    let succeeds = data.queues().entry(id).and_then(|entry| entry.succeeds.map(|of| of.job));
    let window = succeeds.unwrap_or(id.window);
    let lineage = data.user(&id.user).and_then(|user| Lineage::of(user, window));
    let window = lineage.and_then(|lineage| lineage.windows.first().copied()).unwrap_or(window);
    JobId::new(id.user.clone(), window)
}

fn first_address(fact: &TargetFact) -> Option<String> {
    fact.endpoints.first().filter(|address| !address.is_empty()).cloned()
}

/// How a job is in JobMan's words (`.job_status` and what its `list` shows).
fn state(job: &JobView) -> &'static str {
    let comes_back = job.may_come_back();
    match &job.shown.status {
        _ if job.shown.unknown.is_some() => "UNKNOWN",
        _ if job.is_queued() => "QUEUEING",
        status if status.is_live() => "RUNNING",
        Status::Error(_) if comes_back => "QUEUEING",
        Status::Error(ErrorKind::Preempted) => "PREEMPTED",
        Status::Error(ErrorKind::Setup) => "PREFIX_FAIL",
        Status::Error(_) => "DEAD",
        _ => "IDLE",
    }
}

/// Cores at work, by zone: by the names of the accelerator types, as JobMan counts them.
fn cores(rows: &[Row]) -> BTreeMap<String, u64> {
    let mut cores = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(row.state, "RUNNING" | "IDLE" | "QUEUEING")) {
        let count = row.accelerator.as_deref().and_then(|name| name.rsplit_once('-'));
        let count = count.and_then(|(_, count)| count.parse::<u64>().ok());
        if let (Some(zone), Some(count)) = (&row.zone, count) {
            *cores.entry(zone.clone()).or_default() += count;
        }
    }
    cores
}

fn document(rows: &[Row]) -> JobmanJobsDocument<'_> {
    let cores = cores(rows).into_iter().map(|(zone, cores)| JobmanCoresPart { zone, cores });
    JobmanJobsDocument { jobs: rows.iter().map(part).collect(), cores: cores.collect() }
}

fn part(row: &Row) -> JobmanJobPart<'_> {
    let Row { id, job, accelerator, zone, host0, state } = row;
    JobmanJobPart {
        id,
        window: job.id.window,
        user: &job.id.user,
        name: job.name.as_deref(),
        accelerator: accelerator.as_deref(),
        zone: zone.as_deref(),
        host0: host0.as_deref(),
        state,
        status: job.shown.word(),
    }
}

fn shown_or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| escape(text).into_owned())
}
