//! `output: FILE`: what the command prints is added to a file where it runs, to the last word, and its log and its end are as
//! without it.

use std::path::Path;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

use super::setup::lab;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn it_is_added_to_the_file_and_stands_in_the_log_as_well() {
    let env = TestEnv::alice();
    let text = "target: local\noutput: ~/logs/o.txt\ncommand: 'echo first; echo second >&2; seq 2000; exit 7'\n";
    for window in 1..=2 {
        env.run_file(text);
        let ended = env.wait_status(window, "error");
        assert_eq!(ended["extra_msgs"]["launch"]["exit"], 7, "its code is the command's");
        assert!(
            env.plain_log(window).contains("first\nsecond\n1\n2\n"),
            "{}",
            env.plain_log(window)
        );
        assert!(env.plain_log(window).contains("\n2000\n"), "to the last word");
    }
    let kept = read(&env.path("logs/o.txt"));
    let lines: Vec<&str> = kept.lines().collect();
    assert_eq!(lines.len(), 2 * 2002, "added, and nothing of ours between");
    assert_eq!((lines[1], lines[2001], lines[2002]), ("second", "2000", "first"));
    // What is shown of it is the command.
    let script = env.tpu("script 2").exits(0).stdout;
    assert!(script.contains("echo second") && !script.contains("tee"), "{script}");
    env.run_file("target: local\noutput: /proc/nowhere/x\ncommand: touch \"$HOME/began\"\n");
    env.wait_status(3, "error");
    assert!(
        env.plain_log(3).contains("tpu: output: /proc/nowhere/x cannot be written"),
        "{}",
        env.plain_log(3)
    );
    assert!(!env.path("began").exists());
}

#[test]
fn what_is_killed_says_its_last_words_there() {
    let env = TestEnv::alice();
    env.run_file("target: local\noutput: ~/o.txt\nsetup: [{name: a, run: echo of the set-up}]\n\
         command: |\n  trap 'echo saved; exit 0' INT TERM\n  echo at work\n  echo $$ > \"$HOME/pid\"\n  \
         until [ -e \"$HOME/nothing\" ]; do sleep 0.4; done\n",
    );
    drop(env.wait_pid("pid"));
    drop(env.tpu("kill 1 -y").exits(0));
    assert_eq!(read(&env.path("o.txt")), "at work\nsaved\n");
    assert_eq!(env.job("alice", 1)["status"], "killed");
}

#[test]
fn a_wish_to_save_reaches_the_command_and_it_does_not_begin_again() {
    let env = TestEnv::alice();
    drop(env.tpu("set-settings checkpoint_signal USR1").exits(0));
    env.run_file(
        "target: local\noutput: ~/o.txt\nrepeat: {when: always, pause: 1s}\ncommand: |\n  \
         trap 'echo saved; exit 0' USR1\n  echo begun; echo $$ > \"$HOME/pid\"\n  \
         until [ -e \"$HOME/nothing\" ]; do sleep 0.4; done\n",
    );
    drop(env.wait_pid("pid"));
    drop(env.tpu("requeue 1 --hold -y").exits(0));
    assert_eq!(read(&env.path("o.txt")), "begun\nsaved\n");
}

#[test]
fn each_worker_has_a_file_of_its_own() {
    let Some(lab) = lab(2) else { return };
    lab.env.run_file("target: pod\noutput: ~/o.txt\ncommand: 'echo \"worker $TPU_WORKER\"'\n");
    lab.env.wait_status(1, "finished");
    for worker in 0..2 {
        let kept = read(&lab.hosts.home(worker).join("o.txt"));
        assert_eq!(kept, format!("worker {worker}\n"));
    }
    assert!(lab.env.plain_log(1).contains("[worker 1] worker 1\n"), "{}", lab.env.plain_log(1));
}

#[test]
fn a_path_without_a_beginning_is_meant_from_where_the_file_lies_and_not_from_the_copy() {
    let env = TestEnv::alice();
    env.code("alice", "configs/job.yaml", "target: local\noutput: out/o.txt\ncommand: echo kept\n");
    let file = env.path("code-alice/configs/job.yaml");
    let words = |verb: &str| env.tpu_words(&[verb, file.to_str().unwrap(), "--dry-run"]);
    let there = env.path("code-alice/configs/out/o.txt");
    let shown = words("submit").exits(0).stdout;
    assert!(shown.contains(&format!("also added to {}\n", there.display())), "{shown}");
    drop(env.tpu_words(&["submit", file.to_str().unwrap()]).exits(0));
    env.wait_status(1, "finished");
    assert_eq!(read(&there), "kept\n");
    // What ran can be submitted again from anywhere.
    let again = env.tpu("script 1 --yaml").exits(0).stdout;
    env.run_file(&again);
    env.wait_status(2, "finished");
    assert_eq!(read(&there), "kept\nkept\n");
}

#[test]
fn a_machine_without_that_directory_has_it_where_the_command_runs() {
    let env = TestEnv::alice();
    let there = env.path("elsewhere");
    std::fs::create_dir_all(&there).unwrap();
    write_file(
        &there.join("job.yaml"),
        "target: local\noutput: o.txt\nhold: true\ncommand: echo kept\n",
    );
    drop(env.tpu_words(&["submit", there.join("job.yaml").to_str().unwrap()]).exits(0));
    std::fs::remove_dir_all(&there).unwrap();
    drop(env.tpu("unhold 1").exits(0));
    let job = env.wait_status(1, "finished");
    let copy = Path::new(job["stage_dir"].as_str().or(job["staage_dir"].as_str()).unwrap());
    assert_eq!(read(&copy.join("o.txt")), "kept\n", "{}", copy.display());
    assert!(!there.exists());
}
