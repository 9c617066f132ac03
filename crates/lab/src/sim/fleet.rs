//! The simulated fleet as a value: targets, operations, faults, what is still to come. It is what
//! `sim.json` holds; nothing here touches the world.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::accounts::SimAccounts;
use super::event::Scheduled;
use super::faults::Faults;
use super::machines::{Machines, Power};
use super::timing::{Timing, seconds};
use tpu_core::model::accelerators;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Operation, Progress, ProviderError, RequestId, TargetSpec, Trouble, Verb,
};
use tpu_gcp::SIM;
use tpu_gcp::queued;
use tpu_gcp::states;
use tpu_system::sys::random::{Random as _, SeededRandom};

/// Operations that are remembered after their end.
const OPERATIONS_KEPT: usize = 500;
/// Happenings that are remembered.
const HISTORY_KEPT: usize = 1000;

/// A target that the fleet starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimTarget {
    /// Full name.
    pub name: TargetName,
    /// Zone.
    pub zone: String,
    /// Accelerator type.
    pub accelerator: String,
    /// How it is paid for.
    pub pricing: Pricing,
}

/// One simulated target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vm {
    pub(crate) zone: String,
    pub(crate) accelerator: String,
    pub(crate) pricing: Pricing,
    /// What the control plane says.
    pub(crate) word: String,
    pub(crate) since: Timestamp,
    /// When it was asked for.
    #[serde(default)]
    pub(crate) created: Option<Timestamp>,
    pub(crate) health: Option<String>,
    pub(crate) symptoms: Vec<String>,
    /// The request that made it.
    pub(crate) request: Option<RequestId>,
    /// Names its machines and their disks; another one for each creation.
    pub(crate) boot: u64,
    pub(crate) workers: u32,
    /// What it is turning into.
    pub(crate) pending: Option<Pending>,
    /// When it will be taken away by itself.
    pub(crate) preempt_at: Option<Timestamp>,
    /// When its health will be well again.
    pub(crate) heal_at: Option<Timestamp>,
    /// The queued request that it came from.
    #[serde(default)]
    pub(crate) queued: Option<String>,
    /// As it was asked for, where it came through the API.
    #[serde(default)]
    pub(crate) body: Map<String, Value>,
}

/// A change that takes time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// When it is done; `None` if it is stuck.
    pub(crate) at: Option<Timestamp>,
    pub(crate) then: Then,
    pub(crate) operation: String,
}

/// The end of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Then {
    Ready,
    /// A creation fails and leaves nothing.
    Fail(Trouble),
    /// A deletion fails and leaves everything.
    Remain(Trouble),
    Vanish,
    Stopped,
}

/// One queued request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) spec: TargetSpec,
    /// What the control plane says about it.
    pub(crate) word: String,
    pub(crate) since: Timestamp,
    /// The mark of whoever asked.
    pub(crate) asked_by: Option<RequestId>,
    /// As it was asked for, where it came through the API.
    #[serde(default)]
    pub(crate) body: Map<String, Value>,
    /// When it gets its target, or is gone; `None` if neither is on its way.
    pub(crate) next: Option<Timestamp>,
    /// The operation that takes it away.
    pub(crate) deletion: Option<String>,
}

/// An operation and the request that began it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) operation: Operation,
    pub(crate) request: Option<RequestId>,
    /// The queued request that it is about, if it is about one.
    #[serde(default)]
    pub(crate) queued: Option<String>,
}

/// Something that has happened to a target, for people and tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    /// When.
    pub at: Timestamp,
    /// To which target or zone.
    pub target: String,
    /// What, in words: `creating`, `ready`, `preempted`, …
    pub what: String,
}

/// The whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fleet {
    pub(crate) seed: u64,
    /// Random numbers drawn so far: with the seed it decides the next one.
    pub(crate) draws: u64,
    /// Numbers given to operations and machines so far.
    pub(crate) count: u64,
    pub(crate) timing: Timing,
    pub(crate) zones: BTreeSet<String>,
    pub(crate) targets: BTreeMap<String, Vm>,
    /// Queued requests, by their own names.
    pub(crate) requests: BTreeMap<String, Request>,
    pub(crate) operations: Vec<Begun>,
    pub(crate) faults: Faults,
    /// Nodes that a zone grants.
    pub(crate) quota: BTreeMap<String, u32>,
    /// Targets whose deletion does not end, or not before an instant.
    pub(crate) stuck: BTreeMap<String, Option<Timestamp>>,
    /// Buckets, and where each is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) buckets: BTreeMap<String, String>,
    /// What the project may have and has to pay.
    #[serde(skip_serializing_if = "SimAccounts::is_unchanged")]
    pub(crate) accounts: SimAccounts,
    /// Entries on a page of their objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_page: Option<u32>,
    /// Bytes that one call copies from bucket to bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_rewrite: Option<u64>,
    pub(crate) upcoming: Vec<Scheduled>,
    pub(crate) history: Vec<Happened>,
    /// Where its machines are.
    #[serde(skip)]
    pub(super) machines: Machines,
    /// What is to be done to the machines before the fleet is written.
    #[serde(skip)]
    pub(super) power: Vec<Power>,
}

impl Fleet {
    /// A fleet in which every target is READY.
    pub(super) fn start(
        seed: u64,
        targets: &[SimTarget],
        machines: Machines,
        now: Timestamp,
    ) -> Self {
        let mut fleet = Self { seed, machines, ..Self::default() };
        for target in targets {
            let spec = TargetSpec {
                name: target.name.clone(),
                zone: target.zone.clone(),
                accelerator: target.accelerator.clone(),
                pricing: target.pricing,
                runtime_version: None,
                queued: false,
                options: KindOptions::default(),
            };
            fleet.put(&spec, None, now);
            fleet.become_ready(target.name.as_str(), now);
        }
        fleet
    }

    /// The control plane's words on every target, in the order of their names.
    pub fn targets(&self, now: Timestamp) -> Vec<TargetFact> {
        let facts = self.targets.iter().map(|(name, vm)| self.fact(name, vm, now));
        let mut facts: Vec<TargetFact> = facts.collect();
        queued::join(&mut facts, &self.queued(now), SIM.as_str());
        facts
    }

    /// What a story still has before it, in no particular order.
    pub fn upcoming(&self) -> &[Scheduled] {
        &self.upcoming
    }

    /// What has happened, the oldest first.
    pub fn history(&self) -> &[Happened] {
        &self.history
    }

    pub(crate) fn fact(&self, name: &str, vm: &Vm, now: Timestamp) -> TargetFact {
        TargetFact {
            zone: Some(vm.zone.clone()),
            accelerator: Some(vm.accelerator.clone()),
            since: Some(vm.since),
            created_at: vm.created,
            health: vm.health.clone(),
            symptoms: vm.symptoms.clone(),
            pricing: vm.pricing,
            endpoints: self.addresses(vm),
            request: vm.request.as_ref().map(|request| request.0.clone()),
            source: SIM.as_str().to_owned(),
            ..TargetFact::new(TargetName::from(name), states::of_target(&vm.word), &vm.word, now)
        }
    }

    /// Where the workers of a target are.
    pub(crate) fn addresses(&self, vm: &Vm) -> Vec<String> {
        if matches!(vm.word.as_str(), "CREATING" | "DELETING") {
            return Vec::new();
        }
        (0..vm.workers).map(|worker| self.machines.address(vm.boot, worker)).collect()
    }

    /// Notes a change that is done at once.
    pub(crate) fn changed(&mut self, name: &str, at: Timestamp) -> Operation {
        let operation = Operation {
            name: format!("operation-{}", self.next_number()),
            verb: Verb::Start,
            target: TargetName::from(name),
            zone: self.targets.get(name).map_or_else(String::new, |vm| vm.zone.clone()),
            began: at,
            progress: Progress::Done,
        };
        self.remember(Begun { operation: operation.clone(), request: None, queued: None });
        operation
    }

    /// Puts a target there, without a state that counts yet.
    pub(crate) fn put(&mut self, spec: &TargetSpec, request: Option<RequestId>, at: Timestamp) {
        let vm = Vm {
            zone: spec.zone.clone(),
            accelerator: spec.accelerator.clone(),
            pricing: spec.pricing,
            word: "CREATING".to_owned(),
            since: at,
            created: Some(at),
            health: None,
            symptoms: Vec::new(),
            request,
            boot: self.next_number(),
            workers: accelerators::workers(&spec.accelerator).unwrap_or(1),
            pending: None,
            preempt_at: None,
            heal_at: None,
            queued: None,
            body: Map::new(),
        };
        self.zones.insert(spec.zone.clone());
        self.targets.insert(spec.name.as_str().to_owned(), vm);
        self.note(spec.name.as_str(), "creating", at);
    }

    /// Switches the machines of a target on and says READY.
    pub(crate) fn become_ready(&mut self, name: &str, at: Timestamp) {
        let lifetime = self.draw_lifetime();
        let Some(vm) = self.targets.get_mut(name) else { return };
        vm.health = Some("HEALTHY".to_owned());
        vm.symptoms.clear();
        vm.heal_at = None;
        vm.preempt_at =
            lifetime.filter(|_| vm.pricing.is_reclaimable()).map(|lifetime| at.plus(lifetime));
        self.power.push(Power::On { boot: vm.boot, workers: vm.workers });
        self.say(name, "READY", at);
        self.tell_request(name, "ACTIVE", at);
    }

    /// Takes a target away: its machines are off at once.
    pub(crate) fn preempt(&mut self, name: &str, at: Timestamp) {
        self.switch_off(name);
        self.say(name, "PREEMPTED", at);
        self.tell_request(name, "SUSPENDED", at);
    }

    /// Switches all machines of a target off; nothing is said about its health any more.
    pub(crate) fn switch_off(&mut self, name: &str) {
        let Some(vm) = self.targets.get_mut(name) else { return };
        vm.health = None;
        vm.symptoms.clear();
        vm.heal_at = None;
        vm.preempt_at = None;
        self.power.push(Power::Off { boot: vm.boot, workers: (0..vm.workers).collect() });
    }

    /// Changes what the control plane says.
    pub(crate) fn say(&mut self, name: &str, word: &str, at: Timestamp) {
        let Some(vm) = self.targets.get_mut(name) else { return };
        if vm.word != word {
            word.clone_into(&mut vm.word);
            vm.since = at;
        }
        self.note(name, &word.to_lowercase(), at);
    }

    pub(crate) fn note(&mut self, target: &str, what: &str, at: Timestamp) {
        let surplus = (self.history.len() + 1).saturating_sub(HISTORY_KEPT);
        self.history.drain(..surplus);
        let (target, what) = (target.to_owned(), what.to_owned());
        self.history.push(Happened { at, target, what });
    }

    /// Begins an operation that ends after `after` (never, if `None`) in `then`.
    pub(crate) fn begin(
        &mut self,
        verb: Verb,
        name: &str,
        request: Option<&RequestId>,
        at: Timestamp,
        after: Option<Timestamp>,
        then: Then,
    ) -> Operation {
        let zone = self.targets.get(name).map_or_else(String::new, |vm| vm.zone.clone());
        let operation = Operation {
            name: format!("operation-{}", self.next_number()),
            verb,
            target: TargetName::from(name),
            zone,
            began: at,
            progress: Progress::Running,
        };
        if let Some(vm) = self.targets.get_mut(name) {
            vm.pending = Some(Pending { at: after, then, operation: operation.name.clone() });
        }
        self.remember(Begun {
            operation: operation.clone(),
            request: request.cloned(),
            queued: None,
        });
        operation
    }

    pub(crate) fn remember(&mut self, begun: Begun) {
        let surplus = (self.operations.len() + 1).saturating_sub(OPERATIONS_KEPT);
        self.operations.drain(..surplus);
        self.operations.push(begun);
    }

    /// The same for an operation on a queued request.
    pub(crate) fn remember_queued(
        &mut self,
        operation: Operation,
        request: Option<RequestId>,
        name: &str,
    ) {
        self.remember(Begun { operation, request, queued: Some(name.to_owned()) });
    }

    /// Ends an operation.
    pub(crate) fn complete(&mut self, name: &str, progress: Progress) {
        if let Some(operation) = self.operation_mut(name) {
            operation.progress = progress;
        }
    }

    /// Ends whatever a target is turning into.
    pub(crate) fn end(&mut self, name: &str, failure: Option<ProviderError>) {
        let pending = self.targets.get_mut(name).and_then(|vm| vm.pending.take());
        let Some(pending) = pending else { return };
        let progress = failure.map_or(Progress::Done, |error| Progress::Failed { error });
        self.complete(&pending.operation, progress);
    }

    fn operation_mut(&mut self, name: &str) -> Option<&mut Operation> {
        let begun = self.operations.iter_mut().find(|begun| begun.operation.name == name)?;
        Some(&mut begun.operation)
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Decides anew when each target will be taken away, after the rate has changed.
    pub(crate) fn redraw_lifetimes(&mut self, at: Timestamp) {
        let names: Vec<String> = self.targets.keys().cloned().collect();
        for name in names {
            let lifetime = self.draw_lifetime();
            if let Some(vm) = self.targets.get_mut(&name) {
                let at_risk = vm.word == "READY" && vm.pricing.is_reclaimable();
                vm.preempt_at = lifetime.filter(|_| at_risk).map(|lifetime| at.plus(lifetime));
            }
        }
    }

    /// How long a target lives that can be taken away; `None` if that never happens by itself.
    fn draw_lifetime(&mut self) -> Option<Duration> {
        let rate = self.timing.preemptions_per_h;
        if rate <= 0.0 {
            return None;
        }
        self.draws += 1;
        let random = SeededRandom::new(self.seed.wrapping_add(self.draws));
        let scale = 1_u64 << 32;
        #[expect(clippy::cast_precision_loss, reason = "a chance, far below 2⁵³")]
        let chance = random.below(scale) as f64 / scale as f64;
        // Being taken away has no memory: the time until then is exponentially distributed.
        Some(seconds(-(1.0 - chance).ln() * 3600.0 / rate))
    }
}
