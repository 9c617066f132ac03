//! `tpu notify`: who is told, what waits, and whether it arrives.

use serde_json::{Value, json};

use super::Lab;
use super::hook::{Fate, Hook};
use crate::cli::json_schema::assert_described;
use crate::common::wait::wait_until;

#[test]
fn a_list_says_who_is_told_of_what_and_what_waits_for_whom() {
    let lab = Lab::new();
    drop(
        lab.env
            .tpu("notify list alice")
            .exits(0)
            .says(&["Nobody is told", "tpu set-settings notify"]),
    );
    let hook = Hook::new(|_| Fate::Refused(503));
    lab.tell(
        "alice",
        &json!([
            { "on": ["error"], "webhook": format!("{}?key=abc", hook.url()) },
            { "mail": "me@lab.org", "on": ["finished"] },
        ]),
    );
    // Nobody delivers, and that is said.
    lab.fail("alice", "it");
    let said =
        lab.env.tpu("notify list alice").exits(0).says(&["no daemon runs", "tpu daemon start"]);
    assert!(hook.got().is_empty() && said.stdout.contains("1  webhook"), "{said}");
    let monitor = lab.env.daemon(&[]);
    wait_until("a try", || lab.env.tpu("notify list alice").stdout.contains("503"));
    let said = lab.env.tpu("notify list alice").exits(0);
    let said = said.says(&[
        "1 notice waiting",
        "tried 1 time in vain",
        "no server takes mails",
        "on error",
    ]);
    assert!(!said.stdout.contains("abc") && !said.stdout.contains('\u{1b}'), "{said}");
    let json = lab.env.tpu("notify list alice --json").exits(0).json();
    assert_described("notify", &json);
    assert_eq!((&json["monitor"], &json["user"]), (&json!(true), &json!("alice")));
    let first = &json["receivers"][0];
    assert_eq!(
        (&first["waiting"], &first["number"], &first["way"]),
        (&json!(1), &json!(1), &json!("webhook"))
    );
    assert!(first["attempts"].as_u64().unwrap() >= 1 && first["again"].is_string(), "{first}");
    drop(monitor);
}

#[test]
fn a_test_goes_to_all_or_to_one_and_says_what_arrived() {
    let lab = Lab::new();
    drop(lab.env.tpu("notify test alice").exits(3).says(&["tpu set-settings notify"]));
    let (good, bad) = (Hook::good(), Hook::new(|_| Fate::Refused(404)));
    lab.tell("alice", &json!([{ "webhook": good.url() }, { "webhook": bad.url() }]));
    let tried = lab.env.tpu("notify test alice --dry-run --json").exits(0).json();
    assert_described("notify", &tried);
    assert!(good.got().is_empty() && bad.got().is_empty(), "a dry run sends nothing");
    assert_eq!(tried["tests"][0]["arrived"], Value::Null);
    let tried = lab.env.tpu("notify test alice --json").exits(6).json();
    assert_described("notify", &tried);
    assert_eq!(
        (&tried["tests"][0]["arrived"], &tried["tests"][1]["arrived"]),
        (&json!(true), &json!(false))
    );
    assert!(tried["tests"][1]["problem"].as_str().unwrap().contains("404"), "{tried}");
    // What is shown is what was sent.
    assert_eq!(good.got()[0].body, tried["body"]);
    drop(lab.env.tpu("notify test 1 alice").exits(0).says(&["it arrived"]));
    assert_eq!((good.got().len(), bad.got().len()), (2, 1));
    drop(
        lab.env
            .tpu("notify test 3 alice")
            .exits(3)
            .says(&["'3' is no receiver of alice", "1 to 2"]),
    );
    drop(lab.env.tpu("notify test 1 2 alice").exits(2).says(&["one word too many"]));
}

#[test]
fn what_a_setting_says_wrong_is_told_and_changes_nothing() {
    let lab = Lab::new();
    let before = lab.env.data_bytes();
    for (key, value, says) in [
        ("notify", "eror=me@lab.org", "no address"),
        ("notify", "[{\"on\": [\"eror\"], \"mail\": \"a@b.c\"}]", "did you mean 'error'?"),
        ("notify", "{\"mail\": \"a@b.c\\r\\nBcc: x@y.z\"}", "line break"),
        ("smtp", "{\"host\": \"h\"}", "from"),
        ("notify_merge", "0", "from 1 up"),
    ] {
        drop(lab.env.tpu_words(&["set-settings", key, value, "alice"]).exits(2).says(&[says]));
    }
    assert_eq!(lab.env.data_bytes(), before);
    // What was read as a command before there were receivers is one still.
    drop(lab.env.tpu_words(&["set-settings", "notify", "[\"tell\", \"me\"]", "alice"]).exits(0));
    drop(lab.env.tpu("notify list alice").exits(0).says(&["command tell me"]));
}

#[test]
fn a_command_reads_the_events_and_its_end_says_whether_it_has_them() {
    let lab = Lab::new();
    let script =
        format!("test -e {0}/go || exit 1; cat >> {0}/told; echo >> {0}/told", lab.env.root());
    lab.tell("alice", &json!([{ "command": ["bash", "-c", script] }]));
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "$(it); `it`");
    wait_until("a try", || lab.env.tpu("notify list alice").stdout.contains("ended with 1"));
    lab.env.touch("go");
    wait_until("all of it", || !lab.env.tpu("notify list alice").stdout.contains("waiting"));
    let told: Value = serde_json::from_slice(&lab.env.wait_file("told")).unwrap();
    assert_eq!(told["events"].as_array().unwrap().len(), 1);
    assert_eq!(told["events"][0]["evidence"], "$(it); `it`");
    drop(monitor);
}

#[test]
fn slack_reads_a_message_of_its_own_shape() {
    let lab = Lab::new();
    lab.keep("SLACK_HOOK", "nobody-knows");
    let hook = Hook::good();
    let url = format!("{}/${{SLACK_HOOK}}", hook.url());
    lab.tell("alice", &json!([{ "webhook": url, "shape": "slack" }]));
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "<!channel> & co");
    wait_until("it", || !hook.got().is_empty());
    assert_eq!(
        hook.got()[0].body,
        json!({ "text": "alice/7: error: oom: &lt;!channel&gt; &amp; co" })
    );
    drop(monitor);
}
