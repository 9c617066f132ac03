//! Receivers and the server of mails as they are written, and what is wrong with them.

use super::*;

fn read(value: &Value) -> Result<Vec<Receiver>, String> {
    receivers(value).map_err(|bad| {
        assert!(!bad.hint.is_empty(), "{bad:?}");
        bad.what
    })
}

fn one(value: &Value) -> Receiver {
    let mut all = read(value).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn each_way_is_read_whole_and_in_short() {
    for (short, whole) in [
        ("https://h/x?a=b", json!({ "webhook": "https://h/x?a=b" })),
        ("${SLACK_HOOK}", json!({ "webhook": "${SLACK_HOOK}" })),
        ("me@example.org", json!({ "mail": "me@example.org" })),
        ("tmux", json!({ "message": "tmux" })),
        ("./tell.sh 'a b'", json!({ "command": ["./tell.sh", "a b"] })),
        (
            "error, no-capacity=desktop",
            json!({ "on": ["error", "no-capacity"], "message": "desktop" }),
        ),
        (
            "finished=mail.sh me@example.org",
            json!({ "on": "finished", "command": "mail.sh me@example.org" }),
        ),
    ] {
        assert_eq!(one(&json!(short)), one(&json!([whole])), "{short}");
    }
    assert_eq!(one(&json!("tmux")).on.len(), 10, "of everything, without a word");
    assert_eq!(read(&json!("none")), Ok(Vec::new()));
    assert_eq!(read(&json!(["tmux", "me@example.org"])).unwrap().len(), 2);
    // As the setting was read when it was a command and nothing else.
    assert_eq!(one(&json!(["tell", "me"])).way, WayTo::Command(vec!["tell".into(), "me".into()]));
}

#[test]
fn what_is_written_is_read_again() {
    for value in [
        json!({ "on": ["error"], "webhook": "https://h/${TOKEN}", "shape": "slack" }),
        json!({ "on": ["error"], "webhook": "https://h", "secret": "TOKEN" }),
        json!({ "on": ["error"], "webhook": "https://h", "public_only": true }),
        json!({ "on": ["error"], "command": ["a"], "secret": "TOKEN" }),
        json!({
            "on": ["finished", "error"], "webhook": "https://h/v3/smtp/email", "shape": "brevo",
            "secret": "BREVO_API_KEY", "from": "a@example.org", "to": "b@example.org",
        }),
    ] {
        assert_eq!(one(&value).to_value(), value);
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (value, what) in [
        (json!(3), "no receiver"),
        (json!({}), "where to"),
        (json!({ "mail": "a@b.c", "webhook": "https://h" }), "two ways"),
        (json!({ "mial": "a@b.c" }), "'mial'"),
        (json!({ "mail": "a@b.c\r\nBcc: x@y.z" }), "line break"),
        (json!({ "mail": "a@b.c\n" }), "line break"),
        (json!("a@b.c\n"), "line break"),
        (json!({ "webhook": "https://h/x\u{2028}y" }), "line break"),
        (json!({ "mail": "-oX@b.c" }), "no address"),
        (json!("finished=-oX@b.c"), "no address"),
        (
            json!({
                "webhook": "https://h", "shape": "brevo", "from": "a@b.c", "to": "-a@b.c",
            }),
            "no address",
        ),
        (json!("--version"), "dash"),
        (json!({ "command": ["-c", "id"] }), "dash"),
        (json!({ "mail": "a@b.c", "public_only": true }), "webhook"),
        (json!({ "mail": "a@b.c, x@y.z" }), "no address"),
        (json!({ "mail": "a b" }), "no address"),
        (json!({ "on": ["eror"], "mail": "a@b.c" }), "no event"),
        (json!({ "on": [], "mail": "a@b.c" }), "no event"),
        (json!("eror=me@example.org"), "no address"),
        (json!("eror=./tell.sh"), "neither a program"),
        (json!("error="), "where to"),
        (json!("sh 'x"), "quote"),
        (json!({ "webhook": "ftp://h" }), "no URL"),
        (json!({ "webhook": "https://" }), "no host"),
        (json!({ "webhook": "https://me:pw@h" }), "password"),
        (json!({ "webhook": "https://h/${lower}" }), ""),
        (json!({ "webhook": "http://h", "secret": "TOKEN" }), "unprotected"),
        (json!({ "webhook": "https://h", "shape": "xml" }), "'xml'"),
        (json!({ "webhook": "https://h", "shape": "brevo" }), "missing"),
        (json!({ "webhook": "https://h", "to": "a@b.c" }), "Brevo"),
        (json!({ "mail": "a@b.c", "secret": "X" }), "webhook's"),
        (json!({ "command": [] }), "no command"),
        (json!({ "command": [1] }), "list of words"),
        (json!({ "message": "wall" }), "'wall'"),
    ] {
        let said = read(&value).unwrap_err();
        assert!(said.contains(what), "{value}: {said}");
    }
}

#[test]
fn a_place_is_shown_without_what_lets_one_in() {
    let place = |value: Value| one(&value).place();
    assert_eq!(place(json!("https://hooks.slack.com/services/T/B/x")), "https://hooks.slack.com/…");
    assert_eq!(place(json!("https://h?key=x")), "https://h/…");
    assert_eq!(place(json!({ "webhook": "https://h", "shape": "slack" })), "https://h (slack)");
    assert_eq!(place(json!("${HOOK}")), "${HOOK}");
    assert_eq!(place(json!({ "command": ["a", "b c"] })), "a 'b c'");
}

#[test]
fn secrets_are_found_by_their_names() {
    let of = |value: Value| one(&value).secrets();
    assert_eq!(of(json!("https://h/${A}/${B_2}")), ["A", "B_2"]);
    assert_eq!(of(json!({ "webhook": "https://h/${A}", "secret": "C" })), ["C", "A"]);
    assert_eq!(fields("a${B}c"), [("a", Some("B")), ("c", None)]);
    assert_eq!(fields("a${B"), [("a${B", None)]);
}

#[test]
fn a_server_of_mails_is_read_with_what_is_usual() {
    let read = |value: Value| {
        let text = value.to_string();
        read_smtp(Json::new(&text), &Path::Root).map_err(|error| error.to_string())
    };
    let server = read(json!({ "host": "mail.lab", "from": "tpu@lab.org" })).unwrap().unwrap();
    assert_eq!((server.port, server.tls), (587, SmtpTls::Starttls));
    let known = json!({ "host": "mail.lab", "tls": "tls", "user": "a@lab.org", "secret": "PW" });
    let server = read(known).unwrap().unwrap();
    assert_eq!((server.port, server.from.as_str()), (465, "a@lab.org"));
    assert_eq!(read(Value::Null), Ok(None));
    let alone = json!({ "host": "localhost", "tls": "none", "user": "a@b.c", "secret": "PW" });
    assert!(read(alone).is_ok(), "nobody listens between");
    for (value, what) in [
        (json!({}), "host"),
        (json!({ "host": "h" }), "from"),
        (json!({ "host": "h", "from": "x" }), "from"),
        (json!({ "host": "h", "from": "a@b.c", "tls": "ssl" }), "starttls"),
        (json!({ "host": "h", "from": "a@b.c", "port": 70_000 }), "port"),
        (json!({ "host": "h", "from": "a@b.c", "user": "u" }), "both"),
        (
            json!({ "host": "h", "from": "a@b.c", "user": "u", "secret": "hunter 2" }),
            "name of a secret",
        ),
        (json!({ "host": "h", "from": "a@b.c", "pasword": "x" }), "alone"),
        (json!({ "host": "h", "tls": "none", "user": "a@b.c", "secret": "PW" }), "unprotected"),
        (json!({ "host": "h\r\n", "from": "a@b.c" }), "host"),
    ] {
        let said = read(value.clone()).unwrap_err();
        assert!(said.contains(what), "{value}: {said}");
    }
}
