//! What jobs compute on. Only here, in `cloud`, and in the commands about targets are there words of
//! one kind of target.

use serde::{Deserialize, Serialize};

use super::ids::TargetName;

/// The built-in shared target: this machine.
pub const LOCAL: &str = "local";

/// How a target is paid for, which decides whether it can be taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pricing {
    /// Ours until we delete it.
    #[default]
    OnDemand,
    /// May be taken away within a day.
    Preemptible,
    /// May be taken away at any time.
    Spot,
}

impl Pricing {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::OnDemand, Self::Preemptible, Self::Spot];

    /// Whether its owner may take it away.
    pub fn is_reclaimable(self) -> bool {
        !matches!(self, Self::OnDemand)
    }

    /// The spelling in data.json and JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Preemptible => "preemptible",
            Self::Spot => "spot",
        }
    }

    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pricing| pricing.as_str() == text)
    }
}

/// What somebody told us about a target (`targets.<full name>` in data.json).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The kind of target: `tpu`, later others.
    pub kind: String,
    /// Zone, where there are zones.
    pub zone: Option<String>,
    /// Accelerator type.
    pub accelerator: Option<String>,
    /// Pricing.
    pub pricing: Pricing,
    /// Who made the entry: a command, an import.
    pub origin: Option<String>,
    /// Addresses of the workers, `host` or `host:port`, for targets without a control plane.
    pub addresses: Vec<String>,
    /// The account on the workers.
    pub ssh_user: Option<String>,
    /// The key file for it.
    pub ssh_key: Option<String>,
    /// Version of the machines' software, where somebody asked for one.
    pub runtime_version: Option<String>,
    /// Whether it is asked for by a queued resource.
    pub queued: bool,
}

/// A target as the state file knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Full name.
    pub name: TargetName,
    /// Zone, where there are zones.
    pub zone: Option<String>,
    /// Accelerator type, where it is known.
    pub accelerator: Option<String>,
    /// Pricing.
    pub pricing: Pricing,
    /// Whether one live job at most may use it.
    pub exclusive: bool,
}

impl Target {
    /// This machine.
    pub fn local() -> Self {
        Self {
            name: TargetName::from(LOCAL),
            zone: None,
            accelerator: None,
            pricing: Pricing::OnDemand,
            exclusive: false,
        }
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        self.name.as_str() == LOCAL
    }

    /// The name of the rules that a job gets when none are asked for.
    pub fn default_rules(&self) -> &'static str {
        if self.pricing.is_reclaimable() { "pre" } else { "pass" }
    }
}
