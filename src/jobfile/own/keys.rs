//! The keys of a job, and what becomes of each.

/// Whether a key is carried out today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is.
    Built,
    /// It is refused, with what to do instead.
    Later(&'static str),
}

/// A key of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobKey {
    /// As it is written.
    pub name: &'static str,
    /// Whether it is carried out.
    pub state: KeyState,
    /// What it says, in a sentence.
    pub meaning: &'static str,
}

const fn built(name: &'static str, meaning: &'static str) -> JobKey {
    JobKey { name, state: KeyState::Built, meaning }
}

const fn later(name: &'static str, meaning: &'static str, instead: &'static str) -> JobKey {
    JobKey { name, state: KeyState::Later(instead), meaning }
}

const IN_COMMAND: &str = "leave it away, and do it in the command";

/// All keys, in the order in which they are described.
pub const KEYS: &[JobKey] = &[
    built("name", "The name by which it is called; the key of `jobs:` is one too."),
    built(
        "target",
        "A target, type, pool or pattern of names, a list of them, `{hosts: …}`, or `{KIND: NAME}` \
         with the options of that kind.",
    ),
    built("dir", "The slot of the directory of its code; 1 without a word."),
    built("code", "`.`: the directory of the file, which has to be in a slot of yours."),
    built("command", "A string is shell text, a list is words."),
    built("script", "A script that bash runs, instead of a command."),
    built("shell", "Of a command that is one string: bash."),
    built("configs", "Names and values that the program is given as --NAME=VALUE."),
    built(
        "array",
        "Members as in 0-99%8, or names with their values: one job for each combination.",
    ),
    built("zip", "true: the first values of the array together, then the second ones, and so on."),
    built("max_parallel", "So many members of the array at once."),
    built("env", "Variables of the command: names and their values."),
    built("tag", "A tag."),
    built("notes", "Notes."),
    built("rules", "What is done after which failure: `{preempted: resume}`, or a name of rules."),
    built("gpus", "A number of GPUs."),
    built("gpu", "The numbers of GPUs, as in 0,2."),
    built("cpus", "A number of CPUs."),
    built("mem", "An amount of memory, as in 32G."),
    built("policy", "Which of several machines is taken: sequential, random, smart, frugal."),
    built("queue", "The queue in which it waits."),
    built("priority", "0 to 100; higher ones come first; 50 without a word."),
    built("hold", "true: it does not begin before `tpu unhold`."),
    built("after", "Jobs that have to finish well before, also jobs above it in the same file."),
    built("after_any", "Jobs that have to end before, however they end."),
    built("after_not", "Jobs that have to fail before."),
    built("after_each", "A group: each member waits for the member of its number."),
    later("tpu", "What a TPU request adds.", "make the target first: tpu apply"),
    later("setup", "What is set up before the command runs.", IN_COMMAND),
    later("secrets", "Secrets, by their names.", "let the program read its key from a file"),
    later("stdin", "A file that the command reads.", "command: program < FILE"),
    later("output", "A second place for what it prints.", "command: program | tee FILE"),
    later("user", "A login on the machine.", "say it of the target: tpu hosts set NAME"),
    later(
        "repeat",
        "Whether it begins again when it ends.",
        "leave it away; rules: begin it again",
    ),
    later("workers", "On which workers the command runs.", "leave it away: all of them"),
    later("retry", "How often it begins again after which failures.", "rules: {preempted: resume}"),
    later("timeout", "How long it may run.", "command: timeout 24h program"),
    later("idle_timeout", "How long it may print nothing.", "leave it away"),
    later("keep", "How long what it leaves behind is kept.", "leave it away"),
    later(
        "notify",
        "Who is told of what.",
        "leave it away; settings of callbacks tell of all jobs",
    ),
];

/// The key of that name.
pub fn key(name: &str) -> Option<&'static JobKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// Those that are carried out.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(|key| key.state == KeyState::Built).map(|key| key.name)
}
