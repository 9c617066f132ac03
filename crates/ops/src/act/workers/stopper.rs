//! Ends the command of a job on all its workers when somebody wants that, and lets it begin there when all are ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use crate::Ctx;
use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::{Remote, Worker};

use super::POLL;
use super::print::Line;
use super::setting_up::SettingUp;

/// Stops the command on all workers as often as somebody asks.
pub(super) struct Stopper<'a> {
    pub(super) ctx: &'a Ctx,
    pub(super) door: &'a dyn Remote,
    pub(super) workers: &'a [Worker],
    pub(super) token: &'a LaunchToken,
    pub(super) say: SyncSender<Line>,
    pub(super) setting_up: Option<&'a SettingUp<'a>>,
}

impl Stopper<'_> {
    /// Waits for a wish to stop until everything is over. What cannot be stopped is said.
    pub(super) fn wait(self, stop: &AtomicBool, stopping: &AtomicBool, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            if stop.swap(false, Ordering::Relaxed) {
                stopping.store(true, Ordering::Relaxed);
                for (worker, answer) in self.door.stop(self.workers, self.token) {
                    if let Err(error) = answer {
                        let bytes = format!("tpu: cannot stop it: {error}\n").into_bytes();
                        drop(self.say.send(Line { worker, bytes }));
                    }
                }
            }
            if let Some(setting_up) = self.setting_up {
                setting_up.let_begin(self.door, self.workers);
            }
            self.ctx.clock.sleep(POLL);
        }
    }
}
