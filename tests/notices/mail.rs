//! Mails arrive at a real server: with what happened, by the protection that is set, and with no header of a job's making.

use serde_json::json;

use super::Lab;
use super::hook::Fate;
use super::mails::{Mails, Protection};
use crate::common::wait::wait_until;

impl Lab {
    fn smtp(&self, smtp: &serde_json::Value) {
        drop(self.env.tpu_words(&["set-settings", "smtp", &smtp.to_string(), "alice"]).exits(0));
    }
}

#[test]
fn a_mail_says_what_happened_and_nothing_in_it_becomes_a_header() {
    let lab = Lab::new();
    // The first is taken, and the server dies before it can say so.
    let server = Mails::new(|number| if number == 0 { Fate::Cut } else { Fate::Taken });
    lab.smtp(&json!({ "host": "127.0.0.1", "port": server.port(), "tls": "none", "from": "tpu@lab.org" }));
    lab.tell("alice", &json!([{ "mail": "me@lab.org", "on": "error" }]));
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "x\r\nBcc: all@lab.org\r\n\r\n.\r\nQUIT\u{1b}[2J");
    wait_until("the second try", || server.got().len() == 2);
    let mails = server.got();
    assert_eq!(mails[0].header("Message-ID"), mails[1].header("Message-ID"), "known again");
    assert!(mails[0].header("Message-ID").unwrap().ends_with("@lab.org>"));
    let mail = &mails[1];
    assert_eq!(mail.to, ["me@lab.org"]);
    assert_eq!(mail.header("Bcc"), None);
    assert_eq!(mail.header("To"), Some("me@lab.org"));
    assert!(mail.header("Subject").unwrap().starts_with("[tpu] alice/7: error"), "{}", mail.text);
    assert!(!mail.text.contains('\u{1b}') && mail.text.contains("Bcc: all"), "{}", mail.text);
    drop(monitor);
}

#[test]
fn a_password_goes_over_a_protected_line_and_only_to_whom_it_trusts() {
    for (protection, word) in [(Protection::Starttls, "starttls"), (Protection::Tls, "tls")] {
        let mut lab = Lab::new();
        lab.keep("SMTP_PASSWORD", "sesame");
        let pem = lab.env.path("lab.pem");
        let server = Mails::protected(protection, &pem);
        lab.smtp(&json!({
            "host": "localhost", "port": server.port(), "tls": word,
            "user": "tpu@lab.org", "secret": "SMTP_PASSWORD",
        }));
        lab.tell("alice", &json!([{ "mail": "me@lab.org" }]));
        drop(lab.env.tpu("notify test alice").exits(6).says(&["ertificate"]));
        assert!(server.got().is_empty(), "nobody has said that this one is who it says");
        lab.env.set("SSL_CERT_FILE", pem.as_os_str());
        drop(lab.env.tpu("notify test alice").exits(0).says(&["it arrived"]));
        let mail = &server.got()[0];
        assert_eq!(mail.login, Some(("tpu@lab.org".to_owned(), "sesame".to_owned())));
        assert!(mail.is_protected, "{word}");
    }
}

#[test]
fn a_server_that_does_not_protect_gets_neither_password_nor_mail() {
    let lab = Lab::new();
    lab.keep("SMTP_PASSWORD", "sesame");
    let server = Mails::new(|_| Fate::Taken);
    lab.smtp(&json!({
        "host": "localhost", "port": server.port(), "tls": "starttls",
        "user": "tpu@lab.org", "secret": "SMTP_PASSWORD",
    }));
    lab.tell("alice", &json!([{ "mail": "me@lab.org" }]));
    drop(lab.env.tpu("notify test alice").exits(6).says(&["STARTTLS"]));
    assert!(server.got().is_empty());
}
