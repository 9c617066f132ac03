//! The examples of the README: its blocks of the kind `console`, in the order of the text.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc;

use super::env::{TPU, TestEnv};
use super::tmux::{write_file, write_script};

const README: &str = include_str!("../../README.md");

/// The section whose examples need a cluster.
pub(crate) const SLURM: &str = "On a Slurm cluster";

/// The section whose examples need a namespace of a Kubernetes cluster.
pub(crate) const KUBERNETES: &str = "On Kubernetes";

/// The section whose examples need machines with GPUs.
pub(crate) const HOSTS: &str = "On your own machines";

/// The section whose examples begin in a lab of their own.
pub(crate) const QUEUE: &str = "Many runs";

/// The section whose examples submit files that stand in it.
pub(crate) const JOB_FILES: &str = "A job as a file";

/// What `python3` does in the README: a training with checkpoints, and a program that fails.
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

/// A command and what is printed beneath it.
pub(crate) struct Example {
    /// The line of the README in which the command stands.
    pub(crate) line: usize,
    /// What is behind `## ` above it.
    pub(crate) section: &'static str,
    /// The command.
    pub(crate) command: String,
    /// The lines beneath it.
    pub(crate) printed: Vec<String>,
}

/// All of them.
pub(crate) fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut inside, mut section) = (false, "");
    for (number, line) in README.lines().enumerate() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = fence == "console";
        } else if let Some(title) = line.strip_prefix("## ") {
            section = title;
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            let command = command.split("  # ").next().unwrap_or(command).trim().to_owned();
            let printed = Vec::new();
            examples.push(Example { line: number + 1, section, command, printed });
        } else if inside {
            let last = examples.last_mut().expect("a block begins with a command");
            last.printed.push(line.to_owned());
        }
    }
    examples
}

/// The files that a block of the README shows, each under the name in its first line (`# scan.yaml`).
pub(crate) fn shown_files() -> Vec<(&'static str, &'static str)> {
    let blocks = README.split("```yaml\n# ").skip(1);
    let file = |block: &'static str| {
        let (text, _) = block.split_once("```").expect("a block ends");
        text.split_once('\n').expect("the name stands on a line of its own")
    };
    blocks.map(file).collect()
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
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// A newcomer who types what the README shows, in a directory with code of his own.
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

    /// Types an example as `command`, and again if it is a look, until it shows what the README shows.
    #[track_caller]
    pub(crate) fn follow(&self, example: &Example, command: &str) {
        let Example { line, printed, .. } = example;
        let wanted = plain(&printed.join("\n"), &self.home);
        let is_look = command.starts_with("tpu check") || command == "tpu hosts";
        let clock = SystemClock::new();
        loop {
            let said = plain(&self.typed(command), &self.home);
            if printed.is_empty() || said == wanted {
                return;
            }
            let is_late = clock.monotonic() > Duration::from_secs(60);
            let differs =
                format!("README.md:{line}: {command}\nshows\n{wanted}\nand printed\n{said}");
            assert!(is_look && !is_late, "{differs}");
            clock.sleep(Duration::from_millis(20));
        }
    }
}
