//! A message on the terminals that look at a user's session: as it stands, and nothing in it does anything.

use serde_json::json;

use super::Lab;
use crate::common::terminal::Terminal;
use crate::common::wait::wait_until;

#[test]
fn a_message_is_shown_to_those_who_look_and_acts_on_nothing() {
    let lab = Lab::new();
    lab.tell("alice", &json!([{ "message": "tmux" }]));
    let monitor = lab.env.daemon(&[]);
    assert_eq!(lab.env.start("exec sleep 1000", &[""; 0]), 1);
    let owned = lab.env.path("owned");
    let touch = owned.display();
    let hostile = format!("#{{pane_pid}} %H \u{1b}]0;x #(touch {touch})");
    lab.fail("alice", &hostile);
    // Nobody looks yet: it is kept until somebody does.
    wait_until("a try", || {
        lab.env.tpu("notify list alice").stdout.contains("nobody looks at the tmux session alice")
    });
    drop(lab.env.tpu("doctor").says(&["nobody looks at the tmux session alice"]));
    let terminal = Terminal::new(&lab.env);
    let socket = lab.env.tmux().socket();
    terminal.command(&format!("exec tmux -u -L {socket} attach -t =alice"));
    terminal.shows("tpu: alice/7: error: oom: #{pane_pid} %H \\u{1b}]0;x #(touch ");
    assert!(!owned.exists());
    drop(monitor);
}
