//! The longer stories of the contract: states and queued requests as they come, what fails late, vanishes or
//! comes twice, and a night that ends in the same facts everywhere.

use tpu_core::model::facts::{TargetFact, TargetState, TargetStep};
use tpu_core::model::target::Pricing;
use tpu_engine::provider::adopt;
use tpu_engine::provider::{Answer, Progress, TargetSpec, Trouble, Verb};
use tpu_gcp::states;
use tpu_lab::sim::{Call, Event, Scenario};

use super::{World, each, progress, request, word, worlds};
use crate::common::rest::Rest;
use crate::common::sim::{Sim, ZONE, answer, at, fact, spec, trouble_of};

#[test]
fn every_state_and_every_health_is_told_as_it_is() {
    each(|world| {
        for word in [
            "CREATING",
            "READY",
            "RESTARTING",
            "REIMAGING",
            "DELETING",
            "REPAIRING",
            "STOPPED",
            "STOPPING",
            "STARTING",
            "PREEMPTED",
            "TERMINATED",
            "HIDING",
            "HIDDEN",
            "UNHIDING",
            "UNKNOWN",
        ] {
            world.pull(Event::Say { target: "one".to_owned(), word: word.to_owned() });
            let one = fact(world.cloud(), ZONE, "one").unwrap();
            assert_eq!((one.raw_state.as_str(), one.state), (word, states::of_target(word)));
            assert_eq!(world.cloud().describe(&at("one")).unwrap().raw_state, word);
        }
        world.pull(Event::Say { target: "one".to_owned(), word: "READY".to_owned() });
        world.pull(Event::Maintenance { target: "one".to_owned(), for_s: None });
        let one = fact(world.cloud(), ZONE, "one").unwrap();
        assert!(one.is_flagged(), "{one:?}");
        assert_eq!(one.health.as_deref(), Some("UNHEALTHY_MAINTENANCE"));
        assert_eq!(one.symptoms, ["MAINTENANCE"]);
    });
}

#[test]
fn a_queued_request_waits_becomes_a_target_and_goes_with_it() {
    each(|world| {
        let cloud = world.cloud();
        let spec = TargetSpec { queued: true, ..spec("two") };
        world.pull(Event::NoCapacity {
            target: Some("two".to_owned()),
            zone: None,
            times: None,
            for_s: None,
        });
        let made = cloud.create(&spec, &request("r1")).unwrap();
        assert_eq!(progress(world, &made.name), Progress::Done, "queued, and no more than that");
        let seen = |name: &str| {
            let fact = fact(cloud, ZONE, name)?;
            Some((fact.state, fact.raw_state, fact.queued.map(|queued| queued.raw_state)))
        };
        let waiting = "WAITING_FOR_RESOURCES".to_owned();
        for _ in 0..10 {
            assert_eq!(
                seen("two"),
                Some((TargetState::Pending, waiting.clone(), Some(waiting.clone())))
            );
            world.pass(10.0);
        }
        let again = cloud.create(&spec, &request("r2")).unwrap_err();
        assert_eq!(again.trouble, Trouble::AlreadyExists, "never a second one");
        assert_eq!(again.existing.unwrap().state, TargetState::Pending);
        world.pull(Event::Capacity { target: Some("two".to_owned()), zone: None });
        world.pass(2.0);
        assert_eq!(seen("two").unwrap().1, "CREATING");
        world.pass(2.0);
        let active = Some("ACTIVE".to_owned());
        assert_eq!(seen("two"), Some((TargetState::Ready, "READY".to_owned(), active)));
        let two = fact(cloud, ZONE, "two").unwrap();
        assert_eq!((two.pricing, two.request.as_deref()), (Pricing::Spot, Some("r1")));

        world.pull(Event::Preempt { target: "two".to_owned() });
        let suspended = Some("SUSPENDED".to_owned());
        assert_eq!(seen("two"), Some((TargetState::Preempted, "PREEMPTED".to_owned(), suspended)));
        let gone = cloud.delete(&at("two"), true).unwrap();
        assert_eq!(progress(world, &gone.name), Progress::Running);
        world.pass(5.0);
        assert_eq!(progress(world, &gone.name), Progress::Done);
        assert_eq!(seen("two"), None, "target and request");
        let gone = cloud.create(&spec, &request("r3")).unwrap();
        assert_eq!(gone.verb, Verb::Create, "nothing of it is left in the way");
    });
}

#[test]
fn every_word_of_a_queued_request_is_told_as_it_is() {
    each(|world| {
        let cloud = world.cloud();
        world.pull(Event::NoCapacity { target: None, zone: None, times: None, for_s: None });
        let spec = TargetSpec { queued: true, ..spec("two") };
        cloud.create(&spec, &request("r1")).unwrap();
        for (word, step) in [
            ("CREATING", TargetStep::Wait),
            ("ACCEPTED", TargetStep::Wait),
            ("PROVISIONING", TargetStep::Wait),
            ("ACTIVE", TargetStep::Nothing),
            ("SUSPENDING", TargetStep::DeleteThenCreate),
            ("SUSPENDED", TargetStep::DeleteThenCreate),
            ("FAILED", TargetStep::DeleteThenCreate),
            ("DELETING", TargetStep::Wait),
            ("BLESSED", TargetStep::Nothing),
        ] {
            world.pull(Event::SayQueued { target: "two".to_owned(), word: word.to_owned() });
            let two = fact(cloud, ZONE, "two").unwrap();
            assert_eq!((two.raw_state.as_str(), two.state.step()), (word, step));
            assert_eq!(cloud.describe(&at("two")).unwrap().raw_state, word);
        }
        // One that has ended is taken away before it is asked for again.
        world.pull(Event::SayQueued { target: "two".to_owned(), word: "FAILED".to_owned() });
        cloud.delete(&at("two"), true).unwrap();
        world.pass(1.0);
        assert_eq!(word(world, "two"), "-");
    });
}

#[test]
fn what_is_accepted_may_fail_in_the_end_or_be_forgotten() {
    each(|world| {
        let cloud = world.cloud();
        let late =
            |class, call| Event::FailLate { class, call: Some(call), target: None, times: Some(1) };
        world.pull(late(Trouble::Transient, Call::Delete));
        let operation = cloud.delete(&at("one"), true).unwrap();
        assert_eq!(word(world, "one"), "DELETING");
        world.pass(1.0);
        let ended = cloud.operation(&operation.name).unwrap();
        assert_eq!(trouble_of(&ended), Some(Trouble::Transient));
        assert_eq!(word(world, "one"), "PREEMPTED", "it is still there, and says so");
        cloud.delete(&at("one"), true).unwrap();
        world.pass(1.0);
        assert_eq!(word(world, "one"), "-");

        world.pull(late(Trouble::Quota, Call::Create));
        let operation = cloud.create(&spec("two"), &request("r1")).unwrap();
        world.pass(2.0);
        let ended = cloud.operation(&operation.name).unwrap();
        assert_eq!(trouble_of(&ended), Some(Trouble::Quota));

        let operation = cloud.create(&spec("three"), &request("r2")).unwrap();
        world.pull(Event::ForgetOperations { target: "three".to_owned() });
        let error = cloud.operation(&operation.name).unwrap_err();
        assert_eq!(error.trouble, Trouble::NotFound);
        world.pass(2.0);
        assert_eq!(word(world, "three"), "READY", "what it was doing went on");
    });
}

#[test]
fn a_request_that_arrives_twice_makes_one_target() {
    each(|world| {
        let twice = Event::Twice {
            call: Some(Call::Create),
            target: Some("two".to_owned()),
            times: Some(1),
        };
        world.pull(twice);
        drop(adopt::create(world.cloud(), &spec("two"), &request("r1")).unwrap());
        world.pass(2.0);
        let Answer::Facts { targets, .. } = answer(world.cloud(), ZONE) else { panic!("silence") };
        assert_eq!(targets.iter().filter(|fact| fact.name.as_str() == "two").count(), 1);
        assert_eq!(word(world, "two"), "READY");
    });
}

#[test]
fn an_answer_that_takes_too_long_is_none() {
    each(|world| {
        world.pull(Event::Slow {
            seconds: 90.0,
            call: Some(Call::Stop),
            zone: None,
            times: Some(1),
            for_s: None,
        });
        assert_eq!(world.cloud().stop(&at("one")).unwrap_err().trouble, Trouble::Transient);
        assert!(
            ["STOPPING", "STOPPED"].contains(&word(world, "one").as_str()),
            "it had its effect"
        );
    });
}

#[test]
fn the_same_night_ends_in_the_same_facts() {
    let stories = worlds();
    let mut ends: Vec<Vec<TargetFact>> = Vec::new();
    for world in &stories {
        let story = Scenario::parse(include_str!("../../cases/sim/night.toml")).unwrap();
        world.play(&story);
        for minute in 0..20 {
            world.pass(60.0);
            let name = format!("night-{minute}");
            let asked = TargetSpec { queued: minute % 3 == 0, ..spec(&name) };
            drop(world.cloud().create(&asked, &request(&name)));
            if minute % 4 == 3 {
                drop(world.cloud().delete(&at(&format!("night-{}", minute - 1)), true));
            }
        }
        world.pull(Event::Calm);
        world.pass(600.0);
        let Answer::Facts { targets, .. } = answer(world.cloud(), ZONE) else { panic!("silence") };
        ends.push(targets);
    }
    let bare = |fact: &TargetFact| TargetFact {
        source: String::new(),
        since: None,
        endpoints: vec![String::new(); fact.endpoints.len()],
        internal: Vec::new(),
        ..fact.clone()
    };
    let ends: Vec<Vec<TargetFact>> =
        ends.iter().map(|end| end.iter().map(bare).collect()).collect();
    assert!(ends[0].len() > 10, "{:#?}", ends[0]);
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn two_thousand_five_hundred_targets_are_all_told() {
    let names: Vec<String> = (0..2_500).map(|number| format!("t-{number:04}")).collect();
    let targets: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v2-8")).collect();
    let rest = Rest::new(&targets);
    let worlds: [&dyn World; 2] = [&Sim::new(&targets), &rest];
    for world in worlds {
        let Answer::Facts { targets, .. } = answer(world.cloud(), ZONE) else { panic!("silence") };
        let told: std::collections::BTreeSet<String> =
            targets.iter().map(|fact| fact.name.as_str().to_owned()).collect();
        assert_eq!(told.len(), 2_500);
        assert_eq!(targets.len(), 2_500);
    }
    let is_page = |asked: &serde_json::Value| {
        asked["target"].as_str().is_some_and(|target| target.contains("/nodes?"))
    };
    assert_eq!(rest.asked().iter().filter(|asked| is_page(asked)).count(), 3);
}
