//! Chooses the best free target of a type, and waits for one in turn with others.
//!
//! Everybody computes the same thing from the same file: who came first gets the first choice, then the
//! next. A place whose process is dead counts no more, so nobody waits behind a ghost.

use crate::model::data::Data;
use crate::model::ids::UserName;
use crate::model::line::Ticket;
use crate::model::target::LOCAL;
use crate::ops::ctx::user_of;
use crate::ops::{Ctx, Error, lease};
use crate::plan::board::{self as plan, Pick, Row, Wanted};
use crate::plan::types::TypeExpr;

/// What is wished for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// For whom.
    pub user: UserName,
    /// The types, as typed; none means any.
    pub types: Vec<String>,
    /// Reclaimable ones only, or on-demand ones only.
    pub reclaimable: Option<bool>,
}

impl Wish {
    fn of(ticket: &Ticket) -> Self {
        Self {
            user: ticket.user.clone(),
            types: ticket.types.clone(),
            reclaimable: ticket.reclaimable,
        }
    }
}

/// Whether a word names types, and at least one known target is of them. What looks like a type and fits
/// nothing is more likely a name with a slip in it.
pub fn is_type(data: &Data, word: &str) -> bool {
    let Some(expr) = TypeExpr::parse(word) else { return false };
    let names = data.registry().names();
    names.iter().any(|name| {
        let registered = data.target(name).and_then(|target| target.accelerator);
        let accelerator = registered.or_else(|| crate::plan::types::guess(name.as_str()));
        expr.includes(accelerator.as_deref())
    })
}

/// What the wish may have now, the best first: what is left when everybody who came before has chosen.
/// `ticket` is the wish's own place in the line; without one it stands at the end.
pub fn picks(ctx: &Ctx, wish: &Wish, ticket: Option<&str>) -> Result<Vec<Pick>, Error> {
    let data = ctx.data()?;
    user_of(&data, &wish.user)?;
    let mut rows = super::look(ctx)?.targets;
    for before in data.waiting().iter().take_while(|other| Some(other.id.as_str()) != ticket) {
        if lease::is_alive(ctx, &before.owner) == Some(false) {
            continue;
        }
        if let Some(first) = choose(&data, &rows, &Wish::of(before))?.into_iter().next() {
            rows.retain(|row| row.target != first.target);
        }
    }
    choose(&data, &rows, wish)
}

fn choose(data: &Data, rows: &[Row], wish: &Wish) -> Result<Vec<Pick>, Error> {
    let types: Option<Vec<TypeExpr>> =
        wish.types.iter().map(|word| TypeExpr::parse(word)).collect();
    let types = types.ok_or_else(|| {
        Error::usage(format!("not all of these are types: {}", wish.types.join(", ")))
            .hint("v2, v234, v3+, v*, v2-32, v5e")
    })?;
    // The zone where the newest attempt on a target of a zone has its checkpoints.
    let newest = data.user(&wish.user).into_iter().flat_map(|user| user.jobs().iter().rev());
    let zone = newest
        .filter(|job| job.tpu.as_str() != LOCAL)
        .find_map(|job| data.target(&job.tpu).and_then(|target| target.zone));
    let wanted = Wanted {
        types: &types,
        reclaimable: wish.reclaimable,
        user: &wish.user,
        zone: zone.as_deref(),
    };
    Ok(plan::choose(rows, &wanted))
}

/// Says why nothing can be had.
pub fn nothing(ctx: &Ctx, wish: &Wish) -> Error {
    let what = if wish.types.is_empty() { "any type".to_owned() } else { wish.types.join(", ") };
    let waiting = ctx.data().map_or(0, |data| data.waiting().len());
    let line = if waiting > 0 { format!("; {waiting} waiting in line") } else { String::new() };
    let types = wish.types.join(" ");
    Error::refused(format!("no target of {what} is free{line}")).hint(format!(
        "who has which: tpu find {types}; wait in line: tpu run {} --wait",
        if types.is_empty() { "--auto" } else { &types }
    ))
}

/// Takes a place at the end of the line, and clears away those of dead processes.
pub fn join(ctx: &Ctx, wish: &Wish) -> Result<String, Error> {
    let id = ctx.random.hex(8);
    let owner = lease::me(&ctx.env);
    ctx.transact(|tx| {
        user_of(&tx.data, &wish.user)?;
        let ticket = Ticket {
            id: id.clone(),
            user: wish.user.clone(),
            types: wish.types.clone(),
            reclaimable: wish.reclaimable,
            owner,
            since: tx.now,
        };
        let line = tx.data.waiting_mut();
        line.retain(|ticket| lease::is_alive(ctx, &ticket.owner) != Some(false));
        line.push(ticket);
        Ok(id)
    })
}

/// Gives a place up.
pub fn leave(ctx: &Ctx, id: &str) -> Result<(), Error> {
    ctx.transact(|tx| {
        tx.data.waiting_mut().retain(|ticket| ticket.id != id);
        Ok(())
    })
}

/// How many are before this place and alive.
pub fn before(ctx: &Ctx, id: &str) -> Result<usize, Error> {
    let data = ctx.data()?;
    let before = data.waiting().iter().take_while(|ticket| ticket.id != id);
    Ok(before.filter(|ticket| lease::is_alive(ctx, &ticket.owner) != Some(false)).count())
}
