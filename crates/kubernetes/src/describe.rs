//! What Kubernetes says of one Job in its own words, and the way to it for a person.

use tpu_core::model::job::Job;
use tpu_engine::runner::{RunError, RunRef};

use super::facts::{self, Seen};
use super::manifest::MAIN;
use super::names::JobRef;
use super::request::LOOK;
use super::settle;
use super::site::Site;

/// What Kubernetes says of a job: in one sentence, then in its own words.
pub(super) fn describe(site: &Site<'_>, job: &Job) -> Result<String, RunError> {
    let known = JobRef::of(job);
    let error = |trouble| site.error(&trouble);
    let of = site.namespace().of_label(&known.selector(), LOOK).map_err(error)?;
    let Some(found) = of.jobs.iter().find(|job| !settle::is_tombstone(job)) else {
        return Err(RunError::not_found(
            format!("{} does not know {}, or not any more", site.cluster.in_words(), known.name),
            "`tpu show` says what is known of it here",
        ));
    };
    let mut warnings = site.namespace().warnings("Job", LOOK).unwrap_or_default();
    warnings.extend(site.namespace().warnings("Pod", LOOK).unwrap_or_default());
    warnings.extend(site.namespace().preemptions(LOOK).unwrap_or_default());
    let now = site.then(of.said_at);
    let fact = Seen::new(found, of.pods.iter().collect(), &warnings, now).fact(job);
    let why = fact.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let raw = site.namespace().raw_job(&known.name, LOOK).map_err(error)?;
    let mut text = format!("{}{why}\n{raw:#}\n", fact.raw);
    for pod in &of.pods {
        if let Ok(pod) = serde_json::to_value(pod) {
            text += &format!("{pod:#}\n");
        }
    }
    Ok(text)
}

/// The command that leads a person to a job: a shell in its container where `kubectl` is there, else what it prints.
pub(super) fn attach(site: &Site<'_>, run: RunRef<'_>) -> Result<Vec<String>, RunError> {
    match shell(site, run.job) {
        Err(RunError::Refused(_)) => {}
        known => return known,
    }
    let id = run.job.id();
    let own = site.effects.tpu.display().to_string();
    let words = [own.as_str(), "logs", "-f", &id.window.to_string(), id.user.as_str()];
    Ok(words.map(str::to_owned).to_vec())
}

/// A shell in the container of a job.
pub(super) fn shell(site: &Site<'_>, job: &Job) -> Result<Vec<String>, RunError> {
    let known = JobRef::of(job);
    let error = |trouble| site.error(&trouble);
    let (pods, _) = site.namespace().pods_of_label(&known.selector(), LOOK).map_err(error)?;
    let pod = pods.iter().find(|pod| facts::has_begun(pod) && !facts::is_over(pod));
    let pod = pod.ok_or_else(|| {
        RunError::refused(format!("{} is not at work", job.id()), "`tpu check` shows how it is")
    })?;
    if !has_kubectl(site) {
        return Err(RunError::refused(
            "a shell in a container is opened by kubectl, which is not there",
            "install it (Debian: kubernetes-client); `tpu logs -f` follows what it prints",
        ));
    }
    let mut words = vec!["kubectl".to_owned()];
    if let Some(files) = &site.cluster.kubeconfig {
        words = vec!["env".to_owned(), format!("KUBECONFIG={files}"), "kubectl".to_owned()];
    }
    words.extend(site.cluster.for_kubectl());
    let into = ["exec", "-it", facts::name(pod), "-c", MAIN, "--", "sh"];
    words.extend(into.map(str::to_owned));
    Ok(words)
}

fn has_kubectl(site: &Site<'_>) -> bool {
    let path = site.effects.env.var_os("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|dir| dir.join("kubectl").is_file())
}
