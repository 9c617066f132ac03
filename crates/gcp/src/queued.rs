//! Queued resources: requests that wait for a target, with a name and a life of their own beside it.
//!
//! Whoever lists targets joins them in: a target that is still queued for is on its way, one whose request
//! has ended is to be asked for again, and a second request is never made for either.

use ring::digest::{SHA256, digest};

use super::states;
use tpu_core::model::facts::{QueuedFact, QueuedState, TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::RequestId;

/// A queued resource, for one of its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    /// Its own name.
    pub name: String,
    /// The target that it is for.
    pub target: TargetName,
    /// Its zone.
    pub zone: String,
    /// The type of its machines, where it is known.
    pub accelerator: Option<String>,
    /// How it is paid for.
    pub pricing: Pricing,
    /// The request that made it.
    pub request: Option<String>,
    /// The control plane's word.
    pub word: String,
    /// Since when it is in that state.
    pub since: Option<Timestamp>,
    /// When it was seen.
    pub observed_at: Timestamp,
}

impl Queued {
    fn fact(&self) -> QueuedFact {
        QueuedFact {
            name: self.name.clone(),
            state: states::of_queued(&self.word),
            raw_state: self.word.clone(),
        }
    }

    /// What follows for a target that is not there itself.
    fn target_state(&self) -> TargetState {
        match states::of_queued(&self.word) {
            QueuedState::Waiting => TargetState::Pending,
            QueuedState::Ended => TargetState::Preempted,
            QueuedState::Deleting => TargetState::Deleting,
            // Between its end and its target's, or its target's beginning: nobody knows which.
            QueuedState::Active | QueuedState::Unknown => TargetState::Unknown,
        }
    }

    /// Whether it is for this target.
    pub fn is_for(&self, fact: &TargetFact) -> bool {
        fact.name == self.target && fact.zone.as_deref() == Some(self.zone.as_str())
    }
}

/// The name of the queued resource for a target.
pub fn name_for(target: &TargetName) -> String {
    format!("{target}-q")
}

/// Adds to each target the request that it came from, and the targets that are only requested so far.
pub fn join(targets: &mut Vec<TargetFact>, queued: &[Queued], source: &str) {
    let mut missing = Vec::new();
    for request in queued {
        match targets.iter_mut().find(|fact| request.is_for(fact)) {
            Some(fact) => fact.queued = Some(request.fact()),
            None => missing.push(TargetFact {
                zone: Some(request.zone.clone()),
                accelerator: request.accelerator.clone(),
                pricing: request.pricing,
                request: request.request.clone(),
                since: request.since,
                queued: Some(request.fact()),
                source: source.to_owned(),
                ..TargetFact::new(
                    request.target.clone(),
                    request.target_state(),
                    request.word.clone(),
                    request.observed_at,
                )
            }),
        }
    }
    targets.extend(missing);
}

/// A request as the UUID that the API wants: the same for the same request.
pub(crate) fn uuid(request: &RequestId) -> String {
    let digest = digest(&SHA256, request.0.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.iter_mut().zip(digest.as_ref()).for_each(|(byte, from)| *byte = *from);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetStep;

    #[test]
    fn a_target_that_is_only_requested_is_there_by_its_request() {
        use TargetStep::{DeleteThenCreate, Nothing, Wait};
        let now = Timestamp::from_second(5);
        for (word, step) in [
            ("CREATING", Wait),
            ("ACCEPTED", Wait),
            ("WAITING_FOR_RESOURCES", Wait),
            ("PROVISIONING", Wait),
            ("ACTIVE", Nothing),
            ("SUSPENDING", DeleteThenCreate),
            ("SUSPENDED", DeleteThenCreate),
            ("FAILED", DeleteThenCreate),
            ("DELETING", Wait),
            ("REVIEWED_BY_A_PERSON", Nothing),
        ] {
            let request = Queued {
                name: "q".to_owned(),
                target: TargetName::from("t"),
                zone: "z".to_owned(),
                accelerator: None,
                pricing: Pricing::Spot,
                request: None,
                word: word.to_owned(),
                since: None,
                observed_at: now,
            };
            let mut targets = Vec::new();
            join(&mut targets, std::slice::from_ref(&request), "sim");
            let [fact] = targets.as_slice() else { panic!("{targets:?}") };
            assert_eq!(fact.state.step(), step, "{word}");
            assert_eq!(fact.raw_state, word);
            let ready = TargetFact {
                zone: Some("z".to_owned()),
                ..TargetFact::new(TargetName::from("t"), TargetState::Ready, "READY", now)
            };
            let mut targets = vec![ready];
            join(&mut targets, &[request], "sim");
            assert_eq!(targets.len(), 1);
            assert_eq!(targets[0].state, TargetState::Ready, "what is there speaks for itself");
            assert_eq!(targets[0].queued.as_ref().unwrap().raw_state, word);
        }
    }

    #[test]
    fn a_request_has_one_uuid() {
        let id = |text: &str| uuid(&RequestId(text.to_owned()));
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
        assert_eq!((id("a").len(), id("a").as_bytes()[14]), (36, b'4'));
    }
}
