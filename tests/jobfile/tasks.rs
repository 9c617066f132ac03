//! JobMan's `tasks.yaml`: each task runs as often as it should and never twice, on a TPU of its type and zone; what the
//! file says anew later is said, and done when somebody asks for it.

use serde_json::Value;

use crate::common::env::{Running, TestEnv};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::orders::lab;

/// A lab with a repository of one file, on two branches.
fn with_code() -> TestEnv {
    let env = lab();
    let repo = env.path("repo");
    std::fs::create_dir_all(&repo).unwrap();
    let git = |words: &[&str]| {
        let own = ["-C", repo.to_str().unwrap(), "-c", "user.name=a", "-c", "user.email=a@b"];
        let words: Vec<&str> = own.iter().chain(words).copied().collect();
        drop(env.output(&env.spawn_program("git", &words)).exits(0));
    };
    git(&["init", "-q", "-b", "main"]);
    for branch in ["main", "tuned"] {
        write_file(&repo.join("which.txt"), branch);
        git(&["add", "which.txt"]);
        git(&["commit", "-q", "-m", branch]);
        git(&["branch", "-f", if branch == "main" { "first" } else { "tuned" }]);
    }
    git(&["reset", "-q", "--hard", "first"]);
    env
}

fn write(env: &TestEnv, text: &str) {
    write_file(&env.path("tasks.yaml"), text);
}

fn submit(env: &TestEnv) -> String {
    let done = env.tpu("submit tasks.yaml").exits(0);
    done.stdout + &done.stderr
}

fn tasks(env: &TestEnv) -> Vec<Value> {
    let all = env.tpu("jobman queue tasks.yaml --json").exits(0).json();
    all["tasks"].as_array().cloned().unwrap_or_default()
}

fn task(env: &TestEnv, id: &str) -> Value {
    tasks(env).into_iter().find(|task| task["id"] == id).unwrap_or_default()
}

fn is(env: &TestEnv, id: &str, state: &str) {
    wait_until(&format!("{id} is {state}"), || task(env, id)["state"] == state);
}

/// What the tasks have written down, a line for each time that one ran.
fn ran(env: &TestEnv) -> Vec<String> {
    let text = std::fs::read_to_string(env.path("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn ran_as(env: &TestEnv, line: &str) -> usize {
    ran(env).iter().filter(|known| *known == line).count()
}

/// Two TPUs of two types that nobody has, and somebody who looks after what waits.
fn with_tpus(env: &TestEnv) -> Running {
    for (name, of, zone) in [("small", "v4-8", "zone-a"), ("large", "v6e-8", "zone-b")] {
        drop(env.tpu(&format!("register {name} --type {of} --zone {zone}")).exits(0));
        drop(env.tpu(&format!("apply {name}")).exits(0));
    }
    env.daemon(&[])
}

#[test]
fn the_tasks_of_a_file_run_once_each_and_in_their_order() {
    let env = with_code();
    write(
        &env,
        "repos:\n  train: repo\n  tuned: {url: repo, branch: tuned}\n\
         defaults:\n  repo: train\n  env: {WHO: all}\n  max_jobs: 1\n  max_retries: 3\n  zone: zone-a\n  workdir: w\n\
         accelerators:\n  v4-8:\n    overrides:\n      env: {FOR: small}\n      \
         prefix: [{name: ready, run: 'echo prefix >> \"$HOME/ran\"', required: true}]\n    tasks:\n    \
         - id: evaluate\n      depends_on: [data, 'train-1']\n      run: |\n        false\n        \
         echo \"evaluate $WHO $FOR $(cat which.txt)\" >> \"$HOME/ran\"\n    \
         - id: data\n      hide: true\n      run: echo \"data $WHO\" >> \"$HOME/ran\"\n  \
         v6e-8:\n    tasks:\n    - id: train-1\n      zone: zone-b\n      repo: tuned\n      env: {WHO: one}\n      \
         run: echo \"train $WHO $(cat which.txt)\" >> \"$HOME/ran\"\n",
    );
    let would = env.tpu("submit tasks.yaml --dry-run").exits(0).stdout;
    assert!(would.contains("clones") && would.contains("evaluate"), "{would}");
    assert!(tasks(&env).iter().all(|task| task["state"] == "NEW"));
    let _monitor = with_tpus(&env);
    let said = submit(&env);
    assert!(said.contains("workdir: left out"), "{said}");
    is(&env, "evaluate", "DONE");
    let lines = ran(&env);
    assert_eq!(lines.last().unwrap(), "evaluate all small main");
    assert_eq!(ran_as(&env, "data all"), 1);
    assert_eq!(ran_as(&env, "train one tuned"), 1);
    assert_eq!(ran_as(&env, "prefix"), 1, "once on the machine: {lines:?}");

    // Submitted again, nothing runs again.
    let again = submit(&env);
    assert!(again.contains("Nothing is new in ../tasks.yaml: 3 tasks"), "{again}");
    assert_eq!(env.jobs("alice").len(), 3);
    let table = env.tpu("jobman queue tasks.yaml").exits(0).stdout;
    assert!(table.contains("v6e-8\n  Working: -\n  Idle: large"), "{table}");
    assert!(!table.contains("\ndata ") && table.contains("1 task hidden"), "{table}");
    let done = env.tpu("jobman queue tasks.yaml --done").exits(0).stdout;
    assert!(done.contains("\ndata ") && done.contains("evaluate"), "{done}");
    let one = env.tpu("jobman queue tasks.yaml --task train-1").exits(0).stdout;
    assert!(one.contains("train-1: DONE\n1 run, 0 failed\n"), "{one}");

    // Nor once its records are away.
    drop(env.tpu("clean -y").exits(0));
    assert!(env.jobs("alice").is_empty());
    assert!(submit(&env).contains("Nothing is new"));
    assert_eq!(task(&env, "evaluate")["state"], "DONE");
}

#[test]
fn a_task_is_for_its_zone_alone_also_for_a_tpu_that_comes_later() {
    let env = lab();
    let _monitor = with_tpus(&env);
    write(
        &env,
        "accelerators: {v4-8: {tasks: [{id: far, zone: zone-b, run: 'echo far >> \"$HOME/ran\"'}]}}\n",
    );
    submit(&env);
    is(&env, "far", "PENDING");
    let why = env.tpu("explain 1").exits(0).stdout;
    assert!(why.contains("v4-8 in zone-b"), "{why}");
    drop(env.tpu("register other --type v4-8 --zone zone-b").exits(0));
    drop(env.tpu("apply other").exits(0));
    is(&env, "far", "DONE");
    assert_eq!(env.job("alice", 1)["tpu"], "other");
}

#[test]
fn what_a_file_says_anew_is_said_and_done_when_asked_for() {
    let env = lab();
    let _monitor = with_tpus(&env);
    let file = |run: &str, more: &str| {
        write(
            &env,
            &format!("accelerators: {{v4-8: {{tasks: [{{id: a, run: '{run}'}}{more}]}}}}\n"),
        );
    };
    file(r#"echo a >> "$HOME/ran""#, ", {id: b, run: sleep 1000}");
    submit(&env);
    is(&env, "a", "DONE");
    is(&env, "b", "RUNNING");
    file(
        r#"echo other >> "$HOME/ran""#,
        r#", {id: c, depends_on: a, run: 'echo c >> "$HOME/ran"'}"#,
    );
    let said = submit(&env);
    assert!(said.contains("task a is not as when it became alice/1 (command)"), "{said}");
    assert!(said.contains("task b (alice/2) is no longer in ../tasks.yaml"), "{said}");
    assert_eq!(task(&env, "b")["state"], "RUNNING");
    drop(env.tpu("kill 2").exits(0));
    is(&env, "c", "DONE");
    assert_eq!(ran(&env), ["a", "c"]);
    drop(env.tpu("jobman queue tasks.yaml --reset a").exits(0));
    wait_until("it ran anew", || ran_as(&env, "other") == 1);
    is(&env, "a", "DONE");
    assert_eq!(task(&env, "a")["job"], "alice/4");
    let said = env.tpu("jobman queue tasks.yaml --reset d").exits(3);
    drop(said.says(&["no task d"]));
}

#[test]
fn what_has_not_ended_is_not_begun_a_second_time() {
    let env = lab();
    let _monitor = with_tpus(&env);
    write(
        &env,
        "accelerators: {v4-8: {tasks: [{id: a, run: sleep 1000}, {id: b, run: 'true'}]}}\n",
    );
    submit(&env);
    is(&env, "a", "RUNNING");
    for id in ["a", "b"] {
        let said = env.tpu(&format!("jobman queue tasks.yaml --reset {id}")).exits(4);
        drop(said.says(&["has not ended"]));
    }
    let said = env.tpu("jobman queue tasks.yaml --reset-all").exits(0);
    assert!((said.stdout + &said.stderr).contains("under way, and left so: a, b"));
    drop(env.tpu("jobman queue tasks.yaml --prioritize b").exits(0));
    assert_eq!(task(&env, "b")["state"], "PRIORITY");
    drop(env.tpu("jobman queue tasks.yaml --prioritize a").exits(4));
    assert_eq!(env.jobs("alice").len(), 1);
}

#[test]
fn a_task_fails_as_often_as_its_file_allows() {
    let env = lab();
    let _monitor = with_tpus(&env);
    let run = |code: u32| {
        let text = format!(
            "echo \"Main command completed successfully\"; echo r >> \"$HOME/ran\"; exit {code}"
        );
        write(
            &env,
            &format!(
                "accelerators:\n  v4-8:\n    tasks:\n    - {{id: a, max_retries: 2, run: '{text}'}}\n"
            ),
        );
    };
    run(3);
    submit(&env);
    is(&env, "a", "FAILED");
    assert_eq!(ran(&env).len(), 2);
    let seen = task(&env, "a");
    assert_eq!((&seen["runs"], &seen["fails"]), (&2.into(), &2.into()), "{seen}");
    run(0);
    // As long as nobody knows what has happened to its machine a rule may bring it back.
    wait_until("it begins anew", || {
        let said = env.tpu("jobman queue tasks.yaml --reset-failed").exits(0);
        !said.stdout.contains("No task of ../tasks.yaml has failed")
    });
    is(&env, "a", "DONE");
    assert_eq!(ran(&env).len(), 3);
}

#[test]
fn what_comes_back_by_itself_is_not_begun_beside_itself() {
    let env = lab();
    let first = with_tpus(&env);
    write(
        &env,
        "accelerators: {v4-8: {tasks: [{id: a, run: 'echo r >> \"$HOME/ran\"; sleep 1000'}]}}\n",
    );
    submit(&env);
    is(&env, "a", "RUNNING");
    drop(env.tpu("sim capacity small --off").exits(0));
    drop(env.tpu("sim preempt small").exits(0));
    is(&env, "a", "INTERRUPTED");
    drop(env.tpu("jobman queue tasks.yaml --reset a").exits(4).says(&["has not ended"]));
    let said = env.tpu("jobman queue tasks.yaml --reset-all").exits(0);
    assert!((said.stdout + &said.stderr).contains("under way, and left so: a"));
    assert!(env.data()["queue"]["entries"].as_array().is_none_or(Vec::is_empty));
    first.kill();
    // Whoever has failed and begins anew is brought back by no rule.
    let number = env.jobs("alice").last().unwrap()["windows_id"].as_u64().unwrap();
    // The daemon may have begun to delete the machine: until the cloud has done so nobody can say what runs there.
    wait_until("it is killed", || env.tpu(&format!("kill {number} -y")).code == 0);
    drop(env.tpu("jobman queue tasks.yaml --reset a").exits(0));
    assert_eq!(env.data()["queue"]["entries"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_task_whose_id_somebody_has_as_a_name_runs_all_the_same() {
    let env = lab();
    let _monitor = with_tpus(&env);
    drop(env.tpu("run local --name train -q -- sleep 1000").exits(0));
    write(&env, "accelerators: {v4-8: {tasks: [{id: train, run: 'echo r >> \"$HOME/ran\"'}]}}\n");
    assert!(submit(&env).contains("task train has no name but its number"));
    is(&env, "train", "DONE");
    assert_eq!(ran(&env), ["r"]);
}

#[test]
fn of_those_that_may_be_at_work_on_one_task_none_begins_when_it_is_done() {
    let env = lab();
    let _monitor = with_tpus(&env);
    write(
        &env,
        "accelerators:\n  v4-8:\n    tasks:\n    - {id: agent, max_jobs: 3, run: 'echo agent >> \"$HOME/ran\"'}\n    \
         - {id: next, depends_on: agent, run: 'echo next >> \"$HOME/ran\"'}\n",
    );
    submit(&env);
    is(&env, "next", "DONE");
    assert_eq!(task(&env, "agent")["state"], "DONE");
    let said = env.journal();
    assert_eq!(ran(&env), ["agent", "next"], "{said:#?}");
}

#[test]
fn a_task_runs_on_a_machine_as_well() {
    let env = lab();
    let _monitor = env.daemon(&[]);
    write(
        &env,
        "accelerators: {local: {tasks: [{id: here, run: 'echo here >> \"$HOME/ran\"'}]}}\n",
    );
    submit(&env);
    is(&env, "here", "DONE");
    assert_eq!(ran(&env), ["here"]);
}

#[test]
fn a_value_that_looks_secret_is_taken_from_the_store() {
    let env = lab();
    write(
        &env,
        "accelerators:\n  local:\n    tasks:\n    - {id: here, env: {WANDB_API_KEY: in-the-file}, run: \
         'echo \"$WANDB_API_KEY\" >> \"$HOME/ran\"'}\n",
    );
    let said = env.tpu("submit tasks.yaml").exits(3);
    drop(said.says(&["no secret WANDB_API_KEY is kept"]));
    let keep = env.spawn(&["secrets", "set", "WANDB_API_KEY"]).stdin(b"in-the-store".to_vec());
    drop(env.output(&keep).exits(0));
    let _monitor = env.daemon(&[]);
    assert!(submit(&env).contains("tpu secrets set WANDB_API_KEY"));
    wait_until("it has run", || ran(&env) == ["in-the-store"]);
    assert!(!env.data().to_string().contains("in-the-file"));
}

#[test]
fn nothing_is_queued_where_code_cannot_be_cloned_or_the_file_is_wrong() {
    let env = lab();
    write(
        &env,
        "repos: {code: nowhere}\naccelerators: {local: {tasks: [{id: a, run: x}, {id: b, repo: code, run: x}]}}\n",
    );
    drop(env.tpu("submit tasks.yaml").exits(6).says(&["cannot clone", "nowhere"]));
    for (text, says) in [
        (
            "accelerators: {v4-8: {tasks: [{id: a, run: x, depends_on: b}]}}",
            "tasks.yaml:1:47: tasks.depends_on: there is no task b",
        ),
        (
            "accelerators: {v4-8: {tasks: [{id: a, run: x, depends_on: a}]}}",
            "a wait for one another",
        ),
        (
            "accelerators: {v4-8: {tasks: [{id: a, run: x}, {id: a, run: x}]}}",
            "two tasks are called a",
        ),
        ("accelerators: {v4-8: {tasks: [{id: a}]}}", "tasks.run: it is missing"),
        ("accelerators: {v4-8: {tasks: [{id: a, run: x, repo: b}]}}", "there is no repo b"),
        ("accelerators: {v4-8: {tasks: [{id: a, run: x, max_jobs: 0}]}}", "'0' is none"),
        ("defaults: {v4-8: {tasks: []}}\naccelerators: {}", "below defaults:"),
        ("accelerators: {v4-8: {tasks: []}}", "there is no task in it"),
        ("tasks: [{id: a, run: x}]", "as in accelerators: {v4-8: {tasks: ["),
    ] {
        write(&env, text);
        drop(env.tpu("submit tasks.yaml").exits(2).says(&[says]));
    }
    write(&env, "accelerators: {v4-8: {tasks: [{id: a, run: x}]}}\n");
    drop(env.tpu("convert jobman tasks.yaml").exits(2).says(&["submit it as it is: tpu submit"]));
    assert!(env.data()["queue"]["entries"].as_array().is_none_or(Vec::is_empty));
    let stage = env.path("state/tpu/stage/alice");
    assert!(std::fs::read_dir(&stage).map_or(0, Iterator::count) == 0, "{}", stage.display());
}

#[test]
fn two_who_submit_one_file_at_once_queue_it_once() {
    let env = lab();
    let all: Vec<String> = (0..20).map(|at| format!("{{id: t{at}, run: 'true'}}")).collect();
    write(&env, &format!("accelerators: {{v4-8: {{tasks: [{}]}}}}\n", all.join(", ")));
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let one = || env.tpu("submit tasks.yaml").code;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 4].contains(code)), "{codes:?}");
    assert_eq!(env.data()["queue"]["entries"].as_array().unwrap().len(), 20);
}

#[test]
fn one_that_has_ended_well_is_enough_for_what_comes_after_it() {
    let env = lab();
    let _monitor = with_tpus(&env);
    for name in ["small-2", "large-2"] {
        drop(env.tpu(&format!("register {name} --type v4-8 --zone zone-a")).exits(0));
        drop(env.tpu(&format!("apply {name}")).exits(0));
    }
    // The first fails, another ends well, the third goes on: the task is done.
    write(
        &env,
        "accelerators:\n  v4-8:\n    tasks:\n    - id: agent\n      max_jobs: 3\n      max_retries: 1\n      \
         run: case $TPU_MEMBER in 0) exit 3;; 1) until [ -e \"$HOME/go\" ]; do sleep 0.4; done;; 2) exec sleep 1000;; esac\n    \
         - {id: next, depends_on: agent, run: 'echo next >> \"$HOME/ran\"'}\n",
    );
    submit(&env);
    wait_until("one has failed and two run", || {
        let attempts = task(&env, "agent")["attempts"].as_array().cloned().unwrap_or_default();
        let is = |word: &str| {
            attempts.iter().filter(|one| one["status"].as_str().unwrap().starts_with(word)).count()
        };
        is("error") == 1 && is("running") == 2
    });
    assert_eq!(task(&env, "next")["state"], "WAITING");
    write_file(&env.path("go"), "");
    is(&env, "next", "DONE");
    // Its record is not needed for that.
    drop(env.tpu("clear-finished -y").exits(0));
    drop(env.tpu("kill alice -y --all").exits(0));
    is(&env, "agent", "DONE");
    let said = env.tpu("jobman queue tasks.yaml --reset-failed").exits(0).stdout;
    assert!(said.contains("No task of ../tasks.yaml has failed"), "{said}");
}

#[test]
fn a_number_that_a_task_has_had_is_nobody_elses() {
    let env = lab();
    let first = with_tpus(&env);
    write(&env, "accelerators: {v4-8: {tasks: [{id: one, max_jobs: 2, run: 'true'}]}}\n");
    submit(&env);
    is(&env, "one", "DONE");
    wait_until("nobody is at work", || {
        env.jobs("alice").iter().all(|job| job["status"] == "finished")
    });
    drop(env.tpu("clear-finished -y").exits(0));
    drop(first);
    drop(env.tpu("reset-window-num 1").exits(4).says(&["numbers up to"]));
    // A group that has nothing to do with it keeps all its members.
    drop(env.tpu("submit v4-8 --array 0-3 --hold -- true").exits(0));
    let _monitor = env.daemon(&[]);
    assert_eq!(env.data()["queue"]["entries"].as_array().unwrap().len(), 1);
    assert_eq!(task(&env, "one")["state"], "DONE");
}

#[test]
fn a_reset_that_could_not_be_submitted_leaves_the_task_as_it_was() {
    let env = with_code();
    let _monitor = with_tpus(&env);
    let text = "repos: {train: repo}\naccelerators: {v4-8: {tasks: [{id: a, repo: train, max_retries: 1, run: exit 3},\n\
                {id: b, depends_on: a, run: 'echo b >> \"$HOME/ran\"'}]}}\n";
    write(&env, text);
    submit(&env);
    is(&env, "a", "FAILED");
    is(&env, "b", "FAILED");
    std::fs::rename(env.path("repo"), env.path("away")).unwrap();
    for _ in 0..2 {
        wait_until("it is tried", || env.tpu("jobman queue tasks.yaml --reset a").code == 6);
        is(&env, "a", "FAILED");
    }
    std::fs::rename(env.path("away"), env.path("repo")).unwrap();
    // What had ended in vain because of it comes along, though nobody names it.
    write(&env, &text.replace("exit 3", "exit 0"));
    let done = env.tpu("jobman queue tasks.yaml --reset a").exits(0);
    assert!(done.stderr.contains("task b begins anew, too"), "{}", done.stderr);
    is(&env, "b", "DONE");
    assert_eq!(ran(&env), ["b"]);
}

#[test]
fn what_waits_for_a_task_waits_for_what_it_has_become() {
    let env = lab();
    let first = with_tpus(&env);
    let text = "accelerators: {v4-8: {tasks: [{id: a, max_retries: 1, run: exit 3},\n\
                {id: b, depends_on: a, run: 'echo b >> \"$HOME/ran\"'}]}}\n";
    write(&env, text);
    submit(&env);
    wait_until("it runs", || env.jobs("alice").len() == 1);
    // Nobody looks while it fails.
    first.kill();
    wait_until("it has failed", || task(&env, "a")["state"] != "RUNNING");
    write(&env, &text.replace("exit 3", "exit 0"));
    wait_until("it begins anew", || env.tpu("jobman queue tasks.yaml --reset a").code == 0);
    let _monitor = env.daemon(&[]);
    is(&env, "b", "DONE");
    assert_eq!(ran(&env), ["b"]);
}

#[test]
fn a_token_in_the_url_of_a_repository_is_refused_and_not_repeated() {
    let env = lab();
    for url in ["https://ghp_123@host/x.git", "ssh://me:ghp_123@host/x"] {
        write(
            &env,
            &format!("accelerators: {{v4-8: {{tasks: [{{id: a, run: x, repo: '{url}'}}]}}}}\n"),
        );
        let refused = env.tpu("submit tasks.yaml").exits(2).says(&["a password or a token"]);
        assert!(!refused.stderr.contains("ghp_123"), "{}", refused.stderr);
    }
    assert!(!String::from_utf8(env.data_bytes()).unwrap().contains("ghp_123"));
}

#[test]
fn all_tasks_of_a_repository_have_all_of_it() {
    let env = with_code();
    let _monitor = with_tpus(&env);
    for name in ["one.png", ".gitignore", "wandb/kept"] {
        std::fs::create_dir_all(env.path("repo/wandb")).unwrap();
        write_file(&env.path("repo").join(name), "one.png\n");
    }
    for words in [&["add", "-f", "."][..], &["commit", "-q", "-m", "all"]] {
        let repo = env.path("repo");
        let own = ["-C", repo.to_str().unwrap(), "-c", "user.name=a", "-c", "user.email=a@b"];
        let words: Vec<&str> = own.iter().chain(words).copied().collect();
        drop(env.output(&env.spawn_program("git", &words)).exits(0));
    }
    let text = "repos: {train: repo}\ndefaults: {repo: train}\naccelerators: {v4-8: {tasks: [{id: a, run: RUN}, \
                {id: b, depends_on: a, run: RUN}, {id: c, max_jobs: 2, run: RUN}]}}\n";
    write(&env, &text.replace("RUN", "'cat one.png wandb/kept && git rev-parse HEAD'"));
    submit(&env);
    for id in ["a", "b", "c"] {
        is(&env, id, "DONE");
    }
}

#[test]
fn what_depends_on_a_task_that_was_taken_away_waits_until_it_is_back() {
    let env = lab();
    let _monitor = with_tpus(&env);
    write(
        &env,
        "accelerators:\n  v4-8:\n    tasks:\n    - id: a\n      max_retries: 1\n      \
         run: '[ -e \"$HOME/again\" ] && exit 0; touch \"$HOME/again\"; exec sleep 1000'\n    \
         - {id: b, depends_on: a, run: 'echo b >> \"$HOME/ran\"'}\n",
    );
    submit(&env);
    is(&env, "a", "RUNNING");
    wait_until("it runs", || env.path("again").exists());
    drop(env.tpu("sim preempt small").exits(0));
    is(&env, "b", "DONE");
    assert_eq!(task(&env, "a")["state"], "DONE");
    assert_eq!(ran(&env), ["b"]);
}
