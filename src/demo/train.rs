//! A small real training: what the jobs of `tpu demo` and of the example run (`tpu demo-train …`).
//!
//! It takes arguments, writes checkpoints, prints progress and fails as a JAX script does, and needs no
//! Python. A run that was cut anywhere and resumed ends with bit for bit the loss of one that was not:
//! the checkpoint holds everything that the next step depends on, and no sum is ever reordered.

mod arguments;
mod checkpoint;
mod failure;
mod network;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::model::time::Timestamp;

use arguments::Config;
use checkpoint::Checkpoints;
use network::{Examples, State};

/// Why the training could not go on. A failure that was asked for (`oom_at`) is no error but a code.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An argument is unknown, lacks its value, or has one that makes no sense.
    #[error("argument '{argument}': {reason}")]
    Argument {
        /// As it was typed.
        argument: String,
        /// What is expected instead.
        reason: String,
    },
    /// A file or directory could not be read or written.
    #[error("cannot {doing} {path}")]
    File {
        /// Verb: `read`, `write`, …
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing to resume from.
    #[error(
        "no checkpoint in {directory}: start without --config.load_from, or name the log directory \
         of a run that has saved one"
    )]
    NoCheckpoint {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Every checkpoint there is damaged.
    #[error("checkpoint {path} is damaged: {reason}; there is no older one")]
    Damaged {
        /// The newest one.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The checkpoint belongs to another run.
    #[error("checkpoint {path} was made with seed {found}; this run has --config.seed={wanted}")]
    OtherSeed {
        /// The checkpoint.
        path: PathBuf,
        /// The seed in it.
        found: u64,
        /// The seed of this run.
        wanted: u64,
    },
    /// Nobody reads the output any more.
    #[error("cannot write the training's output")]
    Output(#[from] io::Error),
}

/// The clock, as the training sees it.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// When the program started.
    pub started: Timestamp,
    /// Time since then, by a clock that never goes back.
    pub elapsed: &'a dyn Fn() -> Duration,
    /// Waits; called after each step if `--config.step_ms` is set.
    pub pace: &'a dyn Fn(Duration),
}

/// Trains as `args` say (see the fields of `Config`) and returns the exit code: 0 after the last step,
/// 1 after the out-of-memory of `--config.oom_at`, 134 after the abort of `--config.grpc_at`.
pub fn run(args: &[String], out: &mut dyn Write, world: &World<'_>) -> Result<i32, TrainError> {
    let config = Config::parse(args)?;
    let checkpoints = if config.process_index == 0 {
        Checkpoints::open(&config.workdir)?
    } else {
        Checkpoints::of_run(&config.workdir)
    };
    let examples = Examples::spiral(config.seed);
    let mut log = Log { out, world };
    log.line(41, format_args!("workdir {}", config.workdir.display()))?;
    log.line(
        44,
        format_args!(
            "examples {}, parameters {}, steps {}, batch size {}, stage {}",
            examples.len(),
            network::PARAMETERS,
            config.steps,
            config.batch_size,
            config.stage
        ),
    )?;

    let mut state = begin(&config, &checkpoints, &mut log)?;
    let first = state.step;
    let began = (world.elapsed)();
    while state.step < config.steps {
        let loss = state.train(&examples, &config);
        let step = state.step;
        let last = step == config.steps;
        if step.is_multiple_of(config.log_every) || last {
            let seconds = (world.elapsed)().saturating_sub(began).as_secs_f64().max(1e-6);
            let speed = f64::from(step - first) / seconds;
            log.line(
                88,
                format_args!(
                    "step {step}/{} epoch {:.2} loss {} lr {} ({speed:.1} steps/s)",
                    config.steps,
                    config.epoch(step),
                    Loss(loss),
                    config.learning_rate
                ),
            )?;
        }
        let is_due = step.is_multiple_of(config.checkpoint_every) || last;
        if is_due && config.process_index == 0 {
            let path = checkpoints.save(&state, config.seed)?;
            log.line(97, format_args!("saved {}", path.display()))?;
        }
        if config.oom_at == Some(step) {
            failure::out_of_memory(log.out)?;
            return Ok(1);
        }
        if config.grpc_at == Some(step) && config.load_from.is_none() {
            failure::lost_peer(log.out, &Stamp::of(world))?;
            return Ok(134);
        }
        if !config.step_time.is_zero() {
            (world.pace)(config.step_time);
        }
    }
    let loss = state.loss(&examples);
    let bits = loss.to_bits();
    writeln!(log.out, "final loss {loss:.9} bits {bits:016x} at step {}", state.step)?;
    log.out.flush()?;
    Ok(0)
}

/// The state to start from: this run's own newest checkpoint, else that of `load_from`, else step 0.
fn begin(config: &Config, own: &Checkpoints, log: &mut Log<'_, '_>) -> Result<State, TrainError> {
    let mut found = own.newest(config.seed)?;
    if found.is_none()
        && let Some(directory) = &config.load_from
    {
        let other = Checkpoints::of_run(directory);
        found =
            Some(other.newest(config.seed)?.ok_or_else(|| TrainError::NoCheckpoint {
                directory: other.directory().to_owned(),
            })?);
    }
    let Some(found) = found else { return Ok(State::new(config.seed)) };
    for damaged in &found.skipped {
        let (path, reason) = (damaged.path.display(), &damaged.reason);
        log.line(57, format_args!("skipped the damaged checkpoint {path}: {reason}"))?;
    }
    let from = found.path.display();
    log.line(61, format_args!("resumed at step {} from {from}", found.state.step))?;
    // Now this run can be resumed from its own directory, even if it is cut before its first save.
    if config.process_index == 0 && !own.holds(&found.path) {
        own.save(&found.state, config.seed)?;
    }
    Ok(found.state)
}

/// Prints lines as absl's logger does.
struct Log<'a, 'w> {
    out: &'a mut dyn Write,
    world: &'a World<'w>,
}

impl Log<'_, '_> {
    fn line(&mut self, number: u32, text: fmt::Arguments<'_>) -> Result<(), TrainError> {
        writeln!(self.out, "I{} train.py:{number}] {text}", Stamp::of(self.world))?;
        self.out.flush()?;
        Ok(())
    }
}

/// `1120 06:24:39.558033 140614`: month and day, time in UTC, process id.
struct Stamp(String);

impl Stamp {
    fn of(world: &World<'_>) -> Self {
        let elapsed = (world.elapsed)();
        let seconds = i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX);
        let now = world.started.plus_seconds(seconds).compact();
        let part = |from: usize, to: usize| now.get(from..to).unwrap_or_default();
        Self(format!(
            "{} {}:{}:{}.{:06} {}",
            part(4, 8),
            part(9, 11),
            part(11, 13),
            part(13, 15),
            elapsed.subsec_micros(),
            std::process::id()
        ))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A loss with four decimals, and `nan` as Python writes it.
struct Loss(f64);

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() { f.write_str("nan") } else { write!(f, "{:.4}", self.0) }
    }
}

/// A file error with its verb and place.
fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TrainError {
    let path = path.to_owned();
    move |source| TrainError::File { doing, path, source }
}

#[cfg(test)]
mod tests;
