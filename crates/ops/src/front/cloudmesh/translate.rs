//! Makes of a job of Cloudmesh what it is here: a specification like any other, for the host that it names.
//!
//! There it ran in a directory below the home of an account, in a shell of its own, and what it printed was to be kept
//! in a place that it names. So the command here goes to that directory, reads the environment, and keeps a second copy
//! of what is printed; the first is the log that every job has.

use std::ffi::OsString;

use tpu_core::model::capacity::{Ask, GpuAsk};
use tpu_core::model::data::Data;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::target::Target;
use tpu_jobfile::cloudmesh::ImportedJob;

/// The cluster of whoever names none, and so the pool of jobs that name no host.
pub(crate) const USUAL_CLUSTER: &str = "default";

/// The words by which Cloudmesh names the machine that it runs on.
const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

/// Goes where the job is to run, and runs it in its shell: DIR, SHELL, COMMAND, ENVIRONMENT, OUTPUT.
const PLAIN: &str =
    r#"cd && if [ -n "$4" ]; then . "$4" || exit; fi; cd -- "$1" && exec "$2" -c "$3""#;

/// The same with a copy of what it prints. The exit code is that of the job.
const KEPT: &str = r#"cd && if [ -n "$4" ]; then . "$4" || exit; fi; mkdir -p -- "$1" && cd -- "$1" && mkdir -p -- "$(dirname -- "$5")" && set -o pipefail && "$2" -c "$3" 2>&1 | tee -a -- "$5""#;

/// A job as it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// What it is to do.
    pub spec: JobSpec,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// What a job of Cloudmesh is here; nothing where it runs nothing. `among` are the hosts that its scheduler chooses
/// from, where it names none itself.
pub fn translate(data: &Data, job: &ImportedJob, among: &[String]) -> Option<Translated> {
    let command = job.command.as_deref()?;
    let mut notes = Vec::new();
    let place = job.host.as_deref().map(|host| host.rsplit_once('@').map_or(host, |(_, at)| at));
    let known = place.and_then(|host| known(data, host));
    let target = match (place, &known) {
        (Some(_), Some(target)) => TargetRequest::Named(target.name.as_str().to_owned()),
        (Some(host), None) => {
            notes.push(format!(
                "{host} is not a registered host, so it cannot begin yet: \
                 tpu cms job hosts add --hostname={host} --ip={host}"
            ));
            TargetRequest::Named(host.to_owned())
        }
        (None, _) => {
            let usual = || vec![USUAL_CLUSTER.to_owned()];
            let among = if among.is_empty() { usual() } else { among.to_vec() };
            TargetRequest::Any(AnyOf { among, ..AnyOf::default() })
        }
    };
    let account = known.as_ref().and_then(|target| data.registration(&target.name));
    if let (Some(user), Some(known)) = (&job.user, account)
        && known.ssh_user.as_ref().is_some_and(|here| here != user)
    {
        let here = known.ssh_user.as_deref().unwrap_or_default();
        notes.push(format!("it runs there as {here}, and not as {user}"));
    }
    let counts_gpus = known.as_ref().is_some_and(|target| target.capacity.gpus.is_some());
    let gpus = if counts_gpus && !job.gpus.is_empty() {
        GpuAsk::These(job.gpus.clone())
    } else {
        Ask::default().gpus
    };
    let spec = JobSpec {
        name: Some(job.name.clone()),
        command: Some(words(job, command, counts_gpus)),
        ask: Ask { gpus, ..Ask::default() },
        ..JobSpec::on(target)
    };
    Some(Translated { spec, notes })
}

/// Whether somebody has said where a job is to run.
pub(crate) fn has_place(spec: &JobSpec) -> bool {
    !matches!(&spec.target, TargetRequest::Any(any_of) if any_of.among == [USUAL_CLUSTER])
}

/// The target that Cloudmesh means by a name or an address.
pub fn known(data: &Data, host: &str) -> Option<Target> {
    let by_address = || {
        let all = data.registry().registrations();
        let at = |address: &String| address == host || address.split(':').next() == Some(host);
        let mut here = all.filter(|(_, known)| known.addresses.iter().any(at));
        here.next().and_then(|(name, _)| data.target(name))
    };
    let local = || HERE.contains(&host).then(Target::local);
    data.resolve_target(host).or_else(by_address).or_else(local)
}

/// The command word by word: nothing of the file is read by a shell that is not its own.
fn words(job: &ImportedJob, command: &str, counts_gpus: bool) -> Vec<OsString> {
    let below = |path: &str| path.strip_prefix("~/").unwrap_or(path).to_owned();
    let dir = job.directory.as_deref().map_or_else(|| ".".to_owned(), below);
    // A queue names a file for the output, a jobset a directory.
    let is_of_queue = job.fields.iter().any(|field| field.name == "command");
    let output = job
        .output
        .as_deref()
        .map(below)
        .map(|output| if is_of_queue { output } else { format!("{output}/{}.log", job.name) });
    let mut words: Vec<String> = Vec::new();
    if !counts_gpus && !job.gpus.is_empty() {
        let list = tpu_core::model::capacity::list(&job.gpus);
        words.extend(["env".to_owned(), format!("CUDA_VISIBLE_DEVICES={list}")]);
    }
    let script = if output.is_some() { KEPT } else { PLAIN };
    words.extend(["bash", "-c", script, &job.name].map(str::to_owned));
    words.push(dir);
    words.push(job.shell.clone().unwrap_or_else(|| "bash".to_owned()));
    words.push(command.to_owned());
    words.push(job.pyenv.as_deref().map(below).unwrap_or_default());
    words.extend(output);
    words.into_iter().map(OsString::from).collect()
}

/// How a specification is other than another one of the same name, in the words of whoever wrote the second down.
pub fn differences(here: &JobSpec, there: &JobSpec) -> Vec<String> {
    let place = |target: &TargetRequest| match target {
        TargetRequest::Named(name) => name.clone(),
        TargetRequest::Any(any_of) => any_of.in_words(),
    };
    let command = |spec: &JobSpec| {
        let words = spec.command.iter().flatten();
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let at = words.iter().position(|word| [PLAIN, KEPT].contains(&word.as_str()));
        let of = |behind: usize| at.and_then(|at| words.get(at + behind)).cloned();
        let devices = words.iter().find(|word| word.starts_with("CUDA_VISIBLE_DEVICES=")).cloned();
        [of(4), of(2), of(3), of(5), of(6), devices]
    };
    let names = ["command", "directory", "shell", "pyenv", "output", "gpu"];
    let mut all = Vec::new();
    let (target, other) = (place(&here.target), place(&there.target));
    if target != other {
        all.push(format!("ip: {target} here, {other} in the file"));
    }
    if here.ask != there.ask {
        all.push("gpu".to_owned());
    }
    let (ours, theirs) = (command(here), command(there));
    for (name, (here, there)) in names.iter().zip(ours.into_iter().zip(theirs)) {
        let shown = |value: Option<String>| value.filter(|value| !value.is_empty());
        if here != there {
            let of = |value| shown(value).unwrap_or_else(|| "nothing".to_owned());
            all.push(format!("{name}: {} here, {} in the file", of(here), of(there)));
        }
    }
    all
}
