//! What people ask of the workers of a target: a command, a shell, an end of what is left there, files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, LaunchToken, TargetName};
use tpu_core::model::job::Job;
use tpu_engine::kinds::Door;
use tpu_system::remote::{Ask, End, Other, Remote, Reply, Stopped, Worker};
use tpu_system::sys::proc::{self, Feed, Spawn};

use crate::observe::fleet::AskedOnce;
use crate::observe::{doors, snapshot};
use crate::{Ctx, Error};

/// Which workers of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// This one.
    One(u32),
}

impl Which {
    /// Reads `all` or the index of a worker.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "all" => Ok(Self::All),
            text => text.parse().map(Self::One).map_err(|_| {
                Error::usage(format!("'{text}' is no worker")).hint("a number from 0, or `all`")
            }),
        }
    }
}

/// A line that a worker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// On its standard output.
    Out(Vec<u8>),
    /// On its standard error.
    Err(Vec<u8>),
}

/// How a command ended on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The worker.
    pub worker: u32,
    /// Its address.
    pub address: String,
    /// Its exit code, or why nobody knows.
    pub code: Result<i32, String>,
}

/// The workers that are meant, and the door to them.
fn chosen(ctx: &Ctx, name: &TargetName, which: Which) -> Result<(Vec<Worker>, Door), Error> {
    let data = ctx.data()?;
    let asked = AskedOnce::new(ctx, &data, name);
    let mut workers = doors::workers(ctx, &asked)?;
    let count = workers.len();
    if let Which::One(index) = which {
        workers.retain(|worker| worker.index == index);
    }
    if workers.is_empty() {
        return Err(Error::not_found(format!("{name} has no such worker"))
            .hint(format!("it has {count}, from 0 to {}", count.saturating_sub(1))));
    }
    Ok((workers, doors::to(ctx, &asked)?))
}

/// How many workers are meant.
pub fn count(ctx: &Ctx, name: &TargetName, which: Which) -> Result<usize, Error> {
    chosen(ctx, name, which).map(|(workers, _)| workers.len())
}

/// Runs a shell command on workers, side by side, and says what they say. It is sent to each once.
pub fn ask(
    ctx: &Ctx,
    name: &TargetName,
    which: Which,
    command: &str,
    hear: &mut dyn FnMut(u32, Spoken),
) -> Result<Vec<Ended>, Error> {
    let (workers, door) = chosen(ctx, name, which)?;
    let ask = Ask { command: command.to_owned(), ..Ask::default() };
    Ok(hear_all(&*door.remote, &workers, &ask, &mut |worker, said| {
        hear(worker, said);
        ControlFlow::Continue(())
    }))
}

/// Runs a script of ours on all workers, side by side, which reads `input`; how each ended, and what it printed.
pub(crate) fn answers(
    ctx: &Ctx,
    name: &TargetName,
    script: &str,
    input: Vec<u8>,
) -> Result<Vec<(Ended, String)>, Error> {
    let (workers, door) = chosen(ctx, name, Which::All)?;
    let ask = Ask { command: script.to_owned(), input: Some(input.into()), is_ours: false };
    let mut said: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let ended = hear_all(&*door.remote, &workers, &ask, &mut |worker, spoken| {
        if let Spoken::Out(line) = spoken {
            said.entry(worker).or_default().extend(line);
        }
        ControlFlow::Continue(())
    });
    let with_text = |ended: Ended| {
        let said = said.remove(&ended.worker).unwrap_or_default();
        (ended, String::from_utf8_lossy(&said).into_owned())
    };
    Ok(ended.into_iter().map(with_text).collect())
}

/// Until `hear` has heard enough: what still runs there is ended then.
fn hear_all(
    door: &dyn Remote,
    workers: &[Worker],
    ask: &Ask,
    hear: &mut dyn FnMut(u32, Spoken) -> ControlFlow<()>,
) -> Vec<Ended> {
    let mut ends: BTreeMap<u32, Result<i32, String>> = BTreeMap::new();
    for (worker, reply) in door.ask(workers, ask) {
        let heard = match reply {
            Reply::Out(line) => hear(worker, Spoken::Out(line)),
            Reply::Err(line) => hear(worker, Spoken::Err(line)),
            Reply::End(end) => {
                let code = match end {
                    End::Exit(code) => Ok(code),
                    End::Lost(why) => Err(why),
                };
                ends.insert(worker, code);
                ControlFlow::Continue(())
            }
        };
        if heard.is_break() {
            break;
        }
    }
    let ended = |worker: &Worker| Ended {
        worker: worker.index,
        address: worker.address.clone(),
        code: ends.remove(&worker.index).unwrap_or_else(|| Err("it said no end".to_owned())),
    };
    workers.iter().map(ended).collect()
}

/// The program for a person who wants to type on a worker.
pub fn terminal(
    ctx: &Ctx,
    name: &TargetName,
    worker: u32,
    command: Option<&str>,
) -> Result<Spawn, Error> {
    let (workers, door) = chosen(ctx, name, Which::One(worker))?;
    let program = workers.first().and_then(|worker| door.remote.terminal(worker, command));
    program.ok_or_else(|| Error::unreachable(format!("worker {worker} of {name} is not there")))
}

/// What is to be ended on a target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purge {
    /// Also where live jobs are at work.
    pub force: bool,
    /// Also what is not ours.
    pub strangers: bool,
}

/// A process of somebody else on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// The worker.
    pub worker: u32,
    /// The process.
    pub process: Other,
}

/// What was found on a target, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Launches of ours that were stopped, with how many processes.
    pub stopped: BTreeMap<LaunchToken, usize>,
    /// Processes of others: those that were not touched.
    pub strangers: Vec<Stranger>,
    /// Processes of others that were ended.
    pub ended: usize,
    /// Workers about which nobody knows, and why.
    pub unknown: Vec<(u32, String)>,
}

/// Processes of others on the workers of a target.
pub fn strangers(ctx: &Ctx, name: &TargetName) -> Result<Vec<Stranger>, Error> {
    let (workers, door) = chosen(ctx, name, Which::All)?;
    Ok(found_strangers(ctx, &workers, &*door.remote, &mut Vec::new()))
}

fn found_strangers(
    ctx: &Ctx,
    workers: &[Worker],
    door: &dyn Remote,
    unknown: &mut Vec<(u32, String)>,
) -> Vec<Stranger> {
    let mut found = Vec::new();
    for (worker, others) in door.others(workers, &ctx.provider_settings().worker_devices) {
        match others {
            Ok(others) => {
                found.extend(others.into_iter().map(|process| Stranger { worker, process }));
            }
            Err(error) => unknown.push((worker, error.to_string())),
        }
    }
    found
}

/// Ends what commands of ours have left on the workers of a target; of others only what was named.
pub fn sweep(ctx: &Ctx, name: &TargetName, how: Purge, named: &[Stranger]) -> Result<Swept, Error> {
    let data = ctx.data()?;
    if !how.force {
        at_work(ctx, &data, name)?;
    }
    let (workers, door) = chosen(ctx, name, Which::All)?;
    let door = &*door.remote;
    let mut swept = Swept::default();
    let mut tokens = BTreeSet::new();
    let mut reached = Vec::new();
    for ((index, probe), worker) in door.probe(&workers).into_iter().zip(&workers) {
        match probe {
            Ok(runs) => {
                reached.push(worker.clone());
                let live = runs.into_iter().filter(|run| !run.processes.is_empty());
                tokens.extend(live.map(|run| run.token));
            }
            Err(error) => swept.unknown.push((index, error.to_string())),
        }
    }
    for token in tokens {
        // Looking has taken its time: meanwhile somebody may have started it, also under another name.
        let is_at_work = |job: &Job| {
            job.status.is_live() && job.launch.as_ref().is_some_and(|of| of.token == token)
        };
        if !how.force && ctx.data()?.jobs().any(is_at_work) {
            continue;
        }
        for (worker, answer) in door.stop(&reached, &token) {
            match answer {
                Ok(Stopped::Ended(count)) => {
                    *swept.stopped.entry(token.clone()).or_default() += count;
                }
                Ok(Stopped::NotRunning) => {}
                Err(error) => swept.unknown.push((worker, error.to_string())),
            }
        }
    }
    if how.strangers {
        for worker in &reached {
            let here = named.iter().filter(|stranger| stranger.worker == worker.index);
            let here: Vec<Other> = here.map(|stranger| stranger.process.clone()).collect();
            if here.is_empty() {
                continue;
            }
            match door.end(worker, &here) {
                Ok(count) => swept.ended += count,
                Err(error) => swept.unknown.push((worker.index, error.to_string())),
            }
        }
    }
    swept.strangers = found_strangers(ctx, &reached, door, &mut swept.unknown);
    Ok(swept)
}

/// What [`sweep`] would be refused for, if for anything. Nobody there is asked.
pub fn may_sweep(ctx: &Ctx, name: &TargetName, how: Purge) -> Result<(), Error> {
    if !how.force {
        at_work(ctx, &*ctx.data()?, name)?;
    }
    count(ctx, name, Which::All).map(drop)
}

/// A live job is ended by `kill`, which its record learns of.
fn at_work(ctx: &Ctx, data: &Data, name: &TargetName) -> Result<(), Error> {
    let live: Vec<JobId> = snapshot::users_of_target(ctx, data, name).live;
    match live.first() {
        None => Ok(()),
        Some(job) => Err(Error::refused(format!("{job} is at work on {name}")).hint(format!(
            "end it with its record: tpu kill w={} {}; or use --force",
            job.window, job.user
        ))),
    }
}

/// A path on workers.
#[derive(Clone, Debug)]
pub struct Far<'a> {
    /// Whose workers.
    pub target: &'a TargetName,
    /// Which.
    pub which: Which,
    /// The path there; `~/` is the account's home.
    pub path: &'a str,
}

/// How long this machine may pack or unpack.
const PACKING: Duration = Duration::from_secs(86_400);

/// Copies a file or a directory of this machine into a directory on workers.
pub fn send(ctx: &Ctx, from: &str, to: &Far<'_>) -> Result<Vec<Ended>, Error> {
    let path = ctx.env.cwd.join(from);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::usage(format!("'{from}' names no file")));
    };
    let (workers, door) = chosen(ctx, to.target, to.which)?;
    let far = there(to.path)?;
    let packed = pack(ctx, from, &[OsStr::new("-C"), dir.as_os_str(), OsStr::new("--"), name])?;
    let ask = Ask {
        command: format!("mkdir -p -- {far} && tar -xf - -C {far}"),
        input: Some(Feed::File(packed)),
        ..Ask::default()
    };
    Ok(hear_all(&*door.remote, &workers, &ask, &mut |_, _| ControlFlow::Continue(())))
}

/// Packs what these words of tar name. It is kept in a file: no copy is too large for our memory, and each
/// worker gets the same.
pub fn pack(ctx: &Ctx, what: &str, words: &[&OsStr]) -> Result<Arc<File>, Error> {
    let packed = kept(ctx)?;
    // It has no name, and tar writes what it packs to a name.
    let there = format!("/proc/{}/fd/{}", ctx.env.pid, packed.as_raw_fd());
    let tar = Spawn::new("tar").arg("-cf").arg(there).args(words).timeout(PACKING).own_group();
    let done = proc::run(&tar).map_err(|e| Error::failed(format!("cannot pack {what}: {e}")))?;
    if !done.status.success() {
        return Err(Error::failed(format!("cannot pack {what}: {}", done.complaint())));
    }
    Ok(Arc::new(packed))
}

/// A file on our disk without a name: nothing of it is left when we end, however we end.
fn kept(ctx: &Ctx) -> Result<File, Error> {
    let dir = ctx.store.state_dir()?;
    tempfile::tempfile_in(&dir)
        .map_err(|e| Error::state(format!("cannot make a file in {}: {e}", dir.display())))
}

/// Copies a file or a directory of workers into a directory of this machine; with several workers, into
/// `worker-N` below it.
pub fn fetch(ctx: &Ctx, from: &Far<'_>, to: &str) -> Result<Vec<Ended>, Error> {
    let (workers, door) = chosen(ctx, from.target, from.which)?;
    let path = there(from.path)?;
    let command =
        format!("cd -- \"$(dirname -- {path})\" && tar -cf - -- \"$(basename -- {path})\"");
    let ask = Ask { command, ..Ask::default() };
    let mut ended = Vec::new();
    for worker in &workers {
        let one = std::slice::from_ref(worker);
        let mut packed = kept(ctx)?;
        let mut written = Ok(());
        let mut why = String::new();
        let ends = hear_all(&*door.remote, one, &ask, &mut |_, said| {
            match said {
                Spoken::Out(line) => written = packed.write_all(&line),
                Spoken::Err(line) => String::from_utf8_lossy(&line).trim().clone_into(&mut why),
            }
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        written.map_err(|e| {
            let dir = ctx.store.paths().state();
            Error::state(format!("cannot keep the copy in {}: {e}", dir.display()))
        })?;
        let packed = Arc::new(packed);
        for mut end in ends {
            if end.code == Ok(0) {
                let mut dir = ctx.env.cwd.join(to);
                if workers.len() > 1 {
                    dir.push(format!("worker-{}", worker.index));
                }
                unpack(Arc::clone(&packed), &dir)?;
            } else if let (Ok(code), false) = (&end.code, why.is_empty()) {
                end.code = Err(format!("{why} (exit code {code})"));
            }
            ended.push(end);
        }
    }
    Ok(ended)
}

fn unpack(packed: Arc<File>, dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir)
        .map_err(|e| Error::state(format!("cannot create {}: {e}", dir.display())))?;
    let tar = Spawn::new("tar").args(["-xf", "-"]).stdin(Feed::File(packed));
    let tar = tar.arg("-C").arg(dir).timeout(PACKING).own_group();
    let why = match proc::run(&tar) {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => done.complaint(),
        Err(error) => error.to_string(),
    };
    Err(Error::state(format!("cannot unpack into {}: {why}", dir.display())))
}

/// A path for a shell there; only a `~/` at its beginning is the shell's.
fn there(path: &str) -> Result<String, Error> {
    let quoted = |path: &str| {
        let quoted = shlex::try_quote(path).map(std::borrow::Cow::into_owned);
        quoted.map_err(|_| Error::usage("a path cannot hold a NUL"))
    };
    match path.strip_prefix("~/") {
        Some("") => Ok("~/".to_owned()),
        Some(below) => Ok(format!("~/{}", quoted(below)?)),
        None => quoted(path),
    }
}
