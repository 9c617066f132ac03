//! What docs/queue.md says of many runs, typed word for word.

use crate::common::readme::{Newcomer, PYTHON, Page};
use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

#[test]
fn what_the_page_says_of_many_runs_is_what_happens() {
    let mut reader = Newcomer::new("");
    write_script(&reader.bin.join("python3"), PYTHON);
    reader.env.unset("TPU_USER");
    drop(reader.typed("tpu init --name alice"));
    let page = Page::with(9, "docs/queue.md");
    for example in &page.examples() {
        reader.follow(example, &example.command);
        if example.command.contains("--sweep") {
            let runs = |window: u64| reader.env.job("alice", window)["status"] == "running";
            wait_until("two of the sweep run", || runs(2) && runs(3));
        }
    }
    let said = reader.typed("tpu queue --json");
    assert!(said.contains("late") && !said.contains("scan"), "{said}");
}
