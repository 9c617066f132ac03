//! One pod on this machine: its containers as processes, one after the other where they are to begin the pod, all at
//! once where they are the pod.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use super::cluster::{Cluster, Said, text};
use super::container::{self, Hindrance, MARK, PodPlace};
use super::logs::LogShelf;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, ProcessStatus};
use tpu_system::sys::procs;

/// How long a pull fails before it is said that it is tried again.
const PULLING: Duration = Duration::from_millis(500);
/// How long a container waits at first before it is begun again.
const BACK_OFF: Duration = Duration::from_secs(10);

/// How a container is.
#[derive(Debug)]
enum Condition {
    Waiting(&'static str, String),
    Running { since: String, child: Child },
    Ended(Value),
}

/// One container.
#[derive(Debug)]
struct Contained {
    name: String,
    is_init: bool,
    spec: Value,
    is: Condition,
    restarts: u32,
    again_at: Duration,
    /// Since when its image is not to be had.
    unpulled: Option<Duration>,
    /// What its end is called, if a fault ended it.
    ended_as: Option<&'static str>,
    last: Value,
}

/// One pod.
#[derive(Debug)]
pub(super) struct RunningPod {
    uid: String,
    node: String,
    dir: PathBuf,
    begun: String,
    begun_at: Duration,
    containers: Vec<Contained>,
    /// When it is killed, if it is to end.
    pub(super) killed_at: Option<Duration>,
    /// Why it failed as a whole: reason and message.
    failed: Option<(&'static str, String)>,
    /// Whether no image of it is to be had any more.
    pub(super) is_unpullable: bool,
    /// Whether a pod of higher rank has taken its place [documented, 1.26].
    is_preempted: bool,
}

impl RunningPod {
    /// A pod that came to this machine.
    pub(super) fn new(cluster: &Cluster, pod: &Value, dir: &Path, now: Duration) -> Self {
        let uid = text(&pod["metadata"]["uid"]).to_owned();
        let mut containers = Vec::new();
        for (list, is_init) in [("initContainers", true), ("containers", false)] {
            for spec in pod["spec"][list].as_array().into_iter().flatten() {
                let has_init = pod["spec"]["initContainers"].is_array();
                let waits = if has_init { "PodInitializing" } else { "ContainerCreating" };
                containers.push(Contained {
                    name: text(&spec["name"]).to_owned(),
                    is_init,
                    spec: spec.clone(),
                    is: Condition::Waiting(waits, String::new()),
                    restarts: 0,
                    again_at: Duration::ZERO,
                    unpulled: None,
                    ended_as: None,
                    last: json!({}),
                });
            }
        }
        Self {
            node: text(&pod["spec"]["nodeName"]).to_owned(),
            dir: dir.join("pods").join(&uid),
            uid,
            begun: cluster.now(),
            begun_at: now,
            containers,
            killed_at: None,
            failed: None,
            is_unpullable: false,
            is_preempted: false,
        }
    }

    fn say(
        &self,
        cluster: &mut Cluster,
        pod: &Value,
        (severity, reason, container): (&str, &str, &str),
        message: &str,
    ) {
        let part = if container.is_empty() {
            String::new()
        } else {
            format!("spec.containers{{{container}}}")
        };
        let said = Said { severity, reason, from: "kubelet", host: &self.node, part: &part };
        cluster.say(pod, &said, message);
    }

    /// Sends a signal to every container that runs.
    pub(super) fn signal(&self, signal: Signal) {
        for container in &self.containers {
            if let Condition::Running { child, .. } = &container.is
                && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
            {
                // One that has just been started leads no group yet. It may be gone: then it is seen to have ended.
                if kill_process_group(pid, signal).is_err() {
                    let _ = kill_process(pid, signal);
                }
            }
        }
    }

    /// Ends whatever is left of a pod, in whatever session it is.
    fn sweep(&self) {
        let Ok(table) = procs::Table::read() else { return };
        let own = rustix::process::geteuid().as_raw();
        for process in table.with_variable(MARK, &self.uid, own) {
            drop(procs::signal(process, procs::Signal::Kill));
        }
    }

    /// Whether any container runs.
    pub(super) fn runs(&self) -> bool {
        self.containers.iter().any(|of| matches!(of.is, Condition::Running { .. }))
    }

    /// Ends the pod at once: for good, with a reason of its own, or because of a container's.
    pub(super) fn fail(&mut self, reason: &'static str, message: String) {
        self.failed = Some((reason, message));
        self.signal(Signal::KILL);
    }

    /// Ends the pod for one of higher rank, and has it say so.
    pub(super) fn preempt(&mut self) {
        self.is_preempted = true;
        self.signal(Signal::KILL);
    }

    /// Has containers that failed say what they have printed last, as far as they are to say that
    /// (`terminationMessagePolicy` in the Kubernetes documentation).
    pub(super) fn explain(&mut self, shelf: &LogShelf) {
        for container in &mut self.containers {
            let wants = text(&container.spec["terminationMessagePolicy"]);
            let Condition::Ended(end) = &mut container.is else { continue };
            let is_told = end["exitCode"] == json!(0) || !end["message"].is_null();
            if is_told || wants != "FallbackToLogsOnError" {
                continue;
            }
            let printed = shelf.last(&self.uid, &container.name).unwrap_or_default();
            if !printed.is_empty() {
                end["message"] = json!(printed);
            }
        }
    }

    /// Kills the containers of the pod as a kernel does that has no memory left.
    pub(super) fn out_of_memory(&mut self) {
        for container in &mut self.containers {
            container.ended_as = Some("OOMKilled");
        }
        self.signal(Signal::KILL);
    }

    /// Begins to end the pod.
    pub(super) fn terminate(&mut self, cluster: &mut Cluster, pod: &Value, killed_at: Duration) {
        self.killed_at = Some(killed_at);
        let running =
            self.containers.iter().filter(|of| matches!(of.is, Condition::Running { .. }));
        let names: Vec<String> = running.map(|of| of.name.clone()).collect();
        for name in names {
            let message = format!("Stopping container {name}");
            self.say(cluster, pod, ("Normal", "Killing", &name), &message);
        }
        self.signal(Signal::TERM);
    }

    /// Kills everything and waits for it.
    pub(super) fn end(&mut self) {
        self.signal(Signal::KILL);
        for container in &mut self.containers {
            if let Condition::Running { child, .. } = &mut container.is {
                drop(child.wait());
            }
        }
        self.sweep();
    }

    /// Sees which containers have ended.
    pub(super) fn reap(&mut self, now: &str) {
        let mut any = false;
        for container in &mut self.containers {
            let Condition::Running { since, child } = &mut container.is else { continue };
            let status = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => ProcessStatus::from(status).shell_code(),
                Err(_) => 255,
            };
            any = true;
            let reason =
                container.ended_as.unwrap_or(if status == 0 { "Completed" } else { "Error" });
            container.is = Condition::Ended(json!({
                "exitCode": status, "reason": reason, "startedAt": since, "finishedAt": now,
                "containerID": format!("process://{}", child.id()),
            }));
        }
        // What a container leaves behind goes with it, but only where nothing of the pod goes on.
        if any && !self.runs() {
            self.sweep();
        }
    }

    /// Begins what is to begin now.
    pub(super) fn advance(
        &mut self,
        cluster: &mut Cluster,
        pod: &Value,
        (shelf, claims, clock): (&LogShelf, &Path, &SystemClock),
    ) {
        let now = clock.monotonic();
        let limit = pod["spec"]["activeDeadlineSeconds"].as_u64();
        if self.failed.is_none()
            && limit.is_some_and(|limit| now.saturating_sub(self.begun_at).as_secs() >= limit)
        {
            let why = "Pod was active on the node longer than the specified deadline".to_owned();
            self.fail("DeadlineExceeded", why);
        }
        if self.killed_at.is_some() || self.failed.is_some() {
            return;
        }
        let policy = text(&pod["spec"]["restartPolicy"]).to_owned();
        for at in 0..self.containers.len() {
            self.begin_again(at, &policy, now);
            let Some(container) = self.containers.get(at) else { return };
            let waits = matches!(container.is, Condition::Waiting(..)) && container.again_at <= now;
            if waits {
                self.begin(cluster, pod, at, (shelf, claims, now));
            }
            // One that begins the pod has to end well before the next.
            let is_done = self.containers.get(at).is_none_or(|container| {
                !container.is_init
                    || matches!(&container.is, Condition::Ended(end) if end["exitCode"] == json!(0))
            });
            if !is_done {
                return;
            }
        }
    }

    fn begin_again(&mut self, at: usize, policy: &str, now: Duration) {
        let Some(container) = self.containers.get_mut(at) else { return };
        let Condition::Ended(end) = &container.is else { return };
        let is_good = end["exitCode"] == json!(0);
        let again = match policy {
            "Always" => !(container.is_init && is_good),
            "OnFailure" => !is_good,
            _ => false,
        };
        if again {
            container.last = json!({"terminated": end});
            container.again_at = now + BACK_OFF * 2_u32.pow(container.restarts.min(5));
            container.restarts += 1;
            let why = format!("back-off restarting failed container={}", container.name);
            container.is = Condition::Waiting("CrashLoopBackOff", why);
        }
    }

    fn begin(
        &mut self,
        cluster: &mut Cluster,
        pod: &Value,
        at: usize,
        (shelf, claims, now): (&LogShelf, &Path, Duration),
    ) {
        let Some((name, spec)) =
            self.containers.get(at).map(|of| (of.name.clone(), of.spec.clone()))
        else {
            return;
        };
        let image = text(&spec["image"]).to_owned();
        if self.is_unpullable || !exists(&image) {
            self.pull_fails(cluster, pod, at, (&image, now));
            return;
        }
        let place = PodPlace { pod, dir: &self.dir, claims };
        let made = std::fs::create_dir_all(&self.dir)
            .map_err(|error| Hindrance::Mount(error.to_string()))
            .and_then(|()| container::program(cluster, &place, &spec));
        let begun = made.and_then(|spawn| {
            let cannot = |error: &dyn std::fmt::Display| Hindrance::Start(error.to_string());
            let (reader, writer) = std::io::pipe().map_err(|error| cannot(&error))?;
            let child = proc::start_apart(&spawn, &writer).map_err(|error| cannot(&error))?;
            drop(writer);
            let origin = cluster.moment();
            let clock = SystemClock::new();
            let time = move || {
                let since = jiff::SignedDuration::try_from(clock.monotonic()).unwrap_or_default();
                origin.checked_add(since).unwrap_or(origin)
            };
            let log = self.dir.join(format!("{name}.log"));
            shelf
                .record((self.uid.clone(), name.clone()), &log, reader, time)
                .map_err(|error| cannot(&error))?;
            Ok(child)
        });
        let since = cluster.now();
        let (is, word) = match begun {
            Ok(child) => (Condition::Running { since, child }, None),
            Err(Hindrance::Mount(why)) => {
                (Condition::Waiting("ContainerCreating", String::new()), Some(("FailedMount", why)))
            }
            Err(Hindrance::Config(why)) => {
                let word = Some(("Failed", format!("Error: {why}")));
                (Condition::Waiting("CreateContainerConfigError", why), word)
            }
            Err(Hindrance::Start(why)) => {
                let word = Some(("Failed", format!("Error: {why}")));
                let end = json!({
                    "exitCode": 128, "reason": "StartError", "message": why, "startedAt": "1970-01-01T00:00:00Z",
                    "finishedAt": since,
                });
                (Condition::Ended(end), word)
            }
        };
        let is_running = matches!(is, Condition::Running { .. });
        let is_waiting = matches!(is, Condition::Waiting(..));
        if let Some(container) = self.containers.get_mut(at) {
            container.is = is;
            if is_waiting {
                container.again_at = now + Duration::from_secs(1);
            }
        }
        if let Some((reason, why)) = word {
            let part = if reason == "FailedMount" { "" } else { &name };
            self.say(cluster, pod, ("Warning", reason, part), &why);
        }
        if is_running {
            for (reason, message) in [
                ("Pulled", format!("Container image {image:?} already present on machine")),
                ("Created", format!("Created container {name}")),
                ("Started", format!("Started container {name}")),
            ] {
                self.say(cluster, pod, ("Normal", reason, &name), &message);
            }
        }
    }

    fn pull_fails(
        &mut self,
        cluster: &mut Cluster,
        pod: &Value,
        at: usize,
        (image, now): (&str, Duration),
    ) {
        let Some(container) = self.containers.get_mut(at) else { return };
        let name = container.name.clone();
        let since = *container.unpulled.get_or_insert(now);
        let is_first = since == now;
        let (word, why) = if now.saturating_sub(since) < PULLING {
            let why = format!(
                "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve \
                 reference {image:?}: {image}: not found"
            );
            ("ErrImagePull", why)
        } else {
            ("ImagePullBackOff", format!("Back-off pulling image {image:?}"))
        };
        let is_new = !matches!(&container.is, Condition::Waiting(known, _) if *known == word);
        container.is = Condition::Waiting(word, why.clone());
        if !is_new {
            return;
        }
        if is_first {
            self.say(
                cluster,
                pod,
                ("Normal", "Pulling", &name),
                &format!("Pulling image {image:?}"),
            );
            let text = format!("Failed to pull image {image:?}: {why}");
            self.say(cluster, pod, ("Warning", "Failed", &name), &text);
        } else {
            self.say(cluster, pod, ("Normal", "BackOff", &name), &why);
        }
        self.say(cluster, pod, ("Warning", "Failed", &name), &format!("Error: {word}"));
    }

    /// Lets a pod wait for images that are not to be had.
    pub(super) fn unpull(&mut self) {
        self.end();
        self.is_unpullable = true;
        for container in &mut self.containers {
            container.is = Condition::Waiting("ContainerCreating", String::new());
        }
    }

    /// Its status as the kubelet reports it.
    pub(super) fn status(&self, pod: &Value, now: &str) -> Value {
        if let Some(("Evicted", message)) = &self.failed {
            // 1.20 says nothing of containers then [pod-evicted].
            return json!({"phase": "Failed", "message": message, "reason": "Evicted", "startTime": self.begun});
        }
        let old = &pod["status"];
        let of = |is_init: bool| -> Vec<&Contained> {
            self.containers.iter().filter(|container| container.is_init == is_init).collect()
        };
        let (init, main) = (of(true), of(false));
        let ended = |of: &&Contained| matches!(of.is, Condition::Ended(_));
        let code = |of: &&Contained| match &of.is {
            Condition::Ended(end) => end["exitCode"].as_i64(),
            _ => None,
        };
        let init_done = init.iter().all(|of| code(of) == Some(0));
        let init_failed = text(&pod["spec"]["restartPolicy"]) == "Never"
            && init.iter().any(|of| code(of).is_some_and(|code| code != 0));
        let all_ended = main.iter().all(ended);
        let phase = if self.failed.is_some() || init_failed {
            "Failed"
        } else if all_ended && main.iter().all(|of| code(of) == Some(0)) {
            "Succeeded"
        } else if all_ended {
            "Failed"
        } else if init_done
            && main.iter().any(
                |of| !matches!(of.is, Condition::Waiting(word, _) if word != "CrashLoopBackOff"),
            )
        {
            "Running"
        } else {
            "Pending"
        };
        let ready = main.iter().all(|of| matches!(of.is, Condition::Running { .. }));
        let unready: Vec<&str> = main
            .iter()
            .filter(|of| !matches!(of.is, Condition::Running { .. }))
            .map(|of| of.name.as_str())
            .collect();
        let why_unready = if phase == "Succeeded" { "PodCompleted" } else { "ContainersNotReady" };
        let mut conditions = Vec::new();
        let mut condition = |of: &str, is: bool, why: &str, message: String| {
            let word = if is { "True" } else { "False" };
            let all = old["conditions"].as_array().into_iter().flatten();
            let before = all.into_iter().find(|before| text(&before["type"]) == of);
            let since = before.filter(|before| text(&before["status"]) == word);
            let since =
                since.map_or_else(|| json!(now), |before| before["lastTransitionTime"].clone());
            let mut new = json!({"type": of, "status": word, "lastProbeTime": null, "lastTransitionTime": since});
            if !is {
                new["reason"] = json!(why);
                new["message"] = json!(message);
            }
            conditions.push(new);
        };
        let unfinished: Vec<&str> =
            init.iter().filter(|of| code(of) != Some(0)).map(|of| of.name.as_str()).collect();
        let message = format!("containers with incomplete status: [{}]", unfinished.join(" "));
        condition("Initialized", init_done, "ContainersNotInitialized", message);
        let message = format!("containers with unready status: [{}]", unready.join(" "));
        condition("Ready", ready, why_unready, message.clone());
        condition("ContainersReady", ready, why_unready, message);
        condition("PodScheduled", true, "", String::new());
        if self.is_preempted {
            conditions.push(json!({
                "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
                "reason": "PreemptionByScheduler",
                "message": "default-scheduler: preempting to accommodate a higher priority pod",
            }));
        }
        let mut status = json!({
            "phase": phase, "conditions": conditions, "hostIP": "127.0.0.1", "startTime": self.begun,
            "containerStatuses": main.iter().map(|of| of.status()).collect::<Vec<_>>(),
            "qosClass": old["qosClass"],
        });
        if self.containers.iter().any(|of| !matches!(of.is, Condition::Waiting(..))) {
            status["podIP"] = json!("127.0.0.1");
            status["podIPs"] = json!([{"ip": "127.0.0.1"}]);
        }
        if !init.is_empty() {
            status["initContainerStatuses"] = init.iter().map(|of| of.status()).collect();
        }
        if let Some((reason, message)) = &self.failed {
            status["reason"] = json!(reason);
            status["message"] = json!(message);
        }
        status
    }
}

impl Contained {
    fn status(&self) -> Value {
        let (state, ready, id) = match &self.is {
            Condition::Waiting(reason, message) if message.is_empty() => {
                (json!({"waiting": {"reason": reason}}), false, String::new())
            }
            Condition::Waiting(reason, message) => {
                (json!({"waiting": {"reason": reason, "message": message}}), false, String::new())
            }
            Condition::Running { since, child } => (
                json!({"running": {"startedAt": since}}),
                true,
                format!("process://{}", child.id()),
            ),
            Condition::Ended(end) => {
                let ready = self.is_init && end["exitCode"] == json!(0);
                (json!({"terminated": end}), ready, text(&end["containerID"]).to_owned())
            }
        };
        let image = text(&self.spec["image"]);
        let was_there = !id.is_empty();
        let mut status = json!({
            "name": self.name, "state": state, "lastState": self.last, "ready": ready,
            "restartCount": self.restarts, "image": image,
            "imageID": if was_there { image } else { "" },
            "started": matches!(self.is, Condition::Running { .. }),
        });
        if was_there {
            status["containerID"] = json!(id);
        }
        status
    }
}

/// Whether there is such an image. There are no images here, so all names are good but those that never can be: in a
/// domain that ends in `.invalid` (RFC 2606).
fn exists(image: &str) -> bool {
    let host = image.split('/').next().unwrap_or_default().split(':').next().unwrap_or_default();
    !host.ends_with(".invalid")
}
