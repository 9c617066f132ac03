//! `tpu convert sbatch|cloudmesh`: what their files say as files of ours, which are read, and what has no counterpart with
//! its line.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

/// What a file becomes: its notes, and the file.
fn converted(env: &TestEnv, tool: &str, (name, text): (&str, &str)) -> (String, String) {
    write_file(&env.path(name), text);
    let out = env.tpu(&format!("convert {tool} {name}")).exits(0);
    let (notes, file): (Vec<&str>, Vec<&str>) =
        out.stdout.lines().partition(|line| line.starts_with("# "));
    (notes.join("\n"), file.join("\n") + "\n")
}

#[test]
fn a_batch_script_is_a_job_that_runs_as_it_did() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    std::fs::create_dir_all(env.path("there")).unwrap();
    let there = env.path("there").display().to_string();
    let script = format!(
        "#!/bin/bash\n#SBATCH --job-name=train --partition=local\n#SBATCH -D {there}\n#SBATCH --mail-user=a@b.c\n\n\
         name=\"it's $PWD\"\nsrun echo \"$name\" >told\n"
    );
    let (notes, file) = converted(&env, "sbatch", ("train.sh", &script));
    assert!(notes.contains("# --mail-user (line 4): left out"), "{notes}");
    assert!(notes.contains("# srun (line 7): taken out"), "{notes}");
    // The same on a target that is no partition.
    let file = file.replace("target:\n  slurm: local\n", "target: local\n");
    write_file(&env.path("train.yaml"), &file);
    drop(env.tpu("run train.yaml -q").exits(0));
    env.wait_status(1, "finished");
    let told = std::fs::read_to_string(env.path("there/told")).unwrap();
    assert_eq!(told, format!("it's {there}\n"), "{file}");
    write_file(&env.path("bad.sh"), "echo\n");
    drop(env.tpu("convert sbatch bad.sh").exits(2).says(&["bad.sh:1:1: it is no batch script"]));
    let json = env.tpu("convert sbatch train.sh --json").exits(0).json();
    assert_eq!(json["notes"][0]["line"], 2, "{json}");
}

const JOBSET: &str = "cloudmesh:
  default:
    user: me
  jobset:
    hosts:
      juliet:
        name: juliet
        ip: juliet.example.org
        cpus: '12'
        status: free
        job_counter: '0'
        max_jobs_allowed: '4'
    scheduler:
      policy: smart
    jobs:
      here:
        name: here
        directory: ./work
        ip: localhost
        input: ./data
        output: ./output/here
        status: ready
        gpu: ' '
        user: me
        arguments: -x 1
        executable: 'echo ''{{it}}'''
        shell: bash
      there:
        name: there
        ip: juliet.example.org
        status: ready
        executable: ls
        shell: zsh
        gpu: 0,2
      any:
        name: any
        status: ready
        executable: ls
      over:
        name: over
        status: done
        executable: ls
";

#[test]
fn the_jobs_of_a_jobset_are_jobs_of_one_file() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let (notes, file) = converted(&env, "cloudmesh", ("set.yaml", JOBSET));
    for said in [
        "name: here\ntarget: local\ndir: ~/work\ncode: none\n",
        "output: ./output/here/here.log\n",
        "target: juliet\n",
        "- zsh\n",
        "gpu:\n- 0\n- 2\n",
        "policy: smart\n",
    ] {
        assert!(file.contains(said), "{said}\n{file}");
    }
    assert_eq!(file.matches("---\n").count(), 2, "{file}");
    for told in [
        "over (line",
        "left out: by its state it is finished",
        "here.input (line",
        "tpu import cloudmesh",
    ] {
        assert!(notes.contains(told), "{told}\n{notes}");
    }
    let first = file.split("---\n").next().unwrap();
    std::fs::create_dir_all(env.path("work")).unwrap();
    write_file(&env.path("here.yaml"), first);
    drop(env.tpu("run here.yaml -q").exits(0));
    env.wait_status(1, "finished");
    let kept = std::fs::read_to_string(env.path("work/output/here/here.log")).unwrap();
    assert_eq!(kept, "{{it}} -x 1\n");
    write_file(&env.path("x-queue.yaml"), "a:\n  status: done\n  command: ls\n");
    drop(env.tpu("convert cloudmesh x-queue.yaml").exits(4).says(&["no job that is still to run"]));
}

#[test]
fn of_a_partition_the_note_says_how_it_becomes_a_target() {
    let env = TestEnv::new();
    let script = "#!/bin/bash\n#SBATCH -p low\npython3 train.py\n";
    let (notes, _) = converted(&env, "sbatch", ("train.sh", script));
    assert!(notes.contains("tpu register low --kind slurm --partition low"), "{notes}");
}
