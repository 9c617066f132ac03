//! What jobs compute on, whatever kind of target it is: `kinds/` knows what a kind means.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::capacity::Capacity;
use super::host::HostRecord;
use super::ids::TargetName;
use super::options::KindOptions;
use super::words::words;

/// The built-in shared target: this machine.
pub const LOCAL: &str = "local";

/// The word for a kind of target, as it is stored with one. Only the registry (`kinds/mod.rs`) knows what it
/// means; a word that it does not know is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKind(Cow<'static, str>);

impl TargetKind {
    /// This machine.
    pub const LOCAL: Self = Self(Cow::Borrowed(LOCAL));
    /// Machines that a control plane makes and takes away.
    pub const TPU: Self = Self(Cow::Borrowed("tpu"));
    /// Machines with addresses of their own.
    pub const SSH: Self = Self(Cow::Borrowed("ssh"));

    /// A word that somebody wrote.
    pub fn new(word: impl Into<String>) -> Self {
        let word = word.into();
        let built_in = [Self::LOCAL, Self::TPU, Self::SSH].into_iter().find(|kind| kind.0 == word);
        built_in.unwrap_or(Self(Cow::Owned(word)))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the files of the original know, and say nothing about.
impl Default for TargetKind {
    fn default() -> Self {
        Self::TPU
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The word for a provider: what knows the targets of a kind, and makes and takes them away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProviderName(Cow<'static, str>);

impl ProviderName {
    /// None: targets come from the data file alone, and nobody watches them.
    pub const NONE: Self = Self(Cow::Borrowed("none"));

    /// A name that stands in the code of a kind.
    pub const fn of(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A name that somebody wrote.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is one at all.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl Default for ProviderName {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which provider, and where it is asked. A provider that knows no projects has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderAt {
    /// Its name.
    pub name: ProviderName,
    /// The project whose targets it is asked for.
    pub project: Option<String>,
    /// The address of its API, where that is not the usual one.
    pub endpoint: Option<String>,
}

/// For people: `google, project lab`.
impl fmt::Display for ProviderAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())?;
        if let Some(project) = &self.project {
            write!(f, ", project {project}")?;
        }
        if let Some(endpoint) = &self.endpoint {
            write!(f, " at {endpoint}")?;
        }
        Ok(())
    }
}

/// Whose the machines of a target are, which says what can be done to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machines {
    /// A provider's: it says how they are, and may take them away.
    #[default]
    Provided,
    /// Somebody's own, at addresses that somebody has registered: always there, and never made anew.
    Fixed,
    /// This machine.
    Here,
    /// An engine's, which queues, places and runs jobs by itself: as many at once as it decides.
    Engine,
}

impl Machines {
    /// Where they stand in a list of several: the nearest first, engines last.
    pub fn rank(self) -> u8 {
        match self {
            Self::Here => 0,
            Self::Fixed => 1,
            Self::Provided => 2,
            Self::Engine => 3,
        }
    }

    /// What such machines have for jobs where nobody has said it: those of a provider and those at addresses are
    /// one job's at a time.
    pub(crate) fn usual_capacity(self) -> Capacity {
        match self {
            Self::Provided | Self::Fixed => Capacity::ONE,
            Self::Here | Self::Engine => Capacity::default(),
        }
    }
}

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

words! {
    /// The spelling in data.json and JSON output.
    Pricing {
        OnDemand: "on-demand",
        Preemptible: "preemptible",
        Spot: "spot",
    }
}

impl Pricing {
    /// Whether its owner may take it away.
    pub fn is_reclaimable(self) -> bool {
        !matches!(self, Self::OnDemand)
    }

    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pricing| pricing.as_str() == text)
    }
}

/// What somebody told us about a target (`targets.<full name>` in data.json).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The kind of target.
    pub kind: TargetKind,
    /// Whose it is, where that is not the provider of the settings.
    pub provider: Option<ProviderName>,
    /// Its project, where that is not the one of the settings.
    pub project: Option<String>,
    /// The address of its provider's API, where that is not the one of the settings.
    pub endpoint: Option<String>,
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
    /// Whether an engine places and runs its jobs, as its kind says.
    pub engine: bool,
    /// What it has for jobs, where somebody has said so.
    pub capacity: Option<Capacity>,
    /// What is kept of it as a machine of somebody's own.
    pub host: Option<HostRecord>,
    /// What else was said of it, by the names of its kind's own options.
    pub options: KindOptions,
}

impl Registration {
    /// Whose the machines are: who registers addresses names machines of his own.
    pub fn machines(&self) -> Machines {
        match (self.engine, self.addresses.is_empty()) {
            (true, _) => Machines::Engine,
            (false, true) => Machines::Provided,
            (false, false) => Machines::Fixed,
        }
    }

    /// What it has for jobs: as somebody has said, else as its machines are used where nobody says anything.
    pub fn capacity(&self) -> Capacity {
        self.capacity.unwrap_or_else(|| self.machines().usual_capacity())
    }
}

/// A target as the state file knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Full name.
    pub name: TargetName,
    /// The kind of target.
    pub kind: TargetKind,
    /// Whose its machines are.
    pub machines: Machines,
    /// Zone, where there are zones.
    pub zone: Option<String>,
    /// Accelerator type, where it is known.
    pub accelerator: Option<String>,
    /// Pricing.
    pub pricing: Pricing,
    /// What it has for jobs.
    pub capacity: Capacity,
}

impl Target {
    /// The targets that are there without anybody having said so.
    pub fn built_in() -> [Self; 1] {
        [Self::local()]
    }

    /// The built-in target of a name, if there is one.
    pub fn built_in_of(name: &TargetName) -> Option<Self> {
        (name.as_str() == LOCAL).then(Self::local)
    }

    /// This machine.
    pub fn local() -> Self {
        Self {
            name: TargetName::from(LOCAL),
            kind: TargetKind::LOCAL,
            machines: Machines::Here,
            zone: None,
            accelerator: None,
            pricing: Pricing::OnDemand,
            capacity: Capacity::default(),
        }
    }

    /// Whether one live job at most may use it.
    pub fn is_exclusive(&self) -> bool {
        self.capacity.jobs == Some(1)
    }

    /// Whether it is this machine.
    pub fn is_here(&self) -> bool {
        self.machines == Machines::Here
    }

    /// The name of the rules that a job gets when none are asked for; `takes_away` is what its engine, if it has
    /// one, says of that.
    pub fn default_rules(&self, takes_away: bool) -> &'static str {
        if takes_away || self.pricing.is_reclaimable() { "pre" } else { "pass" }
    }
}
