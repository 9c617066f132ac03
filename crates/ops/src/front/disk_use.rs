//! How much the files of this program take on the disk of this machine, by what they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::model::ids::UserName;
use tpu_core::model::words::words;
use tpu_core::text;
use tpu_engine::runner::tree::{self, COPIED};
use tpu_system::sys::files;

use super::doctor::{Finding, fine};
use crate::base::code_copies::{self, with_names_of_copies};
use crate::base::launch_paths::roots;
use crate::{Ctx, Error};

/// What files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePurpose {
    /// Copies of code, with what jobs wrote in them.
    Copies,
    /// Of that, what jobs wrote.
    Results,
    /// What jobs log, and their checkpoints.
    Logs,
    /// Earlier versions of the state file.
    Backups,
    /// Records that were cleaned away.
    Archive,
    /// The state file, the journal and the rest.
    State,
}

words! {
    /// The word in JSON.
    FilePurpose {
        Copies: "copies",
        Results: "results",
        Logs: "logs",
        Backups: "backups",
        Archive: "archive",
        State: "state",
    }
}

/// What files of one purpose take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRow {
    /// What they are.
    pub purpose: FilePurpose,
    /// Their bytes.
    pub bytes: u64,
    /// Where they lie.
    pub places: Vec<PathBuf>,
}

/// What all of it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// By purpose.
    pub rows: Vec<DiskRow>,
    /// Directories that could not be read, and are not counted.
    pub unread: Vec<PathBuf>,
    /// The setting `keep_code`.
    pub keep_code: String,
}

impl DiskUse {
    /// All bytes, each once.
    pub fn total(&self) -> u64 {
        // Results lie in copies.
        let rows = self.rows.iter().filter(|row| row.purpose != FilePurpose::Results);
        rows.map(|row| row.bytes).sum()
    }
}

/// Counts what everybody's files take or, of a user, their copies and logs.
pub fn report(ctx: &Ctx, user: Option<&UserName>) -> Result<DiskUse, Error> {
    let data = ctx.data()?;
    let keep_code = ctx.settings(user.and_then(|user| data.user(user)))?.keep_code;
    let mut used = DiskUse { keep_code, ..DiskUse::default() };
    let places = Places::of(ctx, user);
    let mut counts = Counts::new(&|| true);
    let copies: u64 = places.copies.iter().map(|dir| counts.below(dir, &[])).sum();
    let logs: u64 = places.logs.iter().map(|dir| counts.below(dir, &[])).sum();
    let whose = |of: &str| user.is_none_or(|user| user.as_str() == of);
    let all = with_names_of_copies(&places.roots, "");
    let results = all.iter().filter(|copy| whose(&copy.user)).map(|copy| results_in(&copy.path()));
    let results = results.sum();
    used.add(FilePurpose::Copies, copies, places.copies.clone());
    used.add(FilePurpose::Results, results, Vec::new());
    used.add(FilePurpose::Logs, logs, places.logs.clone());
    if user.is_none() {
        let paths = ctx.store.paths();
        let (backups, archive, state) = (paths.backups(), paths.archive(), paths.state());
        let counted_already = [&places.copies[..], &places.logs, std::slice::from_ref(&archive)];
        let state_file = counts.below(paths.data(), &[]);
        let rest = counts.below(&state, &counted_already.concat());
        used.add(FilePurpose::Backups, counts.below(&backups, &[]), vec![backups]);
        used.add(FilePurpose::Archive, counts.below(&archive, &[]), vec![archive]);
        let of_state = vec![paths.data().to_owned(), state];
        used.add(FilePurpose::State, state_file + rest, of_state);
    }
    used.unread = counts.unread;
    Ok(used)
}

impl DiskUse {
    fn add(&mut self, purpose: FilePurpose, bytes: u64, places: Vec<PathBuf>) {
        let places = places.into_iter().filter(|place| place.exists()).collect();
        self.rows.push(DiskRow { purpose, bytes, places });
    }
}

/// How long `doctor` counts at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// What `doctor` says of it.
pub fn look(ctx: &Ctx) -> Finding {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let has_time = || ctx.clock.monotonic() < deadline;
    let mut counts = Counts::new(&has_time);
    let (places, paths) = (Places::of(ctx, None), ctx.store.paths());
    let state = paths.state();
    let is_elsewhere = |dir: &&PathBuf| !dir.starts_with(&state);
    let mut all = counts.below(&state, &[]);
    all += counts.below(&paths.backups(), &[]) + counts.below(paths.data(), &[]);
    for dir in places.copies.iter().chain(&places.logs).filter(is_elsewhere) {
        all += counts.below(dir, &[]);
    }
    let least = if has_time() && counts.unread.is_empty() { "" } else { "at least " };
    fine(format!("copies of code, logs and state take {least}{} (tpu disk)", text::bytes(all)))
}

/// Where copies and logs lie.
struct Places {
    /// The roots of copies.
    roots: BTreeSet<PathBuf>,
    copies: Vec<PathBuf>,
    logs: Vec<PathBuf>,
}

impl Places {
    fn of(ctx: &Ctx, user: Option<&UserName>) -> Self {
        let (data, state) = (ctx.data(), ctx.store.paths().state());
        let users = || data.iter().flat_map(|data| data.users());
        let copies = code_copies::roots_of_copies(ctx);
        // Logs may lie in a bucket.
        let logs = users().filter_map(|user| roots(ctx, user).ok()).map(|of| PathBuf::from(of.log));
        let mut logs: BTreeSet<PathBuf> = logs.filter(|root| root.is_absolute()).collect();
        logs.insert(state.join("logs"));
        // A root that settings name may hold what is not ours.
        let dirs = |root: &PathBuf| -> Vec<PathBuf> {
            match user {
                Some(user) => vec![root.join(user.as_str())],
                None if root.starts_with(&state) => vec![root.clone()],
                None => users().map(|user| root.join(user.name.as_str())).collect(),
            }
        };
        let mut of_logs: Vec<PathBuf> = logs.iter().flat_map(dirs).collect();
        let of_copies: Vec<PathBuf> = copies.iter().flat_map(dirs).collect();
        of_logs.retain(|dir| !of_copies.contains(dir));
        Self { roots: copies, copies: of_copies, logs: of_logs }
    }
}

/// What was counted.
struct Counts<'a> {
    has_time: &'a dyn Fn() -> bool,
    unread: Vec<PathBuf>,
}

impl<'a> Counts<'a> {
    fn new(has_time: &'a dyn Fn() -> bool) -> Self {
        Self { has_time, unread: Vec::new() }
    }

    /// The bytes of a file, or of all files below a directory but for these. No link is followed.
    fn below(&mut self, path: &Path, but: &[PathBuf]) -> u64 {
        let (mut bytes, mut waiting) = (0, vec![path.to_owned()]);
        while let Some(path) = waiting.pop() {
            if but.contains(&path) || !(self.has_time)() {
                continue;
            }
            // What went meanwhile counts for nothing.
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if !meta.is_dir() {
                bytes += meta.len();
                continue;
            }
            match fs::read_dir(&path) {
                Ok(entries) => waiting.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) => self.unread.push(path),
            }
        }
        bytes
    }
}

/// The bytes that jobs wrote in a copy; nothing where nobody knows.
fn results_in(copy: &Path) -> u64 {
    let known = files::read(&copy.join(COPIED)).and_then(|list| tree::read(&list));
    let Ok(known) = known else { return 0 };
    let now = tree::of_this_disk(copy).unwrap_or_default();
    tree::written_since(now, &known).iter().map(|file| file.bytes).sum()
}
