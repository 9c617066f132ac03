//! data.json: read without loss, written without touching what did not change.

use serde_json::{Value, json};
use tpu_core::model::data::Data;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::{Event, Job, Status};
use tpu_core::model::rules::{Action, Rules};

/// Every layout that a file may have.
const FILES: [(&str, &str); 9] = [
    ("data.example.json", include_str!("../../data.example.json")),
    ("original-readme.json", include_str!("../data/original-readme.json")),
    ("original-later.json", include_str!("../data/original-later.json")),
    ("indent-2.json", include_str!("../data/indent-2.json")),
    ("tabs.json", include_str!("../data/tabs.json")),
    ("one-line.json", include_str!("../data/one-line.json")),
    ("one-line-tight.json", include_str!("../data/one-line-tight.json")),
    ("crlf.json", include_str!("../data/crlf.json")),
    ("odd.json", include_str!("../data/odd.json")),
];

pub(crate) fn file(name: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == name).unwrap().1
}

/// Writes a value of the top level, as `tpu data set` does.
pub(crate) fn set(data: &mut Data, key: &str, text: &str) {
    let mut value = data.to_value();
    value[key] = json!(text);
    *data = data.replaced(&value).unwrap();
}

pub(crate) fn parse(text: &str) -> Data {
    Data::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(crate) fn alice() -> UserName {
    UserName::from("alice")
}

/// The lines that differ, `-` before and `+` after: what a reviewer would see.
pub(crate) fn diff(before: &str, after: &str) -> String {
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
            assert!(user.jobs().iter().all(|job| data.job_mut(&job.id()).is_some()));
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
    let id = JobId::new(UserName::from("username"), JobNumber(1));
    assert_eq!(data.job(&id).unwrap().stage_dir.as_deref(), Some("/your/staging/path"));
    data.job_mut(&id).unwrap().stage_dir = Some("/new".to_owned());
    assert_eq!(
        diff(file("original-readme.json"), &data.to_text()),
        "-\"staage_dir\": \"/your/staging/path\",\n+\"staage_dir\": \"/new\",\n"
    );

    let text = file("original-later.json");
    let mut data = parse(text);
    let id = JobId::new(alice(), JobNumber(3));
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
    data.job_mut(&JobId::new(alice(), JobNumber(4))).unwrap().job_tags = Some("naïve".to_owned());
    let now = data.to_text();
    assert_eq!(diff(text, &now), "-\"job_tags\": null,\n+\"job_tags\": \"na\\u00efve\",\n");
    for kept in ["1e-05", "1e+16", "12345678901234567890123", "-0.0", "\\u2028"] {
        assert!(now.contains(kept), "{kept}");
    }

    // The same in a file with raw characters.
    let text = file("indent-2.json");
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), JobNumber(4))).unwrap().job_tags = Some("naïve".to_owned());
    assert_eq!(diff(text, &data.to_text()), "-\"job_tags\": null,\n+\"job_tags\": \"naïve\",\n");

    // A backslash before the letter u is no escape of a character, whatever stands after it.
    let text = r#"{"users": {"alice": {"job_data": [{"windows_id": 1, "dir": "C:\\users"}]}}}"#;
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), JobNumber(1))).unwrap().job_tags = Some("naïve".to_owned());
    let now = data.to_text();
    assert!(now.contains("\"job_tags\": \"naïve\""), "{now}");
}

#[test]
fn an_odd_layout_survives_a_change() {
    let text = file("odd.json");
    let mut data = parse(text);
    data.job_mut(&JobId::new(alice(), JobNumber(1))).unwrap().stage = 7;
    let expected = text.replace(r#"\/"}"#, r#"\/","stage": 7}"#);
    // Beside `"windows_id":1` there is no blank after the colon; the new key has the document's style.
    assert_eq!(data.to_text().replace("\"stage\":7", "\"stage\": 7"), expected);

    let mut data = parse(text);
    assert!(data.user_mut(&alice()).unwrap().remove_job(JobNumber(1)).is_some());
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
    assert_eq!(window, JobNumber(13));
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
        assert!(data.user_mut(&alice()).unwrap().remove_job(JobNumber(job)).is_some());
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
    job.father = Some(JobNumber(9));
    job.log_stage = true;
    user.push_job(job);
    data.registry_mut().set_alias("l", TargetName::from("local"));
    set(&mut data, "wandb_api_key", "secret");
    let again = parse(&data.to_text());
    let job = again.job(&id).unwrap();
    assert_eq!(id.window, JobNumber(1));
    assert_eq!(job.rules.name(), Some("pre"));
    assert_eq!((job.father, job.log_stage), (Some(JobNumber(9)), true));
    assert_eq!(again.user(&alice()).unwrap().dir(1), Some("/a"));
    assert_eq!(again.user(&alice()).unwrap().alias("lr"), Some("config.lr"));
    assert_eq!(again.to_value()["wandb_api_key"], "secret");
    assert!(!format!("{again:?}").contains("secret"));
    assert_eq!(again.to_text(), data.to_text());
}

#[test]
fn rules_keep_their_spelling_and_order() {
    let mut data = parse(
        r#"{"users":{"a":{"job_data":[{"windows_id":1,"rules":{"OOM":"pass","grpc":"resume"}}]}}}"#,
    );
    let id = JobId::new(UserName::from("a"), JobNumber(1));
    let job = data.job_mut(&id).unwrap();
    job.rules.set(ErrorKind::Oom, Action::Rerun);
    job.rules.set(ErrorKind::Locked, Action::Wait);
    let rules = r#"{"OOM":"rerun","grpc":"resume","locked":"wait"}"#;
    assert!(data.to_text().contains(rules), "{}", data.to_text());
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
    assert_eq!(edited.to_value()["conda_env_name"], "other");
    value["users"]["username"]["id"] = json!("x");
    assert!(data.replaced(&value).is_err());
}
