//! The workers of a target that is not this machine: the way to them, a job's command on all of them, and
//! its end. **The one place where a kind of target becomes a door to its workers.**
//!
//! [`attend`] is what runs in the window of such a job: it starts the command on every worker, once for
//! the launch's token, prints what they say, and ends with the highest of their exit codes. A broken
//! connection is no end: the command is looked for by its token until it is found again, and is never
//! started a second time. [`stop`] ends exactly what carries the token.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState};
use crate::model::ids::{JobId, LaunchToken, TargetName};
use crate::model::job::Job;
use crate::model::settings::CloudKind;
use crate::remote::local::LocalRemote;
use crate::remote::{End, Remote, RemoteError, Said, Stopped, Work, Worker};
use crate::store::atomic;

use super::ctx::job_of;
use super::fleet::Fleet;
use super::{Ctx, Error, callbacks, records, watch};

/// The file beside the launcher that holds the command of the workers, each word ending in NUL.
pub const WORK: &str = "work";

/// The file beside the launcher that holds the addresses of the workers on which the command may live, each
/// ending in NUL; gone once it is known to have ended on all of them.
const WORKERS: &str = "workers";

/// Exit code of a worker that was lost, as that of a broken ssh.
const LOST: i32 = 255;

/// A worker that cannot be reached for so long is lost.
const PATIENCE: Duration = Duration::from_secs(600);

/// Between two looks for a worker: the first, doubling to the last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LAST_WAIT: Duration = Duration::from_secs(10);

/// How often a wish to stop is looked for.
const POLL: Duration = Duration::from_millis(50);

/// Lines that wait to be printed; the workers wait as well when there are more.
const IN_FLIGHT: usize = 1024;

/// The door to the workers of the targets that this process's control plane has.
fn door(ctx: &Ctx) -> Option<Box<dyn Remote>> {
    match ctx.cloud().kind() {
        CloudKind::Sim => Some(Box::new(LocalRemote::new(Arc::clone(&ctx.clock)))),
        CloudKind::None | CloudKind::Google => None,
    }
}

/// The workers of a target, as its control plane names them now.
pub fn of_target(ctx: &Ctx, data: &Data, name: &TargetName) -> Result<Vec<Worker>, Error> {
    if door(ctx).is_none() {
        return Err(Error::refused(format!(
            "no way to the workers of {name} is known, so a command cannot be run there"
        ))
        .hint(
            "use a directory with a staging.sh, which brings its own way, or the target `local`",
        ));
    }
    let fact = Fleet::ask(ctx).fact(data, name);
    if fact.endpoints.is_empty() {
        return Err(Error::unreachable(format!("{name} has no workers: it is {}", fact.raw_state))
            .hint(format!("`tpu check-status {name}` shows how it is")));
    }
    Ok(Worker::all(&fact.endpoints))
}

/// The workers on which the command of a job may live.
pub fn of_job(ctx: &Ctx, job: &Job) -> Vec<Worker> {
    let bytes = records::launcher_file(ctx, &job.id(), WORKERS).unwrap_or_default();
    let addresses: Vec<String> =
        words(&bytes).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Worker::all(&addresses)
}

/// Stops the command of a job on its workers, and says how many processes got a signal. Workers whose
/// machines are gone by the control plane's word have nothing to be stopped; one that cannot be reached
/// makes it fail.
pub fn stop(ctx: &Ctx, job: &Job) -> Result<usize, Error> {
    let recorded = of_job(ctx, job);
    let (Some(launch), false) = (&job.launch, recorded.is_empty()) else { return Ok(0) };
    let fact = Fleet::ask(ctx).fact(&*ctx.data()?, &job.tpu);
    let there = still_there(&fact, recorded);
    let mut signalled = 0;
    if !there.is_empty() {
        let door = door(ctx).ok_or_else(|| {
            Error::unreachable(format!(
                "the workers of {} cannot be reached without its cloud",
                job.tpu
            ))
            .hint("name the cloud that the job was started with: --cloud, or TPU_CLOUD")
        })?;
        let answers = door.stop(&there, &launch.token);
        let failed: Vec<String> = answers
            .iter()
            .filter_map(|(_, answer)| answer.as_ref().err().map(RemoteError::to_string))
            .collect();
        if !failed.is_empty() {
            return Err(Error::unreachable(format!("{}: {}", job.id(), failed.join("; ")))
                .hint("it may still run there; repeat the command, or let MONITOR do so"));
        }
        signalled = answers
            .into_iter()
            .map(|(_, answer)| if let Ok(Stopped::Ended(count)) = answer { count } else { 0 })
            .sum();
    }
    forget(ctx, &job.id());
    Ok(signalled)
}

/// The workers of a launch whose machines may still be there, by the control plane's word.
fn still_there(fact: &TargetFact, mut workers: Vec<Worker>) -> Vec<Worker> {
    match fact.state {
        TargetState::Preempted | TargetState::Gone | TargetState::Stopped => workers.clear(),
        TargetState::Ready | TargetState::Pending | TargetState::Deleting
            if !fact.endpoints.is_empty() =>
        {
            workers.retain(|worker| fact.endpoints.contains(&worker.address));
        }
        _ => {}
    }
    workers
}

/// Nothing is left on the workers. What cannot be removed is only looked at once more.
fn forget(ctx: &Ctx, id: &JobId) {
    drop(ctx.store.disk().remove(&ctx.store.paths().job(id).join(WORKERS)));
}

/// Runs the command of a launch on every worker of its target, and prints what they say. Returns the
/// highest exit code. `stop` ends the command.
pub fn attend(
    ctx: &Ctx,
    token: &LaunchToken,
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<i32, Error> {
    let id = callbacks::launched(ctx, token)?;
    let data = ctx.data()?;
    let job = job_of(&data, &id)?;
    let mut workers = of_job(ctx, job);
    if workers.is_empty() {
        workers = of_target(ctx, &data, &job.tpu)?;
        record(ctx, &id, &workers)?;
    }
    let door = door(ctx).ok_or_else(|| {
        Error::refused(format!("the workers of {} need the cloud they were started with", job.tpu))
            .hint("name it: --cloud, or TPU_CLOUD")
    })?;
    let work = work(ctx, job);
    fail::fail_point!("workers-recorded");
    let started: BTreeMap<u32, Option<RemoteError>> = door
        .start(&workers, &work, token)
        .into_iter()
        .map(|(worker, result)| (worker, result.err()))
        .collect();
    let (say, heard) = sync_channel(IN_FLIGHT);
    let over = AtomicBool::new(false);
    let code = std::thread::scope(|scope| {
        let listeners: Vec<_> = workers
            .iter()
            .map(|worker| {
                let listener = Listener {
                    ctx,
                    door: &*door,
                    worker,
                    work: &work,
                    token,
                    target: &job.tpu,
                    stop,
                    say: say.clone(),
                    is_started: started.get(&worker.index).is_none_or(Option::is_none),
                };
                scope.spawn(move || listener.listen())
            })
            .collect();
        drop(say);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    // Those that cannot be reached are said by their listeners.
                    drop(door.stop(&workers, token));
                    return;
                }
                ctx.clock.sleep(POLL);
            }
        });
        print(&heard, out, workers.len() > 1);
        over.store(true, Ordering::Relaxed);
        let ends: Vec<Option<i32>> =
            listeners.into_iter().map(|thread| thread.join().unwrap_or(None)).collect();
        if ends.iter().all(Option::is_some) {
            forget(ctx, &id);
        }
        ends.into_iter().map(|end| end.unwrap_or(LOST)).max().unwrap_or(0)
    });
    Ok(code)
}

/// Writes down where the command may live, before it does.
fn record(ctx: &Ctx, id: &JobId, workers: &[Worker]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for worker in workers {
        bytes.extend_from_slice(worker.address.as_bytes());
        bytes.push(0);
    }
    let path = ctx.store.paths().job(id).join(WORKERS);
    Ok(atomic::write_file(&**ctx.store.disk(), &path, &bytes, 0o600)?)
}

/// What the launch left for the workers.
fn work(ctx: &Ctx, job: &Job) -> Work {
    let file = |name: &str| records::launcher_file(ctx, &job.id(), name).unwrap_or_default();
    let (argv, env) = (file(WORK), file("env"));
    let env = words(&env).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at_checked(at)?;
        Some((os(name), os(value.get(1..)?)))
    });
    Work {
        argv: words(&argv).map(os).collect(),
        env: env.filter(|(name, _)| name != "TPU_WORKER").collect(),
        dir: job.stage_dir.as_ref().map(PathBuf::from),
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0");
    whole.into_iter().flat_map(|bytes| bytes.split(|byte| *byte == 0))
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// What is to be printed: a line with its end, and whose it is.
struct Line {
    worker: u32,
    bytes: Vec<u8>,
}

/// Hears one worker to the end, over as many connections as it takes.
struct Listener<'a> {
    ctx: &'a Ctx,
    door: &'a dyn Remote,
    worker: &'a Worker,
    work: &'a Work,
    token: &'a LaunchToken,
    target: &'a TargetName,
    stop: &'a AtomicBool,
    say: SyncSender<Line>,
    is_started: bool,
}

impl Listener<'_> {
    /// The exit code; `None` if nobody knows how the command ended there, or whether it has.
    fn listen(mut self) -> Option<i32> {
        let mut silent_since = None;
        let mut wait = FIRST_WAIT;
        let mut heard = BTreeMap::new();
        loop {
            let reason = if let Some(reason) = self.start_or_reason() {
                reason
            } else {
                let before = heard.clone();
                let end = self.hear(&mut heard);
                if heard != before {
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
            if self.is_over()
                || self.is_switched_off()
                || self.stop.load(Ordering::Relaxed)
                || now > since + PATIENCE
            {
                self.note(&format!("connection to worker {} lost: {reason}", self.worker.index));
                return None;
            }
            if is_new {
                self.note(&format!("worker {} does not answer: {reason}", self.worker.index));
                // Its control plane may know why; it is asked at once.
                drop(watch::ack(self.ctx));
            }
            self.rest(wait);
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// Hands on what the worker says over one connection, from where the last one ended.
    fn hear(&self, heard: &mut BTreeMap<u32, u64>) -> End {
        let mut end = End::Lost("it said nothing more".to_owned());
        let one = std::slice::from_ref(self.worker);
        for (worker, said) in self.door.follow(one, self.token, &heard.clone()) {
            match said {
                Said::Line { bytes, end } => {
                    heard.insert(worker, end);
                    self.line(bytes);
                }
                Said::End(how) => end = how,
            }
        }
        end
    }

    /// Starts the command unless it was; why it could not be.
    fn start_or_reason(&mut self) -> Option<String> {
        if self.is_started {
            return None;
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

    /// Whether its control plane says that the machine is gone.
    fn is_switched_off(&self) -> bool {
        self.ctx.data().is_ok_and(|data| {
            let fact = Fleet::ask(self.ctx).fact(&data, self.target);
            still_there(&fact, vec![self.worker.clone()]).is_empty()
        })
    }

    /// Waits, or until the command is to stop.
    fn rest(&self, wait: Duration) {
        let until = self.ctx.clock.monotonic() + wait;
        while self.ctx.clock.monotonic() < until && !self.stop.load(Ordering::Relaxed) {
            self.ctx.clock.sleep(POLL);
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

/// Prints what is heard until everybody has ended; with several workers each line says whose it is.
fn print(heard: &Receiver<Line>, out: &mut dyn Write, several: bool) {
    let mut open_line: Option<u32> = None;
    for Line { worker, bytes } in heard {
        // A line that is to be written over belongs to its worker alone.
        if open_line.is_some_and(|other| other != worker) {
            drop(out.write_all(b"\n"));
        }
        if several {
            drop(write!(out, "[worker {worker}] "));
        }
        drop(out.write_all(&bytes).and_then(|()| out.flush()));
        open_line = (several && bytes.last() != Some(&b'\n')).then_some(worker);
    }
}
