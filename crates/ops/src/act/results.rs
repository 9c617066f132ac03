//! What a job wrote where it worked: the files that it made or changed in the copy of its code.

use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Status};
use tpu_core::model::target::Machines;
use tpu_core::model::time::age;
use tpu_core::model::view::JobView;
use tpu_core::text::escape;
use tpu_engine::runner::files::Files;
pub use tpu_engine::runner::tree::InTree;
use tpu_engine::runner::tree::{self, COPIED, FIND};

use super::worker_shell::{self, Far, Spoken, Which};
use crate::base::code_dir;
use crate::base::ctx::job_of;
use crate::base::named::resolve_target;
use crate::observe::fleet::AskedOnce;
use crate::observe::{doors, runners};
use crate::{Ctx, Error};

/// So many bytes of a file are asked for at once.
const PIECE: u64 = 8 << 20;

/// What a job wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// The directory in which it worked; where nothing outlives it but what it logs, its log directory.
    pub dir: String,
    /// What it made or changed there, by path.
    pub files: Vec<InTree>,
    /// What lies beside the code and is reached by a link, by path. What was written there is in no copy.
    pub linked: Vec<InTree>,
    /// Whether others work in the same copy: what they wrote is among its files.
    pub is_shared: bool,
}

/// Where the files of a job lie.
enum Place {
    /// On a disk that its runner sees.
    Disk,
    /// On this one of its workers.
    Worker(u32),
}

/// The list of what was copied for a job, and its files now.
type Listed = (Vec<u8>, Vec<InTree>);

/// Lists what a job wrote.
pub fn of(ctx: &Ctx, id: &JobId) -> Result<Results, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let runner = runners::of(ctx, job);
    let dir = match &job.log_dir {
        Some(logs) if !runner.works_in_copy() => logs.as_str(),
        _ => copy_of(ctx, job)?,
    };
    let is_shared = data.jobs().any(|other| {
        let is_of_lineage = other.id() == *id || other.member() == job.member();
        other.stage_dir.is_some() && other.stage_dir == job.stage_dir && !is_of_lineage
    });
    let unlisted = |e: io::Error| {
        Error::unreachable(format!("cannot list the files of {id} in {dir}: {e}"))
            .hint("try again once its machine answers")
    };
    if !runner.works_in_copy() {
        let logged = runner.files().tree(Path::new(dir)).map_err(unlisted)?;
        let files = logged.ok_or_else(|| is_not_known(id, dir))?;
        return Ok(Results { dir: dir.to_owned(), files, linked: Vec::new(), is_shared: false });
    }
    let listed = match place(ctx, &data, job)? {
        Place::Disk => {
            let files = runner.files();
            let copied = Path::new(dir).join(COPIED);
            let copied = files.read(&copied, 0, u64::MAX).map_err(unlisted)?;
            copied.zip(files.tree(Path::new(dir)).map_err(unlisted)?)
        }
        Place::Worker(worker) => on_worker(ctx, (job, worker), dir)?,
    };
    let (copied, now) = listed.ok_or_else(|| is_not_known(id, dir))?;
    let before = tree::read(&copied).map_err(unlisted)?;
    let origin = job.staged().map_or(job.job_dir.as_str(), |staged| staged.from.as_str());
    let is_beside = |one: &InTree| {
        one.leads_to.as_ref().is_some_and(|to| *to == Path::new(origin).join(&one.path))
    };
    let (linked, files) = tree::written_since(now, &before).into_iter().partition(is_beside);
    Ok(Results { dir: dir.to_owned(), files, linked, is_shared })
}

/// The copy of the code of a job that has one.
fn copy_of<'a>(ctx: &Ctx, job: &'a Job) -> Result<&'a str, Error> {
    job.stage_dir.as_deref().ok_or_else(|| {
        let id = job.id();
        let dir = job.workplace().unwrap_or(&job.job_dir);
        let what =
            format!("{id} runs without a copy of its code: nobody knows which files are its");
        Error::refused(what).hint(format!("it works in {}", code_dir::shown(ctx, dir)))
    })
}

fn is_not_known(id: &JobId, dir: &str) -> Error {
    Error::not_found(format!("nobody knows what {id} wrote: there is no list of what was copied"))
        .hint(format!("it worked in {dir}; tpu keeps such a list of jobs that it begins"))
}

fn place(ctx: &Ctx, data: &Data, job: &Job) -> Result<Place, Error> {
    if matches!(resolve_target(data, job.tpu.as_str())?.machines, Machines::Here | Machines::Engine)
    {
        return Ok(Place::Disk);
    }
    // Workers that are only simulated work on our disk.
    let door = doors::to(ctx, &AskedOnce::new(ctx, data, &job.tpu))?;
    let first = job.execution().and_then(|execution| execution.workers.as_ref()?.first().copied());
    Ok(if door.is_elsewhere { Place::Worker(first.unwrap_or(0)) } else { Place::Disk })
}

/// What lies on a worker; `None` where the copy is gone there.
fn on_worker(ctx: &Ctx, (job, worker): (&Job, u32), dir: &str) -> Result<Option<Listed>, Error> {
    const APART: &[u8] = b"\0\0now\0";
    let place = shlex::try_quote(dir).map_err(|_| Error::usage("a NUL in the stage directory"))?;
    let command = format!(
        "[ -f {place}/{COPIED} ] || exit 44; cd -- {place} && cat {COPIED} && printf '\\0\\0now\\0' && {{ {FIND}; true; }}"
    );
    let (mut said, mut why) = (Vec::new(), String::new());
    let hear = &mut |_, spoken| match spoken {
        Spoken::Out(line) => said.extend(line),
        Spoken::Err(line) => String::from_utf8_lossy(&line).trim().clone_into(&mut why),
    };
    let ended = worker_shell::ask(ctx, &job.tpu, Which::One(worker), &command, hear)?;
    let code = ended.into_iter().next().map_or(Err("it said no end".to_owned()), |end| end.code);
    let unlisted = |why: &str| {
        Error::unreachable(format!("cannot list the files of {} on {}: {why}", job.id(), job.tpu))
            .hint("try again once it answers")
    };
    match code {
        Ok(0) => {}
        Ok(44) => return Ok(None),
        Ok(code) => return Err(unlisted(&format!("{} (exit code {code})", escape(&why)))),
        Err(why) => return Err(unlisted(&why)),
    }
    let at = said.windows(APART.len()).position(|part| part == APART);
    let Some((copied, now)) = at.and_then(|at| said.split_at_checked(at)) else {
        return Err(unlisted("it said only a part"));
    };
    let now = tree::read(&now[APART.len()..]).map_err(|e| unlisted(&e.to_string()))?;
    Ok(Some((copied.to_vec(), now)))
}

/// Where files of a job are copied to.
#[derive(Clone, Copy, Debug)]
pub struct Into<'a> {
    /// The directory.
    pub dir: &'a Path,
    /// Whether files that are there already are replaced.
    pub replaces: bool,
}

/// Copies files that a job wrote, or all that it wrote in a directory, into a directory of this machine, under the paths that
/// they have there. Where they are now.
pub fn get(ctx: &Ctx, id: &JobId, paths: &[String], into: Into<'_>) -> Result<Vec<PathBuf>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let Results { dir, files: written, .. } = of(ctx, id)?;
    let listing = format!("tpu files {} lists what it wrote", id.window);
    let place = place(ctx, &data, job)?;
    let mut wanted = Vec::new();
    for path in paths {
        let whole = below(path).ok_or_else(|| {
            Error::usage(format!("{path} is no path below the directory of {id}")).hint(&listing)
        })?;
        let known = wanted.len();
        wanted.extend(
            written.iter().map(|one| one.path.clone()).filter(|path| path.starts_with(&whole)),
        );
        if wanted.len() == known {
            // What lies beside the code is reached through a link.
            if whole.as_os_str().is_empty() || matches!(place, Place::Worker(_)) {
                return Err(Error::not_found(format!("{id} wrote no {path}")).hint(&listing));
            }
            wanted.push(whole);
        }
    }
    let to: PathBuf = ctx.env.cwd.join(into.dir).components().collect();
    if let Some(there) = wanted.iter().map(|path| to.join(path)).find(|to| to.exists())
        && !into.replaces
    {
        let what = format!("{} is there already", code_dir::shown(ctx, &there.to_string_lossy()));
        return Err(Error::refused(what).hint("-y replaces it; --to DIR copies it elsewhere"));
    }
    for path in &wanted {
        let (from, to) = (Path::new(&dir).join(path), to.join(path));
        match place {
            Place::Disk => fetch(&*runners::of(ctx, job).files(), (id, &from), &to)?,
            Place::Worker(worker) => {
                let (from, above) = (from.to_string_lossy(), to.parent().unwrap_or(&to));
                let far = Far { target: &job.tpu, which: Which::One(worker), path: &from };
                let ended = worker_shell::fetch(ctx, &far, &above.to_string_lossy())?;
                if let Some(Err(why)) = ended.into_iter().map(|end| end.code).next() {
                    let what = format!("cannot get {} from {}: {why}", path.display(), job.tpu);
                    return Err(Error::unreachable(what));
                }
            }
        }
    }
    Ok(wanted.into_iter().map(|path| to.join(path)).collect())
}

/// A path below a directory without what means nothing in it; `None` for any other path.
fn below(path: &str) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.is_empty()).then_some(whole)
}

/// Copies one file. Under its name there is afterwards all of it or what was there before.
fn fetch(files: &dyn Files, (id, from): (&JobId, &Path), to: &Path) -> Result<(), Error> {
    let unread = |e: io::Error| Error::unreachable(format!("cannot read {}: {e}", from.display()));
    let unkept = |e: io::Error| Error::state(format!("cannot write {}: {e}", to.display()));
    let dir = to.parent().unwrap_or(Path::new("."));
    let first = files.read(from, 0, PIECE).map_err(unread)?.ok_or_else(|| {
        Error::not_found(format!("{id} has no file {}", from.display()))
            .hint(format!("tpu files {} lists what there is", id.window))
    })?;
    std::fs::create_dir_all(dir).map_err(unkept)?;
    let mut kept = tempfile::NamedTempFile::new_in(dir).map_err(unkept)?;
    let (mut at, mut piece) = (0, first);
    while !piece.is_empty() {
        kept.write_all(&piece).map_err(unkept)?;
        at += u64::try_from(piece.len()).unwrap_or_default();
        piece = files.read(from, at, PIECE).map_err(unread)?.unwrap_or_default();
    }
    kept.persist(to).map_err(|e| unkept(e.error))?;
    Ok(())
}

/// The last words about a job: how it ended, after how long, and what it wrote, where this machine can see that.
pub fn last_words(ctx: &Ctx, view: &JobView) -> String {
    let is_over = view.shown.unknown.is_none() && !view.shown.status.is_live();
    let word = match view.shown.status {
        Status::Finished if is_over => "finished".to_owned(),
        _ => format!("is {}", view.shown.status_in_words()),
    };
    let took = view.ran_s().map(|s| format!(" after {}", age(s)));
    let ended = format!("{} {word}{}", view.id, took.unwrap_or_default());
    match is_over
        .then(|| seen_from_here(ctx, &view.id))
        .flatten()
        .and_then(|found| found.in_words())
    {
        Some(wrote) => format!("{ended}. It wrote {wrote}: tpu files {}", view.id.window),
        None => ended,
    }
}

/// What a job wrote, where this machine can see that.
pub fn seen_from_here(ctx: &Ctx, id: &JobId) -> Option<Results> {
    let data = ctx.data().ok()?;
    let job = job_of(&data, id).ok()?;
    let is_here = resolve_target(&data, job.tpu.as_str()).is_ok_and(|target| target.is_here());
    (is_here && job.stage_dir.is_some()).then(|| of(ctx, id).ok()).flatten()
}

impl Results {
    /// What was written, in a few words: `results.csv and 2 more`; of a member with whom. `None` where that is nothing.
    pub fn in_words(&self) -> Option<String> {
        let (first, rest) = self.files.split_first()?;
        let first = escape(&first.path.to_string_lossy()).into_owned();
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let with = if self.is_shared { " (with the others of its group)" } else { "" };
        Some(format!("{first}{more}{with}"))
    }
}
