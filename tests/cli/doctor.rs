//! `tpu doctor` finds what is inconsistent, and `--fix` sets it right: whatever the file holds, nothing is
//! left that it calls its own to mend, and no record is dropped.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tpu_core::model::audit::{self, DataFlaw};
use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_ops::front::doctor::Severity;
use tpu_system::sys::env::Env;

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;
use crate::store::document::parse;

/// The remedy of what needs no judgement.
const FIX: &str = "-> tpu doctor --fix\n";

/// Finds `words`, mends, and finds nothing more to mend; what mending said.
#[track_caller]
fn mended(env: &TestEnv, words: &[&str]) -> CommandOutput {
    let found = env.tpu("doctor").says(words);
    assert!(found.report().contains(FIX), "{}", found.report());
    let fixed = env.tpu("doctor --fix").exits(0);
    let clean = env.tpu("doctor").exits(0);
    assert!(!clean.report().contains(FIX), "{}\n{}", fixed.report(), clean.report());
    fixed
}

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_TEST_ROOT", env.path(""));
    env
}

#[test]
fn locks_are_tried_by_two_processes() {
    let env = TestEnv::new();
    let before = env.data_bytes();
    drop(env.tpu("doctor").exits(0).says(&["ok    locks hold in [DIR]"]));
    // A file system on which everybody gets every lock: the second process finds another file of that name.
    let program = env.path("tpu");
    write_script(&program, &format!("rm -f \"$3\"; exec {TPU} \"$@\""));
    let mut ctx = env.ctx(Env::fixed::<&str, &str>([]));
    ctx.effects.tpu = program;
    let found = tpu_ops::front::locks::look(&ctx).unwrap();
    assert_eq!(found.severity, Severity::Warning);
    assert!(found.what.starts_with("locks do not hold in /"), "{}", found.what);
    assert!(found.remedy.unwrap().contains("$TPU_DATA"));
    assert_eq!(env.data_bytes(), before);
    let left = std::fs::read_dir(env.path("")).unwrap().flatten();
    let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.contains("probe")).collect::<Vec<_>>(), [""; 0]);
}

/// One corruption of two lineages of alice (1 -> 2, and 3), and what is said of it.
struct Corruption {
    name: &'static str,
    corrupt: fn(&mut Value),
    found: &'static str,
    done: &'static str,
    /// The records that are in the file afterwards.
    left: &'static [u64],
}

/// A record of alice.
fn job(data: &mut Value, window: u64) -> &mut Value {
    let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    jobs.iter_mut().find(|job| job["windows_id"] == window).unwrap()
}

const CORRUPTIONS: [Corruption; 11] = [
    Corruption {
        name: "two records of one number",
        corrupt: |data| {
            let twin = job(data, 3).clone();
            data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(twin);
        },
        found: "alice/3 stands in the file more than once",
        done: "archived the other record of alice/3",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a parent without its child",
        corrupt: |data| {
            let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
            jobs.retain(|job| job["windows_id"] != 2);
        },
        found: "alice/1 says that another attempt continues it, and none does",
        done: "archived alice/1: nothing continues it",
        left: &[3],
    },
    Corruption {
        name: "a child without its parent",
        corrupt: |data| {
            let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
            jobs.retain(|job| job["windows_id"] != 1);
        },
        found: "alice/2 continues job 1, which has no record",
        done: "alice/2 is not said to continue job 1",
        left: &[2, 3],
    },
    Corruption {
        name: "two children of one parent",
        corrupt: |data| job(data, 3)["extra_msgs"]["father"] = json!(1),
        found: "alice/3 continues job 1, which has another child or is at work",
        done: "alice/3 is a run of its own",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a parent that does not know its child",
        corrupt: |data| drop(job(data, 1)["extra_msgs"].as_object_mut().unwrap().remove("child")),
        found: "alice/1 continues as job 2 and does not say so",
        done: "alice/1 is said to continue as job 2",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a child that does not know its parent",
        corrupt: |data| drop(job(data, 2)["extra_msgs"].as_object_mut().unwrap().remove("father")),
        found: "alice/2 continues job 1 and does not say so",
        done: "alice/2 is said to continue job 1",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a child that is nowhere, of an attempt that says nothing of it",
        corrupt: |data| job(data, 3)["extra_msgs"]["child"] = json!(9),
        found: "alice/3 says that it continues as job 9, which is no record of its",
        done: "alice/3 has no child any more; no rule acts on it",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a circle",
        corrupt: |data| {
            job(data, 1)["extra_msgs"]["father"] = json!(2);
            job(data, 2)["extra_msgs"]["child"] = json!(1);
            job(data, 2)["status"] = json!("resumed");
        },
        found: "alice/1 continues itself",
        done: "alice/1 is the first of its lineage",
        left: &[3],
    },
    Corruption {
        name: "a number that would be given out twice",
        corrupt: |data| data["users"]["alice"]["windows_offset"] = json!(2),
        found: "the next free one is 4",
        done: "the next job of alice gets number 4",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "an alias that stands for nothing",
        corrupt: |data| data["tpu_aliases"]["v9"] = json!("lab-nowhere"),
        found: "the target alias v9 stands for lab-nowhere",
        done: "the alias v9 is gone (it stood for lab-nowhere)",
        left: &[1, 2, 3],
    },
    Corruption {
        name: "a user in no list",
        corrupt: |data| data["user_list"] = json!(["alice"]),
        found: "bob is missing in the lists of users",
        done: "entered every user",
        left: &[1, 2, 3],
    },
];

#[test]
fn each_inconsistency_of_the_file_is_found_named_and_mended() {
    let env = lab();
    let mut whole = env.data();
    let mut jobs: Vec<Value> = [1, 2, 3].map(|window| env.record("alice", window, "killed")).into();
    jobs[0]["status"] = json!("resumed");
    jobs[0]["extra_msgs"] = json!({ "child": 2 });
    jobs[1]["extra_msgs"] = json!({ "father": 1 });
    whole["users"]["alice"]["job_data"] = json!(jobs);
    whole["users"]["alice"]["windows_offset"] = json!(4);
    // Where tmux cannot be asked no record goes.
    drop(env.tmux().run(&["new-session", "-d", "-s", "alice", "sleep 1000"]));
    for Corruption { name, corrupt, found, done, left } in CORRUPTIONS {
        println!("{name}");
        drop(std::fs::remove_dir_all(env.path("tpu-state")));
        env.write_data(&whole);
        let clean = env.tpu("doctor").exits(0);
        assert!(!clean.report().contains(FIX), "{}", clean.report());
        let mut data = whole.clone();
        corrupt(&mut data);
        env.write_data(&data);
        let broken = env.data_bytes();
        let tried = env.tpu("doctor --fix --dry-run");
        drop(tried.exits(0).says(&[done]));
        assert_eq!(env.data_bytes(), broken, "a dry run changes nothing");
        drop(mended(&env, &[found]).says(&[done]));
        let windows: Vec<_> =
            env.jobs("alice").iter().map(|job| job["windows_id"].as_u64().unwrap()).collect();
        assert_eq!(windows, left);
        let before = data["users"]["alice"]["job_data"].as_array().unwrap().len();
        let archived = std::fs::read_to_string(env.path("tpu-state/archive.jsonl"));
        let archived = archived.map_or(0, |text| text.lines().count());
        assert_eq!(windows.len() + archived, before, "no record is dropped");
        let mut backups = std::fs::read_dir(env.path("backups")).unwrap().flatten();
        let is_kept = backups.any(|entry| std::fs::read(entry.path()).unwrap() == broken);
        assert!(is_kept, "a backup first");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_put_back() {
    let env = lab();
    drop(env.tpu("add-user carol").exits(0));
    let good = env.data_bytes();
    drop(env.tpu("add-user dave").exits(0));
    write_file(&env.data_path(), "{\"users\": ");
    drop(env.tpu("doctor").exits(1).says(&["fail"]));
    drop(env.tpu("doctor --fix").exits(0).says(&["put", "what could not be read is a backup now"]));
    assert_eq!(env.data_bytes(), good);
    drop(env.tpu("doctor").exits(0));
    // What is JSON and has one odd field is a person's to mend: a backup would take all else back, too.
    let mut odd = env.data();
    odd["users"]["bob"]["windows_offset"] = json!("many");
    env.write_data(&odd);
    drop(env.tpu("doctor --fix").exits(5).says(&["users.bob.windows_offset"]));
    assert_eq!(env.data(), odd);
}

#[test]
fn users_with_one_session_are_told_and_left_to_a_person() {
    let env = lab();
    let mut data = env.data();
    data["users"]["bob"]["tmux_name"] = json!("alice");
    env.write_data(&data);
    let found = "bob has the tmux session of another user: alice";
    drop(env.tpu("doctor --fix").exits(0).says(&[found, "tpu data set users.bob.tmux_name NAME"]));
    assert_eq!(env.data(), data);
    drop(env.tpu_words(&["data", "set", "users.bob.tmux_name", "bob"]).exits(0));
    assert!(!env.tpu("doctor").report().contains(found));
}

#[test]
fn what_dead_processes_hold_is_set_free_and_a_kill_is_completed() {
    let env = lab();
    env.start("sleep 100000", &[""; 0]);
    env.wait_status(1, "running");
    let dead = json!(format!(
        "{}:gone:999999:1",
        env.job("alice", 1)["extra_msgs"]["place"]["host"].as_str().unwrap()
    ));
    let mut data = env.data();
    job(&mut data, 1)["extra_msgs"]["intent"] =
        json!({ "action": "killing", "at": "2026-11-20T08:00:00Z", "by": dead });
    let mut other = env.record("alice", 2, "error");
    other["extra_msgs"] = json!({
        "intent": { "action": "reapply", "at": "2026-11-20T08:00:00Z", "by": dead },
        "lease": { "owner": dead, "fence": 3, "until": "2126-11-20T08:00:00Z" },
    });
    let soon = tpu_core::model::time::Timestamp::from_second(
        i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap() + 200,
    );
    other["extra_msgs"]["lease"]["until"] = json!(soon.to_rfc3339());
    data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(other);
    data["users"]["alice"]["windows_offset"] = json!(3);
    env.write_data(&data);
    let found = ["killing of alice/1 is not complete", "reapply of alice/2", "alice/2 is held by"];
    let done = [
        "completed the kill of alice/1",
        "settled alice/1: it is killed",
        "freed the lease of alice/2",
    ];
    drop(mended(&env, &found).says(&done));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    assert!(!env.has_window("alice", 1));
    let other = env.job("alice", 2);
    assert_eq!(other["extra_msgs"]["lease"]["fence"], 3, "its number stays");
    assert_eq!(other["extra_msgs"]["intent"]["action"], "reapply", "the daemon carries it on");
    drop(
        env.tpu("doctor")
            .says(&["reapply of alice/2", "the daemon completes it: tpu daemon start"]),
    );
}

#[test]
fn a_record_without_its_window_is_settled_and_ended_windows_without_records_are_closed() {
    let env = lab();
    for window in 1..=3 {
        let script = if window == 2 { "exit 3" } else { "sleep 100000" };
        env.start(script, &[""; 0]);
        env.wait_status(window, if window == 2 { "error" } else { "running" });
    }
    wait_until("its end", || env.job("alice", 2)["extra_msgs"]["launch"]["ended"].is_string());
    drop(env.tmux().try_run(&["kill-window", "-t", "=alice:1"]));
    let ended = || env.tpu("check alice").to_string().contains("killed (window closed)");
    wait_until("it has ended", ended);
    let mut data = env.data();
    let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    jobs.retain(|job| job["windows_id"] == 1);
    env.write_data(&data);
    let found = [
        "alice/1 is running in the file and runs no more",
        "window 2 of session alice belongs to no record",
        "window 3 of session alice belongs to no record",
    ];
    let done =
        ["settled alice/1: it is killed", "closed window 2 of alice (alice/2): its job had ended"];
    drop(mended(&env, &found).says(&done));
    assert!(!env.has_window("alice", 2));
    assert!(env.has_window("alice", 3), "what is at work is a person's to judge");
    drop(env.tpu("doctor").says(&["window 3 of session alice belongs to no record", "tpu -czw"]));
}

#[test]
fn a_window_that_is_linked_to_several_places_is_one() {
    let env = lab();
    env.start("exec sleep 100000", &[""; 0]);
    env.wait_status(1, "running");
    env.tmux().run(&["new-session", "-d", "-s", "a-person", "exec sleep 100000"]);
    env.tmux().run(&["link-window", "-d", "-s", "=alice:1", "-t", "=a-person:4"]);
    env.tmux().run(&["link-window", "-d", "-s", "=alice:1", "-t", "=alice:9"]);
    let said = env.tpu("doctor").report();
    assert!(!said.contains("shows the same launch"), "{said}");
    // Another window that shows the same is another one, and so is told once.
    env.tmux().run(&["new-window", "-d", "-t", "=alice:30", "exec sleep 100000"]);
    let token = env.tmux().run(&["show-options", "-pv", "-t", "=alice:1", "@tpu_launch"]);
    env.tmux().run(&["set-option", "-p", "-t", "=alice:30", "@tpu_launch", token.trim()]);
    let said = env.tpu("doctor").report();
    assert_eq!(said.matches("shows the same launch").count(), 1, "{said}");
    assert!(said.contains("window alice:30 shows the same launch as a-person:4"), "{said}");
}

#[test]
fn copies_of_code_that_belong_to_nothing_are_put_aside() {
    let mut env = lab();
    env.code("alice", "train.sh", "exit 0");
    drop(env.tpu("run local -q -- sh train.sh").exits(0));
    env.wait_status(1, "finished");
    let stage = env.path("tpu-state/stage/alice");
    let own = env.job("alice", 1)["stage_dir"].as_str().unwrap().to_owned();
    for name in ["20251120_140211-7-9f3a01", "20251120_140211-8-9f3a02.partial", "notes"] {
        std::fs::create_dir_all(stage.join(name)).unwrap();
        write_file(&stage.join(name).join("kept"), name);
    }
    drop(mended(&env, &["20251120_140211-7-9f3a01 is a copy of code that no record names"]));
    let mut left: Vec<_> = std::fs::read_dir(&stage)
        .unwrap()
        .flatten()
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, [own, stage.join("notes").to_string_lossy().into_owned()]);
    // Another root may be shared with other data files: nothing there is known to be ours.
    let root = env.path("shared/alice/20251120_140211-7-9f3a01");
    std::fs::create_dir_all(&root).unwrap();
    let settings = json!({ "stage_root": env.path("shared") });
    write_file(&env.path("settings.json"), &settings.to_string());
    env.set("TPU_SETTINGS", env.path("settings.json"));
    drop(env.tpu("doctor --fix").exits(0));
    assert!(root.is_dir());
    let aside = env.path("tpu-state/stage/.orphaned/alice-20251120_140211-7-9f3a01/kept");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "20251120_140211-7-9f3a01");
}

/// Records of one user with numbers and links as they come.
fn any_records() -> impl Strategy<Value = Data> {
    let link = || prop::option::weighted(0.6, 0_u32..8);
    let status = prop::sample::select(vec!["running", "error", "finished", "resumed", "rerunned"]);
    let record = (0_u32..8, link(), link(), status, 0_u32..3);
    (prop::collection::vec(record, 0..9), 0_u32..9).prop_map(|(records, offset)| {
        let jobs: Vec<_> = records
            .into_iter()
            .enumerate()
            .map(|(n, (window, father, child, status, stage))| {
                json!({
                    "windows_id": window, "status": status, "stage": stage, "job_tags": format!("{n}"),
                    "extra_msgs": { "father": father, "child": child },
                })
            })
            .collect();
        let user = json!({ "id": 0, "job_data": jobs, "windows_offset": offset });
        let other = json!({ "id": 1, "job_data": [], "tmux_name": "alice" });
        parse(&json!({ "users": { "alice": user, "bob": other } }).to_string())
    })
}

/// How often each record is there; its tag names it.
fn tags<'a>(jobs: impl Iterator<Item = &'a Job>) -> BTreeMap<String, usize> {
    let mut tags = BTreeMap::new();
    for job in jobs {
        *tags.entry(job.job_tags.clone().unwrap_or_default()).or_default() += 1;
    }
    tags
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_file_holds_is_set_right_and_no_record_is_dropped(
        data in any_records(),
        archived in prop::option::of(0_u32..8),
    ) {
        let is_lost = |id: &tpu_core::model::ids::JobId| Some(id.window.0) != archived;
        let mut after = data.clone();
        let mended = audit::mend(&mut after, &is_lost);
        prop_assert_eq!(&audit::audit(&data, &is_lost), &mended.flaws);
        prop_assert_eq!(&audit::audit(&after, &is_lost), &Vec::<DataFlaw>::new());
        prop_assert_eq!(tags(data.jobs()), tags(after.jobs().chain(&mended.archived)));
        // What is written is what was meant.
        let written = parse(&after.to_text());
        prop_assert_eq!(&audit::audit(&written, &is_lost), &Vec::<DataFlaw>::new());
        prop_assert_eq!(tags(written.jobs()), tags(after.jobs()));
        for job in after.jobs() {
            let was = data.jobs().find(|was| was.job_tags == job.job_tags).unwrap();
            let may_be_superseded = job.child.is_some() && !was.status.is_live();
            prop_assert!(was.status == job.status || may_be_superseded, "{was:?} {job:?}");
            let father = job.father.filter(|father| Some(father.0) != archived);
            let its = father.map(|father| after.jobs().find(|f| f.windows_id == father).unwrap().child);
            prop_assert!(its.is_none_or(|child| child == Some(job.windows_id)));
        }
    }
}

#[test]
fn a_tmux_server_that_stands_still_is_named_with_what_makes_it_go_on() {
    use rustix::process::{Pid, Signal, kill_process};
    let env = lab();
    let _window = env.start::<&str>("exec sleep 1000", &[]);
    let server = env.tmux().server_pid().unwrap();
    let pid = Pid::from_raw(i32::try_from(server).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let found = env.tpu("doctor");
    kill_process(pid, Signal::CONT).unwrap();
    let remedy = format!("kill -CONT {server}");
    drop(found.exits(1).says(&["stands still", &remedy[..10], &server.to_string()]));
    drop(env.tpu("doctor").exits(0).says(&["tmux answers"]));
}

#[test]
fn a_tmux_that_is_missing_or_too_old_is_named_with_what_to_type() {
    let mut env = lab();
    std::fs::create_dir(env.path("bin")).unwrap();
    env.set("PATH", env.path("bin").into_os_string());
    let need = "only jobs on this machine and over ssh need it";
    let missing = ["warn  tmux is not installed", need, "sudo apt-get install tmux"];
    drop(env.tpu("doctor").exits(0).says(&missing));
    // It says so before it starts a server, which the first job would.
    let tmux = "case \"$*\" in *-V) echo tmux 2.9 ;; *) echo no server running on here >&2; exit 1 ;; esac";
    write_script(&env.path("bin/tmux"), tmux);
    let old = ["warn  tmux 2.9 is too old", need, "conda install -c conda-forge tmux"];
    drop(env.tpu("doctor").exits(0).says(&old));
}

#[test]
fn a_disk_that_takes_nothing_more_is_found() {
    let env = lab();
    let run = format!("ulimit -f 0; trap '' XFSZ; exec {TPU} doctor");
    let found = env.output(&env.spawn_program("/bin/sh", &["-c", &run]));
    drop(found.exits(1).says(&["fail  the next change cannot be written in [DIR]", "df -h"]));
    let left = std::fs::read_dir(env.path("")).unwrap().flatten();
    let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.contains("probe")).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_doctor_that_is_killed_while_it_tries_the_disk_leaves_nothing_there() {
    let env = lab();
    // The signal of a file that grows too large ends it in the middle of its probe.
    let half = env.data_bytes().len() / 2;
    let run = format!("exec prlimit --core=0 --fsize={half} {TPU} doctor");
    let names = || {
        let all = std::fs::read_dir(env.path("")).unwrap().flatten();
        let mut names: Vec<_> = all.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    drop(env.tpu("doctor"));
    let before = names();
    let killed = env.output(&env.spawn_program("/bin/sh", &["-c", &run]));
    assert!(killed.code != 0 && !killed.stdout.contains("cannot be written"), "{killed}");
    assert_eq!(names(), before);
}
