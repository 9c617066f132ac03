//! What a window runs, as text that a person can read and a shell would take.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::runner::command::parted;
use crate::runner::environment::Variables;
use crate::runner::{Attempt, environment};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::variables::of_ours;
use tpu_system::effects::Effects;

use super::{beside, launcher};

/// What a launcher runs.
struct Script<'a> {
    id: JobId,
    target: &'a str,
    mode: LaunchMode,
    dir: OsString,
    words: Vec<OsString>,
    env: Variables,
    is_on_workers: bool,
}

/// What would be run.
pub(super) fn of_attempt(effects: &Effects, attempt: &Attempt<'_>) -> Option<String> {
    let (job, launch) = (attempt.job, attempt.job.launch.as_ref()?);
    let link = effects.store.paths().job(&job.id()).join("bin").join("tpu");
    let script = Script {
        id: job.id(),
        target: job.tpu.as_str(),
        mode: launch.mode,
        dir: launcher::workplace(job, launch).into(),
        words: bare(attempt.words.clone()),
        env: launcher::environment(effects, attempt, launch, &link),
        is_on_workers: attempt.workers_by.is_some(),
    };
    Some(script.text())
}

/// What was run, as it lies beside the launcher. `None` if nothing of this launch is there any more.
pub(super) fn of_run(effects: &Effects, job: &Job) -> Option<String> {
    let (id, launch) = (job.id(), job.launch.as_ref()?);
    if !beside::is_of_launch(effects, &id, launch.token.as_str()) {
        return None;
    }
    let work = beside::words_in(effects, &id, beside::WORK);
    let attends = beside::words_in(effects, &id, "argv");
    let is_on_workers = beside::attends_workers(effects, &id);
    let script = Script {
        target: job.tpu.as_str(),
        mode: launch.mode,
        dir: launcher::workplace(job, launch).into(),
        words: bare(if work.is_empty() { attends } else { work }),
        env: environment::kept(effects, &id).unwrap_or_default(),
        is_on_workers,
        id,
    };
    Some(script.text())
}

/// A command without what runs it as its job wants it.
fn bare(words: Vec<OsString>) -> Vec<OsString> {
    let (_, command) = parted(words);
    command
}

impl Script<'_> {
    /// Of the environment only what is ours is shown: the rest is the user's, and may hold secrets.
    fn text(&self) -> String {
        let Self { id, target, .. } = self;
        let on = if self.is_on_workers { "each worker of " } else { "" };
        let mut text = format!("#!/bin/bash\n# {id} on {on}{target}\n");
        for (name, value) in &self.env {
            if name.to_str().and_then(of_ours).is_some() {
                text += &format!("export {}={}\n", name.display(), quoted(value));
            }
        }
        text += &format!("cd {}\n", quoted(&self.dir));
        if self.mode == LaunchMode::Script {
            text += "source staging.sh ";
        }
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        text + &words.join(" ") + "\n"
    }
}

/// A word as a shell reads it back; one that is no UTF-8 as bash writes such words.
fn quoted(word: &OsStr) -> String {
    if let Some(quoted) = word.to_str().and_then(|text| shlex::try_quote(text).ok()) {
        return quoted.into_owned();
    }
    let bytes = word.as_bytes().iter().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    });
    format!("$'{}'", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_as_they_were() {
        assert_eq!(quoted(OsStr::new("lr=0.1")), "'lr=0.1'");
        assert_eq!(quoted(OsStr::new("./train")), "./train");
        assert_eq!(quoted(OsStr::new("two words")), "'two words'");
        assert_eq!(quoted(OsStr::from_bytes(b"a\xff'b")), r"$'a\xff\'b'");
    }
}
