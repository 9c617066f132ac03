//! A list that lies, and a controller that was set back to an older state, lose and double nothing: a job that a list has
//! not got is asked for by its number, and what works on is not gone.

use std::time::{Duration, SystemTime};

use super::cluster::Setup;
use super::lab::Lab;
use crate::common::env::Running;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A `squeue` that says, while there is a file `lies`, what is in the second part; else what Slurm says, of which it keeps
/// a copy for each question.
const SQUEUE: &str = "copy=\"ROOT/copy.$(printf %s \"$*\" | cksum | tr -d ' ')\"\n\
    if [ -e \"ROOT/lies\" ]; then LIE; exit 0; fi\n\
    /usr/bin/squeue \"$@\" >\"$copy.$$\" || { code=$?; rm \"$copy.$$\"; exit \"$code\"; }\n\
    cat \"$copy.$$\"; mv \"$copy.$$\" \"$copy\"\n";

/// Takes a lock before it trains, and says so where another one has it.
const ALONE: &str = "exec 9>\"@/$0.lock\"; flock -n 9 || echo \"$TPU_JOB\" >>\"@/twice\"; ";

impl Lab {
    pub(super) fn lying(lie: &str) -> Option<Self> {
        let mut lab = Self::new()?;
        let script = SQUEUE.replace("LIE", lie).replace("ROOT", lab.env.root());
        lab.replace("squeue", &script);
        Some(lab)
    }

    pub(super) fn begin_to_lie(&self) {
        write_file(&self.env.path("lies"), "");
    }

    pub(super) fn tell_the_truth(&self) {
        std::fs::remove_file(self.env.path("lies")).unwrap();
    }

    /// Whether a job that is missing has a successor by now; else it is missing for a minute more.
    fn is_lost_and_goes_on(&self, window: u64) -> bool {
        let has_successor = || self.env.jobs("alice").len() == 2;
        if !has_successor() {
            self.missing_for_a_minute(window);
            drop(self.tpu("ack").exits(0));
        }
        has_successor()
    }

    /// A program of which there must never be two at work.
    pub(super) fn train_alone(&self, name: &str, options: &str) -> u64 {
        let script = format!("{ALONE}{}", self.program()).replace('@', self.env.root());
        let words = format!("run gpu alice -q --json {options} --");
        let words = words.split_whitespace().chain(["bash", "-c", &script, name]);
        let words: Vec<&str> = words.collect();
        self.launched(&self.env.spawn(&words))
    }
}

fn a_lie_makes_nothing_of_what_works(lie: &str) {
    let Some(lab) = Lab::lying(lie) else { return };
    lab.begin_to_lie();
    let window = lab.train_alone("a", "rule=pre");
    let job = lab.wait_runs(window);
    lab.wait_starts("a", 1);
    let monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    lab.a_minute_later();
    lab.turn();
    let shown = lab.shown(window);
    assert_eq!((&shown["status"], &shown["unknown"]), (&"running".into(), &().into()), "{shown}");
    assert_eq!(lab.cluster.submissions(), [job.id]);
    drop(monitor);
    // What is killed is dead, and not only missing in the list.
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(job.id).state, "CANCELLED");
    assert!(!lab.env.path("twice").exists());
}

#[test]
fn an_empty_list_makes_nothing_of_what_works() {
    a_lie_makes_nothing_of_what_works(":");
}

#[test]
fn nor_does_an_old_one() {
    a_lie_makes_nothing_of_what_works("[ ! -e \"$copy\" ] || cat \"$copy\"");
}

/// A controller that was set back has forgotten a job, and ends it on its node.
#[test]
fn what_a_controller_has_forgotten_is_lost_after_a_while_and_comes_back_once() {
    let Some(mut lab) = Lab::new() else { return };
    // A controller that lists nothing at all may have lost everything: nobody would be told lost.
    lab.cluster.submit(&["--hold"], "true");
    lab.cluster.save_state();
    let window = lab.train_alone("a", "rule=pre");
    lab.wait_runs(window);
    lab.wait_starts("a", 1);
    lab.wait_checkpoint(window);
    lab.wait_shown(window, "running");
    let _monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    lab.cluster.restore_state();
    wait_until("nobody knows it any more", || lab.cluster.jobs_of(&lab.token(window)).is_empty());
    lab.turn();
    let shown = lab.shown(window);
    assert_eq!(shown["status"], "running", "{shown}");
    let why = shown["unknown"].as_str().unwrap_or_default();
    assert!(why.contains("counts as gone") || why.contains("works on"), "{shown}");
    assert_eq!(lab.env.jobs("alice").len(), 1, "nothing follows from a list alone");

    wait_until("it is lost, and goes on", || lab.is_lost_and_goes_on(window));
    let parent = lab.env.job("alice", window);
    assert_eq!(parent["error"], "lost", "{parent:#}");
    // Its last sign of life is 90 s old by now. Its number is given again, and its node does not take that while it has the
    // first: Slurm cancels the next one, which counts as lost as well, and another one follows.
    let alive = lab.log_dir(window).join("slurm-alive");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(600);
    std::fs::File::options().write(true).open(alive).unwrap().set_modified(long_ago).unwrap();
    wait_until("one of them begins", || {
        lab.all_missing_for_a_minute();
        drop(lab.tpu("ack").exits(0));
        lab.starts("a").len() > 1
    });
    assert_eq!(lab.starts("a").len(), 2);
    assert!(!lab.env.path("twice").exists());
    drop(lab.tpu("kill --all -y").exits(0));
}

impl Lab {
    /// Starts a program, and kills it on its node as a kernel does that lacks memory; what is done before that. Its window.
    fn train_and_lose(&mut self, before: impl FnOnce(&mut Self)) -> u64 {
        let pid_file = self.env.path("pid");
        let script = format!("echo $$ >{}; {}", pid_file.display(), self.program());
        let words = ["bash", "-c", &script, "a"];
        let window = self.launched(&self.starting("gpu", "rule=pre", &words));
        self.wait_runs(window);
        self.wait_starts("a", 1);
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        before(self);
        drop(self.cluster.run(&["kill", "-KILL", pid.trim()]));
        window
    }
}

/// A controller forgets in good order what has ended: that is another kill than that of one that was set back.
#[test]
fn what_was_killed_and_is_forgotten_since_is_no_loss() {
    let setup = Setup { min_job_age: 2, keeps_ended: false, ..Setup::default() };
    let Some(mut lab) = Lab::with(setup) else { return };
    let window = lab.train_and_lose(|_| {});
    wait_until("Slurm has forgotten it", || lab.cluster.jobs().is_empty());
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "killed-by-signal", "{shown}");
}

/// The node may kill a program before the script that waits for it, which writes that down then.
#[test]
fn what_its_node_kills_since_its_controller_has_forgotten_it_comes_back() {
    let Some(mut lab) = Lab::new() else { return };
    lab.cluster.submit(&["--hold"], "true");
    lab.cluster.save_state();
    let mut monitor = None;
    let window = lab.train_and_lose(|lab| {
        monitor = Some(lab.daemon(&[]));
        lab.env.wait_status(1, "running");
        lab.cluster.restore_state();
    });

    wait_until("it goes on", || lab.env.jobs("alice").len() == 2);
    let parent = lab.env.job("alice", window);
    assert_eq!(parent["error"], "lost", "{parent:#}");
    drop(lab.tpu("kill --all -y").exits(0));
}

/// Says while there is a file `lies` that there is no job of a number.
const SCONTROL: &str = "if [ -e \"ROOT/lies\" ] && [ \"$1 $2\" = 'show job' ]; then echo 'Job not found'; exit 1; fi\n\
    exec /usr/bin/scontrol \"$@\"";

/// A job that says nothing is called lost, since everybody says that it is not there; then they take it back.
fn lost_and_there_again(setup: Setup) -> Option<(Lab, u64, u32, Running)> {
    let has_room = setup.nodes > 1;
    let mut lab = Lab::with(setup)?;
    for (program, script) in [("squeue", SQUEUE.replace("LIE", ":")), ("scontrol", SCONTROL.into())]
    {
        lab.replace(program, &script.replace("ROOT", lab.env.root()));
    }
    let script = "until [ -e \"@/ends\" ]; do sleep 0.3; done".replace('@', lab.env.root());
    let window = lab.run(&script, "rule=pre");
    let id = lab.wait_runs(window).id;
    lab.wait_shown(window, "running");
    let monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    lab.begin_to_lie();
    wait_until("it is lost, and goes on", || lab.is_lost_and_goes_on(window));
    wait_until("its successor is submitted", || lab.cluster.submissions().len() == 2);
    if has_room {
        lab.wait_runs(window + 1);
    }
    lab.tell_the_truth();
    Some((lab, window, id, monitor))
}

#[test]
fn what_returns_beside_a_successor_that_has_begun_is_stopped() {
    let Some((lab, window, id, _monitor)) = lost_and_there_again(Setup::default()) else { return };
    lab.cluster.wait_state(id, "CANCELLED");
    let told = |event: &tpu_system::store::Event| event.kind == "returned";
    wait_until("it is written down", || lab.env.journal().iter().any(told));
    assert_eq!(lab.env.job("alice", window)["status"], "resumed");
    lab.wait_runs(window + 1);
    drop(lab.tpu(&format!("kill {} -y", window + 1)).exits(0));
}

#[test]
fn a_successor_that_has_not_begun_gives_way_to_what_returns() {
    let setup = Setup { nodes: 1, processors: 1, ..Setup::default() };
    let Some((lab, window, id, _monitor)) = lost_and_there_again(setup) else { return };
    lab.env.wait_status(window, "running");
    lab.env.wait_status(window + 1, "killed");
    let (job, other) = (lab.env.job("alice", window), lab.env.job("alice", window + 1));
    assert!(job["extra_msgs"]["child"].is_null() && other["extra_msgs"]["father"].is_null());
    assert_eq!(lab.cluster.job(id).state, "RUNNING");
    assert_eq!(lab.listed(window + 1).state, "CANCELLED");
    write_file(&lab.env.path("ends"), "");
    lab.env.wait_status(window, "finished");
}
