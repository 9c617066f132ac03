//! `tpu run TYPE`: the best free target of a type, at once or in turn with others.

use std::time::Duration;

use crate::cli::app::App;
use crate::cli::args::Run;
use crate::cli::progress::Progress;
use crate::cli::resolve::Sorted;
use crate::model::data::Data;
use crate::ops::board::line::{self, Wish};
use crate::ops::launch::attempt::Launched;
use crate::ops::launch::{self, LaunchRequest};
use crate::ops::{Error, Kind};

/// The words that name types, if a target is to be chosen. A target of that very name comes first.
pub(super) fn types(args: &Run, sorted: &mut Sorted, data: &Data) -> Option<Vec<String>> {
    let is_type = |word: &String| data.resolve_target(word).is_none() && line::is_type(data, word);
    let (types, rest): (Vec<String>, Vec<String>) = sorted.rest.drain(..).partition(is_type);
    sorted.rest = rest;
    let chosen = !types.is_empty() || args.auto || args.wait;
    chosen.then_some(types)
}

/// Between two looks of one who waits in line.
const POLL: Duration = Duration::from_millis(300);

/// Takes the best free target of the types that are wished for; one that somebody else takes first is
/// left to them, and the next is tried. With `--wait` in line, until there is one. Nothing is started in a
/// dry run: then the request names the target.
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
    let ticket = if args.wait { Some(line::join(ctx, wish)?) } else { None };
    let progress = Progress::new(app, "looking for a target");
    let chosen = loop {
        match take(app, wish, request, notes, ticket.as_deref()) {
            Ok(Some(launched)) => break Ok(Some(launched)),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        let Some(ticket) = &ticket else { break Err(line::nothing(ctx, wish)) };
        let before = line::before(ctx, ticket)?;
        progress.say(format!("waiting for {} · {before} before you", wish.types.join(", ")));
        ctx.clock.sleep(POLL);
    };
    if let Some(ticket) = &ticket {
        line::leave(ctx, ticket)?;
    }
    chosen
}

/// Starts the job on the first target that can be had now. `None` if none can.
fn take(
    app: &App,
    wish: &Wish,
    request: &mut LaunchRequest,
    notes: &mut Vec<String>,
    ticket: Option<&str>,
) -> Result<Option<Launched>, Error> {
    let ctx = app.ctx()?;
    for pick in line::picks(ctx, wish, ticket)? {
        pick.target.as_str().clone_into(&mut request.target);
        match launch::launch(ctx, request) {
            Ok(launched) => {
                notes.push(format!("{}: {}", pick.target, pick.reason));
                return Ok(Some(launched));
            }
            // Somebody was faster, if it is not to be had any more.
            Err(error) if error.kind == Kind::Refused => {
                let now = line::picks(ctx, wish, ticket)?;
                if now.iter().any(|other| other.target == pick.target) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
