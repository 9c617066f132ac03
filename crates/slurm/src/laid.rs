//! What lies ready for the script of a job in its log directory, for its owner's eyes alone: its secrets, which the script
//! takes away as it reads them, and what is set up on its nodes.

use std::path::{Path, PathBuf};

use tpu_core::model::job::Job;
use tpu_core::model::setup::SetUpHow;
use tpu_engine::runner::environment::pairs;
use tpu_engine::runner::{Attempt, RunError};

use super::ask;
use super::client::ProgramCall;
use super::controller::Controller;

/// Writes what it reads into the first of some files, for nobody else to read, and copies it to the others.
const LAY: &str = "umask 077; first=$1; shift; cat >\"$first\" || exit; for other; do cp -- \"$first\" \"$other\" || exit; done";

/// Copies a directory to the names that it reads, each ending in NUL.
const COPY: &str =
    "umask 077; while IFS= read -r -d '' other; do cp -rp -- \"$1\" \"$other\" || exit; done";

/// What a set-up needs, in the log directory.
pub(super) const SET_UP: &str = ".set-up";

/// Lines of a batch script that give its command what lies ready; once, for whoever is started again finds nothing.
pub(super) const READ: &str = r#"if ! [ -r "$TPU_LOG_DIR/.secrets" ]; then
    echo "tpu: its secrets have been read by an earlier start; a new attempt brings them along" >&2
    exit 126
fi
while IFS= read -r -d '' pair; do export "$pair"; done <"$TPU_LOG_DIR/.secrets"
rm -f -- "$TPU_LOG_DIR/.secrets"
"#;

/// The line that takes it away before a script ends that never began.
pub(super) const UNREAD: &str = "rm -f -- \"$TPU_LOG_DIR/.secrets\"";

/// Whether there are secrets for a job.
fn has_secrets(job: &Job) -> bool {
    job.execution().is_some_and(|execution| !execution.secrets.is_empty())
}

/// Whether something is set up for a job.
pub(super) fn sets_up(job: &Job) -> bool {
    let is_done = |how| how != SetUpHow::Skip;
    job.execution()
        .is_some_and(|execution| !execution.setup.is_empty() && is_done(execution.setup_how))
}

/// Where something lies for each job that has it.
fn places<'j>(
    jobs: impl Iterator<Item = &'j Job>,
    (has_it, name): (fn(&Job) -> bool, &str),
) -> Vec<String> {
    let dirs = jobs.filter(|job| has_it(job)).filter_map(|job| job.log_dir.as_ref());
    dirs.map(|dir| format!("{dir}/{name}")).collect()
}

/// Lays ready what attempts need, which are members of one group or one alone.
pub(super) fn lay(controller: &Controller<'_>, attempts: &[Attempt<'_>]) -> Result<(), RunError> {
    lay_secrets(controller, attempts)?;
    lay_set_up(controller, attempts)
}

fn lay_secrets(controller: &Controller<'_>, attempts: &[Attempt<'_>]) -> Result<(), RunError> {
    let jobs = attempts.iter().map(|attempt| attempt.job);
    let (files, Some(first)) = (places(jobs, (has_secrets, ".secrets")), attempts.first()) else {
        return Ok(());
    };
    if files.is_empty() {
        return Ok(());
    }
    let call = ProgramCall {
        stdin: pairs(&first.secrets.0),
        ..ProgramCall::new("bash", ask::PATIENCE).args(["-c", LAY, "lay"]).args(files)
    };
    carry(controller, &call, "its secrets")
}

/// Each of them gets a copy of its own, which its script may take away.
fn lay_set_up(controller: &Controller<'_>, attempts: &[Attempt<'_>]) -> Result<(), RunError> {
    let jobs = attempts.iter().map(|attempt| attempt.job);
    let places = places(jobs, (sets_up, SET_UP));
    let preparation = attempts.first().and_then(|first| first.preparation.as_ref());
    let (Some((first, others)), Some(preparation)) = (places.split_first(), preparation) else {
        return Ok(());
    };
    let failed = |e: &std::io::Error| unlaid("what it sets up", &e.to_string());
    let names = |dir: &Path| -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(dir)?;
        entries.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
    };
    let what = names(&preparation.dir).map_err(|e| failed(&e))?;
    let disk = controller.client.disk();
    disk.put(&preparation.dir, &what, Path::new(first), &mut |_| {}).map_err(|e| failed(&e))?;
    if others.is_empty() {
        return Ok(());
    }
    let call = ProgramCall {
        // Of thousands the names would be too long for one word on the way to a login node.
        stdin: others.iter().flat_map(|other| [other.as_bytes(), b"\0"].concat()).collect(),
        ..ProgramCall::new("bash", ask::PATIENCE).args(["-c", COPY, "lay", first])
    };
    carry(controller, &call, "what it sets up")
}

fn carry(controller: &Controller<'_>, call: &ProgramCall, what: &str) -> Result<(), RunError> {
    match controller.client.run(call) {
        Ok(answer) if answer.code == 0 => Ok(()),
        Ok(answer) => Err(unlaid(what, &answer.stderr)),
        Err(silence) => Err(controller.silent(&silence.to_string())),
    }
}

fn unlaid(what: &str, why: &str) -> RunError {
    RunError::state(
        format!("{what} cannot be laid ready: {why}"),
        "this account must be able to write into its log directory; nothing was started",
    )
}

/// Takes away what nobody is going to read. Who cannot be reached has it for its owner's eyes alone.
pub(super) fn discard<'j>(
    controller: &Controller<'_>,
    jobs: impl Iterator<Item = &'j Job> + Clone,
) {
    let mut left = places(jobs.clone(), (has_secrets, ".secrets"));
    left.extend(places(jobs, (sets_up, SET_UP)));
    if !left.is_empty() {
        let call = ProgramCall {
            stdin: left.join("\0").into_bytes(),
            ..ProgramCall::new("xargs", ask::PATIENCE).args(["-0", "rm", "-rf", "--"])
        };
        drop(controller.client.run(&call));
    }
}
