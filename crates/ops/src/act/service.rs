//! Starts a daemon in the background, and ends the one that runs. It gets a window of a tmux session of its own; without
//! tmux it is a process without a terminal.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::variables;
use tpu_engine::runner::window::HISTORY;
use tpu_system::store::disk::{Disk as _, OsDisk};
use tpu_system::sys::proc::{self, Spawn};
use tpu_system::sys::procs;
use tpu_system::tmux::TmuxError;

use crate::base::watch::{self, Hosting, Note};
use crate::base::{environment, original};
use crate::observe::panes;
use crate::{Ctx, Error};

/// The session in which it runs.
pub const SESSION: &str = "tpu-daemon";

/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long is waited for the first turn of one that runs: `status` tells of it from then on. It may be long, where a
/// control plane is slow.
const FIRST_TURN: Duration = Duration::from_secs(5);

/// How often we look.
const POLL: Duration = Duration::from_millis(20);

/// How many of these looks are at the lock alone, before it is asked whether the process still lives.
const LOOKS_AT_LOCK: u32 = 10;

/// What a daemon is started with.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The global flags that it is to have.
    pub flags: Vec<String>,
    /// The words by which it answers over HTTP as well, if it is to.
    pub serving: Option<Vec<String>>,
    /// Whether it acts also while the original's monitor does.
    pub beside_original: bool,
    /// Whether it ends by itself after an hour without anything to do.
    pub ends_idle: bool,
}

/// A daemon that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningDaemon {
    /// Its process.
    pub pid: u32,
    /// Whether it ran before.
    pub ran_before: bool,
    /// How it runs; not known of one that has not turned yet and was started by somebody else.
    pub hosting: Option<Hosting>,
    /// Whether it ends by itself after an hour without anything to do.
    pub ends_idle: bool,
}

impl RunningDaemon {
    fn before(pid: u32, note: Option<&Note>) -> Self {
        Self {
            pid,
            ran_before: true,
            hosting: note.map(|note| note.hosting),
            ends_idle: note.is_some_and(|note| note.ends_idle),
        }
    }

    /// The daemon, and where its output is to be seen.
    pub fn in_words(&self, ctx: &Ctx) -> String {
        let place = self.hosting.map(|hosting| format!(", {}", hosted(ctx, hosting)));
        format!("process {}{}", self.pid, place.unwrap_or_default())
    }
}

/// How a daemon runs, in words.
pub fn hosted(ctx: &Ctx, hosting: Hosting) -> String {
    match hosting {
        Hosting::Foreground => "by hand, in the foreground".to_owned(),
        Hosting::Tmux => format!("tmux session {SESSION}"),
        Hosting::Detached => {
            let log = ctx.store.paths().daemon_output(&watch::place(ctx));
            format!("without a terminal; it prints to {}", log.display())
        }
        Hosting::Systemd => "a systemd unit of this account".to_owned(),
    }
}

/// Starts the daemon in the background, and waits until it holds its lock or has failed. One that runs already is the
/// answer, too; but not where another one was asked for, which answers over HTTP.
pub fn start(ctx: &Ctx, how: &How) -> Result<RunningDaemon, Error> {
    ctx.data()?;
    let runs = begin(ctx, how, None)?;
    let Some(mut runs) = runs else {
        return Err(Error::failed("the daemon did not start").hint("`tpu daemon run` shows why"));
    };
    if runs.ran_before && how.serving.is_some() {
        is_free(ctx)?;
    }
    let deadline = ctx.clock.monotonic() + FIRST_TURN;
    while ctx.clock.monotonic() < deadline {
        if let Some(note) = watch::running(ctx) {
            runs.hosting = Some(note.hosting);
            break;
        }
        ctx.clock.sleep(POLL);
    }
    Ok(runs)
}

/// Starts the daemon, and waits at most so long until it holds its lock. `None` if it has not done so by then and has not
/// ended either.
pub fn start_within(
    ctx: &Ctx,
    how: &How,
    patience: Duration,
) -> Result<Option<RunningDaemon>, Error> {
    begin(ctx, how, Some(patience))
}

fn begin(ctx: &Ctx, how: &How, patience: Option<Duration>) -> Result<Option<RunningDaemon>, Error> {
    // Of several who start one at once, each would open a window.
    ctx.store.starting_monitor(&watch::place(ctx), || begin_alone(ctx, how, patience))?
}

/// Refuses where a daemon runs at this place.
pub fn is_free(ctx: &Ctx) -> Result<(), Error> {
    match watch::running(ctx) {
        Some(note) => Err(Error::refused(format!("the daemon runs already: process {}", note.pid))
            .hint("`tpu daemon status` shows how it is, `tpu daemon stop` ends it")),
        None => Ok(()),
    }
}

/// Refuses where one that acts may not begin.
pub fn may_start(ctx: &Ctx, how: &How) -> Result<(), Error> {
    if how.beside_original || original::is_insisted(ctx) {
        return Ok(());
    }
    original::may_act_beside(ctx, &*ctx.data()?)
}

/// A daemon that was started and has not begun yet.
enum Started {
    Window(LaunchToken),
    Process(Child),
}

impl Started {
    fn hosting(&self) -> Hosting {
        match self {
            Self::Window(_) => Hosting::Tmux,
            Self::Process(_) => Hosting::Detached,
        }
    }

    /// Whether it has ended.
    fn has_ended(&mut self, ctx: &Ctx) -> bool {
        match self {
            Self::Window(launch) => match ctx.tmux.look() {
                TmuxFact::Up { panes, .. } => {
                    let is_it = |pane: &&PaneFact| pane.launch.as_ref() == Some(&*launch);
                    panes.iter().find(is_it).is_none_or(|pane| pane.dead)
                }
                TmuxFact::Down { .. } => true,
                TmuxFact::Unknown { .. } => false,
            },
            Self::Process(child) => !matches!(child.try_wait(), Ok(None)),
        }
    }
}

fn begin_alone(
    ctx: &Ctx,
    how: &How,
    patience: Option<Duration>,
) -> Result<Option<RunningDaemon>, Error> {
    if let Some(pid) = stays(ctx)? {
        return Ok(Some(RunningDaemon::before(pid, watch::running(ctx).as_ref())));
    }
    may_start(ctx, how)?;
    drop(ctx.store.disk().remove(&failure_path(ctx)));
    let mut started = open(ctx, how)?;
    let deadline = patience.map(|patience| ctx.clock.monotonic() + patience);
    let mut looks = 0_u32;
    loop {
        // In this order: one that ends behind the question has left its words.
        let has_ended = looks % LOOKS_AT_LOCK == LOOKS_AT_LOCK - 1 && started.has_ended(ctx);
        if let Some(pid) = watch::begun(ctx)? {
            let (hosting, ends_idle) = (Some(started.hosting()), how.ends_idle);
            return Ok(Some(RunningDaemon { pid, ran_before: false, hosting, ends_idle }));
        }
        if has_ended {
            return Err(why_ended(ctx, how));
        }
        if deadline.is_some_and(|deadline| ctx.clock.monotonic() >= deadline) {
            return Ok(None);
        }
        looks += 1;
        ctx.clock.sleep(POLL);
    }
}

/// The process of a daemon that stays. One that is beginning or ending holds its lock without a note, and is waited for.
fn stays(ctx: &Ctx) -> Result<Option<u32>, Error> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let deadline = ctx.clock.monotonic() + PATIENCE;
    loop {
        let begun = watch::begun(ctx)?;
        let is_known = begun.is_none() || watch::running(ctx).is_some();
        if is_known || ctx.clock.monotonic() >= deadline {
            return Ok(begun);
        }
        ctx.clock.sleep(POLL);
    }
}

/// Why a daemon has ended that was just started, in its own words.
fn why_ended(ctx: &Ctx, how: &How) -> Error {
    let said = ctx.store.disk().read(&failure_path(ctx)).ok();
    let said = said.map(|read| String::from_utf8_lossy(&read.bytes).trim().to_owned());
    let why = said.filter(|said| !said.is_empty()).map(|said| format!(": {said}"));
    let words = ["daemon".to_owned(), "run".to_owned()];
    let words: Vec<String> =
        words.into_iter().chain(how.serving.iter().flatten().cloned()).collect();
    Error::failed(format!("the daemon stopped at once{}", why.unwrap_or_default()))
        .hint(format!("`tpu {}` shows it here", words.join(" ")))
}

/// Where a daemon that could not begin says why.
pub fn failure_path(ctx: &Ctx) -> PathBuf {
    ctx.store.paths().daemon_error(&watch::place(ctx))
}

/// Writes down there why this daemon could not begin, for whoever started it and does not see its terminal.
pub fn note_failure(path: &Path, why: &Error) {
    // Who cannot be told here reads what it has printed.
    drop(OsDisk.create(path, why.message.as_bytes(), 0o660));
}

/// Starts it in a window, or as a process where there is no tmux that can be used.
fn open(ctx: &Ctx, how: &How) -> Result<Started, Error> {
    match ctx.tmux.ensure_session(SESSION, HISTORY) {
        Err(TmuxError::Missing | TmuxError::TooOld { .. }) => {
            return Ok(Started::Process(open_process(ctx, how)?));
        }
        opened => opened?,
    }
    let index = free_index(&ctx.tmux.look());
    let mut argv = vec!["env".to_owned()];
    for (name, value) in own_variables(ctx) {
        argv.push(format!("{name}={value}"));
    }
    argv.extend(run_words(ctx, how, Hosting::Tmux)?);
    Ok(Started::Window(panes::open_own(ctx, SESSION, index, argv)?))
}

/// Starts it as a process that has left the terminal: it does so itself, since it has the word for it.
fn open_process(ctx: &Ctx, how: &How) -> Result<Child, Error> {
    let dir = ctx.store.state_dir()?;
    let path = ctx.store.paths().daemon_output(&watch::place(ctx));
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let log = log.map_err(|e| {
        Error::state(format!("cannot write {}: {e}", path.display()))
            .hint("check free space and permissions there")
    })?;
    let mut words = run_words(ctx, how, Hosting::Detached)?.into_iter();
    let mut spawn = Spawn::new(words.next().unwrap_or_default()).args(words).cwd(dir).env_clear();
    // As a tmux server: nothing of a job, and nothing of a terminal.
    let of_server = |name: &str| variables::is_of_server(name) && !variables::is_of_window(name);
    for (name, value) in &ctx.env.vars {
        if name.to_str().is_some_and(of_server) {
            spawn = spawn.env(name, value);
        }
    }
    for (name, value) in own_variables(ctx) {
        spawn = spawn.env(name, value);
    }
    Ok(proc::start_lasting(&spawn, &log)?)
}

/// The first window behind those that are there.
fn free_index(tmux: &TmuxFact) -> u32 {
    match tmux {
        TmuxFact::Up { panes, .. } => {
            let ours = panes.iter().filter(|pane| pane.session == SESSION);
            ours.map(|pane| pane.window_index).max().map_or(1, |index| index + 1)
        }
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => 1,
    }
}

/// What it has of this environment whoever hosts it: a tmux server may know nothing of what this `tpu` was started with.
/// What is no text cannot stand on a command line; nothing that tpu reads is.
pub fn own_variables(ctx: &Ctx) -> Vec<(String, String)> {
    const MORE: [&str; 7] =
        ["HOME", "TZ", "TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "FAILPOINTS", "LANG"];
    let more = MORE.iter().filter_map(|name| {
        let value = ctx.env.var_os(name)?;
        Some(((*name).into(), value.to_owned()))
    });
    let all = environment::kept(ctx).into_iter().chain(more);
    // Where a command was typed is nothing to what outlives it.
    let is_its = |name: &str| name != environment::SUBMIT_DIR;
    let text =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(name, _)| is_its(name)).collect()
}

/// `tpu FLAGS… daemon run`, as somebody types it who hosts it so.
pub fn run_words(ctx: &Ctx, how: &How, hosting: Hosting) -> Result<Vec<String>, Error> {
    let hosting = ["--hosting".to_owned(), hosting.as_str().to_owned()];
    let mut step = vec!["run".to_owned()];
    step.extend(hosting);
    step.extend(how.ends_idle.then(|| "--ends-idle".to_owned()));
    words(ctx, how, step)
}

/// `tpu FLAGS… daemon start`.
pub fn start_words(ctx: &Ctx, how: &How) -> Result<Vec<String>, Error> {
    words(ctx, how, vec!["start".to_owned()])
}

fn words(ctx: &Ctx, how: &How, step: Vec<String>) -> Result<Vec<String>, Error> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Error::state(format!("this path is no UTF-8: {}", path.display()))
                .hint("keep data.json in a directory with a plain name (--data FILE)")
        })
    };
    let mut words = vec![text(&ctx.tpu)?];
    words.extend(["--data".to_owned(), text(ctx.store.paths().data())?]);
    words.extend(ctx.tmux_socket.iter().flat_map(|s| ["--tmux-socket".to_owned(), s.clone()]));
    words.extend(how.flags.iter().cloned());
    words.push("daemon".to_owned());
    words.extend(step);
    let insists = how.beside_original || original::is_insisted(ctx);
    words.extend(insists.then(|| "--beside-original".to_owned()));
    words.extend(how.serving.iter().flatten().cloned());
    Ok(words)
}

/// Refuses where no daemon runs at this place.
pub fn may_stop(ctx: &Ctx) -> Result<(), Error> {
    if watch::running(ctx).is_some() { Ok(()) } else { Err(none_runs()) }
}

fn none_runs() -> Error {
    Error::refused("the daemon does not run").hint("`tpu daemon start` starts it")
}

/// Ends the daemon of this place, and waits until it has ended. Refused if none runs.
pub fn stop(ctx: &Ctx) -> Result<u32, Error> {
    let Some(process) = watch::ask_to_end(ctx)? else {
        return Err(none_runs());
    };
    let deadline = ctx.clock.monotonic() + PATIENCE;
    while procs::is_alive(process.pid, process.start) {
        if ctx.clock.monotonic() >= deadline {
            return Err(Error::failed(format!("process {} does not end", process.pid)).hint(
                format!("`kill -9 {}` does no harm: the next daemon continues", process.pid),
            ));
        }
        ctx.clock.sleep(POLL);
    }
    Ok(process.pid)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};

    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::{Clock, ManualClock};

    use super::*;
    use crate::front::open::for_test;

    /// A clock on which something happens at the first sleep.
    struct Until {
        clock: ManualClock,
        happens: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    }

    impl Clock for Until {
        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        fn monotonic(&self) -> Duration {
            self.clock.monotonic()
        }

        fn sleep(&self, duration: Duration) {
            self.clock.advance(duration);
            if let Some(happens) = self.happens.lock().unwrap().take() {
                happens();
            }
        }
    }

    /// The daemon that stays, where something happens while it is waited for.
    fn seen(ctx: &Ctx, happens: impl FnOnce() + Send + 'static) -> Option<u32> {
        let mut ctx = ctx.clone();
        let clock = ManualClock::new(Timestamp::from_second(1_000));
        let happens: Box<dyn FnOnce() + Send> = Box::new(happens);
        ctx.effects.clock = Arc::new(Until { clock, happens: Mutex::new(Some(happens)) });
        stays(&ctx).unwrap()
    }

    #[test]
    fn a_daemon_that_is_ending_is_waited_for_and_one_that_begins_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = for_test(dir.path());
        let own = Some(ctx.env.pid);
        assert_eq!(seen(&ctx, || panic!("nobody is waited for")), None);
        let (release, released) = channel::<()>();
        let (hold, held) = channel::<()>();
        let (end, ended) = channel::<()>();
        let of_holder = ctx.clone();
        let holder = std::thread::spawn(move || {
            let (place, store) = (watch::place(&of_holder), &of_holder.store);
            let work = || {
                hold.send(()).unwrap();
                released.recv().unwrap();
            };
            store.as_monitor(&place, &|| false, work).unwrap().unwrap();
            end.send(()).unwrap();
        });
        held.recv().unwrap();
        assert_eq!(seen(&ctx, || ()), own, "it says nothing of itself for long, and is one");
        let begins = ctx.clone();
        let note = move || {
            let how = (begins.clock.now(), Hosting::Tmux, false);
            watch::note_turn(&begins, how, None, BTreeMap::new()).unwrap();
        };
        assert_eq!(seen(&ctx, note), own);
        watch::forget(&ctx);
        let ends = move || {
            release.send(()).unwrap();
            ended.recv().unwrap();
        };
        assert_eq!(seen(&ctx, ends), None, "it was ending");
        holder.join().unwrap();
    }
}
