//! `doctor`: looks over tmux, the data file and the records; every finding names its remedy.

use std::path::PathBuf;

use crate::model::data::Data;
use crate::model::facts::TmuxFact;
use crate::model::job::who;
use crate::model::lineage;
use crate::plan::place::{self, Window};
use crate::store::StoreError;

use super::{Ctx, Error};

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

fn fine(what: impl Into<String>) -> Finding {
    Finding { severity: Severity::Fine, what: what.into(), remedy: None }
}

fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
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
    match ctx.store.read() {
        Ok(data) => {
            findings.push(fine(format!(
                "{} holds {} users and {} jobs",
                ctx.store.paths().data().display(),
                data.users().len(),
                data.jobs().count()
            )));
            records(&data, &tmux, &mut findings);
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
            if !std::path::Path::new(path).is_dir() {
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
