//! The jobs of a file are entered all or none, and run as the file says.

use std::path::{Path, PathBuf};

use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use crate::queue::Lab;

fn lab() -> Lab {
    let lab = Lab::new(8);
    lab.env.code("alice", "staging.sh", "exec sleep 1000\n");
    lab
}

fn file(lab: &Lab, text: &str) -> PathBuf {
    let path = lab.env.path("job.yaml");
    write_file(&path, text);
    path
}

fn submit(lab: &Lab, path: &Path, flags: &str) -> CommandOutput {
    lab.env.tpu(&format!("submit {} {flags}", path.display()))
}

#[test]
fn each_member_has_its_values_in_its_command() {
    let lab = lab();
    let out = lab.env.path("out");
    let text = format!(
        "name: scan\ntarget: local\ntag: '{{{{x}}}}'\n\
         command: echo '{{{{lr}}}} {{{{seed}}}}' > {}-{{{{lr}}}}-{{{{seed}}}}\n\
         array: {{lr: [1e-3, 1e-4], seed: 0-1}}\n",
        out.display()
    );
    let path = file(&lab, &text);
    drop(submit(&lab, &path, "--set x=base").exits(0).says(&["Queued 4 jobs of group"]));
    for (lr, seed) in [("1e-3", 0), ("1e-3", 1), ("1e-4", 0), ("1e-4", 1)] {
        let of = format!("{}-{lr}-{seed}", out.display());
        let said = || std::fs::read_to_string(&of).unwrap_or_default();
        wait_until("the member has run", || said() == format!("{lr} {seed}\n"));
    }
    let jobs = lab.env.jobs("alice");
    assert!(jobs.iter().all(|job| job["job_tags"] == "base"), "{jobs:?}");
}

#[test]
fn a_job_of_the_file_waits_for_another_of_it() {
    let lab = lab();
    let path = file(
        &lab,
        "defaults: {target: local}\njobs:\n  tok: {command: exec sleep 1000}\n  \
         train: {command: exec sleep 1000, after_any: tok}\n",
    );
    drop(submit(&lab, &path, "").exits(0).says(&["Queued alice/1 tok", "Queued alice/2 train"]));
    lab.wait_running(&[1]);
    assert!(lab.why(2).contains("alice/1"), "{}", lab.why(2));
    lab.kill(1);
    lab.wait_running(&[2]);
}

#[test]
fn all_jobs_of_a_file_are_entered_or_none() {
    let lab = lab();
    for (last, code, says) in [
        ("target: local\nqueue: nope\n", 3, ":5:8: there is no queue 'nope'"),
        ("target: nonsense\n", 3, ":4:9: no target 'nonsense'"),
        ("target: local\ngpus: 2\n", 2, "could ever run it"),
        ("target: local\nafter: 99\n", 3, "there is no job alice/99"),
        ("target: local\ncomand: x\n", 2, ":5:1: comand: no such key"),
        ("target: local\nsecrets: [A]\n", 3, ":5:10: no secret A is kept"),
        ("target: local\nname: '12'\n", 2, ":5:7: '12' cannot be the name"),
        ("target: local\ndir: 7\n", 3, ":5:6: alice has no directory 7"),
        ("target: local\nconfigs: {nope: 1}\ncommand: [x]\n", 2, ":5:10: 'nope=1'"),
    ] {
        let path = file(&lab, &format!("target: local\ncommand: sleep 1000\n---\n{last}"));
        drop(submit(&lab, &path, "").exits(code).says(&[says]));
        // What is only tried out is refused as well; of a secret that is not kept it is warned.
        let code = if last.contains("secrets") { 0 } else { code };
        let says = says.split(": ").last().unwrap();
        drop(submit(&lab, &path, "--dry-run").exits(code).says(&[says]));
    }
    assert_eq!(lab.env.queued(), 0, "nothing of that waits");
    assert!(lab.env.jobs("alice").is_empty(), "nothing of that runs");
}

#[test]
fn a_dry_run_changes_nothing_and_other_words_are_refused() {
    let lab = lab();
    let path = file(&lab, "target: local\nname: a\ncommand: sleep 1000\narray: 0-3\n");
    drop(submit(&lab, &path, "--dry-run").exits(0).says(&["queue 4 jobs as a for local"]));
    for (flags, says) in [
        ("local", "local beside a file"),
        ("--name b", "--name beside a file"),
        ("--nodes 2", "an option of a kind"),
        ("--set x=1", "no {{x}} stands in it"),
        ("--set x", "no KEY=VALUE"),
        ("-- true", "a command beside a file"),
    ] {
        drop(submit(&lab, &path, flags).exits(2).says(&[says]));
    }
    drop(lab.env.tpu("submit local --set a=b -- true").exits(2).says(&["there is no file"]));
    drop(lab.env.tpu("submit nowhere.yaml").exits(3).says(&["cannot read nowhere.yaml"]));
    drop(lab.env.tpu("run nowhere.yaml").exits(3).says(&["cannot read nowhere.yaml"]));
    assert_eq!(lab.env.queued(), 0);
}

#[test]
fn the_examples_run() {
    let lab = lab();
    let example =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/example").join(name);
    drop(submit(&lab, &example("sweep.yaml"), "--set steps=5").exits(0));
    drop(submit(&lab, &example("several.yaml"), "").exits(0));
    let ended = || {
        drop(lab.env.tpu("queue run --once"));
        let jobs = lab.env.jobs("alice");
        jobs.len() == 6 && jobs.iter().all(|job| job["status"] == "finished")
    };
    wait_until("all of them have finished", ended);
}

#[test]
fn a_file_can_name_the_directory_of_its_code() {
    let lab = lab();
    let code = |below: &str| lab.env.path(below).to_str().unwrap().to_owned();
    for (says, dir) in [
        (String::new(), code("code-alice")),
        ("code: .\n".to_owned(), code("code-bob")),
        (format!("dir: {}\n", code("code-bob")), code("code-bob")),
        ("dir: ~/code-bob\n".to_owned(), code("code-bob")),
    ] {
        let path = lab.env.path("code-bob/job.yaml");
        write_file(&path, &format!("target: local\ncommand: 'true'\n{says}"));
        drop(submit(&lab, &path, "").exits(0));
        let job = lab.env.jobs("alice").pop().unwrap();
        assert_eq!((job["job_dir"].as_str(), job["job_dir_id"].as_u64()), (Some(&*dir), None));
    }
}

#[test]
fn a_file_that_says_nothing_to_do_is_told_what_it_lacks() {
    let lab = Lab::new(1);
    let said = submit(&lab, &file(&lab, "target: local\n"), "").exits(3);
    drop(said.says(&["job.yaml:1:1: no command is given", "command: python3 train.py", "setup:"]));
}

#[test]
fn a_file_that_is_called_otherwise_is_told_from_a_target() {
    let lab = Lab::new(1);
    for (name, hint) in [("job", "mv job job.yaml"), ("train.sh", "tpu convert sbatch train.sh")] {
        write_file(&lab.env.path(name), "target: local\ncommand: x\n");
        for verb in ["submit", "run"] {
            let said = lab.env.tpu(&format!("{verb} {name}")).exits(2);
            drop(said.says(&[&format!("{name} is a file, and job files end in .yaml"), hint]));
        }
        drop(lab.env.tpu(&format!("submit local {name}")).exits(2));
    }
}
