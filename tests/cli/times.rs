//! Times: the machine's own zone until somebody has set another, the same in every command of one person,
//! with the zone's name beside them where the machine's own clock says something else.

use serde_json::json;

use tpu_core::model::time::zone_of;

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;

/// The stamps before the events of a command, each with what stands between it and the job.
fn stamps(env: &TestEnv, line: &str) -> Vec<String> {
    let output = env.tpu(line).exits(0);
    let stamps = output.stdout.lines().filter_map(|line| line.split_once("  ").map(|(at, _)| at));
    let stamps: Vec<String> = stamps.map(str::to_owned).collect();
    assert!(!stamps.is_empty(), "{line}: {}", output.stdout);
    stamps
}

/// The first event of the journal as a clock in this zone shows it.
fn first_in(env: &TestEnv, zone: &str) -> String {
    env.journal()[0].at.display_in(&zone_of(zone).unwrap())
}

#[test]
fn a_new_user_reads_the_clock_of_the_machine() {
    let mut env = TestEnv::new();
    std::fs::remove_file(env.data_path()).unwrap();
    env.set("TZ", "Asia/Tokyo");
    env.set("USER", "carol");
    drop(env.tpu("init --no-input --name carol").exits(0));
    assert_eq!(env.data()["users"]["carol"]["settings"].get("time_zone"), None);
    drop(env.tpu("get-settings").exits(0).says(&["time_zone: local\n"]));
    drop(env.tpu("get-settings --origin").exits(0).says(&["local  (built in: Asia/Tokyo here)"]));
    assert_eq!(stamps(&env, "history")[0], first_in(&env, "Asia/Tokyo"), "no label: it is local");
    // Somebody has set another.
    drop(env.tpu("set-settings time_zone Europe/Berlin").exits(0));
    let labelled = &stamps(&env, "history")[0];
    assert!(labelled.starts_with(&first_in(&env, "Europe/Berlin")), "{labelled}");
    assert!(labelled.ends_with(" CET") || labelled.ends_with(" CEST"), "{labelled}");
    drop(env.tpu("set-settings time_zone Mars").exits(2).says(&["local", "Europe/Berlin"]));
    // And back.
    drop(env.tpu("set-settings time_zone local").exits(0));
    assert_eq!(stamps(&env, "history")[0], first_in(&env, "Asia/Tokyo"));
    drop(env.tpu("add-user dave --time-zone cn").exits(0));
    assert_eq!(env.data()["users"]["dave"]["settings"]["time_zone"], json!("cn"));
}

#[test]
fn every_command_of_one_person_reads_the_same_clock() {
    let mut env = TestEnv::new();
    env.set("TZ", "Asia/Tokyo");
    let mut data = env.two_users();
    data["users"]["alice"]["settings"]["time_zone"] = json!("Europe/Berlin");
    env.write_data(&data);
    env.set("TPU_USER", "alice");
    drop(env.tpu("add-tpu-alias spare lab-tpuvm-v2-32-1").exits(0));
    drop(env.tpu("set-settings show_length 300 bob").exits(0));
    drop(env.tpu("set-settings show_length 300 alice").exits(0));
    let whole = |env: &TestEnv, zone| {
        env.journal()
            .iter()
            .map(|event| event.at.display_in(&zone_of(zone).unwrap()))
            .collect::<Vec<_>>()
    };
    let berlin = whole(&env, "Europe/Berlin");
    for line in ["history", "history bob", "history --user bob"] {
        for stamp in stamps(&env, line) {
            assert!(berlin.iter().any(|at| stamp.starts_with(at)), "{line}: {stamp}");
            assert!(stamp.ends_with("CET") || stamp.ends_with("CEST"), "{line}: {stamp}");
        }
    }
    // `us` that came with a file counts as set.
    env.set("TPU_USER", "bob");
    let stamp = &stamps(&env, "history alice")[0];
    assert!(stamp.ends_with("EST") || stamp.ends_with("EDT"), "{stamp}");
    // Nothing says who looks: the machine's.
    env.set("TPU_USER", "");
    let tokyo = whole(&env, "Asia/Tokyo");
    let stamp = &stamps(&env, "history")[0];
    assert!(tokyo.contains(stamp), "{stamp}: {tokyo:?}");
}

#[test]
fn who_is_named_reads_the_own_clock_and_not_that_of_the_account() {
    let mut env = TestEnv::new();
    env.set("TZ", "Asia/Tokyo");
    let mut data = env.two_users();
    data["users"]["alice"]["settings"]["time_zone"] = json!("Europe/Berlin");
    data["users"]["bob"]["settings"]["time_zone"] = json!("Asia/Kolkata");
    env.write_data(&data);
    env.set("TPU_USER", "");
    env.set("USER", "alice");
    drop(env.tpu("set-settings show_length 300 bob").exits(0));
    let zone = |line: &str| stamps(&env, line)[0].rsplit(' ').next().unwrap().to_owned();
    assert!(["CET", "CEST"].contains(&&*zone("history")), "the account's own");
    for line in ["history bob", "history --user bob"] {
        assert_eq!(zone(line), "IST", "{line}");
    }
    env.set("USER", "nobody-here");
    let zone = stamps(&env, "history bob")[0].rsplit(' ').next().unwrap().to_owned();
    assert_eq!(zone, "IST", "an account that is no user");
}

#[test]
fn the_screen_names_a_zone_that_is_not_the_machines() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu("set-settings time_zone cn").exits(0));
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} monitor"));
    terminal.until("the zone stands beside the clock", || {
        terminal.screen().lines().next().is_some_and(|line| line.trim_end().ends_with(" CST"))
    });
    terminal.press("q");
    terminal.prompts();
    drop(env.tpu("set-settings time_zone local").exits(0));
    terminal.command(&format!("{TPU} monitor"));
    terminal.until("the clock stands alone", || {
        let screen = terminal.screen();
        let header = screen.lines().next().unwrap_or_default().trim_end();
        header.contains("alice") && header.ends_with(|c: char| c.is_ascii_digit())
    });
    terminal.press("q");
    terminal.prompts();
}

#[test]
fn init_offers_the_zone_of_the_machine() {
    let mut env = TestEnv::new();
    std::fs::remove_file(env.data_path()).unwrap();
    env.set("TZ", "Asia/Tokyo");
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} init --name carol --dir {}", env.root()));
    terminal.shows("[local: Asia/Tokyo]");
    terminal.press("Enter");
    terminal.shows("How your programs take lr=0.05");
    terminal.press("Enter");
    terminal.shows("example scripts");
    terminal.press("Enter");
    terminal.shows("Added user carol");
    terminal.prompts();
    assert_eq!(env.data()["users"]["carol"]["settings"].get("time_zone"), None);
}

#[test]
fn a_reset_names_what_it_drops() {
    let env = TestEnv::new();
    drop(env.tpu("set-settings show_length 777 alice").exits(0));
    drop(
        env.tpu("reset-settings alice").exits(0).says(&["show_length was 777", "time_zone was us"]),
    );
    let again = env.tpu("reset-settings alice").exits(0);
    assert!(!again.stdout.contains(" was "), "{}", again.stdout);
}

#[test]
fn one_key_can_be_said_nothing_of_any_more_and_the_others_stay() {
    let env = TestEnv::new();
    drop(env.tpu("set-settings show_length 777 alice").exits(0));
    drop(env.tpu("set-settings time_zone Asia/Tokyo alice").exits(0));
    let said = env.tpu("reset-settings time_zone alice").exits(0);
    drop(said.says(&["alice says nothing of time_zone any more", "time_zone was Asia/Tokyo"]));
    let settings = env.data()["users"]["alice"]["settings"].clone();
    assert_eq!(settings.get("time_zone"), None, "{settings}");
    assert_eq!(settings["show_length"], 777, "{settings}");
    drop(env.tpu("reset-settings time_zones alice").exits(3));
}
