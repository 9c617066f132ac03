//! The help says what every key does, here and elsewhere, and takes nothing away from what it lies over.

use tpu_screen::keys::{Command, Context, KeyGroup, KeyMap};
use tpu_screen::message::{Act, Answer, Ask, Effect, Message};
use tpu_screen::model::Overlay;

use crate::common::samples;
use crate::common::screen::Screen;

#[test]
fn keys_stand_under_what_they_are_for() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("?");
    let frame = screen.frame((80, 100));
    let place = |text: &str| {
        let at = frame.lines().position(|line| line.contains(text));
        at.unwrap_or_else(|| panic!("no {text}:\n{frame}"))
    };
    let heads = KeyGroup::ALL.map(|group| place(&format!("│ {}", group.title())));
    assert!(heads.is_sorted(), "{heads:?}");
    let [look, act, filter, tabs, program] = heads;
    for (from, line, to) in [
        (look, "the whole output", act),
        (act, "continue from the last checkpoint", filter),
        (filter, "choose the columns", tabs),
        (tabs, "what has happened", program),
    ] {
        let at = place(line);
        assert!(from < at && at < to, "{line} at {at}, not between {from} and {to}");
    }
}

#[test]
fn there_are_two_columns_where_they_can_be_read() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("?");
    let beside = |frame: &str| {
        let line = frame.lines().find(|line| line.contains("│ Look"));
        let heads = ["Act", "Filter and order", "Tabs"];
        line.is_some_and(|line| heads.iter().any(|head| line.contains(head)))
    };
    assert!(!beside(&screen.frame((80, 24))));
    for size in [(120, 40), (200, 50)] {
        let frame = screen.frame(size);
        assert!(beside(&frame), "{frame}");
    }
    // At 50 rows nothing has to be scrolled for.
    assert!(!screen.frame((200, 50)).contains("more below"));
}

#[test]
fn whatever_it_says_can_be_scrolled_to() {
    for size in [(60, 16), (80, 24), (120, 40)] {
        let mut screen = Screen::showing(samples::snapshot());
        screen.press("?");
        assert!(screen.frame(size).contains("more below"));
        screen.press("G");
        for _ in 0..60 {
            screen.press("pgdn");
        }
        let frame = screen.frame(size);
        assert!(!frame.contains("more below"), "{frame}");
        // One line up is seen at once: the end is not behind empty lines.
        screen.press("k");
        assert!(screen.frame(size).contains("1 more below"), "{size:?}");
    }
}

#[test]
fn a_search_finds_keys_here_and_elsewhere() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("? /");
    screen.typed("WRAP");
    let frame = screen.frame((120, 40));
    assert!(!frame.contains("resume"), "{frame}");
    screen.press("ctrl-u");
    screen.typed("break long");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("Elsewhere: in the log"), "{frame}");
    assert!(frame.contains("break long lines, or cut them"), "{frame}");
    screen.press("ctrl-u");
    screen.typed("checkpoint");
    let frame = screen.frame((120, 40));
    // In its own place and nowhere else, though the detail has the key too.
    assert_eq!(frame.matches("continue from the last checkpoint").count(), 1, "{frame}");
    assert!(!frame.contains("Elsewhere"), "{frame}");
    screen.press("enter");
    assert_eq!(screen.model.context(), Context::Help);
    screen.press("/");
    screen.typed(" and nothing of the kind");
    assert!(screen.frame((120, 40)).contains("No key does that"));
    screen.press("esc");
    assert!(screen.frame((120, 60)).contains("choose the columns"), "all is there again");
    screen.press("esc");
    assert!(screen.model.help.is_none());
    assert_eq!(screen.model.context(), Context::List);
}

#[test]
fn in_a_dialog_it_is_about_the_dialog() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j x ?");
    let frame = screen.frame((100, 40));
    assert!(frame.contains("Keys in a question"), "{frame}");
    assert!(frame.contains("mark the other button") && !frame.contains("choose the columns"));
    // Keys that would answer do nothing meanwhile.
    assert!(screen.press("y").is_empty());
    screen.press("? ");
    assert!(matches!(screen.model.overlay, Some(Overlay::Confirm(_))), "it is still asked");
    let effects = screen.press("y");
    let [Effect::Act(begun)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(matches!(begun[0].1, Act::Kill(_)));
}

#[test]
fn where_text_is_typed_a_question_mark_is_text() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("/");
    screen.typed("?a");
    assert!(screen.model.help.is_none());
    screen.press("f1");
    assert!(screen.frame((100, 40)).contains("Keys while you type a filter"));
    screen.typed("xyz");
    screen.press("esc");
    let Some(Overlay::Filter(input, _)) = &screen.model.overlay else { panic!("no filter") };
    assert_eq!(input.value(), "?a");
    screen.press("esc n f1");
    assert!(screen.frame((100, 40)).contains("Keys in the form"));
    screen.press("esc");
    assert!(matches!(screen.model.overlay, Some(Overlay::Form(_))));
}

/// What a question waits for comes while its help is read.
#[test]
fn what_comes_meanwhile_is_taken_in() {
    let mut screen = Screen::showing(samples::snapshot());
    let effects = screen.press("j j A ?");
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::Ask(ask @ Ask::Would(_)) => Some(ask.clone()),
        _ => None,
    });
    let text = "delete v4-8-2, create it".to_owned();
    let asked = asked.unwrap_or_else(|| panic!("{effects:?}"));
    screen.send(Message::Answer(asked, Ok(Box::new(Answer::Text(text)))));
    screen.press("esc");
    assert!(screen.frame((120, 40)).contains("delete v4-8-2, create it"));
}

#[test]
fn everywhere_it_can_be_opened_and_left() {
    let map = KeyMap::new(&[]).unwrap();
    for context in KeyMap::contexts() {
        let opens = |key: &str| {
            let key = tpu_screen::keys::Key::parse(key).unwrap();
            map.command(*context, key)
        };
        let expected = match context {
            Context::Help => Some(Command::Back),
            Context::HelpSearch => None,
            _ => Some(Command::Help),
        };
        assert_eq!(opens("f1"), expected, "{context:?}");
    }
}
