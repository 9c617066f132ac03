//! What entries of the queue, and requests that name no target, can be given now: targets and machines by the facts,
//! as they are left by those who have chosen before.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::act::board;
use crate::act::hosts::choose as hosts;
use crate::act::lately::Lately;
use crate::base::ctx::user_of;
use crate::base::seen_lately::SeenBefore;
use crate::observe::seen_before::seen_before;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{QueueEntry, Shunned};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::order::TypeInZone;
use tpu_core::model::target::Target;
use tpu_core::plan::board::{self as plan, Pick, Row, Wanted};
use tpu_core::plan::choice::{Candidate, Ranking, Unfit};
use tpu_core::plan::expected::Outlook;
use tpu_core::plan::queue::Offers;
use tpu_core::plan::seen::SeenOf;
use tpu_core::plan::slots::Short;
use tpu_core::plan::types::TypeExpr;

use super::limits;
use super::wish::{Way, Wish};

/// Targets that were tried for an entry in vain, or did not answer: they are none for it this time.
pub type Avoided = HashMap<JobId, HashSet<TargetName>>;

/// What can be had while those who wait choose one after the other.
#[derive(Clone)]
pub struct Field<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    /// Whole targets, where somebody wishes for a type or for one of them.
    rows: Vec<Row>,
    /// Machines with room for several, where somebody wishes for one of them.
    hosts: Vec<Candidate>,
    avoided: &'a Avoided,
    /// What each entry wishes for, by the word of its queue or its own.
    wishes: Rc<HashMap<JobId, Rc<Wish>>>,
    /// Wishes for which nothing is left, with the reason: less and less is left.
    misses: HashMap<Rc<Wish>, String>,
    /// What was seen of targets, read once somebody has to choose between two of a type.
    seen: Rc<OnceCell<Arc<SeenBefore>>>,
}

impl<'a> Field<'a> {
    /// What is to be had by the facts; only what somebody of these wishes for is looked at.
    pub fn of(
        ctx: &'a Ctx,
        data: &'a Data,
        wishes: HashMap<JobId, Rc<Wish>>,
        also: Option<&Wish>,
        avoided: &'a Avoided,
    ) -> Result<Self, Error> {
        let mut seen = HashSet::new();
        let mut needs_rows = false;
        let mut machines: Vec<Target> = Vec::new();
        let all = wishes.values().map(Rc::as_ref).chain(also);
        for wish in all.filter(|wish| seen.insert(*wish)) {
            match wish.way(data) {
                Ok(Way::Types | Way::Whole(_)) => needs_rows = true,
                Ok(Way::Machines(of)) => {
                    let new: Vec<Target> =
                        of.into_iter().filter(|one| !machines.contains(one)).collect();
                    machines.extend(new);
                }
                // What somebody waits for may have been forgotten since: he hears of it, and nobody else.
                Ok(Way::AnyTime(_)) | Err(_) => {}
            }
        }
        let mut rows = if needs_rows { board::look(ctx)?.targets } else { Vec::new() };
        let mut hosts = hosts::candidates(ctx, data, &machines, &Lately::default());
        for (target, jobs) in limits::coming_back(ctx, data) {
            let is_theirs = |user: &str| jobs.iter().any(|job| job.user.as_str() == user);
            let is_open = |row: &&mut Row| {
                let is_free = match row.standing {
                    plan::Standing::Free => true,
                    plan::Standing::Reserved => row.user.as_deref().is_some_and(is_theirs),
                    _ => false,
                };
                row.target == *target && !row.is_shared && is_free
            };
            for row in rows.iter_mut().filter(is_open) {
                row.standing = plan::Standing::Running;
                row.jobs = jobs.iter().map(|job| job.id()).collect();
                row.user = jobs.first().map(|job| job.user.to_string());
            }
            for host in hosts.iter_mut().filter(|host| host.target == *target) {
                let is_new = |id: &JobId| host.tenants.iter().all(|(tenant, _)| tenant != id);
                let new = jobs.iter().map(|job| (job.id(), job.share.clone()));
                let new: Vec<_> = new.filter(|(id, _)| is_new(id)).collect();
                host.tenants.extend(new);
            }
        }
        let (misses, seen) = (HashMap::new(), Rc::default());
        Ok(Self { ctx, data, rows, hosts, avoided, wishes: Rc::new(wishes), misses, seen })
    }

    /// What a wish can be given now, the best first, and why each other machine is not among that.
    pub(crate) fn ranking(&self, wish: &Wish) -> Result<Ranking, Error> {
        match wish.way(self.data)? {
            Way::Types => {
                let mut picks = choose(self.data, &self.rows, wish, &|row| self.seen_of(row))?;
                picks.retain(|pick| wish.allows(self.data, &pick.target));
                Ok(Ranking { picks, unfit: Vec::new() })
            }
            Way::Machines(machines) => {
                let wanted = hosts::HostRequest {
                    user: &wish.user,
                    among: &machines,
                    policy: wish.any_of().policy,
                    ask: &wish.ask,
                };
                hosts::rank(self.ctx, self.data, &self.hosts, &wanted)
            }
            Way::Whole(targets) => {
                let own = |row: &Row| row.user.as_deref() == Some(wish.user.as_str());
                let is_free = |row: &&Row| match row.standing {
                    plan::Standing::Free => true,
                    plan::Standing::Reserved => own(row),
                    _ => false,
                };
                let row = |target: &Target| self.rows.iter().find(|row| row.target == target.name);
                let free = targets.iter().filter_map(row).filter(is_free);
                let picks = free.map(|row| as_named(row.target.clone())).collect();
                Ok(Ranking { picks, unfit: Vec::new() })
            }
            Way::AnyTime(target) => {
                let picks = vec![as_named(target.name)];
                Ok(Ranking { picks, unfit: Vec::new() })
            }
        }
    }

    /// What was seen of targets like one.
    fn seen_of(&self, row: &Row) -> SeenOf {
        let (Some(accelerator), Some(zone)) = (row.accelerator.clone(), row.zone.clone()) else {
            return SeenOf::default();
        };
        // What cannot be read is only not known.
        let seen = self.seen.get_or_init(|| seen_before(self.ctx).unwrap_or_default());
        seen.of(&TypeInZone { accelerator, zone }, row.pricing)
    }

    /// The whole targets that a wish means, in the order in which it names them.
    fn meant(&self, wish: &Wish) -> Vec<&Row> {
        let known = self.rows.iter().filter(|row| row.is_known && !row.is_shared);
        match wish.way(self.data) {
            Ok(Way::Types) => {}
            Ok(Way::Whole(targets)) => {
                let all: Vec<&Row> = known.collect();
                let of =
                    |target: &Target| all.iter().copied().find(|row| row.target == target.name);
                return targets.iter().filter_map(of).collect();
            }
            Ok(Way::Machines(_) | Way::AnyTime(_)) | Err(_) => return Vec::new(),
        }
        let any_of = wish.any_of();
        let types: Vec<TypeExpr> =
            any_of.types.iter().filter_map(|word| TypeExpr::parse(word)).collect();
        let is_meant = |row: &&Row| {
            plan::is_of(row, &types, any_of.reclaimable)
                && plan::is_in(row, &any_of.zones)
                && wish.allows(self.data, &row.target)
        };
        known.filter(is_meant).collect()
    }

    /// The whole targets that an entry means; none where it means machines.
    pub(super) fn meant_by(&self, entry: &QueueEntry) -> Vec<&Row> {
        let wish = self.wish(entry);
        match wish.way(self.data) {
            Ok(Way::Types | Way::Whole(_)) => self.meant(&wish),
            Ok(Way::Machines(_) | Way::AnyTime(_)) | Err(_) => Vec::new(),
        }
    }

    /// All whole targets.
    pub(super) fn whole(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_known && !row.is_shared)
    }

    /// Who has the first of what is wished for: `: v2-32-p1 has alice/7, v2-32-p2 is not there`.
    pub fn holders(&self, wish: &Wish) -> String {
        let meant = self.meant(wish).into_iter();
        let told = meant.filter(|row| row.standing != plan::Standing::Free).map(|row| {
            let label = &row.label;
            match (row.jobs.first(), row.standing, &row.user) {
                (Some(job), ..) => format!("{label} has {job}"),
                (None, plan::Standing::Gone, _) => format!("{label} is not there"),
                (None, plan::Standing::Creating, _) => format!("{label} is on its way"),
                (None, plan::Standing::Unknown, _) => format!("how {label} is is unknown"),
                (None, standing, Some(user)) => {
                    format!("{label} is {} by {user}", standing.as_str())
                }
                (None, standing, None) => format!("{label} is {}", standing.as_str()),
            }
        });
        listed(told.collect(), ", ")
    }

    /// Why a wish finds nothing, in words.
    fn why(&self, wish: &Wish, ranking: &Ranking) -> String {
        let what = wish.what();
        if let Ok(Way::Whole(targets)) = wish.way(self.data) {
            let meant = self.meant(wish);
            if !meant.is_empty() && meant.iter().all(|row| row.standing == plan::Standing::Gone) {
                let are = if targets.len() > 1 { "are" } else { "is" };
                return format!("{what} {are} not there");
            }
        }
        if ranking.unfit.is_empty() {
            return format!("no target of {what} is free{}", self.holders(wish));
        }
        format!("none of {what} has room{}", told(&ranking.unfit))
    }

    fn wish(&self, entry: &QueueEntry) -> Rc<Wish> {
        let known = self.wishes.get(&entry.id()).cloned();
        known.unwrap_or_else(|| Rc::new(Wish::of_entry(self.data, entry, None)))
    }
}

fn as_named(target: TargetName) -> Pick {
    Pick { target, reason: "as it was asked for".to_owned() }
}

impl Offers for Field<'_> {
    /// What is to be tried, the best first.
    type Place = Vec<Pick>;

    fn find(&mut self, entry: &QueueEntry) -> Result<Vec<Pick>, String> {
        let now = self.ctx.clock.now();
        let id = entry.id();
        self.pick(entry).map_err(|why| {
            let mut made = self.data.queues().makings_for(&id).peekable();
            let why = match made.peek() {
                None if entry.applies => {
                    let what = if self.wish(entry).name().is_some() { "it" } else { "one" };
                    format!("{why}; the daemon makes {what}")
                }
                Some(_) | None => why,
            };
            made.fold(why, |why, making| {
                let row = self.rows.iter().find(|row| row.target == making.target);
                why + "; " + &making.in_words(row.map(|row| &row.fact), now)
            })
        })
    }

    fn take(&mut self, entry: &QueueEntry, place: &Vec<Pick>) {
        let Some(first) = place.first() else { return };
        self.choose_first(entry, &first.target);
    }

    fn fits_later(&self, entry: &QueueEntry) -> bool {
        self.first_later(entry).is_some()
    }

    fn keep(&mut self, entry: &QueueEntry) -> Option<String> {
        let at = self.first_later(entry)?;
        let best = self.hosts.get_mut(at)?;
        best.closed = Some(format!("kept for {}", entry.id()));
        Some(best.target.to_string())
    }
}

impl Field<'_> {
    /// The places of an entry, the best first; why there is none.
    fn pick(&mut self, entry: &QueueEntry) -> Result<Vec<Pick>, String> {
        let wish = self.wish(entry);
        let avoided = self.avoided.get(&entry.id());
        if let Some(why) = self.misses.get(&wish) {
            return Err(why.clone());
        }
        let ranking = self.ranking(&wish).map_err(|error| error.message)?;
        let now = self.ctx.clock.now();
        let is_open = |pick: &&Pick| {
            avoided.is_none_or(|not| !not.contains(&pick.target))
                && entry.shuns(&pick.target, now).is_none()
        };
        let picks: Vec<Pick> = ranking.picks.iter().filter(is_open).cloned().collect();
        if picks.is_empty() {
            if !ranking.picks.is_empty() {
                let name = |pick: &Pick| match entry.shuns(&pick.target, now) {
                    Some(Shunned { target, why, .. }) => format!("{target} just now ({why})"),
                    None => format!("{} just now", pick.target),
                };
                let names: Vec<String> = ranking.picks.iter().map(name).collect();
                return Err(format!("it could not begin on {}", names.join(", ")));
            }
            let why = self.why(&wish, &ranking);
            self.misses.insert(wish, why.clone());
            return Err(why);
        }
        Ok(picks)
    }
}

impl Outlook for Field<'_> {
    fn occupy(&mut self, job: &JobId, entry: &QueueEntry, place: &Vec<Pick>) {
        let Some(first) = place.first() else { return };
        let is_it = |row: &&mut Row| row.target == first.target && !row.is_shared;
        for row in self.rows.iter_mut().filter(is_it) {
            row.standing = plan::Standing::Running;
            row.jobs = vec![job.clone()];
        }
        if let Some(host) = self.hosts.iter_mut().find(|host| host.target == first.target) {
            host.take(job.clone(), &entry.spec.ask);
        }
    }

    fn vacate(&mut self, job: &JobId) {
        for row in self.rows.iter_mut().filter(|row| row.jobs.contains(job)) {
            row.leave(job, self.data, self.ctx.clock.now());
        }
        for host in &mut self.hosts {
            host.tenants.retain(|(tenant, _)| tenant != job);
        }
        // More is left than before.
        self.misses.clear();
    }

    fn in_the_way(&self, entry: &QueueEntry) -> Vec<JobId> {
        let wish = self.wish(entry);
        match wish.way(self.data) {
            Ok(Way::Types | Way::Whole(_)) => {
                self.meant(&wish).into_iter().flat_map(|row| row.jobs.iter().cloned()).collect()
            }
            Ok(Way::Machines(machines)) => {
                let is_meant =
                    |host: &&Candidate| machines.iter().any(|machine| machine.name == host.target);
                let tenants = self.hosts.iter().filter(is_meant).flat_map(|host| &host.tenants);
                tenants.map(|(job, _)| job.clone()).collect()
            }
            Ok(Way::AnyTime(_)) | Err(_) => Vec::new(),
        }
    }
}

impl Field<'_> {
    /// Among machines with room for several the one where an entry would fit first. A whole target nobody gets by
    /// halves: it goes to the first who wishes for it.
    fn first_later(&self, entry: &QueueEntry) -> Option<usize> {
        let wish = self.wish(entry);
        let Ok(Way::Machines(machines)) = wish.way(self.data) else { return None };
        let could = |(_, candidate): &(usize, &Candidate)| {
            machines.iter().any(|target| target.name == candidate.target)
                && matches!(
                    candidate.give(&wish.ask),
                    Err(Unfit::Short(
                        Short::Jobs { .. } | Short::Queue { .. } | Short::Taken { .. }
                    ))
                )
        };
        // Where the fewest are at work there is the least to wait for.
        let best = self.hosts.iter().enumerate().filter(could);
        best.min_by_key(|(_, there)| there.tenants.len()).map(|(at, _)| at)
    }

    /// One who came earlier has chosen.
    fn choose_first(&mut self, entry: &QueueEntry, target: &TargetName) {
        self.rows.retain(|row| row.target != *target || row.is_shared);
        if let Some(host) = self.hosts.iter_mut().find(|host| host.target == *target) {
            host.take(entry.id(), &entry.spec.ask);
        }
    }
}

fn choose(
    data: &Data,
    rows: &[Row],
    wish: &Wish,
    seen: &dyn Fn(&Row) -> SeenOf,
) -> Result<Vec<Pick>, Error> {
    let any_of = wish.any_of();
    let types: Option<Vec<TypeExpr>> =
        any_of.types.iter().map(|word| TypeExpr::parse(word)).collect();
    let types = types.ok_or_else(|| {
        Error::usage(format!("not all of these are types: {}", any_of.types.join(", ")))
            .hint("v2, v234, v3+, v*, v2-32, v5e")
    })?;
    // The zone where the newest attempt on a target of a zone has its checkpoints.
    let newest = user_of(data, &wish.user)?.jobs().iter().rev();
    let zone = newest
        .filter_map(|job| data.target(&job.tpu))
        .filter(|target| !target.is_here())
        .find_map(|target| target.zone);
    let wanted = Wanted {
        types: &types,
        reclaimable: any_of.reclaimable,
        zones: &any_of.zones,
        user: &wish.user,
        zone: zone.as_deref(),
    };
    Ok(plan::choose(rows, &wanted, seen))
}

/// Why machines are not taken: `: gpu1: it has alice/7; gpu2: drained by bob`.
pub fn told(unfit: &[(TargetName, Unfit)]) -> String {
    listed(unfit.iter().map(|(name, why)| format!("{name}: {why}")).collect(), "; ")
}

/// The first of a list behind a colon, and how many more.
fn listed(all: Vec<String>, between: &str) -> String {
    const SHOWN: usize = 4;
    let more = all.len().saturating_sub(SHOWN);
    let shown = all.into_iter().take(SHOWN).collect::<Vec<_>>().join(between);
    match (shown.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {shown}"),
        (false, more) if between == ", " => format!(": {shown} and {more} more"),
        (false, more) => format!(": {shown}; and {more} more"),
    }
}
