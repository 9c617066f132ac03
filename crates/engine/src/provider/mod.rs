//! The contract of a provider: machines that come and go, in which state they are, and how they are made
//! and taken away.
//!
//! **A call that failed says nothing about a target**: an answer is either facts or "unknown" with its
//! reason, and no caller can mistake one for the other. This module knows neither a job nor tmux, and
//! none of the providers that there are: each belongs to a kind of target (`kinds/`). Start with [`Provider`].

pub mod adopt;
mod error;
pub mod none;
pub mod retry;
pub mod storage;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use error::{ENDPOINT_SETTING, ProviderError, Trouble};

use tpu_core::model::billing::{BillingQuery, Charge};
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::quota::QuotaRow;
use tpu_core::model::target::{Pricing, ProviderName};
use tpu_core::model::time::Timestamp;

/// The door to one control plane. Calls return when the control plane has answered, not when the work
/// is done: that is what [`Operation`]s are asked about. One that can only tell what there is has a
/// [`Provider::list`], and refuses everything else.
pub trait Provider: Send + Sync {
    /// Which one it is.
    fn name(&self) -> ProviderName;

    /// Whether it answers on this machine: then nobody is kept waiting, and everybody can ask it himself.
    fn is_here(&self) -> bool {
        false
    }

    /// All targets of some zones, or of every zone if none is named. Exactly one answer for each zone that
    /// was named; if none was and the whole call failed, a single one, for [`EVERYWHERE`]. A provider that
    /// does not know its zones says by facts for [`EVERYWHERE`] that there is nothing in any other zone.
    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer>;

    /// What there is to say about one target. That it is not there is [`Trouble::NotFound`].
    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        let zones: Vec<String> = target.zone.iter().cloned().collect();
        let mut found = None;
        for ZoneAnswer { answer, .. } in self.list(&zones) {
            match answer {
                Answer::Unknown { error, .. } => return Err(error),
                Answer::Facts { targets, .. } => {
                    let is_it = |fact: &TargetFact| {
                        fact.name == target.name
                            && (target.zone.is_none() || fact.zone == target.zone)
                    };
                    found = found.or(targets.into_iter().find(is_it));
                }
            }
        }
        let missing = || {
            ProviderError::new(Trouble::NotFound, format!("describe {target}"), "it is not there")
        };
        found.ok_or_else(missing)
    }

    /// Why a provider that makes nothing and takes nothing away does not do what it is asked for.
    fn refusal(&self, doing: String) -> ProviderError {
        let what = "its machines are not ours to make or to take away";
        let remedy = "whoever runs them can; `tpu check-status TARGET` shows how they are";
        ProviderError::new(Trouble::User, doing, what).remedy(remedy)
    }

    /// Refuses a type and a zone of which it is known, without a question, that nothing will ever be made there.
    fn may_make(&self, _accelerator: &str, _zone: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Asks for a target. The same request id asks again for the same thing and never makes a second
    /// one: a caller that got no answer repeats the call as it was, and finds the operation or, with
    /// [`Trouble::AlreadyExists`], the target that this request has made ([`adopt`]). A new try after a
    /// failed operation is a new request.
    fn create(&self, spec: &TargetSpec, _request: &RequestId) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("create {}", spec.at())))
    }

    /// Takes a target away for good, in whatever state it is; one that is not there is done. `force` also
    /// takes away the queued request that it came from.
    fn delete(&self, target: &TargetAt, _force: bool) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("delete {target}")))
    }

    /// Starts a stopped target.
    fn start(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("start {target}")))
    }

    /// Stops a target; it keeps its disk and its name.
    fn stop(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("stop {target}")))
    }

    /// Whether machines can be restarted at once; else a restart is a stop and a start.
    fn can_reboot(&self) -> bool {
        true
    }

    /// Restarts the machines of a target; whatever runs on them ends.
    fn reboot(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        Err(self.refusal(format!("reboot {target}")))
    }

    /// How far an operation is. One that nobody remembers is [`Trouble::NotFound`]: the target's own state
    /// tells what came of it.
    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        let doing = format!("look at operation {name}");
        Err(ProviderError::new(Trouble::NotFound, doing, "nobody remembers it"))
    }

    /// Where a bucket of Cloud Storage is, for a provider that knows of buckets.
    fn bucket_place(&self, bucket: &str) -> Result<BucketPlace, ProviderError> {
        let doing = format!("look at bucket {bucket}");
        Err(ProviderError::new(Trouble::NotFound, doing, "it knows of no buckets"))
    }

    /// How much there may be of what, where, and how much of it is in use.
    fn quota(&self) -> Result<QuotaReport, ProviderError> {
        let what = "it has no quotas: what is free on its machines is all there is";
        Err(ProviderError::new(Trouble::User, "look at quotas", what)
            .remedy("`tpu targets` shows what each target has"))
    }

    /// What a month has cost, by day and category, from an export that the provider keeps.
    fn charges(&self, asked: &BillingQuery) -> Result<Vec<Charge>, ProviderError> {
        let doing = format!("read {}", asked.table);
        Err(ProviderError::new(Trouble::User, doing, "it writes no bills")
            .remedy("`tpu stats` counts what ran by the prices of your settings"))
    }

    /// The store of objects beside it, for a provider that has one.
    fn storage(&self) -> Option<&dyn storage::ObjectStore> {
        None
    }

    /// How long to wait before an operation is first asked about, and at most between two questions.
    fn pace(&self) -> (Duration, Duration) {
        (Duration::from_millis(200), Duration::from_secs(5))
    }
}

/// What a control plane says of its quotas. What one of its parts does not answer leaves the others what they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaReport {
    /// Each thing in each place.
    pub rows: Vec<QuotaRow>,
    /// What could not be learned, and why.
    pub unknown: Vec<ProviderError>,
}

/// Stands for every zone that has no answer of its own.
pub const EVERYWHERE: &str = "-";

/// The mark of one request, chosen by the caller and stored before it asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub String);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A target by name, and by zone where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAt {
    /// Full name.
    pub name: TargetName,
    /// Zone; without one the provider looks for the name.
    pub zone: Option<String>,
}

impl TargetAt {
    /// Names a target in a zone.
    pub fn new(name: TargetName, zone: Option<String>) -> Self {
        Self { name, zone }
    }
}

impl fmt::Display for TargetAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{} in zone {zone}", self.name),
            None => self.name.fmt(f),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Full name.
    pub name: TargetName,
    /// Zone.
    pub zone: String,
    /// Accelerator type.
    pub accelerator: String,
    /// How it is paid for.
    pub pricing: Pricing,
    /// Version of the machine's software; the usual one of the accelerator if `None`.
    pub runtime_version: Option<String>,
    /// Whether it is asked for by a queued resource, which waits for capacity in its place.
    #[serde(default)]
    pub queued: bool,
    /// What else is said of it, by the names of its kind's own options.
    #[serde(default, skip_serializing_if = "KindOptions::is_empty")]
    pub options: KindOptions,
}

impl TargetSpec {
    /// The target that would be.
    pub fn at(&self) -> TargetAt {
        TargetAt::new(self.name.clone(), Some(self.zone.clone()))
    }
}

/// What one zone said, or why it said nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneAnswer {
    /// Which zone.
    pub zone: String,
    /// What it said.
    pub answer: Answer,
}

/// Facts or nothing. There is no way from a failed call to a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The zone's complete list: a target of the zone that is not in it is gone.
    Facts {
        /// Every target there.
        targets: Vec<TargetFact>,
        /// When the control plane said so.
        observed_at: Timestamp,
    },
    /// The call failed: nothing follows from it.
    Unknown {
        /// Why.
        error: ProviderError,
        /// When this process last got an answer about the zone.
        last: Option<Timestamp>,
    },
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// A target is made.
    Create,
    /// It is taken away.
    Delete,
    /// It is started.
    Start,
    /// It is stopped.
    Stop,
    /// Its machines are restarted.
    Reboot,
}

impl Verb {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Reboot => "reboot",
        }
    }
}

/// Something that the control plane is doing, or has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Its name, for [`Provider::operation`].
    pub name: String,
    /// What is done.
    pub verb: Verb,
    /// To which target.
    pub target: TargetName,
    /// In which zone.
    pub zone: String,
    /// When it began.
    pub began: Timestamp,
    /// How far it is.
    pub progress: Progress,
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Progress {
    /// Ask again later.
    Running,
    /// It is done.
    Done,
    /// It has failed; a stock-out arrives here.
    Failed {
        /// Why.
        error: ProviderError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetState;

    /// One that can only tell.
    struct Notices;

    impl Provider for Notices {
        fn name(&self) -> ProviderName {
            ProviderName::new("notices")
        }

        fn list(&self, _: &[String]) -> Vec<ZoneAnswer> {
            let at = Timestamp::from_second(5);
            let of = |zone: &str| TargetFact {
                zone: Some(zone.to_owned()),
                ..TargetFact::new(TargetName::from("t"), TargetState::Ready, "UP", at)
            };
            let answer = Answer::Facts { targets: vec![of("a"), of("b")], observed_at: at };
            vec![ZoneAnswer { zone: EVERYWHERE.to_owned(), answer }]
        }
    }

    #[test]
    fn one_that_can_only_tell_describes_by_its_list_and_refuses_the_rest() {
        let at =
            |name: &str, zone: &str| TargetAt::new(TargetName::from(name), Some(zone.to_owned()));
        let zone = |at: &TargetAt| Notices.describe(at).map(|fact| fact.zone.unwrap());
        assert_eq!(zone(&at("t", "b")), Ok("b".to_owned()));
        for missing in [at("t", "c"), at("u", "a")] {
            assert_eq!(zone(&missing).unwrap_err().trouble, Trouble::NotFound);
        }
        for refused in [Notices.delete(&at("t", "a"), true), Notices.reboot(&at("t", "a"))] {
            let error = refused.unwrap_err();
            assert_eq!(error.trouble, Trouble::User);
            assert!(error.hint().is_some());
        }
    }
}
