//! What can go wrong with a control plane, by what follows from it, and what a person can do.

use serde::{Deserialize, Serialize};

use tpu_core::model::facts::TargetFact;
use tpu_core::model::words::words;

/// The class of a failure: what follows from it, whatever the provider's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// The zone has none to give: asked again later, with back-off.
    NoCapacity,
    /// The project may not have more: not asked again.
    Quota,
    /// No answer, or a confused one: asked again at once, a few times; then the state is unknown.
    Transient,
    /// There is a target of this name: compared with what was asked, then adopted or refused.
    AlreadyExists,
    /// There is none of this name.
    NotFound,
    /// Nobody knows who we are: the state is unknown.
    Auth,
    /// We are known and may not.
    Permission,
    /// The request itself is wrong.
    User,
    /// No control plane is set up.
    #[serde(rename = "no-cloud")]
    NoProvider,
    /// The simulator's own file cannot be used.
    State,
}

words! {
    /// The spelling in scenarios, journals and JSON output.
    Trouble {
        NoCapacity: "no-capacity",
        Quota: "quota",
        Transient: "transient",
        AlreadyExists: "already-exists",
        NotFound: "not-found",
        Auth: "auth",
        Permission: "permission",
        User: "user",
        NoProvider: "no-cloud",
        State: "state",
    }
}

impl Trouble {
    /// Whether the same call may simply be made again.
    pub fn is_worth_repeating(self) -> bool {
        self == Self::Transient
    }
}

/// Advice names this command where the address of a control plane may be wrong that a setting holds.
pub const ENDPOINT_SETTING: &str = "tpu get-settings cloud_endpoint --origin";

/// A call, or an operation, that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("cannot {doing}: {message}")]
pub struct ProviderError {
    /// What follows from it.
    pub trouble: Trouble,
    /// What was tried: `create tpu-1 in zone z`.
    pub doing: String,
    /// What the control plane said.
    pub message: String,
    /// What a person can do, where the provider knows better than [`ProviderError::hint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The target that is already there, with [`Trouble::AlreadyExists`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<Box<TargetFact>>,
}

impl ProviderError {
    /// A failure without anything beside it.
    pub fn new(trouble: Trouble, doing: impl Into<String>, message: impl Into<String>) -> Self {
        Self { trouble, doing: doing.into(), message: message.into(), remedy: None, existing: None }
    }

    /// Says what a person can do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the target that is in the way.
    #[must_use]
    pub fn existing(mut self, fact: TargetFact) -> Self {
        self.existing = Some(Box::new(fact));
        self
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        if let Some(remedy) = &self.remedy {
            return Some(remedy.clone());
        }
        let hint = match self.trouble {
            Trouble::NoCapacity => {
                "try another zone, ask again later (tpu apply TARGET), or let the daemon ask: the rule 'wait'"
            }
            Trouble::Quota => {
                "delete targets that nobody needs (tpu delete TARGET), or ask for more quota; \
                 asking again does not help"
            }
            Trouble::Transient => {
                "nothing is known and nothing was concluded from it; try again in a minute"
            }
            Trouble::AlreadyExists => {
                "take another name, or make that one anew: tpu reapply TARGET"
            }
            Trouble::NotFound => "'tpu check-status' lists the targets there are",
            Trouble::Auth => "log in again: gcloud auth application-default login",
            Trouble::Permission => "ask an owner of the project for the permission named above",
            Trouble::User => return None,
            Trouble::NoProvider => {
                "no control plane watches targets here. For Cloud TPU: tpu set-settings cloud google, \
                 tpu set-settings project NAME; the simulated one is for practice: \
                 tpu set-settings cloud sim, or --cloud sim"
            }
            Trouble::State => "correct or remove the simulator's file; it holds no real target",
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_as_they_are_spelled_and_say_what_to_do() {
        for trouble in Trouble::ALL {
            let written = serde_json::to_value(trouble).unwrap();
            assert_eq!(written, serde_json::json!(trouble.as_str()));
            let error = ProviderError::new(trouble, "create t in zone z", "said so");
            assert_eq!(error.to_string(), "cannot create t in zone z: said so");
            // The API's message as it is explains a wrong request better than we can.
            assert_eq!(error.hint().is_none(), trouble == Trouble::User, "{trouble:?}");
        }
    }

    #[test]
    fn only_a_call_without_an_answer_is_repeated() {
        let repeated: Vec<_> =
            Trouble::ALL.into_iter().filter(|trouble| trouble.is_worth_repeating()).collect();
        assert_eq!(repeated, [Trouble::Transient]);
    }
}
