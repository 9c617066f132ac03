//! What was wrong with JobMan (its defects by their numbers in the list of forerunners), and the tests that show that it
//! is not so here. Those that stood nowhere else are here.

use std::io::{ErrorKind, Read as _};
use std::net::TcpListener;
use std::path::Path;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::orders::lab;

/// A defect, and who would notice it here.
const DEFECTS: &[(&str, &str, &[&str])] = &[
    (
        "D43",
        "a command is cut after 300 s and begun again",
        &["a_command_that_takes_longer_than_its_set_up_may_runs_once"],
    ),
    (
        "D44",
        "a restart asks a second time for what is waited for already",
        &["a_queued_request_survives_its_monitor_and_is_made_once"],
    ),
    (
        "D45",
        "a question that failed deletes the TPU",
        &[
            "questions_that_fail_delete_nothing",
            "whatever_a_list_says_nothing_is_deleted_that_did_not_say_so_itself",
        ],
    ),
    (
        "D46",
        "what fails is begun again at once, for ever",
        &[
            "without_capacity_it_is_asked_for_again_later_and_not_at_once",
            "what_dies_as_soon_as_it_is_started_is_started_three_times_and_check_says_so",
        ],
    ),
    (
        "D47",
        "a TPU that could not be deleted is forgotten",
        &[
            "a_deletion_that_fails_stays_visible_and_is_tried_again",
            "what_cannot_be_deleted_is_not_forgotten",
            "what_cannot_be_asked_is_not_forgotten_either",
        ],
    ),
    (
        "D48",
        "the record of all jobs is written in place, and locked while the cloud is asked",
        &[
            "sigkill_at_random_moments_of_writers_leaves_everything_whole",
            "who_asks_a_slow_cloud_keeps_nobody_from_writing",
        ],
    ),
    (
        "D49",
        "who is stopped or deleted keeps his place in the queue",
        &[
            "who_dies_behind_the_claim_has_handed_the_place_in_and_it_is_given_back",
            "what_waits_is_held_by_a_stop_and_taken_out_by_a_cancel",
        ],
    ),
    (
        "D50",
        "keys come to one worker alone, over what was there",
        &[
            "four_workers_set_up_side_by_side_and_begin_together",
            "a_key_or_an_environment_that_somebody_else_has_made_stays_his",
        ],
    ),
    (
        "D51",
        "a broken connection is a failure that is retried for ever; all workers share one exit code",
        &[
            "a_broken_connection_is_no_end_and_no_second_start",
            "it_starts_once_on_each_and_the_highest_exit_code_is_the_jobs",
            "an_exit_code_is_believed_when_the_worker_has_said_it",
        ],
    ),
    (
        "D52",
        "workers are counted wrong by the name of the type",
        &["chips_by_type", "workers_are_where_the_api_says_each_at_its_index"],
    ),
    (
        "D53",
        "a key that is missing, zero or null ends the program",
        &[
            "each_is_refused_with_its_place_and_what_to_do",
            "no_cut_and_no_lost_byte_makes_it_panic",
        ],
    ),
    ("D54", "a word in the output outranks the exit code", &["a_word_in_its_output_is_no_success"]),
    (
        "D55",
        "a second manager takes what runs for stale",
        &[
            "there_is_one_monitor_and_a_second_one_learns_who",
            "what_was_submitted_elsewhere_takes_nobodys_turn",
        ],
    ),
    (
        "D56",
        "a mark of an earlier machine keeps a new one from being set up",
        &["what_is_done_once_on_a_machine_is_done_again_on_the_next_one_of_its_name"],
    ),
    (
        "D57",
        "quotes, variables and lines of a command are read by one shell too many",
        &[
            "the_command_runs_in_its_container_byte_for_byte_and_ends_with_it",
            "words_and_environment_arrive_on_the_workers_as_they_are",
        ],
    ),
    (
        "D58",
        "without credentials not even the help is shown",
        &["help_and_what_needs_no_cloud_need_no_credentials"],
    ),
    (
        "D59",
        "anybody's job is stopped, and the manual tells of words that nothing understands",
        &["nobody_is_guessed_whose_jobs_are_killed", "each_verb_of_the_page_is_understood"],
    ),
    (
        "D60",
        "the same failure is taken for the machine's, and retried for ever",
        &["a_program_that_fails_alike_is_retried_twice_and_others_as_often_as_their_file_says"],
    ),
];

/// Whether a test of this name is in a file below a directory.
fn is_in(dir: &Path, name: &str) -> bool {
    std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_in(&path, name);
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.contains(&format!("fn {name}()"))
    })
}

#[test]
fn each_defect_has_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (number, what, tests) in DEFECTS {
        for test in *tests {
            let places = ["tests", "src", "crates"];
            let is_there = places.iter().any(|place| is_in(&root.join(place), test));
            assert!(is_there, "{number} ({what}): no test is called {test}");
        }
    }
    let numbers: Vec<String> = (43..=60).map(|number| format!("D{number}")).collect();
    let known: Vec<&str> = DEFECTS.iter().map(|(number, ..)| *number).collect();
    assert_eq!(known, numbers);
}

#[test]
fn a_command_that_takes_longer_than_its_set_up_may_runs_once() {
    let env = TestEnv::alice();
    let text = "target: local\nsetup: [{name: quick, run: 'true', timeout: 3s}]\n\
                command: 'echo begun >> \"$HOME/begun\"; sleep 4.5; echo over >> \"$HOME/begun\"'\n";
    write_file(&env.path("job.yaml"), text);
    drop(env.tpu("run job.yaml -q").exits(0));
    drop(env.wait_status(1, "finished"));
    assert_eq!(std::fs::read_to_string(env.path("begun")).unwrap(), "begun\nover\n");
    assert_eq!(env.jobs("alice").len(), 1);
}

#[test]
fn a_word_in_its_output_is_no_success() {
    let env = TestEnv::alice();
    let said = "echo Main command completed successfully; echo Multihost runner finished successfully; exit 1";
    drop(env.tpu_words(&["run", "local", "-q", "--", "bash", "-c", said]).exits(0));
    drop(env.wait_status(1, "error"));
    let kept = env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned() + "/output.log";
    let said = || std::fs::read_to_string(&kept).unwrap_or_default();
    wait_until("what it says", || said().contains("finished successfully"));
    // Nor is the other way round.
    let said = "echo Main command failed; echo failed with error code 1";
    drop(env.tpu_words(&["run", "local", "-q", "--", "bash", "-c", said]).exits(0));
    drop(env.wait_status(2, "finished"));
}

#[test]
fn what_is_done_once_on_a_machine_is_done_again_on_the_next_one_of_its_name() {
    let env = lab();
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    drop(env.tpu("apply mine").exits(0));
    let root = env.root();
    let text = format!(
        "target: mine\nsetup: [{{name: prefix, run: 'echo once >> {root}/noted', once_per: machine}}]\ncommand: 'true'\n"
    );
    write_file(&env.path("job.yaml"), &text);
    let noted =
        || std::fs::read_to_string(env.path("noted")).map_or(0, |text| text.lines().count());
    for (window, times) in [(1, 1), (2, 1), (3, 2)] {
        if window == 3 {
            drop(env.tpu("reapply mine -y").exits(0));
        }
        drop(env.tpu("run job.yaml -q").exits(0));
        drop(env.wait_status(window, "finished"));
        assert_eq!(noted(), times, "job {window}");
    }
}

#[test]
fn who_asks_a_slow_cloud_keeps_nobody_from_writing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut env = TestEnv::alice();
    drop(env.tpu("register other --type v3-8 --zone zone-a").exits(0));
    let address = format!("http://{}", silent.local_addr().unwrap());
    for (name, value) in [
        ("TPU_CLOUD", "google"),
        ("TPU_PROJECT", "lab"),
        ("TPU_CLOUD_AUTH", "none"),
        ("TPU_CLOUD_ENDPOINT", address.as_str()),
    ] {
        env.set(name, value);
    }
    let asks = env.start_tpu("check-status", &[]);
    let (mut question, _) = silent.accept().unwrap();
    drop(env.tpu("register mine --type v4-8 --zone zone-a").exits(0));
    assert!(env.data().to_string().contains("mine"));
    // It still waits for its answer.
    question.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    let end = loop {
        match question.read(&mut bytes) {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error.kind()),
        }
    };
    assert_eq!(end, Some(ErrorKind::WouldBlock));
    asks.kill();
}

#[test]
fn help_and_what_needs_no_cloud_need_no_credentials() {
    let mut env = TestEnv::alice();
    env.set("TPU_CLOUD", "google");
    for line in ["--help", "jobman --help", "help run", "list-users", "run local -q -- true"] {
        drop(env.tpu(line).exits(0));
    }
    drop(env.wait_status(1, "finished"));
}

#[test]
fn each_verb_of_the_page_is_understood() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/from-jobman.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, commands) = page.split_once("## Its commands").unwrap();
    let (commands, _) = commands.split_once("## Its tasks").unwrap();
    let env = TestEnv::alice();
    let mut verbs = 0;
    for row in commands.lines().filter(|line| line.starts_with("| `")) {
        let (_, does) = row[2..].split_once(" | ").unwrap();
        let shown = row.split(" | ").next().unwrap();
        for typed in shown.split('`').skip(1).step_by(2) {
            let verb = typed.split(' ').next().unwrap();
            let out = env.tpu(&format!("jobman {verb} --help"));
            let is_built = !does.contains("not supported yet");
            assert_eq!(out.code == 0, is_built, "{verb}: {}", out.report());
            for flag in typed.split(['[', ']', ' ']).filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap();
                assert!(out.stdout.contains(flag), "{verb} {flag}: {}", out.report());
            }
            verbs += 1;
        }
    }
    assert!(verbs > 15, "{verbs}");
}
