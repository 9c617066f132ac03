//! A job's command on the workers of a target that is not this machine, and its end. The way to them is in
//! [`doors`].
//!
//! [`attend`] is what runs in the window of such a job: it starts the command on every worker, once for
//! the launch's token, prints what they say, and ends with the highest of their exit codes. A broken
//! connection is no end: the command is looked for by its token until it is found again, and is never
//! started a second time. `worker_processes` (in `observe`) ends exactly what carries the token.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tpu_core::classify::own_line;
use tpu_core::model::facts::{ErrorKind, TargetFact};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_core::model::variables::{self, Secrets};
use tpu_engine::runner::environment;
use tpu_engine::runner::window::{beside, silence};
use tpu_system::remote::{End, Output, Remote, RemoteError, Work, Worker};
use tpu_system::sys::pty;

use self::carry::{Cargo, Carrier};
use self::print::{Line, print};
use self::setting_up::SettingUp;
use self::stopper::Stopper;
use super::callbacks;
use super::setup::{self, SetUp};
use crate::base::ctx::job_of;
use crate::base::{records, watch};
use crate::observe::fleet::{AskedOnce, ProviderFacts};
use crate::observe::snapshot::ASKED_AT_MOST;
use crate::observe::{doors, log_files, worker_processes};
use crate::{Ctx, Error};

mod carry;
mod contact;
mod print;
mod setting_up;
mod stopper;

/// Exit code of a worker that was lost, as that of a broken ssh.
const LOST: i32 = 255;

/// A worker of a provider that cannot be reached for so long is lost. One's own machine is waited for: that it does not
/// answer says nothing about what runs there.
const PATIENCE: Duration = Duration::from_secs(600);

/// Between two looks for a worker: the first, doubling to the last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LAST_WAIT: Duration = Duration::from_secs(10);

/// How often a wish to stop is looked for.
const POLL: Duration = Duration::from_millis(50);

/// Lines that wait to be printed, of up to some megabytes each; the workers wait as well when there are more.
const IN_FLIGHT: usize = 64;

/// Runs the command of a launch on every worker of its target, and prints what they say. Returns the
/// highest exit code. `stop` ends the command.
pub fn attend(
    ctx: &Ctx,
    token: &LaunchToken,
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<i32, Error> {
    let id = records::launched(ctx, token)?;
    let data = ctx.data()?;
    let job = job_of(&data, &id)?;
    let asked = AskedOnce::new(ctx, &data, &job.tpu);
    let control = Control {
        ctx,
        job,
        is_fixed: doors::are_fixed(&data, &job.tpu),
        told: Mutex::new(None),
        asked: Mutex::new(None),
    };
    let setup = SetUp::of(ctx, &data, job)
        .inspect_err(|error| setting_up::failed(&control, token, error))?;
    let mut workers = worker_processes::of_job(ctx, job);
    // A window that was opened again is for what goes on: that is only heard.
    let is_new = workers.is_empty();
    if is_new {
        workers = chosen(job, doors::workers_to_start(ctx, &asked)?, setup.is_some())?;
        beside::record_workers(ctx, &id, &workers)?;
    }
    log_files::keep_workers(ctx, job, &workers);
    let door = doors::to(ctx, &asked)?;
    if is_new {
        if let Err(why) = contact::first(&control, &*door.remote, &workers, (stop, out)) {
            contact::failed(&control, token, &why, out);
            beside::forget_workers(ctx, &id);
            return Ok(LOST);
        }
        callbacks::started(ctx, &id, token)?;
    }
    let mut work = work(ctx, job, door.is_elsewhere);
    if let Some(setup) = &setup {
        work.argv = setup.within(work.argv);
    }
    let host = data.registration(&job.tpu).and_then(|known| known.host.as_ref());
    if let Some(script) = host.and_then(|host| host.pyenv.as_ref()) {
        work.argv.splice(0..0, ["bash", "-c", BEHIND, script].map(OsString::from));
    }
    tell_of_window(&mut work.env, workers.len() > 1);
    let only_set_up =
        setup.as_ref().map(|setup| Work { argv: setup.before(vec![]), ..work.clone() });
    if let Some(setup) = &setup {
        work.argv = setup.before(work.argv);
    }
    let work_of = |worker: &Worker| match &only_set_up {
        Some(only) if !runs_on(job, worker) => only,
        _ => &work,
    };
    let carrier = Carrier { control: &control, door: &*door.remote, token, stop };
    let code = job.stage_dir.as_deref().filter(|_| door.is_elsewhere && is_new);
    let carried = code.map_or(Ok(true), |dir| carrier.carry(&workers, &Cargo::code(dir)?, out));
    let carried = match (&setup, carried) {
        (Some(setup), Ok(true)) if is_new => {
            let machine = asked.fact().created_at.map(Timestamp::to_rfc3339).unwrap_or_default();
            setting_up::carry(&carrier, setup, (&workers, &machine), out)
        }
        (_, carried) => carried,
    };
    match carried {
        Ok(true) => {}
        // Nothing has been started.
        other => {
            if let Some(setup) = &setup {
                setting_up::discard(&*door.remote, setup, &workers);
            }
            if let (Some(_), Err(error)) = (&setup, &other) {
                setting_up::failed(&control, token, error);
            }
            beside::forget_workers(ctx, &id);
            return other.map(|_| LOST);
        }
    }
    let door = door.remote;
    fail::fail_point!("workers-recorded");
    let (all_of_it, set_up_alone): (Vec<Worker>, Vec<Worker>) =
        workers.iter().cloned().partition(|worker| setup.is_none() || runs_on(job, worker));
    let started: BTreeMap<u32, Option<RemoteError>> =
        [(all_of_it, &work), (set_up_alone, only_set_up.as_ref().unwrap_or(&work))]
            .into_iter()
            .filter(|_| is_new)
            .flat_map(|(workers, work)| door.start(&workers, work, token))
            .map(|(worker, result)| (worker, result.err()))
            .collect();
    if !is_new {
        beside::record_heard(ctx, &id);
    }
    if setup.is_none()
        && let Err(error) = beside::record_begin(ctx, &id, token)
    {
        ctx.warn([error.to_string()]);
    }
    let stopping = AtomicBool::new(false);
    let setting_up = setup
        .as_ref()
        .map(|setup| SettingUp::new(&control, setup, (&workers, token), (stop, &stopping)));
    let (say, heard) = sync_channel(IN_FLIGHT);
    let over = AtomicBool::new(false);
    let code = std::thread::scope(|scope| {
        let listeners: Vec<_> = workers
            .iter()
            .map(|worker| {
                let listener = Listener {
                    ctx,
                    control: &control,
                    door: &*door,
                    worker,
                    work: work_of(worker),
                    setting_up: setting_up.as_ref(),
                    token,
                    stopping: &stopping,
                    say: say.clone(),
                    is_started: started.get(&worker.index).is_none_or(Option::is_none),
                    log: log_files::of_command(job, worker.index),
                };
                scope.spawn(move || listener.listen())
            })
            .collect();
        let setting_up = setting_up.as_ref();
        let asked_to_stop =
            Stopper { ctx, door: &*door, workers: &workers, token, say, setting_up };
        scope.spawn(|| asked_to_stop.wait(stop, &stopping, &over));
        print(&heard, &*ctx.clock, (out, workers.len() > 1), || {
            let all_ended = listeners.iter().all(std::thread::ScopedJoinHandle::is_finished);
            over.store(all_ended, Ordering::Relaxed);
        });
        let ends: Vec<Option<i32>> =
            listeners.into_iter().map(|thread| thread.join().unwrap_or(None)).collect();
        for worker in &workers {
            silence::ends(&ctx.effects, token, worker.index);
        }
        if ends.iter().all(Option::is_some) && is_clear(&*door, &workers, token) {
            beside::forget_workers(ctx, &id);
        }
        ends.into_iter().map(|end| end.unwrap_or(LOST)).max().unwrap_or(0)
    });
    Ok(if setting_up.is_some_and(|of| of.has_failed()) { setup::FAILED } else { code })
}

/// Whether the command of a job runs on a worker.
fn runs_on(job: &Job, worker: &Worker) -> bool {
    job.execution().is_none_or(|execution| execution.is_on(worker.index))
}

/// The workers on which something is started: all that are set up, or those of the command.
fn chosen(job: &Job, all: Vec<Worker>, sets_up: bool) -> Result<Vec<Worker>, Error> {
    let wanted = job.execution().and_then(|execution| execution.workers.as_ref());
    let is_there = |wanted: &&u32| all.iter().any(|worker| worker.index == **wanted);
    if let Some(strange) = wanted.and_then(|wanted| wanted.iter().find(|wanted| !is_there(wanted)))
    {
        let has = tpu_core::text::counted(all.len(), "worker");
        return Err(Error::usage(format!("workers: {strange}, and {} has {has}", job.tpu))
            .hint("they are counted from 0; all of them: workers: all"));
    }
    Ok(all.into_iter().filter(|worker| sets_up || runs_on(job, worker)).collect())
}

/// Reads the script that it is given first, without a word of the command's, and becomes the command.
const BEHIND: &str = r#"f=$0; case $f in "~/"*) f=$HOME/${f#"~/"} ;; esac
if [ ! -r "$f" ]; then
    echo "tpu: $f, which is read before a job starts here, cannot be read" >&2
    echo "tpu: another one: tpu hosts set HOST --pyenv FILE" >&2
    exit 126
fi
begin() { . "$f"; }
begin
exec "$@""#;

/// What the launch left for the workers. Another machine has its own programs: what says where those of
/// this one are stays here.
fn work(ctx: &Ctx, job: &Job, is_elsewhere: bool) -> Work {
    let stays = |name: &OsString| variables::stays_here(&name.to_string_lossy());
    let mut env = environment::kept(ctx, &job.id()).unwrap_or_default();
    env.retain(|(name, _)| name != "TPU_WORKER" && !(is_elsewhere && stays(name)));
    // What is said of the job itself is meant where it runs.
    for (name, value) in job.variables() {
        environment::set(&mut env, name, value);
    }
    // The launcher has handed them to us, whom the command is given to carry on.
    let names = job.execution().map(|execution| execution.secrets.as_slice()).unwrap_or_default();
    let of_ours = |name: &String| Some((name.into(), ctx.env.var_os(name)?.to_owned()));
    let secrets = Secrets(names.iter().filter_map(of_ours).collect());
    let copy = job.stage_dir.as_deref().map(|copy| job.within(copy));
    let dir = copy.or(job.workplace().map(str::to_owned)).map(PathBuf::from);
    Work { argv: beside::work(ctx, &job.id()), env, secrets, dir }
}

/// What a program writes on a worker goes into a file there, from which it is heard again after a broken
/// connection; its environment says that a window shows it all the same.
fn tell_of_window(env: &mut Vec<(OsString, OsString)>, several: bool) {
    env.push(("FORCE_COLOR".into(), "1".into()));
    env.push(("TTY_COMPATIBLE".into(), "1".into()));
    if let Some(columns) = pty::columns() {
        let mark = if several { "[worker 10] ".len() } else { 0 };
        let columns = usize::from(columns).saturating_sub(mark).max(20);
        env.push(("COLUMNS".into(), columns.to_string().into()));
    }
}

/// Whether the workers themselves say that no process of the launch is left.
fn is_clear(door: &dyn Remote, workers: &[Worker], token: &LaunchToken) -> bool {
    door.probe(workers).into_iter().all(|(_, found)| {
        found.is_ok_and(|found| {
            found.iter().all(|running| running.token != *token || running.processes.is_empty())
        })
    })
}

/// What all listeners of a launch share: the control plane of its target, and the daemon.
struct Control<'a> {
    ctx: &'a Ctx,
    /// As it was when it began.
    job: &'a Job,
    /// Whether its machines are those that somebody registered, about which no control plane speaks.
    is_fixed: bool,
    /// When the daemon was last told of a broken connection.
    told: Mutex<Option<Duration>>,
    /// When the control plane was last asked, its answer, and the job as it was then.
    asked: Mutex<Option<(Duration, TargetFact, Job)>>,
}

impl Control<'_> {
    /// Lets the daemon ask the control plane at once; it may know why a worker is silent.
    fn tell(&self) {
        let now = self.ctx.clock.monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|last| now >= last + LAST_WAIT) {
            *told = Some(now);
            // Nobody may be there to hear it.
            drop(watch::ask_to_look(self.ctx));
        }
    }

    /// Whether a launch still is one that may start something.
    fn stands(&self, token: &LaunchToken) -> bool {
        let Ok(data) = self.ctx.data() else { return false };
        data.jobs().any(|job| {
            job.launch.as_ref().is_some_and(|launch| launch.token == *token)
                && job.status.is_live()
                && !job.is_being_killed()
        })
    }

    /// What is said in the window of a worker that does not answer. Where nobody but we could know why, the words are
    /// known for ours and are no sign of the job.
    fn words_of_silence(&self, worker: u32, reason: &str) -> String {
        let text = format!("worker {worker} does not answer: {reason}");
        if self.is_fixed {
            own_line(&self.job.id().to_string(), &text)
        } else {
            format!("tpu: {text}")
        }
    }

    /// Whether the control plane says that the machine of a worker is gone.
    fn has_switched_off(&self, worker: &Worker) -> bool {
        if self.is_fixed {
            return false;
        }
        let now = self.ctx.clock.monotonic();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.as_ref().is_none_or(|(at, ..)| now >= *at + ASKED_AT_MOST) {
            let Ok(data) = self.ctx.data() else { return false };
            // The daemon may have written down meanwhile on which machine it began.
            let job = job_of(&data, &self.job.id()).unwrap_or(self.job).clone();
            *asked = Some((
                now,
                ProviderFacts::ask_of(self.ctx, &data, &job.tpu).fact(&data, &job.tpu),
                job,
            ));
        }
        asked.as_ref().is_some_and(|(_, fact, job)| {
            doors::there_by(fact, job, vec![worker.clone()]).is_empty()
        })
    }
}

/// Hears one worker to the end, over as many connections as it takes.
struct Listener<'a> {
    ctx: &'a Ctx,
    control: &'a Control<'a>,
    door: &'a dyn Remote,
    worker: &'a Worker,
    work: &'a Work,
    token: &'a LaunchToken,
    /// What it sets up before, with the others.
    setting_up: Option<&'a SettingUp<'a>>,
    stopping: &'a AtomicBool,
    say: SyncSender<Line>,
    is_started: bool,
    /// What its command says, alone.
    log: Option<File>,
}

impl Listener<'_> {
    /// The exit code, [`LOST`] where it has ended and nobody knows how; `None` if nobody knows whether.
    fn listen(mut self) -> Option<i32> {
        let code = self.hear_out();
        if let Some(setting_up) = self.setting_up.filter(|_| !self.stopping.load(Ordering::Relaxed))
            && let Some(line) = setting_up.ended(self.worker.index, code)
        {
            self.line(line);
        }
        code
    }

    fn hear_out(&mut self) -> Option<i32> {
        let mut silent_since = None;
        let mut is_silent = false;
        let mut wait = FIRST_WAIT;
        let mut heard = BTreeMap::new();
        loop {
            // Who was silent answers before it is listened to: many programs say nothing, and a connection that holds
            // would not show it.
            let unanswered = if is_silent { self.unanswered() } else { None };
            if is_silent && unanswered.is_none() {
                silence::ends(&self.ctx.effects, self.token, self.worker.index);
                self.is_heard(true);
                is_silent = false;
            }
            let does_answer = unanswered.is_none();
            let reason = if let Some(reason) = unanswered.or_else(|| self.start_or_reason()) {
                reason
            } else {
                let before = (heard.clone(), self.ctx.clock.monotonic());
                let end = self.hear(&mut heard);
                let lasted = self.ctx.clock.monotonic().saturating_sub(before.1);
                // Many programs say nothing on most of their workers: a connection that held was one.
                if heard != before.0 || lasted >= LAST_WAIT {
                    (silent_since, wait) = (None, FIRST_WAIT);
                }
                match end {
                    End::Exit(code) => return Some(code),
                    End::Lost(reason) => reason,
                }
            };
            let now = self.ctx.clock.monotonic();
            let is_new = silent_since.is_none();
            let since = *silent_since.get_or_insert(now);
            let is_over = does_answer && self.is_over();
            let reason = if is_over {
                // It answers, and knows better than a connection that broke before.
                match self.hear(&mut heard) {
                    End::Exit(code) => return Some(code),
                    End::Lost(_) if !self.is_over() => continue,
                    End::Lost(reason) => reason,
                }
            } else {
                reason
            };
            if is_over
                || self.control.has_switched_off(self.worker)
                || self.stopping.load(Ordering::Relaxed)
                || now > since + PATIENCE && !self.control.is_fixed
            {
                self.note(&format!("connection to worker {} lost: {reason}", self.worker.index));
                if is_over && !self.stopping.load(Ordering::Relaxed) {
                    self.is_lost();
                }
                return is_over.then_some(LOST);
            }
            if !is_silent {
                // Of machines that a provider watches it is the provider who knows more. Written before anybody is
                // told: whoever looks then knows why the last words are ours.
                if self.control.is_fixed {
                    silence::begins(&self.ctx.effects, self.token, self.worker.index, &reason);
                }
                self.is_heard(false);
                is_silent = true;
            }
            if is_new {
                self.tell_of_silence(&reason);
                self.control.tell();
            }
            self.rest(wait);
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// Writes down that the command is gone from the worker without a word of how it ended: no exit code says so. What
    /// cannot be written is told by the code alone.
    fn is_lost(&self) {
        let why = format!(
            "all its processes on {} are gone: somebody has killed them, or the machine was started anew",
            self.worker.address
        );
        let cause = (ErrorKind::Lost, why.as_str());
        drop(beside::record_cause(&self.ctx.effects, &self.control.job.id(), self.token, cause));
    }

    /// Writes down whether the worker can be heard.
    fn is_heard(&self, is_heard: bool) {
        let id = self.control.job.id();
        beside::record_hearing(&self.ctx.effects, &id, self.worker.index, is_heard);
    }

    /// Says in the window that the worker does not answer.
    fn tell_of_silence(&self, reason: &str) {
        let line = self.control.words_of_silence(self.worker.index, reason);
        self.line(format!("{line}\n").into_bytes());
    }

    /// Why the worker cannot be reached, if it cannot, whatever runs there.
    fn unanswered(&self) -> Option<String> {
        let answer = self.door.probe(std::slice::from_ref(self.worker)).pop()?.1;
        answer.err().map(|error| error.to_string())
    }

    /// Hands on what the worker says over one connection, from where the last one ended.
    fn hear(&self, heard: &mut BTreeMap<u32, u64>) -> End {
        let mut end = End::Lost("it said nothing more".to_owned());
        let one = std::slice::from_ref(self.worker);
        for (worker, said) in self.door.follow(one, self.token, &heard.clone()) {
            match said {
                Output::Line { bytes, end } => {
                    heard.insert(worker, end);
                    let shown = if let Some(setting_up) = self.setting_up {
                        setting_up.hear(worker, bytes, |line| self.keep(line))
                    } else {
                        self.keep(&bytes);
                        Some(bytes)
                    };
                    if let Some(bytes) = shown {
                        self.line(bytes);
                    }
                }
                Output::End(how) => end = how,
            }
        }
        end
    }

    /// Starts the command unless it was; why it could not be.
    fn start_or_reason(&mut self) -> Option<String> {
        if self.is_started {
            return None;
        }
        if self.stopping.load(Ordering::Relaxed) || !self.control.stands(self.token) {
            return Some("it was not started there, and is to stop".to_owned());
        }
        let one = std::slice::from_ref(self.worker);
        let answer = self.door.start(one, self.work, self.token).pop()?.1;
        self.is_started = answer.is_ok();
        answer.err().map(|error| error.to_string())
    }

    /// Whether the worker itself says that nothing of the command is left, and not how it ended.
    fn is_over(&self) -> bool {
        let one = std::slice::from_ref(self.worker);
        let Some((_, Ok(found))) = self.door.probe(one).pop() else { return false };
        let ours = found.iter().find(|running| running.token == *self.token);
        self.is_started
            && ours.is_none_or(|running| running.exit.is_none() && running.processes.is_empty())
    }

    /// Waits, or until the command is to stop.
    fn rest(&self, wait: Duration) {
        rest(self.ctx, wait, self.stopping);
    }

    /// A log that cannot be written keeps nobody from hearing.
    fn keep(&self, line: &[u8]) {
        if let Some(mut log) = self.log.as_ref() {
            drop(log.write_all(line));
        }
    }

    fn note(&self, text: &str) {
        self.line(format!("tpu: {text}\n").into_bytes());
    }

    /// Nobody who prints is nobody who reads: the command goes on.
    fn line(&self, bytes: Vec<u8>) {
        drop(self.say.send(Line { worker: self.worker.index, bytes }));
    }
}

/// Waits, or until somebody says that it is enough.
fn rest(ctx: &Ctx, wait: Duration, enough: &AtomicBool) {
    let until = ctx.clock.monotonic() + wait;
    while ctx.clock.monotonic() < until && !enough.load(Ordering::Relaxed) {
        ctx.clock.sleep(POLL);
    }
}
