//! What jobs have waited and what they have cost: first each attempt by itself, then with those before it.

use std::collections::HashMap;

use tpu_core::model::accelerators;
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::{Job, Stretch};
use tpu_core::model::prices::{self, Prices};
use tpu_core::model::target::Target;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Shown};

use super::Ctx;

/// What users say that things cost; those who say nothing are not in it.
pub(super) struct PricesOf(HashMap<UserName, Prices>);

impl PricesOf {
    /// The prices of these users, as they are set now.
    pub(super) fn users<'a>(ctx: &Ctx, users: impl Iterator<Item = &'a User>) -> Self {
        let of = |user: &User| ctx.settings(Some(user)).unwrap_or_default().prices;
        let said = users.map(|user| (user.name.clone(), of(user)));
        Self(said.filter(|(_, prices)| !prices.is_empty()).collect())
    }

    /// What one attempt has cost, by the prices and by what is known of its target today. Nobody says what a part of a
    /// machine costs, and what has only waited has cost nothing.
    pub(super) fn cost(
        &self,
        job: &Job,
        target: Option<&Target>,
        worked_s: Option<u64>,
    ) -> Option<f64> {
        let prices = self.0.get(&job.user)?;
        let target = target.filter(|_| job.share.is_none())?;
        let accelerator = target.accelerator.as_deref()?;
        let of = (accelerator, accelerators::chips(accelerator));
        let per_hour = prices::per_hour(prices, of, target.pricing)?;
        #[expect(clippy::cast_precision_loss, reason = "seconds of some years")]
        let hours = worked_s? as f64 / 3_600.0;
        Some(per_hour * hours)
    }
}

/// How long one attempt has had its target: until now while it is at work, else until its end, or until another one went on
/// for it; `None` where nobody knows, and of what has only waited at its engine.
pub(super) fn worked_s(
    (data, job): (&Data, &Job),
    (started_at, worked): (Option<Timestamp>, Option<&[Stretch]>),
    shown: &Shown,
    now: Timestamp,
) -> Option<u64> {
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    let is_at_work = shown.status.is_live();
    let succeeded = || {
        let child = data.job(&JobId::new(job.user.clone(), job.child?))?;
        Some(child.launch.as_ref()?.at)
    };
    let until = ended.or_else(|| if is_at_work { Some(now) } else { succeeded() })?;
    match worked {
        Some([]) => None,
        Some(all) => Some(all.iter().map(|of| of.lasted_s(until)).sum()),
        None => Some(until.seconds_since(started_at?)),
    }
}

/// How long one attempt has waited: in a queue before it was claimed, and at its engine since.
pub(super) fn waited_s(job: &Job, worked: Option<&[Stretch]>, now: Timestamp) -> Option<u64> {
    let launch = job.launch.as_ref()?;
    let in_queue = launch.queued.map(|queued| launch.at.seconds_since(queued));
    let at_engine = worked.map(|all| {
        let end = launch.ended.unwrap_or(now);
        let worked_s: u64 = all.iter().map(|of| of.lasted_s(end)).sum();
        end.seconds_since(launch.at).saturating_sub(worked_s)
    });
    sum(in_queue, at_engine, |before, since| before + since)
}

/// Adds to each attempt what those before it have waited and cost, as far as they are among these.
pub(super) fn add_up(views: &mut [JobView]) {
    let has_any = |view: &&JobView| view.waited_s.is_some() || view.cost.is_some();
    let own: HashMap<JobId, (Option<u64>, Option<f64>)> = views
        .iter()
        .filter(|view| view.lineage.len() > 1)
        .filter(has_any)
        .map(|view| (view.id.clone(), (view.waited_s, view.cost)))
        .collect();
    if own.is_empty() {
        return;
    }
    // Each lineage is gone through once, however many of its attempts are among these.
    let mut sums: HashMap<JobId, (Option<u64>, Option<f64>)> = HashMap::new();
    for view in views.iter().filter(|view| view.lineage.len() > 1) {
        if sums.contains_key(&view.id) {
            continue;
        }
        let (mut waited_s, mut cost) = (None, None);
        for window in &view.lineage {
            let id = JobId::new(view.id.user.clone(), *window);
            if let Some((more_s, more)) = own.get(&id) {
                waited_s = sum(waited_s, *more_s, |a, b| a + b);
                cost = sum(cost, *more, |a, b| a + b);
            }
            sums.insert(id, (waited_s, cost));
        }
    }
    for view in views.iter_mut() {
        if let Some((waited_s, cost)) = sums.get(&view.id) {
            (view.waited_s, view.cost) = (*waited_s, *cost);
        }
    }
}

fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}
