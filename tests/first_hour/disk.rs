//! The disk after the first hour: what is left, how it is removed, and what never is.

use std::path::PathBuf;

use super::Newcomer;
use crate::common::env::TPU;
use crate::common::output::CommandOutput;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Saves a checkpoint, writes a result and fails.
const FAILS: &str = "import os, sys
saved = os.path.join(os.environ['TPU_LOG_DIR'], 'checkpoint_10')
os.makedirs(saved, exist_ok=True)
open(os.path.join(saved, 'weights'), 'w').write('w')
open('loss.csv', 'a').write('x')
sys.exit(1)
";

/// Fails the first time; the second time it works until somebody lets it end.
const TWICE: &str = "import os, sys, time
if not os.path.exists('first'):
    open('first', 'w').write('x')
    sys.exit(1)
while not os.path.exists('end'):
    time.sleep(0.05)
";

const STATE: &str = ".local/share/tpu/tpu-state";

impl Newcomer {
    /// Cleans, as somebody who answers yes.
    fn cleans(&self, how: &str) -> CommandOutput {
        self.types("exp", &format!("clean -y {how}")).exits(0)
    }

    /// Runs a command to its end; its copy of the code.
    fn begins(&self, number: u64, command: &str) -> PathBuf {
        drop(self.types("exp", &format!("run local -q -- {command}")).exits(0));
        drop(self.types("exp", &format!("wait {number}")));
        PathBuf::from(self.job(number)["stage_dir"].as_str().unwrap())
    }

    /// Lets everything in the archive have been there for years.
    fn years_pass(&self) {
        let archive = format!("{STATE}/archive.jsonl");
        let mut lines = String::new();
        for line in self.read(&archive).lines() {
            let at = line.split('"').nth(3).unwrap();
            lines += &line.replacen(at, "2020-01-01T00:00:00Z", 1);
            lines.push('\n');
        }
        assert!(lines.starts_with(r#"{"at":"2020-01-01T00:00:00Z","#), "{lines}");
        self.file(&archive, &lines);
    }
}

/// Task 20.
#[test]
fn what_is_left_after_clean_is_named_and_removed_after_keep_code() {
    let newcomer = Newcomer::new();
    newcomer.with_results();
    let copy = newcomer.begins(1, "python3 out.py");
    drop(newcomer.cleans("").says(&["Archived 1 job"]));
    let left = newcomer.types("exp", "disk").exits(0);
    drop(left.says(&[
        "copies of code",
        "of that, what jobs wrote",
        &format!("~/{STATE}/stage"),
        "logs and checkpoints",
        "removed after 7d (keep_code)",
        "`tpu clean --with-results`",
    ]));
    drop(newcomer.types("exp", "doctor").exits(0).says(&["copies of code, logs and state take"]));
    // It is not time yet, and a dry run removes nothing.
    drop(newcomer.cleans(""));
    assert!(copy.join("out.py").exists() && copy.join("data").is_symlink());
    newcomer.years_pass();
    drop(newcomer.types("exp", "clean --dry-run").exits(0));
    assert!(copy.join("out.py").exists());
    drop(newcomer.cleans("").says(&["Removed the code of 1 old job"]));
    for gone in ["out.py", "my.py", ".gitignore", "data"] {
        assert!(copy.join(gone).symlink_metadata().is_err(), "{gone}");
    }
    for (own, text) in
        [("results.csv", "a,b"), ("plots/a.png", "a plot"), ("notes.md", "written beforeseen")]
    {
        assert_eq!(std::fs::read_to_string(copy.join(own)).unwrap(), text);
    }
    let used = newcomer.types("exp", "disk --json").exits(0).json();
    let bytes = |what: &str| {
        let rows = used["rows"].as_array().unwrap();
        rows.iter().find(|row| row["what"] == what).unwrap()["bytes"].as_u64().unwrap()
    };
    assert_eq!(bytes("results"), 3 + 6 + 18, "{used:#}");
    assert!(bytes("logs") > 0 && bytes("archive") > 0 && bytes("state") > 0, "{used:#}");
    assert!(!newcomer.cleans("").stdout.contains("Removed"), "it is done");
    // What it wrote goes where somebody says so; what it logged stays, and all that lies beside the code.
    let would = newcomer.types("exp", "clean --with-results --dry-run").exits(0);
    drop(would.says(&["Would remove 1 copy of code with what the jobs wrote there"]));
    assert!(copy.join("results.csv").exists());
    drop(newcomer.cleans("--with-results").says(&["Removed 1 copy of code"]));
    assert!(!copy.exists());
    assert_eq!(newcomer.types("exp", "archive logs 1").exits(0).stdout, "seven\n");
    assert_eq!(newcomer.read("exp/data/x.txt"), "seven");
    assert_eq!(newcomer.read("exp/data/y.txt"), "beside");
}

#[test]
fn the_daemon_removes_what_has_been_kept_long_enough() {
    let newcomer = Newcomer::new();
    let copies = [1, 2].map(|number| newcomer.begins(number, "python3 my.py"));
    drop(newcomer.types("exp", "clean 1").exits(0));
    newcomer.years_pass();
    drop(newcomer.types("exp", "set-monitor-config test_freq 1").exits(0));
    drop(newcomer.types("exp", "daemon start").exits(0));
    wait_until("the copy of what is in the archive is gone", || {
        // It looks at what is due behind its turns.
        drop(newcomer.types("exp", "ack").exits(0));
        !copies[0].exists()
    });
    wait_until("that is in the history", || {
        let history = newcomer.types("exp", "history").stdout;
        history.contains("removed the code of 1 old job")
    });
    drop(newcomer.types("exp", "daemon stop").exits(0));
    assert!(copies[1].join("my.py").exists(), "its record is there");
}

#[test]
fn a_job_that_still_works_in_the_copy_of_one_in_the_archive_keeps_its_code() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/twice.py", TWICE);
    let copy = newcomer.begins(1, "python3 twice.py");
    drop(newcomer.types("exp", "set-settings keep_code 0").exits(0));
    drop(newcomer.types("exp", "resume 1 --force").exits(0));
    assert_eq!(newcomer.job(2)["stage_dir"], copy.to_str().unwrap());
    let is_whole = || {
        let list = std::fs::read(copy.join(".tpu-copied")).unwrap();
        copy.join("twice.py").exists() && !list.starts_with(b"- ")
    };
    drop(newcomer.cleans("--re").says(&["Archived 1 job"]));
    assert!(is_whole());
    drop(newcomer.cleans("--with-results"));
    assert!(is_whole() && copy.join("first").exists());
    write_file(&copy.join("end"), "");
    drop(newcomer.types("exp", "wait 2").exits(0));
    drop(newcomer.cleans("").says(&["Archived 1 job", "Removed the code of 1 old job"]));
    assert!(!copy.join("twice.py").exists() && copy.join("first").exists());
}

#[test]
fn what_waits_in_the_queue_keeps_the_copy_that_it_will_run() {
    let newcomer = Newcomer::new();
    let copy = newcomer.begins(1, "python3 my.py");
    drop(newcomer.types("exp", "submit local --hold -- python3 my.py").exits(0));
    drop(newcomer.types("exp", "clean 1").exits(0));
    newcomer.years_pass();
    // Members of a group wait so with the copy of one that has ended.
    let stages = newcomer.path(&format!("{STATE}/stage/john-doe"));
    let dirs = std::fs::read_dir(stages).unwrap().map(|entry| entry.unwrap().path());
    let waits = dirs.filter(|dir| *dir != copy).collect::<Vec<_>>();
    let [waits] = waits.as_slice() else { panic!("{waits:?}") };
    let data = ".local/share/tpu/data.json";
    let text = newcomer.read(data).replace(waits.to_str().unwrap(), copy.to_str().unwrap());
    newcomer.file(data, &text);
    for how in ["", "--with-results"] {
        assert!(!newcomer.cleans(how).stdout.contains("Removed"), "{how}");
        assert!(copy.join("my.py").exists(), "{how}");
    }
    drop(newcomer.types("exp", "unhold 2").exits(0));
    assert_eq!(newcomer.prints(2), "this is mine\n");
}

#[test]
fn a_job_that_comes_back_without_its_code_says_so_and_is_not_resumed() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/fails.py", FAILS);
    let copy = newcomer.begins(1, "python3 fails.py");
    drop(newcomer.cleans(""));
    let intact = newcomer.types("exp", "archive restore 1").exits(0);
    assert!(!intact.report().contains("is gone"), "{}", intact.report());
    drop(newcomer.cleans(""));
    newcomer.years_pass();
    drop(newcomer.cleans("").says(&["Removed the code of 1 old job"]));
    let note = "The code of john-doe/1 is gone. It cannot be resumed; tpu rerun w=1 john-doe runs ~/exp as it is now.";
    drop(newcomer.types("exp", "archive restore 1").exits(0).says(&[note]));
    drop(newcomer.types("exp", "files 1").exits(0).says(&["loss.csv"]));
    let refused = newcomer.types("exp", "resume 1 --force").exits(3);
    drop(refused.says(&["the code of john-doe/1 was removed from its copy", "tpu rerun w=1"]));
    // Neither where nothing of its copy is left.
    drop(newcomer.cleans("--with-results").says(&["Removed 1 copy of code"]));
    assert!(!copy.exists());
    let restored = newcomer.types("exp", "archive restore 1 --json").exits(0).json();
    assert_eq!(restored["without_code"][0]["window"], 1, "{restored:#}");
    drop(newcomer.types("exp", "resume 1 --force").exits(3).says(&["is gone", "tpu rerun w=1"]));
    newcomer.file("exp/fails.py", "print('mended')\n");
    drop(newcomer.types("exp", "rerun 1 --force").exits(0));
    assert_eq!(newcomer.prints(2), "mended\n");
    // Nor where the directory of its code is gone as well.
    drop(newcomer.cleans("--with-results"));
    std::fs::rename(newcomer.path("exp"), newcomer.path("moved")).unwrap();
    let neither = newcomer.types("", "archive restore 2").exits(0);
    drop(neither.says(&["The code of john-doe/2 is gone, and ~/exp too"]));
}

/// A job may have put a link in the place of what was copied: nothing behind it is touched.
#[test]
fn no_deletion_follows_a_link_that_a_job_has_made() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/sub/own.py", "");
    newcomer.file(
        "exp/swaps.py",
        "import os\nos.rename('sub', os.path.expanduser('~/kept'))\nos.symlink(os.path.expanduser('~/kept'), 'sub')\n",
    );
    let copy = newcomer.begins(1, "python3 swaps.py");
    assert!(newcomer.path("kept/own.py").exists() && copy.join("sub").is_symlink());
    drop(newcomer.cleans(""));
    newcomer.years_pass();
    drop(newcomer.cleans("").says(&["Removed the code of 1 old job"]));
    assert!(newcomer.path("kept/own.py").exists() && copy.join("sub").is_symlink());
    drop(newcomer.cleans("--with-results").says(&["Removed 1 copy of code"]));
    assert!(newcomer.path("kept/own.py").exists() && !copy.exists());
}

#[test]
fn with_results_of_a_named_job_those_of_others_stay() {
    let newcomer = Newcomer::new();
    newcomer.with_results();
    let copies = [1, 2, 3].map(|number| newcomer.begins(number, "python3 out.py"));
    drop(newcomer.cleans("3"));
    let terminal = Terminal::new(&newcomer.env);
    terminal.command(&format!("{TPU} clean 1 --with-results"));
    terminal.shows("Remove 1 copy of code with what the jobs wrote there");
    terminal.command("n");
    terminal.shows("nothing was done");
    assert!(copies[0].join("results.csv").exists() && newcomer.job(1)["windows_id"] == 1);
    drop(newcomer.cleans("1 --with-results").says(&["Archived 1 job", "Removed 1 copy"]));
    let has_results = copies.map(|copy| copy.join("results.csv").exists());
    assert_eq!(has_results, [false, true, true]);
    assert_eq!(newcomer.job(2)["windows_id"], 2);
}
