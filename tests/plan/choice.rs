//! Each policy puts machines in the order that its definition says, and leaves out exactly those without room: held
//! against a plain model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use tpu_core::model::capacity::{Ask, Capacity, GpuAsk, Share};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::policy::Policy;
use tpu_core::plan::choice::{Candidate, Ranking, choose};

/// A machine of the model: places and GPUs, and how many of each are taken by each job there.
#[derive(Clone, Debug)]
struct Machine {
    places: Option<u32>,
    gpus: Option<u32>,
    /// How many GPUs each job there has; those who have none are there too.
    jobs: Vec<u32>,
    is_closed: bool,
}

impl Machine {
    fn free_gpus(&self) -> u32 {
        self.gpus.map_or(0, |all| all.saturating_sub(self.jobs.iter().sum()))
    }

    fn free_places(&self) -> u32 {
        let taken = u32::try_from(self.jobs.len()).unwrap();
        self.places.map_or(u32::MAX, |all| all.saturating_sub(taken))
    }

    fn has_room(&self, gpus: u32) -> bool {
        let has_gpus = gpus == 0 || self.gpus.is_some() && self.free_gpus() >= gpus;
        !self.is_closed && self.free_places() > 0 && has_gpus
    }

    /// What there is most of is asked for first.
    fn room(&self, gpus: u32) -> (u32, u32) {
        if gpus > 0 {
            (self.free_gpus(), self.free_places())
        } else {
            (self.free_places(), self.free_gpus())
        }
    }

    fn candidate(&self, number: usize) -> Candidate {
        let mut next = 0;
        let mut share = |count: u32| {
            let gpus = (next..next + count).collect();
            next += count;
            Share { gpus: self.gpus.map(|_| gpus), ..Share::default() }
        };
        let job = |at: usize| JobId::parse(&format!("alice/{}", number * 100 + at + 1)).unwrap();
        Candidate {
            target: TargetName::from(format!("h{number}").as_str()),
            capacity: Capacity { jobs: self.places, gpus: self.gpus, ..Capacity::default() },
            tenants: (0..)
                .zip(&self.jobs)
                .map(|(at, count)| (job(at), Some(share(*count))))
                .collect(),
            busy: BTreeMap::new(),
            closed: self.is_closed.then(|| "drained by bob".to_owned()),
        }
    }
}

fn machines() -> impl Strategy<Value = Vec<Machine>> {
    let machine = (
        proptest::option::of(1_u32..5),
        proptest::option::of(1_u32..9),
        proptest::collection::vec(0_u32..3, 0..5),
        proptest::bool::weighted(0.2),
    )
        .prop_map(|(places, gpus, jobs, is_closed)| {
            // No more is given out than there is.
            let mut left = gpus.unwrap_or(0);
            let fits = |count: u32| {
                let given = count.min(left);
                left -= given;
                given
            };
            let most = places.unwrap_or(5) as usize;
            let jobs = jobs.into_iter().take(most).map(fits).collect();
            Machine { places, gpus, jobs, is_closed }
        });
    proptest::collection::vec(machine, 0..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn machines_come_in_the_order_of_the_policy(
        machines in machines(),
        gpus in 0_u32..4,
        policy in proptest::sample::select(Policy::ALL.to_vec()),
        dice in proptest::collection::vec(0_usize..100, 8),
    ) {
        let candidates: Vec<Candidate> =
            machines.iter().enumerate().map(|(number, machine)| machine.candidate(number)).collect();
        let ask = Ask { gpus: GpuAsk::Count(gpus), ..Ask::default() };
        let mut thrown = dice.iter().copied().cycle();
        let mut draw = |below: usize| thrown.next().unwrap() % below;
        let Ranking { picks, unfit } = choose(&candidates, &ask, policy, &mut draw);
        let order: Vec<usize> =
            picks.iter().map(|pick| pick.target.as_str()[1..].parse().unwrap()).collect();

        let mut with_room: Vec<usize> =
            (0..machines.len()).filter(|at| machines[*at].has_room(gpus)).collect();
        let mut chosen = order.clone();
        chosen.sort_unstable();
        prop_assert_eq!(&chosen, &with_room, "exactly those with room");
        prop_assert_eq!(unfit.len(), machines.len() - with_room.len());
        let room = |at: &usize| machines[*at].room(gpus);
        match policy {
            Policy::Sequential => prop_assert_eq!(order, with_room),
            Policy::Random => {}
            Policy::Smart => {
                with_room.sort_by(|a, b| room(b).cmp(&room(a)).then(a.cmp(b)));
                prop_assert_eq!(order, with_room);
            }
            Policy::Frugal => {
                with_room.sort_by(|a, b| room(a).cmp(&room(b)).then(a.cmp(b)));
                prop_assert_eq!(order, with_room);
            }
        }
        for pick in &picks {
            prop_assert!(pick.reason.contains("free") || pick.reason.contains("any number"), "{}", pick.reason);
        }
    }
}

#[test]
fn by_chance_every_machine_comes_first_about_as_often() {
    let machine = Machine { places: Some(1), gpus: None, jobs: Vec::new(), is_closed: false };
    let candidates: Vec<Candidate> = (0..4).map(|number| machine.candidate(number)).collect();
    let mut first: BTreeMap<String, u32> = BTreeMap::new();
    // Every number that could be drawn, in turn, for each of the three draws.
    for seed in 0..24_usize {
        let mut left = seed;
        let mut draw = |below: usize| {
            let number = left % below;
            left /= below;
            number
        };
        let picks = choose(&candidates, &Ask::default(), Policy::Random, &mut draw).picks;
        *first.entry(picks[0].target.as_str().to_owned()).or_default() += 1;
    }
    assert_eq!(first.into_values().collect::<Vec<_>>(), [6, 6, 6, 6]);
}
