//! Whoever reads the journal on from a place gets each line once and in order, however its parts are renamed meanwhile,
//! and whatever a crash has left of a line.

use std::io::Write as _;

use serde_json::Value;

use tpu_core::model::outbox::Bookmark;
use tpu_system::store::{Event, Store};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;

fn note(store: &Store, text: &str) {
    let event = Event {
        at: SystemClock::new().now(),
        actor: "test".to_owned(),
        account: None,
        user: None,
        job: None,
        kind: "x".to_owned(),
        text: text.to_owned(),
        data: Value::Null,
    };
    store.note(&[event]).unwrap();
}

/// All that stands behind a place, and the place behind that.
fn rest(store: &Store, mut place: Bookmark) -> (Vec<String>, Bookmark) {
    let mut all = Vec::new();
    loop {
        let (events, next) = store.events_since(place).unwrap();
        all.extend(events.into_iter().map(|event| event.text));
        if next == place {
            return (all, place);
        }
        place = next;
    }
}

/// Makes the journal so long that the next line begins another part.
fn fill(env: &TestEnv) {
    let path = env.path("tpu-state/events.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    // No line of an event: it is passed over, also in pieces.
    let line = vec![b'x'; 17 << 20];
    file.write_all(&line).unwrap();
    file.write_all(b"\n").unwrap();
}

#[test]
fn each_line_comes_once_and_in_order_through_three_renamings() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::read());
    let store = &ctx.store;
    assert_eq!(rest(store, store.journal_end().unwrap()).0, Vec::<String>::new());
    let begin = Bookmark::default();
    note(store, "0");
    let (first, place) = rest(store, begin);
    assert_eq!(first, ["0"]);
    note(store, "1");
    for number in 2..5 {
        fill(&env);
        note(store, &number.to_string());
    }
    assert!(env.path("tpu-state/events.3.jsonl").exists());
    let (later, end) = rest(store, place);
    assert_eq!(later, ["1", "2", "3", "4"]);
    assert_eq!(rest(store, end).0, Vec::<String>::new());
    assert_eq!(store.journal_end().unwrap(), end);
    // A place that is in no part any more: all that there is.
    for number in 5..8 {
        fill(&env);
        note(store, &number.to_string());
    }
    assert_eq!(rest(store, place).0, ["4", "5", "6", "7"]);
}

#[test]
fn half_a_line_is_left_for_later_and_one_that_a_crash_has_left_is_passed_over() {
    let env = TestEnv::new();
    let ctx = env.ctx(Env::read());
    note(&ctx.store, "0");
    let place = rest(&ctx.store, Bookmark::default()).1;
    let path = env.path("tpu-state/events.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"at\":\"2026-").unwrap();
    let (none, still) = rest(&ctx.store, place);
    assert_eq!((none, still), (Vec::new(), place));
    note(&ctx.store, "1");
    assert_eq!(rest(&ctx.store, place).0, ["1"]);
}
