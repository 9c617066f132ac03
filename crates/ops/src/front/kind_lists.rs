//! What kinds of target keep lists of: flavors, images.

pub use tpu_engine::kinds::KindList;

use crate::{Ctx, Error};
use tpu_engine::kinds::KindAnswer;

/// What is in a list of the first kind that keeps one.
pub fn listed(ctx: &Ctx, list: KindList<'_>) -> Result<KindAnswer, Error> {
    let answer = ctx.kinds.all().find_map(|kind| kind.listed(list, ctx));
    Ok(answer.ok_or_else(|| Error::usage("no kind of target keeps such a list"))??)
}
