//! `code: none`: the command runs in a directory that its machine has, and nothing is copied; so do its successors.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

use super::setup::lab;

fn file(env: &TestEnv, text: &str) -> String {
    let path = env.path("job.yaml");
    write_file(&path, text);
    path.display().to_string()
}

#[test]
fn it_runs_where_it_is_told_and_nothing_is_copied() {
    let env = TestEnv::alice();
    std::fs::create_dir_all(env.path("data/train")).unwrap();
    let whole = env.path("data/train").display().to_string();
    for (window, verb, dir) in [(1, "run", whole.as_str()), (2, "submit", "~/data/train/")] {
        let text =
            format!("target: local\ncode: none\ndir: {dir}\ncommand: pwd; touch was-{verb}\n");
        drop(env.tpu_words(&[verb, &file(&env, &text)]).exits(0));
        let job = env.wait_status(window, "finished");
        assert!(job["stage_dir"].is_null(), "{job}");
        assert!(env.log(window).contains(&format!("{whole}\n")), "{}", env.log(window));
        assert!(env.path(&format!("data/train/was-{verb}")).exists());
    }
    assert!(!env.path("stage").exists() && !env.path("state/stage").exists());
    // What goes on from it runs there as well, and so does what is written of it.
    drop(env.tpu("rerun 1 -f").exits(0));
    env.wait_status(3, "finished");
    assert!(env.log(3).contains(&format!("{whole}\n")), "{}", env.log(3));
    let said = env.tpu("script 3 --yaml").exits(0).stdout;
    assert!(said.contains(&format!("dir: {whole}\ncode: none\n")), "{said}");
    let would = env.tpu_words(&["run", &env.path("job.yaml").display().to_string(), "--dry-run"]);
    drop(would.exits(0).says(&["nothing is copied", "~/data/train"]));
}

#[test]
fn what_makes_no_sense_of_it_is_refused_with_its_place() {
    let env = TestEnv::alice();
    for (text, says) in [
        ("code: none\ncommand: x\n", ":2:1: code: dir: is missing"),
        ("code: none\ndir: 2\ncommand: x\n", ":3:6: dir: '2' is no directory of a machine"),
        ("dir: data\ncommand: x\n", ":2:6: dir: 'data' is no slot and no directory"),
        ("dir: 2\ncode: .\ncommand: x\n", ":3:1: code: dir: says already"),
        ("code: none\ndir: /data\n", "there is no command"),
    ] {
        let path = file(&env, &format!("target: local\n{text}"));
        for verb in ["run", "submit"] {
            drop(env.tpu_words(&[verb, &path]).exits(2).says(&[says]));
        }
    }
    let path = file(&env, "target: local\ncode: none\ndir: /no/such/place\ncommand: x\n");
    drop(env.tpu_words(&["run", &path]).exits(3).says(&["/no/such/place is not there"]));
}

#[test]
fn workers_run_it_in_a_directory_of_their_own_accounts() {
    let Some(lab) = lab(2) else { return };
    for worker in 0..2 {
        std::fs::create_dir_all(lab.hosts.home(worker).join("own")).unwrap();
    }
    let text = "target: pod\ncode: none\ndir: ~/own\ncommand: 'touch \"began $TPU_WORKER\"'\n";
    drop(lab.env.tpu_words(&["run", &file(&lab.env, text), "-q"]).exits(0));
    lab.env.wait_status(1, "finished");
    for worker in 0..2 {
        assert!(lab.hosts.home(worker).join(format!("own/began {worker}")).exists());
    }
}
