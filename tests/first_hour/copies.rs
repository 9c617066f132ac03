//! What a copy of the code has in it, and what lies beside it.

use std::path::PathBuf;

use super::Newcomer;
use crate::common::tmux::write_file;

/// Says what it finds in a directory that is no code, and leaves something there.
const READS: &str = "print(open('data/x.txt').read())\nopen('data/y.txt', 'w').write('result')\n";

impl Newcomer {
    /// Makes the directory `exp` a work tree of git.
    pub(super) fn under_git(&self, ignored: &str) {
        self.file("exp/.gitignore", ignored);
        self.git(&["init", "-q"]);
        self.git(&["config", "user.name", "john"]);
        self.git(&["config", "user.email", "john@example.org"]);
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    fn git(&self, words: &[&str]) {
        let spawn = self.env.spawn_program("git", words).cwd(self.path("exp"));
        drop(self.env.output(&spawn).exits(0));
    }

    /// The copy of the code of a job.
    pub(super) fn copy(&self, job: u64) -> PathBuf {
        PathBuf::from(self.job(job)["stage_dir"].as_str().unwrap())
    }

    pub(super) fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap_or_default()
    }
}

/// Task 14: under git and without.
#[test]
fn what_is_ignored_is_there_and_what_is_written_there_lands_beside_the_code() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/data/x.txt", "seven");
    newcomer.file("exp/reads.py", READS);
    newcomer.under_git("data/\n");
    drop(newcomer.types("exp", "run local -q -- python3 reads.py").exits(0));
    assert_eq!(newcomer.prints(1), "seven\n");
    assert_eq!(newcomer.read("exp/data/y.txt"), "result");
    assert!(newcomer.copy(1).join("data").is_symlink(), "it is not copied");
    assert!(!newcomer.copy(1).join(".git").exists());
    // What waits finds it as well, wherever its copy was made.
    drop(newcomer.types("exp", "submit local --hold -- python3 reads.py").exits(0));
    newcomer.file("exp/data/x.txt", "eight");
    newcomer.file("exp/later.py", "");
    drop(newcomer.types("exp", "unhold 2").exits(0));
    assert_eq!(newcomer.prints(2), "eight\n");
    assert!(!newcomer.copy(2).join("later.py").exists(), "it is code, and came later");
    std::fs::remove_dir_all(newcomer.path("exp/.git")).unwrap();
    drop(newcomer.types("exp", "run local -q -- python3 reads.py").exits(0));
    assert_eq!(newcomer.prints(3), "eight\n");
    // No deletion follows a link.
    drop(newcomer.types("exp", "submit local --hold -- python3 reads.py").exits(0));
    drop(newcomer.types("exp", "dequeue 4").exits(0));
    drop(newcomer.types("exp", "clean -y").exits(0));
    assert_eq!(newcomer.read("exp/data/x.txt"), "eight");
}

#[test]
fn under_git_a_copy_has_what_git_knows_and_what_it_does_not_ignore() {
    let newcomer = Newcomer::new();
    for path in ["plot.png", "sub/deep/own.py", "gone.py", "odd name.py"] {
        newcomer.file(&format!("exp/{path}"), "text");
    }
    newcomer.file("shared/far.txt", "far");
    std::os::unix::fs::symlink("../shared", newcomer.path("exp/shared")).unwrap();
    std::os::unix::fs::symlink("sub/deep", newcomer.path("exp/near")).unwrap();
    newcomer.under_git("*.log\n/out\n");
    std::fs::remove_file(newcomer.path("exp/gone.py")).unwrap();
    for path in ["new.py", "new.png", "a.log", "out/o", "wandb/run/w", "__pycache__/x.pyc"] {
        newcomer.file(&format!("exp/{path}"), "text");
    }
    newcomer.dir("exp/hollow");
    newcomer.file("exp/.tpuignore", "big/\n");
    newcomer.file("exp/big/b", "text");
    let find = "find . ! -type d -printf %P=%y\\n";
    drop(newcomer.types("exp", &format!("run local -q -- {find}")).exits(0));
    let mut seen: Vec<String> = newcomer.prints(1).lines().map(str::to_owned).collect();
    seen.sort_unstable();
    let wanted = [
        ".gitignore=f",
        ".tpu-copied=f",
        ".tpuignore=f",
        "a.log=l",
        "big=l",
        "my.py=f",
        "near=l",
        "new.png=f",
        "new.py=f",
        "odd name.py=f",
        "out=l",
        "plot.png=f",
        "shared=l",
        "sub/deep/own.py=f",
        "wandb=l",
    ];
    assert_eq!(seen, wanted);
    // A link keeps pointing to what it pointed to.
    let copy = newcomer.copy(1);
    assert_eq!(std::fs::read_to_string(copy.join("shared/far.txt")).unwrap(), "far");
    assert_eq!(std::fs::read_link(copy.join("near")).unwrap(), PathBuf::from("sub/deep"));
    assert!(copy.join("hollow").is_dir() && !copy.join("hollow").is_symlink());
}

/// What git still takes for files of a directory is behind a link by now, and of no copy's business.
#[test]
fn what_lies_behind_a_link_is_neither_copied_nor_touched() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/ck/README", "tracked");
    newcomer.file("exp/was/dir.py", "tracked");
    newcomer.file("exp/reads.py", "print(open('ck/README').read())\n");
    newcomer.under_git("shut/\n");
    std::fs::rename(newcomer.path("exp/ck"), newcomer.path("moved")).unwrap();
    std::os::unix::fs::symlink(newcomer.path("moved"), newcomer.path("exp/ck")).unwrap();
    std::fs::remove_dir_all(newcomer.path("exp/was")).unwrap();
    newcomer.file("exp/was", "a file by now");
    newcomer.file("exp/inner/.git/HEAD", "nothing that git can read");
    newcomer.file("exp/inner/own.py", "");
    newcomer.dir("exp/shut");
    let shut = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(newcomer.path("exp/shut"), shut).unwrap();
    for (job, line) in [(1, "run local -q"), (2, "submit local")] {
        drop(newcomer.types("exp", &format!("{line} -- python3 reads.py")).exits(0));
        assert_eq!(newcomer.prints(job), "tracked\n");
        assert_eq!(newcomer.read("moved/README"), "tracked");
        let copy = newcomer.copy(job.into());
        assert_eq!(std::fs::read_to_string(copy.join("was")).unwrap(), "a file by now");
        assert!(copy.join("inner/own.py").is_file() && !copy.join("inner").is_symlink());
    }
    // Its copy is whole, whatever becomes of the directory.
    drop(newcomer.types("exp", "submit local --hold -- python3 my.py").exits(0));
    std::fs::rename(newcomer.path("exp"), newcomer.path("gone")).unwrap();
    drop(newcomer.types("", "unhold 3").exits(0));
    drop(newcomer.types("", "wait 3").exits(0));
    assert_eq!(newcomer.types("", "logs 3").exits(0).stdout, "this is mine\n");
}

/// Task 15.
#[test]
fn more_than_is_usual_is_not_copied_unasked() {
    let newcomer = Newcomer::new();
    newcomer.dir("exp/big");
    let big = std::fs::File::create(newcomer.path("exp/big/b.bin")).unwrap();
    big.set_len(600_000_000).unwrap();
    for line in ["run local -q -- python3 my.py", "submit local -- python3 my.py"] {
        let refused = newcomer.types("exp", line).exits(4);
        drop(refused.says(&["~/exp", "2 files", "big 600", ".tpuignore", "--in-place", "-y"]));
    }
    drop(
        newcomer.types("exp", "run local -q --in-place -- pwd").exits(0).says(&["without a copy"]),
    );
    let there = newcomer.path("exp").canonicalize().unwrap();
    assert_eq!(newcomer.prints(1), format!("{}\n", there.display()));
    write_file(&newcomer.path("exp/.tpuignore"), "big\n");
    drop(newcomer.types("exp", "run local -q -- python3 my.py").exits(0));
    assert_eq!(newcomer.prints(2), "this is mine\n");
    drop(newcomer.types("exp", "run local -q --in-place dir=1 -- true").exits(2));
    // As many files as are allowed, and all the same.
    drop(newcomer.types("exp", "set-settings copy_files 1").exits(0));
    drop(newcomer.types("exp", "run local -q -- python3 my.py").exits(4));
    drop(newcomer.types("exp", "run local -q -y -- python3 my.py").exits(0));
    assert_eq!(newcomer.prints(3), "this is mine\n");
}

/// Runs that code without a copy, and says which of it is another by now.
#[test]
fn a_restart_without_a_copy_names_what_was_changed_since() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/data/x.txt", "seven");
    newcomer.file("exp/reads.py", READS);
    newcomer.under_git("data/\n");
    let now = std::fs::metadata(newcomer.path("exp/my.py")).unwrap().modified().unwrap();
    let hour = std::time::Duration::from_secs(3_600);
    let touch = |path: &str, to| {
        let file = std::fs::File::open(newcomer.path(path)).unwrap();
        file.set_modified(to).unwrap();
    };
    for path in ["exp/reads.py", "exp/my.py", "exp/.gitignore"] {
        touch(path, now - hour);
    }
    drop(newcomer.types("exp", "run local -q --in-place -- python3 reads.py").exits(0));
    assert_eq!(newcomer.prints(1), "seven\n");
    let again = newcomer.types("exp", "rerun 1 --force").exits(0);
    assert!(!again.stderr.contains("changed since"), "{}", again.stderr);
    touch("exp/my.py", now + hour);
    drop(newcomer.types("exp", "wait 2").exits(0));
    let again = newcomer.types("exp", "rerun 2 --force").exits(0);
    drop(again.says(&["changed since it first began: my.py"]));
}

#[test]
fn a_file_says_what_becomes_of_what_is_ignored() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/data/x.txt", "seven");
    newcomer.file("exp/plot.png", "tracked");
    newcomer
        .file("exp/look.py", "import os\nprint(sorted(os.listdir('.')), os.path.islink('runs'))\n");
    newcomer.under_git("data/\n");
    let job = |more: &str| {
        newcomer.file("exp/job.yaml", &format!("target: local\ncommand: python3 look.py\n{more}"));
    };
    job("");
    drop(newcomer.types("exp", "run job.yaml -q").exits(0));
    let own = "'.gitignore', '.tpu-copied', ";
    let code = "'job.yaml', 'look.py', 'my.py', 'plot.png'";
    assert_eq!(newcomer.prints(1), format!("[{own}{code}] False\n"), "as git knows it");
    job("code: {ignored: link}\noutputs: [runs]\n");
    drop(newcomer.types("exp", "submit job.yaml").exits(0));
    let linked = format!("[{own}'data', {code}, 'runs'] True\n");
    assert_eq!(newcomer.prints(2), linked);
    assert!(newcomer.path("exp/runs").is_dir(), "it is made beside the code");
    job("code: in-place\n");
    drop(newcomer.types("exp", "run job.yaml -q").exits(0).says(&["without a copy"]));
    assert!(newcomer.prints(3).contains("'.git', '.gitignore', 'data'"));
    for wrong in
        ["code: {ignored: keep}", "outputs: [../x]", "outputs: [/tmp/x]", "code: in-place\ndir: 1"]
    {
        job(wrong);
        drop(newcomer.types("exp", "run job.yaml -q").exits(2).says(&["job.yaml:"]));
    }
    // An empty one is linked as well, however it is written in the settings.
    drop(newcomer.types("exp", r#"set-settings outputs ["runs/","logs/"]"#).exits(0));
    newcomer.dir("exp/logs");
    drop(newcomer.types("exp", "run local -q -- realpath runs logs").exits(0));
    let real = |below: &str| newcomer.path(below).canonicalize().unwrap().display().to_string();
    assert_eq!(newcomer.prints(4), format!("{}\n{}\n", real("exp/runs"), real("exp/logs")));
    drop(newcomer.types("exp", "set-settings outputs runs").exits(0));
    // Two that write there at once may write over each other.
    job("outputs: [runs]\n");
    newcomer.file("exp/look.py", "import time; time.sleep(1000)\n");
    for warned in [false, true] {
        let answer = newcomer.types("exp", "run job.yaml -q").exits(0);
        assert_eq!(answer.stderr.contains("john-doe/5 writes into ~/exp/runs as well"), warned);
    }
    drop(newcomer.types("exp", "kill 5 6 -y").exits(0));
    newcomer
        .file("exp/look.py", "import os\nprint(sorted(os.listdir('.')), os.path.islink('runs'))\n");
    // A command that is typed has those of the settings.
    drop(newcomer.types("exp", "set-settings outputs deep/er").exits(0));
    newcomer.file("exp/deep/er/tracked", "");
    newcomer.git(&["add", "-f", "deep"]);
    drop(newcomer.types("exp", "run local -q -- realpath deep/er").exits(0));
    let there = newcomer.path("exp/deep/er").canonicalize().unwrap();
    assert_eq!(newcomer.prints(7), format!("{}\n", there.display()));
    job("");
    drop(newcomer.types("exp", "run job.yaml -q").exits(0));
    assert!(newcomer.prints(8).contains("'deep'"), "and a file where it says nothing else");
}
