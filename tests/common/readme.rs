//! The examples of README.md and of the pages of docs/: their blocks of the kind `console`, in the order of the text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc;

use super::env::{TPU, TestEnv};
use super::tmux::{write_file, write_script};

/// The pages whose examples a test types; `cli::links` finds those that no test types.
pub(crate) const TYPED: &[&str] = &[
    "README.md",
    "docs/checkpoints.md",
    "docs/first-steps.md",
    "docs/from-the-original.md",
    "docs/hosts.md",
    "docs/job-files.md",
    "docs/kubernetes.md",
    "docs/queue.md",
    "docs/restarts.md",
    "docs/scripts.md",
    "docs/shared.md",
    "docs/slurm.md",
    "docs/tpu.md",
];

/// What `python3` does on the pages: a training with checkpoints, and a program that fails.
pub(crate) const PYTHON: &str = r#"
case "$1" in
  -c) echo 'Traceback (most recent call last):
  File "<string>", line 1, in <module>
IndexError: list index out of range' >&2; exit 1 ;;
esac
echo $$ >"$TPU_LOG_DIR/pid"
step=0
[ -z "$TPU_CHECKPOINT" ] || step=30
while [ "$step" -lt 300 ]; do
  step=$((step + 1))
  echo "step $step/300 loss=0.625"
  mkdir -p "$TPU_LOG_DIR/checkpoint_$step" && echo weights >"$TPU_LOG_DIR/checkpoint_$step/data"
  sleep 0.2
done
"#;

/// A page whose examples a test types, in a home of its own.
pub(crate) struct Page {
    /// Path relative to the repository, as in `docs/slurm.md`.
    path: &'static str,
    text: String,
}

/// A command and what is printed beneath it.
pub(crate) struct Example {
    /// Where the command is, as in `docs/slurm.md:12`.
    pub(crate) place: String,
    /// The command.
    pub(crate) command: String,
    /// What is remarked behind it.
    pub(crate) remark: String,
    /// The lines beneath it.
    pub(crate) printed: Vec<String>,
}

impl Page {
    /// Reads a page of [`TYPED`], which has at least `examples` of them.
    #[track_caller]
    pub(crate) fn with(examples: usize, path: &'static str) -> Self {
        assert!(TYPED.contains(&path), "{path} is not in the list of pages that are typed");
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let page = Self { path, text: std::fs::read_to_string(whole).unwrap() };
        let found = page.examples().len();
        assert!(found >= examples, "{path} has {found} examples");
        page
    }

    /// All examples.
    pub(crate) fn examples(&self) -> Vec<Example> {
        let mut examples: Vec<Example> = Vec::new();
        let mut inside = false;
        for (number, line) in self.text.lines().enumerate() {
            if let Some(fence) = line.strip_prefix("```") {
                inside = fence == "console";
            } else if inside && let Some(command) = line.strip_prefix("$ ") {
                let (command, remark) = command.split_once("  # ").unwrap_or((command, ""));
                let (command, remark) = (command.trim().to_owned(), remark.trim().to_owned());
                let place = format!("{}:{}", self.path, number + 1);
                examples.push(Example { place, command, remark, printed: Vec::new() });
            } else if inside {
                let last = examples.last_mut().expect("a block begins with a command");
                last.printed.push(line.to_owned());
            }
        }
        examples
    }

    /// The files that its blocks show, each under the name in its first line (`# scan.yaml`).
    pub(crate) fn shown_files(&self) -> Vec<(&str, &str)> {
        let blocks = self.text.split("```").filter_map(|block| {
            let (kind, rest) = block.split_once("\n# ")?;
            ["yaml", "python"].contains(&kind).then_some(rest)
        });
        let named = |block| str::split_once(block, '\n');
        blocks.filter_map(named).filter(|(name, _)| !name.contains(' ')).collect()
    }
}

/// What may differ: numbers, ages, process ids; blanks at the ends of lines; and where the test is.
pub(crate) fn plain(text: &str, home: &str) -> String {
    let numbers = Regex::new(r"\b\d+(\.\d+)?[smh]?\b").unwrap();
    let text = text.replace(home, "");
    let text = Regex::new("(?m)^logs: .*$").unwrap().replace_all(&text, "logs: …").into_owned();
    let copies = Regex::new("(?m), copied to .*$").unwrap();
    let text = copies.replace_all(&text, ", copied to …").into_owned();
    // Ages and speeds come and go with the moment.
    let ages = Regex::new(r" · (\d+(s|m|h)|\d+m \d\ds|[\d.]+ it/s)").unwrap();
    let phases = Regex::new(r"(running|starting) · (compiling|staging|initializing) ").unwrap();
    // What runs is asked how long it will, which it says when it does.
    let outlooks = Regex::new(r"~\d+[smhd]( \d+[mh])?").unwrap();
    let text = outlooks.replace_all(&text, "?").into_owned();
    let text = phases.replace_all(&text, "$1 ").into_owned();
    let text = ages.replace_all(&text, "").into_owned();
    // Part of what a cluster calls a job is nobody else's.
    let called = Regex::new(r"(where it is called [a-z]+)-[0-9a-z]{8}\b").unwrap();
    let text = called.replace_all(&text, "$1").into_owned();
    let text = numbers.replace_all(&text, "N").into_owned();
    // Whose job it is, is said in a hint only to whom nobody knows.
    let owners = Regex::new("(tpu [a-z]+ N) alice").unwrap();
    let text = owners.replace_all(&text, "$1").into_owned();
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// A newcomer who types what a page shows, in a directory with code of his own.
pub(crate) struct Newcomer {
    pub(crate) env: TestEnv,
    pub(crate) home: String,
    pub(crate) code: PathBuf,
    /// The first place where programs are looked for.
    pub(crate) bin: PathBuf,
}

impl Newcomer {
    /// With nothing but the program and the example's code; `ssh` knows what this configuration says.
    pub(crate) fn new(ssh_config: &str) -> Self {
        let mut env = TestEnv::new();
        let home = env.path("root").to_str().unwrap().to_owned();
        let code = PathBuf::from(format!("{home}/home/alice/digits"));
        std::fs::create_dir_all(&code).unwrap();
        write_file(&code.join("train.py"), include_str!("../../assets/example/train.py"));
        let bin = env.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(TPU, bin.join("tpu")).unwrap();
        let config = env.path("ssh-config");
        write_file(&config, ssh_config);
        write_script(
            &bin.join("ssh"),
            &format!("exec /usr/bin/ssh -F {} \"$@\"", config.display()),
        );
        env.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        for (name, value) in [("USER", "alice"), ("LOGNAME", "alice")] {
            env.set(name, value);
        }
        env.set("HOME", format!("{home}/home/alice"));
        std::fs::remove_file(env.data_path()).unwrap();
        Self { env, home, code, bin }
    }

    /// Types a command in the directory of the code; what is printed.
    #[track_caller]
    pub(crate) fn typed(&self, command: &str) -> String {
        let spawn = self.env.spawn_program("bash", &["-c", command]).cwd(&self.code);
        let output = proc::run(&spawn).unwrap();
        let text = format!("{}\n{}", output.text(), output.complaint());
        assert!(output.status.success(), "{command}\n{text}");
        text
    }

    /// Types an example as `command`, and again if it is a look, until it prints what the page shows.
    #[track_caller]
    pub(crate) fn follow(&self, example: &Example, command: &str) {
        let Example { place, printed, .. } = example;
        let wanted = plain(&printed.join("\n"), &self.home);
        let looks = ["tpu check", "tpu explain"];
        let is_look = looks.iter().any(|look| command.starts_with(look)) || command == "tpu hosts";
        let clock = SystemClock::new();
        loop {
            let said = plain(&self.typed(command), &self.home);
            if printed.is_empty() || said == wanted {
                return;
            }
            let is_late = clock.monotonic() > Duration::from_secs(60);
            let differs = format!("{place}: {command}\nshows\n{wanted}\nand printed\n{said}");
            assert!(is_look && !is_late, "{differs}");
            clock.sleep(Duration::from_millis(20));
        }
    }
}
