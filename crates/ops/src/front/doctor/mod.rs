//! `doctor`: looks over tmux, the data file, the records and what dead processes left; every finding names
//! its remedy. What has the remedy [`FIX`] is gone after it.

mod accounts;
mod board;
mod fix;
mod left;
mod machine;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::base::ctx::how_to_begin;
use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::{CLEANING, Job, who};
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::target::LOCAL;
use tpu_core::model::view::{JobView, Whose};
use tpu_core::model::words::words;
use tpu_core::model::{audit, lineage, login, time};
use tpu_core::text::counted;
use tpu_system::store::{StoreError, original};
use tpu_system::sys::{files, threads};

use crate::act::{notices, outlook};
use crate::base::{scripts, watch};
use crate::observe::snapshot;
use crate::{Ctx, Error};
use left::Begun;

pub use fix::fix;

/// The remedy of what needs no person's judgement.
const FIX: &str = "tpu doctor --fix";

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// Works, and should be looked at.
    Warning,
    /// Something cannot work.
    Broken,
}

// The best first.
words! {
    /// The word that people see.
    Severity {
        Fine: "ok",
        Warning: "warn",
        Broken: "fail",
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is so.
    pub what: String,
    /// What to do.
    pub remedy: Option<String>,
}

pub(super) fn fine(what: impl Into<String>) -> Finding {
    Finding { severity: Severity::Fine, what: what.into(), remedy: None }
}

pub(super) fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { severity: Severity::Warning, what: what.into(), remedy: Some(remedy.into()) }
}

/// Looks everything over. Changes nothing.
pub fn look(ctx: &Ctx) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tmux = ctx.tmux.look();
    let unusable = machine::unusable_tmux(ctx);
    findings.push(unusable.unwrap_or_else(|| match &tmux {
        TmuxFact::Up { place, panes } => {
            fine(format!("tmux answers on {} ({})", place.socket, counted(panes.len(), "pane")))
        }
        TmuxFact::Down { place } => {
            fine(format!("no tmux server on {}; `tpu run` starts one", place.socket))
        }
        TmuxFact::Unknown { reason } => machine::silent_tmux(reason),
    }));
    machine::disks(ctx, &mut findings);
    accounts::look(ctx, &mut findings);
    original(ctx, &mut findings);
    settings(ctx, &mut findings);
    in_vain(ctx, &mut findings);
    untold(ctx, &mut findings);
    match ctx.store.read() {
        Ok(data) => {
            findings.push(fine(format!(
                "{} holds {} and {}",
                ctx.store.paths().data().display(),
                counted(data.users().len(), "user"),
                counted(data.jobs().count(), "job")
            )));
            if let Err(error) = ctx.store.may_write() {
                findings.push(broken(&error));
            }
            let lost = left::lost_fathers(ctx, &data);
            let flaws = audit::audit(&data, &|id| lost.contains(id));
            findings.extend(flaws.iter().map(|flaw| warning(flaw.to_string(), FIX)));
            findings.extend(audit::dead_ends(&data).iter().map(|id| {
                let what = format!("{id} says that another attempt continues it, and none does");
                warning(what, FIX)
            }));
            sessions(&data, &mut findings);
            users(ctx, &data, &mut findings);
            held(ctx, &data, &mut findings);
            findings.extend(starts_all_at_once(&data));
            logins(&data, &mut findings);
            windows(ctx, &tmux, &mut findings);
            machine::logs(ctx, &data, &mut findings);
            findings.extend(left::copies(ctx).unwrap_or_default().iter().map(|copy| {
                let path = copy.path.display();
                warning(format!("{path} is a copy of code that no record names"), FIX)
            }));
            board::look(ctx, &data, &mut findings);
            starts_twice(&data, &mut findings);
        }
        Err(error @ StoreError::Missing { .. }) => {
            findings.push(warning(
                error.to_string(),
                "type this in the directory of your code: tpu init",
            ));
        }
        Err(error) => findings.push(broken(&error)),
    }
    findings
}

/// That the data file cannot be read or written.
fn broken(error: &StoreError) -> Finding {
    Finding { severity: Severity::Broken, what: error.to_string(), remedy: error.hint() }
}

/// The lock of the original beside the file.
fn original(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let path = ctx.store.paths().original_lock();
    let Some(flag) = original::look(&**ctx.store.disk(), &path, ctx.clock.now()) else { return };
    let by = flag.user.map(|user| format!(" by {user}")).unwrap_or_default();
    let age = time::age(flag.age_s);
    findings.push(if flag.age_s < original::STALE_S {
        warning(
            format!("the original holds its lock{by} for {age}: changes wait for it"),
            "wait until its command has ended; the original's own `tpu unlock data` clears it",
        )
    } else {
        warning(
            format!("the original's lock is left over{by} for {age}; tpu takes no notice of it"),
            "the original waits for it: its own `tpu unlock data` clears it",
        )
    });
}

/// The settings of this account, and of each user.
fn settings(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let users = ctx.data().map(|data| data.users().to_vec()).unwrap_or_default();
    for error in std::iter::once(ctx.settings(None))
        .chain(users.iter().map(|user| ctx.settings(Some(user))))
        .filter_map(Result::err)
    {
        let remedy = error.hint.unwrap_or_else(|| "tpu get-settings --origin".to_owned());
        findings.push(warning(error.message, remedy));
    }
    let its = watch::running(ctx).and_then(|note| note.cloud);
    let ours = ctx.usual_provider();
    if let Some(its) = its.filter(|its| *its != ours) {
        findings.push(warning(
            format!("the daemon works with cloud {its}, and this command with {ours}"),
            "start it as this command is started: tpu daemon stop, then tpu daemon start",
        ));
    }
}

/// What the daemon tries in vain.
fn in_vain(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let troubles = watch::running(ctx).map(|note| note.troubles).unwrap_or_default();
    findings.extend(troubles.iter().map(|(job, trouble)| {
        let what = format!("the daemon tries to bring {job} back, in vain: {}", trouble.why);
        warning(what, "tpu daemon plan; once that is repaired: tpu ack")
    }));
}

/// What to do once somebody has logged in.
const THEN: &str = "once that is done: tpu ack";

/// What waits for somebody to log in, or to give a key.
fn logins(data: &Data, findings: &mut Vec<Finding>) {
    findings.extend(data.jobs().filter(|job| job.child.is_none()).filter_map(|job| {
        let login = job.recovery.as_ref()?.login.as_ref()?;
        Some(warning(format!("{} is not brought back: {login}", job.id()), THEN))
    }));
    findings.extend(data.queues().makings.iter().filter(|of| of.needs_login).map(|of| {
        let why = of.again.as_ref().map_or("", |(_, why)| why.as_str());
        warning(format!("{} is not made for {}: {why}", of.target, of.job), THEN)
    }));
    findings.extend(data.queues().entries.iter().filter_map(|entry| {
        let held = entry.held.as_ref().filter(|held| held.needs_login)?;
        Some(warning(format!("{} is {held}", entry.id()), THEN))
    }));
}

/// Whom it cannot tell.
fn untold(ctx: &Ctx, findings: &mut Vec<Finding>) {
    findings.extend(notices::troubles(ctx).into_iter().map(|(user, what)| {
        let remedy =
            format!("tpu notify list {user}; once that is repaired: tpu notify test {user}");
        warning(format!("of {user}: {what}"), remedy)
    }));
}

/// Users' scripts that start their command again when a connection breaks.
fn starts_twice(data: &Data, findings: &mut Vec<Finding>) {
    let dirs: BTreeSet<&str> = data
        .users()
        .iter()
        .flat_map(|user| user.working_dir.iter().map(|(_, path)| path.as_str()))
        .collect();
    for flaw in dirs.into_iter().flat_map(|dir| scripts::look(Path::new(dir))) {
        findings.push(warning(
            format!(
                "{}:{}: gcloud runs this command again, up to ten times, when the connection breaks",
                flaw.path.display(),
                flaw.line
            ),
            "begin it with: mkdir /tmp/begun-$TPU_LAUNCH || exit 75; or use: tpu ssh TARGET all \
             --command, which sends it once",
        ));
    }
}

/// Users who have one session, so that nobody could tell whose a window is.
fn sessions(data: &Data, findings: &mut Vec<Finding>) {
    let mut known = BTreeSet::new();
    for user in data.users().iter().filter(|user| !known.insert(user.tmux_name.as_str())) {
        findings.push(warning(
            format!("{} has the tmux session of another user: {}", user.name, user.tmux_name),
            format!(
                "when none of its jobs is at work: tpu data set users.{}.tmux_name NAME",
                user.name
            ),
        ));
    }
}

/// Leases and actions of the dead.
fn held(ctx: &Ctx, data: &Data, findings: &mut Vec<Finding>) {
    let has_monitor = watch::acting(ctx).is_some();
    for job in data.jobs() {
        let id = job.id();
        if left::has_stale_lease(ctx, job) {
            let by = job.lease.as_ref().map(|lease| who(&lease.owner)).unwrap_or_default();
            findings.push(warning(format!("{id} is held by {by}, which is dead"), FIX));
        }
        let Some(intent) = &job.intent else { continue };
        let remedy = match left::intent(ctx, job) {
            Begun::InHand => continue,
            Begun::Abandoned if has_monitor => "the daemon is completing it".to_owned(),
            Begun::Abandoned if job.is_being_killed() => {
                format!(
                    "{FIX}; if a worker does not answer: tpu kill w={} {} --force",
                    id.window, id.user
                )
            }
            Begun::Abandoned if job.intent.as_ref().is_some_and(|i| i.action == CLEANING) => {
                FIX.to_owned()
            }
            Begun::Abandoned => "the daemon completes it: tpu daemon start".to_owned(),
            Begun::Overdue => "on that machine: tpu daemon start".to_owned(),
        };
        let (action, since, by) = (&intent.action, intent.at.to_rfc3339(), who(&intent.by));
        findings.push(warning(
            format!("{action} of {id} is not complete since {since} (by {by})"),
            remedy,
        ));
    }
}

/// Records without their window, and windows without a record.
fn windows(ctx: &Ctx, tmux: &TmuxFact, findings: &mut Vec<Finding>) {
    let Ok(seen) = outlook::look(ctx, &mut snapshot::LookMemory::default(), &Whose::default())
    else {
        return;
    };
    for view in &seen.jobs {
        let is_missed = view.stored.is_live() && view.window_alive == Some(false);
        if is_missed && !view.shown.status.is_live() {
            findings.push(warning(
                format!("{} is {} in the file and runs no more", view.id, view.stored),
                FIX,
            ));
        }
    }
    let why = |view: &JobView| view.shown.unknown.clone().or_else(|| view.target_unknown.clone());
    let is_login = |why: &String| login::remedy(why).is_some();
    // Said once, however many jobs it is about.
    let logins: BTreeSet<String> = seen.jobs.iter().filter_map(why).filter(is_login).collect();
    findings
        .extend(logins.iter().map(|why| warning(format!("how jobs are is unknown: {why}"), THEN)));
    for window in left::windows(tmux, &seen) {
        let remedy = if window.is_closed_by_fix { FIX.to_owned() } else { window.by_hand };
        findings.push(warning(window.what, remedy));
    }
}

/// The users with their directories, and how much each of them has.
fn users(ctx: &Ctx, data: &Data, findings: &mut Vec<Finding>) {
    for user in data.users() {
        if user.working_dir.is_empty() {
            findings
                .push(warning(format!("{} has no directory", user.name), how_to_begin(&user.name)));
        }
        for (slot, path) in &user.working_dir {
            if !Path::new(path).is_dir() {
                findings.push(warning(
                    format!("directory {slot} of {}: {path} is not there", user.name),
                    format!(
                        "tpu set-dir PATH {slot} {}, or tpu del-dir {slot} {}",
                        user.name, user.name
                    ),
                ));
            }
        }
        findings.extend(takes_arguments_as_before(ctx, user));
        let leaves: Vec<_> =
            lineage::lineages(user).iter().filter_map(lineage::Lineage::leaf).collect();
        findings.extend((!leaves.is_empty()).then(|| {
            fine(format!(
                "{} has {} in {}",
                user.name,
                counted(leaves.len(), "run"),
                counted(user.jobs().len(), "attempt")
            ))
        }));
    }
}

/// Of a file of an earlier version: that the queue starts any number of jobs on this machine, and how to limit it.
fn starts_all_at_once(data: &Data) -> Option<Finding> {
    let capacity = data.target(&TargetName::from(LOCAL))?.capacity;
    let is_bound = capacity.jobs.is_some() || capacity.of_queue().is_some();
    (!is_bound).then(|| Finding {
        severity: Severity::Fine,
        what: "the queue starts any number of jobs on local at once".to_owned(),
        remedy: Some(format!(
            "to start one for each core: tpu hosts set {LOCAL} --max-jobs {}",
            threads::cores()
        )),
    })
}

/// Of a user of an earlier version who runs commands: how arguments can be those of ordinary programs.
fn takes_arguments_as_before(ctx: &Ctx, user: &User) -> Option<Finding> {
    let settings = ctx.settings(Some(user)).ok()?;
    let is_said = *settings.origin("arguments") != SettingOrigin::BuiltIn;
    let runs_commands = user.jobs().iter().any(Job::is_native);
    (!is_said && runs_commands).then(|| Finding {
        severity: Severity::Fine,
        what: format!(
            "programs of {} are given lr=0.05 as --config.…=0.05, and --config.load_from=… by a resume",
            user.name
        ),
        remedy: Some(format!(
            "if they take --lr=0.05: tpu set-settings arguments flags {}",
            user.name
        )),
    })
}

/// Puts the `n`-th newest good backup back (1 is the newest). What is there now becomes a backup.
pub fn restore(ctx: &Ctx, n: usize) -> Result<PathBuf, Error> {
    let mut backups = ctx.store.backups();
    backups.sort_unstable();
    backups.reverse();
    let good = |path: &PathBuf| files::read(path).is_ok_and(|bytes| Data::parse(&bytes).is_ok());
    let Some(backup) = backups.into_iter().filter(good).nth(n.saturating_sub(1)) else {
        return Err(Error::not_found(format!(
            "there is no {n}. good backup in {}",
            ctx.store.paths().backups().display()
        ))
        .hint("correct the file by hand; the error of `tpu ls` names the place"));
    };
    if !ctx.store.is_dry_run() {
        ctx.warn(ctx.store.restore(&backup)?);
    }
    Ok(backup)
}
