//! Takes away checkpoints that nobody needs: [`tpu_core::plan::prune`] decides, of what the records of everybody say and of what
//! lies in the log directories. Nothing is ever taken away elsewhere, and nothing of which a question failed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use crate::observe::curves::{self, CurveMemory};
use crate::observe::lineage_attempts;
use crate::{Ctx, Error};
use tpu_core::model::checkpoint::{MARKER, mark_beside};
use tpu_core::model::checkpoint_copy::{self, RegionPlace};
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::execution::Execution;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage::{self, Lineage};
use tpu_core::model::objects::{ObjectAt, StoragePlace};
use tpu_core::plan::prune::{KeepRule, LineageNeed, PruneDir, PruneFate, PrunedStep, plan};
use tpu_system::sys::files;

use super::copy::put;
use super::find::{self, CheckpointEntry, FoundCheckpoint};
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
    /// Whether its user has said how checkpoints are called.
    has_own_names: bool,
}

/// What would be taken away. Nothing is.
pub fn look(ctx: &Ctx, scope: &PruneScope, keep: KeepRule) -> Result<PruneReport, Error> {
    let data = ctx.data()?;
    let shelf = shelf::open(ctx).ok();
    let mut dirs: Vec<LogDir> = Vec::new();
    let mut copies = Copies::default();
    let meant = meant((ctx, &data), scope, &mut copies)?;
    let mut needs = Vec::new();
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            // What ended well may be waiting to go on all the same.
            if leaf.status == Status::Finished && !goes_on(&data, leaf) {
                continue;
            }
            let mut need = needed(ctx, user, leaf, &lineage);
            for dir in &need.dirs {
                need.copies.extend(copies.of(ctx, Some(user), dir)?);
            }
            needs.push(need);
        }
    }
    needs.extend(data.queues().entries.iter().map(needed_by_waiting));
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
        dirs.push(LogDir { place, owner, found, is_meant, has_own_names: pattern.is_some() });
    }
    Ok(decided(ctx, dirs, &needs, keep))
}

/// What a lineage needs, by the text of directories.
struct Needed {
    dirs: BTreeSet<String>,
    /// Where copies of what is in them may lie: only what can be read there counts.
    copies: Vec<String>,
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

/// Words as a shell makes them of a text.
fn split(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

/// The words of a command of its own, and what a shell makes of each.
fn words_of_command(command: Option<&[OsString]>) -> impl Iterator<Item = String> {
    let words = command.into_iter().flatten().filter_map(|word| word.to_str());
    words.flat_map(|word| [word.to_owned()].into_iter().chain(split(word)))
}

/// The values of the variables that a job is given, where it keeps checkpoints, and what a resume adds to its arguments.
fn values_of(execution: &Execution) -> impl Iterator<Item = String> {
    let Execution { variables, checkpoint_dir, resume_args, .. } = execution;
    let values = variables.iter().map(|(_, value)| value.clone());
    values.chain(checkpoint_dir.clone()).chain(resume_args.iter().flat_map(|args| split(args)))
}

/// All that a job's program is given: its arguments, its own command, its variables.
fn words_of(job: &Job) -> Vec<String> {
    let mut words = split(&job.extra_configs);
    words.extend(words_of_command(job.command.as_deref()));
    words.extend(job.execution().into_iter().flat_map(values_of));
    let from = job.launch.as_ref().and_then(|launch| launch.from.clone());
    words.extend(from.into_iter().flat_map(|from| from.path.into_iter().chain([from.dir])));
    words
}

/// The same of all members of what waits.
fn words_of_waiting(entry: &QueueEntry) -> Vec<String> {
    let members: Vec<Option<u32>> = match &entry.spec.array {
        // A group of which all do the same names what one of them names.
        Some(array) if entry.sweep.is_some() => {
            array.indexes().iter().map(|index| Some(*index)).collect()
        }
        Some(_) | None => vec![None],
    };
    let mut words: BTreeSet<String> = values_of(&entry.spec.execution).collect();
    for member in members {
        let spec = entry.spec_of(member);
        words.extend(words_of_command(spec.command.as_deref()));
        words.extend(spec.configs.into_iter().map(|(_, value)| value));
        words.extend(spec.words);
    }
    words.into_iter().collect()
}

/// Whether something waits that is to go on from a job.
fn goes_on(data: &Data, job: &Job) -> bool {
    data.queues().successor_of(&job.id()).is_some()
}

/// What is needed by something that waits: it has no directory of its own yet.
fn needed_by_waiting(entry: &QueueEntry) -> Needed {
    let words = words_of_waiting(entry);
    let args = paths_in(words.iter().map(String::as_str));
    Needed { dirs: BTreeSet::new(), copies: Vec::new(), args, is_known: true }
}

fn needed(ctx: &Ctx, user: &User, leaf: &Job, lineage: &Lineage) -> Needed {
    let own = lineage.windows.iter().filter_map(|window| user.job(*window));
    let mut dirs: BTreeSet<String> =
        own.filter_map(|job| job.log_dir.as_deref()).map(canonical).collect();
    let (before, is_known) = lineage_attempts::log_dirs(ctx, user, leaf);
    dirs.extend(before.iter().map(|dir| canonical(dir)));
    let words = words_of(leaf);
    let args = paths_in(words.iter().map(String::as_str));
    Needed { dirs, copies: Vec::new(), args, is_known }
}

/// Where users have the counterparts of their log directories (`checkpoint_copy`), looked up once for each.
#[derive(Default)]
struct Copies(BTreeMap<UserName, Vec<RegionPlace>>);

impl Copies {
    /// The other places at which copies of a directory may lie. Of a user who is gone nobody knows any.
    fn of(&mut self, ctx: &Ctx, user: Option<&User>, dir: &str) -> Result<Vec<String>, Error> {
        let (Some(user), Ok(place)) = (user, StoragePlace::parse(dir)) else {
            return Ok(Vec::new());
        };
        if !self.0.contains_key(&user.name) {
            let table = ctx.settings(Some(user))?.checkpoint_copy;
            let places = checkpoint_copy::places(&table).into_iter();
            let whole = |one: RegionPlace| {
                let place = StoragePlace::parse(&canonical(&one.place.to_string()));
                RegionPlace { place: place.unwrap_or(one.place), ..one }
            };
            self.0.insert(user.name.clone(), places.map(whole).collect());
        }
        let places = self.0.get(&user.name).map(Vec::as_slice).unwrap_or_default();
        let all = checkpoint_copy::counterparts(places, &place).into_iter();
        Ok(all.filter(|one| *one != place).map(|one| canonical(&one.to_string())).collect())
    }
}

/// The directories that are meant, each with a job whose it is: where jobs log, and where copies of that are.
fn meant(
    (ctx, data): (&Ctx, &Data),
    scope: &PruneScope,
    copies: &mut Copies,
) -> Result<Vec<(String, JobId)>, Error> {
    let of = |job: &Job| {
        let dir = job.log_dir.as_deref().filter(|dir| !dir.is_empty())?;
        Some((canonical(dir), job.id()))
    };
    let mut all: Vec<(String, JobId)> = match scope {
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
        PruneScope::Below(_) => {
            let mut all: Vec<(String, JobId)> = data.jobs().filter_map(of).collect();
            for archived in ctx.store.archived() {
                all.extend(of(&archived?.job));
            }
            all
        }
    };
    let mut copied = Vec::new();
    for (dir, id) in &all {
        let places = copies.of(ctx, data.user(&id.user), dir)?.into_iter();
        copied.extend(places.map(|place| (place, id.clone())));
    }
    all.extend(copied);
    if let PruneScope::Below(roots) = scope {
        all.retain(|(dir, _)| {
            let place = StoragePlace::parse(dir);
            place.is_ok_and(|place| roots.iter().any(|root| root.below(&place).is_some()))
        });
    }
    Ok(all)
}

fn decided(ctx: &Ctx, dirs: Vec<LogDir>, needs: &[Needed], keep: KeepRule) -> PruneReport {
    let mut memory = CurveMemory::default();
    let known: Vec<PruneDir> = dirs
        .iter()
        .map(|dir| {
            let curve = dir.owner.as_ref().filter(|_| keep == KeepRule::Best);
            let curve = curve.and_then(|id| curves::of(ctx, &mut memory, id).ok());
            let points = curve.map(|curve| curve.loss.whole()).unwrap_or_default();
            let loss = |step: u64| {
                #[expect(clippy::cast_precision_loss, reason = "no run has more steps")]
                let at = step as f64;
                points.iter().rev().find(|point| point.step <= at).map(|point| point.value)
            };
            let step = |one: &FoundCheckpoint| PrunedStep {
                step: one.step,
                is_complete: one.state.is_complete(),
                is_certain: dir.has_own_names || one.tells(),
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
            let is_read = |at: &usize| dirs.get(*at).is_some_and(|dir| dir.found.is_ok());
            let copies = need.copies.iter().filter_map(at).filter(is_read);
            LineageNeed {
                dirs: need.dirs.iter().filter_map(at).chain(copies).collect(),
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
        report.removed().map(FoundCheckpoint::place).collect()
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
        if still.contains(&one.found.place()) {
            remove(ctx, shelf.as_ref(), &one.found)?;
        } else {
            one.fate = PruneFate::Keep("it has come to be needed");
        }
    }
    Ok(report)
}

/// Takes one away so that nobody ever takes what is left of it for a whole one: what comes last goes first, and where
/// several files are one together a mark of their step lies beside them meanwhile.
fn remove(ctx: &Ctx, shelf: Option<&Shelf>, found: &FoundCheckpoint) -> Result<(), Error> {
    let mark = mark_beside(found.step);
    let is_joined = found.entries.len() > 1;
    let beside = found.entries.first().filter(|_| is_joined).map(|entry| &entry.place);
    match (beside, shelf) {
        (Some(StoragePlace::Directory(path)), _) => {
            let mark = path.with_file_name(mark);
            let on_disk = |e: io::Error| not_removed(path, &e);
            let mut options = fs::OpenOptions::new();
            options.create(true).append(true);
            drop(files::open_own(&mark, &options).map_err(on_disk)?);
            each_removed(ctx, shelf, found)?;
            fs::remove_file(mark).map_err(on_disk)
        }
        (Some(StoragePlace::Bucket(at)), Some(shelf)) => {
            let within = at.name.rsplit_once('/').map_or("", |(within, _)| within);
            let mark = ObjectAt::new(&*at.bucket, within).join(&mark);
            put(ctx, shelf, &mark, REMOVED)?;
            each_removed(ctx, Some(shelf), found)?;
            shelf.ask(ctx, |door| door.delete_object(&mark, None))
        }
        (Some(StoragePlace::Bucket(_)) | None, _) => each_removed(ctx, shelf, found),
    }
}

/// What a mark says of what is being removed.
const REMOVED: &[u8] = b"{\"removed\": true}";

fn not_removed(path: &Path, error: &io::Error) -> Error {
    Error::state(format!("cannot remove {}: {error}", path.display()))
        .hint("what is left of it ends in .partial or is marked, and nobody loads it")
}

fn each_removed(ctx: &Ctx, shelf: Option<&Shelf>, found: &FoundCheckpoint) -> Result<(), Error> {
    for entry in &found.entries {
        match (&entry.place, shelf) {
            (StoragePlace::Directory(path), _) => {
                from_disk(path).map_err(|e| not_removed(path, &e))?;
            }
            (StoragePlace::Bucket(at), Some(shelf)) => from_bucket(ctx, shelf, at, entry)?,
            (StoragePlace::Bucket(at), None) => return Err(shelf::none_for(at)),
        }
    }
    Ok(())
}

fn from_disk(path: &Path) -> io::Result<()> {
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
    entry: &CheckpointEntry,
) -> Result<(), Error> {
    let mark = at.join(MARKER);
    if !entry.is_single() {
        put(ctx, shelf, &mark, REMOVED)?;
    }
    for object in entry.parts.iter().filter_map(|part| part.object.as_ref()) {
        shelf.ask(ctx, |door| door.delete_object(&object.at, Some(object.generation)))?;
    }
    if !entry.is_single() {
        shelf.ask(ctx, |door| door.delete_object(&mark, None))?;
    }
    Ok(())
}
