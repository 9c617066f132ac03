//! Takes away checkpoints that nobody needs: [`crate::plan::prune`] decides, of what the records of everybody say and of what
//! lies in the log directories. Nothing is ever taken away elsewhere, and nothing of which a question failed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::model::checkpoint::MARKER;
use crate::model::data::{Data, User};
use crate::model::ids::{JobId, UserName};
use crate::model::job::{Job, Status};
use crate::model::lineage::{self, Lineage};
use crate::model::objects::{ObjectAt, StoragePlace};
use crate::ops::curves::{self, CurveMemory};
use crate::ops::{Ctx, Error, successor};
use crate::plan::prune::{KeepRule, LineageNeed, PruneDir, PruneFate, PrunedStep, plan};

use super::copy::put;
use super::find::{self, FoundCheckpoint};
use super::shelf::{self, Shelf};

/// Which log directories are meant.
#[derive(Clone, Debug)]
pub enum PruneScope {
    /// Those of a user's jobs, or of these of them with all attempts of their lineages.
    Jobs(UserName, Vec<JobId>),
    /// Those of everybody, also of archived jobs, that lie below these places.
    Below(Vec<StoragePlace>),
}

/// A checkpoint, and what becomes of it.
#[derive(Clone, Debug)]
pub struct PrunedCheckpoint {
    /// The checkpoint.
    pub found: FoundCheckpoint,
    /// What becomes of it.
    pub fate: PruneFate,
}

/// What would be, or was, taken away.
#[derive(Clone, Debug, Default)]
pub struct PruneReport {
    /// Every checkpoint of the directories that are meant.
    pub all: Vec<PrunedCheckpoint>,
    /// Directories that could not be read, and why.
    pub unread: Vec<(StoragePlace, String)>,
}

impl PruneReport {
    /// Those that go.
    pub fn removed(&self) -> impl Iterator<Item = &FoundCheckpoint> {
        self.all.iter().filter(|one| one.fate == PruneFate::Remove).map(|one| &one.found)
    }
}

/// A log directory with what is in it.
struct LogDir {
    place: StoragePlace,
    owner: Option<JobId>,
    found: Result<Vec<FoundCheckpoint>, String>,
    is_meant: bool,
}

/// What would be taken away. Nothing is.
pub fn look(ctx: &Ctx, scope: &PruneScope, keep: KeepRule) -> Result<PruneReport, Error> {
    let data = ctx.data()?;
    let shelf = shelf::open(ctx).ok();
    let mut dirs: Vec<LogDir> = Vec::new();
    let meant = meant(ctx, &data, scope)?;
    let mut needs = Vec::new();
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            if leaf.status == Status::Finished {
                continue;
            }
            needs.push(needed(ctx, user, leaf, &lineage));
        }
    }
    let mut places: BTreeMap<String, Option<JobId>> =
        meant.iter().map(|(dir, owner)| (dir.clone(), Some(owner.clone()))).collect();
    for need in &needs {
        for dir in &need.dirs {
            places.entry(dir.clone()).or_insert(None);
        }
    }
    for (text, owner) in places {
        let Ok(place) = StoragePlace::parse(&text) else { continue };
        let user = owner.as_ref().and_then(|id| data.user(&id.user));
        let pattern = find::pattern(ctx, user)?;
        let found = find::below(ctx, shelf.as_ref(), &place, pattern.as_ref());
        let found = found.map_err(|error| error.message);
        let is_meant = meant.iter().any(|(dir, _)| *dir == text);
        dirs.push(LogDir { place, owner, found, is_meant });
    }
    Ok(decided(ctx, dirs, &needs, keep))
}

/// What a lineage needs, by the text of directories.
struct Needed {
    dirs: BTreeSet<String>,
    /// Paths that its arguments name.
    args: Vec<String>,
    is_known: bool,
}

/// One text for one directory, however it is written.
fn canonical(dir: &str) -> String {
    match StoragePlace::parse(dir) {
        Ok(StoragePlace::Directory(path)) => {
            let whole = fs::canonicalize(&path).unwrap_or(path);
            whole.to_str().map_or_else(|| dir.to_owned(), str::to_owned)
        }
        Ok(place) => place.to_string(),
        Err(_) => dir.to_owned(),
    }
}

/// Paths and addresses in words of a command.
fn paths_in<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_path = |text: &&str| text.starts_with('/') || text.starts_with("gs://");
    words
        .flat_map(|word| [word, word.split_once('=').map_or("", |(_, value)| value)])
        .filter(is_path)
        .map(canonical)
        .collect()
}

/// All words that a job's program is given: its arguments and, of its own command, each word and what a shell makes of it.
fn words_of(job: &Job) -> Vec<String> {
    let split = |text: &str| {
        shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
    };
    let mut words = split(&job.extra_configs);
    for word in job.command.iter().flatten().filter_map(|word| word.to_str()) {
        words.push(word.to_owned());
        words.extend(split(word));
    }
    words
}

fn needed(ctx: &Ctx, user: &User, leaf: &Job, lineage: &Lineage) -> Needed {
    let own = lineage.windows.iter().filter_map(|window| user.job(*window));
    let mut dirs: BTreeSet<String> =
        own.filter_map(|job| job.log_dir.as_deref()).map(canonical).collect();
    let (before, is_known) = successor::log_dirs(ctx, user, leaf);
    dirs.extend(before.iter().map(|dir| canonical(dir)));
    let words = words_of(leaf);
    Needed { dirs, args: paths_in(words.iter().map(String::as_str)), is_known }
}

/// The directories that are meant, each with a job whose it is.
fn meant(ctx: &Ctx, data: &Data, scope: &PruneScope) -> Result<Vec<(String, JobId)>, Error> {
    let of = |job: &Job| {
        let dir = job.log_dir.as_deref().filter(|dir| !dir.is_empty())?;
        Some((canonical(dir), job.id()))
    };
    Ok(match scope {
        PruneScope::Jobs(name, ids) => {
            let Some(user) = data.user(name) else { return Ok(Vec::new()) };
            let chosen: BTreeSet<_> = ids
                .iter()
                .filter_map(|id| Lineage::of(user, id.window))
                .flat_map(|lineage| lineage.windows)
                .collect();
            let is_meant = |job: &&Job| ids.is_empty() || chosen.contains(&job.windows_id);
            user.jobs().iter().filter(is_meant).filter_map(of).collect()
        }
        PruneScope::Below(roots) => {
            let mut all: Vec<(String, JobId)> = data.jobs().filter_map(of).collect();
            for archived in ctx.store.archived() {
                all.extend(of(&archived?.job));
            }
            all.retain(|(dir, _)| {
                let place = StoragePlace::parse(dir);
                place.is_ok_and(|place| roots.iter().any(|root| root.below(&place).is_some()))
            });
            all
        }
    })
}

fn decided(ctx: &Ctx, dirs: Vec<LogDir>, needs: &[Needed], keep: KeepRule) -> PruneReport {
    let mut memory = CurveMemory::default();
    let known: Vec<PruneDir> = dirs
        .iter()
        .map(|dir| {
            let curve = dir.owner.as_ref().filter(|_| keep == KeepRule::Best);
            let curve = curve.and_then(|id| curves::of(ctx, &mut memory, id).ok());
            let points = curve.map(|curve| curve.whole()).unwrap_or_default();
            let loss = |step: u64| {
                #[expect(clippy::cast_precision_loss, reason = "no run has more steps")]
                let at = step as f64;
                points.iter().rev().find(|point| point.step <= at).map(|point| point.loss)
            };
            let step = |one: &FoundCheckpoint| PrunedStep {
                step: one.step,
                is_complete: one.state.is_complete(),
                loss: loss(one.step),
            };
            let steps = dir.found.as_ref().map(|found| found.iter().map(step).collect());
            PruneDir { is_known: dir.found.is_ok(), steps: steps.unwrap_or_default() }
        })
        .collect();
    let texts: Vec<String> = dirs.iter().map(|dir| dir.place.to_string()).collect();
    let needs: Vec<LineageNeed> = needs
        .iter()
        .map(|need| {
            let at = |text: &String| texts.iter().position(|known| known == text);
            let named = texts
                .iter()
                .enumerate()
                .filter(|(_, text)| need.args.iter().any(|dir| dir.starts_with(text.as_str())));
            LineageNeed {
                dirs: need.dirs.iter().filter_map(at).collect(),
                reads: named.map(|(at, _)| at).collect(),
                is_known: need.is_known,
            }
        })
        .collect();
    let fates = plan(&known, &needs, keep);
    let mut report = PruneReport::default();
    for (dir, fates) in dirs.into_iter().zip(fates) {
        match dir.found {
            _ if !dir.is_meant => {}
            Ok(found) => {
                let both = found.into_iter().zip(fates);
                report.all.extend(both.map(|(found, fate)| PrunedCheckpoint { found, fate }));
            }
            Err(why) => report.unread.push((dir.place, why)),
        }
    }
    report
}

/// Takes away what is not needed, and returns what that was. Whenever somebody has changed a record meanwhile it is
/// decided anew: what a run has come to need stays.
pub fn act(ctx: &Ctx, scope: &PruneScope, keep: KeepRule) -> Result<PruneReport, Error> {
    let mut seen = ctx.data()?;
    let mut report = look(ctx, scope, keep)?;
    let shelf = shelf::open(ctx).ok();
    let places = |report: &PruneReport| -> BTreeSet<String> {
        report.removed().map(|found| found.place.to_string()).collect()
    };
    let mut still = places(&report);
    for one in &mut report.all {
        if one.fate != PruneFate::Remove {
            continue;
        }
        let now = ctx.data()?;
        if !Arc::ptr_eq(&now, &seen) {
            still = places(&look(ctx, scope, keep)?);
            seen = now;
        }
        if still.contains(&one.found.place.to_string()) {
            remove(ctx, shelf.as_ref(), &one.found)?;
        } else {
            one.fate = PruneFate::Keep("it has come to be needed");
        }
    }
    Ok(report)
}

/// Takes one away so that nobody ever takes what is left of it for a whole one.
fn remove(ctx: &Ctx, shelf: Option<&Shelf>, found: &FoundCheckpoint) -> Result<(), Error> {
    match (&found.place, shelf) {
        (StoragePlace::Directory(path), _) => from_disk(path).map_err(|e| {
            Error::state(format!("cannot remove {}: {e}", path.display()))
                .hint("what is left of it ends in .partial, which nobody loads")
        }),
        (StoragePlace::Bucket(at), Some(shelf)) => from_bucket(ctx, shelf, at, found),
        (StoragePlace::Bucket(at), None) => Err(shelf::none_for(at)),
    }
}

fn from_disk(path: &Path) -> std::io::Result<()> {
    // What is behind a link is not in the log directory.
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return fs::remove_file(path);
    }
    let mut going = path.as_os_str().to_owned();
    going.push(".partial");
    fs::rename(path, &going)?;
    fs::remove_dir_all(going)
}

fn from_bucket(
    ctx: &Ctx,
    shelf: &Shelf,
    at: &ObjectAt,
    found: &FoundCheckpoint,
) -> Result<(), Error> {
    let is_single = matches!(found.parts.as_slice(), [one] if one.path.is_empty());
    let mark = at.join(MARKER);
    if !is_single {
        put(ctx, shelf, &mark, b"{\"removed\": true}")?;
    }
    for object in found.parts.iter().filter_map(|part| part.object.as_ref()) {
        shelf.ask(ctx, |door| door.delete_object(&object.at, Some(object.generation)))?;
    }
    if !is_single {
        shelf.ask(ctx, |door| door.delete_object(&mark, None))?;
    }
    Ok(())
}
