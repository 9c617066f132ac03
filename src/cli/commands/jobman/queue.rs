//! `jobman queue`: the tasks of a file as JobMan shows them, and what can be done with them.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{JobmanQueue, Submit};
use crate::cli::commands::tasks::{TaskFile, submit_tasks};
use crate::cli::print::{Output, table::columns};
use tpu_core::model::data::Data;
use tpu_core::model::entry::Priority;
use tpu_core::model::facts::Origin;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, StartTime, Status};
use tpu_core::model::pattern;
use tpu_core::model::task::SubmittedTask;
use tpu_core::model::time::Zone;
use tpu_core::model::view::{JobView, Whose};
use tpu_core::plan::board::{Row, Standing, is_of};
use tpu_core::plan::types::TypeExpr;
use tpu_core::text::{counted, escape};
use tpu_jobfile::jobman::JobmanTask;
use tpu_ops::Error;
use tpu_ops::act::{board, outlook, record_facts};
use tpu_ops::observe::snapshot;
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_ops::waiting::queue::{edit, tasks};
use tpu_wire::jobman::{
    JobmanAcceleratorPart, JobmanAttemptPart, JobmanTaskPart, JobmanTasksDocument,
};
use tpu_wire::queue::SubmittedDocument;

/// Where JobMan looks for it.
const USUAL: &str = "queue_machines/tasks.yaml";

/// A task as it stands.
struct Task<'a> {
    id: &'a str,
    accelerator: &'a str,
    is_hidden: bool,
    most: u32,
    job: Option<&'a JobId>,
    state: &'static str,
    running: Vec<JobId>,
    attempts: Vec<Job>,
    /// Whether a rule brings it back, or may.
    comes_back: bool,
}

impl<'a> Task<'a> {
    /// One that was never begun.
    fn new(id: &'a str, accelerator: &'a str) -> Self {
        Self {
            id,
            accelerator,
            is_hidden: false,
            most: 1,
            job: None,
            state: NEW,
            running: Vec::new(),
            attempts: Vec::new(),
            comes_back: false,
        }
    }

    /// How often it was begun.
    fn runs(&self) -> usize {
        self.attempts.len()
    }

    /// How often its program has failed.
    fn fails(&self) -> u32 {
        let is_leaf = |job: &&Job| job.child.is_none();
        let fails = |job: &Job| {
            let of_leaf = match job.status {
                Status::Error(kind) => u32::from(is_programs(kind.origin())),
                _ => 0,
            };
            of_leaf + job.recovery.as_ref().map_or(0, |recovery| recovery.retried)
        };
        self.attempts.iter().filter(is_leaf).map(fails).sum()
    }

    fn is_done(&self) -> bool {
        self.state == DONE
    }
}

const DONE: &str = "DONE";
const FAILED: &str = "FAILED";
/// Of a task that was not submitted yet.
const NEW: &str = "NEW";

/// Whether it was the task that failed, as far as anybody knows, and not what it ran on.
fn is_programs(origin: Origin) -> bool {
    matches!(origin, Origin::Program | Origin::Unknown)
}

/// `jobman queue …`.
pub(super) fn queue(app: &App, args: &JobmanQueue) -> Outcome {
    let file = TaskFile::read(app, args.file.as_deref().unwrap_or(USUAL))?;
    if let Some(id) = &args.prioritize {
        return prioritize(app, &file, id);
    }
    let resets =
        args.reset.is_some() || args.reset_all || args.reset_failed || args.reset_pattern.is_some();
    if resets && !app.global.dry_run {
        write_ends(app, &file)?;
    }
    let whose = whose(app, &file)?;
    let memory = &mut snapshot::LookMemory::default();
    let look = shown::look(app.ctx()?, memory, &whose, WaitingMembers::Folded)?;
    // Read after the look: what has begun since is at work.
    let data = app.ctx()?.data()?;
    let all = tasks_of(app, (&data, &look.jobs), &file)?;
    if resets {
        return reset(app, args, &file, &all);
    }
    if args.cleanup {
        let text = "Nothing to clean up: nobody keeps a task who is gone.";
        return Ok(Output::new(text, &document(&file, &[], &all)));
    }
    match &args.task {
        Some(id) => {
            let task = all.iter().find(|task| task.id == id).ok_or_else(|| no_task(&file, id))?;
            Ok(Output::new(
                one(task, &app.zone(&data, None)?),
                &document(&file, &[], std::slice::from_ref(task)),
            ))
        }
        None => list(app, args, &file, &all),
    }
}

/// Those whose jobs are looked at: also of others who have submitted tasks of the file.
fn whose(app: &App, file: &TaskFile<'_>) -> Result<Whose, Error> {
    let data = app.ctx()?.data()?;
    let (asked, _) = app.requester()?.users_and_jobs_of_list(&[])?;
    if asked.named().is_empty() {
        return Ok(asked);
    }
    let others = file.all_submitted(&data).map(|task| &task.job.user);
    let others = others.filter(|user| data.user(user).is_some());
    Ok(Whose::of(asked.named().iter().chain(others).cloned()))
}

/// Writes down how attempts have ended of which the records do not know yet, where no daemon has done so: a task that
/// is to begin anew has ended by its record.
fn write_ends(app: &App, file: &TaskFile<'_>) -> Result<(), Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    if file.all_submitted(&data).any(|task| tasks::is_at_work(&data, &task.job)) {
        let memory = &mut snapshot::LookMemory::default();
        let survey = outlook::survey(ctx, memory, snapshot::ASKED_AT_MOST)?;
        record_facts::record_facts(ctx, &survey)?;
    }
    Ok(())
}

fn no_task(file: &TaskFile<'_>, id: &str) -> Error {
    let known = file.tasks.tasks.iter().map(|task| task.id.as_str());
    let hint = tpu_core::text::did_you_mean(id, known)
        .unwrap_or_else(|| format!("`tpu jobman queue {} --show-all` lists them", file.shown));
    Error::not_found(format!("there is no task {id} in {}", file.shown)).hint(hint)
}

/// The tasks of a file, and those that were submitted of it before and have gone from it since.
fn tasks_of<'a>(
    app: &App,
    (data, jobs): (&'a Data, &[JobView]),
    file: &'a TaskFile<'_>,
) -> Result<Vec<Task<'a>>, Error> {
    let mut all = Vec::new();
    for task in &file.tasks.tasks {
        let JobmanTask { id, accelerator, is_hidden, most, .. } = task;
        let of = Task { is_hidden: *is_hidden, most: *most, ..Task::new(id, accelerator) };
        all.push(match file.submitted(data, id) {
            Some(known) => stands(app, data, (of, known), jobs)?,
            None => of,
        });
    }
    for known in file.gone(data) {
        all.push(stands(app, data, (Task::new(&known.id, "-"), known), jobs)?);
    }
    Ok(all)
}

/// How a task stands that was submitted.
fn stands<'a>(
    app: &App,
    data: &Data,
    (task, known): (Task<'a>, &'a SubmittedTask),
    jobs: &[JobView],
) -> Result<Task<'a>, Error> {
    let mut attempts = tasks::attempts(app.ctx()?, data, &known.job)?;
    let is_attempt =
        |view: &&JobView| view.id == known.job || attempts.iter().any(|job| job.id() == view.id);
    let leaves: Vec<&JobView> =
        jobs.iter().filter(is_attempt).filter(|view| view.leaf && !view.is_queued()).collect();
    // As a look sees it; what nobody has looked at yet, by its record.
    for job in &mut attempts {
        if let Some(view) = leaves.iter().find(|view| view.id == job.id()) {
            job.status = view.shown.status.clone();
        }
    }
    let running: Vec<JobId> =
        attempts.iter().filter(|job| job.status.is_live()).map(Job::id).collect();
    let has_ended_well = known.is_done || attempts.iter().any(|job| job.status == Status::Finished);
    let state = if !running.is_empty() {
        "RUNNING"
    } else if has_ended_well {
        DONE
    } else {
        waits(data, &known.job, &attempts).unwrap_or_else(|| ended(&leaves, &attempts))
    };
    let comes_back = leaves.iter().any(|view| view.may_come_back());
    Ok(Task { job: Some(&known.job), state, running, attempts, comes_back, ..task })
}

/// How a task waits, if it does.
fn waits(data: &Data, id: &JobId, attempts: &[Job]) -> Option<&'static str> {
    let queues = data.queues();
    let goes_on = attempts.iter().find_map(|job| queues.successor_of(&job.id()));
    let entry = queues.entry(id).or(goes_on)?;
    Some(match entry {
        entry if entry.held.is_some() => "HELD",
        entry if !entry.after.is_empty() => "WAITING",
        entry if entry.succeeds.is_some() => "RETRY",
        entry if entry.priority > Priority::default() => "PRIORITY",
        _ => "PENDING",
    })
}

/// How a task has ended, or that it comes back by itself.
fn ended(leaves: &[&JobView], attempts: &[Job]) -> &'static str {
    if let Some(view) = leaves.iter().find(|view| view.may_come_back()) {
        let is_own = matches!(view.shown.status, Status::Error(kind) if is_programs(kind.origin()));
        return if is_own { "RETRY" } else { "INTERRUPTED" };
    }
    let has_failed = attempts.iter().any(|job| matches!(job.status, Status::Error(_)));
    if has_failed { FAILED } else { "STOPPED" }
}

/// The word of a task, with how many are at work on it.
fn word(task: &Task<'_>) -> String {
    match task.state {
        "RUNNING" => format!("RUNNING ({}/{})", task.running.len(), task.most),
        "RETRY" => format!("RETRY ({})", counted(task.fails() as usize, "failure")),
        state => state.to_owned(),
    }
}

fn list(app: &App, args: &JobmanQueue, file: &TaskFile<'_>, all: &[Task<'_>]) -> Outcome {
    let accelerators = accelerators(app, all)?;
    let mut text = String::new();
    for part in &accelerators {
        let JobmanAcceleratorPart { accelerator, working, idle, waiting, stopped } = part;
        text += &format!("{}\n", escape(accelerator));
        for (name, of) in [
            ("Working", working),
            ("Idle", idle),
            ("Waiting for TPU", waiting),
            ("Stopped", stopped),
        ] {
            let names = if of.is_empty() { "-".to_owned() } else { of.join(", ") };
            text += &format!("  {name}: {}\n", escape(&names));
        }
    }
    let is_shown = |task: &&Task<'_>| match (args.done, args.show_all) {
        (true, _) => task.is_done(),
        (false, all) => all || !task.is_hidden,
    };
    let shown: Vec<&Task<'_>> = all.iter().filter(is_shown).collect();
    let head = ["Task ID", "Accelerator", "Status", "Job", "Running Jobs", "Runs", "Fails"];
    let cells = |task: &&Task<'_>| {
        let running: Vec<String> = task.running.iter().map(|job| job.window.to_string()).collect();
        vec![
            escape(task.id).into_owned(),
            escape(task.accelerator).into_owned(),
            word(task),
            task.job.map_or_else(|| "-".to_owned(), ToString::to_string),
            if running.is_empty() { "-".to_owned() } else { running.join(", ") },
            task.runs().to_string(),
            task.fails().to_string(),
        ]
    };
    text += &columns(&head, &shown.iter().map(cells).collect::<Vec<_>>());
    let hidden = all.iter().filter(|task| task.is_hidden).count();
    if hidden > 0 && !args.show_all && !args.done {
        text += &format!("{} hidden: --show-all\n", counted(hidden, "task"));
    }
    if all.iter().any(|task| task.state == NEW) {
        text += &format!("to queue NEW tasks: tpu submit {}\n", file.shown);
    }
    Ok(Output::new(text, &document(file, &accelerators, all)))
}

/// What is there of each accelerator.
fn accelerators(app: &App, all: &[Task<'_>]) -> Result<Vec<JobmanAcceleratorPart>, Error> {
    let board = board::look(app.ctx()?)?;
    let mut names: Vec<&str> = Vec::new();
    for task in all.iter().filter(|task| task.accelerator != "-") {
        if !names.contains(&task.accelerator) {
            names.push(task.accelerator);
        }
    }
    let part = |name: &&str| {
        let of = TypeExpr::parse(name);
        let is_meant = |row: &&Row| match &of {
            Some(of) => is_of(row, std::slice::from_ref(of), None),
            None => row.target.as_str() == *name || row.aliases.iter().any(|alias| alias == name),
        };
        let rows: Vec<&Row> = board.to_be_had().filter(is_meant).collect();
        let that = |are: &[Standing]| {
            let of = rows.iter().filter(|row| are.contains(&row.standing));
            of.map(|row| row.label.clone()).collect()
        };
        JobmanAcceleratorPart {
            accelerator: (*name).to_owned(),
            working: that(&[Standing::Running]),
            idle: that(&[Standing::Free, Standing::Reserved]),
            waiting: that(&[Standing::Creating]),
            stopped: that(&[Standing::Gone, Standing::Error, Standing::Unknown]),
        }
    };
    Ok(names.iter().map(part).collect())
}

/// One task with its attempts.
fn one(task: &Task<'_>, zone: &Zone) -> String {
    let mut text = format!("{}: {}\n", escape(task.id), word(task));
    text += &format!("{}, {} failed\n", counted(task.runs(), "run"), task.fails());
    for job in &task.attempts {
        let ended = job.launch.as_ref().and_then(|launch| launch.ended);
        let ended = ended.map_or_else(|| "-".to_owned(), |at| zone.stamp(at));
        let began = match &job.start_time {
            StartTime::At(at) => zone.stamp(*at),
            StartTime::Unset | StartTime::Original(_) => "-".to_owned(),
        };
        let log = job.log_dir.as_deref().unwrap_or("-");
        text +=
            &format!("  {}  {began} to {ended}  {}  {}\n", job.windows_id, job.status, escape(log));
    }
    text
}

/// Lets a task that waits begin before the others.
fn prioritize(app: &App, file: &TaskFile<'_>, id: &str) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let known = file.submitted(&data, id).ok_or_else(|| no_task(file, id))?;
    let waits = data.queues().entry(&known.job);
    let waits = waits.or_else(|| data.queues().successor_of(&known.job));
    let Some(entry) = waits else {
        return Err(Error::refused(format!("task {id} is {}, which does not wait", known.job))
            .hint(format!("`tpu jobman queue {}` says how it is", file.shown)));
    };
    let most = Priority::parse("100").unwrap_or_default();
    if app.global.dry_run {
        return Ok(Output::would(&format!("let {id} begin before the others")));
    }
    edit::set_priority(ctx, &[entry.id()], most)?;
    let text = format!("{id} ({}) begins before the others.", entry.id());
    Ok(Output::new(text, &document(file, &[], &[])))
}

/// Lets tasks begin anew that were submitted and have ended.
fn reset(app: &App, args: &JobmanQueue, file: &TaskFile<'_>, all: &[Task<'_>]) -> Outcome {
    let is_meant: Box<dyn Fn(&Task<'_>) -> bool> = match (&args.reset, &args.reset_pattern) {
        (Some(id), _) => {
            if !file.tasks.tasks.iter().any(|task| task.id == *id) {
                return Err(no_task(file, id));
            }
            Box::new(move |task| task.id == id)
        }
        (None, Some(glob)) => Box::new(move |task| pattern::is_like(task.id, glob)),
        (None, None) if args.reset_failed => Box::new(|task| task.state == FAILED),
        (None, None) => Box::new(|_| true),
    };
    // What has gone from the file cannot begin anew.
    let stands = |id: &str| file.tasks.tasks.iter().any(|task| task.id == id);
    let meant: Vec<&Task<'_>> =
        all.iter().filter(|task| task.job.is_some() && stands(task.id) && is_meant(task)).collect();
    // What is under way, or comes back by itself, goes on as it is: it would run twice.
    let data = app.ctx()?.data()?;
    let is_open = |task: &&&Task<'_>| {
        let is_known_open = task.job.is_some_and(|job| tasks::is_open(&data, job));
        task.comes_back || !task.running.is_empty() || is_known_open
    };
    let open: Vec<&str> = meant.iter().filter(is_open).map(|task| task.id).collect();
    let mut notes = Vec::new();
    if let (Some(id), false) = (&args.reset, open.is_empty()) {
        let known = file.submitted(&data, id).ok_or_else(|| no_task(file, id))?;
        return Err(tasks::still_open(known));
    }
    if !open.is_empty() {
        notes.push(format!("under way, and left so: {}", open.join(", ")));
    }
    let ended = meant.iter().filter(|task| !open.contains(&task.id));
    let anew: Vec<String> = ended.map(|task| task.id.to_owned()).collect();
    if anew.is_empty() {
        let what = if args.reset_failed { "has failed" } else { "is meant" };
        let document = SubmittedDocument { jobs: Vec::new(), started: Vec::new() };
        let text = format!("No task of {} {what}.", file.shown);
        return Ok(Output::new(text, &document).notes(notes));
    }
    let args = Submit::default();
    Ok(submit_tasks(app, &args, file, &anew)?.notes(notes))
}

fn document<'a>(
    file: &'a TaskFile<'_>,
    accelerators: &'a [JobmanAcceleratorPart],
    all: &'a [Task<'a>],
) -> JobmanTasksDocument<'a> {
    JobmanTasksDocument { file: &file.file, accelerators, tasks: all.iter().map(part).collect() }
}

fn part<'a>(task: &'a Task<'_>) -> JobmanTaskPart<'a> {
    let attempt = |job: &'a Job| JobmanAttemptPart {
        window: job.windows_id,
        status: job.status.to_string(),
        log_dir: job.log_dir.as_deref(),
    };
    JobmanTaskPart {
        id: task.id,
        accelerator: task.accelerator,
        state: task.state,
        job: task.job.map(ToString::to_string),
        running: task.running.iter().map(|job| job.window).collect(),
        runs: task.runs(),
        fails: task.fails(),
        hidden: task.is_hidden,
        attempts: task.attempts.iter().map(attempt).collect(),
    }
}
