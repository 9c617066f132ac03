//! A kind of target that is not in the program is added by one folder (`echo/`) and one line (in its `main.rs`):
//! it queues, runs, fails, is preempted, is stopped and stays silent, in commands, under the daemon and on the
//! screen, and nothing else of the program knows it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tpu_core::model::ids::JobNumber;

use crate::common::env::{Running, TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// A lab with one echo, which has four jobs at once.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    pub(super) spool: PathBuf,
}

/// `tpu` with that kind.
pub(super) fn program() -> String {
    let beside = Path::new(TPU).parent().unwrap().join("examples/tpu-echo");
    beside.to_str().unwrap().to_owned()
}

impl Lab {
    pub(super) fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        let spool = env.path("spool");
        std::fs::create_dir(&spool).unwrap();
        let lab = Self { env, spool };
        let spool = lab.spool.to_str().unwrap();
        let told = lab.tpu(&format!("register cave --kind echo --spool {spool}")).exits(0);
        assert!(!told.stderr.contains("staging.sh"), "{}", told.stderr);
        lab
    }

    #[must_use = "say how it should have ended: .exits(0)"]
    pub(super) fn tpu(&self, line: &str) -> CommandOutput {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.env.output(&self.env.spawn_program(&program(), &words))
    }

    pub(super) fn monitor(&self) -> Running {
        let running = self.env.start_program(&program(), "daemon run", &[]);
        wait_until("the daemon runs", || self.tpu("daemon status").code == 0);
        running
    }

    /// The job's directory of the engine.
    pub(super) fn place(&self, window: u64) -> PathBuf {
        let job = self.env.job("alice", window);
        self.spool.join(job["extra_msgs"]["launch"]["token"].as_str().unwrap())
    }

    /// The engine says how a job is.
    pub(super) fn says(&self, window: u64, state: &str) {
        let place = self.place(window);
        write_file(&place.join("new"), state);
        std::fs::rename(place.join("new"), place.join("state")).unwrap();
    }

    pub(super) fn prints(&self, window: u64, text: &str) {
        write_file(&self.place(window).join("log"), text);
    }

    pub(super) fn shown(&self, window: u64) -> Value {
        let jobs = self.tpu("check alice --json").exits(0).json();
        let jobs = jobs["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["window"] == window).unwrap().clone()
    }

    /// What the engine has of jobs, each by its words; one that is just being put there is none yet.
    pub(super) fn submitted(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.spool).unwrap().map(|entry| entry.unwrap());
        entries
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| std::fs::read_to_string(entry.path().join("argv")).unwrap())
            .collect()
    }
}

#[test]
fn it_waits_with_a_reason_runs_with_its_loss_and_finishes() {
    let lab = Lab::new();
    lab.env.code("alice", "train", "echo step\n");
    let would = lab.tpu("run cave lr=0.1 --voice low --voice loud --dry-run -- ./train").exits(0);
    assert!(would.stdout.ends_with("\nvoice=loud\n"), "{}", would.stdout);
    let ran = lab.tpu("run cave lr=0.1 --voice low --voice loud -q -- ./train").exits(0);
    assert!(ran.stdout.contains("alice/1"), "{}", ran.stdout);
    assert_eq!(
        lab.submitted(),
        ["./train\n--config.training.learning_rate=0.1\nvoice=low\nvoice=loud"]
    );
    assert!(!lab.env.has_window("alice", 1), "no window of ours");

    let explained = lab.tpu("explain 1").exits(0).stdout;
    assert!(explained.contains("engine: has it\n") && !explained.contains("window"), "{explained}");
    let waiting = lab.shown(1);
    assert_eq!(waiting["status"], "pending");
    assert_eq!(waiting["pending"]["reason"], "behind nobody");
    assert_eq!(waiting["pending"]["raw"], "QUEUED");
    assert_eq!(lab.env.job("alice", 1)["status"], "starting", "what is stored is an old word");
    let worked = lab.tpu("stats --json").exits(0).json()["total"]["attempts"].clone();
    assert_eq!((&waiting["worked"], worked), (&json!([]), json!(0)), "it has only waited");
    // A later edit does not change what is queued.
    lab.env.code("alice", "train", "echo another\n");
    let staged = lab.env.job("alice", 1)["stage_dir"].as_str().unwrap().to_owned() + "/train";
    assert_eq!(std::fs::read_to_string(staged).unwrap(), "echo step\n");

    let script = lab.tpu("script 1").exits(0).stdout;
    assert!(would.stdout.ends_with(&format!("\n{script}")), "{script}");
    drop(lab.tpu("show 1").exits(0).says(&["behind nobody", "what started it", "voice=loud"]));
    drop(lab.tpu("show 1 --raw").exits(0).says(&["queued behind nobody"]));

    lab.says(1, "running n7");
    lab.prints(1, "step 40/100 loss 0.25\n");
    let running = lab.shown(1);
    assert_eq!(
        (&running["status"], &running["progress"]["loss"]),
        (&"running".into(), &0.25.into())
    );
    assert_eq!(running["worked"].as_array().unwrap().len(), 1, "{running}");
    let logs = lab.tpu("logs 1").exits(0);
    assert!(logs.stdout.contains("step 40/100"), "{}", logs.stdout);

    let _monitor = lab.monitor();
    lab.env.wait_status(1, "running");
    lab.says(1, "ended 0");
    lab.env.wait_status(1, "finished");
    let worked = &lab.env.job("alice", 1)["extra_msgs"]["launch"]["worked"];
    assert!(worked[0]["from"].is_string(), "the daemon has seen it begin: {worked}");
    // The next one did not have to wait for a free target, and is another job of the engine.
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    assert_eq!(lab.submitted().len(), 2);
}

#[test]
fn what_is_preempted_comes_back_once_and_what_fails_by_itself_does_not() {
    let mut lab = Lab::new();
    lab.env.set("TPU_TEMPERATURE", "0.7");
    drop(lab.tpu("run cave rule=pre -q -- ./train").exits(0));
    lab.env.unset("TPU_TEMPERATURE");
    let _monitor = lab.monitor();
    lab.says(1, "running n7");
    lab.prints(1, "step 40/100 loss 0.25\n");
    lab.env.wait_status(1, "running");
    lab.says(1, "preempted by somebody of higher rank");
    lab.env.wait_status(1, "resumed");
    let second = wait_for("the second attempt", || lab.env.jobs("alice").get(1).cloned());
    assert_eq!(second["extra_msgs"]["father"], 1);
    // Its record is written before the engine has it.
    wait_until("the second attempt is submitted", || lab.submitted().len() == 2);

    // It is told what its parent was told, whoever starts it, and who it is itself.
    let told = std::fs::read_to_string(lab.place(2).join("env")).unwrap();
    for line in ["TPU_TEMPERATURE=0.7\n", "TPU_JOB=alice/2\n", "TPU_TARGET=cave\n"] {
        assert!(told.contains(line), "{line} {told}");
    }
    assert_eq!(told.matches("TPU_JOB=").count(), 1);

    // The text says out of memory, and the rule for that is pass.
    lab.says(2, "running n8");
    lab.prints(
        2,
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n",
    );
    lab.says(2, "ended 1");
    let failed = lab.env.wait_status(2, "error");
    assert_eq!(failed["error"], "oom");
    assert_eq!(lab.env.jobs("alice").len(), 2);
    assert_eq!(lab.submitted().len(), 2, "once");
}

#[test]
fn what_is_preempted_is_no_success_whatever_its_program_ended_with() {
    let lab = Lab::new();
    drop(lab.tpu("run cave rule=pre -q -- ./train").exits(0));
    lab.says(1, "running n7");
    lab.prints(1, "step 40/100 loss 0.25\n");
    assert_eq!(lab.shown(1)["status"], "running");
    lab.says(1, "evicted 0");
    let shown = lab.shown(1);
    assert_eq!((&shown["status"], &shown["error"]), (&"error".into(), &"preempted".into()));
    let _monitor = lab.monitor();
    let settled = wait_for("what becomes of it", || {
        let status = lab.env.job("alice", 1)["status"].as_str().unwrap().to_owned();
        ["resumed", "finished"].contains(&status.as_str()).then_some(status)
    });
    assert_eq!(settled, "resumed");
    assert_eq!(lab.env.jobs("alice")[1]["extra_msgs"]["father"], 1);
}

#[test]
fn what_it_does_not_take_is_told_in_its_own_words_and_leaves_no_record() {
    let lab = Lab::new();
    let quiet = lab.env.path("spool/.quiet");
    let own_words = ["echo: error: no voice is loud here", "leave out --voice"];
    write_file(&quiet, "");
    for array in ["", "--array 0-3"] {
        let run = lab.tpu(&format!("run cave --voice loud {array} -q -- ./train")).exits(2);
        drop(run.says(&own_words));
        assert!(lab.env.jobs("alice").is_empty() && lab.submitted().is_empty());
    }
    std::fs::remove_file(&quiet).unwrap();
    drop(lab.tpu("run cave --voice loud -q -- ./train").exits(0));
    let first = lab.env.jobs("alice")[0]["windows_id"].as_u64().unwrap();
    lab.says(first, "ended 1");
    // An attempt that goes on for another one has its place in the lineage, where it can be told from one that ran.
    write_file(&quiet, "");
    let again = format!("rerun {first}");
    drop(lab.tpu(&again).exits(2).says(&[own_words[0], "its record stays, as error: launch"]));
    assert_eq!(lab.env.jobs("alice")[1]["error"], "launch");
    std::fs::remove_file(&quiet).unwrap();
    drop(lab.tpu(&again).exits(0));
    assert_eq!((lab.env.jobs("alice").len(), lab.submitted().len()), (3, 2));
}

#[test]
fn a_submission_whose_answer_was_lost_is_settled_by_the_next_look() {
    let lab = Lab::new();
    for spoiled in [".mute", ".deaf"] {
        write_file(&lab.spool.join(spoiled), "");
        let run = lab.tpu("run cave -q -- ./train").exits(6);
        drop(run.says(&["is unknown", "nothing is started a second time"]));
    }
    let statuses = || lab.env.jobs("alice").into_iter().map(|job| job["status"].clone());
    assert_eq!(statuses().collect::<Vec<_>>(), ["starting", "starting"], "neither has failed");
    assert_eq!(lab.submitted().len(), 1);
    assert_eq!(lab.shown(1)["status"], "pending");
    // A minute later nobody is submitting it any more.
    lab.env.a_minute_later("alice");
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    assert_eq!(lab.env.job("alice", 1)["extra_msgs"]["launch"]["confirmed"], true);
    let unheard = lab.env.job("alice", 2);
    assert_eq!((&unheard["status"], &unheard["error"]), (&"error".into(), &"launch".into()));
    assert_eq!(lab.submitted().len(), 2, "nothing was started twice");
}

#[test]
fn a_run_is_known_by_what_its_submission_was_answered() {
    let lab = Lab::new();
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    let known = |window| lab.env.job("alice", window)["extra_msgs"]["engine"]["id"].clone();
    assert_eq!(known(1), "1");
    // Its record is cleared away while the engine takes its time: whoever submitted it stops it, by that number.
    write_file(&lab.spool.join(".slow"), "");
    let run = lab.env.start_program(&program(), "run cave -q -- ./train", &[]);
    wait_until("it is submitted", || lab.submitted().len() == 2);
    let place = lab.place(2);
    lab.env.change(|data| {
        let user = data.user_mut(&"alice".into()).unwrap();
        assert!(user.remove_job(JobNumber(2)).is_some());
    });
    std::fs::remove_file(lab.spool.join(".slow")).unwrap();
    assert_eq!(run.wait(), 4);
    assert_eq!(std::fs::read_to_string(place.join("stopped")).unwrap(), "2");
    assert_eq!(lab.shown(1)["status"], "pending");
}

#[test]
fn it_is_stopped_exactly_and_nothing_follows_from_its_silence() {
    let lab = Lab::new();
    for _ in 0..2 {
        drop(lab.tpu("run cave -q -- ./train").exits(0));
    }
    lab.says(1, "running n7");
    lab.says(2, "running n7");
    let hidden = lab.env.path("hidden");
    std::fs::rename(&lab.spool, &hidden).unwrap();
    let unknown = lab.shown(1);
    assert_eq!(unknown["status"], "starting", "what is stored stays: {unknown}");
    assert!(unknown["unknown"].as_str().unwrap().contains("does not answer"), "{unknown}");
    drop(lab.tpu("kill 1").exits(6).says(&["does not answer", "being killed", "daemon start"]));
    drop(lab.tpu("show 1 --raw").exits(6).says(&["does not answer"]));
    drop(lab.tpu("show 1").exits(0).says(&["does not answer"]));
    drop(lab.tpu("run cave -q -- ./train").exits(6));
    std::fs::rename(&hidden, &lab.spool).unwrap();

    drop(lab.tpu("kill 1").exits(0));
    assert_eq!(lab.env.job("alice", 1)["status"], "killed");
    let state = |window| std::fs::read_to_string(lab.place(window).join("state")).unwrap();
    assert_eq!((state(1).as_str(), state(2).as_str()), ("stopped", "running n7"));
    assert_eq!(lab.shown(2)["status"], "running");

    // What is over is cleared away once its engine has answered, and what is at work stays.
    std::fs::rename(&lab.spool, &hidden).unwrap();
    drop(lab.tpu("clean alice -y").exits(6).says(&["no record was archived"]));
    std::fs::rename(&hidden, &lab.spool).unwrap();
    drop(lab.tpu("clean alice -y").exits(0));
    let left = lab.env.jobs("alice");
    assert_eq!(left.iter().map(|job| &job["windows_id"]).collect::<Vec<_>>(), [2]);
    drop(lab.tpu("kill-window 2 alice -y").exits(0));
    assert!(lab.env.jobs("alice").is_empty());
    let stopped = std::fs::read_dir(&lab.spool).unwrap().map(|job| job.unwrap().path());
    let states = stopped.map(|job| std::fs::read_to_string(job.join("state")).unwrap());
    assert_eq!(states.collect::<Vec<_>>(), ["stopped", "stopped"]);
}

#[test]
fn its_wait_is_cut_and_a_shell_opened_where_it_runs_by_its_own_engine_alone() {
    let lab = Lab::new();
    drop(lab.tpu("run cave --name llama -q -- ./train").exits(0));
    lab.says(1, "queued until 12:00");
    drop(lab.tpu("unhold 1 --dry-run").exits(0).says(&["alice/1"]));
    assert_eq!(lab.shown(1)["pending"]["reason"], "until 12:00");
    drop(lab.tpu("unhold 1").exits(0).says(&["alice/1 is held back no longer"]));
    assert_eq!(lab.shown(1)["pending"]["reason"], "behind nobody");
    drop(lab.tpu("ssh 1").exits(4).says(&["not at work there"]));
    lab.says(1, "running n7");
    drop(lab.tpu("unhold llama").exits(4).says(&["waits for nothing"]));
    for line in ["ssh 1", "ssh llama n7", "ssh alice/1 n7"] {
        assert_eq!(lab.tpu(line).exits(0).stdout, "this is n7\n", "{line}");
    }
    drop(lab.tpu("ssh 1 n8").exits(4).says(&["its nodes: n7"]));
    drop(lab.tpu("ssh 1 --command df").exits(2));
    // What runs in a window waits for nothing, and its target has no other machines.
    drop(lab.tpu("run local -q -- sleep 100").exits(0));
    drop(lab.tpu("unhold 2").exits(4).says(&["cannot hold a job back", "tpu explain 2 alice"]));
    drop(lab.tpu("ssh 2").exits(4).says(&["this machine"]));
}

#[test]
fn the_room_that_it_has_is_shown_where_targets_are_and_by_nothing_else() {
    let lab = Lab::new();
    drop(lab.tpu("register pit --kind echo --spool /nowhere").exits(0));
    write_file(&lab.env.path("spool/.room"), "3 2");
    for (window, state) in [(1, "running n7"), (2, "queued behind alice")] {
        drop(lab.tpu("run cave -q -- ./train").exits(0));
        lab.says(window, state);
    }
    let table = lab.tpu("targets").exits(0).stdout;
    let room = "open: 3 idle; 2 GPUs free; 1 (1 mine) running; 1 waiting; a day at most";
    assert!(table.contains(room) && table.contains("/nowhere does not answer"), "{table}");
    let targets = lab.tpu("targets --json").exits(0).json()["targets"].clone();
    let of = |name: &str| targets.as_array().unwrap().iter().find(|t| t["name"] == name).unwrap();
    assert_eq!(
        (&of("cave")["raw_state"], &of("cave")["room"]["idle"]),
        (&"open".into(), &3.into())
    );
    assert_eq!(of("cave")["room"]["limits"], serde_json::json!(["a day at most"]));
    assert_eq!((&of("cave")["room"]["down"], &of("pit")["room"]), (&Value::Null, &Value::Null));
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("{} monitor alice", program()));
    terminal.shows("running");
    terminal.press("2");
    terminal.shows("open: 3 idle; 2 GPUs free");

    // One that sleeps is waited for no longer than a look may take, and only by whoever wants to see its room.
    write_file(&lab.env.path("spool/.asleep"), "");
    let table = lab.tpu("targets").exits(0).stdout;
    assert!(table.contains("its engine has not answered within 3 s"), "{table}");
    drop(lab.tpu("find").exits(0));
    drop(lab.tpu("ls").exits(0));
    std::fs::remove_file(lab.env.path("spool/.asleep")).unwrap();
}

#[test]
fn no_provider_is_asked_to_make_it_or_to_take_it_away() {
    let mut lab = Lab::new();
    lab.env.set("TPU_CLOUD", "sim");
    drop(lab.tpu("sim ready cave").exits(0));
    for verb in ["delete cave -y", "reapply cave -y", "stop cave -y", "apply cave -y"] {
        drop(lab.tpu(verb).exits(4).says(&["a directory that plays an engine"]));
    }
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    lab.says(1, "running n7");
    let elsewhere = lab.env.path("elsewhere");
    let other = format!("register cave --kind echo --spool {}", elsewhere.display());
    drop(lab.tpu(&other).exits(4).says(&["alice/1", "--provider"]));
    assert_eq!(lab.shown(1)["status"], "running", "it is asked where it runs");
    drop(lab.tpu("sim list").exits(0).says(&["cave", "READY"]));
    drop(lab.tpu("targets").exits(0).says(&["cave"]));
}

#[test]
fn it_is_followed_where_it_runs_whatever_becomes_of_its_target() {
    let lab = Lab::new();
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    lab.says(1, "running n7");
    let elsewhere = lab.env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = format!("register cave --kind echo --spool {} --force", elsewhere.display());
    drop(lab.tpu(&other).exits(0));
    assert_eq!(lab.shown(1)["status"], "running");
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1, "the next one goes there");
    lab.env.change(|data| assert!(data.registry_mut().forget(&"cave".into())));
    assert_eq!(lab.shown(1)["status"], "running", "nobody knows the target any more");
    drop(lab.tpu("kill 1").exits(0));
    assert_eq!(std::fs::read_to_string(lab.place(1).join("state")).unwrap(), "stopped");
    assert_eq!(lab.shown(2)["status"], "pending");
}

#[test]
fn what_the_environment_of_its_registration_says_is_kept_with_it() {
    let mut lab = Lab::new();
    let other = lab.env.path("other");
    std::fs::create_dir(&other).unwrap();
    lab.env.set("ECHO_SPOOL", other.to_str().unwrap());
    drop(lab.tpu("register den --kind echo").exits(0));
    lab.env.unset("ECHO_SPOOL");
    drop(lab.tpu("run den -q -- ./train").exits(0));
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
}

#[test]
fn what_it_finds_by_itself_is_imported() {
    let lab = Lab::new();
    let caves = lab.env.path("caves");
    for name in ["deep.echo", "wide.echo", "cave.echo", "none"] {
        std::fs::create_dir_all(caves.join(name)).unwrap();
    }
    let import = format!("targets import --kind echo --spool {}", caves.display());
    let would = lab.tpu(&format!("{import} --dry-run")).exits(0);
    drop(would.says(&["+ deep", "+ wide", "+ cave@echo"]));
    drop(lab.tpu(&format!("{import} -y --alias '{{name}}-{{n}}'")).exits(2));
    drop(lab.tpu(&format!("{import} -y")).exits(0).says(&["Imported 3 targets"]));
    drop(lab.tpu(&format!("{import} -y")).exits(0).says(&["Nothing to import"]));
    drop(lab.tpu("run deep -q -- ./train").exits(0));
    assert_eq!(std::fs::read_dir(caves.join("deep.echo")).unwrap().count(), 1);
    drop(lab.tpu("targets import --kind echo --spool /nowhere -y").exits(6));
    drop(lab.tpu("targets import --kind ssh -y").exits(4).says(&["tpu register NAME --kind ssh"]));
}

#[test]
fn what_makes_no_sense_for_it_is_refused_with_what_would() {
    let lab = Lab::new();
    lab.env.code("alice", "staging.sh", "true\n");
    drop(lab.tpu("run cave -q").exits(4).says(&["staging.sh", "-- COMMAND"]));
    drop(lab.tpu("run local --voice loud -q -- true").exits(2).says(&["--voice"]));
    drop(lab.tpu("register den --kind echo").exits(4).says(&["--spool DIR"]));
    let help = lab.tpu("help register").exits(0);
    assert!(help.stdout.contains("--spool <DIR>"), "{}", help.stdout);
    // Its options change nothing about the list of the commands.
    let all = lab.tpu("help --all").exits(0).stdout;
    assert_eq!(all, lab.env.tpu("help --all").exits(0).stdout);
    // The program without the kind shows such a target and its job, and does nothing with them.
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    lab.says(1, "running n7");
    let seen = lab.env.tpu("check alice --json").exits(0).json();
    assert!(!seen["jobs"][0]["unknown"].is_null(), "{seen}");
    drop(lab.env.tpu("kill 1").exits(4));
    assert_eq!(lab.env.job("alice", 1)["status"], "starting");
}

#[test]
fn the_screen_shows_it_and_its_keys_stop_it() {
    let lab = Lab::new();
    let ran = lab.tpu("run cave -q -- ./train").exits(0);
    assert_eq!(ran.stdout.trim(), "Started alice/1 on cave: ./train (code of ~/code-alice)");
    drop(lab.tpu("check alice status:pending").exits(0).says(&["Window 1"]));
    drop(lab.tpu("check alice status:running").exits(0).says(&["No job is meant"]));
    let paged = lab.env.path("paged");
    std::fs::create_dir(&paged).unwrap();
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("PAGER='cp -t {}' {} monitor alice", paged.display(), program()));
    terminal.shows("pending");
    terminal.shows("behind nobody");
    terminal.shows("◌ 1 pending");
    terminal.press("/");
    terminal.types("status:pending");
    terminal.press("Enter");
    terminal.shows("▸ 1");
    lab.says(1, "running n7");
    lab.prints(1, "hello from the cave\nstep 40/100 loss 0.25\n");
    terminal.shows("No job matches");
    terminal.press("Escape");
    terminal.shows("running");
    terminal.shows("loss 0.25");
    // What it prints is beside the list, in the log, and in the person's own pager.
    terminal.shows("hello from the cave");
    terminal.press("l");
    terminal.shows("▼ follow");
    terminal.shows("hello from the cave");
    terminal.press("v");
    terminal.until("the pager has it", || {
        std::fs::read_dir(&paged).unwrap().any(|file| {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            text.contains("hello from the cave")
        })
    });
    terminal.shows("▼ follow");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    lab.env.wait_status(1, "killed");
    assert_eq!(std::fs::read_to_string(lab.place(1).join("state")).unwrap(), "stopped");
}
