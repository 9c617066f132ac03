//! `repeat:`: a command begins again where it runs, as often as it ends so, as one run of its job: a kill and a limit end
//! that, and what contradicts it is refused.

use std::path::Path;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::setup::lab;

/// Counts its runs, and fails until there were three.
const THIRD: &str = "echo r >>\"$HOME/runs\"; [ $(wc -l <\"$HOME/runs\") -ge 3 ] || { echo 'Traceback (most \
    recent call last):'; echo 'ValueError: x'; exit 4; }; echo well";

fn runs(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn it_begins_again_until_it_ends_well_and_that_is_one_run() {
    let env = TestEnv::alice();
    env.run_file(&format!(
            "target: local\nrepeat: {{when: on-failure, pause: 1s}}\noutput: ~/o.txt\ncommand: |\n  {THIRD}\n"
        ),
    );
    env.wait_status(1, "finished");
    assert_eq!((runs(&env.path("runs")), env.jobs("alice").len()), (3, 1));
    let said = env.plain_log(1);
    let again = "tpu: alice/1 \u{b7} ended with exit code 4, and begins again in 1 s (repeat: on-failure)\n";
    assert_eq!(said.matches(again).count(), 2, "{said}");
    assert!(std::fs::read_to_string(env.path("o.txt")).unwrap().ends_with("well\n"));
}

#[test]
fn a_kill_ends_it_also_between_two_runs() {
    let env = TestEnv::alice();
    let text = "target: local\nrepeat: always\ncommand: echo r >>\"$HOME/runs\"\n";
    env.run_file(text);
    wait_until("it waits for the next run", || env.plain_log(1).contains("begins again in 60 s"));
    assert_eq!(env.job("alice", 1)["status"], "running");
    drop(env.tpu("kill 1 -y").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    assert_eq!(runs(&env.path("runs")), 1);
    env.run_file(
        "target: local\nrepeat: {when: always, pause: 1s}\ncommand: |\n  trap 'exit 0' INT TERM\n  \
         echo s >>\"$HOME/begun\"; echo $$ > \"$HOME/pid\"; until [ -e \"$HOME/nothing\" ]; do sleep 0.4; done\n",
    );
    drop(env.wait_pid("pid"));
    drop(env.tpu("kill 2 -y").exits(0));
    assert_eq!(
        runs(&env.path("begun")),
        1,
        "what ends well when it is told to does not begin again"
    );
}

#[test]
fn its_time_holds_for_all_of_its_runs() {
    let env = TestEnv::alice();
    env.run_file(
        "target: local\ntimeout: 2s\nrepeat: {when: always, pause: 1s}\ncommand: 'true'\n",
    );
    let ended = env.wait_status(1, "error");
    assert_eq!(ended["error"], "timeout", "{ended}");
}

#[test]
fn each_worker_begins_again_by_itself() {
    let Some(lab) = lab(2) else { return };
    let job =
        format!("target: pod\nrepeat: {{when: on-failure, pause: 1s}}\ncommand: |\n  {THIRD}\n");
    lab.env.run_file(&job);
    lab.env.wait_status(1, "finished");
    for worker in 0..2 {
        assert_eq!(runs(&lab.hosts.home(worker).join("runs")), 3);
    }
}

#[test]
fn what_contradicts_it_is_refused_with_its_place() {
    let env = TestEnv::alice();
    for (text, says) in [
        ("repeat: sometimes\n", ":3:9: repeat: 'sometimes' is unknown"),
        ("repeat: {pause: 5s}\n", ":3:9: repeat: when: is missing"),
        (
            "repeat: {when: always, pause: 2d}\n",
            ":3:31: repeat.pause: no pause is longer than a day",
        ),
        ("repeat: always\nretry: {max: 2, on: [oom]}\n", ":4:22: retry.on: repeat: says already"),
        ("repeat: always\nrules: {grpc: rerun}\n", ":4:9: rules.grpc: repeat: says already"),
        ("repeat: always\nidle_timeout: 30s\n", ":4:15: idle_timeout: repeat: prints nothing"),
    ] {
        write_file(&env.path("job.yaml"), &format!("target: local\ncommand: x\n{text}"));
        drop(env.tpu("submit job.yaml").exits(2).says(&[says]));
    }
    // What takes its machine away is another matter.
    let text = "target: local\ncommand: x\nrepeat: always\nretry: 2\nrules: {preempted: resume, grpc: pass}\n";
    write_file(&env.path("job.yaml"), text);
    drop(
        env.tpu("submit job.yaml --dry-run")
            .exits(0)
            .says(&["repeats", "always, 60 s after its end"]),
    );
    write_file(
        &env.path("job.yaml"),
        "target: local\nrepeat: always\nsetup: [{name: a, run: x}]\n",
    );
    drop(env.tpu("submit job.yaml").exits(2).says(&["there is no command: that could end"]));
}
