//! What the screen does with messages: selection, filter, questions, log, toasts.

use proptest::prelude::*;

use crate::common::samples;
use crate::common::screen::Screen;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::Status;
use tpu_core::model::view::Snapshot;
use tpu_screen::message::{Act, Effect, Message, Problem, Ticket};
use tpu_screen::model::{Overlay, Tells};
use tpu_screen::pane::PaneText;

fn selected(screen: &Screen) -> u32 {
    screen.model.selected().map_or(0, |job| job.id.window.0)
}

fn look(screen: &mut Screen, change: impl FnOnce(&mut Snapshot)) {
    let mut snapshot = samples::snapshot();
    change(&mut snapshot);
    screen.send(Message::Looked(Box::new(snapshot)));
}

fn acts(effects: &[Effect]) -> Vec<Act> {
    let begun = effects.iter().filter_map(|effect| match effect {
        Effect::Act(begun) => Some(begun),
        _ => None,
    });
    begun.flatten().map(|(_, act)| act.clone()).collect()
}

fn tickets(effects: &[Effect]) -> Vec<Ticket> {
    let begun = effects.iter().filter_map(|effect| match effect {
        Effect::Act(begun) => Some(begun),
        _ => None,
    });
    begun.flatten().map(|(ticket, _)| *ticket).collect()
}

fn lines(range: std::ops::Range<u32>) -> PaneText {
    let lines: Vec<String> = range.map(|n| format!("line {n}")).collect();
    PaneText::from_plain(lines.iter().map(String::as_str))
}

#[test]
fn the_selection_follows_the_job_not_the_row() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j j j");
    assert_eq!(selected(&screen), 9);
    look(&mut screen, |snapshot| {
        snapshot.jobs.insert(0, samples::job(1));
        snapshot.jobs.insert(0, samples::job(2));
    });
    assert_eq!(selected(&screen), 9, "two jobs appeared above it");
    look(&mut screen, |snapshot| snapshot.jobs.reverse());
    assert_eq!(selected(&screen), 9, "the order changed");
    look(&mut screen, |snapshot| snapshot.jobs.retain(|job| job.id.window.0 != 9));
    assert_eq!(selected(&screen), 10, "it is gone: its neighbour");
}

#[test]
fn the_selection_goes_on_with_the_attempt_that_continues_it() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j j j");
    look(&mut screen, |snapshot| {
        let chain = vec![JobNumber(9), JobNumber(14)];
        for job in snapshot.jobs.iter_mut().filter(|job| job.id.window.0 == 9) {
            job.leaf = false;
            job.lineage.clone_from(&chain);
        }
        let mut child = samples::job(14);
        child.lineage = chain;
        snapshot.jobs.push(child);
    });
    assert_eq!(selected(&screen), 14);
}

#[test]
fn a_job_just_started_is_selected_when_it_appears() {
    let mut screen = Screen::new();
    screen.model.list.selected = Some(samples::id(12));
    look(&mut screen, |_| ());
    assert_eq!(selected(&screen), 12);
}

#[test]
fn esc_and_a_key_that_come_together_are_two_keys() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j x alt-j");
    assert!(screen.model.overlay.is_none());
    assert_eq!(selected(&screen), 8);
    screen.press("/");
    screen.typed("two words");
    screen.press("alt-b");
    assert!(screen.model.overlay.is_some(), "in a prompt some keys with Alt edit");
    screen.press("alt-?");
    assert!(screen.model.help.is_some());
}

#[test]
fn a_filter_that_hides_the_selection_moves_it_to_the_first_row() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("G");
    assert_eq!(selected(&screen), 13);
    screen.press("/");
    screen.typed("status:error");
    assert_eq!(selected(&screen), 8, "while typing");
    screen.press("enter");
    assert_eq!(screen.model.list.rows.len(), 2);
    screen.press("x esc");
    assert_eq!(screen.model.list.rows.len(), 2, "Esc closed the question, not the filter");
    screen.press("esc");
    assert_eq!(screen.model.list.rows.len(), 9);
    assert_eq!(selected(&screen), 8, "the selection stays when the filter goes");
}

#[test]
fn leaving_the_prompt_brings_back_the_filter_from_before() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("/");
    screen.typed("status:error");
    screen.press("enter /");
    screen.typed(" tag:nothing");
    assert_eq!(screen.model.list.rows.len(), 0);
    screen.press("esc");
    assert_eq!(screen.model.list.filter.text(), "status:error");
    assert_eq!(screen.model.list.rows.len(), 2);
}

#[test]
fn keys_are_text_while_typing() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("/");
    screen.typed("qx?rRc");
    assert!(!screen.model.quit);
    assert_eq!(acts(&screen.effects), []);
    assert_eq!(screen.model.list.filter.text(), "qx?rRc");
}

#[test]
fn a_paste_is_text_or_nothing() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::Paste("xyq\nr\n".to_owned()));
    assert!(screen.model.overlay.is_none() && !screen.model.quit);
    assert_eq!(acts(&screen.effects), []);
    screen.press("/");
    screen.send(Message::Paste(format!("tag:a\nb{}", "x".repeat(10_000))));
    let Some(Overlay::Filter(input, _)) = &screen.model.overlay else { panic!("no prompt") };
    assert!(input.value().starts_with("tag:a bx"));
    assert_eq!(input.value().len(), 1_000);
}

#[test]
fn a_kill_names_what_it_stops_and_waits_for_yes() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j space x");
    let Some(Overlay::Confirm(question)) = &screen.model.overlay else { panic!("no question") };
    assert_eq!(question.jobs, [samples::id(7)]);
    for no in ["n", "esc", "tab enter", "q"] {
        let effects = screen.press(no);
        assert_eq!(acts(&effects), [], "{no}");
        assert!(screen.model.overlay.is_none() && !screen.model.quit, "{no}");
        assert_eq!(screen.model.list.marked.len(), 1, "{no}: marks stay");
        screen.press("x");
    }
    // What happens behind the question does not change what it is about.
    look(&mut screen, |snapshot| snapshot.jobs.insert(0, samples::job(1)));
    assert_eq!(acts(&screen.press("y")), [Act::Kill(vec![samples::id(7)])]);
    assert!(screen.model.list.marked.is_empty());
}

#[test]
fn what_is_marked_is_resumed_and_rerun_together() {
    let mut screen = Screen::showing(samples::snapshot());
    let two = [Act::Resume(samples::id(8)), Act::Resume(samples::id(9))];
    let effects = screen.press("j j j space space r");
    assert_eq!(acts(&effects), two);
    for ticket in tickets(&effects) {
        screen.send(Message::Done { ticket, toast: "It goes on.".to_owned(), began: None });
    }
    assert!(screen.model.list.marked.is_empty());
    assert_eq!(acts(&screen.press("g R y")), [Act::Rerun(samples::id(3))]);
}

/// The same key again, while what is marked is being resumed, is about no other job; what has failed stays
/// marked for another try.
#[test]
fn a_second_press_is_about_nobody_else() {
    let mut screen = Screen::showing(samples::snapshot());
    let begun = tickets(&screen.press("space space j r"));
    assert_eq!((begun.len(), selected(&screen)), (2, 8), "8 has failed and is not marked");
    assert_eq!(acts(&screen.press("r")), []);
    screen.send(Message::Done { ticket: begun[0], toast: "It goes on.".to_owned(), began: None });
    assert_eq!(acts(&screen.press("r")), [], "the other one is still under way");
    let problem = Problem::new("alice/4 has no checkpoint", "rerun it");
    screen.send(Message::Failed { ticket: begun[1], problem });
    assert_eq!(acts(&screen.press("r")), [Act::Resume(samples::id(4))]);
}

/// The log of a job that is well says nothing of another one's failure; that of a failed job, what broke.
#[test]
fn the_log_shows_no_evidence_but_its_own() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("E");
    assert!(screen.frame((120, 40)).contains("▲ 9 oom:"), "the line is that of the selected job");
    screen.press("g j j l");
    let log = screen.model.log.as_ref().map(|log| log.job.clone());
    assert_eq!(log, Some(samples::id(7)));
    let well = screen.frame((120, 40));
    assert!(!well.contains("▲ 9"), "{well}");
    screen.press("esc j l");
    let failed = screen.frame((120, 40));
    assert!(failed.contains("▲ 8 grpc:") && !failed.contains("▲ 9"), "{failed}");
}

/// Where the filter hides every job there is nothing to plan, to make anew or to set right; neither the bar nor
/// the help says otherwise.
#[test]
fn no_key_is_offered_that_has_no_job_to_be_about() {
    let mut screen = Screen::showing(samples::snapshot());
    let offers = |screen: &mut Screen| {
        let bar = screen.frame((200, 50)).lines().last().unwrap_or_default().to_owned();
        screen.press("?");
        let help = screen.frame((200, 60));
        screen.press("esc");
        [bar.contains("p what if"), help.contains("say what an action would do")]
    };
    assert_eq!(offers(&mut screen), [true, true]);
    screen.press("/");
    screen.typed("tag:nowhere");
    screen.press("enter");
    assert_eq!(offers(&mut screen), [false, false]);
    screen.press("p A S j G");
    assert!(screen.model.overlay.is_none() && screen.model.toasts.is_empty());
}

#[test]
fn enter_presses_the_marked_button() {
    let mut screen = Screen::showing(samples::snapshot());
    assert_eq!(acts(&screen.press("j j x enter")), [Act::Kill(vec![samples::id(7)])]);
    assert_eq!(acts(&screen.press("j x right enter")), []);
}

#[test]
fn ended_jobs_are_left_alone_by_a_kill() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("x");
    assert!(screen.model.overlay.is_none());
    assert_eq!(screen.model.toasts[0].text, "Nothing to stop: 3 (finished) has already ended.");
    screen.press("space space space x");
    let Some(Overlay::Confirm(question)) = &screen.model.overlay else { panic!("no question") };
    assert_eq!(question.jobs, [samples::id(7)]);
    assert_eq!(
        question.note.as_deref(),
        Some("Already ended, left alone: 3 (finished), 4 (killed)")
    );
}

#[test]
fn a_clean_names_ended_lineages_only() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("c");
    let Some(Overlay::Confirm(question)) = &screen.model.overlay else { panic!("no question") };
    let windows: Vec<u32> = question.jobs.iter().map(|id| id.window.0).collect();
    assert_eq!(windows, [3, 4, 8, 9], "attempts of a live leaf stay");
    assert_eq!(acts(&screen.press("y")), [Act::Clean(samples::id(1).user)]);
}

#[test]
fn the_same_action_is_not_begun_twice() {
    let mut screen = Screen::showing(samples::snapshot());
    let effects = screen.press("j j r r");
    assert_eq!(acts(&effects), [Act::Resume(samples::id(7))]);
    let ticket = tickets(&effects)[0];
    let effects =
        screen.send(Message::Done { ticket, toast: "Resumed 7 as 14.".to_owned(), began: None });
    assert!(effects.contains(&Effect::Look), "the result is looked at");
    assert_eq!(acts(&screen.press("r")), [Act::Resume(samples::id(7))]);
}

#[test]
fn leaving_while_something_is_under_way_needs_a_second_key() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j r q");
    assert!(!screen.model.quit);
    assert_eq!(screen.model.toasts[0].tells, Tells::Note);
    screen.press("q");
    assert!(screen.model.quit);
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("q");
    assert!(screen.model.quit);
}

#[test]
fn a_tag_is_edited_not_retyped() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j t");
    screen.typed("-2 ");
    let effects = screen.press("enter");
    assert_eq!(acts(&effects), [Act::Tag(samples::id(7), "baseline-2".to_owned())]);
}

#[test]
fn results_go_and_failures_stay_longer() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("x");
    let problem = Problem::new("no", "do this");
    screen.send(Message::Failed { ticket: Ticket(7), problem });
    assert_eq!(screen.model.toasts.len(), 2);
    screen.wait(6);
    assert_eq!(screen.model.toasts.len(), 1);
    assert_eq!(screen.model.toasts[0].tells, Tells::Failure);
    screen.wait(15);
    assert!(screen.model.toasts.is_empty());
}

#[test]
fn a_remedy_names_the_key_that_follows_it() {
    let cases = [
        ("stop it first: tpu kill w=7 alice", "stop it first: x on alice/7"),
        ("kill it (tpu kill w=7 alice), or use --force", "kill it (x on alice/7), or use --force"),
        ("end it: tpu kill w=7 alice; or wait", "end it: x on alice/7; or wait"),
        // No key forces.
        (
            "if it is stuck: tpu kill w=7 alice --force",
            "if it is stuck: tpu kill w=7 alice --force",
        ),
        ("as in: tpu kill tag:sweep", "as in: tpu kill tag:sweep"),
    ];
    for (hint, expected) in cases {
        let mut screen = Screen::showing(samples::snapshot());
        let problem = Problem::new("alice/7 is at work", hint);
        screen.send(Message::Failed { ticket: Ticket(7), problem });
        assert_eq!(screen.model.toasts[0].hint.as_deref(), Some(expected));
    }
}

#[test]
fn the_screen_is_drawn_only_when_something_changed() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.model.changed = false;
    screen.send(Message::Tick);
    assert!(!screen.model.changed, "the same second");
    screen.wait(1);
    assert!(screen.model.changed, "the clock shows seconds");
}

#[test]
fn a_pane_is_asked_for_once_and_again_when_answered() {
    let mut screen = Screen::new();
    screen.send(Message::Resize(120, 40));
    look(&mut screen, |_| ());
    let panes = |effects: &[Effect]| -> Vec<JobId> {
        let job = |effect: &Effect| match effect {
            Effect::Pane { job, .. } => Some(job.clone()),
            _ => None,
        };
        effects.iter().filter_map(job).collect()
    };
    assert_eq!(panes(&screen.press("j j")), [samples::id(7)], "4's window is closed");
    assert_eq!(panes(&screen.wait(1)), [], "the answer is still awaited");
    screen.send(Message::Pane(samples::id(7), Ok(Some(lines(0..3)))));
    assert_eq!(panes(&screen.wait(1)), [samples::id(7)]);
    // An answer about another job than the selected one is dropped.
    screen.press("j");
    screen.send(Message::Pane(samples::id(7), Ok(Some(lines(0..3)))));
    assert_eq!(screen.model.live.text, None);
    // Where no detail is shown, no pane is read.
    screen.send(Message::Resize(60, 16));
    screen.send(Message::Pane(samples::id(8), Ok(Some(lines(0..3)))));
    assert_eq!(panes(&screen.wait(1)), []);
}

fn log_of(screen: &Screen) -> &tpu_screen::model::Log {
    screen.model.log.as_ref().expect("the log is open")
}

#[test]
fn following_stays_off_once_scrolled_up_and_counts_what_comes() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::Resize(80, 24));
    screen.press("j j l");
    let send =
        |screen: &mut Screen, text| screen.send(Message::Log(samples::id(7), Ok(Some(text))));
    send(&mut screen, lines(0..100));
    let bottom = log_of(&screen).top;
    send(&mut screen, lines(0..110));
    assert_eq!(log_of(&screen).top, bottom + 10, "it follows");
    screen.press("k");
    let top = log_of(&screen).top;
    send(&mut screen, lines(0..117));
    assert_eq!((log_of(&screen).top, log_of(&screen).unseen), (top, 7));
    // The history drops lines at its top: the same lines stay in sight.
    send(&mut screen, lines(20..120));
    assert_eq!((log_of(&screen).top, log_of(&screen).unseen), (top - 20, 10));
    screen.press("pgdn pgdn pgdn");
    assert!(!log_of(&screen).follow, "reaching the end is not following");
    screen.press("G");
    assert_eq!((log_of(&screen).follow, log_of(&screen).unseen), (true, 0));
}

#[test]
fn a_search_goes_round() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::Resize(80, 24));
    screen.press("j j l");
    screen.send(Message::Log(samples::id(7), Ok(Some(lines(0..100)))));
    screen.press("g /");
    screen.typed("LINE 9");
    screen.press("enter");
    assert_eq!(log_of(&screen).hits.len(), 0, "capitals count");
    screen.press("/");
    screen.press("ctrl-u");
    screen.typed("line 9");
    screen.press("enter");
    assert_eq!((log_of(&screen).hits.len(), log_of(&screen).hit), (11, Some(9)));
    screen.press("n");
    assert_eq!(log_of(&screen).hit, Some(90));
    screen.press("N N");
    assert_eq!(log_of(&screen).hit, Some(99), "round the end");
    assert!(!log_of(&screen).follow);
    screen.press("esc");
    assert!(screen.model.log.is_none());
}

#[test]
fn esc_goes_back_everywhere_and_never_quits() {
    let mut screen = Screen::showing(samples::snapshot());
    for keys in ["enter", "l", "?", "x", "c", "t", "/", "enter l /", "l ?"] {
        screen.press("j j");
        screen.press(keys);
        screen.press("esc esc esc esc");
        assert!(!screen.model.quit, "{keys}");
        assert!(screen.model.overlay.is_none() && screen.model.log.is_none(), "{keys}");
        assert!(!screen.model.wide, "{keys}");
    }
}

#[test]
fn the_help_lists_exactly_what_works_here() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("?");
    let help = screen.frame((100, 60));
    assert!(help.contains("continue from the last checkpoint"));
    assert!(!help.contains("show its earlier attempts"), "3 has none");
    screen.press("esc j j ?");
    assert!(screen.frame((100, 60)).contains("show its earlier attempts"));
    screen.press("esc l ?");
    let help = screen.frame((100, 60));
    assert!(help.contains("next hit") && !help.contains("continue from"));
    let mut empty = Screen::new();
    look(&mut empty, |snapshot| snapshot.jobs.clear());
    empty.press("?");
    assert!(!empty.frame((100, 60)).contains("stop the marked jobs"));
}

#[test]
fn a_key_that_means_nothing_says_where_the_keys_are() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("d");
    assert_eq!(screen.model.toasts[0].text, "d is no key here; ? lists those that are.");
    screen.press("esc i");
    assert!(screen.model.toasts.is_empty(), "a key of a failure, on a job that has none");
    screen.press("/");
    screen.typed("d");
    assert!(screen.model.toasts.is_empty(), "text is no key");
}

#[test]
fn without_jobs_no_key_does_harm() {
    let mut screen = Screen::new();
    screen.press("j k g G enter l r R x c t a space left right pgup pgdn / esc ? esc");
    look(&mut screen, |snapshot| snapshot.jobs.clear());
    screen.press("j k g G enter l r R x c t a space left right pgup pgdn / esc ? esc");
    assert_eq!(acts(&screen.effects), []);
    assert!(screen.model.overlay.is_none());
    assert!(screen.press("q").is_empty() && screen.model.quit);
}

#[test]
fn what_was_seen_stays_when_a_look_fails() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::LookFailed(Problem::new("cannot read", "restore")));
    assert_eq!(screen.model.jobs().len(), 11);
    look(&mut screen, |snapshot| {
        snapshot.jobs.retain(|job| job.shown.status == Status::Running);
    });
    assert_eq!(screen.model.problem, None);
}

#[test]
fn a_folded_attempt_is_found_by_its_keys() {
    let mut screen = Screen::showing(samples::snapshot());
    screen.press("j j right j");
    assert_eq!(selected(&screen), 6);
    look(&mut screen, |_| ());
    assert_eq!(selected(&screen), 6, "a new look does not move it to the leaf");
    screen.press("left");
    assert_eq!(selected(&screen), 7, "folding selects the leaf");
}

#[test]
fn the_selected_row_is_on_the_screen_at_every_size() {
    let mut screen = Screen::new();
    look(&mut screen, |snapshot| snapshot.jobs.extend((100..300).map(samples::job)));
    for keys in ["G", "pgup", "k k k", "g", "pgdn pgdn", "G k"] {
        screen.press(keys);
        for size in [(60, 16), (200, 50), (80, 24), (60, 16), (120, 40)] {
            let frame = screen.frame(size);
            let window = selected(&screen).to_string();
            let row = frame.lines().find(|line| line.contains("▸ "));
            let row = row.unwrap_or_else(|| panic!("{keys} at {size:?}: no selection in\n{frame}"));
            assert!(row.contains(&format!("▸ {window} ")), "{keys} at {size:?}: {row}");
        }
    }
}

/// One thing that a person or the world does.
#[derive(Clone, Debug)]
enum Step {
    Press(&'static str),
    Size(u16, u16),
    Jobs(Vec<u32>),
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keys = tpu_screen::keys::TABLE.iter().flat_map(|line| line.keys.iter().copied());
    let keys: Vec<&str> = keys.filter(|key| *key != "ctrl-c").chain(["e", "1"]).collect();
    let step = prop_oneof![
        12 => prop::sample::select(keys).prop_map(Step::Press),
        1 => (1u16..250, 1u16..60).prop_map(|(width, height)| Step::Size(width, height)),
        1 => prop::collection::vec(1u32..14, 0..12).prop_map(Step::Jobs),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any keys in any order: nothing panics, the selection is a row, and nothing is destroyed that a
    /// question on the screen did not name just before.
    #[test]
    fn no_sequence_of_keys_does_harm(steps in steps()) {
        let mut screen = Screen::showing(samples::snapshot());
        for step in steps {
            let asked = match &screen.model.overlay {
                Some(Overlay::Confirm(question)) => Some(question.act.clone()),
                _ => None,
            };
            let effects = match step {
                Step::Press(key) => screen.press(key),
                Step::Size(width, height) => screen.send(Message::Resize(width, height)),
                Step::Jobs(windows) => {
                    let mut snapshot = samples::snapshot();
                    snapshot.jobs.retain(|job| windows.contains(&job.id.window.0));
                    screen.send(Message::Looked(Box::new(snapshot)))
                }
                Step::Wait => screen.wait(1),
            };
            for act in acts(&effects) {
                if matches!(act, Act::Kill(_) | Act::Clean(_)) {
                    prop_assert_eq!(Some(&act), asked.as_ref());
                }
            }
            let list = &screen.model.list;
            prop_assert!(list.rows.is_empty() || screen.model.selected_row().is_some());
            let size = screen.model.size;
            screen.frame(size);
        }
    }
}
