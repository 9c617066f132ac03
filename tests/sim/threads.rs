//! What a simulated process does beside what it is doing: the world decides when.

use std::time::Duration;

use tpu_system::sys::threads::Threads;

use super::effects::Me;

impl Threads for Me {
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        self.world.state().begun.push((self.pid, work));
    }

    // Nobody does two things at once.
    fn while_at(&self, _: Duration, _: &(dyn Fn() + Sync), work: &mut dyn FnMut()) {
        work();
    }

    fn wait(&self, limit: Duration, hear: &mut dyn FnMut(Duration) -> bool) -> bool {
        let end = self.world.state().now + limit;
        loop {
            if hear(Duration::ZERO) {
                return true;
            }
            if self.world.state().now >= end {
                return false;
            }
            self.world.sleep(self.pid, Duration::from_millis(20));
        }
    }
}
