//! A dry run of what makes a target usable or anew, or follows a recipe on it, says what would be done and
//! does nothing; where the real thing would be refused, so is the dry run.

use crate::cli::json_schema::assert_described;
use crate::common::env::TestEnv;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use tpu_core::model::data::Data;

const TARGET: &str = "lab-tpuvm-v2-32-1";

const RECIPES: &str = r#"
[[recipe]]
name = "solve"

[[recipe.step]]
name = "disk"
check = "mountpoint -q /shared"
setup = '''
mkdir -p /shared
mount /shared
'''
"#;

/// A simulated target that is READY, and a recipe for it.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    std::fs::create_dir_all(env.path("config/tpu")).unwrap();
    write_file(&env.path("config/tpu/settings.json"), "{}");
    write_file(&env.path("config/tpu/recipes.toml"), RECIPES);
    drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
    env
}

/// The state of the target, and all that the data file holds.
fn all(env: &TestEnv) -> (String, String) {
    let seen = env.tpu("check-status v2-1 --json").exits(0).json();
    (seen["targets"][0]["raw_state"].to_string(), String::from_utf8(env.data_bytes()).unwrap())
}

#[test]
fn a_dry_run_says_what_would_be_done_to_a_target_and_does_nothing() {
    let env = lab();
    let before = all(&env);
    drop(env.tpu("reapply v2-1 --dry-run").exits(0).says(&[
        "target     lab-tpuvm-v2-32-1",
        "state      READY",
        "would      delete it with all that is on it, then create it",
        "zone       europe-west4-a",
        "type       v2-32",
    ]));
    drop(env.tpu("apply v2-1 --dry-run").exits(0).says(&["nothing: it is usable"]));
    let solve = env.tpu("solve v2-1 --dry-run").exits(0);
    drop(solve.says(&["on each    disk: set up where this fails: mountpoint -q /shared"]));
    let forced = env.tpu("solve v2-1 --force --dry-run").exits(0);
    drop(forced.says(&["on each    disk: set up: mkdir -p /shared …"]));
    assert_eq!(all(&env), before);

    drop(env.tpu("sim preempt v2-1").exits(0));
    let before = all(&env);
    let taken = "would      delete what is left of it, then create it";
    drop(env.tpu("reapply v2-1 --dry-run").exits(0).says(&["PREEMPTED", taken]));
    drop(env.tpu("solve v2-1 --dry-run").exits(0).says(&[taken, "on each    disk"]));
    assert_eq!(all(&env), before);

    for line in ["reapply v2-1 --dry-run", "apply v2-1 --dry-run", "solve v2-1 --dry-run"] {
        let json = env.tpu(&format!("{line} --json")).exits(0).json();
        assert_eq!(json["dry_run"], true, "{line}");
        assert_described(line.split(' ').next().unwrap(), &json);
    }
}

#[test]
fn a_dry_run_is_refused_where_the_real_thing_would_be() {
    let env = lab();
    drop(env.tpu("run v2-1 alice -q -- sleep 1000").exits(0));
    env.wait_status(1, "running");
    let dry = env.tpu("reapply v2-1 --dry-run");
    let real = env.tpu("reapply v2-1 --yes");
    assert_eq!((dry.code, &dry.stderr), (real.code, &real.stderr));
    drop(dry.says(&["in use by alice/1"]));
    drop(env.tpu("mount-disk v2-1 --dry-run").exits(4).says(&["no recipe 'mount-disk' fits"]));
}

/// Alice has 1, which is finished, 2, which was killed, and 3, which was resumed as 4 and failed again. 5 ended while
/// nobody was told.
fn ended() -> TestEnv {
    const NONE: [&str; 0] = [];
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let over = |window: u64| {
        let is_over = || env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string();
        wait_until("its launcher to be done", is_over);
    };
    assert_eq!(env.start("true", &NONE), 1);
    assert_eq!(env.start("exec sleep 1000", &NONE), 2);
    assert_eq!(env.start("exit 3", &NONE), 3);
    over(1);
    over(3);
    drop(env.tpu("kill 2").exits(0));
    drop(env.tpu("resume 3 --yes").exits(0));
    over(4);
    assert_eq!(env.start("true", &NONE), 5);
    over(5);
    // As it is when the launcher's word did not get through: its end lies beside it.
    env.change(|data| {
        let job = data.job_mut(&tpu_core::model::ids::JobId::parse("alice/5").unwrap()).unwrap();
        job.status = tpu_core::model::job::Status::Running;
        let launch = job.launch.as_mut().unwrap();
        (launch.ended, launch.exit) = (None, None);
    });
    let states = ["finished", "killed", "resumed", "error", "running"];
    for (window, status) in (1..).zip(states) {
        assert_eq!(env.job("alice", window)["status"], status);
    }
    env
}

/// Insists that a dry run says no where the real thing does, with the same words and code, and changes nothing.
#[track_caller]
fn as_the_real_thing<'a>(env: &TestEnv, lines: impl IntoIterator<Item = &'a str>) {
    let mut differ = Vec::new();
    for line in lines {
        let before = env.data_bytes();
        let dry = env.tpu(&format!("{line} --dry-run"));
        assert!(env.data_bytes() == before, "{line} --dry-run has changed the data");
        let real = env.tpu(line);
        if dry.code != real.code || real.stdout.is_empty() && dry.stderr != real.stderr {
            differ.push(format!("$ tpu {line}\ndry run: {dry}\nreal: {real}"));
        }
        // Whole at once, and under the lock: a launcher that has just begun reads and writes it.
        env.change(|data| *data = Data::parse(&before).unwrap());
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn a_dry_run_of_every_verb_of_jobs_is_refused_where_the_real_thing_is() {
    let env = ended();
    let mut lines = Vec::new();
    for window in [1, 2, 3, 5, 99] {
        for verb in [
            "kill W",
            "resume W",
            // A person who killed it is asked.
            "rerun W -y",
            "add-tag W x",
            "set-rule W resume",
            "ignore-error W",
            "get-stage-dir W",
            "explain W",
            "logs W",
            "attach W",
            "history W",
            "wait W --timeout 0s",
            "finish-job alice:W",
            "fail-job alice:W --exit-code 3",
            "upd-log alice:W /log /stage local now",
            "kill-window W",
        ] {
            lines.push(verb.replace('W', &window.to_string()));
        }
    }
    as_the_real_thing(&env, lines.iter().map(String::as_str));
    as_the_real_thing(
        &env,
        ["kill 1,4 -y", "kill --all -y", "kill status:finished", "kill tag:none"],
    );
    drop(env.tpu("kill 3 --dry-run").exits(4).says(&["alice/3 continues as alice/4"]));
}

#[test]
fn a_resume_that_would_be_asked_about_is_refused_by_a_dry_run_too() {
    let env = ended();
    as_the_real_thing(&env, ["resume 4"]);
    drop(env.tpu("resume 4 --dry-run").exits(4).says(&["nothing to resume from"]));
    drop(env.tpu("resume 4 --dry-run --yes").exits(0));
}

#[test]
fn a_dry_run_of_every_verb_of_targets_is_refused_where_the_real_thing_is() {
    let mut env = ended();
    let targets = ["local", "w=1", "1", "nowhere", "v2-1"];
    let verbs = ["delete T", "start T", "stop T", "restart T", "apply T", "reapply T", "solve T"];
    let far = ["ssh T --command true", "kill-remote T", "cp T:x .", "describe T", "release T"];
    let of = |target| verbs.iter().chain(&far).map(move |verb| verb.replace('T', target));
    let lines: Vec<String> = targets.into_iter().flat_map(of).collect();
    as_the_real_thing(&env, lines.iter().map(String::as_str));
    let others = ["daemon stop", "sim preempt nowhere", "doctor --restore nowhere", "cp x y"];
    as_the_real_thing(&env, others);
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("run v2-1 -q -- sleep 1000").exits(0));
    env.wait_status(6, "running");
    as_the_real_thing(&env, ["delete v2-1", "stop v2-1", "restart v2-1", "kill-remote v2-1"]);
    drop(env.tpu("stop v2-1 --dry-run").exits(4).says(&["in use by alice/6"]));
}

#[test]
fn a_dry_run_of_a_setting_says_what_the_real_thing_says() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    for pair in ["time_zone Europe/Berlin", "theme light", "show_length 7", "cloud sim"] {
        let dry = env.tpu(&format!("set-settings {pair} --dry-run")).exits(0);
        let real = env.tpu(&format!("set-settings {pair}")).exits(0);
        assert_eq!(dry.stderr, real.stderr, "{pair}");
    }
    env.set("TPU_CLOUD", "none");
    for line in ["set-settings cloud sim --dry-run", "set-settings cloud sim"] {
        drop(env.tpu(line).exits(0).says(&["$TPU_CLOUD says otherwise and wins"]));
    }
}

#[test]
fn what_cannot_be_tried_out_is_refused_and_not_done() {
    let env = TestEnv::new();
    for line in ["demo --headless --dry-run", "demo-train --dry-run"] {
        drop(env.tpu(line).exits(2).says(&["cannot be tried out", "nothing was done"]));
    }
}

#[test]
fn a_dry_run_opens_no_screen_whose_keys_would_act() {
    let env = TestEnv::new();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{} monitor alice --dry-run", crate::common::env::TPU));
    terminal.shows("Would open the screen.");
    terminal.prompts();
}
