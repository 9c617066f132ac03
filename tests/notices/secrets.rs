//! The value of a secret goes to its receiver and nowhere else: into no file, answer, argument or error.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::json;

use super::Lab;
use super::hook::{Fate, Hook};
use super::mails::Mails;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const VALUE: &str = "sesame-open-0815";

/// Every file below a directory that holds the value, but for those in which secrets are kept.
fn holding(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.as_os_str().as_bytes().windows(8).any(|part| part == b"/secrets") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            holding(&path, found);
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn a_secret_is_in_what_is_sent_and_in_nothing_that_is_kept_or_shown() {
    let lab = Lab::new();
    lab.keep("TOKEN", VALUE);
    let (bearer, path) = (Hook::good(), Hook::new(|_| Fate::Refused(500)));
    let in_path = format!("{}/${{TOKEN}}", path.url());
    let kept = "$(cat \"$XDG_CONFIG_HOME\"/tpu/secrets/TOKEN)";
    let script = format!(
        "cat > {0}/told; cat /proc/$$/cmdline > {0}/argv; test \"$TOKEN\" = \"{kept}\" || exit 9; \
         echo \"no $TOKEN\" >&2; exit 3",
        lab.env.root()
    );
    write_file(&lab.env.path("tell.sh"), &script);
    lab.tell(
        "alice",
        &json!([
            { "webhook": bearer.url(), "secret": "TOKEN" },
            { "webhook": in_path },
            { "command": ["bash", lab.env.path("tell.sh")], "secret": "TOKEN" },
        ]),
    );
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "it");
    wait_until("those who take it", || !bearer.got().is_empty() && !path.got().is_empty());
    let outbox = || std::fs::read_to_string(lab.env.path("tpu-state/outbox.json")).unwrap();
    wait_until("what went wrong is kept", || {
        outbox().contains("ended with 3") && outbox().contains("500")
    });
    assert!(bearer.got()[0].headers.contains(&format!("Bearer {VALUE}")), "{:?}", bearer.got());
    assert!(
        !String::from_utf8_lossy(&std::fs::read(lab.env.path("argv")).unwrap()).contains(VALUE)
    );
    for command in [
        "notify list alice",
        "notify list alice --json",
        "notify test alice --dry-run --json",
        "notify test alice",
        "notify test alice --json",
        "get-settings alice --json",
        "doctor",
        "doctor --json",
        "history alice",
        "-Ml",
    ] {
        let said = lab.env.tpu(command);
        assert!(!format!("{}{}", said.stdout, said.stderr).contains(VALUE), "{command}: {said}");
    }
    let shown = lab.env.tpu("notify list alice").exits(0).says(&["ended with 3", "***", "500"]);
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
    let mut found = Vec::new();
    holding(Path::new(lab.env.root()), &mut found);
    assert_eq!(found, Vec::<String>::new());
    drop(monitor);
}

#[test]
fn a_server_that_repeats_a_password_has_it_kept_nowhere() {
    let lab = Lab::new();
    // The server says no to this one, with what it was told.
    lab.keep("SMTP_PASSWORD", "wrong");
    let server = Mails::new(|_| Fate::Taken);
    let smtp = json!({
        "host": "127.0.0.1", "port": server.port(), "tls": "none",
        "user": "tpu@lab.org", "secret": "SMTP_PASSWORD",
    });
    drop(lab.env.tpu_words(&["set-settings", "smtp", &smtp.to_string(), "alice"]).exits(0));
    lab.tell("alice", &json!([{ "mail": "me@lab.org" }]));
    let said = lab.env.tpu("notify test alice").exits(6).says(&["535"]);
    // AHRwdUBsYWIub3JnAHdyb25n: both as they go over the line.
    assert!(!said.stdout.contains("AHRwdUBsYWIub3JnAHdyb25n"), "{said}");
    assert!(server.got().is_empty());
}

#[test]
fn a_secret_that_is_not_kept_is_named_with_what_to_do() {
    let lab = Lab::new();
    lab.tell("alice", &json!([{ "webhook": "http://127.0.0.1:9/${TOKEN}" }]));
    drop(
        lab.env
            .tpu("notify list alice")
            .exits(0)
            .says(&["no secret TOKEN", "tpu secrets set TOKEN"]),
    );
    drop(
        lab.env
            .tpu("notify test alice")
            .exits(6)
            .says(&["no secret TOKEN", "tpu secrets set TOKEN"]),
    );
}
