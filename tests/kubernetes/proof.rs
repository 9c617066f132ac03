//! SIGKILL of commands and of the daemon at random moments around the creation and the deletion of Jobs: of one launch
//! there are never two Jobs, no Job is without its record, none that was to go stays, and no record is left that nobody
//! settles. And pods deleted at random moments while the daemon keeps what they print. `./x prove kubernetes` asks for
//! many.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _, SeededRandom};

use super::lab::Lab;
use super::wire::{Wire, WireIs};
use crate::common::env::Running;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_at_most, wait_until};

/// Accidents in a test run.
const SHARE: usize = 6;

/// So long the server is away in a test run.
const AWAY: Duration = Duration::from_secs(4);

/// Nobody waits longer for all records to be settled.
const SETTLED: Duration = Duration::from_secs(120);

/// After so many, all records are settled and compared with the cluster.
const COMPARED: usize = 20;

/// On so many nodes there is room for what is at work by then.
const NODES: usize = 8;

/// As many as `./x prove kubernetes` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn token_of(job: &Value) -> String {
    job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned()
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Run,
    Resume,
    Kill,
    /// While it begins what waits in the queue.
    Monitor,
}

const VICTIMS: [Victim; 4] = [Victim::Run, Victim::Resume, Victim::Kill, Victim::Monitor];

/// A lab, and how long its commands take when nothing befalls them.
struct Proof {
    lab: Lab,
    clock: SystemClock,
    draw: SeededRandom,
    whole: BTreeMap<Victim, Duration>,
}

impl Proof {
    fn new(seed: u64) -> Self {
        let lab = Lab::of(NODES);
        let (clock, draw) = (SystemClock::new(), SeededRandom::new(seed));
        let mut proof = Self { lab, clock, draw, whole: BTreeMap::new() };
        for victim in VICTIMS {
            let line = proof.prepare(victim);
            let monitor = (victim == Victim::Monitor).then(|| proof.daemon_that_begins());
            let begun = proof.clock.monotonic();
            if let Some(monitor) = monitor {
                wait_until("the daemon has begun what waited", || proof.is_begun());
                monitor.kill();
            } else {
                drop(proof.lab.tpu(&line).exits(0));
            }
            let took = proof.clock.monotonic().saturating_sub(begun);
            proof.whole.insert(victim, took);
        }
        proof
    }

    fn newest(&self) -> u64 {
        self.lab.env.jobs("alice").last().unwrap()["windows_id"].as_u64().unwrap()
    }

    /// Whether nothing waits, and the newest is known to be at its cluster.
    fn is_begun(&self) -> bool {
        let data = self.lab.env.data();
        let waiting = data["queue"]["entries"].as_array().map_or(0, Vec::len);
        let jobs = self.lab.env.jobs("alice");
        let newest = jobs.last().unwrap();
        waiting == 0 && newest["extra_msgs"]["launch"]["confirmed"] == true
    }

    /// The daemon, which has just been allowed to begin what waits.
    fn daemon_that_begins(&self) -> Running {
        let monitor = self.lab.daemon(&[]);
        drop(self.lab.tpu("queue resume default").exits(0));
        monitor
    }

    /// Makes what a victim needs; the command that it is.
    fn prepare(&self, victim: Victim) -> String {
        const RUN: &str = "run lab alice rule=pass -q -- ";
        let started = |command: &str| {
            wait_until("a run comes through", || {
                self.lab.tpu(&format!("{RUN}{command}")).code == 0
            });
            self.newest()
        };
        match victim {
            Victim::Run => format!("{RUN}sleep 1000"),
            Victim::Resume => {
                let window = started("false");
                wait_until("it has failed", || self.lab.shown(window)["exit_code"] == 1);
                format!("rerun {window} --yes")
            }
            Victim::Kill => format!("kill {} -y", started("sleep 1000")),
            Victim::Monitor => {
                // Who submits where nobody watches begins it.
                drop(self.lab.tpu("queue pause default").exits(0));
                drop(self.lab.tpu("submit lab alice rule=pass -- sleep 1000").exits(0));
                "daemon run".to_owned()
            }
        }
    }

    /// A victim is killed between its first step and a little after its last one.
    fn strike(&self, victim: Victim) {
        let line = self.prepare(victim);
        let part = u32::try_from(self.draw.below(1_200)).unwrap();
        let running = match victim {
            Victim::Monitor => self.daemon_that_begins(),
            Victim::Run | Victim::Resume | Victim::Kill => self.lab.env.start_tpu(&line, &[]),
        };
        self.clock.sleep(self.whole[&victim] * part / 1_000);
        running.kill();
    }

    /// The Jobs of launches, by their tokens.
    fn jobs(&self) -> BTreeMap<String, Vec<Value>> {
        let path = "/apis/batch/v1/namespaces/lab/jobs?labelSelector=tpu.launch,!tpu.given-up";
        let mut jobs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for job in self.lab.cluster.get(path)["items"].as_array().unwrap() {
            let token = job["metadata"]["labels"]["tpu.launch"].as_str().unwrap().to_owned();
            jobs.entry(token).or_default().push(job.clone());
        }
        jobs
    }

    /// What must hold at every moment: a Job belongs to one record, and a record has one Job at most.
    #[track_caller]
    fn holds(&self, round: usize) {
        // The cluster first: a record is written before its Job.
        let jobs = self.jobs();
        let records = self.lab.env.jobs("alice");
        for (token, jobs) in &jobs {
            let is_known = records.iter().any(|record| token_of(record) == *token);
            assert!(is_known, "round {round}: nobody's: {jobs:#?}");
            assert_eq!(jobs.len(), 1, "round {round}: one launch is there twice: {jobs:#?}");
        }
        for record in &records {
            let is_its_child = |job: &&Value| job["extra_msgs"]["father"] == record["windows_id"];
            let children = records.iter().filter(is_its_child).count();
            assert!(children <= 1, "round {round}: brought back {children} times: {record:#}");
        }
    }

    /// Lets every record be settled: it has its Job, or none, for certain; what was killed has none.
    #[track_caller]
    fn settle(&self, round: usize) {
        self.lab.env.a_minute_later("alice");
        wait_at_most(SETTLED, &format!("round {round}: all is settled"), || {
            drop(self.lab.tpu("clear-finished bob"));
            for job in self.lab.env.jobs("alice") {
                if job["extra_msgs"]["intent"]["action"] == "killing" {
                    drop(self.lab.tpu(&format!("kill {} -y", job["windows_id"])));
                }
            }
            let is_settled = |job: &Value| {
                let is_sure =
                    job["extra_msgs"]["launch"]["confirmed"] == true || job["error"] == "launch";
                is_sure && job["extra_msgs"]["intent"].is_null()
            };
            self.lab.env.jobs("alice").iter().all(is_settled).then_some(())
        });
        self.holds(round);
        let jobs = self.jobs();
        for record in self.lab.env.jobs("alice") {
            let is_there = jobs.contains_key(&token_of(&record));
            let is_gone = record["error"] == "launch" || record["status"] == "killed";
            // Of one that has failed the Job goes when it is begun anew, whoever lives to see that.
            if !is_gone && record["error"] != Value::Null {
                continue;
            }
            assert_eq!(is_there, !is_gone, "round {round}: {record:#}");
        }
        let of_launches = "/api/v1/namespaces/lab/configmaps?labelSelector=tpu.launch";
        let left = self.lab.cluster.get(of_launches)["items"].as_array().unwrap().len();
        assert!(left <= jobs.len(), "round {round}: {left} archives for {} Jobs", jobs.len());
    }

    /// Takes away what is at work, so that the cluster keeps its room.
    fn clear(&self) {
        // Whether one of them begins yet may not be known at once; and there may be none.
        wait_at_most(SETTLED, "all is stopped", || {
            matches!(self.lab.tpu("kill alice --all -y").code, 0 | 3).then_some(())
        });
        drop(self.lab.tpu("clean alice -y --force").exits(0));
        // What has failed stays in the cluster as long as that keeps it: its controller would take it away by now.
        for job in self.jobs().values().flatten() {
            let path = format!(
                "/apis/batch/v1/namespaces/lab/jobs/{}",
                job["metadata"]["name"].as_str().unwrap()
            );
            let body = json!({"propagationPolicy": "Background"});
            assert_eq!(self.lab.cluster.ask("DELETE", &path, Some(&body)).status, 200);
        }
    }
}

#[test]
fn a_launch_is_created_once_and_none_is_forgotten_whoever_dies() {
    let seed = OsRandom.below(u64::MAX);
    let proof = Proof::new(seed);
    let rounds = asked_for("TPU_PROVE_KUBERNETES").unwrap_or(SHARE);
    let mut counts = BTreeMap::new();
    for round in 0..rounds {
        let pick = usize::try_from(proof.draw.below(VICTIMS.len() as u64)).unwrap();
        let victim = VICTIMS[pick];
        proof.strike(victim);
        *counts.entry(victim).or_insert(0) += 1;
        proof.holds(round);
        if round % COMPARED == COMPARED - 1 {
            proof.settle(round);
            proof.clear();
        }
    }
    proof.settle(rounds);
    // What was given up as never begun does not turn up later either.
    proof.settle(rounds);
    let took = proof.clock.monotonic().as_secs();
    eprintln!("seed {seed}: {rounds} accidents {counts:?}, {took} s, at first {:?}", proof.whole);
}

#[test]
fn what_a_pod_has_printed_is_here_whenever_it_is_deleted() {
    let moments = asked_for("TPU_PROVE_KUBERNETES_LOGS").unwrap_or(SHARE);
    let seed = OsRandom.below(u64::MAX);
    let (lab, clock, draw) = (Lab::new(), SystemClock::new(), SeededRandom::new(seed));
    let _monitor = lab.daemon(&[]);
    let mut lines_in_all = 0;
    for moment in 0..moments {
        let truth = lab.env.path(&format!("{moment}.truth"));
        let script = format!(
            "n=0; while :; do n=$((n+1)); echo \"$n of many\" >>'{0}'; echo \"$n of many\"; sleep 0.002; done",
            truth.display()
        );
        let window = lab.run(&script, "");
        let token = token_of(&lab.env.job("alice", window));
        let kept = lab.env.path(&format!("tpu-state/kubernetes/{token}/output.log"));
        let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
        wait_until("the daemon keeps it", || read(&kept).lines().count() > 5);
        // One look may have fetched those: more of them come by the stream that it has begun.
        let looked = read(&kept).lines().count();
        wait_until("the daemon follows it", || read(&kept).lines().count() > looked + 300);
        clock.sleep(Duration::from_millis(draw.below(300)));
        let before = read(&truth);
        let path = format!("/apis/batch/v1/namespaces/lab/jobs/{}", lab.name(window));
        let body = json!({"propagationPolicy": "Background"});
        assert_eq!(lab.cluster.ask("DELETE", &path, Some(&body)).status, 200);
        // The last line may be on its way when its pod is told to end.
        let lines = before.lines().count().saturating_sub(1);
        wait_until("all of it is here", || read(&kept).lines().count() >= lines);
        wait_until("its pods are gone", || lab.cluster.pods(&lab.name(window)).is_empty());
        assert!(read(&truth).starts_with(&read(&kept)), "seed {seed}, moment {moment}");
        lines_in_all += lines;
    }
    let took = clock.monotonic().as_secs();
    eprintln!("seed {seed}: {moments} moments, {lines_in_all} lines, {took} s");
}

/// A lab whose programs reach the server by a wire.
fn by_wire() -> (Lab, Wire) {
    let mut lab = Lab::bare(2);
    let config = std::fs::read_to_string(lab.cluster.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
    let port = server.rsplit_once(':').unwrap().1;
    let wire = Wire::to(port.parse().unwrap());
    let by_wire = server.replace(port, &wire.port().to_string());
    config["clusters"][0]["cluster"]["server"] = by_wire.into();
    let file = lab.env.path("by-wire");
    write_file(&file, &config.to_string());
    lab.env.set("KUBECONFIG", file.as_os_str());
    // A target keeps the file that it was registered by.
    lab.register();
    (lab, wire)
}

/// A stream whose connection has died is known by its silence, which is waited for: a minute.
#[test]
fn a_log_whose_connection_has_died_is_followed_by_another() {
    if asked_for("TPU_PROVE_KUBERNETES").is_none() {
        eprintln!("skipped: it takes more than a minute; ./x prove kubernetes asks for it");
        return;
    }
    let (lab, wire) = by_wire();
    let _monitor = lab.daemon(&[]);
    let window = lab.train("a", "");
    lab.wait_starts("a", 1);
    let token = token_of(&lab.env.job("alice", window));
    let kept = lab.env.path(&format!("tpu-state/kubernetes/{token}/output.log"));
    let lines = || std::fs::read_to_string(&kept).unwrap_or_default().lines().count();
    wait_until("the daemon follows it", || lines() > 20);
    wire.loses_its_connections();
    let before = lines();
    wait_at_most(Duration::from_secs(120), "it is followed again", || {
        (lines() > before + 100).then_some(())
    });
    lab.end("a", "echo the last line; exit 0");
    lab.wait_shown(window, "finished");
    let text = lab.logs(window);
    assert!(text.ends_with("the last line\n"), "{text}");
    let steps = text.lines().filter(|line| line.starts_with("step ")).enumerate();
    for (at, line) in steps {
        assert!(line.starts_with(&format!("step {}/", at + 1)), "{line} is line {}", at + 1);
    }
}

#[test]
fn a_server_that_is_away_for_a_minute_costs_nothing_but_the_minute() {
    let away = asked_for("TPU_PROVE_KUBERNETES").map_or(AWAY, |_| Duration::from_secs(60));
    let (lab, wire) = by_wire();
    let clock = SystemClock::new();
    let _monitor = lab.daemon(&[]);
    for (round, is) in [WireIs::Cut, WireIs::Dead].into_iter().enumerate() {
        let name = |what: &str| format!("{what}{round}");
        let goes_on = lab.train(&name("on"), "");
        let ends = lab.train(&name("ends"), "");
        let fails = lab.train(&name("fails"), "rule=unknown:rerun");
        for what in ["on", "ends", "fails"] {
            lab.wait_starts(&name(what), 1);
        }
        lab.wait_shown(goes_on, "running");
        wire.becomes(is);
        let until = clock.monotonic() + away;
        lab.end(&name("ends"), "echo the last line; exit 0");
        lab.end(&name("fails"), "rm \"@/$0.end\"; exit 3".replace('@', lab.env.root()).as_str());
        let (mut looks, mut unknown, mut longest) = (0, 0, Duration::ZERO);
        while clock.monotonic() < until {
            let begun = clock.monotonic();
            let shown = lab.shown(goes_on);
            longest = longest.max(clock.monotonic().saturating_sub(begun));
            looks += 1;
            unknown += usize::from(!shown["unknown"].is_null());
            assert_eq!(shown["error"], Value::Null, "{is:?}: {shown}");
        }
        wire.becomes(WireIs::Whole);
        assert!(unknown > 0, "{is:?}: the server was not away");
        lab.wait_shown(ends, "finished");
        lab.wait_starts(&name("fails"), 2);
        wait_until("it is known again", || lab.shown(goes_on)["status"] == "running");
        assert_eq!(lab.starts(&name("on")).len(), 1, "{is:?}");
        assert_eq!(lab.starts(&name("ends")).len(), 1, "{is:?}");
        assert!(lab.logs(ends).ends_with("the last line\n"), "{is:?}");
        let child_of = |window: u64| {
            let jobs = lab.env.jobs("alice");
            jobs.iter().filter(|job| job["extra_msgs"]["father"] == window).count()
        };
        assert_eq!([child_of(goes_on), child_of(ends), child_of(fails)], [0, 0, 1], "{is:?}");
        eprintln!(
            "{is:?} for {away:?}: {looks} looks, {unknown} without an answer, the longest {longest:?}"
        );
    }
}

#[test]
fn a_reader_that_is_killed_doubles_nothing_and_loses_nothing() {
    let seed = OsRandom.below(u64::MAX);
    let (lab, clock, draw) = (Lab::new(), SystemClock::new(), SeededRandom::new(seed));
    let (truth, stop) = (lab.env.path("truth"), lab.env.path("stop"));
    let script = format!(
        "n=0; until [ -e '{1}' ]; do n=$((n+1)); echo \"$n of many\" >>'{0}'; echo \"$n of many\"; sleep 0.002; done",
        truth.display(),
        stop.display()
    );
    let window = lab.run(&script, "");
    wait_until("it prints", || !lab.printed(window).is_empty());
    for _ in 0..asked_for("TPU_PROVE_KUBERNETES_LOGS").unwrap_or(SHARE) {
        let reader = lab.env.start_tpu(&format!("logs {window}"), &[]);
        clock.sleep(Duration::from_millis(draw.below(60)));
        reader.kill();
    }
    write_file(&stop, "");
    drop(lab.tpu(&format!("wait {window} --timeout 60s")).exits(0));
    let truth = std::fs::read_to_string(truth).unwrap();
    assert_eq!(lab.logs(window), truth, "seed {seed}");
}
