//! `setup: [recipe: NAME]`: what the steps of a lab's recipe take from here, files and a secret on their standard input, they
//! have in the set-up of a job as well.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

const RECIPES: &str = r#"
[[recipe]]
name = "login"

[[recipe.step]]
name = "token"
check = "grep -q key-of-alice ~/got && test -e ~/conf/lab"
setup = "read -r key; echo $key >~/got"
input = { file = "~/secret" }
files = [{ from = "~/lab.conf", to = "~/conf/lab", mode = "640" }]
"#;

#[test]
fn a_step_has_its_files_and_its_input_and_is_done_once() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    std::fs::create_dir_all(env.path("config/tpu")).unwrap();
    write_file(&env.path("config/tpu/recipes.toml"), RECIPES);
    write_file(&env.path("lab.conf"), "of the lab\n");
    write_file(
        &env.path("job.yaml"),
        "target: local\nsetup: [{recipe: login}]\ncommand: 'cat \"$HOME/got\" \"$HOME/conf/lab\"'\n",
    );
    drop(env.tpu("run job.yaml -q").exits(0));
    let job = env.wait_status(1, "error");
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(line.contains("login") && line.contains("its input is not there"), "{line}");

    write_file(&env.path("secret"), "key-of-alice\n");
    drop(env.tpu("run job.yaml -q").exits(0));
    env.wait_status(2, "finished");
    let dir = env.job("alice", 2)["log_dir"].as_str().unwrap().to_owned();
    let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).unwrap_or_default();
    let said = read("output.log").replace('\r', "");
    assert!(said.contains("key-of-alice\nof the lab\n"), "{said}");
    assert!(!read("login_worker_0.log").contains("key-of-alice"), "{}", read("login_worker_0.log"));
    // What is so already needs nothing from here.
    std::fs::remove_file(env.path("secret")).unwrap();
    drop(env.tpu("run job.yaml -q").exits(0));
    env.wait_status(3, "finished");
}
