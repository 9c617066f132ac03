//! Real programs from the package registry, each run as a native job and by a script that ends in
//! `| tee log`: what `tpu` says of them is what a person would.
//!
//! `tests/real/programs.toml` says what each is to be called, by which words, with which numbers.
//! `./x real` installs the packages and runs them; without those the test says that it is skipped. What they
//! have printed is kept in `tests/data/real` (`./x real --keep`), and is read again by every `./x test`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tpu_core::classify::{Classifier, Input, after_launch};
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::ErrorKind;
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_at_most;

/// The directory with the packages, made by `./x real`.
const VENV: &str = "TPU_REAL_VENV";
/// Set if what the programs print is to be kept.
const KEEP: &str = "TPU_REAL_KEEP";
/// Set to a part of a name: only those programs run.
const ONLY: &str = "TPU_REAL_ONLY";

/// The longest that a program may take, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(400);
/// Bytes of a text that are kept.
const KEPT: usize = 12_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Program>,
}

/// One program.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// What is typed: words, or a line for bash.
    run: String,
    /// How it ends, where that is always the same.
    code: Option<i32>,
    /// What it is to be called: a kind of error, or `finished`.
    kind: String,
    /// The evidence begins with it.
    #[serde(default)]
    why: String,
    /// The newest numbers; one that is not named must not be shown.
    #[serde(flatten)]
    numbers: Numbers,
    /// What differs where a script hides how it ended.
    script: Option<Hidden>,
    /// What it may be called as well, where a race decides what it prints.
    #[serde(default)]
    other: Vec<Hidden>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hidden {
    kind: String,
    #[serde(default)]
    why: String,
}

#[derive(Clone, Default, PartialEq, Deserialize)]
struct Numbers {
    epoch: Option<Number>,
    epochs: Option<Number>,
    step: Option<Number>,
    total: Option<Number>,
    loss: Option<Number>,
}

/// A number that is known, or `"any"`: some number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Number {
    Exactly(f64),
    Named(String),
}

/// How a program is started.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Native,
    Script,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Native, Self::Script];

    fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Script => "script",
        }
    }
}

impl Program {
    fn kind(&self, mode: Mode) -> &str {
        self.hidden(mode).map_or(&self.kind, |hidden| &hidden.kind)
    }

    fn why(&self, mode: Mode) -> &str {
        self.hidden(mode).map_or(&self.why, |hidden| &hidden.why)
    }

    fn hidden(&self, mode: Mode) -> Option<&Hidden> {
        self.script.as_ref().filter(|_| mode == Mode::Script)
    }

    /// Whether it may be called so, with this evidence.
    fn is_called(&self, mode: Mode, kind: &str, line: &str) -> bool {
        let other = |other: &Hidden| other.kind == kind && line.starts_with(&other.why);
        kind == self.kind(mode) && line.starts_with(self.why(mode)) || self.other.iter().any(other)
    }

    fn kept(&self, mode: Mode) -> PathBuf {
        dir("data/real").join(format!("{}.{}.txt", self.name, mode.word()))
    }

    /// The words behind `--`: a line that only a shell understands goes to one.
    fn words(&self) -> Vec<String> {
        if self.run.contains(['|', '&', ';', '<', '>', '\'', '"', '$', '=']) {
            return ["bash", "-c", &self.run].map(str::to_owned).to_vec();
        }
        self.run.split_whitespace().map(str::to_owned).collect()
    }

    /// The lab's script: the program's own code is lost in the pipe.
    fn staging(&self) -> String {
        let claim = if self.kind == "finished" { "tpu finish-job \"$TPU_JOB\"\n" } else { "" };
        format!("( {} ) 2>&1 | tee \"$HOME/log.txt\"\n{claim}", self.run)
    }

    /// What is wrong in numbers that are shown, in words.
    fn wrong_numbers(&self, shown: &Value) -> String {
        let Numbers { epoch, epochs, step, total, loss } = &self.numbers;
        let fields = [
            ("epoch", epoch),
            ("epochs", epochs),
            ("step", step),
            ("total", total),
            ("loss", loss),
        ];
        let mut wrong = String::new();
        for (name, wanted) in fields {
            let found = shown[name].as_f64();
            let right = match (wanted, found) {
                (None, None) | (Some(Number::Named(_)), Some(_)) => true,
                (Some(Number::Exactly(wanted)), Some(found)) => {
                    (wanted - found).abs() <= wanted.abs() * 1e-3 + 1e-9
                }
                _ => false,
            };
            if !right {
                writeln!(wrong, "  {name}: wanted {wanted:?}, found {found:?}").unwrap();
            }
        }
        wrong
    }
}

/// A variable of this process that says something.
fn asked(name: &str) -> Option<String> {
    Env::read().non_empty(name).map(str::to_owned)
}

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn programs() -> Vec<Program> {
    let text = std::fs::read_to_string(dir("real/programs.toml")).unwrap();
    let table: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    table.program
}

/// Runs every program in both modes in real windows.
#[test]
fn programs_are_called_what_a_person_would() {
    let Some(venv) = asked(VENV) else {
        println!("skipped: the packages are not installed (./x real does that, in minutes)");
        return;
    };
    let only = asked(ONLY).unwrap_or_default();
    let left: Vec<Program> =
        programs().into_iter().filter(|program| program.name.contains(&only)).rev().collect();
    assert!(!left.is_empty(), "no program has {only:?} in its name");
    let left = Mutex::new(left);
    let wrong = Mutex::new(String::new());
    // A program waits for most of its time; so many are run at once.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(program) = left.lock().unwrap().pop() else { return };
                    for mode in Mode::ALL {
                        let said = run(&program, mode, Path::new(&venv));
                        let verdict = if said.is_empty() { "right" } else { "WRONG" };
                        println!("{verdict}  {}, {}", program.name, mode.word());
                        wrong.lock().unwrap().push_str(&said);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Runs a program as a job; says what is shown wrong of it.
fn run(program: &Program, mode: Mode, venv: &Path) -> String {
    let mut env = TestEnv::new();
    let path = asked("PATH").unwrap_or_default();
    env.set("PATH", format!("{}:{path}", venv.join("bin").display()));
    for (name, value) in [
        ("TPU_USER", "alice"),
        ("WANDB_MODE", "offline"),
        ("JAX_PLATFORMS", "cpu"),
        ("HF_HUB_OFFLINE", "1"),
        ("OMP_NUM_THREADS", "1"),
    ] {
        env.set(name, value);
    }
    copy(&dir("real/programs"), &env.path("code-alice"));
    let mut words: Vec<OsString> = ["run", "local", "alice", "--json"].map(OsString::from).into();
    if mode == Mode::Native {
        words.push("--".into());
        words.extend(program.words().into_iter().map(OsString::from));
    } else {
        env.code("alice", "staging.sh", &program.staging());
    }
    let launched = env.tpu_words(&words).exits(0).json();
    let window = launched["launched"]["window"].as_u64().unwrap();
    let job = wait_at_most(PATIENCE, &format!("the end of {}", program.name), || {
        let job = env.job("alice", window);
        let over = matches!(job["status"].as_str(), Some("finished" | "error"));
        over.then_some(job)
    });
    let seen = env.tpu("check alice --json").exits(0).json();
    let view = seen["jobs"].as_array().unwrap().iter().find(|job| job["window"] == window).unwrap();
    let pane = pane(&env, window);
    if asked(KEEP).is_some() {
        let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap_or_default();
        keep(
            &program.kept(mode),
            &pane,
            token,
            &[(env.root(), "/home/user"), (&venv.display().to_string(), "/home/user/venv")],
        );
    }
    let found = view["error"].as_str().or(view["status"].as_str()).unwrap_or_default();
    let line = view["evidence"]["line"].as_str().unwrap_or_default();
    let mut wrong = program.wrong_numbers(&view["progress"]);
    let by = view["evidence"]["rule"].as_str().unwrap_or_default();
    if !program.is_called(mode, found, line) {
        let (kind, why) = (program.kind(mode), program.why(mode));
        writeln!(wrong, "  wanted {kind}: {why:?}\n  found  {found}: {line:?} ({by})").unwrap();
    }
    let code = program.code.or((program.kind == "finished").then_some(0));
    if mode == Mode::Native && code.is_some_and(|code| view["exit_code"] != code) {
        writeln!(wrong, "  it ended with {}, not {code:?}", view["exit_code"]).unwrap();
    }
    if wrong.is_empty() {
        return wrong;
    }
    let lines: Vec<&str> = pane.trim_end().lines().collect();
    let tail = lines[lines.len().saturating_sub(25)..].join("\n    ");
    format!("{}, {}\n{wrong}    {tail}\n", program.name, mode.word())
}

/// What a window shows, rows that its edge had cut joined again.
fn pane(env: &TestEnv, window: u64) -> String {
    let id = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["capture-pane", "-p", "-J", "-S", "-", "-t", &id])
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Keeps the end of what a launch printed, without the names of this machine.
fn keep(path: &Path, pane: &str, token: &str, names: &[(&str, &str)]) {
    let text = after_launch(pane.as_bytes(), token);
    let mut text = String::from_utf8_lossy(text).into_owned();
    for (here, there) in names {
        text = text.replace(here, there);
    }
    if let Some(home) = std::env::home_dir() {
        text = text.replace(&*home.to_string_lossy(), "/home/user");
    }
    text = text.replace(rustix::system::uname().nodename().to_str().unwrap(), "t1v-n-5fe8a1-w-0");
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut size = 0;
    let fits = |line: &&&str| {
        size += line.len() + 1;
        size <= KEPT
    };
    let mut kept: Vec<&str> = text.iter().rev().take_while(fits).copied().collect();
    kept.reverse();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_file(path, &format!("{}\n", kept.join("\n").trim()));
}

/// What the programs have printed, read without running them: with how they ended, and without.
#[test]
fn what_they_have_printed_is_read_the_same() {
    let mut wrong = String::new();
    let mut count = 0;
    for program in programs() {
        for mode in Mode::ALL {
            let path = program.kept(mode);
            let Ok(text) = std::fs::read(&path) else {
                writeln!(wrong, "{} is missing: ./x real --keep", path.display()).unwrap();
                continue;
            };
            count += 1;
            let code = ended(&text).unwrap_or_default();
            let exit = match mode {
                Mode::Native => Exit::Program(code),
                Mode::Script => Exit::Script(code),
            };
            for exit in [Some(exit), None] {
                let input = Input { text: &text, exit, ..Input::default() };
                let verdict = Classifier::builtin().classify(&input);
                let failure = verdict.class.failure().map(ErrorKind::as_str);
                let shown = verdict.evidence.map(|e| e.line).unwrap_or_default();
                let mut said =
                    program.wrong_numbers(&serde_json::to_value(&verdict.progress).unwrap());
                let (kind, why) = (program.kind(mode), program.why(mode));
                let right = match kind {
                    "finished" | "unknown" => failure.is_none(),
                    // How it ended says it, and only that.
                    _ if why.starts_with("exit code") => exit.is_none() || failure == Some(kind),
                    _ => program.is_called(mode, failure.unwrap_or_default(), &shown),
                };
                if !right {
                    writeln!(said, "  wanted {kind}: {why:?}, found {failure:?}: {shown:?}")
                        .unwrap();
                }
                if !said.is_empty() {
                    writeln!(wrong, "{}, {}, {exit:?}\n{said}", program.name, mode.word()).unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count >= 50, "25 programs in both modes: {count}");
}

/// The code that the launcher has written under a program's text.
fn ended(text: &[u8]) -> Option<i32> {
    let text = String::from_utf8_lossy(text);
    let (_, said) = text.rsplit_once(" ended with exit code ")?;
    said.split_whitespace().next()?.parse().ok()
}
