//! What was read from a file can be written as a file again, and is read back as the same jobs.

use std::path::Path;

use proptest::prelude::*;

use tpu_core::model::capacity::Ask;
use tpu_jobfile::own::keys::{KEYS, KeyState};
use tpu_jobfile::own::{Before, Given, KeyPlaces, OwnCode, OwnJob, documents, read};
use tpu_jobfile::{jobman, yaml};

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

use super::schema::{files, kinds};

/// The same without the places where it stood; what is asked of a target in one order.
fn bare(mut job: OwnJob) -> OwnJob {
    job.place = (0, 0);
    job.places = KeyPlaces::default();
    job.target.place = (0, 0);
    if let Some(OwnCode::Here(place)) = &mut job.code {
        *place = (0, 0);
    }
    for (_, before) in &mut job.waits.after {
        if let Before::Other(place, _) = before {
            *place = (0, 0);
        }
    }
    let of = |key: &str| Ask::KEYS.iter().position(|known| *known == key);
    job.asks.sort_by_key(|(key, _)| of(key).unwrap_or(Ask::KEYS.len()));
    job
}

fn comes_back(text: &str) -> Result<usize, TestCaseError> {
    let kinds = kinds();
    let set = [("steps".to_owned(), "100".to_owned())];
    let is_asked = text.contains("{{steps}}");
    let first = Given { set: if is_asked { &set } else { &[] }, kinds: &kinds };
    let Ok(jobs) = read(text, &first) else { return Ok(0) };
    let given = Given { set: &[], kinds: &kinds };
    let written = yaml::written(&documents(&jobs).unwrap());
    let again = read(&written, &given)
        .map_err(|bad| TestCaseError::fail(format!("{text}\nbecame\n{written}\n{bad:?}")))?;
    let count = jobs.len();
    let twice = yaml::written(&documents(&again).unwrap());
    let before: Vec<OwnJob> = jobs.into_iter().map(bare).collect();
    let again: Vec<OwnJob> = again.into_iter().map(bare).collect();
    prop_assert_eq!(&again, &before, "{}\nbecame\n{}", text, written);
    prop_assert_eq!(twice, written, "{}", text);
    Ok(count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_read_is_written_and_read_as_the_same(file in files()) {
        comes_back(&file.to_string())?;
    }
}

#[test]
fn each_example_comes_back() {
    for key in KEYS.iter().filter(|key| key.state == KeyState::Built) {
        let target = if key.example.contains("target:") { "" } else { "target: local\n" };
        let text = format!("{target}{}\n", key.example);
        assert!(comes_back(&text).unwrap() > 0, "{text}");
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/example");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(comes_back(&text).unwrap() > 0, "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 1, "{count}");
}

#[test]
fn a_config_of_jobman_comes_back() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/jobman");
    let mut count = 0;
    for entry in std::fs::read_dir(cases).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let Ok(converted) = jobman::read(&text) else { continue };
        let written = yaml::written(std::slice::from_ref(&converted.document));
        count += comes_back(&written).unwrap();
    }
    assert!(count > 0);
}

#[test]
fn what_begins_a_field_is_text_where_it_was_text() {
    for command in
        [r#"'a {{"{{"}}lr}} {{lr}}'"#, r#"[run, '{{lr}}', '{{"{{"}}{{"{{"}}x', '{{"{{"}}{']"#]
    {
        let text = format!("target: local\ncommand: {command}\narray: {{lr: [1, 2]}}\n");
        assert_eq!(comes_back(&text).unwrap(), 1, "{text}");
    }
    let text = "target: local\ncommand: ['{{\"{{\"}}x}}']\ntag: '{{\"{{\"}}y'\n";
    assert_eq!(comes_back(text).unwrap(), 1);
}

#[test]
fn jobs_of_one_file_keep_who_waits_for_whom() {
    let text = "target: local\nname: a\ncommand: [x]\n---\ntarget: local\nname: b\ncommand: [y]\nafter: [a, 12]\n\
                after_any: [tok]\nhold: true\n";
    assert_eq!(comes_back(text).unwrap(), 2);
    let given = Given { set: &[], kinds: &kinds() };
    let jobs = read(text, &given).unwrap();
    let written = yaml::written(&documents(&jobs).unwrap());
    assert!(written.contains("- a\n"), "{written}");
}

#[test]
fn a_job_that_ran_is_a_file_that_runs_as_it_did() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu("queue create night").exits(0));
    write_file(
        &env.path("job.yaml"),
        "target: local\nname: first\ncommand: |\n  echo \"{{\"{{\"}} $WHO $#\"\n  cat\nstdin: q.txt\nenv: {WHO: 'a \"b\"'}\n\
         tag: t\nnotes: 'as before: yes'\nrules: {grpc: rerun}\nretry: {max: 2, on: [unknown, oom], backoff: 90s}\n\
         timeout: 2h\nidle_timeout: 90s\nqueue: night\nsetup:\n  - {name: s, check: test -e \"$HOME/made\", run: touch \"$HOME/made\"}\n",
    );
    env.code("alice", "q.txt", "asked\n");
    drop(env.tpu("submit job.yaml").exits(0));
    drop(env.wait_status(1, "finished"));
    let file = env.tpu("script 1 --yaml").exits(0).stdout;
    assert!(!file.contains("not said here"), "{file}");
    write_file(&env.path("again.yaml"), &file);
    drop(env.tpu("submit again.yaml").exits(0));
    drop(env.wait_status(2, "finished"));
    assert_eq!(env.tpu("script 2 --yaml").exits(0).stdout, file);
    for window in 1..=2 {
        let log = env.tpu(&format!("logs {window}")).exits(0).stdout;
        assert!(log.ends_with("{{ a \"b\" 0\nasked\n"), "{log}");
    }

    drop(env.tpu("run local monitor=false --log-stage -q -- sh -c exit\\ 0 x").exits(0));
    let said = env.tpu("script 3 --yaml").exits(0).stdout;
    assert!(said.contains("# not said here: monitor=false"), "{said}");
    assert!(said.contains("# not said here: --log-stage"), "{said}");
}
