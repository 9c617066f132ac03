//! What Slurm says of one job in its own words, and the way to it for a person.

use tpu_core::model::job::Job;
use tpu_engine::runner::RunError;
use tpu_system::sys::clock::Clock;

use super::ask::{self, TimeLeft};
use super::client::ProgramCall;
use super::controller::Controller;
use super::ended::{self, Afterwards};
use super::facts;
use super::job_id::JobRef;
use super::listing::JobRow;
use super::states::{self, JobStage};
use super::{log, stop};

/// What Slurm says of a job: in one sentence, then in its own words.
pub(super) fn describe(controller: &Controller<'_>, job: &Job) -> Result<String, RunError> {
    let clock: &dyn Clock = &*controller.effects.clock;
    let budget = TimeLeft::new(clock, ask::LOOK);
    let known = JobRef::of(job);
    let table = controller.table(Some(&known), budget.left());
    let table = table.map_err(|why| controller.silent(&why))?;
    let Some(row) = table.find(&known) else { return afterwards(controller, job, &known, budget) };
    let fact = facts::of_row(job, row);
    let why = fact.reason.map(|why| format!(": {why}")).unwrap_or_default();
    let mut text = format!("{}{why}\n", row.state);
    if let Some(place) = place_in_line(controller, row, budget) {
        text += &place;
    }
    let id = stop::id(&known, row);
    let call = ProgramCall::new("scontrol", budget.left())
        .args(["--details", "show", "job"])
        .arg(id.to_string());
    match ask::ask(&*controller.client, &call) {
        Ok(told) => text += told.trim_end(),
        Err(why) => text += &why,
    }
    Ok(text + "\n")
}

/// The same for one that the controller does not know any more.
fn afterwards(
    controller: &Controller<'_>,
    job: &Job,
    known: &JobRef,
    budget: TimeLeft<'_>,
) -> Result<String, RunError> {
    let since =
        job.launch.as_ref().map_or_else(|| controller.effects.clock.now(), |launch| launch.at);
    match ended::ask(controller, std::slice::from_ref(known), since, budget).pop() {
        Some(Afterwards::Ended(end)) => {
            let fact = facts::of_end(job, &end);
            let why = fact.reason.map(|why| format!("; {why}")).unwrap_or_default();
            Ok(format!(
                "{}, exit code {}:{}, on {}{why}\n",
                end.word, end.code, end.signal, end.nodes
            ))
        }
        Some(Afterwards::Odd(word)) => Ok(format!("its accounting says {word}\n")),
        Some(Afterwards::Unanswered(why)) => Err(controller.silent(&why)),
        Some(Afterwards::Nothing) | None => Err(RunError::not_found(
            "Slurm does not know it, or not any more",
            "`tpu show` says what is known of it here",
        )),
    }
}

/// Which in its line it is, where it waits behind others.
fn place_in_line(
    controller: &Controller<'_>,
    row: &JobRow,
    budget: TimeLeft<'_>,
) -> Option<String> {
    if !matches!(row.reason.as_str(), "Priority" | "Resources") {
        return None;
    }
    let of_job = ProgramCall::new("squeue", budget.left())
        .args(["--noheader", "--all", "--format=%P"])
        .arg(format!("--jobs={}", row.base));
    let partition = ask::ask(&*controller.client, &of_job).ok()?.lines().next()?.trim().to_owned();
    let line = ProgramCall::new("squeue", budget.left())
        .args(["--noheader", "--all", "--states=PENDING", "--sort=-p,i", "--format=%A"])
        .arg(format!("--partition={partition}"));
    let line = ask::ask(&*controller.client, &line).ok()?;
    let place = line.lines().position(|id| id.trim().parse() == Ok(row.raw_id))?;
    Some(format!("number {} of those that wait in {partition}\n", place + 1))
}

/// The command that leads a person to a job: a shell beside it where Slurm allows one, else its log.
pub(super) fn attach(controller: &Controller<'_>, job: &Job) -> Result<Vec<String>, RunError> {
    if let Some(row) = at_work(controller, job)?
        && let Ok(words) = into(controller, &row, None)
    {
        return Ok(words);
    }
    let log = log::path(job).ok_or_else(|| {
        RunError::not_found(
            format!("{} has no log", job.id()),
            "`tpu show` says what is known of it",
        )
    })?;
    let mut words = ["tail", "-n", "1000", "-F"].map(str::to_owned).to_vec();
    words.push(log.to_string_lossy().into_owned());
    Ok(controller.client.at_terminal(&words))
}

/// A shell beside a job, on one of its nodes.
pub(super) fn shell(
    controller: &Controller<'_>,
    job: &Job,
    node: Option<&str>,
) -> Result<Vec<String>, RunError> {
    let row = at_work(controller, job)?.ok_or_else(|| {
        let what = format!("{} is not at work", job.id());
        RunError::refused(what, "`tpu check` shows how it is")
    })?;
    let nodes = facts::node_names(&row.nodes);
    if let Some(node) = node.filter(|node| nodes.iter().all(|known| known != node)) {
        let what = format!("{} is not at work on {node}", job.id());
        return Err(RunError::refused(what, format!("its nodes: {}", nodes.join(", "))));
    }
    into(controller, &row, node).map_err(|why| {
        let what = format!("Slurm allows no shell beside {}: {why}", job.id());
        RunError::refused(what, "`tpu logs -f` follows what it prints")
    })
}

/// The row of a job that is at work.
fn at_work(controller: &Controller<'_>, job: &Job) -> Result<Option<JobRow>, RunError> {
    let known = JobRef::of(job);
    let table = controller.table(Some(&known), ask::LOOK).map_err(|why| controller.silent(&why))?;
    let row = table.find(&known).filter(|row| states::stage(&row.state) == JobStage::Working);
    Ok(row.cloned())
}

/// The command that opens a shell beside a job, if Slurm allows one there.
fn into(
    controller: &Controller<'_>,
    row: &JobRow,
    node: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut into = vec![
        "--overlap".to_owned(),
        format!("--jobid={}", row.raw_id),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
    ];
    into.extend(node.map(|node| format!("--nodelist={node}")));
    let tried = ProgramCall::new("srun", ask::PATIENCE).args(into.clone()).arg("true");
    ask::ask(&*controller.client, &tried)?;
    let words = ["srun".to_owned()].into_iter().chain(into);
    let words: Vec<String> = words.chain(["--pty", "bash"].map(str::to_owned)).collect();
    Ok(controller.client.at_terminal(&words))
}
