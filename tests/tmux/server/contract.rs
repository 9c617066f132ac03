//! The contract of [`Tmux`], held against the real server and the one in memory alike.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::time::Timestamp;
use tpu_system::sys::clock::ManualClock;
use tpu_system::tmux::oneshot::OneShot;
use tpu_system::tmux::{Capture, Tmux, TmuxError};

use super::{all_of, job_window, up, windows};
use crate::common::fakes::tmux::FakeTmux;
use crate::common::tmux::PrivateTmux;
use crate::common::wait::wait_until;

/// A server, and what people and programs do to it past the door.
trait World {
    fn tmux(&self) -> &dyn Tmux;
    /// False when the number is in use.
    fn open_by_hand(&self, session: &str, index: u32, name: &str) -> bool;
    fn close_by_hand(&self, session: &str, index: u32);
    fn move_by_hand(&self, session: &str, index: u32, to: u32);
    fn rename_window(&self, session: &str, index: u32, name: &str);
    fn show(&self, pane: &PaneFact, text: &str);
    /// The program in a pane sets an option of it.
    fn set_option(&self, pane: &PaneFact, option: &str, value: &str);
    fn stop(&self);
}

struct Real {
    server: PrivateTmux,
    tmux: OneShot,
}

impl World for Real {
    fn tmux(&self) -> &dyn Tmux {
        &self.tmux
    }

    fn open_by_hand(&self, session: &str, index: u32, name: &str) -> bool {
        let target = format!("={session}:{index}");
        let words = ["new-window", "-d", "-t", &target, "-n", name, "sleep", "100000"];
        self.server.try_run(&words).status.success()
    }

    fn close_by_hand(&self, session: &str, index: u32) {
        self.server.run(&["kill-window", "-t", &format!("={session}:{index}")]);
    }

    fn move_by_hand(&self, session: &str, index: u32, to: u32) {
        let [from, to] = [index, to].map(|index| format!("={session}:{index}"));
        self.server.run(&["move-window", "-d", "-s", &from, "-t", &to]);
    }

    fn rename_window(&self, session: &str, index: u32, name: &str) {
        self.server.run(&["rename-window", "-t", &format!("={session}:{index}"), name]);
    }

    /// Writes to the pane's terminal, as its program would.
    fn show(&self, pane: &PaneFact, text: &str) {
        let tty = self.server.run(&["display-message", "-p", "-t", &pane.pane_id, "#{pane_tty}"]);
        let before = self.tmux.capture(&[all_of(pane)]).unwrap();
        File::options().write(true).open(tty).unwrap().write_all(text.as_bytes()).unwrap();
        let last = text.trim_end().lines().last().unwrap_or_default().to_owned();
        wait_until("the pane shows the text", || {
            let now = self.tmux.capture(&[all_of(pane)]).unwrap();
            let shown = now[0].as_deref().unwrap_or_default();
            now != before && String::from_utf8_lossy(shown).trim_end().ends_with(&last)
        });
    }

    fn set_option(&self, pane: &PaneFact, option: &str, value: &str) {
        self.server.run(&["set-option", "-p", "-t", &pane.pane_id, option, value]);
    }

    fn stop(&self) {
        self.server.kill_server();
    }
}

struct Fake(FakeTmux);

impl World for Fake {
    fn tmux(&self) -> &dyn Tmux {
        &self.0
    }

    fn open_by_hand(&self, session: &str, index: u32, name: &str) -> bool {
        self.0.open_by_hand(session, index, name)
    }

    fn close_by_hand(&self, session: &str, index: u32) {
        self.0.close_by_hand(session, index);
    }

    fn move_by_hand(&self, session: &str, index: u32, to: u32) {
        self.0.move_by_hand(session, index, to);
    }

    fn rename_window(&self, session: &str, index: u32, name: &str) {
        self.0.rename_window(session, index, name);
    }

    fn show(&self, pane: &PaneFact, text: &str) {
        self.0.set_text(&pane.pane_id, text);
    }

    fn set_option(&self, pane: &PaneFact, option: &str, value: &str) {
        self.0.set_pane_option(&pane.pane_id, option, value);
    }

    fn stop(&self) {
        self.0.stop();
    }
}

fn real() -> Real {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    Real { server, tmux }
}

fn fake() -> Fake {
    let clock = ManualClock::new(Timestamp::from_second(1_795_161_731));
    Fake(FakeTmux::on_testhost(Arc::new(clock)))
}

/// Runs each promise against both servers, as two tests.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        mod real_server { $( #[test] fn $name() { super::$name(&super::real()); } )* }
        mod fake_server { $( #[test] fn $name() { super::$name(&super::fake()); } )* }
    };
}

promises! {
    without_a_server_all_say_so,
    a_session_has_a_home_window_and_is_prepared_twice_without_harm,
    a_window_is_opened_where_asked_and_marked,
    an_index_that_is_taken_is_refused_and_nothing_changes,
    sessions_with_a_common_start_are_told_apart,
    windows_named_like_numbers_are_left_alone,
    a_window_is_never_put_in_the_place_of_another,
    a_window_is_closed_only_if_it_is_still_the_one,
    a_window_without_a_mark_is_closed_only_where_it_was,
    the_process_of_a_pane_is_told_only_while_it_is_the_one,
    an_exit_is_read_of_the_pane_where_it_was_set,
    panes_are_read_together_and_the_gone_do_not_spoil_it,
    a_capture_goes_as_far_back_as_asked,
    a_look_reads_on_what_it_has_seen,
    what_has_gone_since_a_look_is_not_read_on,
    a_known_pane_is_read_only_while_it_is_the_one_and_where_it_was,
    the_pulse_tells_windows_and_ends_and_nothing_else,
    a_window_closed_by_hand_leaves_the_others_where_they_are,
    after_a_restart_the_old_panes_are_never_meant,
    user_names_may_hold_blanks_and_colons,
    names_that_no_session_can_have_are_refused,
}

fn without_a_server_all_say_so(world: &dyn World) {
    let tmux = world.tmux();
    let TmuxFact::Down { place } = tmux.look() else { panic!("{:?}", tmux.look()) };
    assert_eq!((place.server_pid, place.server_start), (0, 0));
    assert!(!place.socket.is_empty() && place.host == "testhost" && place.boot == "boot-1");
    let pane = PaneFact { launch: None, ..some_pane() };
    let is_down = |error| matches!(error, TmuxError::NoServer { .. });
    assert!(is_down(tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap_err()));
    assert!(is_down(tmux.capture(&[all_of(&pane)]).unwrap_err()));
    assert!(is_down(tmux.close_pane(&pane, 1).unwrap_err()));
    assert!(matches!(tmux.look(), TmuxFact::Down { .. }), "a question starts no server");
}

pub(super) fn some_pane() -> PaneFact {
    PaneFact {
        session: "alice".to_owned(),
        window_index: 1,
        pane_id: "%1".to_owned(),
        dead: false,
        activity: 0,
        history_size: 0,
        cursor_y: 0,
        cursor_x: 0,
        job: None,
        launch: None,
        exit: None,
    }
}

fn a_session_has_a_home_window_and_is_prepared_twice_without_harm(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let (place, panes) = up(tmux);
    assert!(place.server_pid > 0 && place.server_start > 1_700_000_000);
    assert_eq!(place.host, "testhost");
    assert_eq!(panes.len(), 1);
    assert_eq!((panes[0].session.as_str(), panes[0].window_index), ("alice", 0));
    assert_eq!((&panes[0].job, &panes[0].launch, panes[0].exit), (&None, &None, None));
    let home = panes[0].pane_id.clone();
    tmux.ensure_session("alice", 10_000).unwrap();
    let (again, panes) = up(tmux);
    assert_eq!(place, again);
    assert_eq!(panes.len(), 1);
    assert_eq!(panes[0].pane_id, home);
}

fn a_window_is_opened_where_asked_and_marked(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let window = job_window("alice", 7, "alice", "tok7");
    let pane = tmux.open_window(&window).unwrap();
    assert_eq!((pane.session.as_str(), pane.window_index), ("alice", 7));
    assert_eq!(pane.job.as_ref(), Some(&window.job));
    assert_eq!(pane.launch, Some(LaunchToken::from("tok7")));
    assert!(!pane.dead && pane.exit.is_none());
    let (_, panes) = up(tmux);
    let seen = panes.iter().find(|seen| seen.pane_id == pane.pane_id).unwrap();
    assert_eq!((&seen.job, &seen.launch), (&pane.job, &pane.launch));
    assert_eq!(windows(tmux), ["alice:0", "alice:7"]);
}

fn an_index_that_is_taken_is_refused_and_nothing_changes(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let first = tmux.open_window(&job_window("alice", 7, "alice", "t1")).unwrap();
    let refused = tmux.open_window(&job_window("alice", 7, "alice", "t2")).unwrap_err();
    assert!(matches!(&refused, TmuxError::Failed { .. }), "{refused}");
    let nobody = tmux.open_window(&job_window("bob", 1, "bob", "t3")).unwrap_err();
    assert!(matches!(&nobody, TmuxError::Failed { .. }), "{nobody}");
    let mut empty = job_window("alice", 8, "alice", "t4");
    empty.argv.clear();
    assert!(matches!(tmux.open_window(&empty), Err(TmuxError::Failed { .. })));
    assert_eq!(windows(tmux), ["alice:0", "alice:7"]);
    let (_, panes) = up(tmux);
    let kept = panes.iter().find(|pane| pane.window_index == 7).unwrap();
    assert_eq!((&kept.pane_id, &kept.launch), (&first.pane_id, &first.launch));
}

fn sessions_with_a_common_start_are_told_apart(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("bird", 10_000).unwrap();
    let lost = tmux.open_window(&job_window("b", 1, "b", "t1")).unwrap_err();
    assert!(matches!(&lost, TmuxError::Failed { .. }), "{lost}");
    assert_eq!(windows(tmux), ["bird:0"]);
    tmux.ensure_session("b", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("b", 1, "b", "t1")).unwrap();
    tmux.open_window(&job_window("bird", 1, "bird", "t2")).unwrap();
    assert_eq!(windows(tmux), ["b:0", "b:1", "bird:0", "bird:1"]);
    tmux.close_pane(&pane, up(tmux).0.server_pid).unwrap();
    assert_eq!(windows(tmux), ["b:0", "bird:0", "bird:1"]);
}

fn windows_named_like_numbers_are_left_alone(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    assert!(world.open_by_hand("alice", 7, "420run"));
    assert!(world.open_by_hand("alice", 8, "42"));
    let pane = tmux.open_window(&job_window("alice", 42, "alice", "t42")).unwrap();
    assert_eq!(pane.window_index, 42);
    let (place, panes) = up(tmux);
    for other in panes.iter().filter(|other| other.pane_id != pane.pane_id) {
        assert_eq!((&other.job, &other.launch), (&None, &None), "{other:?}");
    }
    world.set_option(&pane, "@tpu_exit", "3");
    tmux.close_pane(&pane, place.server_pid).unwrap();
    assert_eq!(windows(tmux), ["alice:0", "alice:7", "alice:8"]);
    let gone = tmux.close_pane(&pane, place.server_pid).unwrap_err();
    assert!(matches!(gone, TmuxError::Changed { .. }), "{gone}");
    assert_eq!(windows(tmux), ["alice:0", "alice:7", "alice:8"]);
    assert!(up(tmux).1.iter().all(|pane| pane.exit.is_none()));
}

fn a_window_is_never_put_in_the_place_of_another(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
    assert!(!world.open_by_hand("alice", 7, "mine"), "its number is in use");
    let again = tmux.open_window(&job_window("alice", 7, "alice", "t8")).unwrap_err();
    assert!(matches!(&again, TmuxError::Failed { .. }), "{again}");
    let (_, panes) = up(tmux);
    assert_eq!(windows(tmux), ["alice:0", "alice:7"]);
    assert!(panes.iter().any(|now| (&now.pane_id, &now.launch) == (&pane.pane_id, &pane.launch)));
}

/// The pane as somebody with another idea of it would have it: each differs in one respect.
fn misunderstandings(pane: &PaneFact, server_pid: u32, other: &PaneFact) -> Vec<(PaneFact, u32)> {
    vec![
        (pane.clone(), server_pid + 1),
        (PaneFact { launch: Some(LaunchToken::from("another")), ..pane.clone() }, server_pid),
        (PaneFact { launch: Some(LaunchToken::from("a,b}#{pid}")), ..pane.clone() }, server_pid),
        (PaneFact { launch: None, ..pane.clone() }, server_pid),
        (PaneFact { pane_id: other.pane_id.clone(), ..pane.clone() }, server_pid),
        (PaneFact { pane_id: "%99".to_owned(), ..pane.clone() }, server_pid),
    ]
}

fn a_window_is_closed_only_if_it_is_still_the_one(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
    let other = tmux.open_window(&job_window("alice", 8, "alice", "t8")).unwrap();
    let pid = up(tmux).0.server_pid;
    for (wrong, pid) in misunderstandings(&pane, pid, &other) {
        let error = tmux.close_pane(&wrong, pid).unwrap_err();
        assert!(matches!(error, TmuxError::Changed { .. }), "{wrong:?} {pid}: {error}");
        assert_eq!(windows(tmux), ["alice:0", "alice:7", "alice:8"], "{wrong:?} {pid}");
    }
    // A new name, and another place in the list of windows, do not make it another window.
    world.rename_window("alice", 7, "8");
    world.move_by_hand("alice", 7, 12);
    tmux.close_pane(&pane, pid).unwrap();
    assert_eq!(windows(tmux), ["alice:0", "alice:8"]);
    // A window that somebody opened has no mark; that it has none must still be so.
    assert!(world.open_by_hand("alice", 9, "by hand"));
    let unmarked = up(tmux).1.into_iter().find(|pane| pane.window_index == 9).unwrap();
    tmux.close_pane(&unmarked, pid).unwrap();
    assert_eq!(windows(tmux), ["alice:0", "alice:8"]);
}

fn a_window_without_a_mark_is_closed_only_where_it_was(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    for (index, name) in [(7, "mine"), (8, "7")] {
        assert!(world.open_by_hand("alice", index, name));
    }
    let (place, panes) = up(tmux);
    let pid = place.server_pid;
    let seven = panes.iter().find(|pane| pane.window_index == 7).unwrap();
    let elsewhere = [
        PaneFact { window_index: 8, ..seven.clone() },
        PaneFact { window_index: 99, ..seven.clone() },
        PaneFact { session: "bob".to_owned(), ..seven.clone() },
        PaneFact { session: "ali".to_owned(), ..seven.clone() },
    ];
    let is_refused = |wrong: &PaneFact| {
        let refused = [tmux.close_pane(wrong, pid), tmux.close_unwatched(wrong, pid)];
        refused.iter().all(|refused| matches!(refused, Err(TmuxError::Changed { .. })))
    };
    for wrong in &elsewhere {
        assert!(is_refused(wrong), "{wrong:?}");
    }
    world.move_by_hand("alice", 7, 12);
    assert!(is_refused(seven), "its place was what it is known by");
    world.move_by_hand("alice", 8, 7);
    assert!(is_refused(seven), "and there is another now");
    assert_eq!(windows(tmux), ["alice:0", "alice:12", "alice:7"]);
    let now = up(tmux).1.into_iter().find(|pane| pane.pane_id == seven.pane_id).unwrap();
    tmux.close_unwatched(&now, pid).unwrap();
    assert_eq!(windows(tmux), ["alice:0", "alice:7"]);
}

fn the_process_of_a_pane_is_told_only_while_it_is_the_one(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
    let other = tmux.open_window(&job_window("alice", 8, "alice", "t8")).unwrap();
    assert!(world.open_by_hand("alice", 9, "by hand"));
    let (place, panes) = up(tmux);
    let pid = place.server_pid;
    let unmarked = panes.iter().find(|pane| pane.window_index == 9).unwrap();
    let told = [&pane, &other, unmarked].map(|pane| tmux.process(pane, pid).unwrap().unwrap());
    assert!(told.iter().all(|pid| *pid > 1) && told[0] != told[1] && told[1] != told[2]);
    let is_changed = |asked| matches!(asked, Err(TmuxError::Changed { .. }));
    for (wrong, pid) in misunderstandings(&pane, pid, &other) {
        assert!(is_changed(tmux.process(&wrong, pid)), "{wrong:?} {pid}");
    }
    world.move_by_hand("alice", 7, 12);
    world.move_by_hand("alice", 9, 13);
    assert_eq!(tmux.process(&pane, pid).unwrap(), Some(told[0]), "it is known by its mark");
    assert!(is_changed(tmux.process(unmarked, pid)), "it was known by its place");
    world.close_by_hand("alice", 12);
    assert!(is_changed(tmux.process(&pane, pid)));
    world.stop();
    assert!(matches!(tmux.process(&other, pid), Err(TmuxError::NoServer { .. })));
}

fn an_exit_is_read_of_the_pane_where_it_was_set(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t7")).unwrap();
    tmux.open_window(&job_window("alice", 8, "alice", "t8")).unwrap();
    assert!(up(tmux).1.iter().all(|pane| pane.exit.is_none()));
    world.set_option(&pane, "@tpu_exit", "143");
    let exits: Vec<_> = up(tmux).1.iter().map(|pane| (pane.window_index, pane.exit)).collect();
    assert_eq!(exits, [(0, None), (7, Some(143)), (8, None)]);
    world.set_option(&pane, "@tpu_exit", "-1");
    assert_eq!(up(tmux).1[1].exit, Some(-1));
}

fn panes_are_read_together_and_the_gone_do_not_spoil_it(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let one = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let two = tmux.open_window(&job_window("alice", 2, "alice", "t2")).unwrap();
    let blank = tmux.open_window(&job_window("alice", 3, "alice", "t3")).unwrap();
    world.show(&one, "実験 №1: loss=0.25\n\n  epoch #{pid} $HOME ; 'x' \\\n");
    world.show(&two, "second\n");
    let gone = PaneFact { pane_id: "%99".to_owned(), ..one.clone() };
    let asked = [&two, &gone, &one, &blank, &two].map(all_of);
    let read = tmux.capture(&asked).unwrap();
    let text =
        |at: usize| read[at].as_deref().map(|text| String::from_utf8(text.to_vec()).unwrap());
    assert_eq!(text(0).as_deref(), Some("second\n"));
    assert_eq!(text(1), None);
    assert_eq!(text(2).as_deref(), Some("実験 №1: loss=0.25\n\n  epoch #{pid} $HOME ; 'x' \\\n"));
    assert_eq!(text(3).as_deref(), Some(""), "a blank pane is there");
    assert_eq!(text(4), text(0));
    assert_eq!(tmux.capture(&[]).unwrap(), Vec::new());
}

fn a_capture_goes_as_far_back_as_asked(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let wide = "x".repeat(500);
    let lines: Vec<String> = (1..=3_000).map(|n| format!("line {n}")).collect();
    world.show(&pane, &format!("{wide}\n{}\n", lines.join("\n")));
    let (_, panes) = up(tmux);
    let seen = panes.iter().find(|seen| seen.pane_id == pane.pane_id).unwrap();
    assert!(seen.history_size > 2_900, "{seen:?}");
    let count = |history| {
        let capture = Capture { history, ..all_of(&pane) };
        let text = tmux.capture(&[capture]).unwrap().remove(0).unwrap();
        let text = String::from_utf8(text.into()).unwrap();
        assert!(text.ends_with("line 3000\n"), "the end is always there");
        (text.lines().count(), text.lines().next().unwrap().to_owned())
    };
    let (all, first) = count(None);
    assert_eq!((all, first), (3_001, wide), "wrapped lines are joined");
    let (screen, _) = count(Some(0));
    assert!((40..=50).contains(&screen), "{screen}");
    assert_eq!(count(Some(70)).0, screen + 70);
}

fn a_look_reads_on_what_it_has_seen(world: &dyn World) {
    let tmux = world.tmux();
    assert!(matches!(tmux.look_to_read().fact, TmuxFact::Down { .. }));
    tmux.ensure_session("alice", 10_000).unwrap();
    let one = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let two = tmux.open_window(&job_window("alice", 2, "alice", "t2")).unwrap();
    world.show(&one, "first\n\nthird\n");
    world.show(&two, "実験\n");
    let look = tmux.look_to_read();
    let TmuxFact::Up { place, panes } = &look.fact else { panic!("{:?}", look.fact) };
    assert_eq!((place.clone(), panes.clone()), up(tmux));
    let wanted = [all_of(&two), all_of(&one)];
    for again in ["by the look", "by itself"] {
        let read = look.capture(&wanted).unwrap();
        assert_eq!(read, [Some("実験\n".into()), Some("first\n\nthird\n".into())], "{again}");
    }
    assert_eq!(tmux.look_to_read().capture(&[]).unwrap(), Vec::new());
}

fn what_has_gone_since_a_look_is_not_read_on(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let one = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let two = tmux.open_window(&job_window("alice", 2, "alice", "t2")).unwrap();
    world.show(&two, "second\n");
    let look = tmux.look_to_read();
    world.close_by_hand("alice", 1);
    let read = look.capture(&[all_of(&two), all_of(&one), all_of(&two)]).unwrap();
    assert_eq!(read, [Some("second\n".into()), None, Some("second\n".into())]);
    let look = tmux.look_to_read();
    world.stop();
    let read = look.capture(&[all_of(&two)]);
    assert!(read.is_err(), "{read:?}");
}

fn a_known_pane_is_read_only_while_it_is_the_one_and_where_it_was(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t1")).unwrap();
    let other = tmux.open_window(&job_window("alice", 8, "alice", "t2")).unwrap();
    world.show(&pane, "of the seventh #{pid}\n");
    let pid = up(tmux).0.server_pid;
    let read = |pane: &PaneFact, pid| tmux.capture_known(pane, pid, &all_of(pane));
    assert_eq!(read(&pane, pid).unwrap(), "of the seventh #{pid}\n");
    assert_eq!(read(&other, pid).unwrap(), "", "a blank pane is there");
    let mut others = misunderstandings(&pane, pid, &other);
    others.push((PaneFact { window_index: 8, ..pane.clone() }, pid));
    others.push((PaneFact { session: "bob".to_owned(), ..pane.clone() }, pid));
    for (wrong, pid) in others {
        let refused = read(&wrong, pid);
        assert!(matches!(refused, Err(TmuxError::Changed { .. })), "{wrong:?}: {refused:?}");
    }
    world.close_by_hand("alice", 7);
    assert!(matches!(read(&pane, pid), Err(TmuxError::Changed { .. })));
    world.stop();
    assert!(read(&other, pid).is_err());
}

fn the_pulse_tells_windows_and_ends_and_nothing_else(world: &dyn World) {
    let tmux = world.tmux();
    let mut pulses = vec![tmux.wake_mark()];
    let mut beats = |what: &str| {
        let pulse = tmux.wake_mark();
        assert_eq!(pulse, tmux.wake_mark(), "{what}: nothing happens meanwhile");
        assert!(!pulses.contains(&pulse), "{what}");
        pulses.push(pulse);
    };
    tmux.ensure_session("alice", 10_000).unwrap();
    beats("a server");
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t1")).unwrap();
    beats("a window");
    let before = tmux.wake_mark();
    world.show(&pane, "a line\n");
    assert_eq!(tmux.wake_mark(), before, "what is printed is no beat");
    world.set_option(&pane, "@tpu_exit", "0");
    beats("an end");
    let again = tmux.open_window(&job_window("alice", 8, "alice", "t2")).unwrap();
    beats("another window");
    world.close_by_hand("alice", 8);
    tmux.open_window(&job_window("alice", 8, "alice", "t3")).unwrap();
    beats("one went and one came");
    assert_ne!(up(tmux).1.last().unwrap().pane_id, again.pane_id);
}

fn a_window_closed_by_hand_leaves_the_others_where_they_are(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let gone = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let stays = tmux.open_window(&job_window("alice", 2, "alice", "t2")).unwrap();
    world.close_by_hand("alice", 1);
    assert_eq!(windows(tmux), ["alice:0", "alice:2"]);
    let pid = up(tmux).0.server_pid;
    assert!(matches!(tmux.close_pane(&gone, pid), Err(TmuxError::Changed { .. })));
    let read = tmux.capture(&[all_of(&gone), all_of(&stays)]).unwrap();
    assert!(read[0].is_none() && read[1].is_some());
    // Its index may be used again, and the new window is another one.
    let new = tmux.open_window(&job_window("alice", 1, "alice", "t3")).unwrap();
    assert_ne!(new.pane_id, gone.pane_id);
    assert!(matches!(tmux.close_pane(&gone, pid), Err(TmuxError::Changed { .. })));
    assert_eq!(windows(tmux), ["alice:0", "alice:1", "alice:2"]);
}

fn after_a_restart_the_old_panes_are_never_meant(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("alice", 10_000).unwrap();
    let old = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let (before, _) = up(tmux);
    world.stop();
    assert!(matches!(tmux.look(), TmuxFact::Down { .. }));
    tmux.ensure_session("alice", 10_000).unwrap();
    let new = tmux.open_window(&job_window("alice", 1, "alice", "t1")).unwrap();
    let (after, _) = up(tmux);
    assert_eq!(old.pane_id, new.pane_id, "ids come again");
    assert_ne!(before, after);
    assert_eq!(before.socket, after.socket);
    assert!(matches!(tmux.close_pane(&old, before.server_pid), Err(TmuxError::Changed { .. })));
    assert_eq!(windows(tmux), ["alice:0", "alice:1"]);
}

fn user_names_may_hold_blanks_and_colons(world: &dyn World) {
    let tmux = world.tmux();
    tmux.ensure_session("wör ld #{pid}", 10_000).unwrap();
    let window = job_window("wör ld #{pid}", 3, "Dr. No: a/b #{x}", "t1");
    let pane = tmux.open_window(&window).unwrap();
    assert_eq!(pane.job, Some(window.job));
    let (place, panes) = up(tmux);
    assert_eq!(panes.len(), 2);
    assert!(panes.iter().all(|pane| pane.session == "wör ld #{pid}"));
    tmux.ensure_session("wör ld #{pid}", 10_000).unwrap();
    tmux.close_pane(&pane, place.server_pid).unwrap();
    assert_eq!(up(tmux).1.len(), 1);
}

fn names_that_no_session_can_have_are_refused(world: &dyn World) {
    let tmux = world.tmux();
    for name in ["", "a.b", "a:b", "$1"] {
        let error = tmux.ensure_session(name, 10_000).unwrap_err();
        assert!(matches!(error, TmuxError::BadName { .. }), "{name}: {error}");
        let error = tmux.open_window(&job_window(name, 1, "alice", "t")).unwrap_err();
        assert!(matches!(error, TmuxError::BadName { .. }), "{name}: {error}");
    }
    assert!(matches!(tmux.look(), TmuxFact::Down { .. }));
    for name in ["=x", "@1", "-t", "~", "{last}", "!", "a'b \"c\"", "x;", "*"] {
        tmux.ensure_session(name, 10_000).unwrap();
        tmux.ensure_session(name, 10_000).unwrap();
        let pane = tmux.open_window(&job_window(name, 5, "alice", "t")).unwrap();
        assert_eq!((pane.session.as_str(), pane.window_index), (name, 5));
        let pid = up(tmux).0.server_pid;
        assert_eq!(tmux.capture_known(&pane, pid, &all_of(&pane)).unwrap(), "", "{name}");
    }
    assert_eq!(up(tmux).1.len(), 18);
}
