//! What runs in a job's window: the launcher as `assets/launcher.sh` has it, and a user's script that
//! works, makes progress, and fails as the world has it fail.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpu_core::model::facts::{ErrorKind, PaneFact};
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::target::LOCAL;
use tpu_ops::act::callbacks::{self, Begun};
use tpu_ops::waiting::queue::pass;
use tpu_ops::{Ctx, Error, Kind};
use tpu_system::store::Paths;
use tpu_system::tmux::NewWindow;

use super::effects::Me;
use super::observer::{Cause, Health, Program};
use super::tpu::{Start, call};
use super::world::{Pid, Purpose, Role, World};
use super::{CODE, DATA, LOG, lineages};
use crate::common::tmux::write_file;

/// How a program behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// How often it says something, in milliseconds.
    pub(crate) says_ms: (u64, u64),
    /// Its work is kept so often, in seconds.
    pub(crate) keeps_s: f64,
    /// The steps that it counts are seconds of its lineage's work, and go on with the next attempt.
    pub(crate) counts_on: bool,
    /// It has a mistake, with this chance in millionths each time it says something.
    pub(crate) mistake: u64,
    /// All is done when its target is taken away, and it ends well, with this chance in millionths.
    pub(crate) ends_well: u64,
}

/// The shell of a new window begins.
pub(crate) fn begin(world: &Arc<World>, opener: Pid, window: &NewWindow, pane: &PaneFact) {
    let mut state = world.state();
    let pid = state.process_of(opener.host, pane);
    let Some(shell) = pid.and_then(|pid| state.spawn(opener.host, Role::Launcher, Some(pid)))
    else {
        return;
    };
    drop(state);
    let me = Me { world: Arc::clone(world), pid: shell };
    let launch = Launcher {
        me,
        token: window.launch.clone(),
        job: window.job.clone(),
        pane: pane.clone(),
        script: window.argv.get(1).cloned().unwrap_or_default(),
        began: world.state().now,
    };
    let work = Box::new(move || launch.run());
    world.state().begun.push((shell, work));
}

struct Launcher {
    me: Me,
    token: LaunchToken,
    job: JobId,
    pane: PaneFact,
    script: String,
    began: Duration,
}

impl Launcher {
    fn pause(&self, low_ms: u64, high_ms: u64) {
        let length = self.me.world.state().between(low_ms, high_ms);
        self.me.world.sleep(self.me.pid, length);
    }

    /// One of its files, as it is when it looks; a launcher that does not find it ends.
    fn file(&self, name: &str) -> Option<Vec<String>> {
        let dir = self.script.strip_suffix("launcher.sh")?;
        let bytes = self.me.world.disk.bytes(format!("{dir}{name}").as_ref())?;
        let words = bytes.split(|byte| *byte == 0);
        Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    }

    fn write(&self, name: &str, text: &str) {
        if let Some(dir) = self.script.strip_suffix("launcher.sh") {
            let path = format!("{dir}{name}");
            self.me.world.disk.put(path.as_ref(), text.as_bytes(), 0o600, (1000, 1000));
        }
    }

    /// Calls `tpu` back.
    fn call(&self, work: impl FnOnce(&Ctx) -> Result<(), Error> + Send + 'static) -> bool {
        let vars = vec![
            ("TPU_JOB".to_owned(), self.job.to_string()),
            ("TPU_LAUNCH".to_owned(), self.token.as_str().to_owned()),
        ];
        let start = Start {
            host: self.me.pid.host,
            purpose: Purpose::Callback,
            parent: Some(self.me.pid),
            vars,
        };
        let said: Arc<Mutex<Option<bool>>> = Arc::default();
        let told = Arc::clone(&said);
        let child = call(&self.me.world, &start, move |ctx| {
            let ok = work(ctx).is_ok();
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(ok);
        });
        while self.me.world.state().is_alive(child) {
            self.pause(20, 200);
        }
        said.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(false)
    }

    fn run(self) {
        self.pause(10, 400);
        let Some(words) = self.file("argv") else { return };
        let token = self.token.clone();
        let may_begin = self.call(move |ctx| callbacks::begin(ctx, &token));
        let code = if may_begin { self.attend(&words) } else { 4 };
        self.write("exit", &format!("{code} {}\n", self.token.as_str()));
        self.pause(1, 100);
        let tmux = self.tmux();
        tmux.set_pane_option(&self.pane.pane_id, "@tpu_exit", &code.to_string());
        let token = self.token.clone();
        let _told: bool = self.call(move |ctx| {
            pass::make_way(ctx, &callbacks::exited(ctx, &token, code)?);
            Ok(())
        });
        // The shell stays, until somebody closes its window.
        loop {
            self.me.world.sleep(self.me.pid, Duration::from_secs(3_600));
        }
    }

    fn tmux(&self) -> Arc<crate::common::fakes::tmux::FakeTmux> {
        let state = self.me.world.state();
        let machine = state.hosts.get(self.me.pid.host).expect("a launcher is on a machine");
        Arc::clone(&machine.tmux)
    }

    fn show(&self, text: &str) {
        let all = format!("tpu: launch {} · job {}\n{text}", self.token.as_str(), self.job);
        self.tmux().set_text(&self.pane.pane_id, all);
    }

    /// What its environment file says.
    fn variable(&self, name: &str) -> Option<String> {
        let pairs = self.file("env")?;
        pairs
            .iter()
            .find_map(|pair| Some(pair.split_once('=').filter(|(n, _)| *n == name)?.1.to_owned()))
    }

    fn is_native(&self) -> bool {
        self.file("spec").is_some_and(|spec| spec.get(2).is_some_and(|mode| mode == "native"))
    }

    /// Where the program keeps its work: a directory on the real disk, if the world has any. It begins from
    /// the newest that its lineage has, and from no other.
    fn log_dir(&self, words: &[String], lineage: u32) -> PathBuf {
        let Some(logs) = self.me.world.state().logs.clone() else { return LOG.into() };
        let named = self.variable("TPU_LOG_DIR").map(PathBuf::from);
        let log = named.unwrap_or_else(|| logs.join("scripts").join(self.token.as_str()));
        std::fs::create_dir_all(&log).expect("a directory for logs");
        let loads = words.iter().find_map(|word| word.strip_prefix("--config.load_from="));
        let mut state = self.me.world.state();
        state.observer.loaded.push(loads.is_some());
        let known = state.observer.lineages.entry(lineage).or_default();
        let newest = lineages::newest(&known.logs).map(|dir| dir.to_string_lossy().into_owned());
        known.logs.push(log.clone());
        if loads != newest.as_deref() {
            state.violation(format!(
                "11: lineage {lineage} begins at {loads:?}, and has {newest:?}"
            ));
        }
        log
    }

    /// The program, from its start to its end; its exit code.
    fn attend(&self, words: &[String]) -> i32 {
        let after = |prefix: &str| words.iter().find_map(|word| word.strip_prefix(prefix));
        let target = after("ka=").unwrap_or(LOCAL).to_owned();
        let lineage = after("--config.lineage=").and_then(|text| text.parse().ok()).unwrap_or(0);
        let number = {
            let mut state = self.me.world.state();
            let Some(pid) = state.spawn(self.me.pid.host, Role::Program(0), None) else { return 1 };
            let number = state.program_begins(Program {
                token: self.token.as_str().to_owned(),
                lineage,
                target: target.clone(),
                pid,
                health: Health::Working,
                cause: None,
                last_words: "",
                exit: 0,
                began: self.began,
                struck: None,
                ended: None,
                kept: false,
                is_done: false,
            });
            if let Some(proc) = state.proc_mut(pid) {
                proc.role = Role::Program(number);
                proc.environ = format!("TPU_LAUNCH={}\0", self.token.as_str()).into_bytes();
            }
            drop(state);
            self.write("pid", &format!("{} {}\n", pid.pid, pid.start));
            number
        };
        let log = self.log_dir(words, lineage);
        // A target that is not there, or not any more, is noticed by the first word to it.
        if target != LOCAL && self.me.world.word(&target) != "READY" {
            let words = "ssh: connect to host 10.0.0.2 port 22: Connection refused\n";
            self.me.world.state().fail(number, Cause::Grpc, words, 255);
        }
        self.show("starting\n");
        let job = self.job.to_string();
        let log_dir = log.to_string_lossy().into_owned();
        let begun = Begun { log_dir, stage_dir: CODE.to_owned(), target };
        // A command has nothing to say: its launcher knows all that.
        let _heard: bool = self.is_native()
            || self.call(move |ctx| {
                let id = callbacks::subject(ctx, &job)?;
                callbacks::upd_log(ctx, &id, &begun)
            });
        self.work(number, lineage, &log)
    }

    /// A checkpoint, where the world has a disk for it.
    fn keep(&self, log: &Path, step: u64) {
        if self.me.world.state().logs.is_some() {
            let dir = log.join(format!("checkpoint_{step}"));
            std::fs::create_dir_all(&dir).expect("a checkpoint");
            write_file(&dir.join("weights"), "w");
        }
    }

    /// Works until it ends, in one way or another.
    fn work(&self, number: usize, lineage: u32, log: &Path) -> i32 {
        let mut step = 0;
        let mut since = self.me.world.state().now;
        let mut fresh = 0.0;
        loop {
            let (low, high) = self.me.world.state().habits.says_ms;
            self.pause(low, high);
            let mut state = self.me.world.state();
            let Some(program) = state.observer.programs.get(number).cloned() else { return 1 };
            let passed = state.now.saturating_sub(since).as_secs_f64();
            since = state.now;
            if !state.is_alive(program.pid) {
                drop(state);
                self.show(&format!("step {step} loss 0.41\n{}", program.last_words));
                return program.exit;
            }
            if program.is_done {
                drop(state);
                return self.finish(number, lineage);
            }
            if program.health != Health::Working {
                continue;
            }
            step += 100;
            fresh += passed;
            state.observer.lineages.entry(lineage).or_default().worked += passed;
            let (keeps, mistake) = (state.habits.keeps_s, state.habits.mistake);
            let known = state.observer.lineages.entry(lineage).or_default();
            let keeps_now = fresh >= keeps || known.kept + fresh >= known.needs;
            if keeps_now {
                known.kept += fresh;
                fresh = 0.0;
            }
            let is_done = known.kept >= known.needs;
            let reached = known.kept + fresh;
            known.reached = reached;
            if state.habits.counts_on {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "seconds of a month"
                )]
                let reached = reached as u64;
                step = reached;
            }
            if let Some(program) = state.observer.programs.get_mut(number).filter(|_| keeps_now) {
                program.kept = true;
            }
            let has_mistake = state.chance(mistake);
            if has_mistake {
                let words = "Traceback (most recent call last):\n  File \"main.py\", line 61, in \
                             <module>\nKeyError: 'lr'\n";
                state.fail(number, Cause::Mistake, words, 1);
            }
            drop(state);
            if keeps_now {
                self.keep(log, step);
            }
            self.show(&format!("step {step} loss 0.41\n"));
            if is_done && !has_mistake {
                return self.finish(number, lineage);
            }
        }
    }

    fn finish(&self, number: usize, lineage: u32) -> i32 {
        let job = self.job.to_string();
        let told = Arc::clone(&self.me.world);
        let is_looked_at = told.state().habits.ends_well > 0;
        if let Some(program) = self.me.world.state().observer.programs.get_mut(number) {
            program.is_done = true;
        }
        // A command's exit code says it.
        let said = self.is_native()
            || self.call(move |ctx| {
                let id = callbacks::subject(ctx, &job)?;
                let before = is_looked_at && may_finish(ctx, &id);
                let said = callbacks::finish_job(ctx, &id, false);
                let is_refused = said.as_ref().is_err_and(|error| error.kind == Kind::Refused);
                if is_refused && before && may_finish(ctx, &id) {
                    let what = format!("13: {id} was preempted and ended well, and is refused");
                    told.state().violation(what);
                }
                said?;
                pass::after_word(ctx, &id);
                Ok(())
            });
        let mut state = self.me.world.state();
        let pid = state.observer.programs.get_mut(number).map(|program| {
            program.cause.get_or_insert(Cause::Finished);
            program.pid
        });
        if said {
            state.observer.lineages.entry(lineage).or_default().finished = true;
        }
        if let Some(pid) = pid {
            state.kill(pid, "done");
        }
        0
    }
}

/// Whether a job was preempted and nobody acts on that: a claim of success counts.
fn may_finish(ctx: &Ctx, id: &JobId) -> bool {
    ctx.data().is_ok_and(|data| {
        let preempted = Status::Error(ErrorKind::Preempted);
        let of = |job: &Job| job.status == preempted && job.child.is_none();
        data.job(id).is_some_and(|job| of(job) && !job.is_acted_on(ctx.clock.now()))
    })
}

/// The directory of a job below the state of the data file.
pub(crate) fn paths() -> Paths {
    Paths::new(DATA.into())
}
