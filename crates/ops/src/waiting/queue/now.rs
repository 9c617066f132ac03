//! Starts a job at once on the best place that is left when everybody in the queue has chosen, or says why there is
//! none.

use crate::act::hosts::choose as hosts;
use crate::act::lately::Lately;
use crate::act::launch::attempt::Launched;
use crate::act::launch::{self, RunRequest};
use crate::base::ctx::user_of;
use crate::observe::seen_before::seen_before;
use crate::{Ctx, Error, Kind};
use tpu_core::model::ids::TargetName;
use tpu_core::model::spec::TargetRequest;
use tpu_core::plan::board::Pick;
use tpu_core::plan::choice::{Assignment, Ranking, Unfit};
use tpu_core::plan::slots::Short;

use super::field::{Avoided, told};
use super::wish::Wish;
use super::{left_over, presence};

/// What the wish may have now, the best first: what is left when everybody who waits has chosen.
pub fn picks(ctx: &Ctx, wish: &Wish) -> Result<Vec<Pick>, Error> {
    with_what_was_seen(ctx, ranking(ctx, wish)?.picks)
}

/// The same with why each other machine is not taken.
fn ranking(ctx: &Ctx, wish: &Wish) -> Result<Ranking, Error> {
    let data = ctx.data()?;
    user_of(&data, &wish.user)?;
    left_over(ctx, &data, wish, &Avoided::new(), |field| field.ranking(wish))
}

/// The same picks, with what was seen of targets like each: how often they were taken away, how long they were waited for.
pub(super) fn with_what_was_seen(ctx: &Ctx, mut picks: Vec<Pick>) -> Result<Vec<Pick>, Error> {
    if picks.is_empty() {
        return Ok(picks);
    }
    let data = ctx.data()?;
    // What cannot be read is only not said.
    let seen = seen_before(ctx).unwrap_or_default();
    for pick in &mut picks {
        let target = data.target(&pick.target);
        let of = target.map(|target| seen.of_target(&target)).unwrap_or_default();
        if let Some(words) = of.in_words() {
            pick.reason = format!("{}; {words}", pick.reason);
        }
    }
    Ok(picks)
}

/// Who has the first of what is wished for: `: v2-32-p1 alice/7, v2-32-p2 bob`.
pub fn holders(ctx: &Ctx, wish: &Wish) -> String {
    let Ok(data) = ctx.data() else { return String::new() };
    let said = left_over(ctx, &data, wish, &Avoided::new(), |field| {
        let unfit = field.ranking(wish)?.unfit;
        Ok(if unfit.is_empty() { field.holders(wish) } else { told(&unfit) })
    });
    said.unwrap_or_default()
}

fn is_of_machines(wish: &Wish) -> bool {
    matches!(&wish.target, TargetRequest::Any(any_of) if !any_of.among.is_empty())
}

/// Says why nothing can be had.
pub fn nothing(ctx: &Ctx, wish: &Wish) -> Error {
    let what = wish.what();
    if is_of_machines(wish) {
        return Error::refused(format!("none of {what} has room{}", holders(ctx, wish)))
            .hint("to wait until one has: the same with --wait; `tpu hosts` says who has what");
    }
    let waiting = presence::waiting(ctx);
    let line = if waiting > 0 { format!("; {waiting} waiting in line") } else { String::new() };
    let types = match &wish.target {
        TargetRequest::Any(any_of) => any_of.types.join(" "),
        TargetRequest::Named(_) => String::new(),
    };
    Error::refused(format!("no target of {what} is free{}{line}", holders(ctx, wish))).hint(
        format!(
            "who has which: tpu find {types}; wait in line: tpu run {} --wait",
            if types.is_empty() { "--auto" } else { &types }
        ),
    )
}

/// Starts what `request` says on the best target that can be had now; one that somebody else takes first
/// is left to them, and the next is tried. `None` if none can be had.
pub fn take(
    ctx: &Ctx,
    wish: &Wish,
    request: &RunRequest,
) -> Result<Option<(Launched, Pick)>, Error> {
    let mut passed_over = Vec::new();
    let Ranking { picks: all, unfit } = ranking(ctx, wish)?;
    if all.is_empty() {
        never(wish, &unfit)?;
    }
    let all = with_what_was_seen(ctx, all)?;
    let lately = Lately::default();
    // Whole targets of a type say how they are by their control plane.
    let asked: Box<dyn Iterator<Item = _>> = if is_of_machines(wish) {
        let usable = hosts::usable(ctx, &all, &wish.ask, &lately);
        Box::new(usable.map(|(pick, busy)| (pick, busy.map(Some))))
    } else {
        Box::new(all.iter().map(|pick| (pick, Ok(None))))
    };
    for (pick, busy) in asked {
        let busy = match busy {
            Ok(busy) => busy,
            Err(why) => {
                passed_over.push(format!("{}: {why}", pick.target));
                continue;
            }
        };
        let Pick { target, reason } = pick.clone();
        match launch::launch(ctx, &request.on(&Assignment { target, reason, busy })) {
            Ok(launched) => {
                ctx.warn(passed_over);
                return Ok(Some((launched, pick.clone())));
            }
            // Nothing else could be claimed either.
            Err(error) if error.is_locked_out() => return Err(error),
            // Somebody was faster, also where there is room again by now.
            Err(error) if error.passes => {}
            // The same, if it is not to be had any more.
            Err(error) if error.kind == Kind::Refused => {
                if picks(ctx, wish)?.iter().any(|other| other.target == pick.target) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    if passed_over.is_empty() {
        return Ok(None);
    }
    let what = format!("none of {} can be used: {}", wish.what(), passed_over.join("; "));
    Err(Error::refused(what).hint("wait until one can be: the same with --wait"))
}

/// Refuses what nothing that is known could ever run, however long somebody waits.
pub fn possible(ctx: &Ctx, wish: &Wish) -> Result<(), Error> {
    let Ranking { picks, unfit } = ranking(ctx, wish)?;
    if picks.is_empty() { never(wish, &unfit) } else { Ok(()) }
}

/// An error where nothing can ever be had.
fn never(wish: &Wish, unfit: &[(TargetName, Unfit)]) -> Result<(), Error> {
    let lacks = |(_, why): &(TargetName, Unfit)| matches!(why, Unfit::Short(Short::Lacks { .. }));
    if unfit.is_empty() || !unfit.iter().all(lacks) {
        return Ok(());
    }
    let what = format!("no machine of {} could ever run it{}", wish.what(), told(unfit));
    Err(Error::usage(what).hint("ask for less; `tpu hosts` says what each has"))
}
