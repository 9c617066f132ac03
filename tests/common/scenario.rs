//! One job and what is observed about it, as a scenario file says it: all times in seconds before now.

use std::io;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tpu_core::model::facts::{
    Class, ErrorKind, Evidence, PaneFact, Phase, Place, Progress, RunFact, RunState, Source,
    TargetFact, TargetState, TmuxFact, Verdict, WINDOW_CLOSED, WITHOUT_WINDOW,
};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, TargetName, UserName};
use tpu_core::model::job::{
    Intent, Job, Launch, LaunchMode, Lease, Mark, Recovery, StartTime, Status, StoredVerdict,
};
use tpu_core::model::rules::Rules;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::window::place::{self, Window};
use tpu_system::sys::procs::{Process, Processes, Signal, Table};

/// The instant at which scenarios are judged.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_795_161_731)
}

/// The instant so many seconds before.
pub(crate) fn ago(seconds: i64) -> Timestamp {
    now().plus_seconds(-seconds)
}

/// The record of window 7 of alice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// As stored: `null`, `starting`, `error: grpc`, …
    pub(crate) status: String,
    #[serde(default = "a_tpu")]
    pub(crate) target: String,
    /// `native`, `script`, or absent for a record of the original.
    pub(crate) launch: Option<String>,
    #[serde(default = "an_hour")]
    pub(crate) launched: i64,
    #[serde(default = "yes")]
    pub(crate) confirmed: bool,
    pub(crate) exit: Option<i32>,
    pub(crate) ended: Option<i64>,
    /// So many seconds ago the machine that it began on was created.
    pub(crate) machine: Option<i64>,
    pub(crate) child: Option<u32>,
    pub(crate) father: Option<u32>,
    pub(crate) intent: Option<String>,
    pub(crate) verdict: Option<Kept>,
    /// Which part of the place of its window differs from where we look.
    pub(crate) place: Option<String>,
    /// `pre` (the default), `pass`, …, or a custom one.
    pub(crate) rule: Option<String>,
    #[serde(default = "yes")]
    pub(crate) monitor: bool,
    pub(crate) recovery: Option<Remembered>,
    /// Owner of the lineage's lease and the seconds for which it still runs.
    pub(crate) lease: Option<(String, i64)>,
}

/// What the daemon remembers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Remembered {
    capacity: u32,
    capacity_row: u32,
    infra: u32,
    quick: u32,
    best_step: Option<u64>,
    progressed: bool,
    last_action: Option<i64>,
    patient_since: Option<i64>,
    roused: bool,
    login: Option<String>,
    judged: Option<i64>,
    stopped: Option<String>,
}

impl Remembered {
    fn recovery(&self) -> Recovery {
        Recovery {
            capacity: self.capacity,
            capacity_row: self.capacity_row,
            infra: self.infra,
            quick: self.quick,
            best: Mark { epoch: None, step: self.best_step },
            progressed: self.progressed,
            last_action_at: self.last_action.map(ago),
            patient_since: self.patient_since.map(ago),
            roused: self.roused,
            login: self.login.clone(),
            judged: self.judged.map(ago),
            stopped: self.stopped.clone(),
            ..Recovery::default()
        }
    }
}

fn a_tpu() -> String {
    "tpu-a".to_owned()
}

fn a_rule() -> String {
    "stored-rule".to_owned()
}

fn an_hour() -> i64 {
    3_600
}

fn yes() -> bool {
    true
}

/// Evidence that the record keeps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    kind: String,
    line: String,
    #[serde(default = "a_rule")]
    rule: String,
    #[serde(default)]
    ignored: bool,
}

impl Record {
    pub(crate) fn job(&self) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&id, TargetName::new(self.target.clone()), "/d".to_owned());
        job.status = status(&self.status);
        job.father = self.father.map(JobNumber);
        job.child = self.child.map(JobNumber);
        job.intent = self.intent.as_ref().map(|action| Intent {
            action: action.clone(),
            at: ago(10),
            by: "h:1".to_owned(),
        });
        job.verdict = self.verdict.as_ref().map(|kept| StoredVerdict {
            kind: kind(&kept.kind),
            rule: kept.rule.clone(),
            line: kept.line.clone(),
            ignored: kept.ignored,
        });
        job.rules = Rules::parse(self.rule.as_deref().unwrap_or("pre")).unwrap();
        job.monitor = self.monitor;
        job.recovery = self.recovery.as_ref().map(|kept| Box::new(kept.recovery()));
        job.lease = self.lease.as_ref().map(|(owner, for_s)| lease(owner, *for_s));
        let Some(mode) = &self.launch else {
            assert!(self.place.is_none(), "the original stores no place");
            return job;
        };
        job.start_time = StartTime::At(ago(self.launched));
        job.place = Some(self.place());
        job.launch = Some(Launch {
            token: LaunchToken::from("t7"),
            mode: LaunchMode::parse(mode).unwrap_or_else(|| panic!("launch = {mode}")),
            at: ago(self.launched),
            confirmed: self.confirmed,
            exit: self.exit,
            ended: self.ended.map(ago),
            machine: self.machine.map(ago),
            over: false,
            queued: None,
            from: None,
            attempt: 0,
            worked: None,
        });
        job
    }

    fn place(&self) -> Place {
        let mut place = here();
        match self.place.as_deref() {
            None => {}
            Some("host") => "other".clone_into(&mut place.host),
            Some("boot") => "other".clone_into(&mut place.boot),
            Some("user") => place.uid = 2,
            Some("socket") => "/other".clone_into(&mut place.socket),
            Some("server") => place.server_pid = 11,
            Some(other) => panic!("place = {other}"),
        }
        place
    }
}

/// A lease that runs for some more seconds.
pub(crate) fn lease(owner: &str, for_s: i64) -> Lease {
    Lease { owner: owner.to_owned(), fence: 1, until: ago(-for_s) }
}

/// Where we look.
pub(crate) fn here() -> Place {
    Place {
        host: "h".to_owned(),
        boot: "b".to_owned(),
        uid: 1,
        socket: "/tmp/s".to_owned(),
        server_pid: 10,
        server_start: 100,
    }
}

/// What one look at tmux gave.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tmux {
    /// `up` (the default), `down` (it does not answer), `ended`, or why the question failed.
    pub(crate) server: Option<String>,
    /// The job's pane: `alive` (the default), `dead`, `none` (its session is there), `closed` (so, by somebody),
    /// `left` (none, and a process of the job lives), `no-session`, `later-launch` (its index, another launch).
    pub(crate) pane: Option<String>,
    /// `@tpu_exit` of that pane.
    pub(crate) exit: Option<i32>,
    /// How long ago that pane has printed.
    pub(crate) printed: Option<i64>,
}

impl Tmux {
    pub(crate) fn fact(&self, job: &Job) -> TmuxFact {
        match self.server.as_deref() {
            None | Some("up") => TmuxFact::Up { place: here(), panes: self.panes(job) },
            Some("down" | "ended") => TmuxFact::Down { place: here() },
            Some(reason) => TmuxFact::Unknown { reason: reason.to_owned() },
        }
    }

    fn has_ended(&self) -> bool {
        self.server.as_deref() == Some("ended")
    }

    /// The same run, with what is left of it.
    fn with_left(&self, run: RunFact) -> RunFact {
        match self.pane.as_deref() {
            Some("closed") => RunFact {
                is_cancelled: true,
                reason: Some("its window was closed".into()),
                raw: WINDOW_CLOSED.into(),
                ..run
            },
            Some("left") => RunFact {
                state: RunState::Running,
                cause: None,
                reason: Some("its window is gone; it continues here".into()),
                raw: WITHOUT_WINDOW.into(),
                ..run
            },
            Some(_) | None => run,
        }
    }

    fn panes(&self, job: &Job) -> Vec<PaneFact> {
        let own = job.launch.as_ref().map(|launch| launch.token.as_str());
        let home = pane("alice", 0, None);
        let printed = self.printed.map_or(0, |s| u64::try_from(ago(s).as_second()).unwrap_or(0));
        let with = |pane: PaneFact| {
            vec![home.clone(), PaneFact { exit: self.exit, activity: printed, ..pane }]
        };
        match self.pane.as_deref() {
            None | Some("alive") => with(pane("alice", 7, own)),
            Some("dead") => with(PaneFact { dead: true, ..pane("alice", 7, own) }),
            Some("none" | "closed" | "left") => vec![home],
            Some("no-session") => vec![pane("bird", 7, None)],
            Some("later-launch") => with(pane("alice", 7, Some("t8"))),
            Some(other) => panic!("pane = {other}"),
        }
    }
}

fn pane(session: &str, index: u32, token: Option<&str>) -> PaneFact {
    PaneFact {
        session: session.to_owned(),
        window_index: index,
        pane_id: format!("%{index}"),
        dead: false,
        activity: 0,
        history_size: 0,
        cursor_y: 0,
        cursor_x: 0,
        job: None,
        launch: token.map(LaunchToken::from),
        exit: None,
    }
}

/// What an engine says of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Engine {
    /// `pending`, `starting`, `running`, `ended`, `gone`, `elsewhere`, `unknown`.
    state: String,
    /// Its own word.
    #[serde(default)]
    raw: String,
    reason: Option<String>,
    cause: Option<String>,
    #[serde(default)]
    cancelled: bool,
    exit: Option<i32>,
    /// In how many seconds it is expected to start.
    starts_in: Option<i64>,
    /// How long ago it has printed.
    printed: Option<i64>,
}

impl Engine {
    fn fact(&self, job: &Job) -> RunFact {
        let state = match self.state.as_str() {
            "pending" => RunState::Pending,
            "starting" => RunState::Starting,
            "running" => RunState::Running,
            "ended" => RunState::Ended,
            "gone" => RunState::Gone,
            "elsewhere" => RunState::Elsewhere,
            "unknown" => RunState::Unknown,
            other => panic!("state = {other}"),
        };
        RunFact {
            exit: self.exit.map(|code| job.exit(code)),
            cause: self.cause.as_deref().map(kind),
            is_cancelled: self.cancelled,
            reason: self.reason.clone().map(Into::into),
            expected: self.starts_in.map(|seconds| ago(-seconds)),
            last_output: self.printed.map(ago),
            raw: self.raw.clone().into(),
            source: Source::Engine,
            ..RunFact::new(state, "")
        }
    }
}

/// What is known of the run of a job: by an engine where there is one, else by its window.
pub(crate) fn run(job: &Job, record: &Record, tmux: &Tmux, engine: Option<&Engine>) -> RunFact {
    if let Some(engine) = engine {
        return engine.fact(job);
    }
    let fact = tmux.fact(job);
    let window = place::find(job, "alice", &fact, &Servers { live: !tmux.has_ended() });
    let by_pane = if let Window::Here(pane) = &window { pane.exit } else { None };
    let exit = by_pane.or(record.exit);
    tmux.with_left(window.fact(job, exit.map(|code| job.exit(code))))
}

/// A machine on which every tmux server lives, or none.
struct Servers {
    live: bool,
}

impl Processes for Servers {
    fn table(&self) -> io::Result<Table> {
        Ok(Table::default())
    }

    fn is_alive(&self, _pid: u32, _start: u64) -> bool {
        self.live
    }

    fn signal(&self, _process: &Process, _signal: Signal) -> io::Result<bool> {
        Ok(false)
    }
}

/// What the classifier read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    pub(crate) class: String,
    pub(crate) line: Option<String>,
    pub(crate) step: Option<u64>,
    pub(crate) epoch: Option<f64>,
    pub(crate) phase: Option<Phase>,
}

impl Text {
    pub(crate) fn verdict(&self) -> Verdict {
        let line = self.line.clone().unwrap_or_default();
        let class = Class::parse(&self.class).unwrap_or_else(|| panic!("class = {}", self.class));
        Verdict {
            class,
            phase: self.phase,
            progress: Progress { step: self.step, epoch: self.epoch, ..Progress::default() },
            evidence: (class != Class::None)
                .then(|| Evidence::fact(Source::Text, "text-rule", line)),
        }
    }
}

/// The latest answer of the control plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Api {
    pub(crate) state: TargetState,
    /// Age in seconds; negative if it lies in the future.
    pub(crate) age: i64,
    #[serde(default = "a_tpu")]
    pub(crate) name: String,
    /// So many seconds ago it was created.
    pub(crate) created: Option<i64>,
}

impl Api {
    pub(crate) fn fact(&self) -> TargetFact {
        let raw = format!("{:?}", self.state).to_uppercase();
        let name = TargetName::new(self.name.clone());
        let fact = TargetFact::new(name, self.state, raw, ago(self.age));
        let built_in = Target::built_in().into_iter().find(|target| target.name == fact.name);
        let machines = built_in.map_or(Machines::Provided, |target| target.machines);
        TargetFact { created_at: self.created.map(ago), machines, ..fact }
    }
}

fn kind(text: &str) -> ErrorKind {
    ErrorKind::parse(text).unwrap_or_else(|| panic!("kind = {text}"))
}

/// Reads a status as `check` prints it, and `null`.
pub(crate) fn status(text: &str) -> Status {
    let (word, error) = match text.split_once(": ") {
        Some((word, error)) => (word, Some(kind(error))),
        None => (text, None),
    };
    let word = (word != "null").then_some(word);
    Status::from_fields(word, error).unwrap_or_else(|| panic!("status = {text}"))
}

/// Checks every case of a folder of `tests/cases`, then fails with all that do not hold.
pub(crate) fn all_hold<Case: DeserializeOwned>(
    folder: &str,
    check: impl Fn(&Case) -> Result<(), String>,
) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File<Case> {
        case: Vec<Case>,
    }
    let mut wrong = Vec::new();
    for (name, text) in files(folder) {
        let file: File<Case> = toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let differences = file.case.iter().filter_map(|case| check(case).err());
        wrong.extend(differences.map(|difference| format!("{name}: {difference}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every file of a folder of `tests/cases`, by name.
fn files(folder: &str) -> Vec<(String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let mut files: Vec<(String, String)> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no scenarios in {}", root.display());
    files
}
