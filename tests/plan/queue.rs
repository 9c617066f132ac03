//! Who begins next, held against a plain model over made-up histories of queues: what one pass decides is what the
//! rules say of each job by itself, no limit is exceeded, nobody begins out of his turn, and whoever could begin at all
//! does so after a number of ends that is known beforehand, whatever comes behind him. `./x prove queue` tries more
//! histories.

mod model;

use std::collections::BTreeSet;

use proptest::prelude::*;

use tpu_core::model::capacity::GpuAsk;
use tpu_core::model::entry::{Environment, Keeper, Passed, Priority, QueueEntry, QueueHold};
use tpu_core::model::ids::{JobNumber, QueueName, UserName};
use tpu_core::model::member::Array;
use tpu_core::model::queue::{Queue, QueuePolicy, QueueState};
use tpu_core::model::queues::Queues;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::queue::{
    AtWork, CapOf, EntryStanding, Offers, Readiness, UserLimits, WaitReason, stand,
};

use model::{Asked, Expected, Fate, Lab, PASSED_TIMES, QUEUES, Running, USERS, Waiter, World};

const MOST_ENTRIES: usize = 30;

/// As many histories as `./x prove queue` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn histories() -> u32 {
    std::env::var("TPU_PROVE_QUEUE").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[derive(Clone, Debug)]
enum Step {
    Submit(Asked),
    /// One that runs ends.
    End(usize),
    Hold(usize),
    Priority(usize, u8),
    Rank(usize, i64),
    /// What it waits for has not ended yet, or has.
    Ready(usize),
    /// Who waits for it goes or comes.
    Leave(usize),
    Pause(usize),
    Rest(i64),
    Pass,
}

#[derive(Clone, Debug)]
struct History {
    lab: Lab,
    steps: Vec<Step>,
}

fn histories_of() -> impl Strategy<Value = History> {
    let asked = (
        (0..QUEUES.len(), 0..2_usize),
        prop_oneof![4 => Just(50_u8), 1 => 0_u8..=100],
        prop_oneof![4 => Just(0_i64), 1 => -2_i64..3],
        proptest::option::weighted(0.3, (1_u32..6, proptest::option::of(1_u32..4))),
        proptest::collection::btree_set(0..3_usize, 1..3),
        prop_oneof![4 => Just(1_u32), 3 => Just(2_u32), 1 => Just(3_u32)],
        proptest::bool::weighted(0.1),
    )
        .prop_map(|((queue, user), priority, rank, members, wish, need, is_awaited)| {
            let wish = wish.into_iter().collect();
            Asked { queue, user, priority, rank, members, wish, need, is_awaited }
        });
    let which = 0..MOST_ENTRIES;
    let step = prop_oneof![
        10 => asked.prop_map(Step::Submit),
        8 => which.clone().prop_map(Step::End),
        1 => which.clone().prop_map(Step::Hold),
        1 => (which.clone(), 0_u8..=100).prop_map(|(at, to)| Step::Priority(at, to)),
        1 => (which.clone(), -3_i64..4).prop_map(|(at, to)| Step::Rank(at, to)),
        1 => which.clone().prop_map(Step::Ready),
        1 => which.prop_map(Step::Leave),
        1 => (0..QUEUES.len()).prop_map(Step::Pause),
        1 => (1_i64..2000).prop_map(Step::Rest),
        14 => Just(Step::Pass),
    ];
    let policy = prop_oneof![1 => Just(QueuePolicy::Fifo), 2 => Just(QueuePolicy::Backfill)];
    let limit = || proptest::option::weighted(0.4, 1_u32..5);
    (
        proptest::collection::vec(1_u32..5, 3),
        proptest::collection::vec((policy, limit()), QUEUES.len()),
        proptest::collection::vec(limit(), 2),
        proptest::collection::vec(step, 20..120),
    )
        .prop_map(|(targets, queues, limits, steps)| {
            let lab = Lab { targets, queues, limits };
            History { lab, steps }
        })
}

/// As the code knows it.
fn entry(waiter: &Waiter) -> QueueEntry {
    let asked = &waiter.asked;
    let among = asked.wish.iter().map(|target| format!("t{target}")).collect();
    let any_of = AnyOf { among, ..AnyOf::default() };
    let mut spec = JobSpec::on(TargetRequest::Any(any_of));
    spec.ask.gpus = GpuAsk::Count(asked.need);
    if asked.members.is_some() {
        let at_once = waiter.at_once().map(|most| format!("%{most}")).unwrap_or_default();
        let left: Vec<String> = waiter.left.iter().map(ToString::to_string).collect();
        spec.array = Some(Array::parse(&format!("{}{at_once}", left.join(","))).unwrap());
    }
    let start = Timestamp::from_second(0);
    let hold = || QueueHold { by: "bob".to_owned(), since: start, why: None, needs_login: false };
    let keeper = || Keeper { owner: "somebody".to_owned(), seen: start };
    QueueEntry {
        user: UserName::from(USERS[asked.user]),
        number: JobNumber(waiter.number),
        queue: QueueName::from(QUEUES[asked.queue]),
        spec,
        force: false,
        env: Environment::default(),
        since: start,
        priority: Priority::parse(&asked.priority.to_string()).unwrap(),
        rank: asked.rank,
        held: waiter.is_held.then(hold),
        after: Vec::new(),
        passed: Passed {
            times: waiter.passed.0,
            since: waiter.passed.1.map(Timestamp::from_second),
        },
        place: String::new(),
        keeper: asked.is_awaited.then(keeper),
        succeeds: None,
        applies: false,
        shunned: Vec::new(),
        sweep: None,
    }
}

/// What there is to be had, for the code: a few targets with places that jobs share.
#[derive(Clone, Debug)]
struct Board {
    places: Vec<u32>,
    free: Vec<u32>,
    jobs: Vec<u32>,
    is_kept: Vec<bool>,
}

impl Board {
    fn wish(entry: &QueueEntry) -> (Vec<usize>, u32) {
        let TargetRequest::Any(any_of) = &entry.spec.target else { panic!("{entry:?}") };
        let GpuAsk::Count(need) = entry.spec.ask.gpus else { panic!("{entry:?}") };
        (any_of.among.iter().map(|name| name[1..].parse().unwrap()).collect(), need)
    }

    fn first_later(&self, entry: &QueueEntry) -> Option<usize> {
        let (wish, need) = Self::wish(entry);
        let could = |at: &usize| !self.is_kept[*at] && self.places[*at] >= need;
        wish.into_iter().filter(could).min_by_key(|at| self.jobs[*at])
    }
}

impl Offers for Board {
    type Place = usize;

    fn find(&mut self, entry: &QueueEntry) -> Result<usize, String> {
        let (wish, need) = Self::wish(entry);
        let fits = |at: &usize| !self.is_kept[*at] && self.free[*at] >= need;
        wish.into_iter().find(fits).ok_or_else(|| "all are taken".to_owned())
    }

    fn take(&mut self, entry: &QueueEntry, place: &usize) {
        self.free[*place] -= Self::wish(entry).1;
        self.jobs[*place] += 1;
    }

    fn fits_later(&self, entry: &QueueEntry) -> bool {
        self.first_later(entry).is_some()
    }

    fn keep(&mut self, entry: &QueueEntry) -> Option<String> {
        let at = self.first_later(entry)?;
        self.is_kept[at] = true;
        Some(format!("t{at}"))
    }
}

fn fate_of(reason: &WaitReason) -> Fate {
    match reason {
        WaitReason::Held(_) => Fate::Held,
        WaitReason::Paused(_) => Fate::Paused,
        WaitReason::After(_) => Fate::After,
        WaitReason::Absent(_) => Fate::Absent,
        WaitReason::Cap(cap) => match cap.of {
            CapOf::Queue(_) => Fate::QueueFull,
            CapOf::User(_) => Fate::UserFull,
            CapOf::Group(_) => Fate::GroupFull,
        },
        WaitReason::Behind(front) => Fate::Behind(front.clone()),
        WaitReason::NoPlace { kept, .. } => {
            Fate::NoPlace { kept: kept.as_ref().map(|name| name[1..].parse().unwrap()) }
        }
        WaitReason::NoQueue(queue) => panic!("{queue} is there"),
    }
}

/// What happens.
impl World {
    fn new(history: &History) -> Self {
        Self {
            lab: history.lab.clone(),
            waiters: Vec::new(),
            running: Vec::new(),
            paused: BTreeSet::new(),
            now: 1_000_000,
            next: 1,
        }
    }

    fn submit(&mut self, asked: &Asked) {
        self.waiters.push(Waiter {
            asked: asked.clone(),
            number: self.next,
            left: (0..asked.members.map_or(1, |(members, _)| members)).collect(),
            is_held: false,
            is_unready: false,
            is_left: false,
            passed: (0, None),
        });
        self.next += 1;
    }

    fn waiter(&mut self, at: usize) -> Option<&mut Waiter> {
        let count = self.waiters.len().max(1);
        self.waiters.get_mut(at % count)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let change = |waiter: Option<&mut Waiter>, change: &dyn Fn(&mut Waiter)| {
            waiter.into_iter().for_each(change);
        };
        match step {
            Step::Submit(asked) if self.waiters.len() < MOST_ENTRIES => self.submit(asked),
            Step::End(at) if !self.running.is_empty() => {
                self.running.remove(at % self.running.len());
            }
            Step::Submit(_) | Step::End(_) => {}
            Step::Hold(at) => change(self.waiter(*at), &|one| one.is_held ^= true),
            Step::Ready(at) => change(self.waiter(*at), &|one| one.is_unready ^= true),
            Step::Leave(at) => change(self.waiter(*at), &|one| one.is_left ^= true),
            Step::Priority(at, to) => change(self.waiter(*at), &|one| one.asked.priority = *to),
            Step::Rank(at, to) => change(self.waiter(*at), &|one| one.asked.rank = *to),
            Step::Pause(queue) => {
                if !self.paused.remove(queue) {
                    self.paused.insert(*queue);
                }
            }
            Step::Rest(seconds) => self.now += seconds,
            Step::Pass => self.pass()?,
        }
        Ok(())
    }

    fn queues(&self) -> Queues {
        let mut queues = Queues::default();
        for (at, (policy, max_parallel)) in self.lab.queues.iter().enumerate() {
            let is_paused = self.paused.contains(&at);
            let state = if is_paused { QueueState::Paused } else { QueueState::Open };
            let new = Queue::new(QueueName::from(QUEUES[at]));
            queues.set(Queue { policy: *policy, max_parallel: *max_parallel, state, ..new });
        }
        queues.entries = self.waiters.iter().map(entry).collect();
        queues
    }

    fn board(&self) -> Board {
        let places = self.lab.targets.clone();
        let count = places.len();
        let mut board = Board {
            free: places.clone(),
            places,
            jobs: vec![0; count],
            is_kept: vec![false; count],
        };
        for one in &self.running {
            board.free[one.target] -= one.need;
            board.jobs[one.target] += 1;
        }
        board
    }

    /// One pass, as the dispatcher makes it.
    fn pass(&mut self) -> Result<(), TestCaseError> {
        let mut at_work = AtWork::default();
        for one in &self.running {
            let queue = QueueName::from(QUEUES[one.queue]);
            at_work.add(one.job.clone(), Some(&queue), Some(one.job.clone()));
        }
        let limits = self.lab.limits.iter().zip(USERS);
        let limits: UserLimits = limits
            .filter_map(|(limit, user)| limit.map(|limit| (UserName::from(user), limit)))
            .collect();
        let readiness = |at: usize| {
            let waiter = &self.waiters[at];
            Readiness {
                after: waiter.is_unready.then(|| "another job runs".to_owned()),
                absent: (waiter.asked.is_awaited && waiter.is_left).then(String::new),
                ..Readiness::default()
            }
        };
        let now = Timestamp::from_second(self.now);
        let standings =
            stand(&self.queues(), (at_work, &limits), &readiness, &mut self.board(), now);
        let stands = |one: &EntryStanding<usize>| {
            let waits = one.waits.as_ref().map(fate_of);
            let id = self.waiters[one.entry].id();
            (id, one.position, one.starts.clone(), waits, one.passes.clone())
        };
        let found: Vec<Expected> = standings.iter().map(stands).collect();
        self.promises_are_kept(&standings)?;
        prop_assert_eq!(found, self.expected());
        for standing in &standings {
            self.begin(standing);
        }
        self.waiters.retain(|waiter| !waiter.left.is_empty());
        self.limits_hold()
    }

    fn begin(&mut self, standing: &EntryStanding<usize>) {
        for target in &standing.starts {
            let waiter = &mut self.waiters[standing.entry];
            waiter.left.remove(0);
            self.running.push(Running {
                job: waiter.id(),
                queue: waiter.asked.queue,
                user: waiter.asked.user,
                target: *target,
                need: waiter.asked.need,
                at_once: waiter.at_once(),
            });
            for passed in &standing.passes {
                let front = self.waiters.iter_mut().find(|one| one.id() == *passed).unwrap();
                front.passed.0 += 1;
                front.passed.1.get_or_insert(self.now);
            }
        }
    }

    /// What must hold whatever the rules are in detail.
    fn promises_are_kept(&self, standings: &[EntryStanding<usize>]) -> Result<(), TestCaseError> {
        let waiter = |one: &EntryStanding<usize>| &self.waiters[one.entry];
        let no_place =
            |one: &EntryStanding<usize>| matches!(one.waits, Some(WaitReason::NoPlace { .. }));
        for behind in standings.iter().filter(|one| !one.starts.is_empty()) {
            let own = waiter(behind);
            let is_paused = self.paused.contains(&own.asked.queue);
            let is_stopped = own.is_held || own.is_unready || is_paused;
            let is_alone = own.asked.is_awaited && own.is_left;
            prop_assert!(!is_stopped && !is_alone, "{own:?} begins and is not ready");
            for front in standings.iter().filter(|one| waiter(one).is_before(own)) {
                let other = waiter(front);
                let is_same_queue = other.asked.queue == own.asked.queue;
                let is_fifo = self.lab.queues[own.asked.queue].0 == QueuePolicy::Fifo;
                let may_pass = !(is_same_queue && is_fifo && no_place(front));
                prop_assert!(may_pass, "{own:?} passes {other:?}");
                if let Some(Fate::NoPlace { kept: Some(kept) }) = front.waits.as_ref().map(fate_of)
                {
                    prop_assert!(!behind.starts.contains(&kept), "{own:?} begins at t{kept}");
                }
                let is_like = is_same_queue
                    && (other.asked.user, &other.asked.wish, other.asked.need)
                        == (own.asked.user, &own.asked.wish, own.asked.need);
                prop_assert!(!(is_like && no_place(front)), "{own:?} begins before {other:?}");
            }
        }
        for queue in 0..QUEUES.len() {
            let own = standings.iter().filter(|one| waiter(one).asked.queue == queue);
            let positions: Vec<usize> = own.map(|one| one.position).collect();
            prop_assert_eq!(&positions, &(1..=positions.len()).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn limits_hold(&self) -> Result<(), TestCaseError> {
        let count = |is_of: &dyn Fn(&Running) -> bool| {
            u32::try_from(self.running.iter().filter(|one| is_of(one)).count()).unwrap()
        };
        for (queue, (_, most)) in self.lab.queues.iter().enumerate() {
            prop_assert!(most.is_none_or(|most| count(&|one| one.queue == queue) <= most));
        }
        for (user, most) in self.lab.limits.iter().enumerate() {
            prop_assert!(most.is_none_or(|most| count(&|one| one.user == user) <= most));
        }
        for own in &self.running {
            let of_group = || count(&|one| one.job == own.job);
            prop_assert!(own.at_once.is_none_or(|most| of_group() <= most), "{own:?}");
        }
        for (target, places) in self.lab.targets.iter().enumerate() {
            let on = self.running.iter().filter(|one| one.target == target);
            prop_assert!(on.map(|one| one.need).sum::<u32>() <= *places);
        }
        Ok(())
    }
}

/// Nobody waits for ever.
impl World {
    /// Small jobs behind everybody, in every queue, which would fit everywhere: as soon as some have begun there are
    /// new ones.
    fn crowd(&mut self) {
        for queue in 0..QUEUES.len() {
            let is_small = |one: &&Waiter| one.asked.user == 2 && one.asked.queue == queue;
            for _ in self.waiters.iter().filter(is_small).count()..2 {
                self.submit(&Asked {
                    queue,
                    user: 2,
                    priority: 0,
                    rank: i64::MAX,
                    members: None,
                    wish: (0..self.lab.targets.len()).collect(),
                    need: 1,
                    is_awaited: false,
                });
            }
        }
    }

    fn fits_somewhere(&self, waiter: &Waiter) -> bool {
        waiter.asked.wish.iter().any(|target| self.lab.targets[*target] >= waiter.asked.need)
    }

    /// How many jobs there are to begin, without those of the crowd, those for whom no target is large enough, and
    /// those whom such a one keeps waiting in a queue in which nobody is passed.
    fn to_begin(&self) -> usize {
        let is_blocked = |own: &Waiter| {
            self.lab.queues[own.asked.queue].0 == QueuePolicy::Fifo
                && self.waiters.iter().any(|other| {
                    other.asked.queue == own.asked.queue
                        && other.is_before(own)
                        && !self.fits_somewhere(other)
                })
        };
        let counts =
            |one: &&Waiter| one.asked.user != 2 && self.fits_somewhere(one) && !is_blocked(one);
        self.waiters.iter().filter(counts).map(|one| one.left.len()).sum()
    }

    /// From here on nobody is held, and with each pass the one who has run longest ends.
    ///
    /// The first of those who still have to begin then does so after a bounded number of ends. Let P be the number of
    /// all places, so that whoever runs now has ended after P ends. While no limit stops him each pass is one at which
    /// somebody begins behind him, of which there are ten, or one at which nobody does, of which there are P until all
    /// is free; and a limit stops him for P at most after each of the ten. Then one target is kept for him, and his
    /// place under the limits: that one is free after P ends, unless another has fewer jobs by then, which happens at
    /// most as often as there are targets with a number of jobs.
    fn everybody_begins(&mut self) -> Result<(), TestCaseError> {
        self.paused.clear();
        for waiter in &mut self.waiters {
            (waiter.is_held, waiter.is_unready, waiter.is_left) = (false, false, false);
        }
        let targets = &self.lab.targets;
        let places = targets.iter().sum::<u32>();
        let changes: u32 = targets.iter().map(|places| places + 1).sum();
        let bound = (PASSED_TIMES + 1) * 2 * places + changes * places;
        let mut left = self.to_begin();
        let mut ends = 0;
        while left > 0 {
            self.crowd();
            self.pass()?;
            let was = std::mem::replace(&mut left, self.to_begin());
            ends = if left < was { 0 } else { ends + 1 };
            prop_assert!(ends <= bound, "{left} have not begun: {:#?}", self.waiters);
            self.now += 1;
            if !self.running.is_empty() {
                self.running.remove(0);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(histories()))]

    #[test]
    fn everybody_begins_in_his_turn(history in histories_of()) {
        let mut world = World::new(&history);
        for step in &history.steps {
            world.step(step)?;
        }
        world.everybody_begins()?;
    }
}
