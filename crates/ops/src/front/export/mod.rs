//! `export`: everything that is known of jobs, for other programs: tables as CSV and JSON, and for each attempt what it
//! printed, its job file and its code. Nothing is changed by it, and no key or secret leaves.
//!
//! What cannot be read, as the log of a machine that does not answer, is named; the rest is written all the same.

mod tables;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::Want;
use tpu_engine::runner::files::{Files as _, ThisDisk, partial};
use tpu_engine::runner::tree::{self, COPIED};
use tpu_system::store::{AttemptId, atomic};
use tpu_system::sys::files;

use crate::base::disk::make_dirs;
use crate::observe::curves::{self, CurveMemory};
use crate::observe::journal::Event;
use crate::observe::{log_files, runners};
use crate::{Ctx, Error, Kind};
use tables::Exported;

/// So many bytes of a log are asked for at once.
const PIECE: u64 = 8 << 20;

/// What of an export belongs to its owner alone.
const MODE: u32 = 0o600;

/// What is to be written.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// Into which directory.
    pub dir: PathBuf,
    /// Whose jobs; everybody's where nobody is named.
    pub user: Option<UserName>,
    /// Whether copies of code are written as well.
    pub code: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub struct ExportReport {
    /// Where.
    pub dir: PathBuf,
    /// The rows of each table.
    pub rows: Vec<(&'static str, usize)>,
    /// Attempts whose output was written.
    pub logs: usize,
    /// Copies of code that were written.
    pub code: usize,
    /// What could not be read, and why.
    pub missing: Vec<Error>,
}

impl ExportReport {
    /// Whether the same command may write more, once somebody answers.
    pub fn is_cut_short(&self) -> bool {
        self.missing.iter().any(|error| error.kind == Kind::Unreachable)
    }
}

/// Refuses where an export cannot begin.
pub fn may_begin(request: &ExportRequest) -> Result<(), Error> {
    let dir = &request.dir;
    let refused = |what: String| {
        Error::refused(what).hint(
            "name a directory that is empty or does not exist; of an export that broke off, remove the directory first",
        )
    };
    match fs::read_dir(dir).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(refused(format!("{} is not empty", dir.display()))),
        Ok(false) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(refused(format!("cannot write into {}: {e}", dir.display()))),
    }
}

/// How many attempts an export would have.
pub fn count(ctx: &Ctx, request: &ExportRequest) -> Result<usize, Error> {
    Ok(records(ctx, &*ctx.data()?, request.user.as_ref())?.len())
}

/// Writes it.
pub fn export(ctx: &Ctx, request: &ExportRequest) -> Result<ExportReport, Error> {
    may_begin(request)?;
    let data = ctx.data()?;
    let records = records(ctx, &data, request.user.as_ref())?;
    make_dirs(ctx, &request.dir)?;
    let mut report = ExportReport { dir: request.dir.clone(), ..ExportReport::default() };
    let code = if request.code { copies(ctx, &records, &mut report)? } else { BTreeMap::new() };
    let (mut memory, mut taken, mut all) = (CurveMemory::default(), BTreeSet::new(), Vec::new());
    for (job, archived) in records {
        let files = place(ctx, &job, &mut taken);
        write_files(ctx, &data, (&job, &files), &mut report)?;
        let measured = curves::of_record(ctx, &mut memory, &job);
        let code = job.stage_dir.as_ref().and_then(|copy| code.get(Path::new(copy)).cloned());
        all.push(Exported { job, archived, files, code, measured });
    }
    let mut events: Vec<Event> = Vec::new();
    for event in ctx.store.events() {
        match event {
            Ok(event) if request.user.is_none() || event.user == request.user => events.push(event),
            Ok(_) => {}
            Err(error) => {
                report.missing.push(Error::from(error));
                break;
            }
        }
    }
    events.reverse();
    for table in tables::of(ctx, &all, &events) {
        let path = |ending: &str| request.dir.join(format!("{}.{ending}", table.name));
        write(ctx, &path("csv"), &table.to_csv()?)?;
        write(ctx, &path("json"), &table.to_json())?;
        report.rows.push((table.name, table.len()));
    }
    Ok(report)
}

/// The records, those of the archive first, each once; and when they were archived.
fn records(
    ctx: &Ctx,
    data: &Data,
    user: Option<&UserName>,
) -> Result<Vec<(Job, Option<Timestamp>)>, Error> {
    let is_meant = |job: &Job| user.is_none_or(|user| job.user == *user);
    let there: HashSet<AttemptId> = data.jobs().map(AttemptId::of).collect();
    let mut found = Vec::new();
    for archived in ctx.store.archived_beside(there, |archived| archived) {
        let archived = archived?;
        if is_meant(&archived.job) {
            found.push((archived.job, Some(archived.at)));
        }
    }
    found.reverse();
    found.extend(data.jobs().filter(|job| is_meant(job)).map(|job| (job.clone(), None)));
    Ok(found)
}

/// Where the files of an attempt lie: `jobs/USER/NUMBER`; of several that had a number, the later ones as `NUMBER-2`.
fn place(ctx: &Ctx, job: &Job, taken: &mut BTreeSet<String>) -> String {
    let paths = ctx.store.paths();
    let whole = paths.job(&job.id());
    let place = whole.strip_prefix(paths.state()).unwrap_or(&whole).display().to_string();
    let others = (2..).map(|n: u32| format!("{place}-{n}"));
    let mut free = std::iter::once(place.clone()).chain(others);
    let found = free.find(|name| taken.insert(name.clone()));
    found.unwrap_or(place)
}

/// Writes what an attempt printed, its job file, and what else is text about it in its log directory.
fn write_files(
    ctx: &Ctx,
    data: &Data,
    (job, files): (&Job, &str),
    report: &mut ExportReport,
) -> Result<(), Error> {
    let dir = report.dir.join(files);
    make_dirs(ctx, &dir)?;
    match printed(ctx, data, job, &dir.join("output.log")) {
        Ok(true) => report.logs += 1,
        Ok(false) => {}
        Err(Failed::Read(error)) => report.missing.push(about(&job.id(), error)),
        Err(Failed::Write(error)) => return Err(error),
    }
    match log_files::as_file(data, job) {
        Ok((text, left_out)) => {
            let left_out = left_out.iter().map(|what| format!("# not in a file: {what}\n"));
            let text = left_out.collect::<String>() + &text;
            write(ctx, &dir.join("job.yaml"), text.as_bytes())?;
        }
        Err(error) => report.missing.push(about(&job.id(), error)),
    }
    Ok(())
}

fn about(id: &JobId, error: Error) -> Error {
    Error { message: format!("{id}: {}", error.message), ..error }
}

/// Why a file is not in an export.
enum Failed {
    /// It cannot be read; the others can.
    Read(Error),
    /// Nothing can be written.
    Write(Error),
}

/// Writes what an attempt has printed. Whether anything is left of that.
fn printed(ctx: &Ctx, data: &Data, job: &Job, to: &Path) -> Result<bool, Failed> {
    let mut file: Option<File> = None;
    let mut from = 0;
    loop {
        let want = Want::Kept { from, most: PIECE };
        let chunk = runners::output(ctx, data, job, want).map_err(Failed::Read)?;
        let Some(chunk) = chunk.filter(|chunk| !chunk.bytes.is_empty()) else {
            return Ok(file.is_some());
        };
        let unkept = |e: io::Error| Failed::Write(unwritten(to, &e));
        let mut out = match file.take() {
            Some(out) => out,
            None => File::create_new(to).map_err(unkept)?,
        };
        out.write_all(&chunk.bytes).map_err(unkept)?;
        file = Some(out);
        from = chunk.next;
    }
}

/// Writes the code of all copies that lie on this disk, as it was copied; where each is in the export.
fn copies(
    ctx: &Ctx,
    records: &[(Job, Option<Timestamp>)],
    report: &mut ExportReport,
) -> Result<BTreeMap<PathBuf, String>, Error> {
    let copies: BTreeSet<PathBuf> =
        records.iter().filter_map(|(job, _)| job.stage_dir.as_ref().map(PathBuf::from)).collect();
    let mut written = BTreeMap::new();
    for copy in copies {
        let Some(name) = copy.file_name().and_then(|name| name.to_str()) else { continue };
        let what = match copied(&copy, report) {
            Ok(what) if what.is_empty() => continue,
            Ok(what) => what,
            Err(e) => {
                report.missing.push(unread(&copy.join(COPIED), &e));
                continue;
            }
        };
        let place = format!("code/{name}");
        let to = report.dir.join(&place);
        make_dirs(ctx, &report.dir.join("code"))?;
        if let Err(e) = ThisDisk.put(&copy, &what, &to, &mut |_| {}) {
            drop(ctx.store.disk().remove_tree(&partial(&to)));
            report.missing.push(unread(&copy, &e));
            continue;
        }
        report.code += 1;
        written.insert(copy, place);
    }
    Ok(written)
}

/// What of a copy was copied and is still there, with the directories above it. Nothing of a copy on another machine, or
/// of one whose code was removed. What is not below the copy is named and left out.
fn copied(copy: &Path, report: &mut ExportReport) -> io::Result<Vec<PathBuf>> {
    let list = match files::read(&copy.join(COPIED)) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        list => list?,
    };
    let mut what = BTreeSet::new();
    for one in tree::read(&list)? {
        if !one.path.components().all(|part| matches!(part, Component::Normal(_))) {
            let e = io::Error::other("the list of the copy names it, and it lies outside the copy");
            report.missing.push(unread(&one.path, &e));
        } else if copy.join(&one.path).symlink_metadata().is_ok() {
            what.extend(one.path.ancestors().skip(1).map(Path::to_owned));
            what.insert(one.path);
        }
    }
    what.remove(Path::new(""));
    Ok(what.into_iter().collect())
}

fn unread(path: &Path, error: &io::Error) -> Error {
    Error::state(format!("{}: {error}", path.display())).hint("look at the file and its rights")
}

fn write(ctx: &Ctx, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Ok(atomic::write_file(&**ctx.store.disk(), path, bytes, MODE)?)
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    Error::state(format!("cannot write {}: {error}", path.display()))
        .hint("check the space and the rights there, and export into another directory")
}
