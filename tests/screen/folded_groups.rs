//! A group of the list folds into its head, which then stands for its jobs.

use tpu_screen::keys::Command;
use tpu_screen::message::{Act, Effect, Mouse, MouseDid};
use tpu_screen::model::{Model, Overlay};

use crate::common::samples;
use crate::common::screen::Screen;

/// The jobs of the sample by target, the second group's first job selected; and that group's name.
fn grouped() -> (Screen, String) {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("v");
    let heads: Vec<_> = screen.model.list.rows.iter().filter_map(|row| row.head.clone()).collect();
    screen.press("g");
    while above(&screen.model) != heads[1] {
        screen.press("j");
    }
    (screen, heads[1].clone())
}

/// The head below which the selected row stands, or which it is.
fn above(model: &Model) -> String {
    let at = model.selected_row().expect("something is selected");
    let mut heads = model.list.rows[..=at].iter().rev().filter_map(|row| row.head.clone());
    heads.next().expect("it is in a group")
}

#[test]
fn left_folds_the_group_and_right_brings_it_back() {
    let (mut screen, name) = grouped();
    let rows = screen.model.list.rows.len();
    // The first takes back what is unfolded below the row, if anything is.
    while screen.model.selected_head().is_none() {
        screen.press("left");
    }
    assert_eq!(screen.model.selected_head(), Some(name.as_str()));
    let folded = screen.model.list.rows.len();
    assert!(folded < rows, "{folded} of {rows}");
    let frame = screen.frame((120, 40));
    assert!(frame.contains(&format!("▸+ {name}")), "{frame}");
    screen.press("left");
    assert_eq!(screen.model.list.rows.len(), folded, "there is nothing more to fold");
    screen.press("right");
    assert_eq!(screen.model.list.rows.len(), rows);
    assert_eq!(above(&screen.model), name, "one of its jobs is selected");
    assert!(screen.model.selected_head().is_none());
}

#[test]
fn what_is_done_to_a_folded_group_is_done_to_its_jobs() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs = (1..=4).map(samples::job).collect();
    for (at, job) in snapshot.jobs.iter_mut().enumerate() {
        (if at < 3 { "one" } else { "two" }).clone_into(&mut job.target_label);
    }
    let mut screen = Screen::showing(snapshot);
    screen.press("v g left");
    assert_eq!(screen.model.selected_head(), Some("one"));
    let detail = screen.frame((120, 40));
    assert!(detail.contains("one · 3 jobs"), "{detail}");
    screen.press("x");
    let Some(Overlay::Confirm(question)) = &screen.model.overlay else { panic!("nothing asked") };
    assert_eq!(question.jobs, [1, 2, 3].map(samples::id));
    let effects = screen.press("y");
    let [Effect::Act(begun)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(begun[0].1, Act::Kill([1, 2, 3].map(samples::id).to_vec()));
    // A tag is a job's, and none of them was meant.
    screen.press("t");
    assert!(screen.model.overlay.is_none());
    assert!(screen.frame((120, 40)).contains("unfolds the group"));
}

#[test]
fn a_click_on_a_head_folds_it_and_another_unfolds_it() {
    let (mut screen, name) = grouped();
    let rows = screen.model.list.rows.len();
    let click = |screen: &mut Screen| {
        let frame = screen.frame((120, 40));
        let is_head =
            |line: &str| ["+", "-"].iter().any(|sign| line.contains(&format!("{sign} {name} ")));
        let y = frame.lines().position(is_head).unwrap();
        let mouse = Mouse { what: MouseDid::Press, x: 8, y: u16::try_from(y).unwrap() };
        screen.send(tpu_screen::message::Message::Mouse(mouse));
    };
    click(&mut screen);
    assert!(screen.model.list.rows.len() < rows);
    click(&mut screen);
    assert_eq!(screen.model.list.rows.len(), rows);
}

#[test]
fn what_is_folded_stays_so_and_hides_no_failure() {
    let (mut screen, name) = grouped();
    while screen.model.selected_head().is_none() {
        screen.press("left");
    }
    let selected = screen.model.list.selected.clone();
    // Another look, and every other group.
    screen.send(tpu_screen::message::Message::Looked(Box::new(samples::snapshot())));
    assert_eq!(screen.model.list.selected, selected);
    assert_eq!(screen.model.selected_head(), Some(name.as_str()));
    for _ in 0..screen.model.list.rows.len() {
        screen.press("k");
    }
    for _ in 0..screen.model.list.rows.len() {
        while screen.model.selected_head().is_none() {
            screen.press("left");
        }
        screen.press("j");
    }
    let open = |model: &Model| model.list.rows.iter().filter(|row| !row.is_group()).count();
    assert_eq!(open(&screen.model), 0, "all are folded");
    let newest = screen.model.newest_broken().unwrap().id.clone();
    screen.press("E");
    assert_eq!(screen.model.list.selected, Some(newest));
    assert!(screen.model.selected_head().is_none(), "it has a row of its own");
    let key = screen.model.setup.key(screen.model.context(), Command::Fold);
    assert!(!key.is_empty(), "the help says how it is folded");
    // Grouped otherwise, nothing is folded.
    screen.press("v");
    assert!(screen.model.list.rows.iter().all(|row| !row.is_head() || !row.is_group()));
}
