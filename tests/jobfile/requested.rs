//! A TPU that is asked for by a queued resource: its states are shown as the control plane tells them, a kill takes the
//! request back whatever it says of itself, one that ends without a TPU is asked for again, in its time, and it is waited
//! for as long as it takes. Over the simulated cloud itself, and over Google's API with the same cloud behind.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use tpu_core::model::options::KindOptions;
use tpu_core::model::target::Pricing;
use tpu_engine::provider::{Provider, RequestId, TargetSpec};
use tpu_lab::sim::Event;
use tpu_ops::act::{provision, target_spec};
use tpu_ops::base::providers::Providers;
use tpu_system::sys::clock::{Clock as _, ManualClock};
use tpu_system::sys::env::Env;

use super::orders::play;
use crate::common::env::TestEnv;
use crate::common::rest::{Rest, Served};
use crate::common::sim::{Sim, ZONE};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const JOB: &str = "target: {accelerator: v4-8, zone: zone-a, pricing: spot, mode: queued-resources}\n\
                   tpu: {name: mine}\ncommand: exec sleep 1000\n";

struct Lab {
    env: TestEnv,
    /// Google's API, where that is what is asked.
    _served: Option<Served>,
}

impl Lab {
    /// There is no capacity yet.
    fn new(is_google: bool) -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        let served = is_google.then(|| Served::beside(&mut env));
        if served.is_none() {
            env.set("TPU_CLOUD", "sim");
        }
        drop(env.tpu("register other --type v3-8 --zone zone-a").exits(0));
        drop(env.tpu("check-status --json").exits(0));
        let lab = Self { env, _served: served };
        play(&lab.env, "[timing]\ncreate_s = 0.3\ndelete_s = 0.2\n");
        lab.event("no-capacity");
        lab
    }

    fn event(&self, words: &str) {
        drop(self.env.tpu(&format!("sim event {words}")).exits(0));
    }

    fn say(&self, word: &str) {
        self.event(&format!("say-queued target=mine word={word}"));
        drop(self.env.tpu("ack").exits(0));
    }

    fn submit(&self) {
        let file = self.env.path("job.yaml");
        write_file(&file, JOB);
        drop(self.env.tpu_words(&["submit", file.to_str().unwrap()]).exits(0));
    }

    fn why(&self) -> String {
        self.env.tpu("explain 1").exits(0).stdout
    }

    /// What is queued at the control plane.
    fn requests(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("tpu-state/sim.json")).unwrap();
        let fleet: Value = serde_json::from_str(&text).unwrap();
        fleet["requests"].as_object().unwrap().keys().cloned().collect()
    }

    /// How often it was queued.
    fn queued(&self) -> usize {
        let text = std::fs::read_to_string(self.env.path("tpu-state/sim.json")).unwrap();
        let fleet: Value = serde_json::from_str(&text).unwrap();
        let all = fleet["history"].as_array().unwrap().iter();
        all.filter(|happened| happened["what"] == "queued").count()
    }

    fn runs(&self) -> bool {
        self.env.jobs("alice").iter().any(|job| job["tpu"] == "mine")
    }
}

fn each(check: impl Fn(&Lab)) {
    for is_google in [false, true] {
        check(&Lab::new(is_google));
    }
}

#[test]
fn its_states_are_shown_and_a_kill_takes_it_back() {
    each(|lab| {
        let _monitor = lab.env.daemon(&[]);
        lab.submit();
        wait_until("it waits", || lab.why().contains("mine-q: WAITING_FOR_RESOURCES for"));
        assert!(lab.why().contains("its place in line is not told"), "{}", lab.why());
        for word in ["CREATING", "ACCEPTED", "PROVISIONING", "WAITING_FOR_RESOURCES"] {
            lab.say(word);
            wait_until(word, || lab.why().contains(&format!("mine-q: {word} for")));
            let shown = lab.env.tpu("check-status mine").exits(0).stdout;
            assert!(shown.contains(word), "{shown}");
        }
        assert_eq!(lab.requests(), ["mine-q"]);
        drop(lab.env.tpu("kill 1 -y").exits(0));
        wait_until("it is taken back", || lab.requests().is_empty());
        assert_eq!(lab.queued(), 1, "and asked for once");
        assert!(!lab.runs());
    });
}

#[test]
fn one_that_has_ended_is_taken_away_and_asked_for_again_in_its_time() {
    each(|lab| {
        let _monitor = lab.env.daemon(&[]);
        lab.submit();
        wait_until("it waits", || lab.queued() == 1);
        lab.say("FAILED");
        wait_until("it rests", || {
            let why = lab.why();
            why.contains("its queued resource mine-q ended as FAILED")
                && why.contains("is asked for again in")
        });
        drop(lab.env.tpu("ack").exits(0));
        wait_until("it is asked for again", || lab.queued() == 2);
        lab.event("capacity");
        wait_until("it runs", || lab.runs());
        let made = (lab.queued(), lab.requests());
        assert_eq!(made, (2, vec!["mine-q".to_owned()]), "not again and again");
    });
}

#[test]
fn one_that_has_ended_goes_with_its_job() {
    each(|lab| {
        let first = lab.env.daemon(&[]);
        lab.submit();
        wait_until("it waits", || lab.queued() == 1);
        // Nobody sees its end but he who comes after the kill.
        first.kill();
        lab.event("say-queued target=mine word=SUSPENDED");
        drop(lab.env.tpu("kill 1 -y").exits(0));
        let _next = lab.env.daemon(&[]);
        wait_until("it is taken away", || lab.requests().is_empty());
        wait_until("nobody makes it", || {
            let makings = lab.env.data()["queue"]["makings"].as_array().cloned();
            makings.unwrap_or_default().is_empty()
        });
        assert_eq!(lab.queued(), 1);
    });
}

#[test]
fn capacity_after_hours_is_used() {
    let sim = Sim::new(&[("other", "v3-8")]);
    waited_for(Arc::new(sim.another_door()), &sim.clock, &|event| sim.pull(event));
}

#[test]
fn capacity_after_hours_is_used_over_rest() {
    let rest = Rest::new(&[("other", "v3-8")]);
    let pull = |event: &Event| rest.sim().pull(event).unwrap();
    waited_for(Arc::new(rest.another(1)), &rest.clock, &pull);
}

fn waited_for(cloud: Arc<dyn Provider>, clock: &Arc<ManualClock>, pull: &dyn Fn(&Event)) {
    let env = TestEnv::new();
    let mut ctx = env.ctx(Env::fixed([("HOME", env.path("").to_str().unwrap())]));
    ctx.effects.clock = Arc::clone(clock) as Arc<_>;
    ctx.providers = Providers::fixed(cloud).into();
    pull(&Event::NoCapacity { target: None, zone: None, times: None, for_s: None });
    let spec = TargetSpec {
        name: "mine".into(),
        zone: ZONE.to_owned(),
        accelerator: "v4-8".to_owned(),
        pricing: Pricing::Spot,
        runtime_version: None,
        queued: true,
        options: KindOptions::default(),
    };
    target_spec::remember(&ctx, &spec).unwrap();
    let began = clock.monotonic();
    let later = began + Duration::from_secs(3 * 3600);
    let mut is_there = false;
    let mut go_on = || {
        if clock.monotonic() > later && !is_there {
            pull(&Event::Capacity { target: None, zone: None });
            is_there = true;
        }
        Ok(())
    };
    let request = RequestId("r1".to_owned());
    let fact = provision::make_ready(&ctx, &spec, &request, false, &mut go_on).unwrap();
    assert_eq!(fact.raw_state, "READY");
    assert!(clock.monotonic() > later);
}
