//! Attacks on a server that listens on a port, one row each: what comes back is a refusal, the state stays as it was byte
//! for byte, and whoever tried what they may not is named in the journal.

mod floods;
mod table;

use std::io::Write as _;
use std::net::Shutdown;

use serde_json::{Value, json};

use tpu_core::model::ids::UserName;
use tpu_core::model::token::{Rights, TokenRole};
use tpu_ops::front::tokens::{self, TokenRequest};

use self::table::{ATTACKS, Attack, BYTES, Bytes, Comes, Who};
use super::{Api, Said, heard};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A server notes so many refusals of a minute and counts so many wrong tokens; then another one is begun.
const ROWS_OF_A_SERVER: usize = 25;
/// What alice's job has printed: nobody who may not see it finds this in an answer.
const HERS: &str = "loss-of-alice";

/// A server over jobs that have ended, and one of alice's that waits under the number 2.
struct Lab {
    api: Api,
    tokens: Vec<(Who, String)>,
}

fn records(env: &TestEnv) -> Vec<Value> {
    let mut record = env.record("alice", 1, "finished");
    record["log_dir"] = Value::from(env.path("logs").to_str().unwrap());
    record["job_tags"] = json!(HERS);
    std::fs::create_dir_all(env.path("logs")).unwrap();
    write_file(&env.path("logs/output.log"), HERS);
    vec![record, env.record("bob", 1, "finished")]
}

impl Lab {
    fn new() -> Self {
        let api = Api::new(records);
        api.env.code("alice", "staging.sh", "true\n");
        api.env.code("bob", "staging.sh", "true\n");
        let mut tokens = vec![
            (Who::Nobody, String::new()),
            (Who::Unknown, format!("tpu_{}", "x".repeat(43))),
            (Who::Viewer, api.token("viewer", TokenRole::Viewer, &[])),
            (Who::BobsViewer, api.token("bobs-viewer", TokenRole::Viewer, &["bob"])),
            (Who::Alices, api.token("alices", TokenRole::Operator, &["alice"])),
            (Who::Bobs, api.token("bobs", TokenRole::Operator, &["bob"])),
            (Who::Admin, api.admin()),
        ];
        let users = Vec::<UserName>::new().into_iter().collect();
        let rights = Rights::of(TokenRole::Admin, users);
        let over = api.ctx.clock.now().plus_seconds(1);
        let request = TokenRequest { name: "late".to_owned(), rights, expires: Some(over) };
        tokens.push((Who::Expired, tokens::create(&api.ctx, &request).unwrap().1));
        wait_until("a token to be over", || api.ctx.clock.now() > over);
        tokens.push((Who::Revoked, api.token("gone", TokenRole::Admin, &[])));
        tokens::revoke(&api.ctx, "gone").unwrap();
        let lab = Self { api, tokens };
        let headers = ["Idempotency-Key: taken", "Content-Type: application/json"];
        let said = lab.api.ask(lab.token(Who::Alices), "POST /api/v1/jobs", &headers, table::JOB);
        assert_eq!(said.is(200).json()["jobs"][0]["window"], 2);
        lab
    }

    fn token(&self, who: Who) -> &str {
        let found = self.tokens.iter().find(|(known, _)| *known == who);
        found.map(|(_, token)| token.as_str()).unwrap()
    }

    /// Sends what a row says.
    fn sends(&self, attack: &Attack) -> Said {
        let filled = |text: &str| text.replace("{token}", self.token(Who::Admin));
        let mut headers: Vec<String> = attack.headers.iter().map(|text| filled(text)).collect();
        if attack.who != Who::Nobody {
            headers.push(format!("Authorization: Bearer {}", self.token(attack.who)));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        self.api.raw(&filled(attack.line), &headers, attack.body)
    }

    /// Sends bytes, and nothing behind them.
    fn sends_bytes(&self, attack: &Bytes) -> Said {
        let mut stream = self.api.connect();
        // Whoever is refused by the beginning is not listened to.
        drop(stream.write_all(&(attack.sends)(self.token(Who::Admin))));
        if attack.ends {
            drop(stream.shutdown(Shutdown::Write));
        }
        heard(stream)
    }

    /// Runs `attack` and says what of its end is not as it should be: the state has changed, somebody is told what is not
    /// theirs, or the journal says something else than who was denied, if `denied` says that somebody was.
    fn holds<'a>(
        &self,
        attack: impl FnOnce() -> Said,
        denied: impl FnOnce(&Said) -> Vec<Option<&'a str>>,
    ) -> (Said, Vec<String>) {
        let (before, lines) = (self.api.env.data_bytes(), self.api.env.journal().len());
        let said = attack();
        let mut wrong = Vec::new();
        if self.api.env.data_bytes() != before {
            wrong.push("the state has changed".to_owned());
        }
        let text = format!("{said:?}");
        let secrets = self.tokens.iter().map(|(_, token)| token.as_str());
        if secrets.filter(|token| !token.is_empty()).any(|token| text.contains(token)) {
            wrong.push("the answer shows a token".to_owned());
        }
        if ["set-cookie", "access-control-allow-origin"].iter().any(|of| said.header(of).is_some())
        {
            wrong.push("the answer lets a page in".to_owned());
        }
        let new: Vec<(String, String)> = self.api.env.journal()[lines..]
            .iter()
            .map(|event| (event.kind.clone(), event.actor.clone()))
            .collect();
        let line = |who: &str| ("denied".to_owned(), format!("api {who}"));
        let wanted = denied(&said).into_iter().map(|who| who.map(line).into_iter().collect());
        let wanted: Vec<Vec<(String, String)>> = wanted.collect();
        if !wanted.contains(&new) {
            wrong.push(format!("the journal says {new:?}, not {wanted:?}"));
        }
        (said, wrong)
    }
}

/// What of an answer is not the refusal that it should be.
fn not_as_described(said: &Said, status: u16) -> Option<String> {
    if said.status != status {
        return Some(format!("not {status}"));
    }
    if said.header("content-type") != Some("application/problem+json") {
        return Some("no problem+json".to_owned());
    }
    let problem = said.json();
    let is_whole = problem["status"] == status
        && ["detail", "hint", "code"].iter().all(|part| problem[part].as_str().is_some());
    let is_plain = said.header("x-content-type-options") == Some("nosniff");
    (!is_whole || !is_plain).then(|| "not a whole problem".to_owned())
}

#[expect(clippy::print_stdout, reason = "it belongs to what the test prints")]
fn report(rows: usize, wrong: &[String]) {
    println!("{rows} attacks");
    assert!(wrong.is_empty(), "{} of {rows}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_attack_is_refused_without_a_trace_and_a_denial_names_who_tried() {
    let mut lab = Lab::new();
    let mut all = Vec::new();
    for (number, attack) in ATTACKS.iter().enumerate() {
        if number % ROWS_OF_A_SERVER == ROWS_OF_A_SERVER - 1 {
            lab.api.end();
            lab.api.begin(|_| {});
        }
        let (said, mut wrong) = lab.holds(|| lab.sends(attack), |_| vec![attack.denied()]);
        match attack.comes {
            Comes::Denied(status) | Comes::Refused(status) => {
                wrong.extend(not_as_described(&said, status));
            }
            Comes::Harmless if said.status != 200 => wrong.push("not 200".to_owned()),
            Comes::Harmless => {}
        }
        let may_see = matches!(attack.who, Who::Admin | Who::Viewer | Who::Alices);
        if !may_see && (said.body.contains(HERS) || said.body.contains("root:")) {
            wrong.push("it tells what is not theirs".to_owned());
        }
        let of = |wrong: String| format!("{}: {wrong}\n  {} {said:?}", attack.name, attack.line);
        all.extend(wrong.into_iter().map(of));
    }
    report(ATTACKS.len(), &all);
}

#[test]
fn what_is_no_request_as_it_should_be_is_given_up_and_nothing_behind_it_is_heard() {
    let lab = Lab::new();
    let mut all = Vec::new();
    for attack in BYTES {
        let admin = Some("token admin");
        let (said, mut wrong) = lab.holds(
            || lab.sends_bytes(attack),
            |said| match said.status {
                408 | 413 => vec![admin],
                // The answer was lost while more was being sent.
                0 if attack.comes.contains(&413) => vec![admin, None],
                _ => vec![None],
            },
        );
        if !attack.comes.contains(&said.status) {
            wrong.push(format!("not {:?}", attack.comes));
        }
        // What we refuse ourselves is a problem; what is no request for us has no words.
        if said.status >= 400 && !said.body.is_empty() {
            wrong.extend(not_as_described(&said, said.status));
        }
        if said.body.contains("HTTP/1.1 ") {
            wrong.push("what stands behind it is answered".to_owned());
        }
        if lab.api.get(lab.token(Who::Admin), "/api/v1/jobs").status != 200 {
            wrong.push("nobody is answered behind it".to_owned());
        }
        all.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}\n  {said:?}", attack.name)));
    }
    report(BYTES.len(), &all);
}
