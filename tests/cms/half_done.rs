//! What is wrong in a file is said with its place, and then nothing of any file is taken over.

use super::{SPEC, host, with};
use crate::common::tmux::write_file;

/// What stands below `hosts:`, and the words of the complaint.
const BAD: &[(&str, &[&str])] = &[
    ("a:\n  cpus: many\n", &[":6", "a.cpus", "'many' is no number"]),
    ("a:\n  max_jobs_allowed: '0'\n", &[":6", "a.max_jobs_allowed", "it is 0"]),
    ("a:\n  cpus: '-2'\n", &[":6", "'-2' is no number"]),
    ("a:\n  cpus: 99999999999999999999\n", &[":6", "99999999999999999999"]),
    ("a:\n  cpus: 1e999\n", &[":6", "'1e999' is no number"]),
    ("a:\n  cpus: [1, 2]\n", &[":6", "one value is wanted here"]),
    ("a: juliet\n", &[":5", "names with values below them"]),
    ("a:\n  name: '-oProxyCommand=id'\n", &[":6", "'-oProxyCommand=id' cannot be"]),
    ("a:\n  ip: '-oProxyCommand=id'\n", &[":6", "'-oProxyCommand=id' cannot be"]),
    ("a:\n  ip: 'x; id'\n", &[":6", "'x; id' cannot be"]),
    ("local:\n  ip: juliet\n", &[":6", "'local' cannot be"]),
    ("check:\n  ip: juliet\n", &[":6", "'check' already means something"]),
    ("a:\n  ip: juliet\nb:\n  ip: juliet\n", &[":8", "it is where a is", "line 6"]),
    ("a:\n  name: x\n  ip: j1\nb:\n  name: x\n  ip: j2\n", &[":9", "stands on line 6"]),
];

#[test]
fn one_bad_host_and_nothing_is_taken_over() {
    for (bad, words) in BAD {
        let indented: Vec<String> = bad.lines().map(|line| format!("      {line}\n")).collect();
        let indented = indented.concat();
        let text =
            format!("cloudmesh:\n  jobset:\n    hosts:\n      good: {{ip: good.lab}}\n{indented}");
        let env = with("bad.yaml", &text);
        let before = env.data_bytes();
        let said = env.tpu("import cloudmesh spec.yaml bad.yaml --no-probe");
        let code = if bad.starts_with("check") { 4 } else { 2 };
        let said = said.exits(code).stderr;
        assert!(said.contains("bad.yaml"), "{bad}\n{said}");
        for word in *words {
            assert!(said.contains(word), "{bad}: no {word} in\n{said}");
        }
        assert!(said.contains("hint:"), "{said}");
        assert_eq!(env.data_bytes(), before, "{bad}");
    }
}

#[test]
fn every_bad_file_is_told_at_once() {
    let env = with("one.yaml", "cloudmesh:\n  jobset:\n    scheduler:\n      policy: lucky\n");
    write_file(&env.path("two.yaml"), "hosts: {}\n");
    let said = env.tpu("import cloudmesh one.yaml spec.yaml two.yaml nowhere.yaml --no-probe");
    let said = said.exits(2).stderr;
    for word in [
        "one.yaml:4: cloudmesh.jobset.scheduler.policy: 'lucky' is no policy",
        "sequential, random, smart or frugal",
        "two.yaml: it is no file of Cloudmesh",
        "cannot read",
        "nowhere.yaml",
    ] {
        assert!(said.contains(word), "no {word} in\n{said}");
    }
    assert!(host(&env, "juliet").is_null());
    assert!(env.data()["users"]["alice"]["settings"]["policy"].is_null());
}

#[test]
fn a_name_that_is_taken_here_is_refused_with_its_place() {
    let text = SPEC.replace("juliet:\n        name: juliet", "bob:\n        name: bob");
    let env = with("taken.yaml", &text);
    let before = env.data_bytes();
    let said = env.tpu("import cloudmesh taken.yaml --no-probe").exits(4).stderr;
    assert!(said.contains("taken.yaml:14") && said.contains("it is a user"), "{said}");
    assert_eq!(env.data_bytes(), before);
}
