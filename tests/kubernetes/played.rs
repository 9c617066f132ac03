//! What only happens when writers meet, when a pod goes between two questions, or when somebody stands still for an hour.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::{RunError, RunRef, StopOrder, StopPart, Unreached};
use tpu_kubernetes::api::ApiVerb;
use tpu_system::sys::clock::Clock as _;

use super::stage::{JOBS, PODS, Stage, container, ended, name, refused, run, running, said};

#[test]
fn of_many_that_end_at_once_none_is_over_before_its_log_is_here() {
    let stage = Stage::new();
    let jobs: Vec<Job> = (1..=70).map(|number| stage.begun(number)).collect();
    for job in &jobs {
        let pod = stage.pod(job, &ended("Succeeded", "Completed", 0));
        let line = format!("2027-01-15T08:00:00Z of {}\n", job.windows_id);
        stage.play(|play| play.table.logs.insert(pod, line));
    }
    stage.end_jobs("Complete");
    let all: Vec<&Job> = jobs.iter().collect();
    for look in 1..=3 {
        let facts = stage.look(&all);
        for (job, fact) in jobs.iter().zip(&facts) {
            let token = job.launch.as_ref().unwrap().token.as_str();
            let kept = stage.env.path(&format!("tpu-state/kubernetes/{token}/output.log"));
            let text = std::fs::read_to_string(kept).unwrap_or_default();
            let is_here = text == format!("of {}\n", job.windows_id);
            assert!(
                is_here || !fact.is_over(),
                "{look}: {} is over, its log is not here",
                job.id()
            );
        }
        if facts.iter().all(RunFact::is_over) {
            return;
        }
    }
    panic!("their logs are fetched by no look");
}

#[test]
fn what_keeps_a_place_is_no_run_and_is_kept_for_an_hour() {
    let stage = Stage::new();
    let job = stage.claim(1);
    assert!(matches!(stage.own().give_up(&[run(&job)])[..], [Ok(true)]));
    let kept = stage.play(|play| play.table.jobs.clone());
    assert_eq!(kept.len(), 1, "its place is taken");
    assert_eq!(kept[0]["metadata"]["labels"]["tpu.given-up"], "true");
    assert_eq!(
        (&kept[0]["spec"]["parallelism"], &kept[0]["spec"]["activeDeadlineSeconds"]),
        (&json!(0), &json!(3600))
    );
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, fact.cause), (RunState::Gone, Some(ErrorKind::Launch)), "{fact:?}");
    assert!(matches!(stage.own().describe(run(&job)), Err(RunError::NotFound(_))));
    // Whoever stood still before he submitted it finds its place taken, as long as that. That is no refusal: its record
    // stays, and says so.
    let Err(RunError::Failed(why)) = stage.submit(&job) else { panic!("it was submitted") };
    assert!(why.to_string().contains("given up"), "{why}");
    assert_eq!(stage.play(|play| play.table.jobs.len()), 1);
}

#[test]
fn a_server_that_knows_no_ranks_gets_no_pods_that_belong_together() {
    let stage = Stage::new();
    stage.hear(|call, _| {
        let is_trial = call.query.iter().any(|(name, _)| *name == "dryRun");
        if !(is_trial && call.path == JOBS) {
            return None;
        }
        // One of 1.20 leaves out what it does not know.
        let mut job = call.body.clone()?;
        drop(job["spec"].as_object_mut()?.remove("completionMode")?);
        Some(said(201, &job))
    });
    let job = stage.claim_with(1, &[("nodes", "4")]);
    let Err(RunError::Refused(why)) = stage.submit(&job) else { panic!("it was submitted") };
    assert!(why.to_string().contains("no ranks"), "{why}");
    assert_eq!(stage.play(|play| (play.table.jobs.len(), play.table.count("POST /api/"))), (0, 0));
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!(fact.state, RunState::Gone, "{fact:?}");
    // One pod has no rank.
    drop(stage.submit(&stage.claim_with(2, &[("nodes", "1")])).unwrap());
}

#[test]
fn writers_that_meet_are_no_name_that_is_taken() {
    let stage = Stage::new();
    let mut left = 2;
    stage.hear(move |call, _| {
        let is_meant = call.verb == ApiVerb::Post && call.path == JOBS && left > 0;
        left -= i32::from(is_meant);
        let why =
            "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified";
        is_meant.then(|| refused(409, "Conflict", why))
    });
    let job = stage.begun(1);
    stage.play(|play| {
        assert_eq!((play.table.count(&format!("POST {JOBS}")), play.table.jobs.len()), (3, 1));
    });
    // Nor is one that is to be deleted another one of its name.
    let mut left = 2;
    stage.hear(move |call, _| {
        let is_meant = call.verb == ApiVerb::Delete && call.path.starts_with(JOBS) && left > 0;
        left -= i32::from(is_meant);
        let why = "Operation cannot be fulfilled on jobs.batch \"x\": the object has been modified; please apply your \
                   changes to the latest version and try again";
        is_meant.then(|| refused(409, "Conflict", why))
    });
    stage.stop(&job, Unreached::Refuse).unwrap();
    stage.play(|play| {
        assert_eq!(play.table.count(&format!("DELETE {JOBS}")), 3);
        assert!(play.table.jobs.is_empty(), "it is stopped");
    });
}

/// A launch with code, which takes 20 s on its way.
fn with_slow_code(stage: &Stage) -> Job {
    stage.env.code("alice", "train.sh", "true\n");
    let mut job = stage.claim(1);
    job.stage_dir = Some(stage.env.path("code-alice").display().to_string());
    let clock = Arc::clone(&stage.clock);
    stage.hear(move |call, _| {
        if call.verb == ApiVerb::Post && call.path.ends_with("/configmaps") {
            clock.advance(Duration::from_secs(20));
        }
        None
    });
    job
}

#[test]
fn what_is_made_before_a_job_may_take_its_time_and_the_job_is_waited_for() {
    let stage = Stage::new();
    let job = with_slow_code(&stage);
    let token = job.launch.as_ref().unwrap().token.as_str();
    let note = stage.env.path(&format!("tpu-state/kubernetes/{token}/note"));
    let (from, to) = (note.clone(), stage.env.path("note-then"));
    stage.hear(move |call, _| {
        if call.verb == ApiVerb::Post && call.path == JOBS {
            std::fs::copy(&from, &to).unwrap();
        }
        None
    });
    stage.submit(&job).unwrap();
    // As if its process had gone while that question was open, and the Job were still on its way.
    std::fs::copy(stage.env.path("note-then"), note).unwrap();
    stage.play(|play| play.table.jobs.clear());
    let other = Stage::ctx(&stage.env, &stage.clock, "another machine");
    let given_up = || stage.runner(&other).give_up(&[run(&job)]).remove(0);
    stage.clock.advance(Duration::from_secs(14));
    assert!(given_up().is_err(), "it may still be on its way");
    stage.clock.advance(Duration::from_secs(3));
    assert!(given_up().unwrap());
}

#[test]
fn what_is_given_up_while_its_code_is_on_its_way_is_not_submitted() {
    let stage = Stage::new();
    let job = with_slow_code(&stage);
    let (env, id) = (Arc::clone(&stage.env), job.id());
    stage.hear(move |call, _| {
        if call.verb == ApiVerb::Post && call.path.ends_with("/configmaps") {
            env.change(|data| data.job_mut(&id).unwrap().launch = None);
        }
        None
    });
    // No refusal: its record stays, and says so.
    let Err(RunError::Failed(why)) = stage.submit(&job) else { panic!("it was submitted") };
    assert!(why.to_string().contains("given up"), "{why}");
    stage.play(|play| {
        assert_eq!(play.table.count(&format!("POST {JOBS}")), 0);
        assert_eq!(
            play.table.count("DELETE /api/v1/namespaces/lab/configmaps/"),
            1,
            "nothing is left"
        );
    });
}

#[test]
fn a_log_that_never_comes_is_not_waited_for_for_ever() {
    let stage = Stage::new();
    let job = stage.begun(1);
    // Its node is lost: nobody ever says when its container ended, and nobody has its log.
    let since = "2027-01-15T08:00:00Z";
    drop(stage.pod(
        &job,
        &json!({
            "phase": "Failed", "reason": "NodeLost", "containerStatuses": [container(&json!({"running": {}}))],
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": since}],
        }),
    ));
    stage.end_jobs("Failed");
    let begun = since.parse::<jiff::Timestamp>().unwrap().as_second();
    assert_eq!(stage.clock.now().as_second(), begun, "the clock of this test begins there");
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.is_over(), fact.text_waits), (false, true), "{fact:?}");
    stage.clock.advance(Duration::from_secs(301));
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.is_over(), fact.cause), (true, Some(ErrorKind::Lost)), "{fact:?}");
}

#[test]
fn why_it_ended_is_kept_while_its_log_is_waited_for() {
    let stage = Stage::new();
    let job = stage.begun(1);
    drop(stage.pod(&job, &ended("Failed", "OOMKilled", 137)));
    stage.end_jobs("Failed");
    assert!(!stage.look(&[&job])[0].is_over(), "its log is waited for");
    // Then somebody clears its node, and nothing in the cluster tells any more.
    stage.play(|play| play.table.pods.clear());
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.is_over(), fact.cause), (true, Some(ErrorKind::Oom)), "{fact:?}");
}

/// A job at work whose pod does not go when its Job is deleted.
fn with_dead_node(stage: &Stage) -> Job {
    let job = stage.begun(1);
    drop(stage.pod(&job, &running()));
    stage.hear(|call, _| {
        let is_meant = call.verb == ApiVerb::Delete && call.path.starts_with(PODS);
        is_meant.then(|| refused(403, "Forbidden", "User \"lab\" cannot delete resource \"pods\""))
    });
    job
}

#[test]
fn a_node_that_is_dead_holds_up_nobody_who_says_so() {
    let stage = Stage::new();
    let job = with_dead_node(&stage);
    let refused = stage.stop(&job, Unreached::Refuse).unwrap_err();
    assert!(
        matches!(&refused, RunError::Unreachable(said) if said.message.contains("pod-1")),
        "{refused:?}"
    );
    drop(stage.ctx.take_warnings());
    let outcome = stage.stop(&job, Unreached::GoPast).unwrap();
    assert_eq!(outcome.processes, 1);
    let warned = stage.ctx.take_warnings();
    assert!(
        warned.iter().any(|text| text.contains("pod-1")),
        "and is told what may still run: {warned:?}"
    );
}

#[test]
fn who_may_not_delete_pods_waits_for_the_cluster_to_do_so() {
    let stage = Stage::new();
    let job = with_dead_node(&stage);
    stage.hear(|call, table| {
        // The cluster does so once somebody has tried himself.
        if call.verb == ApiVerb::Get && table.count(&format!("DELETE {PODS}")) > 2 {
            table.pods.clear();
        }
        None
    });
    stage.stop(&job, Unreached::Refuse).unwrap();
    stage.play(|play| assert!(play.table.pods.is_empty() && play.table.jobs.is_empty()));
}

#[test]
fn jobs_are_stopped_side_by_side() {
    let stage = Stage::new();
    let jobs: Vec<Job> = (1..=50).map(|number| stage.begun(number)).collect();
    for job in &jobs {
        drop(stage.pod(job, &running()));
    }
    stage.hear(|call, table| {
        // The cluster ends none of them before it is told to end all.
        if call.verb == ApiVerb::Get && call.path == PODS && table.jobs.is_empty() {
            table.pods.clear();
        }
        None
    });
    let before = stage.play(|play| play.table.count("GET"));
    let runs: Vec<RunRef<'_>> = jobs.iter().map(run).collect();
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    let stopped = stage.own().stop_all(&runs, order);
    assert!(stopped.iter().all(Result::is_ok), "{stopped:?}");
    stage.play(|play| {
        assert_eq!(play.table.count(&format!("DELETE {JOBS}")), 50);
        let logs = play.table.asked.iter().filter(|asked| asked.ends_with("/log")).count();
        let lists = play.table.count("GET") - before - logs;
        assert!(lists <= 5, "{lists} questions for all of them");
    });
}

#[test]
fn one_that_cannot_be_stopped_keeps_none_of_the_others_from_it() {
    let stage = Stage::new();
    let jobs: Vec<Job> = (1..=3).map(|number| stage.begun(number)).collect();
    let held = stage.play(|play| name(&play.table.jobs[1]).to_owned());
    stage.hear(move |call, _| {
        let is_meant = call.verb == ApiVerb::Delete && call.path == format!("{JOBS}/{held}");
        is_meant.then(|| refused(403, "Forbidden", "a finalizer of somebody else's says no"))
    });
    let runs: Vec<RunRef<'_>> = jobs.iter().map(run).collect();
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    let stopped = stage.own().stop_all(&runs, order);
    assert_eq!(stopped.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(stage.play(|play| play.table.jobs.len()), 1);
}

#[test]
fn who_goes_on_elsewhere_does_not_wait_for_a_dead_node_and_who_kills_is_told() {
    let stage = Stage::new();
    let job = with_dead_node(&stage);
    stage.play(|play| {
        play.table.pods[0]["metadata"]["deletionTimestamp"] = json!("2027-01-15T07:50:00Z");
    });
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, fact.cause), (RunState::Gone, Some(ErrorKind::Lost)), "{fact:?}");
    assert_eq!(fact.nodes, ["n1"]);
    assert!(fact.reason.as_deref().unwrap().contains("n1 does not answer"), "{fact:?}");
    assert!(matches!(stage.stop(&job, Unreached::Refuse), Err(RunError::Unreachable(_))));
    let before = stage.clock.monotonic();
    let order = StopOrder { part: StopPart::Program, unreached: Unreached::Refuse };
    drop(stage.ctx.take_warnings());
    stage.own().stop(run(&job), order).unwrap();
    assert_eq!(stage.clock.monotonic(), before, "at once");
    let warned = stage.ctx.take_warnings();
    assert!(warned.iter().any(|text| text.contains("n1 does not answer")), "{warned:?}");
}

/// The clock of this machine is ten minutes ahead of that of the server.
#[test]
fn a_node_is_not_taken_for_dead_because_clocks_differ() {
    let stage = Stage::new();
    let job = with_dead_node(&stage);
    stage.play(|play| {
        play.table.pods[0]["metadata"]["deletionTimestamp"] = json!("2027-01-15T07:50:00Z");
        play.table.said_at = Timestamp::parse_rfc3339("2027-01-15T07:50:10Z");
    });
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, fact.cause), (RunState::Running, None), "{fact:?}");
    let order = StopOrder { part: StopPart::Program, unreached: Unreached::Refuse };
    let early = stage.own().stop(run(&job), order).unwrap_err();
    assert!(matches!(early, RunError::Unreachable(_)), "{early:?}");
    // And one that is behind does not keep it from being seen.
    stage.play(|play| play.table.said_at = Timestamp::parse_rfc3339("2027-01-15T09:00:00Z"));
    stage.play(|play| {
        play.table.pods[0]["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:58:00Z");
    });
    stage.own().stop(run(&job), order).unwrap();
}

#[test]
fn one_on_a_dead_node_does_not_hold_up_those_that_are_killed_with_it() {
    let stage = Stage::new();
    let dead = with_dead_node(&stage);
    let others = [stage.begun(2), stage.begun(3)];
    let gone = stage.play(|play| {
        play.table.pods[0]["metadata"]["deletionTimestamp"] = json!("2027-01-15T07:50:00Z");
        name(&play.table.pods[0]).to_owned()
    });
    drop(stage.pod(&others[1], &running()));
    stage.hear(move |call, table| {
        // The pod of the other one goes while it is waited for.
        if call.verb == ApiVerb::Get && call.path == PODS && table.jobs.is_empty() {
            table.pods.retain(|pod| name(pod) == gone);
        }
        None
    });
    let before = stage.clock.monotonic();
    let runs = [run(&dead), run(&others[0]), run(&others[1])];
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    let stopped = stage.own().stop_all(&runs, order);
    assert!(matches!(stopped[0], Err(RunError::Unreachable(_))), "{stopped:?}");
    assert!(stopped[1..].iter().all(Result::is_ok), "{stopped:?}");
    assert_eq!(stage.clock.monotonic(), before, "nobody waits for it");
    assert!(stage.play(|play| play.table.jobs.is_empty()));
}

#[test]
fn each_word_of_a_pod_has_its_kind() {
    use ErrorKind::{Lost, Oom, Preempted, Setup, Timeout};
    let stage = Stage::new();
    let job = stage.begun(1);
    stage.end_jobs("Failed");
    let of = |reason: &str| json!({"phase": "Failed", "reason": reason, "message": "its words"});
    let by = |reason: &str| json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]});
    for (status, cause, raw) in [
        (of("Evicted"), Lost, "Evicted"),
        (of("NodeLost"), Lost, "NodeLost"),
        (of("Shutdown"), Preempted, "Shutdown"),
        (of("Terminated"), Preempted, "Terminated"),
        (of("Preempting"), Preempted, "Preempting"),
        (of("DeadlineExceeded"), Timeout, "DeadlineExceeded"),
        (of("OutOfcpu"), Lost, "OutOfcpu"),
        (of(""), Lost, "Failed"),
        (by("PreemptionByScheduler"), Preempted, "DisruptionTarget"),
        (by("TerminationByKubelet"), Preempted, "DisruptionTarget"),
        (by("EvictionByEvictionAPI"), Preempted, "DisruptionTarget"),
        (by("DeletionByTaintManager"), Lost, "DisruptionTarget"),
        (by("DeletionByPodGC"), Lost, "DisruptionTarget"),
        (ended("Failed", "OOMKilled", 137), Oom, "OOMKilled"),
        (ended("Failed", "StartError", 128), Setup, "StartError"),
        (ended("Failed", "ContainerStatusUnknown", 137), Lost, "ContainerStatusUnknown"),
    ] {
        let pod = stage.pod(&job, &status);
        stage.play(|play| play.table.logs.insert(pod, String::new()));
        let fact = stage.look(&[&job]).remove(0);
        assert_eq!((fact.cause, &*fact.raw), (Some(cause), raw), "{status}: {fact:?}");
        assert_eq!((fact.is_over(), &fact.nodes[..]), (true, &["n1".to_owned()][..]), "{status}");
        assert!(fact.reason.is_some_and(|why| !why.is_empty()), "{status}");
    }
}
