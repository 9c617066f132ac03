//! Makes targets for those who wait in the queue, and gives back what goes with a job that is over, each on a thread of
//! its own: it may take as long as it takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use std::time::Duration;

use tpu_core::model::ids::TargetName;
use tpu_ops::waiting::queue::{loans, supply};
use tpu_ops::{Ctx, Error};

/// Targets in the making at the same time. More wait for the next turn.
const AT_ONCE: usize = 16;

/// After what could not even be asked it rests so long at first, twice as long each time, and at most so long.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// The targets in the making.
#[derive(Debug, Default)]
pub(super) struct Makers {
    at_work: BTreeMap<TargetName, Receiver<Result<String, Error>>>,
    /// What went wrong with each the last time, of which the same is not said again; how long it rests by that, and
    /// until when, on the monotonic clock.
    trouble: BTreeMap<TargetName, (String, Duration, Duration)>,
    report: Vec<String>,
}

impl Makers {
    /// Begins with what the queue wants made or taken back, and with what goes, as far as nobody is at it.
    pub(super) fn look(&mut self, ctx: &Arc<Ctx>) -> Result<(), Error> {
        self.set_to(ctx, supply::look(ctx)?, supply::carry_out);
        self.set_to(ctx, loans::look(ctx)?, loans::give_back);
        Ok(())
    }

    fn set_to(
        &mut self,
        ctx: &Arc<Ctx>,
        targets: Vec<TargetName>,
        work: fn(&Ctx, &TargetName) -> Result<String, Error>,
    ) {
        let now = ctx.clock.monotonic();
        for target in targets {
            let rests = self.trouble.get(&target).is_some_and(|(_, _, until)| *until > now);
            if rests || self.at_work.len() >= AT_ONCE || self.at_work.contains_key(&target) {
                continue;
            }
            let (tell, told) = channel();
            self.at_work.insert(target.clone(), told);
            let (ctx, threads) = (Arc::clone(ctx), Arc::clone(&ctx.threads));
            threads.spawn(Box::new(move || {
                // Nobody asks any more once the daemon has ended.
                drop(tell.send(work(&ctx, &target)));
            }));
        }
    }

    /// Takes note of what has ended. Whether anything has.
    pub(super) fn reap(&mut self, now: Duration) -> bool {
        let before = self.at_work.len();
        let (trouble, report) = (&mut self.trouble, &mut self.report);
        self.at_work.retain(|target, told| {
            let line = match told.try_recv() {
                Err(TryRecvError::Empty) => return true,
                Ok(Ok(line)) => {
                    trouble.remove(target);
                    report.push(line);
                    return false;
                }
                Ok(Err(error)) => format!("{target}: {error}"),
                Err(TryRecvError::Disconnected) => {
                    format!("{target}: its making was cut short by a defect of tpu")
                }
            };
            let before = trouble.remove(target);
            if before.as_ref().is_none_or(|(said, ..)| *said != line) {
                report.push(line.clone());
            }
            let rested = before.map_or(Duration::ZERO, |(_, rest, _)| rest);
            let rest = (2 * rested).clamp(FIRST_REST, LONGEST_REST);
            trouble.insert(target.clone(), (line, rest, now + rest));
            false
        });
        self.at_work.len() < before
    }

    /// Lets nothing rest any more: somebody says that it is worth another try.
    pub(super) fn rouse(&mut self) {
        for (_, rest, until) in self.trouble.values_mut() {
            (*rest, *until) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// How long the first of those rests that are to be tried again, if any does.
    pub(super) fn rest(&self, now: Duration) -> Option<Duration> {
        let left = self.trouble.values().map(|(_, _, until)| until.saturating_sub(now));
        left.filter(|left| !left.is_zero()).min()
    }

    /// What is to be said about ended tasks.
    pub(super) fn take_report(&mut self) -> Vec<String> {
        std::mem::take(&mut self.report)
    }
}
