//! What newer servers say than the simulated one, and what is left to say of a Job that is gone: each with its kind, and in
//! words that tell what to do.

use std::time::Duration;

use serde_json::{Value, json};

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, RunFact, RunState};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

use super::stage::{JOBS, Stage, container, ended, name, running, said};

fn why(fact: &RunFact) -> &str {
    fact.reason.as_deref().unwrap_or_default()
}

/// The condition of a pod that somebody else ends (1.25 and later).
fn disrupted(reason: &str) -> Value {
    json!([{"type": "DisruptionTarget", "status": "True", "reason": reason}])
}

#[test]
fn one_that_was_put_out_is_lost_though_its_node_says_that_it_ends_it() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let mut status = ended("Failed", "Error", 137);
    status["reason"] = json!("Evicted");
    status["message"] = json!("The node was low on resource: memory. ");
    status["conditions"] = disrupted("TerminationByKubelet");
    let pod = stage.pod(&job, &status);
    stage.play(|play| play.table.logs.insert(pod, "2027-01-15T08:00:00Z said\n".to_owned()));
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.cause, &*fact.raw), (Some(ErrorKind::Lost), "Evicted"), "{fact:?}");
    assert!(why(&fact).contains("low on resource"), "{fact:?}");
    // What its node does not call so has the kind of its condition.
    for (reason, kind) in [
        ("PreemptionByScheduler", ErrorKind::Preempted),
        ("TerminationByKubelet", ErrorKind::Preempted),
        ("DeletionByTaintManager", ErrorKind::Lost),
    ] {
        let mut status = ended("Failed", "Error", 143);
        status["conditions"] = disrupted(reason);
        stage.pod(&job, &status);
        let fact = stage.look(&[&job]).remove(0);
        assert_eq!((fact.cause, &*fact.raw), (Some(kind), "DisruptionTarget"), "{reason}");
    }
}

#[test]
fn one_without_memory_keeps_its_exit_code() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let pod = stage.pod(&job, &ended("Failed", "OOMKilled", 137));
    stage.play(|play| play.table.logs.insert(pod, "2027-01-15T08:00:00Z said\n".to_owned()));
    stage.end_jobs("Failed");
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.cause, fact.exit.map(Exit::code)), (Some(ErrorKind::Oom), Some(137)));
    assert!(why(&fact).contains("exit code 137"), "{fact:?}");
    // It is known when the pod is gone, and when the Job is.
    stage.play(|play| play.table.pods.clear());
    let without_pod = stage.look(&[&job]).remove(0);
    stage.play(|play| play.table.jobs.clear());
    for fact in [without_pod, stage.look(&[&job]).remove(0)] {
        assert_eq!((fact.cause, fact.exit.map(Exit::code)), (Some(ErrorKind::Oom), Some(137)));
    }
}

#[test]
fn it_has_begun_when_its_command_has() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let began = |status: &Value| {
        stage.pod(&job, status);
        let fact = stage.look(&[&job]).remove(0);
        fact.began.map(Timestamp::to_rfc3339)
    };
    let refused = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes",
    }]});
    assert_eq!(began(&refused), None);
    let pulled = json!({"waiting": {"reason": "ErrImagePull"}});
    let pulled = json!({"phase": "Pending", "containerStatuses": [container(&pulled)]});
    assert_eq!(began(&pulled), None);
    let since = "2027-01-15T08:00:00Z";
    let runs = json!({"running": {"startedAt": since}});
    let runs = json!({"phase": "Running", "containerStatuses": [container(&runs)]});
    assert_eq!(began(&runs).as_deref(), Some(since));
    let mut over = ended("Failed", "Error", 1);
    over["containerStatuses"][0]["state"]["terminated"]["startedAt"] = json!(since);
    assert_eq!(began(&over).as_deref(), Some(since));
}

#[test]
fn one_that_is_suspended_waits_in_its_queue() {
    let stage = Stage::new();
    let mut job = stage.claim_with(1, &[("kueue-queue", "night")]);
    job.keep_handle(stage.submit(&job).unwrap().handle);
    stage.play(|play| play.table.jobs[0]["spec"]["suspend"] = json!(true));
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, &*fact.raw), (RunState::Pending, "Suspended"), "{fact:?}");
    assert!(why(&fact).contains("queue night of Kueue"), "{fact:?}");
    // One that nobody has queued is suspended by somebody.
    stage.play(|play| {
        let job = &mut play.table.jobs[0];
        job["metadata"]["labels"].as_object_mut().unwrap().retain(|key, _| !key.contains("kueue"));
        job["spec"]["suspend"] = Value::Null;
        job["status"] = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    });
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!(&*fact.raw, "Suspended", "{fact:?}");
    assert!(why(&fact).contains("once it is resumed"), "{fact:?}");
}

/// A Job with a TTL that is at work, and then gone.
fn gone_with_ttl(stage: &Stage) -> Job {
    let mut job = stage.claim_with(1, &[("ttl", "60")]);
    job.keep_handle(stage.submit(&job).unwrap().handle);
    stage.pod(&job, &running());
    assert_eq!(stage.look(&[&job]).remove(0).state, RunState::Running);
    stage.play(|play| {
        play.table.jobs.clear();
        play.table.pods.clear();
    });
    job
}

#[test]
fn one_that_may_have_gone_by_its_ttl_says_so_and_nothing_begins_it_again() {
    let stage = Stage::new();
    let job = gone_with_ttl(&stage);
    // It was at work less than a minute ago: only somebody can have deleted it.
    let fact = stage.look(&[&job]).remove(0);
    assert!(fact.is_cancelled && why(&fact).contains("deleted"), "{fact:?}");
    stage.clock.advance(Duration::from_secs(61));
    let fact = stage.look(&[&job]).remove(0);
    // It may have ended well: no rule is to act.
    assert_eq!((fact.cause, fact.is_cancelled), (None, true), "{fact:?}");
    assert!(why(&fact).contains("removed after 60 s"), "{fact:?}");
}

#[test]
fn a_pod_in_the_place_of_one_that_was_preempted_says_so() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let called = stage.play(|play| {
        play.table.jobs[0]["metadata"]["creationTimestamp"] = json!("2027-01-15T08:00:00Z");
        name(&play.table.jobs[0]).to_owned()
    });
    let waits = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available.",
    }]});
    stage.pod(&job, &waits);
    stage.hear(move |call, _| {
        let is_asked = |(name, value): &(_, String)| {
            *name == "fieldSelector" && value.contains("reason=Preempted")
        };
        if !(call.path.ends_with("/events") && call.query.iter().any(is_asked)) {
            return None;
        }
        let event = |pod: String, message: &str| {
            json!({
                "metadata": {}, "reason": "Preempted", "type": "Normal", "message": message,
                "lastTimestamp": "2027-01-15T08:10:00Z", "involvedObject": {"kind": "Pod", "name": pod},
            })
        };
        let items = [
            event(format!("{called}-other-abcde"), "of another one"),
            event(format!("{called}-abcde"), "Preempted by lab/high on node n1"),
        ];
        Some(said(200, &json!({"items": items})))
    });
    // The first pod of a Job is made with it, and has nobody's place: nothing is asked for that.
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!(&*fact.raw, "Unschedulable", "{fact:?}");
    stage.play(|play| {
        play.table.pods[0]["metadata"]["creationTimestamp"] = json!("2027-01-15T08:10:01Z");
    });
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, &*fact.raw), (RunState::Pending, "Preempted"), "{fact:?}");
    for says in ["Preempted by lab/high on node n1", "restarts it there", "no node takes it"] {
        assert!(why(&fact).contains(says), "{fact:?}");
    }
    // Where it runs again that is over.
    stage.pod(&job, &running());
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!((fact.state, &*fact.raw), (RunState::Running, "Running"), "{fact:?}");
}

#[test]
fn what_failed_before_the_command_says_with_what() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let end = json!({"exitCode": 1, "reason": "Error", "message": "a\nb\nsh: tar: not found\n\n"});
    let mut first = container(&json!({"terminated": end}));
    first["name"] = json!("ready");
    let waits = container(&json!({"waiting": {"reason": "PodInitializing"}}));
    let status = json!({
        "phase": "Failed", "initContainerStatuses": [first], "containerStatuses": [waits],
    });
    stage.pod(&job, &status);
    let fact = stage.look(&[&job]).remove(0);
    assert_eq!(fact.cause, Some(ErrorKind::Setup), "{fact:?}");
    assert!(why(&fact).ends_with("exit code 1: a; b; sh: tar: not found"), "{fact:?}");
}

#[test]
fn what_the_cluster_puts_beside_the_command_does_not_say_how_it_ended() {
    let stage = Stage::new();
    let job = stage.begun(1);
    for (code, phase) in [(0, "Failed"), (3, "Failed"), (0, "Running")] {
        let mut status = ended(phase, if code == 0 { "Completed" } else { "Error" }, code);
        let end = json!({"exitCode": 137, "reason": "Error", "finishedAt": "2027-01-15T08:00:00Z"});
        let mut beside = container(&json!({"terminated": end}));
        beside["name"] = json!("istio-proxy");
        // As one that is in the list, or as what comes before the others and stays (1.28 and later).
        let list = if code == 3 { "initContainerStatuses" } else { "containerStatuses" };
        let mut all = vec![beside];
        all.extend(status[list].as_array().into_iter().flatten().cloned());
        status[list] = json!(all);
        let pod = stage.pod(&job, &status);
        stage.play(|play| play.table.logs.insert(pod, "2027-01-15T08:00:00Z said\n".to_owned()));
        let fact = stage.look(&[&job]).remove(0);
        let known = (fact.state, fact.exit.map(Exit::code), fact.cause);
        assert_eq!(known, (RunState::Ended, Some(code), None), "{fact:?}");
    }
}

#[test]
fn nor_does_it_where_the_command_never_began() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let end = json!({"exitCode": 137, "reason": "Error", "finishedAt": "2027-01-15T08:00:00Z"});
    let mut status = ended("Failed", "Error", 137);
    let mut beside = container(&json!({"terminated": end}));
    beside["name"] = json!("istio-proxy");
    let main = container(&json!({"waiting": {"reason": "ContainerCreating"}}));
    status["containerStatuses"] = json!([beside, main]);
    let _pod = stage.pod(&job, &status);
    let fact = stage.look(&[&job]).remove(0);
    assert_ne!(fact.cause, Some(ErrorKind::Setup), "{fact:?}");
    assert_eq!(fact.exit, None, "{fact:?}");
}

fn kept(stage: &Stage, job: &Job) -> String {
    let token = job.launch.as_ref().unwrap().token.as_str();
    let kept = stage.env.path(&format!("tpu-state/kubernetes/{token}/output.log"));
    std::fs::read_to_string(kept).unwrap_or_default()
}

#[test]
fn lines_that_its_node_has_thrown_away_are_said_to_be_missing() {
    let stage = Stage::new();
    let job = stage.begun(1);
    let pod = stage.pod(&job, &running());
    let prints = |lines: &[u32]| {
        let stamped = lines.iter().map(|n| format!("2027-01-15T08:00:{n:02}Z {n}\n"));
        let text = stamped.collect::<Vec<_>>().concat();
        stage.play(|play| play.table.logs.insert(pod.clone(), text));
        drop(stage.look(&[&job]));
        kept(&stage, &job)
    };
    assert_eq!(prints(&[1, 2]), "1\n2\n");
    // The last line that is kept is still there: nothing is missing.
    assert_eq!(prints(&[2, 3]), "1\n2\n3\n");
    let text = prints(&[7, 8]);
    let parts: Vec<&str> = text.lines().collect();
    assert_eq!((&parts[..3], &parts[4..]), (&["1", "2", "3"][..], &["7", "8"][..]), "{text}");
    assert!(parts[3].contains("thrown it away"), "{text}");
    assert_eq!(prints(&[8, 9]), format!("{text}9\n"), "and that once");
}

#[test]
fn what_looks_at_a_volume_is_taken_where_the_job_was() {
    let mut stage = Stage::new();
    let flavor = json!({
        "name": "big", "resources": {
            "requests": {"cpu": 32, "memory": "64Gi", "nvidia.com/gpu": 8},
            "limits": {"cpu": 32, "nvidia.com/gpu": 8},
        },
        "nodeSelector": {"pool": "gpu"}, "priorityClassName": "high",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    });
    let said = [
        ("log-volume", "data:/data"),
        ("pull-secret", "registry"),
        ("service-account", "trainer"),
        ("resources-flavor", &flavor.to_string()),
        ("security-context", r#"{"runAsUser": 4711}"#),
    ];
    for (name, value) in said {
        stage.registration.options.say(name, value);
    }
    let mut job = stage.claim_with(1, &[("image", "registry.lab/train:2")]);
    job.log_dir = Some("/data/logs/a".to_owned());
    job.keep_handle(stage.submit(&job).unwrap().handle);
    stage.env.change(|data| {
        *data.user_mut(&job.user).unwrap().job_mut(job.windows_id).unwrap() = job.clone();
    });
    stage.hear(|call, table| {
        let is_made =
            call.path == JOBS && call.body.as_ref().is_some_and(|of| name(of).contains("look"));
        if is_made {
            let status = json!({"phase": "Succeeded"});
            table.pods = vec![
                json!({"metadata": {"name": "look"}, "spec": {"containers": []}, "status": status}),
            ];
            table.logs.insert("look".to_owned(), "= directory\nF x\n= none\n= over\n".to_owned());
            table.asked.push(call.body.as_ref().unwrap().to_string());
        }
        None
    });
    assert!(stage.own().files().is_dir("/data/logs/a".as_ref()).unwrap());
    let made: Value = stage.play(|play| {
        let made = play.table.asked.iter().find_map(|asked| serde_json::from_str(asked).ok());
        made.expect("nothing looked there")
    });
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(pod["serviceAccountName"], "trainer");
    // It does not wait for the nodes that are scarce, nor take anybody's place on them.
    assert_eq!((&pod["nodeSelector"], &pod["priorityClassName"]), (&Value::Null, &Value::Null));
    assert_eq!(pod["tolerations"], json!([{"key": "gpu", "operator": "Exists"}]));
    assert_eq!(pod["securityContext"], json!({"runAsUser": 4711}));
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.lab/train:2");
    // It asks for what has to be asked for, for little of it, and for no device.
    let little = json!({
        "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m"},
    });
    assert_eq!(container["resources"], little);
}
