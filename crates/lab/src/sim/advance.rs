//! Time passes: what is due happens, in order, each at its own instant, however late somebody looks.

use super::fleet::{Fleet, Then};
use super::machines::Power;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::Trouble;

/// The next thing that happens by itself.
enum Due {
    /// This one of the upcoming events.
    Event(usize),
    /// What a target is turning into.
    Change(String),
    /// What a queued request waits for.
    Request(String),
    /// A target is taken away.
    Preemption(String),
    /// A target is healthy again.
    Healing(String),
}

impl Fleet {
    /// Plays everything that is due. Whether anything was.
    pub(super) fn advance(&mut self, now: Timestamp) -> bool {
        let mut changed = false;
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= now) {
            changed = true;
            match due {
                Due::Event(index) => {
                    let scheduled = self.upcoming.remove(index);
                    // What a story asks for and cannot be is noted, for whoever wrote it.
                    if let Err(error) = self.apply(&scheduled.event, at) {
                        self.note(scheduled.event.subject(), &format!("scenario: {error}"), at);
                    }
                }
                Due::Change(name) => self.change(&name, at),
                Due::Request(name) => self.turn_request(&name, at),
                Due::Preemption(name) => self.preempt(&name, at),
                Due::Healing(name) => self.reconcile(&name, at),
            }
        }
        changed
    }

    fn next_due(&self) -> Option<(Timestamp, Due)> {
        let events = self.upcoming.iter().enumerate();
        let events = events.map(|(index, scheduled)| (scheduled.at, Due::Event(index)));
        let targets = self.targets.iter().flat_map(|(name, vm)| {
            let change = vm.pending.as_ref().and_then(|pending| pending.at);
            [
                change.map(|at| (at, Due::Change(name.clone()))),
                vm.preempt_at.map(|at| (at, Due::Preemption(name.clone()))),
                vm.heal_at.map(|at| (at, Due::Healing(name.clone()))),
            ]
        });
        let requests = self
            .requests
            .iter()
            .filter_map(|(name, request)| request.next.map(|at| (at, Due::Request(name.clone()))));
        events.chain(targets.flatten()).chain(requests).min_by_key(|(at, _)| *at)
    }

    fn change(&mut self, name: &str, at: Timestamp) {
        let Some(vm) = self.targets.get(name) else { return };
        let Some(pending) = &vm.pending else { return };
        let (boot, zone) = (vm.boot, vm.zone.clone());
        match pending.then {
            Then::Ready => {
                self.end(name, None);
                self.become_ready(name, at);
            }
            Then::Stopped => {
                self.end(name, None);
                self.say(name, "STOPPED", at);
            }
            Then::Vanish => {
                self.end(name, None);
                self.vanish(name, boot, at);
                self.note(name, "gone", at);
            }
            Then::Fail(trouble) => {
                let doing = format!("create {name} in zone {zone}");
                let error = super::faults::error(trouble, &doing, &zone);
                self.end(name, Some(error));
                self.vanish(name, boot, at);
                let what = match trouble {
                    Trouble::NoCapacity => "no capacity".to_owned(),
                    other => format!("creation failed: {}", other.as_str()),
                };
                self.note(name, &what, at);
            }
            Then::Remain(trouble) => {
                let doing = format!("delete {name} in zone {zone}");
                let error = super::faults::error(trouble, &doing, &zone);
                self.end(name, Some(error));
                // Its machines are off already: what is left is what is left of a preempted one.
                self.say(name, "PREEMPTED", at);
            }
        }
    }

    fn vanish(&mut self, name: &str, boot: u64, at: Timestamp) {
        let vm = self.targets.remove(name);
        self.stuck.remove(name);
        self.power.push(Power::Remove { boot });
        if let Some(request) = vm.and_then(|vm| vm.queued) {
            self.bereave_request(&request, at);
        }
    }

    pub(super) fn reconcile(&mut self, name: &str, at: Timestamp) {
        let Some(vm) = self.targets.get_mut(name) else { return };
        vm.heal_at = None;
        vm.symptoms.clear();
        if vm.health.is_some() {
            vm.health = Some("HEALTHY".to_owned());
        }
        self.note(name, "healthy", at);
    }
}
