//! `tpu run TYPE`: the best free target of a type, at once or in turn with others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::app::{App, asked_to_end};
use crate::cli::args::Run;
use crate::cli::progress::Progress;
use tpu_core::plan::choice::Assignment;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::launch::attempt::Launched;
use tpu_ops::waiting::queue::field::Wish;
use tpu_ops::waiting::queue::keep::{self, Patience, Stop};
use tpu_ops::waiting::queue::{now, presence};
use tpu_ops::{Ctx, Error};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Spawn};

/// Who waits in line looks at least so often.
const LOOK: Duration = Duration::from_secs(3);

/// What came of a wish.
pub(super) enum Chosen {
    /// The job has started.
    Launched(Launched),
    /// A dry run: the request names the target now.
    Would,
    /// A dry run: it would wait in line, for what this says.
    WouldWait(String),
}

/// Takes the best free target of the types that are wished for. With `--wait` in line, until there is one.
/// Nothing is started in a dry run.
pub(super) fn choose(
    app: &App,
    args: &Run,
    wish: &Wish,
    request: &mut RunRequest,
    notes: &mut Vec<String>,
) -> Result<Chosen, Error> {
    let ctx = app.ctx()?;
    if app.global.dry_run {
        let Some(pick) = now::picks(ctx, wish)?.into_iter().next() else {
            if args.wait {
                return Ok(Chosen::WouldWait(waits_for(ctx, wish, presence::waiting(ctx))));
            }
            return Err(now::nothing(ctx, wish));
        };
        notes.push(format!("{}: {}", pick.target, pick.reason));
        request.on = Some(Assignment { target: pick.target, reason: pick.reason, busy: None });
        return Ok(Chosen::Would);
    }
    let progress = Progress::new(app, "looking for a target");
    let (launched, pick) = if args.wait {
        let ended = Ended::listen()?;
        let mut last = None;
        let mut say = |before| {
            if last.replace(before) != Some(before) {
                progress.announce(app, waits_for(ctx, wish, before));
            }
        };
        let stop = || ended.why(&ctx.env);
        let patience = Patience { rest: LOOK, say: &mut say, stop: &stop };
        keep::wait(ctx, request, patience)?
    } else {
        now::take(ctx, wish, request)?.ok_or_else(|| now::nothing(ctx, wish))?
    };
    notes.push(format!("{}: {}", pick.target, pick.reason));
    Ok(Chosen::Launched(launched))
}

/// The line that tells a person how many wait before them.
fn waits_for(ctx: &Ctx, wish: &Wish, before: usize) -> String {
    format!("waiting for {} · {before} before you{}", wish.what(), now::holders(ctx, wish))
}

/// Who or what asked this process to wait no more.
struct Ended {
    asked: Arc<AtomicBool>,
}

impl Ended {
    fn listen() -> Result<Self, Error> {
        Ok(Self { asked: asked_to_end(&[SIGINT, SIGHUP, SIGTERM])? })
    }

    /// Whether to wait no more. A machine that goes down ends its processes too: then the place is kept.
    fn why(&self, env: &Env) -> Option<Stop> {
        if self.asked.load(Ordering::Relaxed) {
            return Some(if goes_down(env) { Stop::GoesDown } else { Stop::Told });
        }
        None
    }
}

/// Whether this machine is on its way down, where its system says so.
fn goes_down(env: &Env) -> bool {
    let mut ask = Spawn::new("systemctl").arg("is-system-running").timeout(Duration::from_secs(2));
    ask = ask.env_clear();
    for (name, value) in &env.vars {
        ask = ask.env(name, value);
    }
    proc::run(&ask).is_ok_and(|answer| answer.text().trim() == "stopping")
}
