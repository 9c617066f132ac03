//! An environment of conda: made of its file once, made anew when the file changes, and the command runs in it, byte for byte;
//! one that somebody else has made stays as it is.

use std::ffi::OsStr;

use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};

/// What conda does, as far as it is asked: environments are directories, and what is asked is noted.
const CONDA: &str = r#"#!/bin/bash
envs=$HOME/envs
case "$1 $2" in
"env list") for at in "$envs"/*/; do [ -d "$at" ] && echo "$(basename "$at")   ${at%/}"; done; true ;;
"env create" | "env update")
    echo "$2 $4 $(cat "$6")" >>"$HOME/asked"
    mkdir -p "$envs/$4/bin"
    printf '#!/bin/bash\necho "of %s"\n' "$4" >"$envs/$4/bin/tool"
    chmod +x "$envs/$4/bin/tool"
    ;;
"shell.posix activate") echo "export CONDA_PREFIX='$envs/$3' PATH='$envs/$3/bin':\"\$PATH\"" ;;
*) exit 2 ;;
esac
"#;

#[test]
fn a_command_runs_in_an_environment_that_is_made_of_its_file_once() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    std::fs::create_dir_all(env.path("bin")).unwrap();
    write_script(&env.path("bin/conda"), CONDA);
    let path = env.variables()[OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{path}", env.path("bin").display()));
    env.code("alice", "env.yaml", "first");
    let text = "target: local\nsetup: [{conda: {name: train, file: env.yaml}}]\n\
                command: |\n  tool\n  printf '%s|' \"it's\" '$HOME' \"$CONDA_PREFIX\"\n  exit 7\n";
    let file = env.path("code-alice/job.yaml");
    write_file(&file, text);
    let asked = || std::fs::read_to_string(env.path("asked")).unwrap_or_default();
    let run = |window: u64| {
        drop(env.tpu_words(&["run", file.to_str().unwrap(), "-q"]).exits(0));
        let job = env.wait_status(window, "error");
        let log = format!("{}/output.log", job["log_dir"].as_str().unwrap());
        (job, std::fs::read_to_string(log).unwrap().replace('\r', ""))
    };
    let (job, said) = run(1);
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 7, "its code is the command's: {said}");
    let prefix = env.path("envs/train").display().to_string();
    assert!(said.contains(&format!("of train\nit's|$HOME|{prefix}|")), "{said}");
    assert_eq!(asked(), "create train first\n");
    let (_, said) = run(2);
    assert!(said.contains("set-up: conda: is so already"), "{said}");
    assert_eq!(asked(), "create train first\n");
    env.code("alice", "env.yaml", "second");
    drop(run(3));
    assert_eq!(asked(), "create train first\nupdate train second\n");
    std::fs::remove_file(env.path("envs/train/.tpu-environment")).unwrap();
    let (job, said) = run(4);
    assert_eq!(job["error"], "setup", "{said}");
    assert!(said.contains("somebody else has made it"), "{said}");
}
