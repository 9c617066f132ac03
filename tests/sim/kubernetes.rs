//! A cluster of Kubernetes in the world: the door of each process to it, and what must never happen there. Jobs make
//! pods, pods end as they are told or as it befalls them, and the server is away, slow, or loses an answer. Who runs on
//! it is in [`super::engine`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use tpu_core::model::job::Job;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::kinds::KindOfTarget;
use tpu_engine::runner::files::{Content, Files as _, Listing};
use tpu_kubernetes::Kubernetes;
use tpu_kubernetes::api::{ApiAnswer, ApiCall, ApiServer, ApiServers, ApiVerb, Unanswered};
use tpu_kubernetes::cluster::NamespaceAt;
use tpu_system::effects::Effects;
use tpu_system::sys::clock::Clock;

use super::actors;
use super::cluster::{self, AtWork, Begun, Cluster as _, Draw, Order, Start};
use super::cluster_disk::{MemoryDisk, keep_checkpoint};
use super::effects::Me;
use super::lies;
use super::observer::Cause;
use super::pods::{
    BatchJob, LAUNCH, LOOK, Later, Loss, Phase, Pod, There, Weather, is_chosen, refused, said,
};
use super::world::{TrueTime, World};

/// The nodes.
const NODES: [&str; 2] = ["n1", "n2"];

/// The cluster, with what is known of its jobs and said to nobody.
pub(crate) struct Site {
    time: TrueTime,
    disk: MemoryDisk,
    there: Mutex<There>,
    begun: Mutex<Begun>,
}

impl Site {
    pub(crate) fn new(time: &TrueTime) -> Self {
        let there = There {
            jobs: Vec::new(),
            pods: Vec::new(),
            later: Vec::new(),
            accepted: BTreeMap::new(),
            weather: Weather::Fair,
            count: 0,
        };
        let disk = MemoryDisk::new(time.clone());
        Self { time: time.clone(), disk, there: Mutex::new(there), begun: Mutex::default() }
    }

    fn there(&self) -> MutexGuard<'_, There> {
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.time.elapsed()
    }

    /// What has happened by itself until now.
    fn go_on(&self) {
        let now = self.now();
        let mut there = self.there();
        let (due, later) =
            std::mem::take(&mut there.later).into_iter().partition(|of| of.due <= now);
        there.later = later;
        let due: Vec<Later> = due;
        for of in due {
            drop(there.create(of.manifest, now));
        }
        there.jobs.retain(|job| !job.has_passed(now));
        self.make_pods(&mut there, now);
        let mut ended = Vec::new();
        for pod in &mut there.pods {
            match pod.phase {
                Phase::Pending(until) if until <= now && pod.leaves.is_none() => {
                    // What comes before the command makes its directory.
                    let _made = self.disk.make_dir(&pod.order.log);
                    pod.phase = Phase::Running;
                }
                Phase::Pending(_) | Phase::Running | Phase::Ended(..) | Phase::PutOut(_) => {}
            }
            let is_complete = matches!(pod.phase, Phase::Ended(0, _));
            // With podReplacementPolicy Failed, as ours have it, one that is told to end counts when it has.
            if pod.is_over() || pod.leaves.is_some_and(|leaves| leaves <= now) {
                ended.push((pod.job_uid.clone(), is_complete));
            }
        }
        for (uid, is_complete) in ended {
            let reason = if is_complete { "" } else { "BackoffLimitExceeded" };
            if let Some(job) = there.jobs.iter_mut().find(|job| job.uid == uid) {
                job.over.get_or_insert((is_complete, reason, now));
            }
        }
        for job in &mut there.jobs {
            let most =
                job.manifest["spec"]["activeDeadlineSeconds"].as_u64().map(Duration::from_secs);
            if most.is_some_and(|most| now >= job.created + most) {
                job.over.get_or_insert((false, "DeadlineExceeded", now));
            }
        }
        let uids: Vec<String> = there.jobs.iter().map(|job| job.uid.clone()).collect();
        for pod in &mut there.pods {
            // Whose Job is gone is told to end, and has a moment for it.
            if pod.leaves.is_none() && !uids.contains(&pod.job_uid) {
                pod.leaves = Some(now + Duration::from_millis(700));
            }
        }
        there.pods.retain(|pod| pod.leaves.is_none_or(|leaves| leaves > now));
    }

    /// Each Job makes its pod once.
    fn make_pods(&self, there: &mut There, now: Duration) {
        let mut made = Vec::new();
        let count = there.count;
        for (index, job) in there.jobs.iter_mut().enumerate() {
            let is_wanted = job.manifest["spec"]["parallelism"] != json!(0);
            if job.made_pod || !is_wanted || job.over.is_some() {
                continue;
            }
            job.made_pod = true;
            let template = &job.manifest["spec"]["template"];
            let main = &template["spec"]["containers"][0];
            let variable = |name: &str| {
                let all = main["env"].as_array()?;
                all.iter().find(|of| of["name"] == name)?["value"].as_str().map(PathBuf::from)
            };
            let log = variable("TPU_LOG_DIR").unwrap_or_default();
            let mut pod = Pod {
                name: format!("{}-pod", job.uid),
                job: job.name.clone(),
                job_uid: job.uid.clone(),
                token: job.label(LAUNCH).map(str::to_owned),
                order: Order::read(&main["args"].to_string(), log),
                labels: template["metadata"]["labels"].clone(),
                node: NODES[(usize::try_from(count).unwrap_or(0) + index) % NODES.len()],
                created: now,
                phase: Phase::Pending(now + Duration::from_millis(400)),
                leaves: None,
                preempted: false,
                printed: Vec::new(),
            };
            if job.label(LOOK).is_some() {
                pod.phase = Phase::Ended(0, "Completed");
                pod.printed = vec![(now, self.looked(main))];
            }
            made.push(pod);
        }
        there.pods.extend(made);
    }

    /// What a look at the volume prints.
    fn looked(&self, container: &Value) -> String {
        let words: Vec<&str> = container["command"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let &[_, _, _, _, dir] = words.as_slice() else { return "none\n".to_owned() };
        let below = Path::new(dir).join("checkpoints");
        let mut said = String::new();
        for dir in [Path::new(dir), &below] {
            match self.disk.list(dir) {
                Ok(Listing::Entries { entries, .. }) => {
                    said += "= directory\n";
                    for entry in entries {
                        let kind = match entry.content {
                            Ok(Some(Content::Directory)) => 'D',
                            Ok(Some(Content::File)) => 'F',
                            _ => 'N',
                        };
                        said += &format!("{kind} {}\n", entry.name.display());
                    }
                }
                Ok(Listing::NoDirectory) => said += "= file\n",
                Ok(Listing::NotThere) | Err(_) => said += "= none\n",
            }
        }
        said + "= over\n"
    }

    /// The pod of a start.
    fn change<T>(&self, at: &AtWork, change: impl FnOnce(&mut Pod) -> T) -> Option<T> {
        let mut there = self.there();
        there.pods.iter_mut().find(|pod| pod.name == at.start.0).map(change)
    }

    fn answer(&self, call: &ApiCall) -> ApiAnswer {
        self.go_on();
        let now = self.now();
        let mut there = self.there();
        let part = call.path.rsplit('/').next().unwrap_or_default();
        let is_job = call.path.contains("/jobs");
        let asked = |name: &str| {
            let found = call.query.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        let selector = asked("labelSelector");
        match call.verb {
            ApiVerb::Get if part == "version" => said(200, &json!({"major": "1", "minor": "31"})),
            ApiVerb::Get if part == "log" => {
                let name = call.path.split('/').nth_back(1).unwrap_or_default();
                match there.pods.iter().find(|pod| pod.name == name) {
                    Some(Pod { phase: Phase::Pending(_), .. }) => {
                        refused(400, "BadRequest", "container is waiting to start")
                    }
                    Some(pod) if asked("timestamps").is_some() => {
                        let body = pod.log(asked("sinceTime")).into();
                        ApiAnswer { status: 200, body, ..ApiAnswer::default() }
                    }
                    Some(pod) => {
                        let text: String =
                            pod.printed.iter().map(|(_, text)| text.as_str()).collect();
                        ApiAnswer { status: 200, body: text.into(), ..ApiAnswer::default() }
                    }
                    None => refused(404, "NotFound", "pods not found"),
                }
            }
            ApiVerb::Get if part == "jobs" => {
                let chosen = there.jobs.iter().filter(|job| {
                    is_chosen(&job.manifest["metadata"]["labels"], selector.unwrap_or_default())
                });
                said(200, &json!({"items": chosen.map(BatchJob::object).collect::<Vec<_>>()}))
            }
            ApiVerb::Get if part == "pods" => {
                let chosen = there
                    .pods
                    .iter()
                    .filter(|pod| is_chosen(&pod.labels, selector.unwrap_or_default()));
                said(200, &json!({"items": chosen.map(Pod::object).collect::<Vec<_>>()}))
            }
            ApiVerb::Get if is_job => match there.jobs.iter().find(|job| job.name == part) {
                Some(job) => said(200, &job.object()),
                None => refused(404, "NotFound", "jobs not found"),
            },
            ApiVerb::Get => said(200, &json!({"items": []})),
            ApiVerb::Post if is_job => {
                let manifest = call.body.clone().unwrap_or_default();
                if asked("dryRun").is_some() {
                    return said(201, &manifest);
                }
                there.create(manifest, now)
            }
            ApiVerb::Post => said(201, call.body.as_ref().unwrap_or(&Value::Null)),
            ApiVerb::MergePatch => said(200, &json!({})),
            ApiVerb::Delete if is_job => {
                let uid = call.body.as_ref().map(|body| &body["preconditions"]["uid"]);
                match there.jobs.iter().position(|job| job.name == part) {
                    None => refused(404, "NotFound", "jobs not found"),
                    Some(at) if uid.is_some_and(|uid| *uid != there.jobs[at].uid) => {
                        refused(409, "Conflict", "Precondition failed: UID in precondition")
                    }
                    Some(at) => {
                        drop(there.jobs.remove(at));
                        said(200, &json!({}))
                    }
                }
            }
            ApiVerb::Delete => {
                there.pods.retain(|pod| pod.name != part);
                said(200, &json!({}))
            }
        }
    }
}

impl cluster::Cluster for Site {
    fn registration(&self, target: &str) -> Registration {
        let options = [
            ("namespace", target),
            ("image", "train:1"),
            ("resources-flavor", "no-gpu"),
            ("log-volume", "claim/data:/data"),
            ("log-root", "/data/logs"),
        ];
        Registration {
            kind: TargetKind::new("kubernetes"),
            engine: true,
            options: options.into_iter().collect(),
            ..Registration::default()
        }
    }

    fn kind(self: Arc<Self>, me: &Me) -> Arc<dyn KindOfTarget> {
        Arc::new(Kubernetes::with(Arc::new(Doors { me: me.clone(), site: self })))
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, (name, _): &Start) -> Option<Cause> {
        let there = self.there();
        match there.pods.iter().find(|pod| pod.name == *name) {
            Some(pod) if pod.preempted => Some(Cause::Preempted),
            Some(Pod { phase: Phase::Running, .. }) => None,
            Some(Pod { phase: Phase::Ended(0, _), .. }) => Some(Cause::Finished),
            Some(_) => Some(Cause::Window),
            None => Some(Cause::Stopped),
        }
    }

    fn at_work(&self) -> Vec<AtWork> {
        let there = self.there();
        let running = there.pods.iter().filter(|pod| pod.phase == Phase::Running && !pod.preempted);
        let at_work = |pod: &Pod| {
            let token = pod.token.clone()?;
            Some(AtWork { start: (pod.name.clone(), 0), token, order: pod.order.clone() })
        };
        running.filter_map(at_work).collect()
    }

    fn refuses(&self, _: &AtWork) -> bool {
        // What was given up is kept from being made.
        false
    }

    fn prints(&self, at: &AtWork, text: &str) {
        let now = self.now();
        let lines = text.split_inclusive('\n').map(|line| (now, line.to_owned()));
        let _printed = self.change(at, |pod| pod.printed.extend(lines));
    }

    fn keeps(&self, at: &AtWork, step: f64) {
        keep_checkpoint(&self.disk, &at.order.log, step);
    }

    fn ends(&self, at: &AtWork, code: i32) {
        let reason = if code == 0 { "Completed" } else { "Error" };
        let _ended = self.change(at, |pod| pod.phase = Phase::Ended(code, reason));
    }

    fn hold(&self, world: &World) {
        self.go_on();
        cluster::bury(self, world);
        let there = self.there();
        let twice: Vec<String> = there
            .accepted
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(of, _)| of.clone())
            .collect();
        let mut at_work: BTreeMap<u32, &Pod> = BTreeMap::new();
        let mut doubled = Vec::new();
        for pod in there.pods.iter().filter(|pod| pod.token.is_some() && !pod.is_over()) {
            if let Some(other) = at_work.insert(pod.order.lineage, pod) {
                doubled.push((pod.order.lineage, other.job.clone(), pod.job.clone()));
            }
        }
        drop(there);
        for token in twice {
            world.state().violation(format!("1: {token} was submitted twice"));
        }
        for (lineage, one, other) in doubled {
            let text = format!("1: lineage {lineage} is at Kubernetes twice: {one} and {other}");
            world.state().violation(text);
        }
    }

    fn is_live(&self, token: &str) -> bool {
        self.go_on();
        self.there().jobs.iter().any(|job| job.is_live() && job.label(LAUNCH) == Some(token))
    }

    fn forgotten(&self, world: &World) -> Option<String> {
        let data = actors::data(world)?;
        let there = self.there();
        let knows = |job: &&BatchJob| {
            let is_its = |record: &&Job| token_in(record) == job.label(LAUNCH);
            data.jobs().find(is_its).is_some_and(|record| record.status.is_live())
        };
        let lost = there.jobs.iter().filter(|job| job.is_live()).find(|job| !knows(job))?;
        Some(format!("{} is at Kubernetes, and no live record knows it", lost.name))
    }

    fn happens(&self, world: &World, Draw { choice, which: draw, long }: Draw) {
        let note = |text: String| world.state().note(None, &text);
        self.go_on();
        let now = self.now();
        let mut there = self.there();
        let is_meant = |pod: &Pod| pod.token.is_some() && !pod.is_over() && pod.leaves.is_none();
        let running: Vec<usize> =
            (0..there.pods.len()).filter(|at| is_meant(&there.pods[*at])).collect();
        let one = draw.checked_rem(running.len() as u64).and_then(|at| usize::try_from(at).ok());
        let one = one.and_then(|at| running.get(at)).copied();
        match (choice, one) {
            (0..20, Some(at)) => {
                let pod = &mut there.pods[at];
                note(format!("{} is preempted", pod.name));
                pod.preempted = true;
                pod.phase = Phase::Ended(143, "Error");
            }
            (20..28, Some(at)) => {
                let pod = &mut there.pods[at];
                note(format!("{} is put out", pod.name));
                pod.phase = Phase::PutOut("Evicted");
            }
            (28..32, Some(at)) => {
                note(format!("{} has no memory left", there.pods[at].name));
                there.pods[at].phase = Phase::Ended(137, "OOMKilled");
            }
            (32..38, Some(at)) => {
                note(format!("somebody deletes {}", there.pods[at].name));
                there.pods[at].leaves = Some(now + Duration::from_millis(300));
            }
            (38..70, _) => {
                there.weather = match draw % 7 {
                    0 => Weather::Away,
                    1 => Weather::Hangs,
                    2 => Weather::Slow(long),
                    3 => Weather::Failing,
                    _ => Weather::Fair,
                };
                note(format!("the server: {:?}", there.weather));
            }
            _ => {}
        }
    }

    fn calm(&self) {
        self.there().weather = Weather::Fair;
    }
}

fn token_in(record: &Job) -> Option<&str> {
    record.launch.as_ref().map(|launch| launch.token.as_str())
}

/// Opens the cluster for one process.
struct Doors {
    me: Me,
    site: Arc<Site>,
}

impl ApiServers for Doors {
    fn open(&self, _: &NamespaceAt, effects: &Effects) -> Arc<dyn ApiServer> {
        let (me, site, clock) =
            (self.me.clone(), Arc::clone(&self.site), Arc::clone(&effects.clock));
        Arc::new(Door { me, site, clock })
    }
}

struct Door {
    me: Me,
    site: Arc<Site>,
    clock: Arc<dyn Clock>,
}

impl Door {
    /// A creation leaves; what becomes of it if its answer is lost.
    fn creates(&self, manifest: &Value) -> Option<Loss> {
        let main = &manifest["spec"]["template"]["spec"]["containers"][0];
        let order = Order::read(&main["args"].to_string(), PathBuf::new());
        let mut state = self.me.world.state();
        if let Some(dir) = order.loads.filter(|dir| !self.site.disk.has_checkpoint(dir)) {
            state.violation(format!("11: it goes on from {}, where nothing is", dir.display()));
        }
        let chance = state.faults.tmux * 8;
        if !state.chance(chance) && !lies::is_wanted_lost() {
            return None;
        }
        let loss = match state.between(0, 3).as_millis() {
            0 => Loss::Unheard,
            1 => Loss::Unanswered,
            _ => Loss::Later(state.between(0, 10_000)),
        };
        state.note(Some(self.me.pid), &format!("the creation is lost: {loss:?}"));
        Some(loss)
    }

    /// What is deleted is one that somebody wants to end, or whose record is over.
    fn deletes(&self, name: &str) {
        let job = self.site.there().jobs.iter().find(|job| job.name == name).cloned();
        let Some(job) = job else { return };
        let Some(token) = job.label(LAUNCH).filter(|_| job.is_live()) else { return };
        let data = actors::data(&self.me.world);
        let record = data
            .as_ref()
            .and_then(|data| data.jobs().find(|record| token_in(record) == Some(token)));
        let is_at_work = record.is_some_and(|record| record.status.is_live());
        let lineage = record.and_then(actors::lineage_of);
        let mut state = self.me.world.state();
        let known = lineage.and_then(|lineage| state.observer.lineages.get(&lineage));
        let is_wanted = known.is_some_and(|known| known.kill_asked);
        if is_at_work && !is_wanted {
            state.violation(format!("6: {name} of lineage {lineage:?} is deleted, and is at work"));
        }
        state.rests_on_cluster(self.me.pid);
    }

    fn asks(&self, call: &ApiCall, lost: Option<Loss>) -> Result<ApiAnswer, Unanswered> {
        let weather = self.site.there().weather;
        match weather {
            Weather::Away => return Err(Unanswered::NotSent("connection refused".to_owned())),
            Weather::Hangs => {
                self.clock.sleep(call.limit);
                return Err(Unanswered::Late(call.limit));
            }
            Weather::Failing => return Ok(refused(500, "InternalError", "etcd has no leader")),
            Weather::Slow(by) if by > call.limit => {
                self.clock.sleep(call.limit);
                drop(self.site.answer(call));
                return Err(Unanswered::Late(call.limit));
            }
            Weather::Slow(by) => self.clock.sleep(by),
            Weather::Fair => {}
        }
        match lost {
            None => return Ok(self.site.answer(call)),
            Some(Loss::Unheard) => {}
            Some(Loss::Unanswered) => drop(self.site.answer(call)),
            Some(Loss::Later(by)) => {
                let due = self.site.now() + by;
                let manifest = call.body.clone().unwrap_or_default();
                self.site.there().later.push(Later { due, manifest });
            }
        }
        Err(Unanswered::Broken("the connection was reset".to_owned()))
    }
}

impl ApiServer for Door {
    fn ask(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered> {
        let part = call.path.rsplit('/').next().unwrap_or_default();
        let what = format!("kubernetes: {} {part}", call.verb.method());
        self.me.world.step(self.me.pid, &what);
        let is_job = call.path.contains("/jobs");
        let is_trial = call.query.iter().any(|(name, _)| *name == "dryRun");
        let lost = match (call.verb, &call.body) {
            (ApiVerb::Post, Some(manifest)) if is_job && !is_trial => self.creates(manifest),
            (ApiVerb::Delete, _) if is_job => {
                self.deletes(part);
                None
            }
            _ => None,
        };
        let answer = self.asks(call, lost);
        self.site.hold(&self.me.world);
        let status = answer.as_ref().map(|answer| answer.status).ok();
        if call.verb == ApiVerb::Get && is_job && matches!(status, Some(200 | 404)) {
            self.me.world.state().has_asked_cluster(self.me.pid);
        }
        let answer = lies::told_of_kubernetes(call, answer);
        // It may die before it hears it.
        self.me.world.step(self.me.pid, &format!("kubernetes says {status:?}"));
        answer
    }
}
