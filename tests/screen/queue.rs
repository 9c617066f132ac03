//! What waits in a queue, on the screen: in the list, on its tab, in the detail; and what keys do to it, and to nothing
//! else.

use serde_json::json;
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::{JobId, JobNumber, QueueName};
use tpu_core::model::job::Status;
use tpu_core::model::member::Member;
use tpu_core::model::view::{Snapshot, Whose};
use tpu_core::plan::expected::ExpectedStart;
use tpu_ops::waiting::queue::WaitingOutlook;
use tpu_screen::message::{Act, Answer, Ask, Effect, Message};
use tpu_screen::model::Overlay;
use tpu_screen::tabs::Tab;
use tpu_screen::theme::Theme;

use crate::common::boards::answer;
use crate::common::env::TPU;
use crate::common::samples::{self, id, waiting};
use crate::common::screen::{SIZES, Screen, text_of};
use crate::common::terminal::Terminal;
use crate::queue::Lab;

/// One that runs, two that wait, one that is held, and a group of which two members have begun.
pub(super) fn lab() -> Snapshot {
    let member = |window: u32, index: u32| {
        let mut job = samples::job(window);
        job.member = Some(Member { group: JobNumber(30), index });
        job
    };
    let mut named = waiting(21, 2);
    (named.name, named.tags) = (Some("nightly".to_owned()), Some("paper".to_owned()));
    let mut urgent = waiting(22, 3);
    urgent.shown.queued.as_mut().unwrap().reason = Some("after alice/7".to_owned());
    let group = samples::waiting_group(30, 4, &[2, 3, 4, 5]);
    let jobs = vec![
        samples::job(7),
        member(31, 0),
        member(32, 1),
        samples::held(20, 1),
        named,
        urgent,
        group,
    ];
    Snapshot { jobs, ..samples::snapshot() }
}

fn screen() -> Screen {
    Screen::showing(lab())
}

/// The acts that keys have begun.
fn acts(effects: &[Effect]) -> Vec<Act> {
    let each = effects.iter().filter_map(|effect| match effect {
        Effect::Act(acts) => Some(acts.iter().map(|(_, act)| act.clone())),
        _ => None,
    });
    each.flatten().collect()
}

fn done(screen: &mut Screen) {
    for (ticket, _) in screen.model.running.clone() {
        screen.send(Message::Done { ticket, toast: String::new(), began: None });
    }
}

fn priority(number: u8) -> Priority {
    Priority::parse(&number.to_string()).unwrap()
}

#[test]
fn what_waits_stands_in_the_list() {
    insta::assert_snapshot!(screen().frames());
}

#[test]
fn the_tab_says_order_priority_hold_and_reason() {
    let mut screen = screen();
    screen.press("3 j");
    let now = screen.model.now;
    let outlook = WaitingOutlook {
        why: Some("none of local has room: alice/7".to_owned()),
        expected: Some(ExpectedStart::About {
            first: now.plus_seconds(7_440),
            last: Some(now.plus_seconds(7_440)),
            or_sooner: Vec::new(),
        }),
    };
    let why = [(id(21), outlook)].into_iter().collect();
    assert!(screen.effects.contains(&Effect::Ask(Ask::Queue)));
    answer(&mut screen, Ask::Queue, Answer::Queue(why));
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn the_detail_says_where_it_stands_and_why() {
    let mut all = String::new();
    for keys in ["j j", "j j j", "j j j j", "j"] {
        let mut screen = screen();
        screen.press(keys);
        all.push_str(&format!("── {keys}\n{}", screen.frame((120, 40))));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn without_colours_and_in_ascii_it_is_told_by_words() {
    for keys in ["", "3"] {
        let mut screen = screen();
        screen.model.setup.ascii = true;
        screen.model.setup.theme = Theme::named("plain").unwrap();
        screen.press(keys);
        let frame = screen.frame((120, 35));
        assert!(frame.is_ascii(), "{frame}");
        assert!(frame.contains("# held") && frame.contains(": queued"), "{frame}");
    }
}

#[test]
fn with_nothing_that_waits_the_tab_says_how_to_submit() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("3");
    answer(&mut screen, Ask::Queue, Answer::Queue(std::collections::HashMap::new()));
    assert!(screen.frame((80, 24)).contains("Nothing waits. As in: tpu submit"));
    for key in ["x", "+", "-", "h", "f", "e"] {
        assert_eq!(acts(&screen.press(key)), [], "{key}");
        assert!(screen.model.overlay.is_none(), "{key}");
    }
}

#[test]
fn keys_change_what_waits_on_its_tab_and_in_the_list() {
    for (keys, tab) in [("3 j", Tab::Queue), ("j j j", Tab::Jobs)] {
        let mut screen = screen();
        screen.press(keys);
        assert_eq!(screen.model.tab, tab);
        let mut pressed = |key: &str| acts(&screen.press(key));
        assert_eq!(pressed("+"), [Act::SetPriority(id(21), priority(60))]);
        assert_eq!(pressed("+"), [Act::SetPriority(id(21), priority(70))], "before the next look");
        assert_eq!(pressed("h"), [Act::Hold(vec![id(21)])]);
        assert_eq!(pressed("h"), [], "that is under way");
        assert_eq!(pressed("f"), [Act::MoveFirst(vec![id(21)])]);
        let out = Act::TakeOut { waiting: vec![id(21)], kill: Vec::new() };
        assert_eq!(pressed("x n"), []);
        assert_eq!(pressed("x y"), [out]);
        assert_eq!(screen.press("e").last(), Some(&Effect::Ask(Ask::Explain(id(21)))));
    }
    let mut screen = screen();
    screen.press("3 g");
    assert_eq!(acts(&screen.press("h")), [Act::Release(vec![id(20)])], "it is held");
    done(&mut screen);
    screen.press("-");
    assert_eq!(screen.model.running[0].1, Act::SetPriority(id(20), priority(40)));
}

#[test]
fn there_is_nothing_beyond_the_highest_priority() {
    let mut look = lab();
    look.jobs[4].shown.queued.as_mut().unwrap().priority = priority(95);
    let mut screen = Screen::showing(look);
    screen.press("3 j");
    assert_eq!(acts(&screen.press("+")), [Act::SetPriority(id(21), priority(100))]);
    assert_eq!(acts(&screen.press("+")), []);
    assert!(screen.frame((80, 24)).contains("there is nothing beyond"));
}

#[test]
fn what_only_a_job_that_has_begun_can_do_is_refused_with_its_place() {
    for key in ["l", "a", "r", "R", "t", "u", "A", "S", "="] {
        let mut screen = screen();
        screen.press("j j j");
        let effects = screen.press(key);
        assert!(
            effects.iter().all(|effect| matches!(effect, Effect::Ask(_))),
            "{key}: {effects:?}"
        );
        assert!(screen.model.overlay.is_none() && screen.model.log.is_none(), "{key}");
        let said = &screen.model.toasts.last().unwrap().text;
        assert!(said.contains("alice/21 has not begun; place 2 in default"), "{key}: {said}");
    }
}

/// Where what waits of a group is what somebody wants to see first, a key means it; a resume means the others.
#[test]
fn on_the_row_of_a_group_a_key_is_about_what_can_obey_it() {
    let mut look = lab();
    for (at, window) in [(1, 31), (2, 32)] {
        let member = look.jobs[at].member;
        look.jobs[at] = samples::ended(window, Status::Finished);
        look.jobs[at].member = member;
    }
    let mut screen = Screen::showing(look);
    screen.press("j");
    for key in ["a", "l"] {
        assert_eq!(acts(&screen.press(key)), [], "{key}");
        assert!(screen.model.log.is_none(), "{key}");
        let said = &screen.model.toasts.last().unwrap().text;
        assert!(said.contains("alice/30 has not begun; place 4"), "{key}: {said}");
    }
    let begun = [id(31), id(32)];
    assert_eq!(acts(&screen.press("R y")), begun.clone().map(Act::Rerun));
    done(&mut screen);
    screen.press("t");
    screen.typed("x");
    let tags = begun.map(|id| Act::Tag(id, "x".to_owned()));
    assert_eq!(acts(&screen.press("enter")), tags);
}

#[test]
fn what_others_let_wait_is_named_with_its_user_and_asked_about() {
    let mut look = lab();
    look.jobs[3].id = JobId::new("bob".into(), JobNumber(20));
    look.whose = Whose::default();
    let mut screen = Screen::new();
    screen.model.scope.whose = Whose::default();
    screen.send(Message::Looked(Box::new(look)));
    screen.press("3");
    assert!(screen.frame((120, 35)).contains("bob/20"));
    screen.press("x");
    let frame = screen.frame((120, 35));
    assert!(frame.contains("Take 1 entry out") && frame.contains("bob/20"), "{frame}");
    let theirs = JobId::new("bob".into(), JobNumber(20));
    let out = Act::TakeOut { waiting: vec![theirs], kill: Vec::new() };
    assert_eq!(acts(&screen.press("y")), [out]);
}

/// A kill of several takes out what waits before anything ends, and means each as it stood there.
#[test]
fn a_kill_of_marked_ones_tells_what_runs_from_what_waits() {
    let mut screen = screen();
    screen.press("space");
    screen.press("j j space");
    screen.press("x");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("Stop 1 job, and take 1 entry out of the queue?"), "{frame}");
    let act = Act::TakeOut { waiting: vec![id(21)], kill: vec![id(7)] };
    assert_eq!(acts(&screen.press("y")), [act]);
    assert!(screen.model.list.marked.is_empty());
}

/// What has begun between the question and the answer was asked about as something that waits: it is no kill.
#[test]
fn what_begins_under_the_question_is_still_only_to_be_taken_out() {
    let mut screen = screen();
    screen.press("3 j x");
    let mut later = lab();
    later.jobs[4] = samples::job(21);
    screen.send(Message::Looked(Box::new(later)));
    assert!(matches!(screen.model.overlay, Some(Overlay::Confirm(_))));
    let out = Act::TakeOut { waiting: vec![id(21)], kill: Vec::new() };
    assert_eq!(acts(&screen.press("y")), [out]);
}

#[test]
fn a_group_unfolds_to_the_members_that_have_begun() {
    let mut screen = screen();
    screen.press("j");
    assert_eq!(screen.model.list.selected, Some(id(30)));
    assert!(screen.frame((120, 40)).contains("30 ×6"));
    screen.press("right");
    let rows: Vec<JobId> = screen.model.list.rows.iter().map(|row| row.id.clone()).collect();
    assert_eq!(rows, [id(7), id(30), id(31), id(32), id(20), id(21), id(22)]);
    screen.press("j j j");
    assert_eq!(screen.model.list.selected, Some(id(20)), "the selection goes past it");
}

#[test]
fn filters_find_what_waits() {
    let mut screen = screen();
    for (filter, rows) in [
        ("status:held", vec![id(20)]),
        ("status:queued nightly", vec![id(21)]),
        ("tag:paper", vec![id(21)]),
    ] {
        screen.press("/");
        screen.press("ctrl-u");
        screen.typed(filter);
        screen.press("enter");
        let shown: Vec<JobId> = screen.model.list.rows.iter().map(|row| row.id.clone()).collect();
        assert_eq!(shown, rows, "{filter}");
    }
    screen.press("3 /");
    screen.typed("nightly");
    screen.press("enter");
    assert_eq!(screen.model.boards.choosing(Tab::Queue).rows.len(), 1);
}

/// A data file may have been written by hand.
#[test]
fn a_hostile_name_stays_in_its_cell() {
    let mut look = lab();
    let odd = "\u{1b}[2J\u{202e}界界界\t日本語の実験";
    let job = &mut look.jobs[4];
    (job.name, job.tags) = (Some(odd.to_owned()), Some(odd.to_owned()));
    job.target_label = odd.to_owned();
    let queued = job.shown.queued.as_mut().unwrap();
    (queued.queue, queued.reason) = (QueueName::from(odd), Some(odd.to_owned()));
    for keys in ["j j j", "3 j", "3 j x", "j j j enter"] {
        for size in SIZES {
            let mut screen = Screen::showing(look.clone());
            screen.press(keys);
            let buffer = screen.buffer(size);
            let text = text_of(&buffer);
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\t']), "{keys}: {text:?}");
            let right = buffer[(size.0 - 1, 3)].symbol();
            assert_eq!(right, "│", "{keys} at {size:?}\n{text}");
        }
    }
}

#[test]
fn ten_thousand_that_wait_are_gone_through_as_three_are() {
    let mut look = samples::snapshot();
    look.jobs.extend((0..10_000).map(|n| waiting(1_000 + n, n as usize + 1)));
    let mut screen = Screen::showing(look);
    let frame = screen.frame((120, 35));
    assert!(frame.contains("10000 queued"), "{frame}");
    screen.press("3 G");
    assert!(screen.frame((120, 35)).contains("▸ 10000"));
    assert_eq!(acts(&screen.press("f")), [Act::MoveFirst(vec![id(10_999)])]);
    screen.press("/");
    screen.typed("alice/10999");
    screen.press("enter g");
    assert!(screen.frame((120, 35)).contains("▸ 10000"));
    screen.press("enter");
    assert_eq!(
        (screen.model.tab, screen.model.list.selected.clone()),
        (Tab::Jobs, Some(id(10_999)))
    );
}

#[test]
fn the_form_submits_where_a_queue_is_named() {
    let mut screen = screen();
    screen.press("n ctrl-u");
    screen.typed("v4-8");
    // The name is last.
    screen.press("backtab backtab");
    screen.typed("80");
    screen.press("backtab");
    screen.typed("night");
    let effects = screen.press("enter");
    let [Effect::Ask(Ask::Would(act))] = effects.as_slice() else { panic!("{effects:?}") };
    let Act::Submit { queue, priority: urgency, request, sweep: None } = &**act else {
        panic!("{act:?}")
    };
    assert_eq!((queue.as_str(), urgency.number(), request.target()), ("night", 80, "v4-8"));
    answer(&mut screen, Ask::Would(act.clone()), Answer::Text("queue night".to_owned()));
    assert_eq!(acts(&screen.press("enter")), [(**act).clone()]);
    let mut screen = self::screen();
    screen.press("n backtab backtab");
    screen.typed("101");
    assert_eq!(screen.press("enter"), []);
    assert!(screen.frame((80, 24)).contains("no number from 0 to 100"));
}

/// In a real terminal: described, moved, held, and begun while the question stands.
#[test]
fn by_hand() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    lab.env.wait_status(first, "running");
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    terminal.press("n");
    terminal.shows("New run of alice");
    terminal.keys("Tab Tab Tab Tab Tab");
    terminal.types("sleep 1000");
    terminal.keys("Tab Tab");
    terminal.types("default");
    terminal.press("Enter");
    terminal.shows("plan: Enter starts it");
    terminal.press("Enter");
    terminal.until("it waits", || lab.waiting() == [2]);
    terminal.shows("queued");
    terminal.press("3");
    terminal.shows("local: it has alice/1");
    terminal.press("+");
    terminal.until("it is more urgent", || lab.queue()["entries"][0]["priority"] == json!(60));
    terminal.press("h");
    terminal.until("it is held", || lab.queue()["entries"][0]["held"] == json!(true));
    terminal.shows("held by alice");
    terminal.press("h");
    terminal.until("it is free", || lab.queue()["entries"][0]["held"] == json!(false));
    terminal.press("x");
    terminal.shows("Take 1 entry out of the queue?");
    lab.kill(first);
    lab.wait_running(&[2]);
    terminal.press("y");
    terminal.shows("alice/2 does not wait");
    assert_eq!(lab.running(), [2], "nothing was done to what has begun");
    let other = lab.submit("local");
    terminal.press("3");
    terminal.shows("local: it has alice/2");
    terminal.keys("x y");
    terminal.until("it is taken out", || lab.waiting().is_empty());
    assert_eq!(lab.running(), [2], "{other} has not begun");
}
