//! What goes wrong between a file, a command and a host: names that collide, hosts that nobody knows, jobs of others,
//! two who run at once, a file that changes meanwhile.

use super::{lab, with};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

#[test]
fn names_that_collide_are_told_one_by_one_and_the_others_are_taken_over() {
    let jobs = "    jobs:\n      tag: {executable: 'true', ip: juliet}\n      pre: {executable: 'true'}\n      \
                v2-32: {executable: 'true'}\n      '7': {executable: 'true'}\n      'a b': {executable: 'true'}\n      \
                nothing: {ip: juliet}\n      good: {executable: 'true', ip: juliet}\n";
    let text = format!("cloudmesh:\n  jobset:\n    hosts:\n      juliet: {{ip: j.lab}}\n{jobs}");
    let env = with("names.yaml", &text);
    write_file(
        &env.path("more-queue.yaml"),
        "good:\n  command: 'false'\nother:\n  command: 'true'\n",
    );
    let line = "import cloudmesh names.yaml more-queue.yaml --no-probe";
    let tried = env.tpu(&format!("{line} --dry-run --json")).exits(0).json();
    let said = env.tpu(&format!("{line} --json")).exits(0).json();
    let fates = |document: &serde_json::Value| -> Vec<(String, String)> {
        let files = document["files"].as_array().unwrap().iter();
        let jobs = files.flat_map(|file| file["jobs"].as_array().unwrap());
        let text = |job: &serde_json::Value, key: &str| job[key].as_str().unwrap().to_owned();
        jobs.map(|job| (text(job, "name"), text(job, "fate"))).collect()
    };
    let expected = [
        ("tag", "refused"),
        ("pre", "refused"),
        ("v2-32", "refused"),
        ("7", "refused"),
        ("a b", "refused"),
        ("nothing", "refused"),
        ("good", "added"),
        ("good", "refused"),
        ("other", "added"),
    ];
    let expected: Vec<_> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    assert_eq!(fates(&said), expected, "{said:#}");
    assert_eq!(fates(&tried), expected, "a dry run says the same");
    let whats: Vec<&str> = said["files"][0]["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["what"].as_str().unwrap())
        .collect();
    for (what, word) in whats.iter().zip([
        "word of the grammar",
        "it is a rule",
        "it is a type",
        "numbers are those of jobs",
        "cannot be",
        "what it runs",
    ]) {
        assert!(what.contains(word), "{whats:?}");
    }
    let entries = env.data()["queue"]["entries"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 2, "{entries}");
    assert_eq!((&entries[1]["name"], &entries[1]["queue"]), (&"other".into(), &"more".into()));
    // Two names in one file are no two jobs.
    write_file(&env.path("twice.yaml"), "z:\n  executable: ls\nz:\n  executable: rm\n");
    drop(env.tpu("cms job add twice.yaml").exits(2).says(&["twice.yaml:3"]));
}

#[test]
fn a_job_whose_host_nobody_knows_waits_until_somebody_does() {
    let env = lab();
    let said = env.tpu("cms job add --name=far --ip=10.9.9.9 --executable=true").exits(0);
    assert!(said.stderr.contains("10.9.9.9 is not a registered host"), "{}", said.report());
    assert!(said.stderr.contains("cms job hosts add --hostname=10.9.9.9"), "{}", said.report());
    let said = env.tpu("cms job run --name=far").exits(0);
    drop(
        said.says(&["far waits until 10.9.9.9 is a registered host", "alice/1 waits for its turn"]),
    );
    let why = env.tpu("queue --json").exits(0).json()["entries"][0]["reason"].clone();
    assert_eq!(why, "no target '10.9.9.9'");
    assert!(env.jobs("alice").is_empty());
    // It is asked for again by the name that the host has got.
    drop(env.tpu("hold far --why later").exits(0));
    drop(env.tpu("cms job hosts add --hostname=name9 --ip=10.9.9.9 --no-probe").exits(0));
    drop(env.tpu("hosts drain name9").exits(0));
    drop(env.tpu("cms job run --name=far").exits(0));
    assert_eq!(env.data()["queue"]["entries"][0]["target"], "name9");
    let why = env.tpu("queue --json").exits(0).json()["entries"][0]["reason"].clone();
    assert!(why.as_str().unwrap().contains("name9: drained by alice"), "{why}");
}

#[test]
fn a_pattern_kills_nobody_elses_jobs() {
    let env = lab();
    let theirs = ["run", "local", "bob", "--name", "z1", "-q", "--", "sleep", "1000"];
    drop(env.tpu_words(&theirs).exits(0));
    drop(env.tpu("submit local bob --name z2 --hold -- sleep 1000").exits(0));
    drop(env.tpu("cms job add --name=z0 --executable=sleep --arguments=1000").exits(0));
    drop(env.tpu("cms job run").exits(0));
    let said = env.tpu("cms job kill --name=z[0-2] -y").exits(0);
    drop(said.says(&[
        "Killed alice/1",
        "no job of alice is called 'z1'",
        "no job of alice is called 'z2'",
    ]));
    wait_until("theirs runs", || env.job("bob", 1)["status"] == "running");
    assert_eq!(env.queued(), 1, "theirs waits");
    for verb in ["kill", "delete"] {
        drop(env.tpu(&format!("cms job {verb} --name=z1 -y")).exits(3));
    }
    drop(env.tpu("cms job run --name=z2").exits(3));
    drop(env.tpu("kill 1 bob -y").exits(0));
}

#[test]
fn two_who_run_the_same_jobs_at_once_start_each_once() {
    let env = lab();
    drop(env.tpu("cms job add --name=j[0-3] --executable=sleep --arguments=1000").exits(0));
    let all: Vec<_> = ["", "", " --name=j[0-3]", " --name=j[0-3]"]
        .map(|name| env.start_tpu(&format!("cms job run{name}"), &[]))
        .into();
    for one in all {
        assert_eq!(one.wait(), 0);
    }
    drop(env.tpu("queue run --once").exits(0));
    let names: Vec<String> =
        env.jobs("alice").iter().map(|job| job["extra_msgs"]["spec"]["name"].to_string()).collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!((names.len(), once.len(), env.queued()), (4, 4, 0), "{names:?}");
    drop(env.tpu("kill --all -y").exits(0));
}

#[test]
fn a_file_that_changes_between_add_and_run_changes_no_job_and_is_told() {
    let text = |word: &str| {
        format!(
            "cloudmesh:\n  jobset:\n    jobs:\n      e: {{ip: localhost, executable: 'echo {word}'}}\n"
        )
    };
    let env = with("spec.yaml", &text("before"));
    drop(env.tpu("cms set jobset=spec.yaml").exits(0));
    drop(env.tpu("cms job add spec.yaml").exits(0));
    write_file(&env.path("spec.yaml"), &text("after"));
    let again = env.tpu("import cloudmesh spec.yaml --json").exits(0).json();
    let job = &again["files"][0]["jobs"][0];
    assert_eq!(job["fate"], "differs");
    assert!(
        job["what"].as_str().unwrap().contains("command: echo before here, echo after in the file"),
        "{job}"
    );
    let said = env.tpu("cms job run --name=e").exits(0);
    assert!(
        said.stderr.contains("e begins as it was added") && said.stderr.contains("echo after"),
        "{}",
        said.report()
    );
    drop(env.wait_status(1, "finished"));
    let printed = env.tpu("logs e").exits(0).stdout;
    assert!(printed.contains("before") && !printed.contains("after"), "{printed}");
}
