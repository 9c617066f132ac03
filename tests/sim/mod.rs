//! The whole manager in a simulated world, one thread, one seed: several daemons and persons' commands at
//! the same time, with crashes between any two effects, and an observer that sees what is true.
//!
//! Some worlds have a cluster among their targets ([`cluster`], [`slurm`], [`kubernetes`], [`engine`]).
//!
//! In some persons submit jobs to queues ([`queues`], [`turns`]), in some many jobs end at once ([`crowd`]).
//!
//! [`world`] is what there is, [`effects`] how a process touches it, [`lies`] what it may be told, [`launcher`] what
//! runs in a window, [`actors`] who acts, [`observer`] what must never happen, [`run`] one seed from its beginning to
//! its end.
//!
//! slow: hours of several machines are played.

mod actors;
mod bugs;
mod cluster;
mod cluster_disk;
mod crowd;
mod day;
mod effects;
mod engine;
mod found;
mod kubernetes;
mod launcher;
mod lies;
mod line;
mod lineages;
pub(crate) mod month;
pub(crate) mod observer;
mod others;
mod outage;
mod pods;
mod promises;
mod queue_days;
mod queues;
mod run;
mod slurm;
mod threads;
mod tpu;
mod turns;
mod world;

use std::path::PathBuf;
use std::time::Duration;

use crowd::Crowd;
use run::{Outcome, Story, play};
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// The data file.
const DATA: &str = "/lab/data.json";

/// A directory of code, and one with a complete checkpoint. Nothing is written there.
const CODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sim/code");
const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sim/log");

/// The archive of the data file.
fn archive() -> PathBuf {
    launcher::paths().archive()
}

/// Plays seeds and fails at the first that breaks something, with the end of its trace.
fn hold(seeds: std::ops::Range<u64>, story: fn(u64) -> Story) -> u64 {
    let mut steps = 0;
    for seed in seeds {
        let outcome = play(&story(seed));
        steps += outcome.steps;
        if let Outcome { broken: Some(broken), trace, .. } = outcome {
            panic!("seed {seed}: {broken}\n{}", trace.join("\n"));
        }
    }
    steps
}

/// A share of the seeds for each test, so that they run side by side: together less than a minute of each story, as
/// thousands are `./x sim`'s.
macro_rules! hold_of {
    ($promise:ident, $story:ident, $count:literal: $($name:ident: $from:literal),* $(,)?) => {
        mod $promise {
            $(
                #[test]
                fn $name() {
                    let _steps: u64 = super::hold($from..$from + $count, super::Story::$story);
                }
            )*
        }
    };
}

hold_of! {
    nothing_that_must_never_happen_happens, of, 25:
    from_seed_0: 0, from_seed_25: 25, from_seed_50: 50, from_seed_75: 75,
    from_seed_100: 100, from_seed_125: 125, from_seed_150: 150, from_seed_175: 175,
}

hold_of! {
    nor_where_another_account_fails_and_programs_end_well_without_their_targets, with_others, 10:
    from_seed_0: 0, from_seed_10: 10, from_seed_20: 20,
}

hold_of! {
    nor_where_persons_submit_jobs_to_queues, with_queues, 1:
    from_seed_0: 0, from_seed_1: 1, from_seed_2: 2, from_seed_3: 3, from_seed_4: 4,
    from_seed_5: 5, from_seed_6: 6, from_seed_7: 7, from_seed_8: 8, from_seed_9: 9,
}

hold_of! {
    nor_where_a_cluster_of_slurm_is_among_the_targets, with_slurm, 5:
    from_seed_0: 0, from_seed_5: 5, from_seed_10: 10,
    from_seed_15: 15, from_seed_20: 20, from_seed_25: 25,
}

hold_of! {
    nor_where_slurm_says_what_is_not_so, with_liars, 5:
    from_seed_0: 0, from_seed_5: 5, from_seed_10: 10,
}

hold_of! {
    nor_where_a_cluster_of_kubernetes_is_among_the_targets, with_kubernetes, 5:
    from_seed_0: 0, from_seed_5: 5, from_seed_10: 10,
    from_seed_15: 15, from_seed_20: 20, from_seed_25: 25,
}

/// Seeds that have shown a mistake once.
///
/// * 902: a daemon on another machine settled the end of a job of which it saw neither window nor text.
/// * 1617, 2458: a target was made anew before anybody saw that it had been taken away.
/// * 2249: a machine counted as another one because its instant was kept in whole seconds.
/// * 2741: what had outlived its window was not stopped with its record.
/// * 2827: a job that failed between the check and the claim of another one was not looked at.
/// * 2988: a resume had lost its checkpoint to a clean.
/// * 5250: what could not be resumed was tried for ever, since it had been begun.
/// * 5496: a launch whose age a clock had made too old did not count, and its target was made anew under it.
/// * 7975: a person's window was put in the place of a job's, which tmux would not have done.
/// * 31606, 80422: a clock that was set back during a run hid that its target had been taken away.
/// * 50361: a target was made anew before anybody had noted on which machine its job began.
/// * 66613, 68570: a window that opened on another server than was noted at its claim counted as lost.
const ONCE: [u64; 15] = [
    902, 1617, 2249, 2458, 2741, 2827, 2988, 5250, 5496, 7975, 31_606, 50_361, 66_613, 68_570,
    80_422,
];

/// The same in worlds with a cluster of Slurm.
///
/// * 71: a submission that was under way counted as one that Slurm has, and as lost when its answer was.
/// * 326: a launch was submitted that had been given up while its submitter stood still.
/// * 28: a record that had been judged meanwhile was forgotten by whoever had waited for the engine's refusal.
/// * 519: what had been taken counted as a launch that failed, since the disk was full when that was to be noted.
const ONCE_WITH_SLURM: [u64; 4] = [28, 71, 326, 519];

/// The same in worlds in which persons submit jobs to queues.
///
/// * 3034: what was brought back by an action that had been begun held no place under the limit of its queue.
/// * 3052: a failed job of which one machine knew that it was over kept its place on the other one.
/// * 3154: a target was kept for one that only a person could bring back.
/// * 3185: a launch stood in the future after its machine's clock was set back, so that no answer was younger.
const ONCE_WITH_QUEUES: [u64; 4] = [3034, 3052, 3154, 3185];

/// The same in worlds with a cluster of Kubernetes.
///
/// * 1: the first of a user on a volume was preempted before its pod began, and its directory counted as one that
///   cannot be seen.
/// * 76: a look at the volume that was not answered counted as a directory that may hold a checkpoint.
/// * 267: a Job that was made after the server had been asked, and noted before the note was read, counted as gone.
const ONCE_WITH_KUBERNETES: [u64; 3] = [1, 76, 267];

mod what_went_wrong_once_does_not_again {
    use super::{ONCE, ONCE_WITH_KUBERNETES, ONCE_WITH_QUEUES, ONCE_WITH_SLURM, Story, hold};

    fn hold_each(seeds: &[u64], story: fn(u64) -> Story) {
        for seed in seeds {
            let _steps: u64 = hold(*seed..seed + 1, story);
        }
    }

    #[test]
    fn on_targets() {
        hold_each(&ONCE, Story::of);
    }

    #[test]
    fn with_a_cluster_of_slurm() {
        hold_each(&ONCE_WITH_SLURM, Story::with_slurm);
    }

    #[test]
    fn with_queues() {
        hold_each(&ONCE_WITH_QUEUES, Story::with_queues);
    }

    #[test]
    fn with_a_cluster_of_kubernetes() {
        hold_each(&ONCE_WITH_KUBERNETES, Story::with_kubernetes);
    }
}

#[test]
fn an_hour_of_a_fleet_breaks_nothing_and_loses_little() {
    let day = day::play(1.0, 6, 4);
    assert_eq!(day.outcome.broken, None, "{}", day.outcome.trace.join("\n"));
    assert!(day.goodput > 0.9, "{day}");
}

#[test]
fn six_hours_without_a_network_are_waited_for_unless_somebody_wants_otherwise() {
    let told = outage::play(11);
    assert_eq!(told.outcome.broken, None, "{}", told.outcome.trace.join("\n"));
    let [patient, impatient] = &told.users;
    assert!(patient.is_finished && patient.stopped.is_none(), "{patient:?}");
    // The first one, three children that die at once, and tries after half an hour, one, two and four hours more.
    let tries = patient.attempts.len();
    assert!((6..=10).contains(&tries), "{patient:?}");
    let goes_on = patient.attempts.last().copied().unwrap_or_default();
    let latest = told.back + Duration::from_secs(4 * 3_600 * 11 / 10 + 120);
    assert!(told.back <= goes_on && goes_on <= latest, "{patient:?}");
    assert!(!impatient.is_finished && impatient.attempts.len() <= 6, "{impatient:?}");
    let why = impatient.stopped.as_deref().unwrap_or_default();
    assert!(why.contains("3 attempts in a row died within 60 s"), "{impatient:?}");
}

/// Plays so many hours of those who wait, and says what was in them.
fn in_line(seed: u64, hours: u64) -> String {
    let day = line::play(seed, hours);
    assert_eq!(day.outcome.broken, None, "seed {seed}\n{}", day.outcome.trace.join("\n"));
    assert_eq!(day.wrong, [""; 0], "seed {seed}\n{}", day.outcome.trace.join("\n"));
    let line::Day { started, carried_on, killed, longest_s, overtaken, .. } = day;
    let quiet = |each_day: u64| usize::try_from(each_day * hours / 24).unwrap_or(0);
    assert!(
        started >= quiet(100) && carried_on >= quiet(5) && killed >= quiet(10),
        "the hours were too quiet"
    );
    assert!(longest_s < 4 * 3_600, "somebody starved: {longest_s} s");
    // As many as there are other targets may be quicker by one look.
    assert!(overtaken <= 2, "{overtaken} overtook somebody");
    format!(
        "seed {seed}: {started} got a target, {carried_on} of them after a restart; {killed} were killed in line; \
         the longest wait was {longest_s} s, and {overtaken} at most overtook anybody"
    )
}

/// A day in three parts, each of a seed of its own. Whole days are `./x prove waiting`'s.
mod among_those_who_wait_nobody_starves_and_nobody_gets_two {
    #[test]
    fn in_the_night() {
        println!("{}", super::in_line(3, 8));
    }

    #[test]
    fn in_the_morning() {
        println!("{}", super::in_line(4, 8));
    }

    #[test]
    fn in_the_evening() {
        println!("{}", super::in_line(5, 8));
    }
}

/// What `./x prove waiting` runs: `TPU_SIM_WAITING` days, each whole.
#[test]
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn days_of_waiting_as_asked() {
    let asked = std::env::var("TPU_SIM_WAITING").ok().and_then(|text| text.parse::<u64>().ok());
    for seed in 3..3 + asked.unwrap_or(0) {
        println!("{}", in_line(seed, 24));
    }
}

/// Plays worlds of lineages, and says what they were through.
fn come_back(seeds: std::ops::Range<u64>, unopened: u64, count: usize) -> lineages::Told {
    let mut all: Option<lineages::Told> = None;
    for seed in seeds {
        let told = lineages::play(seed, unopened, count);
        let clue = told.outcome.trace.join("\n");
        assert_eq!(told.outcome.broken, None, "seed {seed}\n{clue}");
        all = Some(match all {
            Some(all) => all.and(told),
            None => told,
        });
    }
    all.expect("some seeds")
}

#[test]
fn a_preemption_that_only_the_control_plane_tells_of_is_seen_within_ten_seconds() {
    // Alone: where much happens, the control plane is asked again and again anyway.
    let told = come_back(1_000..1_020, 0, 1);
    // A turn takes its time as well.
    assert!(
        told.seen_after > Duration::ZERO && told.seen_after <= Duration::from_secs(13),
        "{told}"
    );
}

/// Of a million windows so many are not opened, in the worlds of lineages whose attempts may never begin.
const UNOPENED: u64 = 300_000;

/// Shares of what `./x prove lineages` runs whole.
mod what_is_struck_early_or_never_begins_comes_back_once_from_the_newest_checkpoint {
    use super::{UNOPENED, come_back, lineages};

    fn of_seed(seed: u64) {
        let told = come_back(seed..seed + 1, UNOPENED, lineages::EACH);
        assert!(told.early > 7 && told.never_began > 10, "the world was too quiet: {told}");
        assert!(told.from_nothing > 5 && told.from_checkpoint > 5, "{told}");
    }

    #[test]
    fn from_seed_0() {
        of_seed(0);
    }

    #[test]
    fn from_seed_1() {
        of_seed(1);
    }
}

/// What `./x prove lineages` runs: `TPU_SIM_LINEAGES` of them at least.
#[test]
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn lineages_as_asked() {
    let asked = std::env::var("TPU_SIM_LINEAGES").ok().and_then(|text| text.parse::<u64>().ok());
    let Some(asked) = asked else { return };
    let clock = SystemClock::new();
    let told = come_back(0..asked.div_ceil(lineages::EACH as u64), UNOPENED, lineages::EACH);
    println!("{told}; {:.0} s", clock.monotonic().as_secs_f64());
}

/// Plays worlds in which many jobs end at once; whether one of them breaks something.
fn in_a_crowd(mut seeds: std::ops::Range<u64>, crowd: Crowd) -> Option<String> {
    seeds.find_map(|seed| {
        let Outcome { broken, trace, .. } = crowd::play(seed, crowd);
        Some(format!("seed {seed}: {}\n{}", broken?, trace.join("\n")))
    })
}

mod many_jobs_end_at_once {
    use super::{Crowd, in_a_crowd};

    #[test]
    fn and_one_pass_at_a_time_starts_all_that_wait() {
        assert_eq!(in_a_crowd(0..20, Crowd::default()), None);
    }

    /// Forty worlds in four tests.
    macro_rules! crowds {
        ($promise:ident, $crowd:expr; $($name:ident: $from:literal),*) => {
            mod $promise {
                use super::{Crowd, in_a_crowd};
                $(
                    #[test]
                    fn $name() {
                        assert_eq!(in_a_crowd($from..$from + 10, $crowd), None);
                    }
                )*
            }
        };
    }

    crowds! {
        and_nothing_is_lost_with_a_process_that_is_killed,
        Crowd { crash: 3_000, ..Crowd::default() };
        from_seed_0: 0, from_seed_10: 10, from_seed_20: 20, from_seed_30: 30
    }

    crowds! {
        and_no_pass_goes_on_when_its_tmux_server_has_ended,
        Crowd { loses_tmux: true, ..Crowd::default() };
        from_seed_0: 0, from_seed_10: 10, from_seed_20: 20, from_seed_30: 30
    }

    #[test]
    fn and_a_note_that_is_lost_is_missed() {
        let lie = Crowd { loses_notes: true, ..Crowd::default() };
        let broken = in_a_crowd(0..20, lie).expect("a place stays free");
        assert!(broken.contains("16: "), "{broken}");
    }

    #[test]
    fn and_two_passes_at_once_are_seen() {
        let lie = Crowd { shares_right: true, ..Crowd::default() };
        let broken = in_a_crowd(0..20, lie).expect("two pass at once");
        assert!(broken.contains("18: "), "{broken}");
    }
}

/// Plays days of queues with so many kills of the daemon, and as many jobs as go with that.
fn days_of_queues(seed: u64, kills: u32) -> queue_days::Told {
    let jobs = usize::try_from(kills * 2 / 5).unwrap_or(0);
    let told = queue_days::play(seed, jobs, kills);
    assert_eq!(told.outcome.broken, None, "seed {seed}\n{}", told.outcome.trace.join("\n"));
    assert!(told.kills > 0 && told.preempted > 0, "the days were too quiet: {told}");
    told
}

/// A share of what `./x prove queue-days` runs whole.
#[test]
fn what_waits_runs_to_its_end_once_however_often_monitor_dies() {
    println!("{}", days_of_queues(1, 60));
}

/// What `./x prove queue-days` runs: the daemon is killed `TPU_SIM_QUEUE_DAYS` times.
#[test]
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn days_of_queues_as_asked() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let Some(kills) = number("TPU_SIM_QUEUE_DAYS") else { return };
    let seed = number("TPU_SIM_FROM").map_or(1, u64::from);
    let clock = SystemClock::new();
    let told = days_of_queues(seed, kills);
    println!("seed {seed}: {told}; {:.0} s", clock.monotonic().as_secs_f64());
    assert_eq!(told.kills, kills, "all was done before");
}

#[test]
fn a_seed_decides_everything() {
    let one = play(&Story::of(7));
    let two = play(&Story::of(7));
    assert_eq!((one.steps, one.digest), (two.steps, two.digest));
}

/// What `./x sim` runs: `TPU_SIM_SEEDS` seeds from `TPU_SIM_FROM` on, with a cluster where `TPU_SIM_SLURM`,
/// `TPU_SIM_LIARS` or `TPU_SIM_KUBERNETES` is there, with queues where `TPU_SIM_QUEUES` is, with another account where
/// `TPU_SIM_OTHERS` is, or `TPU_SIM_HOURS` of a fleet.
#[test]
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn as_asked() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(hours) = number("TPU_SIM_HOURS") {
        #[expect(clippy::cast_precision_loss, reason = "some hours")]
        let day = day::play(hours as f64, 100, 20);
        println!("{hours} hours, {} steps: {day}", day.outcome.steps);
        assert_eq!(day.outcome.broken, None, "{}", day.outcome.trace.join("\n"));
    }
    let (Some(seeds), from) = (number("TPU_SIM_SEEDS"), number("TPU_SIM_FROM").unwrap_or(0)) else {
        return;
    };
    // A deliberate bug is switched on as any fail point is: by the variable FAILPOINTS.
    let _bugs = fail::FailScenario::setup();
    let clock = SystemClock::new();
    let first = number("TPU_SIM_FIRST").is_some();
    let print = number("TPU_SIM_PRINT").is_some();
    let story = if number("TPU_SIM_LIARS").is_some() {
        Story::with_liars
    } else if number("TPU_SIM_OTHERS").is_some() {
        Story::with_others
    } else if number("TPU_SIM_SLURM").is_some() {
        Story::with_slurm
    } else if number("TPU_SIM_KUBERNETES").is_some() {
        Story::with_kubernetes
    } else if number("TPU_SIM_QUEUES").is_some() {
        Story::with_queues
    } else {
        Story::of
    };
    let mut failed = 0;
    let mut steps = 0;
    for seed in from..from + seeds {
        let outcome = play(&Story { print, ..story(seed) });
        steps += outcome.steps;
        if let Some(broken) = outcome.broken {
            failed += 1;
            println!("seed {seed}: {broken}");
            if first {
                break;
            }
        }
    }
    let seconds = clock.monotonic().as_secs_f64();
    println!("{seeds} seeds from {from}, {steps} steps in {seconds:.1} s: {failed} failed");
    assert_eq!(failed, 0);
}
