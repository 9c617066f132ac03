//! The original's own data file and its appendix scripts, unmodified: what a lab has on the day it moves.

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::{wait_for, wait_until};

/// The data of the README, the code with its scripts in a repository, stubs first in PATH.
struct Lab {
    env: TestEnv,
    /// data.json as it was before the first command, byte for byte.
    before: Value,
}

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/original");

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        let text = std::fs::read_to_string(format!("{SOURCE}/data.json")).unwrap();
        let text = text.replace("@DIR@", env.root());
        write_file(&env.data_path(), &text);
        std::fs::create_dir_all(env.path("code")).unwrap();
        for name in ["staging.sh", "run_remote.sh", "ka.sh", "config.sh", "main.py"] {
            std::fs::copy(format!("{SOURCE}/{name}"), env.path("code").join(name)).unwrap();
        }
        // Each stub says that it was the one found, then is the one of the test data.
        std::fs::create_dir_all(env.path("stubs")).unwrap();
        for name in ["gcloud", "sudo", "rsync"] {
            let called = env.path(&format!("called-{name}"));
            let script = format!(
                "printf '%s\\n' \"$*\" >>'{}'\nexec '{SOURCE}/stubs/{name}' \"$@\"",
                called.display()
            );
            write_script(&env.path("stubs").join(name), &script);
        }
        let inherited = env.tmux().env().var("PATH").unwrap().to_owned();
        env.set("PATH", format!("{}:{inherited}", env.path("stubs").display()));
        env.set("TPU_TEST_DATA_ROOT", env.path("root"));
        // Only the file says whose jobs these are.
        env.set("TPU_USER", "username");
        let git = "git init -q . && git add -A && \
            git -c user.name=t -c user.email=t@localhost commit -q -m code";
        let code = env.path("code");
        let commit = env.spawn_program("sh", &["-c", git]).cwd(code);
        drop(env.output(&commit).exits(0));
        Self { before: serde_json::from_str(&text).unwrap(), env }
    }

    /// `tpu run v2-1 username lr=0.01` and more words; returns its window.
    fn run(&self, more: &str) -> u64 {
        let line = format!("run v2-1 username lr=0.01 --json {more}");
        self.env.tpu(&line).exits(0).json()["launched"]["window"].as_u64().unwrap()
    }

    /// Waits until the record is of this status and its script has ended.
    fn wait_end(&self, window: u64, status: &str) -> Value {
        let clue = format!("username/{window} ended as {status}");
        wait_for(&clue, || {
            let job = self.env.job("username", window);
            let over = job["extra_msgs"]["launch"]["ended"].is_string();
            (over && job["status"] == status).then_some(job)
        })
    }

    /// The words that main.py was given, one a line.
    fn arguments(job: &Value) -> String {
        let log = job["log_dir"].as_str().unwrap();
        std::fs::read_to_string(format!("{log}/arguments.txt")).unwrap()
    }

    /// One job of `check --json`.
    fn checked(&self, window: u64) -> Value {
        let output = self.env.tpu("check username --json").exits(0).json();
        let jobs = output["jobs"].as_array().unwrap().clone();
        jobs.into_iter().find(|job| job["window"] == window).unwrap()
    }

    /// The lines of `check` about one window.
    fn block(&self, window: u64) -> String {
        let text = self.env.tpu("check username").exits(0).stdout;
        let start = format!("Window {window}\n");
        let start_with_more = format!("Window {window} (");
        let mut blocks = text.split("----------------------------------------\n");
        let found =
            blocks.find(|block| block.starts_with(&start) || block.starts_with(&start_with_more));
        found.unwrap_or_else(|| panic!("no block of {window} in:\n{text}")).to_owned()
    }
}

#[test]
fn the_scripts_of_the_original_run_unmodified_and_their_callbacks_arrive() {
    let lab = Lab::new();
    let gate = lab.env.path("go-on");
    let window = lab.run(&format!("config.hold={}", gate.display()));
    assert_eq!(window, 42, "the file's windows_offset");

    // At work: `upd-log` came from inside the window.
    wait_until("the callback upd-log", || lab.env.job("username", window)["status"] == "running");
    let job = lab.env.job("username", window);
    let root = lab.env.path("root");
    let logs = format!("/{}/logs/username/original/", root.display());
    let stage = format!("/{}/staging/username/", root.display());
    assert!(job["log_dir"].as_str().unwrap().starts_with(&logs), "{job:#}");
    assert!(job["stage_dir"].as_str().unwrap().starts_with(&stage), "{job:#}");
    assert_eq!(job["tpu"], "kmh-tpuvm-v2-32-1");
    wait_until("steps in the window", || lab.env.pane("username", 42).contains("step 100/400"));
    let seen = lab.checked(window);
    assert_eq!(seen["status"], "running");
    assert_eq!(seen["progress"]["step"], 100);
    assert_eq!(seen["log_dir"], job["log_dir"]);
    assert_eq!(seen["window_alive"], true);
    let block = lab.block(window);
    assert!(block.contains("Status: running") && block.contains("step 100/400"), "{block}");

    // The end: `finish-job` came as well.
    lab.env.touch("go-on");
    let job = lab.wait_end(window, "finished");
    assert_eq!(job["error"], Value::Null);
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 0);
    assert_eq!(lab.checked(window)["status"], "finished");
    assert!(lab.block(window).contains("Status: finished"), "{}", lab.block(window));
    assert!(Lab::arguments(&job).lines().any(|word| word == "--config.training.lr=0.01"));

    // The programs that the scripts found are the test's own.
    let gcloud = String::from_utf8(lab.env.wait_file("called-gcloud")).unwrap();
    assert!(
        gcloud.starts_with(
            "compute tpus tpu-vm ssh kmh-tpuvm-v2-32-1 --zone europe-west4-a --worker=all"
        ),
        "{gcloud}"
    );
    assert!(!lab.env.wait_file("called-rsync").is_empty());
    assert!(!lab.env.wait_file("called-sudo").is_empty());
}

#[test]
fn the_data_file_keeps_the_original_s_shape() {
    let lab = Lab::new();
    let window = lab.run("");
    let job = lab.wait_end(window, "finished");

    let after = lab.env.data();
    let mut expected = lab.before.clone();
    let user = &mut expected["users"]["username"];
    user["windows_offset"] = json!(43);
    user["job_data"].as_array_mut().unwrap().push(job.clone());
    let (after, expected) = (format!("{after:#}"), format!("{expected:#}"));
    assert_eq!(after, expected, "every other key is as it was, in its place");
    // The text itself too: the one record and the one number are all that differs.
    let text = String::from_utf8(lab.env.data_bytes()).unwrap();
    let old = std::fs::read_to_string(format!("{SOURCE}/data.json")).unwrap();
    let old = old.replace("@DIR@", lab.env.root());
    let lost: Vec<&str> = old.lines().filter(|line| !text.contains(line)).collect();
    assert_eq!(lost, ["            \"windows_offset\": 42,"]);

    // What the original reads of a job: every key that it writes, of the same type.
    let example = &lab.before["users"]["username"]["job_data"][0];
    for (key, value) in example.as_object().unwrap() {
        let key = if key == "staage_dir" { "stage_dir" } else { key };
        let now = &job[key];
        let is_same = std::mem::discriminant(now) == std::mem::discriminant(value);
        assert!(is_same || value.is_null() || now.is_null(), "{key}: {value} became {now}");
    }
    assert_eq!(job["extra_configs"], "--config.training.lr=0.01");
}

/// Reads the data file as the original does, which takes each of its keys for granted, and writes it as Python does: the
/// jobs of a user, each with its number and status.
fn as_the_original(env: &TestEnv, user: &str) -> Vec<(u64, Value)> {
    const KEYS: [&str; 15] = [
        "user",
        "windows_id",
        "job_dir_id",
        "job_dir",
        "tpu",
        "job_tags",
        "log_dir",
        "stage_dir",
        "extra_configs",
        "status",
        "error",
        "stage",
        "monitor",
        "rules",
        "extra_msgs",
    ];
    let data = env.data();
    for key in ["users", "user_list", "id_list", "id_user_dict", "user_id_dict", "tpu_aliases"] {
        assert!(data.get(key).is_some(), "{key}");
    }
    assert!(data["user_list"].as_array().unwrap().contains(&json!(user)));
    let id = data["user_id_dict"][user].as_u64().unwrap();
    assert_eq!(data["id_user_dict"][id.to_string()], user);
    assert!(data["all_tpus"].as_object().unwrap().values().all(Value::is_array));
    assert!(data["monitor_config"]["checking_freq"].is_u64());
    assert!(data["MONITOR_logs"].is_array() && data["ack_MONITOR"].is_boolean());
    let user = &data["users"][user];
    assert!(user["working_dir"].is_object() && user["config_aliases"].is_object());
    assert!(user["settings"].is_object() && user["windows_offset"].is_u64());
    let jobs = user["job_data"].as_array().unwrap().iter();
    let read = |job: &Value| {
        for key in KEYS {
            let spelled =
                if key == "stage_dir" && job.get(key).is_none() { "staage_dir" } else { key };
            assert!(job.get(spelled).is_some(), "{key} of {job:#}");
        }
        assert!(job["rules"].is_object() && job["extra_msgs"].is_object(), "{job:#}");
        assert!(job["customized_settings"].is_object() && job.get("start_time").is_some());
        (job["windows_id"].as_u64().unwrap(), job["status"].clone())
    };
    let jobs = jobs.map(read).collect();
    let mut text = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut writer = serde_json::Serializer::with_formatter(&mut text, indent);
    serde::Serialize::serialize(&data, &mut writer).unwrap();
    write_file(&env.data_path(), std::str::from_utf8(&text).unwrap());
    jobs
}

#[test]
fn back_to_the_original_its_reader_reads_the_file_again_and_so_do_we() {
    let mut lab = Lab::new();
    drop(lab.env.own_crontab());
    let first = lab.run("");
    lab.wait_end(first, "finished");
    drop(lab.env.tpu("submit local username --hold -- sleep 1000").exits(0));
    drop(lab.env.tpu("hosts set local --max-jobs 4").exits(0));
    drop(lab.env.tpu("uninstall -y").exits(0).says(&["your data:"]));

    let jobs = as_the_original(&lab.env, "username");
    assert!(jobs.contains(&(first, json!("finished"))), "{jobs:?}");
    assert!(lab.env.data().get("tpu_format").is_none(), "a file without a version gets none");
    drop(lab.env.tpu("check username").exits(0).says(&["Status: finished"]));

    // A file that tpu has begun says its version, which the original passes over and keeps.
    std::fs::remove_file(lab.env.data_path()).unwrap();
    let code = lab.env.path("code").display().to_string();
    drop(lab.env.tpu(&format!("init --name username --dir {code}")).exits(0));
    drop(lab.env.tpu("run local -q -- true").exits(0));
    let [job] = &lab.env.jobs("username")[..] else { panic!("{}", lab.env.data()) };
    let second = job["windows_id"].as_u64().unwrap();
    lab.wait_end(second, "finished");
    assert_eq!(lab.env.data()["tpu_format"], 1);
    assert_eq!(as_the_original(&lab.env, "username"), [(second, json!("finished"))]);
    assert_eq!(lab.env.data()["tpu_format"], 1);
    drop(lab.env.tpu("check username").exits(0));
}

#[test]
fn a_crash_that_prints_a_wandb_summary_is_an_error_and_can_be_resumed() {
    let lab = Lab::new();
    let window = lab.run("config.crash=1");
    let job = lab.wait_end(window, "error");
    assert_eq!(job["error"], "python-error");
    let pane = lab.env.pane("username", window);
    assert!(pane.contains("wandb: Run history:"), "{pane}");
    assert!(pane.contains("Job completed successfully"), "the script believed in it:\n{pane}");
    assert!(
        pane.contains("username/42 is python-error, not finished"),
        "finish-job says what it thinks:\n{pane}"
    );
    let seen = lab.checked(window);
    assert_eq!((&seen["status"], &seen["error"]), (&json!("error"), &json!("python-error")));
    let evidence = seen["evidence"]["line"].as_str().unwrap();
    assert!(evidence.contains("TypeError: train_step()"), "{seen:#}");
    assert!(lab.block(window).contains("Status: error: python-error"), "{}", lab.block(window));

    // The same claim, made by hand: refused with 4; a person may insist on another job.
    let claim = format!("finish-job username:{window}");
    drop(lab.env.tpu(&claim).exits(4).says(&["TypeError", "--force"]));
    assert_eq!(lab.env.job("username", window)["status"], "error");

    // Resumed: the unmodified staging.sh again, in the stage directory, from the log directory.
    let line = format!("resume windows={window} username --json");
    let launched = lab.env.tpu(&line).exits(0).json();
    let child = launched["launched"]["window"].as_u64().unwrap();
    let attempt = lab.wait_end(child, "error");
    assert_eq!(attempt["extra_msgs"]["father"], window);
    assert_eq!(attempt["stage"], 1);
    assert_eq!(attempt["job_dir"], job["stage_dir"], "it ran where the code was copied to");
    let words = Lab::arguments(&attempt);
    let load = format!("--config.load_from={}", job["log_dir"].as_str().unwrap());
    assert!(words.lines().any(|word| word == load), "{words}");
    assert!(words.lines().any(|word| word == "--config.training.lr=0.01"), "{words}");
    assert!(!attempt["extra_configs"].as_str().unwrap().contains("load_from"), "{attempt:#}");
    let parent = lab.env.job("username", window);
    assert_eq!(
        (&parent["status"], &parent["extra_msgs"]["child"]),
        (&json!("resumed"), &json!(child))
    );
}

#[test]
fn a_script_that_ends_without_finish_job_is_an_error() {
    let lab = Lab::new();
    // No summary in the log, so that the script says "Job failed" and calls nobody.
    write_file(&lab.env.path("code").join("main.py"), "echo 'so far so good'\n");
    let window = lab.run("");
    let job = lab.wait_end(window, "error");
    assert_eq!(job["error"], "unknown");
    assert!(lab.env.pane("username", window).contains("Job failed"));
    let explained = lab.env.tpu(&format!("explain {window}")).exits(0);
    drop(explained.says(&["error: unknown", "without `tpu finish-job`"]));

    // A person who knows better has the last word.
    drop(lab.env.tpu(&format!("finish-job username:{window} --force")).exits(0));
    assert_eq!(lab.env.job("username", window)["status"], "finished");
}

#[test]
fn a_crash_without_a_summary_is_told_by_its_text() {
    let lab = Lab::new();
    let window = lab.run("config.crash=quiet");
    let job = lab.wait_end(window, "error");
    let pane = lab.env.pane("username", window);
    assert!(pane.contains("Job failed") && !pane.contains("Run history"), "{pane}");
    assert_eq!(
        (&job["error"], &job["extra_msgs"]["launch"]["exit"]),
        (&json!("python-error"), &json!(0))
    );
    let seen = lab.checked(window);
    assert_eq!((&seen["status"], &seen["error"]), (&json!("error"), &json!("python-error")));
    let evidence = seen["evidence"]["line"].as_str().unwrap();
    assert!(evidence.contains("TypeError: train_step()"), "{seen:#}");
}

#[test]
fn a_killed_peer_is_the_distributed_runtime_s_failure() {
    let lab = Lab::new();
    let said = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/corpus/blocks/087-jaxdist-worker-killed-leader.txt"
    );
    let window = lab.run(&format!("config.peer={said}"));
    let job = lab.wait_end(window, "error");
    assert_eq!((&job["error"], &job["extra_msgs"]["launch"]["exit"]), (&json!("grpc"), &json!(0)));
    let line = job["extra_msgs"]["verdict"]["line"].as_str().unwrap();
    assert!(std::fs::read_to_string(said).unwrap().contains(line), "{line}");
    let seen = lab.checked(window);
    assert_eq!((&seen["status"], &seen["error"]), (&json!("error"), &json!("grpc")));
}

/// Both are word for word those of the original's page. A test that needs them otherwise gets its own.
#[test]
fn the_scripts_are_as_they_were() {
    let digest = |name: &str| {
        let bytes = std::fs::read(format!("{SOURCE}/{name}")).unwrap();
        // FNV-1a
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    assert_eq!(digest("staging.sh"), 0x5928_fbfe_423e_3928);
    assert_eq!(digest("run_remote.sh"), 0xb023_57f8_9314_4056);
}
