//! The environment is that of the shell in which one types.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::Newcomer;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Prints its environment, a line for each variable that is named behind it.
const E: &str =
    "import os, sys\nfor name in sys.argv[1:]: print(name, os.environ.get(name), sep='=')\n";

/// Nothing else on the machine has this in it.
const CANARY: &str = "c4nary'x $HOME \"9\"-vX2";

fn newcomer() -> Newcomer {
    let newcomer = Newcomer::new();
    newcomer.file("exp/e.py", E);
    newcomer
}

impl Newcomer {
    /// What the shell exports.
    fn exports(&mut self, all: &[(&str, &str)]) {
        for (name, value) in all {
            self.env.set(name, *value);
        }
    }

    /// What a command sees of variables that is typed now.
    #[track_caller]
    fn sees(&self, job: u32, names: &str) -> String {
        drop(self.types("exp", &format!("run local -q -- python3 e.py {names}")).exits(0));
        self.prints(job)
    }

    /// Files below the home in which the canary is.
    fn holders(&self) -> Vec<PathBuf> {
        holders(&self.path(""))
    }
}

impl Newcomer {
    /// The canary is in files of these places, for their owner alone, and nowhere else.
    #[track_caller]
    fn shows_it_nowhere_but(&self, job: u32, allowed: &[&str]) {
        assert_eq!(in_arguments(), Vec::<PathBuf>::new());
        let state = self.path(".local/share/tpu/tpu-state");
        for path in self.holders() {
            let shown = path.strip_prefix(&state).unwrap_or(&path).display().to_string();
            assert!(allowed.iter().any(|place| shown.starts_with(place)), "{shown}");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{shown}");
        }
        let shown = self.env.tmux().run(&["show-environment", "-g"]);
        assert!(!holds(shown.as_bytes()), "{shown}");
        for line in ["show", "explain", "script"].map(|verb| format!("{verb} {job}")) {
            let said = self.types("exp", &line).exits(0);
            assert!(!holds(said.stdout.as_bytes()), "{line}");
        }
        self.shows_it_in_no_browser(job);
    }

    /// Nor in anything that the page asks for.
    #[track_caller]
    fn shows_it_in_no_browser(&self, job: u32) {
        let made = self.types("exp", &format!("token create look-{job} --role admin")).exits(0);
        let token = made.stdout.trim().to_owned();
        let socket = self.path("page.sock");
        let serving = format!("serve --socket {}", socket.display());
        let _server = self.env.start_tpu(&serving, &[]);
        let asked = |path: &str| {
            let mut stream = UnixStream::connect(&socket).ok()?;
            let head =
                format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close");
            stream.write_all(format!("GET {path} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
            let mut said = Vec::new();
            stream.read_to_end(&mut said).unwrap();
            Some(said)
        };
        wait_until("it answers", || asked("/healthz").is_some());
        let one = format!("/api/v1/jobs/john-doe/{job}");
        let parts = ["", "/explain", "/timeline", "/jobfile", "/script", "/files", "/curve"];
        let of_one = parts.map(|part| format!("{one}{part}"));
        let all = ["/api/v1/jobs", "/api/v1/queue", "/api/v1/journal", "/api/v1/users"];
        for path in of_one.into_iter().chain(all.map(str::to_owned)) {
            let said = asked(&path).unwrap();
            assert!(!holds(&said), "{path}: {}", String::from_utf8_lossy(&said));
            let is_answer = said.starts_with(b"HTTP/1.1 200") || path.ends_with("/curve");
            assert!(is_answer, "{path}: {}", String::from_utf8_lossy(&said));
        }
        std::fs::remove_file(&socket).unwrap_or_default();
        drop(self.types("exp", &format!("token revoke look-{job}")).exits(0));
    }
}

fn holders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holders(&path));
        } else if kind.is_file() && holds(&std::fs::read(&path).unwrap_or_default()) {
            found.push(path);
        }
    }
    found
}

fn holds(bytes: &[u8]) -> bool {
    // What is behind it JSON writes in another way.
    memchr::memmem::find(bytes, b"c4nary'x").is_some()
}

/// Processes in whose arguments it is.
fn in_arguments() -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|entry| entry.path().join("cmdline"));
    lines.filter(|line| std::fs::read(line).is_ok_and(|bytes| holds(&bytes))).collect()
}

/// Task 12.
#[test]
fn a_command_sees_what_the_shell_exports_when_it_is_typed() {
    let mut newcomer = newcomer();
    let all = [
        ("FOO", "1"),
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("HF_HOME", "/x"),
        ("WANDB_MODE", "offline"),
        ("LD_LIBRARY_PATH", "/y"),
    ];
    newcomer.exports(&all);
    let names = all.map(|(name, _)| name).join(" ");
    let lines = all.map(|(name, value)| format!("{name}={value}\n")).concat();
    assert_eq!(newcomer.sees(1, &names), lines);
    newcomer.exports(&[("FOO", "2")]);
    newcomer.env.unset("WANDB_MODE");
    assert_eq!(newcomer.sees(2, "FOO WANDB_MODE"), "FOO=2\nWANDB_MODE=None\n");
    // What has started the windows is another shell by now.
    newcomer.exports(&[("LATER", "3")]);
    assert_eq!(newcomer.sees(3, "FOO LATER"), "FOO=2\nLATER=3\n");
}

/// Names that mean something to whatever starts the command, or that no bash can set.
#[test]
fn a_variable_may_be_called_as_it_likes_and_stays_what_it_is() {
    let mut newcomer = newcomer();
    let all = [
        ("dir", "/nowhere"),
        ("state", "x"),
        ("tpu", "false"),
        ("code", "9"),
        ("token", "t"),
        ("pair", "y"),
        ("names", "n"),
        ("SHELLOPTS", "errexit:noexec"),
        ("IFS", "l"),
        ("UID", "7"),
        ("POSIXLY_CORRECT", "1"),
        ("a.b-c", "no name of a shell"),
        ("http_proxy", "http://127.0.0.1:1"),
        ("TPU_NAME", "lab's own"),
        ("EMPTY", ""),
    ];
    newcomer.exports(&all);
    newcomer.exports(&[("TMUX_PANE", "%77"), ("SSH_TTY", "/dev/pts/99"), ("TPU_JOB", "bob/9")]);
    // The run of the job in which one types is that job's.
    newcomer.exports(&[("WANDB_RUN_ID", "k3x9"), ("WANDB_RESUME", "allow")]);
    newcomer.file("exp/hostile.sh", "exit 99\n");
    newcomer.exports(&[("BASH_ENV", "hostile.sh")]);
    drop(newcomer.types("exp", "run local -q -- env").exits(0));
    let seen = newcomer.prints(1);
    for (name, value) in all.into_iter().chain([("BASH_ENV", "hostile.sh")]) {
        assert!(seen.lines().any(|line| line == format!("{name}={value}")), "{name}: {seen}");
    }
    assert!(!seen.contains("k3x9"), "{seen}");
    assert!(!seen.contains("%77") && !seen.contains("pts/99"), "{seen}");
    assert!(seen.contains("TPU_JOB=john-doe/1\n"), "{seen}");
    // Its words are its own.
    let words = "printf %s\\n -w=7 --json --user x -- --data y";
    drop(newcomer.types("exp", &format!("run local -q -- {words}")).exits(0));
    assert_eq!(newcomer.prints(2), "-w=7\n--json\n--user\nx\n--\n--data\ny\n");
    // What is no program is complained of as a shell does it.
    for (job, words, why) in
        [(3, "no-such-program", "command not found"), (4, "./e.py", "ermission")]
    {
        drop(newcomer.types("exp", &format!("run local -q -- {words}")).exits(0));
        drop(newcomer.types("exp", &format!("wait {job}")).exits(1));
        drop(newcomer.types("exp", &format!("logs {job}")).exits(0).says(&[why]));
    }
}

#[test]
fn a_command_knows_where_it_was_typed() {
    let newcomer = newcomer();
    newcomer.file("other/e.py", E);
    let there = format!("TPU_SUBMIT_DIR={}\n", newcomer.path("other").display());
    let typed = "-C ../exp -- python3 e.py TPU_SUBMIT_DIR";
    drop(newcomer.types("other", &format!("run local -q {typed}")).exits(0));
    assert_eq!(newcomer.prints(1), there);
    drop(newcomer.types("exp", "rerun 1 --force").exits(0));
    assert_eq!(newcomer.prints(2), there);
    drop(newcomer.types("other", &format!("submit local --hold {typed}")).exits(0));
    drop(newcomer.types("exp", "unhold 3").exits(0));
    assert_eq!(newcomer.prints(3), there);
    let file = "target: local\ncommand: python3 e.py TPU_SUBMIT_DIR\n";
    newcomer.file("other/job.yaml", file);
    drop(newcomer.types("other", "run job.yaml -q").exits(0));
    assert_eq!(newcomer.prints(4), there);
}

#[test]
fn a_restart_has_what_the_first_start_had_unless_it_is_told_otherwise() {
    let mut newcomer = newcomer();
    newcomer.exports(&[("FOO", "1"), ("HF_TOKEN", CANARY)]);
    let seen = newcomer.sees(1, "FOO HF_TOKEN BAR");
    assert_eq!(seen, format!("FOO=1\nHF_TOKEN={CANARY}\nBAR=None\n"));
    newcomer.exports(&[("FOO", "2"), ("BAR", "3")]);
    newcomer.env.unset("HF_TOKEN");
    let again = newcomer.types("exp", "rerun 1 --force").exits(0);
    drop(again.says(&["BAR, FOO, HF_TOKEN differ now", "--env-now"]));
    assert_eq!(newcomer.prints(2), seen);
    let again = newcomer.types("exp", "rerun 2 --force --env-now").exits(0);
    assert!(!again.stderr.contains("differ"), "{}", again.stderr);
    assert_eq!(newcomer.prints(3), "FOO=2\nHF_TOKEN=None\nBAR=3\n");
    drop(newcomer.types("exp", "rerun 3 --force --clean-env").exits(0));
    assert_eq!(newcomer.prints(4), "FOO=None\nHF_TOKEN=None\nBAR=None\n");
    drop(newcomer.types("exp", "run local -q --clean-env -- python3 e.py FOO").exits(0));
    assert_eq!(newcomer.prints(5), "FOO=None\n");
}

/// Fresh windows or those of another shell; at once or from the queue.
#[test]
fn what_a_shell_exports_is_for_its_command_and_shows_nowhere() {
    for is_fresh in [true, false] {
        let mut newcomer = newcomer();
        if !is_fresh {
            drop(newcomer.types("exp", "run local -q -- true").exits(0));
        }
        let first = if is_fresh { 1 } else { 2 };
        newcomer.exports(&[("A_VALUE", CANARY), ("A_TOKEN", CANARY)]);
        let until = newcomer.path("go");
        let waits = format!("until [ -e {} ]; do sleep 0.1; done", until.display());
        newcomer.file("exp/s.sh", &format!("echo ${{#A_VALUE}} ${{#A_TOKEN}}; {waits}; exit 3\n"));
        drop(newcomer.types("exp", "run local -q -- bash s.sh").exits(0));
        drop(newcomer.types("exp", "submit local --hold -- bash s.sh").exits(0));
        let lengths = format!("{0} {0}\n", CANARY.len());
        let has_begun = |newcomer: &Newcomer, job: u32| {
            let line = format!("logs {job}");
            wait_until("it has begun", || newcomer.types("exp", &line).stdout == lengths);
        };
        has_begun(&newcomer, first);
        let own = format!("jobs/john-doe/{first}/shell");
        newcomer.shows_it_nowhere_but(first, &[&own, "environments/"]);
        // It begins for somebody who has none of it.
        newcomer.env.unset("A_VALUE");
        newcomer.env.unset("A_TOKEN");
        let second = first + 1;
        drop(newcomer.types("exp", &format!("unhold {second}")).exits(0));
        has_begun(&newcomer, second);
        let next = format!("jobs/john-doe/{second}/shell");
        newcomer.shows_it_nowhere_but(first, &[&own, &next]);
        write_file(&until, "");
        for job in [first, second] {
            drop(newcomer.types("exp", &format!("wait {job}")).exits(1));
        }
        drop(newcomer.types("exp", "clean -y").exits(0));
        assert_eq!(newcomer.holders(), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_is_taken_out_of_the_queue_leaves_nothing_of_it() {
    let mut newcomer = newcomer();
    newcomer.exports(&[("A_VALUE", CANARY)]);
    drop(newcomer.types("exp", "submit local --hold --name a[1-2] -- true").exits(0));
    assert_eq!(newcomer.holders().len(), 1, "those of one line share it");
    drop(newcomer.types("exp", "dequeue a1").exits(0));
    assert_eq!(newcomer.holders().len(), 1);
    drop(newcomer.types("exp", "dequeue a2").exits(0));
    assert_eq!(newcomer.holders(), Vec::<PathBuf>::new());
}

/// What an earlier version has put into the queue has its variables in the entry.
#[test]
fn an_entry_of_an_earlier_version_begins_with_what_it_has() {
    let newcomer = newcomer();
    drop(newcomer.types("exp", "submit local --hold -- python3 e.py TPU_NAME").exits(0));
    let path = newcomer.path(".local/share/tpu/data.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut data: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kept = data.pointer_mut("/queue/environments").unwrap();
    let search = newcomer.env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap();
    *kept = serde_json::json!([[format!("PATH={search}"), "TPU_NAME=then"]]);
    write_file(&path, &data.to_string());
    drop(newcomer.types("exp", "unhold 1").exits(0));
    assert_eq!(newcomer.prints(1), "TPU_NAME=then\n");
}

/// Task 28, and the other half of it: what was given out outranks what the shell says.
#[test]
fn gpus_that_are_given_out_outrank_those_of_the_shell() {
    let mut newcomer = newcomer();
    drop(newcomer.types("exp", "run local -q -- true").exits(0));
    drop(newcomer.types("exp", "hosts set local --gpus 2").exits(0));
    newcomer.exports(&[("CUDA_VISIBLE_DEVICES", "1")]);
    let line = "run local gpus=1 -q -- python3 e.py CUDA_VISIBLE_DEVICES";
    let answer = newcomer.types("exp", line).exits(0);
    drop(answer.says(&["CUDA_VISIBLE_DEVICES of the shell does not count: john-doe/2 has GPU 0"]));
    assert_eq!(newcomer.prints(2), "CUDA_VISIBLE_DEVICES=0\n");
    // Nor do those of the attempt before it.
    assert_eq!(newcomer.sees(3, "CUDA_VISIBLE_DEVICES"), "CUDA_VISIBLE_DEVICES=1\n");
    drop(newcomer.types("exp", "rerun 2 --force").exits(0));
    assert_eq!(newcomer.prints(4), "CUDA_VISIBLE_DEVICES=0\n");
}

#[test]
fn a_variable_can_be_named_and_must_have_a_value() {
    let mut newcomer = newcomer();
    newcomer.exports(&[("A_VALUE", "1")]);
    let typed = "--clean-env --env A_VALUE --env OTHER=x=y -- python3 e.py A_VALUE OTHER";
    drop(newcomer.types("exp", &format!("run local -q {typed}")).exits(0));
    assert_eq!(newcomer.prints(1), "A_VALUE=1\nOTHER=x=y\n");
    newcomer.exports(&[("A_VALUE", "2")]);
    drop(newcomer.types("exp", "rerun 1 --force").exits(0));
    assert_eq!(newcomer.prints(2), "A_VALUE=1\nOTHER=x=y\n");
    drop(newcomer.types("exp", "rerun 2 --force --env-now").exits(0));
    assert_eq!(newcomer.prints(3), "A_VALUE=2\nOTHER=x=y\n");
    drop(newcomer.types("exp", &format!("submit local --hold {typed}")).exits(0));
    newcomer.env.unset("A_VALUE");
    drop(newcomer.types("exp", "unhold 4").exits(0));
    assert_eq!(newcomer.prints(4), "A_VALUE=2\nOTHER=x=y\n");
    drop(newcomer.types("exp", "rerun 4 --force --clean-env").exits(0));
    assert_eq!(newcomer.prints(5), "A_VALUE=2\nOTHER=x=y\n");
    let refused = newcomer.types("exp", "run local -q --env NOT_THERE -- true").exits(2);
    drop(refused.says(&["does not export it", "--env NOT_THERE=VALUE"]));
    drop(newcomer.types("exp", "run local -q --env TPU_JOB=1 -- true").exits(2));
}
