//! What each job has waited and cost, with the attempts before it: in the list of the screen as in statistics.

use serde_json::{Value, json};

use tpu_core::model::view::{JobView, Whose};
use tpu_ops::act::outlook;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::sys::env::Env;

use super::made::{at, attempt, failed, lab};
use crate::common::env::TestEnv;
use crate::common::screen::Screen;

/// An attempt that had waited for some minutes before it began.
fn waited(env: &TestEnv, window: u64, status: &str, (since, from, to): (i64, i64, i64)) -> Value {
    let mut record = attempt(env, window, status, (from, to));
    record["start_time"] = json!(at(from));
    record["extra_msgs"]["launch"]["queued"] = json!(at(since));
    record
}

/// Two attempts of one job, and one on a part of a machine.
fn a_day() -> TestEnv {
    let env = lab(&[]);
    let mut first = failed(waited(&env, 1, "resumed", (0, 30, 150)), "preempted", "gone");
    first["extra_msgs"]["child"] = json!(2);
    let mut second = waited(&env, 2, "finished", (160, 165, 225));
    second["extra_msgs"]["father"] = json!(1);
    let mut part = attempt(&env, 3, "finished", (0, 60));
    part["start_time"] = json!(at(0));
    part["extra_msgs"]["share"] = json!({ "cpus": 1 });
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([first, second, part]);
    env.write_data(&data);
    env
}

fn look(env: &TestEnv) -> Vec<JobView> {
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    outlook::look(&ctx, &mut LookMemory::default(), &Whose::default()).unwrap().jobs
}

#[test]
fn an_attempt_says_what_it_and_those_before_it_have_waited_and_cost() {
    let env = a_day();
    let said: Vec<(u32, Option<u64>, Option<f64>)> =
        look(&env).iter().map(|job| (job.id.window.0, job.waited_s, job.cost)).collect();
    // Half a unit for an hour of each of four chips: two hours, then one more.
    assert_eq!(said, [(1, Some(1_800), Some(4.0)), (2, Some(2_100), Some(6.0)), (3, None, None)]);
    // As statistics count it.
    let row = env.tpu("stats --by type --json").exits(0).json()["rows"][0].clone();
    assert_eq!((&row["key"], &row["cost"]), (&json!("v4-8"), &Value::Null), "{row}");
    assert_eq!(row["cost_known"].as_f64(), Some(6.0), "{row}");
}

/// Of an attempt whose end nobody has seen, the time until another one went on for it counts, and none where none did.
#[test]
fn what_is_over_costs_no_more_though_nobody_saw_its_end() {
    let env = a_day();
    let mut data = env.data();
    for job in data["users"]["alice"]["job_data"].as_array_mut().unwrap() {
        job["extra_msgs"]["launch"]["ended"] = Value::Null;
    }
    data["users"]["alice"]["job_data"][1]["status"] = json!("killed");
    env.write_data(&data);
    let costs: Vec<Option<f64>> = look(&env).iter().map(|job| job.cost).collect();
    // The first until the second began: two hours and a quarter.
    assert_eq!(costs, [Some(4.5), Some(4.5), None]);
}

#[test]
fn without_prices_nothing_has_a_cost_and_a_price_that_is_set_later_counts_at_once() {
    let env = a_day();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let mut memory = LookMemory::default();
    let mut costs = || {
        let seen = outlook::look(&ctx, &mut memory, &Whose::default()).unwrap();
        seen.jobs.iter().map(|job| job.cost).collect::<Vec<_>>()
    };
    assert_eq!(costs(), [Some(4.0), Some(6.0), None]);
    drop(env.tpu_words(&["set-settings", "prices", r#"{"v4-8": 1}"#, "alice"]).exits(0));
    assert_eq!(costs(), [Some(2.0), Some(3.0), None]);
    drop(env.tpu_words(&["set-settings", "prices", "{}", "alice"]).exits(0));
    assert_eq!(costs(), [None, None, None]);
}

#[test]
fn where_there_is_room_the_list_says_both() {
    let env = a_day();
    let ctx = env.ctx(Env::fixed::<&str, &str>([]));
    let whose = Whose::of(["alice".into()]);
    let seen = outlook::look(&ctx, &mut LookMemory::default(), &whose).unwrap();
    let mut screen = Screen::showing(seen);
    let frame = screen.frame((260, 40));
    let heads =
        frame.lines().find(|line| line.contains("status")).unwrap_or_else(|| panic!("{frame}"));
    assert!(heads.contains("waited") && heads.contains("cost"), "{frame}");
    let row = frame.lines().find(|line| line.contains("finished") && line.contains("2 +1"));
    let row = row.unwrap_or_else(|| panic!("{frame}"));
    assert!(row.contains("35m") && row.contains("6.00"), "{frame}");
}

/// What begins from a queue notes since when it stood there; what begins at once does not.
#[test]
fn who_has_waited_is_noted_as_it_begins() {
    let env = TestEnv::new();
    drop(env.tpu("hosts set local --max-jobs 1").exits(0));
    drop(env.tpu("run local alice -q -- sleep 1000").exits(0));
    drop(env.tpu("submit local alice -- sleep 1000").exits(0).says(&["Queued alice/2"]));
    let waits = look(&env);
    let waits = waits.iter().find(|job| job.id.window.0 == 2);
    assert!(waits.is_none(), "what waits is not in the file of jobs yet");
    drop(env.tpu("kill alice 1 --yes").exits(0));
    env.wait_status(2, "running");
    let launch = |number| env.job("alice", number)["extra_msgs"]["launch"].clone();
    assert_eq!(launch(1)["queued"], Value::Null, "{}", launch(1));
    let (since, began) = (launch(2)["queued"].clone(), launch(2)["at"].clone());
    assert!(since.as_str().is_some() && since.as_str() <= began.as_str(), "{}", launch(2));
}
