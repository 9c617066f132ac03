//! What a control plane says about targets, reduced to what differs for us.

use serde::{Deserialize, Serialize};

use super::Room;
use crate::model::ids::TargetName;
use crate::model::target::{Machines, Pricing, Target};
use crate::model::time::Timestamp;
use crate::model::words::words;

/// The state of a target in the words of its control plane, reduced to what differs for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetState {
    /// Usable.
    Ready,
    /// On its way; never a second create.
    Pending,
    /// Taken away: proof of preemption.
    Preempted,
    /// Stopped by somebody.
    Stopped,
    /// Being deleted.
    Deleting,
    /// Not there, by a complete answer.
    Gone,
    /// The provider does not watch it (`cloud = none`).
    NotWatched,
    /// Nobody knows; nothing follows from it.
    Unknown,
}

/// What may be done with a target in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetStep {
    /// Start jobs on it.
    Launch,
    /// Nothing but wait for it.
    Wait,
    /// Delete what is left of it, then create it.
    DeleteThenCreate,
    /// Start it.
    Start,
    /// Create it.
    Create,
    /// Nothing at all.
    Nothing,
}

words! {
    /// The spelling in JSON.
    TargetState {
        Ready: "ready",
        Pending: "pending",
        Preempted: "preempted",
        Stopped: "stopped",
        Deleting: "deleting",
        Gone: "gone",
        NotWatched: "not-watched",
        Unknown: "unknown",
    }
}

impl TargetState {
    /// The one thing that the state allows. Only a state that is proof allows anything destructive.
    pub fn step(self) -> TargetStep {
        match self {
            Self::Ready | Self::NotWatched => TargetStep::Launch,
            Self::Pending | Self::Deleting => TargetStep::Wait,
            Self::Preempted => TargetStep::DeleteThenCreate,
            Self::Stopped => TargetStep::Start,
            Self::Gone => TargetStep::Create,
            Self::Unknown => TargetStep::Nothing,
        }
    }

    /// After how many seconds in this state something is wrong: on its way for 30 minutes, being
    /// deleted for 15.
    pub(crate) fn stuck_after_s(self) -> Option<u64> {
        match self {
            Self::Pending => Some(30 * 60),
            Self::Deleting => Some(15 * 60),
            Self::Ready
            | Self::Preempted
            | Self::Stopped
            | Self::Gone
            | Self::NotWatched
            | Self::Unknown => None,
        }
    }
}

/// The state of a queued request for a target, reduced to what differs for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuedState {
    /// It waits for resources: adopted after a restart, never made a second time.
    Waiting,
    /// Its target exists.
    Active,
    /// It has ended without a target and holds quota: deleted with force, then asked for again.
    Ended,
    /// Being deleted.
    Deleting,
    /// Nobody knows; nothing follows from it.
    Unknown,
}

words! {
    /// The spelling in JSON.
    QueuedState {
        Waiting: "waiting",
        Active: "active",
        Ended: "ended",
        Deleting: "deleting",
        Unknown: "unknown",
    }
}

/// A queued request, which has a name and a life of its own beside its target's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedFact {
    /// Name of the request.
    pub name: String,
    /// State, reduced.
    pub state: QueuedState,
    /// The control plane's own word.
    pub raw_state: String,
}

/// What a control plane said about one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetFact {
    /// Full name.
    pub name: TargetName,
    /// Whose its machines are, as the data file says.
    #[serde(skip)]
    pub machines: Machines,
    /// Zone, where there are zones.
    pub zone: Option<String>,
    /// Accelerator type, where it is known.
    pub accelerator: Option<String>,
    /// State, reduced.
    pub state: TargetState,
    /// The control plane's own word.
    pub raw_state: String,
    /// When it was created, where the control plane says so.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// When that state began, where the control plane says so.
    pub since: Option<Timestamp>,
    /// The control plane's word on its health; `None` if it said nothing.
    pub health: Option<String>,
    /// What is wrong with it, in the control plane's words.
    pub symptoms: Vec<String>,
    /// How it is paid for.
    pub pricing: Pricing,
    /// Addresses of the workers, in order; empty for one whose address is not known yet.
    pub endpoints: Vec<String>,
    /// Their addresses inside the provider's network, in the same order, where there are two kinds; empty for
    /// one whose other address was not said, which may be left out for a moment: that in `endpoints` is then
    /// the inner one.
    #[serde(default)]
    pub internal: Vec<String>,
    /// The request that it was created by, if that was one of ours (label `tpu-request`).
    pub request: Option<String>,
    /// The queued request it came from.
    pub queued: Option<QueuedFact>,
    /// What its engine says of its room, where that was asked.
    #[serde(skip)]
    pub room: Option<Box<Room>>,
    /// Which provider said so.
    pub source: String,
    /// When the control plane said so.
    pub observed_at: Timestamp,
}

impl TargetFact {
    /// With what the data file says where the control plane is silent. One that has the target knows best how
    /// it is paid for.
    #[must_use]
    pub fn with_registered(mut self, registered: Option<&Target>) -> Self {
        let Some(registered) = registered else { return self };
        self.machines = registered.machines;
        self.accelerator = self.accelerator.or_else(|| registered.accelerator.clone());
        self.zone = self.zone.or_else(|| registered.zone.clone());
        self.pricing = match self.state {
            TargetState::NotWatched | TargetState::Gone | TargetState::Unknown => {
                registered.pricing
            }
            TargetState::Pending
            | TargetState::Ready
            | TargetState::Preempted
            | TargetState::Stopped
            | TargetState::Deleting => self.pricing,
        };
        self
    }

    /// A statement about the state alone; everything else is unsaid.
    pub fn new(
        name: TargetName,
        state: TargetState,
        raw_state: impl Into<String>,
        observed_at: Timestamp,
    ) -> Self {
        Self {
            name,
            machines: Machines::Provided,
            zone: None,
            accelerator: None,
            state,
            raw_state: raw_state.into(),
            created_at: None,
            since: None,
            health: None,
            symptoms: Vec::new(),
            pricing: Pricing::OnDemand,
            endpoints: Vec::new(),
            internal: Vec::new(),
            request: None,
            queued: None,
            room: None,
            source: String::new(),
            observed_at,
        }
    }

    /// How it is paid for, in words; `None` where nobody has said: neither a registration nor a control plane
    /// that knows it.
    pub fn told_pricing(&self, pricing: Pricing) -> Option<&'static str> {
        let is_told = match self.state {
            TargetState::NotWatched | TargetState::Unknown | TargetState::Gone => {
                pricing.is_reclaimable()
            }
            TargetState::Ready
            | TargetState::Pending
            | TargetState::Deleting
            | TargetState::Stopped
            | TargetState::Preempted => true,
        };
        is_told.then(|| pricing.as_str())
    }

    /// Whether it is usable and the control plane has something to remark about it.
    pub fn is_flagged(&self) -> bool {
        let healthy = self.health.as_deref().is_none_or(|health| health == "HEALTHY");
        self.state == TargetState::Ready && (!healthy || !self.symptoms.is_empty())
    }

    /// What is wrong with it, in one line.
    pub fn complaint(&self) -> String {
        let health = self.health.iter().filter(|health| *health != "HEALTHY");
        health.chain(&self.symptoms).map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// For how many seconds it has been in its state, if that is longer than it should be.
    pub fn stuck_for_s(&self, now: Timestamp) -> Option<u64> {
        let so_far = now.seconds_since(self.since?);
        (so_far > self.state.stuck_after_s()?).then_some(so_far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_usable_target_is_flagged_and_only_a_wait_gets_stuck() {
        let begin = Timestamp::from_second(1_000);
        let mut fact = TargetFact::new(TargetName::from("t"), TargetState::Ready, "READY", begin);
        assert!(!fact.is_flagged());
        fact.health = Some("UNHEALTHY_MAINTENANCE".to_owned());
        assert!(fact.is_flagged());
        fact.state = TargetState::Pending;
        assert!(!fact.is_flagged());
        assert_eq!(fact.stuck_for_s(begin.plus_seconds(9_000)), None, "nobody knows since when");
        fact.since = Some(begin);
        assert_eq!(fact.stuck_for_s(begin.plus_seconds(1_800)), None);
        assert_eq!(fact.stuck_for_s(begin.plus_seconds(1_801)), Some(1_801));
        fact.state = TargetState::Deleting;
        assert_eq!(fact.stuck_for_s(begin.plus_seconds(901)), Some(901));
        fact.state = TargetState::Unknown;
        assert_eq!(fact.stuck_for_s(begin.plus_seconds(99_999)), None);
    }
}
