//! Deliberate bugs: every one is found. They are planted in the simulated doors ([`super::lies`]), none in the
//! program. What cannot be broken is not known to be tested.

use std::process::Command;

use super::cluster::Engine;
use super::run::{Story, play};

/// The fail point, what it does wrong, and the first seed that shows it. A change of the program or of the
/// world may move that seed: then the search goes on from there.
const BUGS: [(&str, &str, u64); 10] = [
    ("bug-in-place", "the data file is written in place", 0),
    ("bug-old-base", "a change is made to what was read before the lock", 1),
    ("bug-no-archive", "records leave the data file and go nowhere", 8),
    ("bug-leftovers", "what is left of the parent is not stopped", 35),
    ("bug-second-window", "a window whose answer was lost is opened again", 219),
    ("bug-old-fact", "a target is made anew because it was gone a while ago", 71),
    ("bug-unknown-is-gone", "what cannot be asked counts as gone", 9),
    ("bug-reused-pid", "a process id is all that is looked at", 8),
    ("bug-held-for-ever", "the lease of the dead holds for ever", 21),
    ("bug-no-trace", "nobody finds that a window was closed by hand", 0),
];

/// The same in worlds with a cluster of Slurm.
const BUGS_OF_SLURM: [(&str, &str, u64); 2] = [
    ("bug-silent-is-gone", "where nobody answers and nothing is read again, a job is gone", 198),
    ("bug-unheard", "a submission whose answer was lost counts as one that nobody heard", 36),
];

/// The same in worlds with a cluster of Kubernetes.
const BUGS_OF_KUBERNETES: [(&str, &str, u64); 2] = [
    ("bug-silent-is-empty", "a server that does not answer counts as one that has no Job", 39),
    ("bug-unheard", "a creation whose answer was lost counts as one that nobody heard", 0),
];

/// Every bug is found within so many seeds.
const MOST: u64 = 2_000;

/// Plays seeds with a bug, in a process of its own: fail points are the whole process's. The line about
/// the first seed that shows it.
#[expect(clippy::disallowed_methods, reason = "the test starts itself once more, with a bug")]
fn shown(bug: &str, from: u64, story: fn(u64) -> Story) -> Option<String> {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    match story(from).engine {
        Some(Engine::Slurm(None)) => drop(command.env("TPU_SIM_SLURM", "1")),
        Some(Engine::Slurm(Some(_))) => drop(command.env("TPU_SIM_LIARS", "1")),
        Some(Engine::Kubernetes) => drop(command.env("TPU_SIM_KUBERNETES", "1")),
        None => {}
    }
    let output = command
        .args(["--exact", "sim::as_asked", "--nocapture"])
        .env("FAILPOINTS", format!("{bug}=return"))
        .env("TPU_SIM_SEEDS", MOST.to_string())
        .env("TPU_SIM_FROM", from.to_string())
        .env("TPU_SIM_FIRST", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("seed "))?.to_owned();
    let seed = line.strip_prefix("seed ")?.split(':').next()?.parse().ok()?;
    // It is the bug that breaks it, and nothing else.
    assert_eq!(play(&story(seed)).broken, None, "seed {seed} without {bug}");
    Some(line)
}

#[test]
fn every_deliberate_bug_is_found() {
    println!("{}", found(&BUGS, Story::of));
}

#[test]
fn and_those_about_a_cluster_of_slurm() {
    println!("{}", found(&BUGS_OF_SLURM, Story::with_slurm));
}

#[test]
fn and_those_about_a_cluster_of_kubernetes() {
    println!("{}", found(&BUGS_OF_KUBERNETES, Story::with_kubernetes));
}

/// What each of them has broken, a line for each.
fn found(bugs: &[(&str, &str, u64)], story: fn(u64) -> Story) -> String {
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    for (bug, what, seed) in bugs {
        match shown(bug, *seed, story) {
            Some(line) => lines.push(format!("{bug} ({what}): {line}")),
            None => missed.push(*bug),
        }
    }
    assert!(missed.is_empty(), "not found within {MOST} seeds: {missed:?}");
    lines.join("\n")
}
