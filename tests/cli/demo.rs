//! The tour: its story comes true on a machine with nothing but tmux, each thing that can be broken on
//! purpose is noticed, and nothing is left behind.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::common::env::TestEnv;
use crate::common::output::CommandOutput;

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
    drop(tell("").exits(0).says(&[
        "is taken away, and",
        "by itself: preempted",
        "by itself: grpc",
        "resumed at step",
        "is out of memory",
        "nothing happens by itself",
        "bit for bit",
        "The story came true",
    ]));
}

#[test]
fn each_thing_that_is_broken_on_purpose_is_noticed() {
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
