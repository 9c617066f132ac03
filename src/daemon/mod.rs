//! The daemon: gather, decide, act, over and over. **It knows nothing that a person could not do**: what it
//! gathers is `ops::act::outlook`, what it decides is `plan::decide`, what it does are the same `ops` that
//! keys and commands call.
//!
//! [`run`] is the loop; `wake` says when it is worth looking; `turn` is one round; `worker_pool` has
//! what is under way, each piece on its own: `job_work` on jobs, `target_work` on targets; `figures` has machines asked
//! and `notices` people told beside that, and `old_code` removes the code of jobs that were archived long ago. `beside` says
//! whether it acts at all; where it only watches, `foretold` says what it would do.
//! `ops::act::service` starts and ends a daemon in its tmux session, `ops::base::watch` is how everybody else sees it.
//!
//! It exits by itself only where a command started it and there has been nothing to do for an hour (`idle`). Killed at any
//! instant, it leaves nothing that its successor cannot complete.

mod beside;
mod checks;
mod figures;
mod foretold;
mod idle;
mod job_work;
mod notices;
mod old_code;
mod target_work;
mod turn;
mod wake;
mod worker_pool;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_core::model::time::Timestamp;
use tpu_ops::act::notices as outbox;
use tpu_ops::base::watch::Hosting;
use tpu_ops::base::{original, watch};
use tpu_ops::observe::snapshot::LookMemory;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::Clock;

use beside::{Neighbour, Watches};
use checks::Checks;
use figures::Rounds;
use foretold::Foretold;
use idle::Idle;
use job_work::Crew;
use notices::Notices;
use old_code::OldCode;
use target_work::Makers;
use turn::{Cause, Turn};
use wake::Wake;

/// How often it is asked whether something has happened.
const POLL: Duration = Duration::from_millis(100);

/// How often the last pieces of work are looked at.
const LAST_POLL: Duration = Duration::from_millis(20);

/// Between two turns, whatever happens.
const AT_LEAST: Duration = Duration::from_millis(250);

/// Actions under way get so long to end, once the daemon is to end; what is then not complete is completed
/// by the next one.
const LAST_WORDS: Duration = Duration::from_secs(7);

/// What is being told to people gets so long.
const LAST_NEWS: Duration = Duration::from_secs(2);

/// What a daemon is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct DaemonRole {
    /// It says what it would do, and does nothing.
    pub watch_only: bool,
    /// It acts also while the original's monitor does.
    pub beside_original: bool,
    /// How it runs.
    pub hosting: Hosting,
    /// It ends by itself after an hour without anything to do.
    pub ends_idle: bool,
}

impl DaemonRole {
    /// Whether it acts whoever is at work beside it.
    fn acts_always(self) -> bool {
        self.beside_original && !self.watch_only
    }
}

/// Runs the daemon until `stop` is set. Refused if one runs already at this place, and if it would act beside the
/// original's monitor.
pub fn run(
    ctx: &Arc<Ctx>,
    role: DaemonRole,
    stop: &AtomicBool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    // Without a data file there is nothing to watch, and nowhere to say so later.
    let data = ctx.data()?;
    let beside_original = role.beside_original || original::is_insisted(ctx);
    let role = DaemonRole { beside_original, ..role };
    if !role.watch_only && !beside_original {
        original::may_act_beside(ctx, &data)?;
    }
    watch::as_monitor(ctx, || Monitor::new(ctx, role, out).serve(stop))
}

/// Waits until all is done, at most so long.
fn wait_at_most(clock: &dyn Clock, patience: Duration, mut is_done: impl FnMut() -> bool) {
    let deadline = clock.monotonic() + patience;
    while !is_done() && clock.monotonic() < deadline {
        clock.sleep(LAST_POLL);
    }
}

struct Monitor<'a> {
    ctx: &'a Arc<Ctx>,
    out: &'a mut dyn Write,
    memory: LookMemory,
    crew: Crew,
    makers: Makers,
    since: Timestamp,
    /// What went wrong in the last turn, to be said once.
    trouble: Option<String>,
    /// Why the settings could not be taken anew, to be written down once.
    unsettled: Option<String>,
    /// The control plane that it works with, in words.
    cloud: String,
    checks: Checks,
    old_code: OldCode,
    rounds: Rounds,
    notices: Notices,
    /// Why people cannot be told, to be said once.
    untold: Option<String>,
    beside: Neighbour,
    /// Why it only watches, to be said once.
    watches: Option<Watches>,
    foretold: Foretold,
    role: DaemonRole,
}

impl<'a> Monitor<'a> {
    fn new(ctx: &'a Arc<Ctx>, role: DaemonRole, out: &'a mut dyn Write) -> Self {
        Self {
            ctx,
            out,
            memory: LookMemory::default(),
            crew: Crew::default(),
            makers: Makers::default(),
            since: ctx.clock.now(),
            trouble: None,
            unsettled: None,
            cloud: ctx.usual_provider(),
            checks: Checks::default(),
            old_code: OldCode::default(),
            rounds: Rounds::default(),
            notices: Notices::default(),
            untold: None,
            beside: Neighbour::new(role),
            watches: None,
            foretold: Foretold::default(),
            role,
        }
    }

    fn serve(&mut self, stop: &AtomicBool) {
        let ctx = self.ctx;
        self.say(&format!(
            "the daemon watches {} (process {})",
            ctx.store.paths().data().display(),
            ctx.env.pid
        ));
        self.journal("the daemon begins");
        let mut wake = Wake::default();
        let mut last = None;
        let mut next = ctx.clock.monotonic();
        let mut cause = Cause::Happened;
        let mut idle = Idle::default();
        let mut why_ends = "the daemon was asked to end";
        while !stop.load(Ordering::Relaxed) {
            let now = ctx.clock.monotonic();
            let beat = wake.beat(ctx, now);
            let rested = last.is_none_or(|last| now >= last + AT_LEAST);
            // An action that has ended may be the reason for the next one.
            let done = self.crew.reap(now) | self.makers.reap(now) | self.beside.look(ctx, now);
            if done || beat || self.memory.is_answered() {
                (next, cause) = (now, Cause::Happened);
            }
            if rested && now >= next {
                let turn = self.turn(cause);
                cause = turn.next_cause();
                last = Some(ctx.clock.monotonic());
                next = now + turn.rest;
                wake.has_live_jobs = turn.has_live_jobs;
                idle.turned(now, turn.is_idle);
                self.checks.run(ctx, now);
                if self.watches.is_none() {
                    self.old_code.run(ctx, now);
                }
            }
            self.rounds.run(ctx, now, wake.has_live_jobs);
            if self.watches != Some(Watches::Ordered) {
                self.notices.run(ctx, now);
            }
            if self.role.ends_idle && idle.is_over(now) {
                if self.may_end() {
                    why_ends = "the daemon has had nothing to do for an hour, and ends";
                    break;
                }
                idle = Idle::default();
                (next, cause) = (now, Cause::Happened);
            }
            ctx.clock.sleep(POLL);
        }
        self.crew.finish(&*ctx.clock, LAST_WORDS);
        self.notices.finish(&*ctx.clock, LAST_NEWS);
        watch::forget(ctx);
        self.journal(why_ends);
        self.say("the daemon has ended");
    }

    /// Whether nobody relies on this daemon, which has had nothing to do. A command writes down what it wants first, and
    /// asks then whether a daemon is there: so this one says first that it is not, and looks then at what is written down.
    fn may_end(&mut self) -> bool {
        watch::forget(self.ctx);
        let is_done = self.ctx.data().is_ok_and(|data| idle::has_nothing(&data));
        is_done && !outbox::is_waiting(self.ctx)
    }

    /// One turn, whatever it runs into.
    fn turn(&mut self, cause: Cause) -> Turn {
        let ctx = self.ctx;
        let data = ctx.data().ok();
        if data.as_ref().is_some_and(|data| data.ack()) {
            self.makers.rouse();
        }
        let refreshed = ctx.refresh_settings();
        self.note_settings(refreshed.as_ref().err());
        let watches = self.beside.watches(ctx, data.as_deref());
        self.note_watching(watches.as_ref());
        let turned = catch_unwind(AssertUnwindSafe(|| match &watches {
            None => turn::turn(ctx, &mut self.memory, &mut self.crew, cause),
            Some(_) => turn::watch(ctx, &mut self.memory, cause),
        }));
        let result = turned.unwrap_or_else(|_| {
            // What was remembered may be half of something.
            self.memory = LookMemory::default();
            Err(Error::failed("a turn was cut short by a defect of tpu")
                .hint("please report what `tpu history` and this window show"))
        });
        let why = watches.as_ref().map(Watches::in_words);
        let who = (self.since, self.role.hosting, self.role.ends_idle);
        let noted = watch::note_turn(ctx, who, why, self.crew.troubles(&*ctx.clock));
        // From here on everybody knows that the daemon is there, also for what it is to bring back.
        let made = if watches.is_none() { self.makers.look(ctx) } else { Ok(()) };
        let (mut turn, trouble) = match result {
            Ok(turn) => (turn, refreshed.err().or(noted.err()).or(made.err())),
            Err(error) => (Turn::default(), Some(error)),
        };
        let trouble = trouble.map(|error| error.message).or_else(|| self.beside.trouble().cloned());
        if trouble != self.trouble {
            match &trouble {
                Some(trouble) => self.say(&format!("trouble: {trouble}")),
                None => self.say("all is well again"),
            }
            self.trouble = trouble;
        }
        let phases = std::mem::take(&mut turn.phases);
        if self.watches != Some(Watches::Ordered) {
            self.notices.saw(phases);
        }
        let untold = self.notices.trouble();
        if untold != self.untold {
            if let Some(why) = &untold {
                self.say(&format!("nobody can be told of anything: {why}"));
            }
            self.untold = untold;
        }
        for line in self.foretold.news(std::mem::take(&mut turn.planned)) {
            self.say(&line);
        }
        for warning in ctx.take_warnings() {
            self.say(&format!("warning: {warning}"));
        }
        let made = self.makers.take_report();
        for line in self.crew.take_report().into_iter().chain(made) {
            self.say(&line);
        }
        let rests = self.makers.first_rest(ctx.clock.monotonic());
        turn.rest = rests.map_or(turn.rest, |rest| rest.min(turn.rest));
        turn
    }

    /// Says and writes down, once, that it only watches and why, and that it acts again.
    fn note_watching(&mut self, watches: Option<&Watches>) {
        let line = match (watches, &self.watches) {
            (Some(now), before) if before.as_ref().is_none_or(|was| now.is_other_than(was)) => {
                Some(format!("the daemon only watches, since {}", now.in_words()))
            }
            (None, Some(Watches::Beside(_))) => {
                Some("the original's monitor is gone: the daemon acts again".to_owned())
            }
            (None, Some(_)) => Some("the daemon acts again".to_owned()),
            (Some(_) | None, _) => None,
        };
        self.watches = watches.cloned();
        if let Some(line) = line {
            self.say(&line);
            self.journal(&line);
        }
    }

    /// Writes down what has become of the settings, once: by which control plane it acts is no small thing.
    fn note_settings(&mut self, trouble: Option<&Error>) {
        let trouble = trouble.map(|error| error.message.clone());
        if trouble != self.unsettled {
            if let Some(trouble) = &trouble {
                self.journal(&format!("the settings stay as they were: {trouble}"));
            }
            self.unsettled = trouble;
        }
        let cloud = self.ctx.usual_provider();
        if cloud != self.cloud {
            let before = &self.cloud;
            self.journal(&format!(
                "the daemon works with cloud {cloud} now, until here with {before}"
            ));
            self.cloud = cloud;
        }
    }

    /// A line for the journal, about the daemon itself.
    fn journal(&mut self, text: &str) {
        if let Err(error) = watch::note(self.ctx, watch::ACTOR, "daemon", text) {
            self.say(&format!("trouble: {error}"));
        }
    }

    /// A line for whoever looks at the window; the journal holds what matters.
    fn say(&mut self, line: &str) {
        let now = self.ctx.clock.now().to_rfc3339();
        // A window that has gone is no reason to stop watching.
        let line = tpu_core::text::escape(line);
        drop(writeln!(self.out, "{now}  {line}").and_then(|()| self.out.flush()));
    }
}
