//! What each event does to the fleet.

use super::event::Event;
use super::faults::{Effect, Fault};
use super::fleet::Fleet;
use super::machines::Power;
use super::timing::seconds;
use super::{calls, import};
use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{ProviderError, TargetAt, TargetSpec, Trouble};

/// What a job's program says when the runtime of its target has lost a member.
const GRPC_LAST_WORDS: &str = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: \
     failed to connect to all addresses; last error: UNKNOWN: Socket closed; \
     grpc_status:14 (simulated)\n";
/// What a job's program says when somebody else holds the accelerator.
const LOCKED_WORDS: &str = "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is \
     already in use by process with pid 4242 (simulated).\n";

fn missing(target: &str) -> ProviderError {
    ProviderError::new(
        Trouble::NotFound,
        format!("simulate {target}"),
        "the fleet has no such target",
    )
    .remedy("'tpu sim list' names the targets; 'tpu sim ready NAME' makes one")
}

impl Fleet {
    /// Does what an event says, at an instant.
    pub(super) fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), ProviderError> {
        let until = |for_s: &Option<f64>| for_s.map(|s| at.plus(seconds(s)));
        match event {
            Event::Preempt { target } => {
                let vm = self.targets.get(target).ok_or_else(|| missing(target))?;
                if matches!(vm.word.as_str(), "PREEMPTED" | "TERMINATED" | "DELETING") {
                    let message = format!("it is {} already", vm.word);
                    let doing = format!("preempt {target}");
                    return Err(ProviderError::new(Trouble::User, doing, message));
                }
                let gone = ProviderError::new(
                    Trouble::NoCapacity,
                    format!("finish {target}"),
                    "it was preempted before it was ready",
                );
                self.end(target, Some(gone));
                self.preempt(target, at);
            }
            Event::Ready { target, zone, accelerator, pricing } => {
                let word = self.targets.get(target).map(|vm| vm.word.as_str());
                if word == Some("DELETING") {
                    let message = "it is being deleted; wait, or 'unstick' it";
                    let doing = format!("make {target} ready");
                    return Err(ProviderError::new(Trouble::User, doing, message));
                }
                if word.is_none() {
                    let guess = import::guess(&TargetName::from(target.as_str()));
                    let said = (accelerator.as_deref(), zone.as_deref());
                    calls::may_make(
                        said.0.unwrap_or(&guess.accelerator),
                        said.1.unwrap_or(&guess.zone),
                    )?;
                    let spec = TargetSpec {
                        name: guess.name,
                        zone: zone.clone().unwrap_or(guess.zone),
                        accelerator: accelerator.clone().unwrap_or(guess.accelerator),
                        pricing: pricing.unwrap_or(guess.pricing),
                        runtime_version: None,
                        queued: false,
                        options: KindOptions::default(),
                    };
                    self.put(&spec, None, at);
                }
                self.end(target, None);
                self.become_ready(target, at);
                self.unlock(target)?;
                let (boot, workers) = self.machines_of(target)?;
                self.power.push(Power::Mend { boot, workers });
            }
            Event::Say { target, word } => {
                self.targets.get(target).ok_or_else(|| missing(target))?;
                self.say(target, word, at);
            }
            Event::Maintenance { target, for_s } => {
                let vm = self.targets.get_mut(target).ok_or_else(|| missing(target))?;
                vm.health = Some("UNHEALTHY_MAINTENANCE".to_owned());
                vm.symptoms = vec!["MAINTENANCE".to_owned()];
                vm.heal_at = until(for_s);
                self.note(target, "maintenance", at);
            }
            Event::Heal { target } => {
                self.targets.get(target).ok_or_else(|| missing(target))?;
                self.reconcile(target, at);
            }
            Event::LoseWorker { target, worker } => {
                let vm = self.targets.get(target).ok_or_else(|| missing(target))?;
                if *worker >= vm.workers {
                    let message = format!("it has workers 0 to {}", vm.workers.saturating_sub(1));
                    let doing = format!("lose worker {worker} of {target}");
                    return Err(ProviderError::new(Trouble::User, doing, message));
                }
                self.power.push(Power::Off { boot: vm.boot, workers: vec![*worker] });
                self.note(target, &format!("lost worker {worker}"), at);
            }
            Event::Grpc { target } => {
                let (boot, workers) = self.machines_of(target)?;
                let text = GRPC_LAST_WORDS.to_owned();
                self.power.push(Power::Break { boot, workers, code: 134, text });
                self.note(target, "grpc error", at);
            }
            Event::Lock { target } => {
                let (boot, workers) = self.machines_of(target)?;
                let text = LOCKED_WORDS.to_owned();
                self.power.push(Power::Refuse { boot, workers, code: 1, text });
                self.note(target, "locked", at);
            }
            Event::Unlock { target } => {
                self.unlock(target)?;
                self.note(target, "unlocked", at);
            }
            Event::Cut { target } => {
                let (boot, workers) = self.machines_of(target)?;
                self.power.push(Power::Cut { boot, workers });
                self.note(target, "cut off", at);
            }
            Event::Mend { target } => {
                let (boot, workers) = self.machines_of(target)?;
                self.power.push(Power::Mend { boot, workers });
                self.note(target, "connected", at);
            }
            Event::StickDeleting { target, for_s } => {
                self.targets.get(target).ok_or_else(|| missing(target))?;
                self.stuck.insert(target.clone(), until(for_s));
            }
            Event::Unstick { target } => {
                self.unstick(target, at);
            }
            Event::SayQueued { target, word } => {
                let at_any = TargetAt::new(TargetName::from(target.as_str()), None);
                let name = self.request_for(&at_any).ok_or_else(|| missing(target))?;
                self.say_request(&name, word, at);
                // Somebody else decides now what becomes of it.
                if let Some(request) = self.requests.get_mut(&name) {
                    request.next = None;
                }
            }
            Event::ForgetOperations { target } => {
                self.operations.retain(|begun| begun.operation.target.as_str() != target);
            }
            Event::Quota { zone, limit } => {
                match limit {
                    Some(limit) => self.quota.insert(zone.clone(), *limit),
                    None => self.quota.remove(zone),
                };
            }
            Event::Capacity { target, zone } => {
                self.faults.restore_capacity(target.as_deref(), zone.as_deref());
            }
            Event::Bucket { name, location } => {
                self.buckets.insert(name.clone(), location.clone());
            }
            Event::Account { change } => self.accounts.change(change, self.seed)?,
            Event::Storage { page, rewrite } => {
                (self.object_page, self.object_rewrite) = (*page, *rewrite);
            }
            Event::Calm => {
                self.accounts.too_fast = 0;
                self.faults.clear();
                self.quota.clear();
                for name in self.stuck.keys().cloned().collect::<Vec<_>>() {
                    self.unstick(&name, at);
                }
            }
            Event::Time { timing } => {
                self.timing = *timing;
                self.redraw_lifetimes(at);
            }
            Event::NoCapacity { .. }
            | Event::FailLate { .. }
            | Event::Error { .. }
            | Event::Outage { .. }
            | Event::Slow { .. }
            | Event::LoseAnswer { .. }
            | Event::CutAfter { .. }
            | Event::Twice { .. } => {
                if let Some(fault) = fault_of(event, at) {
                    self.faults.add(fault);
                }
            }
        }
        Ok(())
    }

    fn machines_of(&self, target: &str) -> Result<(u64, u32), ProviderError> {
        let vm = self.targets.get(target).ok_or_else(|| missing(target))?;
        Ok((vm.boot, vm.workers))
    }

    fn unlock(&mut self, target: &str) -> Result<(), ProviderError> {
        let (boot, workers) = self.machines_of(target)?;
        self.power.push(Power::Allow { boot, workers });
        Ok(())
    }

    /// A stuck deletion ends now.
    fn unstick(&mut self, name: &str, at: Timestamp) {
        self.stuck.remove(name);
        let vm = self.targets.get_mut(name).filter(|vm| vm.word == "DELETING");
        if let Some(pending) = vm.and_then(|vm| vm.pending.as_mut()) {
            pending.at = Some(at);
        }
    }
}

/// The fault that an event brings.
fn fault_of(event: &Event, at: Timestamp) -> Option<Fault> {
    let until = |for_s: &Option<f64>| for_s.map(|s| at.plus(seconds(s)));
    let fault =
        |effect| Fault { effect, call: None, target: None, zone: None, times: None, until: None };
    Some(match event {
        Event::NoCapacity { target, zone, times, for_s } => Fault {
            target: target.clone(),
            zone: zone.clone(),
            times: *times,
            until: until(for_s),
            ..fault(Effect::NoCapacity)
        },
        Event::FailLate { class, call, target, times } => Fault {
            call: *call,
            target: target.clone(),
            times: *times,
            ..fault(Effect::FailLate(*class))
        },
        Event::Error { class, call, target, zone, times, for_s } => Fault {
            call: *call,
            target: target.clone(),
            zone: zone.clone(),
            times: *times,
            until: until(for_s),
            ..fault(Effect::Error(*class))
        },
        Event::Outage { zone, for_s } => Fault {
            zone: Some(zone.clone()),
            until: until(for_s),
            ..fault(Effect::Error(Trouble::Transient))
        },
        Event::Slow { seconds, call, zone, times, for_s } => Fault {
            call: *call,
            zone: zone.clone(),
            times: *times,
            until: until(for_s),
            ..fault(Effect::Slow(*seconds))
        },
        Event::LoseAnswer { call, target, times } => Fault {
            call: *call,
            target: target.clone(),
            times: *times,
            ..fault(Effect::LoseAnswer)
        },
        Event::CutAfter { bytes, call, times } => {
            Fault { call: *call, times: *times, ..fault(Effect::CutAfter(*bytes)) }
        }
        Event::Twice { call, target, times } => {
            Fault { call: *call, target: target.clone(), times: *times, ..fault(Effect::Twice) }
        }
        _ => return None,
    })
}
