//! The examples of README.md and of pages of docs/, typed in order in a home of their own. Blocks of the kind `console` are
//! typed; what needs a terminal or a fleet is in blocks of another kind. The pages about the queue, job files, hosts and
//! clusters are typed beside their subjects, as in `slurm::readme`.

use std::path::PathBuf;

use regex::Regex;

use tpu_system::sys::proc;

use crate::common::env::{TPU, TestEnv};
use crate::common::readme::{Newcomer, PYTHON, Page, plain};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_for;

/// For whom a page is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lab {
    /// One user, whose account it is.
    Alone,
    /// A second user is there too.
    Shared,
    /// Two users, and nothing says who is typing.
    Strangers,
}

/// The pages that are typed here for everybody.
const PAGES: [(usize, &str); 4] = [
    (10, "docs/first-steps.md"),
    (5, "docs/restarts.md"),
    (5, "docs/tpu.md"),
    (5, "docs/from-the-original.md"),
];

#[test]
fn every_example_prints_what_its_page_shows() {
    for (examples, path) in PAGES {
        walk(&Page::with(examples, path), Lab::Alone);
    }
    for (examples, path) in [(1, "docs/scripts.md"), (2, "docs/checkpoints.md")] {
        walk(&Page::with(examples, path), Lab::Alone);
    }
}

/// With the Python of this machine, and with nothing set up.
#[test]
fn every_example_of_the_readme_prints_what_it_shows() {
    let mut reader = Newcomer::new("");
    for name in ["TPU_DATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        reader.env.unset(name);
    }
    if proc::run(&reader.env.spawn_program("python3", &["--version"])).is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let page = Page::with(13, "README.md");
    for (name, text) in page.shown_files() {
        write_file(&reader.code.join(name), text);
    }
    for example in &page.examples() {
        reader.follow(example, &example.command);
    }
}

#[test]
fn and_where_a_second_user_is_at_work() {
    for (examples, path) in PAGES {
        walk(&Page::with(examples, path), Lab::Shared);
    }
}

#[test]
fn and_where_nothing_says_who_is_typing() {
    for (examples, path) in PAGES {
        walk(&Page::with(examples, path), Lab::Strangers);
    }
}

/// The command that a refusal for want of a name says to type.
fn with_a_name(text: &str) -> Option<&str> {
    let hint = text.lines().find_map(|line| line.strip_prefix("hint: as in: "))?;
    hint.split_once("; to be ").map(|(command, _)| command)
}

/// Without what lists say of everybody's jobs beside what they say of one's own.
fn without_names(text: &str) -> String {
    let names = Regex::new(r"(?m)user: alice; |^(USER|alice) |\(user: alice\)").unwrap();
    names.replace_all(text, "").into_owned()
}

#[test]
fn the_example_of_a_data_file_works_with_every_line_that_is_printed_about_it() {
    let mut env = TestEnv::new();
    let example = env.path("data.example.json");
    let text = include_str!("../../data.example.json");
    write_file(&example, text);
    env.unset("TPU_DATA");
    let shown = |line: &str| {
        let line = line.replace("[DIR]", env.root());
        env.tpu(line.strip_prefix("tpu ").unwrap()).exits(0).to_string()
    };
    let printed = |text: &str, what: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no line begins with {what}:\n{text}")).to_owned()
    };
    let page = Page::with(5, "docs/from-the-original.md");
    let of_the_page = page.examples().into_iter().map(|example| example.command);
    let of_the_page: Vec<_> = of_the_page.filter(|line| line.contains("data.example")).collect();
    assert!(of_the_page.len() > 1, "{of_the_page:?}");
    for line in of_the_page {
        shown(&line);
    }
    let looked = shown("tpu init --from data.example.json");
    let tried = shown(&printed(&looked, "Try it: "));
    let adopted = shown(&printed(&looked, "Use it from now on: "));
    for text in [tried, shown(&printed(&adopted, "Next: "))] {
        for window in ["Window 3 ", "Window 5 ", "Window 6 ", "Window 1 "] {
            assert!(text.contains(window), "{window}:\n{text}");
        }
    }
    for line in ["tpu check alice", "tpu explain 5 alice", "tpu daemon plan", "tpu targets"] {
        shown(line);
    }
    assert!(std::fs::read(&example).unwrap() == text.as_bytes(), "looking has changed the file");
    // The lines of docs/lab-scripts.md that name what is in it, once the directory of its code is there.
    let code = env.path("code-alice");
    write_file(&code.join("staging.sh"), "tpu finish-job alice:0");
    drop(env.tpu(&format!("set-dir {} 1 alice", code.display())).exits(0));
    drop(
        env.tpu("run v2-32-p2 alice lr=0.01 --force --dry-run")
            .exits(0)
            .says(&["lab-tpuvm-v2-32-preemptible-2", "--config.training.learning_rate=0.01"]),
    );
}

/// Kills the training of a job as people do who try it, and waits until the job has come back.
fn kill_and_see_it_come_back(env: &TestEnv, window: u64) {
    let log_dir = env.wait_status(window, "running")["log_dir"].as_str().unwrap().to_owned();
    let log_dir = PathBuf::from(log_dir);
    wait_for("its first checkpoint", || std::fs::read(log_dir.join("checkpoint_1/data")).ok());
    let pid = std::fs::read_to_string(log_dir.join("pid")).unwrap();
    let kill = format!("kill -9 {}", pid.trim());
    drop(proc::run(&env.spawn_program("bash", &["-c", &kill])).unwrap());
    let next = env.wait_status(window, "resumed")["extra_msgs"]["child"].as_u64().unwrap();
    env.wait_status(next, "running");
}

/// The commands that make the users of a lab, and its settings.
fn people(env: &mut TestEnv, lab: Lab) {
    if lab != Lab::Alone {
        drop(env.tpu("add-user bob").exits(0));
    }
    if lab == Lab::Strangers {
        std::fs::remove_file(env.path("config/tpu/settings.json")).unwrap();
        env.set("USER", "somebody");
        env.set("LOGNAME", "somebody");
    }
}

fn walk(page: &Page, lab: Lab) {
    let mut env = TestEnv::new();
    let home = env.path("root");
    let code: PathBuf = home.join("home/alice/digits");
    std::fs::create_dir_all(&code).unwrap();
    write_file(&code.join("train.py"), include_str!("../../assets/example/train.py"));
    write_file(&code.join("data.example.json"), include_str!("../../data.example.json"));
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(TPU, bin.join("tpu")).unwrap();
    write_script(&bin.join("python3"), PYTHON);
    env.set("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    env.set("USER", "alice");
    env.set("HOME", home.join("home/alice").into_os_string());
    // The data file of a newcomer is not there yet; the one of the original is.
    let original = home.join("path/to");
    std::fs::create_dir_all(&original).unwrap();
    std::fs::rename(env.data_path(), original.join("data.json")).unwrap();

    let home = home.to_str().unwrap();
    let all = page.examples();
    // The first steps make the user themselves.
    if !all[0].command.starts_with("tpu init --name") {
        let init = env.spawn(&["init", "--name", "alice"]).cwd(&code);
        drop(env.output(&init).exits(0));
        people(&mut env, lab);
    }
    for example in all {
        let command = example.command.replace("/path/to", &format!("{home}/path/to"));
        if let Some((name, value)) =
            command.strip_prefix("export ").and_then(|set| set.split_once('='))
        {
            env.set(name, value);
            continue;
        }
        if example.command == "tpu ls" {
            people(&mut env, lab);
        }
        let wanted = plain(&example.printed.join("\n"), home);
        let typed = |command: &str| {
            let spawn = env.spawn_program("bash", &["-c", command]).cwd(&code);
            let output = proc::run(&spawn).unwrap();
            (output.status.shell_code(), format!("{}\n{}", output.text(), output.complaint()))
        };
        let run = || {
            let (code, text) = typed(&command);
            match with_a_name(&text).filter(|_| code == 2 && lab == Lab::Strangers) {
                Some(command) => typed(command),
                None if lab == Lab::Strangers => (code, without_names(&text)),
                None => (code, text),
            }
        };
        // Looks are repeated until they show what they shall: jobs take their time to begin.
        let looks = ["tpu check", "tpu explain", "tpu daemon plan", "tpu find", "tpu clean"];
        let is_look = looks.iter().any(|look| example.command.starts_with(look));
        let place = format!("{}: {}", example.place, example.command);
        if example.printed.is_empty() {
            let (code, text) = run();
            assert!(code == 0, "{place}\nexit code {code}\n{text}");
        } else if is_look {
            wait_for(&format!("{place}\n{wanted}"), || {
                let printed = plain(&run().1, home);
                (printed == wanted).then_some(())
            });
        } else {
            let printed = plain(&run().1, home);
            assert!(printed == wanted, "{place}\nshows\n{wanted}\nand printed\n{printed}");
        }
        if example.command.contains("rule=killed-by-signal:resume") {
            kill_and_see_it_come_back(&env, 1);
        }
    }
}

/// The training that docs/first-steps.md names, with the Python of this machine: it comes back from its checkpoint.
#[test]
fn the_training_of_the_tour_goes_on_from_its_checkpoint() {
    let env = TestEnv::new();
    let has_python = proc::run(&env.spawn_program("python3", &["--version"])).is_ok();
    if !has_python {
        println!("skipped: there is no python3");
        return;
    }
    env.code("alice", "train.py", include_str!("../../assets/example/train.py"));
    drop(env.tpu("set-settings arguments flags alice").exits(0));
    let line = ["run", "local", "alice", "lr=0.05", "-q", "--", "python3", "train.py"];
    drop(env.tpu_words(&line).exits(0));
    let log_dir = env.wait_status(1, "running")["log_dir"].as_str().unwrap().to_owned();
    let checkpoint = PathBuf::from(log_dir).join("checkpoint_10");
    wait_for("its first checkpoint", || std::fs::read(&checkpoint).ok());
    drop(env.tpu("kill 1 alice").exits(0));
    drop(env.tpu("resume 1 alice --force").exits(0).says(&["as alice/2"]));
    let log_dir = env.wait_status(2, "running")["log_dir"].as_str().unwrap().to_owned();
    let output = PathBuf::from(log_dir).join("output.log");
    let printed = wait_for("its first steps", || {
        let text = std::fs::read_to_string(&output).ok()?;
        text.contains("loss=").then_some(text)
    });
    assert!(printed.starts_with("going on from ") && !printed.contains("step 1/"), "{printed}");
    drop(env.tpu("kill 2 alice").exits(0));
}
