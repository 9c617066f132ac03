//! A real cluster whose lists lie for two minutes and a half, or whose controller is set back, with the minute that it really
//! takes until something counts as gone: no two copies of a job are ever at work, and each comes to its end.
//! `./x prove slurm-lists` asks for twenty jobs.

use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _, SeededRandom};

use super::lab::Lab;
use crate::common::wait::wait_at_most;

/// How long a list lies: longer than it takes until something counts as gone, and a successor may begin.
const LIES: Duration = Duration::from_secs(150);

/// Nobody waits longer for all jobs to come to their ends.
const ENDED: Duration = Duration::from_secs(600);

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liar {
    /// A list that is renewed every forty seconds.
    Cached,
    /// One that lists nothing, and says that all is well.
    Empty,
    /// One that is never renewed.
    Old,
    /// One that never answers.
    Hanging,
    /// The controller knows what it knew before the jobs were there.
    SetBack,
}

impl Liar {
    /// What its `squeue` does while it lies.
    fn lie(self) -> &'static str {
        match self {
            Self::Cached => {
                "if [ -n \"$(find \"$copy\" -newermt '-40 seconds' 2>/dev/null)\" ]; then cat \"$copy\"; \
                 else /usr/bin/squeue \"$@\" >\"$copy.$$\"; cat \"$copy.$$\"; mv \"$copy.$$\" \"$copy\"; fi"
            }
            Self::Empty | Self::SetBack => ":",
            Self::Old => "[ ! -e \"$copy\" ] || cat \"$copy\"",
            Self::Hanging => "exec sleep 1000",
        }
    }
}

/// As many jobs for each liar as `./x prove slurm-lists` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<u64> {
    std::env::var("TPU_PROVE_SLURM_LISTS").ok().and_then(|text| text.parse().ok())
}

/// Jobs that train while somebody lies; every other one ends meanwhile. What was endured, in words.
fn endure(liar: Liar) -> String {
    let Some((jobs, mut lab)) = asked_for().and_then(|jobs| Some((jobs, Lab::lying(liar.lie())?)))
    else {
        return "not asked for".to_owned();
    };
    let (clock, seed) = (SystemClock::new(), OsRandom.below(u64::MAX));
    let draw = SeededRandom::new(seed);
    // A controller that lists nothing at all may have lost everything: nobody would be told lost.
    lab.cluster.submit(&["--hold"], "true");
    if liar == Liar::SetBack {
        lab.cluster.save_state();
    }
    let windows: Vec<u64> =
        (0..jobs).map(|job| lab.train_alone(&format!("j{job}"), "rule=pre")).collect();
    for (job, window) in windows.iter().enumerate() {
        lab.wait_runs(*window);
        lab.wait_starts(&format!("j{job}"), 1);
        lab.wait_checkpoint(*window);
    }
    let monitor = lab.daemon(&[]);
    for window in &windows {
        lab.env.wait_status(*window, "running");
    }
    if liar == Liar::SetBack {
        lab.cluster.restore_state();
    } else {
        lab.begin_to_lie();
    }
    let began = clock.monotonic();
    for job in (0..jobs).step_by(2) {
        let rest = Duration::from_secs(draw.below(20));
        let until = clock.monotonic() + rest;
        wait_at_most(ENDED, "its time", || (clock.monotonic() >= until).then_some(()));
        lab.end(&format!("j{job}"), "exit 0");
    }
    wait_at_most(ENDED, "the lies are over", || (clock.monotonic() >= began + LIES).then_some(()));
    if liar != Liar::SetBack {
        lab.tell_the_truth();
    }
    for job in (1..jobs).step_by(2) {
        lab.end(&format!("j{job}"), "exit 0");
    }
    wait_at_most(ENDED, "every job comes to its end", || {
        let all = lab.env.jobs("alice");
        let ends = all.iter().filter(|job| job["status"] == "finished").count() as u64;
        (ends == jobs).then_some(())
    });
    drop(monitor);
    let twice = std::fs::read_to_string(lab.env.path("twice")).unwrap_or_default();
    assert_eq!(twice, "", "{liar:?}, seed {seed}: two copies at work");
    let all = lab.env.jobs("alice");
    for job in &all {
        let is_done = job["status"] == "finished" || job["status"] == "resumed";
        assert!(is_done, "{liar:?}, seed {seed}: {job:#}");
    }
    if liar != Liar::SetBack {
        assert_eq!(all.len() as u64, jobs, "{liar:?}, seed {seed}: nothing was lost");
    }
    format!("{liar:?}, seed {seed}: {jobs} jobs in {} attempts", all.len())
}

#[test]
fn a_list_that_is_cached_doubles_and_loses_nothing() {
    eprintln!("{}", endure(Liar::Cached));
}

#[test]
fn nor_does_an_empty_one() {
    eprintln!("{}", endure(Liar::Empty));
}

#[test]
fn nor_does_an_old_one() {
    eprintln!("{}", endure(Liar::Old));
}

#[test]
fn nor_does_one_that_hangs() {
    eprintln!("{}", endure(Liar::Hanging));
}

#[test]
fn nor_does_a_controller_that_was_set_back() {
    eprintln!("{}", endure(Liar::SetBack));
}
