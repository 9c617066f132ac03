//! Which of several machines a job gets: those with room for it, in the order in which they are to be tried, and why.
//!
//! `slots` decides whether one has room; here only the order is decided. Ties go to the machine that is listed first.

use std::cmp::Reverse;
use std::fmt;

use crate::model::capacity::{Ask, BusyGpus, Capacity, GpuAsk, Share};
use crate::model::facts::ErrorKind;
use crate::model::ids::{JobId, TargetName};
use crate::model::policy::Policy;
use crate::model::target::{Machines, Target};

use super::board::Pick;
use super::slots::{self, Short, Tenant};

/// A machine that a job may be given.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its full name.
    pub target: TargetName,
    /// What it has for jobs.
    pub capacity: Capacity,
    /// Who has a place there, and what each was given.
    pub tenants: Vec<(JobId, Option<Share>)>,
    /// GPUs on which somebody else is at work, with whom, as far as that was asked.
    pub busy: BusyGpus,
    /// Why nothing begins there, whatever room it has.
    pub closed: Option<String>,
}

impl Candidate {
    /// What a job would be given, or why it cannot be there.
    pub fn give(&self, ask: &Ask) -> Result<Share, Unfit> {
        if let Some(why) = &self.closed {
            return Err(Unfit::Closed(why.clone()));
        }
        let each = self.tenants.iter();
        let tenants: Vec<Tenant<'_>> =
            each.map(|(job, share)| Tenant { job: job.clone(), share: share.as_ref() }).collect();
        slots::queue_starts(&self.capacity, &tenants, ask)
            .and_then(|()| slots::give(&self.capacity, &tenants, &self.busy, ask, false))
            .map_err(Unfit::Short)
    }

    /// Lets somebody in who comes first, as far as there is room.
    pub fn take(&mut self, job: JobId, ask: &Ask) {
        if let Ok(share) = self.give(ask) {
            self.tenants.push((job, Some(share)));
        }
    }
}

/// Why a machine is none of those to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Nothing begins there, for this reason.
    Closed(String),
    /// It has no room.
    Short(Short),
}

/// For a list of several machines.
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(why) => f.write_str(why),
            Self::Short(short) => short.fmt(f),
        }
    }
}

/// What came of choosing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Those with room for what is asked, the one to be tried first at the front.
    pub picks: Vec<Pick>,
    /// All others, and why none of them is among those.
    pub unfit: Vec<(TargetName, Unfit)>,
}

/// A target that was chosen for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its full name.
    pub target: TargetName,
    /// Why it and no other one, in words.
    pub reason: String,
    /// GPUs on which somebody else is at work there, with whom; `None` where nobody has asked yet.
    pub busy: Option<BusyGpus>,
}

/// What is free on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// GPUs, where somebody counts them, and how many there are.
    gpus: Option<(usize, usize)>,
    /// Places for jobs, and how many there are; `None` where there is no limit.
    places: Option<(usize, usize)>,
}

impl Room {
    fn of(candidate: &Candidate) -> Self {
        let count = |limit: Option<u32>| limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let held = candidate.tenants.iter().filter_map(|(_, share)| share.as_ref()?.gpus.as_ref());
        let given: usize = held.map(Vec::len).sum();
        let of = |all: usize, used: usize| (all.saturating_sub(used), all);
        let capacity = candidate.capacity;
        let tenants = candidate.tenants.len();
        Self {
            gpus: count(capacity.gpus).map(|all| of(all, given)),
            places: count(capacity.jobs.or(capacity.of_queue())).map(|all| of(all, tenants)),
        }
    }

    /// How much there is of what a job asks for first, then of the other: more is more room. Where there is no
    /// limit, there is more than anywhere else.
    fn measure(self, wants_gpus: bool) -> (usize, usize) {
        let gpus = self.gpus.map_or(0, |(free, _)| free);
        let places = self.places.map_or(usize::MAX, |(free, _)| free);
        if wants_gpus { (gpus, places) } else { (places, gpus) }
    }

    fn in_words(self, wants_gpus: bool) -> String {
        match (self.gpus, self.places) {
            (Some((free, all)), _) if wants_gpus => format!("{free} of {all} GPUs free"),
            (_, Some((free, all))) => format!("{free} of {all} places free"),
            (_, None) => "room for any number of jobs".to_owned(),
        }
    }
}

/// Whether what failed so may go on on another machine: it was lost with one that is somebody's own.
pub fn may_go_elsewhere(target: &Target, failure: ErrorKind) -> bool {
    target.machines == Machines::Fixed && failure == ErrorKind::Lost
}

/// Puts machines in the order of a policy. `draw` gives a number below the one it is given.
pub fn choose(
    candidates: &[Candidate],
    ask: &Ask,
    policy: Policy,
    draw: &mut dyn FnMut(usize) -> usize,
) -> Ranking {
    let wants_gpus = !matches!(ask.gpus, GpuAsk::Unsaid | GpuAsk::Count(0));
    let mut fit: Vec<(&Candidate, Room)> = Vec::new();
    let mut unfit = Vec::new();
    for candidate in candidates {
        match candidate.give(ask) {
            Ok(_) => fit.push((candidate, Room::of(candidate))),
            Err(why) => unfit.push((candidate.target.clone(), why)),
        }
    }
    // A stable order: of equals the one that is listed first stays in front.
    match policy {
        Policy::Sequential => {}
        Policy::Random => shuffle(&mut fit, draw),
        Policy::Smart => fit.sort_by_key(|(_, room)| Reverse(room.measure(wants_gpus))),
        Policy::Frugal => fit.sort_by_key(|(_, room)| room.measure(wants_gpus)),
    }
    let others = fit.len();
    let reason = |room: &Room| {
        let room = room.in_words(wants_gpus);
        match policy {
            _ if others == 1 => format!("{room}, the only one with room"),
            Policy::Sequential => format!("{room}, the first of {others} with room"),
            Policy::Random => format!("{room}, one of {others} by chance"),
            Policy::Smart => format!("{room}, the most of {others}"),
            Policy::Frugal => format!("{room}, the least of {others}"),
        }
    };
    let pick = |(candidate, room): &(&Candidate, Room)| Pick {
        target: candidate.target.clone(),
        reason: reason(room),
    };
    Ranking { picks: fit.iter().map(pick).collect(), unfit }
}

/// Each order is as likely as any other.
fn shuffle<T>(all: &mut [T], draw: &mut dyn FnMut(usize) -> usize) {
    for last in (1..all.len()).rev() {
        let with = draw(last + 1).min(last);
        all.swap(last, with);
    }
}
