//! What processes that are dead have left behind: leases, actions that nobody completes, windows, copies of
//! code. Found here once; `look` tells of it and `fix` sets it right.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::base::code_copies::{self, is_name_of_copy};
use crate::base::launch_paths::roots;
use crate::base::lease;
use crate::observe::orphans;
use crate::{Ctx, Error};
use tpu_core::model::audit;
use tpu_core::model::data::Data;
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Snapshot;

/// What is said of a window without our mark.
const BY_HAND: &str = " and carries no mark: a person or the original has opened it";

/// An action of somebody on another machine, of whom nobody here knows whether he lives, is overdue after
/// so many seconds.
const OVERDUE_S: u64 = 120;

/// Nobody takes longer to submit a job whose code has been copied, in seconds.
const SUBMITTING_S: u64 = 3600;

/// Below the root of the copies: those that belonged to nobody.
const ASIDE: &str = ".orphaned";

/// What the name of a copy ends in until it is whole.
const PARTIAL: &str = ".partial";

/// The fathers that records name and that are neither in the document nor in the archive. None, if the
/// archive cannot be read: then nobody knows.
pub(super) fn lost_fathers(ctx: &Ctx, data: &Data) -> HashSet<JobId> {
    let mut absent = audit::absent_fathers(data);
    if absent.is_empty() {
        return absent;
    }
    // Whatever leaves the document is in the archive before: it is read after the document.
    for archived in ctx.store.archived() {
        match archived {
            Ok(archived) => drop(absent.remove(&archived.job.id())),
            Err(_) => return HashSet::new(),
        }
    }
    absent
}

/// Whether whoever holds the lease of a record is dead and it would still keep others waiting.
pub(super) fn has_stale_lease(ctx: &Ctx, job: &Job) -> bool {
    job.lease.as_ref().is_some_and(|lease| {
        lease.runs(ctx.clock.now()) && lease::is_alive(ctx, &lease.owner) == Some(false)
    })
}

/// Who may still complete what was begun with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Nothing was, or whoever began it is at it.
    InHand,
    /// Whoever began it is dead.
    Abandoned,
    /// Whoever began it is on another machine, and overdue.
    Overdue,
}

/// Looks at what was begun with a record.
pub(super) fn intent(ctx: &Ctx, job: &Job) -> Begun {
    let Some(intent) = &job.intent else { return Begun::InHand };
    match lease::is_alive(ctx, &intent.by) {
        Some(false) => Begun::Abandoned,
        None if ctx.clock.now().seconds_since(intent.at) > OVERDUE_S => Begun::Overdue,
        Some(true) | None => Begun::InHand,
    }
}

/// A window that nobody needs.
#[derive(Clone, Debug)]
pub(super) struct SpareWindow {
    /// In words: which, and why.
    pub(super) what: String,
    /// Whether it is closed without asking, since all that we started in it has ended.
    pub(super) is_closed_by_fix: bool,
    /// What a person types.
    pub(super) by_hand: String,
}

/// Windows that no record claims, and all but one of those that show the same launch.
pub(super) fn windows(tmux: &TmuxFact, seen: &Snapshot) -> Vec<SpareWindow> {
    let TmuxFact::Up { panes, .. } = tmux else { return Vec::new() };
    let mut found: Vec<SpareWindow> = seen
        .orphans
        .iter()
        .map(|orphan| {
            let is_of_it = |pane: &&PaneFact| {
                (&pane.session, pane.window_index) == (&orphan.session, orphan.window)
            };
            let of_it = || panes.iter().filter(is_of_it);
            let is_ours = of_it().any(|pane| pane.launch.is_some());
            let (by_whom, flag) = if is_ours { ("", "") } else { (BY_HAND, " --force") };
            SpareWindow {
                is_closed_by_fix: of_it().any(orphans::has_ended),
                what: format!(
                    "window {} of session {} belongs to no record{by_whom}",
                    orphan.window, orphan.session
                ),
                by_hand: format!("look at it, then close such windows with: tpu -czw USER{flag}"),
            }
        })
        .collect();
    // The first place at which a pane is listed stands for its window, which may be linked to several.
    let mut listed = BTreeSet::new();
    let mut by_launch: BTreeMap<&str, BTreeSet<(&str, u32)>> = BTreeMap::new();
    for pane in panes.iter().filter(|pane| listed.insert(&pane.pane_id)) {
        if let Some(token) = pane.launch.as_ref().map(LaunchToken::as_str) {
            by_launch.entry(token).or_default().insert((&pane.session, pane.window_index));
        }
    }
    for windows in by_launch.values().filter(|windows| windows.len() > 1) {
        let mut places = windows.iter().map(|(session, window)| format!("{session}:{window}"));
        let Some(first) = places.next() else { continue };
        found.extend(places.map(|place| SpareWindow {
            is_closed_by_fix: false,
            what: format!("window {place} shows the same launch as {first}"),
            by_hand: "look at both, then close one: tmux kill-window -t '=SESSION:N'".to_owned(),
        }));
    }
    found
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
///
/// Only what stands below our own directory is ours for certain: another root may be shared with other data
/// files. None, if the archive cannot be read.
pub(super) fn copies(ctx: &Ctx) -> Result<Vec<Copy>, Error> {
    let state = ctx.store.paths().state();
    let mut found = Vec::new();
    for user in ctx.data()?.users() {
        let root = PathBuf::from(roots(ctx, user)?.stage);
        if !root.starts_with(&state) {
            continue;
        }
        let Ok(entries) = fs::read_dir(root.join(user.name.as_str())) else { continue };
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let whole = name.strip_suffix(PARTIAL).unwrap_or(&name);
            if is_name_of_copy(whole) && !is_being_submitted(ctx, whole, &entry.path()) {
                let aside = root.join(ASIDE).join(format!("{}-{name}", user.name));
                found.push(Copy { path: entry.path(), aside });
            }
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    // A record is there before its copy, and in the archive before it leaves: they are read in this order.
    let data = ctx.data()?;
    let live = data.jobs().filter(|job| job.status.is_live()).flat_map(code_copies::names_of);
    let live: HashSet<String> = live.collect();
    let mut named = code_copies::names_in_use(&data);
    for archived in ctx.store.archived() {
        named.extend(code_copies::names_of(&archived?.job));
    }
    found.retain(|copy| {
        let name = copy.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        match name.strip_suffix(PARTIAL) {
            Some(whole) => !live.contains(whole),
            None => !named.contains(&name),
        }
    });
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Whether a copy may belong to a job that is just being submitted: that is written down once the copy is whole.
fn is_being_submitted(ctx: &Ctx, name: &str, path: &Path) -> bool {
    let is_of_submission = name.split('-').nth(1) == Some("0");
    let made = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let made = made.and_then(|made| jiff::Timestamp::try_from(made).ok());
    let age = made.map(|made| ctx.clock.now().seconds_since(Timestamp::from_jiff(made)));
    is_of_submission && age.is_none_or(|age| age < SUBMITTING_S)
}

/// Puts a copy aside.
pub(super) fn put_aside(copy: &Copy) -> std::io::Result<()> {
    if let Some(parent) = copy.aside.parent() {
        fs::create_dir_all(parent)?;
    }
    // An earlier one of the name stays: a directory that is not empty is not replaced.
    fs::rename(&copy.path, &copy.aside)
}
