//! What of a job file that was sent is carried out by the account that serves, on its own machine and not where the job
//! runs, or reaches what strangers do not: only an admin's token may ask for it.

use std::path::{Component, Path};

use tpu_core::model::notify::{Receiver, WayTo};
use tpu_core::model::order::STARTUP_SCRIPT;
use tpu_jobfile::modules::{self, TakenFrom};
use tpu_jobfile::own::{OwnCode, OwnJob, Place};
use tpu_system::post::reach;

/// What stands where that an operator may not ask for.
pub(super) struct Privileged {
    /// Where.
    pub(super) place: Place,
    /// What it is.
    pub(super) what: String,
}

/// The first of it in a job.
pub(super) fn first_of(job: &OwnJob) -> Option<Privileged> {
    let at = |key: &str| job.places.of(&[key]).unwrap_or(job.place);
    let is_said = |key: &&str| job.places.of(&[*key]).is_some();
    let key = ["script", "stdin"].into_iter().find(is_said).map(|key| (key, format!("{key}:")));
    let notify = job.execution.notify.iter().flatten().find_map(receiver);
    let started = job.order.as_ref().and_then(|order| {
        let scripts = order.options.pairs().any(|(name, _)| name == STARTUP_SCRIPT);
        scripts.then(|| ("tpu", "startup_script:, a file of this machine,".to_owned()))
    });
    let code = match &job.code {
        Some(OwnCode::Repository(of)) if is_here(&of.url) => {
            Some(("code", format!("{}, a repository on this machine,", of.url)))
        }
        _ => None,
    };
    let found = key
        .or_else(|| notify.map(|what| ("notify", what)))
        .or(started)
        .or_else(|| taken_from_here(job).map(|what| ("setup", what)))
        .or(code);
    found.map(|(key, what)| Privileged { place: at(key), what })
}

fn receiver(to: &Receiver) -> Option<String> {
    match &to.way {
        WayTo::Command(_) => Some("a command in notify:".to_owned()),
        WayTo::Webhook(url) if !reach::may_be_public(url) => {
            Some(format!("{}, which is no public address,", to.place()))
        }
        WayTo::Webhook(_) | WayTo::Mail(_) | WayTo::Message(_) => None,
    }
}

/// A file that the set-up copies from this machine, and that does not lie in the code.
fn taken_from_here(job: &OwnJob) -> Option<String> {
    let steps = job.execution.setup.iter().filter_map(|module| modules::steps(module, 0));
    let taken = steps.flatten().flat_map(|step| step.taken).map(|taken| taken.from);
    let paths = taken.filter_map(|from| match from {
        TakenFrom::Path(path) => Some(path),
        TakenFrom::Text(_) | TakenFrom::Read(_) => None,
    });
    let is_in_code = |path: &str| {
        let mut parts = Path::new(path).components();
        !path.starts_with('~')
            && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    let mut outside = paths.filter(|path| !is_in_code(path));
    outside.next().map(|path| format!("{path}, a file of this machine,"))
}

/// Whether git would clone from this machine.
fn is_here(url: &str) -> bool {
    let is_scp = url.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
    match url.split_once("://") {
        Some((scheme, _)) => scheme.eq_ignore_ascii_case("file"),
        None => !is_scp,
    }
}
