//! data.json as others write it: what is understood, what is refused and how, and what follows from it.

use serde_json::json;
use tpu_core::model::data::{Data, ReadError};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::{StartTime, Status};
use tpu_core::model::lineage;
use tpu_core::model::rules::Action;
use tpu_core::model::target::{Pricing, Registration};

use crate::store::document::{alice, diff, file, parse};

#[test]
fn every_tolerance() {
    let data = parse(file("original-later.json"));
    let job = |window| data.job(&JobId::new(alice(), JobNumber(window))).unwrap().clone();
    assert_eq!(job(3).status, Status::Resumed(Some(ErrorKind::Oom)), "any case; id as text");
    assert_eq!(job(3).child, Some(JobNumber(4)));
    assert!(matches!(&job(3).start_time, StartTime::Original(value) if value.is_object()));
    assert_eq!(job(4).status, Status::Error(ErrorKind::FileError));
    assert_eq!((job(4).stage, job(4).father), (1, Some(JobNumber(3))));
    assert_eq!(job(5).job_dir_id, Some(2));
    assert_eq!((job(5).status, job(5).start_time), (Status::Unset, StartTime::Unset));
    assert_eq!((job(6).status, job(6).monitor), (Status::Unset, true));
    assert_eq!(job(6).rules.action(ErrorKind::Preempted), Action::Pass);
    let bob = data.user(&UserName::from("bob")).unwrap();
    assert_eq!((bob.id, bob.windows_offset, bob.jobs().len()), (1, 1, 0));
    assert_eq!((bob.working_dir.len(), bob.config_aliases.len()), (0, 0));
    assert_eq!(data.monitor_config().checking_freq(), 30, "the original's 600 was never read");
    assert_eq!(data.monitor_config().test_freq, 7200);

    let sparse = parse("{}");
    assert_eq!(sparse.users().len(), 0);
    assert_eq!((sparse.monitor_all_check_time(), sparse.ack()), (20, false));
    assert_eq!(sparse.monitor_config().checking_freq(), 30);
    let one_field =
        parse(r#"{"users":{"a":{"job_data":[{"windows_id":1,"status":"error: grpc"}]}}}"#);
    assert_eq!(one_field.jobs().next().unwrap().status, Status::Error(ErrorKind::Grpc));
    assert_eq!(one_field.users()[0].tmux_name, "a");
    assert_eq!(parse(r#"{"users":null}"#).users().len(), 0);
    let example = parse(file("data.example.json"));
    let command = example.job(&JobId::new(alice(), JobNumber(6))).unwrap().command.clone().unwrap();
    assert_eq!(command[3], "two words");
    assert_eq!(command[4].as_encoded_bytes(), b"\xff");
    assert_eq!(
        example.job(&JobId::new(alice(), JobNumber(5))).unwrap().lease.as_ref().unwrap().fence,
        2
    );
}

#[test]
fn an_error_names_the_place_and_what_was_expected() {
    let job = |key: &str, value: &str| {
        format!(
            r#"{{"users":{{"alice":{{"job_data":[{{"windows_id":1}},{{"windows_id":2,"{key}":{value}}}]}}}}}}"#
        )
    };
    let user = |key: &str, value: &str| format!(r#"{{"users":{{"alice":{{"{key}":{value}}}}}}}"#);
    let at = |key: &str| format!("users.alice.job_data[1].{key}");
    let rows: Vec<(String, String)> = vec![
        (
            job("windows_id", "\"x\""),
            format!("{}: expected a number, found \"x\"", at("windows_id")),
        ),
        (job("windows_id", "null"), format!("{}: expected a number, found null", at("windows_id"))),
        (job("windows_id", "-1"), format!("{}: expected a number, found -1", at("windows_id"))),
        (job("windows_id", "1.5"), format!("{}: expected a number, found 1.5", at("windows_id"))),
        (job("job_dir_id", "true"), format!("{}: expected a number, found true", at("job_dir_id"))),
        (job("job_dir", "1"), format!("{}: expected text, found 1", at("job_dir"))),
        (job("tpu", "[]"), format!("{}: expected text, found []", at("tpu"))),
        (
            job("status", "\"paused\""),
            format!("{}: expected a status such as running, found \"paused\"", at("status")),
        ),
        (
            job("status", "\"error: tired\""),
            format!("{}: expected a status such as running, found \"error: tired\"", at("status")),
        ),
        (
            job("error", "\"tired\""),
            format!("{}: expected a kind of error such as grpc, found \"tired\"", at("error")),
        ),
        (job("stage", "null"), format!("{}: expected a number, found null", at("stage"))),
        (
            job("monitor", "\"maybe\""),
            format!("{}: expected true or false, found \"maybe\"", at("monitor")),
        ),
        (job("rules", "[]"), format!("{}: expected a map, found []", at("rules"))),
        (
            job("rules", r#"{"grpc":"again"}"#),
            format!("{}: expected an action such as resume, found \"again\"", at("rules.grpc")),
        ),
        (
            job("rules", r#"{"gprc":"pass"}"#),
            format!("{}: expected a kind of error as key, found \"gprc\"", at("rules.gprc")),
        ),
        (job("extra_msgs", "1"), format!("{}: expected a map, found 1", at("extra_msgs"))),
        (
            job("extra_msgs", r#"{"father":"x"}"#),
            format!("{}: expected a number, found \"x\"", at("extra_msgs.father")),
        ),
        (
            job("extra_msgs", r#"{"launch":{}}"#),
            format!("{}: expected text, found nothing", at("extra_msgs.launch.token")),
        ),
        (
            job("extra_msgs", r#"{"lease":{"owner":"a","fence":1,"until":"soon"}}"#),
            format!(
                "{}: expected an instant such as 2026-11-20T14:02:11Z, found \"soon\"",
                at("extra_msgs.lease.until")
            ),
        ),
        (job("start_time", "5"), format!("{}: expected a time, found 5", at("start_time"))),
        (
            job("customized_settings", r#"{"command":["a",{"b64":"!"}]}"#),
            format!(
                "{}: expected text or {{\"b64\": …}}, found {{\"b64\":\"!\"}}",
                at("customized_settings.command[1]")
            ),
        ),
        (
            user("job_data", "{}"),
            "users.alice.job_data: expected a list of jobs, found {}".to_owned(),
        ),
        (user("job_data", "[1]"), "users.alice.job_data[0]: expected a job, found 1".to_owned()),
        (
            user("job_data", "[{}]"),
            "users.alice.job_data[0].windows_id: expected a number, found nothing".to_owned(),
        ),
        (
            user("working_dir", r#"{"one":"/a"}"#),
            "users.alice.working_dir.one: expected a number as key, found \"one\"".to_owned(),
        ),
        (
            user("working_dir", r#"{"1":7}"#),
            "users.alice.working_dir.1: expected text, found 7".to_owned(),
        ),
        (
            user("settings", r#"{"monitor_length":"long"}"#),
            "users.alice.settings.monitor_length: expected a number, found \"long\"".to_owned(),
        ),
        (
            user("windows_offset", "null"),
            "users.alice.windows_offset: expected a number, found null".to_owned(),
        ),
        (r#"{"users":[]}"#.to_owned(), "users: expected a map of users, found []".to_owned()),
        (r#"{"users":{"alice":7}}"#.to_owned(), "users.alice: expected a user, found 7".to_owned()),
        (
            r#"{"tpu_aliases":{"a":1}}"#.to_owned(),
            "tpu_aliases.a: expected text, found 1".to_owned(),
        ),
        (
            r#"{"all_tpus":{"z":["a",1]}}"#.to_owned(),
            "all_tpus.z[1]: expected text, found 1".to_owned(),
        ),
        (
            r#"{"targets":{"t":{"pricing":"free"}}}"#.to_owned(),
            "targets.t.pricing: expected 'on-demand', 'preemptible' or 'spot', found \"free\""
                .to_owned(),
        ),
        (
            r#"{"monitor_config":{"checking_freq":"often"}}"#.to_owned(),
            "monitor_config.checking_freq: expected a number, found \"often\"".to_owned(),
        ),
        (
            r#"{"wandb_api_key":["s3cret"]}"#.to_owned(),
            "wandb_api_key: expected text, found something else".to_owned(),
        ),
        ("[]".to_owned(), "(document): expected a map, found []".to_owned()),
    ];
    for (text, expected) in rows {
        match Data::parse(text.as_bytes()) {
            Err(error @ ReadError::Shape(_)) => assert_eq!(error.to_string(), expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// Python writes half a character where a name on disk was no UTF-8. A record with one could not be
/// written again as it was, so it is refused, with its place; lists that are only carried along may hold it.
#[test]
fn half_a_character_is_refused_where_it_would_be_read_and_carried_along_elsewhere() {
    let record = |text: &str| format!(r#"{{"users":{{"alice":{{"job_data":[{text}]}}}}}}"#);
    for text in [r#"{"windows_id":1,"theirs":"\ud800"}"#, r#"{"windows_id":1,"theirs":1e999}"#] {
        // Also where a user is called like a list that is only carried along.
        for text in [record(text), record(text).replace("alice", "logs")] {
            let error = Data::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, ReadError::Syntax { line: 1, .. }), "{text}: {error:?}");
        }
    }
    let carried =
        r#"{"users":{"alice":{"logs":["\ud800"],"job_data":[]}},"MONITOR_logs":[["\ud800"]]}"#;
    let mut data = Data::parse(carried.as_bytes()).unwrap();
    data.set_ack(true);
    let written = data.to_text();
    assert!(written.contains(r#""logs":["\ud800"]"#), "{written}");
    assert!(written.contains(r#""MONITOR_logs":[["\ud800"]]"#), "{written}");
}

#[test]
fn what_is_no_json_is_refused_with_its_position() {
    for (bytes, line, column) in [
        (&b""[..], 1, 0),
        (b"{\n  \"users\": {", 2, 12),
        (b"{\n\"a\": nul }", 2, 9),
        (b"{\n\"a\": \"\xff\"}", 2, 7),
        (b"{} x", 1, 4),
    ] {
        match Data::parse(bytes) {
            Err(ReadError::Syntax { line: l, column: c, .. }) => {
                assert_eq!((l, c), (line, column), "{}", String::from_utf8_lossy(bytes));
            }
            other => panic!("{}: {other:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

#[test]
fn window_numbers_are_never_given_twice() {
    let mut data = parse(file("original-readme.json"));
    let user = data.user_mut(&UserName::from("username")).unwrap();
    assert_eq!(user.next_window(None), JobNumber(42), "the offset is the next number, as before");
    assert_eq!(user.next_window(None), JobNumber(43));
    assert_eq!(user.next_window(Some(99)), JobNumber(100));
    user.windows_offset = 1;
    assert_eq!(user.next_window(None), JobNumber(2), "a record has 1");
    let mut data = parse(r#"{"users":{"a":{"windows_offset":0}}}"#);
    let user = data.user_mut(&UserName::from("a")).unwrap();
    assert_eq!(user.next_window(Some(0)), JobNumber(1), "0 is the session's home");
}

#[test]
fn targets_are_known_by_alias_zone_and_registration() {
    let data = parse(file("original-readme.json"));
    let target = data.resolve_target("v2-1").unwrap();
    assert_eq!(target.name.as_str(), "lab-tpuvm-v2-32-1");
    assert_eq!(target.zone.as_deref(), Some("us-central1-a"));
    assert_eq!((target.pricing, target.is_exclusive()), (Pricing::OnDemand, true));
    let preemptible = data.resolve_target("lab-tpuvm-v2-32-preemptible-1").unwrap();
    assert_eq!((preemptible.pricing, preemptible.zone), (Pricing::Preemptible, None));
    assert_eq!(data.resolve_target("..."), None, "a placeholder is no target");
    assert_eq!(data.resolve_target("v9"), None);
    assert!(!data.resolve_target("local").unwrap().is_exclusive());
    assert_eq!(data.target_label(&target.name), "v2-1");
    let later = parse(file("original-later.json"));
    assert_eq!(later.resolve_target("v2-32-p1").unwrap().pricing, Pricing::Preemptible);

    let text = file("original-readme.json");
    let mut data = parse(text);
    let name = TargetName::from("lab-new");
    let registration = Registration {
        zone: Some("us-central1-a".to_owned()),
        accelerator: Some("v4-8".to_owned()),
        pricing: Pricing::Spot,
        ..Registration::default()
    };
    data.registry_mut().register(name.clone(), registration.clone());
    let again = parse(&data.to_text());
    assert_eq!(again.registration(&name), Some(&registration));
    let target = again.target(&name).unwrap();
    assert_eq!(target.accelerator.as_deref(), Some("v4-8"));
    assert_eq!((target.zone.as_deref(), target.pricing), (Some("us-central1-a"), Pricing::Spot));
    let value = again.to_value();
    assert_eq!(value["all_tpus"]["us-central1-a"], json!(["lab-tpuvm-v2-32-1", "lab-new"]));
    assert_eq!(value["all_tpus"]["spot"], json!(["lab-new"]));
    assert!(data.registry_mut().forget(&name));
    assert!(!data.registry_mut().forget(&name));
    assert_eq!(data.target(&name), None);
}

#[test]
fn the_interval_of_monitor_is_the_originals_only_when_somebody_sets_it() {
    let text = file("original-readme.json");
    let mut data = parse(text);
    assert_eq!(data.monitor_config().checking_freq(), 30);
    data.monitor_config_mut().test_freq = 1800;
    assert_eq!(diff(text, &data.to_text()), "-\"test_freq\": 3600,\n+\"test_freq\": 1800,\n");
    assert_eq!(parse(&data.to_text()).monitor_config().checking_freq(), 30);
    data.monitor_config_mut().set_checking_freq(600);
    assert_eq!(parse(&data.to_text()).monitor_config().checking_freq(), 600);
    let edited = text.replace("\"checking_freq\": 600", "\"checking_freq\": 45");
    assert_eq!(
        parse(&edited).monitor_config().checking_freq(),
        45,
        "an original's -smc wrote this"
    );
}

#[test]
fn lineages_are_read_as_far_as_they_make_sense() {
    let chain = |links: &[(u32, Option<u32>, Option<u32>)]| {
        let jobs: Vec<_> = links
            .iter()
            .map(|(id, father, child)| {
                json!({"windows_id": id, "extra_msgs": {"father": father, "child": child}})
            })
            .collect();
        parse(&json!({"users": {"a": {"job_data": jobs}}}).to_string())
    };
    let of = |data: &Data, window| {
        let lineage = lineage::Lineage::of(&data.users()[0], JobNumber(window)).unwrap();
        lineage.windows.iter().map(|window| window.0).collect::<Vec<_>>()
    };
    let data =
        chain(&[(3, None, Some(5)), (4, None, None), (5, Some(3), Some(9)), (9, Some(5), None)]);
    for window in [3, 5, 9] {
        assert_eq!(of(&data, window), [3, 5, 9]);
    }
    assert_eq!(of(&data, 4), [4]);
    assert_eq!(
        lineage::Lineage::of(&data.users()[0], JobNumber(3)).unwrap().leaf(),
        Some(JobNumber(9))
    );
    assert_eq!(lineage::lineages(&data.users()[0]).len(), 2);
    assert_eq!(
        of(&chain(&[(1, Some(2), Some(2)), (2, Some(1), Some(1))]), 1),
        [2, 1],
        "a ring ends"
    );
    assert_eq!(of(&chain(&[(1, None, Some(7))]), 1), [1], "the child is gone");
    assert_eq!(of(&chain(&[(2, Some(1), None)]), 2), [2], "the father is gone");
    assert_eq!(
        of(&chain(&[(1, None, None), (2, Some(1), None)]), 1),
        [1, 2],
        "one link is missing"
    );
    let two = chain(&[(1, None, Some(2)), (2, Some(1), None), (3, Some(1), None)]);
    assert_eq!(of(&two, 1), [1, 2]);
    assert_eq!(of(&two, 3), [3], "its father has another child");
}
