//! `doctor`: looks over tmux, the data file and the records; every finding names its remedy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::model::board::Entry;
use crate::model::data::Data;
use crate::model::facts::TmuxFact;
use crate::model::job::who;
use crate::model::{lineage, time};
use crate::plan::place::{self, Window};
use crate::store::{StoreError, original};

use super::board::line;
use super::launch::heal;
use super::{Ctx, Error, scripts, snapshot};

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

impl Severity {
    /// The word that people see.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warn",
            Self::Broken => "fail",
        }
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
    findings.push(match &tmux {
        TmuxFact::Up { place, panes } => {
            fine(format!("tmux answers on {} ({} panes)", place.socket, panes.len()))
        }
        TmuxFact::Down { place } => {
            fine(format!("no tmux server on {}; `tpu run` starts one", place.socket))
        }
        TmuxFact::Unknown { reason } => Finding {
            severity: Severity::Broken,
            what: format!("tmux cannot be asked: {reason}"),
            remedy: Some(
                "install tmux 3.2 or later, and look at the rights of its socket".to_owned(),
            ),
        },
    });
    original(ctx, &mut findings);
    settings(ctx, &mut findings);
    match ctx.store.read() {
        Ok(data) => {
            findings.push(fine(format!(
                "{} holds {} users and {} jobs",
                ctx.store.paths().data().display(),
                data.users().len(),
                data.jobs().count()
            )));
            records(&data, &tmux, &mut findings);
            board(ctx, &data, &mut findings);
            starts_twice(&data, &mut findings);
            if let Err(what) = lists(&data) {
                findings.push(warning(what, "tpu doctor --fix"));
            }
            orphans(ctx, &mut findings);
        }
        Err(error @ StoreError::Missing { .. }) => {
            findings.push(warning(error.to_string(), "add the first user: tpu add-user NAME"));
        }
        Err(error) => findings.push(Finding {
            severity: Severity::Broken,
            what: error.to_string(),
            remedy: error.hint(),
        }),
    }
    findings
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
}

/// What is written on the board for people and targets that are not there.
fn board(ctx: &Ctx, data: &Data, findings: &mut Vec<Finding>) {
    let ghosts = ghosts(ctx, data);
    if ghosts > 0 {
        let what =
            format!("{ghosts} places in the line for targets belong to processes that are dead");
        findings.push(warning(what, "nobody waits for them; tpu doctor --fix clears them away"));
    }
    for name in data.board().names().filter(|name| data.target(name).is_none()) {
        findings.push(warning(
            format!("the board has notes about {name}, which is no target any more"),
            format!("tpu register {name}, or: tpu doctor --fix"),
        ));
    }
}

fn ghosts(ctx: &Ctx, data: &Data) -> usize {
    data.waiting().iter().filter(|ticket| line::is_ghost(ctx, ticket)).count()
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

/// The lists of users beside the users, which the original reads.
fn lists(data: &Data) -> Result<(), String> {
    let value = data.to_value();
    for user in data.users() {
        let name = user.name.as_str();
        let listed =
            value["user_list"].as_array().is_some_and(|list| list.iter().any(|n| n == name));
        let numbered = value["user_id_dict"].get(name).is_some();
        if !listed || !numbered {
            return Err(format!("{name} is missing in the lists of users that the original reads"));
        }
    }
    Ok(())
}

/// Windows that no record claims.
fn orphans(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let Ok(look) = snapshot::look(ctx, &mut snapshot::Memory::default(), None) else { return };
    for orphan in look.orphans {
        findings.push(warning(
            format!("window {} of session {} belongs to no record", orphan.window, orphan.session),
            "look at it, then close such windows with: tpu -czw USER",
        ));
    }
}

/// Does what needs no judgement: settles what dead processes left behind, and clears the board of ghosts.
/// Says what it did.
pub fn fix(ctx: &Ctx) -> Result<Vec<String>, Error> {
    let before = ctx.data()?;
    if !ctx.store.is_rehearsing() {
        heal::heal(ctx)?;
    }
    let mut done = Vec::new();
    let healed = ctx.data()?;
    for job in healed.jobs() {
        let was = before.job(&job.id()).map(|job| &job.status);
        if was.is_some_and(|was| *was != job.status) {
            done.push(format!("settled {}: it is {}", job.id(), job.status));
        }
    }
    ctx.transact(|tx| {
        let ghosts = ghosts(ctx, &tx.data);
        if ghosts > 0 {
            tx.data.waiting_mut().retain(|ticket| !line::is_ghost(ctx, ticket));
            done.push(format!("cleared {ghosts} dead places from the line"));
        }
        let gone: Vec<_> = tx
            .data
            .board()
            .names()
            .filter(|name| tx.data.target(name).is_none())
            .cloned()
            .collect();
        for name in gone {
            tx.data.board_mut().set(&name, Entry::default());
            done.push(format!("forgot the notes about {name}"));
        }
        if lists(&tx.data).is_err() {
            tx.data.list_users();
            done.push("entered every user into the lists that the original reads".to_owned());
        }
        Ok(())
    })?;
    Ok(done)
}

/// Records against windows, fathers against children, aliases against targets.
fn records(data: &Data, tmux: &TmuxFact, findings: &mut Vec<Finding>) {
    for user in data.users() {
        if user.working_dir.is_empty() {
            findings.push(warning(
                format!("{} has no directory", user.name),
                format!("in the directory of the code: tpu set-cur 1 {}", user.name),
            ));
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
        for job in user.jobs() {
            let id = job.id();
            if user.jobs().iter().filter(|other| other.windows_id == job.windows_id).count() > 1 {
                findings.push(warning(
                    format!("{id} stands in the file more than once"),
                    "keep one of them: edit data.json while no tpu runs",
                ));
            }
            if let Some(child) = job.child.filter(|child| user.job(*child).is_none()) {
                findings.push(warning(
                    format!("{id} says that it goes on in window {child}, which has no record"),
                    format!("tpu clean {}", user.name),
                ));
            }
            let gone =
                matches!(place::find(job, &user.tmux_name, tmux), Window::Gone | Window::Lost(_));
            if job.status.is_live() && gone {
                findings.push(warning(
                    format!("{id} is {} in the file and its window is gone", job.status),
                    format!(
                        "tpu explain w={} {}; then resume it, or tpu clean",
                        id.window, user.name
                    ),
                ));
            }
            if let Some(intent) = &job.intent {
                let remedy = if job.is_being_killed() {
                    format!("complete it: tpu kill w={} {}", id.window, user.name)
                } else {
                    "MONITOR completes it: tpu daemon start".to_owned()
                };
                let (action, since, by) = (&intent.action, intent.at.to_rfc3339(), who(&intent.by));
                findings.push(warning(
                    format!("{action} of {id} is not complete since {since} (by {by})"),
                    remedy,
                ));
            }
        }
        let leaves: Vec<_> =
            lineage::lineages(user).iter().filter_map(lineage::Lineage::leaf).collect();
        findings.extend((!leaves.is_empty()).then(|| {
            fine(format!(
                "{} has {} runs in {} attempts",
                user.name,
                leaves.len(),
                user.jobs().len()
            ))
        }));
    }
    for (alias, full) in data.registry().aliases() {
        if data.registry().target(full).is_none_or(|target| target.zone.is_none()) {
            findings.push(warning(
                format!("the target alias {alias} stands for {full}, whose zone is not known"),
                format!("tpu register {full} --zone ZONE"),
            ));
        }
    }
}

/// Puts the `n`-th newest good backup back (1 is the newest). What is there now becomes a backup.
pub fn restore(ctx: &Ctx, n: usize) -> Result<PathBuf, Error> {
    let mut backups = ctx.store.backups();
    backups.sort();
    backups.reverse();
    let good = |path: &PathBuf| std::fs::read(path).is_ok_and(|bytes| Data::parse(&bytes).is_ok());
    let Some(backup) = backups.into_iter().filter(good).nth(n.saturating_sub(1)) else {
        return Err(Error::not_found(format!(
            "there is no {n}. good backup in {}",
            ctx.store.paths().backups().display()
        ))
        .hint("mend the file by hand; the error of `tpu ls` names the place"));
    };
    ctx.warn(ctx.store.restore(&backup)?);
    Ok(backup)
}
