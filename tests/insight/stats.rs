//! `tpu stats`: what stands in records, archive and journal, counted once, with what is not known left unknown.

use serde_json::{Value, json};

use super::made::{archive, at, attempt, event, failed, journal, lab, near};
use crate::common::env::TestEnv;

/// A lineage of three attempts on one target, the first preempted, the second failed by its machine, and one job of a
/// type that has no price.
fn a_day() -> TestEnv {
    let mut first =
        failed(attempt(&lab_for_records(), 1, "resumed", (0, 120)), "preempted", "gone");
    first["extra_msgs"]["child"] = json!(2);
    first["extra_msgs"]["reached"] = json!({ "step": 1_200 });
    let env = lab(&[]);
    let mut second = failed(attempt(&env, 2, "resumed", (130, 190)), "grpc", "lost peer 17");
    second["extra_msgs"]["father"] = json!(1);
    second["extra_msgs"]["child"] = json!(3);
    second["extra_msgs"]["reached"] = json!({ "step": 1_600 });
    let mut third = attempt(&env, 3, "finished", (195, 255));
    third["extra_msgs"]["father"] = json!(2);
    third["extra_msgs"]["reached"] = json!({ "step": 2_100 });
    let mut other =
        failed(attempt(&env, 9, "error", (0, 60)), "OOM", "out of memory at 0xdeadbeef");
    other["tpu"] = json!("lab-v2-8-1");
    other["job_tags"] = json!("sweep");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([third, other]);
    env.write_data(&data);
    archive(&env, &[first, second]);
    journal(
        &env,
        &[
            event(-10, 1, "queued", "in default"),
            event(0, 1, "run", "on lab-v4-8-1"),
            event(0, 9, "run", "on lab-v2-8-1"),
        ],
    );
    env
}

/// Records need a place for their paths alone.
fn lab_for_records() -> TestEnv {
    TestEnv::new()
}

fn rows(env: &TestEnv, line: &str) -> Value {
    env.tpu(&format!("stats {line} --json")).exits(0).json()
}

fn row<'a>(document: &'a Value, key: &str) -> &'a Value {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}: {document:#}"))
}

#[test]
fn hours_cost_waits_failures_and_ends_are_those_of_records_archive_and_journal() {
    let env = a_day();
    let by_type = rows(&env, "--by type");
    assert_eq!((&by_type["by"], &by_type["schema"]), (&json!("type"), &json!(1)));
    let v4 = row(&by_type, "v4-8");
    near(&v4["hours"], 4.0);
    // Four chips at 0.5.
    near(&v4["cost"], 8.0);
    assert_eq!(v4["waited_s"], 600);
    assert_eq!((&v4["preemptions"], &v4["attempts"]), (&json!(1), &json!(3)));
    near(&v4["preemptions_per_hour"], 0.25);
    assert_eq!(v4["failures"], json!({ "grpc": 1, "preempted": 1 }));
    assert_eq!((&v4["recoveries"], &v4["recovery_s"]), (&json!(2), &json!(900)));
    assert_eq!((&v4["finished"], &v4["failed"]), (&json!(1), &json!(0)));
    // A step took six seconds at most, as the first attempt shows, 2100 were wanted, and all was over after 255 minutes.
    near(&v4["goodput"], 2_100.0 * 6.0 / (255.0 * 60.0));
    let v2 = row(&by_type, "v2-8");
    assert_eq!((&v2["cost"], &v2["unpriced_hours"]), (&json!(null), &json!(1.0)));
    assert_eq!((&v2["failed"], &v2["goodput"]), (&json!(1), &json!(1.0)));
    let total = &by_type["total"];
    near(&total["hours"], 5.0);
    assert_eq!(total["cost"], json!(null), "a part has no price");
    near(&total["cost_known"], 8.0);
    near(&total["finished_share"], 0.5);
}

#[test]
fn a_row_stands_for_a_user_target_zone_tag_week_or_kind() {
    let env = a_day();
    near(&row(&rows(&env, ""), "alice")["hours"], 5.0);
    near(&row(&rows(&env, "--by target"), "lab-v4-8-1")["hours"], 4.0);
    near(&row(&rows(&env, "--by zone"), "eu-west4-a")["hours"], 1.0);
    near(&row(&rows(&env, "--by tag"), "sweep")["hours"], 1.0);
    near(&row(&rows(&env, "--by week"), "2024-W45")["hours"], 5.0);
    near(&row(&rows(&env, "--by kind"), "tpu")["hours"], 5.0);
    assert_eq!(rows(&env, "bob")["rows"], json!([]));
}

#[test]
fn only_what_lies_between_since_and_until_counts() {
    let env = a_day();
    let between =
        |from: i64, to: i64| rows(&env, &format!("--since {} --until {}", at(from), at(to)));
    let cut = between(60, 125);
    near(&cut["total"]["hours"], 1.0);
    assert_eq!(cut["total"]["preemptions"], 1);
    assert_eq!((&cut["total"]["finished"], &cut["total"]["failed"]), (&json!(0), &json!(1)));
    assert_eq!(between(-500, -400)["rows"], json!([]));
    // 2024-11-05 begins twelve hours after that noon.
    assert_eq!(rows(&env, "--since 2024-11-05")["rows"], json!([]));
}

#[test]
fn what_nobody_reported_ended_when_it_was_noticed_or_when_its_successor_began() {
    let env = lab(&[]);
    let open = |window: u64, from: i64| {
        let mut record =
            failed(attempt(&env, window, "resumed", (from, from)), "preempted", "gone");
        record["extra_msgs"]["launch"]["ended"] = json!(null);
        record
    };
    let mut second = attempt(&env, 6, "finished", (90, 150));
    second["extra_msgs"]["father"] = json!(5);
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([open(4, 0), open(5, 0), second, open(7, 0)]);
    env.write_data(&data);
    journal(
        &env,
        &[
            event(0, 4, "run", "on lab-v4-8-1"),
            event(20, 4, "error", "grpc: it seemed so"),
            event(25, 4, "progress", "it goes on by itself"),
            event(30, 4, "reapply", "of lab-v4-8-1, after preempted"),
        ],
    );
    let document = rows(&env, "");
    // Half an hour, one and a half until the next one began, one hour.
    near(&document["total"]["hours"], 3.0);
    assert_eq!(document["endless"], 1);
    env.tpu("stats").exits(0).says(&["of 1 attempt nobody knows when it ended"]);
}

#[test]
fn what_is_at_work_has_worked_so_far_and_what_is_in_both_files_counts_once() {
    let env = lab(&[]);
    let done = attempt(&env, 1, "finished", (0, 60));
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([done]);
    env.write_data(&data);
    archive(&env, &[done.clone(), done]);
    near(&rows(&env, "")["total"]["hours"], 1.0);
}

#[test]
fn goodput_is_that_of_what_is_over() {
    let env = lab(&[]);
    let first = failed(attempt(&env, 1, "error", (0, 30)), "OOM", "out of memory");
    // One that has never failed would count as having got on all the time, and one that is back not at all.
    let mut other = attempt(&env, 2, "running", (0, 0));
    other["extra_msgs"]["launch"].as_object_mut().unwrap().remove("ended");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([other]);
    env.write_data(&data);
    assert_eq!(rows(&env, "")["total"]["goodput"], json!(null));
    archive(&env, &[first]);
    let total = &rows(&env, "")["total"];
    assert_eq!((&total["goodput"], &total["goodput_lineages"]), (&json!(1.0), &json!(1)));
}

#[test]
fn what_waits_at_its_engine_is_no_work() {
    let env = lab(&[]);
    let waited = |window: u64, status: &str, worked: Value| {
        let mut record = attempt(&env, window, status, (0, 60));
        record["extra_msgs"]["launch"]["worked"] = worked;
        record
    };
    // One that was cancelled before it began, and one that began after half an hour.
    let never = waited(1, "killed", json!([]));
    let late = waited(2, "finished", json!([{ "from": at(30), "until": null }]));
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([never]);
    env.write_data(&data);
    let total = rows(&env, "")["total"].clone();
    let figures = (&total["hours"], &total["attempts"], &total["goodput"], &total["killed"]);
    assert_eq!(figures, (&json!(0.0), &json!(0), &json!(null), &json!(1)));
    data["users"]["alice"]["job_data"] = json!([never, late]);
    env.write_data(&data);
    let total = rows(&env, "")["total"].clone();
    near(&total["hours"], 0.5);
    near(&total["cost_known"], 1.0);
    assert_eq!((&total["attempts"], &total["goodput"]), (&json!(1), &json!(1.0)));
    assert_eq!(total["waited_s"], json!(1_800));
    // Slurm has put it back into its queue, and begun it again.
    let again = json!([{ "from": at(10), "until": at(20) }, { "from": at(50), "until": null }]);
    data["users"]["alice"]["job_data"] = json!([waited(2, "finished", again)]);
    env.write_data(&data);
    near(&rows(&env, "")["total"]["hours"], 1.0 / 3.0);
}

#[test]
fn failures_that_differ_in_numbers_alone_are_one_line() {
    let env = lab(&[]);
    let failing = |window: u64| {
        let line = format!("out of memory at 0x{window}dead on worker {window}");
        failed(attempt(&env, window, "error", (0, 10)), "OOM", &line)
    };
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([failing(1), failing(2), failing(3)]);
    env.write_data(&data);
    let lines = rows(&env, "")["total"]["lines"].clone();
    assert_eq!(lines.as_array().unwrap().len(), 1, "{lines}");
    assert_eq!((&lines[0]["times"], &lines[0]["kind"]), (&json!(3), &json!("oom")));
}

#[test]
fn people_see_a_table_and_plots_and_programs_a_table_with_commas() {
    let env = a_day();
    let shown = env.tpu("stats --by type").exits(0);
    for part in ["v4-8", "8.00 + ?", "hours by type", "preemptions in an hour of work", "failures"]
    {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.report());
    }
    let csv = env.tpu("stats --by type --csv").exits(0).stdout;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.headers().unwrap().get(0), Some("type"));
    let first = reader.records().next().unwrap().unwrap();
    assert_eq!((first.get(0), first.get(2), first.get(3)), (Some("v4-8"), Some("4"), Some("8")));
}

#[test]
fn where_the_terminal_has_none_but_plain_characters_plots_have_no_others() {
    let mut env = a_day();
    env.set("TERM", "vt100");
    env.set("LC_ALL", "C");
    let shown = env.tpu("stats").exits(0).stdout;
    assert!(shown.is_ascii() && shown.contains("##"), "{shown}");
}

#[test]
fn what_cannot_be_counted_is_refused_with_what_can() {
    let env = lab(&[]);
    env.tpu("stats --by color").exits(2).says(&["--by color", "user, target, type"]);
    env.tpu("stats --by zoen").exits(2).says(&["zone"]);
    env.tpu("stats --since never").exits(2).says(&["--since never", "30d"]);
    env.tpu("stats --since 1d --until 2d").exits(2).says(&["--since is the earlier one"]);
    env.tpu("stats --csv --json").exits(2).says(&["two answers"]);
    env.tpu("stats zoe").exits(3).says(&["'zoe'"]);
    env.tpu("stats").exits(0).says(&["Nothing has run"]);
}

/// A wait for a target, as it is noted.
fn waited(minutes: i64, job: u64, seconds: u64, came: bool) -> Value {
    let mut line = event(minutes, job, "waited", "for v4-8 in us-central2-b, spot");
    line["data"] = json!({
        "type": "v4-8", "zone": "us-central2-b", "pricing": "spot", "waited_s": seconds, "came": came,
    });
    line
}

#[test]
fn waits_for_targets_and_what_each_hour_and_day_has_seen_are_told() {
    let env = a_day();
    journal(
        &env,
        &[waited(-20, 1, 100, true), waited(125, 2, 400, true), waited(300, 9, 7_000, false)],
    );
    let document = rows(&env, "--by type");
    let v4 = row(&document, "v4-8");
    assert_eq!(
        (&v4["capacity_s"], &v4["capacity_came"], &v4["capacity_in_vain"]),
        (&json!(500), &json!(2), &json!(1))
    );
    let total = &document["total"];
    assert_eq!((&total["capacity_s"], &total["capacity_in_vain"]), (&json!(500), &json!(1)));
    assert_eq!(rows(&env, "--by type --until 2024-11-04")["total"]["capacity_came"], 0);
    // The oldest line is that of the wait, twenty minutes before noon.
    assert_eq!(document["journal_since"], at(-20));
    let hours = document["by_hour"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    // From noon two hours of one job and one of another; ten minutes later the next attempt, and after five the last.
    for (hour, worked, taken) in [
        (11, 0.0, 0),
        (12, 2.0, 0),
        (13, 1.0, 0),
        (14, 50.0 / 60.0, 1),
        (15, 55.0 / 60.0, 0),
        (16, 0.25, 0),
    ] {
        let of = &hours[hour];
        assert_eq!(of["hour"], hour);
        near(&of["hours"], worked);
        assert_eq!(of["preemptions"], taken, "hour {hour}");
    }
    near(&hours[14]["preemptions_per_hour"], 60.0 / 50.0);
    assert_eq!(hours[11]["preemptions_per_hour"], json!(null));
    let days = document["by_day"].as_array().unwrap();
    assert_eq!(days.len(), 1, "{days:?}");
    assert_eq!((&days[0]["day"], &days[0]["preemptions"]), (&json!("2024-11-04"), &json!(1)));
    near(&days[0]["hours"], 5.0);
}

#[test]
fn a_run_costs_what_its_target_cost_also_once_that_is_forgotten_or_is_another_one() {
    let env = lab(&[attempt(&lab_for_records(), 1, "finished", (0, 60))]);
    let mut begun = event(0, 1, "run", "on lab-v4-8-1");
    begun["data"] = json!({
        "target": "lab-v4-8-1", "type": "v4-8", "zone": "us-central2-b", "pricing": "spot", "kind": "tpu",
    });
    journal(&env, &[begun]);
    let cost = |by: &str, key: &str| near(&row(&rows(&env, by), key)["cost"], 2.0);
    cost("--by zone", "us-central2-b");
    drop(env.tpu("del-registered lab-v4-8-1").exits(0));
    cost("--by zone", "us-central2-b");
    cost("--by kind", "tpu");
    drop(env.tpu("register lab-v4-8-1 --zone eu-west4-a --type v2-8").exits(0));
    cost("--by type", "v4-8");
}

#[test]
fn what_begins_notes_on_what() {
    let env = lab(&[]);
    env.code("alice", "staging.sh", "true");
    drop(env.tpu("run lab-v4-8-1 alice -q").exits(0));
    let lines = env.journal();
    let begun = lines.iter().find(|event| event.kind == "run").unwrap();
    for (key, word) in [
        ("target", "lab-v4-8-1"),
        ("type", "v4-8"),
        ("zone", "us-central2-b"),
        ("pricing", "spot"),
        ("kind", "tpu"),
    ] {
        assert_eq!(begun.data[key], word, "{key}");
    }
}
