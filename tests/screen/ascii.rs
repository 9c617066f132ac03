//! The screen in ASCII: nothing else on any tab or dialog, for each drawing character a sign of its own kind, and for each
//! status a sign that no other one has.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::buffer::Buffer;
use tpu_screen::tabs::TABLE;

use crate::common::samples::{self, id};
use crate::common::screen::{SIZES, Screen};

use super::looks::{SCENES, scene};
use super::{machines, queue};

/// Screens beside those of `looks`.
const MORE: [(&str, &str); 6] = [
    ("columns", "C"),
    ("rule", "j j j u"),
    ("filter", "/ i"),
    ("marked", "space j space"),
    ("unfolded", "j j right"),
    ("diff", "space j space ="),
];

fn every_screen() -> Vec<(String, Screen)> {
    let all = SCENES.into_iter().chain(MORE);
    let mut screens: Vec<_> =
        all.map(|(name, keys)| (name.to_owned(), scene(name, keys))).collect();
    for (tab, name, _) in TABLE {
        let mut waiting = Screen::showing(queue::lab());
        waiting.press(&format!("{}", tab.place() + 1));
        screens.push((format!("tab {name} of what waits"), waiting));
    }
    let mut hosts = machines::screen();
    hosts.press("2 j");
    screens.push(("machines".to_owned(), hosts));
    screens
}

/// The same frame as it is drawn elsewhere, and in ASCII.
fn both(screen: &mut Screen, size: (u16, u16)) -> [Buffer; 2] {
    [false, true].map(|ascii| {
        screen.model.setup.ascii = ascii;
        screen.buffer(size)
    })
}

#[test]
fn every_tab_is_among_the_screens() {
    let screens = every_screen();
    let shown: BTreeSet<_> = screens.iter().map(|(_, screen)| screen.model.tab.place()).collect();
    assert_eq!(shown.len(), TABLE.len());
}

#[test]
fn nothing_but_ascii_is_drawn_and_no_sign_of_ours_is_unknown() {
    let mut unknown = BTreeSet::new();
    for (name, mut screen) in every_screen() {
        for size in SIZES {
            let [usual, ascii] = both(&mut screen, size);
            for (usual, ascii) in usual.content.iter().zip(&ascii.content) {
                assert!(ascii.symbol().is_ascii(), "{name}: {:?}", ascii.symbol());
                // Letters and pictures come from outside; what we draw with is one column wide and no letter.
                let is_ours = tpu_core::text::width(usual.symbol()) == 1
                    && !usual.symbol().is_ascii()
                    && !usual.symbol().contains(char::is_alphabetic);
                if is_ours && ascii.symbol() == "?" {
                    unknown.insert(usual.symbol().to_owned());
                }
            }
        }
    }
    assert!(unknown.is_empty(), "nothing stands for {unknown:?}");
}

#[test]
fn no_two_statuses_nor_the_marks_of_a_row_share_a_sign() {
    // Every status, the pointer and the mark of a marked row.
    let signs = ["●", "◌", "◇", "■", "▲", "?", "✓", "○", "↻", "↺", "▸", "✚"];
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    let mut look = samples::snapshot();
    look.jobs.extend([samples::held(20, 1), samples::waiting(21, 2)]);
    let mut again = samples::ended(22, tpu_core::model::job::Status::Rerunned(None));
    again.id = id(22);
    look.jobs.push(again);
    let mut screen = Screen::showing(look);
    screen.press("j j right space j");
    for size in SIZES {
        let [usual, ascii] = both(&mut screen, size);
        for (usual, ascii) in usual.content.iter().zip(&ascii.content) {
            if signs.contains(&usual.symbol()) {
                shown.insert(usual.symbol().to_owned(), ascii.symbol().to_owned());
            }
        }
    }
    assert_eq!(shown.len(), signs.len(), "{shown:?}");
    let distinct: BTreeSet<&String> = shown.values().collect();
    assert_eq!(distinct.len(), signs.len(), "{shown:?}");
}
