//! The keys of the screen do to a job of a cluster what they do to a window.

use super::lab::Lab;
use crate::common::env::TPU;
use crate::common::terminal::Terminal;

#[test]
fn its_keys_do_what_they_do_to_a_window() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "rule=pass");
    let job = lab.wait_runs(window);
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    terminal.shows("loss 0.5");
    terminal.press("l");
    terminal.shows("▼ follow");
    terminal.shows("step ");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press("e");
    terminal.shows("Why alice/1 is as it is");
    terminal.shows(&format!("nodes: {}", job.nodes));
    terminal.press("Escape");
    terminal.press("t");
    terminal.types("mine");
    terminal.press("Enter");
    terminal.until("the tag is stored", || lab.env.job("alice", 1)["job_tags"] == "mine");
    terminal.press("u");
    terminal.shows("What happens by itself when alice/1 (");
    terminal.keys("Down Enter");
    terminal.until("the rule is stored", || lab.env.job("alice", 1)["rules"]["lost"] == "resume");
    // Beside it, on its node.
    terminal.press("a");
    terminal.hides("[1 Jobs]");
    terminal.types("echo beside-$SLURM_JOB_ID");
    terminal.press("Enter");
    terminal.shows(&format!("beside-{}", job.id));
    terminal.types("exit");
    terminal.press("Enter");
    terminal.shows("[1 Jobs]");

    lab.end("a", "exit 7");
    terminal.shows("error: unknown");
    lab.let_go_on("a");
    terminal.press("r");
    terminal.until("it goes on", || lab.env.jobs("alice").len() == 2);
    lab.wait_starts("a", 2);
    terminal.hides("error: unknown");
    lab.end("a", "exit 7");
    terminal.shows("error: unknown");
    lab.let_go_on("a");
    terminal.press("R");
    terminal.shows("from scratch?");
    terminal.press("y");
    terminal.until("it begins again", || lab.env.jobs("alice").len() == 3);
    lab.wait_starts("a", 3);
    assert!(lab.starts("a")[1].contains("load_from"), "{:?}", lab.starts("a"));
    assert!(!lab.starts("a")[2].contains("load_from"), "{:?}", lab.starts("a"));
    terminal.hides("error: unknown");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    lab.env.wait_status(3, "killed");
    assert_eq!(lab.listed(3).state, "CANCELLED");
    terminal.press("q");
    terminal.shows("code-0");
    assert_eq!(lab.cluster.submissions().len(), 3);
}
