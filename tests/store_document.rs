//! data.json: read without loss, written without touching what did not change, refused with a path.

use proptest::prelude::*;
use serde_json::{Value, json};
use tpu::model::data::{Data, ReadError, Secret};
use tpu::model::facts::ErrorKind;
use tpu::model::ids::{JobId, TargetName, UserName, WindowId};
use tpu::model::job::{Event, Job, StartTime, Status};
use tpu::model::lineage;
use tpu::model::rules::{Action, Rules};
use tpu::model::target::{Pricing, Registration};

/// Every layout that a file may have.
const FILES: [(&str, &str); 9] = [
    ("data.example.json", include_str!("../data.example.json")),
    ("original-readme.json", include_str!("data/original-readme.json")),
    ("original-later.json", include_str!("data/original-later.json")),
    ("indent-2.json", include_str!("data/indent-2.json")),
    ("tabs.json", include_str!("data/tabs.json")),
    ("one-line.json", include_str!("data/one-line.json")),
    ("one-line-tight.json", include_str!("data/one-line-tight.json")),
    ("crlf.json", include_str!("data/crlf.json")),
    ("odd.json", include_str!("data/odd.json")),
];

fn file(name: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == name).unwrap().1
}

fn parse(text: &str) -> Data {
    Data::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn alice() -> UserName {
    UserName::from("alice")
}

/// The lines that differ, `-` before and `+` after: what a reviewer would see.
fn diff(before: &str, after: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let end =
        a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    let show = |lines: &[&str], sign| {
        lines.iter().flat_map(|line| [sign, line.trim(), "\n"]).collect::<String>()
    };
    show(&a[start..a.len() - end], "-") + &show(&b[start..b.len() - end], "+")
}

#[test]
fn without_changes_the_same_bytes_come_back() {
    for (name, text) in FILES {
        assert_eq!(parse(text).to_text(), text, "{name}");
    }
    let empty = Data::empty();
    assert_eq!(parse(&empty.to_text()).to_text(), empty.to_text());
}

/// Touching everything without changing anything is no change either: every typed value must read
/// from its raw form as what it is.
#[test]
fn touching_is_not_changing() {
    for (name, text) in FILES {
        let mut data = parse(text);
        for user in parse(text).users() {
            data.user_mut(&user.name).unwrap().jobs_mut().for_each(drop);
        }
        assert_eq!(data.to_text(), text, "{name}");
    }
}

#[test]
fn a_change_of_one_job_is_a_change_of_its_lines() {
    for name in ["original-readme.json", "original-later.json", "indent-2.json", "tabs.json"] {
        let text = file(name);
        let mut data = parse(text);
        let user = data.users()[0].name.clone();
        let last = data.users()[0].jobs().iter().rfind(|job| job.status.is_live()).unwrap();
        let id = JobId::new(user, last.windows_id);
        let was = data.job(&id).unwrap().status.clone();
        if was == Status::Starting {
            continue;
        }
        let job = data.job_mut(&id).unwrap();
        job.apply(&Event::Failed(ErrorKind::Grpc)).unwrap();
        let now = diff(text, &data.to_text());
        if name == "original-readme.json" {
            let expected = "-\"status\": \"running\",\n-\"error\": null,\n\
                            +\"status\": \"error\",\n+\"error\": \"grpc\",\n";
            assert_eq!(now, expected);
        }
        assert_eq!(data.job(&id).unwrap().status, Status::Error(ErrorKind::Grpc), "{name}");
        assert_eq!(parse(&data.to_text()).job(&id).unwrap().status, Status::Error(ErrorKind::Grpc));
    }
}

#[test]
fn the_spelling_of_the_stage_directory_is_kept_and_the_right_one_wins() {
    let mut data = parse(file("original-readme.json"));
    let id = JobId::new(UserName::from("username"), WindowId(1));
    assert_eq!(data.job(&id).unwrap().stage_dir.as_deref(), Some("/your/staging/path"));
    data.job_mut(&id).unwrap().stage_dir = Some("/new".to_owned());
    assert_eq!(
        diff(file("original-readme.json"), &data.to_text()),
        "-\"staage_dir\": \"/your/staging/path\",\n+\"staage_dir\": \"/new\",\n"
    );

    let text = file("original-later.json");
    let mut data = parse(text);
    let id = JobId::new(alice(), WindowId(3));
    assert_eq!(data.job(&id).unwrap().stage_dir.as_deref(), Some("/stage/three"));
    data.job_mut(&id).unwrap().stage_dir = Some("/new".to_owned());
    assert_eq!(
        diff(text, &data.to_text()),
        "-\"stage_dir\": \"/stage/three\"\n+\"stage_dir\": \"/new\"\n"
    );
}

#[test]
fn what_stands_beside_a_change_keeps_its_bytes() {
    // Numbers as Python writes them, escapes, and keys that nobody knows, in a job that is changed.
    let text = file("original-later.json");
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), WindowId(4))).unwrap().job_tags = Some("naïve".to_owned());
    let now = data.to_text();
    assert_eq!(diff(text, &now), "-\"job_tags\": null,\n+\"job_tags\": \"na\\u00efve\",\n");
    for kept in ["1e-05", "1e+16", "12345678901234567890123", "-0.0", "\\u2028"] {
        assert!(now.contains(kept), "{kept}");
    }

    // The same in a file with raw characters.
    let text = file("indent-2.json");
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), WindowId(4))).unwrap().job_tags = Some("naïve".to_owned());
    assert_eq!(diff(text, &data.to_text()), "-\"job_tags\": null,\n+\"job_tags\": \"naïve\",\n");
}

#[test]
fn an_odd_layout_survives_a_change() {
    let text = file("odd.json");
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), WindowId(1))).unwrap().stage = 7;
    let expected = text.replace(r#"\/"}"#, r#"\/","stage": 7}"#);
    // Beside `"windows_id":1` there is no blank after the colon; the new key has the document's style.
    assert_eq!(data.to_text().replace("\"stage\":7", "\"stage\": 7"), expected);

    let mut data = parse(text);
    assert!(data.user_mut(&alice()).unwrap().remove_job(WindowId(1)).is_some());
    assert!(
        data.to_text().contains("\"job_data\":[ {  \"windows_id\" : 2 } ]"),
        "{}",
        data.to_text()
    );

    let mut data = parse(text);
    data.set_ack(true);
    assert_eq!(data.to_text(), text.replace("\"ack_MONITOR\" : false", "\"ack_MONITOR\" : true"));
    assert!(parse(&data.to_text()).ack());
}

#[test]
fn records_come_and_go_in_the_files_own_layout() {
    let text = file("data.example.json");
    let mut data = parse(text);
    let user = data.user_mut(&alice()).unwrap();
    let window = user.next_window(Some(12));
    assert_eq!(window, WindowId(13));
    let id = JobId::new(alice(), window);
    user.push_job(Job::new(&id, TargetName::from("local"), "/d".to_owned()));
    let grown = data.to_text();
    // What this writes is what Python would write: reading it as a value and printing it gives the same.
    let pretty = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        let mut out = Vec::new();
        let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
        let mut printer = serde_json::Serializer::with_formatter(&mut out, format);
        serde::Serialize::serialize(&value, &mut printer).unwrap();
        String::from_utf8(out).unwrap() + "\n"
    };
    assert_eq!(pretty(text), text, "the example is in that layout");
    assert_eq!(pretty(&grown), grown);
    assert_eq!(parse(&grown).user(&alice()).unwrap().windows_offset, 14);

    let removed = data.user_mut(&alice()).unwrap().remove_job(window);
    assert_eq!(removed.map(|job| job.windows_id), Some(window));
    data.user_mut(&alice()).unwrap().windows_offset = 7;
    assert_eq!(data.to_text(), text, "there and back");
    for job in [3, 5, 6] {
        assert!(data.user_mut(&alice()).unwrap().remove_job(WindowId(job)).is_some());
    }
    assert_eq!(pretty(&data.to_text()), data.to_text());
    assert_eq!(data.to_value()["users"]["alice"]["job_data"], json!([]));
}

#[test]
fn users_come_and_go_and_all_lists_agree() {
    for (name, text) in FILES {
        let mut data = parse(text);
        assert!(data.add_user(&UserName::from("dora")), "{name}");
        assert!(!data.add_user(&UserName::from("dora")), "{name}");
        let value = data.to_value();
        let dora = &value["users"]["dora"];
        let id = dora["id"].as_u64().unwrap();
        assert!(value["user_list"].as_array().unwrap().contains(&json!("dora")), "{name}");
        assert!(value["id_list"].as_array().unwrap().contains(&json!(id)), "{name}");
        assert_eq!(value["id_user_dict"][id.to_string()], json!("dora"), "{name}");
        assert_eq!(value["user_id_dict"]["dora"], json!(id), "{name}");
        assert_eq!(dora["config_aliases"]["ckpt"], json!("config.training.checkpoint_per_epoch"));
        assert_eq!(dora["settings"]["monitor_length"], json!(800), "{name}");
        assert_eq!(dora["settings"]["extra_settings"], json!({}), "{name}");
        assert_eq!(dora["windows_offset"], json!(1), "{name}");
        assert_eq!(dora["logs"], json!([]), "{name}");
        assert!(data.remove_user(&UserName::from("dora")).is_some());
        if name == "data.example.json" {
            assert_eq!(data.to_text(), text);
        }
        assert!(!data.to_text().contains("dora"), "{name}");
    }
}

#[test]
fn a_new_document_takes_a_user_a_job_and_everything_else() {
    let mut data = Data::empty();
    assert!(data.add_user(&alice()));
    let user = data.user_mut(&alice()).unwrap();
    user.set_dir(1, "/a".to_owned());
    user.set_alias("lr", "config.lr");
    let id = JobId::new(alice(), user.next_window(None));
    let mut job = Job::new(&id, TargetName::from("local"), "/a".to_owned());
    job.rules = Rules::named("pre").unwrap();
    job.father = Some(WindowId(9));
    job.log_stage = true;
    user.push_job(job);
    data.registry_mut().set_alias("l", TargetName::from("local"));
    data.set_wandb_api_key(Some(Secret::new("secret".to_owned())));
    let again = parse(&data.to_text());
    let job = again.job(&id).unwrap();
    assert_eq!(id.window, WindowId(1));
    assert_eq!(job.rules.name(), Some("pre"));
    assert_eq!((job.father, job.log_stage), (Some(WindowId(9)), true));
    assert_eq!(again.user(&alice()).unwrap().dir(1), Some("/a"));
    assert_eq!(again.user(&alice()).unwrap().alias("lr"), Some("config.lr"));
    assert_eq!(again.wandb_api_key().map(Secret::reveal), Some("secret"));
    assert!(!format!("{again:?} {:?}", again.wandb_api_key()).contains("secret"));
    assert_eq!(again.to_text(), data.to_text());
}

#[test]
fn every_tolerance() {
    let data = parse(file("original-later.json"));
    let job = |window| data.job(&JobId::new(alice(), WindowId(window))).unwrap().clone();
    assert_eq!(job(3).status, Status::Resumed(Some(ErrorKind::Oom)), "any case; id as text");
    assert_eq!(job(3).child, Some(WindowId(4)));
    assert!(matches!(job(3).start_time, StartTime::Original(Value::Object(_))));
    assert_eq!(job(4).status, Status::Error(ErrorKind::FileError));
    assert_eq!((job(4).stage, job(4).father), (1, Some(WindowId(3))));
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
    let command = example.job(&JobId::new(alice(), WindowId(6))).unwrap().command.clone().unwrap();
    assert_eq!(command[3], "two words");
    assert_eq!(command[4].as_encoded_bytes(), b"\xff");
    assert_eq!(
        example.job(&JobId::new(alice(), WindowId(5))).unwrap().lease.as_ref().unwrap().fence,
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
            job("job_tags", r#""\ud800""#),
            "users.alice.job_data[1]: expected a job, found nothing".to_owned(),
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
    assert_eq!(user.next_window(None), WindowId(42), "the offset is the next number, as before");
    assert_eq!(user.next_window(None), WindowId(43));
    assert_eq!(user.next_window(Some(99)), WindowId(100));
    user.windows_offset = 1;
    assert_eq!(user.next_window(None), WindowId(2), "a record has 1");
    let mut data = parse(r#"{"users":{"a":{"windows_offset":0}}}"#);
    let user = data.user_mut(&UserName::from("a")).unwrap();
    assert_eq!(user.next_window(Some(0)), WindowId(1), "0 is the session's home");
}

#[test]
fn targets_are_known_by_alias_zone_and_registration() {
    let data = parse(file("original-readme.json"));
    let target = data.resolve_target("v2-1").unwrap();
    assert_eq!(target.name.as_str(), "lab-tpuvm-v2-32-1");
    assert_eq!(target.zone.as_deref(), Some("us-central1-a"));
    assert_eq!((target.pricing, target.exclusive), (Pricing::OnDemand, true));
    let preemptible = data.resolve_target("lab-tpuvm-v2-32-preemptible-1").unwrap();
    assert_eq!((preemptible.pricing, preemptible.zone), (Pricing::Preemptible, None));
    assert_eq!(data.resolve_target("..."), None, "a placeholder is no target");
    assert_eq!(data.resolve_target("v9"), None);
    assert!(!data.resolve_target("local").unwrap().exclusive);
    assert_eq!(data.target_label(&target.name), "v2-1");
    let later = parse(file("original-later.json"));
    assert_eq!(later.resolve_target("v2-32-p1").unwrap().pricing, Pricing::Preemptible);

    let text = file("original-readme.json");
    let mut data = parse(text);
    let name = TargetName::from("lab-new");
    let registration = Registration {
        kind: "tpu".to_owned(),
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
fn rules_keep_their_spelling_and_order() {
    let mut data = parse(
        r#"{"users":{"a":{"job_data":[{"windows_id":1,"rules":{"OOM":"pass","grpc":"resume"}}]}}}"#,
    );
    let id = JobId::new(UserName::from("a"), WindowId(1));
    let job = data.job_mut(&id).unwrap();
    job.rules.set(ErrorKind::Oom, Action::Rerun);
    job.rules.set(ErrorKind::Locked, Action::Wait);
    let rules = r#"{"OOM":"rerun","grpc":"resume","locked":"wait"}"#;
    assert!(data.to_text().contains(rules), "{}", data.to_text());
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
        let lineage = lineage::Lineage::of(&data.users()[0], WindowId(window)).unwrap();
        lineage.windows.iter().map(|window| window.0).collect::<Vec<_>>()
    };
    let data =
        chain(&[(3, None, Some(5)), (4, None, None), (5, Some(3), Some(9)), (9, Some(5), None)]);
    for window in [3, 5, 9] {
        assert_eq!(of(&data, window), [3, 5, 9]);
    }
    assert_eq!(of(&data, 4), [4]);
    assert_eq!(lineage::leaf_of(&data.users()[0], WindowId(3)), Some(WindowId(9)));
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

#[test]
fn a_document_edited_as_a_value_is_checked_and_keeps_its_layout() {
    let text = file("original-readme.json");
    let data = parse(text);
    let mut value = data.to_value();
    value["conda_env_name"] = json!("other");
    let edited = data.replaced(&value).unwrap();
    assert_eq!(
        diff(text, &edited.to_text()),
        "-\"conda_env_name\": \"NNX\",\n+\"conda_env_name\": \"other\",\n"
    );
    assert_eq!(edited.conda_env_name(), Some("other"));
    value["users"]["username"]["id"] = json!("x");
    assert!(data.replaced(&value).is_err());
}

/// Any JSON value, with the strings and numbers that trip printers.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\\\\"\u{0}-\u{1f}{}\\[\\],:é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A document with keys that nobody knows at every level.
fn any_document() -> impl Strategy<Value = Value> {
    let extra = || prop::collection::vec(("x[a-zé\"\\\\]{0,4}", any_value()), 0..3);
    let job = (1_u32..30, extra(), extra(), any::<bool>()).prop_map(|(id, out, deep, text)| {
        let mut job = json!({"windows_id": id, "status": "running", "error": null});
        if text {
            job["windows_id"] = json!(id.to_string());
        }
        job["extra_msgs"] = Value::Object(deep.into_iter().collect());
        job.as_object_mut().unwrap().extend(out);
        job
    });
    let user = (prop::collection::vec(job, 0..5), extra()).prop_map(|(mut jobs, extra)| {
        let mut seen = std::collections::HashSet::new();
        jobs.retain(|job| seen.insert(job["windows_id"].to_string().replace('"', "")));
        let mut user = json!({"id": 0, "job_data": jobs});
        user.as_object_mut().unwrap().extend(extra);
        user
    });
    (prop::collection::vec(("[a-z]{1,5}", user), 0..3), extra()).prop_map(|(users, extra)| {
        let users: serde_json::Map<String, Value> = users.into_iter().collect();
        let mut document = json!({ "users": users, "ack_MONITOR": false });
        document.as_object_mut().unwrap().extend(extra);
        document
    })
}

fn laid_out(value: &Value, layout: usize) -> String {
    let indent: &[u8] = match layout {
        0 => return value.to_string(),
        1 => b"  ",
        2 => b"    ",
        _ => b"\t",
    };
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(indent);
    serde::Serialize::serialize(
        value,
        &mut serde_json::Serializer::with_formatter(&mut out, format),
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn a_mutation_touches_only_what_it_must(
        document in any_document(),
        layout in 0_usize..4,
        which in any::<prop::sample::Index>(),
        mutation in 0_usize..5,
    ) {
        let text = laid_out(&document, layout);
        let mut data = parse(&text);
        prop_assert_eq!(data.to_text(), text.clone());
        let ids: Vec<JobId> = data.jobs().map(Job::id).collect();
        let mut expected = document;
        if ids.is_empty() {
            data.set_ack(true);
            expected["ack_MONITOR"] = json!(true);
        } else {
            let id = which.get(&ids);
            let jobs = expected["users"][id.user.as_str()]["job_data"].as_array_mut().unwrap();
            let at = jobs.iter().position(|job| {
                job["windows_id"] == json!(id.window) || job["windows_id"] == json!(id.window.to_string())
            }).unwrap();
            let user = data.user_mut(&id.user).unwrap();
            match mutation {
                0 => {
                    user.job_mut(id.window).unwrap().status = Status::Killed;
                    jobs[at]["status"] = json!("killed");
                }
                1 => {
                    user.job_mut(id.window).unwrap().child = Some(WindowId(77));
                    jobs[at]["extra_msgs"]["child"] = json!(77);
                }
                2 => {
                    user.job_mut(id.window).unwrap().job_tags = Some("é\"\n".to_owned());
                    jobs[at]["job_tags"] = json!("é\"\n");
                }
                3 => {
                    let removed = user.remove_job(id.window);
                    prop_assert_eq!(removed.unwrap().to_value(), jobs.remove(at));
                }
                _ => {
                    data.set_ack(true);
                    expected["ack_MONITOR"] = json!(true);
                }
            }
        }
        let now = data.to_text();
        let found: Value = serde_json::from_str(&now).unwrap();
        prop_assert_eq!(&found, &expected);
        // Keys in order as well, and everything in the layout that the document had.
        prop_assert_eq!(&now, &laid_out(&expected, layout));
        prop_assert_eq!(parse(&now).to_text(), now);
    }
}
