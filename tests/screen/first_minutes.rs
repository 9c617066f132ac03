//! What people press in their first minutes who come from other programs of this sort: the wheel over what they read, a mark on
//! all that is shown, `y`, `R`.

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::view::Whose;
use tpu_screen::message::{Act, Effect, Message, Mouse, MouseDid, Scope};
use tpu_screen::model::{Model, Overlay};
use tpu_screen::pane::PaneText;
use tpu_screen::view::layout::Layout;

use crate::common::boards::screen;
use crate::common::samples::{self, id};
use crate::common::screen::Screen;

fn wheel(screen: &mut Screen, (x, y): (u16, u16), notches: i32) {
    screen.send(Message::Mouse(Mouse { x, y, what: MouseDid::Wheel(notches) }));
}

fn copied(effects: &[Effect]) -> &str {
    let [.., Effect::Copy(text)] = effects else { panic!("{effects:?}") };
    text
}

fn acts(effects: &[Effect]) -> Vec<Act> {
    let begun = effects.iter().filter_map(|effect| match effect {
        Effect::Act(begun) => Some(begun.iter().map(|(_, act)| act.clone())),
        _ => None,
    });
    begun.flatten().collect()
}

#[test]
fn the_wheel_over_a_job_scrolls_its_output_and_never_chooses_another_job() {
    for (size, wide) in [((120, 40), false), ((120, 40), true), ((80, 24), false)] {
        let mut screen = screen();
        screen.model.list.selected = Some(id(9));
        screen.send(Message::Looked(Box::new(samples::snapshot())));
        screen.model.wide = wide;
        screen.frame(size);
        let detail = Layout::of(&screen.model).detail.unwrap();
        let place = (detail.x + 5, detail.bottom() - 3);
        wheel(&mut screen, place, 2);
        assert!(screen.model.log.is_none(), "down from the newest line there is nothing");
        wheel(&mut screen, place, -1);
        assert_eq!(screen.model.list.selected, Some(id(9)), "{size:?}");
        assert_eq!(screen.model.log.as_ref().map(|log| &log.job), Some(&id(9)), "{size:?}");
        // Whoever goes on before the log is there does not end at its first line.
        wheel(&mut screen, place, -1);
        let lines: String =
            (0..500).flat_map(|n| ["line ".to_owned(), n.to_string(), "\n".to_owned()]).collect();
        let text = PaneText::from_capture(lines.as_bytes());
        screen.send(Message::Log(id(9), Ok(Some(text))));
        assert!(screen.frame(size).contains("line 499"), "{}", screen.frame(size));
        wheel(&mut screen, place, -1);
        let frame = screen.frame(size);
        assert!(!frame.contains("line 499") && frame.contains("line 496"), "{frame}");
    }
}

/// Over the row that a tab beside the jobs is about, the wheel changes nothing either.
#[test]
fn the_wheel_below_a_table_leaves_its_row_chosen() {
    let mut screen = screen();
    screen.press("2");
    screen.frame((120, 40));
    let about = Layout::of(&screen.model).about.unwrap();
    let chosen = |model: &Model| model.boards.choosing(model.tab).selected.clone();
    let before = chosen(&screen.model);
    wheel(&mut screen, (about.x + 5, about.y + 2), 1);
    assert_eq!(chosen(&screen.model), before);
    let board = Layout::of(&screen.model).board.unwrap();
    wheel(&mut screen, (board.x + 5, board.y + 2), 1);
    assert_ne!(chosen(&screen.model), before);
}

#[test]
fn all_that_the_filter_shows_is_marked_and_unmarked() {
    let mut screen = screen();
    screen.press("/");
    screen.typed("status:oom|grpc");
    screen.press("enter *");
    assert_eq!(screen.model.list.marked.iter().cloned().collect::<Vec<_>>(), [id(8), id(9)]);
    assert!(
        screen.model.list.rows.iter().any(|row| row.id == id(6)),
        "an attempt, for which it is too late"
    );
    assert!(screen.frame((120, 40)).contains(" 2 marked "));
    assert_eq!(acts(&screen.press("r")), [Act::Resume(id(8)), Act::Resume(id(9))]);
    screen.press("*");
    assert!(screen.model.list.marked.is_empty());
}

/// What is folded away into one row is among what is shown.
#[test]
fn members_behind_one_row_are_marked_with_it() {
    let mut screen = screen();
    screen.press("v");
    let jobs = screen.model.list.rows.iter().filter(|row| row.can_be_chosen()).count();
    let heads: Vec<String> =
        screen.model.list.rows.iter().filter_map(|row| row.head.clone()).collect();
    screen.model.list.folded.extend(heads);
    screen.send(Message::Looked(Box::new(samples::snapshot())));
    assert!(screen.model.list.rows.iter().all(|row| row.head.is_some()), "all of it is folded");
    screen.press("*");
    assert_eq!(screen.model.list.marked.len(), jobs);
}

#[test]
fn what_a_job_is_called_and_where_it_is_can_be_copied() {
    let mut snapshot = samples::snapshot();
    let at = snapshot.jobs.iter().position(|job| job.id == id(9)).unwrap();
    let tail = format!(
        "wandb: run at https://old/1\nview (https://wandb.ai/lab/x/runs/7).\n{}",
        snapshot.jobs[at].tail
    );
    snapshot.jobs[at].tail = tail.into();
    let mut screen = Screen::showing(snapshot);
    screen.model.list.selected = Some(id(9));
    screen.press("y");
    let frame = screen.frame((120, 40));
    for said in [
        "Copy which of alice/9?",
        "/data/logs/alice/20261120_115811",
        "https://wandb.ai/lab/x/runs/7  ",
        "Ran out of memory",
    ] {
        assert!(frame.contains(said), "{said}\n{frame}");
    }
    assert_eq!(copied(&screen.press("enter")), "alice/9");
    assert!(screen.model.overlay.is_none());
    assert!(screen.frame((120, 40)).contains("Copied alice/9"));
    assert_eq!(copied(&screen.press("y j j j enter")), "/data/logs/alice/20261120_115811");
    assert_eq!(copied(&screen.press("y k enter")), "https://wandb.ai/lab/x/runs/7");
    // What has not begun has no directories, and broke nowhere.
    screen.model.list.selected = Some(id(7));
    screen.press("y");
    let Some(Overlay::Choice(choice)) = &screen.model.overlay else { panic!("a choice") };
    assert!(choice.options.iter().all(|(name, _)| name != "what broke" && name != "address"));
    let mut screen = self::screen();
    screen.press("2 g j");
    let target = copied(&screen.press("y")).to_owned();
    assert!(screen.frame((120, 40)).contains(&format!("Copied {target}")));
}

#[test]
fn a_page_is_copied_whole() {
    let mut screen = screen();
    screen.press("space space =");
    let copied = copied(&screen.press("y")).to_owned();
    assert!(copied.contains("status") && copied.contains("≠ "), "{copied}");
    assert!(matches!(screen.model.overlay, Some(Overlay::Page(_))), "it stays");
}

/// `R` looks anew in some programs. Here steps may be lost by it, so it asks; where there are none it does not.
#[test]
fn steps_that_were_reached_are_not_left_behind_unasked() {
    let mut screen = screen();
    screen.model.list.selected = Some(id(8));
    assert_eq!(acts(&screen.press("R")), []);
    let frame = screen.frame((80, 24));
    assert!(
        frame.contains("Start 1 job again from scratch?") && frame.contains("step 12000"),
        "{frame}"
    );
    assert!(frame.contains("r goes on"), "{frame}");
    assert_eq!(acts(&screen.press("n")), []);
    assert_eq!(acts(&screen.press("R y")), [Act::Rerun(id(8))]);
    // The other one broke before its first step.
    screen.model.list.selected = Some(id(9));
    assert_eq!(acts(&screen.press("R")), [Act::Rerun(id(9))]);
    // An attempt that broke before its first step, but had gone on from one.
    let mut snapshot = samples::snapshot();
    snapshot.jobs.iter_mut().find(|job| job.id == id(9)).unwrap().from_step = Some(700);
    screen.model.running.clear();
    screen.send(Message::Looked(Box::new(snapshot)));
    assert_eq!(acts(&screen.press("R")), []);
    assert!(screen.frame((80, 24)).contains("step 700"), "{}", screen.frame((80, 24)));
    screen.press("esc");
    screen.model.list.marked.extend([id(8), id(9)]);
    assert_eq!(acts(&screen.press("R")), []);
    assert!(screen.frame((80, 24)).contains("Start 2 jobs again from scratch?"));
}

/// What belongs to somebody else says so, and an Enter by habit does nothing.
#[test]
fn jobs_of_somebody_else_are_not_stopped_by_habit() {
    let mut snapshot = samples::snapshot();
    snapshot.whose = Whose::default();
    snapshot.users = vec!["alice".into(), "bob".into()];
    let bob = JobId { user: UserName::from("bob"), ..id(7) };
    snapshot.jobs.iter_mut().find(|job| job.id == id(7)).unwrap().id = bob.clone();
    let mut screen = Screen::showing(samples::snapshot());
    screen.send(Message::Resize(120, 40));
    let effects = screen.press("0");
    let everybody = |effect: &Effect| *effect == Effect::Scope(Scope { whose: Whose::default() });
    assert!(effects.iter().any(everybody), "{effects:?}");
    screen.model.scope = Scope { whose: Whose::default() };
    screen.send(Message::Looked(Box::new(snapshot)));
    screen.model.list.selected = Some(bob.clone());
    screen.press("x");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("This job belongs to bob; this screen is alice's."), "{frame}");
    assert!(frame.contains("▸ No (n)"), "{frame}");
    assert_eq!(acts(&screen.press("enter")), []);
    assert_eq!(acts(&screen.press("x y")), [Act::Kill(vec![bob.clone()])]);
    screen.model.list.marked.extend([bob, id(10)]);
    screen.press("x");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("1 of these 2 belongs to bob; this screen is alice's."), "{frame}");
    screen.press("esc");
    screen.model.list.marked.clear();
    screen.model.list.selected = Some(id(10));
    screen.press("x");
    let frame = screen.frame((120, 40));
    assert!(!frame.contains("belongs") && frame.contains("▸ Stop (y)"), "{frame}");
    // Words typed behind `:` are completed to what means one job, and asked about like a key.
    screen.press("esc :");
    screen.typed("kill b");
    screen.press("tab");
    let Some(Overlay::CommandLine(line)) = &screen.model.overlay else { panic!("a line") };
    assert!(line.input.value().starts_with("kill bob"), "{}", line.input.value());
    screen.typed("/7");
    screen.press("enter");
    let frame = screen.frame((120, 40));
    assert!(frame.contains("This job belongs to bob; this screen is alice's."), "{frame}");
    assert_eq!(acts(&screen.press("enter")), []);
}

/// The list takes from the detail beside it what the longest word for how a job is needs.
#[test]
fn how_a_job_is_stands_whole_at_120_columns() {
    let mut snapshot = samples::snapshot();
    for job in &mut snapshot.jobs {
        job.dir.1 = "/home/alice/a".to_owned();
        job.tags = None;
    }
    let at = snapshot.jobs.iter().position(|job| job.id == id(9)).unwrap();
    snapshot.jobs[at].shown.status = Status::Error(ErrorKind::KilledBySignal);
    let mut screen = Screen::showing(snapshot);
    let frame = screen.frame((120, 32));
    let row = frame.lines().find(|line| line.contains("▲ error: k")).unwrap();
    assert!(row.contains("error: killed-by-signal "), "{row}");
}

/// What is folded away takes no room; unfolded it is whole at once, and not with the next look.
#[test]
fn earlier_attempts_take_room_only_where_they_are_shown() {
    let mut snapshot = samples::snapshot();
    for job in &mut snapshot.jobs {
        job.dir.1 = "/home/alice/a".to_owned();
        job.tags = None;
        job.target_label = "v2-8-1".to_owned();
        if job.leaf && job.failure().is_some() {
            job.shown.status = Status::Running;
        }
    }
    let mut screen = Screen::showing(snapshot);
    screen.model.list.selected = Some(id(7));
    screen.frame((120, 32));
    let list = |screen: &Screen| Layout::of(&screen.model).list.unwrap().width;
    let folded = list(&screen);
    screen.press("right");
    let frame = screen.frame((120, 32));
    assert!(frame.contains("resumed (preempted)"), "{frame}");
    assert!(list(&screen) > folded, "{} and {folded}", list(&screen));
    screen.press("left");
    assert_eq!(list(&screen), folded);
}

/// However many they belong to, the buttons are there.
#[test]
fn jobs_of_many_others_leave_room_for_the_answer() {
    let mut snapshot = samples::snapshot();
    let one = samples::job(7);
    snapshot.whose = Whose::default();
    snapshot.jobs = (0..60)
        .map(|at| {
            let mut job = one.clone();
            job.id.user = UserName::from(format!("researcher-number-{at}").as_str());
            job
        })
        .collect();
    let mut screen = Screen::new();
    screen.model.scope = Scope { whose: Whose::default() };
    screen.send(Message::Looked(Box::new(snapshot)));
    screen.press("* x");
    let frame = screen.frame((60, 16));
    assert!(frame.contains("▸ No (n)") && !frame.contains("researcher-number-20"), "{frame}");
}

/// Where there is nobody else, a key for everybody is neither offered nor does it do anything.
#[test]
fn one_user_alone_has_no_key_for_others() {
    let mut snapshot = samples::snapshot();
    snapshot.users = vec!["alice".into()];
    let mut screen = Screen::showing(snapshot);
    assert!(!screen.frame((200, 50)).contains("0 users"));
    assert_eq!(screen.press("0"), []);
}

/// What was printed may hold what a shell acts on, once it is pasted.
#[test]
fn nothing_that_acts_is_copied() {
    let mut snapshot = samples::snapshot();
    let job = snapshot.jobs.iter_mut().find(|job| job.id == id(9)).unwrap();
    job.shown.evidence.as_mut().unwrap().line = "broke\r\u{9b}31m\u{202e} rm -rf ~\n".to_owned();
    let mut screen = Screen::showing(snapshot);
    screen.model.list.selected = Some(id(9));
    let text = copied(&screen.press("y k enter")).to_owned();
    assert!(text.contains("rm -rf") && !text.chars().any(tpu_core::text::is_unsafe), "{text:?}");
}
