//! Over any history of jobs that come and go nobody is given what another has, no more than there is, and nobody is
//! refused who would fit: held against a plain model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use tpu_core::model::capacity::{Ask, Capacity, GpuAsk, Memory, Share};
use tpu_core::model::ids::JobId;
use tpu_core::plan::slots::{Short, Tenant, give};

fn asks() -> impl Strategy<Value = Ask> {
    let gpus = prop_oneof![
        Just(GpuAsk::Unsaid),
        (0_u32..5).prop_map(GpuAsk::Count),
        proptest::collection::btree_set(0_u32..5, 1..3)
            .prop_map(|these| GpuAsk::These(these.into_iter().collect())),
    ];
    let cpus = proptest::option::of(1_u32..6);
    let memory = proptest::option::of((1_u64..6).prop_map(Memory));
    (gpus, cpus, memory).prop_map(|(gpus, cpus, memory)| Ask { gpus, cpus, memory })
}

fn capacities() -> impl Strategy<Value = Capacity> {
    let some = || proptest::option::of(1_u32..5);
    let memory = proptest::option::of((1_u64..6).prop_map(Memory));
    (some(), some(), some(), memory).prop_map(|(jobs, gpus, cpus, memory)| Capacity {
        jobs,
        gpus,
        cpus,
        memory,
        queue_cpus: None,
    })
}

/// What happens: somebody asks, or the job that came so many ago goes.
#[derive(Clone, Debug)]
enum Step {
    Asks(Ask, bool),
    Goes(usize),
    Limits(Capacity),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (asks(), proptest::bool::weighted(0.1)).prop_map(|(ask, force)| Step::Asks(ask, force)),
        3 => (0_usize..4).prop_map(Step::Goes),
        1 => capacities().prop_map(Step::Limits),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Whether it fits, worked out the long way.
fn fits(capacity: &Capacity, held: &[Share], busy: &[u32], ask: &Ask, force: bool) -> bool {
    let is_free = |gpu: &u32| {
        !busy.contains(gpu)
            && held.iter().all(|share| !share.gpus.iter().flatten().any(|g| g == gpu))
    };
    let gpus = match (&ask.gpus, capacity.gpus) {
        (GpuAsk::Unsaid, _) | (GpuAsk::Count(0), None) => true,
        (_, None) => false,
        (GpuAsk::Count(n), Some(all)) => (0..all).filter(is_free).count() >= *n as usize,
        (GpuAsk::These(these), Some(all)) => these.iter().all(|g| *g < all && is_free(g)),
    };
    let jobs = capacity.jobs.is_none_or(|most| held.len() < most as usize);
    let cpus: u32 = held.iter().filter_map(|share| share.cpus).sum();
    let cpus = capacity.cpus.is_none_or(|all| ask.cpus.is_none_or(|asked| asked + cpus <= all));
    let mib: u64 = held.iter().filter_map(|share| share.memory).map(|memory| memory.0).sum();
    let mem =
        capacity.memory.is_none_or(|all| ask.memory.is_none_or(|asked| asked.0 + mib <= all.0));
    gpus && (force || jobs && cpus && mem)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nobody_has_what_another_has_and_whoever_fits_gets_in(
        first in capacities(),
        busy in proptest::collection::vec(0_u32..5, 0..2),
        steps in steps(),
    ) {
        let (mut capacity, mut held) = (first, Vec::<Share>::new());
        let strangers: BTreeMap<u32, String> =
            busy.iter().map(|gpu| (*gpu, "carol".to_owned())).collect();
        for step in steps {
            match step {
                Step::Goes(which) if which < held.len() => drop(held.remove(which)),
                Step::Goes(_) => {}
                Step::Limits(new) => capacity = new,
                Step::Asks(ask, force) => {
                    let tenants: Vec<Tenant<'_>> = (1..)
                        .zip(&held)
                        .map(|(n, share)| Tenant {
                            job: JobId::parse(&format!("alice/{n}")).unwrap(),
                            share: Some(share),
                        })
                        .collect();
                    let said = give(&capacity, &tenants, &strangers, &ask, force);
                    let expected = fits(&capacity, &held, &busy, &ask, force);
                    prop_assert_eq!(said.is_ok(), expected, "{:?} {:?} {:?}", capacity, ask, said);
                    match said {
                        Ok(share) => {
                            let given = share.gpus.clone().unwrap_or_default();
                            if let GpuAsk::Count(n) = ask.gpus {
                                prop_assert_eq!(given.len(), n as usize);
                            }
                            prop_assert!(given.iter().all(|gpu| !busy.contains(gpu)));
                            held.push(share);
                        }
                        // Whoever is told that waiting does not help would not fit on an empty machine either.
                        Err(Short::Lacks { .. }) => {
                            prop_assert!(!fits(&capacity, &[], &[], &ask, force));
                        }
                        Err(Short::Jobs { .. } | Short::Queue { .. } | Short::Taken { .. }) => {}
                    }
                }
            }
            let mut all: Vec<u32> = held.iter().flat_map(|share| share.gpus.clone().unwrap_or_default()).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count, "a GPU is given twice: {:?}", held);
        }
    }
}
