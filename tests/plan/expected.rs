//! When what waits is said to begin, held against what comes of made-up labs: exactly then where everything is known,
//! and within a factor of two in four of five cases where jobs run shorter or longer than their like, lose their machine
//! and go on, and others come meanwhile. What is ahead in a strict queue begins before. `./x prove queue` tries more.

use std::collections::{HashMap, HashSet};

use tpu_core::model::capacity::GpuAsk;
use tpu_core::model::entry::{Environment, Passed, Priority, QueueEntry};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, UserName};
use tpu_core::model::member::Array;
use tpu_core::model::queue::{Queue, QueuePolicy};
use tpu_core::model::queues::Queues;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::expected::{
    Awaited, Awaits, Effort, ExpectedStart, Foreseen, Outlook, Present, expected,
};
use tpu_core::plan::queue::{AtWork, Offers, Readiness, UserLimits, stand};
use tpu_system::sys::random::{Random as _, SeededRandom};

/// As many labs as `./x prove queue` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn labs() -> u64 {
    std::env::var("TPU_PROVE_QUEUE").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

const QUEUES: [&str; 3] = ["default", "night", "strict"];
const USERS: [&str; 3] = ["alice", "bob", "carol"];
const ENOUGH: Effort = Effort(usize::MAX);

/// Targets with places, and who is there.
#[derive(Clone, Debug, Default)]
struct Targets {
    places: Vec<u32>,
    held: HashMap<JobId, (usize, u32)>,
    taken: Vec<u32>,
    kept: Vec<usize>,
}

fn wish(entry: &QueueEntry) -> (Vec<usize>, u32) {
    let TargetRequest::Any(any_of) = &entry.spec.target else { panic!("{entry:?}") };
    let GpuAsk::Count(need) = entry.spec.ask.gpus else { panic!("{entry:?}") };
    (any_of.among.iter().map(|name| name[1..].parse().unwrap()).collect(), need)
}

impl Targets {
    fn free(&self, at: usize) -> u32 {
        let held = self.held.values().filter(|(target, _)| *target == at);
        self.places[at] - held.map(|(_, need)| need).sum::<u32>() - self.taken[at]
    }

    fn later(&self, entry: &QueueEntry) -> Option<usize> {
        let (among, need) = wish(entry);
        among.into_iter().find(|at| !self.kept.contains(at) && self.places[*at] >= need)
    }
}

impl Offers for Targets {
    type Place = usize;

    fn find(&mut self, entry: &QueueEntry) -> Result<usize, String> {
        let (among, need) = wish(entry);
        let fits = |at: &usize| !self.kept.contains(at) && self.free(*at) >= need;
        among.into_iter().find(fits).ok_or_else(|| "all are taken".to_owned())
    }

    fn take(&mut self, entry: &QueueEntry, place: &usize) {
        self.taken[*place] += wish(entry).1;
    }

    fn fits_later(&self, entry: &QueueEntry) -> bool {
        self.later(entry).is_some()
    }

    fn keep(&mut self, entry: &QueueEntry) -> Option<String> {
        let at = self.later(entry)?;
        self.kept.push(at);
        Some(format!("t{at}"))
    }
}

impl Outlook for Targets {
    fn occupy(&mut self, job: &JobId, entry: &QueueEntry, place: &usize) {
        self.held.insert(job.clone(), (*place, wish(entry).1));
    }

    fn vacate(&mut self, job: &JobId) {
        self.held.remove(job);
    }

    fn in_the_way(&self, entry: &QueueEntry) -> Vec<JobId> {
        let (among, _) = wish(entry);
        let there = self.held.iter().filter(|(_, (target, _))| among.contains(target));
        there.map(|(job, _)| job.clone()).collect()
    }
}

/// How far what happens is from what is foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fog {
    /// Everything is known, and nothing else comes.
    None,
    /// As in a lab.
    Usual,
    /// Also of some that run nobody knows when they end.
    Blind,
}

/// One that runs, as it is in truth.
#[derive(Clone, Debug)]
struct Running {
    job: JobId,
    of: Awaited,
    queue: QueueName,
    ends: i64,
    /// What its program says of that, in parts of a thousand of what is left; `None`: nothing.
    told: Option<i64>,
}

/// A lab from its first hour on.
struct Lab {
    random: SeededRandom,
    fog: Fog,
    now: i64,
    next: u32,
    queues: Queues,
    limits: UserLimits,
    targets: Targets,
    running: Vec<Running>,
    /// How long a job of each entry usually runs, in seconds.
    usual: HashMap<JobId, i64>,
    awaits: HashMap<JobId, Awaits>,
    ended: HashSet<Awaited>,
    /// When the first and the last job of each entry began.
    began: HashMap<JobId, (i64, i64)>,
}

impl Lab {
    fn new(seed: u64, fog: Fog) -> Self {
        let random = SeededRandom::new(seed);
        let places: Vec<u32> =
            (0..2 + random.below(4)).map(|_| pick(&random, &[1, 1, 2, 4])).collect();
        let mut queues = Queues::default();
        for name in QUEUES {
            let policy = if name == "strict" { QueuePolicy::Fifo } else { QueuePolicy::Backfill };
            let max_parallel = (random.below(3) == 0).then(|| 1 + below(&random, 4));
            queues.set(Queue { policy, max_parallel, ..Queue::new(QueueName::from(name)) });
        }
        let limited = USERS.iter().filter(|_| random.below(4) == 0);
        let limits = limited.map(|user| (UserName::from(*user), 1 + below(&random, 4))).collect();
        let count = places.len();
        let mut lab = Self {
            fog,
            now: 1_000_000,
            next: 1,
            queues,
            limits,
            targets: Targets { places, taken: vec![0; count], ..Targets::default() },
            running: Vec::new(),
            usual: HashMap::new(),
            awaits: HashMap::new(),
            ended: HashSet::new(),
            began: HashMap::new(),
            random,
        };
        for _ in 0..3 + lab.random.below(25) {
            lab.submit();
        }
        lab
    }

    fn submit(&mut self) {
        let random = &self.random;
        let count = self.targets.places.len();
        let most = self.targets.places.iter().max().copied().unwrap();
        let need = pick(random, &[1, 1, 1, 2, 4]).min(most);
        let fits = |at: &usize| self.targets.places[*at] >= need;
        let first = (0..count).filter(fits).nth(0).unwrap();
        let others = (0..count).filter(|_| random.below(2) == 0);
        let mut among: Vec<usize> = others.filter(|at| *at != first && fits(at)).collect();
        among.push(first);
        let among = among.iter().map(|at| format!("t{at}")).collect();
        let mut spec = JobSpec::on(TargetRequest::Any(AnyOf { among, ..AnyOf::default() }));
        spec.ask.gpus = GpuAsk::Count(need);
        if random.below(4) == 0 {
            let at_once = if random.below(2) == 0 { "%2" } else { "" };
            spec.array = Array::parse(&format!("0-{}{at_once}", 1 + random.below(6))).ok();
        }
        let start = Timestamp::from_second(self.now);
        let priority = pick(random, &["50", "50", "50", "80", "20"]);
        let entry = QueueEntry {
            user: UserName::from(USERS[below(random, 3) as usize]),
            number: JobNumber(self.next),
            queue: QueueName::from(QUEUES[below(random, 3) as usize]),
            spec,
            force: false,
            env: Environment::default(),
            since: start,
            priority: Priority::parse(priority).unwrap(),
            rank: 0,
            held: None,
            after: Vec::new(),
            passed: Passed { times: 0, since: None },
            place: String::new(),
            keeper: None,
            succeeds: None,
            applies: false,
            shunned: Vec::new(),
            sweep: None,
        };
        self.next += 1;
        // Some wait for one that was submitted before.
        if random.below(6) == 0
            && let Some(other) = self.queues.entries.get(below(random, 8) as usize)
        {
            let members = other.spec.array.as_ref().map(Array::indexes);
            let all = match members {
                Some(members) => members.iter().map(|at| (other.id(), Some(*at))).collect(),
                None => vec![(other.id(), None)],
            };
            self.awaits.insert(entry.id(), Awaits { all, ..Awaits::default() });
        }
        // From ten minutes to ten hours.
        let usual = 600 << random.below(6);
        self.usual.insert(entry.id(), usual);
        self.queues.entries.push(entry);
    }

    fn at_work(&self) -> AtWork {
        let mut at_work = AtWork::default();
        for one in &self.running {
            at_work.add(one.job.clone(), Some(&one.queue), Some(one.of.0.clone()));
        }
        at_work
    }

    /// Lets begin whose turn it is, look after look, until nobody does: who uses up a limit of his may give way by it.
    fn pass(&mut self) {
        while self.look() {}
    }

    /// Looks once; whether somebody has begun.
    fn look(&mut self) -> bool {
        let readiness = |at: usize| {
            let awaits = self.awaits.get(&self.queues.entries[at].id());
            let is_open =
                awaits.is_some_and(|of| of.all.iter().any(|one| !self.ended.contains(one)));
            Readiness { after: is_open.then(String::new), ..Readiness::default() }
        };
        let now = Timestamp::from_second(self.now);
        let mut offers = self.targets.clone();
        let at_work = (self.at_work(), &self.limits);
        let standings = stand(&self.queues, at_work, &readiness, &mut offers, now);
        let entries: Vec<QueueEntry> = self.queues.entries.clone();
        for standing in standings.iter().filter(|standing| !standing.starts.is_empty()) {
            let entry = &entries[standing.entry];
            for (nth, place) in standing.starts.iter().enumerate() {
                self.next += 1;
                let job = JobId::new(entry.user.clone(), JobNumber(self.next));
                self.targets.occupy(&job, entry, place);
                let member = standing.members.get(nth).copied();
                self.run(entry, job, member);
            }
            for passed in &standing.passes {
                let front = self.queues.entry_mut(passed).unwrap();
                front.passed.times += 1;
                front.passed.since.get_or_insert(now);
            }
            let left = self.queues.entry_mut(&entry.id()).unwrap();
            let rest = left.spec.array.as_ref().and_then(|array| {
                let rest = array.indexes().iter().filter(|at| !standing.members.contains(at));
                array.only(rest.copied().collect())
            });
            match rest {
                Some(rest) => left.spec.array = Some(rest),
                None => drop(self.queues.take(&entry.id())),
            }
            self.began.entry(entry.id()).or_insert((self.now, self.now)).1 = self.now;
        }
        standings.iter().any(|standing| !standing.starts.is_empty())
    }

    fn run(&mut self, entry: &QueueEntry, job: JobId, member: Option<u32>) {
        let usual = self.usual[&entry.id()];
        let thousandths =
            |low: u64, high: u64| i64::try_from(low + self.random.below(high - low)).unwrap();
        let (lasts, told) = match self.fog {
            Fog::None => (usual, Some(1000)),
            Fog::Usual | Fog::Blind => {
                // One in ten loses its machine, and goes on after a while.
                let lost = if self.random.below(10) == 0 { usual / 4 + 300 } else { 0 };
                let is_silent = self.fog == Fog::Blind && self.random.below(4) == 0;
                let told = (!is_silent).then(|| thousandths(850, 1200));
                (usual * thousandths(800, 1250) / 1000 + lost, told)
            }
        };
        let of = (entry.id(), member);
        let (queue, ends) = (entry.queue.clone(), self.now + lasts);
        self.running.push(Running { job, of, queue, ends, told });
    }

    /// What can be known now.
    fn foreseen(&self) -> Foreseen {
        let end = |one: &Running| {
            let left = (one.ends - self.now) * one.told? / 1000;
            Some((one.job.clone(), Timestamp::from_second(self.now + left)))
        };
        let as_run = |job: &JobId| {
            let run = |one: &Awaited| self.running.iter().find(|run| run.of == *one);
            let awaits = self.awaits.get(job)?;
            let open = awaits.all.iter().filter(|one| !self.ended.contains(one));
            let all = open.map(|one| run(one).map_or(one.clone(), |run| (run.job.clone(), None)));
            Some(Awaits { all: all.collect(), ..Awaits::default() })
        };
        let entries = &self.queues.entries;
        Foreseen {
            ends: self.running.iter().filter_map(end).collect(),
            runs_for: entries
                .iter()
                .map(|entry| (entry.id(), u64::try_from(self.usual[&entry.id()]).unwrap()))
                .collect(),
            awaits: entries
                .iter()
                .filter_map(|entry| Some((entry.id(), as_run(&entry.id())?)))
                .collect(),
        }
    }

    /// What is said of each that waits.
    fn said(&self) -> HashMap<JobId, ExpectedStart> {
        let present = Present {
            queues: &self.queues,
            at_work: &self.at_work(),
            limits: &self.limits,
            now: Timestamp::from_second(self.now),
        };
        expected(present, &self.foreseen(), &self.targets, &|_| true, ENOUGH)
    }

    /// Until the next one ends; whether somebody is left.
    fn go_on(&mut self) -> bool {
        let Some(next) = self.running.iter().map(|one| one.ends).min() else { return false };
        self.now = next;
        let (over, left) = self.running.drain(..).partition(|one| one.ends <= next);
        self.running = left;
        let over: Vec<Running> = over;
        for one in over {
            self.targets.vacate(&one.job);
            self.ended.insert(one.of);
        }
        true
    }
}

fn below(random: &SeededRandom, most: u64) -> u32 {
    u32::try_from(random.below(most)).unwrap()
}

fn pick<T: Copy>(random: &SeededRandom, of: &[T]) -> T {
    of[below(random, of.len() as u64) as usize]
}

#[test]
fn where_everything_is_known_it_begins_exactly_then() {
    for seed in 0..labs() {
        let mut lab = Lab::new(seed, Fog::None);
        lab.pass();
        let said = lab.said();
        while lab.go_on() {
            lab.pass();
        }
        for (job, said) in said {
            let ExpectedStart::About { first, last, or_sooner } = &said else {
                panic!("seed {seed}: {job}: {said:?}")
            };
            let last = last.unwrap_or_else(|| panic!("seed {seed}: {job}: {said:?}"));
            let truth = lab.began[&job];
            // What has begun in part before begins in truth before.
            let told = (first.as_second(), last.as_second());
            assert!(or_sooner.is_empty(), "seed {seed}: {job}: {or_sooner:?}");
            assert_eq!(told.1, truth.1, "seed {seed}: {job}: the last");
            assert!(
                told.0 == truth.0 || truth.0 == 1_000_000,
                "seed {seed}: {job}: {told:?} {truth:?}"
            );
        }
    }
}

#[test]
fn in_a_lab_it_begins_within_a_factor_of_two_in_four_of_five_cases() {
    let (mut right, mut all) = (0_u32, 0_u32);
    for seed in 0..labs() {
        let mut lab = Lab::new(seed, Fog::Usual);
        lab.pass();
        // What is said at several moments, with what came of it.
        let mut said: Vec<(i64, JobId, i64)> = Vec::new();
        let mut turns = 0;
        loop {
            let told = if turns % 4 == 0 { lab.said() } else { HashMap::new() };
            for (job, told) in told {
                let has_begun = lab.began.contains_key(&job);
                if let ExpectedStart::About { first, .. } = told
                    && !has_begun
                {
                    said.push((lab.now, job, first.as_second()));
                }
            }
            if !lab.go_on() {
                break;
            }
            // Others come, as people do: less than go.
            turns += 1;
            if turns < 20 && lab.random.below(5) == 0 {
                lab.submit();
            }
            lab.pass();
        }
        for (at, job, told) in said {
            let (told, truth) = (told - at, lab.began[&job].0 - at);
            all += 1;
            // Within a minute is right whatever the factor.
            let is_right = (told <= 2 * truth && truth <= 2 * told) || (told - truth).abs() <= 60;
            right += u32::from(is_right);
        }
    }
    println!("{right} of {all} within a factor of two");
    assert!(all > 1000 && right * 5 >= all * 4, "{right} of {all}");
}

#[test]
fn where_somebody_in_the_way_says_nothing_nothing_is_guessed() {
    let mut unknown = 0;
    for seed in 0..labs() {
        let mut lab = Lab::new(seed, Fog::Blind);
        lab.pass();
        let said = lab.said();
        let silent: HashSet<JobId> = lab
            .running
            .iter()
            .filter(|one| one.told.is_none())
            .map(|one| one.job.clone())
            .collect();
        for (job, said) in &said {
            let named = match said {
                ExpectedStart::About { or_sooner, .. } => or_sooner,
                ExpectedStart::Unknown(jobs) => {
                    unknown += 1;
                    jobs
                }
            };
            assert!(named.iter().all(|one| silent.contains(one)), "seed {seed}: {job}: {said:?}");
        }
        // Where all are silent nobody is told anything.
        for one in &mut lab.running {
            one.told = None;
        }
        for (job, said) in lab.said() {
            assert!(matches!(said, ExpectedStart::Unknown(_)), "seed {seed}: {job}: {said:?}");
        }
    }
    assert!(unknown > 0);
}

#[test]
fn what_is_ahead_in_a_strict_queue_begins_before() {
    for seed in 0..labs() {
        let mut lab = Lab::new(seed, Fog::Usual);
        lab.pass();
        let order = tpu_core::plan::queue::order(&lab.queues.entries);
        let strict = QueueName::from("strict");
        let line: Vec<JobId> = order
            .into_iter()
            .map(|at| &lab.queues.entries[at])
            .filter(|entry| entry.queue == strict && !lab.awaits.contains_key(&entry.id()))
            .filter(|entry| entry.spec.array.as_ref().and_then(Array::at_once).is_none())
            .map(QueueEntry::id)
            .collect();
        let said = lab.said();
        while lab.go_on() {
            lab.pass();
        }
        for pair in line.windows(2) {
            let [ahead, behind] = pair else { unreachable!() };
            let user = |job: &JobId| lab.limits.contains_key(&job.user);
            // Who is stopped by a limit of his own keeps nobody waiting.
            if user(ahead) || user(behind) {
                continue;
            }
            assert!(lab.began[ahead].1 <= lab.began[behind].0, "seed {seed}: {ahead} {behind}");
            if let (
                ExpectedStart::About { last: Some(ahead), .. },
                ExpectedStart::About { first, .. },
            ) = (&said[ahead], &said[behind])
            {
                assert!(ahead <= first, "seed {seed}: {said:?}");
            }
        }
    }
}
