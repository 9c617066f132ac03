//! The code is the directory that one stands in.

use super::{Newcomer, below_home};
use crate::common::env::TPU;

/// Task 2.
#[test]
fn ones_own_script_runs_in_ones_own_directory_without_any_preparation() {
    let newcomer = Newcomer::new();
    let answer = newcomer.types("exp", "run local -q -- python3 my.py").exits(0);
    let exp = below_home("exp");
    answer.says(&[
        &format!("Started john-doe/1 on local: python3 my.py (code of {exp})"),
        "made user john-doe in",
        ".local/share/tpu/data.json",
    ]);
    assert_eq!(newcomer.prints(1), "this is mine\n");
    let job = newcomer.job(1);
    assert!(job["job_dir_id"].is_null(), "{job:#}");
    assert_eq!(job["job_dir"], newcomer.path("exp").to_str().unwrap());
    let again = newcomer.types("exp", "run local -q -- python3 my.py").exits(0);
    assert!(!again.stderr.contains("made user"), "{}", again.stderr);
}

/// A name that is no user's, and one that means something else.
#[test]
fn an_account_becomes_a_user_under_a_name_that_can_be_typed() {
    let mut newcomer = Newcomer::new();
    newcomer.env.set("USER", "monitor");
    drop(newcomer.types("exp", "run local -q -- true").exits(0).says(&["Started monitor-1/1 on"]));
    let mut other = Newcomer::new();
    other.env.set("TPU_DATA", other.path("typo.json").as_os_str());
    drop(other.types("exp", "run local -q -- true").says(&["there is no data file"]));
    assert!(!other.path("typo.json").exists(), "a file that was named is a mistake");
}

/// Task 5.
#[test]
fn three_seeds_of_one_script_are_told_apart_in_the_answers() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/tr.py", "import sys\nprint(sys.argv)\n");
    for seed in 0..3 {
        let line = format!("run local -q --name s{seed} -- python3 tr.py --seed {seed}");
        let told = format!("\"s{seed}\" on local: python3 tr.py --seed {seed} (code of ~/exp)");
        drop(newcomer.types("exp", &line).exits(0).says(&[&told]));
    }
    assert_eq!(newcomer.prints(3), "['tr.py', '--seed', '2']\n");
}

/// Task 16: all of a work tree is copied, and the command begins where it was typed.
#[test]
fn from_a_sub_directory_the_whole_work_tree_is_there() {
    let newcomer = Newcomer::new();
    newcomer.dir("exp/.git");
    newcomer.file("exp/data/x.txt", "seven");
    newcomer.file("exp/sub/reads.py", "print(open('../data/x.txt').read())\n");
    let answer = newcomer.types("exp/sub", "run local -q -- python3 ../my.py").exits(0);
    drop(answer.says(&["(code of ~/exp/sub)"]));
    assert_eq!(newcomer.prints(1), "this is mine\n");
    drop(newcomer.types("exp/sub", "run local -q -- python3 reads.py").exits(0));
    assert_eq!(newcomer.prints(2), "seven\n");
    // What follows it begins there as well, with the code as it is by then.
    newcomer.file("exp/data/x.txt", "eight");
    drop(newcomer.types("exp", "rerun 2 --force").exits(0));
    assert_eq!(newcomer.prints(3), "eight\n");
}

#[test]
fn what_waits_runs_the_code_that_was_there_as_it_was_submitted() {
    let newcomer = Newcomer::new();
    newcomer.dir("exp/.git");
    newcomer.file("exp/sub/own.py", "print('before')\n");
    drop(newcomer.types("exp/sub", "submit local --hold -- python3 own.py").exits(0));
    newcomer.file("exp/sub/own.py", "print('after')\n");
    drop(newcomer.types("exp", "unhold 1").exits(0));
    assert_eq!(newcomer.prints(1), "before\n");
    newcomer.file("exp/sub/job.yaml", "target: local\ncommand: python3 own.py\n");
    drop(newcomer.types("exp/sub", "run job.yaml -q").exits(0).says(&["code of ~/exp/sub"]));
    assert_eq!(newcomer.prints(2), "after\n");
}

#[test]
fn another_directory_can_be_named() {
    let newcomer = Newcomer::new();
    newcomer.file("other/my.py", "print('another')\n");
    let answer = newcomer.types("exp", "run local -q -C ../other -- python3 my.py").exits(0);
    drop(answer.says(&["(code of ~/other)"]));
    assert_eq!(newcomer.prints(1), "another\n");
    drop(newcomer.types("other", "set-cur 2").exits(0));
    drop(newcomer.types("exp", "run local -q dir=2 -- python3 my.py").exits(0));
    assert_eq!(newcomer.prints(2), "another\n");
    assert_eq!(newcomer.job(2)["job_dir_id"], 2);
    let missing = newcomer.types("exp", "run local -q -C nowhere -- true").exits(3);
    drop(missing.says(&["nowhere"]));
}

/// A home under git is no work tree of everything below it.
#[test]
fn a_home_is_never_copied() {
    let mut newcomer = Newcomer::new();
    newcomer.dir(".git");
    newcomer.file("mine.py", "open('result', 'w').write('here')\n");
    let answer = newcomer.types("", "run local -q -- python3 mine.py").exits(0);
    drop(answer.says(&["(in ~, without a copy)"]));
    newcomer.prints(1);
    assert_eq!(std::fs::read_to_string(newcomer.path("result")).unwrap(), "here");
    drop(newcomer.types("exp", "run local -q -- python3 my.py").exits(0).says(&["of ~/exp)"]));
    newcomer.env.set("TPU_CLOUD", "sim");
    drop(newcomer.types("", "register lab-tpuvm-v2-32-1").exits(0));
    drop(newcomer.types("", "sim list").exits(0));
    for line in ["run lab-tpuvm-v2-32-1 -q -- true", "submit lab-tpuvm-v2-32-1 -- true"] {
        drop(newcomer.types("", line).exits(4).says(&["holds keys", "-C PATH"]));
    }
}

/// Whoever begins it may be at home elsewhere.
#[test]
fn what_waits_in_a_home_runs_there_whoever_begins_it() {
    let mut newcomer = Newcomer::new();
    newcomer.file("mine.py", "open('result', 'w').write('here')\n");
    drop(newcomer.types("", "submit local --hold -- python3 mine.py").exits(0));
    let data = newcomer.path(".local/share/tpu/data.json");
    newcomer.env.set("TPU_DATA", data.as_os_str());
    newcomer.env.set("HOME", newcomer.path("exp").as_os_str());
    drop(newcomer.types("exp", "unhold 1").exits(0));
    newcomer.prints(1);
    assert_eq!(std::fs::read_to_string(newcomer.path("result")).unwrap(), "here");
    assert!(newcomer.job(1)["stage_dir"].is_null(), "nothing is copied");
}

/// git ignores it; who stands in it means it all the same.
#[test]
fn a_directory_that_is_ignored_is_there_where_one_stands_in_it() {
    let newcomer = Newcomer::new();
    newcomer.dir("exp/.git");
    newcomer.file("exp/.gitignore", "build/\ndata/\n");
    newcomer.file("exp/data/big", "");
    newcomer.file(
        "exp/build/deep/look.py",
        "import os\nprint(sorted(os.listdir('../..')), os.path.islink('../../data'))\n",
    );
    drop(newcomer.types("exp/build/deep", "run local -q -- python3 look.py").exits(0));
    assert_eq!(
        newcomer.prints(1),
        "['.gitignore', '.tpu-copied', 'build', 'data', 'my.py'] True\n"
    );
    drop(newcomer.types("exp/build/deep", "submit local -- python3 look.py").exits(0));
    assert_eq!(
        newcomer.prints(2),
        "['.gitignore', '.tpu-copied', 'build', 'data', 'my.py'] True\n"
    );
}

/// It has no path, and what tmux takes for it is the home.
#[test]
fn a_directory_that_was_deleted_is_refused() {
    let newcomer = Newcomer::new();
    newcomer.dir("gone");
    for line in ["run local -q -- true", "submit local -- true", "run local -q -C .. -- true"] {
        newcomer.dir("gone");
        let script = format!("cd gone && rmdir ../gone && exec {TPU} {line}");
        let spawn = newcomer.env.spawn_program("sh", &["-c", &script]).cwd(newcomer.path(""));
        drop(newcomer.env.output(&spawn).exits(3).says(&["not there"]));
    }
    drop(newcomer.types("exp", "run local -q -C . dir=2 -- true").exits(2).says(&["both say"]));
}

/// What is typed and what is written in the file would be two places.
#[test]
fn a_directory_beside_a_file_that_names_one_is_refused() {
    let newcomer = Newcomer::new();
    newcomer.file("other/my.py", "print('another')\n");
    let job = |text: &str| newcomer.file("exp/job.yaml", &format!("target: local\n{text}\n"));
    for (text, key) in [
        ("dir: ~/exp\ncommand: python3 my.py", "dir:"),
        ("dir: 1\ncommand: python3 my.py", "dir:"),
        ("code: .\ncommand: python3 my.py", "code:"),
        ("code: none\ndir: /tmp\ncommand: python3 my.py", "dir:"),
    ] {
        job(text);
        for line in ["run job.yaml -q -C ../other", "submit job.yaml -C ../other"] {
            let refused = newcomer.types("exp", line).exits(2);
            drop(refused.says(&["job.yaml:", "-C ../other and ", key, "both say where"]));
        }
    }
    job("command: python3 my.py");
    drop(newcomer.types("exp", "run job.yaml -q -C ../other").exits(0).says(&["code of ~/other"]));
    assert_eq!(newcomer.prints(1), "another\n");
    // A file without a command runs the script of its directory.
    newcomer.file("other/staging.sh", "echo staged; exit 0\n");
    job("name: base");
    drop(
        newcomer
            .types("exp", "run job.yaml -q --dry-run -C ../other")
            .exits(0)
            .says(&["staging.sh"]),
    );
}

/// Another account begins what this one has submitted: the code is what lay there then.
#[test]
fn what_a_file_calls_its_own_directory_stays_that_for_another_account() {
    let mut newcomer = Newcomer::new();
    let file = "target: local\ncode: .\ncommand: python3 my.py\n";
    newcomer.file("exp/job.yaml", file);
    newcomer.file("job.yaml", file);
    newcomer.file("my.py", "open('result', 'w').write('here')\n");
    newcomer.file("other/my.py", "print('another account')\n");
    drop(newcomer.types("other", "submit ../exp/job.yaml").exits(0));
    assert_eq!(newcomer.prints(1), "this is mine\n");
    for dir in ["../exp", ".."] {
        let waits = format!("submit {dir}/job.yaml --hold");
        drop(newcomer.types("other", &waits).exits(0));
    }
    newcomer.file("exp/my.py", "print('a later edit')\n");
    let data = newcomer.path(".local/share/tpu/data.json");
    newcomer.env.set("TPU_DATA", data.as_os_str());
    newcomer.env.set("HOME", newcomer.path("other").as_os_str());
    newcomer.env.set("USER", "bob");
    drop(newcomer.types("other", "unhold 2 3").exits(0));
    assert_eq!(newcomer.prints(2), "this is mine\n");
    newcomer.prints(3);
    assert_eq!(std::fs::read_to_string(newcomer.path("result")).unwrap(), "here");
    assert!(newcomer.job(3)["stage_dir"].is_null(), "a home is not copied");
    // A file in a home that is begun by its own account stays there as well.
    drop(newcomer.types("other", "run ../exp/job.yaml -q").exits(0));
    assert_eq!(newcomer.prints(4), "a later edit\n");
}
