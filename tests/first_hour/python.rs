//! Task 13: the Python of the shell is the Python of the job, in a venv and in an environment of conda.

use std::io::Write as _;
use std::path::PathBuf;

use tpu_system::sys::proc::{self, Spawn};

use super::Newcomer;
use crate::common::tmux::{write_file, write_script};

/// Prints where the Python is that runs it.
const PREFIX: [&str; 4] = ["--", "python", "-c", "import sys; print(sys.prefix)"];

/// What conda's own functions do here, as far as a job can tell.
const FUNCTIONS: &str = r#"conda() {
    [ "$1" = activate ] || { command conda "$@"; return; }
    export CONDA_PREFIX="${CONDA_EXE%/bin/conda}/envs/$2" CONDA_DEFAULT_ENV=$2
    export PATH=$CONDA_PREFIX/bin:$PATH
}
"#;

impl Newcomer {
    /// An environment with a Python of its own; none where this machine has no module for that, which is said.
    fn python_at(&self, below: &str) -> Option<PathBuf> {
        let dir = self.path(below);
        let spawn = Spawn::new("python3").args(["-m", "venv", "--without-pip"]).arg(&dir);
        if proc::run(&spawn).is_ok_and(|output| output.status.success()) {
            return Some(dir);
        }
        drop(writeln!(std::io::stderr(), "skipped: there is no python3 with venv"));
        None
    }

    fn comes_first(&mut self, dir: &str) {
        let search = self.env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap();
        let search = format!("{}:{search}", self.path(dir).display());
        self.env.set("PATH", search);
    }

    /// A conda with the environment `x`, in a shell that has run `conda init`: it exports what that exports.
    fn with_conda(&mut self) -> Option<PathBuf> {
        let prefix = self.python_at("conda/envs/x")?;
        self.file("conda/etc/profile.d/conda.sh", FUNCTIONS);
        self.dir("conda/bin");
        let refusal = "echo \"CondaError: Run 'conda init' before 'conda activate'\" >&2; exit 1";
        write_script(&self.path("conda/bin/conda"), refusal);
        let exe = self.path("conda/bin/conda");
        self.env.set("CONDA_EXE", exe.as_os_str());
        self.env.set("CONDA_SHLVL", "0");
        self.comes_first("conda/bin");
        Some(prefix)
    }

    #[track_caller]
    fn runs(&self, words: &[&str]) {
        let words = [["run", "local", "-q"].as_slice(), words].concat();
        drop(self.env.output(&self.env.spawn(&words).cwd(self.path("exp"))).exits(0));
    }
}

#[test]
fn an_active_venv_is_that_of_the_job() {
    let mut newcomer = Newcomer::new();
    let Some(prefix) = newcomer.python_at("venv") else { return };
    newcomer.env.set("VIRTUAL_ENV", prefix.as_os_str());
    newcomer.comes_first("venv/bin");
    newcomer.runs(&PREFIX);
    assert_eq!(newcomer.prints(1), format!("{}\n", prefix.display()));
    // So it is in a file, and for what follows a job from another shell.
    newcomer.file(
        "exp/job.yaml",
        "target: local\ncommand: [python, -c, import sys; print(sys.prefix)]\n",
    );
    drop(newcomer.types("exp", "run job.yaml -q").exits(0));
    assert_eq!(newcomer.prints(2), format!("{}\n", prefix.display()));
    newcomer.env.unset("VIRTUAL_ENV");
    newcomer.env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    drop(newcomer.types("exp", "rerun 1 --force").exits(0));
    assert_eq!(newcomer.prints(3), format!("{}\n", prefix.display()));
}

#[test]
fn an_active_environment_of_conda_is_that_of_the_job() {
    let mut newcomer = Newcomer::new();
    let Some(prefix) = newcomer.with_conda() else { return };
    newcomer.env.set("CONDA_PREFIX", prefix.as_os_str());
    newcomer.env.set("CONDA_DEFAULT_ENV", "x");
    newcomer.env.set("CONDA_SHLVL", "1");
    newcomer.comes_first("conda/envs/x/bin");
    newcomer.runs(&PREFIX);
    assert_eq!(newcomer.prints(1), format!("{}\n", prefix.display()));
    newcomer.runs(&["--", "sh", "-c", "echo $CONDA_PREFIX $CONDA_DEFAULT_ENV"]);
    assert_eq!(newcomer.prints(2), format!("{} x\n", prefix.display()));
}

#[test]
fn a_command_of_bash_activates_an_environment_of_conda() {
    let mut newcomer = Newcomer::new();
    let Some(prefix) = newcomer.with_conda() else { return };
    let prefix = format!("{}\n", prefix.display());
    let text = "conda activate x && python -c 'import sys; print(sys.prefix)'";
    newcomer.runs(&["--", "bash", "-c", text]);
    assert_eq!(newcomer.prints(1), prefix);
    newcomer.file("exp/run.sh", text);
    newcomer.runs(&["--", "bash", "-eu", "run.sh"]);
    assert_eq!(newcomer.prints(2), prefix);
    newcomer.file("exp/job.yaml", &format!("target: local\ncommand: {text}\n"));
    drop(newcomer.types("exp", "run job.yaml -q").exits(0));
    assert_eq!(newcomer.prints(3), prefix);
    // What it starts has what the shell exported, and nothing else.
    newcomer.runs(&["--", "bash", "-c", "echo ${BASH_ENV-none}; env | grep -c BASH_ENV"]);
    drop(newcomer.types("exp", "wait 4").exits(1));
    assert_eq!(newcomer.types("exp", "logs 4").exits(0).stdout, "none\n0\n");
    newcomer.runs(&["--", "env"]);
    assert!(!newcomer.prints(5).contains("BASH_ENV"));
    // A shell may have a BASH_ENV of its own.
    let own = newcomer.path("own.sh");
    write_file(&own, "echo own\n");
    newcomer.env.set("BASH_ENV", own.as_os_str());
    newcomer.runs(&["--", "bash", "-c", "echo ${BASH_ENV##*/}"]);
    assert_eq!(newcomer.prints(6), "own\nown.sh\n");
    // Nor does a conda that is gone keep a command from its work.
    newcomer.env.unset("BASH_ENV");
    newcomer.env.set("CONDA_EXE", "/nowhere/bin/conda");
    newcomer.runs(&["--", "bash", "-c", "echo here"]);
    assert_eq!(newcomer.prints(7), "here\n");
}
