//! The strings of the simulated fleet beside the data file, whatever provider the settings name.

use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_lab::sim::{self, Event, Scenario, SimCloud};
pub use tpu_lab::sim::{Event as FleetEvent, Happened, Scheduled};

use tpu_ops::{Ctx, Error};

/// A string of the simulator, about one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    /// It is taken away.
    Preempt,
    /// It is READY, and made if it is not there.
    Ready,
    /// Programs on it lose their connection to each other.
    Grpc,
    /// Somebody else holds its accelerators.
    Lock,
    /// They are free again.
    Unlock,
    /// There is capacity for it.
    Capacity,
    /// Nobody reaches its workers any more; what runs there goes on.
    Cut,
    /// They can be reached again.
    Mend,
    /// Its creation fails, so many times or until there is capacity again.
    NoCapacity {
        /// How many times.
        times: Option<u32>,
    },
}

/// The simulated cloud, for whoever plays its part.
pub struct Simulator {
    sim: SimCloud,
    /// What happens is only tried out.
    dry_run: bool,
}

impl Simulator {
    /// Opens the fleet beside the data file.
    pub fn open(ctx: &Ctx) -> Self {
        Self { sim: sim::beside(ctx), dry_run: ctx.store.is_dry_run() }
    }

    /// Every target, in the order of their names.
    pub fn targets(&self, ctx: &Ctx) -> Result<Vec<TargetFact>, Error> {
        Ok(self.sim.look()?.targets(ctx.clock.now()))
    }

    /// What has happened to the fleet, the oldest first, and what a story still has before it.
    pub fn past_and_coming(&self) -> Result<(Vec<Happened>, Vec<Scheduled>), Error> {
        let fleet = self.sim.look()?;
        Ok((fleet.history().to_vec(), fleet.upcoming().to_vec()))
    }

    /// Lets something happen to a target.
    pub fn pull(&self, name: &TargetName, what: &Pull) -> Result<(), Error> {
        let target = name.as_str().to_owned();
        let event = match what {
            Pull::Preempt => Event::Preempt { target },
            Pull::Ready => Event::Ready { target, zone: None, accelerator: None, pricing: None },
            Pull::Grpc => Event::Grpc { target },
            Pull::Lock => Event::Lock { target },
            Pull::Unlock => Event::Unlock { target },
            Pull::Capacity => Event::Capacity { target: Some(target), zone: None },
            Pull::Cut => Event::Cut { target },
            Pull::Mend => Event::Mend { target },
            Pull::NoCapacity { times } => {
                Event::NoCapacity { target: Some(target), zone: None, times: *times, for_s: None }
            }
        };
        self.happen(&event)
    }

    /// Lets any event happen, or tries it out.
    pub fn happen(&self, event: &Event) -> Result<(), Error> {
        if self.dry_run {
            self.sim.try_out(event)?;
        } else {
            self.sim.pull(event)?;
        }
        Ok(())
    }

    /// Plays a story; returns how many steps it has. `file` is for the error.
    pub fn play(&self, text: &str, file: &str) -> Result<usize, Error> {
        let story = Scenario::parse(text).map_err(|e| {
            Error::usage(format!("{file}: {e}"))
                .hint("a step has `at` in seconds, `event`, and what the event needs, as `target`")
        })?;
        if !self.dry_run {
            self.sim.play(&story)?;
        }
        Ok(story.steps.len())
    }
}
