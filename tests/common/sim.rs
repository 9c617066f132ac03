//! A simulated cloud of a test's own, with its own clock, file and machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Answer, Operation, Progress, Provider as _, ProviderError, RequestId, TargetAt, TargetSpec,
    Trouble,
};
use tpu_lab::sim::{Event, SimCloud, SimConfig, SimTarget};
use tpu_system::store::{OsDisk, Who};
use tpu_system::sys::clock::{Clock, ManualClock};

/// The zone of everything unless said otherwise.
pub(crate) const ZONE: &str = "zone-1";

/// The cloud, and what belongs to it.
pub(crate) struct Sim {
    /// The cloud under test.
    pub(crate) cloud: SimCloud,
    /// Its clock, moved by the test.
    pub(crate) clock: Arc<ManualClock>,
    dir: tempfile::TempDir,
    machines: bool,
}

impl Sim {
    /// A fleet of words alone.
    pub(crate) fn new(targets: &[(&str, &str)]) -> Self {
        Self::with(targets, false)
    }

    /// A fleet with machines.
    pub(crate) fn with_machines(targets: &[(&str, &str)]) -> Self {
        Self::with(targets, true)
    }

    fn with(targets: &[(&str, &str)], machines: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
        let cloud = open(dir.path(), Arc::clone(&clock) as Arc<dyn Clock>, targets, machines);
        Self { cloud, clock, dir, machines }
    }

    /// Another process's door to the same fleet.
    pub(crate) fn another_door(&self) -> SimCloud {
        open(self.dir.path(), Arc::clone(&self.clock) as Arc<dyn Clock>, &[], self.machines)
    }

    /// The fleet's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("sim.json")
    }

    /// Where the machines are.
    pub(crate) fn machines(&self) -> PathBuf {
        self.dir.path().join("sim")
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, seconds: f64) {
        self.clock.advance(Duration::from_secs_f64(seconds));
    }

    /// Pulls a string.
    pub(crate) fn pull(&self, event: &Event) {
        self.cloud.pull(event).unwrap();
    }

    /// What the zone says about a target; fails the test if the zone says nothing.
    pub(crate) fn fact(&self, name: &str) -> Option<TargetFact> {
        fact(&self.cloud, ZONE, name)
    }

    /// The control plane's word on a target, `-` if it is not there.
    pub(crate) fn word(&self, name: &str) -> String {
        self.fact(name).map_or_else(|| "-".to_owned(), |fact| fact.raw_state)
    }

    /// Everything that has happened to a target, in words.
    pub(crate) fn history(&self, name: &str) -> Vec<String> {
        let fleet = self.cloud.look().unwrap();
        let about = fleet.history().iter().filter(|happened| happened.target == name);
        about.map(|happened| happened.what.clone()).collect()
    }

    /// Asks for a `v2-8`.
    pub(crate) fn create(&self, name: &str, request: &str) -> Result<Operation, ProviderError> {
        self.cloud.create(&spec(name), &RequestId(request.to_owned()))
    }

    /// How far an operation is.
    pub(crate) fn progress(&self, operation: &Operation) -> Progress {
        self.cloud.operation(&operation.name).unwrap().progress
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Processes of machines end with them; a test that failed has left some.
        if !self.machines {
            return;
        }
        let Ok(fleet) = self.cloud.look() else { return };
        drop(self.cloud.pull(&Event::Calm));
        for fact in fleet.targets(self.clock.now()) {
            drop(self.cloud.delete(&TargetAt::new(fact.name, None), true));
        }
    }
}

/// A door to the fleet in a directory.
pub(crate) fn open(
    dir: &Path,
    clock: Arc<dyn Clock>,
    targets: &[(&str, &str)],
    machines: bool,
) -> SimCloud {
    let target = |(name, accelerator): &(&str, &str)| SimTarget {
        name: TargetName::from(*name),
        zone: ZONE.to_owned(),
        accelerator: (*accelerator).to_owned(),
        pricing: Pricing::Spot,
    };
    SimCloud::open(SimConfig {
        file: dir.join("sim.json"),
        machines: machines.then(|| dir.join("sim")),
        disk: Arc::new(OsDisk),
        clock,
        who: Who {
            pid: std::process::id(),
            host: "testhost".to_owned(),
            command: "test".to_owned(),
        },
        seed: 1,
        targets: targets.iter().map(target).collect(),
    })
}

/// What is asked for in tests.
pub(crate) fn spec(name: &str) -> TargetSpec {
    TargetSpec {
        name: TargetName::from(name),
        zone: ZONE.to_owned(),
        accelerator: "v2-8".to_owned(),
        pricing: Pricing::Spot,
        runtime_version: None,
        queued: false,
        options: tpu_core::model::options::KindOptions::default(),
    }
}

/// A target of the usual zone.
pub(crate) fn at(name: &str) -> TargetAt {
    TargetAt::new(TargetName::from(name), Some(ZONE.to_owned()))
}

/// What a zone says about a target; fails the test if the zone says nothing.
pub(crate) fn fact(
    cloud: &dyn tpu_engine::provider::Provider,
    zone: &str,
    name: &str,
) -> Option<TargetFact> {
    match answer(cloud, zone) {
        Answer::Facts { targets, .. } => targets.into_iter().find(|t| t.name.as_str() == name),
        Answer::Unknown { error, .. } => panic!("the zone says nothing: {error}"),
    }
}

/// The answer of one zone.
pub(crate) fn answer(cloud: &dyn tpu_engine::provider::Provider, zone: &str) -> Answer {
    let mut answers = cloud.list(&[zone.to_owned()]);
    assert_eq!(answers.len(), 1, "one answer for one zone: {answers:?}");
    answers.remove(0).answer
}

/// Why an operation has failed.
pub(crate) fn trouble_of(operation: &Operation) -> Option<Trouble> {
    match &operation.progress {
        Progress::Failed { error } => Some(error.trouble),
        Progress::Running | Progress::Done => None,
    }
}
