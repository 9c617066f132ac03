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
