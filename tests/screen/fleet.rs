//! Every view of a shared fleet: five kinds of targets, groups, ten thousand jobs; as text, at four sizes.

use tpu_screen::message::Message;

use crate::common::fleet::{self, MANY};
use crate::common::samples;
use crate::common::screen::{SIZES, Screen};
use crate::common::usage::press_of;

#[test]
fn list() {
    insta::assert_snapshot!(fleet::screen().frames());
}

#[test]
fn groups_of_users_folded() {
    let mut screen = fleet::screen();
    screen.press("v v v left j left");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn grouped_by_target() {
    let mut screen = fleet::screen();
    screen.press("v");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn detail_of_a_group() {
    let mut screen = fleet::screen();
    screen.model.list.selected = Some(samples::id(102));
    screen.send(Message::Looked(Box::new(fleet::snapshot())));
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn detail_in_full_width() {
    let mut screen = fleet::screen();
    screen.model.list.selected = Some(samples::id(7));
    screen.press("enter");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn other_tabs() {
    let mut all = String::new();
    for tab in ["2", "3", "4", "5"] {
        let mut screen = fleet::screen();
        screen.press(tab);
        all += &screen.frames();
    }
    insta::assert_snapshot!(all);
}

/// By user first, and by the kind of targets.
#[test]
fn usage() {
    let past = fleet::past();
    let mut screen = fleet::screen();
    press_of(&past, &mut screen, "6");
    let by_user = screen.frames();
    press_of(&past, &mut screen, "B p p");
    insta::assert_snapshot!(by_user + &screen.frames());
}

/// What lies over the list: a question about many jobs of several users, what can be copied, a form, the help.
#[test]
fn over_it() {
    let mut all = String::new();
    for keys in ["/ s t a t u s : o o m | p r e e m p t e d enter * x", "G y", "n", "?"] {
        let mut screen = fleet::screen();
        screen.press(keys);
        all += &screen.frames();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn what_the_chosen_row_is_about_stands_below_where_there_is_room() {
    let mut screen = fleet::screen();
    screen.press("2 j");
    let frame = screen.frame((120, 40));
    let below = frame.lines().position(|line| line.starts_with("┌ gpu1 · 3 jobs")).unwrap();
    let told: Vec<&str> = frame.lines().skip(below).collect();
    for id in ["alice/4 ", "alice/9 ", "alice/141 "] {
        assert!(told.iter().any(|line| line.contains(id)), "{id} in\n{frame}");
    }
    assert!(told.iter().any(|line| line.contains("held ") && line.contains(" place 2")), "{frame}");
    screen.press("3 j");
    assert!(screen.frame((120, 40)).contains("┌ alice/141 · "), "what waits");
    screen.press("5");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("┌ alice/14 · "), "also what is no longer seen: {frame}");
    for size in [(80, 24), (60, 16)] {
        screen.press("2");
        assert!(!screen.frame(size).contains("┌ gpu1"), "the table has the room");
    }
}

/// However wide it is, no column gives way to another beyond what it needs.
#[test]
fn the_last_column_has_its_head_whatever_stands_behind_the_directory() {
    let mut snapshot = samples::snapshot();
    for job in &mut snapshot.jobs {
        job.dir.1 = "/home/alice/a".to_owned();
        job.tags = Some("a-rather-long-tag".to_owned());
    }
    let mut screen = Screen::showing(snapshot);
    for width in 70..200 {
        let frame = screen.frame((width, 30));
        let heads = frame.lines().nth(2).unwrap();
        let list = heads.split("││").next().unwrap();
        assert!(list.trim_end_matches(['│', ' ']).ends_with(" time"), "{width}: {heads}");
    }
}

/// A frame of ten thousand jobs names each job that it shows once, whole words in each cell, and no line is wider than the
/// screen.
#[test]
fn every_job_is_reached_and_every_line_fits() {
    let mut screen = fleet::screen();
    assert_eq!(screen.model.jobs().len(), MANY);
    for size in SIZES {
        for keys in ["g", "G", "pgup", "pgdn", "v", "G", "v", "v", "v"] {
            screen.press(keys);
            let frame = screen.frame(size);
            let width = usize::from(size.0);
            assert!(
                frame.lines().all(|line| tpu_core::text::width(line) <= width),
                "{size:?} {keys}"
            );
            assert!(frame.contains('▸'), "something is selected: {size:?} {keys}\n{frame}");
        }
    }
    let rows = screen.model.list.rows.len();
    assert!(rows > MANY - 20, "{rows}");
}

/// What stands in a row of the table of targets.
fn target(screen: &mut Screen, name: &str) -> String {
    screen.press("2");
    let frame = screen.frame((200, 50));
    let found = frame.lines().find(|line| line.contains(name));
    found.unwrap_or_else(|| panic!("no {name} in\n{frame}")).to_owned()
}

#[test]
fn targets_stand_by_kind_and_say_who_waits_for_them() {
    let mut screen = fleet::screen();
    screen.press("2");
    let frame = screen.frame((200, 50));
    let kinds = ["local", "ssh", "tpu", "kubernetes", "slurm"];
    let places = kinds.map(|kind| {
        let cell = format!("  {kind}  ");
        let lines: Vec<usize> = (0..)
            .zip(frame.lines())
            .filter(|(_, line)| line.contains(&cell))
            .map(|(at, _)| at)
            .collect();
        assert!(!lines.is_empty(), "no {kind} in\n{frame}");
        assert!(
            lines.windows(2).all(|two| two[1] == two[0] + 1),
            "{kind} stands together:\n{frame}"
        );
        lines[0]
    });
    assert!(places.is_sorted(), "{places:?}\n{frame}");
    // Two that Slurm has not begun, and four of the group that waits in our own queue.
    assert!(target(&mut screen, "slurm-a100").contains(" 6 "), "{frame}");
    assert!(target(&mut screen, "gpu1").contains(" 1 "), "{frame}");
}
