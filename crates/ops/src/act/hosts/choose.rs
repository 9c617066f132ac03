//! One of several machines for a job: who is where is found out here, `plan::choice` decides.

use std::collections::{BTreeMap, HashMap};

use crate::act::lately::Lately;
use crate::base::ctx::user_of;
use crate::base::reservations::may_take;
use crate::{Ctx, Error};
use tpu_core::model::capacity::{Ask, BusyGpus};
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::policy::Policy;
use tpu_core::model::target::{Machines, Target};
use tpu_core::plan::board::Pick;
use tpu_core::plan::choice::{self, Candidate, Ranking};

use super::heard_lately;
use super::probe::{self, Unusable};

/// Refuses an engine among machines of which one is to be chosen.
pub(crate) fn refuse_engine(targets: &[Target]) -> Result<(), Error> {
    match targets.iter().find(|target| target.machines == Machines::Engine) {
        None => Ok(()),
        Some(engine) => {
            let what = format!("{} queues its jobs by itself", engine.name);
            Err(Error::usage(what).hint("name it alone, as in: tpu run NAME -- COMMAND"))
        }
    }
}

/// Machines, each with who is there by the facts.
pub(crate) fn candidates(
    ctx: &Ctx,
    data: &Data,
    targets: &[Target],
    lately: &Lately,
) -> Vec<Candidate> {
    lately.ask_about(ctx, data, targets);
    let candidate = |target: &Target| {
        let present = lately.users_of(ctx, data, &target.name).present();
        let share = |job: JobId| {
            let share = data.job(&job).and_then(|record| record.share.clone());
            (job, share)
        };
        Candidate {
            tenants: present.into_iter().map(share).collect(),
            capacity: target.capacity,
            busy: BTreeMap::new(),
            closed: data.drained(&target.name).map(ToString::to_string),
            target: target.name.clone(),
        }
    };
    targets.iter().map(candidate).collect()
}

/// Who wants one of some machines.
#[derive(Clone, Copy)]
pub struct HostRequest<'a> {
    /// For whom.
    pub user: &'a UserName,
    /// The machines.
    pub among: &'a [Target],
    /// How one of them is chosen; `None`: as the settings say.
    pub policy: Option<Policy>,
    /// What the job asks of it.
    pub ask: &'a Ask,
}

/// Those of the candidates that are wanted, in the order in which they are to be tried.
pub fn rank(
    ctx: &Ctx,
    data: &Data,
    candidates: &[Candidate],
    wanted: &HostRequest<'_>,
) -> Result<Ranking, Error> {
    let policy = match wanted.policy {
        Some(policy) => policy,
        None => ctx.settings(Some(user_of(data, wanted.user)?))?.policy,
    };
    let of = |target: &Target| candidates.iter().find(|known| known.target == target.name);
    let open = |candidate: &Candidate| {
        let may = may_take(data, &candidate.target, wanted.user, ctx.clock.now());
        let kept = may.err().map(|error| error.message);
        Candidate { closed: candidate.closed.clone().or(kept), ..candidate.clone() }
    };
    let candidates: Vec<Candidate> = wanted.among.iter().filter_map(of).map(open).collect();
    let mut draw = |below: usize| {
        let number = u64::from_str_radix(&ctx.random.hex(8), 16).unwrap_or_default();
        usize::try_from(number % (below.max(1) as u64)).unwrap_or_default()
    };
    Ok(choice::choose(&candidates, wanted.ask, policy, &mut draw))
}

/// Picks with what their machines say of themselves: the GPUs on which somebody else is at work, or why a job cannot
/// begin there. The first is asked alone, then ever more at once: most often it is the one that is taken, and many that
/// do not answer are waited for together.
pub(crate) fn usable<'a>(
    ctx: &'a Ctx,
    picks: &'a [Pick],
    ask: &'a Ask,
    lately: &'a Lately,
) -> impl Iterator<Item = (&'a Pick, Result<BusyGpus, String>)> {
    let mut rest = picks;
    let mut size = 1;
    let batches = std::iter::from_fn(move || {
        let (batch, later) = rest.split_at(size.min(rest.len()));
        (rest, size) = (later, size * 4);
        (!batch.is_empty()).then_some(batch)
    });
    batches.flat_map(move |batch| batch.iter().zip(asked(ctx, batch, ask, lately)))
}

/// What the machines of some picks say, in their order. One that has just said to another daemon that the job cannot begin
/// there is not asked again.
fn asked(ctx: &Ctx, picks: &[Pick], ask: &Ask, lately: &Lately) -> Vec<Result<BusyGpus, String>> {
    let data = match ctx.data() {
        Ok(data) => data,
        Err(error) => return picks.iter().map(|_| Err(error.message.clone())).collect(),
    };
    let known: Vec<Target> = picks.iter().filter_map(|pick| data.target(&pick.target)).collect();
    let candidates = candidates(ctx, &data, &known, lately);
    let fits = |target: &TargetName, busy: BusyGpus| {
        let there = candidates.iter().find(|candidate| candidate.target == *target);
        let with_them = there.map(|there| Candidate { busy: busy.clone(), ..there.clone() });
        match with_them.map(|candidate| candidate.give(ask)) {
            None | Some(Ok(_)) => Ok(busy),
            Some(Err(why)) => Err(why.to_string()),
        }
    };
    let heard = heard_lately::last(ctx, &data).into_iter();
    let refused = heard.filter_map(|(name, said)| {
        let why = said.and_then(|busy| fits(&name, busy)).err()?;
        Some((name, Err(why)))
    });
    let mut said: HashMap<TargetName, Result<BusyGpus, String>> = refused.collect();
    let open: Vec<Target> =
        known.into_iter().filter(|target| !said.contains_key(&target.name)).collect();
    let answers = probe::preflight(ctx, &data, &open);
    let fit = |(target, answer): (&Target, &Result<BusyGpus, Unusable>)| {
        let busy = answer.clone().map_err(Unusable::into_words);
        busy.and_then(|busy| fits(&target.name, busy))
    };
    let fitting: Vec<Result<BusyGpus, String>> = open.iter().zip(&answers).map(fit).collect();
    let all = open.iter().zip(&answers).zip(&fitting);
    // Where it can begin the machine is another one in a moment.
    heard_lately::keep(ctx, &data, all.filter(|(_, fit)| fit.is_err()).map(|(one, _)| one));
    said.extend(open.iter().map(|target| target.name.clone()).zip(fitting));
    let unknown = || Err("it is not known any more".to_owned());
    picks.iter().map(|pick| said.get(&pick.target).cloned().unwrap_or_else(unknown)).collect()
}
