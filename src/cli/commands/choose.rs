//! `tpu run TYPE`: the best free target of a type, at once or in turn with others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::app::{App, asked_to_end};
use crate::cli::args::Run;
use crate::cli::progress::Progress;
use crate::model::data::Data;
use crate::model::policy::Policy;
use crate::ops::error::did_you_mean;
use crate::ops::launch::RunRequest;
use crate::ops::launch::attempt::Launched;
use crate::ops::named;
use crate::ops::queue::field::{self, Wish};
use crate::ops::queue::keep::{self, Patience, Stop};
use crate::ops::queue::{now, presence};
use crate::ops::selection::Sorted;
use crate::ops::{Ctx, Error};
use crate::plan::choice::Assignment;
use crate::plan::types::parse_type;
use crate::sys::env::Env;
use crate::sys::proc::{self, Spawn};

/// When a job is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// At once, or after a wait at the terminal.
    Now,
    /// When its turn in the queue comes.
    InTurn,
}

/// The words that name types, if a target is to be chosen. A target of that very name comes first.
pub(super) fn types(
    args: &Run,
    sorted: &mut Sorted,
    data: &Data,
    begins: Begins,
) -> Option<Vec<String>> {
    // What waits may wait for a target that is yet to come.
    let is_known = |word: &str| match begins {
        Begins::Now => field::is_type(data, word),
        Begins::InTurn => field::is_type(data, word) || parse_type(word).is_some(),
    };
    let is_type = |word: &String| data.resolve_target(word).is_none() && is_known(word);
    let (types, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_type);
    sorted.rest = rest;
    let is_wait_alone = args.wait && sorted.rest.is_empty();
    let chosen = !types.is_empty() || args.auto || is_wait_alone;
    chosen.then_some(types)
}

/// The machines among which one is to be chosen, if several are named, or one that has room for several and is to be
/// waited for. A target of a type comes first.
pub(super) fn among(
    args: &Run,
    sorted: &mut Sorted,
    data: &Data,
) -> Result<Option<Vec<String>>, Error> {
    let takes_several = |word: &str| {
        data.resolve_target(word).is_some_and(|target| {
            data.registration(&target.name).is_some_and(|known| known.host.is_some())
                || target.is_here()
        })
    };
    let is_meant = |word: &String| {
        named::is_of_several(data, word)
            || (args.wait || args.policy.is_some()) && takes_several(word)
    };
    let (among, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_meant);
    sorted.rest = rest;
    if among.is_empty() {
        return match &args.policy {
            None => Ok(None),
            Some(_) => Err(Error::usage("--policy says which of several machines is taken")
                .hint("name some, as in: tpu run gpu[1-4] --policy smart -- COMMAND")),
        };
    }
    if let Some(word) = sorted.rest.first() {
        return Err(Error::not_found(format!("'{word}' is neither a user nor a target"))
            .hint("`tpu hosts` lists machines and pools; a command stands behind --"));
    }
    named::named(data, &among)?;
    Ok(Some(among))
}

/// Reads `--policy`.
pub(super) fn policy(word: &str) -> Result<Policy, Error> {
    Policy::parse(word).ok_or_else(|| {
        let known = Policy::ALL.map(Policy::as_str);
        let hint = did_you_mean(word, known).unwrap_or_else(|| known.join(", "));
        Error::usage(format!("--policy {word}: no such policy")).hint(hint)
    })
}

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
