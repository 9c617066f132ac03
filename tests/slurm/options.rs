//! What a person hands through to Slurm, and what a person's command is made of, stays what it is: no option is made of
//! a value, no second option of one, and no word of the command is read by Slurm.

use serde_json::json;

use super::cluster::Setup;
use super::lab::Lab;
use crate::common::wait::wait_until;

/// Options that are ours, abbreviations that would be them, and what is no option at all.
const REFUSED: [&str; 23] = [
    "requeue",
    "no-requeue",
    "req",
    "requ",
    "output=/tmp/elsewhere",
    "out=/tmp/elsewhere",
    "error=/tmp/elsewhere",
    "job-name=theirs",
    "job=theirs",
    "comment=theirs",
    "array=0-3",
    "arr=0-3",
    "wrap=true",
    "chdir=/",
    "parsable",
    "test-only",
    "wait",
    "-J theirs",
    "--exclusive",
    "J",
    "",
    "=",
    "constraint=a\n#SBATCH --requeue",
];

#[test]
fn options_that_are_ours_are_refused_however_they_are_spelled() {
    let Some(lab) = Lab::new() else { return };
    for option in REFUSED {
        let option = format!("--sbatch={option}");
        let words = ["run", "gpu", "-q", &option, "--", "true"];
        let said = lab.env.tpu_words(&words);
        assert!([2, 4].contains(&said.code), "{option:?}: {}", said.report());
        drop(said.says(&["sbatch"]));
        let conf = lab.cluster.conf();
        let words = ["register", "odd", "--kind", "slurm", "--cluster", &conf];
        let words: Vec<&str> = words.into_iter().chain(["--partition", "low", &option]).collect();
        let said = lab.env.tpu_words(&words);
        assert!([2, 4].contains(&said.code), "{option:?}: {}", said.report());
    }
    assert!(lab.env.jobs("alice").is_empty());
    assert!(lab.cluster.submissions().is_empty());
}

#[test]
fn what_is_handed_through_arrives_as_it_is() {
    let Some(lab) = Lab::bare(Setup::default()) else { return };
    lab.register("gpu", &lab.cluster, "--partition low --sbatch nice=7 --sbatch time-min=3");
    let window = lab.run("exit 0", "--sbatch cpus-per-task=2 --sbatch hold --time 20:00");
    let id = lab.listed(window).id.to_string();
    let shown = lab.cluster.run(&["scontrol", "show", "job", &id]);
    for part in ["Nice=7", "CPUs/Task=2", "TimeLimit=00:20:00", "TimeMin=00:03:00", "Requeue=0"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(lab.shown(window)["status"], "pending");
    lab.cluster.run(&["scontrol", "release", &id]);
    lab.wait_shown(window, "finished");
}

/// What Slurm refuses is said with its own words, and nothing is left of it.
#[test]
fn what_slurm_refuses_is_refused_in_its_words() {
    let Some(lab) = Lab::new() else { return };
    lab.register("none", &lab.cluster, "--partition nowhere");
    let said = lab.tpu("run none -q -- true").exits(2);
    drop(said.says(&["invalid partition specified"]));
    drop(
        lab.tpu("run gpu --gres gpu:9 -q -- true")
            .exits(2)
            .says(&["node configuration is not available"]),
    );
    assert!(lab.cluster.submissions().is_empty());
    let live = |job: &serde_json::Value| job["status"] == "starting" || job["status"] == "running";
    assert!(!lab.env.jobs("alice").iter().any(live));
    let _monitor = lab.daemon(&[]);
    lab.turn();
    assert!(lab.cluster.submissions().is_empty(), "nobody tries it again");
}

#[test]
fn no_word_of_the_command_is_read_by_slurm_or_by_a_shell() {
    let Some(lab) = Lab::new() else { return };
    let told = lab.env.path("told").display().to_string();
    let odd = [
        "#SBATCH --job-name=theirs",
        "a\n#SBATCH --requeue\n#SBATCH --job-name=theirs\n",
        "\n#PBS -N theirs",
        "it's",
        "two words",
        "$HOME `id` $(id) \"y\" \\",
        "*",
        "ü€😀",
        "",
        "-",
        "--wrap=true",
        "\t",
        "%j %A %x",
        "EOF",
        "!x",
    ];
    let print = "for word; do printf '%s\\0' \"$word\"; done >\"$0\"";
    let mut words = vec!["run", "gpu", "-q", "--", "bash", "-c", print, &told];
    words.extend(odd);
    drop(lab.env.tpu_words(&words).exits(0));
    lab.wait_shown(1, "finished");
    let read = std::fs::read_to_string(&told).unwrap();
    let read: Vec<&str> = read.split_terminator('\0').collect();
    assert_eq!(read, odd);
    let job = lab.listed(1);
    assert!(!job.name.contains("theirs"), "{job:?}");
    let shown = lab.cluster.run(&["scontrol", "show", "job", &job.id.to_string()]);
    assert!(shown.contains("Requeue=0"), "{shown}");
}

/// What cannot be carried exactly is refused, never changed on the way.
#[test]
fn line_ends_of_other_systems_are_carried_exactly_or_refused() {
    let Some(lab) = Lab::new() else { return };
    let told = lab.env.path("told").display().to_string();
    for odd in ["a\r\nb", "\r", "#!/bin/sh\r\n"] {
        let print = "printf '%s' \"$1\" >\"$0\"";
        let said = lab
            .env
            .tpu_words(&["run", "gpu", "-q", "--json", "--", "bash", "-c", print, &told, odd]);
        if said.code == 0 {
            let window = said.json()["launched"]["window"].as_u64().unwrap();
            lab.wait_shown(window, "finished");
            assert_eq!(std::fs::read_to_string(&told).unwrap(), odd);
        } else {
            assert!([2, 4].contains(&said.code), "{}", said.report());
        }
    }
}

/// The environment of whoever starts it does not become options either.
#[test]
fn names_and_tags_are_no_options() {
    let Some(lab) = Lab::new() else { return };
    let tag = "tag=--requeue #SBATCH\n--hold";
    let words = ["run", "gpu", "-q", tag, "--name", "llama", "--", "bash", "-c", "exit 0", "x"];
    drop(lab.env.tpu_words(&words).exits(0));
    let job = lab.listed(1);
    let shown = lab.cluster.run(&["scontrol", "show", "job", &job.id.to_string()]);
    assert!(shown.contains("Requeue=0"), "{shown}");
    wait_until("its end", || lab.shown(1)["status"] == json!("finished"));
}
