//! The board: one winner for each target, whoever comes at once; right whatever became of a job; a sheet
//! goes out and comes back without loss.

use serde_json::{Value, json};

use tpu_system::sys::proc;
use tpu_system::sys::procs::Signal;

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

/// A lab of `users` users and `targets` targets of type v2-8, whose jobs run until they are killed.
fn lab(users: usize, targets: usize) -> TestEnv {
    let env = TestEnv::new();
    env.code("alice", "staging.sh", "exec sleep 1000\n");
    let mut data = env.two_users();
    let alice = data["users"]["alice"].clone();
    data["users"] = json!({});
    for key in ["user_list", "id_list"] {
        data[key] = json!([]);
    }
    for n in 0..users {
        let name = format!("u{n}");
        let mut user = alice.clone();
        for (key, value) in [("name", json!(name)), ("tmux_name", json!(name)), ("id", json!(n))] {
            user[key] = value;
        }
        data["users"][&name] = user;
    }
    let names: Vec<String> = (0..targets).map(|n| format!("lab-v2-8-{n}")).collect();
    data["tpu_aliases"] = json!({});
    data["all_tpus"] = json!({ "europe-west4-a": names, "preemptible": [], "spot": [] });
    env.write_data(&data);
    env
}

/// Runs one command for each user at once.
fn all_at_once(
    env: &TestEnv,
    users: usize,
    line: impl Fn(usize) -> String + Sync,
) -> Vec<CommandOutput> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..users)
            .map(|n| {
                let line = &line;
                scope.spawn(move || env.tpu(&line(n)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The document of `find`, by target.
fn standing(env: &TestEnv, target: &str) -> Value {
    let rows = |line: &str| env.tpu(line).exits(0).json()["targets"].as_array().unwrap().clone();
    let mut rows = rows("find --json").into_iter().chain(rows("find --deleted --json"));
    rows.find(|row| row["target"] == target).unwrap()
}

#[test]
fn of_twenty_who_reserve_at_once_one_wins_and_the_others_hear_who() {
    let env = lab(20, 1);
    let outputs = all_at_once(&env, 20, |n| format!("reserve lab-v2-8-0 u{n}"));
    let winners: Vec<usize> = (0..20).filter(|n| outputs[*n].code == 0).collect();
    let [winner] = winners.as_slice() else { panic!("{winners:?} have won") };
    for (n, output) in outputs.into_iter().enumerate().filter(|(n, _)| n != winner) {
        let output = output.exits(4).says(&[&format!("reserved by u{winner} ")]);
        assert!(!output.stderr.is_empty(), "u{n} is told");
    }
    assert_eq!(standing(&env, "lab-v2-8-0")["user"], format!("u{winner}"));
    let loser = (winner + 1) % 20;
    drop(env.tpu(&format!("run lab-v2-8-0 u{loser} -q")).exits(4).says(&["reserved by"]));
    drop(env.tpu(&format!("run lab-v2-8-0 u{winner} -q")).exits(0));
}

#[test]
fn of_twenty_who_run_at_once_each_target_takes_one() {
    let env = lab(20, 3);
    // A third names a target, the others let tpu choose.
    let outputs = all_at_once(&env, 20, |n| match n % 3 {
        0 => format!("run lab-v2-8-{} u{n} -q", n / 3 % 3),
        1 => format!("run v2-8 u{n} -q"),
        _ => format!("run u{n} -q --auto"),
    });
    let started = outputs.iter().filter(|output| output.code == 0).count();
    assert_eq!(started, 3, "{}", outputs.iter().map(CommandOutput::report).collect::<String>());
    for output in outputs.into_iter().filter(|output| output.code != 0) {
        // Whoever loses hears who has won.
        drop(output.exits(4).says(&["hint: ", "lab-v2-8-", "/1"]));
    }
    let mut targets: Vec<String> = Vec::new();
    for n in 0..20 {
        for job in env.jobs(&format!("u{n}")) {
            targets.push(job["tpu"].as_str().unwrap().to_owned());
        }
    }
    targets.sort();
    assert_eq!(targets, ["lab-v2-8-0", "lab-v2-8-1", "lab-v2-8-2"]);
}

#[test]
fn a_dead_job_never_keeps_a_target() {
    let env = lab(1, 1);
    let target = "lab-v2-8-0";
    let run = || {
        let output = env.tpu("run lab-v2-8-0 u0 -q --json").exits(0);
        let window = output.json()["launched"]["window"].as_u64().unwrap();
        assert_eq!(standing(&env, target)["standing"], "running");
        window
    };
    let free = |how: &str| {
        wait_until(how, || standing(&env, target)["standing"] == "free");
    };
    let window = run();
    drop(env.tpu(&format!("kill {window} u0")).exits(0));
    free("killed");
    drop(env.tpu("clean u0").exits(0));
    free("cleaned");
    let window = run();
    env.tmux().run(&["kill-window", "-t", &env.pane_id("u0", window).unwrap()]);
    free("its window closed by hand");
    run();
    env.tmux().kill_server();
    free("its tmux server killed");
}

#[test]
fn a_target_is_right_when_its_job_fails_moves_or_goes_on_elsewhere() {
    let env = lab(1, 2);
    let (here, there) = ("lab-v2-8-0", "lab-v2-8-1");
    let run = || {
        let output = env.tpu(&format!("run {here} u0 -q --json")).exits(0);
        output.json()["launched"]["window"].as_u64().unwrap()
    };
    let window = run();
    env.tmux().run(&["new-session", "-d", "-s", "elsewhere"]);
    env.tmux().run(&["move-window", "-s", &format!("=u0:{window}"), "-t", "=elsewhere:77"]);
    assert_eq!(standing(&env, here)["standing"], "running", "its window is at another place");
    drop(env.tpu(&format!("kill {window} u0")).exits(0));
    wait_until("killed at that place", || standing(&env, here)["standing"] == "free");
    env.code("alice", "staging.sh", "echo boom; exit 3\n");
    let window = run();
    wait_until("its job has failed", || standing(&env, here)["standing"] == "free");
    env.code("alice", "staging.sh", "exec sleep 1000\n");
    drop(env.tpu(&format!("rerun w={window} u0 tpu={there}")).exits(0));
    assert_eq!(standing(&env, here)["standing"], "free", "it goes on elsewhere");
    assert_eq!(standing(&env, there)["standing"], "running");
}

#[test]
fn who_waits_in_line_gets_what_comes_free_and_nobody_waits_behind_the_dead() {
    let env = lab(4, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    drop(env.tpu("run v2-8 u3 -q").exits(4).says(&["no target of v2-8 is free", "--wait"]));
    let line = || env.queued();
    let ghost = env.start_tpu("run v2-8 u1 -q --wait", &[]);
    wait_until("the first in line", || line() == 1);
    let waits = env.start_tpu("run v2-8 u2 -q --wait", &[]);
    wait_until("the second in line", || line() == 2);
    ghost.kill();
    drop(env.tpu("kill 1 u0").exits(0));
    assert_eq!(waits.wait(), 0);
    assert_eq!(env.jobs("u2").len(), 1);
    assert_eq!(env.jobs("u1").len(), 0);
    // The place of the dead is cleared away by whoever comes next, or by the doctor.
    drop(env.tpu("doctor").exits(0).says(&["in the queue: 1 place of processes"]));
    drop(env.tpu("doctor --fix").exits(0).says(&["fixed cleared 1 dead places"]));
    assert_eq!(line(), 0);
}

/// Lets the process that waited for a user have been ended by a restart of the machine.
fn restart(env: &TestEnv, user: &str) {
    env.change(|data| {
        let entries = data.queues_mut().entries.iter_mut();
        let mine = entries.filter(|entry| entry.user.as_str() == user);
        for keeper in mine.filter_map(|entry| entry.keeper.as_mut()) {
            let mut parts: Vec<&str> = keeper.owner.rsplitn(4, ':').collect();
            parts[2] = "an-earlier-boot";
            parts.reverse();
            keeper.owner = parts.join(":");
        }
    });
}

/// Lets the process that waited for a user have been silent for years.
fn long_ago(env: &TestEnv, user: &str) {
    env.change(|data| {
        let entries = data.queues_mut().entries.iter_mut();
        let mine = entries.filter(|entry| entry.user.as_str() == user);
        for keeper in mine.filter_map(|entry| entry.keeper.as_mut()) {
            keeper.seen = tpu_core::model::time::Timestamp::from_second(1_700_000_000);
        }
    });
}

#[test]
fn who_waits_is_waited_for_after_a_restart_in_the_same_place() {
    let env = lab(4, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    let line = || env.queued();
    let words = "run v2-8 u1 -q --wait lr=0.5 tag=long ssn=until_friday rule=pass";
    let first = env.start_tpu(words, &[("CONDA_PREFIX", "/opt/mine")]);
    wait_until("the first in line", || line() == 1);
    let killed = env.start_tpu("run v2-8 u2 -q --wait", &[]);
    wait_until("the second in line", || line() == 2);
    first.kill();
    killed.kill();
    restart(&env, "u1");
    let third = env.start_tpu("run v2-8 u3 -q --wait", &[]);
    wait_until("the third in line", || line() == 3);
    let monitor = env.start_tpu("daemon run", &[]);
    drop(env.tpu("kill 1 u0").exits(0));
    wait_until("the daemon starts what u1 waited for", || env.jobs("u1").len() == 1);
    let job = env.jobs("u1").remove(0);
    assert_eq!(job["tpu"], "lab-v2-8-0");
    assert_eq!(job["job_tags"], "long");
    let configs = job["extra_configs"].as_str().unwrap();
    assert!(configs.contains("learning_rate=0.5"), "{configs}");
    assert_eq!((env.jobs("u2").len(), env.jobs("u3").len()), (0, 0));
    wait_until("what it kept of the environment", || {
        let file = env.path("tpu-state/jobs/u1/1/env");
        std::fs::read(file)
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("CONDA_PREFIX=/opt/mine"))
    });
    // Its place went with its claim; the dead one's goes when it has been silent for long enough.
    wait_until("two places are left", || line() == 2);
    long_ago(&env, "u2");
    drop(env.tpu("kill 1 u1").exits(0));
    assert_eq!(third.wait(), 0);
    wait_until("nobody is left in line", || line() == 0);
    assert_eq!((env.jobs("u1").len(), env.jobs("u2").len(), env.jobs("u3").len()), (1, 0, 1));
    drop(monitor);
}

#[test]
fn a_restart_without_a_monitor_holds_nobody_up_and_keeps_the_place() {
    let env = lab(3, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    let line = || env.queued();
    let first = env.start_tpu("run v2-8 u1 -q --wait", &[]);
    wait_until("the first in line", || line() == 1);
    first.kill();
    restart(&env, "u1");
    long_ago(&env, "u1");
    // Years have passed on its host: it is forgotten by whoever looks after the queue next.
    drop(env.tpu("kill 1 u0").exits(0));
    assert_eq!(line(), 0);
    drop(env.tpu("run v2-8 u2 -q").exits(0));
    assert_eq!((env.jobs("u1").len(), env.jobs("u2").len()), (0, 1));
}

#[test]
fn ctrl_c_gives_the_place_up() {
    let env = lab(2, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    let line = || env.queued();
    let waits = env.start_tpu("run v2-8 u1 -q --wait", &[]);
    wait_until("it is in line", || line() == 1);
    waits.signal(Signal::Interrupt);
    assert_eq!(waits.wait(), 130);
    assert_eq!(line(), 0);
}

#[test]
fn who_is_told_to_end_gives_the_place_up_unless_the_machine_goes_down() {
    let mut env = lab(2, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    let line = TestEnv::queued;
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let waits = env.start_tpu("run v2-8 u1 -q --wait", &[]);
        wait_until("it is in line", || line(&env) == 1);
        waits.signal(signal);
        assert_eq!(waits.wait(), 130);
        assert_eq!(line(&env), 0);
    }
    let bin = env.path("down");
    std::fs::create_dir(&bin).unwrap();
    write_script(&bin.join("systemctl"), "echo stopping\n");
    env.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    let waits = env.start_tpu("run v2-8 u1 -q --wait", &[]);
    wait_until("it is in line", || line(&env) == 1);
    waits.signal(Signal::Terminate);
    assert_eq!(waits.wait(), 130);
    assert_eq!(line(&env), 1, "the daemon waits on there when the machine is up again");
    assert_eq!(env.jobs("u1").len(), 0);
}

#[test]
fn who_waits_says_for_what_where_nobody_sees_a_line_turn() {
    let env = lab(3, 1);
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(0));
    let held = "lab-v2-8-0 has u0/1";
    let before = env.data_bytes();
    let would = ["Would be waiting for v2-8 · 0 before you", held];
    drop(env.tpu("run v2-8 u1 -q --wait --dry-run").exits(0).says(&would));
    assert_eq!(env.data_bytes(), before, "nobody has joined the line");
    let said = env.path("said");
    let command = format!("{TPU} run v2-8 u1 -q --wait >{0}.out 2>{0} & echo $!", said.display());
    let pid = proc::run(&env.spawn_program("bash", &["-c", &command])).unwrap().text();
    wait_until("it says what it waits for", || {
        std::fs::read_to_string(&said).is_ok_and(|text| {
            text.lines().any(|line| line == format!("waiting for v2-8 · 0 before you: {held}"))
        })
    });
    drop(env.tpu("run v2-8 u2 -q --wait --dry-run").exits(0).says(&["1 before you"]));
    drop(env.tpu("kill 1 u0 -y").exits(0));
    wait_until("its turn has come", || env.jobs("u1").len() == 1);
    wait_until("it has ended", || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    let text = std::fs::read_to_string(&said).unwrap();
    assert_eq!(text.matches("waiting for").count(), 1, "once, and not in each look: {text}");
}

#[test]
fn a_sheet_says_who_runs_what_and_comes_back_without_writing_it_down() {
    let env = lab(2, 2);
    drop(env.tpu("run lab-v2-8-0 u0 -q tag=long").exits(0));
    let rows = env.tpu("board export json").exits(0).stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!((&rows[0]["status"], &rows[0]["user"]), (&json!("running"), &json!("u0")));
    assert_eq!((&rows[1]["status"], &rows[1]["user"]), (&json!(""), &json!("")));
    let sheet = env.tpu("board export csv").exits(0).stdout;
    assert!(sheet.contains(",running,running,u0,"), "{sheet}");
    write_file(&env.path("sheet.csv"), &sheet);
    drop(env.tpu("board import csv sheet.csv").exits(0).says(&["2 of 2 rows"]));
    drop(env.tpu("kill 1 u0 -y").exits(0));
    assert_eq!(standing(&env, "lab-v2-8-0")["standing"], "free", "the job is over");
}

#[test]
fn deleted_ones_are_listed_alone() {
    let mut env = lab(1, 2);
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("sim ready lab-v2-8-0").exits(0));
    drop(env.tpu("sim preempt lab-v2-8-1").exits(0));
    for line in ["find --deleted", "keng"] {
        let output = env.tpu(line).exits(0).says(&["lab-v2-8-1"]);
        assert!(!output.stdout.contains("lab-v2-8-0"), "{}", output.stdout);
    }
    let output = env.tpu("find").exits(0).says(&["lab-v2-8-0"]);
    assert!(!output.stdout.contains("lab-v2-8-1"), "{}", output.stdout);
}

#[test]
fn all_who_show_a_target_say_the_same_of_it() {
    let mut env = lab(1, 1);
    drop(env.tpu("register lab-new --zone zone-b --type v4-8 --spot").exits(0));
    for cloud in ["none", "sim"] {
        env.set("TPU_CLOUD", cloud);
        let status = env.tpu("check-status lab-new --json").exits(0).json();
        let described = env.tpu("describe lab-new --json").exits(0).json();
        let listed = env.tpu("targets --json").exits(0).json();
        let listed = listed["targets"].as_array().unwrap().iter();
        let listed = listed.clone().find(|row| row["name"] == "lab-new").unwrap();
        for key in ["type", "zone", "pricing"] {
            let all = [&status["targets"][0][key], &described["target"][key], &listed[key]];
            assert!(all.iter().all(|said| **said == all[0].clone()), "{cloud} {key}: {all:?}");
        }
        assert_eq!(listed["type"], "v4-8", "{cloud}");
        assert_eq!(listed["pricing"], "spot", "{cloud}");
        drop(
            env.tpu("check-status")
                .exits(0)
                .says(&["lab-new     v4-8       zone-b           spot"]),
        );
    }
}

#[test]
fn who_dies_between_claim_and_start_has_handed_the_place_in() {
    let env = lab(2, 1);
    let waits = env.start_tpu("run v2-8 u1 -q --wait", &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("it has claimed the target", || env.jobs("u1").len() == 1);
    assert_eq!(env.queued(), 0, "in the same step");
    waits.kill();
}

#[test]
fn six_wait_for_two_targets_and_each_has_its_turn() {
    let env = lab(6, 2);
    // A job that ends by itself: the target is free for the next one.
    env.code(
        "alice",
        "staging.sh",
        "tpu finish-job \"$(tmux display-message -p -t \"$TMUX_PANE\" '#S:#I')\"\n",
    );
    let outputs = all_at_once(&env, 6, |n| format!("run v2-8 u{n} -q --wait"));
    for output in outputs {
        drop(output.exits(0));
    }
    for n in 0..6 {
        assert_eq!(env.jobs(&format!("u{n}")).len(), 1, "u{n} got one job, and one only");
    }
    assert_eq!(env.queued(), 0);
}

#[test]
fn a_sheet_goes_out_and_comes_back_without_loss() {
    let env = lab(2, 4);
    drop(env.tpu("ssn lab-v2-8-0 长跑, \"until\" Friday").exits(0));
    drop(env.tpu("ssn lab-v2-8-2 @SUM(A1)").exits(0));
    drop(env.tpu("reserve lab-v2-8-1 u1 --for 2h").exits(0));
    for format in ["csv", "json"] {
        let out = env.tpu(&format!("board export {format}")).exits(0).stdout;
        // A spreadsheet reads it as text.
        assert_eq!(out.contains("'@SUM(A1)"), format == "csv", "{out}");
        let file = env.path(&format!("sheet.{format}"));
        write_file(&file, &out);
        let written = env.data()["board"].clone();
        let mut data = env.data();
        data["board"] = json!({});
        env.write_data(&data);
        drop(
            env.tpu(&format!("board import {format} {}", file.display()))
                .exits(0)
                .says(&["4 of 4 rows"]),
        );
        assert_eq!(env.data()["board"], written, "{format}");
        assert_eq!(env.tpu(&format!("board export {format}")).exits(0).stdout, out);
    }
}

#[test]
fn notes_that_were_given_with_a_run_are_on_the_board_and_in_its_sheet_for_as_long_as_it_runs() {
    let env = lab(2, 2);
    drop(env.tpu("ssn lab-v2-8-0 of last week").exits(0));
    drop(env.tpu("run lab-v2-8-0 u0 -q ssn=until_friday tag=sweep").exits(0));
    let board = || env.tpu("find v2-8 style=full").exits(0).stdout;
    let sheet = || env.tpu("board export csv").exits(0).stdout;
    for text in [board(), sheet()] {
        assert!(text.contains("until_friday") && !text.contains("of last week"), "{text}");
    }
    // A sheet that only repeats them does not write them down.
    let written = env.data()["board"].clone();
    write_file(&env.path("sheet.csv"), &sheet());
    drop(env.tpu("board import csv sheet.csv").exits(0));
    assert_eq!(env.data()["board"], written);
    drop(env.tpu("asn lab-v2-8-0 or longer").exits(0));
    assert!(sheet().contains("until_friday or longer"), "{}", sheet());
    drop(env.tpu("ssn lab-v2-8-0 done soon").exits(0));
    assert!(board().contains("done soon"), "{}", board());
    drop(env.tpu("kill 1 u0").exits(0));
    assert!(sheet().contains("done soon"), "what was noted last stays: {}", sheet());
}

#[test]
fn good_rows_are_taken_and_each_bad_one_is_named_with_its_line() {
    let env = lab(2, 5);
    drop(env.tpu("run lab-v2-8-3 u0 -q").exits(0));
    drop(env.tpu("reserve lab-v2-8-4 u1").exits(0));
    let sheet = "\u{feff}Notes,Status,Target,User\n\
        moved here,reserved,lab-v2-8-0,carol\n\
        short\n\
        ,lost,lab-v2-8-1,\n\
        ,free,nowhere,\n\
        twice,free,lab-v2-8-0,\n\
        测试,闲的,lab-v2-8-2,闲的\n\
        ,running,lab-v2-8-3,carol\n\
        ,reserved,lab-v2-8-4,carol\n";
    write_file(&env.path("sheet.csv"), sheet);
    drop(env.tpu("board import csv sheet.csv").exits(1).says(&[
        "2 of 8 rows taken",
        "line 3 was not taken: it names no target",
        "line 4 was not taken: status 'lost' is none of free, running",
        "line 5 was not taken: no target 'nowhere'",
        "line 6 was not taken: lab-v2-8-0 stands here twice",
        "line 8 was not taken: lab-v2-8-3 is in use by u0/1",
        "line 9 was not taken: lab-v2-8-4 is reserved by u1",
    ]));
    let taken = standing(&env, "lab-v2-8-0");
    assert_eq!((&taken["standing"], &taken["user"]), (&json!("reserved"), &json!("carol")));
    assert_eq!(standing(&env, "lab-v2-8-2")["notes"], "测试");
    drop(env.tpu("run lab-v2-8-0 u0 -q").exits(4).says(&["reserved by carol"]));
    write_file(&env.path("odd.csv"), "a,b\n1,2\n");
    drop(env.tpu("board import csv odd.csv").exits(2).says(&["no column 'target'", "a, b"]));
    write_file(&env.path("odd.json"), "{\"x\": 1}");
    drop(env.tpu("board import json odd.json").exits(2).says(&["no list of rows"]));
}

#[test]
fn sixty_targets_stand_in_the_groups_of_the_original() {
    let mut env = lab(3, 60);
    env.set("TPU_CLOUD", "none");
    let mut data = env.data();
    for n in 0..60 {
        let name = format!("lab-v2-8-{n}");
        data["tpu_aliases"][format!("t{n:02}")] = json!(name);
        data["board"][&name] = match n % 6 {
            0 => json!({ "status": "gone", "user": "carol", "notes": "deleted" }),
            1 | 2 => json!({ "status": "free" }),
            3 => json!({ "status": "reserved", "user": "dave", "notes": "sweep" }),
            4 => json!({ "status": "running", "user": "erin", "notes": "v7" }),
            _ => json!({ "status": "reserved(error)", "user": "dave", "notes": "" }),
        };
    }
    env.write_data(&data);
    let text = env.tpu("find --deleted v2").exits(0).to_string();
    let text = format!("{text}\n{}", env.tpu("find v2").exits(0));
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("find_60", text);
    });
    let counts = |line: &str| env.tpu(line).exits(0).json()["counts"].clone();
    assert_eq!(counts("find --deleted --json")["gone"], 10);
    assert_eq!(
        counts("find --json"),
        json!({ "gone": 0, "creating": 0, "free": 20, "reserved": 20, "running": 10, "unknown": 0 })
    );
}
