//! What processes that are dead have left behind: leases, actions that nobody completes, windows, copies of
//! code. Found here once; `look` tells of it and `fix` sets it right.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::data::Data;
use crate::model::facts::{PaneFact, TmuxFact};
use crate::model::ids::{JobId, LaunchToken};
use crate::model::job::Job;
use crate::model::view::Snapshot;
use crate::ops::launch::check::roots;
use crate::ops::{Ctx, lease};

/// An action of somebody on another machine, of whom nobody here knows whether he lives, is overdue after
/// so many seconds.
const OVERDUE_S: u64 = 120;

/// Below the root of the copies: those that belonged to nobody.
const ASIDE: &str = ".orphaned";

/// The records of the archive, read when the first is asked for.
pub(super) struct Archive<'a> {
    ctx: &'a Ctx,
    jobs: OnceCell<Vec<Job>>,
}

impl<'a> Archive<'a> {
    pub(super) fn of(ctx: &'a Ctx) -> Self {
        Self { ctx, jobs: OnceCell::new() }
    }

    fn jobs(&self) -> &[Job] {
        self.jobs.get_or_init(|| {
            self.ctx.store.archived().flatten().map(|archived| archived.job).collect()
        })
    }

    /// Whether a record is there.
    pub(super) fn has(&self, id: &JobId) -> bool {
        self.jobs().iter().any(|job| job.id() == *id)
    }
}

/// Whether whoever holds the lease of a record is dead and it would still keep others waiting.
pub(super) fn has_stale_lease(ctx: &Ctx, job: &Job) -> bool {
    job.lease.as_ref().is_some_and(|lease| {
        lease.runs(ctx.clock.now()) && lease::is_alive(ctx, &lease.owner) == Some(false)
    })
}

/// Who may still complete what was begun with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Nothing was, or whoever began it is at it.
    InHand,
    /// Whoever began it is dead.
    Abandoned,
    /// Whoever began it is on another machine, and overdue.
    Overdue,
}

/// Looks at what was begun with a record.
pub(super) fn intent(ctx: &Ctx, job: &Job) -> Intent {
    let Some(intent) = &job.intent else { return Intent::InHand };
    match lease::is_alive(ctx, &intent.by) {
        Some(false) => Intent::Abandoned,
        None if ctx.clock.now().seconds_since(intent.at) > OVERDUE_S => Intent::Overdue,
        Some(true) | None => Intent::InHand,
    }
}

/// A window that nobody needs.
#[derive(Clone, Debug)]
pub(super) struct Window<'a> {
    /// Its panes.
    pub(super) panes: Vec<&'a PaneFact>,
    /// In words: which, and why.
    pub(super) what: String,
    /// Whether all that ran in it has ended: it can be closed without asking.
    pub(super) has_ended: bool,
    /// What a person types.
    pub(super) by_hand: String,
}

/// Windows that no record claims, and all but one of those that show the same launch.
pub(super) fn windows<'a>(tmux: &'a TmuxFact, seen: &Snapshot) -> Vec<Window<'a>> {
    let TmuxFact::Up { panes, .. } = tmux else { return Vec::new() };
    let of_window = |id: &str| panes.iter().filter(|pane| pane.window_id == id).collect::<Vec<_>>();
    let mut found: Vec<Window<'a>> = seen
        .orphans
        .iter()
        .map(|orphan| {
            let panes = of_window(&orphan.window_id);
            Window {
                has_ended: has_ended(&panes),
                what: format!(
                    "window {} of session {} belongs to no record",
                    orphan.window, orphan.session
                ),
                by_hand: "look at it, then close such windows with: tpu -czw USER".to_owned(),
                panes,
            }
        })
        .collect();
    let mut by_launch: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pane in panes {
        if let Some(token) = pane.launch.as_ref().map(LaunchToken::as_str) {
            by_launch.entry(token).or_default().insert(&pane.window_id);
        }
    }
    let known: HashSet<_> = seen.orphans.iter().map(|orphan| orphan.window_id.as_str()).collect();
    for windows in by_launch.values().filter(|windows| windows.len() > 1) {
        let mut windows: Vec<_> = windows.iter().map(|id| of_window(id)).collect();
        // The one that is still at work is kept, else the first.
        windows.sort_by_key(|panes| has_ended(panes));
        for panes in windows.into_iter().skip(1) {
            let Some(pane) = panes.first().filter(|pane| !known.contains(pane.window_id.as_str()))
            else {
                continue;
            };
            let place = format!("{}:{}", pane.session, pane.window_index);
            found.push(Window {
                has_ended: has_ended(&panes),
                what: format!("window {place} shows the same launch as another one"),
                by_hand: format!("look at both, then: tmux kill-window -t '={place}'"),
                panes,
            });
        }
    }
    found
}

/// Whether all that we started in a window has ended.
fn has_ended(panes: &[&PaneFact]) -> bool {
    let ended = |pane: &&PaneFact| pane.launch.is_some() && (pane.dead || pane.exit.is_some());
    !panes.is_empty() && panes.iter().all(ended)
}

/// A copy of somebody's code that no record names, in the document or in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Where it is put aside.
    pub(super) aside: PathBuf,
}

/// Copies of code that belong to nothing: a launch was undone, or a copy was broken off.
pub(super) fn copies(ctx: &Ctx, data: &Data, archive: &Archive<'_>) -> Vec<Copy> {
    let mut found = Vec::new();
    for user in data.users() {
        let Ok(roots) = roots(ctx, user) else { continue };
        let root = Path::new(&roots.stage);
        let Ok(entries) = fs::read_dir(root.join(user.name.as_str())) else { continue };
        let named = |path: &Path| {
            let is_of =
                |job: &Job| job.stage_dir.as_deref().is_some_and(|dir| Path::new(dir) == path);
            data.jobs().any(is_of) || archive.jobs().iter().any(is_of)
        };
        let is_being_made = |path: &Path| {
            data.jobs().any(|job| {
                let is_its = job.stage_dir.as_deref().is_some_and(|dir| Path::new(dir) == path);
                is_its && job.status.is_live()
            })
        };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (whole, is_partial) =
                name.strip_suffix(".partial").map_or((name.as_str(), false), |whole| (whole, true));
            let path = entry.path().with_file_name(whole);
            let is_wanted = if is_partial { is_being_made(&path) } else { named(&path) };
            if is_ours(whole) && !is_wanted {
                let aside = root.join(ASIDE).join(format!("{}-{name}", user.name));
                found.push(Copy { path: entry.path(), aside });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Whether a directory has a name as launches give them: `20261120_140211-7-9f3a01`.
fn is_ours(name: &str) -> bool {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = name.splitn(3, '-');
    let (Some(time), Some(window), Some(token)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let time = time.split_once('_').is_some_and(|(day, time)| digits(day, 8) && digits(time, 6));
    time && digits(window, window.len().max(1))
        && token.len() == 6
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Puts a copy aside.
pub(super) fn put_aside(copy: &Copy) -> std::io::Result<()> {
    if let Some(parent) = copy.aside.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(&copy.path, &copy.aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_launch_gives_are_ours() {
        assert!(is_ours("20261120_140211-7-9f3a01"));
        for other in ["results", "20261120_140211", "20261120-7-9f3a01", "20261120_140211-x-9f3a01"]
        {
            assert!(!is_ours(other), "{other}");
        }
        assert!(!is_ours("20261120_140211-7-9f3a01-mine"));
    }
}
