//! What a job sets up before its command, on each of its machines: what is laid ready for them, and what they say of it.
//!
//! ```text
//! modules of the job ─ jobfile::modules: steps, and the words around the command
//!                    ─ [SetUp::lay]: programs, steps and what they take from this machine, in a directory
//!                    ─ carried to each worker; `setup.sh` goes through the steps and becomes the command there
//!                    ─ [Hearing]: its lines become a log for each module and worker, and what the window shows
//! ```
//! It is part of the launch, with the launch's token: what stops a job stops its set-up, and what comes back after a
//! broken connection hears the rest of it. Of several workers none begins before all are ready.

mod hearing;
mod here;

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use tpu_core::model::data::Data;
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;
use tpu_core::model::recipe::Step;
use tpu_core::model::setup::{Module, SetUpHow};
use tpu_core::model::variables;
use tpu_engine::runner::Preparation;
use tpu_engine::runner::command::parted;
use tpu_engine::runner::files::Files;
use tpu_jobfile::modules::{
    self, ModuleStep, PROGRAMS, ReadBytes, RecipeNeeds, SETUP, Taken, TakenFrom,
};

use super::recipes;
use crate::{Ctx, Error};

pub use hearing::{Hearing, SetUpLine};
pub use here::{SetUpHere, set_up_here};

/// Exit code of what could not be set up: that of `setup.sh`. The cause that is written down beside it says more.
pub const FAILED: i32 = 70;

/// What a line of the window says of a set-up, for whoever looks at the job.
pub(crate) fn said_in(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    text.split_once("set-up: ").map(|(_, said)| said.trim_end().to_owned())
}

/// What a job sets up.
pub struct SetUp {
    steps: Vec<ModuleStep>,
    around: Vec<OsString>,
    token: LaunchToken,
    is_forced: bool,
    /// Where what is relative lies.
    code: PathBuf,
    /// The directories of the code: its copy, and those of which that was made, to which the copy may have links.
    roots: Vec<PathBuf>,
}

impl SetUp {
    /// That of a job; `None` where it sets nothing up.
    pub fn of(ctx: &Ctx, data: &Data, job: &Job) -> Result<Option<Self>, Error> {
        let (Some(execution), Some(launch)) = (job.execution(), &job.launch) else {
            return Ok(None);
        };
        if execution.setup.is_empty() {
            return Ok(None);
        }
        let mut steps = Vec::new();
        let looked_at = match execution.setup_how {
            SetUpHow::Auto | SetUpHow::Force => execution.setup.as_slice(),
            SetUpHow::Skip => &[],
        };
        for (number, module) in looked_at.iter().enumerate() {
            match (modules::steps(module, number), module) {
                (Some(of), _) => steps.extend(of),
                (None, Module::Recipe(name)) => {
                    steps.extend(of_recipe(ctx, (data, job), (name, number))?);
                }
                (None, _) => {}
            }
        }
        let own = execution.variables.iter().map(|(name, _)| name);
        let own = own.chain(&execution.secrets).cloned();
        let ours = variables::of_jobs().chain(["PYTHONUNBUFFERED", "FORCE_COLOR"]);
        let names: Vec<String> = own.chain(ours.map(str::to_owned)).collect();
        let root = job.stage_dir.as_deref().unwrap_or(&job.job_dir);
        let slot = data.user(&job.user).and_then(|user| user.dir(job.job_dir_id?));
        Ok(Some(Self {
            steps,
            around: modules::around(&execution.setup, &names),
            is_forced: execution.setup_how == SetUpHow::Force,
            token: launch.token.clone(),
            code: job.within(root).into(),
            roots: [Some(root), Some(&*job.job_dir), slot]
                .into_iter()
                .flatten()
                .map(PathBuf::from)
                .collect(),
        }))
    }

    /// The modules of its steps, one for each.
    fn modules(&self) -> Vec<String> {
        self.steps.iter().map(|step| step.module.clone()).collect()
    }

    /// What begins the lines in which a worker speaks of its set-up.
    fn mark(&self) -> String {
        format!("tpu-set-up {}", self.token)
    }

    /// The command as it runs in the environment of the job.
    pub fn within(&self, command: Vec<OsString>) -> Vec<OsString> {
        // What runs it as its job wants it stands outside of its container.
        let (before, command) = parted(command);
        before.into_iter().chain(self.around.iter().cloned()).chain(command).collect()
    }

    /// Where it lies on a worker, as a shell there reads it: on its own disk, whoever shares the homes, under a name
    /// that nobody can guess.
    pub fn place(&self) -> String {
        format!("\"/tmp/tpu-set-up-{}-${{TPU_WORKER:-0}}\"", self.token)
    }

    /// The command behind its set-up on a worker.
    pub fn before(&self, command: Vec<OsString>) -> Vec<OsString> {
        let begin = format!("exec bash {}/setup.sh \"$@\"", self.place());
        let words = ["bash".into(), "-c".into(), begin.into(), "set-up".into()];
        words.into_iter().chain(command).collect()
    }

    /// What is known of it before anything is laid ready, for a runner that sees to it itself. `None` where nothing is
    /// looked at.
    pub fn preparation(&self) -> Option<Preparation> {
        let dir = PathBuf::new();
        let is_confidential = self.steps.iter().any(|step| !step.taken.is_empty());
        // It is looked at, brought about, and looked at again.
        let most = |step: &ModuleStep| match step.check {
            Some(_) => step.timeout_s.saturating_mul(3),
            None => step.timeout_s,
        };
        let most_s = self.steps.iter().map(most).fold(0, u64::saturating_add);
        (!self.steps.is_empty()).then_some(Preparation { dir, is_confidential, most_s })
    }

    /// The same where the code lies on another disk, from which it takes what lies beside that.
    pub(crate) fn lay_for(
        &self,
        ctx: &Ctx,
        dir: &Path,
        files: &dyn Files,
    ) -> Result<Option<Preparation>, Error> {
        self.lay_from(ctx, (dir, Some(files)), ("", false))?;
        Ok(self.preparation().map(|preparation| Preparation { dir: dir.to_owned(), ..preparation }))
    }

    /// Lays ready what a worker needs, in a directory that is its owner's alone. `machine` tells its machine from a
    /// later one; `is_alone`: no other is waited for.
    pub fn lay(&self, ctx: &Ctx, dir: &Path, machine: &str, is_alone: bool) -> Result<(), Error> {
        self.lay_from(ctx, (dir, None), (machine, is_alone))
    }

    fn lay_from(
        &self,
        ctx: &Ctx,
        (dir, files): (&Path, Option<&dyn Files>),
        (machine, is_alone): (&str, bool),
    ) -> Result<(), Error> {
        let put = |name: &str, bytes: &[u8]| {
            write(&dir.join(name), bytes).map_err(|e| {
                Error::state(format!("cannot lay the set-up ready in {}: {e}", dir.display()))
            })
        };
        put("setup.sh", SETUP.as_bytes())?;
        for (name, text) in PROGRAMS {
            put(name, text.as_bytes())?;
        }
        put("nonce", self.mark().as_bytes())?;
        put("machine", format!("{machine}\n").as_bytes())?;
        put("steps", &self.written())?;
        let marks = [("alone", is_alone), ("force", self.is_forced)];
        for (mark, _) in marks.into_iter().filter(|(_, is_set)| *is_set) {
            put(mark, b"")?;
        }
        for taken in self.steps.iter().flat_map(|step| &step.taken) {
            put(&taken.name, &self.bytes(ctx, taken, files)?)?;
        }
        Ok(())
    }

    /// The steps as `setup.sh` reads them.
    fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for step in &self.steps {
            let workers = step
                .workers
                .as_ref()
                .map(|workers| workers.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
            let words = [
                step.module.clone(),
                workers.unwrap_or_else(|| "all".to_owned()),
                step.timeout_s.to_string(),
                if step.is_once { "once" } else { "" }.to_owned(),
                step.check.clone().unwrap_or_default(),
                step.run.clone().unwrap_or_default(),
            ];
            for word in words {
                bytes.extend_from_slice(word.as_bytes());
                bytes.push(0);
            }
        }
        bytes
    }

    fn bytes(&self, ctx: &Ctx, taken: &Taken, files: Option<&dyn Files>) -> Result<Vec<u8>, Error> {
        let path = match &taken.from {
            TakenFrom::Read(bytes) => return Ok(bytes.0.clone()),
            TakenFrom::Text(text) => return Ok(text.trim_end_matches('\n').as_bytes().to_vec()),
            TakenFrom::Path(path) => path,
        };
        let whole = match (path.strip_prefix("~/"), ctx.env.non_empty("HOME")) {
            (Some(below), Some(home)) => Path::new(home).join(below),
            _ => self.code.join(path),
        };
        let is_beside_code = !path.starts_with("~/") && Path::new(path).is_relative();
        let is_far = |files: &&dyn Files| is_beside_code && !files.is_seen_from_here();
        if let Some(files) = files.filter(is_far) {
            let found = files.read(&whole, 0, u64::MAX).and_then(|found| {
                found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is not there"))
            });
            return found.map_err(|e| missing(path, &whole, &e));
        }
        let disk = ctx.store.disk();
        let found = disk.resolve(&whole).map_err(|e| missing(path, &whole, &e))?;
        // Whoever wrote the code need not be whoever may read what its links lead to.
        if is_in_code(path) {
            let mut roots = self.roots.iter().filter_map(|root| disk.resolve(root).ok());
            if !roots.any(|root| found.starts_with(root)) {
                return Err(Error::refused(format!(
                    "what the set-up takes from here is a link that leads out of the code: {path}"
                ))
                .hint("name the file itself, or copy it into the code"));
            }
        }
        Ok(disk.read(&found).map_err(|e| missing(path, &whole, &e))?.bytes)
    }
}

/// Whether a path names what lies in the code, as far as its words say.
pub(crate) fn is_in_code(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.starts_with('~')
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn missing(path: &str, whole: &Path, error: &io::Error) -> Error {
    Error::not_found(format!("what the set-up takes from here cannot be read: {path}: {error}"))
        .hint(format!("it is looked for at {}", whole.display()))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, bytes)
}

/// The steps of a recipe of the lab for the target of a job, with what they take from here.
fn of_recipe(
    ctx: &Ctx,
    (data, job): (&Data, &Job),
    (name, number): (&str, usize),
) -> Result<Vec<ModuleStep>, Error> {
    let gone = || Error::not_found(format!("{} is not known any more", job.tpu));
    let target = data.target(&job.tpu).ok_or_else(gone)?;
    let request = recipes::Request { recipe: name.to_owned(), target, force: false };
    let steps = recipes::steps(ctx, &request)?.into_iter().enumerate();
    let of_step = |(index, step): (usize, Step)| {
        let needs = recipes::taken(ctx, &step).map(|(files, input)| RecipeNeeds {
            files: files
                .into_iter()
                .map(|(bytes, to, mode)| (ReadBytes(bytes), to, mode))
                .collect(),
            input: input.map(ReadBytes),
        });
        let of_module = ModuleStep {
            module: name.to_owned(),
            check: step.check,
            run: step.setup,
            timeout_s: u64::from(step.timeout_s),
            ..ModuleStep::default()
        };
        modules::of_recipe(of_module, (number, index), needs)
    };
    Ok(steps.map(of_step).collect())
}
