//! A partition is a target as any other: what runs there is started, watched, stopped, brought back and cleared away by
//! the commands that do so with windows.

use std::path::Path;

use serde_json::json;

use super::cluster::{Cluster, Setup};
use super::lab::Lab;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

#[test]
fn it_trains_with_progress_and_loss_in_the_list_and_finishes() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "lr=0.1");
    let job = lab.wait_runs(window);
    assert_eq!(job.submitted, job.id);
    lab.wait_starts("a", 1);
    assert_eq!(lab.starts("a"), ["--config.training.learning_rate=0.1"]);
    assert!(!lab.env.has_window("alice", window), "no window of ours");
    wait_until("its loss", || lab.shown(window)["progress"]["loss"] == 0.5);
    let shown = lab.shown(window);
    assert_eq!((&shown["status"], &shown["target"]), (&json!("running"), &json!("gpu")));
    assert!(shown["progress"]["step"].as_u64().unwrap() > 0, "{shown}");
    assert_eq!(shown["progress"]["total"], 1000);
    drop(lab.tpu("check").exits(0).says(&["running", "loss 0.5", "gpu"]));
    drop(lab.tpu(&format!("explain {window}")).exits(0).says(&["running", "loss 0.5"]));
    drop(lab.tpu(&format!("logs {window}")).exits(0).says(&["step 1/1000"]));
    drop(lab.tpu(&format!("show {window}")).exits(0).says(&["bash", &job.id.to_string()]));
    let raw = lab.tpu(&format!("show {window} --raw")).exits(0);
    drop(raw.says(&["RUNNING", "low"]));

    // Whoever follows it hears all of it, and is let go at its end, which the daemon writes down.
    let _monitor = lab.daemon(&[]);
    let followed = std::thread::scope(|scope| {
        let follower = scope.spawn(|| lab.tpu(&format!("logs {window} -f")).exits(0));
        lab.end("a", "echo the last line; exit 0");
        follower.join().unwrap()
    });
    drop(followed.says(&["step 1/1000", "the last line"]));
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    let shown = lab.shown(window);
    assert_eq!((&shown["status"], &shown["exit_code"]), (&json!("finished"), &json!(0)));
    assert_eq!(lab.cluster.submissions(), [job.id]);
}

#[test]
fn what_would_be_submitted_is_what_is_and_it_is_kept() {
    let Some(lab) = Lab::new() else { return };
    lab.env.code("alice", "train.sh", "pwd; cat train.sh; exit 0\n");
    let would = lab.tpu("run gpu lr=0.1 --dry-run -- bash train.sh").exits(0);
    drop(would.says(&["#!/bin/", "train.sh", "learning_rate=0.1"]));
    assert!(lab.cluster.jobs().is_empty() && lab.env.jobs("alice").is_empty());
    drop(lab.tpu("run gpu lr=0.1 -q -- bash train.sh").exits(0));
    // A later edit does not change what is queued.
    lab.env.code("alice", "train.sh", "echo another\n");
    drop(lab.tpu("wait 1 --timeout 30s").exits(0));
    let staged = lab.env.job("alice", 1)["stage_dir"].as_str().unwrap().to_owned();
    let printed = lab.tpu("logs 1").exits(0).stdout;
    assert!(printed.contains(&staged) && printed.contains("cat train.sh"), "{printed}");
    let script = lab.tpu("script 1").exits(0).stdout;
    assert!(script.starts_with("#!/bin/"), "{script}");
    assert!(script.contains("learning_rate=0.1"), "{script}");
}

#[test]
fn it_waits_with_slurms_reason_in_plain_words() {
    let Some(lab) = Lab::new() else { return };
    let by_hand = lab.cluster.submit(&["-N2", "--exclusive"], "sleep 1000");
    lab.cluster.wait_state(by_hand, "RUNNING");
    let window = lab.train("a", "");
    let id = lab.listed(window).id;
    wait_until("Slurm has said why", || lab.cluster.job(id).reason == "Resources");
    let shown = lab.shown(window);
    assert_eq!(shown["status"], "pending", "{shown}");
    assert_eq!(shown["pending"]["raw"], "PENDING");
    assert!(shown["pending"]["reason"].as_str().unwrap().contains("resources"), "{shown}");
    lab.cluster.run(&["scancel", &by_hand.to_string()]);
    lab.wait_runs(window);
    assert_eq!(lab.wait_shown(window, "running")["pending"], json!(null));
}

#[test]
fn what_can_never_run_is_said_within_one_look_with_what_to_change() {
    let Some(lab) = Lab::with(Setup { max_time: "10", ..Setup::default() }) else { return };
    let window = lab.run("exit 0", "--sbatch time=60");
    let id = lab.listed(window).id;
    wait_until("Slurm has said why", || lab.cluster.job(id).reason == "PartitionTimeLimit");
    let reason = lab.shown(window)["pending"]["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("more time than the partition") && reason.contains("--time"),
        "{reason}"
    );
}

#[test]
fn a_kill_stops_exactly_it_and_clean_archives_it() {
    let Some(lab) = Lab::new() else { return };
    let (one, other) = (lab.train("a", ""), lab.train("b", ""));
    let (one_id, other_id) = (lab.wait_runs(one).id, lab.wait_runs(other).id);
    lab.wait_starts("a", 1);
    drop(lab.tpu(&format!("kill {one} -y")).exits(0));
    assert_eq!(lab.env.job("alice", one)["status"], "killed");
    assert_eq!(lab.cluster.job(one_id).state, "CANCELLED");
    assert_eq!(lab.cluster.job(other_id).state, "RUNNING");
    assert_eq!(lab.shown(other)["status"], "running");
    drop(lab.tpu("clean alice -y").exits(0));
    let left = lab.env.jobs("alice");
    assert_eq!(left.iter().map(|job| &job["windows_id"]).collect::<Vec<_>>(), [other]);
    // One that has not begun is stopped as well.
    let waiting = lab.run("exit 0", "--sbatch hold");
    let waiting_id = lab.listed(waiting).id;
    drop(lab.tpu(&format!("kill {waiting} -y")).exits(0));
    assert_eq!(lab.cluster.job(waiting_id).state, "CANCELLED");
}

#[test]
fn resume_goes_on_from_its_checkpoint_and_rerun_begins_again() {
    let Some(lab) = Lab::new() else { return };
    let first = lab.train("a", "lr=0.1");
    lab.wait_checkpoint(first);
    lab.end("a", "echo bad; exit 7");
    let failed = lab.wait_shown(first, "error");
    assert_eq!(failed["exit_code"], 7);
    drop(lab.tpu(&format!("wait {first} --timeout 30s")).exits(1));
    lab.let_go_on("a");

    drop(lab.tpu(&format!("resume {first} --yes")).exits(0));
    lab.wait_starts("a", 2);
    let jobs = lab.env.jobs("alice");
    let second = jobs[1]["windows_id"].as_u64().unwrap();
    let told = &lab.starts("a")[1];
    let from = format!("--config.load_from={}", lab.log_dir(first).display());
    assert!(told.contains("learning_rate=0.1") && told.contains(&from), "{told}");
    assert_eq!(jobs[1]["stage_dir"], jobs[0]["stage_dir"]);
    assert_eq!(lab.shown(second)["lineage"], json!([first, second]));
    lab.end("a", "exit 1");
    lab.wait_shown(second, "error");
    lab.let_go_on("a");

    drop(lab.tpu(&format!("rerun {second}")).exits(0));
    lab.wait_starts("a", 3);
    assert_eq!(lab.starts("a")[2], "--config.training.learning_rate=0.1");
    assert_eq!(lab.cluster.submissions().len(), 3);
}

#[test]
fn where_the_caller_has_said_which_cluster_that_is_kept() {
    let Some(mut lab) = Lab::bare(Setup::default()) else { return };
    let other = Cluster::with(Setup { first_job: 100, ..Setup::default() });
    lab.env.set("SLURM_CONF", lab.cluster.conf());
    drop(lab.tpu("register gpu --kind slurm --partition low").exits(0));
    // Whoever uses it later may be in the middle of something else.
    lab.env.set("SLURM_CONF", other.conf());
    for (name, value) in [
        ("SQUEUE_FORMAT", "%i"),
        ("SQUEUE_STATES", "PENDING"),
        ("SQUEUE_PARTITION", "high"),
        ("SBATCH_PARTITION", "high"),
        ("SBATCH_REQUEUE", "1"),
        ("SLURM_CLUSTERS", "elsewhere"),
        ("SINFO_FORMAT", "%P"),
    ] {
        lab.env.set(name, value);
    }
    let window = lab.train("a", "");
    let job = lab.wait_runs(window);
    lab.wait_shown(window, "running");
    assert!(other.jobs().is_empty());
    let shown = lab.cluster.run(&["scontrol", "show", "job", &job.id.to_string()]);
    assert!(shown.contains("Partition=low") && shown.contains("Requeue=0"), "{shown}");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(job.id).state, "CANCELLED");
}

#[test]
fn its_node_has_what_it_asked_for() {
    let Some(lab) = Lab::bare(Setup { has_gpus: true, ..Setup::default() }) else { return };
    if !lab.cluster.path("gpu0").exists() {
        eprintln!("skipped: only root can make device files for GPUs");
        return;
    }
    lab.register("gpu", &lab.cluster, "--partition low --gres gpu:1 --time 12:00:00");
    let window = lab.run("echo gpus=$CUDA_VISIBLE_DEVICES; exit 0", "");
    drop(lab.tpu(&format!("wait {window} --timeout 30s")).exits(0));
    drop(lab.tpu(&format!("logs {window}")).exits(0).says(&["gpus=0"]));
    let shown = lab.cluster.run(&["scontrol", "show", "job", &lab.listed(window).id.to_string()]);
    assert!(shown.contains("TimeLimit=12:00:00"), "{shown}");
}

#[test]
fn its_partitions_are_imported_with_what_there_is_in_them() {
    let Some(lab) = Lab::bare(Setup::default()) else { return };
    let import = format!("targets import --kind slurm --cluster {}", lab.cluster.conf());
    drop(lab.tpu(&format!("{import} --dry-run")).exits(0).says(&["+ low", "+ high"]));
    drop(lab.tpu(&format!("{import} -y")).exits(0).says(&["Imported 2 targets"]));
    drop(lab.tpu(&format!("{import} -y")).exits(0).says(&["Nothing to import"]));
    drop(lab.tpu("run high -q -- true").exits(0));
    drop(lab.tpu("wait 1 --timeout 30s").exits(0));
    let id = lab.listed(1).id.to_string();
    assert!(lab.cluster.run(&["scontrol", "show", "job", &id]).contains("Partition=high"));
}

#[test]
fn a_script_of_its_user_and_what_the_cluster_does_not_have_are_refused() {
    let Some(lab) = Lab::new() else { return };
    lab.env.code("alice", "staging.sh", "true\n");
    drop(lab.tpu("run gpu -q").exits(4).says(&["staging.sh", "-- COMMAND"]));
    drop(lab.tpu("run local --sbatch hold -q -- true").exits(2).says(&["--sbatch"]));
    drop(lab.tpu("register den --kind slurm").exits(4).says(&["--partition"]));
    assert!(lab.env.jobs("alice").is_empty() && lab.cluster.submissions().is_empty());
}

/// A node sees the directories of its job; if it does not, its first step says so, and Slurm's word for the end of that
/// is waited for: the text alone would be a missing file of the program's.
#[test]
fn code_that_the_node_does_not_see_is_a_failed_set_up() {
    let Some(lab) = Lab::new() else { return };
    let by_hand = lab.cluster.submit(&["-N2", "--exclusive"], "sleep 1000");
    lab.cluster.wait_state(by_hand, "RUNNING");
    let window = lab.train("a", "");
    let staged = lab.env.job("alice", window)["stage_dir"].as_str().unwrap().to_owned();
    // As on a node that does not share the disk.
    std::fs::rename(&staged, format!("{staged}.away")).unwrap();
    lab.cluster.run(&["scancel", &by_hand.to_string()]);
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "setup", "{shown}");
    assert_eq!(shown["evidence"]["source"], "engine", "{shown}");
    let text = shown["evidence"]["line"].as_str().unwrap();
    assert!(text.contains(&staged) && text.contains("stage_root"), "{shown}");
    drop(lab.tpu(&format!("logs {window}")).exits(0).says(&["does not see the copy"]));
    assert!(lab.starts("a").is_empty());
}

/// What is given up is marked where its nodes see it, so that it runs nothing should it come all the same. A dry run
/// marks nothing.
#[test]
fn a_launch_that_never_came_is_given_up_where_its_nodes_see_it() {
    let Some(mut lab) = Lab::with(Setup { message_timeout: 2, ..Setup::default() }) else { return };
    // Ended before anything is heard of it.
    lab.replace("sbatch", "kill -9 $$");
    drop(lab.tpu("run gpu alice -q -- true").exits(6));
    lab.a_minute_later();
    let mark = lab.log_dir(1).join("slurm-given-up");
    drop(lab.tpu("check alice").exits(0));
    drop(lab.tpu("kill 1 --dry-run"));
    assert!(!mark.exists(), "nobody has given it up");
    wait_until("it is given up", || {
        drop(lab.tpu("clear-finished bob"));
        lab.env.job("alice", 1)["error"] == "launch"
    });
    assert!(mark.is_dir());
    assert!(lab.cluster.submissions().is_empty());
}

#[test]
fn a_secret_reaches_its_command_and_stays_nowhere() {
    const VALUE: &str = "kQ7'x $HOME \"9\"-slurm";
    let Some(lab) = Lab::new() else { return };
    let set = lab.env.spawn(&["secrets", "set", "A_KEY"]).stdin(VALUE.as_bytes().to_vec());
    drop(lab.env.output(&set).exits(0));
    write_file(&lab.env.path("expected"), VALUE);
    let expected = lab.env.path("expected");
    let text = format!(
        "target: gpu\nsecrets: [A_KEY]\narray: 0-1\ncommand: 'test \"$A_KEY\" = \"$(cat \"{}\")\" && echo it has it'\n",
        expected.display()
    );
    write_file(&lab.env.path("job.yaml"), &text.replace("array: 0-1\n", ""));
    drop(lab.tpu("run job.yaml -q").exits(0));
    drop(lab.tpu("wait 1 --timeout 30s").exits(0));
    drop(lab.tpu("logs 1").exits(0).says(&["it has it"]));
    write_file(&lab.env.path("job.yaml"), &text);
    drop(lab.tpu("run job.yaml -q").exits(0));
    for member in ["2_0", "2_1"] {
        drop(lab.tpu(&format!("wait {member} --timeout 30s")).exits(0));
        drop(lab.tpu(&format!("logs {member}")).exits(0).says(&["it has it"]));
    }
    // Who never began has read nothing.
    let waits =
        text.replace("array: 0-1\n", "").replace(": gpu\n", ": {slurm: gpu, sbatch: [hold]}\n");
    write_file(&lab.env.path("job.yaml"), &waits);
    drop(lab.tpu("run job.yaml -q").exits(0));
    drop(lab.tpu("kill 5 -y").exits(0));
    std::fs::remove_file(&expected).unwrap();
    let found = lab
        .env
        .output(&lab.env.spawn_program("grep", &["-rlF", "--devices=skip", VALUE, lab.env.root()]));
    let store = lab.env.path("config/tpu/secrets/A_KEY");
    assert_eq!(found.stdout.trim(), store.to_str().unwrap(), "{}", found.report());
    assert!(!lab.tpu("script 1").exits(0).stdout.contains(VALUE));
}

#[test]
fn a_variable_that_is_named_is_in_no_batch_script() {
    const VALUE: &str = "c4nary'x $HOME \"9\"-slurm";
    let Some(mut lab) = Lab::new() else { return };
    lab.env.set("A_VALUE", VALUE);
    lab.env.set("WANDB_MODE", "offline");
    let says = "echo \"${#A_VALUE} $WANDB_MODE\"; exit 3";
    drop(
        lab.env
            .tpu_words(&["run", "gpu", "-q", "--env", "A_VALUE", "--", "bash", "-c", says])
            .exits(0),
    );
    drop(lab.tpu("wait 1 --timeout 60s").exits(1));
    drop(lab.tpu("logs 1").exits(0).says(&[&format!("{} offline", VALUE.len())]));
    let id = lab.listed(1).id.to_string();
    let script = lab.cluster.run(&["scontrol", "write", "batch_script", &id, "-"]);
    assert!(script.contains("export TPU_JOB=") && !script.contains(VALUE), "{script}");
    assert!(!lab.tpu("script 1").exits(0).stdout.contains(VALUE));
    lab.env.set("A_VALUE", "another");
    drop(lab.tpu("rerun 1").exits(0));
    drop(lab.tpu("wait 2 --timeout 60s").exits(1));
    drop(lab.tpu("logs 2").exits(0).says(&[&format!("{} offline", VALUE.len())]));
}

#[test]
fn a_command_without_code_runs_in_a_directory_that_the_node_has() {
    let Some(lab) = Lab::new() else { return };
    let there = lab.env.path("there");
    std::fs::create_dir_all(&there).unwrap();
    let path = lab.env.path("job.yaml");
    let run = |dir: &Path| {
        let dir = dir.display();
        write_file(&path, &format!("target: gpu\ncode: none\ndir: {dir}\ncommand: pwd\n"));
        drop(lab.tpu(&format!("run {} -q", path.display())).exits(0));
    };
    run(&there);
    drop(lab.tpu("wait 1 --timeout 30s").exits(0));
    let printed = lab.tpu("logs 1").exits(0).stdout;
    assert!(printed.contains(&format!("{}\n", there.display())), "{printed}");
    assert!(lab.env.job("alice", 1)["stage_dir"].is_null());
    run(&there.join("gone"));
    drop(lab.tpu("wait 2 --timeout 30s"));
    drop(lab.tpu("explain 2").exits(0).says(&["there/gone", "a directory that they have"]));
}

#[test]
fn what_it_prints_is_added_to_a_file_of_the_node() {
    let Some(lab) = Lab::new() else { return };
    let (path, file) = (lab.env.path("job.yaml"), lab.env.path("o.txt"));
    let text = format!("target: gpu\noutput: {}\ncommand: 'seq 500; exit 3'\n", file.display());
    write_file(&path, &text);
    drop(lab.tpu(&format!("run {} -q", path.display())).exits(0));
    drop(lab.tpu("wait 1 --timeout 30s"));
    assert_eq!(lab.shown(1)["exit_code"], 3);
    let kept = std::fs::read_to_string(&file).unwrap();
    let expected: Vec<String> = (1..=500).map(|n| n.to_string()).collect();
    assert_eq!(kept.lines().collect::<Vec<_>>(), expected);
    assert!(lab.tpu("logs 1").exits(0).stdout.contains("\n500\n"));
}

/// Its machines have the disk of this one.
#[test]
fn what_git_ignores_is_linked_into_the_copy_and_no_deletion_follows_the_link() {
    let Some(lab) = Lab::new() else { return };
    for (path, text) in [(".git/HEAD", ""), (".gitignore", "data/\n"), ("data/x.txt", "seven\n")] {
        lab.env.code("alice", path, text);
    }
    let says = "cat data/x.txt; echo \"$TPU_JOB\" >>data/y.txt";
    for (window, verb) in [(1, "run gpu -q"), (2, "submit gpu")] {
        let words: Vec<&str> = verb.split(' ').chain(["--", "sh", "-c", says]).collect();
        drop(lab.env.tpu_words(&words).exits(0));
        drop(lab.tpu(&format!("wait {window} --timeout 60s")).exits(0));
        drop(lab.tpu(&format!("logs {window}")).exits(0).says(&["seven"]));
        let copy = lab.env.job("alice", window)["stage_dir"].as_str().unwrap().to_owned();
        assert!(Path::new(&copy).join("data").is_symlink(), "it is not copied");
    }
    drop(lab.tpu("clean -y").exits(0));
    let kept = |name: &str| std::fs::read_to_string(lab.env.path("code-alice/data").join(name));
    assert_eq!(kept("x.txt").unwrap(), "seven\n");
    assert_eq!(kept("y.txt").unwrap(), "alice/1\nalice/2\n");
}
