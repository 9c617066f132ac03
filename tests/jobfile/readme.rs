//! What docs/job-files.md says of jobs as files, typed word for word, with the files that it shows.

use crate::common::readme::{Newcomer, PYTHON, Page};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

#[test]
fn what_the_page_says_of_job_files_is_what_happens() {
    let mut reader = Newcomer::new("");
    write_script(&reader.bin.join("python3"), PYTHON);
    reader.env.unset("TPU_USER");
    drop(reader.typed("tpu init --name alice"));
    let page = Page::with(4, "docs/job-files.md");
    let files = page.shown_files();
    assert_eq!(files.len(), 5, "{files:?}");
    for (name, text) in files {
        write_file(&reader.code.join(name), text);
    }
    for example in &page.examples() {
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
