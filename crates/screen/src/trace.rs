//! What the screen remembers of each lineage while it is open: losses and speed. A resumed job goes on where
//! its parent stood, so its curve and its ETA do not begin anew.

use std::collections::{HashMap, HashSet};

use tpu_core::model::curve::Curves;
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;

/// A lineage: whose, and the window of its first attempt.
pub type Key = (UserName, JobNumber);

/// The lineage of a job.
pub fn key_of(job: &JobView) -> Key {
    (job.id.user.clone(), job.lineage.first().copied().unwrap_or(job.id.window))
}

/// What is remembered of one lineage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Losses, and what else was measured, as they were printed.
    pub curves: Curves,
    /// When the logs were read, and whether that is under way.
    pub read: Option<Timestamp>,
    /// Whether the logs are being read.
    pub waiting: bool,
    /// The newest step and when it was first seen.
    step: Option<(Timestamp, f64)>,
    /// Steps per second, as printed or as observed.
    speed: Option<f64>,
    /// Steps in all, as last printed.
    total: Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "no run has more steps than a float counts")]
fn as_float(steps: u64) -> f64 {
    steps as f64
}

/// All lineages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traces(HashMap<Key, Trace>);

impl Traces {
    /// Takes a look in, and forgets lineages that are no longer there.
    pub fn looked(&mut self, jobs: &[JobView], now: Timestamp) {
        for job in jobs.iter().filter(|job| job.leaf && job.shown.status.is_live()) {
            let progress = &job.shown.progress;
            if progress.step.is_none() && progress.epoch.is_none() {
                continue;
            }
            self.0.entry(key_of(job)).or_default().add(job, now);
        }
        if self.0.len() > jobs.len() {
            let there: HashSet<Key> = jobs.iter().map(key_of).collect();
            self.0.retain(|key, _| there.contains(key));
        }
    }

    /// What is remembered of a job's lineage.
    pub fn of(&self, job: &JobView) -> Option<&Trace> {
        self.0.get(&key_of(job))
    }

    /// The same, made if there is none.
    pub fn entry(&mut self, job: &JobView) -> &mut Trace {
        self.0.entry(key_of(job)).or_default()
    }
}

impl Trace {
    fn add(&mut self, job: &JobView, now: Timestamp) {
        let progress = &job.shown.progress;
        self.total = progress.total.map(as_float).or(self.total);
        if let Some(speed) = progress.steps_per_s.filter(|speed| *speed > 0.0) {
            self.speed = Some(speed);
        }
        let Some(step) = progress.step.map(as_float) else { return };
        match self.step {
            Some((_, before)) if step < before => self.step = Some((now, step)),
            Some((at, before)) if step > before => {
                let seconds = now.seconds_since(at);
                if progress.steps_per_s.is_none() && seconds > 0 {
                    let observed = (step - before) / as_float(seconds);
                    // The newer the observation, the more it counts.
                    let mixed = self.speed.map_or(observed, |old| 0.7 * old + 0.3 * observed);
                    self.speed = Some(mixed);
                }
                self.step = Some((now, step));
            }
            Some(_) => {}
            None => self.step = Some((now, step)),
        }
    }

    /// Steps per second.
    pub fn speed(&self) -> Option<f64> {
        self.speed
    }

    /// Seconds to the end, from the newest step and the speed of the lineage.
    pub fn eta_s(&self, job: &JobView) -> Option<f64> {
        let progress = &job.shown.progress;
        let total = progress.total.map(as_float).or(self.total)?;
        let step = progress.step.map(as_float).or(self.step.map(|(_, step)| step))?;
        let speed = self.speed.filter(|speed| *speed > 0.0)?;
        (total >= step).then_some((total - step) / speed)
    }
}
