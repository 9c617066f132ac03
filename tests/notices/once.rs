//! Each event reaches each receiver once and in order, whatever fails: receivers that refuse, answer with 500, hang,
//! break off in the middle of an answer or are not there at all, and a daemon that is killed at any moment.
//!
//! What a receiver cannot tell apart by the id that comes with it would be a second one. `TPU_PROVE_NOTICES` events in
//! all (`./x prove notices`: 10 000); a share of them in the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::json;

use super::Lab;
use super::hook::{Fate, Got, Hook};
use super::mails::Mails;
use crate::common::dice::Dice;
use crate::common::wait::wait_at_most;
use std::time::Duration;
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// Events in the suite.
const SHARE: usize = 1_200;

/// At most so many at once.
const BURST: usize = 150;

/// As many events as `./x prove notices` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<usize> {
    std::env::var("TPU_PROVE_NOTICES").ok().and_then(|text| text.parse().ok())
}

/// What becomes of request `number` of a receiver that fails.
fn fate(seed: u64, number: usize) -> Fate {
    let mut dice = Dice((seed << 32) ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    dice.below(7);
    match dice.below(20) {
        0..12 => Fate::Taken,
        12..15 => Fate::Refused(500),
        15..19 => Fate::Cut,
        _ => Fate::Hangs,
    }
}

/// A delivery as its receiver saw it: how it is known, what was in it, and what became of it.
struct Seen {
    key: String,
    lines: Vec<String>,
    fate: Fate,
}

/// Insists that whoever knows a delivery by its key has each line once, in order; `kills` is how often a daemon ended
/// without a word.
fn has_each_once(who: &str, seen: &[Seen], wanted: &[String], kills: usize) {
    let mut by_key: BTreeMap<&str, &Vec<String>> = BTreeMap::new();
    let mut all = Vec::new();
    let mut surely = BTreeSet::new();
    let mut again = 0;
    for of in seen {
        if let Some(before) = by_key.get(of.key.as_str()) {
            assert_eq!(**before, of.lines, "{who}: {} is two things", of.key);
        } else {
            by_key.insert(&of.key, &of.lines);
            all.extend(of.lines.iter().cloned());
        }
        again += usize::from(surely.contains(&of.key));
        if of.fate == Fate::Taken {
            surely.insert(of.key.clone());
        }
    }
    assert!(all == wanted, "{who}: {}", first_difference(&all, wanted));
    assert!(
        again <= kills,
        "{who}: {again} times sent what it had said that it had, {kills} kills"
    );
}

fn first_difference(got: &[String], wanted: &[String]) -> String {
    let at = got.iter().zip(wanted).position(|(one, other)| one != other);
    let at = at.unwrap_or(got.len().min(wanted.len()));
    let mut said = format!("{} of {}, different from {at} on", got.len(), wanted.len());
    let around =
        |all: &[String]| all.iter().skip(at).take(3).cloned().collect::<Vec<_>>().join(", ");
    let _ = write!(said, ": got {}, wanted {}", around(got), around(wanted));
    said
}

fn seen(got: &[Got]) -> Vec<Seen> {
    let one = |got: &Got| Seen { key: got.key.clone(), lines: got.evidence(), fate: got.fate };
    got.iter().map(one).collect()
}

#[test]
fn each_event_arrives_once_and_in_order_whoever_fails_and_dies() {
    let events = asked_for().unwrap_or(SHARE);
    let clock = SystemClock::new();
    let lab = Lab::new();
    let good = Hook::good();
    let fails = Hook::new(|number| fate(1, number));
    let mut away = Hook::new(|number| if number % 3 == 0 { Fate::Cut } else { Fate::Taken });
    let bobs = Hook::new(|number| fate(2, number));
    let mails = Mails::new(|number| match fate(3, number) {
        // One that hangs is enough of them; each takes a quarter of a minute.
        Fate::Hangs => Fate::Cut,
        other => other,
    });
    let script = format!("read -r line; echo \"$line\" >> {}/told", lab.env.root());
    let smtp =
        json!({ "host": "127.0.0.1", "port": mails.port(), "tls": "none", "from": "tpu@lab.org" });
    drop(lab.env.tpu_words(&["set-settings", "smtp", &smtp.to_string(), "alice"]).exits(0));
    lab.tell(
        "alice",
        &json!([
            { "webhook": good.url() }, { "webhook": fails.url() }, { "webhook": away.url() },
            { "mail": "me@lab.org" }, { "command": ["bash", "-c", script] },
        ]),
    );
    lab.tell("bob", &json!([{ "webhook": bobs.url() }]));
    let mut dice = Dice(0x1234_5678_9abc_def1);
    let (mut alice, mut bob) = (Vec::new(), Vec::new());
    let mut monitor = Some(lab.env.daemon(&[]));
    let (mut kills, mut is_away) = (0, false);
    while alice.len() + bob.len() < events {
        let count = (1 + dice.below(BURST)).min(events - alice.len() - bob.len());
        let is_bobs = dice.below(4) == 0;
        let (user, all) = if is_bobs { ("bob", &mut bob) } else { ("alice", &mut alice) };
        let lines: Vec<String> =
            (all.len()..all.len() + count).map(|n| format!("{user} {n}")).collect();
        all.extend(lines.iter().cloned());
        lab.fail_each(user, lines);
        if dice.below(3) == 0 {
            if is_away {
                away.up();
            } else {
                away.down();
            }
            is_away = !is_away;
        }
        match dice.below(5) {
            // At whatever it is.
            0 => {
                drop(monitor.take());
                kills += 1;
                monitor = Some(lab.env.start_tpu("daemon run", &[]));
            }
            1 => {
                let before = (good.got().len(), fails.got().len());
                wait_at_most(Duration::from_secs(60), "another request", || {
                    (before != (good.got().len(), fails.got().len())
                        || good.evidence().len() == alice.len())
                    .then_some(())
                });
            }
            _ => {}
        }
    }
    if is_away {
        away.up();
    }
    let of_mails = || -> Vec<Seen> {
        let one = |mail: &super::mails::Mail| {
            let (_, text) = mail.text.split_once("\r\n\r\n").unwrap();
            let lines = text.lines().filter_map(|line| line.rsplit_once("oom: "));
            Seen {
                key: mail.header("Message-ID").unwrap().to_owned(),
                lines: lines.map(|(_, line)| line.to_owned()).collect(),
                fate: mail.fate,
            }
        };
        mails.got().iter().map(one).collect()
    };
    let outbox =
        || std::fs::read_to_string(lab.env.path("tpu-state/outbox.json")).unwrap_or_default();
    let is_empty = || outbox().matches("\"waiting\":[]").count() == 7;
    wait_at_most(Duration::from_secs(600), "everything to be told", || {
        (good.evidence().len() == alice.len() && is_empty()).then_some(())
    });
    let told = std::fs::read_to_string(lab.env.path("told")).unwrap();
    let mut of_command = Vec::new();
    for line in told.lines() {
        let body: serde_json::Value = serde_json::from_str(line).unwrap();
        let all = body["events"].as_array().unwrap().clone();
        let text = |event: &serde_json::Value| event["evidence"].as_str().unwrap().to_owned();
        // A command is told by the ids of the events alone.
        let key =
            all.iter().map(|event| event["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        of_command.push(Seen { key, lines: all.iter().map(text).collect(), fate: Fate::Taken });
    }
    has_each_once("the good one", &seen(&good.got()), &alice, kills);
    has_each_once("the one that fails", &seen(&fails.got()), &alice, kills);
    has_each_once("the one that comes and goes", &seen(&away.got()), &alice, kills);
    has_each_once("the mails", &of_mails(), &alice, kills);
    has_each_once("the command", &of_command, &alice, kills);
    has_each_once("bob", &seen(&bobs.got()), &bob, kills);
    let got = good.got();
    let ids = got.iter().flat_map(|got| got.body["events"].as_array().unwrap().clone());
    let ids: BTreeSet<String> = ids.map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), alice.len(), "no two events have one id");
    eprintln!(
        "{} events to 6 receivers, {kills} kills, {} requests and {} mails, {} s",
        alice.len() + bob.len(),
        good.got().len() + fails.got().len() + away.got().len() + bobs.got().len(),
        mails.got().len(),
        clock.monotonic().as_secs()
    );
    drop(monitor);
}
