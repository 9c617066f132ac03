//! `tpu doctor` in the built program: what only shows itself to two processes.

use crate::common::env::TestEnv;

#[test]
fn locks_are_tried_by_two_processes() {
    let mut env = TestEnv::new();
    let before = env.data_bytes();
    drop(env.tpu("doctor").exits(0).says(&["ok    locks hold in [DIR]"]));
    // A file system on which everybody gets every lock.
    env.set("FAILPOINTS", "bug-lock-for-all=return");
    drop(env.tpu("doctor").exits(0).says(&["warn  locks do not hold in [DIR]", "$TPU_DATA"]));
    assert_eq!(env.data_bytes(), before);
    let left = std::fs::read_dir(env.path("")).unwrap().flatten();
    let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.contains("probe")).collect::<Vec<_>>(), [""; 0]);
}
