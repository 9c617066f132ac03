//! What goes wrong with calls: errors of each class, silence, slowness, answers lost or given twice.

use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{ProviderError, Trouble};

/// A call of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// The list of a zone.
    List,
    /// One target is asked about.
    Describe,
    /// A target is asked for.
    Create,
    /// A target is to be taken away.
    Delete,
    /// A target is to be started.
    Start,
    /// A target is to be stopped.
    Stop,
    /// A target is to be restarted.
    Reboot,
    /// An operation is asked about.
    Operation,
    /// A bucket is asked about.
    Bucket,
    /// The quotas of Cloud TPU are asked about.
    Quota,
    /// Those of Compute Engine are.
    Compute,
    /// A table is queried; the target of such a call is the table.
    Query,
    /// Objects are listed.
    Objects,
    /// An object is looked at, or bytes of it are read.
    Read,
    /// An upload begins, or an object is deleted.
    Write,
    /// Bytes of an upload are sent.
    Upload,
    /// An object is copied to another bucket.
    Rewrite,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The call is refused and has no effect.
    Error(Trouble),
    /// A creation is accepted and fails for want of capacity.
    NoCapacity,
    /// A creation or deletion is accepted and fails in the end.
    FailLate(Trouble),
    /// The answer takes so many seconds.
    Slow(f64),
    /// The call has its effect, and its answer never arrives.
    LoseAnswer,
    /// The call arrives twice.
    Twice,
    /// The connection is cut after so many bytes of an object.
    CutAfter(u64),
}

/// A thing that goes wrong with some calls, so many times or until then. What is not said matches all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What goes wrong.
    pub effect: Effect,
    /// With which call.
    pub call: Option<Call>,
    /// With calls about which target; a fault of a target never touches a list.
    pub target: Option<String>,
    /// In which zone.
    pub zone: Option<String>,
    /// How many times more.
    pub times: Option<u32>,
    /// Until when.
    pub until: Option<Timestamp>,
}

/// Which call is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'a> {
    pub(crate) call: Call,
    pub(crate) target: Option<&'a str>,
    pub(crate) zone: &'a str,
}

impl Fault {
    fn strikes(&self, called: Called<'_>, now: Timestamp) -> bool {
        let of_call = match self.effect {
            Effect::NoCapacity => called.call == Call::Create,
            Effect::FailLate(_) => matches!(called.call, Call::Create | Call::Delete),
            Effect::CutAfter(_) => matches!(called.call, Call::Read | Call::Upload),
            Effect::Error(_) | Effect::Slow(_) | Effect::LoseAnswer | Effect::Twice => true,
        };
        of_call
            && self.call.is_none_or(|call| call == called.call)
            && self.target.as_deref().is_none_or(|target| Some(target) == called.target)
            && self.zone.as_deref().is_none_or(|zone| zone == called.zone)
            && self.times != Some(0)
            && self.until.is_none_or(|until| now < until)
    }
}

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) error: Option<Trouble>,
    /// What is accepted fails in the end with this.
    pub(crate) late: Option<Trouble>,
    pub(crate) slow_s: f64,
    pub(crate) lost: bool,
    pub(crate) twice: bool,
    pub(crate) cut: Option<u64>,
}

/// Everything that goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Adds one more thing that goes wrong.
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// There is capacity again: for one target, in one zone, or everywhere.
    pub(super) fn restore_capacity(&mut self, target: Option<&str>, zone: Option<&str>) {
        self.0.retain(|fault| {
            fault.effect != Effect::NoCapacity
                || target.is_some() && fault.target.as_deref() != target
                || zone.is_some() && fault.zone.as_deref() != zone
        });
    }

    /// Ends all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether a queued request gets nothing yet; counts it.
    pub(crate) fn has_no_capacity(&mut self, target: &str, zone: &str, now: Timestamp) -> bool {
        let called = Called { call: Call::Create, target: Some(target), zone };
        let strikes =
            |fault: &&mut Fault| fault.effect == Effect::NoCapacity && fault.strikes(called, now);
        let Some(fault) = self.0.iter_mut().find(strikes) else { return false };
        fault.times = fault.times.map(|times| times.saturating_sub(1));
        true
    }

    /// Whether anything at all goes wrong with a call.
    pub(crate) fn is_disturbed(&self, called: Called<'_>, now: Timestamp) -> bool {
        self.0.iter().any(|fault| fault.strikes(called, now))
    }

    /// What goes wrong with a call; counts it.
    pub(crate) fn deliver(&mut self, called: Called<'_>, now: Timestamp) -> Delivery {
        let mut delivery = Delivery::default();
        for fault in self.0.iter_mut().filter(|fault| fault.strikes(called, now)) {
            // A refused call gets no further: what would go wrong later still lies ahead.
            if delivery.error.is_some() {
                continue;
            }
            match fault.effect {
                Effect::Error(trouble) => delivery.error = Some(trouble),
                Effect::NoCapacity => delivery.late = Some(Trouble::NoCapacity),
                Effect::FailLate(trouble) => delivery.late = Some(trouble),
                Effect::Slow(seconds) => delivery.slow_s = delivery.slow_s.max(seconds),
                Effect::LoseAnswer => delivery.lost = true,
                Effect::Twice => delivery.twice = true,
                Effect::CutAfter(bytes) => delivery.cut = Some(bytes),
            }
            fault.times = fault.times.map(|times| times - 1);
        }
        self.0
            .retain(|fault| fault.times != Some(0) && fault.until.is_none_or(|until| now < until));
        delivery
    }
}

/// The words of the control plane for an error of each class.
pub(crate) fn error(trouble: Trouble, doing: &str, zone: &str) -> ProviderError {
    let message = match trouble {
        Trouble::NoCapacity => format!("there is no more capacity in the zone \"{zone}\""),
        Trouble::Quota => {
            format!("RESOURCE_EXHAUSTED: quota of nodes in zone {zone} exceeded: limit 0")
        }
        Trouble::Transient => "UNAVAILABLE: the service is currently unavailable".to_owned(),
        Trouble::AlreadyExists => "ALREADY_EXISTS: it exists".to_owned(),
        Trouble::NotFound => "NOT_FOUND: it was not found".to_owned(),
        Trouble::Auth => "UNAUTHENTICATED: the credentials are missing or expired".to_owned(),
        Trouble::Permission => format!("PERMISSION_DENIED: 'tpu.nodes' on zone {zone}"),
        Trouble::User => "INVALID_ARGUMENT: the request is wrong".to_owned(),
        Trouble::NoProvider => "no cloud is set up".to_owned(),
        Trouble::State => "the simulator's file cannot be used".to_owned(),
    };
    ProviderError::new(trouble, doing, message)
}
