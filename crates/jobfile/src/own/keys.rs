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
        "The name of the job; the key in `jobs:` is a name too.",
        "name: llama-{{tag}}\ntag: small",
        &PlainKey(NAME, |job| &mut job.name),
    ),
    built(
        "target",
        "Where the job runs: a target, type, pool or pattern of names, or a list of them; `{hosts: …}`; `{type, zone, \
         pricing}` for any existing target of a type; or `{KIND: NAME}` with the options of that kind, as `{kubernetes: \
         lab, image, flavor, volumes, nodes}`. `{accelerator, zone, pricing, version, mode, prefer}` is a TPU that is \
         created for the job; the daemon asks until there is capacity, with `mode: queued-resources` by a queued \
         resource. Several types and zones are tried in order, or with `prefer: cheapest` by the setting `prices`, with \
         `prefer: fastest` by how long jobs have waited for each.",
        "target: {slurm: gpu, nodes: 2, gpus: 4}",
        &JointKey(|job| Some(written::target(job)), schema::target),
    ),
    built(
        "tpu",
        "A TPU that is created: its `name`, its `number` (or `auto`: the first free one), `tags`, `metadata`, \
         `startup_script`, `network`, `flags`, and `delete_after: done`: the daemon deletes it when the job has ended, no \
         rule restarts it and nobody else uses it. A TPU that existed before stays.",
        "target: {accelerator: [v6e-16, v5p-8], zone: us-east5-b, pricing: spot}\ntpu: {name: my-tpu, number: auto, tags: [a]}",
        &JointKey(written::tpu, |_| schema::tpu()),
    ),
    built(
        "user",
        "The account on a TPU that is created.",
        "target: {accelerator: v6e-8, zone: us-east5-b}\ntpu: {name: my-tpu}\nuser: alice",
        &JointKey(written::user, |_| schema::text()),
    ),
    built(
        "dir",
        "The directory of the code: a slot number or a path. Default: the directory in which the file is submitted; for a \
         file without `command`, slot 1. With `code: none`: the directory on the machine in which the job runs.",
        "dir: ~/exp",
        &JointKey(written::dir, |_| schema::dir()),
    ),
    built(
        "code",
        "`.`: the directory of the file. `{repo, branch}`: a git clone, made when the job is submitted. `{ignored: \
         link}`: the copy gets links to what git ignores, if the job runs on this disk; with `{ignored: leave}`, the \
         default, it gets nothing of that. `in-place`: the job runs in the directory of the code, without a copy. `none`: \
         nothing is copied, and the job runs in a directory that its machines have.",
        "code: {ignored: link}\ndir: ~/exp\ncommand: ./train.sh",
        &JointKey(written::code, |_| schema::code()),
    ),
    built(
        "outputs",
        "Directories for what the job writes. Each is created beside the code if it is missing, and the copy has a link \
         to it. Default: the setting `outputs`.",
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
        "The shell of a command that is one string: bash.",
        "command: python3 train.py\nshell: bash",
        &JointKey(|_| None, |_| schema::choice(&["bash"])),
    ),
    built(
        "stdin",
        "A file that the command reads on its machine: a path beside the code, below `~/`, or a full path.",
        "command: [python3, score.py]\nstdin: questions.txt",
        &JointKey(written::stdin, |_| schema::text()),
    ),
    built(
        "output",
        "A second file for the output of the command, on the machine where it runs: the output is appended. A path below \
         `~/`, a full path, or one relative to this file. A machine without that directory, such as a worker of a TPU, \
         writes it beside the copy of the code. The command then writes into a pipe, not to a terminal.",
        "command: python3 train.py\noutput: ~/logs/train.out",
        &PlainKey(OUTPUT, |job| &mut job.execution.output),
    ),
    built(
        "configs",
        "Names and values for the program, given to it as `arguments` says.",
        "command: [python3, train.py]\nconfigs: {lr: 1e-3}",
        &PlainKey(CONFIGS, |job| &mut job.configs),
    ),
    built(
        "arguments",
        "How the program takes `configs`: `flags` as --NAME=VALUE, `hydra` as NAME=VALUE, `config` as --NAME=VALUE with \
         the config aliases of the user, and after a restart --config.load_from=DIR. Default: the setting `arguments`.",
        "command: [python3, train.py]\nconfigs: {lr: 1e-3}\narguments: hydra",
        &PlainKey(ARGUMENTS, |job| &mut job.arguments),
    ),
    built(
        "resume_args",
        "Arguments that a resume adds: `{checkpoint}` is the newest checkpoint, `{checkpoint_dir}` its directory, \
         `{step}` its step, `{attempt}` the number of the attempt. An option with an empty value is left out. Default: \
         the setting `resume_args`.",
        "command: [python3, train.py]\nresume_args: --resume {checkpoint}",
        &PlainKey(RESUME_ARGS, |job| &mut job.execution.resume_args),
    ),
    built(
        "checkpoint_dir",
        "The directory in which the program keeps checkpoints: a full path, or relative to its working directory. \
         Default: the setting `checkpoint_dir`; without it the log directory, and checkpoints, ckpt and ckpts.",
        "command: [python3, train.py]\ncheckpoint_dir: out/weights",
        &PlainKey(CHECKPOINT_DIR, |job| &mut job.execution.checkpoint_dir),
    ),
    built(
        "array",
        "Members as in 0-99%8, or names with their values: one job for each combination. They share one copy of the code; \
         `tpu submit FILE --copy-each` gives each its own.",
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
        "How many members of the array run at once.",
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
        "Names of secret variables; their values are never stored in a record, log, script or argument. They come from \
         your environment, else from `tpu secrets set NAME`; a job that starts later needs the second. Docker keeps the \
         variables of a container until it is removed.",
        "secrets: [WANDB_API_KEY]",
        &PlainKey(SECRETS, |job| &mut job.execution.secrets),
    ),
    built(
        "setup",
        "Steps that prepare the machine before the command, in order; each looks first and does only what is missing. \
         Modules `ssh_keys`, `gcsfuse`, `nfs`, `docker`, `conda`, `venv`, `wandb` (whose `key` names a secret), `recipe`, \
         or `{name, check, run, files, workers, timeout, once_per}`. On Slurm each node is prepared, once until the node \
         is restarted.",
        "setup:\n  - venv: {name: train, requirements: r.txt}\n  - {name: data, check: test -d ~/data, run: mkdir ~/data}\n\
         command: python train.py",
        &PlainKey(SETUP, |job| &mut job.execution.setup),
    ),
    built(
        "workers",
        "On which workers the command runs: `all`, a number, or a list of numbers; on Slurm, on which of its tasks. \
         `setup` runs on all.",
        "command: python train.py\nworkers: [0, 2]",
        &PlainKey(WORKERS, |job| &mut job.execution.workers),
    ),
    built(
        "timeout",
        "How long the job may run, without its set-up. Slurm is asked for this time plus that of the set-up, unless \
         `target: {slurm: …, time: …}` says how long.",
        "timeout: 24h",
        &PlainKey(SECONDS, |job| &mut job.execution.timeout_s),
    ),
    built(
        "idle_timeout",
        "How long the job may print nothing before it counts as stalled and is stopped.",
        "idle_timeout: 30m",
        &PlainKey(SECONDS, |job| &mut job.execution.idle_timeout_s),
    ),
    built("tag", "A tag.", "tag: sweep", &PlainKey(TAG, |job| &mut job.tag)),
    built("notes", "Notes.", "notes: with the new tokens", &PlainKey(NOTES, |job| &mut job.notes)),
    built(
        "rules",
        "What to do after which failure: `{preempted: resume}`, or the name of a rule.",
        "rules: {preempted: resume, oom: rerun}",
        &PlainKey(RULES, |job| &mut job.rules),
    ),
    built(
        "repeat",
        "Whether the command starts again on its machine when it has ended: `never`, `always`, `on-failure`, or `{when, \
         pause}` with the pause before (default: 60 s). It is one run of the job, until the job is killed or its \
         `timeout` is over. Each of several workers repeats on its own. Rules and `retry` do not see the ends that it \
         handles.",
        "command: python3 serve.py\nrepeat: {when: on-failure, pause: 10s}",
        &PlainKey(REPEAT, |job| &mut job.execution.repeat),
    ),
    built(
        "retry",
        "How often the job is restarted automatically after failures, from its checkpoint if it has one: a number, or \
         `{max, on, backoff}`. Default of `on`: all failures but preemptions, missing capacity, its own `timeout`, and \
         jobs that a person has ended. A retry that could not be started counts. One after `lost` does not count, because \
         the machine failed and not the job. Each pause is twice the one before, up to 10 minutes or `backoff`, if that \
         is longer. A failure with the same exit code and line (except for numbers) is retried twice at most.",
        "retry: {max: 3, on: [preempted, lost, oom], backoff: 60s}",
        &JointKey(written::retry, |_| schema::retry()),
    ),
    built(
        "gpus",
        "The number of GPUs.",
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
        "The number of CPUs.",
        "cpus: 8",
        &JointKey(|job| written::asked(job, "cpus"), |_| schema::cpus()),
    ),
    built(
        "mem",
        "The memory, as in 32G.",
        "mem: 32G",
        &JointKey(|job| written::asked(job, "mem"), |_| schema::memory()),
    ),
    built(
        "policy",
        "How one of several machines is chosen: sequential, random, smart, frugal.",
        "target: {hosts: 'gpu[1-4]'}\npolicy: smart",
        &PlainKey(POLICY, |job| &mut job.policy),
    ),
    built(
        "queue",
        "The queue of the job.",
        "queue: night",
        &PlainKey(QUEUE, |job| &mut job.waits.queue),
    ),
    built(
        "priority",
        "0 to 100; higher ones come first (default: 50).",
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
        "Jobs that must finish well before this one starts; also jobs above it in the same file.",
        "after: [12, tok]",
        &JointKey(|job| written::after(job, AfterWhich::Ok), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_any",
        "Jobs that must end before this one starts, well or not.",
        "after_any: 12",
        &JointKey(|job| written::after(job, AfterWhich::Any), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_not",
        "Jobs that must fail before this one starts.",
        "after_not: 12",
        &JointKey(|job| written::after(job, AfterWhich::Not), |_| schema::texts(&schema::text())),
    ),
    built(
        "after_each",
        "A group: each member waits for the member with the same number.",
        "array: 0-3\nafter_each: 12",
        &JointKey(|job| written::after(job, AfterWhich::Each), |_| schema::texts(&schema::text())),
    ),
    built(
        "notify",
        "Who is notified, in addition to the setting `notify`: `{on, webhook}`, `{on, mail}`, `{on, command}` or `{on, \
         message: tmux}`, a list of them, or in short `EVENT,…=WHERE`; `none`: nobody at all. Events are `preempted`, \
         `resumed`, `error`, `finished`, `stalled`, `diverged`, `started-over`, `no-capacity`, `queue-empty`, \
         `budget-spent` (default: all). A webhook has a `shape`: `json`, `slack`, or `brevo` with `from` and `to`. \
         `secret` names the secret that it needs, and `${NAME}` in its URL is a secret too: `tpu secrets set NAME`.",
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
        `tpu submit FILE.yaml` and `tpu run FILE.yaml` read them. `{{key}}` in a value is replaced by another key of the job, by a\n\
        name of its array (only in the command), or by `--set key=value`. A file can have several jobs: separated by `---`, or\n\
        below `jobs:` by name, with defaults for all of them in `defaults:`. `tpu schema jobfile` prints the keys as a JSON Schema,\n\
        for editors. [A job as a file](job-files.md) shows how to start. This page is generated (`./x bless`).\n"
        .to_owned();
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        page +=
            &format!("\n## `{}`\n\n{}\n\n```yaml\n{}\n```\n", key.name, key.meaning, key.example);
    }
    page += "\n## Not supported yet\n\nThese are refused by name, with what to do instead.\n\n";
    for key in KEYS {
        if let KeyState::Later(instead) = key.state {
            page += &format!("* `{}`: {} Instead: {instead}.\n", key.name, key.meaning);
        }
    }
    page
}
