//! The daemon that a command starts by itself, where something that it has begun depends on one: a rule that acts, a place
//! in a queue, a notice. It is called when everything is written down, and never makes its command fail.

use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::notify::Receiver;
use tpu_core::model::rules::Action;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::time::Timestamp;
use tpu_core::model::variables;

use crate::Ctx;
use crate::act::service::{self, How, RunningDaemon};
use crate::base::{another_tpu, watch};
use crate::waiting::words::nobody_starts;

/// How long a command waits for the daemon that it starts. It begins in a fraction of that, and does so all the same if
/// nobody waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was done about the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Autostart {
    /// What is to be said.
    pub notes: Vec<String>,
    /// What was said before, and is not so any more.
    pub outdated: Vec<String>,
}

/// What depends on the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    job: JobId,
    what: What,
    /// The targets that are meant for it, by name.
    target: Option<TargetName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It waits in a queue.
    Waits,
    /// A rule or a retry brings it back.
    ComesBack,
    /// Somebody is told of it.
    IsTold,
}

impl Need {
    /// What the daemon does.
    fn in_words(&self) -> String {
        let job = &self.job;
        match self.what {
            What::Waits => format!("starts {job} when there is room"),
            What::ComesBack => format!("restarts {job} after failures, by its rule"),
            What::IsTold => format!("sends the notices about {job}"),
        }
    }
}

/// Starts the daemon where something depends on it of what has begun since then, and what waits. `flags` are the global
/// flags that it is to have.
pub fn attend(ctx: &Ctx, since: Timestamp, flags: &[String]) -> Autostart {
    let runs = watch::running(ctx);
    if ctx.store.is_dry_run() || runs.is_some() {
        let notes = runs.as_ref().and_then(another_tpu::of_daemon).into_iter().collect();
        return Autostart { notes, ..Autostart::default() };
    }
    let Ok(data) = ctx.data() else { return Autostart::default() };
    let wants = |need: &Need| {
        let settings = ctx.settings(data.user(&need.job.user));
        settings.is_ok_and(|settings| settings.daemon_autostart)
    };
    let Some(need) =
        first_of(needs(ctx, &data, since), wants, |need| is_at_login_node(ctx, &data, need))
    else {
        return Autostart::default();
    };
    let need = &need;
    let outdated = nobody_starts(ctx);
    let how = How { flags: flags.to_vec(), ends_idle: true, ..How::default() };
    let note = match why_not(ctx, &data, need) {
        Some(why) => Some(by_hand(need, &why)),
        None => match service::start_within(ctx, &how, PATIENCE) {
            Ok(runs) => started(ctx, need, runs.as_ref()),
            Err(error) => Some(by_hand(need, &error.message)),
        },
    };
    Autostart { notes: note.into_iter().collect(), outdated }
}

/// The need for which the daemon is started: the first one of a user who wants that. On a login node it is started for what
/// runs elsewhere, if anything does.
fn first_of(
    needs: Vec<Need>,
    wants: impl Fn(&Need) -> bool,
    is_at_login_node: impl Fn(&Need) -> bool,
) -> Option<Need> {
    let mut needs: Vec<Need> = needs.into_iter().filter(wants).collect();
    let elsewhere = needs.iter().position(|need| !is_at_login_node(need));
    (!needs.is_empty()).then(|| needs.swap_remove(elsewhere.unwrap_or_default()))
}

/// What to type where it is not started.
fn by_hand(need: &Need, why: &str) -> String {
    let what = need.in_words();
    format!("only the daemon {what}; it was not started, because {why}: tpu daemon start")
}

/// That it was started. Where another command did so meanwhile, that has said it.
fn started(ctx: &Ctx, need: &Need, runs: Option<&RunningDaemon>) -> Option<String> {
    let process = match runs {
        Some(runs) if runs.ran_before => return None,
        Some(runs) => format!("started the daemon (process {})", runs.pid),
        None => "the daemon is starting (see: tpu daemon status)".to_owned(),
    };
    let said = format!("{process}: it {}", need.in_words());
    Some(if is_first(ctx) {
        format!(
            "{said}, and stops after an hour without work; `tpu daemon stop` stops it now, \
             `tpu set-settings daemon_autostart False` forbids it"
        )
    } else {
        said
    })
}

/// Whether it is started so for the first time here.
fn is_first(ctx: &Ctx) -> bool {
    let mark = ctx.store.paths().daemon_autostarted(&watch::place(ctx));
    ctx.store.disk().create(&mark, b"", 0o660).is_ok()
}

/// What depends on the daemon: first what waits, then what comes back, then what somebody is told of.
fn needs(ctx: &Ctx, data: &Data, since: Timestamp) -> Vec<Need> {
    let place = watch::place(ctx);
    let waits = data.queues().entries.iter().filter(|entry| {
        // Who waits at a terminal begins it himself.
        entry.held.is_none() && entry.keeper.is_none() && entry.place == place
    });
    // What an engine runs has no place.
    let is_here = |job: &Job| {
        let place = job.place.as_ref();
        place.is_none_or(|at| at.host == ctx.env.hostname && at.uid == ctx.env.uid)
    };
    let began = |job: &&Job| {
        let at = job.launch.as_ref().map(|launch| launch.at);
        job.child.is_none() && at.is_some_and(|at| at >= since) && is_here(job)
    };
    let new: Vec<&Job> = data.jobs().filter(began).collect();
    let of = |job: &Job, what| Need { job: job.id(), what, target: Some(job.tpu.clone()) };
    let come_back = new.iter().filter(|job| comes_back(job)).map(|job| of(job, What::ComesBack));
    let told = new.iter().filter(|job| is_told(ctx, data, job)).map(|job| of(job, What::IsTold));
    waits.map(|entry| of_entry(data, entry)).chain(come_back).chain(told).collect()
}

fn of_entry(data: &Data, entry: &QueueEntry) -> Need {
    let target = match &entry.spec.target {
        TargetRequest::Named(name) => data.resolve_target(name).map(|target| target.name),
        TargetRequest::Any(_) => None,
    };
    Need { job: entry.id(), what: What::Waits, target }
}

/// Whether something brings this attempt back that may fail yet, or has just done so.
fn comes_back(job: &Job) -> bool {
    let may_fail = job.status.is_live() || matches!(job.status, Status::Error(_));
    let acts = job.rules.iter().any(|(_, action)| action != Action::Pass);
    let retries = job.execution().is_some_and(|of| of.retry.is_some());
    may_fail && job.monitor && (acts || retries)
}

/// Whether anybody is told of what happens to it.
fn is_told(ctx: &Ctx, data: &Data, job: &Job) -> bool {
    let is_anybody = |all: &Option<Vec<Receiver>>| all.as_ref().is_some_and(|all| !all.is_empty());
    let of_user = |name: &UserName| {
        ctx.settings(data.user(name)).is_ok_and(|settings| is_anybody(&settings.notify))
    };
    job.execution().is_some_and(|of| is_anybody(&of.notify)) || of_user(&job.user)
}

/// Why a command does not start a daemon here by itself, if it does not.
fn why_not(ctx: &Ctx, data: &Data, need: &Need) -> Option<String> {
    if variables::claiming().any(|name| ctx.env.non_empty(name).is_some()) {
        return Some("this is a job".to_owned());
    }
    if ctx.env.non_empty("CI").is_some_and(|value| !["0", "false"].contains(&value)) {
        return Some("CI is set".to_owned());
    }
    is_at_login_node(ctx, data, need).then(|| "this is a login node".to_owned())
}

/// Whether this machine is the login node of the target that is meant.
fn is_at_login_node(ctx: &Ctx, data: &Data, need: &Need) -> bool {
    let target = need.target.as_ref();
    let kind = target.and_then(|name| data.target(name));
    let kind = kind.as_ref().and_then(|target| ctx.kinds.of(target).ok());
    let registration = target.and_then(|name| data.registration(name));
    kind.is_some_and(|kind| kind.is_at_login_node(registration, &ctx.env))
}

#[cfg(test)]
mod tests {
    use tpu_core::model::ids::JobNumber;

    use super::*;

    fn need(user: &str, number: u32, target: &str) -> Need {
        let job = JobId::new(user.into(), JobNumber(number));
        Need { job, what: What::ComesBack, target: Some(target.into()) }
    }

    #[test]
    fn it_is_started_for_the_first_who_wants_it_and_on_a_login_node_for_what_runs_elsewhere() {
        let all = || vec![need("alice", 1, "slurm"), need("bob", 1, "slurm"), need("bob", 2, "h1")];
        let is_slurm = |need: &Need| need.target == Some("slurm".into());
        let of = |name: &'static str| move |need: &Need| need.job.user.as_str() == name;
        assert_eq!(first_of(all(), |_| true, |_| false), Some(need("alice", 1, "slurm")));
        assert_eq!(first_of(all(), of("bob"), |_| false), Some(need("bob", 1, "slurm")));
        assert_eq!(first_of(all(), |_| true, is_slurm), Some(need("bob", 2, "h1")));
        assert_eq!(first_of(all(), of("alice"), is_slurm), Some(need("alice", 1, "slurm")));
        assert_eq!(first_of(all(), |_| false, |_| false), None, "nobody wants it");
    }
}
