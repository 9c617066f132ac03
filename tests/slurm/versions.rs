//! What the versions of Slurm from 20.11 to 25.05 write differently is read alike, and what a cluster has not got is asked
//! once. 22.05 is the one that the other tests run; the answers of the others are written here as their sources have
//! them be written, and none was seen on a cluster.

use std::sync::{Arc, Mutex, PoisonError};

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::{EngineRun, Job, Launch, LaunchMode};
use tpu_core::model::target::TargetKind;
use tpu_core::model::time::Timestamp;
use tpu_engine::kinds::KindOfTarget as _;
use tpu_engine::runner::RunRef;
use tpu_ops::Ctx;
use tpu_slurm::Slurm;
use tpu_slurm::client::{ProgramAnswer, ProgramCall, Silence};
use tpu_system::sys::env::Env;

use super::sim::{Played, PlayedClients};
use crate::common::env::TestEnv;

/// How the field `exit_code` of `squeue` shows a code and a signal.
type Written = fn(i32, i32) -> String;

/// As wait(2) has it (`_print_job_exit_code` in `src/squeue/print.c`).
fn as_wait(code: i32, signal: i32) -> String {
    (code << 8 | signal).to_string()
}

/// As all of Slurm's programs show it.
fn as_pair(code: i32, signal: i32) -> String {
    format!("{code}:{signal}")
}

/// The versions, by their branches.
const VERSIONS: [(&str, Written); 8] = [
    ("20.11", as_wait),
    ("21.08", as_wait),
    ("22.05", as_wait),
    ("23.02", as_pair),
    ("23.11", as_pair),
    ("24.05", as_pair),
    ("24.11", as_pair),
    ("25.05", as_pair),
];

/// A controller that says always the same, and how often it was asked what.
#[derive(Default)]
struct Canned {
    version: &'static str,
    listing: String,
    calls: Mutex<Vec<ProgramCall>>,
}

impl Canned {
    /// The calls since this was last asked, each as its program and its first word.
    fn asked(&self) -> Vec<String> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |call: ProgramCall| format!("{} {}", call.program, call.args[0]);
        calls.drain(..).map(shown).collect()
    }

    fn answer(&self, call: &ProgramCall) -> ProgramAnswer {
        let said = |stdout: &str| ProgramAnswer { stdout: stdout.to_owned(), ..Default::default() };
        match call.program {
            "squeue" => said(&self.listing),
            "scontrol" => said(&format!(
                "BOOT_TIME               = 2026-11-22T03:03:04\nMessageTimeout          = 10 sec\n\
                 MinJobAge               = 300 sec\nSLURM_VERSION           = {}.1\n",
                self.version
            )),
            // `src/sacct/options.c` of all of them; there is no list of completed jobs either.
            _ => ProgramAnswer {
                code: 1,
                stderr: "Slurm accounting storage is disabled".to_owned(),
                ..Default::default()
            },
        }
    }
}

impl Played for Canned {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        Ok(self.answer(call))
    }
}

/// A place to look from, and the jobs of some launches, all of which Slurm had.
struct Viewer {
    ctx: Ctx,
    slurm: Slurm,
    run: EngineRun,
    jobs: Vec<Job>,
    _env: TestEnv,
}

impl Viewer {
    fn new(canned: &Arc<Canned>, tokens: &[&str]) -> Self {
        let env = TestEnv::new();
        let vars = env.variables().clone();
        let ctx = env.ctx(Env { vars, home: env.path("."), ..Env::read() });
        let slurm = Slurm::with(Arc::new(PlayedClients(Arc::clone(canned))));
        let cluster = format!("uid={}", ctx.env.uid);
        let run = EngineRun { kind: TargetKind::new("slurm"), cluster, id: None, name: None };
        let job = |(number, token): (u32, &&str)| {
            let id = JobId::new(UserName::from("alice"), JobNumber(number));
            let mut job = Job::new(&id, TargetName::from("gpu"), "/code".to_owned());
            let at = Timestamp::from_second(1_800_000_000);
            let claimed = Launch::claimed(*token, LaunchMode::Native, at);
            job.launch = Some(Launch { confirmed: true, ..claimed });
            job.engine =
                Some(Box::new(EngineRun { id: Some(format!("tpu-{token}")), ..run.clone() }));
            job
        };
        let jobs = (1..).zip(tokens).map(job).collect();
        Self { ctx, slurm, run, jobs, _env: env }
    }

    fn look(&self) -> Vec<RunFact> {
        let engine = self.slurm.engine(&self.run, &self.ctx.effects).unwrap();
        let runs: Vec<RunRef<'_>> =
            self.jobs.iter().map(|job| RunRef { job, session: "alice" }).collect();
        engine.observe(&runs).into_iter().map(|seen| seen.run).collect()
    }
}

/// A row of a job of its own, as `squeue` is asked for it.
fn row(id: u32, token: &str, state: &str, reason: &str, exit: &str) -> String {
    let id = id.to_string();
    let name = format!("tpu-{token}");
    let times = ["2026-11-22T03:03:25", "2026-11-22T03:03:27"];
    let fields = [&*id, &id, "N/A", state, reason, times[0], times[1], "0", exit, "n1", &name];
    fields.map(|field| format!("{field}\u{1f}")).concat() + "\n"
}

#[test]
fn how_jobs_are_and_have_ended_is_read_as_every_version_writes_it() {
    for (version, written) in VERSIONS {
        let listing = [
            row(1, "well", "COMPLETED", "None", &written(0, 0)),
            row(2, "seven", "FAILED", "NonZeroExitCode", &written(7, 0)),
            row(3, "killed", "FAILED", "RaisedSignal:9(Killed)", &written(0, 9)),
            row(4, "unseen", "FAILED", "NonZeroExitCode", &written(0, 53)),
            row(5, "late", "TIMEOUT", "TimeLimit", &written(0, 15)),
            row(6, "taken", "PREEMPTED", "None", &written(0, 15)),
            row(7, "lost", "NODE_FAIL", "None", &written(0, 0)),
            row(8, "memory", "OUT_OF_MEMORY", "OutOfMemory", &written(0, 125)),
            row(9, "waits", "PENDING", "Resources", &written(0, 0)),
            row(10, "works", "RUNNING", "None", &written(0, 0)),
        ];
        let canned = Arc::new(Canned { version, listing: listing.concat(), ..Canned::default() });
        let tokens = [
            "well", "seven", "killed", "unseen", "late", "taken", "lost", "memory", "waits",
            "works",
        ];
        let viewer = Viewer::new(&canned, &tokens);
        let seen = viewer.look();
        let is_so = |place: usize, state, exit: Option<i32>, cause: Option<ErrorKind>| {
            let fact = &seen[place];
            let known = (fact.state, fact.exit.map(Exit::code), fact.cause);
            assert_eq!(known, (state, exit, cause), "{version}: {}: {fact:?}", tokens[place]);
        };
        is_so(0, RunState::Ended, Some(0), None);
        is_so(1, RunState::Ended, Some(7), None);
        is_so(2, RunState::Ended, Some(137), None);
        is_so(3, RunState::Ended, None, Some(ErrorKind::Setup));
        is_so(4, RunState::Ended, None, Some(ErrorKind::Timeout));
        is_so(5, RunState::Ended, None, Some(ErrorKind::Preempted));
        is_so(6, RunState::Ended, None, Some(ErrorKind::Lost));
        is_so(7, RunState::Ended, None, Some(ErrorKind::Oom));
        is_so(8, RunState::Pending, None, None);
        is_so(9, RunState::Running, None, None);
        assert_eq!(
            canned.asked(),
            ["squeue --noheader"],
            "{version}: one question for all of them"
        );
    }
}

/// Without a database `sacct` says so at once; with each look it would cost a process.
#[test]
fn accounts_that_a_cluster_does_not_keep_are_asked_for_once() {
    for (version, written) in VERSIONS {
        let listing = row(1, "other", "RUNNING", "None", &written(0, 0));
        let canned = Arc::new(Canned { version, listing, ..Canned::default() });
        let viewer = Viewer::new(&canned, &["gone"]);
        let accounts = || {
            let asked = canned.asked();
            asked.into_iter().filter(|call| call == "sacct --noheader").count()
        };
        drop(viewer.look());
        assert_eq!(accounts(), 1, "{version}");
        drop(viewer.look());
        assert_eq!(accounts(), 0, "{version}: it has said that it keeps none");
    }
}
