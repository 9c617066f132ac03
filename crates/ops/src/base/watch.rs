//! The daemon as everybody else sees it: whether one runs at this place, since when, and when it last turned.
//!
//! That there is one at most is held by a lock that dies with it. What it says about itself stands in a
//! note beside the lock; the note counts while its writer lives.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use tpu_core::model::time::Timestamp;
use tpu_core::model::version::VERSION;
use tpu_core::model::view::MonitorHealth;
use tpu_system::store::atomic;

pub use tpu_system::store::Event;

use tpu_core::text::fnv1a;
use tpu_system::sys::accounts;
use tpu_system::sys::procs::{self, Process, Signal};

use super::lease;
use crate::{Ctx, Error};

/// Who acts in the journal when the daemon does.
pub const ACTOR: &str = "daemon";

/// Its name in journals of version 0.2 and before.
const FORMER_ACTOR: &str = "MONITOR";

/// Mode of the note: the lab's group reads it.
const NOTE_MODE: u32 = 0o660;

/// What a daemon says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who it is, as an owner of leases.
    pub owner: String,
    /// Its process id.
    pub pid: u32,
    /// Start time of that process, in ticks since boot.
    pub start: u64,
    /// When it began.
    pub since: Timestamp,
    /// When its last turn ended.
    pub turned: Timestamp,
    /// The control plane that it works with, in words.
    #[serde(default)]
    pub cloud: Option<String>,
    /// Why it only watches, where it does.
    #[serde(default)]
    pub watches: Option<String>,
    /// What it tries in vain, by the job that it is about.
    #[serde(default)]
    pub troubles: BTreeMap<String, FailedTry>,
    /// How it runs.
    #[serde(default, deserialize_with = "hosting")]
    pub hosting: Hosting,
    /// Whether it ends by itself after an hour without anything to do.
    #[serde(default)]
    pub ends_idle: bool,
    /// The version of its program.
    #[serde(default)]
    pub version: Option<String>,
}

/// How a daemon runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hosting {
    /// In the terminal of whoever typed `tpu daemon run`, or under a service manager that tpu does not know.
    #[default]
    Foreground,
    /// In a window of its own tmux session.
    Tmux,
    /// As a process without a terminal.
    Detached,
    /// As a unit of systemd.
    Systemd,
}

impl Hosting {
    /// Those that somebody arranges who starts it; a person's own terminal needs no word.
    pub const ARRANGED: [Self; 3] = [Self::Tmux, Self::Detached, Self::Systemd];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Tmux => "tmux",
            Self::Detached => "detached",
            Self::Systemd => "systemd",
        }
    }

    /// Reads the word of one that is arranged.
    pub fn arranged(word: &str) -> Option<Self> {
        Self::ARRANGED.into_iter().find(|hosting| hosting.as_str() == word)
    }
}

/// Reads how a daemon runs. A word of a later version says no more than that it runs.
fn hosting<'de, D: Deserializer<'de>>(from: D) -> Result<Hosting, D::Error> {
    let word = String::deserialize(from)?;
    Ok(Hosting::arranged(&word).unwrap_or_default())
}

/// A try that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTry {
    /// Why.
    pub why: String,
    /// It is not tried again before.
    pub again: Timestamp,
}

/// Names the place that this process looks at (host, account, tmux socket) in plain letters. One data file
/// on several hosts has one daemon on each.
pub fn place(ctx: &Ctx) -> String {
    let socket = ctx.tmux_socket.as_deref().unwrap_or("default");
    let directory = ctx.env.var_os("TMUX_TMPDIR").map(OsStrExt::as_bytes).unwrap_or_default();
    let parts =
        [ctx.env.hostname.as_bytes(), &ctx.env.uid.to_le_bytes(), directory, socket.as_bytes()];
    format!("{:016x}", fnv1a(parts.join(&0)))
}

/// Runs `work` as the only daemon of this data file and place; refused when there is one already. A lock without a living
/// daemon is waited for: of a daemon that was killed, a command that it was just starting holds it for a moment longer.
pub fn as_monitor<T>(ctx: &Ctx, work: impl FnOnce() -> T) -> Result<T, Error> {
    /// From its beginning until it has noted itself, a daemon needs less, and what a killed one was starting as well.
    const PATIENCE: Duration = Duration::from_secs(3);
    let refused = |who: String| {
        Error::refused(format!("the daemon runs already: {who}"))
            .hint("`tpu daemon status` shows how it is, `tpu daemon stop` ends it")
    };
    let other = || running(ctx).filter(|note| note.pid != ctx.env.pid);
    let alone = || match other() {
        // Somebody has taken the file of its lock away.
        Some(note) => Err(refused(format!("process {}", note.pid))),
        None => Ok(work()),
    };
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let is_left = || ctx.clock.monotonic() < deadline && other().is_none();
    let done = ctx.store.as_monitor(&place(ctx), &is_left, alone)?;
    done.map_err(|holder| refused(holder.to_string()))?
}

/// Says that this process is the daemon that began at `since` and runs so, has just turned, and why it only watched if it
/// did.
pub fn note_turn(
    ctx: &Ctx,
    (since, hosting, ends_idle): (Timestamp, Hosting, bool),
    watches: Option<String>,
    troubles: BTreeMap<String, FailedTry>,
) -> Result<(), Error> {
    let note = Note {
        owner: lease::me(&ctx.env),
        pid: ctx.env.pid,
        start: ctx.env.started(),
        since,
        turned: ctx.clock.now(),
        cloud: Some(ctx.usual_provider()),
        watches,
        troubles,
        hosting,
        ends_idle,
        version: Some(VERSION.to_owned()),
    };
    let bytes = serde_json::to_vec(&note).unwrap_or_default();
    let path = ctx.store.paths().daemon_note(&place(ctx));
    Ok(atomic::write_passing(&**ctx.store.disk(), &path, &bytes, NOTE_MODE)?)
}

/// Takes the note away: this daemon is ending.
pub fn forget(ctx: &Ctx) {
    // Its writer is gone in a moment, and with that the note counts no more.
    drop(ctx.store.disk().remove(&ctx.store.paths().daemon_note(&place(ctx))));
}

/// The daemon that runs at this place.
pub fn running(ctx: &Ctx) -> Option<Note> {
    let path = ctx.store.paths().daemon_note(&place(ctx));
    let bytes = ctx.store.disk().read(&path).ok()?.bytes;
    let note: Note = serde_json::from_slice(&bytes).ok()?;
    (lease::is_alive(ctx, &note.owner) == Some(true)).then_some(note)
}

/// The process of the daemon at this place, also of one that has not turned yet. Ask within
/// [`starting_monitor`](tpu_system::store::Store::starting_monitor).
pub(crate) fn begun(ctx: &Ctx) -> Result<Option<u32>, Error> {
    if let Some(note) = running(ctx) {
        return Ok(Some(note.pid));
    }
    let holder = ctx.store.monitor_holder(&place(ctx))?;
    // What a killed one was starting may hold its lock for a moment longer.
    Ok(holder
        .map(|holder| holder.pid)
        .filter(|pid| Process::read(*pid).is_some_and(|it| !it.zombie)))
}

/// The daemon that runs at this place and does something about what it sees.
pub fn acting(ctx: &Ctx) -> Option<Note> {
    running(ctx).filter(|note| note.watches.is_none())
}

/// A daemon that has not turned for longer, in seconds, says nothing.
const LATELY_S: u64 = 180;

/// Whether a daemon has turned lately that says of itself what stands in this file.
fn has_turned(ctx: &Ctx, note: &Path) -> bool {
    let read = ctx.store.disk().read(note).ok();
    let note: Option<Note> = read.and_then(|read| serde_json::from_slice(&read.bytes).ok());
    note.is_some_and(|note| ctx.clock.now().seconds_since(note.turned) < LATELY_S)
}

/// Whether something that waits at a place may begin there: this is it, or a daemon has turned there lately.
pub(crate) fn is_attended(ctx: &Ctx, place: &str) -> bool {
    place == self::place(ctx) || has_turned(ctx, &ctx.store.paths().daemon_note(place))
}

/// Whether a daemon of another account, host or tmux server has turned lately.
pub(crate) fn has_others(ctx: &Ctx) -> bool {
    let (disk, paths) = (ctx.store.disk(), ctx.store.paths());
    let own = paths.daemon_note(&place(ctx));
    let names = disk.list(&paths.state()).unwrap_or_default();
    let notes = names.iter().filter_map(|name| paths.daemon_note_named(name));
    notes.filter(|note| *note != own).any(|note| has_turned(ctx, &note))
}

/// Whose daemon would start what was submitted at a place where none runs, in words.
pub(crate) fn absence(ctx: &Ctx, place: &str) -> String {
    let paths = ctx.store.paths();
    // The account of the place has made them, at the latest when something was submitted there.
    let locks = [paths.pass_lock(place), paths.daemon_lock(place)];
    let owner = locks.iter().find_map(|path| ctx.store.disk().stat(path).ok()).map(|of| of.uid);
    match owner {
        Some(uid) if uid != ctx.env.uid => {
            format!("waits for {}'s daemon, which does not run", accounts::name(uid))
        }
        Some(_) => {
            "waits for your daemon of another host or tmux server, which does not run".to_owned()
        }
        None => "no daemon runs that would start it".to_owned(),
    }
}

/// The same in short.
pub fn health(ctx: &Ctx) -> MonitorHealth {
    health_of(ctx, running(ctx).as_ref())
}

/// How the daemon is that said this about itself, if one did.
pub(crate) fn health_of(ctx: &Ctx, note: Option<&Note>) -> MonitorHealth {
    let Some(note) = note else { return MonitorHealth::NotRunning };
    let turn_age_s = ctx.clock.now().seconds_since(note.turned);
    match &note.watches {
        Some(why) => MonitorHealth::Watching { turn_age_s, why: why.clone() },
        None => MonitorHealth::Running { turn_age_s },
    }
}

/// Asks the daemon to look at once. It is remembered when none runs.
pub(crate) fn ask_to_look(ctx: &Ctx) -> Result<(), Error> {
    ctx.transact(|tx| {
        tx.data.set_ack(true);
        Ok(())
    })
}

/// Asks the daemon of this place to end. `None` if there is none; else its process, which may take some
/// seconds.
pub(crate) fn ask_to_end(ctx: &Ctx) -> Result<Option<Process>, Error> {
    let Some(note) = running(ctx) else { return Ok(None) };
    let Some(process) = Process::read(note.pid).filter(|found| found.start == note.start) else {
        return Ok(None);
    };
    procs::signal(&process, Signal::Terminate).map_err(|e| {
        Error::refused(format!("cannot end process {}: {e}", note.pid))
            .hint("the account that started the daemon must end it")
    })?;
    Ok(Some(process))
}

/// The kind of the event behind which the daemon's log begins anew.
const CLEARED: &str = "log-cleared";

/// What the daemon has seen and done since its log was last cleared: the newest `most` events, oldest first.
pub fn log(ctx: &Ctx, most: usize) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    for event in ctx.store.events() {
        let event = event?;
        if event.kind == CLEARED || events.len() == most {
            break;
        }
        if [ACTOR, FORMER_ACTOR].contains(&event.actor.as_str()) {
            events.push(event);
        }
    }
    events.reverse();
    Ok(events)
}

/// Begins the daemon's log anew. The journal keeps what was in it.
pub fn clear_log(ctx: &Ctx) -> Result<(), Error> {
    note(ctx, &ctx.actor, CLEARED, "the daemon's log begins anew")
}

/// Notes something about the daemon itself.
pub fn note(ctx: &Ctx, actor: &str, kind: &str, text: &str) -> Result<(), Error> {
    Ok(ctx.store.note(&[Event {
        at: ctx.clock.now(),
        actor: actor.to_owned(),
        account: None,
        user: None,
        job: None,
        kind: kind.to_owned(),
        text: text.to_owned(),
        data: Value::Null,
    }])?)
}
