//! A group of jobs on an engine: its members start together, each is a job as any other, and one that comes back is
//! the same member.

use serde_json::{Value, json};

use super::added::{Lab, program};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// The newest attempt of a member.
fn member(lab: &Lab, member: u64) -> Value {
    let shown = lab.tpu(&format!("check 1_{member} --json")).exits(0).json();
    let jobs = shown["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs[0].clone()
}

fn run(lab: &Lab, words: &str) {
    let ran = lab.tpu(&format!("run cave --array 0-3 rule=pre -q {words} -- ./train")).exits(0);
    drop(ran.says(&["group alice/1", "members 1_0 to 1_3 are jobs 2 to 5"]));
}

#[test]
fn its_members_start_together_and_one_that_is_preempted_comes_back_as_itself() {
    let lab = Lab::new();
    run(&lab, "");
    assert_eq!(lab.submitted().len(), 4);
    for (window, index) in [(2, 0), (3, 1), (4, 2), (5, 3)] {
        let told = std::fs::read_to_string(lab.place(window).join("env")).unwrap();
        assert!(told.contains(&format!("TPU_GROUP=1\nTPU_MEMBER={index}\n")), "{told}");
        let seen = member(&lab, index);
        let who = (&seen["window"], &seen["group"], &seen["member"]);
        assert_eq!(who, (&json!(window), &json!(1), &json!(index)));
    }
    for window in 2..=5 {
        lab.says(window, "running n7");
    }
    lab.prints(3, "step 40/100 loss 0.25\n");
    let _monitor = lab.monitor();
    lab.env.wait_status(3, "running");
    lab.says(3, "preempted by somebody of higher rank");
    lab.env.wait_status(3, "resumed");
    let second = wait_for("the next attempt", || lab.env.jobs("alice").get(4).cloned());
    assert_eq!((&second["windows_id"], &second["extra_msgs"]["father"]), (&json!(6), &json!(3)));
    wait_until("it is submitted", || lab.submitted().len() == 5);
    let told = std::fs::read_to_string(lab.place(6).join("env")).unwrap();
    assert!(told.contains("TPU_GROUP=1\nTPU_MEMBER=1\n"), "the same member: {told}");
    let seen = member(&lab, 1);
    assert_eq!((&seen["window"], &seen["member"]), (&json!(6), &json!(1)));

    // One is stopped by its name, and then all that are left by that of the group.
    let state = |window| std::fs::read_to_string(lab.place(window).join("state")).unwrap();
    drop(lab.tpu("kill 1_1 -y").exits(0).says(&["alice/6"]));
    assert_eq!([2, 6].map(state), ["running n7", "stopped"]);
    drop(lab.tpu("kill 1 -y").exits(0).says(&["alice/2", "alice/4", "alice/5"]));
    assert_eq!([2, 4, 5].map(state), ["stopped", "stopped", "stopped"]);
    drop(lab.tpu("wait 1 --timeout 20s").exits(1).says(&["alice/6 is killed"]));
}

/// What keeps one of them from ending keeps none of the others, and the wish to end it stands.
#[test]
fn its_members_are_stopped_together_and_one_that_cannot_be_stays_by_itself() {
    let lab = Lab::new();
    run(&lab, "");
    for window in 2..=5 {
        lab.says(window, "running n7");
    }
    let in_the_way = lab.place(4).join("stopped");
    std::fs::create_dir(&in_the_way).unwrap();
    // Two transactions: what is wished for, and what came of it. A third one would end the program.
    let points = ("FAILPOINTS", "txn-read=2*off->panic(a third transaction)");
    let kill = |lab: &Lab| {
        let words = ["kill", "1", "-y"];
        lab.env.output(&lab.env.spawn_program(&program(), &words).env(points.0, points.1))
    };
    drop(kill(&lab).exits(1).says(&["alice/2", "alice/3", "alice/5"]));
    let state = |window| std::fs::read_to_string(lab.place(window).join("state")).unwrap();
    assert_eq!([2, 3, 4, 5].map(state), ["stopped", "stopped", "running n7", "stopped"]);
    let job = |window| lab.env.job("alice", window);
    assert_eq!([2, 3, 5].map(|window| job(window)["status"].clone()), ["killed"; 3]);
    assert_eq!(job(4)["extra_msgs"]["intent"]["action"], "killing", "{}", job(4));
    assert_ne!(job(4)["status"], "killed");
    // Nobody is at it any more: the daemon would go on, and so does who repeats it.
    std::fs::remove_dir(in_the_way).unwrap();
    drop(kill(&lab).exits(0).says(&["alice/4"]));
    assert_eq!((state(4).as_str(), &job(4)["status"]), ("stopped", &json!("killed")));
}

#[test]
fn its_members_run_from_one_copy_of_the_code_until_one_is_run_anew() {
    let lab = Lab::new();
    lab.env.code("alice", "train", "echo step\n");
    run(&lab, "");
    let dirs = |of: &str| {
        let jobs = lab.env.jobs("alice");
        jobs.iter().map(|job| job[of].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (stages, mut logs) = (dirs("stage_dir"), dirs("log_dir"));
    assert!(stages.iter().all(|stage| *stage == stages[0]), "{stages:?}");
    let train = std::fs::read_to_string(std::path::Path::new(&stages[0]).join("train"));
    assert_eq!(train.unwrap(), "echo step\n");
    logs.dedup();
    assert_eq!(logs.len(), 4, "each logs for itself");
    let told = std::fs::read_to_string(lab.place(5).join("env")).unwrap();
    assert!(told.contains(&format!("TPU_STAGE_DIR={}\n", stages[0])), "{told}");
    lab.env.code("alice", "train", "echo better\n");
    lab.says(3, "ended 1");
    drop(lab.tpu("rerun 1_1").exits(0));
    assert_ne!(dirs("stage_dir")[4], stages[0], "the code as it is now");
}

#[test]
fn how_many_run_at_once_is_told_to_the_engine_and_refused_where_all_begin() {
    let lab = Lab::new();
    let line = "run cave --array 0-3%2 -q -- ./train";
    let would = lab.tpu(&line.replace("-q", "-q --dry-run")).exits(0);
    drop(would.says(&["0-3%2", "./train\n%2"]));
    drop(lab.tpu(line).exits(0));
    assert_eq!(lab.submitted(), ["./train\n%2"; 4]);
    let refused = lab.tpu("run local --array 0-3%2 -q -- true").exits(4);
    drop(refused.says(&["local starts all members of a group at once", "leave out %2"]));
}

#[test]
fn its_number_means_all_of_them_wherever_several_are_meant() {
    let lab = Lab::new();
    run(&lab, "--name llama");
    drop(lab.tpu("add-tag 1 sweep").exits(0).says(&["alice/2", "alice/5"]));
    drop(lab.tpu("add-tag 1_2 best").exits(0).says(&["alice/4: best"]));
    assert_eq!([4, 5].map(|w| lab.env.job("alice", w)["job_tags"].clone()), ["best", "sweep"]);
    for line in ["check 1 --json", "check llama --json", "check 1_[0-9] --json", "check 2-5 --json"]
    {
        let shown = lab.tpu(line).exits(0).json();
        assert_eq!(shown["jobs"].as_array().unwrap().len(), 4, "{line}");
    }
    lab.says(2, "running n1");
    lab.prints(2, "loss 0.5\n");
    drop(lab.tpu("logs 1_0").exits(0).says(&["loss 0.5"]));
    drop(lab.tpu("logs 1").exits(2).says(&["group of 4 jobs", "1_0"]));
    drop(lab.tpu("explain 1_9").exits(3).says(&["1_9"]));
    drop(lab.tpu("explain 7_0").exits(3));
    // Another user's request means none of them.
    drop(lab.tpu("kill bob/1_0 -y").exits(3));
    drop(lab.tpu("kill 1 bob -y").exits(3));
    drop(lab.tpu("explain alice 7_0").exits(3));
    for window in [3, 4] {
        lab.says(window, "ended 1");
    }
    lab.says(5, "ended 0");
    // A resume is of those that failed, and so are the others left alone.
    drop(lab.tpu("resume 1 --yes --dry-run").exits(0).says(&["alice/3 (llama), alice/4 (llama)"]));
    drop(lab.tpu("rerun 1 --yes").exits(0).says(&["as alice/6", "as alice/7"]));
    assert_eq!(member(&lab, 1)["window"], 6);
    drop(lab.tpu("clean 1 --dry-run").exits(0).says(&["job 5"]));
    drop(lab.tpu("clean 1 -y").exits(0).says(&["Archived 1 job", "Kept alice/2"]));
    // Its number stays its own while a member has it, and nobody gets it afterwards.
    drop(lab.tpu("kill llama -y").exits(0).says(&["alice/2", "alice/6", "alice/7"]));
    drop(lab.tpu("clean 1_0 -y").exits(0));
    drop(lab.tpu("clean alice -y").exits(0));
    assert!(lab.env.jobs("alice").is_empty());
    drop(lab.tpu("run cave -q -- ./train").exits(0).says(&["alice/8"]));
}

#[test]
fn lists_fold_it_into_one_row_with_the_worst_first() {
    let lab = Lab::new();
    run(&lab, "--name llama");
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    for (window, state) in [(2, "running n1"), (3, "running n1"), (4, "ended 1")] {
        lab.says(window, state);
    }
    let counts = "4 members: 1 error, 2 running, 1 pending";
    let shown = lab.tpu("check").exits(0).stdout;
    assert!(shown.contains("Group 1 ") && shown.contains(counts), "{shown}");
    assert!(shown.contains("Window 6") && !shown.contains("Window 2"), "{shown}");
    let table = lab.tpu("check-simp").exits(0).stdout;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().any(|l| l.starts_with("1  ") && l.contains(counts)), "{table}");
    for line in ["check-simp 1", "check-simp --members", "check-simp llama"] {
        let table = lab.tpu(line).exits(0).stdout;
        let members = ["1_0  ", "1_1  ", "1_2  ", "1_3  "];
        assert!(members.iter().all(|m| table.contains(m)) && !table.contains(counts), "{table}");
    }
    let all = lab.tpu("check --json").exits(0).json();
    assert_eq!(all["jobs"].as_array().unwrap().len(), 5, "one by one");
    // An earlier attempt has its number, and is folded away with its member.
    drop(lab.tpu("rerun 1_2").exits(0));
    let table = lab.tpu("check-simp").exits(0).stdout;
    assert!(table.contains("4 members: 2 running, 2 pending"), "{table}");
    let table = lab.tpu("check-simp --members").exits(0).stdout;
    assert!(table.contains("\n4  ") && table.contains("\n1_2  "), "{table}");
    // One that is alone is shown as itself.
    drop(lab.tpu("run cave --array 7 -q -- ./train").exits(0));
    assert!(lab.tpu("check-simp").exits(0).stdout.contains("\n8_7"));
}

#[test]
fn the_screen_folds_and_unfolds_it_and_stops_all_or_one() {
    let lab = Lab::new();
    run(&lab, "");
    for (window, state) in [(2, "running n1"), (3, "running n1"), (4, "ended 1")] {
        lab.says(window, state);
    }
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("{} monitor alice", program()));
    terminal.shows("1 ×4");
    terminal.shows("1 error, 2 running, 1 pending");
    terminal.press("Right");
    terminal.shows("▸ 1 ×4");
    terminal.press("j");
    terminal.shows("▸ 1_0");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    lab.env.wait_status(2, "killed");
    terminal.shows("○ 1 killed");
    // From a member back to its group.
    terminal.press("Left");
    terminal.shows("▸ 1 ×4");
    terminal.press("x");
    terminal.shows("Stop 3 jobs?");
    terminal.press("y");
    for window in [3, 5] {
        lab.env.wait_status(window, "killed");
    }
    // It had ended by itself, which was not written down yet.
    assert_eq!(lab.env.job("alice", 4)["status"], "error");
}

#[test]
fn what_cannot_be_a_group_is_refused_and_leaves_nothing() {
    let lab = Lab::new();
    drop(
        lab.tpu("run v2-1 --array 0-3 -q --force -- ./train").exits(4).says(&["one job at a time"]),
    );
    drop(lab.tpu("run v2-32 --auto --array 0-3 -q -- ./train").exits(4).says(&["one target"]));
    for array in ["x", "3-1", "0-1000", "0,,1", "[0-1]", "", "0-3%0"] {
        let words = ["run", "cave", "--array", array, "-q", "--", "./train"];
        let spawn = lab.env.spawn_program(&program(), &words);
        drop(lab.env.output(&spawn).exits(2).says(&["--array"]));
    }
    let planned =
        lab.tpu("run cave --array 0,2,5-7 -q --dry-run --json -- ./train").exits(0).json();
    assert_eq!(planned["plan"]["members"], json!([0, 2, 5, 6, 7]));
    assert!(lab.env.jobs("alice").is_empty());
    // Nothing is claimed where the engine does not answer.
    let hidden = lab.env.path("hidden");
    std::fs::rename(lab.env.path("spool"), &hidden).unwrap();
    drop(lab.tpu("run cave --array 0-3 -q -- ./train").exits(6));
    assert!(lab.env.jobs("alice").is_empty());
}

#[test]
fn a_thousand_members_are_one_command() {
    let lab = Lab::new();
    drop(lab.tpu("run cave --array 0-299 -q -- ./train").exits(0).says(&["300 jobs"]));
    assert_eq!((lab.env.jobs("alice").len(), lab.submitted().len()), (300, 300));
    let shown = lab.tpu("check 1_[0-299] --json").exits(0).json();
    let jobs = shown["jobs"].as_array().unwrap();
    assert!(jobs.iter().all(|job| job["status"] == "pending"), "none is taken for a failed launch");
}

/// As long as the copies of the code take, all that wait for them are said to be on their way; and what is killed
/// meanwhile is not handed over: nobody would look at it again.
#[test]
fn members_are_kept_while_their_code_is_copied_and_a_kill_before_the_engine_has_them_holds() {
    let lab = Lab::new();
    let far = lab.env.path("spool").join(".far");
    write_file(&far, "");
    let running = lab.env.start_program(&program(), "run cave --array 0-1 -q -- ./train", &[]);
    let begun = || {
        let jobs = lab.env.jobs("alice");
        let at = |job: &Value| job["extra_msgs"]["launch"]["at"].as_str().unwrap().to_owned();
        jobs.iter().map(at).collect::<Vec<_>>()
    };
    wait_until("the records", || begun().len() == 2);
    let first = begun();
    wait_until("both are on their way still", || {
        begun().iter().zip(&first).all(|(now, then)| now > then)
    });
    drop(lab.tpu("kill 1 -y").exits(0));
    std::fs::remove_file(far).unwrap();
    assert_eq!(running.wait(), 4);
    assert!(lab.submitted().is_empty());
    assert!(lab.env.jobs("alice").iter().all(|job| job["status"] == "killed"));
}

/// A member that a rule is about to bring back is one of them: whoever kills all does not want it back.
#[test]
fn a_kill_of_all_means_also_what_a_rule_would_bring_back() {
    let lab = Lab::new();
    run(&lab, "");
    lab.says(2, "running n7");
    lab.says(3, "preempted by somebody of higher rank");
    let killed = lab.tpu("kill 1 -y").exits(0);
    drop(killed.says(&["alice/2", "alice/3", "alice/4", "alice/5"]));
    let monitor = lab.monitor();
    wait_until("the daemon has looked", || lab.tpu("daemon status").code == 0);
    drop(lab.tpu("ack").exits(0));
    wait_until("it has been heard", || lab.env.data()["ack_MONITOR"] != true);
    drop(monitor);
    assert_eq!(lab.env.jobs("alice").len(), 4, "nothing has come back");
}
