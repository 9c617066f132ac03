//! The keys of a job: the reader, the writer, the JSON Schema and the page for people come from this table.

use serde_json::Value;

use tpu_core::model::entry::AfterWhich;

use super::schema;
use super::shape::{
    ARGUMENTS, CHECKPOINT_DIR, CONFIGS, ENV, Form, JointKey, NAME, NOTES, NOTIFY, OUTPUT, OUTPUTS,
    POLICY, PRIORITY, PlainKey, QUEUE, REPEAT, RESUME_ARGS, RULES, SECONDS, SECRETS, SETUP, TAG,
    TRUTH, WORKERS,
};
use super::written;

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
    /// Lines of a job that say it, with what it needs beside it; empty where it is not carried out.
    pub example: &'static str,
    /// How it is read, written and described to editors.
    pub(super) form: &'static dyn Form,
}

const fn built(
    name: &'static str,
    meaning: &'static str,
    example: &'static str,
    form: &'static dyn Form,
) -> JobKey {
    JobKey { name, state: KeyState::Built, meaning, example, form }
}

const fn later(name: &'static str, meaning: &'static str, instead: &'static str) -> JobKey {
    let form = &JointKey(|_| None, |_| Value::Null);
    JobKey { name, state: KeyState::Later(instead), meaning, example: "", form }
}

/// All keys, in the order in which they are described.
pub static KEYS: &[JobKey] = &[
    built(
        "name",
        "The name by which it is called; the key of `jobs:` is one too.",
        "name: llama-{{tag}}\ntag: small",
        &PlainKey(NAME, |job| &mut job.name),
    ),
    built(
        "target",
        "A target, type, pool or pattern of names, a list of them, `{hosts: …}`, `{type, zone, pricing}` for any that is \
         there of a type, or `{KIND: NAME}` with the options of that kind, as `{kubernetes: lab, image, flavor, volumes, nodes}`; or `{accelerator, zone, pricing, version, mode, prefer}`: a TPU that \
         is made for it and asked for until there is capacity, `mode: queued-resources` by a queued resource. Several \
         types and zones are tried as they are written, or `prefer: cheapest` by the setting `prices`, `prefer: fastest` \
         by how long jobs have waited for each.",
        "target: {slurm: gpu, nodes: 2, gpus: 4}",
        &JointKey(|job| Some(written::target(job)), schema::target),
    ),
    built(
        "tpu",
        "Of a TPU that is made: its `name`, its `number` (or `auto`: the first that nobody has), `tags`, `metadata`, \
         `startup_script`, `network`, `flags`, and `delete_after: done`: the daemon deletes it \
         when the job is over and no rule brings it back, as soon as nobody else uses it; one that was there before stays.",
        "target: {accelerator: [v6e-16, v5p-8], zone: us-east5-b, pricing: spot}\ntpu: {name: my-tpu, number: auto, tags: [a]}",
        &JointKey(written::tpu, |_| schema::tpu()),
    ),
    built(
        "user",
        "The account on a TPU that is made.",
        "target: {accelerator: v6e-8, zone: us-east5-b}\ntpu: {name: my-tpu}\nuser: alice",
        &JointKey(written::user, |_| schema::text()),
    ),
    built(
        "dir",
        "The directory of its code: a slot, or a path. Without a word it is the directory in which the file is submitted; \
         of a file without `command`, slot 1. With `code: none` it is the directory of the machine in which the job runs.",
        "dir: ~/exp",
        &JointKey(written::dir, |_| schema::dir()),
    ),
    built(
        "code",
        "`.`: the directory of the file; `{repo, branch}`: what git clones of it as the job is submitted; `{ignored: link}`: \
         the copy gets links to what git ignores, if the job runs on this disk; with `{ignored: leave}`, the default, it has nothing of that; \
         `in-place`: it runs where its code lies, without a copy; or `none`: nothing is copied, and it runs in a directory \
         that its machines have.",
        "code: {ignored: link}\ndir: ~/exp\ncommand: ./train.sh",
        &JointKey(written::code, |_| schema::code()),
    ),
    built(
        "outputs",
        "Directories for what it writes. Each is made beside the code if it is missing, and the copy has a link to it. The \
         default is the setting `outputs`.",
        "outputs: [runs, wandb]",
        &PlainKey(OUTPUTS, |job| &mut job.execution.outputs),
    ),
    built(
        "command",
        "A string is shell text, a list is words.",
        "command: python3 train.py --lr {{lr}}\narray: {lr: [1e-3, 1e-4]}",
        &JointKey(written::command, |_| schema::command()),
    ),
    built(
        "script",
        "A script that bash runs, instead of a command.",
        "script: staging.sh",
        &JointKey(|_| None, |_| schema::text()),
    ),
    built(
        "shell",
        "Of a command that is one string: bash.",
        "command: python3 train.py\nshell: bash",
        &JointKey(|_| None, |_| schema::choice(&["bash"])),
    ),
    built(
        "stdin",
        "A file that the command reads, where it runs: beside its code, below `~/`, or anywhere by its whole path.",
        "command: [python3, score.py]\nstdin: questions.txt",
        &JointKey(written::stdin, |_| schema::text()),
    ),
    built(
        "output",
        "A second place for what the command prints: a file to which it is added, on the machine where it runs, below `~/`, \
         anywhere by its whole path, or by its path from where this file lies. A machine that does not have that directory, \
         such as a worker of a TPU, has it beside the copy of the code. The command then writes into a pipe, and to no \
         terminal.",
        "command: python3 train.py\noutput: ~/logs/train.out",
        &PlainKey(OUTPUT, |job| &mut job.execution.output),
    ),
    built(
        "configs",
        "Names and values that the program is given, as `arguments` says.",
        "command: [python3, train.py]\nconfigs: {lr: 1e-3}",
        &PlainKey(CONFIGS, |job| &mut job.configs),
    ),
    built(
        "arguments",
        "How the program takes `configs`: `flags` as --NAME=VALUE, `hydra` as NAME=VALUE, `config` as --NAME=VALUE with the \
         config aliases of the user, and after a restart --config.load_from=DIR. The default is the setting `arguments`.",
        "command: [python3, train.py]\nconfigs: {lr: 1e-3}\narguments: hydra",
        &PlainKey(ARGUMENTS, |job| &mut job.arguments),
    ),
    built(
        "resume_args",
        "What a resume adds to the arguments: `{checkpoint}` is the newest checkpoint, `{checkpoint_dir}` the directory in \
         which it lies, `{step}` its step, `{attempt}` the number of the attempt. An option of which the value is empty is left out. The default \
         is the setting `resume_args`.",
        "command: [python3, train.py]\nresume_args: --resume {checkpoint}",
        &PlainKey(RESUME_ARGS, |job| &mut job.execution.resume_args),
    ),
    built(
        "checkpoint_dir",
        "The directory in which the program keeps checkpoints: relative to its working directory, or a whole path. The default is the setting \
         `checkpoint_dir`; without it tpu looks into the log directory, and into checkpoints, ckpt and ckpts.",
        "command: [python3, train.py]\ncheckpoint_dir: out/weights",
        &PlainKey(CHECKPOINT_DIR, |job| &mut job.execution.checkpoint_dir),
    ),
    built(
        "array",
        "Members as in 0-99%8, or names with their values: one job for each combination. They have one copy of the code \
         together; `tpu submit FILE --copy-each` gives each its own.",
        "command: [python3, train.py]\narray: {lr: [1e-3, 1e-4], seed: 0-4}",
        &JointKey(written::array, |_| schema::array()),
    ),
    built(
        "zip",
        "true: the first values of the array together, then the second ones, and so on.",
        "command: [python3, train.py]\narray: {lr: [1e-3, 1e-4], steps: [100, 200]}\nzip: true",
        &JointKey(written::zip, |_| schema::truth()),
    ),
    built(
        "max_parallel",
        "So many members of the array at once.",
        "array: 0-99\nmax_parallel: 8",
        &JointKey(written::max_parallel, |_| schema::whole(1, schema::MOST)),
    ),
    built(
        "env",
        "Variables of the command: names and their values.",
        "env: {WANDB_PROJECT: scan}",
        &PlainKey(ENV, |job| &mut job.execution.variables),
    ),
    built(
        "secrets",
        "Names of variables whose values are nobody's business: from the environment of whoever runs it, else from \
         `tpu secrets set NAME`. What begins later needs the second. They are in no record, log, script or argument. \
         Docker keeps what a container was started with until it is removed.",
        "secrets: [WANDB_API_KEY]",
        &PlainKey(SECRETS, |job| &mut job.execution.secrets),
    ),
    built(
        "setup",
        "What is set up before the command, in order; each looks first. Modules `ssh_keys`, `gcsfuse`, `nfs`, \
         `docker`, `conda`, `venv`, `wandb` (whose `key` names a secret), `recipe`, or `{name, check, run, files, workers, timeout, once_per}`. \
         On Slurm it is each node that is set up, and done once is until that is started anew.",
        "setup:\n  - venv: {name: train, requirements: r.txt}\n  - {name: data, check: test -d ~/data, run: mkdir ~/data}\n\
         command: python train.py",
        &PlainKey(SETUP, |job| &mut job.execution.setup),
    ),
    built(
        "workers",
        "On which workers the command runs: `all`, a number, or a list of them; on Slurm, on which of its tasks. A set-up \
         is made on all.",
        "command: python train.py\nworkers: [0, 2]",
        &PlainKey(WORKERS, |job| &mut job.execution.workers),
    ),
    built(
        "timeout",
        "How long it may run, with its set-up left out. Slurm is asked for as long, and for what its set-up may take, \
         unless `target: {slurm: …, time: …}` says how long.",
        "timeout: 24h",
        &PlainKey(SECONDS, |job| &mut job.execution.timeout_s),
    ),
    built(
        "idle_timeout",
        "How long it may print nothing, before it is taken for stalled and stopped.",
        "idle_timeout: 30m",
        &PlainKey(SECONDS, |job| &mut job.execution.idle_timeout_s),
    ),
    built("tag", "A tag.", "tag: sweep", &PlainKey(TAG, |job| &mut job.tag)),
    built("notes", "Notes.", "notes: with the new tokens", &PlainKey(NOTES, |job| &mut job.notes)),
    built(
        "rules",
        "What is done after which failure: `{preempted: resume}`, or a name of rules.",
        "rules: {preempted: resume, oom: rerun}",
        &PlainKey(RULES, |job| &mut job.rules),
    ),
    built(
        "repeat",
        "Whether its command begins again where it runs, when it has ended: `never`, `always`, `on-failure`, or `{when, pause}` \
         with the pause before, 60 s without a word. It is one run of the job, until it is killed or its `timeout` is over; on \
         several workers each begins again by itself. No rule and no retry hears of ends that it answers.",
        "command: python3 serve.py\nrepeat: {when: on-failure, pause: 10s}",
        &PlainKey(REPEAT, |job| &mut job.execution.repeat),
    ),
    built(
        "retry",
        "How often it goes on by itself after which failures, from its checkpoint where there is one: a number, or \
         `{max, on, backoff}`. Without `on` after all but preemptions, missing capacity, its own `timeout`, and what a person \
         has ended. A retry that could not be started counts; one after `lost` does not, since its machine failed and \
         not the job. Each pause is twice the one before, up to 10 minutes or \
         `backoff`, if that is longer. The same exit code and line of a program (but for numbers) is retried twice at \
         most.",
        "retry: {max: 3, on: [preempted, lost, oom], backoff: 60s}",
        &JointKey(written::retry, |_| schema::retry()),
    ),
    built(
        "gpus",
        "A number of GPUs.",
        "gpus: 2",
        &JointKey(|job| written::asked(job, "gpus"), |_| schema::gpus()),
    ),
    built(
        "gpu",
        "The numbers of GPUs, as in 0,2.",
        "gpu: [0, 2]",
        &JointKey(|job| written::asked(job, "gpu"), |_| schema::gpu()),
    ),
    built(
        "cpus",
        "A number of CPUs.",
        "cpus: 8",
        &JointKey(|job| written::asked(job, "cpus"), |_| schema::cpus()),
    ),
    built(
        "mem",
        "An amount of memory, as in 32G.",
        "mem: 32G",
        &JointKey(|job| written::asked(job, "mem"), |_| schema::memory()),
    ),
    built(
        "policy",
        "Which of several machines is taken: sequential, random, smart, frugal.",
        "target: {hosts: 'gpu[1-4]'}\npolicy: smart",
        &PlainKey(POLICY, |job| &mut job.policy),
    ),
    built(
        "queue",
        "The queue in which it waits.",
        "queue: night",
        &PlainKey(QUEUE, |job| &mut job.waits.queue),
    ),
    built(
        "priority",
        "0 to 100; higher ones come first; 50 without a word.",
        "priority: 80",
        &PlainKey(PRIORITY, |job| &mut job.waits.priority),
    ),
    built(
        "hold",
        "true: it does not begin before `tpu unhold`.",
        "hold: true",
        &PlainKey(TRUTH, |job| &mut job.waits.is_held),
    ),
    built(
        "after",
        "Jobs that have to finish well before, also jobs above it in the same file.",
        "after: [12, tok]",
        &JointKey(|job| written::after(job, AfterWhich::Ok), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_any",
        "Jobs that have to end before, however they end.",
        "after_any: 12",
        &JointKey(|job| written::after(job, AfterWhich::Any), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_not",
        "Jobs that have to fail before.",
        "after_not: 12",
        &JointKey(|job| written::after(job, AfterWhich::Not), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_each",
        "A group: each member waits for the member of its number.",
        "array: 0-3\nafter_each: 12",
        &JointKey(|job| written::after(job, AfterWhich::Each), |_| schema::texts(&schema::text())),
    ),
    built(
        "notify",
        "Who is told of it, beside those of the setting `notify`: `{on, webhook}`, `{on, mail}`, `{on, command}` or \
         `{on, message: tmux}`, a list of them, or in short `EVENT,…=WHERE`; `none`: nobody at all. Events are `preempted`, \
         `resumed`, `error`, `finished`, `stalled`, `diverged`, `started-over`, `no-capacity`, `queue-empty`, `budget-spent`; without `on` all. \
         A webhook has a `shape`: `json`, `slack`, or `brevo` with `from` and `to`; `secret` names what lets us in, and `${NAME}` \
         in its URL is a secret, too: `tpu secrets set NAME`.",
        "notify: {on: [error, finished], mail: me@example.org}\ncommand: python3 train.py",
        &PlainKey(NOTIFY, |job| &mut job.execution.notify),
    ),
    later("keep", "How long what it leaves behind is kept.", "leave it away"),
];

/// The key of that name.
pub fn key(name: &str) -> Option<&'static JobKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// Those that are carried out.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(|key| key.state == KeyState::Built).map(|key| key.name)
}

/// The keys as a page for people, each with an example that is read by its test.
pub fn page() -> String {
    let mut page = "# The keys of a job file\n\n\
        `tpu submit FILE.yaml` and `tpu run FILE.yaml` read them; `{{key}}` in a value is another key of the job, a name of\n\
        its array (in the command alone), or given by `--set key=value`. Several jobs of a file are parted by `---`, or stand\n\
        below `jobs:` by their names, over what `defaults:` says for all of them. `tpu schema jobfile` prints the same as a JSON\n\
        Schema, for editors. This page is made from the table of the reader (`./x bless`).\n"
        .to_owned();
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        page +=
            &format!("\n## `{}`\n\n{}\n\n```yaml\n{}\n```\n", key.name, key.meaning, key.example);
    }
    page += "\n## Not built yet\n\nThese are refused by name, with what to do instead.\n\n";
    for key in KEYS {
        if let KeyState::Later(instead) = key.state {
            page += &format!("* `{}`: {} Instead: {instead}.\n", key.name, key.meaning);
        }
    }
    page
}
