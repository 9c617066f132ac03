//! Daemons of many accounts on one state file: together they ask a control plane about as often as one, and only what it has
//! answered counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tpu_core::model::target::ProviderName;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{Answer, EVERYWHERE, Provider, ProviderError, Trouble, ZoneAnswer};
use tpu_ops::Ctx;
use tpu_ops::act::outlook;
use tpu_ops::base::providers::Providers;
use tpu_ops::base::watch::{self, Hosting};
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::sys::clock::{Clock as _, ManualClock};
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;

/// So many accounts have a daemon.
const ACCOUNTS: usize = 30;

/// An answer of one's own serves so long where nothing is at risk, and that of another daemon.
const OWN: Duration = Duration::from_secs(30);
const SHARED: Duration = Duration::from_secs(60);

/// A control plane that counts how often it is asked.
struct Counts {
    asked: AtomicUsize,
    is_silent: AtomicBool,
    clock: Arc<ManualClock>,
}

impl Provider for Counts {
    fn name(&self) -> ProviderName {
        ProviderName::of("google")
    }

    fn list(&self, _: &[String]) -> Vec<ZoneAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = if self.is_silent.load(Ordering::Relaxed) {
            let error = ProviderError::new(Trouble::Transient, "list targets", "it is silent");
            Answer::Unknown { error, last: None }
        } else {
            Answer::Facts { targets: Vec::new(), observed_at: self.clock.now() }
        };
        vec![ZoneAnswer { zone: EVERYWHERE.to_owned(), answer }]
    }
}

/// Daemons of as many accounts, and what they ask.
struct Lab {
    _env: TestEnv,
    clock: Arc<ManualClock>,
    counts: Arc<Counts>,
    daemons: Vec<(Ctx, LookMemory)>,
}

impl Lab {
    fn new(accounts: usize) -> Self {
        let env = TestEnv::new();
        // A daemon makes it with its lock.
        std::fs::create_dir_all(env.path("tpu-state")).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_795_183_200)));
        let (asked, is_silent) = (AtomicUsize::new(0), AtomicBool::new(false));
        let counts = Arc::new(Counts { asked, is_silent, clock: Arc::clone(&clock) });
        let daemon = |n: usize| {
            let mut ctx = env.ctx(Env::fixed([("HOME", env.root())]));
            ctx.effects.clock = Arc::clone(&clock) as Arc<_>;
            watch::ACTOR.clone_into(&mut ctx.effects.actor);
            // Another tmux server is another place, as another account is.
            ctx.effects.tmux_socket = Some(format!("{}-{n}", env.tmux().socket()));
            ctx.providers = Providers::fixed(Arc::clone(&counts) as Arc<_>).into();
            (ctx, LookMemory::default())
        };
        let daemons = (0..accounts).map(daemon).collect();
        Self { clock, counts, daemons, _env: env }
    }

    /// Each daemon takes a turn; returns how often the control plane was asked for that.
    fn turn(&mut self) -> usize {
        self.counts.asked.store(0, Ordering::Relaxed);
        for (ctx, memory) in &mut self.daemons {
            let who = (ctx.clock.now(), Hosting::Foreground, false);
            watch::note_turn(ctx, who, None, BTreeMap::new()).unwrap();
            memory.share_for(SHARED);
            drop(outlook::survey(ctx, memory, OWN).unwrap());
        }
        self.counts.asked.load(Ordering::Relaxed)
    }

    /// The questions of the turns of a minute, one each ten seconds.
    fn minute(&mut self) -> Vec<usize> {
        let turn = |_| {
            let asked = self.turn();
            self.clock.advance(Duration::from_secs(10));
            asked
        };
        (0..6).map(turn).collect()
    }
}

#[test]
fn thirty_daemons_ask_a_control_plane_once_a_minute() {
    let mut lab = Lab::new(ACCOUNTS);
    // The first of all knows of no other yet.
    assert!(lab.turn() <= 2);
    lab.clock.advance(SHARED);
    assert_eq!(lab.minute(), [1, 0, 0, 0, 0, 0], "one asks for all");
    assert_eq!(lab.minute(), [1, 0, 0, 0, 0, 0]);
}

#[test]
fn a_daemon_that_is_alone_asks_as_before() {
    assert_eq!(Lab::new(1).minute(), [1, 0, 0, 1, 0, 0]);
}

#[test]
fn silence_is_no_answer_for_others() {
    let mut lab = Lab::new(3);
    drop(lab.minute());
    lab.counts.is_silent.store(true, Ordering::Relaxed);
    lab.clock.advance(SHARED);
    assert_eq!(lab.turn(), 3, "each asks for itself");
}
