//! A group is one array of Slurm: one submission, one line, and each of its tasks a member that is stopped, brought back
//! and followed by itself.

use serde_json::json;

use crate::common::wait::wait_until;

use super::cluster::Listed;
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

    /// From here on every program of Slurm that the user starts is noted.
    fn count_calls(&mut self) {
        let calls = self.env.path("calls").display().to_string();
        for name in ["squeue", "sacct", "scontrol", "sinfo", "scancel", "sbatch"] {
            let script = format!("echo {name} \"$@\" >>{calls}\nexec /usr/bin/{name} \"$@\"");
            self.replace(name, &script);
        }
    }

    /// The calls that were noted, oldest first.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
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
    lab.count_calls();
    let shown = lab.tpu(&format!("check {group}_[0-999] --json")).exits(0).json();
    let jobs = shown["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1000);
    let count = |status: &str| jobs.iter().filter(|job| job["status"] == status).count();
    assert_eq!((count("running"), count("pending")), (8, 992));
    let asked = lab.calls();
    assert!(matches!(&asked[..], [one] if one.starts_with("squeue ")), "nobody else: {asked:?}");
}

/// Exactly its tasks, and each of them: one has ended, two have another name by now, and others have its name.
#[test]
fn a_group_is_killed_by_one_call_for_those_that_wait_and_one_for_those_that_run() {
    let Some(mut lab) = Lab::new() else { return };
    let script = "[ $TPU_MEMBER != 3 ] || exit 7; sleep 1000";
    let group = lab.array("0-199%8", "", script);
    let task = |lab: &Lab, task: &str| lab.cluster.jobs().into_iter().find(|j| j.tasks == task);
    // The first eight, and then another one in the place of what has ended.
    for (number, state) in [("3", "FAILED"), ("7", "RUNNING"), ("8", "RUNNING")] {
        wait_until(&format!("task {number} is {state}"), || {
            task(&lab, number).is_some_and(|job| job.state == state)
        });
    }
    let one = task(&lab, "5").unwrap();
    for id in [one.id.to_string(), format!("{}_150", one.submitted)] {
        lab.cluster.run(&["scontrol", "update", &format!("jobid={id}"), "jobname=theirs"]);
    }
    let name = format!("--job-name={}", one.name);
    let theirs = [
        lab.cluster.submit(&[&name, "--hold"], "true"),
        lab.cluster.submit(&[&name, "--hold", "--array=0-9"], "true"),
        lab.cluster.submit(&["--hold"], "true"),
    ];
    lab.count_calls();

    // Into silence: the wish stands in every record, and nothing else has changed.
    // By their numbers: what has ended is meant as well.
    let kill = format!("kill {}-{} -y", group + 1, group + 200);
    lab.cluster.hold_controller(true);
    drop(lab.tpu(&kill).exits(6).says(&["counts as being killed"]));
    lab.cluster.hold_controller(false);
    let jobs = lab.env.jobs("alice");
    assert!(jobs.iter().all(|job| job["extra_msgs"]["intent"]["action"] == "killing"));
    assert!(jobs.iter().all(|job| job["status"] != "killed"));
    let cancels = |lab: &Lab| {
        let calls = lab.calls();
        calls.into_iter().filter(|call| call.starts_with("scancel ")).collect::<Vec<_>>()
    };
    assert_eq!(cancels(&lab), Vec::<String>::new());

    // Two transactions: what is wished for, and what came of it. A third one would end the program.
    let points = ("FAILPOINTS", "txn-read=2*off->panic(a third transaction)");
    let words: Vec<&str> = kill.split(' ').collect();
    let killed = lab.env.spawn(&words).env(points.0, points.1);
    // Under the number of one of them there is another job now, and it gives signs of life itself: it may be at work.
    let open = group + 1 + 5;
    let killed = lab.env.output(&killed).exits(6).says(&[&format!("alice/{open} is at work")]);
    let lines = killed.stdout.lines().filter(|line| line.starts_with("Killed alice/"));
    assert_eq!(lines.count(), 199, "{}", killed.stdout);
    let cancels = cancels(&lab);
    let base = one.submitted;
    assert_eq!(cancels.len(), 2, "{cancels:?}");
    assert_eq!(cancels[0], format!("scancel {base}_[9-149,151-199]"));
    assert!(cancels[1].starts_with(&format!("scancel --name={} ", one.name)), "{cancels:?}");
    assert_eq!(cancels[1].split(' ').count(), 2 + 7, "{cancels:?}");
    let mut jobs = lab.env.jobs("alice");
    jobs.retain(|job| job["windows_id"] != open);
    assert!(jobs.len() == 199 && jobs.iter().all(|job| job["status"] == "killed"));
    assert!(jobs.iter().all(|job| job["extra_msgs"]["intent"].is_null()));
    let is_open = |job: &&Listed| ["PENDING", "RUNNING"].contains(&job.state.as_str());
    let left: Vec<Listed> = lab.cluster.jobs().iter().filter(is_open).cloned().collect();
    assert!(left.iter().all(|job| job.name == "theirs" || theirs.contains(&job.submitted)));
    assert_eq!(left.iter().filter(|job| job.name == "theirs").count(), 2, "{left:?}");
    assert_eq!(left.iter().filter(|job| theirs.contains(&job.submitted)).count(), 3, "{left:?}");
}
