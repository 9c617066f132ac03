//! The secrets of jobs on their way to a node: a file of its owner's alone in the log directory of each, which the
//! script of the job takes away as it reads it.

use crate::model::job::Job;
use crate::runner::environment::pairs;
use crate::runner::{Attempt, RunError};

use super::ask;
use super::client::ProgramCall;
use super::controller::Controller;

/// Writes what it reads into the first of some files, for nobody else to read, and copies it to the others.
const LAY: &str = "umask 077; first=$1; shift; cat >\"$first\" || exit; for other; do cp -- \"$first\" \"$other\" || exit; done";

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

/// Where the file of each job lies, as far as it has secrets.
fn files<'j>(jobs: impl Iterator<Item = &'j Job>) -> Vec<String> {
    let has_some =
        |job: &&Job| job.execution().is_some_and(|execution| !execution.secrets.is_empty());
    let dirs = jobs.filter(has_some).filter_map(|job| job.log_dir.as_ref());
    dirs.map(|dir| format!("{dir}/.secrets")).collect()
}

/// Lays the secrets of attempts ready, which are members of one group or one alone.
pub(super) fn lay(controller: &Controller<'_>, attempts: &[Attempt<'_>]) -> Result<(), RunError> {
    let jobs = attempts.iter().map(|attempt| attempt.job);
    let (files, Some(first)) = (files(jobs), attempts.first()) else { return Ok(()) };
    if files.is_empty() {
        return Ok(());
    }
    let call = ProgramCall {
        stdin: pairs(&first.secrets.0),
        ..ProgramCall::new("bash", ask::PATIENCE).args(["-c", LAY, "lay"]).args(files)
    };
    match controller.client.run(&call) {
        Ok(answer) if answer.code == 0 => Ok(()),
        Ok(answer) => Err(RunError::state(
            format!("its secrets cannot be laid ready: {}", answer.stderr),
            "this account must be able to write into its log directory; nothing was started",
        )),
        Err(silence) => Err(controller.silent(&silence.to_string())),
    }
}

/// Takes away what nobody is going to read. Who cannot be reached has it for its owner's eyes alone.
pub(super) fn discard<'j>(controller: &Controller<'_>, jobs: impl Iterator<Item = &'j Job>) {
    let files = files(jobs);
    if !files.is_empty() {
        let call = ProgramCall {
            // Of thousands the names would be too long for one word on the way to a login node.
            stdin: files.join("\0").into_bytes(),
            ..ProgramCall::new("xargs", ask::PATIENCE).args(["-0", "rm", "-f", "--"])
        };
        drop(controller.client.run(&call));
    }
}
