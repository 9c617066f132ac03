//! Many who wait for one or two GPUs of a few machines at once, while jobs, waiting commands and the daemon are killed
//! at random: a machine never has more jobs than it takes, no GPU has two programs, and whoever is left alone begins
//! and ends. The programs themselves look, by what they see in their environment. `./x prove hosts` asks for a thousand
//! starts.

use std::path::PathBuf;
use std::time::Duration;

use tpu_system::sys::procs::{self, Process, Signal};
use tpu_system::sys::random::{OsRandom, Random as _, SeededRandom};

use super::Lab;
use crate::common::env::Running;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_at_most, wait_until};

/// Who waits at a time, and among how many machines, in a test run; twice as many when more is asked for.
const SHARE: (usize, usize) = (8, 3);

/// Nobody waits longer for a batch to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// As many starts as `./x prove hosts` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<usize> {
    std::env::var("TPU_PROVE_HOSTS").ok().and_then(|text| text.parse().ok())
}

/// Takes a directory for each GPU that it sees, and one of two for its place; what it finds taken by a program that
/// lives is a GPU or a place that was given twice.
const CLAIMS: &str = "set -u; at=$1; me=$(uname -n); taken=\n\
    take() { mkdir \"$at/$1\" 2>/dev/null || { read -r old <\"$at/$1/pid\" && ! kill -0 \"$old\" 2>/dev/null; } \
    || return 1; echo $$ >\"$at/$1/pid\"; taken=\"$taken $1\"; }\n\
    [ -n \"$CUDA_VISIBLE_DEVICES\" ] || echo \"$TPU_JOB sees no GPU\" >>\"$at/wrong\"\n\
    for gpu in $(echo \"$CUDA_VISIBLE_DEVICES\" | tr , ' '); do \
    take \"$me-gpu-$gpu\" || echo \"$TPU_JOB: GPU $gpu of $me has two\" >>\"$at/wrong\"; done\n\
    take \"$me-place-1\" || take \"$me-place-2\" || echo \"$TPU_JOB: $me has three\" >>\"$at/wrong\"\n\
    : >\"$at/begun-$$\"; sleep \"$2\"\n\
    for name in $taken; do rm -rf \"$at/$name\"; done; echo \"$TPU_JOB\" >>\"$at/done\"";

struct Proof {
    lab: Lab,
    draw: SeededRandom,
    machines: usize,
    claims: PathBuf,
}

impl Proof {
    fn new(machines: usize, seed: u64) -> Option<Self> {
        let limits = "--max-jobs 2 --gpus 3";
        let lab = Lab::perhaps_wired(machines, limits).or_else(|| Lab::with(machines, limits))?;
        let claims = lab.env.path("claims");
        std::fs::create_dir(&claims).unwrap();
        Some(Self { lab, draw: SeededRandom::new(seed), machines, claims })
    }

    fn below(&self, bound: usize) -> usize {
        let number = u64::from_str_radix(&self.draw.hex(4), 16).unwrap();
        usize::try_from(number).unwrap() % bound
    }

    fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.claims.join(name)).map_or(0, |text| text.lines().count())
    }

    /// Somebody who waits for one or two GPUs of any of the machines.
    fn one(&self) -> Running {
        let policy = ["sequential", "random", "smart", "frugal"][self.below(4)];
        let (gpus, naps) = (1 + self.below(2), ["0.05", "0.2", "0.5"][self.below(3)]);
        let script = self.lab.env.path("claims.sh");
        let line = format!(
            "run h[1-{}] gpus={gpus} --policy {policy} --wait -q -- sh {} {} {naps}",
            self.machines,
            script.display(),
            self.claims.display()
        );
        self.lab.env.start_tpu(&line, &[])
    }

    /// Kills one of the programs that have begun; whether there was one.
    fn kill_a_program(&self) -> bool {
        let names = std::fs::read_dir(&self.claims).unwrap();
        let pids = names.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_prefix("begun-")?.parse::<u32>().ok()
        });
        let live: Vec<Process> = pids
            .filter_map(Process::read)
            .filter(|process| !process.zombie && process.name == "sh")
            .collect();
        let Some(victim) = live.get(self.below(live.len().max(1))) else { return false };
        procs::signal(victim, Signal::Kill).unwrap_or(false)
    }

    /// A batch of those who wait, with accidents; how many were started.
    fn batch(&self, size: usize) -> usize {
        let before = self.lab.env.jobs("alice").len();
        let monitor = self.lab.env.start_tpu("daemon run", &[]);
        let mut waiting: Vec<Running> = (0..size).map(|_| self.one()).collect();
        // One of those who wait, one of the programs, and the daemon, each at some moment of the batch.
        let done = self.lines("done");
        wait_until("some have ended", || self.lines("done") > done + self.below(size / 4 + 1));
        waiting.remove(self.below(waiting.len())).kill();
        monitor.kill();
        wait_until("a program is killed, or all have ended", || {
            self.kill_a_program() || self.lines("done") + 2 >= done + size
        });
        let monitor = self.lab.env.start_tpu("daemon run", &[]);
        for one in waiting {
            assert_eq!(one.wait(), 0, "who waits begins");
        }
        wait_at_most(PATIENCE, "the end of every job", || {
            let jobs = self.lab.env.jobs("alice");
            let is_over = |status: &str| ["finished", "error", "killed"].contains(&status);
            jobs.iter().all(|job| is_over(job["status"].as_str().unwrap())).then_some(())
        });
        monitor.kill();
        let wrong = std::fs::read_to_string(self.claims.join("wrong")).unwrap_or_default();
        assert!(wrong.is_empty(), "{wrong}");
        let jobs = self.lab.env.jobs("alice");
        let failed: Vec<_> =
            jobs[before..].iter().filter(|job| job["status"] != "finished").collect();
        // One program was killed; one who waited may have begun just before he was.
        assert!(failed.len() <= 2, "{failed:?}");
        assert!(jobs.len() - before + 1 >= size, "{} of {size} have begun", jobs.len() - before);
        jobs.len() - before
    }
}

#[test]
fn no_gpu_is_given_twice_and_nobody_is_forgotten() {
    let seed = OsRandom.hex(8);
    let seed = u64::from_str_radix(&seed, 16).unwrap();
    let asked = asked_for();
    let (size, machines) = if asked.is_some() { (2 * SHARE.0 + 8, 2 * SHARE.1) } else { SHARE };
    let Some(proof) = Proof::new(machines, seed) else { return };
    write_file(&proof.lab.env.path("claims.sh"), CLAIMS);
    println!("seed {seed}");
    let mut started = 0;
    let mut batches = 0;
    while started < asked.unwrap_or(1) {
        started += proof.batch(size);
        batches += 1;
        drop(proof.lab.env.tpu("clean -y").exits(0));
    }
    println!(
        "{started} starts in {batches} batches on {machines} machines: none twice, none forgotten"
    );
}
