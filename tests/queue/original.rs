//! The original beside us: its daemon and its commands do to the document what they always did, and our queue is none
//! of their business. What they do is played here on the JSON, by its rules, in plain words.

use serde_json::{Value, json};

use super::Lab;

/// One loop of the daemon: a live record whose log names a failure is one of that kind, and its rule is followed: its
/// successor is a record without a status, under the next number of its user.
fn monitor(data: &mut Value) {
    for user in data["users"].as_object_mut().unwrap().values_mut() {
        let mut next = user["windows_offset"].as_u64().unwrap();
        let mut children = Vec::new();
        for job in user["job_data"].as_array_mut().unwrap() {
            let status = job["status"].as_str().unwrap_or_default();
            let is_over = ["finished", "killed", "resumed", "rerunned"].contains(&status);
            let log = format!("{}/output.log", job["log_dir"].as_str().unwrap_or("nowhere"));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            if is_over || job["monitor"] == false || !text.contains("GRPC error") {
                continue;
            }
            job["status"] = json!("error");
            job["error"] = json!("grpc");
            let rule = job["rules"]["grpc"].clone();
            if rule == "resume" || rule == "rerun" {
                let mut child = job.clone();
                child["windows_id"] = json!(next);
                child["status"] = Value::Null;
                child["error"] = Value::Null;
                child["extra_msgs"]["father"] = job["windows_id"].clone();
                job["status"] = json!(if rule == "resume" { "resumed" } else { "rerunned" });
                job["extra_msgs"]["child"] = json!(next);
                children.push(child);
                next += 1;
            }
        }
        user["job_data"].as_array_mut().unwrap().extend(children);
        user["windows_offset"] = json!(next);
    }
    data["MONITOR_logs"].as_array_mut().unwrap().push(json!({ "time": "now", "msg": "looked" }));
    data["ack_MONITOR"] = json!(false);
}

/// `-czj` and `clear-all`: records without a window go, and so do those that are over.
fn clean(data: &mut Value, windows: &[u64]) -> usize {
    let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    let before = jobs.len();
    jobs.retain(|job| {
        let is_over =
            ["finished", "killed", "error"].contains(&job["status"].as_str().unwrap_or(""));
        windows.contains(&job["windows_id"].as_u64().unwrap()) && !is_over
    });
    before - jobs.len()
}

/// Its `run`: a record under the next number.
fn run(data: &mut Value, record: Value) -> u64 {
    let user = &mut data["users"]["alice"];
    let number = user["windows_offset"].as_u64().unwrap();
    let mut record = record;
    record["windows_id"] = json!(number);
    user["job_data"].as_array_mut().unwrap().push(record);
    user["windows_offset"] = json!(number + 1);
    number
}

/// Three that wait in three ways, and one that runs.
fn waiting(lab: &Lab) -> Vec<u64> {
    let words = ["local --name named tag=t priority=80", "local lr=1,2 --sweep", "local --hold"];
    words.map(|words| lab.submit(words)).into()
}

#[test]
fn what_waits_is_left_alone_by_monitor_and_by_what_clears_records_away() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let all = waiting(&lab);
    let before = lab.env.data()["queue"].clone();
    assert_eq!(before["entries"].as_array().unwrap().len(), 3);
    let mut data = lab.env.data();
    let windows = lab.env.windows("alice");
    monitor(&mut data);
    assert_eq!(clean(&mut data, &windows), 0, "no record claims a window that is not there");
    let number = run(&mut data, lab.env.record("alice", 0, "finished"));
    assert!(!all.contains(&number), "{number} is nobody's that waits");
    assert_eq!(clean(&mut data, &windows), 1, "it clears its own away");
    assert_eq!(data["queue"], before);
    lab.env.write_data(&data);

    assert_eq!(lab.waiting(), all, "in the same order, under the same numbers");
    lab.kill(first);
    lab.wait_running(&all[..1]);
    let again = lab.submit("local --hold");
    assert!(again > number, "no number is given twice");
}

#[test]
fn what_has_begun_is_theirs_to_follow_and_what_still_waits_is_not() {
    let lab = Lab::new(2);
    let script = "echo 'GRPC error: socket closed'; exec sleep 1000";
    lab.env.code("alice", "grpc.sh", script);
    let first = lab.submit_what("local rule=grpc:resume", "bash grpc.sh");
    let second = lab.submit("local");
    let all = waiting(&lab);
    lab.env.wait_status(first, "running");
    let job = lab.env.job("alice", first);
    let log = format!("{}/output.log", job["log_dir"].as_str().unwrap());
    crate::common::wait::wait_until("it has printed", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("GRPC"))
    });
    let before = lab.env.data()["queue"].clone();
    let mut data = lab.env.data();
    let windows = lab.env.windows("alice");
    monitor(&mut data);
    let jobs = data["users"]["alice"]["job_data"].as_array().unwrap().clone();
    let child = jobs.last().unwrap()["windows_id"].as_u64().unwrap();
    assert_eq!((jobs.len(), &jobs[0]["status"]), (3, &json!("resumed")));
    assert!(!all.contains(&child), "{child} is nobody's that waits");
    // Its child has no window yet: where it is cleared away, nothing else is.
    assert_eq!(clean(&mut data, &windows), 1);
    assert_eq!(data["queue"], before);
    lab.env.write_data(&data);

    assert_eq!(lab.waiting(), all);
    lab.kill(second);
    drop(lab.env.tpu("queue run --once").exits(0));
    assert!(!lab.waiting().contains(&all[0]), "the next in turn has begun");
    let begun = lab.env.job("alice", all[0]);
    assert_eq!(begun["extra_msgs"]["spec"]["name"], "named");
    drop(lab.env.tpu("kill --all -y").exits(0));
}
