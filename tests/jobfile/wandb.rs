//! `setup: [wandb]`: a login by a key that is a secret, kept where wandb looks for it and written nowhere else.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

const KEY: &str = "0123456789abcdef-the-key";

const JOB: &str = "target: local\nsetup:\n  - wandb: {key: WANDB_API_KEY}\n\
    command: 'test \"$WANDB_API_KEY\" = \"$(cat \"$HOME/expected\")\"'\n";

fn logs(env: &TestEnv, window: u64) -> String {
    let dir = env.job("alice", window)["log_dir"].as_str().unwrap().to_owned();
    let all = std::fs::read_dir(&dir).unwrap().flatten();
    all.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect()
}

#[test]
fn the_login_is_made_once_and_again_when_the_key_is_another_one() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("WANDB_API_KEY", KEY);
    write_file(&env.path("expected"), KEY);
    let netrc = env.path(".netrc");
    let others = "machine github.com login me password other\n";
    write_file(
        &netrc,
        &format!("{others}machine api.wandb.ai\n  login user\n  password an-old-one\n"),
    );
    env.run_file(JOB);
    env.wait_status(1, "finished");
    let kept = std::fs::read_to_string(&netrc).unwrap();
    assert_eq!(kept, format!("{others}machine api.wandb.ai\n  login user\n  password {KEY}\n"));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&netrc).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(logs(&env, 1).contains("set-up: wandb: set up"), "{}", logs(&env, 1));
    assert!(!logs(&env, 1).contains(KEY), "the key is in no log");
    assert!(!String::from_utf8_lossy(&env.data_bytes()).contains(KEY), "and in no record");
    env.run_file(JOB);
    env.wait_status(2, "finished");
    assert!(logs(&env, 2).contains("set-up: wandb: is so already"), "{}", logs(&env, 2));
    assert_eq!(std::fs::read_to_string(&netrc).unwrap(), kept);
    env.set("WANDB_API_KEY", "another-one");
    write_file(&env.path("expected"), "another-one");
    env.run_file(JOB);
    env.wait_status(3, "finished");
    let kept = std::fs::read_to_string(&netrc).unwrap();
    assert!(kept.ends_with("  password another-one\n") && kept.starts_with(others), "{kept}");
}

#[test]
fn without_its_key_nothing_is_submitted_and_no_value_stands_beside_it() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    write_file(&env.path("job.yaml"), JOB);
    drop(env.tpu("submit job.yaml").exits(3).says(&["no secret WANDB_API_KEY is kept"]));
    write_file(
        &env.path("job.yaml"),
        "target: local\nenv: {NOTE: x}\nsetup: [{wandb: {key: NOTE}}]\ncommand: x\n",
    );
    drop(env.tpu("submit job.yaml").exits(2).says(&[":3:1: setup: wandb: NOTE: env: has a value"]));
}
