//! Reads what the demo's tale is made of: the jobs, the journal, the fleet, and what resumed programs have printed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::simulator::Simulator;
use tpu_core::model::ids::JobId;
use tpu_core::model::view::Whose;
use tpu_ops::observe::{journal, logs, snapshot};
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_ops::{Ctx, Error};

use super::tale::{DemoFacts, DemoTale};

/// The demo is over long before its journal has so many events.
const EVENTS: usize = 10_000;

/// So long the last picture of a recording stays.
const LAST_PICTURE: Duration = Duration::from_secs(4);

/// A recording ends after so long, whatever has become of the story.
const LONGEST: Duration = Duration::from_secs(150);

/// What a program prints where it goes on; the step follows.
const RESUMED: &str = "resumed at step ";

/// Somebody who looks at the lab again and again.
pub struct Witness {
    ctx: Ctx,
    begun: Duration,
    memory: Mutex<WitnessMemory>,
}

/// What need not be read twice.
#[derive(Default)]
struct WitnessMemory {
    look: snapshot::LookMemory,
    first_steps: HashMap<JobId, u64>,
    /// Since when everything that happens by itself has happened.
    complete_since: Option<Duration>,
}

impl Witness {
    /// One who has seen nothing yet.
    pub fn new(ctx: Ctx) -> Self {
        let begun = ctx.clock.monotonic();
        Self { ctx, begun, memory: Mutex::default() }
    }

    /// What has become of the jobs by now.
    pub fn tale(&self) -> Result<DemoTale, Error> {
        let ctx = &self.ctx;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = &mut *memory;
        // The records are read last, so that every attempt of which the journal knows is among them.
        let journal = journal::newest(ctx, None, None, EVENTS)?;
        let (happened, coming) = Simulator::open(ctx).past_and_coming()?;
        let whose = Whose::default();
        let look = shown::look(ctx, &mut memory.look, &whose, WaitingMembers::Folded)?;
        for job in look.jobs.iter().filter(|job| job.stage > 0) {
            if !memory.first_steps.contains_key(&job.id)
                && let Some(step) = first_step(ctx, &job.id)
            {
                memory.first_steps.insert(job.id.clone(), step);
            }
        }
        let first_steps = memory.first_steps.clone();
        let now = ctx.clock.now();
        let facts = DemoFacts { now, jobs: look.jobs, journal, happened, coming, first_steps };
        Ok(DemoTale::of(&facts))
    }

    /// Whether a recording is to end: everything that happens by itself has happened and could be read for a while, or it
    /// has taken too long. Told what is known now; asked again and again.
    pub fn is_over(&self, tale: Option<&DemoTale>) -> bool {
        let now = self.ctx.clock.monotonic();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let is_complete = tale.is_some_and(DemoTale::is_complete);
        let since = is_complete.then(|| memory.complete_since.unwrap_or(now));
        memory.complete_since = since;
        let is_read = since.is_some_and(|since| now.saturating_sub(since) >= LAST_PICTURE);
        is_read || now.saturating_sub(self.begun) >= LONGEST
    }
}

/// The step at which a program says that it goes on.
fn first_step(ctx: &Ctx, job: &JobId) -> Option<u64> {
    let output = logs::output(ctx, job).ok()?;
    let text = String::from_utf8_lossy(&output.bytes).into_owned();
    let (_, behind) = text.split_once(RESUMED)?;
    // A line that is being written may end in the middle of the number.
    let (number, _) = behind.split_once(' ')?;
    number.parse().ok()
}
