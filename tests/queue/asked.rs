//! Whoever asks for what waits is told what it is, or gets what he expects of a job: nobody is told that there is none.

use crate::common::env::TPU;
use crate::common::terminal::Terminal;
use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn what_only_a_job_that_has_begun_has_is_refused_with_its_place() {
    let lab = Lab::new(1);
    lab.submit("local");
    let waits = lab.submit("local --hold --name later");
    let group = lab.submit("local --array 0-3");
    for words in [
        format!("logs {waits}"),
        "logs later".to_owned(),
        format!("logs -f {waits}"),
        format!("attach {waits}"),
        format!("resume {waits}"),
        format!("rerun {waits} --force"),
        format!("clean {waits}"),
        format!("kill-window {waits} -y"),
        format!("ignore-error {waits}"),
        format!("get-stage-dir {waits}"),
        "logs alice name:later".to_owned(),
    ] {
        let said = lab.env.tpu(&words).exits(4);
        let place = "waits in queue default at place 1: held by alice";
        let help = format!("tpu explain {waits} alice");
        drop(said.says(&[
            &format!("alice/{waits} {place}"),
            &format!("tpu dequeue {waits}"),
            &help,
        ]));
    }
    let said = lab.env.tpu(&format!("logs {group}_2")).exits(4);
    drop(said.says(&[&format!("alice/{group}_2 waits in queue default at place 2")]));
    drop(lab.env.tpu(&format!("explain {group}_2")).exits(0).says(&["members: 4 wait"]));
    drop(lab.env.tpu(&format!("history {waits}")).exits(0).says(&["queued", "in default"]));
    drop(lab.env.tpu(&format!("logs {group}_9")).exits(3));
    drop(lab.env.tpu("logs 99").exits(3));
    assert_eq!(
        (lab.waiting(), lab.running().len()),
        (vec![waits, group], 1),
        "nothing has changed"
    );
}

#[test]
fn a_wait_lasts_until_it_has_begun_and_ended() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let waits = lab.submit_what("local", "true");
    let bad = lab.submit_what("local", "false");
    drop(lab.env.tpu(&format!("wait {waits} --timeout 0s")).exits(7));
    let good = lab.env.start_tpu(&format!("wait {waits}"), &[]);
    let both = lab.env.start_tpu(&format!("wait {waits} {bad}"), &[]);
    lab.kill(first);
    assert_eq!(good.wait(), 0);
    assert_eq!(both.wait(), 1, "one of them fails");
}

#[test]
fn a_wait_for_a_group_covers_its_members_that_wait() {
    let lab = Lab::new(1);
    let group = lab.submit_what("local --array 0-2", "true");
    let wait = lab.env.tpu(&format!("wait {group} --json")).exits(0).json();
    let jobs = wait["jobs"].as_array().unwrap();
    let mut members: Vec<_> = jobs.iter().map(|job| job["member"].as_u64().unwrap()).collect();
    members.sort_unstable();
    assert_eq!(members, [0, 1, 2]);
    assert!(jobs.iter().all(|job| job["status"] == "finished"), "{jobs:#?}");

    let blocker = lab.submit("local");
    let group = lab.submit_what("local --array 0-2", "true");
    let last = lab.env.start_tpu(&format!("wait {group}_2"), &[]);
    lab.kill(blocker);
    assert_eq!(last.wait(), 0);
    assert_eq!(lab.env.queued(), 0);
}

#[test]
fn a_wait_for_what_is_taken_out_ends() {
    let lab = Lab::new(1);
    lab.submit("local");
    let waits = lab.submit("local");
    lab.pauses("default", true);
    let spoken = lab.env.start_tpu(&format!("wait {waits}"), &[]);
    drop(lab.env.tpu(&format!("dequeue {waits} -y")).exits(0));
    assert_eq!(spoken.wait(), 3);
}

#[test]
fn a_wait_goes_on_with_the_number_that_it_got() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let waits = lab.submit_what("local", "true");
    lab.env.tmux().run(&["new-window", "-d", "-t", &format!("alice:{waits}"), "sleep 1000"]);
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("{TPU} wait {waits}; echo code-$?"));
    // It knows by now whom it was told to wait for.
    terminal.shows(&format!("alice/{waits} queued"));
    lab.kill(first);
    drop(lab.env.tpu("queue run --once").exits(0));
    terminal.shows("code-0");
    assert!(lab.env.jobs("alice").iter().all(|job| job["windows_id"] != waits));
}

#[test]
fn a_kill_takes_out_what_is_called_and_lets_nothing_begin_instead() {
    let lab = Lab::new(1);
    let runs = lab.submit("local");
    let group = lab.submit("local --array 0-3 tag=zz");
    let other = lab.submit("local tag=yy");
    lab.env.code("bob", "run.sh", "exec sleep 1000\n");
    lab.submit("bob local");
    let would = lab.env.tpu(&format!("kill {group}_2 --dry-run")).exits(0);
    drop(would.says(&[&format!("Would take out of the queue alice/{group}_2")]));
    let members = |lab: &Lab| lab.queue()["entries"][0]["members"].clone();
    drop(
        lab.env
            .tpu(&format!("kill {group}_[1-2] -y"))
            .exits(0)
            .says(&["2 members of alice/2 wait no more"]),
    );
    assert_eq!(members(&lab), serde_json::json!([0, 3]));
    drop(lab.env.tpu("kill tag:yy -y").exits(0));
    assert!(!lab.waiting().contains(&other));
    drop(lab.env.tpu("kill --all -y").exits(0).says(&[&format!("Killed alice/{runs}")]));
    wait_until("bob's begins", || lab.env.jobs("bob").len() == 1);
    assert_eq!((lab.env.queued(), lab.running().len()), (0, 0), "nothing of alice's is left");
}
