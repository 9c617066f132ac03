//! The copies of code of archived jobs. After `keep_code` the code is removed from them, and what the jobs wrote stays; a
//! person can have them removed whole.
//!
//! Copies on other machines (hosts over ssh, disks behind a login node) stay: only what lies on this disk, below the
//! directories of [`code_copies::roots_of_copies`], is looked at.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::code_removal::{self, CodeCopy, CodeLeft, Removal};
use tpu_engine::runner::tree;

use crate::base::code_copies::{self, copies_of, is_in_use, names_of, with_names_of_copies};
use crate::{Ctx, Error};

/// How many files are removed at once: the daemon has other things to do. The rest follows the next time.
const AT_ONCE: u64 = 50_000;

/// Ends the name of a copy that is being removed whole.
const REMOVING: &str = ".removing";

/// What was removed of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeGone {
    /// Of how many.
    pub copies: usize,
    /// Bytes.
    pub bytes: u64,
}

/// What an archived record says of the copies that it names.
#[derive(Clone, Debug)]
struct ArchivedUse {
    at: Timestamp,
    user: UserName,
    job: JobId,
    copies: Vec<PathBuf>,
    names: Vec<String>,
    origin: PathBuf,
    log: Option<PathBuf>,
}

impl ArchivedUse {
    fn of(at: Timestamp, job: &Job) -> Self {
        let origin = job.staged().map_or(job.job_dir.as_str(), |staged| staged.from.as_str());
        Self {
            at,
            user: job.user.clone(),
            job: job.id(),
            copies: copies_of(job).map(PathBuf::from).collect(),
            names: names_of(job),
            origin: origin.into(),
            log: job.log_dir.as_ref().map(PathBuf::from),
        }
    }

    /// Whether it says that this very directory is a copy.
    fn is_of(&self, path: &Path) -> bool {
        self.copies.iter().any(|copy| copy == path)
    }
}

/// Removes code from the copies of jobs that have been in the archive for `keep_code`, of so many files at once.
pub fn remove_due(ctx: &Ctx) -> Result<CodeGone, Error> {
    let mut gone = CodeGone::default();
    if ctx.store.is_dry_run() {
        return Ok(gone);
    }
    let roots = code_copies::roots_of_copies(ctx);
    finish_removing(ctx, &roots);
    let mut copies = with_names_of_copies(&roots, "");
    copies.retain(|copy| may_have_code(&copy.path()));
    if copies.is_empty() {
        return Ok(gone);
    }
    // What leaves the document is in the archive before: it is read after the document.
    let data = ctx.data()?;
    let in_use = code_copies::names_in_use(&data);
    copies.retain(|copy| !in_use.contains(&copy.name));
    let uses = archived_uses(ctx, &copies)?;
    let mut kept_for = HashMap::new();
    let mut left = AT_ONCE;
    for copy in &copies {
        let of_it = uses.get(&copy.name).map_or(&[][..], Vec::as_slice);
        let mut is_over = |of: &ArchivedUse| {
            let kept = *kept_for.entry(of.user.clone()).or_insert_with(|| {
                ctx.settings(data.user(&of.user))
                    .map_or(u64::MAX, |settings| settings.keep_code_s())
            });
            ctx.clock.now().seconds_since(of.at) >= kept && !is_awaited(&data, &of.job)
        };
        let path = copy.path();
        if !of_it.iter().any(|of| of.is_of(&path)) || !of_it.iter().all(&mut is_over) {
            continue;
        }
        let origins: HashSet<PathBuf> = of_it.iter().map(|of| of.origin.clone()).collect();
        let token = ctx.random.hex(4);
        let is_used = &|| is_in_use(ctx, &copy.name);
        let how = Removal { origins: &origins, token: &token, is_used, most: left };
        // One that cannot be changed, perhaps by this account, stays as it is; others do not wait for it.
        let Ok(removed) = code_removal::remove(copy, &how) else { continue };
        left = left.saturating_sub(removed.files);
        gone.copies += usize::from(removed.files > 0);
        gone.bytes += removed.bytes;
        if left == 0 {
            break;
        }
    }
    Ok(gone)
}

/// Whether the code of a copy can be removed: it has a list and is not done, or it is an empty directory.
fn may_have_code(copy: &Path) -> bool {
    match code_removal::code_left(copy) {
        CodeLeft::All | CodeLeft::Some => true,
        CodeLeft::Nothing => false,
        CodeLeft::Unknown => fs::read_dir(copy).is_ok_and(|mut all| all.next().is_none()),
    }
}

/// Whether something waits in the queue to go on from a job.
fn is_awaited(data: &Data, job: &JobId) -> bool {
    data.queues().successor_of(job).is_some()
}

/// What the archive says of these copies, by their names.
fn archived_uses(
    ctx: &Ctx,
    copies: &[CodeCopy],
) -> Result<HashMap<String, Vec<ArchivedUse>>, Error> {
    let mut uses: HashMap<String, Vec<ArchivedUse>> = HashMap::new();
    if copies.is_empty() {
        return Ok(uses);
    }
    let wanted: HashSet<String> = copies.iter().map(|copy| copy.name.clone()).collect();
    let read = ctx.store.archived_beside(HashSet::new(), move |archived| {
        let is_wanted = names_of(&archived.job).iter().any(|name| wanted.contains(name));
        is_wanted.then(|| ArchivedUse::of(archived.at, &archived.job))
    });
    for of in read {
        let Some(of) = of? else { continue };
        for name in &of.names {
            uses.entry(name.clone()).or_default().push(of.clone());
        }
    }
    Ok(uses)
}

/// Copies that are to be removed whole.
#[derive(Debug, Default)]
pub struct WholeCopies {
    copies: Vec<(CodeCopy, u64)>,
}

impl WholeCopies {
    /// How many they are, and their bytes.
    pub fn size(&self) -> CodeGone {
        let bytes = self.copies.iter().map(|(_, bytes)| bytes).sum();
        CodeGone { copies: self.copies.len(), bytes }
    }
}

/// Finds the copies that can be removed whole once these jobs of a user are archived: theirs and, with `archived`, those of
/// all jobs of the user that are archived already. One that another job needs stays.
pub fn whole(
    ctx: &Ctx,
    user: &UserName,
    leaving: &[JobId],
    archived: bool,
) -> Result<WholeCopies, Error> {
    let roots = code_copies::roots_of_copies(ctx);
    let mut copies = with_names_of_copies(&roots, "");
    copies.retain(|copy| copy.user == user.as_str());
    let data = ctx.data()?;
    let (leaves, stays): (Vec<&Job>, Vec<&Job>) =
        data.jobs().partition(|job| leaving.contains(&job.id()));
    let waits = data.queues().entries.iter().filter_map(|entry| entry.spec.staged.as_ref());
    let waits: HashSet<&str> = waits.map(|staged| staged.copy.as_str()).collect();
    let needed: HashSet<String> = stays.into_iter().flat_map(names_of).collect();
    copies.retain(|copy| !needed.contains(&copy.name));
    let mut uses = archived_uses(ctx, &copies)?;
    for job in leaves {
        for name in names_of(job) {
            uses.entry(name).or_default().push(ArchivedUse::of(ctx.clock.now(), job));
        }
    }
    let mut whole = WholeCopies::default();
    for copy in copies {
        let path = copy.path();
        let of_it = uses.get(&copy.name).map_or(&[][..], Vec::as_slice);
        let is_its = of_it.iter().any(|of| of.user == *user && of.is_of(&path));
        // Members of a group may have one copy together: what others wrote there stays where some are named.
        let is_shared = !archived && of_it.iter().any(|of| !leaving.contains(&of.job));
        let is_needed = is_shared
            || waits.contains(path.to_string_lossy().as_ref())
            || of_it.iter().any(|of| is_awaited(&data, &of.job));
        // Where logs and copies lie below one root, a job logs in its copy: logs and checkpoints are never removed.
        let has_logs =
            of_it.iter().any(|of| of.log.as_ref().is_some_and(|log| log.starts_with(&path)));
        if is_its && !is_needed && !has_logs {
            let bytes = bytes_below(&path);
            whole.copies.push((copy, bytes));
        }
    }
    Ok(whole)
}

/// Removes copies whole. Those that a job needs by now stay.
pub fn remove_whole(ctx: &Ctx, whole: WholeCopies) -> CodeGone {
    let mut gone = CodeGone::default();
    for (copy, bytes) in whole.copies {
        let path = copy.path();
        let aside = with_ending(&path);
        if ctx.store.is_dry_run() || is_in_use(ctx, &copy.name) {
            continue;
        }
        let moved = fs::rename(&path, &aside);
        if moved.is_ok() && is_in_use(ctx, &copy.name) {
            // A job was brought back meanwhile.
            drop(fs::rename(&aside, &path));
            continue;
        }
        match moved.and_then(|()| ctx.store.disk().remove_tree(&aside)) {
            Ok(()) => {
                gone.copies += 1;
                gone.bytes += bytes;
            }
            Err(e) => ctx.warn([format!("{} cannot be removed: {e}", path.display())]),
        }
    }
    gone
}

/// Removes what was left of copies when their removal was killed.
fn finish_removing(ctx: &Ctx, roots: &BTreeSet<PathBuf>) {
    for copy in with_names_of_copies(roots, REMOVING) {
        let name = copy.name.strip_suffix(REMOVING).unwrap_or(&copy.name);
        if !is_in_use(ctx, name) {
            // What stays is tried again the next time.
            drop(ctx.store.disk().remove_tree(&copy.path()));
        }
    }
}

fn with_ending(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(REMOVING);
    path.into()
}

/// The bytes of the files below a directory. No link is followed.
fn bytes_below(dir: &Path) -> u64 {
    tree::of_this_disk(dir).unwrap_or_default().iter().map(|file| file.bytes).sum()
}
