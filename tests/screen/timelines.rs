//! The timelines above the events: the runs of the list, in its order, on one scale of time; the chosen event is a moment
//! on it.

use tpu_core::model::job::Stretch;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Pending;
use tpu_screen::message::{Answer, Ask};

use crate::common::boards::{self, answer};
use crate::common::samples;
use crate::common::screen::Screen;

/// The events of the sample, shown.
fn events() -> Screen {
    let mut screen = boards::screen();
    answer(&mut screen, Ask::Events, Answer::Events(boards::events()));
    screen.press("4");
    screen
}

/// The upper panel: numbers of the runs, from top to bottom, and the whole lines.
fn runs(screen: &mut Screen, size: (u16, u16)) -> (Vec<u32>, Vec<String>) {
    let frame = screen.frame(size);
    let panel = frame.lines().skip(2).take_while(|line| !line.starts_with('└'));
    let lines: Vec<String> = panel.map(str::to_owned).collect();
    let number = |line: &String| {
        line.trim_start_matches(['│', '▸', ' ']).split(' ').next()?.parse::<u32>().ok()
    };
    (lines.iter().filter_map(number).collect(), lines)
}

/// The scale's ends, as they are written below the bars.
fn scale(lines: &[String]) -> Vec<String> {
    let last = lines.last().unwrap();
    last.split_whitespace().filter(|word| word.contains(':')).map(str::to_owned).collect()
}

const SIZE: (u16, u16) = (120, 60);

#[test]
fn runs_stand_in_the_order_of_the_list_as_far_as_its_filter_goes() {
    let mut screen = events();
    screen.press("1 <");
    let listed = |screen: &Screen| {
        let rows = screen.model.list.rows.iter();
        rows.map(|row| row.id.window.0).collect::<Vec<_>>()
    };
    for keys in ["1 >", "1 s", "1 > >"] {
        screen.press(keys);
        let expected = listed(&screen);
        screen.press("4");
        assert_eq!(runs(&mut screen, SIZE).0, expected, "{keys}");
    }
    screen.press("1 /");
    screen.typed("status:error");
    screen.press("enter");
    let expected = listed(&screen);
    assert_eq!(expected.len(), 2);
    screen.press("4");
    assert_eq!(runs(&mut screen, SIZE).0, expected);
}

#[test]
fn the_chosen_event_is_marked_in_time_and_its_run_is_named() {
    let mut screen = events();
    let column = |screen: &mut Screen| {
        let (_, lines) = runs(screen, SIZE);
        let chosen = lines.iter().find(|line| line.starts_with("│▸")).cloned();
        let cursor = lines.iter().find_map(|line| {
            let inner: Vec<char> = line.chars().collect();
            (1..inner.len() - 1).find(|at| inner[*at] == '│')
        });
        (chosen.unwrap_or_default(), cursor)
    };
    let (newest, at_newest) = column(&mut screen);
    assert!(newest.starts_with("│▸8 "), "{newest}");
    screen.press("j j j j j");
    let (older, at_older) = column(&mut screen);
    assert!(older.starts_with("│▸7 "), "{older}: what 6 did is in the line of 7");
    assert!(at_older.unwrap() < at_newest.unwrap_or(usize::MAX), "{at_older:?} {at_newest:?}");
    // Along that run, and no other: both ways, to its ends.
    let seconds = |screen: &Screen| {
        let row = screen.model.boards.chosen(tpu_screen::tabs::Tab::Events).unwrap();
        let event = &screen.model.boards.events.seen.as_ref().unwrap()[row.at];
        (event.job.unwrap().0, event.at.as_second())
    };
    screen.press("G");
    let first = seconds(&screen);
    screen.press("right");
    let second = seconds(&screen);
    assert!(second.0 == first.0 && second.1 > first.1, "{first:?} {second:?}");
    screen.press("right right");
    assert_eq!(seconds(&screen), second, "5 has no later one");
    screen.press("left");
    assert_eq!(seconds(&screen), first);
}

#[test]
fn closer_is_a_shorter_time_around_the_event() {
    let mut screen = events();
    let whole = scale(&runs(&mut screen, SIZE).1);
    // The preemption of 5, eleven hours ago.
    screen.press("G k");
    screen.press("+ + + +");
    let (_, lines) = runs(&mut screen, SIZE);
    let close = scale(&lines);
    assert_ne!(close, whole);
    assert!(lines.iter().any(|line| line.starts_with("│▸7 ") && line.contains('◆')), "{lines:?}");
    // What ended long before, or began long after, leaves no mark at the edge.
    let others = lines.iter().filter(|line| !line.contains("7 imagenet"));
    assert!(!others.clone().any(|line| line.contains('✓') || line.contains('○')), "{lines:?}");
    screen.press("+ + + + + + + + + + + + + + +");
    assert!(!scale(&runs(&mut screen, SIZE).1).is_empty());
    screen.press("- - - - - - - - - - - - - - - - - - - -");
    assert_eq!(scale(&runs(&mut screen, SIZE).1), whole);
}

#[test]
fn the_run_of_the_chosen_event_is_in_sight_among_many() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs = (1..=200).map(samples::job).collect();
    let mut screen = boards::screen();
    screen.send(tpu_screen::message::Message::Looked(Box::new(snapshot)));
    let mut all = boards::events();
    all.truncate(1);
    let mut late = all[0].clone();
    late.job = Some(tpu_core::model::ids::JobNumber(180));
    all.push(late);
    answer(&mut screen, Ask::Events, Answer::Events(all));
    screen.press("4 g");
    for size in [(80, 24), (120, 40)] {
        screen.press("g");
        let (shown, lines) = runs(&mut screen, size);
        assert!(shown.contains(&180), "{lines:?}");
        assert!(lines.last().unwrap().contains("/200"), "{lines:?}");
        screen.press("G");
        assert!(runs(&mut screen, size).0.contains(&5), "{size:?}");
    }
}

#[test]
fn what_waits_at_its_engine_fills_no_bar_and_has_no_goodput() {
    let at = |ago: i64| Timestamp::from_second(samples::NOW - ago);
    let open = |ago: i64| Stretch { from: at(ago), until: None };
    let row = |worked: Option<Vec<Stretch>>, waits: bool| {
        let mut snapshot = samples::snapshot();
        let mut job = samples::job(9);
        (job.started_at, job.age_s, job.worked) = (Some(at(7_200)), Some(7_200), worked);
        let pending = Pending { reason: None, expected_start: None, raw: "Unschedulable".into() };
        job.shown.pending = waits.then_some(pending);
        snapshot.jobs = vec![job];
        let mut screen = Screen::showing(snapshot);
        screen.press("4");
        let (_, lines) = runs(&mut screen, SIZE);
        lines.into_iter().find(|line| line.contains("9 imagenet")).unwrap()
    };
    let filled = |line: &str| line.chars().filter(|cell| *cell == '█').count();
    let waiting = row(Some(Vec::new()), true);
    assert!(filled(&waiting) == 0 && !waiting.contains('%'), "{waiting}");
    assert!(waiting.contains("··"), "it is seen to wait: {waiting}");
    let always = row(None, false);
    let half = row(Some(vec![open(3_600)]), false);
    assert!(always.contains("100 %") && half.contains("100 %"), "{always}\n{half}");
    let (always, half) = (filled(&always), filled(&half));
    assert!(half > 0 && half.abs_diff(always / 2) <= 2, "{half} of {always}");
}
