//! What waits for others begins when they have ended as it wants, and ends with the reason when they never will.

use tpu_core::model::entry::{After, AfterWhich};
use tpu_core::model::ids::JobId;

use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn it_begins_when_others_have_ended_as_it_wants() {
    let lab = Lab::new(8);
    let first = lab.submit("local tag=base");
    let ok = lab.submit_what(&format!("local after={first}"), "sleep 1000");
    let any = lab.submit("local after_any=base");
    let not = lab.submit(&format!("local after_not={first}"));
    for waits in [ok, any, not] {
        assert!(lab.why(waits).contains(&format!("after alice/{first}")), "{}", lab.why(waits));
    }
    assert_eq!(lab.running(), [first]);
    lab.kill(first);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[any, not]);
    let job = lab.env.job("alice", ok);
    assert_eq!((&job["status"], &job["error"]), (&"error".into(), &"dependency".into()));
    drop(lab.env.tpu(&format!("history {ok}")).exits(0).says(&["did not end well"]));
    assert!(lab.waiting().is_empty());
}

#[test]
fn a_group_has_ended_when_all_its_members_have() {
    let lab = Lab::new(2);
    lab.env.code("alice", "told.sh", "until [ -e ~/go ]; do sleep 0.4; done\n");
    let group = lab.submit_what("local --array 0-2", "bash told.sh");
    let after = lab.submit_what(&format!("local after={group}"), "true");
    assert!(lab.why(after).starts_with("after alice/"), "{}", lab.why(after));
    lab.env.touch("go");
    drop(lab.env.tpu("queue run").exits(0));
    lab.env.wait_status(after, "finished");
    let ends = lab.env.jobs("alice");
    assert!(ends.iter().all(|job| job["status"] == "finished"), "{ends:#?}");
    assert_eq!(ends.last().unwrap()["windows_id"], after, "it was the last to begin");
}

/// What comes back by its rule has not ended.
#[test]
fn a_lineage_counts_by_its_last_attempt() {
    let lab = Lab::new(8);
    let first = lab.submit_what("local rule=unknown:rerun", "false");
    let after = lab.submit_what(&format!("local after={first}"), "true");
    lab.env.wait_status(first, "error");
    drop(lab.env.tpu("queue run --once").exits(0));
    assert!(lab.why(after).contains("comes back"), "{}", lab.why(after));
    drop(lab.env.tpu(&format!("rerun {first}")).exits(0));
    let second = lab.env.jobs("alice").pop().unwrap()["windows_id"].as_u64().unwrap();
    assert!(lab.why(after).contains(&format!("alice/{second}")), "{}", lab.why(after));
    // The record of the first may be cleared away while the second is at work.
    let waits_for = lab.env.data()["queue"]["entries"][0]["after"][0].clone();
    assert_eq!(waits_for, format!("ok:alice/{second}"));
}

#[test]
fn what_was_waited_for_may_be_cleared_away_once_it_has_ended() {
    for clears in ["clean", "clear-finished", "clean 1"] {
        let lab = Lab::new(1);
        let first = lab.submit_what("local", "true");
        lab.env.wait_status(first, "finished");
        // As if it ended only now, between a look at the queue and that at what has ended.
        let after = lab.submit_what("local --hold", "true");
        lab.env.change(|data| {
            let job = JobId::parse(&format!("alice/{first}")).unwrap();
            let after = After { which: AfterWhich::Ok, job, member: None, met: None };
            data.queues_mut().entries[0].after.push(after);
        });
        drop(lab.env.tpu(clears).exits(0));
        assert!(lab.env.jobs("alice").is_empty(), "{clears}");
        drop(lab.env.tpu(&format!("unhold {after}")).exits(0));
        lab.env.wait_status(after, "finished");
    }
}

#[test]
fn who_waits_for_what_goes_on_already_waits_for_its_newest_attempt() {
    let lab = Lab::new(8);
    let fails_once =
        "[ -e ~/first ] || { touch ~/first; exit 1; }\nuntil [ -e ~/go ]; do sleep 0.4; done\n";
    lab.env.code("alice", "once.sh", fails_once);
    let first = lab.submit_what("local", "bash once.sh");
    lab.env.wait_status(first, "error");
    drop(lab.env.tpu(&format!("rerun {first} --force")).exits(0));
    let second = lab.env.jobs("alice").pop().unwrap()["windows_id"].as_u64().unwrap();
    let after = lab.submit_what(&format!("local after={first}"), "true");
    drop(lab.env.tpu("clean -re").exits(0));
    assert_eq!(lab.running(), [second]);
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!(lab.waiting(), [after]);
    lab.env.touch("go");
    wait_until("it has its turn, and ends", || {
        let jobs = lab.env.jobs("alice");
        jobs.iter().any(|job| job["windows_id"] == after && job["status"] == "finished")
    });
}

/// Members of one group, each behind the one of the same index of another.
#[test]
fn members_wait_for_members_one_by_one() {
    let lab = Lab::new(8);
    let script = "[ $TPU_MEMBER != 0 ] || exit 0; [ $TPU_MEMBER != 1 ] || exit 3; exec sleep 1000";
    lab.env.code("alice", "first.sh", script);
    let first = lab.submit_what("local --array 0-3", "bash first.sh");
    let second = lab.submit(&format!("local --array 0-3 after_each={first}"));
    let member = |group: u64, index: u64| {
        lab.env.jobs("alice").into_iter().find(|job| {
            let member = &job["extra_msgs"]["spec"]["member"];
            member["group"] == group && member["index"] == index
        })
    };
    let stands = |group, index| Some(member(group, index)?["status"].as_str()?.to_owned());
    wait_until("two of the first have ended", || {
        drop(lab.env.tpu("queue run --once").exits(0));
        stands(second, 0).as_deref() == Some("running")
            && stands(second, 1).as_deref() == Some("error")
    });
    assert_eq!(member(second, 1).unwrap()["error"], "dependency");
    assert_eq!((stands(second, 2), stands(second, 3)), (None, None));
    let of_third = member(first, 2).unwrap()["windows_id"].clone();
    assert!(lab.why(second).contains(&format!("after alice/{of_third}")), "{}", lab.why(second));
    // What has ended may be cleared away: whoever waited for it knows.
    drop(lab.env.tpu("clean").exits(0));
    lab.kill(of_third.as_u64().unwrap());
    wait_until("the third is told", || stands(second, 2).as_deref() == Some("error"));
    assert_eq!(lab.waiting(), [second]);
}

#[test]
fn members_wait_only_for_members_that_there_are() {
    let lab = Lab::new(8);
    let group = lab.submit("local --array 0-1");
    for (words, code, says) in [
        (format!("submit local --array 0-2 after_each={group} -- true"), 3, "_2"),
        (format!("submit local after_each={group} -- true"), 2, "members of two groups"),
        (format!("submit local --array 0-1 after_each={group}_1 -- true"), 2, "two groups"),
    ] {
        drop(lab.env.tpu(&words).exits(code).says(&[says]));
    }
    assert_eq!(lab.env.queued(), 0);
}

/// A member that has ended well and is cleared away before the one behind it may begin.
#[test]
fn what_a_member_waited_for_may_be_cleared_away() {
    let lab = Lab::new(8);
    let first = lab.submit_what("local --array 0-1", "true");
    let second = lab.submit_what(&format!("local --array 0-1 --hold after_each={first}"), "true");
    wait_until("both have ended", || {
        lab.env.jobs("alice").iter().all(|job| job["status"] == "finished")
    });
    drop(lab.env.tpu("queue run --once").exits(0));
    drop(lab.env.tpu("clean").exits(0));
    assert!(lab.env.jobs("alice").is_empty());
    drop(lab.env.tpu(&format!("unhold {second}")).exits(0));
    wait_until("both have begun", || lab.env.jobs("alice").len() == 2);
}

/// A group that is called by its name, of which some members have begun, is waited for once and as a whole.
#[test]
fn a_group_that_has_begun_in_part_is_waited_for_as_one() {
    let lab = Lab::new(2);
    let group = lab.submit("local --array 0-3 --name scan");
    let report = lab.submit("local after=scan --name report");
    let data = lab.env.data();
    let entries = data["queue"]["entries"].as_array().unwrap();
    let own = entries.iter().find(|entry| entry["number"] == report).unwrap();
    assert_eq!(own["after"], serde_json::json!([format!("ok:alice/{group}")]));
}

#[test]
fn who_could_not_begin_says_which_of_those_before_it_failed_and_how() {
    let lab = Lab::new(8);
    let good = lab.submit_what("local", "true");
    lab.env.code("alice", "bad.sh", "exit 7\n");
    let bad = lab.submit_what("local --hold", "bash bad.sh");
    let after = lab.submit_what(&format!("local after={good},{bad}"), "true");
    drop(lab.env.tpu(&format!("unhold {bad}")).exits(0));
    lab.env.wait_status(bad, "error");
    drop(lab.env.tpu("queue run --once").exits(0));
    let why =
        format!("\"alice/{bad} did not end well: error: unknown (exit code 7)\" (dependency)");
    drop(lab.env.tpu(&format!("explain {after}")).exits(0).says(&[&format!("why: {why}")]));
    drop(lab.env.tpu("check").exits(0).says(&[&format!("why: {why}")]));
}

/// A group of two at this machine, one of which fails while the other one goes on; and how to end that.
fn half_failed(lab: &Lab) -> u64 {
    let script = "[ $TPU_MEMBER != 0 ] || exit 3; until [ -e ~/go ]; do sleep 0.4; done\n";
    lab.env.code("alice", "half.sh", script);
    let group = lab.submit_what("local --array 0-1", "bash half.sh");
    wait_until("one has failed", || {
        let jobs = lab.env.jobs("alice");
        jobs.iter().filter(|job| job["status"] == "error").count() == 1
    });
    group
}

#[test]
fn a_member_that_failed_is_not_forgotten_when_it_is_cleared_away() {
    for ends_by_looking in [false, true] {
        let lab = Lab::new(8);
        let group = half_failed(&lab);
        let job = JobId::parse(&format!("alice/{group}")).unwrap();
        // As if it failed only now, between a look at the queue and that at what has ended.
        let waits = lab.submit_what("local --hold", "true");
        lab.env.change(|data| {
            let after = After { which: AfterWhich::Ok, job, member: None, met: None };
            data.queues_mut().entries[0].after.push(after);
        });
        if ends_by_looking {
            // Its end stands in its window alone.
            let mut data = lab.env.data();
            let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
            let failed = jobs.iter_mut().find(|job| job["status"] == "error").unwrap();
            failed["status"] = "running".into();
            failed["error"] = serde_json::Value::Null;
            let extra = failed["extra_msgs"].as_object_mut().unwrap();
            drop(extra.remove("verdict"));
            let launch = extra["launch"].as_object_mut().unwrap();
            drop((launch.remove("exit"), launch.remove("ended")));
            lab.env.write_data(&data);
        }
        drop(lab.env.tpu("clean").exits(0));
        assert_eq!(lab.env.jobs("alice").len(), 1, "the other one is at work");
        lab.env.touch("go");
        wait_until("the other one ends well", || lab.running().is_empty());
        // Whoever ended the other one may have told it by now that it has waited in vain.
        drop(lab.env.tpu(&format!("unhold {waits}")));
        drop(lab.env.tpu("queue run --once").exits(0));
        let job = lab.env.wait_status(waits, "error");
        assert_eq!(job["error"], "dependency", "{job:#}");
        drop(lab.env.tpu(&format!("explain {waits}")).exits(0).says(&[&format!("{group}_0")]));
    }
}

#[test]
fn nobody_comes_to_wait_for_a_group_of_which_a_member_failed_and_was_cleared_away() {
    let lab = Lab::new(8);
    let group = half_failed(&lab);
    drop(lab.env.tpu("clean").exits(0));
    let refused = lab.env.tpu(&format!("submit local after={group} -- true")).exits(4);
    drop(refused.says(&[
        &format!("alice/{group}_0 did not end well"),
        "cleaned away",
        &format!("after_any={group}"),
    ]));
    for words in [format!("after_any={group}"), format!("after={group}_1")] {
        lab.submit_what(&format!("local {words}"), "true");
    }
    lab.env.touch("go");
    wait_until("all end", || lab.running().is_empty());
    drop(lab.env.tpu("queue run").exits(0));
    wait_until("all end", || lab.running().is_empty());
    // Once all is cleared away a group gets its number again, and has nothing to do with it.
    drop(lab.env.tpu("clean").exits(0));
    drop(std::fs::remove_file(lab.env.path("code-alice/go")));
    lab.env.code("alice", "well.sh", "until [ -e ~/gone ]; do sleep 0.4; done\n");
    let again = lab.submit_what("local --array 0-1", "bash well.sh");
    let behind = lab.submit_what(&format!("local after={again}"), "true");
    lab.env.touch("gone");
    drop(lab.env.tpu("queue run").exits(0));
    lab.env.wait_status(behind, "finished");
}
