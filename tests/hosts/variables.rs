//! Variables that a job file says are those of the machine on which the job runs.

use crate::common::tmux::write_file;

use super::Lab;

#[test]
fn they_reach_the_program_on_another_machine_whatever_they_are_called() {
    let Some(lab) = Lab::new(1) else { return };
    drop(lab.add("h1 --max-jobs 2").exits(0));
    let file = lab.env.path("job.yaml");
    write_file(
        &file,
        "target: {hosts: h1}\nenv: {PYTHONPATH: /there, NOTE: \"it's *\"}\n\
         command: echo \"$PYTHONPATH:$NOTE:${PATH:+path}\"\n",
    );
    drop(lab.env.tpu_words(&["run", file.to_str().unwrap(), "-q"]).exits(0));
    lab.env.wait_status(1, "finished");
    let said = lab.env.tpu("logs 1").exits(0).stdout;
    assert!(said.contains("/there:it's *:path"), "{said}");
}

#[test]
fn another_machine_has_what_is_named_and_nothing_else_of_the_shell() {
    let Some(mut lab) = Lab::new(1) else { return };
    drop(lab.add("h1 --max-jobs 2").exits(0));
    for (name, value) in
        [("FOO", "of this shell"), ("WANDB_MODE", "offline"), ("HF_TOKEN", "it's \"a\" *")]
    {
        lab.env.set(name, value);
    }
    let says = "echo \"$HF_TOKEN|$NAMED|$WANDB_MODE|${FOO:-none}\"";
    let words =
        ["run", "h1", "-q", "--env", "HF_TOKEN", "--env", "NAMED=x=y", "--", "sh", "-c", says];
    drop(lab.env.tpu_words(&words).exits(0));
    lab.env.wait_status(1, "finished");
    let seen = "it's \"a\" *|x=y|offline|none";
    drop(lab.env.tpu("logs 1").exits(0).says(&[seen]));
    // What goes on from it has the same, whatever this shell exports by then.
    for name in ["HF_TOKEN", "WANDB_MODE"] {
        lab.env.set(name, "another");
    }
    drop(lab.env.tpu("rerun 1 --force").exits(0));
    lab.env.wait_status(2, "finished");
    drop(lab.env.tpu("logs 2").exits(0).says(&[seen]));
}
