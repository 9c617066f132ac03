//! `queue`: the active Jobs by what they ask for. Those of all namespaces where this account may see them, else what the
//! Kubernetes job manager's summary says, else those of the own namespace.

use std::collections::BTreeMap;

use clap::ArgMatches;
use serde_json::{Value, json};

use crate::flavors::{Amounts, Flavor, Resources, amount_in_words};
use crate::names;
use crate::request::PATIENCE;
use crate::settings::{self, JobsQueue, KubernetesSettings};
use tpu_core::model::time::{Timestamp, age};
use tpu_core::text;
use tpu_engine::kinds::KindAnswer;
use tpu_engine::runner::RunError;

use super::super::table::table;
use super::at::{self, At};

/// One active Job.
struct ActiveJob {
    namespace: String,
    flavor: Option<String>,
    /// Whose it is, where tpu has made it.
    user: Option<String>,
    resources: Resources,
}

/// Jobs that ask for the same under the same name.
#[derive(Default)]
struct Group {
    total: usize,
    yours: usize,
}

/// What is in the first three columns that say so: flavor, CPU, memory, GPUs.
type Key = (Option<String>, String, String, u64);

/// The jobs, and from where they are known.
struct Queued {
    jobs: Vec<ActiveJob>,
    from: String,
}

/// Shows the queue.
pub(super) fn queue(
    at: &At<'_>,
    settings: &KubernetesSettings,
    said: &ArgMatches,
) -> Result<KindAnswer, RunError> {
    let user = names::label(&at::user(at.site.effects, said)?);
    let queued = queued(at, settings)?;
    let others: Vec<String> =
        settings.jobs_queue.iter().flat_map(|of| of.gpu_resources.clone()).collect();
    let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
    for job in &queued.jobs {
        let is_yours = job.namespace == at.site.cluster.namespace
            && job.user.as_ref().is_none_or(|of| *of == user);
        let group = groups.entry(key(job, &others)).or_default();
        group.total += 1;
        group.yours += usize::from(is_yours);
    }
    let row = |((flavor, cpu, memory, gpus), group): (&Key, &Group)| {
        let flavor = flavor.clone().unwrap_or_else(|| "<no label>".to_owned());
        vec![
            flavor,
            group.total.to_string(),
            group.yours.to_string(),
            cpu.clone(),
            memory.clone(),
            gpus.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    let part = |((flavor, cpu, memory, gpus), group): (&Key, &Group)| json!({"flavor": flavor, "total": group.total, "yours": group.yours, "cpu": cpu, "memory": memory, "gpus": gpus});
    let answer = json!({"queue": groups.iter().map(part).collect::<Vec<_>>(), "from": queued.from});
    let head = ["Flavor", "Jobs total", "Jobs yours", "CPU", "Memory", "GPUs"];
    let text = format!("{}{}\n", table(&head, &rows), text::escape(&queued.from));
    Ok(KindAnswer { text, answer, ..KindAnswer::default() })
}

fn queued(at: &At<'_>, settings: &KubernetesSettings) -> Result<Queued, RunError> {
    let (namespace, own) = (at.site.namespace(), &at.site.cluster.namespace);
    let annotation = settings.flavor_annotation();
    let active = |all: &[Value]| -> Vec<ActiveJob> {
        all.iter().filter(|job| is_active(job)).map(|job| of_object(job, annotation)).collect()
    };
    let everywhere = namespace.jobs_of(None, PATIENCE);
    match everywhere {
        Ok(all) => {
            return Ok(Queued {
                jobs: active(&all),
                from: "All namespaces, as they are now.".to_owned(),
            });
        }
        Err(trouble) if trouble.code() == Some(403) => {}
        Err(trouble) => return Err(at.site.error(&trouble)),
    }
    let summary = settings.jobs_queue.as_ref().filter(|of| !of.configmap.is_empty());
    if let Some(of) = summary
        && let Ok(map) = namespace.config_map(&of.namespace, &of.configmap, PATIENCE)
    {
        return summarized(&map, of, at.site.effects.clock.now());
    }
    let here = namespace.jobs_of(Some(own), PATIENCE).map_err(|trouble| at.site.error(&trouble))?;
    let from = format!(
        "The namespace {own} alone: nobody may see the others here, and no summary can be read."
    );
    Ok(Queued { jobs: active(&here), from })
}

/// What the summary says, which a `CronJob` of that job manager writes every few minutes.
fn summarized(map: &Value, of: &JobsQueue, now: Timestamp) -> Result<Queued, RunError> {
    let place = format!("config map {}/{}", of.namespace, of.configmap);
    let bad = |why: String| {
        RunError::failed(
            format!("the {place} holds no summary of the queue: {why}"),
            "the administrators of the cluster can correct what writes it",
        )
    };
    let data = map.get("data").and_then(Value::as_object);
    let text = data.and_then(|data| data.get(&of.configmap).or_else(|| data.values().next()));
    let text = text.and_then(Value::as_str).ok_or_else(|| bad("it is empty".to_owned()))?;
    let summary: Value = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    let jobs = summary
        .get("jobs")
        .and_then(Value::as_array)
        .ok_or_else(|| bad("it has no jobs".to_owned()))?;
    let written = summary.get("updated").and_then(Value::as_str);
    let written: Option<jiff::Timestamp> = written.and_then(|text| text.parse().ok());
    let when = written.map_or("nobody knows when".to_owned(), |at| {
        format!("{} ago", age(now.seconds_since(Timestamp::from_jiff(at))))
    });
    let from = format!("From the {place}, written {when}.");
    Ok(Queued { jobs: jobs.iter().map(of_summary).collect(), from })
}

/// Whether a Job waits or runs.
fn is_active(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut ends = conditions.filter(|of| {
        of["status"] == "True" && (of["type"] == "Complete" || of["type"] == "Failed")
    });
    ends.next().is_none()
}

fn of_object(job: &Value, annotation: &str) -> ActiveJob {
    let metadata = &job["metadata"];
    let said = |name: &str| metadata["annotations"][name].as_str().map(str::to_owned);
    let containers = &job["spec"]["template"]["spec"]["containers"];
    ActiveJob {
        namespace: metadata["namespace"].as_str().unwrap_or_default().to_owned(),
        flavor: said(annotation).or_else(|| said(settings::FLAVOR)),
        user: metadata["labels"]["tpu.user"].as_str().map(str::to_owned),
        resources: Resources {
            requests: amounts(&containers[0]["resources"]["requests"]),
            limits: amounts(&containers[0]["resources"]["limits"]),
        },
    }
}

/// The one who writes has the name of the flavor as `flavor`, the one who reads looks for `label`: both are taken.
fn of_summary(job: &Value) -> ActiveJob {
    let of = &job["resources"];
    let said = |name: &str| of[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    ActiveJob {
        namespace: job["namespace"].as_str().unwrap_or_default().to_owned(),
        flavor: said("flavor").or_else(|| said("label")),
        user: None,
        resources: Resources { requests: amounts(&of["requests"]), limits: Amounts::new() },
    }
}

fn amounts(of: &Value) -> Amounts {
    let all = of.as_object().into_iter().flatten();
    all.map(|(name, amount)| (name.clone(), amount.clone())).collect()
}

fn key(job: &ActiveJob, others: &[String]) -> Key {
    let of = &job.resources;
    let get = |name: &str| {
        of.requests.get(name).or_else(|| of.limits.get(name)).and_then(amount_in_words)
    };
    let known = Flavor { resources: of.clone(), ..Flavor::default() }.gpus();
    let other = others.iter().filter(|name| !crate::flavors::is_gpu(name));
    let other: u64 = other.filter_map(|name| get(name)?.parse::<u64>().ok()).sum();
    let (cpu, memory) = (get("cpu").unwrap_or_default(), get("memory").unwrap_or_default());
    (job.flavor.clone(), cpu, memory, known + other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_its_cron_job_is_read_with_its_age_and_its_flavors() {
        let written = r#"{"updated": "2024-01-17T10:00:00Z", "jobs": [
            {"namespace": "user-a", "name": "x", "updated": "2024-01-17T09:00:00Z",
             "resources": {"flavor": "small-gpu", "requests": {"cpu": "1", "nvidia.com/gpu": "1", "amd.com/gpu": "2"}}},
            {"namespace": "user-b", "name": "y", "resources": {"flavor": null, "requests": null}},
            {"namespace": "user-b", "name": "z", "resources": {"label": "old"}}]}"#;
        let of = JobsQueue {
            namespace: "shared".to_owned(),
            configmap: "queue".to_owned(),
            gpu_resources: Vec::new(),
        };
        let now = Timestamp::from_jiff("2024-01-17T10:02:00Z".parse().unwrap());
        let queued = summarized(&json!({"data": {"queue": written}}), &of, now).unwrap();
        assert!(
            queued.from.contains("shared/queue") && queued.from.contains("2m"),
            "{}",
            queued.from
        );
        let keys: Vec<Key> = queued.jobs.iter().map(|job| key(job, &[])).collect();
        assert_eq!(keys[0], (Some("small-gpu".to_owned()), "1".to_owned(), String::new(), 3));
        assert_eq!((keys[1].0.as_deref(), keys[2].0.as_deref()), (None, Some("old")));
        assert!(summarized(&json!({"data": {"queue": "{"}}), &of, now).is_err());
    }

    #[test]
    fn what_has_ended_is_not_active() {
        let with = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
        assert!(is_active(&json!({})) && is_active(&with("Suspended", "True")));
        assert!(is_active(&with("Failed", "False")));
        assert!(!is_active(&with("Failed", "True")) && !is_active(&with("Complete", "True")));
    }
}
