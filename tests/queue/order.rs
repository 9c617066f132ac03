//! Higher priority comes first, then who was moved to the front, then who was submitted first; the place that is told
//! is the place that there is.

use std::fs;

use super::Lab;

#[test]
fn what_waits_begins_in_the_order_that_is_told() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let [a, b, c, d] =
        ["", "", "priority=80", "priority=20"].map(|words| lab.submit(&format!("local {words}")));
    assert_eq!((lab.running(), lab.waiting()), (vec![first], vec![c, a, b, d]));
    // The last of its priority comes before the others of it, and of no other.
    drop(lab.env.tpu(&format!("priority {b} --first")).exits(0));
    assert_eq!(lab.waiting(), [c, b, a, d]);
    drop(lab.env.tpu(&format!("priority {d} 90")).exits(0));
    assert_eq!(lab.waiting(), [d, c, b, a]);
    let ahead = lab.env.tpu(&format!("explain {b}")).exits(0).stdout;
    assert!(ahead.contains("place: 3 in default, priority 50"), "{ahead}");
    assert!(ahead.contains(&format!("ahead: alice/{d} (")), "{ahead}");
    assert!(
        ahead.contains(&format!("; alice/{c} (")) && !ahead.contains(&format!("/{a} (")),
        "{ahead}"
    );
    let mut order = vec![first];
    for next in [d, c, b, a] {
        lab.kill(*order.last().unwrap());
        drop(lab.env.tpu("queue run --once").exits(0));
        lab.wait_running(&[next]);
        order.push(next);
    }
    assert!(lab.waiting().is_empty());
}

#[test]
fn where_the_first_finds_no_place_others_pass_it_unless_its_queue_is_strict() {
    let lab = Lab::new(2);
    drop(lab.env.tpu("hosts set local --max-jobs 2 --gpus 4").exits(0));
    drop(lab.env.tpu("queue create strict --policy fifo").exits(0));
    let holder = lab.submit("local gpus=3");
    let large = lab.submit("local gpus=2");
    let small = lab.submit("local gpus=1");
    assert_eq!((lab.running(), lab.waiting()), (vec![holder, small], vec![large]));
    lab.kill(small);
    let large = lab.submit("local gpus=2 queue=strict");
    let small = lab.submit("local gpus=1 queue=strict");
    assert_eq!(lab.running(), [holder]);
    assert!(lab.why(large).contains("1 of 4 GPUs"), "{}", lab.why(large));
    assert_eq!(lab.why(small), format!("alice/{large} is in front of it and finds no place"));
}

#[test]
fn who_was_passed_ten_times_is_kept_the_place() {
    let lab = Lab::new(4);
    drop(lab.env.tpu("hosts set local --max-jobs 4 --gpus 4").exits(0));
    let holder = lab.submit("local gpus=2");
    let large = lab.submit("local gpus=3");
    for _ in 0..10 {
        let small = lab.submit("local gpus=1");
        assert_eq!(lab.running(), [holder, small], "it passes");
        lab.kill(small);
    }
    let small = lab.submit("local gpus=1");
    assert_eq!((lab.running(), lab.waiting()), (vec![holder], vec![large, small]));
    assert!(lab.why(large).contains("local is kept for it"), "{}", lab.why(large));
    assert!(lab.why(small).contains(&format!("kept for alice/{large}")), "{}", lab.why(small));
    lab.kill(holder);
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!(lab.running(), [large, small]);
}

#[test]
fn who_finds_the_data_file_locked_is_passed_by_nobody() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let [first, second] = [lab.submit("local"), lab.submit("local")];
    lab.pauses("default", false);
    let lock = lab.env.path("data.json.lock");
    let held = fs::File::options().read(true).write(true).open(&lock).unwrap();
    let mut held = fd_lock::RwLock::new(held);
    let guard = held.write().unwrap();
    // A second try to begin anything, with the lock still held, would end the process.
    let points = ("FAILPOINTS", "launch-planned=1*off->panic");
    let looks = lab.env.start_tpu("queue run --once", &[points]);
    assert_ne!(looks.wait(), 101, "it tries the next one");
    assert!(lab.running().is_empty());
    drop(guard);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[first]);
    assert_eq!(lab.waiting(), [second]);
}
