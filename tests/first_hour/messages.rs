//! What somebody mistypes in the first hour is answered by the line to type instead.

use super::Newcomer;
use crate::common::output::CommandOutput;

impl Newcomer {
    /// Types words of which some may hold spaces.
    fn types_words(&self, words: &[&str]) -> CommandOutput {
        self.env.output(&self.env.spawn(words).cwd(self.path("exp")))
    }
}

#[test]
fn a_command_without_its_dashes_is_told_where_they_belong() {
    for (line, meant) in [
        ("run local python tr.py", "tpu run local -- python tr.py"),
        ("run local -q tr.py", "tpu run local -q -- python3 tr.py"),
        ("run tr.py", "tpu run local -- python3 tr.py"),
        ("run local python tr.py --lr 0.1", "tpu run local -- python tr.py --lr 0.1"),
        ("submit local bash tr.sh", "tpu submit local -- bash tr.sh"),
    ] {
        // Whether or not somebody is known already.
        let newcomer = Newcomer::new();
        newcomer.file("exp/tr.py", "print(1)\n");
        let answer = newcomer.types("exp", line).exits(2);
        drop(answer.says(&[&format!("put -- before the command: {meant}")]));
        assert!(!newcomer.path(".local/share/tpu/data.json").exists(), "{line}");
        drop(newcomer.types("exp", "set-cur 1").exits(0));
        let answer = newcomer.types("exp", line).exits(2);
        drop(answer.says(&[&format!("put -- before the command: {meant}")]));
    }
}

#[test]
fn a_whole_line_in_one_word_is_no_program() {
    let newcomer = Newcomer::new();
    let line = "python3 my.py && echo done";
    drop(newcomer.types_words(&["run", "local", "-q", "--", line]).exits(2).says(&[
        "is one word, and no program has that name",
        "words after -- go to the program as they are; for shell syntax: -- bash -c 'python3 my.py && echo done'",
    ]));
    drop(newcomer.types_words(&["submit", "local", "--", line]).exits(2).says(&["-- bash -c"]));
    drop(newcomer.types_words(&["run", "local", "-q", "--", "bash", "-c", line]).exits(0));
    assert!(newcomer.prints(1).contains("done"));
}

#[test]
fn a_key_may_be_typed_as_an_option() {
    let newcomer = Newcomer::new();
    drop(newcomer.types("exp", "hosts set local --gpus 2 --max-jobs 4").exits(0));
    newcomer.file("exp/e.py", "import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n");
    drop(newcomer.types("exp", "run local --gpus 1 --tag first -q -- python3 e.py").exits(0));
    assert_eq!(newcomer.job(1)["job_tags"], "first");
    assert_eq!(newcomer.prints(1).lines().last(), Some("0"));
    // Behind the dashes it is the program's.
    drop(newcomer.types("exp", "run local -q -- echo --gpus 1").exits(0));
    assert!(newcomer.prints(2).contains("--gpus 1"));
}

#[test]
fn a_command_that_is_not_there_and_a_file_that_is_not_there_are_told_apart() {
    let newcomer = Newcomer::new();
    for (number, command, kind, words) in [
        (1, "pyhton3 my.py", "command-not-found", &["pyhton3: command not found"][..]),
        (
            2,
            "FOO=1 python3 my.py",
            "command-not-found",
            &["FOO=1: command not found", "--env NAME=VALUE"],
        ),
        (3, "python3 train.py", "file-error", &["can't open file", "train.py"]),
    ] {
        drop(newcomer.types("exp", &format!("run local -q -- {command}")).exits(0));
        drop(newcomer.types("exp", &format!("wait {number}")));
        let said = newcomer.types("exp", &format!("explain {number}")).exits(0);
        assert!(said.stdout.contains(&format!("error: {kind}")), "{command}: {said}");
        drop(said.says(words));
    }
}
