//! Every screen as text, at four sizes, with a fixed clock. Read the `.snap` files as pictures.

use ratatui::style::Color;
use tpu_core::model::ids::UserName;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{MonitorHealth, TmuxHealth, Whose};
use tpu_screen::message::{Message, Problem, Ticket};
use tpu_screen::model::Columns;
use tpu_screen::pane::PaneText;
use tpu_screen::theme::Theme;

use crate::common::samples;
use crate::common::screen::{SIZES, Screen};

/// The sample jobs, with alice's lineage selected and its pane read.
fn screen() -> Screen {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j");
    let output = "\u{1b}[36m[worker 0]\u{1b}[0m step 11900 loss 0.418 lr 1e-3 4.2 it/s\n\
                  \u{1b}[36m[worker 0]\u{1b}[0m step 12000 loss \u{1b}[32m0.412\u{1b}[0m lr 1e-3 4.2 it/s\n\
                  \u{1b}[36m[worker 0]\u{1b}[0m 検証 ✅ saving checkpoint 12000\n";
    let pane = PaneText::from_capture(output.as_bytes());
    screen.send(Message::Pane(samples::id(7), Ok(Some(pane))));
    screen
}

fn numbered(lines: std::ops::Range<u32>) -> PaneText {
    let line = |n: u32| match n % 10 {
        7 => format!(
            "[worker 1] 検証 ✅ step {n} 画像認識の実験 {}",
            "→ チェックポイント ".repeat(6)
        ),
        _ => format!("[worker 0] step {n} loss {:.3} lr 1e-3", 3.0 / f64::from(n + 1)),
    };
    PaneText::from_capture(lines.map(line).collect::<Vec<_>>().join("\n").as_bytes())
}

#[test]
fn list() {
    insta::assert_snapshot!(screen().frames());
}

#[test]
fn list_unfolded_and_marked() {
    let mut screen = screen();
    screen.press("right j space j space");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn detail() {
    let mut screen = screen();
    screen.press("enter");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn detail_of_a_failure() {
    let mut screen = screen();
    screen.press("j j enter");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn what_is_under_way_is_not_nothing() {
    let frames = |intent: Option<&str>| {
        let mut snapshot = samples::snapshot();
        for job in &mut snapshot.jobs {
            job.intent = intent.map(str::to_owned);
        }
        let mut screen = Screen::showing(snapshot);
        screen.press("E");
        screen.frames()
    };
    let (idle, at_work) = (frames(None), frames(Some("reapply")));
    assert!(idle.contains("nothing will happen by itself"), "{idle}");
    assert!(at_work.contains("under way: reapply"), "{at_work}");
    assert!(!at_work.contains("nothing will happen"), "{at_work}");
}

#[test]
fn filter_being_typed() {
    let mut screen = screen();
    screen.press("/");
    screen.typed("status:running !tag:base");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn filter_that_finds_nothing() {
    let mut screen = screen();
    screen.press("/");
    screen.typed("tag:nowhere");
    screen.press("enter");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn confirm_kill() {
    let mut screen = screen();
    screen.press("g space space space space x");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn confirm_clean() {
    let mut screen = screen();
    screen.press("c");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn tag_being_typed() {
    let mut screen = screen();
    screen.press("t");
    screen.typed(" 実験");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn help() {
    let mut screen = screen();
    screen.press("?");
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn toasts() {
    let mut screen = screen();
    screen.press("r x y");
    screen.send(Message::Done {
        ticket: Ticket(9),
        toast: "Tagged 7 'baseline'.".to_owned(),
        began: None,
    });
    let problem = Problem::new(
        "job alice/7 is running and cannot be resumed",
        "stop it first with x, or follow it with l",
    );
    screen.send(Message::Failed { ticket: Ticket(1), problem });
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn log() {
    let mut screen = screen();
    screen.send(Message::Resize(80, 24));
    screen.press("l");
    screen.send(Message::Log(samples::id(7), Ok(Some(numbered(0..200)))));
    let following = screen.frames();
    screen.press("pgup /");
    screen.typed("step 9");
    let typing = screen.frames();
    screen.send(Message::Resize(80, 24));
    screen.press("enter n");
    screen.send(Message::Log(samples::id(7), Ok(Some(numbered(0..212)))));
    insta::assert_snapshot!(format!(
        "following\n{following}\nsearching\n{typing}\nscrolled up, 12 lines later\n{}",
        screen.frames()
    ));
}

#[test]
fn log_of_a_closed_window() {
    let mut screen = screen();
    screen.press("g l");
    screen.send(Message::Log(samples::id(3), Ok(None)));
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn everybodys_jobs_and_every_column() {
    let mut snapshot = samples::snapshot();
    snapshot.whose = Whose::default();
    let mut theirs = samples::job(7);
    theirs.id.user = UserName::from("bob");
    snapshot.jobs.push(theirs);
    let mut screen = Screen::new();
    screen.model.scope.whose = Whose::default();
    screen.model.setup.columns = Columns { output: true, ..Columns::default() };
    screen.send(Message::Looked(Box::new(snapshot)));
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn only_directory_and_status() {
    let mut screen = screen();
    screen.model.setup.columns = Columns::from_flags("ds").unwrap();
    insta::assert_snapshot!(screen.frame((80, 24)));
}

#[test]
fn empty() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs.clear();
    snapshot.monitor = MonitorHealth::NotRunning;
    insta::assert_snapshot!(Screen::showing(snapshot).frames());
}

#[test]
fn a_daemon_that_only_watches() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs.clear();
    let why = "the original's monitor runs: MONITOR.py (process 7 of bob)".to_owned();
    snapshot.monitor = MonitorHealth::Watching { turn_age_s: 4, why };
    insta::assert_snapshot!(Screen::showing(snapshot).frame((120, 24)));
}

#[test]
fn no_users() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs.clear();
    snapshot.users.clear();
    insta::assert_snapshot!(Screen::showing(snapshot).frames());
}

#[test]
fn tmux_down() {
    let mut snapshot = samples::snapshot();
    snapshot.tmux = TmuxHealth::Down;
    snapshot.monitor = MonitorHealth::NotRunning;
    for job in &mut snapshot.jobs {
        job.window_alive = None;
        if job.shown.status.is_live() {
            job.shown.unknown = Some("no tmux server answers".to_owned());
        }
    }
    insta::assert_snapshot!(Screen::showing(snapshot).frames());
}

fn unreadable() -> Problem {
    Problem::new(
        "/data/tpu/data.json cannot be read: line 812, column 3: expected ',' or '}'.",
        "The newest good version: tpu doctor --restore",
    )
}

#[test]
fn data_unreadable_from_the_start() {
    let mut screen = Screen::new();
    let looking = screen.frame((80, 24));
    screen.send(Message::LookFailed(unreadable()));
    insta::assert_snapshot!(format!("before\n{looking}\n{}", screen.frames()));
}

#[test]
fn data_unreadable_later() {
    let mut screen = screen();
    screen.wait(34);
    screen.send(Message::LookFailed(unreadable()));
    insta::assert_snapshot!(screen.frames());
}

#[test]
fn too_small() {
    insta::assert_snapshot!(screen().frame((24, 4)));
}

/// Without colours every status must still be told apart, and the selection be seen.
#[test]
fn no_color_leaves_no_colour() {
    let mut screen = screen();
    let coloured = screen.frame((120, 40));
    screen.model.setup.theme = Theme::named("plain").unwrap();
    for keys in ["", "x", "esc ?", "esc l"] {
        screen.press(keys);
        for size in SIZES {
            let buffer = screen.buffer(size);
            let painted = buffer
                .content
                .iter()
                .find(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
            assert_eq!(painted, None, "after {keys:?} at {size:?}");
        }
    }
    screen.press("esc");
    assert_eq!(screen.frame((120, 40)), coloured, "only colours differ");
}

/// Text from outside never reaches the terminal as a command.
#[test]
fn text_from_outside_is_escaped() {
    let mut snapshot = samples::snapshot();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J".to_owned();
    for job in &mut snapshot.jobs {
        job.dir.1.clone_from(&evil);
        job.tags = Some(evil.clone());
        job.target_label.clone_from(&evil);
        job.configs.clone_from(&evil);
        job.tail = evil.as_str().into();
        job.log_dir = Some(evil.clone());
        if let Some(evidence) = &mut job.shown.evidence {
            evidence.line.clone_from(&evil);
            evidence.rule.clone_from(&evil);
        }
        if let Some(next) = &mut job.next {
            next.reason.clone_from(&evil);
        }
    }
    snapshot.tmux = TmuxHealth::Unknown(evil.clone());
    let mut screen = Screen::showing(snapshot);
    screen.send(Message::Failed { ticket: Ticket(1), problem: Problem::new(evil.clone(), evil) });
    screen.press("E");
    let frame = screen.frame((200, 50));
    for seen in ["\\u{1b}]0;owned", "▲ 9 oom: \"\\u{1b}", "does not answer (\\u{1b}"] {
        assert!(frame.contains(seen), "{seen} is shown as what it is:\n{frame}");
    }
    for keys in ["", "j j", "G", "x", "esc c", "esc t", "esc ?", "esc enter", "esc l"] {
        screen.press(keys);
        for size in SIZES {
            for cell in &screen.buffer(size).content {
                assert!(!cell.symbol().contains(char::is_control), "{keys}: {:?}", cell.symbol());
            }
        }
    }
}

/// Nothing panics, however small or large the terminal.
#[test]
fn every_size_draws() {
    for keys in ["", "enter", "esc x", "esc c", "esc ?", "esc /", "esc t", "esc l", "/"] {
        let mut screen = screen();
        screen.press(keys);
        screen.send(Message::Failed { ticket: Ticket(1), problem: unreadable() });
        for width in [1, 2, 10, 29, 30, 31, 45, 60, 109, 110, 300] {
            for height in [1, 2, 5, 6, 7, 10, 19, 20, 80] {
                screen.frame((width, height));
            }
        }
    }
    let mut screen = Screen::new();
    screen.now = Timestamp::from_second(i64::MAX).as_second();
    screen.frame((80, 24));
}
