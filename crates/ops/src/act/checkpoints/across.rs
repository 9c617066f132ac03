//! A checkpoint for a job that goes on in another region: found beside its target if it is there, else copied there, where the
//! setting `checkpoint_copy` names the places. What it costs is said before.

use crate::base::lease::{self, Held};
use crate::{Ctx, Error};
use tpu_core::model::checkpoint_copy::{self, RegionPlace};
use tpu_core::model::data::User;
use tpu_core::model::objects::StoragePlace;
use tpu_core::model::prices;
use tpu_core::model::target::Target;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::resume_from::{CheckpointAt, ResumeFrom};
use tpu_core::text;

use super::copy::{self, CopyOrder, CopyProgress};
use super::find::{self, FoundCheckpoint};
use super::shelf;

/// Seconds after which a lease is renewed while a copy goes on.
const RENEW_S: u64 = lease::TERM_S.unsigned_abs() / 3;

/// What is to be carried over before a job goes on.
#[derive(Clone, Debug)]
pub struct Haul {
    /// What is copied, and where.
    pub order: CopyOrder,
    /// In words, with what it costs.
    pub said: String,
}

/// What moving so many bytes out of a region costs, in words.
pub fn cost(table: &prices::Prices, region: &str, bytes: u64) -> String {
    match prices::egress_per_gb(table, region) {
        Some(price) => {
            #[expect(clippy::cast_precision_loss, reason = "a price to the cent")]
            let gigabytes = bytes as f64 / 1e9;
            format!("{:.2} by prices.egress", gigabytes * price)
        }
        None => "an amount that nobody has said (prices.egress)".to_owned(),
    }
}

/// Where a job goes on, and what has to be carried there first. What speaks against it is a remark, and the job goes on from
/// where its checkpoint is.
pub fn plan(
    ctx: &Ctx,
    user: &User,
    target: &Target,
    start: ResumeFrom,
) -> Result<(ResumeFrom, Option<Haul>, Option<String>), Error> {
    let settings = ctx.settings(Some(user))?;
    let places = checkpoint_copy::places(&settings.checkpoint_copy);
    let (ResumeFrom::Found(CheckpointAt { dir, is_in_work_dir: false, .. }), Some(zone)) =
        (&start, &target.zone)
    else {
        return Ok((start, None, None));
    };
    if places.is_empty() {
        return Ok((start, None, None));
    }
    let from = StoragePlace::parse(dir).map_err(Error::usage)?;
    let here = checkpoint_copy::above(&places, &from);
    let Some((root, below)) = here else {
        let remark = format!("{dir} is below no place of checkpoint_copy: it is not copied");
        return Ok((start, None, Some(remark)));
    };
    let Some(there) = checkpoint_copy::other_for_zone(&places, root, zone) else {
        let remark = checkpoint_copy::for_zone(&places, zone).is_none().then(|| {
            format!("checkpoint_copy names no place for {zone}: {dir} is read from there")
        });
        return Ok((start, None, remark));
    };
    let (at, order) = wanted(ctx, user, (root, &from), (there, &below))?;
    let haul = order.map(|order| {
        let bytes = order.from.bytes();
        let said = format!(
            "{} ({}) is copied to {}: from {} to {} costs {}",
            order.from.place_in_words(),
            text::bytes(bytes),
            order.place(),
            root.region,
            there.region,
            cost(&settings.prices, &root.region, bytes)
        );
        Haul { order, said }
    });
    Ok((ResumeFrom::Found(at), haul, None))
}

/// Where a job goes on in another region, and what is to be copied for it: nothing where something newer is there.
fn wanted(
    ctx: &Ctx,
    user: &User,
    (_, from): (&RegionPlace, &StoragePlace),
    (there, below): (&RegionPlace, &str),
) -> Result<(CheckpointAt, Option<CopyOrder>), Error> {
    let pattern = find::pattern(ctx, Some(user))?;
    let shelf = shelf::open(ctx).ok();
    let look = |place: &StoragePlace| find::below(ctx, shelf.as_ref(), place, pattern.as_ref());
    let to = there.place.join(below);
    let (old, new) = (look(from)?, look(&to)?);
    let Some(newest) = find::newest(&old) else {
        return Err(Error::refused(format!("no whole checkpoint is in {from} any more"))
            .hint("nothing was changed; `tpu checkpoints` lists them"));
    };
    let at = |one: &FoundCheckpoint| CheckpointAt {
        dir: to.to_string(),
        name: one.below().to_owned(),
        step: one.step,
        is_in_work_dir: false,
    };
    if let Some(there) = find::newest(&new).filter(|one| one.step >= newest.step) {
        return Ok((at(there), None));
    }
    let order = CopyOrder { to: to.clone(), from: newest.clone() };
    Ok((at(newest), Some(order)))
}

/// Carries it over. The lease of its lineage is kept meanwhile.
pub fn carry(ctx: &Ctx, haul: &Haul, lease: &Held) -> Result<(), Error> {
    let shelf = shelf::open(ctx).ok();
    let mut renewed: Timestamp = ctx.clock.now();
    let mut watch = |_: CopyProgress| {
        let now = ctx.clock.now();
        if now.seconds_since(renewed) >= RENEW_S {
            renewed = now;
            lease::renew(ctx, lease)?;
        }
        Ok(())
    };
    copy::copy((ctx, shelf.as_ref()), &haul.order, &mut watch).map(drop)
}
