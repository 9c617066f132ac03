//! The tab of usage in the real monitor, over records, archive and journal; and what is read for it.

use tpu_core::model::time::Zone;
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::By;
use tpu_ops::observe::stats::{StatsMemory, StatsRequest, report_from};
use tpu_system::sys::env::Env;

use super::made::{archive, attempt, event, failed, journal, lab};
use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;

/// One attempt in the archive, and one that failed and is still among the jobs.
fn two_runs() -> TestEnv {
    let env = lab(&[]);
    let mut other = failed(attempt(&env, 9, "error", (0, 60)), "OOM", "out of memory");
    other["tpu"] = serde_json::json!("lab-v2-8-1");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = serde_json::json!([other]);
    env.write_data(&data);
    archive(&env, &[attempt(&env, 1, "finished", (0, 240))]);
    journal(&env, &[event(-10, 1, "queued", "in default"), event(0, 1, "run", "on lab-v4-8-1")]);
    env
}

#[test]
fn the_tab_shows_what_stats_says_and_what_is_added_meanwhile() {
    let env = two_runs();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} monitor alice"));
    terminal.shows("▸ 9");
    terminal.press("6");
    // All of it was years ago.
    terminal.shows("Nothing of alice has run in the last 30 days. p counts further back.");
    terminal.press("p");
    terminal.shows("in the last 90 days");
    terminal.press("p");
    terminal.shows("by target · all time · alice");
    terminal.shows("lab-v4-8-1");
    // Four hours of four chips at 0.5, and one hour that has no price.
    terminal.shows("8.00+?");
    terminal.press("b");
    terminal.shows("by type · all time · alice");
    terminal.shows("v2-8");
    terminal.press("G");
    terminal.shows("1× oom: out of memory");
    // What is cleaned away meanwhile is counted without a key.
    archive(&env, &[attempt(&env, 2, "finished", (300, 360))]);
    terminal.shows("10.00+?");
    terminal.press("0");
    terminal.shows("all time · all users");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press("q");
    terminal.prompts();
}

#[test]
fn a_journal_that_cannot_be_read_is_said_with_what_to_do() {
    let env = two_runs();
    let path = env.path("tpu-state/events.jsonl");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} monitor alice"));
    terminal.shows("▸ 9");
    terminal.press("6");
    terminal.shows("events.jsonl");
    terminal.shows("→ ");
    std::fs::remove_dir(&path).unwrap();
    terminal.press("C-l");
    terminal.shows("in the last 30 days");
}

/// Whoever counts again reads only what has changed.
#[test]
fn nothing_is_read_again_unless_it_has_changed() {
    let env = two_runs();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let zone = Zone::local(jiff::tz::TimeZone::UTC);
    let mut memory = StatsMemory::default();
    let mut hours = |by: By| {
        let request = StatsRequest { whose: Whose::default(), by, since: None, until: None };
        let report = report_from(&ctx, &mut memory, &request, &zone).unwrap();
        report.stats.total.hours()
    };
    assert!((hours(By::Target) - 5.0).abs() < 1e-9);
    // The same file by all that is asked of it, with another end of the attempt in it.
    let path = env.path("tpu-state/archive.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = std::fs::metadata(&path).unwrap().modified().unwrap();
    let other = text.replace("16:00:00", "17:00:00");
    assert_ne!(other, text);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut &file, other.as_bytes()).unwrap();
    file.set_modified(at).unwrap();
    drop(file);
    assert!((hours(By::Week) - 5.0).abs() < 1e-9, "it is not read again");
    archive(&env, &[attempt(&env, 2, "finished", (300, 360))]);
    assert!((hours(By::Target) - 7.0).abs() < 1e-9, "it is");
}
