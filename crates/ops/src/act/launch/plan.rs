//! Everything that is known about an attempt before anything is created: what `--dry-run` prints.

use std::ffi::{OsStr, OsString};

use crate::act::checkpoints::across::Haul;
use crate::base::code_dir;
use crate::base::launch_paths::Roots;
use crate::{Ctx, Error};
use tpu_core::model::capacity::BusyGpus;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::execution::Execution;
use tpu_core::model::facts::{ErrorKind, Progress};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, UserName};
use tpu_core::model::job::{
    Checkpoint, Handle, Job, LaunchMode, Status, StoredVerdict, Stretch, Succession,
};
use tpu_core::model::rules::Rules;
use tpu_core::model::spec::{CodeDir, JobSpec};
use tpu_core::model::target::Target;
use tpu_core::model::time::{Timestamp, age};
use tpu_core::text;
use tpu_engine::runner::Environment;

/// So much of a command is said on a line.
const MOST_COLUMNS: usize = 100;

/// A checked attempt.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// Whose job.
    pub user: UserName,
    /// tmux session.
    pub session: String,
    /// What it computes on.
    pub target: Target,
    /// What it is to do.
    pub spec: JobSpec,
    /// The directory of its code.
    pub dir: String,
    /// Rules.
    pub rules: Rules,
    /// Script or native.
    pub mode: LaunchMode,
    /// The command of native mode.
    pub command: Option<Vec<OsString>>,
    /// Its arguments as they are passed and stored: configs with their full names, then words.
    pub args: Vec<String>,
    /// Arguments that follow from the lineage (`--config.load_from=…`); never stored.
    pub lineage_args: Vec<String>,
    /// Number of resumes before it.
    pub stage: u32,
    /// The attempt it succeeds.
    pub parent: Option<Parent>,
    /// Where staged code and logs go; a resume reuses its parent's stage directory.
    pub stage_dir: Option<String>,
    /// Where code is staged and logs are made, for native mode.
    pub roots: Roots,
    /// Busy targets and the like do not count.
    pub force: bool,
    /// Who was on the target by the facts.
    pub occupants: Occupants,
    /// GPUs of the target on which somebody else is at work, with whom.
    pub busy: BusyGpus,
    /// The machine that the target was when it was looked at.
    pub machine: Option<Machine>,
    /// How many jobs of its user may be at work at once, where somebody has set that.
    pub most: Option<u32>,
    /// The place in the queue in which it has waited, and which it gives up when it is claimed.
    pub turn: Option<Turn>,
    /// The entry that it was there, once it is claimed.
    pub entry: Option<QueueEntry>,
    /// From what it goes on; `None` where it begins anew.
    pub from: Option<Checkpoint>,
    /// How many attempts of its lineage were before it.
    pub attempt: u32,
    /// Nodes on which it is not to begin, and until when: those that its lineage was lost with.
    pub avoid: Vec<(String, Timestamp)>,
    /// The id of the run at Weights & Biases with which it goes on.
    pub tracked_run: Option<String>,
    /// What is carried to the region of its target before it begins.
    pub haul: Option<Haul>,
    /// The environment with which it was asked for (a resume takes its parent's).
    pub env: Environment,
    /// The variables of its shell that it has on other machines as well.
    pub forwarded: Vec<String>,
}

/// Whether a target is made usable after the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    /// It must be usable as it is.
    Already,
    /// Whoever checks makes it usable before anything is started.
    Later,
    /// The same, by rules: each lineage from which the target was taken stops what is left of it first.
    LaterByRule,
}

/// A machine: another one of the same name was created at another instant.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// When it was created, by its control plane's clock.
    pub created_at: Timestamp,
    /// When its control plane said so.
    pub seen_at: Timestamp,
}

/// What an attempt takes out of the queue when it is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The entry.
    pub entry: JobId,
    /// The queue in which it waits, whose limit counts what it becomes.
    pub queue: QueueName,
    /// Which member of it, where it is a group of which each is started by itself.
    pub member: Option<u32>,
    /// Whether all that wait of it are started together.
    pub is_whole_group: bool,
    /// Who stood in front of it and found no place.
    pub passes: Vec<JobId>,
    /// Jobs that have failed and are over by the facts: they hold no place under a limit, whatever their records leave
    /// open.
    pub over: Vec<JobId>,
    /// Process id of the tmux server in which its pass over the queue starts jobs, once that is known. If it ends, the rest
    /// is not started in another one.
    pub server: Option<u32>,
}

impl Turn {
    /// Refuses a window in another tmux server than that of its pass.
    pub(super) fn stays_in_server(&self, handle: &Handle) -> Result<(), Error> {
        let Handle::Window { place, .. } = handle else { return Ok(()) };
        if self.server.is_none_or(|server| server == place.server_pid) {
            return Ok(());
        }
        let what = format!("the tmux server on {} ended before {} began", place.socket, self.entry);
        Err(Error::unreachable(what).hint("start what waits: tpu queue run"))
    }
}

/// Who was on a target by the facts when a plan was made: the claim knows records alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupants {
    /// Jobs that are at work there, or of which something is left, whatever their records say.
    pub present: Vec<JobId>,
    /// Jobs whose records claim it, and that are dead.
    pub dead: Vec<JobId>,
}

/// The attempt that a new one succeeds.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Its window.
    pub window: JobNumber,
    /// How the new one relates to it.
    pub how: Succession,
    /// Its stored status when the plan was made; the claim insists on it.
    pub seen: Status,
    /// The failure that the facts show and the record does not know yet.
    pub failed: Option<(ErrorKind, StoredVerdict)>,
    /// How far it came.
    pub reached: Progress,
    /// When it was at work, where its engine may have let it wait.
    pub worked: Option<Vec<Stretch>>,
    /// It need not have failed.
    pub forced: bool,
    /// It is resumed, and there is nothing to resume from: the new one does everything anew.
    pub from_nothing: bool,
    /// What the daemon answers with the new attempt; `None` if a person asked for it, which begins the
    /// counts anew.
    pub reaction: Option<Reaction>,
}

impl Parent {
    /// How it is succeeded, for people and for the journal.
    pub fn in_words(&self) -> &'static str {
        if self.from_nothing { "resumed from nothing" } else { self.how.verb() }
    }
}

/// A failure that a rule answers. It is counted when the attempt is claimed, in the same transaction.
#[derive(Clone, Debug)]
pub struct Reaction {
    /// The failure.
    pub event: ErrorKind,
    /// How far the failed attempt came.
    pub progress: Progress,
    /// The record on which the decision rests: it holds only while the record stands so.
    pub seen: Job,
}

impl LaunchPlan {
    /// Whether a command of ours runs on workers that are not this machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.mode == LaunchMode::Native && !self.target.is_here()
    }

    /// The words after the program: its arguments, then those of the lineage.
    pub(crate) fn config_words(&self) -> Vec<OsString> {
        self.args.iter().chain(&self.lineage_args).map(OsString::from).collect()
    }

    /// The words that the launcher runs: a command, or the arguments of `staging.sh`.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = if let (Some(command), LaunchMode::Native) = (&self.command, self.mode) {
            command.clone()
        } else {
            let mut words = vec![OsString::from(format!("ka={}", self.target.name.of_provider()))];
            words
                .extend(self.target.zone.iter().map(|zone| OsString::from(format!("zone={zone}"))));
            words
        };
        words.extend(self.config_words());
        words
    }

    /// The command and where its code is from, on one line.
    pub(crate) fn in_short(&self, ctx: &Ctx) -> String {
        let command = match self.mode {
            LaunchMode::Native => in_a_shell(&self.words()),
            LaunchMode::Script => format!("staging.sh {}", in_a_shell(&self.config_words())),
        };
        let command = text::escape(&text::cut(command.trim_end(), MOST_COLUMNS)).into_owned();
        let spec = &self.spec;
        let at = |dir: &str| text::escape(&code_dir::shown(ctx, dir)).into_owned();
        let code = match (&spec.execution.workplace, &spec.code, &spec.staged) {
            (Some(there), _, _) => format!("in {}, without a copy", at(there)),
            (None, Some(code), _) => format!("code of {}", at(&code.begins_in())),
            (None, None, Some(staged)) if staged.is_clone() => "code of a clone".to_owned(),
            (None, None, _) => format!("code of {}", at(&self.dir)),
        };
        format!("{command} ({code})")
    }

    /// The whole plan, for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        text += &line("user", self.user.as_str());
        text += &line("target", self.target.name.as_str());
        if let Some(zone) = &self.target.zone {
            text += &line("zone", zone);
        }
        if let Some(array) = &self.spec.array {
            text += &line("members", &array.to_string());
        }
        let begins_in = self.spec.code.as_ref().map(CodeDir::begins_in);
        text += &line("directory", begins_in.as_ref().unwrap_or(&self.dir));
        let words = self.words();
        let command = shown(&words);
        text += &match self.mode {
            LaunchMode::Script => line("runs", &format!("source staging.sh {command}")),
            LaunchMode::Native => line("runs", &command),
        };
        text += &carried_out(&self.spec.execution);
        if self.mode == LaunchMode::Native {
            text += &match (&self.stage_dir, &self.spec.execution.workplace) {
                (_, Some(_)) => line("code", "what lies there: nothing is copied"),
                (Some(dir), None) => line("code", &format!("{dir} (of the parent)")),
                (None, None) => line("code", &format!("copied below {}", self.roots.stage)),
            };
            text += &line("logs", &format!("below {}", self.roots.log));
        }
        text += &line("rules", &self.rules.to_string());
        if let Some(tag) = &self.spec.tag {
            text += &line("tag", tag);
        }
        if let Some(parent) = &self.parent {
            text += &line("parent", &format!("{} ({})", parent.window, parent.in_words()));
        }
        for (node, until) in &self.avoid {
            text += &line("avoids", &format!("{node} until {}", until.to_rfc3339()));
        }
        if !self.spec.monitor {
            text += &line("monitor", "observes only");
        }
        text
    }
}

/// What a file says of a job that has no target yet, for people: its command, and how that is carried out.
pub fn of_file(spec: &JobSpec) -> String {
    let mut text = String::new();
    if let Some(command) = &spec.command {
        // Shell text, as it was written.
        let shell = match command.as_slice() {
            [bash, c, text, again] if bash == "bash" && c == "-c" && again == "bash" => {
                text.to_str().filter(|text| !text.trim_end().contains('\n'))
            }
            _ => None,
        };
        text += &line(
            "runs",
            &shell.map_or_else(|| shown(command), |shell| shell.trim_end().to_owned()),
        );
    }
    if let Some(there) = &spec.execution.workplace {
        text += &line("directory", &format!("{there} (nothing is copied)"));
    }
    text += &carried_out(&spec.execution);
    for (name, said) in [("rules", &spec.rules), ("tag", &spec.tag)] {
        text += &said.as_ref().map(|said| line(name, said)).unwrap_or_default();
    }
    text
}

fn carried_out(execution: &Execution) -> String {
    let mut text = String::new();
    for (name, value) in &execution.variables {
        text += &line("variable", &format!("{name}={value}").escape_debug().to_string());
    }
    if !execution.secrets.is_empty() {
        text += &line("secrets", &execution.secrets.join(", "));
    }
    for module in &execution.setup {
        text += &line("sets up", &module.to_string());
    }
    if let Some(output) = &execution.output {
        text += &line("output", &format!("also added to {}", output.replacen("/./", "/", 1)));
    }
    if let Some(workers) = &execution.workers {
        let all: Vec<String> = workers.iter().map(u32::to_string).collect();
        text += &line("workers", &all.join(", "));
    }
    for (name, limit) in [("time", execution.timeout_s), ("silence", execution.idle_timeout_s)] {
        if let Some(limit) = limit {
            text += &line(name, &format!("at most {}", age(limit)));
        }
    }
    if let Some(repeat) = &execution.repeat {
        text += &line("repeats", &repeat.to_string());
    }
    if let Some(retry) = &execution.retry {
        text += &line("again", &retry.to_string());
    }
    text
}

fn line(name: &str, value: &str) -> String {
    format!("{name:<10} {value}\n")
}

/// Words as one line that a shell would read back.
pub fn shown(words: &[OsString]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// The same of shell text as its author wrote it.
fn in_a_shell(words: &[OsString]) -> String {
    match words {
        [shell, how, text] | [shell, how, text, _] if shell == "bash" && how == "-c" => {
            text.to_string_lossy().into_owned()
        }
        _ => {
            let words: Vec<String> =
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            quoted(&words)
        }
    }
}

/// Config arguments as the one string of the record; plain ones look as the original wrote them.
pub(crate) fn quoted(configs: &[String]) -> String {
    let is_plain = |arg: &str| {
        !arg.is_empty()
            && arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/=+@%".contains(c))
    };
    let quoted = configs.iter().map(|arg| {
        if is_plain(arg) {
            return arg.clone();
        }
        shlex::try_quote(arg).map_or_else(|_| arg.clone(), std::borrow::Cow::into_owned)
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), std::borrow::Cow::into_owned)
}
