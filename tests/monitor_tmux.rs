//! The real monitor in a real terminal: keys are typed, the screen is read. The terminal is a window of a
//! second private tmux server, so that the jobs' own server is only what the jobs need.

use crate::common::env::{TPU, TestEnv, lives, wait_gone};
use crate::common::tmux::PrivateTmux;
use crate::common::wait::wait_until;

/// A job that prints a step each tenth of a second until a file says stop.
const STEPS: &str = "echo $$ >\"$TPU_DATA.pid\"; n=0; until [ -e \"$TPU_DATA.stop\" ]; do n=$((n+1)); echo \"step $n/1000 loss 0.5\"; \
                     mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo $n >\"$TPU_LOG_DIR/checkpoints/step_$n\"; \
                     read -r -t 0.1 <> <(:); done; exit 3";

/// A person's terminal.
struct Terminal {
    tmux: PrivateTmux,
}

impl Terminal {
    /// A terminal of 120 × 30 with a shell that has the test's environment.
    fn new(env: &TestEnv) -> Self {
        let tmux = PrivateTmux::new("");
        let spawn = env.spawn_program("/bin/bash", &["--norc", "--noprofile"]);
        let vars: Vec<String> = spawn
            .env
            .iter()
            .filter_map(|(name, value)| {
                let value = value.as_ref()?;
                Some(format!("{}={}", name.to_str()?, value.to_str()?))
            })
            .collect();
        let mut args: Vec<&str> =
            vec!["new-session", "-d", "-s", "person", "-x", "120", "-y", "30"];
        args.extend(["env", "-i", "TERM=screen-256color", "LANG=C.UTF-8", "PS1=ready> "]);
        args.extend(vars.iter().map(String::as_str));
        args.extend(["/bin/bash", "--norc", "--noprofile"]);
        tmux.run(&args);
        let terminal = Self { tmux };
        terminal.shows("ready>");
        terminal
    }

    fn screen(&self) -> String {
        self.tmux.run(&["capture-pane", "-p", "-t", "person"])
    }

    /// Waits until something is so; what the screen showed is part of the failure.
    #[track_caller]
    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(what, &mut is_so);
        }));
        assert!(caught.is_ok(), "waited in vain: {what}\n{}", self.screen());
    }

    /// Waits until the screen holds `text`.
    #[track_caller]
    fn shows(&self, text: &str) {
        self.until(&format!("the screen shows {text:?}"), || self.screen().contains(text));
    }

    /// Waits until the screen no longer holds `text`.
    #[track_caller]
    fn hides(&self, text: &str) {
        self.until(&format!("the screen hides {text:?}"), || !self.screen().contains(text));
    }

    fn press(&self, key: &str) {
        self.tmux.run(&["send-keys", "-t", "person", key]);
    }

    fn types(&self, text: &str) {
        self.tmux.run(&["send-keys", "-t", "person", "-l", text]);
    }

    /// Types a command at the shell's prompt.
    fn command(&self, line: &str) {
        self.types(line);
        self.press("Enter");
    }
}

#[test]
fn run_opens_the_monitor_on_the_new_job_unless_it_is_told_not_to() {
    let env = TestEnv::new();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} run local alice -- sleep 1000"));
    terminal.shows("r resume");
    terminal.shows("▸ 1");
    terminal.press("q");
    terminal.shows("ready>");
    assert!(env.has_window("alice", 1), "leaving the screen ends no job");

    terminal.command(&format!("clear; {TPU} run local alice -q -- sleep 1000"));
    terminal.shows("Started alice/2");
    env.tpu("set-settings monitor_after_run False alice").exits(0);
    terminal.command(&format!("clear; {TPU} run local alice -- sleep 1000"));
    terminal.shows("Started alice/3");
    assert!(!terminal.screen().contains("r resume"));
}

#[test]
fn a_day_with_keys() {
    let env = TestEnv::new();
    let window = env.start(STEPS, &[] as &[&str]);
    let victim = env.wait_pid("data.json.pid");
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} monitor alice"));
    terminal.shows("running");
    terminal.shows("loss 0.5");

    // Esc first: nothing happens. Then for real.
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("Escape");
    terminal.hides("Stop 1 job?");
    assert!(lives(&victim));
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    wait_gone(&victim);
    env.wait_status(window, "killed");
    terminal.shows("killed");

    // Another one fails by itself and is resumed by a key; the parent folds under its child.
    let second = env.start(STEPS, &[] as &[&str]);
    let log = env.wait_status(second, "running")["log_dir"].as_str().unwrap().to_owned();
    let first = std::path::Path::new(&log).join("checkpoints/step_1");
    terminal.until("there is something to resume from", || first.is_file());
    terminal.shows("▸");
    env.touch("data.json.stop");
    env.wait_status(second, "error");
    std::fs::remove_file(env.path("data.json.stop")).unwrap();
    terminal.shows("error: unknown");
    terminal.press("G");
    terminal.shows("▸ 2");
    terminal.press("r");
    terminal.until("there is a child", || env.jobs("alice").len() == 3);
    env.wait_status(3, "running");
    terminal.shows("3 +1");

    // A filter hides the other, and says so by its count; Esc shows it again.
    terminal.press("/");
    terminal.types("status:killed");
    terminal.press("Enter");
    terminal.hides("3 +1");
    terminal.press("Escape");
    terminal.shows("3 +1");

    // A tag, a resize in the middle, the log.
    terminal.press("G");
    terminal.press("t");
    terminal.types("sweep");
    terminal.tmux.run(&["resize-window", "-t", "person", "-x", "80", "-y", "24"]);
    terminal.press("Enter");
    terminal.until("the tag is stored", || env.job("alice", 3)["job_tags"] == "sweep");
    terminal.press("l");
    terminal.shows("▼ follow");
    terminal.press("Escape");
    // A key that comes together with Esc is another key, on any terminal.
    terminal.hides("▼ follow");

    // Clean away what has ended; what lives stays.
    terminal.press("c");
    terminal.shows("Clean 1 job");
    terminal.press("y");
    terminal.until("the killed one is archived", || env.jobs("alice").len() == 2);
    terminal.shows("Archived 1 job");
    assert!(env.has_window("alice", 3));
    terminal.press("q");
    terminal.shows("ready>");
}

#[test]
fn the_screen_writes_nothing_and_gives_the_terminal_back() {
    let env = TestEnv::new();
    env.start(STEPS, &[] as &[&str]);
    env.wait_status(1, "running");
    let terminal = Terminal::new(&env);
    terminal.command("stty -a >\"$HOME/before\"; clear");
    terminal.hides("stty");
    let before = env.data_bytes();
    terminal.command(&format!("{TPU} monitor alice; echo code-$?"));
    terminal.shows("r resume");
    for step in ["step 1", "step 2", "step 3"] {
        terminal.shows(step);
        terminal.press("C-l");
    }
    assert_eq!(env.data_bytes(), before, "looking never writes");

    let monitor = terminal.tmux.run(&["list-panes", "-t", "person", "-F", "#{pane_pid}"]);
    let shell: u32 = monitor.trim().parse().unwrap();
    let table = tpu::sys::procs::Table::read().unwrap();
    let child = table.descendants(shell).into_iter().find(|process| process.name == "tpu").unwrap();
    tpu::sys::procs::signal(child, tpu::sys::procs::Signal::Terminate).unwrap();
    terminal.shows("code-143");
    terminal.command("stty -a >\"$HOME/after\"; cmp \"$HOME/before\" \"$HOME/after\" && echo same");
    terminal.shows("same");
    assert!(!terminal.screen().contains("r resume"), "the alternate screen is left");
}
