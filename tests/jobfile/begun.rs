//! `run FILE` starts what the file says, at once; the variables that it says reach the program, also the next attempt.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

fn lab(text: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    write_file(&env.path("job.yaml"), text);
    env
}

fn run(env: &TestEnv, flags: &str) -> crate::common::output::CommandOutput {
    let file = env.path("job.yaml");
    let mut words = vec!["run", file.to_str().unwrap(), "-q"];
    words.extend(flags.split_whitespace());
    env.tpu_words(&words)
}

#[test]
fn a_job_of_a_file_begins_at_once_with_its_variables_and_so_does_the_next_attempt() {
    let env = lab("name: train\ntarget: local\ntag: '{{series}}'\n\
        env:\n  PLAIN: 1e-3\n  ODD: \"it's\\n  $HOME \\\"x\\\"\"\n  EMPTY: ''\n  SERIES: '{{series}}'\n\
        command: printf '%s|%s|%s|%s' \"$PLAIN\" \"$ODD\" \"$EMPTY\" \"$SERIES\" >> \"$HOME/said\"; sleep 1000\n");
    let shown = run(&env, "--set series=first --dry-run").exits(0).stdout;
    assert!(shown.contains("printf"), "{shown}");
    drop(run(&env, "--set series=first").exits(0).says(&["alice/1"]));
    let expected = "1e-3|it's\n  $HOME \"x\"||first";
    let said = || std::fs::read_to_string(env.path("said")).unwrap_or_default();
    wait_until("it has begun", || said() == expected);
    let job = env.wait_status(1, "running");
    assert_eq!(job["job_tags"], "first");
    assert_eq!(job["extra_msgs"]["spec"]["name"], "train");
    drop(env.tpu("kill 1 -y").exits(0));
    drop(env.tpu("rerun 1 -f").exits(0));
    wait_until("the next one was given them, too", || said() == expected.repeat(2));
}

#[test]
fn what_would_wait_is_no_job_to_begin_at_once() {
    for (text, says) in [
        ("target: local\ncommand: a\n---\ntarget: local\ncommand: b\n", "has 2 jobs"),
        ("target: local\ncommand: a\npriority: 9\n", "how it waits in the queue"),
        ("target: local\ncommand: a {{lr}}\narray: {lr: [1, 2]}\n", "members of its array differ"),
    ] {
        let env = lab(text);
        let out = run(&env, "").exits(2).says(&[says, "tpu submit"]);
        drop(out);
        assert!(env.jobs("alice").is_empty(), "{text}");
    }
    let env = lab("target: local\ncommand: a\n");
    drop(run(&env, "--name b").exits(2).says(&["--name beside a file"]));
    drop(env.tpu("run local -q --set a=b -- true").exits(2).says(&["there is no file"]));
}

#[test]
fn names_that_are_ours_or_look_like_secrets_are_no_variables() {
    for (name, says) in [
        ("TPU_JOB", "tpu sets it for each job"),
        ("WANDB_API_KEY", "looks like a secret"),
        ("1A", "no name of a variable"),
        ("'A=B'", "no name of a variable"),
    ] {
        let env = lab(&format!("target: local\ncommand: a\nenv: {{B: 1, {name}: x}}\n"));
        let out = run(&env, "").exits(2);
        assert!(
            out.stderr.contains(":3:13: env.") && out.stderr.contains(says),
            "{}",
            out.report()
        );
    }
}

#[test]
fn a_command_reads_the_file_that_its_job_names() {
    let text = "target: local\nstdin: '~/a file'\ncommand: 'cat > \"$HOME/read\"; echo \"$#\" >> \"$HOME/read\"'\n";
    let env = lab(text);
    write_file(&env.path("a file"), "one $HOME\ntwo\n");
    drop(run(&env, "").exits(0));
    drop(env.wait_status(1, "finished"));
    assert_eq!(std::fs::read_to_string(env.path("read")).unwrap(), "one $HOME\ntwo\n0\n");
    write_file(&env.path("job.yaml"), "target: local\nstdin: nowhere\ncommand: [cat]\n");
    drop(run(&env, "").exits(0));
    assert_eq!(env.wait_status(2, "error")["error"], "file-error");
}

#[test]
fn the_first_worker_of_this_machine_is_this_machine_and_it_has_no_others() {
    let env = lab("target: local\nworkers: [0]\ncommand: touch \"$HOME/began\"\n");
    drop(run(&env, "").exits(0));
    env.wait_status(1, "finished");
    assert!(env.path("began").exists());
    for workers in ["[1]", "[0, 1]"] {
        let text = format!("target: local\nworkers: {workers}\ncommand: x\n");
        write_file(&env.path("job.yaml"), &text);
        drop(run(&env, "").exits(2).says(&["no others than worker 0"]));
    }
}
