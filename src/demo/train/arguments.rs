//! The arguments of the training, spelled as those of a JAX script with `ml_collections` flags.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::TrainError;

/// Examples to learn from.
pub(super) const EXAMPLES: u32 = 600;

/// What a run is to do. The names are those after `--config.` where nothing else is said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    /// `--workdir`: the log directory; checkpoints are in `checkpoints` below it.
    pub(super) workdir: PathBuf,
    /// The log directory of the run to go on from.
    pub(super) load_from: Option<PathBuf>,
    /// Last step; `training.num_epochs` counted in steps unless `steps` says otherwise.
    pub(super) steps: u32,
    /// `training.learning_rate`.
    pub(super) learning_rate: f64,
    /// `training.batch_size`.
    pub(super) batch_size: u32,
    /// `training.weight_decay`, decoupled from the gradient.
    pub(super) weight_decay: f64,
    /// `training.adam_b1`: how much of the mean of gradients is kept.
    pub(super) adam_b1: f64,
    /// `training.adam_b2`: how much of the mean of squared gradients is kept.
    pub(super) adam_b2: f64,
    /// Seed of data, first parameters and batches.
    pub(super) seed: u64,
    /// Steps between checkpoints; `training.checkpoint_per_epoch` counts in epochs.
    pub(super) checkpoint_every: u32,
    /// Steps between lines of progress.
    pub(super) log_every: u32,
    /// `step_ms`: how long a step is made to take beyond its own time.
    pub(super) step_time: Duration,
    /// Runs out of memory after this step, again in every attempt: a fault of the program.
    pub(super) oom_at: Option<u32>,
    /// Loses a peer after this step in the first attempt only: a fault of the infrastructure, which an
    /// attempt that resumes does not meet again.
    pub(super) grpc_at: Option<u32>,
    /// Which of several processes that compute the same this is; only the first one writes checkpoints.
    pub(super) process_index: u32,
    /// How often the run was resumed; shown only.
    pub(super) stage: u32,
}

impl Config {
    /// Reads the arguments; what is not said has a default, what is unknown is an error.
    pub(super) fn parse(args: &[String]) -> Result<Self, TrainError> {
        let mut workdir = None;
        let mut epochs: u32 = 4;
        let mut steps = None;
        let mut epochs_per_checkpoint: Option<u32> = None;
        let mut checkpoint_every = None;
        let mut config = Self {
            workdir: PathBuf::new(),
            load_from: None,
            steps: 0,
            learning_rate: 0.01,
            batch_size: 20,
            weight_decay: 0.0,
            adam_b1: 0.9,
            adam_b2: 0.999,
            seed: 0,
            checkpoint_every: 50,
            log_every: 10,
            step_time: Duration::ZERO,
            oom_at: None,
            grpc_at: None,
            process_index: 0,
            stage: 0,
        };
        for typed in args {
            let argument = Argument::read(typed)?;
            match argument.name {
                "workdir" => workdir = Some(argument.path()?),
                // Scripts pass these to a real program; there is one mode and one config here.
                "mode" | "config" | "config.wandb_resume_id" => {}
                "config.load_from" => config.load_from = Some(argument.path()?),
                "config.steps" => steps = Some(argument.count()?),
                "config.training.num_epochs" => epochs = argument.count()?,
                "config.training.learning_rate" => config.learning_rate = argument.positive()?,
                "config.training.batch_size" => config.batch_size = argument.count()?,
                "config.training.weight_decay" => config.weight_decay = argument.fraction()?,
                "config.training.adam_b1" => config.adam_b1 = argument.fraction()?,
                "config.training.adam_b2" => config.adam_b2 = argument.fraction()?,
                "config.training.checkpoint_per_epoch" => {
                    epochs_per_checkpoint = Some(argument.count()?);
                }
                "config.checkpoint_every" => checkpoint_every = Some(argument.count()?),
                "config.log_every" => config.log_every = argument.count()?,
                "config.seed" => config.seed = argument.number("a number from 0 up")?,
                "config.process_index" => {
                    config.process_index = argument.number("a number from 0 up")?;
                }
                "config.stage" => config.stage = argument.number("a number from 0 up")?,
                "config.step_ms" => {
                    let milliseconds = argument.number::<u32>("milliseconds from 0 up")?;
                    config.step_time = Duration::from_millis(milliseconds.into());
                }
                "config.oom_at" => config.oom_at = Some(argument.count()?),
                "config.grpc_at" => config.grpc_at = Some(argument.count()?),
                _ => return Err(argument.wrong("this training has no such flag")),
            }
        }
        let per_epoch = EXAMPLES.div_ceil(config.batch_size).max(1);
        config.steps = steps.unwrap_or_else(|| epochs.saturating_mul(per_epoch));
        if let Some(epochs) = epochs_per_checkpoint {
            config.checkpoint_every = epochs.saturating_mul(per_epoch);
        }
        config.checkpoint_every = checkpoint_every.unwrap_or(config.checkpoint_every);
        config.workdir = workdir.ok_or_else(|| TrainError::Argument {
            argument: "--workdir".to_owned(),
            reason: "is required, as --workdir=DIRECTORY".to_owned(),
        })?;
        Ok(config)
    }

    /// How many times the data has been seen after `step` steps.
    pub(super) fn epoch(&self, step: u32) -> f64 {
        f64::from(step) * f64::from(self.batch_size) / f64::from(EXAMPLES)
    }
}

/// `--name=value`.
struct Argument<'a> {
    typed: &'a str,
    name: &'a str,
    value: &'a str,
}

impl<'a> Argument<'a> {
    fn read(typed: &'a str) -> Result<Self, TrainError> {
        let parts = typed.strip_prefix("--").and_then(|rest| rest.split_once('='));
        let Some((name, value)) = parts else {
            return Err(TrainError::Argument {
                argument: typed.to_owned(),
                reason: "expected --name=value".to_owned(),
            });
        };
        Ok(Self { typed, name, value })
    }

    fn wrong(&self, reason: &str) -> TrainError {
        TrainError::Argument { argument: self.typed.to_owned(), reason: reason.to_owned() }
    }

    fn number<T: FromStr>(&self, expected: &str) -> Result<T, TrainError> {
        self.value.parse().map_err(|_| self.wrong(&format!("expected {expected}")))
    }

    fn count(&self) -> Result<u32, TrainError> {
        let expected = "a number from 1 up";
        match self.number(expected)? {
            0 => Err(self.wrong(&format!("expected {expected}"))),
            count => Ok(count),
        }
    }

    fn positive(&self) -> Result<f64, TrainError> {
        let expected = "a number above 0";
        let number: f64 = self.number(expected)?;
        let sound = number.is_finite() && number > 0.0;
        if sound { Ok(number) } else { Err(self.wrong(&format!("expected {expected}"))) }
    }

    fn fraction(&self) -> Result<f64, TrainError> {
        let expected = "a number from 0 up, below 1";
        let number: f64 = self.number(expected)?;
        let sound = (0.0..1.0).contains(&number);
        if sound { Ok(number) } else { Err(self.wrong(&format!("expected {expected}"))) }
    }

    fn path(&self) -> Result<PathBuf, TrainError> {
        if self.value.is_empty() {
            return Err(self.wrong("expected a directory"));
        }
        Ok(PathBuf::from(self.value))
    }
}
