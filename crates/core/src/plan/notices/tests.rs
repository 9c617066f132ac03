//! Who is sent what when, through failures and crashes.

use serde_json::json;

use super::*;
use crate::model::notice::NoticeFacts;
use crate::model::notify::receivers;

const NOW: i64 = 1_795_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(NOW + second)
}

fn to(word: &str) -> Vec<Receiver> {
    receivers(&json!(word)).unwrap()
}

fn notice(second: i64, occasion: Occasion, told: &str) -> Notice {
    let when = (occasion, at(second));
    Notice::new(when, &UserName::from("alice"), &NoticeFacts::default(), told)
}

fn ids(delivery: &Delivery) -> Vec<&str> {
    delivery.notices.iter().map(|notice| notice.id.as_str()).collect()
}

/// The account that sends.
const MINE: u32 = 1_000;

const ALIVE: &dyn Fn(&str) -> bool = &|_| false;
const DEAD: &dyn Fn(&str) -> bool = &|_| true;

/// Takes what is due; nobody else sends.
fn take_at(outbox: &mut Outbox, second: i64) -> Vec<Delivery> {
    take(outbox, ("me", MINE), ALIVE, at(second))
}

#[test]
fn the_first_goes_at_once_and_what_follows_within_a_minute_goes_together() {
    let mut outbox = Outbox::default();
    let all = to("tmux");
    let put_at = |outbox: &mut Outbox, second: i64| {
        let notice = notice(second, Occasion::Error, "");
        put(outbox, (&all, 60, MINE), &notice, at(second));
        notice.id
    };
    let first = put_at(&mut outbox, 0);
    let sent = take_at(&mut outbox, 0);
    assert_eq!(ids(&sent[0]), [first.as_str()]);
    let second = put_at(&mut outbox, 1);
    assert!(take_at(&mut outbox, 1).is_empty(), "one after the other");
    assert_eq!(settle(&mut outbox, &sent[0], None, at(2)), 0);
    let third = put_at(&mut outbox, 30);
    assert!(take_at(&mut outbox, 61).is_empty());
    assert_eq!(next(&outbox, MINE, ALIVE, at(61)), Some(at(62)));
    let sent = take_at(&mut outbox, 62);
    assert_eq!(ids(&sent[0]), [second.as_str(), third.as_str()]);
    settle(&mut outbox, &sent[0], None, at(63));
    assert_eq!(next(&outbox, MINE, ALIVE, at(64)), None);
    // Long after that one is the first again.
    put_at(&mut outbox, 200);
    assert_eq!(take_at(&mut outbox, 200).len(), 1);
}

#[test]
fn an_account_sends_what_is_of_its_own_jobs_and_what_nobody_is_named_for() {
    let mut outbox = Outbox::default();
    let all = to("tmux");
    put(&mut outbox, (&all, 60, 2_000), &notice(0, Occasion::Error, "theirs"), at(0));
    assert!(take_at(&mut outbox, 0).is_empty());
    assert_eq!(next(&outbox, MINE, ALIVE, at(0)), None);
    put(&mut outbox, (&all, 60, MINE), &notice(0, Occasion::Error, "mine"), at(0));
    let sent = take_at(&mut outbox, 0);
    assert_eq!(sent.len(), 1);
    settle(&mut outbox, &sent[0], None, at(1));
    assert_eq!(outbox.lines[0].waiting.len(), 1, "theirs still waits");
    assert_eq!(next(&outbox, 2_000, ALIVE, at(1)), Some(at(1)));
    // As an earlier version has written it.
    outbox.lines[0].uid = None;
    assert_eq!(take_at(&mut outbox, 1).len(), 1);
}

#[test]
fn what_failed_is_tried_again_as_it_was_ever_more_rarely() {
    let mut outbox = Outbox::default();
    let all = to("https://h");
    put(&mut outbox, (&all, 60, MINE), &notice(0, Occasion::Error, ""), at(0));
    let first = take_at(&mut outbox, 0).remove(0);
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..10 {
        put(&mut outbox, (&all, 60, MINE), &notice(now, Occasion::Error, "later"), at(now));
        assert_eq!(settle(&mut outbox, &first, Some("500"), at(now)), 0);
        let due = next(&outbox, MINE, ALIVE, at(now)).unwrap();
        pauses.push(due.seconds_since(at(now)));
        now = due.as_second() - NOW;
        assert!(take_at(&mut outbox, now - 1).is_empty());
        assert_eq!(
            take_at(&mut outbox, now),
            std::slice::from_ref(&first),
            "the same under the same id"
        );
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert_eq!(outbox.lines[0].error.as_deref(), Some("500"));
    settle(&mut outbox, &first, None, at(now));
    assert_eq!((outbox.lines[0].attempts, &outbox.lines[0].error), (0, &None));
    assert_eq!(outbox.lines[0].waiting.len(), 10);
}

#[test]
fn what_could_not_be_told_for_a_day_is_given_up() {
    let mut outbox = Outbox::default();
    let all = to("https://h");
    put(&mut outbox, (&all, 60, MINE), &notice(0, Occasion::Error, "old"), at(0));
    let old = take_at(&mut outbox, 0).remove(0);
    put(&mut outbox, (&all, 60, MINE), &notice(80_000, Occasion::Error, "new"), at(80_000));
    assert_eq!(settle(&mut outbox, &old, Some("gone"), at(86_399)), 0);
    let again = take_at(&mut outbox, 90_000).remove(0);
    assert_eq!(again.id, old.id);
    assert_eq!(settle(&mut outbox, &again, Some("gone"), at(90_000)), 1);
    assert_eq!(outbox.lines[0].lost, 1);
    let next = take_at(&mut outbox, 90_001).remove(0);
    assert_eq!(next.notices.len(), 1, "those that are younger stay");
    assert_ne!(next.id, old.id);
}

#[test]
fn only_who_wants_to_know_is_told_and_each_once() {
    let mut outbox = Outbox::default();
    let settings = receivers(&json!(["error=a@b.c", "finished=tmux"])).unwrap();
    let own = receivers(&json!(["resumed=a@b.c", "error=https://h"])).unwrap();
    let all = receivers_of(&settings, Some(&own));
    assert_eq!(all.len(), 3, "one place is one receiver");
    for occasion in [Occasion::Error, Occasion::Resumed, Occasion::Stalled] {
        put(&mut outbox, (&all, 60, MINE), &notice(0, occasion, ""), at(0));
        put(&mut outbox, (&all, 60, MINE), &notice(0, occasion, ""), at(0));
    }
    let mut told: Vec<(String, usize)> = take_at(&mut outbox, 0)
        .iter()
        .map(|delivery| (delivery.to.place(), delivery.notices.len()))
        .collect();
    told.sort();
    assert_eq!(told, [("a@b.c".to_owned(), 2), ("https://h".to_owned(), 1)]);
    assert!(receivers_of(&settings, Some(&[])).is_empty(), "none is nobody");
    assert_eq!(receivers_of(&settings, None).len(), 2);
}

#[test]
fn what_a_dead_sender_had_is_sent_by_the_next_one() {
    let mut outbox = Outbox::default();
    put(&mut outbox, (&to("tmux"), 60, MINE), &notice(0, Occasion::Error, ""), at(0));
    let lost = take(&mut outbox, ("dead", MINE), ALIVE, at(0));
    assert!(take(&mut outbox, ("me", MINE), ALIVE, at(599)).is_empty(), "it may be at it");
    assert_eq!(
        take(&mut outbox.clone(), ("me", MINE), ALIVE, at(600)),
        lost,
        "nobody takes that long"
    );
    assert_eq!(take(&mut outbox, ("me", MINE), DEAD, at(1)), lost);
}

#[test]
fn the_words_of_the_journal_are_what_people_are_told_of() {
    for (kind, text, known) in [
        (
            "error",
            "oom: RESOURCE_EXHAUSTED: x",
            Some((Occasion::Error, Some(ErrorKind::Oom), "RESOURCE_EXHAUSTED: x")),
        ),
        (
            "error",
            "preempted: gone",
            Some((Occasion::Preempted, Some(ErrorKind::Preempted), "gone")),
        ),
        ("error", "stalled: silent", Some((Occasion::Stalled, Some(ErrorKind::Stalled), "silent"))),
        ("error", "what is this", Some((Occasion::Error, None, "what is this"))),
        ("resume", "on v4", Some((Occasion::Resumed, None, "on v4"))),
        ("finished", "exit code 0", Some((Occasion::Finished, None, "exit code 0"))),
        ("stopped", "enough", Some((Occasion::BudgetSpent, None, "enough"))),
        ("patient", "less often", Some((Occasion::BudgetSpent, None, "less often"))),
        ("needs-login", "no key", Some((Occasion::BudgetSpent, None, "no key"))),
        ("notify", "given up", None),
        ("run", "on v4", None),
        ("edit", "x", None),
    ] {
        assert_eq!(occasion(kind, text), known, "{kind} {text}");
    }
}

/// Small and the same on every machine (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

// slow: 39 histories are played, failure by failure.
/// Receivers that fail as they like, senders that die at any moment: whoever knows a delivery by its id has each notice
/// once, in order, and none is missing.
#[test]
fn through_failures_and_crashes_each_notice_arrives_in_order_and_once() {
    let all: Vec<Receiver> =
        ["https://a", "b@c.d", "tmux"].iter().flat_map(|word| to(word)).collect();
    for seed in 1..40 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let (mut outbox, mut now) = (Outbox::default(), 0);
        let mut put_in: Vec<String> = Vec::new();
        let mut had: Vec<(Receiver, Vec<String>, Vec<String>)> =
            all.iter().map(|to| (to.clone(), Vec::new(), Vec::new())).collect();
        let mut sender = 0_u64;
        let mut rounds = 0;
        while rounds < 100_000 {
            rounds += 1;
            now += i64::try_from(dice.below(40)).unwrap();
            if put_in.len() < 250 {
                for _ in 0..dice.below(4) {
                    let notice = notice(now, Occasion::Error, &put_in.len().to_string());
                    put(&mut outbox, (&all, 60, MINE), &notice, at(now));
                    put_in.push(notice.id);
                }
            } else if outbox.lines.iter().all(|line| line.waiting.is_empty()) {
                break;
            }
            // What stands in the file is all that a successor has.
            let bytes = serde_json::to_vec(&outbox).unwrap();
            outbox = serde_json::from_slice(&bytes).unwrap();
            let me = sender.to_string();
            let is_dead = |by: &str| by != me;
            for delivery in take(&mut outbox, (&me, MINE), &is_dead, at(now)) {
                let (_, known, got) = had.iter_mut().find(|(to, ..)| *to == delivery.to).unwrap();
                let fate = dice.below(4);
                if fate != 0 && !known.contains(&delivery.id) {
                    known.push(delivery.id.clone());
                    got.extend(delivery.notices.iter().map(|notice| notice.id.clone()));
                }
                if fate == 2 {
                    sender += 1;
                    break;
                }
                let failure = match fate {
                    0 => Some("refused"),
                    1 => Some("cut"),
                    _ => None,
                };
                settle(&mut outbox, &delivery, failure, at(now));
            }
        }
        for (to, _, got) in &had {
            assert_eq!(*got, put_in, "seed {seed}: {}", to.place());
        }
    }
}
