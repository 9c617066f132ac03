//! The contract of [`Provider`], held against every provider: the simulator directly, and Google's API with
//! the simulator behind it. The same story ends in the same facts.

mod accounts;
mod stories;

use std::time::Duration;

use tpu_core::model::facts::{TargetState, TargetStep};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Pricing;
use tpu_engine::provider::adopt::{self, Created};
use tpu_engine::provider::{
    Answer, EVERYWHERE, Progress, Provider, ProviderError, RequestId, TargetAt, TargetSpec,
    Trouble, Verb,
};
use tpu_lab::sim::{Call, Event, Scenario};

use crate::common::rest::Rest;
use crate::common::sim::{Sim, ZONE, answer, at, fact, spec, trouble_of};

/// A control plane, and what its owner and time do to it past the door.
trait World {
    fn cloud(&self) -> &dyn Provider;
    fn pull(&self, event: Event);
    fn play(&self, story: &Scenario);
    /// Lets so much time pass, or waits so long.
    fn pass(&self, seconds: f64);
}

impl World for Sim {
    fn cloud(&self) -> &dyn Provider {
        &self.cloud
    }

    fn pull(&self, event: Event) {
        Sim::pull(self, &event);
    }

    fn play(&self, story: &Scenario) {
        self.cloud.play(story).unwrap();
    }

    fn pass(&self, seconds: f64) {
        Sim::pass(self, seconds);
    }
}

impl World for Rest {
    fn cloud(&self) -> &dyn Provider {
        &self.google
    }

    fn pull(&self, event: Event) {
        self.sim().pull(&event).unwrap();
    }

    fn play(&self, story: &Scenario) {
        self.sim().play(story).unwrap();
    }

    fn pass(&self, seconds: f64) {
        self.clock.advance(Duration::from_secs_f64(seconds));
    }
}

/// A fleet with one target, `one`, which is READY; creation takes 2 s, everything else 1 s.
fn worlds() -> Vec<Box<dyn World>> {
    let targets = &[("one", "v2-32")];
    vec![Box::new(Sim::new(targets)), Box::new(Rest::new(targets))]
}

fn each(check: impl Fn(&dyn World)) {
    for world in worlds() {
        check(&*world);
    }
}

fn request(id: &str) -> RequestId {
    RequestId(id.to_owned())
}

fn word(world: &dyn World, name: &str) -> String {
    fact(world.cloud(), ZONE, name).map_or_else(|| "-".to_owned(), |fact| fact.raw_state)
}

fn progress(world: &dyn World, operation: &str) -> Progress {
    world.cloud().operation(operation).unwrap().progress
}

#[test]
fn a_fact_says_everything_about_a_target() {
    each(|world| {
        let one = fact(world.cloud(), ZONE, "one").unwrap();
        assert_eq!((one.state, one.raw_state.as_str()), (TargetState::Ready, "READY"));
        assert_eq!(one.zone.as_deref(), Some(ZONE));
        assert_eq!(one.accelerator.as_deref(), Some("v2-32"));
        assert_eq!(one.pricing, Pricing::Spot);
        assert_eq!(one.endpoints.len(), 4, "{:?}", one.endpoints);
        assert_eq!(one.health.as_deref(), Some("HEALTHY"));
        assert!(!one.is_flagged());
        assert_eq!(one.source, world.cloud().name().as_str());
    });
}

#[test]
fn a_target_is_made_used_and_taken_away() {
    each(|world| {
        let cloud = world.cloud();
        let made = cloud.create(&spec("two"), &request("r1")).unwrap();
        assert_eq!((made.verb, made.progress), (Verb::Create, Progress::Running));
        let pending = fact(cloud, ZONE, "two").unwrap();
        assert_eq!(pending.state.step(), TargetStep::Wait);
        assert_eq!(pending.endpoints, Vec::<String>::new());
        assert_eq!(pending.request.as_deref(), Some("r1"));
        world.pass(1.0);
        assert_eq!(word(world, "two"), "CREATING");
        world.pass(1.0);
        assert_eq!(word(world, "two"), "READY");
        assert_eq!(progress(world, &made.name), Progress::Done);
        assert_eq!(fact(cloud, ZONE, "two").unwrap().endpoints.len(), 1);

        let gone = cloud.delete(&at("two"), false).unwrap();
        assert_eq!(word(world, "two"), "DELETING");
        world.pass(1.0);
        assert_eq!(word(world, "two"), "-");
        assert_eq!(progress(world, &gone.name), Progress::Done);
        assert_eq!(word(world, "one"), "READY", "nobody asked for that");
    });
}

#[test]
fn a_request_is_carried_out_once_however_often_it_is_made() {
    each(|world| {
        let cloud = world.cloud();
        let first = cloud.create(&spec("two"), &request("r1")).unwrap();
        let again = cloud.create(&spec("two"), &request("r1")).unwrap();
        assert_eq!(first.name, again.name);
        world.pass(2.0);
        let late = cloud.create(&spec("two"), &request("r1")).unwrap();
        assert_eq!((late.name, late.progress), (first.name, Progress::Done));
        assert_eq!(word(world, "two"), "READY");
        let deleted = cloud.delete(&at("two"), false).unwrap();
        assert_eq!(cloud.delete(&at("two"), false).unwrap().name, deleted.name);
    });
}

#[test]
fn what_exists_is_adopted_only_by_its_own_request() {
    each(|world| {
        let cloud = world.cloud();
        let error = cloud.create(&spec("one"), &request("r1")).unwrap_err();
        assert_eq!(error.trouble, Trouble::AlreadyExists);
        assert_eq!(error.existing.as_ref().unwrap().raw_state, "READY");
        let refused = adopt::create(cloud, &spec("one"), &request("r1")).unwrap_err();
        assert_eq!(refused.trouble, Trouble::AlreadyExists);
        assert!(refused.message.contains("its type is v2-32, asked for was v2-8"), "{refused}");

        // A preempted target still has its name.
        world.pull(Event::Preempt { target: "one".to_owned() });
        let error = cloud.create(&spec("one"), &request("r2")).unwrap_err();
        assert_eq!(error.existing.unwrap().state, TargetState::Preempted);
    });
}

#[test]
fn a_lost_answer_to_a_creation_ends_in_one_target_that_is_ours() {
    each(|world| {
        let lost = Event::LoseAnswer {
            call: Some(Call::Create),
            target: Some("two".to_owned()),
            times: Some(1),
        };
        world.pull(lost);
        let cloud = world.cloud();
        let error = adopt::create(cloud, &spec("two"), &request("r1")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Transient);
        let found = match adopt::create(cloud, &spec("two"), &request("r1")).unwrap() {
            Created::Operation(operation) => operation.target,
            Created::Adopted(fact) => fact.name,
        };
        assert_eq!(found.as_str(), "two");
        world.pass(2.0);
        assert_eq!(word(world, "two"), "READY");
        let spec = TargetSpec { accelerator: "v3-8".to_owned(), ..spec("two") };
        let other = adopt::create(cloud, &spec, &request("r2")).unwrap_err();
        assert_eq!(other.trouble, Trouble::AlreadyExists);
    });
}

#[test]
fn deleting_what_is_not_there_is_done() {
    each(|world| {
        let operation = world.cloud().delete(&at("nobody"), true).unwrap();
        assert_eq!(operation.progress, Progress::Done);
        let elsewhere = TargetAt::new(TargetName::from("one"), Some("zone-2".to_owned()));
        assert_eq!(world.cloud().delete(&elsewhere, false).unwrap().progress, Progress::Done);
        assert_eq!(word(world, "one"), "READY", "a target of another zone is another target");
    });
}

#[test]
fn a_target_is_stopped_started_and_restarted() {
    each(|world| {
        let cloud = world.cloud();
        let stopping = cloud.stop(&at("one")).unwrap();
        assert_eq!(word(world, "one"), "STOPPING");
        world.pass(1.0);
        assert_eq!(word(world, "one"), "STOPPED");
        assert_eq!(progress(world, &stopping.name), Progress::Done);
        let error = cloud.stop(&at("one")).unwrap_err();
        assert_eq!(error.trouble, Trouble::User);
        assert!(error.message.contains("it is STOPPED, and must be READY"), "{error}");
        let error = cloud.reboot(&at("one")).unwrap_err();
        assert_eq!(error.trouble, Trouble::User);
        cloud.start(&at("one")).unwrap();
        assert_eq!(word(world, "one"), "STARTING");
        world.pass(1.0);
        assert_eq!(word(world, "one"), "READY");
        if cloud.can_reboot() {
            let first = cloud.reboot(&at("one")).unwrap();
            assert_eq!(cloud.reboot(&at("one")).unwrap().name, first.name, "asked again");
            assert_eq!(fact(cloud, ZONE, "one").unwrap().state, TargetState::Pending);
            world.pass(1.0);
        } else {
            // Then a restart is a stop and a start, and this call does nothing at all.
            assert_eq!(cloud.reboot(&at("one")).unwrap_err().trouble, Trouble::User);
        }
        assert_eq!(word(world, "one"), "READY");
        let nobody = cloud.start(&at("nobody")).unwrap_err();
        assert_eq!(nobody.trouble, Trouble::NotFound);
    });
}

#[test]
fn a_stock_out_arrives_in_the_operation_and_leaves_nothing() {
    each(|world| {
        world.pull(Event::NoCapacity {
            target: Some("two".to_owned()),
            zone: None,
            times: Some(20),
            for_s: None,
        });
        for attempt in 0..20 {
            let id = format!("r{attempt}");
            let operation = world.cloud().create(&spec("two"), &request(&id)).unwrap();
            assert_eq!(operation.progress, Progress::Running);
            world.pass(2.0);
            let operation = world.cloud().operation(&operation.name).unwrap();
            assert_eq!(trouble_of(&operation), Some(Trouble::NoCapacity));
            assert_eq!(word(world, "two"), "-");
        }
        world.cloud().create(&spec("two"), &request("last")).unwrap();
        world.pass(2.0);
        assert_eq!(word(world, "two"), "READY");
    });
}

#[test]
fn quota_says_how_much_is_used_and_allowed() {
    each(|world| {
        world.pull(Event::Quota { zone: ZONE.to_owned(), limit: Some(1) });
        let error = world.cloud().create(&spec("two"), &request("r1")).unwrap_err();
        assert_eq!(error.trouble, Trouble::Quota);
        assert!(error.message.contains("1 used, limit 1"), "{error}");
        assert!(!error.trouble.is_worth_repeating());
    });
}

#[test]
fn a_request_that_is_wrong_is_the_users_business() {
    each(|world| {
        let wrong = TargetSpec { accelerator: "v99-8".to_owned(), ..spec("two") };
        let error = world.cloud().create(&wrong, &request("r1")).unwrap_err();
        assert_eq!(error.trouble, Trouble::User);
        assert!(error.message.contains("v99-8"), "{error}");
        assert_eq!(word(world, "two"), "-");
    });
}

#[test]
fn five_failed_lists_say_nothing_about_any_target() {
    each(|world| {
        let cloud = world.cloud();
        let Answer::Facts { observed_at, .. } = answer(cloud, ZONE) else { panic!("no answer") };
        for trouble in [Trouble::Transient, Trouble::Auth, Trouble::Permission] {
            world.pull(Event::Error {
                class: trouble,
                call: Some(Call::List),
                target: None,
                zone: Some(ZONE.to_owned()),
                times: Some(5),
                for_s: None,
            });
            for _ in 0..5 {
                world.pass(1.0);
                match answer(cloud, ZONE) {
                    Answer::Unknown { error, last } => {
                        assert_eq!(error.trouble, trouble);
                        assert!(last >= Some(observed_at), "{last:?}");
                    }
                    facts @ Answer::Facts { .. } => panic!("a failed call gave {facts:?}"),
                }
            }
            assert_eq!(word(world, "one"), "READY");
        }
    });
}

#[test]
fn an_outage_silences_one_zone_and_no_other() {
    each(|world| {
        let elsewhere = TargetSpec { zone: "zone-2".to_owned(), ..spec("two") };
        world.cloud().create(&elsewhere, &request("r1")).unwrap();
        world.pull(Event::Outage { zone: ZONE.to_owned(), for_s: Some(60.0) });
        let answers = world.cloud().list(&[ZONE.to_owned(), "zone-2".to_owned()]);
        assert_eq!(answers.len(), 2);
        assert!(matches!(answers[0].answer, Answer::Unknown { last: None, .. }));
        assert!(matches!(&answers[1].answer, Answer::Facts { targets, .. } if targets.len() == 1));
        let error = world.cloud().delete(&at("one"), false).unwrap_err();
        assert_eq!(error.trouble, Trouble::Transient);
        world.pass(60.0);
        assert_eq!(word(world, "one"), "READY", "a deletion that was refused has no effect");
        let answers = world.cloud().list(&[]);
        let zones = answers.iter().filter(|answer| answer.zone != EVERYWHERE);
        assert_eq!(zones.count(), 2, "all zones, if none is named");
        let rest = answers.iter().filter(|answer| answer.zone == EVERYWHERE);
        let is_empty =
            |answer: &Answer| matches!(answer, Answer::Facts { targets, .. } if targets.is_empty());
        assert!(
            rest.clone().all(|answer| is_empty(&answer.answer)),
            "nothing is in any other zone"
        );
    });
}

#[test]
fn words_that_nobody_knows_allow_nothing() {
    each(|world| {
        for word in ["HIDING", "UNHIDING", "EVICTED_BY_ALIENS", ""] {
            world.pull(Event::Say { target: "one".to_owned(), word: word.to_owned() });
            let one = fact(world.cloud(), ZONE, "one").unwrap();
            assert_eq!((one.raw_state.as_str(), one.state.step()), (word, TargetStep::Nothing));
        }
    });
}

#[test]
fn errors_of_every_call_come_as_they_are_and_have_no_effect() {
    each(|world| {
        let cloud = world.cloud();
        let fail = |call, trouble| {
            world.pull(Event::Error {
                class: trouble,
                call: Some(call),
                target: None,
                zone: None,
                times: Some(1),
                for_s: None,
            });
        };
        let is = |result: Result<_, ProviderError>, trouble| {
            assert_eq!(
                result.map(|_: tpu_engine::provider::Operation| ()).unwrap_err().trouble,
                trouble
            );
        };
        fail(Call::Create, Trouble::Quota);
        is(cloud.create(&spec("two"), &request("r1")), Trouble::Quota);
        fail(Call::Delete, Trouble::Permission);
        is(cloud.delete(&at("one"), false), Trouble::Permission);
        fail(Call::Stop, Trouble::Auth);
        is(cloud.stop(&at("one")), Trouble::Auth);
        fail(Call::Start, Trouble::Transient);
        is(cloud.start(&at("one")), Trouble::Transient);
        if cloud.can_reboot() {
            fail(Call::Reboot, Trouble::Transient);
            is(cloud.reboot(&at("one")), Trouble::Transient);
        }
        fail(Call::Describe, Trouble::Auth);
        assert_eq!(cloud.describe(&at("one")).unwrap_err().trouble, Trouble::Auth);
        assert_eq!(cloud.describe(&at("nobody")).unwrap_err().trouble, Trouble::NotFound);
        assert_eq!(cloud.describe(&at("one")).unwrap().raw_state, "READY");
        let made = cloud.create(&spec("two"), &request("r1")).unwrap();
        fail(Call::Operation, Trouble::Transient);
        is(cloud.operation(&made.name), Trouble::Transient);
        assert_eq!(progress(world, &made.name), Progress::Running);
        is(cloud.operation("nothing"), Trouble::NotFound);
        assert_eq!(word(world, "one"), "READY");
    });
}

#[test]
fn a_bucket_is_somewhere_or_nobody_says_so() {
    each(|world| {
        let (name, location) = ("data".to_owned(), "US-CENTRAL1".to_owned());
        world.pull(Event::Bucket { name, location });
        let place = |name: &str| world.cloud().bucket_place(name);
        let asked = place("data").unwrap();
        assert_eq!(
            (asked.location.as_str(), asked.is_near("us-central1-a")),
            ("US-CENTRAL1", Some(true))
        );
        assert_eq!(place("other").unwrap_err().trouble, Trouble::NotFound);
        let class = Trouble::Permission;
        let (call, times) = (Some(Call::Bucket), Some(1));
        world.pull(Event::Error { class, call, target: None, zone: None, times, for_s: None });
        assert_eq!(place("data").unwrap_err().trouble, Trouble::Permission);
        assert!(place("data").is_ok());
    });
}
