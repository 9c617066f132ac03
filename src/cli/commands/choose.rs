//! `tpu run TYPE`: the best free target of a type, at once or in turn with others.

use std::sync::atomic::Ordering;
use std::time::Duration;

use signal_hook::consts::SIGINT;

use crate::cli::app::{App, asked_to_end};
use crate::cli::args::Run;
use crate::cli::progress::Progress;
use crate::cli::resolve::Sorted;
use crate::model::data::Data;
use crate::ops::Error;
use crate::ops::board::line::{self, Patience, Wish};
use crate::ops::launch::LaunchRequest;
use crate::ops::launch::attempt::Launched;

/// The words that name types, if a target is to be chosen. A target of that very name comes first.
pub(super) fn types(args: &Run, sorted: &mut Sorted, data: &Data) -> Option<Vec<String>> {
    let is_type = |word: &String| data.resolve_target(word).is_none() && line::is_type(data, word);
    let (types, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_type);
    sorted.rest = rest;
    let chosen = !types.is_empty() || args.auto || args.wait;
    chosen.then_some(types)
}

/// Who waits in line looks at least so often.
const LOOK: Duration = Duration::from_secs(3);

/// Takes the best free target of the types that are wished for. With `--wait` in line, until there is one.
/// Nothing is started in a dry run: then the request names the target.
pub(super) fn choose(
    app: &App,
    args: &Run,
    wish: &Wish,
    request: &mut LaunchRequest,
    notes: &mut Vec<String>,
) -> Result<Option<Launched>, Error> {
    let ctx = app.ctx()?;
    if app.global.dry_run {
        let first = line::picks(ctx, wish, None)?.into_iter().next();
        let pick = first.ok_or_else(|| line::nothing(ctx, wish))?;
        notes.push(format!("{}: {}", pick.target, pick.reason));
        pick.target.as_str().clone_into(&mut request.target);
        return Ok(None);
    }
    let progress = Progress::new(app, "looking for a target");
    let (launched, pick) = if args.wait {
        // Whatever else ends this process may be a restart of the machine, and the place is kept.
        let stop = asked_to_end(&[SIGINT])?;
        let what =
            if wish.types.is_empty() { "any type".to_owned() } else { wish.types.join(", ") };
        let mut say = |before| progress.say(format!("waiting for {what} · {before} before you"));
        let stop = || stop.load(Ordering::Relaxed);
        let patience = Patience { rest: LOOK, say: &mut say, stop: &stop };
        line::wait(ctx, wish, request, patience)?
    } else {
        line::take(ctx, wish, request, None)?.ok_or_else(|| line::nothing(ctx, wish))?
    };
    notes.push(format!("{}: {}", pick.target, pick.reason));
    Ok(Some(launched))
}
