//! An engine that is a directory: whoever submits leaves a job there, and somebody's hand says how it goes.
//!
//! `DIR/TOKEN/` holds a job: `argv` (its words), `env` (which member of a group it is), `id` (its number here),
//! `state` (one line, below), `restarts` (how often it was begun anew, if it was) and `log` (what it prints). The
//! states are `queued REASON`, `running NODE`, `ending`, `ended CODE`, `preempted REASON`, `evicted CODE`, `lost NODE`, `cancelled WHO` and
//! `stopped` (the file of that name holds the number by which it was). Where `DIR` is not there, the engine does not
//! answer. A file in it spoils the next submission: `.deaf`, it is not heard; `.mute`, its answer is lost; `.slow`,
//! its answer waits until the file is gone. As long as they are there, `.far` keeps its disk from answering, `.asleep`
//! the engine itself, and `.quiet` lets it take no voice. `.room` says how many nodes are idle and how many GPUs are
//! free. With `.greedy` it takes the place of jobs away. A directory `.disk` is the disk that its jobs see; without one that is the machine's.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::model::facts::{ErrorKind, Room, RunFact, RunState, Source};
use tpu_core::model::ids::{LaunchToken, TargetName};
use tpu_core::model::job::{EngineRun, Handle};
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::kinds::{Destination, Door, KindOfTarget, KindOption, OwnRoots, Refusal, Within};
use tpu_engine::runner::files::{Files, ThisDisk};
use tpu_engine::runner::window::WindowRunner;
use tpu_engine::runner::{
    Attempt, Chunk, Ground, Observed, OutputMark, OutputWanted, RunError, RunRef, Runner, Said,
    StopOrder, StopOutcome, StopPart, Submitted, Unreached, Want, environment,
};
use tpu_system::effects::Effects;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;

use super::disk::Disk;

/// The kind.
pub(crate) struct Echo;

impl KindOfTarget for Echo {
    fn word(&self) -> TargetKind {
        TargetKind::new("echo")
    }

    fn in_words(&self) -> &'static str {
        "a directory that plays an engine"
    }

    fn own_options(&self) -> &'static [KindOption] {
        const SPOOL: KindOption = KindOption::new("spool", "DIR", "The directory of its jobs");
        const SHELF: KindOption =
            KindOption::new("shelf", "DIR", "Where its jobs find code and leave logs");
        &[SPOOL, SHELF]
    }

    fn job_options(&self) -> &'static [KindOption] {
        const VOICE: KindOption = KindOption {
            is_many: true,
            ..KindOption::new("voice", "WORD", "How loud it is to be")
        };
        &[VOICE]
    }

    /// Whoever does not say which directory means the one of his environment.
    fn register(&self, registration: &mut Registration, env: &Env) -> Result<(), Refusal> {
        registration.kind = self.word();
        registration.engine = true;
        if let (None, Some(spool)) =
            (registration.options.get("spool"), env.non_empty("ECHO_SPOOL"))
        {
            registration.options.say("spool", spool);
        }
        match registration.options.get("spool") {
            Some(_) => Ok(()),
            None => Err(Refusal::new("an echo needs a directory", "as in: --spool DIR")),
        }
    }

    /// What lies in a directory as `NAME.echo` is one of them.
    fn found(
        &self,
        said: &Registration,
        _: &Effects,
    ) -> Result<Vec<(TargetName, Registration)>, RunError> {
        let dir = said.options.get("spool").unwrap_or(".");
        let failed = |e: io::Error| RunError::unreachable(format!("{dir}: {e}"), "is it there?");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(failed)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(".echo") else { continue };
            let options = [("spool", entry.path().display().to_string())].into_iter().collect();
            found.push((TargetName::from(name), Registration { options, ..said.clone() }));
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    fn rooms(
        &self,
        targets: &[Registration],
        _: &Effects,
        said: &mut dyn FnMut(usize, Result<Room, RunError>),
    ) {
        for (place, target) in targets.iter().enumerate() {
            let spool = target.options.get("spool").map(PathBuf::from).unwrap_or_default();
            said(place, Engine { spool }.room());
        }
    }

    fn workers(&self, asked: &Destination<'_>, _: Within<'_>) -> Result<Door, Refusal> {
        let what = format!("{} has no workers of its own", asked.name);
        Err(Refusal::new(what, "its jobs: `tpu check`"))
    }

    fn roots(&self, registration: &Registration) -> OwnRoots {
        let below = |name: &str| Some(format!("{}/{name}", registration.options.get("shelf")?));
        OwnRoots { stage: below("stage"), log: below("log") }
    }

    fn runner<'a>(
        &self,
        registration: Option<&Registration>,
        _: &'a Effects,
        _: WindowRunner<'a>,
    ) -> Box<dyn Runner + 'a> {
        let spool = registration.and_then(|known| known.options.get("spool"));
        Box::new(Engine { spool: spool.map(PathBuf::from).unwrap_or_default() })
    }

    fn engine<'a>(&self, run: &EngineRun, _: &'a Effects) -> Option<Box<dyn Runner + 'a>> {
        Some(Box::new(Engine { spool: PathBuf::from(&run.cluster) }))
    }
}

/// The engine.
struct Engine {
    spool: PathBuf,
}

impl Engine {
    fn dir(&self, run: RunRef<'_>) -> PathBuf {
        let token = run.job.launch.as_ref().map_or("", |launch| launch.token.as_str());
        self.spool.join(token)
    }

    fn handle(&self, token: &LaunchToken, id: Option<String>) -> Handle {
        let cluster = self.spool.display().to_string();
        let run = EngineRun { kind: Echo.word(), cluster, id, name: None };
        Handle::Engine { run, token: token.clone() }
    }

    /// Whether the next submission is spoiled in this way; the one after it is not.
    fn is_spoiled(&self, how: &str) -> bool {
        std::fs::remove_file(self.spool.join(how)).is_ok()
    }

    fn lost() -> RunError {
        RunError::unreachable("its answer was lost", "look at it with: tpu check")
    }

    /// Whether the engine answers.
    fn ask(&self) -> Result<(), RunError> {
        if self.spool.is_dir() {
            return Ok(());
        }
        Err(RunError::Unreachable(Said {
            message: format!("{} does not answer", self.spool.display()),
            hint: Some("make the directory again".to_owned()),
        }))
    }

    /// Waits as long as the engine hears nothing.
    fn wake(&self) {
        while self.spool.join(".asleep").exists() {
            SystemClock::new().sleep(Duration::from_millis(5));
        }
    }

    /// Its jobs, and what the file `.room` says of the rest: idle nodes and free GPUs.
    fn room(&self) -> Result<Room, RunError> {
        self.wake();
        self.ask()?;
        let said = std::fs::read_to_string(self.spool.join(".room")).unwrap_or_default();
        let mut numbers = said.split_whitespace().filter_map(|word| word.parse().ok());
        let entries = std::fs::read_dir(&self.spool).into_iter().flatten().flatten();
        let states =
            entries.filter_map(|job| std::fs::read_to_string(job.path().join("state")).ok());
        let states: Vec<String> = states.collect();
        let count = |word: &str| {
            let jobs = states.iter().filter(|state| state.starts_with(word)).count();
            u32::try_from(jobs).ok()
        };
        Ok(Room {
            state: "open".to_owned(),
            idle: numbers.next(),
            free_gpus: numbers.next().map(u64::from),
            running: count("running"),
            waiting: count("queued"),
            my_running: count("running"),
            limits: vec!["a day at most".to_owned()],
            ..Room::default()
        })
    }

    fn fact(&self, run: RunRef<'_>) -> RunFact {
        let restarts = std::fs::read_to_string(self.dir(run).join("restarts"));
        let restarts = restarts.ok().and_then(|times| times.trim().parse().ok()).unwrap_or(0);
        let told = |state, raw, reason: Option<String>| RunFact {
            reason: reason.map(Cow::Owned),
            restarts,
            source: Source::Engine,
            ..RunFact::new(state, raw)
        };
        if let Err(error) = self.ask() {
            return told(RunState::Unknown, "UNKNOWN", Some(error.to_string()));
        }
        let state = match std::fs::read_to_string(self.dir(run).join("state")) {
            Ok(state) => state,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = "it is not in the directory any more".to_owned();
                return RunFact {
                    cause: Some(ErrorKind::Lost),
                    ..told(RunState::Gone, "GONE", Some(reason))
                };
            }
            Err(error) => return told(RunState::Unknown, "UNKNOWN", Some(error.to_string())),
        };
        let (word, rest) = state.trim().split_once(' ').unwrap_or((state.trim(), ""));
        match word {
            "queued" => told(RunState::Pending, "QUEUED", Some(rest.to_owned())),
            "running" => {
                RunFact { nodes: vec![rest.to_owned()], ..told(RunState::Running, "RUNNING", None) }
            }
            "ending" => RunFact { text_waits: true, ..told(RunState::Running, "ENDING", None) },
            "ended" => RunFact {
                exit: rest.parse().ok().map(|code: i32| run.job.exit(code)),
                ..told(RunState::Ended, "ENDED", None)
            },
            "preempted" => RunFact {
                cause: Some(ErrorKind::Preempted),
                ..told(RunState::Ended, "PREEMPTED", Some(rest.to_owned()))
            },
            "evicted" => RunFact {
                exit: rest.parse().ok().map(|code: i32| run.job.exit(code)),
                cause: Some(ErrorKind::Preempted),
                ..told(RunState::Ended, "EVICTED", Some("somebody of higher rank".to_owned()))
            },
            "lost" => RunFact {
                cause: Some(ErrorKind::Lost),
                nodes: vec![rest.to_owned()],
                ..told(RunState::Ended, "NODE_FAIL", Some(format!("{rest} has failed")))
            },
            "stopped" => RunFact {
                is_cancelled: true,
                ..told(RunState::Ended, "STOPPED", Some("somebody stopped it".to_owned()))
            },
            "cancelled" => RunFact {
                exit: Some(run.job.exit(143)),
                is_cancelled: true,
                ..told(RunState::Ended, "CANCELLED", Some(format!("cancelled {rest}")))
            },
            other => told(RunState::Unknown, "UNKNOWN", Some(format!("it says '{other}'"))),
        }
    }
}

impl Runner for Engine {
    fn ground(&self, _: &str, token: &LaunchToken) -> Result<Ground, RunError> {
        self.ask()?;
        Ok(Ground { handle: self.handle(token, None), taken: Vec::new() })
    }

    fn submit(&self, attempt: &Attempt<'_>) -> Result<Submitted, RunError> {
        self.ask()?;
        if self.is_spoiled(".deaf") {
            return Err(Self::lost());
        }
        let Attempt { job, session, .. } = attempt;
        let voice = job.spec.as_ref().and_then(|spec| spec.options.get("voice"));
        if let Some(voice) = voice.filter(|_| self.spool.join(".quiet").exists()) {
            let what = format!("echo: error: no voice is {voice} here");
            return Err(RunError::usage(what, "leave out --voice"));
        }
        let dir = self.dir(RunRef { job, session });
        let token = job.launch.as_ref().map(|launch| launch.token.clone());
        let token = token.unwrap_or_else(|| LaunchToken::from(""));
        // The same token again: it is there already.
        if !dir.is_dir() {
            let fresh = self.spool.join(format!(".{}", std::process::id()));
            let made = std::fs::create_dir_all(&fresh)
                .and_then(|()| put(&fresh.join("argv"), &argv(attempt)))
                .and_then(|()| put(&fresh.join("env"), &told(attempt)))
                .and_then(|()| put(&fresh.join("id"), &job.windows_id.to_string()))
                .and_then(|()| put(&fresh.join("state"), "queued behind nobody"))
                .and_then(|()| std::fs::rename(&fresh, &dir));
            made.map_err(|error| {
                RunError::Failed(Said { message: error.to_string(), hint: None })
            })?;
        }
        if self.is_spoiled(".mute") {
            return Err(Self::lost());
        }
        while self.spool.join(".slow").exists() {
            SystemClock::new().sleep(Duration::from_millis(5));
        }
        let id = std::fs::read_to_string(dir.join("id")).ok();
        Ok(Submitted { handle: self.handle(&token, id), pane: None })
    }

    fn limits_groups(&self) -> bool {
        true
    }

    fn takes_away(&self) -> Result<bool, RunError> {
        self.ask().map(|()| self.spool.join(".greedy").exists())
    }

    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.wake();
        let observed = |run: &RunRef<'_>| {
            let length = std::fs::metadata(self.dir(*run).join("log")).map_or(0, |log| log.len());
            let printed = OutputMark { mark: length, above: 0 };
            Observed { run: self.fact(*run), pane: None, printed: Some(printed) }
        };
        runs.iter().map(observed).collect()
    }

    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError> {
        let read = |wanted: &OutputWanted<'_>| {
            let log = std::fs::read(self.dir(wanted.run).join("log")).unwrap_or_default();
            let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let (from, most) = match wanted.want {
                Want::Shown { .. } => (0, usize::MAX),
                Want::Kept { from, most } => (count(from), count(most)),
                Want::KeptEnd { bytes } => (log.len().saturating_sub(count(bytes)), usize::MAX),
            };
            let bytes: Vec<u8> = log.into_iter().skip(from).take(most).collect();
            let next = (from + bytes.len()) as u64;
            Some(Chunk { bytes: bytes.into(), next })
        };
        Ok(wanted.iter().map(read).collect())
    }

    fn may_stop(&self, _: RunRef<'_>, _: Unreached) -> Result<bool, RunError> {
        Ok(false)
    }

    fn stop(&self, run: RunRef<'_>, stop: StopOrder) -> Result<StopOutcome, RunError> {
        self.ask()?;
        let is_at_work = matches!(self.fact(run).state, RunState::Pending | RunState::Running);
        if stop.part == StopPart::Here || !is_at_work {
            return Ok(StopOutcome::default());
        }
        let id = run.job.engine.as_ref().and_then(|run| run.id.as_deref()).unwrap_or("-");
        put(&self.dir(run).join("stopped"), id)
            .and_then(|()| put(&self.dir(run).join("state"), "stopped"))
            .map_err(|error| RunError::Failed(Said { message: error.to_string(), hint: None }))?;
        Ok(StopOutcome { processes: 1, window: false })
    }

    fn files(&self) -> Box<dyn Files + '_> {
        while self.spool.join(".far").exists() {
            SystemClock::new().sleep(Duration::from_millis(5));
        }
        let disk = self.spool.join(".disk");
        if disk.is_dir() { Box::new(Disk(disk)) } else { Box::new(ThisDisk) }
    }

    fn preview(&self, attempt: &Attempt<'_>) -> Result<String, RunError> {
        Ok(argv(attempt))
    }

    fn script(&self, run: RunRef<'_>) -> Result<Option<String>, RunError> {
        self.ask()?;
        Ok(std::fs::read_to_string(self.dir(run).join("argv")).ok())
    }

    fn describe(&self, run: RunRef<'_>) -> Result<String, RunError> {
        self.ask()?;
        Ok(std::fs::read_to_string(self.dir(run).join("state")).unwrap_or_default())
    }

    fn unhold(&self, run: RunRef<'_>) -> Result<(), RunError> {
        self.ask()?;
        if self.fact(run).state != RunState::Pending {
            return Err(RunError::refused("it waits for nothing", "look at it: tpu check"));
        }
        put(&self.dir(run).join("state"), "queued behind nobody")
            .map_err(|error| RunError::failed(error.to_string(), "is there room?"))
    }

    fn shell(&self, run: RunRef<'_>, node: Option<&str>) -> Result<Vec<String>, RunError> {
        let nodes = self.fact(run).nodes;
        let node = nodes.iter().find(|name| node.is_none_or(|wanted| wanted == *name));
        let node = node.ok_or_else(|| {
            RunError::refused("it is not at work there", format!("its nodes: {}", nodes.join(", ")))
        })?;
        Ok(["echo", "this is", node].map(str::to_owned).to_vec())
    }

    fn attach(&self, run: RunRef<'_>) -> Result<Vec<String>, RunError> {
        let log = self.dir(run).join("log").display().to_string();
        Ok(["tail", "-f", &log].map(str::to_owned).to_vec())
    }
}

/// What is submitted: a word on each line, what was asked of this kind alone, where it is not to begin, and how many
/// run at once.
fn argv(attempt: &Attempt<'_>) -> String {
    let options = attempt.job.spec.as_ref().map(|spec| spec.options.clone()).unwrap_or_default();
    let words = attempt.words.iter().map(|word| word.to_string_lossy().into_owned());
    let options = options.pairs().map(|(name, value)| format!("{name}={value}"));
    let at_once = attempt.at_once.map(|at_once| format!("%{at_once}"));
    let avoid = attempt.avoid.iter().map(|node| format!("!{node}"));
    words.chain(options).chain(avoid).chain(at_once).collect::<Vec<_>>().join("\n")
}

/// Its environment, `NAME=VALUE` on each line.
fn told(attempt: &Attempt<'_>) -> String {
    let vars = attempt.env.iter().cloned().chain(environment::of_job(attempt.job));
    let line =
        |(name, value): (OsString, OsString)| format!("{}={}\n", name.display(), value.display());
    vars.map(line).collect::<Vec<_>>().concat()
}

/// Writes a small file whole, so that whoever reads it never sees half of it.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = std::fs::File::create(&fresh)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    std::fs::rename(fresh, path)
}
