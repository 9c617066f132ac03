//! The daemon: gather, decide, act, over and over. **It knows nothing that a person could not do**: what it
//! gathers is `ops::act::outlook`, what it decides is `plan::decide`, what it does are the same `ops` that
//! keys and commands call.
//!
//! [`run`] is the loop; `pulse` says when it is worth looking; `turn` is one round; `crew` carries the
//! actions out, each lineage on its own; `figures` has machines asked and `notices` people told beside that.
//! `ops::act::service` starts and ends a daemon in its tmux session, `ops::base::watch` is how everybody else sees it.
//!
//! It never exits by itself. Killed at any instant, it leaves nothing that its successor cannot complete.

mod checks;
mod crew;
mod figures;
mod makers;
mod notices;
mod turn;
mod wake;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tpu_core::model::time::Timestamp;
use tpu_ops::base::watch;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_ops::{Ctx, Error};

use checks::Checks;
use crew::Crew;
use figures::Rounds;
use makers::Makers;
use notices::Notices;
use turn::{Cause, Turn};
use wake::Wake;

/// How often it is asked whether something has happened.
const POLL: Duration = Duration::from_millis(100);

/// Between two turns, whatever happens.
const AT_LEAST: Duration = Duration::from_millis(250);

/// Actions under way get so long to end, once the daemon is to end; what is then not complete is completed
/// by the next one.
const LAST_WORDS: Duration = Duration::from_secs(7);

/// What is being told to people gets so long.
const LAST_NEWS: Duration = Duration::from_secs(2);

/// Runs the daemon until `stop` is set. Refused if one runs already at this place.
pub fn run(ctx: &Arc<Ctx>, stop: &AtomicBool, out: &mut dyn Write) -> Result<(), Error> {
    // Without a data file there is nothing to watch, and nowhere to say so later.
    ctx.data()?;
    watch::as_monitor(ctx, || Monitor::new(ctx, out).serve(stop))
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
    rounds: Rounds,
    notices: Notices,
    /// Why people cannot be told, to be said once.
    untold: Option<String>,
}

impl<'a> Monitor<'a> {
    fn new(ctx: &'a Arc<Ctx>, out: &'a mut dyn Write) -> Self {
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
            rounds: Rounds::default(),
            notices: Notices::default(),
            untold: None,
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
        while !stop.load(Ordering::Relaxed) {
            let now = ctx.clock.monotonic();
            let beat = wake.beat(ctx, now);
            let rested = last.is_none_or(|last| now >= last + AT_LEAST);
            // An action that has ended may be the reason for the next one.
            let done = self.crew.reap(now) | self.makers.reap(now);
            if done || beat || self.memory.is_answered() {
                (next, cause) = (now, Cause::Happened);
            }
            if rested && now >= next {
                let turn = self.turn(cause);
                cause = turn.next_cause();
                last = Some(ctx.clock.monotonic());
                next = now + turn.rest;
                wake.has_live_jobs = turn.has_live_jobs;
                self.checks.run(ctx, now);
            }
            self.rounds.run(ctx, now, wake.has_live_jobs);
            self.notices.run(ctx, now);
            ctx.clock.sleep(POLL);
        }
        self.crew.finish(&*ctx.clock, LAST_WORDS);
        self.notices.finish(&*ctx.clock, LAST_NEWS);
        watch::forget(ctx);
        self.journal("the daemon was asked to end");
        self.say("the daemon has ended");
    }

    /// One turn, whatever it runs into.
    fn turn(&mut self, cause: Cause) -> Turn {
        let ctx = self.ctx;
        if ctx.data().is_ok_and(|data| data.ack()) {
            self.makers.rouse();
        }
        let refreshed = ctx.refresh_settings();
        self.note_settings(refreshed.as_ref().err());
        let turned = catch_unwind(AssertUnwindSafe(|| {
            turn::turn(ctx, &mut self.memory, &mut self.crew, cause)
        }));
        let result = turned.unwrap_or_else(|_| {
            // What was remembered may be half of something.
            self.memory = LookMemory::default();
            Err(Error::failed("a turn was cut short by a defect of tpu")
                .hint("please report what `tpu history` and this window show"))
        });
        let noted = watch::note_turn(ctx, self.since, self.crew.troubles(&*ctx.clock));
        // From here on everybody knows that the daemon is there, also for what it is to bring back.
        let made = self.makers.look(ctx);
        let (mut turn, trouble) = match result {
            Ok(turn) => (turn, refreshed.err().or(noted.err()).or(made.err())),
            Err(error) => (Turn::default(), Some(error)),
        };
        let trouble = trouble.map(|error| error.message);
        if trouble != self.trouble {
            match &trouble {
                Some(trouble) => self.say(&format!("trouble: {trouble}")),
                None => self.say("all is well again"),
            }
            self.trouble = trouble;
        }
        self.notices.saw(std::mem::take(&mut turn.phases));
        let untold = self.notices.trouble();
        if untold != self.untold {
            if let Some(why) = &untold {
                self.say(&format!("nobody can be told of anything: {why}"));
            }
            self.untold = untold;
        }
        for warning in ctx.take_warnings() {
            self.say(&format!("warning: {warning}"));
        }
        let made = self.makers.take_report();
        for line in self.crew.take_report().into_iter().chain(made) {
            self.say(&line);
        }
        let rests = self.makers.rest(ctx.clock.monotonic());
        turn.rest = rests.map_or(turn.rest, |rest| rest.min(turn.rest));
        turn
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
