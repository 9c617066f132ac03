//! Checkpoints of the training: one text file per step, whole or not there at all.
//!
//! Written under a temporary name, synced and renamed, so that a kill at any instant leaves either the
//! old set or the new one. The last line is a checksum of all others. If the newest one is damaged (a
//! disk error: a crash cannot do it) the one before it is used: an interval of work is lost and said,
//! rather than the whole run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tpu_core::text::fnv1a;

use super::network::{PARAMETERS, Random, State};
use super::{TrainError, file_error};

const TITLE: &str = "tpu demo-train checkpoint 1";
const PREFIX: &str = "checkpoint_";
const TEMPORARY: &str = ".tmp";
/// How many are kept: enough to fall back on, and a long run does not fill the disk.
const KEPT: usize = 3;

/// The directory of one run's checkpoints.
#[derive(Debug)]
pub(super) struct Checkpoints {
    directory: PathBuf,
}

/// The newest checkpoint that can be read.
#[derive(Debug)]
pub(super) struct Found {
    /// The file.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) state: State,
    /// Newer ones that cannot be used.
    pub(super) skipped: Vec<Damaged>,
}

/// A checkpoint that cannot be used.
#[derive(Debug)]
pub(super) struct Damaged {
    /// The file.
    pub(super) path: PathBuf,
    /// What is wrong with it.
    pub(super) reason: String,
}

impl Checkpoints {
    /// Makes `<workdir>/checkpoints` and removes what a killed writer left in it.
    pub(super) fn open(workdir: &Path) -> Result<Self, TrainError> {
        let opened = Self::of_run(workdir);
        let directory = &opened.directory;
        fs::create_dir_all(directory).map_err(file_error("create", directory))?;
        for entry in fs::read_dir(directory).map_err(file_error("list", directory))? {
            let path = entry.map_err(file_error("list", directory))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(TEMPORARY) {
                fs::remove_file(&path).map_err(file_error("remove", &path))?;
            }
        }
        Ok(opened)
    }

    /// Those of a run whose log directory is `workdir`; nothing is touched.
    pub(super) fn of_run(workdir: &Path) -> Self {
        Self { directory: workdir.join("checkpoints") }
    }

    /// Where they are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether `path` is one of these.
    pub(super) fn holds(&self, path: &Path) -> bool {
        path.parent() == Some(&self.directory)
    }

    /// Saves `state` and drops the oldest; returns the file.
    pub(super) fn save(&self, state: &State, seed: u64) -> Result<PathBuf, TrainError> {
        let path = self.directory.join(format!("{PREFIX}{}", state.step));
        let temporary = self.directory.join(format!("{PREFIX}{}{TEMPORARY}", state.step));
        let mut file = File::create(&temporary).map_err(file_error("create", &temporary))?;
        file.write_all(encode(state, seed).as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(file_error("write", &temporary))?;
        fs::rename(&temporary, &path).map_err(file_error("rename", &temporary))?;
        // Without this the new name may be lost with the machine's power.
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(file_error("sync", &self.directory))?;
        for (_, old) in self.list()?.into_iter().skip(KEPT) {
            fs::remove_file(&old).map_err(file_error("remove", &old))?;
        }
        Ok(path)
    }

    /// The newest one that is whole; `None` if there is none at all.
    pub(super) fn newest(&self, seed: u64) -> Result<Option<Found>, TrainError> {
        let mut skipped = Vec::new();
        for (step, path) in self.list()? {
            let bytes = match fs::read(&path) {
                // The process that writes them has dropped it since as the oldest.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(file_error("read", &path))?,
            };
            match decode(&String::from_utf8_lossy(&bytes)) {
                Ok((state, found)) if state.step == step => {
                    if found != seed {
                        return Err(TrainError::OtherSeed { path, found, wanted: seed });
                    }
                    return Ok(Some(Found { path, state, skipped }));
                }
                Ok((state, _)) => {
                    let reason = format!("it holds step {}", state.step);
                    skipped.push(Damaged { path, reason });
                }
                Err(reason) => skipped.push(Damaged { path, reason: reason.to_owned() }),
            }
        }
        match skipped.into_iter().next() {
            Some(Damaged { path, reason }) => Err(TrainError::Damaged { path, reason }),
            None => Ok(None),
        }
    }

    /// Steps and files, newest first; temporary names and other files are no checkpoints.
    fn list(&self) -> Result<Vec<(u32, PathBuf)>, TrainError> {
        let failed = || file_error("list", &self.directory);
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed()(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(step) = name.strip_prefix(PREFIX).and_then(|step| step.parse().ok()) {
                found.push((step, path));
            }
        }
        found.sort_by_key(|(step, _)| std::cmp::Reverse(*step));
        Ok(found)
    }
}

/// The text of a checkpoint. Numbers are written as their bits: nothing is rounded.
fn encode(state: &State, seed: u64) -> String {
    let mut text =
        format!("{TITLE}\nseed {seed}\nstep {}\nrandom {:016x}\n", state.step, state.random.0);
    for (name, numbers) in
        [("parameters", &state.parameters), ("mean", &state.mean), ("square", &state.square)]
    {
        text.push_str(name);
        for number in numbers {
            // Writing to a String cannot fail.
            write!(text, " {:016x}", number.to_bits()).ok();
        }
        text.push('\n');
    }
    let sum = checksum(&text);
    text + &format!("sum {sum:016x}\n")
}

/// Reads what [`encode`] wrote: the state and its seed.
fn decode(text: &str) -> Result<(State, u64), &'static str> {
    let (body, sum) = text.rsplit_once("sum ").ok_or("its end is missing")?;
    if sum != format!("{:016x}\n", checksum(body)) {
        return Err("its checksum does not fit");
    }
    let mut lines = body.lines();
    if lines.next() != Some(TITLE) {
        return Err("it is no checkpoint of this training");
    }
    let mut field = |name: &str| -> Result<&str, &'static str> {
        let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.ok_or("a field is missing")
    };
    let seed = field("seed")?.parse().map_err(|_| "its seed is no number")?;
    let step = field("step")?.parse().map_err(|_| "its step is no number")?;
    let random = field("random")?;
    let random = u64::from_str_radix(random, 16).map_err(|_| "its generator is no number")?;
    let (parameters, mean, square) =
        (numbers(field("parameters")?)?, numbers(field("mean")?)?, numbers(field("square")?)?);
    Ok((State { step, random: Random(random), parameters, mean, square }, seed))
}

fn numbers(text: &str) -> Result<[f64; PARAMETERS], &'static str> {
    let numbers: Result<Vec<f64>, _> =
        text.split(' ').map(|word| u64::from_str_radix(word, 16).map(f64::from_bits)).collect();
    let numbers = numbers.map_err(|_| "a number in it is none")?;
    numbers.try_into().map_err(|_| "it has another number of parameters")
}

/// What tells that it is whole.
fn checksum(text: &str) -> u64 {
    fnv1a(text.bytes())
}
