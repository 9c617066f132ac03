//! A cluster that is reached by a login node only, over a real server of ssh: the same is done there, and a connection
//! that breaks in the middle of a submission leaves nothing twice and nothing forgotten.

use std::time::Duration;

use serde_json::json;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _};

use super::cluster::Setup;
use super::lab::Lab;
use crate::common::env::TPU;
use crate::common::sshd::{self, Hosts};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use crate::common::within::within;

/// A lab whose target is behind a login node. The host ends after its user.
struct Behind {
    lab: Lab,
    hosts: Hosts,
}

impl Behind {
    fn new() -> Option<Self> {
        if !sshd::is_installed() {
            return None;
        }
        let mut lab = Lab::bare(Setup { message_timeout: 2, ..Setup::default() })?;
        let hosts = Hosts::new(1);
        let settings = json!({
            "ssh_options": hosts.options(),
        });
        write_file(&lab.env.path("settings.json"), &settings.to_string());
        lab.env.set("TPU_SETTINGS", lab.env.path("settings.json"));
        let account = lab.cluster.run(&["id", "-un"]);
        let login = format!("{account}@{}", hosts.addresses()[0]);
        let key = hosts.path("client").display().to_string();
        let to = |name: &str| lab.env.path(name).display().to_string();
        let words = format!("--login {login} --login-key {key} --partition low");
        let conf = lab.cluster.conf();
        let said = lab.tpu(&format!("register gpu --kind slurm --cluster {conf} {words}"));
        drop(said.says(&["--stage-root"]));
        let roots = format!("--stage-root {} --log-root {}", to("stages"), to("logs"));
        let words = format!("{words} {roots}");
        lab.register("gpu", &lab.cluster, &words);
        Some(Self { lab, hosts })
    }
}

#[test]
fn it_is_run_followed_and_stopped_through_the_login_node() {
    let Some(Behind { lab, hosts: _hosts }) = Behind::new() else { return };
    let odd = "it's \"$HOME\" `id` a\nb";
    let told = lab.env.path("told").display().to_string();
    let print = "printf '%s' \"$1\" >\"$0\"";
    drop(lab.env.tpu_words(&["run", "gpu", "-q", "--", "bash", "-c", print, &told, odd]).exits(0));
    lab.wait_shown(1, "finished");
    assert_eq!(std::fs::read_to_string(&told).unwrap(), odd);

    let window = lab.train("a", "lr=0.1");
    lab.wait_runs(window);
    wait_until("its loss", || lab.shown(window)["progress"]["loss"] == 0.5);
    drop(lab.tpu(&format!("logs {window}")).exits(0).says(&["step 1/1000"]));
    lab.wait_checkpoint(window);
    lab.end("a", "exit 7");
    assert_eq!(lab.wait_shown(window, "error")["exit_code"], 7);
    lab.let_go_on("a");
    drop(lab.tpu(&format!("resume {window} --yes")).exits(0));
    lab.wait_starts("a", 2);
    let from = format!("--config.load_from={}", lab.log_dir(window).display());
    assert!(lab.starts("a")[1].contains(&from), "{:?}", lab.starts("a"));
    let next = lab.env.job("alice", window)["extra_msgs"]["child"].as_u64().unwrap();
    drop(lab.tpu(&format!("kill {next} -y")).exits(0));
    assert_eq!(lab.listed(next).state, "CANCELLED");
    assert_eq!(lab.cluster.submissions().len(), 3);
}

/// With directories of the target's own, and without a daemon.
#[test]
fn an_array_is_run_and_followed_through_the_login_node() {
    let Some(Behind { lab, hosts: _hosts }) = Behind::new() else { return };
    let script = "echo step $TPU_MEMBER/10 loss 0.5; [ $TPU_MEMBER != 2 ] || exit 7";
    let words = ["run", "gpu", "-q", "--array", "0-2", "--", "bash", "-c", script, "job"];
    drop(lab.env.tpu_words(&words).exits(0));
    assert_eq!(lab.cluster.submissions().len(), 1);
    for (window, member) in [(2, 0), (3, 1)] {
        let shown = lab.wait_shown(window, "finished");
        assert_eq!(shown["progress"]["step"], member, "its own log: {shown}");
        let dirs = ["log_dir", "stage_dir"].map(|name| shown[name].as_str().unwrap().to_owned());
        assert!(dirs[0].starts_with(&lab.env.path("logs").display().to_string()), "{dirs:?}");
        assert!(dirs[1].starts_with(&lab.env.path("stages").display().to_string()), "{dirs:?}");
    }
    assert_eq!(lab.wait_shown(4, "error")["exit_code"], 7);

    let window = lab.train("a", "");
    lab.wait_runs(window);
    lab.wait_starts("a", 1);
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| lab.tpu(&format!("logs {window} -f")).exits(0));
        wait_until("some steps", || lab.checkpoints(window) > 3);
        lab.end("a", "echo the last word; exit 0");
        follower.join().unwrap()
    });
    drop(followed.says(&["step 1/1000", "the last word"]));
}

#[test]
fn a_shell_is_opened_beside_it_through_the_login_node() {
    let Some(Behind { lab, hosts: _hosts }) = Behind::new() else { return };
    let window = lab.train("a", "");
    let job = lab.wait_runs(window);
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("{TPU} attach {window}; echo code-$?"));
    terminal.until("a prompt", || terminal.screen().trim_end().ends_with(['#', '$']));
    terminal.types("echo beside-$SLURM_JOB_ID");
    terminal.press("Enter");
    terminal.shows(&format!("beside-{}", job.id));
    terminal.types("exit");
    terminal.press("Enter");
    terminal.shows("code-0");
    assert_eq!(lab.listed(window).state, "RUNNING");
}

#[test]
fn nothing_follows_from_a_login_node_that_is_away() {
    let Some(Behind { lab, mut hosts }) = Behind::new() else { return };
    let window = lab.train("a", "rule=pre");
    let job = lab.wait_runs(window);
    lab.wait_starts("a", 1);
    lab.wait_shown(window, "running");
    hosts.shut(0);
    let shown = within(Duration::from_secs(4), "a look", || lab.shown(window));
    assert!(shown["unknown"].is_string(), "{shown}");
    drop(lab.tpu(&format!("kill {window} -y")).exits(6));
    drop(lab.env.output(&lab.training("b", "")).exits(6));
    hosts.begin(0);
    assert_eq!(lab.cluster.job(job.id).state, "RUNNING");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(job.id).state, "CANCELLED");
    assert_eq!(lab.cluster.submissions(), [job.id]);
}

#[test]
fn a_connection_that_breaks_in_the_middle_leaves_nothing_twice_and_nothing_forgotten() {
    let Some(Behind { lab, hosts }) = Behind::new() else { return };
    let clock = SystemClock::new();
    drop(lab.tpu("run gpu alice rule=pass -q -- true").exits(0));
    let whole = clock.monotonic();
    for _ in 0..8 {
        let share = u32::try_from(OsRandom.below(1_000)).unwrap();
        let said = std::thread::scope(|scope| {
            let running = scope.spawn(|| lab.tpu("run gpu alice rule=pass -q -- true"));
            clock.sleep(whole * share / 1_000);
            hosts.cut(0);
            running.join().unwrap()
        });
        // Where it broke while the code was copied, it is a failed launch.
        assert!([0, 1, 6].contains(&said.code), "{said}");
    }
    // A submission on the login node may be at work for half a minute after the connection has gone.
    lab.a_minute_later();
    wait_until("all is settled", || {
        drop(lab.tpu("clear-finished bob"));
        lab.env
            .jobs("alice")
            .iter()
            .all(|job| job["extra_msgs"]["launch"]["confirmed"] == true || job["error"] == "launch")
    });
    let records = lab.env.jobs("alice");
    let mut theirs = 0;
    for record in &records {
        let jobs = lab.cluster.jobs_of(&super::lab::token_of(record));
        assert_eq!(jobs.len(), usize::from(record["error"] != "launch"), "{record:#}\n{jobs:?}");
        theirs += jobs.len();
    }
    assert_eq!(lab.cluster.submissions().len(), theirs);
}

/// What a set-up takes lies here or beside the code on its disk; on the way it is for its owner's eyes alone.
#[test]
fn its_nodes_are_set_up_through_the_login_node() {
    let Some(Behind { lab, hosts: _hosts }) = Behind::new() else { return };
    lab.env.code("alice", "words.txt", "these\n");
    write_file(&lab.env.path("own"), "mine\n");
    let text = "target: gpu\narray: 0-1\nsetup:\n  - {name: words, files: [{from: words.txt, to: ~/there/words}, {from: ~/own, to: ~/there/own}]}\n\
         \x20 - {name: odd, run: 'echo no way; test \"$TPU_MEMBER\" = 0'}\n\
         idle_timeout: 1h\ncommand: 'cat \"$HOME/there/words\" \"$HOME/there/own\"'\n";
    write_file(&lab.env.path("job.yaml"), text);
    drop(lab.tpu("run job.yaml -q").exits(0));
    lab.wait_shown(2, "finished");
    drop(lab.tpu("logs 2").exits(0).says(&["these\nmine\n"]));
    let failed = lab.wait_shown(3, "error");
    assert_eq!(failed["error"], "setup", "{failed}");
    let line = failed["evidence"]["line"].as_str().unwrap();
    assert!(line.contains("odd on node n") && line.ends_with("ended with 1: no way"), "{line}");
}
