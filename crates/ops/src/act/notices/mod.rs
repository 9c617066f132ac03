//! Tells people what has happened to jobs: the daemon has the journal read on, what is due taken from the outbox, and
//! each delivery made on a thread of its own.
//!
//! ```text
//! journal ─ events behind the bookmark ─┐                          ┌ take: what is due, noted as being sent
//! queue, phases ─ what is new of them ──┴ happened: notices ─ put ─┤   send: on a thread each, no lock is held
//!              settings, `notify` of the job: receivers ────┘      └ settle: told, again later, or given up
//! ```
//! Bookmark and what waits stand in one file, which is replaced whole under a lock of its own: whoever dies at whatever
//! moment, nothing is lost, and nothing is sent twice but what was on its way. That has the id that it had before.
//! There is no file while nobody wants to be told. Whatever daemon reads the journal, each account sends what is of its jobs.

mod happened;
mod send;
mod shown;

use std::collections::BTreeMap;
use std::io::ErrorKind;

use serde_json::Value;

use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::notice::Notice;
use tpu_core::model::notify::{Occasion, Receiver};
use tpu_core::model::outbox::{Bookmark, Outbox, OutboxSeen};
use tpu_core::model::settings::{SettingOrigin, Settings};
use tpu_core::model::spec::JobSpec;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::notices::{self, Delivery};
use tpu_system::store::{Event, atomic};

use crate::base::lease;
use crate::{Ctx, Error};

pub use happened::{PhaseSeen, phases};
pub use send::{Tried, have_ways, in_hand, try_out, would_try};
pub use shown::{NotifyLook, ReceiverLook, look, troubles};

/// Mode of the outbox: the lab's group shares it.
const MODE: u32 = 0o660;

/// The kind of the lines that say so in the journal.
const KIND: &str = "notify";

/// What is sent for programs: made by whoever knows the documents that leave.
pub type Bodies = dyn Fn(&Receiver, &[Notice]) -> Vec<u8> + Send + Sync;

/// What the daemon remembers from round to round while there is no outbox.
#[derive(Debug, Default)]
pub struct Follower {
    read: Option<Bookmark>,
    seen: OutboxSeen,
}

/// What a round has found.
#[derive(Debug, Default)]
pub struct Round {
    /// What is to be sent now, each noted as being sent by this process.
    pub deliveries: Vec<Delivery>,
    /// When there is something to be sent again, if nothing happens before.
    pub next: Option<Timestamp>,
}

/// Reads the journal on, and takes what is due. `phases` are those of jobs at work, as the last turn saw them.
pub fn round(ctx: &Ctx, follower: &mut Follower, phases: &[PhaseSeen]) -> Result<Round, Error> {
    let is_there = ctx.store.disk().stat(&ctx.store.paths().outbox()).is_ok();
    // Before the data: what happens in between is read the next time, when somebody may want to know it.
    let end = if is_there { None } else { Some(ctx.store.journal_end()?) };
    let data = ctx.data()?;
    if end.is_some() && !is_wanted(ctx, &data)? {
        follower.read = end;
        follower.seen = happened::seen(&data, phases, &OutboxSeen::default());
        return Ok(Round::default());
    }
    ctx.store.state_dir()?;
    locked(ctx, || {
        let data = ctx.data()?;
        let now = ctx.clock.now();
        let (mut outbox, mut is_changed) = match read(ctx)? {
            Some(outbox) => (outbox, false),
            None => (begun(ctx, follower)?, true),
        };
        is_changed |= happened::take_in(ctx, &mut outbox, phases)?;
        let is_idle =
            outbox.held.is_empty() && outbox.lines.iter().all(|line| line.waiting.is_empty());
        if is_idle && !is_wanted(ctx, &data)? {
            (follower.read, follower.seen) = (Some(outbox.read), outbox.seen);
            let path = ctx.store.paths().outbox();
            ctx.store.disk().remove(&path).or_else(|e| match e.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(cannot(&path, "remove", &e)),
            })?;
            return Ok(Round::default());
        }
        let me = lease::me(&ctx.env);
        let is_dead = |by: &str| lease::is_alive(ctx, by) == Some(false);
        let deliveries = notices::take(&mut outbox, (&me, ctx.env.uid), &is_dead, now);
        if is_changed || !deliveries.is_empty() {
            notices::sweep(&mut outbox, now);
            write(ctx, &outbox)?;
        }
        Ok(Round { deliveries, next: notices::next(&outbox, ctx.env.uid, &is_dead, now) })
    })
}

/// Makes one delivery and notes what has become of it. Nothing is held meanwhile.
pub fn deliver(ctx: &Ctx, delivery: &Delivery, bodies: &Bodies) -> Result<(), Error> {
    let outcome = send::send(ctx, delivery, bodies);
    locked(ctx, || {
        let Some(mut outbox) = read(ctx)? else { return Ok(()) };
        let now = ctx.clock.now();
        let why = outcome.as_ref().err().map(String::as_str);
        let given_up = notices::settle(&mut outbox, delivery, why, now);
        write(ctx, &outbox)?;
        if given_up == 0 {
            return Ok(());
        }
        let why = why.unwrap_or_default();
        let what =
            tpu_core::text::counted(usize::try_from(given_up).unwrap_or(usize::MAX), "notice");
        let text = format!("{what} for {} given up after a day: {why}", delivery.to.place());
        Ok(ctx.store.note(&[Event {
            at: now,
            actor: ctx.actor.clone(),
            account: None,
            user: Some(delivery.user.clone()),
            job: None,
            kind: KIND.to_owned(),
            text,
            data: Value::Null,
        }])?)
    })
}

/// From here on what happens is told to whoever wants to know: called when somebody says so, for the daemon may not
/// have looked yet, or may not be there.
pub fn begin(ctx: &Ctx) -> Result<(), Error> {
    if ctx.store.is_dry_run() {
        return Ok(());
    }
    ctx.store.state_dir()?;
    locked(ctx, || match read(ctx)? {
        Some(_) => Ok(()),
        None => write(ctx, &begun(ctx, &Follower::default())?),
    })
}

/// The same where a job says whom to tell.
pub(crate) fn begin_for(ctx: &Ctx, spec: &JobSpec) -> Result<(), Error> {
    match &spec.execution.notify {
        Some(own) if !own.is_empty() => have_ways(own).and_then(|()| begin(ctx)),
        _ => Ok(()),
    }
}

/// Whether this account has still something to tell. Where nobody can tell, it has.
pub fn is_waiting(ctx: &Ctx) -> bool {
    read(ctx).map_or(true, |outbox| {
        outbox.is_some_and(|outbox| {
            let mut own = outbox.lines.iter().filter(|line| notices::is_for(line, ctx.env.uid));
            !outbox.held.is_empty() || own.any(|line| !line.waiting.is_empty())
        })
    })
}

/// An outbox in which nothing waits.
fn begun(ctx: &Ctx, follower: &Follower) -> Result<Outbox, Error> {
    let data = ctx.data()?;
    let read = follower.read.map_or_else(|| ctx.store.journal_end(), Ok)?;
    let seen = match follower.read {
        Some(_) => follower.seen.clone(),
        None => happened::seen(&data, &[], &OutboxSeen::default()),
    };
    Ok(Outbox { read, seen, held: Vec::new(), lines: Vec::new() })
}

fn locked<T>(ctx: &Ctx, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    ctx.store.locking(&ctx.store.paths().outbox_lock(), work)?
}

fn cannot(path: &std::path::Path, verb: &str, error: &std::io::Error) -> Error {
    Error::state(format!("cannot {verb} {}: {error}", path.display()))
        .hint("this account must be able to do so; `tpu doctor` looks for what is wrong")
}

/// What waits. A file that nobody can read is put aside, so that what happens next is told.
fn read(ctx: &Ctx) -> Result<Option<Outbox>, Error> {
    let path = ctx.store.paths().outbox();
    let bytes = match ctx.store.disk().read(&path) {
        Ok(contents) => contents.bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(&path, "read", &e)),
    };
    match serde_json::from_slice(&bytes) {
        Ok(outbox) => Ok(Some(outbox)),
        Err(problem) => {
            if !ctx.store.is_dry_run() {
                let aside = path.with_extension("unreadable");
                let moved = ctx.store.disk().rename(&path, &aside);
                moved.map_err(|e| cannot(&path, "put aside", &e))?;
                ctx.warn([format!(
                    "{} cannot be read ({problem}); it is {} now",
                    path.display(),
                    aside.display()
                )]);
            }
            Ok(None)
        }
    }
}

fn write(ctx: &Ctx, outbox: &Outbox) -> Result<(), Error> {
    let bytes = serde_json::to_vec(outbox).unwrap_or_default();
    Ok(atomic::write_file(&**ctx.store.disk(), &ctx.store.paths().outbox(), &bytes, MODE)?)
}

/// Whether anybody wants to be told of anything.
fn is_wanted(ctx: &Ctx, data: &Data) -> Result<bool, Error> {
    let is_own = |own: &Option<Vec<Receiver>>| own.as_ref().is_some_and(|own| !own.is_empty());
    let of_jobs = data.jobs().filter_map(|job| job.execution()).any(|of| is_own(&of.notify));
    let waiting = &data.queues().entries;
    if of_jobs || waiting.iter().any(|entry| is_own(&entry.spec.execution.notify)) {
        return Ok(true);
    }
    for user in data.users() {
        if is_own(&settings_of(ctx, user)?.notify) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The settings by which a user is told. A file or an environment that is one user's own says nothing of others: those
/// who share a data file do not get one another's news by whose daemon happens to run.
fn settings_of(ctx: &Ctx, user: &User) -> Result<Settings, Error> {
    match ctx.settings(None)?.user {
        Some(owner) if owner != user.name.as_str() => {
            let origin = SettingOrigin::User(user.name.as_str().to_owned());
            let mut own = Settings::merge(&[(origin, &user.settings)])?;
            // Which server takes mails is the machine's affair.
            if own.smtp.is_none() {
                own.smtp = ctx.settings(Some(user))?.smtp;
            }
            Ok(own)
        }
        _ => ctx.settings(Some(user)),
    }
}

/// Who is told of what happens to a user and to jobs of that user, and how many seconds are gathered.
struct Told<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    settings: BTreeMap<UserName, (Vec<Receiver>, u32)>,
}

impl<'a> Told<'a> {
    fn new(ctx: &'a Ctx, data: &'a Data) -> Self {
        Self { ctx, data, settings: BTreeMap::new() }
    }

    fn of(&mut self, user: &UserName) -> Result<(Vec<Receiver>, u32), Error> {
        if let Some(known) = self.settings.get(user) {
            return Ok(known.clone());
        }
        let Some(known) = self.data.user(user) else { return Ok((Vec::new(), 0)) };
        let settings = settings_of(self.ctx, known)?;
        let told = (settings.notify.unwrap_or_default(), settings.notify_merge);
        self.settings.insert(user.clone(), told.clone());
        Ok(told)
    }
}

/// The account that tells what happens to a job, or to what waits: whose it is, as far as that is known, else this one.
fn teller(ctx: &Ctx, data: &Data, id: Option<&JobId>, job: Option<&Job>) -> u32 {
    if let Some(place) = job.and_then(|job| job.place.as_ref()) {
        return place.uid;
    }
    // What waits names the place of its account by a mark: whose that is, its locks there show.
    let paths = ctx.store.paths();
    let entry = id.and_then(|id| data.queues().entry(id));
    let locks = entry.map(|of| [paths.daemon_lock(&of.place), paths.pass_lock(&of.place)]);
    let stats = locks.into_iter().flatten().map(|path| ctx.store.disk().stat(&path));
    stats.flatten().next().map_or(ctx.env.uid, |stat| stat.uid)
}

/// What a receiver that is tried out is told.
fn test_notice(user: &UserName, now: Timestamp) -> Notice {
    let of = tpu_core::model::notice::NoticeFacts {
        evidence: Some("this is what tpu sends when something happens"),
        ..tpu_core::model::notice::NoticeFacts::default()
    };
    Notice::new((Occasion::Test, now), user, &of, &format!("{now:?}"))
}

/// A job by its id: its record, wherever it is.
fn job_anywhere(ctx: &Ctx, data: &Data, id: &JobId) -> Option<Job> {
    /// No more of the archive is read: what was cleaned away since the last round is among the newest.
    const MOST: usize = 500;
    if let Some(job) = data.job(id) {
        return Some(job.clone());
    }
    let archived = ctx.store.archived().take(MOST).flatten();
    archived.map(|archived| archived.job).find(|job| job.id() == *id)
}
