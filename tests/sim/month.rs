//! A month of a lab: ten users, targets of two types in two zones that are taken away, out of stock and failing as real
//! ones are, a checkpoint every ten minutes, and jobs that wait in the queue for one of them. The manager runs as it does;
//! what was true of it is kept apart, by those who made it happen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::settings::SettingOrigin;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::target::{Pricing, Registration};
use tpu_core::model::time::Zone;
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::By;
use tpu_lab::sim::{Event, Timing};
use tpu_ops::act::launch::RunRequest;
use tpu_ops::front::clean::{self, Ends, Extent};
use tpu_ops::observe::stats::{self, StatsReport, StatsRequest};
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::submit::{Submission, enter};

use super::actors;
use super::day::{CREATE_S, DELETE_S, misfortune};
use super::observer::Cause;
use super::run::{Stage, Story, new_world};
use super::tpu::{call, target};
use super::world::{BEGIN, Faults, Purpose, World};
use super::{CODE, DATA};

/// What is brought back, and how.
const RULES: &str = "preempted:reapply,grpc:resume,ssh-lost:resume,launch:resume";
/// What a chip costs in an hour.
const PRICES: &str = r#"{"v2": {"spot": 0.25}, "v3": {"spot": 0.55}}"#;

/// How large a month is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) seed: u64,
    pub(crate) users: usize,
    pub(crate) targets: usize,
    pub(crate) hours: f64,
    /// How much work is submitted, as a part of what the targets could do if they never were away.
    pub(crate) load: f64,
}

impl Size {
    /// How many targets are of the smaller type; they come first.
    fn small(self) -> usize {
        self.targets - self.targets / 3
    }

    /// The type of a target, and what an hour of it costs.
    pub(crate) fn type_of(self, index: usize) -> (&'static str, f64) {
        if index < self.small() { ("v2-8", 4.0 * 0.25) } else { ("v3-8", 4.0 * 0.55) }
    }
}

/// How long it takes at least until a target is there again.
pub(crate) const ANEW_S: f64 = CREATE_S;

/// The zone of a target.
pub(crate) fn zone_of(index: usize) -> String {
    format!("zone-{}", index % 2)
}

/// A program that really ran.
#[derive(Clone, Debug)]
pub(crate) struct TrueRun {
    pub(crate) lineage: u32,
    pub(crate) user: String,
    /// Which target.
    pub(crate) on: usize,
    /// From when on the target was its own, and how long it did what it should, in seconds.
    pub(crate) began_s: f64,
    pub(crate) ended_s: f64,
    /// What ended it, if something has.
    pub(crate) cause: Option<Cause>,
}

/// A job that was really submitted.
#[derive(Clone, Debug)]
pub(crate) struct TrueJob {
    pub(crate) user: String,
    pub(crate) submitted_s: f64,
    /// When it first ran.
    pub(crate) began_s: Option<f64>,
    /// When it was done, or how far its last attempt came.
    pub(crate) ended_s: f64,
    pub(crate) is_done: bool,
    /// Work that it has done and that is not lost, in seconds.
    pub(crate) useful_s: f64,
}

/// What was true, and what is told of it.
#[derive(Debug)]
pub(crate) struct Month {
    pub(crate) size: Size,
    pub(crate) broken: Option<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) runs: Vec<TrueRun>,
    pub(crate) jobs: BTreeMap<u32, TrueJob>,
    /// By what each was asked for.
    pub(crate) reports: Vec<StatsReport>,
}

type Book = Arc<Mutex<BTreeMap<u32, TrueJob>>>;

/// Plays it.
pub(crate) fn play(size: Size) -> Month {
    let Size { seed, users, targets, hours, .. } = size;
    let length = Duration::from_secs_f64(hours * 3_600.0);
    let faults = Faults::default();
    let story = Story {
        seed,
        hosts: 1,
        targets: size.small(),
        chaos: length,
        faults,
        print: false,
        engine: None,
        has_queues: false,
        has_others: false,
    };
    let world = new_world(&story);
    let timing = Timing { create_s: CREATE_S, delete_s: DELETE_S, ..Timing::default() };
    world.fleet.pull(&Event::Time { timing }).expect("times can be set");
    settle_in(&world, size);
    {
        let mut state = world.state();
        state.targets = targets;
        state.most_steps = u64::MAX;
        // Who looks ten times a second whether something has happened looks a few times a minute; who waits for a lock
        // does not wait longer.
        state.lazy = Duration::from_secs(20);
        state.lazy_from = Duration::from_millis(20);
        state.habits.says_ms = (20_000, 40_000);
        state.habits.keeps_s = 600.0;
        state.habits.mistake = 0;
        state.habits.counts_on = true;
        state.reads_all = false;
    }
    let book = Book::default();
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    for user in 0..users {
        let book = Arc::clone(&book);
        stage.actor(move |world| person(world, user, size, &book));
    }
    stage.actor(misfortune);
    stage.actor(move |world| tidy(world, users));
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    stage.actor(move |world| {
        actors::wait(world, length);
        ask(world, &kept);
        world.state().over = true;
    });
    stage.play();
    sum_up(&world, size, &book, &told)
}

fn user(index: usize) -> String {
    format!("user{index}")
}

/// Users with their directories and prices, and targets of their types.
fn settle_in(world: &World, size: Size) {
    let mut data = actors::data(world).expect("the data file of a new world");
    for index in 0..size.users {
        let name = UserName::from(user(index).as_str());
        data.add_user(&name);
        let known = data.user_mut(&name).expect("added a line above");
        known.set_dir(1, CODE.to_owned());
        let origin = SettingOrigin::User(user(index));
        known.settings.set("arguments", "config", &origin).expect("config is a style");
        known.settings.set("prices", PRICES, &origin).expect("prices are a table");
    }
    for index in 0..size.targets {
        let (accelerator, _) = size.type_of(index);
        let registration = Registration {
            zone: Some(zone_of(index)),
            accelerator: Some(accelerator.to_owned()),
            pricing: Pricing::Spot,
            ..Registration::default()
        };
        data.registry_mut().register(TargetName::new(target(index)), registration);
        let event = Event::Ready {
            target: target(index),
            zone: Some(zone_of(index)),
            accelerator: Some(accelerator.to_owned()),
            pricing: Some(Pricing::Spot),
        };
        world.fleet.pull(&event).expect("a target can be made ready");
    }
    // Without blanks it is half as long, and stays so: it is read and written a million times.
    let data: Value = serde_json::from_slice(&data.to_bytes()).expect("a data file is JSON");
    world.disk.put(DATA.as_ref(), data.to_string().as_bytes(), 0o660, (1000, 1000));
    let roots = tempfile::tempdir().expect("a directory for copies of code");
    let _kept = world.roots.set(roots);
}

/// Submits jobs for hours and days of work, as many as keep some waiting for much of the time.
fn person(world: &Arc<World>, index: usize, size: Size, book: &Book) {
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let share = size.targets as f64 / size.users as f64;
    loop {
        let needs_s = world.state().between(1_800_000, 10 * 3_600_000).as_secs_f64();
        let number = {
            let mut state = world.state();
            let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
            state.observer.lineages.entry(number).or_default().needs = needs_s;
            let job = TrueJob {
                user: user(index),
                submitted_s: state.now.as_secs_f64(),
                began_s: None,
                ended_s: 0.0,
                is_done: false,
                useful_s: 0.0,
            };
            book.lock().unwrap_or_else(PoisonError::into_inner).insert(number, job);
            number
        };
        let wants = if number % 3 == 0 { "v3-8" } else { "v2-8" };
        let any = AnyOf { types: vec![wants.to_owned()], ..AnyOf::default() };
        let spec = JobSpec {
            configs: vec![("config.lineage".to_owned(), number.to_string())],
            rules: Some(RULES.to_owned()),
            ..JobSpec::on(TargetRequest::Any(any))
        };
        let name = UserName::from(user(index).as_str());
        let request = RunRequest::new(name, spec);
        // Nothing is written into the directories of code.
        let how = Submission { stages_late: true, ..Submission::default() };
        let _pid = call(world, &actors::start(0, Purpose::Run), move |ctx| {
            drop(enter(ctx, &request, &how));
            drop(pass::unless_watched(ctx, usize::MAX));
        });
        let mean_ms = needs_s * 1_000.0 / share / size.load;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "milliseconds of some hours"
        )]
        let pause = world.state().between((mean_ms * 0.5) as u64, (mean_ms * 1.5) as u64);
        actors::wait(world, pause);
    }
}

/// What is done is cleared away, every two hours.
fn tidy(world: &Arc<World>, users: usize) {
    loop {
        actors::wait(world, Duration::from_secs(7_200));
        for index in 0..users {
            let _pid = call(world, &actors::start(0, Purpose::Clean), move |ctx| {
                let done = Extent { ends: Ends::Finished, ancestors_too: true, force: false };
                drop(clean::clear(ctx, &UserName::from(user(index).as_str()), done));
            });
            actors::wait(world, Duration::from_secs(10));
        }
    }
}

/// Asks for the statistics, as a command does.
fn ask(world: &Arc<World>, told: &Arc<Mutex<Vec<StatsReport>>>) {
    let kept = Arc::clone(told);
    let pid = call(world, &actors::start(0, Purpose::Other), move |ctx| {
        let zone = Zone::named("UTC", jiff::tz::TimeZone::UTC).expect("UTC is a zone");
        for by in By::ALL {
            let request = StatsRequest { whose: Whose::default(), by, since: None, until: None };
            let report = stats::report(ctx, &request, &zone).expect("statistics can be made");
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        }
    });
    while world.state().is_alive(pid) {
        actors::wait(world, Duration::from_millis(50));
    }
}

fn sum_up(world: &World, size: Size, book: &Book, told: &Arc<Mutex<Vec<StatsReport>>>) -> Month {
    let mut state = world.state();
    let end = state.now;
    let mut jobs = std::mem::take(&mut *book.lock().unwrap_or_else(PoisonError::into_inner));
    let mut runs = Vec::new();
    for program in &state.observer.programs {
        let Some(job) = jobs.get_mut(&program.lineage) else { continue };
        let on = program.target.rsplit('-').next().and_then(|index| index.parse().ok());
        // From its failure on it did nothing, and nothing was to be had of its target.
        let ended = program.struck.or(program.ended).unwrap_or(end).as_secs_f64();
        let began_s = program.began.as_secs_f64();
        job.began_s.get_or_insert(began_s);
        job.useful_s = state.observer.lineages.get(&program.lineage).map_or(0.0, |of| of.reached);
        job.ended_s = ended;
        job.is_done = program.cause == Some(Cause::Finished);
        runs.push(TrueRun {
            lineage: program.lineage,
            user: job.user.clone(),
            on: on.unwrap_or(usize::MAX),
            began_s,
            ended_s: ended,
            cause: program.cause,
        });
    }
    let reports = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    Month {
        size,
        broken: state.broken.take(),
        trace: state.trace.drain(..).collect(),
        runs,
        jobs,
        reports,
    }
}

/// The hour of the day in which a moment is, in UTC, and how many seconds of it are left.
pub(crate) fn hour_of(seconds: f64) -> (usize, f64) {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let at = BEGIN as f64 + seconds;
    let hours = (at / 3_600.0).floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 23")]
    let hour = hours.rem_euclid(24.0) as usize;
    (hour, (hours + 1.0) * 3_600.0 - at)
}

/// The name of a target.
pub(crate) fn name_of(index: usize) -> String {
    target(index)
}
