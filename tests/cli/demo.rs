//! The tour: its story comes true on a machine with nothing but tmux, each thing that can be broken on
//! purpose is noticed, and nothing is left behind.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

/// Stories go by the clock: several at once would have no time for each other. The runner that gives each test a process
/// of its own keeps them apart by itself.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits until no other test tells a story.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the story in a place of its own, and sees what it leaves.
fn tell(flags: &str) -> CommandOutput {
    let mut env = TestEnv::new();
    let place: PathBuf = env.path("tmp");
    std::fs::create_dir(&place).unwrap();
    env.set("TMPDIR", place.as_os_str());
    let told = env.tpu(&format!("demo --headless {flags}"));
    let left: Vec<_> = std::fs::read_dir(&place).unwrap().collect();
    assert!(left.is_empty(), "{left:?} is left behind\n{}", told.report());
    let living = speak_of(place.as_os_str().as_bytes());
    assert!(living.is_empty(), "processes {living:?} live on\n{}", told.report());
    told
}

/// Processes in whose environment a directory occurs.
fn speak_of(directory: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let inside = environ
            .windows(directory.len() + 1)
            .any(|part| part.strip_prefix(directory).is_some_and(|rest| rest == b"/"));
        if inside {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn the_story_comes_true_and_leaves_nothing_behind() {
    let _alone = alone();
    drop(tell("").exits(0).says(&[
        "is taken away, and",
        "by itself: preempted",
        "by itself: grpc",
        "resumed at step",
        "is out of memory",
        "no automatic restart",
        "bit for bit",
        "The story came true",
    ]));
}

#[test]
fn each_thing_that_is_broken_on_purpose_is_noticed() {
    let _alone = alone();
    std::thread::scope(|scope| {
        for (what, expectation) in [
            ("resume", "to begin at a checkpoint"),
            ("reapply", "expected alice/2 to be brought back"),
            ("classify", "expected bob/2 to be out of memory"),
        ] {
            scope.spawn(move || {
                drop(tell(&format!("--sabotage {what}")).exits(1).says(&[expectation]));
            });
        }
    });
}

/// Where nothing can be drawn, the story is told as text, and nobody is asked for another terminal.
#[test]
fn a_terminal_that_cannot_draw_is_told_the_story() {
    let _alone = alone();
    let env = TestEnv::new();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("env TERM=dumb {TPU} demo; echo code $?"));
    terminal.shows("The story came true, and nothing is left behind.");
    terminal.shows("code 0");
}

/// The screen is written down without a terminal and without a program to help, ends by itself, and shows the end of the
/// story when it is played.
#[test]
fn the_screen_is_recorded_until_the_story_is_complete() {
    let _alone = alone();
    let mut env = TestEnv::new();
    let place = env.path("tmp");
    std::fs::create_dir(&place).unwrap();
    env.set("TMPDIR", place.as_os_str());
    let file = env.path("demo.cast");
    let told = env.tpu(&format!("demo --record {} --size 100x30", file.display()));
    drop(told.exits(0).says(&["brought back", "from step", "left alone", "To begin for real"]));
    assert!(std::fs::read_dir(&place).unwrap().next().is_none(), "something is left behind");

    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    assert_eq!(
        (&header["version"], &header["width"], &header["height"]),
        (&2.into(), &100.into(), &30.into())
    );
    assert!(header["timestamp"].is_i64(), "{header}");
    let (mut before, mut drawn) = (0.0, String::new());
    for line in lines {
        let (time, kind, piece) = (line[0].as_f64().unwrap(), &line[1], line[2].as_str().unwrap());
        assert!(time >= before && kind == "o", "{line}");
        before = time;
        drawn += piece;
    }
    assert!(before > 10.0, "it is over after {before} s");

    let terminal = Terminal::new(&env);
    terminal.resize((100, 30));
    let played = env.path("played");
    write_file(&played, &drawn);
    terminal.command(&format!("cat {}; read -r", played.display()));
    terminal.shows(" your turn: r on alice/5");
    let screen = terminal.screen();
    assert!(screen.lines().next().is_some_and(|head| head.starts_with(" tpu ")), "{screen}");
    assert!(screen.contains("↵ details"), "{screen}");
}

#[test]
fn a_recording_that_cannot_be_written_is_refused_before_anything_begins() {
    let env = TestEnv::new();
    drop(
        env.tpu("demo --record /no/such/dir/demo.cast")
            .exits(5)
            .says(&["cannot write /no/such/dir"]),
    );
    for wrong in [
        "--size 100x30",
        "--record a.cast --size 10x5",
        "--record a.cast --size big",
        "--record a.cast --headless",
    ] {
        drop(env.tpu(&format!("demo {wrong}")).exits(2));
    }
}
