//! The manifest of a Job: one pod, one container with the command, never started again by itself.
//!
//! Of the code and of secrets the manifest has the names of objects that hold them, which are made before it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde_json::{Map, Value, json};

use tpu_core::model::job::Job;
use tpu_core::model::options::KindOptions;
use tpu_engine::runner::{Attempt, RunError, environment};
use tpu_system::effects::Effects;

use super::flavors::{Flavor, as_text};
use super::names::{self, JobRef, LAUNCH, QUEUE};
use super::options;
use super::settings::{KubernetesSettings, ValueType};
use super::volumes::{LIKE, Volume};

/// The container of the command.
pub(super) const MAIN: &str = "main";
/// The container before it, which brings the code and makes the log directory.
const READY: &str = "ready";
/// Where the code is unpacked.
const CODE: &str = "/tpu/code";
/// Where logs go that are on no volume: they go with the pod.
const LOGS: &str = "/tpu/logs";
/// Where the archive of the code lies.
const ARCHIVE: &str = "/tpu/archive";
/// The archive.
pub(super) const ARCHIVE_FILE: &str = "code.tar.gz";
/// Where the rank of a pod stands [documented, 1.21].
const RANK_AT: &str = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
/// So many pods belong together at most.
const MOST_NODES: u32 = 1_000;
/// Where programs of several nodes meet that are not told otherwise; a service has to name a port.
const PORT: u16 = 29_500;
/// Makes ready what the command finds.
const MAKE_READY: &str = "set -e; mkdir -p \"$TPU_LOG_DIR\"; \
    if [ -e /tpu/archive/code.tar.gz ]; then tar -xzf /tpu/archive/code.tar.gz -C \"$TPU_STAGE_DIR\"; fi";

/// What a Job is made of, beside its attempt.
pub(super) struct Parts<'p> {
    /// What was said of the target.
    pub(super) target: &'p KindOptions,
    /// What holds for all jobs.
    pub(super) settings: &'p KubernetesSettings,
    /// The namespace.
    pub(super) namespace: &'p str,
    /// Whether there is code to be unpacked.
    pub(super) has_code: bool,
    /// What this process was started with.
    pub(super) effects: &'p Effects,
}

/// A manifest, and what a person should know of it.
pub(super) struct Manifest {
    /// The Job.
    pub(super) job: Value,
    /// What was filled in, and what may surprise.
    pub(super) notes: Vec<String>,
}

/// What was said of the job and, behind that, of its target.
struct Said<'s> {
    job: KindOptions,
    target: &'s KindOptions,
}

impl Said<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.job.get(name).or_else(|| self.target.get(name))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.target.all(name).iter().chain(self.job.all(name)).map(String::as_str)
    }
}

/// The names of the objects that belong to a Job.
pub(super) fn secret_of(known: &JobRef) -> String {
    belonging(known, "secrets")
}

/// The config map that holds the code.
pub(super) fn code_of(known: &JobRef) -> String {
    belonging(known, "code")
}

/// The service by which pods that belong together find each other.
pub(super) fn service_of(known: &JobRef) -> String {
    belonging(known, "pods")
}

/// That service: it has no address of its own, and names each pod from its beginning on.
pub(super) fn service(known: &JobRef, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": service_of(known), "labels": labels},
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true, "selector": {LAUNCH: known.token},
            "ports": [{"name": "any", "port": PORT}],
        },
    })
}

/// Whether a Job has pods that belong together.
pub(super) fn is_ranked(job: &Value) -> bool {
    job["spec"]["completionMode"] == "Indexed"
}

fn belonging(known: &JobRef, what: &str) -> String {
    let token: String = known.token.to_ascii_lowercase().chars().take(24).collect();
    format!("tpu-{token}-{what}")
}

/// The labels of everything that belongs to a launch.
pub(super) fn labels(job: &Job, known: &JobRef) -> Value {
    json!({
        "app.kubernetes.io/managed-by": "tpu",
        LAUNCH: known.token,
        "tpu.user": names::label(job.user.as_str()),
    })
}

/// The manifest of an attempt.
pub(super) fn of(attempt: &Attempt<'_>, parts: &Parts<'_>) -> Result<Manifest, RunError> {
    let job = attempt.job;
    let known = JobRef::of(job);
    let of_job = job.spec.as_ref().map(|spec| spec.options.clone()).unwrap_or_default();
    let said = Said { job: of_job, target: parts.target };
    let settings = parts.settings;
    let mut notes = Vec::new();
    let image = settings.image(said.get(options::IMAGE)).ok_or_else(|| {
        RunError::usage(
            "no image is named",
            "name one, as in: -i python:3.12, or set defaultImage in kubernetes.json",
        )
    })?;
    if !names::is_name(&known.name) {
        return Err(RunError::usage(
            format!("'{}' is no name of a Job", known.name),
            "lower-case letters, digits and dashes, 63 of them at most",
        ));
    }
    let flavor = settings
        .flavor(said.get(options::FLAVOR))
        .map_err(|why| RunError::usage(why, "`tpu flavors` lists them"))?
        .ok_or_else(|| {
            RunError::usage(
                "no flavor is named, and none is the default",
                "name one, as in: -r no-gpu; `tpu flavors` lists them",
            )
        })?;
    let (resources, added) = flavor.of_manifest();
    if !added.is_empty() {
        notes.push(format!("{} is limited to what is requested", added.join(", ")));
    }
    let volumes = volumes(&said, settings, &flavor)?;
    let mounts = mounts(&volumes, parts.has_code);
    let mut main = json!({
        "name": MAIN,
        "image": image,
        "env": variables(attempt, &said, parts)?,
        "resources": resources,
        "volumeMounts": mounts,
    });
    words(attempt, said.get(options::WORDS_ARE), &mut main)?;
    if let Some(place) = job.workplace() {
        main["workingDir"] = Value::from(place);
    } else if parts.has_code {
        main["workingDir"] = Value::from(job.within(CODE));
    }
    if job.execution().is_some_and(|execution| !execution.secrets.is_empty()) {
        main["envFrom"] = json!([{"secretRef": {"name": secret_of(&known)}}]);
    }
    if parts.has_code {
        notes.push(format!("its code goes with it, in the config map {}", code_of(&known)));
    }
    if !volumes.iter().any(Volume::keeps) {
        notes.push(
            "it writes to no volume: what it saves goes with its pod, and what it prints is kept here"
                .to_owned(),
        );
    }
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "containers": [main],
        "securityContext": security(&said, settings, parts.effects)?,
        "volumes": pod_volumes(&volumes, &known, parts.has_code),
    });
    if parts.has_code || parts.target.get(options::LOG_VOLUME).is_some() {
        pod["initContainers"] = json!([{
            "name": READY, "image": image, "command": ["sh", "-c", MAKE_READY],
            "env": places(job, parts), "volumeMounts": mounts, "resources": resources,
            // Where it fails, the pod says with what: nobody fetches its log.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }]);
    }
    place(&mut pod, &said, &flavor, settings, attempt);
    if let Some(seconds) = job.execution().and_then(|execution| execution.timeout_s) {
        // Of the pod and not of the Job: what it waits for a node does not count.
        pod["activeDeadlineSeconds"] = Value::from(seconds);
    }
    let mut spec = json!({
        "backoffLimit": 0, "completions": 1, "parallelism": 1,
        // 1.29 and later: no second pod beside one that may still be at work.
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": labels(job, &known)}, "spec": pod},
    });
    let ttl = said.get(options::TTL).map(seconds_kept).transpose()?.or(settings.job.ttl_seconds);
    if let Some(seconds) = ttl {
        spec["ttlSecondsAfterFinished"] = Value::from(seconds);
    }
    let nodes = nodes(&said)?;
    if nodes > 1 {
        together(&mut spec, &known, nodes)?;
        notes.push(format!(
            "{nodes} pods belong together (Kubernetes 1.24 and later); $TPU_WORKER is the rank of each"
        ));
    }
    let mut of_job = labels(job, &known);
    if let Some(queue) = said.get(options::QUEUE_LABEL) {
        // Its webhook suspends what has the label, until there is room.
        of_job[QUEUE] = Value::from(queue);
    }
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": known.name, "namespace": parts.namespace, "labels": of_job,
            "annotations": annotations(attempt, &said, (settings, &flavor), parts.effects)?,
        },
        "spec": spec,
    });
    Ok(Manifest { job, notes })
}

/// Whether all is said of a job itself that settings could say: those of another job manager are, and ours do not count.
pub(super) fn is_said_whole(job: &Job) -> bool {
    let said = job.spec.as_ref().and_then(|spec| spec.options.get(options::SETTINGS_ARE));
    said == Some(options::SAID)
}

/// For how many seconds a Job is kept that has ended.
fn seconds_kept(text: &str) -> Result<u64, RunError> {
    text.parse().map_err(|_| {
        RunError::usage(format!("--ttl {text}: no number of seconds"), "as in: --ttl 3600")
    })
}

/// How many pods belong together.
fn nodes(said: &Said<'_>) -> Result<u32, RunError> {
    let Some(text) = said.get(options::NODES) else { return Ok(1) };
    let number = text.parse().ok().filter(|number| (1..=MOST_NODES).contains(number));
    number.ok_or_else(|| {
        let what = format!("--nodes {text}: a number of pods is between 1 and {MOST_NODES}");
        RunError::usage(what, "as in: --nodes 4")
    })
}

/// Has so many pods belong together: each has its rank, and finds the first by a name.
fn together(spec: &mut Value, known: &JobRef, nodes: u32) -> Result<(), RunError> {
    if known.name.len() + names::RANK > 63 {
        let what = format!("{} is too long a name for a Job of several pods", known.name);
        return Err(RunError::usage(
            what,
            "59 characters at most: each pod has its rank behind it",
        ));
    }
    spec["completions"] = Value::from(nodes);
    spec["parallelism"] = Value::from(nodes);
    spec["completionMode"] = Value::from("Indexed");
    let service = service_of(known);
    let pod = &mut spec["template"]["spec"];
    pod["subdomain"] = Value::from(service.as_str());
    let rank =
        |name: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": RANK_AT}}});
    let first = format!("{}-0.{service}", known.name);
    let more = [
        rank("TPU_WORKER"),
        rank("NODE_RANK"),
        json!({"name": "NNODES", "value": nodes.to_string()}),
        json!({"name": "MASTER_ADDR", "value": first}),
        json!({"name": "MASTER_PORT", "value": PORT.to_string()}),
    ];
    if let Some(env) = pod["containers"][0]["env"].as_array_mut() {
        // What a person says of it himself holds.
        for one in more {
            if !env.iter().any(|known| known["name"] == one["name"]) {
                env.push(one);
            }
        }
    }
    Ok(())
}

fn volumes(
    said: &Said<'_>,
    settings: &KubernetesSettings,
    flavor: &Flavor,
) -> Result<Vec<Volume>, RunError> {
    let odd = |said: String| RunError::usage(format!("'{said}' is no volume"), LIKE);
    let typed = |text: &str| Volume::parse(text).ok_or_else(|| odd(text.to_owned()));
    let written = |value: &Value| Volume::of_value(value).ok_or_else(|| odd(value.to_string()));
    let of_logs = said.target.get(options::LOG_VOLUME).into_iter().map(typed);
    let of_settings = settings.job.volumes.iter().chain(&flavor.volumes).map(written);
    let of_job = said.all(options::VOLUME).map(typed);
    let mut volumes: Vec<Volume> = Vec::new();
    for volume in of_logs.chain(of_settings).chain(of_job) {
        let volume = volume?;
        match volumes.iter().find(|known| known.mount == volume.mount) {
            Some(same) if *same == volume => {}
            Some(_) => {
                let what = format!("two volumes would be mounted at {}", volume.mount);
                return Err(RunError::usage(what, "give each a place of its own"));
            }
            None => volumes.push(volume),
        }
    }
    Ok(volumes)
}

fn mounts(volumes: &[Volume], has_code: bool) -> Vec<Value> {
    let named = volumes.iter().enumerate();
    let mut mounts: Vec<Value> =
        named.map(|(index, volume)| volume.of_container(&volume_name(index))).collect();
    mounts.push(json!({"name": "tpu", "mountPath": LOGS, "subPath": "logs"}));
    if has_code {
        mounts.push(json!({"name": "tpu", "mountPath": CODE, "subPath": "code"}));
        mounts.push(json!({"name": "code", "mountPath": ARCHIVE, "readOnly": true}));
    }
    mounts
}

fn pod_volumes(volumes: &[Volume], known: &JobRef, has_code: bool) -> Vec<Value> {
    let named = volumes.iter().enumerate();
    let mut all: Vec<Value> =
        named.map(|(index, volume)| volume.of_pod(&volume_name(index))).collect();
    all.push(json!({"name": "tpu", "emptyDir": {}}));
    if has_code {
        all.push(json!({"name": "code", "configMap": {"name": code_of(known)}}));
    }
    all
}

fn volume_name(index: usize) -> String {
    format!("volume-{index}")
}

/// The words of the command, so that each arrives as it is: a dollar sign is no reference to a variable.
fn words(
    attempt: &Attempt<'_>,
    words_are: Option<&str>,
    container: &mut Value,
) -> Result<(), RunError> {
    if words_are == Some(options::NONE) {
        return Ok(());
    }
    let words: Result<Vec<Value>, RunError> = attempt
        .words
        .iter()
        .map(|word| text(word).map(|word| Value::from(escaped(word))))
        .collect();
    let key = if words_are == Some(options::COMMAND) { "command" } else { "args" };
    container[key] = Value::Array(words?);
    Ok(())
}

/// What the server takes for a text.
fn text(word: &OsStr) -> Result<&str, RunError> {
    word.to_str().ok_or_else(|| {
        let what = format!("{} is no UTF-8, and Kubernetes takes nothing else", word.display());
        RunError::usage(what, "write it into a file beside the code")
    })
}

/// `$$` is a dollar sign, and `$(NAME)` the value of a variable (Kubernetes documentation, `command` of a container).
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// Where the command finds its code and puts its logs.
fn places(job: &Job, parts: &Parts<'_>) -> Vec<Value> {
    let variable = |(name, value): (&str, &str)| json!({"name": name, "value": escaped(value)});
    places_of(job, parts).map(|(name, value)| variable((name, &value))).collect()
}

fn places_of(job: &Job, parts: &Parts<'_>) -> impl Iterator<Item = (&'static str, String)> {
    let is_kept = parts.target.get(options::LOG_VOLUME).is_some();
    let log = job.log_dir.clone().filter(|_| is_kept).unwrap_or_else(|| LOGS.to_owned());
    let stage = parts.has_code.then(|| ("TPU_STAGE_DIR", CODE.to_owned()));
    [("TPU_LOG_DIR", log)].into_iter().chain(stage)
}

fn variables(
    attempt: &Attempt<'_>,
    said: &Said<'_>,
    parts: &Parts<'_>,
) -> Result<Vec<Value>, RunError> {
    let mut vars = environment::of_attempt(attempt, false);
    for text in said.all(options::ENV).chain(said.all(options::VARIABLE)) {
        let named = text.split_once('=').filter(|(name, _)| is_variable(name));
        let (name, value) = named.ok_or_else(|| {
            RunError::usage(format!("'{text}' sets no variable"), "as in: -e NAME=VALUE")
        })?;
        environment::set(&mut vars, name, value.to_owned());
    }
    vars.retain(|(name, _)| name != "TPU_STAGE_DIR");
    for (name, value) in places_of(attempt.job, parts) {
        environment::set(&mut vars, name, value);
    }
    let is_name = |name: &OsString| name.to_str().is_some_and(is_variable);
    vars.iter()
        .filter(|(name, _)| is_name(name))
        .map(|(name, value)| {
            let value = text(value)?;
            Ok(json!({"name": name.to_str(), "value": escaped(value)}))
        })
        .collect()
}

/// Whether the server takes a name of a variable.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || "_-.".contains(c))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// Who the processes are: what is said of the job, else in the settings, else the account that asks for it, and never
/// root without a word.
fn security(
    said: &Said<'_>,
    settings: &KubernetesSettings,
    effects: &Effects,
) -> Result<Value, RunError> {
    if let Some(text) = said.get(options::SECURITY_CONTEXT) {
        let context: Map<String, Value> = serde_json::from_str(text).map_err(|e| {
            let what = format!("security context: {}", super::flavors::place(&e));
            RunError::usage(what, "as in: --security-context '{\"runAsUser\": 1000}'")
        })?;
        return Ok(Value::Object(context));
    }
    Ok(usual_security(settings, effects))
}

/// Who the processes of a pod are, where nothing was said of its job.
pub(super) fn usual_security(settings: &KubernetesSettings, effects: &Effects) -> Value {
    if let Some(said) = &settings.job.security_context {
        return said.clone();
    }
    let uid = if effects.env.uid == 0 { 1000 } else { effects.env.uid };
    json!({"runAsNonRoot": true, "runAsUser": uid, "runAsGroup": uid, "fsGroup": uid})
}

/// Where it runs, and with which rank.
fn place(
    pod: &mut Value,
    said: &Said<'_>,
    flavor: &Flavor,
    settings: &KubernetesSettings,
    attempt: &Attempt<'_>,
) {
    if !flavor.node_selector.is_empty() {
        pod["nodeSelector"] = json!(flavor.node_selector);
    }
    if !flavor.tolerations.is_empty() {
        pod["tolerations"] = json!(flavor.tolerations);
    }
    let class = said.get(options::PRIORITY_CLASS).or(flavor.priority_class_name.as_deref());
    if let Some(class) = class.or(settings.job.priority_class_name.as_deref()) {
        pod["priorityClassName"] = Value::from(class);
    }
    if let Some(account) = said.get(options::SERVICE_ACCOUNT) {
        pod["serviceAccountName"] = Value::from(account);
    }
    let of_settings = settings.job.image_pull_secrets.iter().map(String::as_str);
    let secrets: Vec<Value> = of_settings
        .chain(said.all(options::PULL_SECRET))
        .map(|name| json!({"name": name}))
        .collect();
    if !secrets.is_empty() {
        pod["imagePullSecrets"] = Value::Array(secrets);
    }
    if !attempt.avoid.is_empty() {
        let elsewhere = json!({
            "key": "kubernetes.io/hostname", "operator": "NotIn", "values": attempt.avoid,
        });
        pod["affinity"] = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]},
        }});
    }
}

fn annotations(
    attempt: &Attempt<'_>,
    said: &Said<'_>,
    (settings, flavor): (&KubernetesSettings, &Flavor),
    effects: &Effects,
) -> Result<Value, RunError> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for annotation in &settings.job.annotations {
        let value = match annotation.value_type {
            ValueType::String => annotation.value.clone(),
            ValueType::Env => effects.env.var(&annotation.value).unwrap_or_default().to_owned(),
        };
        all.insert(annotation.key.clone(), value);
    }
    for text in said.all(options::ANNOTATIONS) {
        let given: Map<String, Value> = serde_json::from_str(text).map_err(|e| {
            RunError::usage(
                format!("annotations: {}", super::flavors::place(&e)),
                "names and texts, as in: -a '{\"team\": \"vision\"}'",
            )
        })?;
        for (name, value) in given {
            all.insert(name, as_text(value));
        }
    }
    all.insert(settings.flavor_annotation().to_owned(), flavor.name.clone());
    all.insert("tpu/job".to_owned(), attempt.job.id().to_string());
    Ok(json!(all))
}
