//! The simulated cloud: the same door as a real one, on a fleet in a file that several processes share.
//!
//! Nothing runs in the background: whoever asks first plays what has become due meanwhile, each thing
//! at its own instant. The workers of a target are directories of this machine, and their processes die
//! with it before the control plane says so. Start with [`SimCloud`]; [`Event`] lists everything that can be
//! made to happen.

mod account_calls;
pub(super) mod accounts;
mod advance;
mod apply;
mod calls;
mod event;
pub(super) mod faults;
pub(super) mod fleet;
pub mod import;
mod machines;
pub(super) mod objects;
mod requests;
mod scenario;
mod timing;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use accounts::{AccountChange, BillLine};
pub use event::{Event, Scheduled};
pub use faults::{Call, Effect, Fault};
pub use fleet::{Fleet, Happened, SimTarget};
pub use scenario::Scenario;
pub use timing::Timing;

use faults::{Called, Delivery};
use machines::Machines;
use timing::seconds;
use tpu_core::model::billing::{BillingQuery, Charge};
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::target::ProviderName;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Answer, EVERYWHERE, Operation, Provider, ProviderError, QuotaReport, RequestId, TargetAt,
    TargetSpec, Trouble, Verb, ZoneAnswer,
};
use tpu_gcp::SIM;
use tpu_system::effects::Effects;
use tpu_system::store::atomic;
use tpu_system::store::disk::{Disk, Lock};
use tpu_system::store::lock;
use tpu_system::store::{StoreError, Who};
use tpu_system::sys::clock::{Clock, SystemClock};

/// Mode of the file: whoever shares the data file shares the fleet.
const MODE: u32 = 0o660;
/// Mode of the directory that it lies in, if that is not there yet.
const DIR_MODE: u32 = 0o770;
/// How long a caller waits for an answer.
const TIME_OUT: Duration = Duration::from_secs(60);

/// The simulated fleet beside the data file.
pub fn beside(effects: &Effects) -> SimCloud {
    let paths = effects.store.paths();
    let targets = effects.data().map_or_else(|_| Vec::new(), |data| import::fleet(data.registry()));
    SimCloud::open(SimConfig {
        file: paths.sim(),
        machines: Some(paths.state().join("sim")),
        disk: Arc::clone(effects.store.disk()),
        clock: Arc::clone(&effects.clock),
        who: Who {
            pid: effects.env.pid,
            host: effects.env.hostname.clone(),
            command: format!("tpu {}", effects.actor),
        },
        seed: effects.random.below(u64::MAX),
        targets,
    })
}

/// What a simulated cloud is made of.
pub struct SimConfig {
    /// The fleet's file, `Paths::sim`.
    pub file: PathBuf,
    /// Directory of the machines; `None` for a fleet of words alone, without processes.
    pub machines: Option<PathBuf>,
    /// The disk that the file lies on.
    pub disk: Arc<dyn Disk>,
    /// Time. All processes that share a fleet must agree on it.
    pub clock: Arc<dyn Clock>,
    /// Who this process is, for those who wait for the file's lock.
    pub who: Who,
    /// Decides every chance of a new fleet.
    pub seed: u64,
    /// The targets of a new fleet ([`import::fleet`]).
    pub targets: Vec<SimTarget>,
}

/// How things stand in the storage.
pub(super) struct StorageFacts {
    /// Names and places.
    pub(super) buckets: Vec<(String, String)>,
    /// Entries on a page.
    pub(super) page: Option<u32>,
    /// Bytes that one call copies.
    pub(super) rewrite: Option<u64>,
}

/// The door to a simulated cloud.
pub struct SimCloud {
    config: SimConfig,
    machines: Machines,
    /// When this process last got an answer about each zone.
    answered: Mutex<BTreeMap<String, Timestamp>>,
}

impl SimCloud {
    /// Opens the door. Nothing is read or written yet; a fleet that is not there begins at the first
    /// question.
    pub fn open(config: SimConfig) -> Self {
        let machines = Machines::new(config.machines.clone());
        Self { config, machines, answered: Mutex::new(BTreeMap::new()) }
    }

    /// The fleet as it is now.
    pub fn look(&self) -> Result<Fleet, ProviderError> {
        let now = self.config.clock.now();
        match self.read("look at the fleet")? {
            Some((fleet, _)) if !fleet.clone().advance(now) => Ok(fleet),
            _ => self.transact("look at the fleet", |fleet, _| fleet.clone()),
        }
    }

    /// Pulls a string: this happens now.
    pub fn pull(&self, event: &Event) -> Result<(), ProviderError> {
        let doing = format!("simulate {}", event.subject());
        scenario::check(event)
            .map_err(|problem| ProviderError::new(Trouble::User, doing.clone(), problem))?;
        self.transact(&doing, |fleet, now| fleet.apply(event, now))?
    }

    /// What an event would be refused for, if for anything. Nothing happens.
    pub fn try_out(&self, event: &Event) -> Result<(), ProviderError> {
        let doing = format!("simulate {}", event.subject());
        scenario::check(event)
            .map_err(|problem| ProviderError::new(Trouble::User, doing.clone(), problem))?;
        let now = self.config.clock.now();
        let mut fleet = self.read(&doing)?.map_or_else(|| self.new_fleet(now), |(fleet, _)| fleet);
        fleet.advance(now);
        fleet.apply(event, now)
    }

    /// Begins a story: its steps count from now. Steps of an earlier one that are still to come stay.
    pub fn play(&self, story: &Scenario) -> Result<(), ProviderError> {
        self.transact("begin a scenario", |fleet, now| {
            if let Some(seed) = story.seed {
                (fleet.seed, fleet.draws) = (seed, 0);
            }
            if let Some(timing) = story.timing {
                fleet.timing = timing;
                fleet.redraw_lifetimes(now);
            }
            fleet.upcoming.extend(
                story.steps.iter().map(|(at, event)| Scheduled {
                    at: now.plus(seconds(*at)),
                    event: event.clone(),
                }),
            );
            fleet.advance(now);
        })
    }

    /// The fleet as the file has it, with the file's bytes; `None` if there is none yet. Takes no lock.
    fn read(&self, doing: &str) -> Result<Option<(Fleet, Vec<u8>)>, ProviderError> {
        let path = &self.config.file;
        let broken = |message: String| ProviderError::new(Trouble::State, doing, message);
        let bytes = match self.config.disk.read(path) {
            Ok(contents) => contents.bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(broken(format!("cannot read {}: {e}", path.display()))),
        };
        let mut fleet: Fleet = serde_json::from_slice(&bytes).map_err(|e| {
            broken(format!("{} is no fleet: {e}", path.display())).remedy(format!(
                "remove {}: a new fleet begins then, in which every target is READY",
                path.display()
            ))
        })?;
        fleet.machines = self.machines.clone();
        Ok(Some((fleet, bytes)))
    }

    fn new_fleet(&self, now: Timestamp) -> Fleet {
        Fleet::start(self.config.seed, &self.config.targets, self.machines.clone(), now)
    }

    /// Applies `work` to the fleet as it is now, alone. What it asks of the machines is done before the
    /// fleet is written: when the file says PREEMPTED, the processes are dead.
    fn transact<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut Fleet, Timestamp) -> T,
    ) -> Result<T, ProviderError> {
        let SimConfig { file, disk, clock, who, .. } = &self.config;
        // Whoever holds the lock is real, whatever time the fleet lives in.
        let patience = SystemClock::new();
        let broken = |error: StoreError| {
            let remedy = error.hint();
            ProviderError { remedy, ..ProviderError::new(Trouble::State, doing, error.to_string()) }
        };
        let mut lock_file = file.clone().into_os_string();
        lock_file.push(".lock");
        if let Some(dir) = file.parent() {
            // If it cannot be made, the lock says so with its path.
            drop(disk.make_dir(dir, DIR_MODE));
        }
        let lock = Lock { path: lock_file.as_ref(), mode: MODE, guarded: Some(file) };
        lock::with(&**disk, &patience, who, lock, || {
            let now = clock.now();
            let (mut fleet, before) =
                self.read(doing)?.unwrap_or_else(|| (self.new_fleet(now), Vec::new()));
            fleet.advance(now);
            let result = work(&mut fleet, now);
            for power in std::mem::take(&mut fleet.power) {
                self.machines.perform(&power).map_err(|e| {
                    ProviderError::new(Trouble::State, doing, format!("the machines failed: {e}"))
                })?;
            }
            let after = serde_json::to_vec(&fleet).map_err(|e| {
                ProviderError::new(
                    Trouble::State,
                    doing,
                    format!("the fleet cannot be written: {e}"),
                )
            })?;
            if after != before {
                atomic::write_file(&**disk, file, &after, MODE).map_err(broken)?;
            }
            Ok(result)
        })
        .map_err(broken)?
    }

    /// One call about one target, with whatever goes wrong with it, as it leaves the control plane.
    pub(super) fn answered<T>(
        &self,
        call: Call,
        doing: &str,
        target: &TargetAt,
        effect: impl Fn(&mut Fleet, Delivery, Timestamp) -> Result<T, ProviderError>,
    ) -> Result<(Delivery, Result<T, ProviderError>), ProviderError> {
        self.transact(doing, |fleet, now| {
            let zone = fleet.zone_of(target);
            let called = Called { call, target: Some(target.name.as_str()), zone: &zone };
            let delivery = fleet.faults.deliver(called, now);
            if let Some(trouble) = delivery.error {
                return (delivery, Err(faults::error(trouble, doing, &zone)));
            }
            let mut result = effect(fleet, delivery, now);
            if delivery.twice {
                result = effect(fleet, delivery, now);
            }
            (delivery, result)
        })
    }

    /// A look at the fleet that may change it, alone.
    pub(super) fn looked<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&mut Fleet, Timestamp) -> T,
    ) -> Result<T, ProviderError> {
        self.transact(doing, work)
    }

    /// Where a bucket is, with whatever goes wrong with the question.
    pub(super) fn bucket(
        &self,
        bucket: &str,
    ) -> Result<(Delivery, Result<BucketPlace, ProviderError>), ProviderError> {
        let doing = format!("look at bucket {bucket}");
        self.transact(&doing, |fleet, now| {
            let called = Called { call: Call::Bucket, target: None, zone: "" };
            let delivery = fleet.faults.deliver(called, now);
            if let Some(trouble) = delivery.error {
                return (delivery, Err(faults::error(trouble, &doing, "")));
            }
            let missing = || faults::error(Trouble::NotFound, &doing, "");
            let location = fleet.buckets.get(bucket).cloned().ok_or_else(missing);
            let place = |location| BucketPlace { location, ..BucketPlace::default() };
            (delivery, location.map(place))
        })
    }

    /// What a call of the storage meets, and how things stand there.
    pub(super) fn objects_called(
        &self,
        call: Call,
        bucket: &str,
    ) -> Result<(Delivery, StorageFacts), ProviderError> {
        self.transact("ask the storage", |fleet, now| {
            let delivery = fleet.faults.deliver(Called { call, target: None, zone: bucket }, now);
            let buckets = fleet.buckets.iter().map(|(name, at)| (name.clone(), at.clone()));
            let (page, rewrite) = (fleet.object_page, fleet.object_rewrite);
            (delivery, StorageFacts { buckets: buckets.collect(), page, rewrite })
        })
    }

    /// The objects of its buckets.
    pub(super) fn objects(&self) -> objects::Objects {
        objects::Objects::new(self.config.file.with_extension("buckets"))
    }

    /// The time that it lives in.
    pub(super) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Lets an answer take its time; whether it comes before everybody has hung up.
    pub(super) fn linger(&self, slow_s: f64) -> bool {
        self.wait_for(slow_s);
        seconds(slow_s) <= TIME_OUT
    }

    /// The same, as it arrives here.
    fn call<T>(
        &self,
        call: Call,
        doing: &str,
        target: &TargetAt,
        effect: impl Fn(&mut Fleet, Delivery, Timestamp) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let (delivery, result) = self.answered(call, doing, target, effect)?;
        self.wait_for(delivery.slow_s);
        Self::judge(delivery, doing)?;
        result
    }

    /// Lets an answer take its time.
    fn wait_for(&self, slow_s: f64) {
        if slow_s > 0.0 {
            self.config.clock.sleep(seconds(slow_s).min(TIME_OUT));
        }
    }

    /// Whether an answer arrived, and in time.
    fn judge(delivery: Delivery, doing: &str) -> Result<(), ProviderError> {
        let silent = |message| Err(ProviderError::new(Trouble::Transient, doing, message));
        if seconds(delivery.slow_s) > TIME_OUT {
            return silent(format!("no answer within {} s", TIME_OUT.as_secs()));
        }
        if delivery.lost {
            return silent("the connection was closed before an answer came".to_owned());
        }
        Ok(())
    }

    /// What a fleet says about one zone.
    fn ask(&self, fleet: &mut Fleet, zone: &str, now: Timestamp) -> (Delivery, Answer) {
        let doing = format!("list zone {zone}");
        let delivery = fleet.faults.deliver(Called { call: Call::List, target: None, zone }, now);
        if let Some(trouble) = delivery.error {
            return (delivery, self.unknown(zone, faults::error(trouble, &doing, zone)));
        }
        let targets = fleet.targets(now);
        let targets = targets.into_iter().filter(|fact| fact.zone.as_deref() == Some(zone));
        (delivery, Answer::Facts { targets: targets.collect(), observed_at: now })
    }

    fn unknown(&self, zone: &str, error: ProviderError) -> Answer {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        Answer::Unknown { error, last: answered.get(zone).copied() }
    }

    fn answers(
        &self,
        fleet: &mut Fleet,
        zones: &[String],
        now: Timestamp,
    ) -> Vec<(String, Delivery, Answer)> {
        let zones =
            if zones.is_empty() { fleet.zones.iter().cloned().collect() } else { zones.to_vec() };
        zones
            .into_iter()
            .map(|zone| {
                let (delivery, answer) = self.ask(fleet, &zone, now);
                (zone, delivery, answer)
            })
            .collect()
    }

    /// Whether a list changes nothing, so that it needs no lock.
    fn is_plain(fleet: &Fleet, zones: &[String], now: Timestamp) -> bool {
        let known: Vec<String> = fleet.zones.iter().cloned().collect();
        let asked = if zones.is_empty() { &known } else { zones };
        let mut probe = fleet.clone();
        !probe.advance(now)
            && !asked.iter().any(|zone| {
                fleet.faults.is_disturbed(Called { call: Call::List, target: None, zone }, now)
            })
    }
}

impl Provider for SimCloud {
    fn name(&self) -> ProviderName {
        SIM
    }

    fn is_here(&self) -> bool {
        true
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        let now = self.config.clock.now();
        let answers = match self.read("list the fleet") {
            Ok(Some((mut fleet, _))) if Self::is_plain(&fleet, zones, now) => {
                Ok(self.answers(&mut fleet, zones, now))
            }
            Err(error) => Err(error),
            Ok(_) => self.transact("list the fleet", |fleet, now| self.answers(fleet, zones, now)),
        };
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                let all = [EVERYWHERE.to_owned()];
                let silent = |zone: &String| ZoneAnswer {
                    zone: zone.clone(),
                    answer: self.unknown(zone, error.clone()),
                };
                return if zones.is_empty() { &all } else { zones }.iter().map(silent).collect();
            }
        };
        // The zones are asked side by side: together they take as long as the slowest.
        let slowest = answers.iter().map(|(_, delivery, _)| delivery.slow_s).fold(0.0, f64::max);
        self.wait_for(slowest);
        // Whatever zone is not among them has nothing yet: the first that is asked for there makes it known.
        let elsewhere = ZoneAnswer {
            zone: EVERYWHERE.to_owned(),
            answer: Answer::Facts { targets: Vec::new(), observed_at: now },
        };
        let elsewhere = zones.is_empty().then_some(elsewhere);
        answers
            .into_iter()
            .map(|(zone, delivery, answer)| {
                let doing = format!("list zone {zone}");
                let answer = match (Self::judge(delivery, &doing), answer) {
                    (Err(error), Answer::Facts { .. }) => self.unknown(&zone, error),
                    (_, answer) => answer,
                };
                if let Answer::Facts { observed_at, .. } = &answer {
                    let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
                    answered.insert(zone.clone(), *observed_at);
                }
                ZoneAnswer { zone, answer }
            })
            .chain(elsewhere)
            .collect()
    }

    fn bucket_place(&self, bucket: &str) -> Result<BucketPlace, ProviderError> {
        let doing = format!("look at bucket {bucket}");
        let (delivery, place) = self.bucket(bucket)?;
        self.wait_for(delivery.slow_s);
        Self::judge(delivery, &doing)?;
        place
    }

    fn quota(&self) -> Result<QuotaReport, ProviderError> {
        self.quota_report()
    }

    fn charges(&self, asked: &BillingQuery) -> Result<Vec<Charge>, ProviderError> {
        self.billed(asked)
    }

    fn may_make(&self, accelerator: &str, zone: &str) -> Result<(), ProviderError> {
        calls::may_make(accelerator, zone)
    }

    fn create(&self, spec: &TargetSpec, request: &RequestId) -> Result<Operation, ProviderError> {
        let target = spec.at();
        let doing = format!("create {target}");
        self.call(Call::Create, &doing, &target, |fleet, delivery, now| {
            match fleet.begun_by(request) {
                Some(operation) => Ok(operation),
                None => fleet.create(spec, Some(request), delivery.late, now),
            }
        })
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        let doing = format!("describe {target}");
        self.call(Call::Describe, &doing, target, |fleet, _, now| {
            let is_it = |fact: &TargetFact| {
                fact.name == target.name && (target.zone.is_none() || fact.zone == target.zone)
            };
            fleet.targets(now).into_iter().find(is_it).ok_or_else(|| {
                let message = "NOT_FOUND: there is no such target";
                ProviderError::new(Trouble::NotFound, doing.clone(), message)
            })
        })
    }

    fn delete(&self, target: &TargetAt, force: bool) -> Result<Operation, ProviderError> {
        let doing = format!("delete {target}");
        self.call(Call::Delete, &doing, target, |fleet, delivery, now| {
            match fleet.request_for(target).filter(|_| force) {
                Some(request) => fleet.delete_request(&request, true, now),
                None => Ok(fleet.delete(target, delivery.late, now)),
            }
        })
    }

    fn start(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        let doing = format!("start {target}");
        let turn = |fleet: &mut Fleet, _, now| fleet.turn(Verb::Start, target, now);
        self.call(Call::Start, &doing, target, turn)
    }

    fn stop(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        let doing = format!("stop {target}");
        let turn = |fleet: &mut Fleet, _, now| fleet.turn(Verb::Stop, target, now);
        self.call(Call::Stop, &doing, target, turn)
    }

    fn reboot(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        let doing = format!("reboot {target}");
        let turn = |fleet: &mut Fleet, _, now| fleet.turn(Verb::Reboot, target, now);
        self.call(Call::Reboot, &doing, target, turn)
    }

    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        let doing = format!("look at {name}");
        let unknown = || {
            ProviderError::new(
                Trouble::NotFound,
                doing.clone(),
                "NOT_FOUND: there is no such operation",
            )
        };
        let fleet = self.look()?;
        let known = fleet.find_operation(name).ok_or_else(unknown)?;
        let target = TargetAt::new(known.target.clone(), Some(known.zone.clone()));
        let now = self.config.clock.now();
        let called =
            Called { call: Call::Operation, target: Some(target.name.as_str()), zone: &known.zone };
        if !fleet.faults.is_disturbed(called, now) {
            return Ok(known);
        }
        self.call(Call::Operation, &doing, &target, |fleet, _, _| {
            fleet.find_operation(name).ok_or_else(unknown)
        })
    }
}
