//! Jobs of a jobset and of a queue, whole and checked: what a queue is given, whoever keeps one.

use super::fields::{Fields, ReadField};
use crate::BadFile;
use tpu_core::model::words::words;

/// A job as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedJob {
    /// What it is called.
    pub name: String,
    /// The line on which it stands.
    pub line: u64,
    /// What it runs, as a shell reads it; `None` where the file says nothing.
    pub command: Option<String>,
    /// The shell that reads it.
    pub shell: Option<String>,
    /// Where it is to run: a name or an address.
    pub host: Option<String>,
    /// The account there.
    pub user: Option<String>,
    /// The directory in which it runs.
    pub directory: Option<String>,
    /// Where its input is.
    pub input: Option<String>,
    /// Where its output goes.
    pub output: Option<String>,
    /// Where it writes down its states.
    pub log: Option<String>,
    /// The GPUs that it wants, by index.
    pub gpus: Vec<u32>,
    /// The file that puts it into a Python environment.
    pub pyenv: Option<String>,
    /// What its state means here.
    pub state: ImportedState,
    /// Every field, and what becomes of it.
    pub fields: Vec<ReadField>,
}

/// What the state of a job means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedState {
    /// It waits until somebody lets it begin.
    Held,
    /// The same, and nobody has said where.
    HeldWithoutTarget,
    /// It has ended well, as far as was known.
    Finished,
    /// Somebody ended it.
    Killed,
    /// It did not begin.
    FailedToLaunch,
    /// Its machine or its process was gone.
    Lost,
    /// It failed, and nothing says why.
    Failed,
    /// Its time was over.
    TimedOut,
    /// It may be at work: it is never started again by itself.
    LookedFor,
}

words! {
    /// What it becomes, for people.
    ImportedState {
        Held: "held",
        HeldWithoutTarget: "held, without a target",
        Finished: "finished",
        Killed: "killed",
        FailedToLaunch: "error: launch",
        Lost: "error: lost",
        Failed: "error: unknown",
        TimedOut: "error: timeout",
        LookedFor: "left alone: it may be at work, and is never started again",
    }
}

impl ImportedState {
    /// The states that Cloudmesh writes, and what each means here.
    pub const OF_CLOUDMESH: [(&'static str, Self); 13] = [
        ("ready", Self::Held),
        ("undefined", Self::HeldWithoutTarget),
        ("end", Self::Finished),
        ("done", Self::Finished),
        ("kill", Self::Killed),
        ("killed", Self::Killed),
        ("fail_start", Self::FailedToLaunch),
        ("crash", Self::Lost),
        ("failed", Self::Failed),
        ("timeout", Self::TimedOut),
        ("submitted", Self::LookedFor),
        ("run", Self::LookedFor),
        ("start", Self::LookedFor),
    ];

    /// What a word means. Any other word was written by somebody's own script of a job that may be at work.
    pub fn of(word: Option<&str>, has_host: bool) -> Self {
        let known = Self::OF_CLOUDMESH.iter().find(|(known, _)| Some(*known) == word);
        match (known, word) {
            (Some((_, Self::Held)), _) | (None, None) if !has_host => Self::HeldWithoutTarget,
            (Some((_, state)), _) => *state,
            (None, None) => Self::Held,
            (None, Some(_)) => Self::LookedFor,
        }
    }
}

/// What Cloudmesh works out anew whenever it needs it.
const DERIVED: [&str; 6] =
    ["id", "experiment", "shell_path", "scriptname", "remote_command", "nohup_command"];

/// A job, below its name.
pub(super) fn read(key: &str, mut fields: Fields<'_>) -> Result<ImportedJob, BadFile> {
    let said = fields.text("name", "its name")?;
    if let Some(other) = said.filter(|said| said != key && said != "TBD") {
        let what = format!("'{other}' stands below {key}");
        return Err(fields.bad("name", what, "give both the same name"));
    }
    let command = read_command(&mut fields)?;
    let host = fields.text("host", "its target")?;
    let host = host.or(fields.text("ip", "its target; another with room if it has none")?);
    let word = fields.text("status", "")?;
    let state = ImportedState::of(word.as_deref(), host.is_some());
    if word.is_some() {
        fields.becomes("status", state.as_str());
    }
    let gpus = read_gpus(&mut fields)?;
    fields.text("submitted_to_ip", "nothing: it says where it was once")?;
    fields.text("pid", "nothing: tpu starts it anew or not at all")?;
    fields.text("last_probe_check", "nothing: tpu asks the machine itself")?;
    for field in DERIVED {
        fields.text(field, "nothing: tpu makes its own")?;
    }
    Ok(ImportedJob {
        name: key.to_owned(),
        line: fields.entry_line(),
        command,
        shell: fields.text("shell", "the shell that reads the command")?,
        host,
        user: fields.text("user", "the account there")?,
        directory: fields.text("directory", "the directory in which it runs")?,
        input: fields.text("input", "nothing, as there: its program knows where its input is")?,
        output: fields.text("output", "where a copy of its output is kept")?,
        log: fields.text("log", "nothing: every job has a log here")?,
        gpus,
        pyenv: fields.text("pyenv", "sourced before the command")?,
        state,
        fields: fields.rest(),
    })
}

/// `command`, or `executable` with `arguments`.
fn read_command(fields: &mut Fields<'_>) -> Result<Option<String>, BadFile> {
    let command = fields.text("command", "the command")?;
    let executable = fields.text("executable", "the command")?;
    let arguments = fields.text("arguments", "behind the command")?;
    if let Some(command) = command {
        for field in ["executable", "arguments"] {
            fields.becomes(field, "nothing: `command` says what it runs");
        }
        return Ok(Some(command));
    }
    Ok(executable.map(|program| match arguments {
        Some(arguments) => format!("{program} {arguments}"),
        None => program,
    }))
}

fn read_gpus(fields: &mut Fields<'_>) -> Result<Vec<u32>, BadFile> {
    let Some(text) = fields.text("gpu", "the GPUs that it wants, by index")? else {
        return Ok(Vec::new());
    };
    let listed: Option<Vec<u32>> = text.split(',').map(|index| index.trim().parse().ok()).collect();
    if listed.is_none() {
        fields.becomes("gpu", "nothing: GPUs are named by index, as in 0,2");
    }
    Ok(listed.unwrap_or_default())
}
