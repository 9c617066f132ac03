//! What only a real tmux can show: environment, arguments, directories, old versions, silence.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_system::sys::env::Env;
use tpu_system::sys::procs;
use tpu_system::tmux::oneshot::OneShot;
use tpu_system::tmux::{Capture, NewWindow, Tmux as _, TmuxError};

use super::contract::some_pane;
use super::{all_of, job_window, up, windows};
use crate::common::tmux::{PrivateTmux, write_script};
use crate::common::wait::{wait_for, wait_until};

#[test]
fn the_place_is_what_the_server_says_also_before_it_runs() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    let TmuxFact::Down { place: before } = tmux.look() else { panic!("{:?}", tmux.look()) };
    tmux.ensure_session("alice", 10_000).unwrap();
    let (place, _) = up(&tmux);
    assert_eq!(place.socket, before.socket);
    assert_eq!(Some(place.server_pid), server.server_pid());
    assert_eq!(place.uid, server.env().uid);
}

#[test]
fn a_server_without_a_session_is_up_and_empty() {
    let server = PrivateTmux::new("set -s exit-empty off");
    let tmux = server.one_shot();
    server.run(&["start-server"]);
    let (place, panes) = up(&tmux);
    assert_eq!(Some(place.server_pid), server.server_pid());
    assert_eq!(panes, []);
    tmux.ensure_session("alice", 10_000).unwrap();
    assert_eq!(up(&tmux).0, place);
}

#[test]
fn a_server_gets_what_is_for_one_and_not_what_a_shell_exports() {
    let vars = [
        ("MARK", "from the caller"),
        ("TPU_NAME", "kept"),
        ("TPU_JOB", "alice/1"),
        ("TPU_LAUNCH", "old"),
        ("TPU_LOG_DIR", "/old"),
        ("TMUX", "/nowhere,1,0"),
    ];
    let server = PrivateTmux::with_env("", &vars);
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let global = server.run(&["show-environment", "-g"]);
    let has = |line: &str| global.lines().any(|found| found == line);
    assert!(has("TPU_NAME=kept"), "{global}");
    for name in ["MARK", "TPU_JOB", "TPU_LAUNCH", "TPU_LOG_DIR"] {
        assert!(!global.contains(name), "{global}");
    }
    assert_eq!(windows(&tmux), ["alice:0"]);
}

#[test]
fn words_reach_the_program_byte_for_byte() {
    let server = PrivateTmux::new("set -g default-shell /bin/false");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let program = server.dir().join("a program; $(x) #{pid}");
    let out = server.dir().join("out");
    let script = format!(
        "printf '%s\\0' \"$0\" \"$@\" > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 100000",
        out.display()
    );
    write_script(&program, &script);
    let program = program.to_str().unwrap().to_owned();
    let hostile = [
        "", " ", ";", "a;", "a\\;", "\\", "'", "\"", "$HOME", "`id`", "$(id)", "#{pid}", "#S",
        "##", "a\nb", "\t", "-t", "--", "{", "}", "~", "%1", "=", "*", "日本", "!", "lr=0.01",
    ];
    let many = || std::iter::once(program.as_str()).chain(hostile);
    for (index, argv) in [(1, many().collect::<Vec<_>>()), (2, vec![program.as_str()])] {
        let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
        let window = NewWindow { argv: argv.clone(), ..job_window("alice", index, "alice", "t") };
        tmux.open_window(&window).unwrap();
        let bytes = wait_for("the program has written", || std::fs::read(&out).ok());
        let words: Vec<&[u8]> =
            bytes.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0).collect();
        assert_eq!(words, argv.iter().map(String::as_bytes).collect::<Vec<_>>());
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_program_starts_in_exactly_the_given_directory() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let names =
        ["plain", "with blank", "#{pid}", "#[fg=red]", "##", "##[x]", "a#,b}", "%H", "it's; \"x\""];
    let raw = OsString::from_vec(vec![b'x', 0xff, b'y']);
    let names = names.iter().map(OsStr::new).chain([raw.as_os_str()]);
    for (index, name) in (1..).zip(names) {
        let cwd = server.dir().join(name);
        std::fs::create_dir(&cwd).unwrap();
        let window = NewWindow { cwd: cwd.clone(), ..job_window("alice", index, "alice", "t") };
        let pane = tmux.open_window(&window).unwrap();
        // A new process first changes its directory and then becomes the program.
        let pid = tmux.process(&pane, up(&tmux).0.server_pid).unwrap().unwrap();
        wait_until("the program runs", || {
            procs::Process::read(pid).is_some_and(|process| process.name == "sleep")
        });
        let link = format!("/proc/{pid}/cwd");
        assert_eq!(std::fs::read_link(link).unwrap(), cwd);
    }
    let before = windows(&tmux);
    let lost =
        NewWindow { cwd: PathBuf::from("/no/such/place"), ..job_window("alice", 99, "a", "t") };
    let error = tmux.open_window(&lost).unwrap_err();
    assert!(error.to_string().contains("no directory '/no/such/place'"), "{error}");
    assert_eq!(windows(&tmux), before, "tmux alone would have taken the home directory");
}

#[test]
fn many_at_once_make_one_session_and_one_window() {
    let server = PrivateTmux::new("set -g base-index 1");
    let opened = std::thread::scope(|scope| {
        let one = || {
            let tmux = server.one_shot();
            tmux.ensure_session("alice", 10_000).unwrap();
            tmux.open_window(&job_window("alice", 7, "alice", "t")).is_ok()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|opened| *opened).count()
    });
    assert_eq!(opened, 1);
    assert_eq!(windows(&server.one_shot()), ["alice:0", "alice:7"]);
}

#[test]
fn colours_come_on_demand() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let argv = ["sh", "-c", r"printf '\033[31mred\033[0m\n'; exec sleep 100000"].map(str::to_owned);
    let window = NewWindow { argv: argv.into(), ..job_window("alice", 1, "alice", "t") };
    let pane = tmux.open_window(&window).unwrap();
    let read = |colours| {
        let capture = Capture { colours, ..all_of(&pane) };
        String::from_utf8(tmux.capture(&[capture]).unwrap().remove(0).unwrap().into()).unwrap()
    };
    wait_until("the program has written", || read(false) == "red\n");
    assert!(read(true).contains("\u{1b}[31mred"), "{:?}", read(true));
}

#[test]
fn a_thousand_panes_are_read_in_one_call() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 1, "alice", "t")).unwrap();
    let gone = Capture { pane_id: "%99999".to_owned(), ..all_of(&pane) };
    let asked: Vec<Capture> =
        (0..2_000).map(|n| if n % 2 == 0 { all_of(&pane) } else { gone.clone() }).collect();
    let read = tmux.capture(&asked).unwrap();
    assert_eq!(read.len(), 2_000);
    assert!(read.iter().enumerate().all(|(n, text)| text.is_some() == (n % 2 == 0)));
}

/// What programs write that could tell panes from each other wrongly.
const CONFUSING: [&str; 8] = [
    r"printf '%0300d\n' 7",
    r"printf '%0200d\n\n  \n' 7",
    r"printf '%0199d\u65e5\u672c\n' 7",
    r"printf 'blanks%0300s\nend   \n' ' '",
    r"seq 1000",
    r"printf 'a\tb\t\tc\t%0150d\t\t\t\t\t\t\tx\n' 7",
    r"printf '\033[?1049h\033[20;195Hover the edge, and on'",
    r"printf 'one\033[2J\033[10;5Htwo\033[40;1Hthree\033[1;1H'",
];

#[test]
fn many_panes_read_the_same_as_each_by_itself() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let panes: Vec<PaneFact> = (1..)
        .zip(CONFUSING)
        .map(|(number, says)| {
            let says = format!(r"{says}; printf '\033]2;said\007'; exec sleep 100000");
            let argv = ["bash", "-c", &says];
            let argv = argv.map(str::to_owned).into();
            let of = job_window("alice", number, "alice", &format!("t{number}"));
            tmux.open_window(&NewWindow { argv, ..of }).unwrap()
        })
        .collect();
    wait_until("all have said it", || {
        let titles = server.run(&["list-panes", "-a", "-F", "#{pane_title}"]);
        titles.lines().filter(|title| *title == "said").count() == panes.len()
    });
    for (history, colours) in [(Some(0), false), (Some(70), false), (None, true)] {
        let of = |pane: &PaneFact| Capture { history, colours, ..all_of(pane) };
        let alone: Vec<_> =
            panes.iter().map(|pane| tmux.capture(&[of(pane)]).unwrap().remove(0)).collect();
        let asked: Vec<Capture> = (0..50).flat_map(|_| panes.iter().map(of)).collect();
        for read in [tmux.capture(&asked), tmux.look_to_read().capture(&asked)] {
            for (at, text) in read.unwrap().iter().enumerate() {
                assert_eq!(text, &alone[at % panes.len()], "{}", CONFUSING[at % panes.len()]);
            }
        }
    }
}

#[test]
fn a_program_that_ended_is_dead_and_its_window_there() {
    let server = PrivateTmux::new("set -g remain-on-exit on");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let argv = vec!["true".to_owned()];
    tmux.open_window(&NewWindow { argv, ..job_window("alice", 1, "alice", "t") }).unwrap();
    wait_until("the pane is dead", || up(&tmux).1.iter().any(|p| p.window_index == 1 && p.dead));
}

#[test]
fn a_failed_question_is_unknown_and_never_down() {
    // A program that hangs, one that is refused, one that talks nonsense: none of them is "no server".
    let cases = [
        ("exec sleep 1000", "did not answer within"),
        ("echo 'error connecting to /x (Permission denied)' >&2; exit 1", "Permission denied"),
        ("echo 'lost server' >&2; exit 1", "lost server"),
        ("exit 1", "said nothing"),
        (r#"case "$*" in *-V*) echo tmux 3.3a;; *) echo nonsense;; esac"#, "'nonsense'"),
        (r#"case "$*" in *-V*) echo tmux 2.9;; *) echo nonsense;; esac"#, "tmux 2.9 is too old"),
    ];
    for (script, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        write_script(&dir.path().join("tmux"), script);
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let env = Env::fixed([("PATH", path.as_str()), ("HOME", "/")]);
        let tmux = OneShot::new(Some("none"), &env).with_timeout(Duration::from_millis(500));
        let to_read = tmux.look_to_read();
        assert!(to_read.capture(&[all_of(&some_pane())]).is_err(), "{script}");
        for fact in [tmux.look(), to_read.fact] {
            match fact {
                TmuxFact::Unknown { reason } => {
                    assert!(reason.contains(expected), "{script}: {reason}");
                }
                other => panic!("{script}: {other:?}"),
            }
        }
    }
}

/// A tmux that answers a look with one pane and does `then` with `$mark` for what ends a part.
fn one_that_then(then: &str) -> String {
    format!(
        r#"for word; do case "$word" in tpu-mark-*) seen=$word;; esac; done
        mark=${{seen%-seen}}
        echo "1 2 /socket"; echo "1 %1 1 0 5 0 3 0 @1 alice:::"; echo "$seen"
        {then}"#
    )
}

#[test]
fn what_is_read_after_a_look_is_whole_or_not_of_it() {
    let cases = [
        ("exec sleep 1000", "did not answer within"),
        ("cat >/dev/null; echo 'server exited' >&2; exit 1", "server exited"),
        ("cat >/dev/null; echo one", "said nothing"),
        ("cat >/dev/null; echo one; echo $mark", "said nothing"),
        ("cat >/dev/null; echo one; echo $mark; echo $mark; echo $mark-end", "something else"),
        ("cat >/dev/null; echo one; echo $mark-end", "something else"),
        ("cat >/dev/null; echo one; echo $mark; echo $mark-end; exec sleep 1000", "all"),
    ];
    for (then, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        write_script(&dir.path().join("tmux"), &one_that_then(then));
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let env = Env::fixed([("PATH", path.as_str()), ("HOME", "/")]);
        let tmux = OneShot::new(Some("none"), &env).with_timeout(Duration::from_secs(2));
        let look = tmux.look_to_read();
        let one = matches!(&look.fact, TmuxFact::Up { panes, .. } if panes.len() == 1);
        assert!(one, "{then}: {:?}", look.fact);
        let seen = match look.capture(&[all_of(&some_pane())]) {
            Ok(read) => {
                assert_eq!(read, [Some("one\n".into())]);
                "all".to_owned()
            }
            Err(error) => error.to_string(),
        };
        assert!(seen.contains(expected), "{then}: {seen}");
    }
}

#[test]
fn a_look_that_breaks_off_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let half = r#"echo "1 2 /socket"; echo "1 %1 1 0 5 0 3 0 @1 alice:::""#;
    write_script(&dir.path().join("tmux"), half);
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let tmux = OneShot::new(Some("none"), &Env::fixed([("PATH", path.as_str())]));
    let fact = tmux.look_to_read().fact;
    assert!(matches!(&fact, TmuxFact::Unknown { reason } if reason.contains("middle")), "{fact:?}");
}

#[test]
fn a_look_and_what_it_reads_are_one_process_that_nobody_sees() {
    let server = PrivateTmux::new("");
    server.one_shot().ensure_session("alice", 10_000).unwrap();
    let pane = server.one_shot().open_window(&job_window("alice", 1, "alice", "t")).unwrap();
    let (calls, bin) = (server.dir().join("calls"), server.dir().join("bin"));
    std::fs::create_dir(&bin).unwrap();
    let counts = format!("echo call >>'{}'; PATH=${{PATH#*:}}; exec tmux \"$@\"", calls.display());
    write_script(&bin.join("tmux"), &counts);
    let mut env = server.env().clone();
    let path = env.non_empty("PATH").unwrap().to_owned();
    env.vars.insert("PATH".into(), format!("{}:{path}", bin.display()).into());
    let tmux = OneShot::new(Some(server.socket()), &env);
    let look = tmux.look_to_read();
    assert!(matches!(look.fact, TmuxFact::Up { .. }), "{:?}", look.fact);
    let attached = || server.run(&["list-sessions", "-F", "#{session_name} #{session_attached}"]);
    assert_eq!((attached().as_str(), server.run(&["list-clients"]).as_str()), ("alice 0", ""));
    assert_eq!(look.capture(&[all_of(&pane)]).unwrap(), [Some(bytes::Bytes::new())]);
    assert_eq!(std::fs::read_to_string(&calls).unwrap(), "call\n");
    // A look that nothing is read after keeps no server that has lost its last window.
    drop(tmux.look_to_read());
    server.run(&["kill-session", "-t", "=alice"]);
    wait_until("the server has ended", || matches!(tmux.look(), TmuxFact::Down { .. }));
}

#[test]
fn an_old_tmux_is_refused_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        r#"case "$*" in *-V*) echo tmux 3.1c;; *) : > '{}';; esac"#,
        dir.path().join("changed").display()
    );
    write_script(&dir.path().join("tmux"), &script);
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let tmux = OneShot::new(None, &Env::fixed([("PATH", path)]));
    for _ in 0..2 {
        let error = tmux.ensure_session("alice", 10_000).unwrap_err();
        assert_eq!(error.to_string(), "tmux 3.1c is too old: tmux 3.2 or later is needed");
        let error = tmux.open_window(&job_window("alice", 1, "alice", "t")).unwrap_err();
        assert!(matches!(error, TmuxError::TooOld { .. }));
    }
    assert!(!dir.path().join("changed").exists());
}

#[test]
fn a_socket_of_somebody_else_is_unknown() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let TmuxFact::Up { place, .. } = tmux.look() else { panic!("{:?}", tmux.look()) };
    let folder = PathBuf::from(&place.socket).parent().unwrap().to_owned();
    // tmux itself refuses a directory that others could write to, whoever asks.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let fact = tmux.look();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(
        matches!(&fact, TmuxFact::Unknown { reason } if reason.contains("permissions")),
        "{fact:?}"
    );
}

#[test]
fn a_window_that_is_linked_to_several_places_is_at_each_of_them() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    for session in ["alice", "bob"] {
        tmux.ensure_session(session, 10_000).unwrap();
    }
    server.run(&["new-window", "-d", "-t", "=alice:7", "sleep", "100000"]);
    tmux.open_window(&job_window("alice", 8, "alice", "t8")).unwrap();
    for (from, to) in [("7", "alice:5"), ("7", "bob:3"), ("8", "alice:6"), ("8", "bob:2")] {
        server.run(&["link-window", "-d", "-s", &format!("=alice:{from}"), "-t", to]);
    }
    let (place, panes) = up(&tmux);
    let pid = place.server_pid;
    let linked: Vec<&PaneFact> = panes.iter().filter(|pane| pane.window_index > 0).collect();
    assert_eq!(linked.len(), 6);
    for pane in &linked {
        let target = tmux.attach_argv(pane, None).pop().unwrap();
        let shown = ["display-message", "-p", "-t", &target, "#{session_name} #{pane_id}"];
        assert_eq!(server.run(&shown), format!("{} {}", pane.session, pane.pane_id));
        assert_eq!(tmux.capture_known(pane, pid, &all_of(pane)).unwrap(), "", "{pane:?}");
        assert!(tmux.process(pane, pid).unwrap().is_some(), "{pane:?}");
    }
    // The lower of its two numbers is the one that tmux itself would take.
    let at = |index| linked.iter().find(|pane| pane.window_index == index).unwrap();
    tmux.close_unwatched(at(7), pid).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "alice:6", "alice:8", "bob:0", "bob:2"]);
    tmux.close_pane(at(2), pid).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "bob:0"]);
}

#[test]
fn a_pane_that_was_put_into_another_window_is_not_where_it_was() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    for index in [7, 8] {
        server.run(&["new-window", "-d", "-t", &format!("=alice:{index}"), "sleep", "100000"]);
    }
    let marked = tmux.open_window(&job_window("alice", 9, "alice", "t9")).unwrap();
    let (place, panes) = up(&tmux);
    let pid = place.server_pid;
    let seven = panes.iter().find(|pane| pane.window_index == 7).unwrap();
    // Both windows are where they were, and what is in them is not.
    server.run(&["swap-pane", "-d", "-s", "=alice:7", "-t", "=alice:8"]);
    server.run(&["join-pane", "-d", "-s", "=alice:9", "-t", "=alice:8"]);
    server.run(&["new-window", "-d", "-t", "=alice:9", "sleep", "100000"]);
    let is_changed = |refused: &TmuxError| matches!(refused, TmuxError::Changed { .. });
    assert!(is_changed(&tmux.close_pane(seven, pid).unwrap_err()));
    assert!(is_changed(&tmux.close_unwatched(seven, pid).unwrap_err()));
    assert!(is_changed(&tmux.process(seven, pid).unwrap_err()));
    for pane in [seven, &marked] {
        assert!(is_changed(&tmux.capture_known(pane, pid, &all_of(pane)).unwrap_err()));
    }
    assert_eq!(up(&tmux).1.len(), 5);
    // One with a mark is known by that, and goes alone.
    tmux.close_pane(&marked, pid).unwrap();
    assert_eq!(windows(&tmux), ["alice:0", "alice:7", "alice:8", "alice:9"]);
}

#[test]
fn attaching_depends_on_where_the_person_is() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let pane = tmux.open_window(&job_window("alice", 7, "alice", "t")).unwrap();
    let (place, _) = up(&tmux);
    let target = format!("=alice:.{}", pane.pane_id);
    let base = ["tmux", "-u", "-L", server.socket()];
    let outside = tmux.attach_argv(&pane, None);
    assert_eq!(outside, [&base[..], &["attach-session", "-t", &target]].concat());
    let here = format!("{},{},0", place.socket, place.server_pid);
    let inside = tmux.attach_argv(&pane, Some(&here));
    assert_eq!(inside, [&base[..], &["switch-client", "-t", &target]].concat());
    let elsewhere = tmux.attach_argv(&pane, Some("/tmp/tmux-0/other,1,0"));
    assert_eq!(
        elsewhere,
        [&["env", "-u", "TMUX"], &outside.iter().map(String::as_str).collect::<Vec<_>>()[..]]
            .concat()
    );
    // The target is what the server calls the pane.
    assert_eq!(server.run(&["display-message", "-p", "-t", &target, "#{pane_id}"]), pane.pane_id);
}

#[test]
fn looks_that_read_nothing_leave_nothing_in_the_server() {
    let server = PrivateTmux::new("");
    let tmux = server.one_shot();
    tmux.ensure_session("alice", 10_000).unwrap();
    let (place, _) = up(&tmux);
    let resident = || -> u64 {
        let status = format!("/proc/{}/status", place.server_pid);
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let look = |count| (0..count).for_each(|_| drop(tmux.look_to_read()));
    look(50);
    let before = resident();
    look(300);
    let grown = resident().saturating_sub(before);
    assert!(
        grown < 700,
        "{grown} kB after 300 looks; a client that is killed while it waits takes 5"
    );
}
