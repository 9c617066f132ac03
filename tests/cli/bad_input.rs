//! Whatever is wrong, the answer is the exit code of the table, what is wrong, and what to do next, for
//! people and for scripts; and data.json is as it was.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::{write_file, write_script};

/// How the world is before the command.
#[derive(Clone, Copy, Debug)]
enum World {
    /// Two users, no jobs, no tmux server.
    Fresh,
    /// alice/1 is finished, alice/2 runs, each in its window.
    Jobs,
    /// The same, then no program called tmux.
    JobsNoTmux,
    /// The same, then a dead server.
    JobsDeadTmux,
    /// A tmux that is too old.
    OldTmux,
    /// No users.
    Nobody,
    /// No data file.
    NoFile,
    /// A data file with these contents.
    File(&'static str),
    /// A data file in which the value there is this one.
    Value(&'static str, &'static str),
    /// A directory where the data file should be.
    Directory,
}

/// World, command, exit code, words of the message, words of the hint.
type Row<'a> = (World, &'a str, i32, &'a [&'a str], &'a [&'a str]);

#[rustfmt::skip]
const ROWS: &[Row<'static>] = &[
    // Commands, flags.
    (World::Fresh, "hosts lits", 2, &["no command 'hosts lits'"], &["did you mean 'list'"]),
    (World::Fresh, "pools nolab", 2, &["no command 'pools nolab'"], &["`tpu help pools`"]),
    (World::Fresh, "resmue 1", 2, &["no command 'resmue'"], &["'resume'"]),
    (World::Fresh, "tag 1 x", 2, &["no command 'tag'"], &["'add-tag'"]),
    (World::Fresh, "config", 2, &["no command 'config'"], &["'get-settings'"]),
    (World::Fresh, "sbatch train.sh", 2, &["no command 'sbatch'"], &["'submit'"]),
    (World::Fresh, "version", 2, &["no command 'version'"], &["'--version'"]),
    (World::Fresh, "watch", 2, &["no command 'watch'"], &["'monitor'"]),
    (World::Fresh, "info 1", 2, &["no command 'info'"], &["'show'"]),
    (World::Fresh, "rm 1", 2, &["no command 'rm'"], &["'clean'"]),
    (World::Fresh, "edit", 2, &["no command 'edit'"], &["'set-settings'"]),
    (World::Fresh, "queue pauze x", 2, &["no command 'queue pauze'"], &["did you mean 'pause'?"]),
    (World::Fresh, "queue resum", 2, &["no command 'queue resum'"], &["did you mean 'resume'?"]),
    (World::Fresh, "run local alice --gpus", 2, &["--gpus"], &["gpus=VALUE"]),
    (World::Fresh, "run local alice python t.py --lr 1", 2, &["--lr"], &["put -- before the command: tpu", "run local alice -- python t.py --lr 1"]),
    (World::Fresh, "logs 2 --tail 3", 2, &["--tail"], &["'-n'"]),
    (World::Fresh, "daemon", 2, &["which? run, start, stop, restart, status, plan"], &["tpu help daemon"]),
    (World::Fresh, "board", 2, &["which? export, import"], &["tpu help board"]),
    (World::Fresh, "sim", 2, &["which? ", "preempt"], &["tpu help sim"]),
    (World::Fresh, "data", 2, &["which? get, set, merge"], &["tpu help data"]),
    (World::Fresh, "check --jsn", 2, &["--jsn"], &["--json"]),
    (World::Fresh, "run local alice --quit -- true", 2, &["--quit"], &["--quiet"]),
    (World::Fresh, "logs 1 -n many", 2, &["many"], &["tpu help"]),
    (World::Fresh, "check --color purple", 2, &["purple"], &["tpu help"]),
    (World::Fresh, "--settings nowhere.json check alice", 2, &["nowhere.json"], &["--settings"]),
    (World::Fresh, "help resmue", 2, &["resmue"], &["resume"]),
    // Users.
    (World::Fresh, "check alcie", 3, &["'alcie'"], &["'alice'"]),
    (World::Fresh, "check zzzzz", 3, &["'zzzzz'"], &["list-users"]),
    (World::Fresh, "check user=alcie", 3, &["no user 'alcie'"], &["'alice'"]),
    (World::Fresh, "check --user zoe", 3, &["no user 'zoe'"], &["alice, bob"]),
    (World::Fresh, "check id=9", 3, &["id 9"], &["list-users"]),
    (World::Fresh, "check id=x", 2, &["id=x"], &["list-users"]),
    (World::Fresh, "clean", 2, &["alice, bob"], &["TPU_USER"]),
    (World::Fresh, "clean alice bob", 2, &["alice", "bob"], &["name one"]),
    (World::Fresh, "add-user alice", 4, &["alice"], &["tpu"]),
    (World::Fresh, "add-user run", 2, &["run"], &["name"]),
    (World::Fresh, "add-user 9x", 2, &["9x"], &["letter"]),
    (World::Fresh, "add-user zoe --dir /nowhere", 3, &["/nowhere"], &["--dir"]),
    (World::Fresh, "add-user zoe --tmux-name alice", 4, &["alice"], &["--tmux-name"]),
    (World::Fresh, "del-user zoe", 3, &["zoe"], &["list-users"]),
    (World::Nobody, "check", 3, &["no user"], &["tpu init"]),
    (World::Nobody, "kill 1", 3, &["no user"], &["tpu init"]),
    // The board, data by path, the beginning.
    (World::Fresh, "find v2 v3x", 2, &["'v3x' is no type"], &["v234"]),
    (World::Fresh, "find --delted", 2, &["--delted"], &["--deleted"]),
    (World::Fresh, "release", 2, &["which target"], &["tpu release v2-32-p2"]),
    (World::Fresh, "release v2-2", 3, &["no target 'v2-2'"], &["'v2-1'"]),
    (World::Fresh, "reserve v2-1 alice --for 0s", 2, &["7 days"], &["--for 2h"]),
    (World::Fresh, "reserve v2-1 alice --for 300h", 2, &["7 days"], &["--for 2h"]),
    (World::Fresh, "reserve v2-1", 2, &["whose?"], &["TPU_USER"]),
    (World::Fresh, "reserve v2-1 zoe", 3, &["'zoe'"], &["tpu list-users"]),
    (World::Fresh, "ssn v2-1", 2, &["NOTES"], &["tpu help"]),
    (World::Fresh, "ssn nowhere x", 3, &["no target 'nowhere'"], &["tpu -lta"]),
    (World::Fresh, "board import xml f", 2, &["xml", "csv, json"], &["tpu help"]),
    (World::Fresh, "run v2 alice -q -n -p", 2, &["cannot be used with"], &["tpu help"]),
    (World::Fresh, "run v2-1 alice --auto", 2, &["nothing to choose"], &["v2-32 --auto"]),
    (World::Fresh, "run v2 alice -q -p", 4, &["no target of v2 is free"], &["tpu find v2", "--wait"]),
    (World::Fresh, "data get users..x", 2, &["no path"], &["job_data[0]"]),
    (World::Fresh, "data get users.alcie.id", 3, &["no 'alcie'"], &["'alice'"]),
    (World::Fresh, "data get users.alice.job_data[3]", 3, &["no element 3"], &["from 0"]),
    (World::Fresh, "data set user.x 1", 3, &["no 'user'"], &["'users'"]),
    (World::Fresh, "data set users.alice.id null", 2, &["users.alice.id"], &["nothing was changed"]),
    (World::Jobs, "data set users.alice.job_data []", 4, &["alice/1 would be lost"], &["tpu clean alice"]),
    (World::Fresh, "data merge /nowhere", 3, &["/nowhere"], &["spelling"]),
    (World::Fresh, "init --from /nowhere", 3, &["/nowhere"], &["data.json"]),
    (World::Fresh, "init --adopt", 2, &["--from"], &["tpu help"]),
    (World::Fresh, "init --name false", 2, &["'false'"], &["another name"]),
    (World::Fresh, "completions tcsh", 2, &["tcsh", "bash"], &["zsh"]),
    (World::Fresh, "man resmue", 2, &["resmue"], &["resume"]),
    (World::Fresh, "dqr 1 v2-1", 4, &["on purpose"], &["tpu priority"]),
    (World::Fresh, "describe v2-2", 3, &["no target 'v2-2'"], &["'v2-1'"]),
    (World::Fresh, "ssh local", 4, &["this machine"], &["tpu run local"]),
    (World::Fresh, "history zzz --since-last", 3, &["'zzz'"], &["list-users"]),
    (World::Fresh, "del-config-alias lrr alice", 3, &["'lrr'"], &["'lr'"]),
    // Targets.
    (World::Fresh, "run v2-2 alice -- true", 3, &["no target 'v2-2'"], &["'v2-1'"]),
    (World::Fresh, "run zzz alice -- true", 3, &["no target 'zzz'"], &["tpu register"]),
    (World::Fresh, "run alice -- true", 2, &["which target"], &["tpu run"]),
    (World::Fresh, "run v2-1 local alice", 2, &["v2-1", "local"], &["one target"]),
    (World::Fresh, "run v2-1 alice -- true", 4, &["lab-tpuvm-v2-32-1"], &["staging.sh"]),
    (World::Fresh, "run local alice", 3, &["staging.sh"], &["-- python"]),
    // Slots and directories.
    (World::Fresh, "run local alice dir=9 -- true", 3, &["no directory 9"], &["1:"]),
    (World::Fresh, "run local alice dir=x -- true", 2, &["dir=x"], &["tpu ls"]),
    (World::Fresh, "run local alice 1 2 -- true", 2, &["one directory"], &["dir=2"]),
    (World::Fresh, "get-dir 9 alice", 3, &["no directory 9"], &["tpu set-cur 9 alice"]),
    (World::Fresh, "get-dir alice", 2, &["slot"], &["tpu"]),
    (World::Fresh, "del-dir 9 alice", 3, &["no directory 9"], &["tpu ls alice"]),
    (World::Fresh, "swap-dir 1 9 alice", 3, &["no directory 9"], &["tpu ls alice"]),
    (World::Fresh, "set-dir /nowhere 2 alice", 3, &["/nowhere"], &["create it"]),
    (World::Fresh, "set-cur 0 alice", 2, &["directory 0"], &["tpu ls"]),
    (World::Fresh, "set-cur 101 alice", 2, &["directory 101"], &["tpu ls"]),
    // Keys, rules, aliases, settings.
    (World::Fresh, "run local alice foo=1 -- true", 2, &["'foo'"], &["tpu -a foo"]),
    (World::Fresh, "run local alice rul=pass -- true", 2, &["'rul'"], &["'rule'"]),
    (World::Fresh, "run local alice monitor=maybe -- true", 2, &["monitor=maybe"], &["true"]),
    (World::Fresh, "run local alice rule=resum -- true", 2, &["'resum'"], &["'resume'"]),
    (World::Fresh, "run local alice rule=oom:dance -- true", 2, &["dance"], &["check-rules"]),
    (World::Fresh, "run local alice w=1 -- true", 2, &["w=1"], &["dir=N"]),
    (World::Fresh, "check alice foo=1", 2, &["foo=1"], &["tpu help"]),
    (World::Fresh, "check alice 7", 3, &["no job 7"], &["tpu run"]),
    (World::Fresh, "ls alice 7", 2, &["'7'"], &["tpu help"]),
    (World::Fresh, "del-config-alias zz alice", 3, &["zz"], &["tpu"]),
    (World::Fresh, "set-settings nosuch 1 alice", 2, &["nosuch"], &["get-settings"]),
    (World::Fresh, "set-settings show_lenght 1 alice", 2, &["show_lenght"], &["'show_length'"]),
    (World::Fresh, "set-settings theme nosuch alice", 2, &["no theme 'nosuch'", "dark"], &["tpu set-settings theme"]),
    (World::Fresh, "set-settings keys {\"nosuch\":\"x\"} alice", 2, &["keys.nosuch"], &["tpu set-settings keys"]),
    (World::Fresh, "set-settings workers pigeon alice", 2, &["ssh or gcloud"], &["tpu"]),
    (World::Fresh, "set-settings cloud heaven alice", 2, &["none, sim or google"], &["tpu"]),
    (World::Fresh, "set-settings cloud_auth blind alice", 2, &["google or none"], &["tpu"]),
    (World::Fresh, "set-settings time_zone Mars alice", 2, &["Europe/Berlin"], &["tpu"]),
    (World::Fresh, "set-settings prices {\"v2\":\"much\"} alice", 2, &["prices"], &["tpu"]),
    (World::Fresh, "set-settings checkpoint_pattern ( alice", 2, &["checkpoint_pattern"], &["tpu"]),
    (World::Fresh, "sim serve --data nowhere/data.json", 5, &["no directory", "nowhere"], &["mkdir -p"]),
    // Short names that mean something already.
    (World::Fresh, "-ta tag lab-x", 4, &["'tag'", "grammar"], &["another short name"]),
    (World::Fresh, "-ta w lab-x", 4, &["'w'", "grammar"], &["another short name"]),
    (World::Fresh, "-ta check lab-x", 4, &["'check'", "a command"], &["another short name"]),
    (World::Fresh, "-ta rel lab-x", 4, &["'rel'", "a command"], &["another short name"]),
    (World::Fresh, "-ta bob lab-x", 4, &["'bob'", "a user"], &["another short name"]),
    (World::Fresh, "-ta pre lab-x", 4, &["'pre'", "a rule"], &["another short name"]),
    (World::Fresh, "-ta v2-32 lab-x", 4, &["'v2-32'", "a type"], &["another short name"]),
    (World::Fresh, "-ta v3-8 lab-x", 4, &["'v3-8'", "a type"], &["another short name"]),
    (World::Fresh, "-ta v234 lab-x", 4, &["'v234'", "a type"], &["another short name"]),
    (World::Fresh, "-ta 7 lab-x", 4, &["'7'", "a number"], &["another short name"]),
    (World::Fresh, "-ta lab-tpuvm-v2-32-1 lab-x", 4, &["a target"], &["another short name"]),
    (World::Fresh, "-a tag config.x alice", 4, &["'tag'", "grammar"], &["another short name"]),
    (World::Fresh, "-a run config.x alice", 4, &["'run'", "a command"], &["another short name"]),
    (World::Fresh, "-a bob config.x alice", 4, &["'bob'", "a user"], &["another short name"]),
    (World::Fresh, "-a v5e config.x alice", 4, &["'v5e'", "a type"], &["another short name"]),
    (World::Fresh, "-a resume config.x alice", 4, &["'resume'"], &["another short name"]),
    (World::Fresh, "-a 7 config.x alice", 4, &["'7'", "a number"], &["another short name"]),
    // What would be an option of ssh or a word of a shell.
    (World::Fresh, "register -- -rf", 2, &["'-rf'"], &["a letter or a digit"]),
    (World::Fresh, "register .. --zone a", 2, &["'..'"], &["a letter or a digit"]),
    (World::Fresh, "register lab-x --address=-oProxyCommand=x", 2, &["'-oProxyCommand=x'"], &["HOST"]),
    (World::Fresh, "register lab-x --address h;reboot", 2, &["'h;reboot'"], &["HOST"]),
    (World::Fresh, "register lab-x --address $(id)", 2, &["'$(id)'"], &["HOST"]),
    (World::Fresh, "register lab-x --address h --ssh-user=-lroot", 2, &["'-lroot'"], &["letters"]),
    (World::Fresh, "register lab-x --zone a;b", 2, &["'a;b'"], &["letters"]),
    (World::Fresh, "set-settings monitor_upd_time soon alice", 2, &["soon"], &["tpu"]),
    (World::Fresh, "-smc checking_freq soon", 2, &["soon"], &["tpu"]),
    // Windows.
    (World::Fresh, "kill 1 alice", 3, &["no job 1"], &["tpu run"]),
    (World::Jobs, "kill w=99 alice", 3, &["no job 99"], &["2, 1"]),
    (World::Jobs, "kill w=x alice", 2, &["w=x"], &["w=7"]),
    (World::Jobs, "kill alice", 2, &["which jobs"], &["--all"]),
    (World::Jobs, "kill 9-7 alice", 3, &["9-7"], &["tpu check"]),
    (World::Jobs, "kill status:error alice", 3, &["no job"], &["tpu check alice"]),
    (World::Jobs, "kill 1 alice", 4, &["alice/1", "finished"], &["tpu check alice"]),
    (World::Jobs, "kill-window 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "resume w=99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "resume alice", 2, &["which job?"], &["a number or a name from `tpu check`"]),
    (World::Jobs, "resume 1 2 alice", 2, &["one job at a time"], &["a number or a name from `tpu check`"]),
    (World::Jobs, "resume 1 alice", 4, &["alice/1 is finished"], &["--force"]),
    (World::Jobs, "rerun 2 alice", 4, &["alice/2 is"], &["tpu kill w=2 alice"]),
    (World::Jobs, "resume 1 tpu=zzz alice --force", 3, &["'zzz'"], &["tpu"]),
    (World::Jobs, "logs 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "logs 1 alice --grep (", 2, &["("], &["regular expression"]),
    (World::Jobs, "explain 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "attach 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "wait 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "wait 1 alice --timeout soon", 2, &["soon"], &["30m"]),
    (World::Jobs, "add-tag 99 t alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "add-tag 1 alice", 2, &["tag"], &["tpu add-tag"]),
    (World::Jobs, "set-rule 1 bogus alice", 2, &["bogus"], &["check-rules"]),
    (World::Jobs, "ignore-error 2 alice", 4, &["alice/2"], &["tpu"]),
    (World::Jobs, "get-stage-dir 99 alice", 3, &["99"], &["2, 1"]),
    (World::Jobs, "reset-window-num 1 alice", 4, &["up to 2 of alice"], &["tpu clean alice"]),
    (World::Jobs, "del-user alice -y", 4, &["alice/2"], &["kill"]),
    // Callbacks.
    (World::Jobs, "finish-job nosuch:1", 3, &["'nosuch'"], &["list-users"]),
    (World::Jobs, "finish-job what", 2, &["'what'"], &["tmux display-message"]),
    (World::Jobs, "fail-job alice:99", 3, &["99"], &["2, 1"]),
    (World::Jobs, "fail-job alice:1", 4, &["alice/1"], &["tpu check alice"]),
    (World::Jobs, "upd-log alice:99 l s t 1", 3, &["99"], &["2, 1"]),
    (World::Jobs, "upd-log alice:1 l", 2, &["SESSION:WINDOW LOG_DIR"], &["unset variable"]),
    // tmux.
    (World::JobsNoTmux, "run local alice -- true", 6, &["tmux is not installed"], &["sudo apt-get install tmux", "conda install"]),
    (World::JobsNoTmux, "kill 2 alice", 6, &["tmux"], &["nothing was changed"]),
    (World::JobsNoTmux, "clean alice", 6, &["tmux"], &["tmux"]),
    (World::JobsNoTmux, "-czw alice", 6, &["tmux"], &["tmux"]),
    (World::JobsNoTmux, "-czj alice", 6, &["tmux"], &["tmux"]),
    (World::JobsNoTmux, "resume 2 alice", 6, &["alice/2"], &["may still be running"]),
    (World::JobsNoTmux, "kill-window 1 alice", 6, &["tmux"], &["tmux"]),
    (World::JobsNoTmux, "attach 2 alice", 6, &["tmux"], &["tmux"]),
    (World::JobsDeadTmux, "-czw alice", 6, &["tmux server"], &["tmux"]),
    (World::JobsDeadTmux, "attach 2 alice", 3, &["tmux server has ended"], &["tpu logs w=2"]),
    (World::OldTmux, "run local alice -- true", 6, &["2.9", "3.2"], &["conda install -c conda-forge tmux"]),
    (World::OldTmux, "-czw alice", 6, &["2.9"], &["tmux"]),
    // The state file. What is wrong, where, and how to get it back.
    (World::NoFile, "check", 5, &["data.json"], &["tpu init", "--data"]),
    (World::NoFile, "run local -- true", 5, &["data.json"], &["tpu init"]),
    (World::Fresh, "--data no/where.json ls", 5, &["no/where.json"], &["--data"]),
    (World::Directory, "ls alice", 5, &["data.json: is a directory"], &["tpu doctor"]),
];

/// Contents that are no state file, and words of the complaint.
#[rustfmt::skip]
const FOREIGN: &[(World, &str)] = &[
    (World::File(""), "line 1"),
    (World::File("\n \n"), "data.json"),
    (World::File("{\"users\": {\"alice\": {\"id\": 0"), "line 1"),
    (World::File("[1, 2, 3]"), "expected a map"),
    (World::File("null"), "expected a map"),
    (World::File("\u{0}\u{1}\u{7f}ELF"), "line 1"),
    (World::File("{\"users\": {}} and more"), "line 1"),
    (World::File("{\"name\": \"left-pad\", \"version\": \"1.0.0\"}"), "users"),
    (World::Value("/users", "[]"), "users"),
    (World::Value("/users/alice", "7"), "users.alice"),
    (World::Value("/users/alice/job_data", "{}"), "users.alice.job_data"),
    (World::Value("/users/alice/windows_offset", "\"x\""), "users.alice.windows_offset"),
    (World::Value("/users/alice/working_dir/1", "[]"), "users.alice.working_dir"),
    (World::Value("/users/alice/job_data/0", "null"), "users.alice.job_data[0]"),
    (World::Value("/users/alice/job_data/0/windows_id", "\"x\""), "users.alice.job_data[0].windows_id"),
    (World::Value("/users/alice/job_data/0/status", "\"dancing\""), "users.alice.job_data[0].status"),
    (World::Value("/users/alice/job_data/0/stage", "-1"), "users.alice.job_data[0].stage"),
    (World::Value("/users/alice/settings/monitor_after_run", "\"maybe\""), "monitor_after_run"),
    (World::Value("/tpu_aliases", "[1]"), "tpu_aliases"),
];

/// What may be asked of a file that cannot be understood.
const OF_FOREIGN: [&str; 7] = [
    "ls alice",
    "check alice",
    "run local alice -- true",
    "kill 1 alice",
    "clean alice",
    "set-settings show_length 100 alice",
    "add-user zoe",
];

impl World {
    fn make(self) -> TestEnv {
        let mut env = TestEnv::new();
        match self {
            Self::Fresh => {}
            Self::Jobs => start_jobs(&env),
            Self::JobsNoTmux => {
                start_jobs(&env);
                env.set("PATH", env.path("code-bob").into_os_string());
            }
            Self::JobsDeadTmux => {
                start_jobs(&env);
                env.tmux().kill_server();
            }
            Self::OldTmux => {
                write_script(&env.path("code-bob/tmux"), "echo tmux 2.9");
                env.set("PATH", env.path("code-bob").into_os_string());
            }
            Self::Nobody => {
                let mut data = env.two_users();
                data["users"] = json!({});
                for (key, value) in [("user_list", json!([])), ("id_list", json!([]))] {
                    data[key] = value;
                }
                for key in ["id_user_dict", "user_id_dict"] {
                    data[key] = json!({});
                }
                env.write_data(&data);
            }
            Self::NoFile => std::fs::remove_file(env.data_path()).unwrap(),
            Self::File(text) => write_file(&env.data_path(), text),
            Self::Value(pointer, value) => {
                let mut data = env.two_users();
                data["users"]["alice"]["job_data"] = json!([env.record("alice", 1, "error")]);
                *data.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
                env.write_data(&data);
            }
            Self::Directory => {
                std::fs::remove_file(env.data_path()).unwrap();
                std::fs::create_dir(env.data_path()).unwrap();
            }
        }
        env
    }
}

fn start_jobs(env: &TestEnv) {
    let none: [&str; 0] = [];
    env.start("true", &none);
    env.start("exec sleep 1000", &none);
    env.wait_status(1, "finished");
    env.wait_status(2, "running");
}

/// The complaints about one answer; none if it is as it should be.
fn complaints(
    output: &CommandOutput,
    json: bool,
    code: i32,
    message: &[&str],
    hint: &[&str],
) -> Vec<String> {
    let mut wrong = Vec::new();
    if output.code != code {
        wrong.push(format!("the exit code is not {code}"));
    }
    if !output.stdout.is_empty() {
        wrong.push("something stands on stdout".to_owned());
    }
    let (said, advice) = if json {
        let name = ["", "failed", "usage", "not-found", "refused", "state", "unreachable"];
        let document: Value = serde_json::from_str(&output.stderr).unwrap_or_default();
        if document["schema"] != 1
            || document["error"]["code"] != name[usize::try_from(code).unwrap()]
        {
            wrong.push("stderr is not the JSON error of schema 1".to_owned());
        }
        let text = |key: &str| document["error"][key].as_str().unwrap_or_default().to_owned();
        (text("message"), text("hint"))
    } else {
        let lines = |prefix: &str| -> String {
            output
                .stderr
                .lines()
                .filter_map(|line| line.strip_prefix(prefix))
                .collect::<Vec<_>>()
                .join("\n")
        };
        (lines("error: "), lines("hint: "))
    };
    for (what, text, words) in [("message", said, message), ("hint", advice, hint)] {
        if text.trim().is_empty() {
            wrong.push(format!("there is no {what}"));
        }
        let missing = words.iter().filter(|word| !text.contains(**word));
        wrong.extend(missing.map(|word| format!("the {what} does not say {word:?}")));
    }
    wrong
}

/// Runs a row as text and as JSON; returns what is wrong with it.
fn judge(
    env: &TestEnv,
    (world, line, code, message, hint): Row<'_>,
    run: impl Fn(&[&str]) -> CommandOutput,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let before = std::fs::read(env.data_path()).ok();
    for json in [false, true] {
        let mut words: Vec<&str> = line.split(' ').collect();
        if json {
            words.insert(0, "--json");
        }
        let output = run(&words);
        let mut found = complaints(&output, json, code, message, hint);
        if std::fs::read(env.data_path()).ok() != before {
            found.push("data.json has changed".to_owned());
        }
        if env.data_path().is_file() && !crate::store::killed_writers::is_free(env) {
            found.push("the lock is still held".to_owned());
        }
        if !found.is_empty() {
            wrong.push(format!(
                "{world:?}\n  {}\n$ tpu {}\n{output}\n",
                found.join("\n  "),
                words.join(" ")
            ));
        }
    }
    wrong
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_mistake_has_its_code_its_message_and_a_way_on() {
    let mut wrong = Vec::new();
    // Rows that share a world share it: they must not change it.
    for world in ROWS.chunk_by(|a, b| format!("{:?}", a.0) == format!("{:?}", b.0)) {
        let env = world[0].0.make();
        for row in world {
            wrong.extend(judge(&env, *row, |words| env.tpu_words(words)));
        }
    }
    report(&wrong);
}

#[test]
fn a_file_that_is_not_understood_is_never_touched() {
    let mut wrong = Vec::new();
    for (world, place) in FOREIGN {
        let env = world.make();
        for line in OF_FOREIGN {
            let words = [*place, "data.json"];
            let row: Row<'_> = (*world, line, 5, &words, &["backup", "data.json"]);
            wrong.extend(judge(&env, row, |words| env.tpu_words(words)));
        }
    }
    report(&wrong);
}

/// Modes bind everybody but root, so root takes on another account here.
#[test]
fn rights_that_are_missing_are_named() {
    let root = rustix::process::getuid().as_raw() == 0;
    let setpriv =
        ["/usr/bin/setpriv", "/bin/setpriv"].into_iter().find(|path| Path::new(path).exists());
    if root && setpriv.is_none() {
        eprintln!("skipped: modes do not bind root, and there is no setpriv to be somebody else");
        return;
    }
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let as_nobody = |env: &TestEnv, words: &[&str]| {
        if !root {
            return env.tpu_words(words);
        }
        let program = env.path("tpu");
        let mut all =
            vec!["--reuid=65534", "--regid=65534", "--clear-groups", program.to_str().unwrap()];
        all.extend(words);
        env.output(&env.spawn_program(setpriv.unwrap(), &all))
    };
    let mut wrong = Vec::new();
    let mut rows = |data_mode: u32,
                    dir_mode: u32,
                    rows: &[(&'static str, &'static [&'static str])]| {
        let env = TestEnv::new();
        if root {
            std::fs::copy(TPU, env.path("tpu")).unwrap();
            mode(&env.path("tpu"), 0o755);
        }
        mode(&env.data_path(), data_mode);
        mode(Path::new(env.root()), dir_mode);
        let before = if root { Some(env.data_bytes()) } else { None };
        for (line, message) in rows {
            let row = (World::Fresh, *line, 5, *message, &["data.json"] as &'static [&'static str]);
            wrong.extend(judge(&env, row, |words| as_nobody(&env, words)));
        }
        if let Some(before) = before {
            assert_eq!(env.data_bytes(), before);
        }
        mode(Path::new(env.root()), 0o755);
    };
    // A file that may not be read.
    rows(
        0o000,
        0o755,
        &[
            ("ls alice", &["data.json", "permission denied"]),
            ("check alice", &["data.json", "permission denied"]),
            ("run local alice -- true", &["data.json", "permission denied"]),
            ("add-user zoe", &["data.json", "permission denied"]),
        ],
    );
    // A directory in which nothing may be written.
    rows(
        0o644,
        0o555,
        &[
            ("set-settings show_length 100 alice", &["data.json", "permission denied"]),
            ("add-user zoe", &["data.json", "permission denied"]),
            ("del-dir 1 alice", &["data.json", "permission denied"]),
        ],
    );
    report(&wrong);
}
