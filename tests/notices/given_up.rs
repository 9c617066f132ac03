//! What cannot be told for a day is given up: the journal says so, and `doctor` and `notify` show it.

use std::sync::{Arc, Mutex, PoisonError};

use tpu_core::model::time::Timestamp;
use tpu_ops::Ctx;
use tpu_ops::act::notices::{Follower, deliver, round};
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::env::Env;
use tpu_wire::notices::body;

use super::hook::{Fate, Hook};
use super::{Lab, webhook};

#[test]
fn a_day_later_it_is_given_up_and_everybody_can_see_it() {
    let lab = Lab::new();
    let refuses = Arc::new(Mutex::new(true));
    let does = Arc::clone(&refuses);
    let hook = Hook::new(move |_| {
        let refuses = *does.lock().unwrap_or_else(PoisonError::into_inner);
        if refuses { Fate::Refused(500) } else { Fate::Taken }
    });
    lab.tell("alice", &webhook(&hook.url()));
    let ctx = lab.env.ctx(Env::read());
    let begin = ctx.clock.now();
    let at = |seconds: i64| -> Ctx {
        let mut ctx = lab.env.ctx(Env::read());
        ctx.effects.clock = Arc::new(ManualClock::new(begin.plus_seconds(seconds)));
        ctx
    };
    lab.fail("alice", "lost");
    let mut follower = Follower::default();
    let mut seconds = 1;
    while seconds < 100_000 {
        let ctx = at(seconds);
        let found = round(&ctx, &mut follower, &[]).unwrap();
        for delivery in &found.deliveries {
            deliver(&ctx, delivery, &body).unwrap();
        }
        seconds += if seconds < 3600 { 600 } else { 7200 };
    }
    let tries = hook.got().len();
    assert!((10..200).contains(&tries), "with a back-off: {tries}");
    assert!(hook.got().iter().all(|got| got.key == hook.got()[0].key), "always the same");
    let lines = lab.env.journal();
    let given_up: Vec<_> = lines.iter().filter(|event| event.kind == "notify").collect();
    assert_eq!(given_up.len(), 1, "{lines:#?}");
    assert!(given_up[0].text.contains("given up") && given_up[0].text.contains("500"));
    assert_eq!(given_up[0].user.as_ref().unwrap().as_str(), "alice");
    drop(lab.env.tpu("notify list alice").exits(0).says(&["1 given up", "500"]));
    drop(lab.env.tpu("doctor").says(&["1 given up", "tpu notify list alice"]));
    // What comes after is told as ever, and that the other was lost is not told in its place.
    *refuses.lock().unwrap_or_else(PoisonError::into_inner) = false;
    lab.fail("alice", "next");
    let ctx = at(2);
    for delivery in &round(&ctx, &mut follower, &[]).unwrap().deliveries {
        deliver(&ctx, delivery, &body).unwrap();
    }
    assert_eq!(hook.evidence(), ["next"]);
    assert!(begin > Timestamp::from_second(0));
}
