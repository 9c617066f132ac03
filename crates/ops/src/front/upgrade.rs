//! After an upgrade: what still runs another `tpu`, and the one command that starts it anew. Jobs are left as they are: a
//! launcher goes on to the end of its job, and calls this program where the one is gone that it called before.

use std::time::Duration;

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::version::VERSION;
use tpu_core::text::counted;
use tpu_engine::runner::window::launcher;
use tpu_system::sys::procs::{self, Signal};

use super::daemon_unit;
use super::doctor::{Finding, fine, warning};
use crate::act::service::{self, How, RunningDaemon};
use crate::base::another_tpu::{self, RESTART, RunsTpu, ServerNote};
use crate::base::records::may_be_at_work;
use crate::base::watch::{self, Hosting, Note};
use crate::{Ctx, Error, Kind};

/// How long a server may take until it answers again.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often we look.
const POLL: Duration = Duration::from_millis(20);

/// What was started anew.
#[derive(Debug)]
pub struct Upgraded {
    /// The daemon that runs now.
    pub daemon: RunningDaemon,
    /// The process of the one before, if one ran.
    pub before: Option<u32>,
    /// Servers that answer again.
    pub servers: Vec<ServerNote>,
    /// Jobs whose launchers call this program now.
    pub relinked: Vec<JobId>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Refuses to replace a daemon of a later version by this one, and to end one where no other may begin.
pub fn may_restart(ctx: &Ctx, running: Option<&Note>, how: &How) -> Result<(), Error> {
    let newer = running
        .filter(|note| another_tpu::compared(note.version.as_deref(), note.pid) == RunsTpu::Later);
    if let Some(why) = newer.and_then(another_tpu::of_daemon) {
        return Err(Error::refused(why)
            .hint("nothing was done; type the same with that tpu, or end it: tpu daemon stop"));
    }
    ctx.data()?;
    service::may_start(ctx, how)
}

/// Starts the daemon of this place anew, or for the first time, and the servers that this account has started.
pub fn restart(ctx: &Ctx, how: &How) -> Result<Upgraded, Error> {
    let running = watch::running(ctx);
    may_restart(ctx, running.as_ref(), how)?;
    let mut notes = Vec::new();
    let relinked = relink(ctx);
    let before = running.as_ref().map(|note| note.pid);
    let daemon = match &running {
        Some(Note { hosting: Hosting::Systemd, pid, .. }) => {
            notes.extend(daemon_unit::restart(ctx)?);
            next_daemon(ctx, *pid)?
        }
        Some(note) => {
            let daemon = replace(ctx, note, how)?;
            if note.hosting == Hosting::Foreground {
                notes.push(format!(
                    "it ran in a terminal; now it runs in the background: {}",
                    daemon.in_words(ctx)
                ));
            }
            daemon
        }
        None => service::start(ctx, how)?,
    };
    let mut servers = Vec::new();
    for note in another_tpu::servers(ctx) {
        if note.is_newer() {
            notes.extend(
                note.in_words().map(|(what, then)| format!("{what}, and continues: {then}")),
            );
            continue;
        }
        match start_anew(ctx, &note) {
            Ok(server) => servers.push(server),
            Err(error) => notes.push(format!("{}: {}", error.message, error.advice())),
        }
    }
    Ok(Upgraded { daemon, before, servers, relinked, notes })
}

/// Ends the daemon and starts another one. One that ends late is followed all the same, once it has let go of its lock.
fn replace(ctx: &Ctx, note: &Note, how: &How) -> Result<RunningDaemon, Error> {
    let is_late = || {
        Error::failed(format!("process {} was told to end and has not ended yet", note.pid)).hint(
            format!("type it again in a while: {RESTART}; `tpu daemon status` shows the daemon"),
        )
    };
    may_follow(service::stop(ctx), || watch::running(ctx).is_some(), is_late)?;
    let daemon = service::start(ctx, how)?;
    if daemon.pid == note.pid { Err(is_late()) } else { Ok(daemon) }
}

/// Refuses to start another daemon while the former one is there, whatever came of its end.
fn may_follow(
    stopped: Result<u32, Error>,
    runs: impl Fn() -> bool,
    is_late: impl Fn() -> Error,
) -> Result<(), Error> {
    match stopped {
        Err(error) if runs() => Err(if error.kind == Kind::Refused { error } else { is_late() }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The daemon that follows on the one of this process.
fn next_daemon(ctx: &Ctx, before: u32) -> Result<RunningDaemon, Error> {
    let deadline = ctx.clock.monotonic() + PATIENCE;
    loop {
        if let Some(note) = watch::running(ctx).filter(|note| note.pid != before) {
            let Note { pid, hosting, ends_idle, .. } = note;
            return Ok(RunningDaemon { pid, ran_before: false, hosting: Some(hosting), ends_idle });
        }
        if ctx.clock.monotonic() >= deadline {
            return Err(Error::failed("systemd has started no daemon yet").hint(
                "`systemctl --user status tpu-daemon` says why; `tpu daemon status` shows whether it runs",
            ));
        }
        ctx.clock.sleep(POLL);
    }
}

/// Has a server become this program. It keeps its process, its terminal and its address.
fn start_anew(ctx: &Ctx, note: &ServerNote) -> Result<ServerNote, Error> {
    let failed = |what: String| {
        Error::failed(what).hint("end it where it runs, with Ctrl-C, and start it again")
    };
    let told = ServerNote { next: Some(ctx.tpu.clone()), ..note.clone() };
    told.write(ctx)?;
    let process = note.process();
    let process = process.ok_or_else(|| failed(format!("the server {} is gone", note.pid)))?;
    procs::signal(&process, Signal::User2)
        .map_err(|e| failed(format!("the server {} cannot be told anything: {e}", note.pid)))?;
    let path = ctx.store.paths().server_note(note.pid);
    let deadline = ctx.clock.monotonic() + PATIENCE;
    while ctx.clock.monotonic() < deadline && procs::is_alive(process.pid, process.start) {
        let now = ServerNote::read(ctx, &path).filter(|now| now.next.is_none());
        if let Some(now) = now {
            return Ok(now);
        }
        ctx.clock.sleep(POLL);
    }
    Err(failed(format!("the server {} does not answer again", note.pid)))
}

/// Has the launchers of jobs that are at work here call this program, where the one is gone that they called.
fn relink(ctx: &Ctx) -> Vec<JobId> {
    let mut relinked = Vec::new();
    for id in at_work_here(ctx).into_iter().filter(|id| launcher::calls_nobody(&ctx.effects, id)) {
        match launcher::relink(&ctx.effects, &id) {
            Ok(()) => relinked.push(id),
            Err(error) => ctx.warn([format!("{id}: {}", Error::from(error).message)]),
        }
    }
    relinked
}

/// Jobs that this account runs in windows of this machine.
fn at_work_here(ctx: &Ctx) -> Vec<JobId> {
    let is_here = |job: &&Job| {
        let place = job.place.as_ref();
        (job.status.is_live() || may_be_at_work(job))
            && place.is_some_and(|at| at.host == ctx.env.hostname && at.uid == ctx.env.uid)
    };
    ctx.data().map_or(Vec::new(), |data| data.jobs().filter(is_here).map(Job::id).collect())
}

/// What `doctor` says of it.
pub fn look(ctx: &Ctx) -> Vec<Finding> {
    let daemon = watch::running(ctx);
    let daemon = daemon
        .as_ref()
        .and_then(|note| another_tpu::in_words("the daemon", note.version.as_deref(), note.pid));
    let servers = another_tpu::servers(ctx);
    let servers = servers.iter().filter_map(ServerNote::in_words);
    let processes = daemon.into_iter().chain(servers);
    let mut findings: Vec<Finding> = processes.map(|(what, then)| warning(what, then)).collect();
    let jobs = at_work_here(ctx);
    findings.extend(jobs.iter().filter(|id| launcher::calls_nobody(&ctx.effects, id)).map(|id| {
        let what = format!("the launcher of {id} calls a tpu that is gone: its end is not told");
        warning(what, RESTART)
    }));
    let is_other = |id: &&JobId| launcher::is_of_another_program(&ctx.effects, id) == Some(true);
    let others = jobs.iter().filter(is_other).count();
    if others > 0 {
        findings.push(fine(format!(
            "{} with the launcher of another tpu than {VERSION}, until they end",
            counted(others, "running job")
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_late_is_followed_once_it_is_gone() {
        let follow = |stopped: Result<u32, Error>, runs: bool| {
            let followed = may_follow(stopped, || runs, || Error::failed("late"));
            followed.map_err(|error| error.message)
        };
        let (refused, failed) =
            (|| Err(Error::refused("no right")), || Err(Error::failed("lives")));
        assert_eq!(follow(Ok(7), false), Ok(()));
        assert_eq!(follow(failed(), false), Ok(()), "it has ended behind the deadline");
        assert_eq!(follow(refused(), false), Ok(()), "it was gone before");
        assert_eq!(follow(failed(), true), Err("late".to_owned()));
        assert_eq!(follow(refused(), true), Err("no right".to_owned()));
    }
}
