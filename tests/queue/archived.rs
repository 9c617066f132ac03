//! What is taken out of the queue is in the archive, as it was: nothing of what somebody has typed is lost.

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_core::model::job::{Job, Status};
use tpu_core::model::spec::JobSpec;
use tpu_core::model::unbegun;

use super::Lab;

/// The newest record of the archive.
fn newest(lab: &Lab) -> Job {
    let text = std::fs::read_to_string(lab.env.path("tpu-state/archive.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    Job::from_value(&line["job"], &UserName::from("alice")).unwrap()
}

#[test]
fn what_is_dequeued_or_killed_is_in_the_archive_as_it_was() {
    let lab = Lab::new(1);
    lab.submit("local");
    let all =
        "local lr=0.1 config.note=a;b tag=t --name z0 --force rule=pass priority=80 gpus=0 --hold";
    for (number, line) in [(2, "dequeue 2 -y"), (3, "kill z0 -y")] {
        assert_eq!(lab.submit_what(all, "bash run.sh 'a b'"), number);
        let before = Data::parse(&lab.env.data_bytes()).unwrap();
        let entry = before.queues().entries[0].clone();
        drop(lab.env.tpu(line).exits(0).says(&["never began"]));
        assert_eq!(lab.env.queued(), 0);
        let record = newest(&lab);
        assert_eq!(
            (u64::from(record.windows_id.0), &record.status),
            (number, &Status::Killed(None))
        );
        assert_eq!((record.name(), record.job_tags.as_deref()), (Some("z0"), Some("t")));
        assert_eq!(record.command, entry.spec.command);
        assert!(
            record.extra_configs.contains("learning_rate=0.1 '--config.note=a;b'"),
            "{record:?}"
        );
        let was = unbegun::entry(&record).unwrap();
        let queue = entry.spec.queue.clone();
        assert_eq!((&was.spec, was.priority), (&JobSpec { queue, ..entry.spec }, entry.priority));
        assert_eq!((was.since, was.held, was.force), (entry.since, entry.held, true));
        let told = lab.env.tpu(&format!("history {number}")).exits(0);
        drop(told.says(&["dequeued", "on local as z0", "learning_rate=0.1", "bash run.sh"]));
        // It is nobody's job any more: no list has it, and its name and its number are not used up and not used again.
        assert!(!lab.env.tpu("check").exits(0).stdout.contains("z0"));
        drop(lab.env.tpu(&format!("resume {number}")).exits(3));
    }
}

#[test]
fn what_is_left_of_a_group_is_one_record_with_its_sweep() {
    let lab = Lab::new(1);
    let group = lab.submit("local lr=1e-3,1e-4 config.seed=0-1 --sweep --name sw");
    assert_eq!(lab.running().len(), 1);
    drop(lab.env.tpu(&format!("dequeue {group} -y")).exits(0));
    let record = newest(&lab);
    assert_eq!(u64::from(record.windows_id.0), group);
    let was = unbegun::entry(&record).unwrap();
    assert_eq!(was.spec.array.as_ref().unwrap().indexes(), [1, 2, 3], "the first has begun");
    let last = &was.spec_of(Some(3)).configs;
    assert!(last.contains(&("lr".to_owned(), "1e-4".to_owned())), "{last:?}");
    drop(lab.env.tpu(&format!("history {group}")).exits(0).says(&["members 1-3", "lr=1e-3,1e-4"]));
    let text = std::fs::read_to_string(lab.env.path("tpu-state/archive.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains("\"env\"") && !text.contains("\"place\""), "nobody else reads these");
    // Both are told of it: no number is free before those of what was taken out.
    assert!(lab.submit("local") > group + 1);
}

#[test]
fn a_record_that_has_begun_was_no_entry() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    lab.kill(first);
    drop(lab.env.tpu("clean").exits(0));
    assert_eq!(unbegun::entry(&newest(&lab)), None);
}
