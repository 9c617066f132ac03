//! A cluster that answers as a test says, against a clock that stands still.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use tpu_core::model::facts::RunFact;
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName, UserName};
use tpu_core::model::job::{Job, Launch, LaunchMode};
use tpu_core::model::spec::StoredSpec;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_core::model::variables::Secrets;
use tpu_engine::kinds::KindOfTarget as _;
use tpu_engine::runner::window::{FarWorkers, WindowRunner};
use tpu_engine::runner::{
    Attempt, Environment, RunError, RunRef, Runner, StopOrder, StopOutcome, StopPart, Submitted,
    Unreached,
};
use tpu_kubernetes::Kubernetes;
use tpu_kubernetes::api::{ApiAnswer, ApiCall, ApiServer, ApiServers, ApiVerb, Unanswered};
use tpu_kubernetes::cluster::NamespaceAt;
use tpu_ops::Ctx;
use tpu_system::effects::Effects;
use tpu_system::sys::clock::{Clock as _, ManualClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::random::{OsRandom, Random as _};

use crate::common::env::TestEnv;

/// What a test does when it is asked: an answer of its own, or nothing, and then the table answers.
pub(super) type Turn = Box<dyn FnMut(&ApiCall, &mut Table) -> Option<ApiAnswer> + Send>;

/// What there is.
#[derive(Default)]
pub(super) struct Table {
    pub(super) jobs: Vec<Value>,
    pub(super) pods: Vec<Value>,
    /// What the pods have printed; one that is not in it has a node that does not answer.
    pub(super) logs: BTreeMap<String, String>,
    /// What was asked, as `DELETE /api/…`.
    pub(super) asked: Vec<String>,
    /// The clock of the server, if it tells it.
    pub(super) said_at: Option<Timestamp>,
}

#[derive(Default)]
pub(super) struct Play {
    pub(super) table: Table,
    pub(super) turns: VecDeque<Turn>,
}

/// The doors to it.
#[derive(Clone, Default)]
pub(super) struct Played(Arc<Mutex<Play>>);

pub(super) fn said(status: u16, body: &Value) -> ApiAnswer {
    ApiAnswer { status, body: body.to_string().into(), ..ApiAnswer::default() }
}

pub(super) fn refused(status: u16, reason: &str, message: &str) -> ApiAnswer {
    let body = json!({"kind": "Status", "code": status, "reason": reason, "message": message});
    said(status, &body)
}

pub(super) fn name(of: &Value) -> &str {
    of["metadata"]["name"].as_str().unwrap()
}

impl ApiServers for Played {
    fn open(&self, _: &NamespaceAt, _: &Effects) -> Arc<dyn ApiServer> {
        Arc::new(self.clone())
    }
}

impl ApiServer for Played {
    fn ask(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered> {
        let mut play = self.0.lock().unwrap();
        play.table.asked.push(format!("{} {}", call.verb.method(), call.path));
        let mut turns = std::mem::take(&mut play.turns);
        let answer = turns.iter_mut().find_map(|turn| turn(call, &mut play.table));
        turns.append(&mut play.turns);
        play.turns = turns;
        let answer = answer.unwrap_or_else(|| play.table.answer(call));
        Ok(ApiAnswer { said_at: play.table.said_at, ..answer })
    }
}

impl Table {
    pub(super) fn answer(&mut self, call: &ApiCall) -> ApiAnswer {
        let part = call.path.split('/').next_back().unwrap_or_default().to_owned();
        let is_job = call.path.contains("/jobs");
        match call.verb {
            ApiVerb::Get if part == "log" => {
                let pod = call.path.split('/').nth_back(1).unwrap();
                match self.logs.get(pod) {
                    Some(text) => {
                        ApiAnswer { status: 200, body: text.clone().into(), ..Default::default() }
                    }
                    None => refused(500, "InternalError", "its node does not answer"),
                }
            }
            ApiVerb::Get if part == "jobs" => said(200, &json!({"items": self.jobs})),
            ApiVerb::Get if part == "pods" => said(200, &json!({"items": self.pods})),
            ApiVerb::Get if part == "events" => said(200, &json!({"items": []})),
            ApiVerb::Get if part == "version" => said(200, &json!({"major": "1", "minor": "31"})),
            ApiVerb::Get => match self.jobs.iter().find(|job| name(job) == part) {
                Some(job) => said(200, job),
                None => refused(404, "NotFound", "not found"),
            },
            ApiVerb::Post if is_job => {
                let mut job = call.body.clone().unwrap();
                if self.jobs.iter().any(|other| name(other) == name(&job)) {
                    return refused(409, "AlreadyExists", "it is there already");
                }
                job["metadata"]["uid"] = json!(format!("uid-of-{}", name(&job)));
                self.jobs.push(job.clone());
                said(201, &job)
            }
            ApiVerb::Post => said(201, call.body.as_ref().unwrap()),
            ApiVerb::MergePatch => said(200, &json!({})),
            ApiVerb::Delete if is_job => {
                self.jobs.retain(|job| name(job) != part);
                said(200, &json!({}))
            }
            ApiVerb::Delete => {
                self.pods.retain(|pod| name(pod) != part);
                said(200, &json!({}))
            }
        }
    }

    pub(super) fn count(&self, what: &str) -> usize {
        self.asked.iter().filter(|asked| asked.starts_with(what)).count()
    }
}

/// Nobody has workers here.
struct Nobody;

impl FarWorkers for Nobody {
    fn stop(&self, _: &Job, _: Unreached) -> Result<usize, RunError> {
        Ok(0)
    }
}

/// A home, and the cluster.
pub(super) struct Stage {
    pub(super) env: Arc<TestEnv>,
    pub(super) ctx: Ctx,
    pub(super) clock: Arc<ManualClock>,
    pub(super) played: Played,
    pub(super) kind: Kubernetes,
    pub(super) registration: Registration,
}

pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/lab/jobs";
pub(super) const PODS: &str = "/api/v1/namespaces/lab/pods";

impl Stage {
    pub(super) fn new() -> Self {
        let (env, played) = (Arc::new(TestEnv::new()), Played::default());
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
        let ctx = Self::ctx(&env, &clock, "here");
        let options = [("namespace", "lab"), ("image", "train:1"), ("resources-flavor", "no-gpu")];
        let registration = Registration {
            kind: TargetKind::new("kubernetes"),
            engine: true,
            options: options.into_iter().collect(),
            ..Registration::default()
        };
        env.change(|data| {
            data.registry_mut().register(TargetName::from("lab"), registration.clone());
        });
        let kind = Kubernetes::with(Arc::new(played.clone()));
        Self { env, ctx, clock, played, kind, registration }
    }

    /// Somebody on a machine of this name, at the same data.
    pub(super) fn ctx(env: &TestEnv, clock: &Arc<ManualClock>, boot: &str) -> Ctx {
        let own = Env { vars: env.variables().clone(), ..Env::read() };
        let boot_id = boot.to_owned();
        let mut ctx = env.ctx(Env { cwd: env.path("."), home: env.path("."), boot_id, ..own });
        ctx.effects.clock = Arc::clone(clock) as _;
        ctx
    }

    pub(super) fn runner<'c>(&self, ctx: &'c Ctx) -> Box<dyn Runner + 'c> {
        let windows = WindowRunner::new(&ctx.effects, Box::new(Nobody));
        self.kind.runner(Some(&self.registration), &ctx.effects, windows)
    }

    pub(super) fn own(&self) -> Box<dyn Runner + '_> {
        self.runner(&self.ctx)
    }

    /// A launch that is written down, and of which the cluster knows nothing yet.
    pub(super) fn claim(&self, number: u32) -> Job {
        self.claim_with(number, &[])
    }

    /// The same with options of its own.
    pub(super) fn claim_with(&self, number: u32, options: &[(&str, &str)]) -> Job {
        let token = LaunchToken::new(OsRandom.hex(16));
        let ground = self.own().ground("alice", &token).unwrap();
        let id = JobId::new(UserName::from("alice"), JobNumber(number));
        let code = self.env.path("code-alice").to_str().unwrap().to_owned();
        let mut job = Job::new(&id, TargetName::from("lab"), code);
        job.launch = Some(Launch::claimed(token, LaunchMode::Native, self.clock.now()));
        let options = options.iter().copied().collect();
        job.spec = Some(Box::new(StoredSpec { options, ..StoredSpec::default() }));
        job.keep_handle(ground.handle);
        self.env.change(|data| data.user_mut(&job.user).unwrap().push_job(job.clone()));
        job
    }

    /// So many that were submitted, and wait. They are there without having been asked for one by one.
    pub(super) fn begun_all(&self, count: u32) -> Vec<Job> {
        let first = self.begun(1);
        let manifest = self.play(|play| play.table.jobs.remove(0));
        let jobs: Vec<Job> = (1..=count)
            .map(|number| {
                let mut job = first.clone();
                let token = LaunchToken::new(OsRandom.hex(16));
                job.windows_id = JobNumber(number);
                job.launch = Some(Launch::claimed(token, LaunchMode::Native, self.clock.now()));
                job
            })
            .collect();
        self.play(|play| {
            play.table.jobs = jobs
                .iter()
                .map(|job| {
                    let mut manifest = manifest.clone();
                    let token = job.launch.as_ref().unwrap().token.as_str();
                    manifest["metadata"]["labels"]["tpu.launch"] = json!(token);
                    manifest["metadata"]["name"] = json!(format!("job-{token}"));
                    manifest
                })
                .collect();
        });
        jobs
    }

    pub(super) fn submit(&self, job: &Job) -> Result<Submitted, RunError> {
        self.submit_by(&self.ctx, job)
    }

    /// The same by somebody else.
    pub(super) fn submit_by(&self, ctx: &Ctx, job: &Job) -> Result<Submitted, RunError> {
        self.runner(ctx).submit(&Attempt {
            job,
            session: "alice",
            name: "job".to_owned(),
            cwd: self.env.path("code-alice"),
            words: vec!["true".into()],
            env: Vec::new(),
            asked: Environment::default(),
            secrets: Secrets::default(),
            preparation: None,
            workers_by: None,
            avoid: Vec::new(),
            at_once: None,
        })
    }

    /// One that was submitted.
    pub(super) fn begun(&self, number: u32) -> Job {
        let mut job = self.claim(number);
        let submitted = self.submit(&job).unwrap();
        job.keep_handle(submitted.handle);
        job
    }

    pub(super) fn play<T>(&self, act: impl FnOnce(&mut Play) -> T) -> T {
        act(&mut self.played.0.lock().unwrap())
    }

    /// From now on the test hears what is asked, before the table answers.
    pub(super) fn hear(
        &self,
        turn: impl FnMut(&ApiCall, &mut Table) -> Option<ApiAnswer> + Send + 'static,
    ) {
        self.play(|play| play.turns.push_back(Box::new(turn)));
    }

    pub(super) fn look(&self, jobs: &[&Job]) -> Vec<RunFact> {
        let runs: Vec<RunRef<'_>> = jobs.iter().map(|job| run(job)).collect();
        self.own().observe(&runs).into_iter().map(|seen| seen.run).collect()
    }

    /// The same as whoever stops them then.
    pub(super) fn look_patiently(&self, jobs: &[&Job]) -> Vec<RunFact> {
        let runs: Vec<RunRef<'_>> = jobs.iter().map(|job| run(job)).collect();
        self.own().observe_patiently(&runs).into_iter().map(|seen| seen.run).collect()
    }

    pub(super) fn stop(&self, job: &Job, unreached: Unreached) -> Result<StopOutcome, RunError> {
        self.own().stop(run(job), StopOrder { part: StopPart::Whole, unreached })
    }

    /// Gives a Job a pod with this status.
    pub(super) fn pod(&self, job: &Job, status: &Value) -> String {
        let token = job.launch.as_ref().unwrap().token.as_str();
        let name = format!("pod-{}", job.windows_id);
        let pod = json!({
            "metadata": {
                "name": name, "uid": name, "labels": {"tpu.launch": token},
                "creationTimestamp": "2027-01-15T08:00:00Z",
            },
            "spec": {"nodeName": "n1", "containers": []},
            "status": status,
        });
        self.play(|play| {
            play.table.pods.retain(|known| known["metadata"]["name"] != json!(name));
            play.table.pods.push(pod);
        });
        name
    }

    /// Has all Jobs say that they have ended so.
    pub(super) fn end_jobs(&self, condition: &str) {
        self.play(|play| {
            for job in &mut play.table.jobs {
                job["status"] = json!({"conditions": [{"type": condition, "status": "True"}]});
            }
        });
    }
}

pub(super) fn run(job: &Job) -> RunRef<'_> {
    RunRef { job, session: "alice" }
}

pub(super) fn ended(phase: &str, reason: &str, code: i32) -> Value {
    let end = json!({"exitCode": code, "reason": reason, "finishedAt": "2027-01-15T08:00:00Z"});
    json!({"phase": phase, "containerStatuses": [container(&json!({"terminated": end}))]})
}

pub(super) fn running() -> Value {
    json!({"phase": "Running", "containerStatuses": [container(&json!({"running": {}}))]})
}

pub(super) fn container(state: &Value) -> Value {
    json!({
        "name": "main", "image": "train:1", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    })
}
