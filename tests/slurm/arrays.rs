//! A group is one array of Slurm: one submission, one line, and each of its tasks a member that is stopped, brought back
//! and followed by itself.

use serde_json::json;

use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

use super::lab::Lab;

impl Lab {
    /// Starts a group; its number.
    #[track_caller]
    fn array(&self, tasks: &str, options: &str, script: &str) -> u64 {
        let fixed = ["run", "gpu", "alice", "-q", "--array", tasks];
        let words = fixed.into_iter().chain(options.split_whitespace());
        let words: Vec<&str> = words.chain(["--", "bash", "-c", script, "job"]).collect();
        let said = self.env.tpu_words(&words).exits(0).stdout;
        let (_, rest) = said.split_once("group alice/").unwrap_or_else(|| panic!("{said}"));
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    /// How a member is shown.
    #[track_caller]
    fn member(&self, group: u64, member: u64) -> serde_json::Value {
        let shown = self.tpu(&format!("check {group}_{member} --json")).exits(0).json();
        assert_eq!(shown["jobs"].as_array().unwrap().len(), 1, "{shown}");
        shown["jobs"][0].clone()
    }
}

#[test]
fn its_tasks_are_members_which_know_who_they_are() {
    let Some(lab) = Lab::new() else { return };
    let told = lab.env.path("told").display().to_string();
    let script = format!(
        "echo \"$TPU_MEMBER $TPU_GROUP $SLURM_ARRAY_TASK_ID $TPU_JOB\" >>{told}-$TPU_MEMBER; \
         echo step $TPU_MEMBER/10 loss 0.$TPU_MEMBER; [ $TPU_MEMBER != 5 ] || exit 7"
    );
    let group = lab.array("1,3,5", "", &script);
    assert_eq!(lab.cluster.submissions().len(), 1);
    for (place, member) in [1, 3, 5].into_iter().enumerate() {
        wait_until("its end", || {
            let status = lab.member(group, member)["status"].clone();
            status == "finished" || status == "error"
        });
        let window = group + 1 + place as u64;
        let text = std::fs::read_to_string(format!("{told}-{member}")).unwrap();
        assert_eq!(text, format!("{member} {group} {member} alice/{window}\n"));
        let shown = lab.member(group, member);
        let who = (&shown["window"], &shown["group"], &shown["member"]);
        assert_eq!(who, (&json!(window), &json!(group), &json!(member)));
        assert_eq!(shown["progress"]["step"], member, "its own log: {shown}");
    }
    let failed = lab.member(group, 5);
    assert_eq!((&failed["status"], &failed["exit_code"]), (&json!("error"), &json!(7)));
    // The one that failed comes back as itself.
    drop(lab.tpu(&format!("rerun {group}_5")).exits(0));
    wait_until("it has run again", || {
        std::fs::read_to_string(format!("{told}-5")).unwrap().lines().count() == 2
    });
    let text = std::fs::read_to_string(format!("{told}-5")).unwrap();
    assert!(text.lines().all(|line| line.starts_with(&format!("5 {group} "))), "{text}");
}

#[test]
fn so_many_at_once_and_the_others_say_that_they_wait_for_those() {
    let Some(lab) = Lab::new() else { return };
    let group = lab.array("0-9%2", "", "sleep 1000");
    wait_until("two are running", || {
        lab.cluster.jobs().iter().filter(|job| job.state == "RUNNING").count() == 2
    });
    let waits = lab.member(group, 9);
    assert_eq!(waits["status"], "pending", "{waits}");
    assert!(waits["pending"]["reason"].is_string(), "{waits}");
    assert_eq!(lab.cluster.submissions().len(), 1);
    drop(lab.tpu("check").exits(0).says(&["10 members", "2 running", "8 pending"]));
    // One that runs, one that waits, and then all that are left.
    drop(lab.tpu(&format!("kill {group}_0 -y")).exits(0));
    drop(lab.tpu(&format!("kill {group}_7 -y")).exits(0));
    assert_eq!(lab.member(group, 0)["status"], "killed");
    assert_eq!(lab.member(group, 7)["status"], "killed");
    wait_until("the next one runs", || lab.member(group, 2)["status"] == "running");
    assert_eq!(lab.member(group, 1)["status"], "running");
    drop(lab.tpu(&format!("kill {group} -y")).exits(0));
    wait_until("none is left", || lab.cluster.jobs().iter().all(|job| job.state == "CANCELLED"));
}

/// With 1,000 tasks, and one question of Slurm for all of them.
#[test]
fn a_thousand_tasks_are_one_submission_one_line_and_one_question() {
    let Some(mut lab) = Lab::new() else { return };
    let group = lab.array("0-999%8", "", "sleep 1000");
    assert_eq!(lab.cluster.submissions().len(), 1);
    assert_eq!(lab.env.jobs("alice").len(), 1000);
    wait_until("eight are running", || {
        lab.cluster.jobs().iter().filter(|job| job.state == "RUNNING").count() == 8
    });
    let shown = lab.tpu("check").exits(0).stdout;
    assert!(shown.contains("1000 members: 8 running, 992 pending"), "{shown}");
    assert!(!shown.contains("tmux"), "nobody misses a tmux server: {shown}");
    // Every program of Slurm that is started from here on is counted.
    let (bin, calls) = (lab.env.path("bin"), lab.env.path("calls"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["squeue", "sacct", "scontrol", "sinfo", "scancel", "sbatch"] {
        let script =
            format!("echo {name} \"$@\" >>{}\nexec /usr/bin/{name} \"$@\"", calls.display());
        write_script(&bin.join(name), &script);
    }
    let path = lab.env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap().to_owned();
    lab.env.set("PATH", format!("{}:{path}", bin.display()));
    let shown = lab.tpu(&format!("check {group}_[0-999] --json")).exits(0).json();
    let jobs = shown["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1000);
    let count = |status: &str| jobs.iter().filter(|job| job["status"] == status).count();
    assert_eq!((count("running"), count("pending")), (8, 992));
    let asked = std::fs::read_to_string(&calls).unwrap();
    assert_eq!(asked.lines().filter(|call| call.starts_with("squeue ")).count(), 1, "{asked}");
    assert_eq!(asked.lines().count(), 1, "nobody else is asked: {asked}");
}
