//! Queued requests: they wait for capacity in the place of whoever asked, and give their target up when it
//! is taken away.

use std::time::Duration;

use serde_json::Map;

use super::fleet::{Fleet, Pending, Request, Then};
use super::timing::seconds;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Operation, Progress, ProviderError, RequestId, TargetAt, TargetSpec, Trouble, Verb,
};
use tpu_gcp::queued::{self, Queued};

/// How long nothing is waited for where the timing says no time at all: a fleet without a creation time
/// must not look for capacity for ever at one instant.
const SHORTEST: Duration = Duration::from_millis(100);

impl Fleet {
    /// Queues for a target.
    pub(crate) fn enqueue(
        &mut self,
        name: &str,
        spec: &TargetSpec,
        request: Option<&RequestId>,
        now: Timestamp,
    ) -> Operation {
        let wait = seconds(self.timing.create_s).max(SHORTEST);
        let queued = Request {
            spec: spec.clone(),
            word: "WAITING_FOR_RESOURCES".to_owned(),
            since: now,
            asked_by: request.cloned(),
            body: Map::new(),
            next: Some(now.plus(wait)),
            deletion: None,
        };
        self.zones.insert(spec.zone.clone());
        self.requests.insert(name.to_owned(), queued);
        self.note(spec.name.as_str(), "queued", now);
        let operation = Operation {
            name: format!("operation-{}", self.next_number()),
            verb: Verb::Create,
            target: spec.name.clone(),
            zone: spec.zone.clone(),
            began: now,
            // It ends when the request is queued, not when there is a target.
            progress: Progress::Done,
        };
        self.remember_queued(operation.clone(), request.cloned(), name);
        operation
    }

    /// The name of the queued request for a target.
    pub(crate) fn request_for(&self, target: &TargetAt) -> Option<String> {
        let is_for = |request: &Request| {
            request.spec.name == target.name
                && target.zone.as_ref().is_none_or(|zone| *zone == request.spec.zone)
        };
        self.requests.iter().find(|(_, request)| is_for(request)).map(|(name, _)| name.clone())
    }

    /// What is queued, as a control plane tells it.
    pub(crate) fn queued(&self, now: Timestamp) -> Vec<Queued> {
        let entry = |(name, request): (&String, &Request)| Queued {
            name: name.clone(),
            target: request.spec.name.clone(),
            zone: request.spec.zone.clone(),
            accelerator: Some(request.spec.accelerator.clone()),
            pricing: request.spec.pricing,
            request: request.asked_by.as_ref().map(|request| request.0.clone()),
            word: request.word.clone(),
            since: Some(request.since),
            observed_at: now,
        };
        self.requests.iter().map(entry).collect()
    }

    /// What is due with a queued request: its target is made if there is capacity, or it is gone.
    pub(super) fn turn_request(&mut self, name: &str, at: Timestamp) {
        let Some(request) = self.requests.get(name) else { return };
        let (spec, id, word) =
            (request.spec.clone(), request.asked_by.clone(), request.word.clone());
        let target = spec.name.as_str();
        if word == "DELETING" {
            let is_there = self.targets.get(target).is_some_and(|vm| vm.queued.is_some());
            // It is gone only after its target.
            if is_there {
                self.postpone(name, None);
            } else {
                self.forget_request(name, at);
            }
            return;
        }
        let wait = seconds(self.timing.create_s).max(SHORTEST);
        if self.faults.has_no_capacity(target, &spec.zone, at) || self.targets.contains_key(target)
        {
            self.postpone(name, Some(at.plus(wait)));
            return;
        }
        self.put(&spec, id, at);
        if let Some(vm) = self.targets.get_mut(target) {
            vm.queued = Some(name.to_owned());
            vm.pending = Some(Pending {
                at: Some(at.plus(wait)),
                then: Then::Ready,
                operation: String::new(),
            });
        }
        self.postpone(name, None);
        self.say_request(name, "PROVISIONING", at);
    }

    fn postpone(&mut self, name: &str, next: Option<Timestamp>) {
        if let Some(request) = self.requests.get_mut(name) {
            request.next = next;
        }
    }

    /// Changes what the control plane says about a request.
    pub(crate) fn say_request(&mut self, name: &str, word: &str, at: Timestamp) {
        let Some(request) = self.requests.get_mut(name) else { return };
        if request.word != word {
            word.clone_into(&mut request.word);
            request.since = at;
        }
        let target = request.spec.name.as_str().to_owned();
        self.note(&target, &format!("request {}", word.to_lowercase()), at);
    }

    /// A target that came from a request is in a new state.
    pub(super) fn tell_request(&mut self, target: &str, word: &str, at: Timestamp) {
        let Some(name) = self.targets.get(target).and_then(|vm| vm.queued.clone()) else { return };
        let is_deleting =
            self.requests.get(&name).is_some_and(|request| request.word == "DELETING");
        if !is_deleting {
            self.say_request(&name, word, at);
        }
    }

    /// A target that came from a request is gone.
    pub(super) fn bereave_request(&mut self, name: &str, at: Timestamp) {
        let word = self.requests.get(name).map(|request| request.word.clone());
        match word.as_deref() {
            Some("DELETING") => self.forget_request(name, at),
            Some(_) => self.say_request(name, "SUSPENDED", at),
            None => {}
        }
    }

    /// Takes a queued request away, and its target with it.
    pub(crate) fn delete_request(
        &mut self,
        name: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<Operation, ProviderError> {
        let doing = || format!("delete the queued resource {name}");
        let Some(request) = self.requests.get(name) else {
            let message = "NOT_FOUND: there is no such queued resource";
            return Err(ProviderError::new(Trouble::NotFound, doing(), message));
        };
        if let Some(operation) =
            request.deletion.as_ref().and_then(|name| self.find_operation(name))
        {
            return Ok(operation);
        }
        let at = request.spec.at();
        let target = at.name.as_str().to_owned();
        let has_target = self.targets.get(&target).is_some_and(|vm| vm.queued.is_some());
        let is_over = matches!(request.word.as_str(), "ACCEPTED" | "FAILED" | "SUSPENDED");
        if !force && !is_over && (has_target || request.word != "WAITING_FOR_RESOURCES") {
            let message = format!("FAILED_PRECONDITION: it is {}, and has a node", request.word);
            return Err(ProviderError::new(Trouble::User, doing(), message));
        }
        let operation = Operation {
            name: format!("operation-{}", self.next_number()),
            verb: Verb::Delete,
            target: at.name.clone(),
            zone: at.zone.clone().unwrap_or_default(),
            began: now,
            progress: Progress::Running,
        };
        self.say_request(name, "DELETING", now);
        let done = now.plus(seconds(self.timing.delete_s));
        if let Some(request) = self.requests.get_mut(name) {
            request.deletion = Some(operation.name.clone());
            request.next = (!has_target).then_some(done);
        }
        if has_target {
            self.delete(&at, None, now);
        }
        self.remember_queued(operation.clone(), None, name);
        Ok(operation)
    }

    fn forget_request(&mut self, name: &str, at: Timestamp) {
        let Some(request) = self.requests.remove(name) else { return };
        if let Some(operation) = request.deletion {
            self.complete(&operation, Progress::Done);
        }
        self.note(request.spec.name.as_str(), "request gone", at);
    }
}

/// The name of the queued request that is made for a target.
pub(super) fn name_for(spec: &TargetSpec) -> String {
    queued::name_for(&spec.name)
}
