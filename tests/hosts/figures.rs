//! Figures are those of the machine and of exactly the processes of a job; a machine is asked once a minute at most,
//! and not at all while nobody looks and nothing runs; what does not answer is unknown, and nobody waits for it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tpu_core::model::ids::TargetName;
use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_ops::Ctx;
use tpu_ops::act::hosts::figures::{self, Whom};
use tpu_ops::base::setting_layers::Layers;
use tpu_screen::backend::{Backend as _, CliFunctions};
use tpu_screen::bridge::Bridge;
use tpu_screen::message::{Act, Answer, Ask};
use tpu_system::sys::env::Env;

use super::Lab;
use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

/// Holds so many MiB, says so in a file, and then keeps a core busy.
const BURNS: &str = "my $held = 'x' x ($ARGV[0] << 20); open(my $f, '>', $ARGV[1]); print $f $$; close($f); \
                     rename($ARGV[1], \"$ARGV[1].pid\"); 1 while 1";

/// Has one program of its own, and one that has left it as daemons do: session, group and parent are others.
const JOB: &str = "(setsid perl \"$0\" 40 \"$1/daemon\" &); exec perl \"$0\" 150 \"$1/own\"";

/// What the stand-in says of its four GPUs.
fn driver(lab: &Lab, index: usize, body: &str) {
    write_script(&lab.hosts.home(index).join("bin/nvidia-smi"), body);
}

/// Says that it was asked, in a file, and tells of four GPUs.
fn usual(lab: &Lab, index: usize) -> String {
    let home = lab.hosts.home(index);
    format!(
        "case $1 in\n\
         --query-gpu=*) echo asked >>'{home}/rounds'; for gpu in 0 1 2 3; do \
         echo \"$gpu, GPU-$gpu, Stand-in, $((90 - gpu)), $((1000 + gpu)), 8192, $((60 + gpu))\"; done ;;\n\
         --query-compute-apps=*) cat '{home}/apps' 2>/dev/null ;;\nesac\nexit 0",
        home = home.display()
    )
}

/// How often a machine was asked whose driver counts that.
pub(super) fn rounds(lab: &Lab, index: usize) -> usize {
    let asked = std::fs::read_to_string(lab.hosts.home(index).join("rounds"));
    asked.map_or(0, |text| text.lines().count())
}

/// The doors of this place with the settings of its commands.
pub(super) fn ctx(env: &TestEnv) -> Ctx {
    let vars = env.variables().clone();
    let ctx = env.ctx(Env { vars, ..Env::read() });
    let Ok(text) = std::fs::read_to_string(env.path("settings.json")) else { return ctx };
    let origin = SettingOrigin::Environment("TPU_SETTINGS".to_owned());
    let layer = Layer::parse(&text, &origin).unwrap();
    Ctx { layers: std::sync::Arc::new(Layers::fixed(vec![(origin, layer)])), ..ctx }
}

fn kept(env: &TestEnv) -> PathBuf {
    env.path("tpu-state/figures.json")
}

/// Lets two minutes go by, as far as the machines are concerned.
fn two_minutes_later(env: &TestEnv) {
    let Ok(text) = std::fs::read_to_string(kept(env)) else { return };
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let earlier = |host: &mut Value| {
        for pointer in ["/asked_at", "/seen/at"] {
            let Some(at) = host.pointer_mut(pointer) else { continue };
            let before: tpu_core::model::time::Timestamp =
                serde_json::from_value(at.clone()).unwrap();
            *at = json!(before.plus_seconds(-120));
        }
    };
    for group in ["hosts", "here"] {
        file[group].as_object_mut().unwrap().values_mut().for_each(earlier);
    }
    write_file(&kept(env), &file.to_string());
}

/// A new round for everybody who looks.
fn ask(env: &TestEnv) {
    two_minutes_later(env);
    figures::round(&ctx(env), Whom::Everyone).unwrap();
}

fn of_host(env: &TestEnv, name: &str) -> Value {
    env.tpu(&format!("hosts list {name} --json")).exits(0).json()["hosts"][0]["figures"].clone()
}

fn of_job(env: &TestEnv, window: u64) -> Value {
    env.tpu(&format!("explain {window} alice --json")).exits(0).json()["figures"].clone()
}

/// A program of the test's own, ended with it.
struct Stranger(Child);

impl Stranger {
    #[expect(clippy::disallowed_methods, reason = "the test ends this very process")]
    fn new(script: &str, at: &str) -> Self {
        let mut perl = Command::new("perl");
        perl.args([script, "60", at]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(perl.spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A number that `ps` says of processes, summed up.
fn ps(column: &str, pids: &[u32]) -> f64 {
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let spawn = tpu_system::sys::proc::Spawn::new("ps").args([
        "-o",
        &format!("{column}="),
        "-p",
        &list.join(","),
    ]);
    let text = tpu_system::sys::proc::run(&spawn).unwrap().text();
    text.split_whitespace().map(|word| word.parse::<f64>().unwrap()).sum()
}

/// CPU time of processes, in ticks (proc(5), fields 14 and 15), and the moment, in seconds.
fn used(pids: &[u32]) -> (f64, f64) {
    let ticks = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<f64> = stat
            .rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .map(|word| word.trim().parse().unwrap_or(0.0))
            .collect();
        fields[11] + fields[12]
    };
    let up = std::fs::read_to_string("/proc/uptime").unwrap();
    let at = up.split(' ').next().unwrap().parse().unwrap();
    (pids.iter().map(ticks).sum(), at)
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.05 * other.abs()
}

/// Starts the job on a target beside a program of somebody else, and holds its figures against `ps`.
fn of_exactly_its_processes(env: &TestEnv, target: &str) -> (Vec<u32>, Stranger) {
    let script = env.path("burns.pl");
    write_file(&script, BURNS);
    let at = env.path("burners");
    std::fs::create_dir(&at).unwrap();
    let (script, place) = (script.to_str().unwrap(), at.to_str().unwrap());
    drop(
        env.tpu_words(&["run", target, "alice", "-q", "--", "sh", "-c", JOB, script, place])
            .exits(0),
    );
    let stranger = Stranger::new(script, &env.path("stranger").display().to_string());
    let pid = |name: &str| {
        std::fs::read_to_string(at.join(format!("{name}.pid"))).ok()?.parse::<u32>().ok()
    };
    wait_until("both hold what they are to hold", || {
        pid("own").is_some() && pid("daemon").is_some() && env.path("stranger.pid").is_file()
    });
    let pids = [pid("own").unwrap(), pid("daemon").unwrap()];
    // Others want the processors as well: only in an even moment is a second like the seconds around it.
    let mut last = Value::Null;
    wait_until("the share is that of the processes", || {
        let before = used(&pids);
        ask(env);
        let after = used(&pids);
        let figures = of_job(env, 1);
        let share = (after.0 - before.0) / 100.0 / (after.1 - before.1);
        let cores = figures["cores"].as_f64().unwrap_or_else(|| panic!("{figures}"));
        assert!(cores > 0.0, "{figures}");
        last = figures;
        close(cores, share)
    });
    // What does not depend on the moment.
    let (before, figures, after) = loop {
        let before = ps("cputimes", &pids);
        ask(env);
        let figures = of_job(env, 1);
        if before >= 1.0 {
            break (before, figures, ps("cputimes", &pids));
        }
    };
    let cpu = figures["cpu_s"].as_f64().unwrap();
    assert!((before..=after + 2.0).contains(&cpu), "{before} {cpu} {after}");
    let held = ps("rss", &pids) / 1024.0;
    let memory = figures["mem_mib"].as_f64().unwrap();
    assert!(held > 190.0 && memory > 190.0, "{held} {figures}");
    let others = memory - held;
    // Of the shell that waits for them there are a few MiB at most.
    assert!(others.abs() <= 0.05 * held, "{held} {figures}");
    assert!(figures["age_s"].as_u64().unwrap() < 60, "{figures}");
    assert_eq!(last["interval_s"].as_f64().map(|seconds| seconds >= 1.0), Some(true));
    (pids.to_vec(), stranger)
}

#[test]
fn a_job_has_what_its_processes_have_with_those_that_have_left_it_and_no_others() {
    let Some(lab) = Lab::with(1, "--max-jobs 2 --gpus 4") else { return };
    driver(&lab, 0, &usual(&lab, 0));
    let (pids, stranger) = of_exactly_its_processes(&lab.env, "h1");
    let [own, daemon] = pids[..] else { panic!("{pids:?}") };
    let apps = format!("GPU-0, {own}, 700\nGPU-0, {daemon}, 100\nGPU-3, {}, 5\n", stranger.0.id());
    write_file(&lab.hosts.home(0).join("apps"), &apps);
    ask(&lab.env);
    let figures = of_job(&lab.env, 1);
    let gpus = figures["gpus"].as_array().unwrap();
    // It was given all four, since it asked for none, and is alone: or none; what it is on counts either way.
    let first = gpus.iter().find(|gpu| gpu["index"] == 0).unwrap();
    assert_eq!(first["own_mib"], 800, "{figures}");
    let said = &first["gpu"];
    assert_eq!((&said["use_percent"], &said["used_mib"]), (&json!(90), &json!(1000)), "{figures}");
    assert_eq!((&said["mem_mib"], &said["celsius"]), (&json!(8192), &json!(60)), "{figures}");
    assert!(gpus.iter().all(|gpu| gpu["index"] == 0 || gpu["own_mib"].is_null()), "{figures}");
    let host = of_host(&lab.env, "h1");
    assert_eq!(host["gpus"].as_array().map(Vec::len), Some(4), "{host}");
    assert!(host["load"].as_f64().is_some() && host["used_mib"].as_u64() > Some(200), "{host}");
    let text = lab.env.tpu("hosts list h1").exits(0).stdout;
    assert!(text.contains("88 % 63 °C") && text.contains("s ago"), "{text}");
    let text = lab.env.tpu("hosts show h1").exits(0).stdout;
    assert!(text.contains("90 % 1.0/8.0 GiB 60 °C") && text.contains("alice/1"), "{text}");
    let text = lab.env.tpu("explain 1 alice").exits(0).stdout;
    assert!(text.contains("uses: ") && text.contains(" cores over "), "{text}");
    let all = lab.env.tpu("check alice --json").exits(0).json();
    assert_eq!(all["figures"][0]["job"], "alice/1", "{all}");
    // It asked for none, and is not alone by what its machine takes.
    assert_eq!(all["jobs"][0]["share"]["gpus"], json!([]), "{all}");
    drop(lab.env.tpu("kill 1 alice -y").exits(0));
}

#[test]
fn this_machine_has_the_same_figures() {
    let env = TestEnv::new();
    drop(of_exactly_its_processes(&env, "local"));
    let host = of_host(&env, "local");
    assert!(host["load"].as_f64().is_some() && host["mem_mib"].as_u64() > Some(0), "{host}");
    drop(env.tpu("kill 1 alice -y").exits(0));
}

#[test]
fn a_machine_is_asked_once_a_minute_however_many_look() {
    let Some(lab) = Lab::with(2, "--max-jobs 1 --gpus 4") else { return };
    for index in [0, 1] {
        driver(&lab, index, &usual(&lab, index));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| figures::round(&ctx(&lab.env), Whom::Everyone).unwrap());
        }
    });
    for _ in 0..3 {
        figures::round(&ctx(&lab.env), Whom::Everyone).unwrap();
    }
    assert_eq!((rounds(&lab, 0), rounds(&lab, 1)), (1, 1));
    // Lists and the like ask nobody.
    for line in ["hosts list", "hosts show h1", "check alice --json"] {
        drop(lab.env.tpu(line).exits(0));
    }
    two_minutes_later(&lab.env);
    figures::round(&ctx(&lab.env), Whom::Everyone).unwrap();
    assert_eq!((rounds(&lab, 0), rounds(&lab, 1)), (2, 2));
}

#[test]
fn monitor_asks_where_something_runs_and_nobody_else() {
    let Some(lab) = Lab::with(2, "--max-jobs 1 --gpus 4") else { return };
    for index in [0, 1] {
        driver(&lab, index, &usual(&lab, index));
    }
    drop(lab.env.tpu("run h2 alice gpus=1 -q -- sleep 1000").exits(0));
    // The one that it was given to was asked before the start.
    let before = rounds(&lab, 1);
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon has asked", || of_host(&lab.env, "h2")["as_of"].is_string());
    assert_eq!(rounds(&lab, 1), before + 1);
    assert_eq!(of_host(&lab.env, "h1"), Value::Null);
    assert_eq!(of_job(&lab.env, 1)["gpus"][0]["gpu"]["use_percent"], 90);
    drop(lab.env.tpu("kill 1 alice -y").exits(0));
    two_minutes_later(&lab.env);
    // Whoever asks by hand would be refused for as long as somebody else asks: nobody does.
    figures::round(&ctx(&lab.env), Whom::AtWork).unwrap();
    assert_eq!((rounds(&lab, 0), rounds(&lab, 1)), (0, before + 1), "nothing runs any more");
    monitor.kill();
}

#[test]
fn nobody_is_connected_to_while_nobody_looks_and_nothing_runs_there() {
    let Some(lab) = Lab::new(2) else { return };
    drop(lab.add("h[1-2] --max-jobs 1 --gpus 4 --no-probe").exits(0));
    // Whoever connects for the first time writes down who answered.
    let is_known = || lab.hosts.path("known_hosts").exists();
    drop(lab.env.tpu("run local alice -q -- sleep 1000").exits(0));
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("a round is over", || of_host(&lab.env, "local")["as_of"].is_string());
    for line in ["hosts list", "hosts show h1", "targets", "check alice", "explain 1 alice"] {
        drop(lab.env.tpu(line).exits(0));
        assert!(!is_known(), "{line}");
    }
    monitor.kill();
    figures::round(&ctx(&lab.env), Whom::Everyone).unwrap();
    assert!(is_known(), "somebody looks");
    drop(lab.env.tpu("kill 1 alice -y").exits(0));
}

#[test]
fn one_that_falls_silent_is_unknown_with_its_age_and_keeps_nobody_waiting() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 1 --gpus 4") else { return };
    ask(&lab.env);
    assert!(of_host(&lab.env, "h1")["load"].is_number());
    lab.hosts.shut(0);
    ask(&lab.env);
    let host = of_host(&lab.env, "h1");
    assert!(host["silent"].is_string() && host["age_s"].as_u64() >= Some(120), "{host}");
    for name in ["load", "cpus", "used_mib", "mem_mib", "gpus", "jobs"] {
        assert!(host[name].is_null(), "{name}: {host}");
    }
    let text = lab.env.tpu("hosts list").exits(0).stdout;
    let line = text.lines().find(|line| line.starts_with("h1")).unwrap();
    assert!(line.contains("silent, 2m ago") && !line.contains("0 %"), "{text}");
    assert!(of_host(&lab.env, "h2")["load"].is_number(), "the other one answers");
    lab.hosts.begin(0);
    ask(&lab.env);
    assert!(of_host(&lab.env, "h1")["load"].is_number());
}

#[test]
fn a_driver_that_hangs_or_talks_nonsense_leaves_the_rest_as_it_is() {
    let Some(lab) = Lab::with(1, "--max-jobs 1") else { return };
    let hangs = "trap '' TERM INT HUP; while :; do read -r line </dev/null; done";
    let stammers = "case $1 in --query-gpu=*) while :; do echo '0, GPU-0, Stand-in, 5, 6, 7, 8'; done ;; \
                    *) while :; do echo 'GPU-0, ../../x, 3'; echo 'done'; done ;; esac";
    let garbage = "head -c 100000 /dev/zero | tr '\\0' '\\377'; printf 'done\\nload 99\\nnvidia 0\\n\\033[2J,'";
    for (body, gpus) in [(hangs, 0), (stammers, 1), (garbage, 0)] {
        driver(&lab, 0, body);
        ask(&lab.env);
        let host = of_host(&lab.env, "h1");
        assert!(host["silent"].is_null() && host["load"].as_f64() < Some(90.0), "{body}: {host}");
        assert_eq!(host["gpus"].as_array().map(Vec::len), Some(gpus), "{body}: {host}");
    }
    let hostile = "case $1 in --query-gpu=*) printf '0, GPU-0, X\\033[31mY, 5, 6, 7, 8\\n' ;; esac";
    driver(&lab, 0, hostile);
    ask(&lab.env);
    let text = lab.env.tpu("hosts show h1").exits(0).stdout;
    assert!(!text.contains('\u{1b}') && text.contains("31mY"), "{text:?}");
}

/// The command line lends the screens of these tests nothing.
const NOTHING: CliFunctions =
    CliFunctions { run: |_, _| Ok(String::new()), explain: |_, _| Ok(String::new()) };

#[test]
fn the_screen_asks_and_drains_as_commands_do() {
    let Some(lab) = Lab::with(1, "--max-jobs 1 --gpus 4") else { return };
    driver(&lab, 0, &usual(&lab, 0));
    let screens = [(); 2].map(|()| Bridge::new(ctx(&lab.env), Vec::new(), NOTHING));
    for screen in &screens {
        let Ok(Answer::Figures(figures)) = screen.ask(&Ask::Figures) else { panic!("no figures") };
        let names: Vec<&str> = figures.keys().map(TargetName::as_str).collect();
        assert_eq!(names, ["h1", "local"]);
    }
    assert_eq!(rounds(&lab, 0), 1, "the second sees what the first has asked");
    let target = TargetName::from("h1");
    let is_drained = || {
        let Ok(Answer::Targets(board)) = screens[0].ask(&Ask::Targets) else { panic!("no board") };
        let host = board.hosts.iter().find(|host| host.name == target).unwrap();
        assert_eq!(lab.host("h1")["drained"].is_object(), host.record.drained.is_some());
        host.record.drained.is_some()
    };
    let said = screens[0].act(&Act::Drain(target.clone())).unwrap().words;
    assert!(said.contains("takes no new jobs") && is_drained(), "{said}");
    let refused = lab.env.tpu("run h1 alice -q -- true").exits(4).stderr;
    assert!(refused.contains("h1 takes no new jobs"), "{refused}");
    let said = screens[0].act(&Act::Undrain(target.clone())).unwrap().words;
    assert!(said.contains("takes jobs again") && !is_drained(), "{said}");
}

#[test]
fn figures_are_of_the_very_machine_that_goes_by_the_name() {
    let Some(lab) = Lab::with(2, "--max-jobs 1 --no-probe") else { return };
    ask(&lab.env);
    assert!(of_host(&lab.env, "h1")["load"].is_number());
    let elsewhere = Env { hostname: "elsewhere".to_owned(), ..Env::read() };
    let there = Ctx {
        effects: tpu_system::effects::Effects { env: elsewhere, ..ctx(&lab.env).effects },
        ..ctx(&lab.env)
    };
    let known = figures::last(&there, &there.data().unwrap());
    let names: Vec<&str> = known.keys().map(TargetName::as_str).collect();
    assert_eq!(names, ["h1", "h2"], "`local` is another machine there");
    drop(lab.env.tpu("hosts remove h1").exits(0));
    let other = lab.hosts.addresses()[1].clone();
    let line = format!("hosts add h1 --address {other} --any-identity --no-probe");
    drop(lab.env.tpu(&line).exits(0));
    assert_eq!(of_host(&lab.env, "h1"), Value::Null, "nobody has asked this one");
    assert!(of_host(&lab.env, "h2")["load"].is_number());
}

#[test]
fn what_hangs_elsewhere_is_ended_with_all_that_it_has_begun() {
    let Some(lab) = Lab::with(1, "--max-jobs 1") else { return };
    driver(&lab, 0, &usual(&lab, 0));
    write_file(&lab.hosts.home(0).join("apps"), &format!("GPU-0, {}, 5\n", std::process::id()));
    let names = lab.hosts.home(0).join("bin/stat");
    write_script(&names, "trap '' TERM INT HUP; while :; do sleep 0.3; done");
    let hang = || {
        let spawn = tpu_system::sys::proc::Spawn::new("ps").args(["-eo", "args="]);
        let all = tpu_system::sys::proc::run(&spawn).unwrap().text();
        all.lines().filter(|line| line.contains(names.to_str().unwrap())).count()
    };
    ask(&lab.env);
    assert!(of_host(&lab.env, "h1")["silent"].is_string());
    wait_until("nothing of the question is left", || hang() == 0);
    std::fs::remove_file(&names).unwrap();
    ask(&lab.env);
    assert!(of_host(&lab.env, "h1")["silent"].is_null());
}

#[test]
fn what_is_kept_may_be_anything() {
    let env = TestEnv::new();
    ask(&env);
    assert!(of_host(&env, "local")["load"].is_number());
    for text in ["", "{", "[]", "{\"hosts\": 3, \"here\": {}}", "\u{0}"] {
        write_file(&kept(&env), text);
        assert_eq!(of_host(&env, "local"), Value::Null, "{text:?}");
    }
    figures::round(&ctx(&env), Whom::Everyone).unwrap();
    assert!(of_host(&env, "local")["load"].is_number());
}
