//! What of a job file that was sent is carried out by the account that serves, on its own machine and not where the job
//! runs, or reaches what strangers do not: only an admin's token may ask for it.

use tpu_core::model::notify::{Receiver, WayTo};
use tpu_core::model::order::STARTUP_SCRIPT;
use tpu_jobfile::modules::{self, TakenFrom};
use tpu_jobfile::own::{OwnCode, OwnJob, Place};
use tpu_system::post::reach;

use crate::act::setup;

/// What stands where that an operator may not ask for.
pub(super) struct Privileged {
    /// Where.
    pub(super) place: Place,
    /// What it is.
    pub(super) what: String,
}

/// The first of it in a job. `hostname`: what this machine calls itself.
pub(super) fn first_of(job: &OwnJob, hostname: &str) -> Option<Privileged> {
    let at = |key: &str| job.places.of(&[key]).unwrap_or(job.place);
    let is_said = |key: &&str| job.places.of(&[*key]).is_some();
    let key = ["script", "stdin"].into_iter().find(is_said).map(|key| (key, format!("{key}:")));
    let notify = job.execution.notify.iter().flatten().find_map(receiver);
    let started = job.order.as_ref().and_then(|order| {
        let scripts = order.options.pairs().any(|(name, _)| name == STARTUP_SCRIPT);
        scripts.then(|| ("tpu", "startup_script:, a file of this machine,".to_owned()))
    });
    let code = match &job.code {
        Some(OwnCode::Repository(of)) if is_here(&of.url, hostname) => {
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
    let mut outside = paths.filter(|path| !setup::is_in_code(path));
    outside.next().map(|path| format!("{path}, a file of this machine,"))
}

/// Whether git would clone from this machine or its network, or by a program that the URL names (`gitremote-helpers`,
/// `<transport>::<address>`).
fn is_here(url: &str, hostname: &str) -> bool {
    let is_word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "+-._".contains(c));
    if url.split_once("::").is_some_and(|(helper, _)| is_word(helper)) {
        return true;
    }
    let authority = match url.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return true,
        Some((_, rest)) => rest.split('/').next().unwrap_or_default().to_owned(),
        // As git tells them apart: `host:path` and `[host]:path` have a colon before their first slash.
        None => match url.split_once("]:").or_else(|| url.split_once(':')) {
            Some((host, _)) if host.contains('/') => return true,
            Some((host, _)) => format!("{host}{}", if host.contains('[') { "]" } else { "" }),
            None => return true,
        },
    };
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let own = hostname.to_ascii_lowercase();
    let after = host.strip_prefix(&own).filter(|_| !own.is_empty());
    let is_own = after.is_some_and(|after| after.is_empty() || after.starts_with(['.', ':']));
    is_own || !reach::may_be_public(&format!("ssh://{authority}/"))
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn a_repository_on_this_machine_is_known_in_every_spelling() {
        for here in [
            "/srv/train.git",
            "train",
            "a/b:c",
            "file:///srv/train.git",
            "FILE:///srv/train.git",
            "https://localhost/train.git",
            "http://127.0.0.1:3000/lab/train",
            "ssh://git@[::1]/srv/train.git",
            "git@localhost:train.git",
            "localhost:/srv/train.git",
            "git@[::1]:train.git",
            "127.1:/srv/train.git",
            "ssh://node7/srv/train.git",
            "me@NODE7.example.org:train.git",
            "https://node7.example.org:8443/train.git",
            "ext::sh -c id",
            "fd::17",
            "git://10.1.2.3/train.git",
        ] {
            assert!(is_here(here, "node7"), "{here}");
        }
        for far in [
            "https://github.com/lab/train.git",
            "git@github.com:lab/train.git",
            "ssh://git@git.example.org:2222/lab/train.git",
            "git@[2606:4700::1111]:lab/train.git",
            "https://node70.example.org/train.git",
            "https://git.example.org/a::b",
        ] {
            assert!(!is_here(far, "node7"), "{far}");
        }
    }
}
