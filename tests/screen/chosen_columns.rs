//! Which columns the list has: those for which there is room, or those that somebody has chosen, here and in later
//! sessions.

use std::collections::BTreeSet;

use tpu_screen::message::{Act, Effect};
use tpu_screen::view::{chooser, columns};

use crate::common::env::{STEPS, TPU, TestEnv};
use crate::common::samples;
use crate::common::screen::Screen;
use crate::common::terminal::Terminal;

fn shown(screen: &mut Screen, size: (u16, u16)) -> BTreeSet<&'static str> {
    drop(screen.frame(size));
    chooser::on_screen(&screen.model)
}

/// Presses `j` until a column is the marked one.
fn go_to(screen: &mut Screen, id: &str) {
    let at = columns::TABLE.iter().position(|column| column.id == id).unwrap();
    screen.press(&"j ".repeat(at));
}

#[test]
fn what_a_job_has_come_to_is_seen_beside_its_detail() {
    let mut screen = Screen::showing(samples::snapshot());
    let at_120 = shown(&mut screen, (120, 40));
    assert!(at_120.contains("loss") && at_120.contains("ended"), "{at_120:?}");
    assert!(screen.frame((120, 40)).contains("14:01"), "when it ended");
    // No job has ended, or has a loss: there is nothing to say.
    let mut snapshot = samples::snapshot();
    for job in &mut snapshot.jobs {
        (job.ended_at, job.shown.progress.loss) = (None, None);
    }
    let mut screen = Screen::showing(snapshot);
    let at_120 = shown(&mut screen, (120, 40));
    assert!(!at_120.contains("loss") && !at_120.contains("ended"), "{at_120:?}");
}

#[test]
fn what_more_there_is_to_say_has_the_room_that_is_left() {
    let mut screen = Screen::showing(samples::snapshot());
    let at_200 = shown(&mut screen, (200, 50));
    for id in ["speed", "eta", "started"] {
        assert!(at_200.contains(id), "{id}: {at_200:?}");
    }
    // None of them takes anything from the others.
    let at_80 = shown(&mut screen, (80, 24));
    assert!(!at_80.contains("started"), "{at_80:?}");
    assert!(at_80.is_subset(&at_200), "{at_80:?}");
}

#[test]
fn chosen_ones_are_seen_at_once_and_kept() {
    let mut screen = Screen::showing(samples::snapshot());
    drop(screen.frame((80, 24)));
    screen.press("C");
    let frame = screen.frame((80, 24));
    assert!(frame.contains("Columns of the list"), "{frame}");
    go_to(&mut screen, "started");
    screen.press("space");
    assert!(shown(&mut screen, (80, 24)).contains("started"));
    let keep = screen.press("enter");
    let [Effect::Act(acts)] = keep.as_slice() else { panic!("{keep:?}") };
    let [(_, Act::Command(words))] = acts.as_slice() else { panic!("{acts:?}") };
    assert_eq!(words[..2], ["set-settings", "monitor_columns"]);
    let kept: Vec<&str> = words[2].split(' ').collect();
    assert!(kept.contains(&"started") && kept.contains(&"dir"), "{kept:?}");
    assert_eq!(words[3], "alice");
    assert!(!screen.frame((80, 24)).contains("Columns of the list"));
    assert!(shown(&mut screen, (120, 40)).contains("started"));
}

#[test]
fn who_leaves_the_choice_has_chosen_nothing() {
    let mut screen = Screen::showing(samples::snapshot());
    let before = shown(&mut screen, (80, 24));
    screen.press("C");
    go_to(&mut screen, "target");
    screen.press("space");
    assert_ne!(shown(&mut screen, (80, 24)), before);
    assert!(screen.press("esc").is_empty());
    assert_eq!(shown(&mut screen, (80, 24)), before);
    // Nor is a list without any column to be had.
    screen.press("C");
    for _ in columns::TABLE {
        screen.press("space j");
    }
    assert!(!shown(&mut screen, (80, 24)).is_empty());
    // And by its width again.
    screen.press("w");
    assert_eq!(shown(&mut screen, (80, 24)), before);
}

#[test]
fn a_chosen_column_without_room_says_so_and_costs_no_other_its_place() {
    let mut screen = Screen::showing(samples::snapshot());
    drop(screen.frame((60, 16)));
    screen.press("C");
    for id in ["speed", "eta", "started", "ended", "loss"] {
        let at = columns::TABLE.iter().position(|column| column.id == id).unwrap();
        screen.press(&format!("{} space {}", "j ".repeat(at), "k ".repeat(at)));
    }
    let frame = screen.frame((60, 50));
    assert!(frame.contains("no room"), "{frame}");
    let shown = shown(&mut screen, (60, 16));
    assert!(shown.contains("window") && shown.contains("status"), "{shown:?}");
    assert!(chooser::marked(&screen.model).contains("started"));
}

#[test]
fn a_later_session_shows_what_an_earlier_one_has_chosen() {
    let env = TestEnv::new();
    env.start(STEPS, &[] as &[&str]);
    let terminal = Terminal::new(&env);
    terminal.resize((80, 24));
    let open = format!("clear; {TPU} monitor alice");
    terminal.command(&open);
    terminal.shows("running");
    assert!(!terminal.screen().contains(" kind "), "{}", terminal.screen());
    terminal.press("C");
    terminal.shows("Columns of the list");
    let at = columns::TABLE.iter().position(|column| column.id == "kind").unwrap();
    for _ in 0..at {
        terminal.press("j");
    }
    terminal.press("Space");
    terminal.shows("[x] kind");
    terminal.press("Enter");
    terminal.shows("monitor_columns is");
    terminal.press("q");
    terminal.prompts();
    terminal.command(&open);
    terminal.shows(" kind ");
    terminal.press("q");
    terminal.prompts();
    // Who names columns with the command means these.
    terminal.command(&format!("{open} -ws"));
    terminal.shows("running");
    assert!(!terminal.screen().contains(" kind "), "{}", terminal.screen());
    terminal.press("q");
    terminal.prompts();
    // No column is called so: the setting is refused, and the columns that there are are named.
    let said = env.tpu("set-settings monitor_columns statsu alice").exits(2).stderr;
    assert!(said.contains("no column 'statsu'") && said.contains("status"), "{said}");
}
