//! What happens at an engine without our doing is followed, and what we do there is not taken for that.

use std::net::TcpListener;
use std::time::Duration;

use tpu_core::model::ids::JobId;
use tpu_core::model::time::Timestamp;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use super::added::{Lab, program};
use crate::common::sim::ZONE;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// What the runtime prints when it has lost a member.
const LOST: &str = "step 40/100 loss 0.25\nUNAVAILABLE: failed to connect to all addresses\n";

#[test]
fn what_somebody_stops_there_is_killed_and_does_not_come_back() {
    let lab = Lab::new();
    drop(lab.tpu("run cave rule=lost:resume,unknown:resume,grpc:resume -q -- ./train").exits(0));
    lab.says(1, "running n7");
    lab.prints(1, LOST);
    lab.says(1, "cancelled by uid 1001");
    let shown = lab.shown(1);
    assert_eq!(shown["status"], "killed");
    assert_eq!(shown["evidence"]["source"], "engine");
    assert_eq!(shown["evidence"]["line"], "cancelled by uid 1001");
    let monitor = lab.monitor();
    lab.env.wait_status(1, "killed");
    drop(lab.tpu("ack").exits(0));
    wait_until("it has been heard", || lab.env.data()["ack_MONITOR"] != true);
    drop(monitor);
    assert_eq!(lab.env.jobs("alice").len(), 1);
    // The engine forgets it, and the record does not.
    std::fs::remove_dir_all(lab.place(1)).unwrap();
    drop(lab.tpu("explain 1").exits(0).says(&["alice/1 is killed", "cancelled by uid 1001"]));
}

#[test]
fn what_it_begins_anew_by_itself_is_one_more_attempt_and_no_second_submission() {
    let lab = Lab::new();
    drop(lab.tpu("run cave rule=pre -q -- ./train").exits(0));
    let monitor = lab.monitor();
    lab.says(1, "running n7");
    lab.prints(1, "step 40/100 loss 0.25\n");
    lab.env.wait_status(1, "running");
    let recovery = || lab.env.job("alice", 1)["extra_msgs"]["recovery"].clone();
    for (restarts, capacity) in [(1, 1), (4, 4)] {
        write_file(&lab.place(1).join("restarts"), &restarts.to_string());
        lab.says(1, "queued until its node is there again");
        assert_eq!(lab.shown(1)["restarts"], restarts);
        wait_until("it is counted", || recovery()["restarts"] == restarts);
        assert_eq!(recovery()["capacity"], capacity);
    }
    assert_eq!(recovery()["best_step"], 40);
    let shown = lab.tpu("check 1").exits(0).stdout;
    assert!(shown.contains("restarts: 4") && shown.contains("until its node"), "{shown}");
    drop(lab.tpu("history 1").exits(0).says(&["begun it anew by itself, 4 times so far"]));
    lab.says(1, "running n8");
    assert_eq!(lab.shown(1)["status"], "running");
    lab.says(1, "ended 0");
    lab.env.wait_status(1, "finished");
    drop(monitor);
    assert_eq!((lab.env.jobs("alice").len(), lab.submitted().len()), (1, 1));
}

#[test]
fn what_was_lost_with_its_node_does_not_begin_there_for_an_hour() {
    let lab = Lab::new();
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    lab.says(1, "lost n7");
    drop(lab.tpu("resume 1 --yes --dry-run").exits(0).says(&["avoids     n7 until 20"]));
    drop(lab.tpu("resume 1 --yes").exits(0));
    lab.says(2, "lost n8");
    drop(lab.tpu("resume 2 --yes").exits(0));
    lab.env.change(|data| {
        let job = data.job_mut(&JobId::parse("alice/3").unwrap()).unwrap();
        let avoid = &mut job.recovery.as_mut().unwrap().avoid;
        assert_eq!(avoid.iter().map(|(node, _)| node.as_str()).collect::<Vec<_>>(), ["n7", "n8"]);
        avoid[0].1 = Timestamp::from_second(0);
    });
    lab.says(3, "ended 1");
    drop(lab.tpu("rerun 3").exits(0));
    let submitted = |window| std::fs::read_to_string(lab.place(window).join("argv")).unwrap();
    assert_eq!([2, 3, 4].map(submitted), ["./train\n!n7", "./train\n!n7\n!n8", "./train\n!n8"]);
}

#[test]
fn what_it_has_lost_takes_no_place_under_the_limit_of_its_user() {
    let lab = Lab::new();
    drop(lab.tpu("set-settings max_parallel 1 alice").exits(0));
    let run = "run cave rule=pass -q -- ./train";
    drop(lab.tpu(run).exits(0));
    lab.says(1, "running n7");
    drop(lab.tpu(run).exits(4).says(&["alice/1"]));
    lab.says(1, "lost n7");
    let monitor = lab.monitor();
    lab.env.wait_status(1, "error");
    let is_over = || lab.env.job("alice", 1)["extra_msgs"]["launch"]["over"] == true;
    wait_until("it is known to be over", is_over);
    // Its engine may take that back.
    lab.says(1, "running n7");
    drop(lab.tpu("ack").exits(0));
    wait_until("it is known to be at work", || !is_over());
    drop(lab.tpu(run).exits(4).says(&["alice/1"]));
    lab.says(1, "lost n7");
    wait_until("it is over again", is_over);
    drop(monitor);
    drop(lab.tpu(run).exits(0));
}

/// Two that sleep would take two deadlines one after the other, and without one for ever.
#[test]
fn engines_are_asked_side_by_side_and_those_that_are_late_hold_nobody_up() {
    let lab = Lab::new();
    let sleepers = ["den", "pit"].map(|name| {
        let spool = lab.env.path(name);
        std::fs::create_dir(&spool).unwrap();
        let register = format!("register {name} --kind echo --spool {}", spool.display());
        drop(lab.tpu(&register).exits(0));
        drop(lab.tpu(&format!("run {name} -q -- ./train")).exits(0));
        spool
    });
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    lab.says(3, "running n7");
    for spool in &sleepers {
        write_file(&spool.join(".asleep"), "");
    }
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let jobs = lab.tpu("check alice --json").exits(0).json();
    let took = clock.monotonic().saturating_sub(begun);
    assert!(took < Duration::from_secs(6), "{took:?}");
    for late in [0, 1] {
        let why = jobs["jobs"][late]["unknown"].as_str().unwrap();
        assert_eq!(why, "its engine has not answered within 3 s");
    }
    assert_eq!(jobs["jobs"][2]["status"], "running");
    for spool in &sleepers {
        std::fs::remove_file(spool.join(".asleep")).unwrap();
    }
    assert_eq!(lab.shown(1)["status"], "pending");
}

/// Whoever looks between the stop of what is left and the next attempt must not take it for somebody's wish.
#[test]
fn what_a_resume_stops_is_not_taken_for_a_wish_to_end_it() {
    let lab = Lab::new();
    drop(lab.tpu("run cave rule=grpc:resume -q -- ./train").exits(0));
    lab.says(1, "running n7");
    lab.prints(1, LOST);
    assert_eq!(lab.shown(1)["error"], "grpc");
    let points = [("FAILPOINTS", "resume-stopped=pause")];
    let resume = lab.env.start_program(&program(), "resume 1 --yes", &points);
    wait_until("it is stopped", || lab.place(1).join("stopped").exists());
    resume.kill();
    let shown = lab.shown(1);
    assert_eq!((&shown["status"], &shown["error"]), (&"error".into(), &"grpc".into()));
    let _monitor = lab.monitor();
    lab.env.wait_status(1, "resumed");
}

/// Said while nobody hears it, and done once when somebody does.
#[test]
fn a_wish_to_end_it_outlasts_the_silence_of_its_engine() {
    let lab = Lab::new();
    for _ in 0..2 {
        drop(lab.tpu("run cave -q -- ./train").exits(0));
    }
    lab.says(1, "running n7");
    lab.says(2, "running n7");
    let monitor = lab.monitor();
    lab.env.wait_status(1, "running");
    let hidden = lab.env.path("hidden");
    std::fs::rename(&lab.spool, &hidden).unwrap();
    drop(lab.tpu("kill 1").exits(6).says(&["the daemon continues it"]));
    assert_eq!(lab.env.job("alice", 1)["status"], "running");
    assert_eq!(lab.shown(1)["intent"], "killing");
    std::fs::rename(&hidden, &lab.spool).unwrap();
    lab.env.wait_status(1, "killed");
    drop(monitor);
    let state = |window| std::fs::read_to_string(lab.place(window).join("state")).unwrap();
    assert_eq!((state(1).as_str(), state(2).as_str()), ("stopped", "running n7"));
}

/// Nobody has to say that what is taken away is to come back; whoever does say something has the last word.
#[test]
fn where_places_are_taken_away_it_comes_back_by_itself() {
    let lab = Lab::new();
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    write_file(&lab.spool.join(".greedy"), "");
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    drop(lab.tpu("run cave rule=pass -q -- ./train").exits(0));
    let rules = [1, 2, 3].map(|window| lab.shown(window)["rule"]["preempted"].clone());
    assert_eq!(rules, ["pass", "reapply", "pass"]);
    // What is only tried out begins nowhere, so nobody has to be there.
    std::fs::rename(&lab.spool, lab.env.path("hidden")).unwrap();
    let tried = lab.tpu("run cave -q --dry-run -- ./train").exits(0);
    assert!(tried.stderr.contains("whether its jobs are preempted is unknown"), "{}", tried.stderr);
    drop(lab.tpu("run cave -q -- ./train").exits(6));
}

/// What it prints on the way to its end is no failure of its own until its engine has said what ended it.
#[test]
fn its_log_does_not_decide_before_its_engine_does() {
    let lab = Lab::new();
    drop(lab.tpu("run cave rule=grpc:resume -q -- ./train").exits(0));
    lab.says(1, "ending");
    lab.prints(1, LOST);
    let _monitor = lab.monitor();
    drop(lab.tpu("ack").exits(0));
    wait_until("it has been heard", || lab.env.data()["ack_MONITOR"] != true);
    let shown = lab.shown(1);
    assert_eq!((&shown["status"], &shown["error"]), (&"running".into(), &serde_json::Value::Null));
    lab.says(1, "preempted somebody of higher rank");
    lab.env.wait_status(1, "error");
    assert_eq!(lab.shown(1)["error"], "preempted");
    assert_eq!(lab.env.jobs("alice").len(), 1, "no rule was about that");
}

#[test]
fn where_a_target_has_directories_of_its_own_they_come_before_what_is_set() {
    let lab = Lab::new();
    let shelf = lab.env.path("shelf").display().to_string();
    let spool = lab.spool.display();
    drop(lab.tpu(&format!("register den --kind echo --spool {spool} --shelf {shelf}")).exits(0));
    drop(lab.tpu("run den -q -- ./train").exits(0));
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    let below = |window| {
        let job = lab.env.job("alice", window);
        ["stage_dir", "log_dir"].map(|name| job[name].as_str().unwrap().starts_with(&shelf))
    };
    assert_eq!((below(1), below(2)), ([true, true], [false, false]));
    // So does what comes after it.
    lab.says(1, "ended 1");
    drop(lab.tpu("rerun 1").exits(0));
    assert_eq!(below(3), [true, true]);
}

/// One after the other they would take twice as long.
#[test]
fn a_cloud_and_an_engine_that_are_silent_are_waited_for_together() {
    let mut lab = Lab::new();
    // Whoever calls is let in, and hears nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", deaf.local_addr().unwrap());
    lab.env.set("TPU_CLOUD_AUTH", "none");
    let cloud = format!("--provider google --project lab --endpoint {endpoint}");
    drop(lab.tpu(&format!("register far-v2-8 {cloud} --zone {ZONE} --type v2-8")).exits(0));
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    write_file(&lab.spool.join(".asleep"), "");
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let seen = lab.tpu("check alice --json").exits(0);
    let took = clock.monotonic().saturating_sub(begun);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(seen.stderr.contains("said nothing"), "{}", seen.stderr);
    let why = seen.json()["jobs"][0]["unknown"].as_str().unwrap().to_owned();
    assert_eq!(why, "its engine has not answered within 3 s");
    std::fs::remove_file(lab.spool.join(".asleep")).unwrap();
}

/// Nobody writes down that it is over.
#[test]
fn its_log_is_followed_to_its_end_without_a_monitor() {
    let lab = Lab::new();
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| lab.tpu("logs 1 -f").exits(0));
        lab.says(1, "running n7");
        lab.prints(1, "step 1/100 loss 0.5\n");
        lab.says(1, "ended 0");
        follower.join().unwrap()
    });
    drop(followed.says(&["step 1/100"]));
    assert_eq!(lab.env.job("alice", 1)["status"], "starting", "who looks writes nothing");
}
