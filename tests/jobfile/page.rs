//! docs/jobfile.md is made from the table of the reader, and each of its examples is read.

use tpu_jobfile::own::keys::{KEYS, KeyState, page};
use tpu_jobfile::own::{Given, KindKey, KindWords, read};

#[test]
fn the_page_of_keys_is_the_table_of_the_reader() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/jobfile.md");
    let made = page();
    if tpu_system::sys::env::Env::read().var("INSTA_UPDATE") == Some("always") {
        crate::common::tmux::write_file(&path, &made);
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/jobfile.md is another table: write it with ./x bless");
}

#[test]
fn each_example_is_read_as_it_stands() {
    let options = vec![KindKey::plain("nodes", false)];
    let slurm = KindWords { word: "slurm".to_owned(), options };
    for key in KEYS {
        if key.state != KeyState::Built {
            assert!(key.example.is_empty(), "{key:?}");
            continue;
        }
        let says = |what: &str| key.example.lines().any(|line| line.starts_with(what));
        let mut text = String::new();
        if !says("target:") {
            text += "target: local\n";
        }
        if !says("command:") && !says("script:") {
            text += "command: python3 train.py\n";
        }
        text += key.example;
        let given = Given { set: &[], kinds: std::slice::from_ref(&slurm) };
        let jobs = read(&text, &given).unwrap_or_else(|bad| panic!("{text}\n{bad:?}"));
        assert_eq!(jobs.len(), 1, "{text}");
        assert!(says(&format!("{}:", key.name)), "it says something else: {key:?}");
    }
}
