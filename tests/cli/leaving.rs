//! Leaving: `uninstall` lists what tpu has put outside its data and removes exactly that, `export` takes everything along.

use std::path::Path;

use serde_json::{Value, json};
use tpu_system::store::Paths;
use tpu_system::sys::env::Env;
use tpu_system::sys::procs;

use crate::common::env::{TestEnv, lives};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Every file below a directory with its bytes.
fn all(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                waiting.push(entry.path());
            } else {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                found.push((entry.path().display().to_string(), bytes));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_installed_on_this_machine_is_listed_first_and_removed_with_a_yes() {
    let mut env = TestEnv::alice();
    let table = env.own_crontab();
    drop(env.tpu("daemon install -y").exits(0));
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
    drop(env.tpu("token create phone --role viewer --user alice").exits(0));
    let tokens = Paths::new(env.data_path()).tokens(Env::read().uid);
    let copy_of_tokens = std::fs::read_to_string(&tokens).unwrap();
    let fish = env.path("config/fish/completions/tpu.fish");
    let zsh = env.path("share/zsh/site-functions/_tpu");
    for dir in [&fish, &zsh] {
        std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
    }
    write_file(&fish, &env.tpu("completions fish").exits(0).stdout);
    write_file(&zsh, "# mine, for another tpu\n");
    write_file(&env.path("config/fish/config.fish"), "set -x A b\ntpu completions fish | source\n");
    let script = "echo $$ >\"$HOME/pid\"; until [ -e \"$HOME/end\" ]; do read -r -t 0.1 <> <(:); done; exit 7";
    assert_eq!(env.start(script, &[""; 0]), 1);
    let job = env.wait_pid("pid");
    env.wait_status(1, "running");

    let listed =
        ["crontab", "daemon", "1 token", "tpu.fish", "alice/1 may be at work", "_tpu is not what"];
    let before = (std::fs::read(&table).unwrap(), all(&env.path("config")));
    drop(env.tpu("uninstall --dry-run").exits(0).says(&["Would remove:"]).says(&listed));
    let asked = env.tpu("uninstall").exits(2);
    drop(asked.says(&["This is to be removed:", "nobody can be asked: Remove it?"]).says(&listed));
    assert_eq!((std::fs::read(&table).unwrap(), all(&env.path("config"))), before);
    drop(env.tpu("daemon status").exits(0));

    let done = env.tpu("uninstall -y").exits(0);
    drop(done.says(&["Removed:", "Stays:", "line 2 of", "your data:"]));
    drop(env.tpu("daemon status").exits(1));
    assert_eq!(std::fs::read_to_string(&table).unwrap(), "# mine\n0 5 * * * true\n");
    assert!(!fish.exists());
    assert_eq!(std::fs::read_to_string(&zsh).unwrap(), "# mine, for another tpu\n");
    assert!(!tokens.exists());
    write_file(&tokens, &copy_of_tokens);
    drop(env.tpu("token list").exits(0).says(&["there are none"]));
    assert!(lives(&job), "a job that runs goes on");
    env.touch("end");
    let ended = env.wait_status(1, "error");
    assert_eq!(ended["extra_msgs"]["launch"]["exit"], 7, "and keeps its exit code");
    drop(env.tpu("logs 1").exits(0));

    // Again there is nothing to do.
    drop(env.tpu("uninstall -y").exits(0).says(&["There is nothing to remove outside the data."]));
    let document = env.tpu("uninstall --json").exits(0).json();
    assert_eq!(document["removed"], serde_json::json!([]));
    assert_eq!(document["listed_only"], true);
}

#[test]
fn what_other_users_need_stays_until_their_jobs_are_over() {
    let mut env = TestEnv::alice();
    let table = env.own_crontab();
    drop(env.tpu("daemon install -y").exits(0));
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
    for of in ["phone --role viewer", "both --role operator --user alice,bob"] {
        drop(env.tpu(&format!("token create {of}")).exits(0));
    }
    drop(env.tpu("token create mine --role operator --user alice").exits(0));
    let window = env.start_for("bob", "exec sleep 1000", &[""; 0]);
    let installed = std::fs::read_to_string(&table).unwrap();

    let needed = format!("since bob/{window}, a job of somebody else, may be at work");
    let stays = [
        "the daemon (process",
        "the crontab: @reboot",
        needed.as_str(),
        "2 tokens not of this user alone: phone, both",
        "Removed:",
        "1 token",
    ];
    drop(env.tpu("uninstall -y").exits(0).says(&stays));
    assert_eq!(std::fs::read_to_string(&table).unwrap(), installed);
    drop(env.tpu("daemon status").exits(0));
    let left = env.tpu("token list").exits(0).says(&["phone", "both"]).to_string();
    assert!(!left.contains("mine"), "{left}");

    drop(env.tpu(&format!("kill {window} bob -y")).exits(0));
    drop(env.tpu("uninstall -y").exits(0).says(&["Removed:", "the daemon"]));
    drop(env.tpu("daemon status").exits(1));
    assert_eq!(std::fs::read_to_string(&table).unwrap(), "# mine\n0 5 * * * true\n");
}

#[test]
fn a_line_that_starts_the_daemon_of_another_data_file_stays() {
    let mut env = TestEnv::alice();
    let table = env.own_crontab();
    let line = "@reboot env tpu --data /elsewhere/data.json daemon start # tpu-daemon\n";
    write_file(&table, line);
    let stays = ["nothing to remove", "the crontab", "another data file than"];
    drop(env.tpu("uninstall -y").exits(0).says(&stays));
    assert_eq!(std::fs::read_to_string(&table).unwrap(), line);
}

#[test]
fn a_server_counts_only_by_a_note_about_itself() {
    let mut env = TestEnv::alice();
    drop(env.own_crontab());
    let stands_in = env.start_program("sleep", "1000", &[]);
    let (pid, here) = (stands_in.pid(), Env::read());
    let own = procs::start_time(here.pid).unwrap();
    let mut note = json!({
        "owner": format!("{}:{}:{}:{own}", here.hostname, here.boot_id, here.pid), "pid": pid,
        "since": "2026-01-01T00:00:00Z", "address": "http://127.0.0.1:1", "version": "0.2.0",
    });
    let file = Paths::new(env.data_path()).server_note(pid);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    write_file(&file, &note.to_string());
    drop(env.tpu("uninstall -y").exits(0).says(&["nothing to remove"]));
    assert!(lives(&stands_in.process()));

    let start = procs::start_time(pid).unwrap();
    note["owner"] = json!(format!("{}:{}:{pid}:{start}", here.hostname, here.boot_id));
    write_file(&file, &note.to_string());
    drop(env.tpu("uninstall --dry-run").exits(0).says(&["the server on http://127.0.0.1:1"]));
}

#[test]
fn without_a_data_file_it_is_refused_nothing_and_finds_nothing() {
    let mut env = TestEnv::new();
    let table = env.own_crontab();
    std::fs::remove_file(env.data_path()).unwrap();
    drop(env.tpu("uninstall --dry-run").exits(0).says(&["nothing to remove"]));
    assert!(!env.path("tpu-state").exists(), "to look makes nothing");
    assert_eq!(std::fs::read_to_string(&table).unwrap(), "# mine\n0 5 * * * true\n");
}

/// The rows of a table of CSV, each with its columns by name.
fn rows(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn an_export_has_every_attempt_with_its_arguments_curve_events_log_code_and_job_file() {
    let env = TestEnv::alice();
    env.code("alice", "train.py", "print('code')\n");
    let print =
        "for i in 1 2 3; do echo \"step $i/3 loss 0.$i\"; done; echo \"a,\\\"b\\\"\"; exit 3";
    let words =
        ["run", "local", "alice", "lr=0.1", "-q", "--name", "first", "--", "bash", "-c", print];
    drop(env.tpu_words(&words).exits(0));
    env.wait_status(1, "error");
    drop(env.tpu("rerun 1").exits(0));
    env.wait_status(2, "error");
    drop(env.tpu("clean").exits(0));
    assert_eq!(env.start("exec sleep 1000", &[""; 0]), 3);
    env.wait_status(3, "running");
    drop(env.tpu("data set wandb_api_key a-secret-key").exits(0));
    let before = env.data_bytes();

    drop(env.tpu("export out --dry-run").exits(0).says(&["write 3 attempts into"]));
    assert!(!env.path("out").exists());
    let done = env.tpu("export out --json").exits(0).json();
    assert_eq!(done["rows"]["attempts"], 3, "{done:#}");
    assert_eq!(env.data_bytes(), before, "nothing is changed by it");

    let attempts = rows(&env.path("out/attempts.csv"));
    let numbers: Vec<&str> = attempts.iter().map(|row| row["job"].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3"]);
    assert_eq!((attempts[0]["exit"].as_str(), attempts[0]["continued_by"].as_str()), ("3", "2"));
    assert!(!attempts[0]["archived"].is_empty() && attempts[2]["archived"].is_empty());
    let jobs = rows(&env.path("out/jobs.csv"));
    assert_eq!(jobs.len(), 2, "a restart is the same job");
    assert_eq!((jobs[0]["name"].as_str(), jobs[0]["attempts"].as_str()), ("first", "2"));
    let arguments = rows(&env.path("out/arguments.csv"));
    assert!(arguments.iter().any(|row| row["job"] == "1" && row["value"] == "0.1"));
    let curve = rows(&env.path("out/curves.csv"));
    let losses: Vec<&str> =
        curve.iter().filter(|row| row["job"] == "1").map(|row| row["value"].as_str()).collect();
    assert_eq!(losses, ["0.1", "0.2", "0.3"]);
    let events: Value =
        serde_json::from_slice(&std::fs::read(env.path("out/events.json")).unwrap()).unwrap();
    assert!(events.as_array().unwrap().iter().any(|event| event["job"] == 1), "{events}");
    let records: Value =
        serde_json::from_slice(&std::fs::read(env.path("out/attempts.json")).unwrap()).unwrap();
    assert_eq!(records[0]["record"]["windows_id"], 1);

    for attempt in &attempts[..2] {
        let files = env.path("out").join(&attempt["files"]);
        let log = std::fs::read_to_string(files.join("output.log")).unwrap();
        assert!(log.contains("step 3/3 loss 0.3") && log.contains("a,\"b\""), "{log}");
        let job = std::fs::read_to_string(files.join("job.yaml")).unwrap();
        assert!(job.contains("first"), "{job}");
        let code = env.path("out").join(&attempt["code"]).join("train.py");
        assert_eq!(std::fs::read_to_string(code).unwrap(), "print('code')\n");
    }
    for (path, bytes) in all(&env.path("out")) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("a-secret-key"), "{path}");
    }
    drop(env.tpu("kill 3").exits(0));
}

#[test]
fn a_copy_that_cannot_be_exported_whole_is_named_and_the_rest_is_written() {
    let env = TestEnv::alice();
    env.code("alice", "pkg/part.py", "print('part')\n");
    for window in 1..=2 {
        env.code("alice", "train.py", &format!("print('code {window}')\n"));
        drop(env.tpu("run local alice -q -- true").exits(0));
        env.wait_status(window, "finished");
    }
    let copy = |window| env.path("").join(env.job("alice", window)["stage_dir"].as_str().unwrap());
    // A program has moved a directory elsewhere, and left a link there.
    std::fs::rename(copy(1).join("pkg"), env.path("pkg")).unwrap();
    std::os::unix::fs::symlink(env.path("pkg"), copy(1).join("pkg")).unwrap();
    write_file(&env.path("private.txt"), "private\n");
    let list = copy(2).join(".tpu-copied");
    let outside = env.path("private.txt");
    let listed = std::fs::read_to_string(&list).unwrap();
    write_file(&list, &format!("{listed}f 8 1.0 {}\0\0", outside.display()));

    let done = env.tpu("export out").exits(0);
    drop(done.says(&["not exported:", "a link stands in", "private.txt", "outside the copy"]));
    let names: Vec<String> = all(&env.path("out/code")).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().any(|name| name.ends_with("pkg/part.py")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains(".partial")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("private")), "{names:?}");
    assert_eq!(std::fs::read_to_string(env.path("pkg/part.py")).unwrap(), "print('part')\n");
    let attempts = rows(&env.path("out/attempts.csv"));
    assert!(attempts[0]["code"].is_empty() && !attempts[1]["code"].is_empty());
    drop(env.tpu("export out").exits(4).says(&["is not empty", "remove the directory first"]));
}

#[test]
fn an_export_writes_into_no_directory_that_holds_something() {
    let env = TestEnv::alice();
    std::fs::create_dir(env.path("out")).unwrap();
    write_file(&env.path("out/thesis.tex"), "three years of work\n");
    for line in ["export out", "export out --dry-run"] {
        drop(env.tpu(line).exits(4).says(&["is not empty"]));
    }
    assert_eq!(all(&env.path("out")).len(), 1);
    std::fs::create_dir(env.path("new")).unwrap();
    drop(env.tpu("export new").exits(0).says(&["attempts: 0"]));
}
