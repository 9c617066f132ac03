//! What is announced is done in its time, or is taken back with a reason: whoever reads the plan again and
//! again never finds the same promise due for long while nothing happens.
//!
//! The lineages read it all along, also while windows stay closed and the daemon dies before one opens. The
//! worlds of [`super::run`] read it once calm has come: until then a daemon may stand still for minutes, and
//! tmux or the disk fail each of its tries. It lives all that time, so nothing tells a reader that the promise is
//! late, and nothing is wrong with it: a bound that held there would have to be longer than the chaos.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpu_core::model::job::Job;
use tpu_ops::waiting::preview;

use super::actors;
use super::tpu::call;
use super::world::{Purpose, World};

/// What is due is begun within so long, while nothing goes wrong.
const AT_MOST: Duration = Duration::from_secs(60);

/// The promises of one place, each with the time since when it has been due.
#[derive(Clone, Default)]
pub(crate) struct Promises(Arc<Mutex<BTreeMap<String, Duration>>>);

impl Promises {
    /// Reads the plan once more. A promise that has been due for too long is a lie.
    pub(crate) fn read(&self, world: &Arc<World>, host: usize) {
        let (own, told) = (self.clone(), Arc::clone(world));
        let pid = call(world, &actors::start(host, Purpose::Other), move |ctx| {
            let Ok(plan) = preview::plan(ctx) else { return };
            let Ok(data) = ctx.data() else { return };
            let due = plan.jobs.iter().filter_map(|entry| {
                let next = entry.next.as_ref().filter(|next| next.in_s == Some(0))?;
                let job = data.job(&entry.view.id)?;
                Some((sign(job, &next.action), format!("{}: {}", job.id(), next.reason)))
            });
            own.note(&told, due.collect());
        });
        while world.state().is_alive(pid) {
            actors::wait(world, Duration::from_millis(200));
        }
    }

    fn note(&self, world: &World, due: BTreeMap<String, String>) {
        let mut state = world.state();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|sign, _| due.contains_key(sign));
        for (sign, what) in due {
            let since = *known.entry(sign).or_insert(state.now);
            let waits = state.now.saturating_sub(since);
            if waits > AT_MOST {
                state.violation(format!("10: for {waits:?} it is announced, and not done: {what}"));
            }
        }
    }

    /// Whether anything is due.
    pub(crate) fn are_kept(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Tells one promise from the next one of the same kind: whatever is begun, or tried in vain, changes it.
fn sign(job: &Job, action: &str) -> String {
    let token = job.launch.as_ref().map_or("-", |launch| launch.token.as_str());
    let last = job.recovery.as_ref().and_then(|recovery| recovery.last_action_at);
    format!("{} {token} {action} {last:?} {:?}", job.id(), job.intent)
}
