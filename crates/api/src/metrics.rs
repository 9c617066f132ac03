//! `/metrics`: figures in the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tpu_core::model::groups;
use tpu_core::model::view::MonitorHealth;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route};

/// What is read by machines that watch machines.
pub(super) fn routes() -> Vec<Route> {
    let text = Gives::Text("text/plain; version=0.0.4; charset=utf-8");
    vec![Route::get("/metrics", "Figures in the text format of Prometheus", text, metrics)]
}

fn metrics(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let seen = asked.served.looks.now(asked.ctx)?;
    let data = asked.ctx.data()?;
    let mut jobs: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for job in seen.snapshot.jobs.iter().filter(|job| asked.who.rights.may_see(&job.id.user)) {
        *jobs.entry((job.id.user.as_str(), job.shown.word())).or_default() += 1;
    }
    let mut amiss: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let looked_at = seen.snapshot.jobs.iter().filter(|job| job.leaf);
    for job in looked_at.filter(|job| asked.who.rights.may_see(&job.id.user)) {
        if let Some(why) = groups::amiss(job) {
            *amiss.entry((job.id.user.as_str(), why)).or_default() += 1;
        }
    }
    let mut text = String::new();
    family(&mut text, "tpu_jobs", "gauge", "Jobs by user and status.");
    for ((user, status), count) in jobs {
        line(&mut text, "tpu_jobs", &[("user", user), ("status", status)], count);
    }
    family(&mut text, "tpu_jobs_amiss", "gauge", "Jobs that a person should look at, and why.");
    for ((user, why), count) in amiss {
        line(&mut text, "tpu_jobs_amiss", &[("user", user), ("why", why)], count);
    }
    family(&mut text, "tpu_queue_entries", "gauge", "What waits, by queue.");
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    let may_see = |user| asked.who.rights.may_see(user);
    for entry in data.queues().entries.iter().filter(|entry| may_see(&entry.user)) {
        *waiting.entry(entry.queue.as_str()).or_default() += 1;
    }
    for (queue, count) in waiting {
        line(&mut text, "tpu_queue_entries", &[("queue", queue)], count);
    }
    family(&mut text, "tpu_daemon_running", "gauge", "Whether the daemon runs.");
    let runs = seen.snapshot.monitor != MonitorHealth::NotRunning;
    line(&mut text, "tpu_daemon_running", &[], u64::from(runs));
    if let Some(turn_age_s) = seen.snapshot.monitor.turn_age_s() {
        family(&mut text, "tpu_daemon_turn_age_seconds", "gauge", "Age of its last turn.");
        line(&mut text, "tpu_daemon_turn_age_seconds", &[], turn_age_s);
    }
    family(&mut text, "tpu_event_streams", "gauge", "Those who follow events.");
    let followers = u64::try_from(asked.served.pulse.followers()).unwrap_or(u64::MAX);
    line(&mut text, "tpu_event_streams", &[], followers);
    family(&mut text, "tpu_http_requests_total", "counter", "Requests that were answered.");
    for ((method, status), count) in asked.served.counted.all() {
        let labels = [("method", method.as_str()), ("status", &status.to_string())];
        line(&mut text, "tpu_http_requests_total", &labels, count);
    }
    Ok(Answer::text(text).kind("text/plain; version=0.0.4; charset=utf-8"))
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let quoted = labels.iter().map(|(name, value)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    let labels = quoted.collect::<Vec<_>>().join(",");
    let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}{labels} {value}");
}
