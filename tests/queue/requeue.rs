//! What is put back into the queue stops at a checkpoint, waits for its turn, and goes on as the next attempt: once.

use crate::common::wait::wait_until;

use super::Lab;

/// Saves a checkpoint when it is told to, and ends; says from where it begins. What it has started says if it is told,
/// too.
const TRAIN: &str = r#"
bash -c 'trap "echo > ROOT/child-told" USR1; sleep 1000 & echo > ROOT/child; wait' & child=$!
until [ -e ROOT/child ]; do sleep 0.4; done
trap 'mkdir -p $TPU_LOG_DIR/checkpoint_5; echo saved > $TPU_LOG_DIR/checkpoint_5/model; kill $child; exit 0' USR1
echo "$@" > ROOT/args.new; mv ROOT/args.new ROOT/args
echo ready > ROOT/ready
wait $child
"#;

fn lab() -> Lab {
    let lab = Lab::new(1);
    lab.env.code("alice", "train.sh", &TRAIN.replace("ROOT", lab.env.root()));
    lab
}

/// The number of the last record.
fn last(lab: &Lab) -> u64 {
    lab.env.jobs("alice").last().unwrap()["windows_id"].as_u64().unwrap()
}

#[test]
fn a_running_one_saves_a_checkpoint_and_goes_on_from_it_when_its_turn_comes() {
    let lab = lab();
    drop(lab.env.tpu("set-settings checkpoint_signal USR1 alice").exits(0));
    let first = lab.submit_what("local", "bash train.sh");
    lab.env.wait_file("ready");
    let urgent = lab.submit("local priority=90");
    let follows = lab.submit(&format!("local after={first}"));
    drop(lab.env.tpu(&format!("requeue {first} -y")).exits(0).says(&["continues as alice/4"]));
    assert!(!lab.env.path("child-told").exists(), "its program alone is told");
    assert_eq!(lab.running(), [urgent], "what is more urgent has its place");
    assert_eq!(lab.waiting().len(), 2);
    // It has not ended for those who wait for it, and its record stays as long as it is to go on.
    assert!(lab.why(follows).contains("waits to continue as 4"), "{}", lab.why(follows));
    drop(lab.env.tpu("clean alice"));
    assert!(lab.env.jobs("alice").iter().any(|job| job["windows_id"] == first));
    lab.kill(urgent);
    lab.wait_running(&[4]);
    let args = || std::fs::read_to_string(lab.env.path("args")).unwrap();
    wait_until("it began from its checkpoint", || args().contains("load_from"));
    let job = lab.env.job("alice", 4);
    assert_eq!(job["extra_msgs"]["father"], first, "{job:#}");
    assert_eq!(lab.env.job("alice", first)["extra_msgs"]["child"], 4);
    assert!(lab.why(follows).contains("alice/4"), "{}", lab.why(follows));
}

#[test]
fn one_that_ended_waits_in_line_again_and_no_rule_brings_it_back_beside() {
    let lab = lab();
    let first = lab.submit_what("local rule=unknown:rerun", "false");
    lab.env.wait_status(first, "error");
    let blocks = lab.submit("local");
    drop(lab.env.tpu(&format!("requeue {first} -y")).exits(0));
    drop(
        lab.env
            .tpu(&format!("requeue {first} -y"))
            .exits(4)
            .says(&["waits to continue as alice/3"]),
    );
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon runs", || lab.env.tpu("daemon status").code == 0);
    lab.env.turn();
    assert_eq!(lab.running(), [blocks]);
    assert_eq!(last(&lab), blocks, "nothing was started beside what waits");
    lab.kill(blocks);
    wait_until("it goes on", || last(&lab) == 3);
    let ended = lab.env.wait_status(3, "error");
    assert_eq!(ended["extra_msgs"]["father"], first);
    drop(monitor);
}

#[test]
fn what_is_taken_out_again_leaves_the_attempt_as_it_was() {
    let lab = lab();
    let first = lab.submit_what("local", "false");
    lab.env.wait_status(first, "error");
    drop(lab.env.tpu(&format!("requeue {first} -y --hold")).exits(0));
    let stopped = || lab.env.job("alice", first)["extra_msgs"]["recovery"]["stopped"].clone();
    assert!(stopped().as_str().unwrap().contains("continue as alice/2"), "{}", stopped());
    drop(lab.env.tpu("dequeue 2 -y").exits(0));
    assert!(stopped().is_null(), "{}", stopped());
    assert_eq!(lab.env.queued(), 0);
}

/// Its entry is there before it is stopped.
#[test]
fn who_dies_in_between_has_lost_and_doubled_nothing() {
    let lab = lab();
    let first = lab.submit("local");
    let died = lab.env.start_at_points(&format!("requeue {first} -y"), "requeue-entered=panic");
    assert!(!died.wait_with_output().unwrap().status.success());
    assert_eq!(lab.running(), [first]);
    assert!(lab.why(2).contains(&format!("alice/{first} has stopped")), "{}", lab.why(2));
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!(lab.running(), [first], "one at a time");
    drop(lab.env.tpu("dequeue 2 -y").exits(0));
    drop(lab.env.tpu(&format!("requeue {first} -y")).exits(0));
    lab.wait_running(&[3]);
}

#[test]
fn a_program_that_goes_on_is_stopped_when_its_time_is_over() {
    let lab = lab();
    drop(lab.env.tpu("set-settings checkpoint_signal USR1 alice").exits(0));
    drop(lab.env.tpu("set-settings checkpoint_grace 1 alice").exits(0));
    let ready = lab.env.path("deaf").display().to_string();
    let script = format!("trap '' USR1\necho > {ready}\nwhile :; do sleep 1000; done\n");
    lab.env.code("alice", "deaf.sh", &script);
    let first = lab.submit_what("local", "bash deaf.sh");
    lab.env.wait_file("deaf");
    let output = lab.env.tpu(&format!("requeue {first} -y --hold")).exits(0);
    drop(output.says(&["told to save a checkpoint (USR1) and ran on for 1 s"]));
    assert!(lab.running().is_empty());
}

#[test]
fn a_user_may_have_so_many_at_work_and_no_more() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("set-settings max_parallel 2 alice").exits(0));
    let first = lab.submit("local");
    let second = lab.submit("local");
    let third = lab.submit("local --array 0-1");
    assert!(lab.why(third).contains("alice has 2 jobs at once"), "{}", lab.why(third));
    let output = lab.env.tpu("run local -q -- sleep 1000").exits(4);
    drop(output.says(&["alice has 2 jobs at once: alice/1, alice/2", "tpu submit"]));
    drop(lab.env.tpu("run local -q --force -- sleep 1000").exits(0));
    lab.kill(first);
    assert_eq!(lab.running().len(), 2, "the forced one counts");
    lab.kill(second);
    wait_until("one of the group began", || lab.running().len() == 2);
}

/// It is put into another queue, or was a member of a group: the limit of that holds for it as well.
#[test]
fn limits_hold_for_what_was_put_back() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create narrow --max-parallel 1").exits(0));
    for _ in 0..2 {
        drop(lab.env.tpu("run local -q -- bash run.sh").exits(0));
    }
    drop(lab.env.tpu("requeue 1 queue=narrow -y").exits(0));
    drop(lab.env.tpu("requeue 2 queue=narrow -y").exits(0));
    assert_eq!(lab.running(), [3], "one at a time");
    assert!(lab.why(4).contains("queue narrow has 1 jobs at once"), "{}", lab.why(4));
    drop(lab.env.tpu("kill --all -y").exits(0));
    let group = lab.submit("local --array 0-3%2");
    assert_eq!(lab.running().len(), 2);
    drop(lab.env.tpu(&format!("requeue {group}_0 priority=90 -y")).exits(0));
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!(lab.running().len(), 2, "two of the group at once, whichever");
}

#[test]
fn a_job_that_is_put_back_is_killed_by_its_number_and_its_group() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    drop(lab.env.tpu(&format!("requeue {first} --hold -y")).exits(0));
    drop(lab.env.tpu(&format!("kill {first} -y")));
    assert_eq!(lab.env.queued(), 0, "what goes on from it is that job");
    lab.takes(2);
    let group = lab.submit("local --array 0-1");
    drop(lab.env.tpu(&format!("requeue {group}_0 --hold -y")).exits(0));
    drop(lab.env.tpu(&format!("kill {group} -y")).exits(0));
    assert_eq!((lab.env.queued(), lab.running().len()), (0, 0), "all of a group is all of it");
}

#[test]
fn nobody_goes_on_from_it_beside_what_waits() {
    let lab = Lab::new(8);
    let first = lab.submit_what("local", "false");
    lab.env.wait_status(first, "error");
    drop(lab.env.tpu(&format!("requeue {first} --hold -y")).exits(0));
    for again in ["resume", "rerun"] {
        let output = lab.env.tpu(&format!("{again} w={first} alice --force"));
        drop(output.exits(4).says(&["alice/2 waits", "tpu dequeue 2"]));
    }
    assert_eq!((lab.running().len(), lab.env.queued()), (0, 1));
}

/// Whoever was to stop it has died; it went on, and ended well.
#[test]
fn what_has_ended_well_by_itself_is_not_begun_again() {
    let lab = Lab::new(8);
    let go = lab.env.path("go").display().to_string();
    let script = format!("while [ ! -e {go} ]; do sleep 0.4; done\n");
    lab.env.code("alice", "work.sh", &script);
    let first = lab.submit_what("local", "bash work.sh");
    let died = lab.env.start_at_points(&format!("requeue {first} -y"), "requeue-entered=panic");
    assert!(!died.wait_with_output().unwrap().status.success());
    lab.env.touch("go");
    lab.env.wait_status(first, "finished");
    drop(lab.env.tpu("queue run --once").exits(0));
    let job = lab.env.job("alice", 2);
    assert_eq!((&job["status"], &job["error"]), (&"error".into(), &"dependency".into()));
    drop(lab.env.tpu("history 2").exits(0).says(&["ended well by itself"]));
}

#[test]
fn what_has_ended_well_in_a_group_stays_ended() {
    let lab = Lab::new(8);
    lab.env.code("alice", "some.sh", "[ $TPU_MEMBER != 0 ] || exit 0\nexec sleep 1000\n");
    let group = lab.submit_what("local --array 0-1", "bash some.sh");
    wait_until("one has ended", || {
        lab.env.jobs("alice").iter().any(|job| job["status"] == "finished")
    });
    drop(lab.env.tpu(&format!("requeue {group} --hold -y")).exits(0));
    assert_eq!(lab.env.queued(), 1);
}

/// The end of its program is what lets it begin again, before whoever stopped it looks.
#[test]
fn one_that_finds_its_place_at_once_goes_on() {
    let lab = lab();
    drop(lab.env.tpu("set-settings checkpoint_signal USR1 alice").exits(0));
    let first = lab.submit_what("local", "bash train.sh");
    lab.env.wait_file("ready");
    let output = lab.env.tpu(&format!("requeue {first} -y")).exits(0);
    drop(output.says(&["continues as alice/2"]));
    lab.wait_running(&[2]);
    assert_eq!(lab.env.job("alice", first)["extra_msgs"]["child"], 2);
}
