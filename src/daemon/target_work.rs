//! Makes targets for those who wait in the queue, and gives back what goes with a job that is over.

use std::sync::Arc;

use tpu_core::model::ids::TargetName;
use tpu_ops::waiting::queue::{loans, supply};
use tpu_ops::{Ctx, Error};

use super::worker_pool::WorkerPool;

/// The work under way on targets.
pub(super) type Makers = WorkerPool<TargetName>;

impl Makers {
    /// Begins with what the queue wants made or taken back, and with what goes, as far as nobody is at it.
    pub(super) fn look(&mut self, ctx: &Arc<Ctx>) -> Result<(), Error> {
        for target in supply::look(ctx)? {
            self.begin(ctx, target, None, |ctx, target| supply::carry_out(ctx, target));
        }
        for target in loans::look(ctx)? {
            self.begin(ctx, target, None, |ctx, target| loans::give_back(ctx, target));
        }
        Ok(())
    }
}
