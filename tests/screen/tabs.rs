//! The tabs beside the jobs, the log and pages: what they show at every size, and what keys and the mouse do
//! there.

use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_screen::keys::Key;
use tpu_screen::message::{Answer, Ask, Door, Effect, Message, Mouse, MouseDid, Problem, Scope};
use tpu_screen::model::{Body, Overlay};
use tpu_screen::pane::PaneText;
use tpu_screen::tabs::Tab;
use tpu_screen::theme::Theme;

use crate::common::boards::{answer, screen};
use crate::common::samples;
use crate::common::screen::{SIZES, Screen};

#[test]
fn targets() {
    let mut screen = screen();
    screen.press("2 j");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn events() {
    let mut screen = screen();
    screen.press("4");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn plan() {
    let mut screen = screen();
    screen.press("5 j");
    insta::assert_snapshot!(screen.frames());
}

/// What is typed, and the help, where they are not about the jobs.
#[test]
fn filters_and_help_of_the_other_tabs() {
    let mut all = String::new();
    for keys in ["2 /", "4 /", "2 ?", "3 ?", "4 ?", "5 ?"] {
        let mut screen = screen();
        screen.press(keys);
        if keys.ends_with('/') {
            screen.typed("v3-8 !日本");
        }
        all.push_str(&format!("── {keys}\n{}", screen.frames()));
    }
    insta::assert_snapshot!(all);
}

/// The log's own filter and help, with long lines broken and cut.
#[test]
fn log_filter_wrap_and_help() {
    let mut all = String::new();
    for keys in ["&", "g w", "g right right", "?"] {
        let mut screen = log_screen();
        screen.press(keys);
        if keys == "&" {
            screen.typed("!worker 1");
        }
        let frames = if keys == "?" { screen.frames() } else { screen.frame((80, 24)) };
        all.push_str(&format!("── {keys}\n{frames}"));
    }
    insta::assert_snapshot!(all);
}

/// Tabs with nothing in them, and with answers that do not come.
#[test]
fn empty_and_broken_tabs() {
    let mut all = String::new();
    for key in ["2", "3", "4"] {
        let mut screen = Screen::showing(samples::snapshot());
        screen.press(key);
        all.push_str(&format!("── {key}, before the first answer\n{}", screen.frames()));
        let why = "no answer within 10 s";
        for ask in [Ask::Targets, Ask::Events, Ask::Plan] {
            let problem = Problem::new(why, "tpu doctor says what is wrong");
            screen.send(Message::Answer(ask, Err(problem)));
        }
        all.push_str(&format!("── {key}, without an answer\n{}", screen.frames()));
        let mut board = crate::common::boards::board();
        board.targets.clear();
        let mut plan = crate::common::boards::plan();
        plan.jobs.clear();
        answer(&mut screen, Ask::Targets, Answer::Targets(board));
        answer(&mut screen, Ask::Events, Answer::Events(Vec::new()));
        answer(&mut screen, Ask::Plan, Answer::Plan(plan));
        all.push_str(&format!("── {key}, empty\n{}", screen.frames()));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn sparkline_and_timeline_in_the_detail() {
    let mut screen = screen();
    screen.press("j j");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn diff_of_two_runs() {
    let mut screen = screen();
    screen.press("j j space j space =");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn sorted_and_grouped() {
    let mut screen = screen();
    screen.press("v v > > > > s");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn keys_go_through_the_tabs_and_back() {
    let mut screen = screen();
    for (key, tab) in [
        ("2", Tab::Targets),
        ("3", Tab::Queue),
        ("4", Tab::Events),
        ("5", Tab::Plan),
        ("6", Tab::Usage),
        ("1", Tab::Jobs),
    ] {
        screen.press(key);
        assert_eq!(screen.model.tab, tab);
    }
    screen.press("tab tab tab tab tab tab tab");
    assert_eq!(screen.model.tab, Tab::Targets);
    screen.press("backtab backtab");
    assert_eq!(screen.model.tab, Tab::Usage);
    screen.press("esc");
    assert_eq!(screen.model.tab, Tab::Jobs);
}

#[test]
fn a_tab_asks_for_what_it_shows_and_not_twice() {
    let mut screen = Screen::showing(samples::snapshot());
    assert!(screen.effects.contains(&Effect::Ask(Ask::Targets)), "the header counts the fleet");
    assert!(screen.press("4").contains(&Effect::Ask(Ask::Events)));
    assert_eq!(screen.wait(60), [], "the answers are still awaited");
    answer(&mut screen, Ask::Events, Answer::Events(Vec::new()));
    assert_eq!(screen.wait(4), []);
    assert_eq!(screen.wait(2), [Effect::Ask(Ask::Events)]);
    answer(&mut screen, Ask::Events, Answer::Events(Vec::new()));
    let again = screen.press("ctrl-l");
    assert!(again.contains(&Effect::Ask(Ask::Events)), "somebody wants it now: {again:?}");
    assert_eq!(screen.wait(1), []);
    let problem = Problem::new("data.json cannot be read", "restore it");
    screen.send(Message::Answer(Ask::Events, Err(problem)));
    assert!(screen.frame((80, 24)).contains("data.json cannot be read"));
}

/// A question that fails at once would else be asked without end.
#[test]
fn what_cannot_be_read_is_asked_for_again_only_after_a_while() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("4");
    let problem = Problem::new("data.json cannot be read", "restore it");
    let effects = screen.send(Message::Answer(Ask::Events, Err(problem)));
    assert_eq!(effects, []);
    assert_eq!(screen.wait(4), []);
    assert_eq!(screen.wait(1), [Effect::Ask(Ask::Events)]);
}

#[test]
fn a_row_leads_to_its_jobs() {
    let mut screen = screen();
    screen.press("2 g j enter");
    assert_eq!(screen.model.tab, Tab::Jobs);
    assert_eq!(screen.model.list.selected, Some(samples::id(7)), "the job on v2-32-p2");
    screen.press("4 G enter");
    assert_eq!(screen.model.list.selected, Some(samples::id(5)), "an attempt below its leaf");
    assert!(screen.model.selected_row().is_some());
    screen.press("5 g j enter");
    assert_eq!(screen.model.list.selected, Some(samples::id(8)));
    // Of a job that is not shown, it is said why not.
    screen.press("5 g enter");
    assert!(screen.model.toasts[0].text.contains("alice/14"), "{:?}", screen.model.toasts);
}

#[test]
fn a_filter_of_a_tab_stays_until_esc() {
    let mut screen = screen();
    screen.press("4 /");
    screen.typed("error !oom");
    screen.press("enter");
    let frame = screen.frame((80, 24));
    assert!(frame.contains("error: grpc") && frame.contains("2 of 8 · /error !oom"), "{frame}");
    screen.press("esc");
    assert_eq!(screen.model.tab, Tab::Events);
    assert!(screen.frame((80, 24)).contains("resumed from 6"));
}

/// The targets that a filter lets through.
fn targets_with(filter: &str) -> Vec<String> {
    let mut screen = screen();
    screen.press("2 /");
    screen.typed(filter);
    screen.press("enter");
    let seen = screen.model.boards.targets.seen.as_ref().unwrap();
    let rows = &screen.model.boards.choosing(Tab::Targets).rows;
    rows.iter().map(|row| seen.targets[row.at].label.clone()).collect()
}

#[test]
fn the_targets_are_filtered_in_the_language_of_the_jobs() {
    for (filter, shown) in [
        ("status:free", &["v2-32-p5", "v3-8-日本"] as &[&str]),
        ("status:free !status:unhealthy", &["v2-32-p5"]),
        ("status:reserved user:bob", &["v2-32-p4"]),
        ("user:alice tpu:p2", &["v2-32-p2"]),
        ("status:disagreement", &["v2-32-p2"]),
        ("status:preempted", &["v2-32-p3"]),
        ("status:unknown", &["v5e-16"]),
        ("tag:base", &["v2-32-p2"]),
        ("tag:friday", &["v2-32-p4"]),
        ("type:v3+ zone:central", &["v4-128"]),
        ("type:v34", &["v3-8-日本", "v4-128"]),
        ("age>1d", &["v3-8-日本"]),
        ("dir:1", &[]),
        ("friday", &["v2-32-p4"]),
        ("alice/10", &["local"]),
    ] {
        assert_eq!(targets_with(filter), shown, "{filter}");
    }
    assert_eq!(targets_with("status:").len(), 9, "what is half typed hides nothing");
}

#[test]
fn everybody_and_back() {
    let mut screen = screen();
    assert_eq!(screen.press("0"), [Effect::Scope(Scope { whose: Whose::default() })]);
    // A look at one user's jobs that was under way is not shown as everybody's.
    screen.send(Message::Looked(Box::new(tpu_core::model::view::Snapshot {
        jobs: Vec::new(),
        ..samples::snapshot()
    })));
    assert_eq!(screen.model.jobs().len(), 11);
    let alice = Whose::of([UserName::from("alice")]);
    assert_eq!(screen.press("0"), [Effect::Scope(Scope { whose: alice })]);
}

#[test]
fn sorting_keeps_the_selection_and_puts_what_failed_first() {
    let mut screen = screen();
    screen.press("j j");
    for _ in 0..5 {
        screen.press(">");
    }
    let sort = screen.model.list.arrangement.sort.map(|(sort, _)| sort.id);
    assert_eq!(sort, Some("status"));
    let first: Vec<u32> =
        screen.model.list.rows.iter().map(|row| row.id.window.0).take(2).collect();
    assert_eq!(first, [8, 9]);
    assert_eq!(screen.model.list.selected, Some(samples::id(7)));
    screen.press("v");
    assert!(screen.model.list.rows[0].is_head());
    screen.press("g k k");
    assert!(screen.model.selected_row().is_some_and(|row| row > 0), "a head is no row to stand on");
}

#[test]
fn speed_and_eta_survive_a_resume() {
    let mut screen = screen();
    let mut snapshot = samples::snapshot();
    let mut child = samples::job(14);
    child.lineage = [5, 6, 7, 14].map(tpu_core::model::ids::JobNumber).to_vec();
    child.shown.progress =
        tpu_core::model::facts::Progress { step: Some(12_000), ..Default::default() };
    for job in &mut snapshot.jobs {
        if job.lineage.len() == 3 {
            job.lineage.clone_from(&child.lineage);
            job.leaf = false;
        }
    }
    snapshot.jobs.push(child);
    screen.send(Message::Looked(Box::new(snapshot)));
    screen.model.list.selected = Some(samples::id(14));
    let frame = screen.frame((200, 50));
    assert!(frame.contains("4.2 it/s · ETA 1h 45m"), "{frame}");
    assert!(frame.contains("loss █"), "the curve goes on: {frame}");
}

fn log_screen() -> Screen {
    let mut screen = screen();
    screen.send(Message::Resize(80, 24));
    screen.press("j j j j l");
    let line = |n: u32| match n {
        60 => "Ran out of memory in memory space hbm. Used 21.9G of 7.48G hbm.".to_owned(),
        n => format!("[worker {}] step {n} loss 0.5 {}", n % 2, "wide ".repeat(20)),
    };
    let lines: Vec<String> = (0..80).map(line).collect();
    let text = PaneText::from_plain(lines.iter().map(String::as_str));
    screen.send(Message::Log(samples::id(9), Ok(Some(text))));
    screen
}

#[test]
fn the_log_filters_wraps_and_finds_the_evidence() {
    let mut screen = log_screen();
    screen.press("&");
    screen.typed("!step");
    screen.press("enter");
    let log = screen.model.log.as_ref().unwrap();
    assert_eq!(log.shown, [60]);
    screen.press("& ctrl-u");
    screen.typed("(");
    screen.press("enter");
    assert!(screen.model.toasts[0].text.starts_with("no filter"), "{:?}", screen.model.toasts);
    screen.press("& ctrl-u enter W");
    let log = screen.model.log.as_ref().unwrap();
    assert_eq!((log.worker.as_deref(), log.shown.len()), (Some("0"), 39));
    screen.press("e");
    let log = screen.model.log.as_ref().unwrap();
    assert_eq!((log.hit, log.worker.as_deref(), log.follow), (Some(60), None, false));
    let copied = screen.press("y");
    assert!(matches!(copied.as_slice(), [Effect::Copy(text)] if text.starts_with("Ran out")));
    screen.press("G w");
    let frame = screen.frame((80, 24));
    assert!(frame.contains("wrapped"), "{frame}");
    let last = frame.lines().rev().find(|line| line.contains("wide")).unwrap();
    assert!(!last.contains("step"), "the last row is the end of the last line: {last}");
    let leave = screen.press("v");
    assert!(
        matches!(leave.as_slice(), [Effect::Leave { door: Door::Pager(job), .. }] if *job == samples::id(9))
    );
}

#[test]
fn pages_scroll_and_close() {
    let mut screen = screen();
    let text: Vec<String> = (0..200).map(|n| format!("line {n}")).collect();
    screen.press("j j");
    screen.press("e");
    answer(&mut screen, Ask::Explain(samples::id(7)), Answer::Text(text.join("\n")));
    assert!(screen.frame((80, 24)).contains("line 0"));
    screen.press("pgdn pgdn j");
    assert!(!screen.frame((80, 24)).contains("line 0 "));
    for _ in 0..300 {
        screen.press("j");
    }
    assert!(screen.frame((80, 24)).contains("line 199"));
    screen.press("k");
    assert!(!screen.frame((80, 24)).contains("line 199"), "no key is lost beyond the end");
    screen.press("esc");
    assert!(screen.model.overlay.is_none());
}

#[test]
fn ascii_mode_and_no_color_hold_everywhere() {
    for keys in ["2", "3", "4", "j j", "j j space j space =", "u", "n", ":", "j j p", "v v s"] {
        let mut screen = screen();
        screen.model.setup.ascii = true;
        screen.model.setup.theme = Theme::named("plain").unwrap();
        screen.press(keys);
        for size in SIZES {
            let buffer = screen.buffer(size);
            for cell in &buffer.content {
                assert!(cell.symbol().is_ascii(), "{keys}: {:?}", cell.symbol());
                assert_eq!(cell.fg, ratatui::style::Color::Reset, "{keys}");
            }
        }
    }
}

/// Nothing panics, however small or large the terminal.
#[test]
fn every_size_draws() {
    for keys in ["2", "3", "4", "j j space j space =", "u", "n", ":", "j j p", "3 /", "j j l &"] {
        let mut screen = screen();
        screen.press(keys);
        for width in [1, 2, 29, 30, 31, 45, 60, 109, 110, 300] {
            for height in [1, 2, 5, 6, 7, 10, 19, 20, 80] {
                screen.frame((width, height));
                for (x, y) in [(0, 0), (width / 2, height / 2), (width - 1, height - 1)] {
                    screen.send(Message::Mouse(Mouse { x, y, what: MouseDid::Drag }));
                }
            }
        }
    }
}

#[test]
fn text_from_outside_is_escaped_everywhere() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let mut screen = screen();
    let mut board = crate::common::boards::board();
    for item in &mut board.targets {
        item.notes = evil.to_owned();
        item.user = Some(evil.to_owned());
        item.tags = vec![evil.to_owned()];
        item.disagreement = Some(evil.to_owned());
        item.label = evil.to_owned();
        item.fact.raw_state = evil.to_owned();
        item.fact.symptoms = vec![evil.to_owned()];
        item.zone = Some(evil.to_owned());
        item.accelerator = Some(evil.to_owned());
        item.aliases = vec![evil.to_owned()];
    }
    answer(&mut screen, Ask::Targets, Answer::Targets(board));
    let mut events = crate::common::boards::events();
    for event in &mut events {
        for text in [&mut event.text, &mut event.kind, &mut event.actor] {
            evil.clone_into(text);
        }
    }
    answer(&mut screen, Ask::Events, Answer::Events(events));
    let mut plan = crate::common::boards::plan();
    for entry in &mut plan.jobs {
        evil.clone_into(&mut entry.reason);
        evil.clone_into(&mut entry.view.target_label);
    }
    answer(&mut screen, Ask::Plan, Answer::Plan(plan));
    let check = |screen: &mut Screen, what: &str| {
        for size in SIZES {
            for cell in &screen.buffer(size).content {
                assert!(!cell.symbol().contains(char::is_control), "{what}: {:?}", cell.symbol());
            }
        }
    };
    for keys in ["2", "3", "4"] {
        screen.press(keys);
        check(&mut screen, keys);
    }
    screen.press("1 j j e");
    answer(&mut screen, Ask::Explain(samples::id(7)), Answer::Text(evil.to_owned()));
    assert!(
        matches!(&screen.model.overlay, Some(Overlay::Page(page)) if matches!(page.body, Body::Text(_)))
    );
    check(&mut screen, "page");
    screen.press("esc :");
    screen.send(Message::Paste(evil.to_owned()));
    check(&mut screen, "line");
    assert!(screen.send(Message::Key(Key::parse("enter").unwrap())).len() <= 2);
}

#[test]
fn a_dialog_has_one_background() {
    use tpu_screen::theme::Role;
    for keys in ["j j x", "j j u", "n", "?", "j j p", "j j space j space ="] {
        let mut screen = screen();
        screen.press(keys);
        let theme = &screen.model.setup.theme;
        let (below, own) =
            (theme.style(Role::Base).bg.unwrap(), theme.style(Role::Dialog).bg.unwrap());
        let buffer = screen.buffer((120, 40));
        for row in buffer.content.chunks(120) {
            let is_own = |cell: &ratatui::buffer::Cell| cell.bg == own;
            let Some(first) = row.iter().position(is_own) else { continue };
            let last = row.iter().rposition(is_own).unwrap_or(first);
            let patch = row[first..=last].iter().find(|cell| cell.bg == below);
            assert_eq!(patch, None, "{keys}");
        }
    }
}

#[test]
fn goodput_is_not_said_before_the_logs_of_all_attempts_are_read() {
    let line = |screen: &mut Screen| {
        let frame = screen.frame((100, 30));
        let found = frame.lines().find(|line| line.contains("7 imagenet"));
        found.unwrap_or_else(|| panic!("{frame}")).to_owned()
    };
    let mut unread = Screen::showing(samples::snapshot());
    unread.press("4");
    assert!(!line(&mut unread).contains('%'), "{}", line(&mut unread));
    let curves = crate::common::boards::curves();
    answer(&mut unread, Ask::Curves(samples::id(7)), Answer::Curves(curves));
    assert!(line(&mut unread).contains('%'), "{}", line(&mut unread));
}
