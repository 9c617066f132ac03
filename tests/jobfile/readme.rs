//! What the README says of jobs as files, typed word for word, with the files that it shows.

use crate::common::readme::{JOB_FILES, Newcomer, PYTHON, examples, shown_files};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

#[test]
fn what_the_readme_says_of_job_files_is_what_happens() {
    let mut reader = Newcomer::new("");
    write_script(&reader.bin.join("python3"), PYTHON);
    reader.env.unset("TPU_USER");
    drop(reader.typed("tpu init --name alice"));
    let files = shown_files();
    assert_eq!(files.len(), 5, "{files:?}");
    for (name, text) in files {
        write_file(&reader.code.join(name), text);
    }
    let mut all = examples();
    all.retain(|example| example.section == JOB_FILES);
    assert!(all.len() > 3, "{} examples", all.len());
    for example in &all {
        reader.follow(example, &example.command);
        if example.command == "tpu submit scan.yaml --set series=first" {
            let runs = |window: u64| reader.env.job("alice", window)["status"] == "running";
            wait_until("two of them run", || runs(4) && runs(5));
        }
    }
    let jobs = reader.env.jobs("alice");
    let first = jobs.iter().find(|job| job["windows_id"] == 4).unwrap();
    assert_eq!(first["job_tags"], "first", "{first:#}");
}
