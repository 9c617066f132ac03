//! The calls of the control plane, as changes of the fleet.

use super::fleet::{Begun, Fleet, Then};
use super::requests;
use super::timing::seconds;
use tpu_core::model::accelerators;
use tpu_core::model::ids::TargetName;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Operation, Progress, ProviderError, RequestId, TargetAt, TargetSpec, Trouble, Verb,
};

impl Fleet {
    /// The zone of a target: as said, else of the target of that name.
    pub(crate) fn zone_of(&self, target: &TargetAt) -> String {
        let known = || self.targets.get(target.name.as_str()).map(|vm| vm.zone.clone());
        target.zone.clone().or_else(known).unwrap_or_default()
    }

    /// The word on a target, if it is there: another zone has other targets.
    fn word(&self, target: &TargetAt) -> Option<&str> {
        let vm = self.targets.get(target.name.as_str())?;
        let there = target.zone.as_ref().is_none_or(|zone| *zone == vm.zone);
        there.then_some(vm.word.as_str())
    }

    /// The operation that a request has begun.
    pub(crate) fn begun_by(&self, request: &RequestId) -> Option<Operation> {
        let begun = self.operations.iter().find(|begun| begun.request.as_ref() == Some(request))?;
        Some(begun.operation.clone())
    }

    pub(crate) fn create(
        &mut self,
        spec: &TargetSpec,
        request: Option<&RequestId>,
        late: Option<Trouble>,
        now: Timestamp,
    ) -> Result<Operation, ProviderError> {
        let doing = format!("create {}", spec.at());
        may_make(&spec.accelerator, &spec.zone)
            .map_err(|error| ProviderError { doing: doing.clone(), ..error })?;
        let name = spec.name.as_str();
        let existing = self.targets(now).into_iter().find(|fact| fact.name == spec.name);
        if let Some(existing) = existing {
            let word = &existing.raw_state;
            let message = format!("ALREADY_EXISTS: there is a target of that name, {word}");
            return Err(
                ProviderError::new(Trouble::AlreadyExists, doing, message).existing(existing)
            );
        }
        if let Some(limit) = self.quota.get(&spec.zone) {
            let used = self.targets.values().filter(|vm| vm.zone == spec.zone).count();
            if used >= usize::try_from(*limit).unwrap_or(usize::MAX) {
                let message = format!(
                    "RESOURCE_EXHAUSTED: quota of nodes in zone {} exceeded: {used} used, limit {limit}",
                    spec.zone
                );
                return Err(ProviderError::new(Trouble::Quota, doing, message));
            }
        }
        if spec.queued {
            return Ok(self.enqueue(&requests::name_for(spec), spec, request, now));
        }
        self.put(spec, request.cloned(), now);
        let then = late.map_or(Then::Ready, Then::Fail);
        let done = now.plus(seconds(self.timing.create_s));
        Ok(self.begin(Verb::Create, name, request, now, Some(done), then))
    }

    pub(crate) fn delete(
        &mut self,
        target: &TargetAt,
        late: Option<Trouble>,
        now: Timestamp,
    ) -> Operation {
        let name = target.name.as_str();
        match self.word(target) {
            None => {
                let operation = Operation {
                    name: format!("operation-{}", self.next_number()),
                    verb: Verb::Delete,
                    target: target.name.clone(),
                    zone: self.zone_of(target),
                    began: now,
                    progress: Progress::Done,
                };
                self.remember(Begun { operation: operation.clone(), request: None, queued: None });
                return operation;
            }
            Some("DELETING") => {
                if let Some(operation) = self.pending_operation(&target.name) {
                    return operation;
                }
            }
            Some(_) => {}
        }
        let interrupted =
            ProviderError::new(Trouble::NotFound, format!("finish {target}"), "it was deleted");
        self.end(name, Some(interrupted));
        self.switch_off(name);
        self.say(name, "DELETING", now);
        let done = now.plus(seconds(self.timing.delete_s));
        let done = match self.stuck.get(name) {
            None => Some(done),
            Some(until) => until.map(|until| until.max(done)),
        };
        let then = late.map_or(Then::Vanish, Then::Remain);
        self.begin(Verb::Delete, name, None, now, done, then)
    }

    fn pending_operation(&self, name: &TargetName) -> Option<Operation> {
        let pending = self.targets.get(name.as_str())?.pending.as_ref()?;
        self.find_operation(&pending.operation)
    }

    pub(crate) fn find_operation(&self, name: &str) -> Option<Operation> {
        let begun = self.operations.iter().find(|begun| begun.operation.name == name)?;
        Some(begun.operation.clone())
    }

    /// Start, stop and reboot: each from one state only.
    pub(crate) fn turn(
        &mut self,
        verb: Verb,
        target: &TargetAt,
        now: Timestamp,
    ) -> Result<Operation, ProviderError> {
        let doing = || format!("{} {target}", verb.as_str());
        let name = target.name.as_str();
        let (from, meanwhile, takes_s, then) = match verb {
            Verb::Start => ("STOPPED", "STARTING", self.timing.start_s, Then::Ready),
            Verb::Stop => ("READY", "STOPPING", self.timing.stop_s, Then::Stopped),
            Verb::Reboot => ("READY", "RESTARTING", self.timing.reboot_s, Then::Ready),
            Verb::Create | Verb::Delete => {
                return Err(ProviderError::new(
                    Trouble::User,
                    doing(),
                    "it is no change of a target",
                ));
            }
        };
        match self.word(target) {
            None => {
                return Err(ProviderError::new(
                    Trouble::NotFound,
                    doing(),
                    "NOT_FOUND: there is no such target",
                ));
            }
            // The same request again, after a lost answer.
            Some(word) if word == meanwhile => {
                if let Some(operation) = self.pending_operation(&target.name) {
                    return Ok(operation);
                }
            }
            Some(word) if word != from => {
                let message = format!("FAILED_PRECONDITION: it is {word}, and must be {from}");
                return Err(ProviderError::new(Trouble::User, doing(), message));
            }
            Some(_) => {}
        }
        if verb != Verb::Start {
            self.switch_off(name);
        }
        self.say(name, meanwhile, now);
        let done = now.plus(seconds(takes_s));
        Ok(self.begin(verb, name, None, now, Some(done), then))
    }
}

/// Refuses types that are in no table, and what cannot be a zone.
pub(super) fn may_make(accelerator: &str, zone: &str) -> Result<(), ProviderError> {
    let refused = |message: String, remedy: String| {
        let doing = format!("make {accelerator} in zone {zone}");
        Err(ProviderError::new(Trouble::User, doing, message).remedy(remedy))
    };
    if accelerators::workers(accelerator).is_none() {
        return refused(
            format!(
                "INVALID_ARGUMENT: accelerator type '{accelerator}' is not known in zone {zone}"
            ),
            format!("types are such as {}", accelerators::EXAMPLES.join(", ")),
        );
    }
    if !accelerators::is_zone(zone) {
        return refused(
            format!("INVALID_ARGUMENT: there is no zone '{zone}'"),
            "a zone is a region and a letter, as in us-central2-b or europe-west4-a".to_owned(),
        );
    }
    Ok(())
}
