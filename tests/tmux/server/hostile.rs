//! Settings of a person's tmux that would break jobs if we relied on the usual ones.

use std::fs::File;
use std::io::Write as _;

use tpu_core::model::facts::PaneFact;
use tpu_system::tmux::{Capture, Tmux as _, TmuxError};

use super::{all_of, job_window, up, windows};
use crate::common::tmux::PrivateTmux;
use crate::common::wait::wait_until;

/// One setting each, and all of them together.
fn settings() -> Vec<(&'static str, String)> {
    let each = [
        ("numbering", "set -g base-index 1\nsetw -g pane-base-index 1\nset -g renumber-windows on"),
        ("far base index", "set -g base-index 500"),
        ("unattached", "set -g destroy-unattached on\nset -s exit-unattached on"),
        ("history", "set -g history-limit 0"),
        ("shells", "set -g default-shell /bin/false\nset -g default-command 'exit 3'"),
        ("sizes", "set -g default-size 20x5\nsetw -g aggressive-resize on"),
        ("names", "setw -g automatic-rename on\nsetw -g allow-rename on\nset -g remain-on-exit on"),
        ("aliases", "set -s command-alias[100] 'neww=kill-server'"),
    ];
    let all = each.map(|(_, lines)| lines).join("\n");
    let each = each.into_iter().map(|(name, lines)| (name, lines.to_owned()));
    each.chain([("all", all)]).collect()
}

/// Writes to a pane's terminal, as its program would, and waits until it shows.
fn show(server: &PrivateTmux, pane: &PaneFact, text: &str, last: &str) {
    let tty = server.run(&["display-message", "-p", "-t", &pane.pane_id, "#{pane_tty}"]);
    File::options().write(true).open(tty).unwrap().write_all(text.as_bytes()).unwrap();
    wait_until("the pane shows the text", || {
        let shown = server.one_shot().capture(&[all_of(pane)]).unwrap().remove(0).unwrap();
        String::from_utf8_lossy(&shown).contains(last)
    });
}

#[test]
fn a_job_lives_through_every_setting() {
    for (name, config) in settings() {
        let server = PrivateTmux::new(&config);
        let tmux = server.one_shot();
        tmux.ensure_session("alice", 10_000).unwrap();
        assert_eq!(windows(&tmux), ["alice:0"], "{name}");
        let (place, panes) = up(&tmux);
        let home = panes[0].pane_id.clone();
        let seven = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
        let eight = tmux.open_window(&job_window("alice", 8, "alice", "t8")).unwrap();
        assert_eq!((seven.window_index, eight.window_index), (7, 8), "{name}");
        let width = server.run(&["display-message", "-p", "-t", &seven.pane_id, "#{pane_width}"]);
        assert!(width.parse::<u32>().is_ok_and(|width| width >= 200), "{name}: {width}");

        // More lines than a screen has: the history keeps them.
        let lines: Vec<String> = (1..=2_000).map(|n| format!("line {n}")).collect();
        show(&server, &eight, &format!("{}\n", lines.join("\n")), "line 2000");
        let capture = Capture { history: None, ..all_of(&eight) };
        let text = tmux.capture(&[capture]).unwrap().remove(0).unwrap();
        assert_eq!(String::from_utf8(text.into()).unwrap().lines().count(), 2_000, "{name}");

        // A window that somebody else closes leaves the others where they are.
        tmux.open_window(&job_window("alice", 5, "alice", "t5")).unwrap();
        server.run(&["kill-window", "-t", "=alice:5"]);
        assert_eq!(windows(&tmux), ["alice:0", "alice:7", "alice:8"], "{name}");

        // Closing a window neither renumbers the others nor ends the session.
        tmux.close_pane(&seven, place.server_pid).unwrap();
        assert_eq!(windows(&tmux), ["alice:0", "alice:8"], "{name}");
        tmux.close_pane(&eight, place.server_pid).unwrap();
        tmux.ensure_session("alice", 10_000).unwrap();
        let (now, panes) = up(&tmux);
        assert_eq!((now, panes.len(), &panes[0].pane_id), (place, 1, &home), "{name}");
    }
}

#[test]
fn a_session_made_under_hostile_settings_by_hand_is_mended() {
    let server =
        PrivateTmux::new("set -g base-index 3\nset -g renumber-windows on\nset -g history-limit 5");
    let tmux = server.one_shot();
    server.run(&["new-session", "-d", "-s", "alice", "-n", "0", "sleep", "100000"]);
    server.run(&["new-window", "-d", "-t", "=alice:9", "-n", "7", "sleep", "100000"]);
    tmux.ensure_session("alice", 10_000).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "alice:3", "alice:9"]);
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
    tmux.close_pane(&pane, up(&tmux).0.server_pid).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "alice:3", "alice:9"]);
    let limit = server.run(&["display-message", "-p", "-t", "=alice:", "#{history-limit}"]);
    assert_eq!(limit, "10000");
}

#[test]
fn windows_are_not_renumbered_in_a_session_that_nobody_prepared() {
    let server = PrivateTmux::new("set -g renumber-windows on");
    let tmux = server.one_shot();
    server.run(&["new-session", "-d", "-s", "alice", "sleep", "100000"]);
    let pane = tmux.open_window(&job_window("alice", 4, "alice", "t4")).unwrap();
    tmux.open_window(&job_window("alice", 9, "alice", "t9")).unwrap();
    tmux.close_pane(&pane, up(&tmux).0.server_pid).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "alice:9"]);
}

#[test]
fn other_sessions_and_global_options_stay_as_they_are() {
    let config = "set -g renumber-windows on\nset -g history-limit 77\nset -g default-size 90x20";
    let server = PrivateTmux::new(config);
    let tmux = server.one_shot();
    server.run(&["new-session", "-d", "-s", "bird", "sleep", "100000"]);
    let options = || {
        let global = server.run(&["show-options", "-g"]);
        let windows = server.run(&["show-options", "-gw"]);
        (global, windows, server.run(&["show-options", "-t", "=bird:"]))
    };
    let before = options();
    tmux.ensure_session("b", 10_000).unwrap();
    tmux.open_window(&job_window("b", 1, "b", "t1")).unwrap();
    assert_eq!(options(), before);
    // A longer history than needed is nobody's mistake.
    server.run(&["set-option", "-t", "=b:", "history-limit", "50000"]);
    tmux.ensure_session("b", 10_000).unwrap();
    let limit = server.run(&["display-message", "-p", "-t", "=b:", "#{history-limit}"]);
    assert_eq!(limit, "50000");
}

#[test]
fn the_home_window_survives_its_shell() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let home = up(&tmux).1[0].pane_id.clone();
    server.run(&["send-keys", "-t", &home, "exit", "Enter"]);
    wait_until("the shell of the home window has ended", || up(&tmux).1[0].dead);
    assert_eq!(windows(&tmux), ["alice:0"]);
    tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
}

#[test]
fn an_index_without_a_window_is_not_taken_for_a_name() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    server.run(&["new-window", "-d", "-t", "=alice:7", "-n", "420run", "sleep", "100000"]);
    // What a person would get, and the reason for all of this.
    let taken = server.run(&["display-message", "-p", "-t", "=alice:42", "#{window_name}"]);
    assert_eq!(taken, "420run");
    let pane = tmux.open_window(&job_window("alice", 42, "alice", "t42")).unwrap();
    server.run(&["kill-window", "-t", &pane.pane_id]);
    let pid = up(&tmux).0.server_pid;
    assert!(matches!(tmux.close_pane(&pane, pid), Err(TmuxError::Changed { .. })));
    assert_eq!(windows(&tmux), ["alice:0", "alice:7"]);
}
