//! The tab of usage: what ran and what it cost, at every size; what its keys count; and when it is counted.

use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::{By, Stats};
use tpu_ops::observe::stats::StatsReport;
use tpu_screen::message::{Answer, Ask, Message, Mouse, MouseDid, Problem, Reach};
use tpu_screen::model::{ALL_TOGETHER, Measure};
use tpu_screen::tabs::Tab;
use tpu_screen::theme::Theme;

use crate::common::boards::{answer, screen as with_boards};
use crate::common::samples;
use crate::common::screen::{SIZES, Screen};
use crate::common::usage::{asked, press, report};

/// The tab, after some keys.
fn screen(keys: &str) -> Screen {
    let mut screen = with_boards();
    press(&mut screen, "6");
    press(&mut screen, keys);
    screen
}

#[test]
fn usage() {
    insta::assert_snapshot!(screen("").frames());
}

#[test]
fn everybodys_usage_by_user_and_the_chosen_row() {
    insta::assert_snapshot!(screen("0 p p j j").frames());
}

#[test]
fn by_week_in_hours() {
    insta::assert_snapshot!(screen("B B B p c G").frames());
}

#[test]
fn what_does_not_fit_at_once_takes_turns() {
    let mut all = String::new();
    for turns in 1..=3 {
        let mut screen = screen(&"v ".repeat(turns));
        for size in [(60, 10), (60, 16), (80, 24), (100, 60)] {
            let frame = screen.frame(size);
            all.push_str(&format!("── {turns}, {}×{}\n{frame}", size.0, size.1));
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn help() {
    let mut screen = screen("");
    screen.press("?");
    insta::assert_snapshot!(screen.frames());
}

/// Nothing yet, no answer, nothing at all, and nothing in so many days.
#[test]
fn empty_and_broken() {
    let mut all = String::new();
    let mut screen = Screen::showing(samples::snapshot());
    let question = asked(&screen.press("6")).unwrap();
    all.push_str(&format!("── before the first answer\n{}", screen.frames()));
    let problem = Problem::new(
        "/data/tpu/events.jsonl cannot be read: permission denied",
        "let its group read it",
    );
    screen.send(Message::Answer(Ask::Usage(question.clone()), Err(problem)));
    all.push_str(&format!("── without an answer\n{}", screen.frames()));
    let nothing = |question: &_| StatsReport { stats: Stats::default(), ..report(question) };
    answer(&mut screen, Ask::Usage(question.clone()), Answer::Usage(Box::new(nothing(&question))));
    all.push_str(&format!("── nothing in that time\n{}", screen.frames()));
    screen.press("p");
    let further = asked(&screen.press("p")).or_else(|| asked(&screen.effects)).unwrap();
    answer(&mut screen, Ask::Usage(further.clone()), Answer::Usage(Box::new(nothing(&further))));
    let whole = asked(&screen.effects).unwrap();
    assert_eq!(whole.reach, Reach::Everything);
    answer(&mut screen, Ask::Usage(whole.clone()), Answer::Usage(Box::new(nothing(&whole))));
    all.push_str(&format!("── nothing at all\n{}", screen.frames()));
    insta::assert_snapshot!(all);
}

#[test]
fn what_was_counted_before_stays_when_a_later_count_fails() {
    let mut screen = screen("");
    let question = asked(&screen.wait(60)).expect("it is counted again");
    let problem = Problem::new("data.json cannot be read", "restore it");
    screen.send(Message::Answer(Ask::Usage(question), Err(problem)));
    let frame = screen.frame((120, 40));
    assert!(frame.contains("lab-v4-8-1"), "{frame}");
    assert!(frame.contains("▲ data.json cannot be read  as of 1m ago"), "{frame}");
}

#[test]
fn it_is_counted_when_the_tab_is_looked_at_and_not_twice() {
    let mut screen = Screen::showing(samples::snapshot());
    assert_eq!(asked(&screen.wait(60)), None, "nobody looks at it");
    let question = asked(&screen.press("6")).expect("it is asked for");
    assert_eq!((question.by, question.reach), (By::Target, Reach::Month));
    assert_eq!(question.whose, Whose::of([UserName::from("alice")]));
    assert_eq!(asked(&screen.wait(60)), None, "the answer is still awaited");
    let count = report(&question);
    answer(&mut screen, Ask::Usage(question.clone()), Answer::Usage(Box::new(count)));
    assert_eq!(asked(&screen.wait(9)), None);
    assert_eq!(asked(&screen.wait(1)), Some(question.clone()));
    let count = report(&question);
    answer(&mut screen, Ask::Usage(question.clone()), Answer::Usage(Box::new(count)));
    assert_eq!(asked(&screen.press("ctrl-l")), Some(question), "somebody wants it now");
    screen.press("1");
    assert_eq!(asked(&screen.wait(60)), None);
}

#[test]
fn a_count_that_fails_is_not_tried_again_at_once() {
    let mut screen = Screen::showing(samples::snapshot());
    let question = asked(&screen.press("6")).unwrap();
    let problem = Problem::new("data.json cannot be read", "restore it");
    let effects = screen.send(Message::Answer(Ask::Usage(question.clone()), Err(problem)));
    assert_eq!(asked(&effects), None);
    assert_eq!(asked(&screen.wait(9)), None);
    assert_eq!(asked(&screen.wait(1)), Some(question));
}

/// One count at a time is made; the answer to a question that nobody has any more is not shown.
#[test]
fn another_question_is_asked_as_soon_as_the_one_before_is_answered() {
    let mut screen = Screen::showing(samples::snapshot());
    let first = asked(&screen.press("6")).unwrap();
    assert_eq!(asked(&screen.press("b p")), None, "the first is still being counted");
    let count = report(&first);
    screen.effects.clear();
    answer(&mut screen, Ask::Usage(first), Answer::Usage(Box::new(count)));
    assert!(screen.model.boards.usage.asked.seen.is_none());
    let second = asked(&screen.effects).expect("the one that is wanted now");
    assert_eq!((second.by, second.reach), (By::Type, Reach::Quarter));
    let count = report(&second);
    answer(&mut screen, Ask::Usage(second), Answer::Usage(Box::new(count)));
    assert!(screen.frame((80, 24)).contains("by type · last 90 days · alice"));
}

#[test]
fn keys_change_what_is_counted_and_whose() {
    let mut screen = screen("");
    let mut seen = Vec::new();
    for _ in By::ALL {
        let question = &screen.model.boards.usage.asked.seen.as_ref().unwrap().question;
        seen.push(question.by.as_str());
        press(&mut screen, "b");
    }
    assert_eq!(seen, ["target", "type", "zone", "tag", "week", "kind", "user"]);
    press(&mut screen, "b B left right right P");
    let question = |screen: &Screen| {
        let seen = screen.model.boards.usage.asked.seen.as_ref().unwrap();
        (seen.question.by, seen.question.reach)
    };
    assert_eq!(question(&screen), (By::Type, Reach::Week));
    press(&mut screen, "P");
    assert_eq!(question(&screen), (By::Type, Reach::Everything));
    press(&mut screen, "0");
    let seen = screen.model.boards.usage.asked.seen.as_ref().unwrap();
    assert!(seen.question.whose.is_everybody());
    let keys: Vec<&str> = seen.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, [ALL_TOGETHER, "v4-8", "v2-32", "v3-8"]);
}

#[test]
fn bars_stand_for_cost_where_it_is_known_and_for_hours_when_asked() {
    let mut screen = screen("");
    assert_eq!(screen.model.boards.usage.measure(), Measure::Cost);
    press(&mut screen, "c");
    assert_eq!(screen.model.boards.usage.measure(), Measure::Hours);
    // Without a price there is nothing to choose.
    let mut free = Screen::showing(samples::snapshot());
    let question = asked(&free.press("6")).unwrap();
    let mut count = report(&question);
    for figures in count.stats.rows.iter_mut().map(|row| &mut row.figures) {
        figures.cost_known = 0.0;
    }
    count.stats.total.cost_known = 0.0;
    answer(&mut free, Ask::Usage(question), Answer::Usage(Box::new(count)));
    let frame = free.frame((200, 50));
    assert!(!frame.contains("cost"), "{frame}");
    free.press("c");
    assert_eq!(free.model.boards.usage.measure(), Measure::Hours);
    assert!(free.model.toasts.is_empty() || free.model.toasts[0].text.contains("no key"));
}

#[test]
fn the_choice_stays_with_its_row_and_begins_anew_with_other_rows() {
    let mut screen = screen("");
    screen.frame((120, 40));
    screen.press("G");
    let chosen = |screen: &Screen| screen.model.boards.choosing(Tab::Usage).selected.clone();
    let last = chosen(&screen);
    assert!(last.as_deref().is_some_and(|key| key != ALL_TOGETHER));
    press(&mut screen, "p");
    assert_eq!(chosen(&screen), last, "of another period it is the same row");
    press(&mut screen, "b");
    assert_eq!(chosen(&screen).as_deref(), Some(ALL_TOGETHER));
    // A click chooses; a second one goes nowhere, since what ran is no longer among the jobs.
    let click = |screen: &mut Screen| {
        screen.send(Message::Mouse(Mouse { x: 10, y: 4, what: MouseDid::Press }))
    };
    click(&mut screen);
    assert_eq!(chosen(&screen).as_deref(), Some("v4-8"));
    click(&mut screen);
    assert_eq!((screen.model.tab, screen.model.toasts.len()), (Tab::Usage, 0));
}

#[test]
fn a_filter_shows_the_rows_that_hold_its_words() {
    let mut screen = screen("");
    screen.press("/");
    screen.typed("v4 !2");
    screen.press("enter");
    let rows = &screen.model.boards.choosing(Tab::Usage).rows;
    assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["lab-v4-8-1"]);
    screen.press("/ ctrl-u");
    screen.typed("nothing");
    screen.press("enter");
    let frame = screen.frame((80, 24));
    assert!(frame.contains("Nothing matches 'nothing'. Esc takes the filter away."), "{frame}");
}

/// Where the table has no room, the tabs stand above the plot, and can be clicked there.
#[test]
fn the_tabs_can_be_clicked_above_a_plot() {
    for turns in 1..=3 {
        let mut screen = screen(&"v ".repeat(turns));
        let frame = screen.frame((60, 12));
        assert!(frame.lines().nth(1).is_some_and(|line| line.contains("[6 Usage]")), "{frame}");
        screen.send(Message::Mouse(Mouse { x: 4, y: 1, what: MouseDid::Press }));
        assert_eq!(screen.model.tab, Tab::Jobs);
    }
}

#[test]
fn every_size_draws_in_ascii_and_without_colours_too() {
    for keys in ["", "v", "v v", "v v v", "0 p p G", "B B B"] {
        let mut screen = screen(keys);
        for width in [1, 2, 29, 30, 31, 45, 60, 69, 70, 109, 110, 139, 140, 300] {
            for height in [1, 2, 5, 6, 7, 8, 9, 10, 12, 15, 19, 20, 21, 22, 23, 24, 30, 80] {
                screen.frame((width, height));
            }
        }
        screen.model.setup.ascii = true;
        screen.model.setup.theme = Theme::named("plain").unwrap();
        for size in SIZES {
            for cell in &screen.buffer(size).content {
                assert!(cell.symbol().is_ascii(), "{keys}: {:?}", cell.symbol());
                assert_eq!(cell.fg, ratatui::style::Color::Reset, "{keys}");
            }
        }
    }
}

#[test]
fn text_from_outside_is_escaped() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let mut screen = Screen::showing(samples::snapshot());
    let question = asked(&screen.press("6")).unwrap();
    let mut count = report(&question);
    let figures = count.stats.rows.iter_mut().map(|row| &mut row.figures);
    for figures in figures.chain([&mut count.stats.total]) {
        figures.lines.iter_mut().for_each(|line| evil.clone_into(&mut line.line));
    }
    count.stats.rows.iter_mut().for_each(|row| evil.clone_into(&mut row.key));
    answer(&mut screen, Ask::Usage(question), Answer::Usage(Box::new(count)));
    for keys in ["", "j", "v"] {
        screen.press(keys);
        for size in SIZES {
            let buffer = screen.buffer(size);
            for cell in &buffer.content {
                assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
            }
        }
    }
    assert!(screen.frame((200, 50)).contains("\\u{1b}]0;owned"));
}
