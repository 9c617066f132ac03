//! Where what a job wrote is, and how it comes back.

use super::Newcomer;

/// Writes what people look for afterwards: a table, a plot, something in a directory that is no code.
const OUT: &str = "import os
open('results.csv', 'w').write('a,b')
os.makedirs('plots', exist_ok=True)
open('plots/a.png', 'w').write('a plot')
open('notes.md', 'a').write('seen')
open('data/y.txt', 'w').write('beside')
os.makedirs('__pycache__', exist_ok=True)
open('__pycache__/x.pyc', 'w').write('nobody looks for it')
print(open('data/x.txt').read())
";

impl Newcomer {
    pub(super) fn with_results(&self) {
        self.file("exp/out.py", OUT);
        self.file("exp/notes.md", "written before");
        self.file("exp/data/x.txt", "seven");
        self.under_git("data/\n");
    }
}

/// Task 17.
#[test]
fn the_last_line_names_what_a_job_wrote_and_it_can_be_had_here() {
    let newcomer = Newcomer::new();
    newcomer.with_results();
    drop(newcomer.types("exp", "run local -q -- python3 out.py").exits(0));
    let ended = newcomer.types("exp", "wait 1").exits(0);
    drop(ended.says(&["john-doe/1 finished", "It wrote notes.md and 2 more: tpu files 1"]));
    assert_eq!(newcomer.read("exp/data/y.txt"), "beside");
    let listed = newcomer.types("exp", "files 1").exits(0);
    for wrong in ["pycache", "out.py", "x.txt", "y.txt", ".tpu-copied"] {
        assert!(!listed.stdout.contains(wrong), "{wrong}: {}", listed.stdout);
    }
    drop(listed.says(&["notes.md", "plots/a.png", "results.csv", "3 B", "data is ~/exp/data"]));
    let copied = newcomer.types("exp", "files 1 --get results.csv").exits(0);
    drop(copied.says(&["Copied ~/exp/results.csv"]));
    assert_eq!(newcomer.read("exp/results.csv"), "a,b");
    // What lies here may have been edited since.
    newcomer.file("exp/results.csv", "mine");
    let refused = newcomer.types("exp", "files 1 --get notes.md results.csv").exits(4);
    drop(refused.says(&["notes.md is there already", "-y", "--to DIR"]));
    assert_eq!(newcomer.read("exp/results.csv"), "mine");
    drop(newcomer.types("exp", "files 1 --get ./results.csv -y").exits(0));
    assert_eq!(newcomer.read("exp/results.csv"), "a,b");
    drop(newcomer.types("exp", "files 1 --get . --to ../all").exits(0));
    assert!(newcomer.path("all/plots/a.png").is_file() && !newcomer.path("all/out.py").exists());
    drop(newcomer.types("exp", "files 1 --get plots notes.md --to ../kept").exits(0));
    assert_eq!(newcomer.read("kept/plots/a.png"), "a plot");
    assert_eq!(newcomer.read("kept/notes.md"), "written beforeseen");
    let told = newcomer.types("exp", "explain 1").exits(0);
    drop(told.says(&["code: ~/exp, copied to", "linked: data", "wrote: notes.md and 2 more"]));
    let followed = newcomer.types("exp", "logs -f 1").exits(0);
    assert_eq!(followed.stdout, "seven\n", "what it printed, and nothing else");
    assert!(followed.stderr.contains("It wrote notes.md and 2 more"), "{}", followed.stderr);
}

#[test]
fn nothing_outside_of_a_job_is_taken_for_its_files() {
    let newcomer = Newcomer::new();
    newcomer.with_results();
    newcomer.file("secret", "mine");
    drop(newcomer.types("exp", "run local -q -- python3 my.py").exits(0));
    drop(newcomer.types("exp", "wait 1").exits(0).says(&["john-doe/1 finished"]));
    drop(newcomer.types("exp", "files 1").exits(0).says(&["It wrote no file there."]));
    for path in ["../../secret", "/etc/passwd", ""] {
        let spawn = newcomer.env.spawn(&["files", "1", "--get", path]).cwd(newcomer.path("exp"));
        drop(newcomer.env.output(&spawn).exits(2).says(&["no path below the directory of"]));
    }
    drop(newcomer.types("exp", "files 1 --get nothing.csv").exits(3).says(&["tpu files 1"]));
    drop(newcomer.types("exp", "files 1 --to here").exits(2));
    // Nobody knows whose the files of a directory are in which everything lies.
    drop(newcomer.types("exp", "run local -q --in-place -- python3 out.py").exits(0));
    drop(newcomer.types("exp", "wait 2").exits(0));
    drop(newcomer.types("exp", "files 2").exits(4).says(&["without a copy", "~/exp"]));
}

/// A restart goes on in the same copy: what the first attempt wrote is there, and is named.
#[test]
fn what_every_attempt_wrote_is_named() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/once.py", "import os, sys\nname = 'first' if not os.path.exists('first') else 'second'\nopen(name, 'w').write('x')\nsys.exit(1)\n");
    drop(newcomer.types("exp", "run local -q -- python3 once.py").exits(0));
    drop(newcomer.types("exp", "wait 1").exits(1).says(&["It wrote first: tpu files 1"]));
    drop(newcomer.types("exp", "resume 1 --force").exits(0));
    drop(
        newcomer.types("exp", "wait 2").exits(1).says(&["It wrote first and 1 more: tpu files 2"]),
    );
}

/// What is large lies beside the code and is ignored: nothing of it is copied, and the program begins at once.
#[test]
fn the_first_command_beside_much_data_copies_the_code_alone() {
    let newcomer = Newcomer::new();
    newcomer.with_results();
    let big = std::fs::File::create(newcomer.path("exp/data/big.bin")).unwrap();
    big.set_len(2_000_000_000).unwrap();
    drop(newcomer.types("exp", "run local -q -- python3 out.py").exits(0));
    let ended = newcomer.types("exp", "wait 1").exits(0);
    drop(ended.says(&["It wrote notes.md and 2 more: tpu files 1"]));
    assert_eq!(newcomer.read("exp/data/y.txt"), "beside");
    let copy = newcomer.copy(1);
    let copied: u64 = ["out.py", "my.py", "notes.md"]
        .map(|name| std::fs::metadata(copy.join(name)).unwrap().len())
        .iter()
        .sum();
    assert!(copied < 1_000 && copy.join("data").is_symlink());
}
