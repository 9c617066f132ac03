//! Makes targets for those who wait in the queue, each on a thread of its own: it may take as long as it takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::model::ids::TargetName;
use crate::ops::queue::supply;
use crate::ops::{Ctx, Error};

/// Targets in the making at the same time. More wait for the next turn.
const AT_ONCE: usize = 16;

/// The targets in the making.
#[derive(Debug, Default)]
pub(super) struct Makers {
    at_work: BTreeMap<TargetName, Receiver<Result<String, Error>>>,
    /// What went wrong with each the last time; the same is not said again.
    trouble: BTreeMap<TargetName, String>,
    report: Vec<String>,
}

impl Makers {
    /// Begins with what the queue wants made or taken back, as far as nobody is at it.
    pub(super) fn look(&mut self, ctx: &Arc<Ctx>) -> Result<(), Error> {
        for target in supply::look(ctx)? {
            if self.at_work.len() >= AT_ONCE || self.at_work.contains_key(&target) {
                continue;
            }
            let (tell, told) = channel();
            self.at_work.insert(target.clone(), told);
            let (ctx, threads) = (Arc::clone(ctx), Arc::clone(&ctx.threads));
            threads.spawn(Box::new(move || {
                // Nobody asks any more once MONITOR has ended.
                drop(tell.send(supply::carry_out(&ctx, &target)));
            }));
        }
        Ok(())
    }

    /// Takes note of what has ended. Whether anything has.
    pub(super) fn reap(&mut self) -> bool {
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
            if trouble.get(target) != Some(&line) {
                report.push(line.clone());
                trouble.insert(target.clone(), line);
            }
            false
        });
        self.at_work.len() < before
    }

    /// What is to be said about ended tasks.
    pub(super) fn take_report(&mut self) -> Vec<String> {
        std::mem::take(&mut self.report)
    }
}
