//! A terminal that becomes smaller and larger in the middle of whatever a person does with the monitor: the
//! hand goes on where it was, the frame fits, and in the end the terminal is as before.

use crate::common::env::{STEPS, TPU, TestEnv, lives, wait_gone};
use crate::common::terminal::Terminal;

/// The sizes in turn: one panel, two below each other, two beside each other.
const SIZES: [(u16, u16); 3] = [(60, 16), (80, 24), (120, 30)];

struct Person {
    env: TestEnv,
    terminal: Terminal,
    turn: std::cell::Cell<usize>,
}

impl Person {
    fn new() -> Self {
        let env = TestEnv::new();
        let terminal = Terminal::new(&env);
        terminal.note_settings();
        terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
        terminal.shows("alice has no jobs");
        Self { env, terminal, turn: std::cell::Cell::new(0) }
    }

    /// Gives the terminal its next size, and waits until the screen fits it.
    #[track_caller]
    fn resize(&self) {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        self.become_size(SIZES[turn % SIZES.len()]);
    }

    #[track_caller]
    fn become_size(&self, size: (u16, u16)) {
        self.terminal.resize(size);
        let width = usize::from(size.0);
        self.terminal.until("the frame fits", || {
            let screen = self.terminal.screen();
            let top = screen.lines().find(|line| line.starts_with('┌'));
            top.is_some_and(|line| tpu_core::text::width(line) == width && line.ends_with('┐'))
        });
    }

    /// Presses keys, with another size after each.
    #[track_caller]
    fn keys(&self, names: &str) {
        for name in names.split(' ') {
            self.terminal.press(name);
            self.resize();
        }
    }

    /// Leaves the monitor, and insists on the terminal as it was.
    #[track_caller]
    fn leaves(&self) {
        self.become_size((120, 30));
        self.terminal.press("q");
        self.terminal.shows("code-0");
        self.terminal.is_as_before();
    }

    /// A job of alice at work, selected.
    #[track_caller]
    fn job(&self) {
        let window = self.env.start(STEPS, &[] as &[&str]);
        self.env.wait_status(window, "running");
        self.terminal.until("its row is the selected one", || {
            self.terminal.press("G");
            self.terminal.screen().contains(&format!("▸ {window}"))
        });
    }
}

#[test]
fn follow_and_filter() {
    let person = Person::new();
    let terminal = &person.terminal;
    person.job();
    person.keys("l");
    terminal.shows("▼ follow");
    // There is a screenful to scroll up from; the job prints on, and no line stays.
    let is_late = |line: &str| {
        let step = line.split_once("step ").and_then(|(_, rest)| rest.split_once('/'));
        step.is_some_and(|(step, _)| step.parse::<u32>().is_ok_and(|step| step >= 40))
    };
    terminal.until("there are forty steps", || terminal.screen().lines().any(is_late));
    person.keys("PageUp");
    terminal.shows("new lines below");
    person.keys("PageDown G");
    terminal.shows("▼ follow");
    person.keys("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press("/");
    terminal.types("status:");
    person.resize();
    terminal.types("killed");
    terminal.press("Enter");
    person.resize();
    terminal.shows("No job matches");
    person.keys("Escape");
    terminal.hides("No job matches");
    terminal.press("/");
    terminal.pastes(&"q\nx\ny\n".repeat(1_700));
    person.resize();
    terminal.shows("No job matches");
    terminal.press("Escape");
    terminal.hides("No job matches");
    assert_eq!(person.env.job("alice", 1)["status"], "running", "what is pasted is no command");
    person.leaves();
}

#[test]
fn kill_resume_rerun_and_clean() {
    let person = Person::new();
    let (terminal, env) = (&person.terminal, &person.env);
    person.job();
    let log = env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned();
    let first = std::path::Path::new(&log).join("checkpoints/step_1");
    terminal.until("there is something to resume from", || first.is_file());
    env.touch("data.json.stop");
    env.wait_status(1, "error");
    std::fs::remove_file(env.path("data.json.stop")).unwrap();
    terminal.shows("error: unknown");
    person.keys("r");
    terminal.until("there is a child", || env.jobs("alice").len() == 2);
    env.wait_status(2, "running");
    terminal.shows("▸ 2 +1");

    env.touch("data.json.stop");
    env.wait_status(2, "error");
    std::fs::remove_file(env.path("data.json.stop")).unwrap();
    terminal.shows("error: unknown");
    std::fs::remove_file(env.path("data.json.pid")).unwrap();
    person.keys("R");
    terminal.shows("from scratch?");
    person.keys("y");
    terminal.until("there is another child", || env.jobs("alice").len() == 3);
    env.wait_status(3, "running");
    terminal.shows("▸ 3 +2");

    let victim = env.wait_pid("data.json.pid");
    person.keys("x");
    terminal.shows("Stop 1 job?");
    person.keys("Escape");
    terminal.hides("Stop 1 job?");
    assert!(lives(&victim));
    person.keys("x");
    terminal.shows("Stop 1 job?");
    person.keys("Tab Tab y");
    wait_gone(&victim);
    env.wait_status(3, "killed");
    terminal.shows("○ killed");

    person.keys("c");
    terminal.shows("Clean 3 jobs of alice?");
    person.keys("Escape c");
    terminal.shows("Clean 3 jobs of alice?");
    person.keys("Enter");
    terminal.until("all are archived", || env.jobs("alice").is_empty());
    terminal.shows("alice has no jobs");
    // The look may come before the action's own end, and leaving would first be asked about.
    person.become_size((120, 30));
    terminal.hides("cleaning alice");
    person.leaves();
}

#[test]
fn tag_rule_plan_and_the_command_line() {
    let person = Person::new();
    let (terminal, env) = (&person.terminal, &person.env);
    person.job();
    terminal.press("t");
    terminal.types("swe");
    person.resize();
    terminal.types("ep");
    person.keys("Enter");
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "sweep");
    person.keys("u Down Down Down Enter");
    terminal.until("the rule is stored", || env.job("alice", 1)["rules"]["grpc"] == "resume");
    person.keys("p");
    terminal.shows("What would … do? alice/1");
    person.keys("x");
    terminal.shows("Would kill alice/1");
    person.keys("Escape");
    terminal.hides("Would kill");
    terminal.press(":");
    terminal.types("add-tag 1 ");
    person.resize();
    terminal.types("typed");
    person.keys("Enter");
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "typed");
    person.leaves();
}

#[test]
fn away_and_back() {
    let person = Person::new();
    let terminal = &person.terminal;
    person.job();
    terminal.press("a");
    terminal.shows("[alice]");
    terminal.resize((80, 24));
    terminal.keys("C-b d");
    terminal.shows("▸ 1");
    person.become_size((80, 24));
    terminal.press("C-z");
    terminal.shows("Stopped");
    terminal.resize((60, 16));
    terminal.command("clear; fg; echo code-$?");
    person.become_size((60, 16));
    // The mouse finds its places on the new screen.
    person.job();
    person.become_size((120, 30));
    let (x, y) = terminal.place("▸ 2");
    terminal.mouse(0, (x + 3, y - 1), 'M');
    terminal.mouse(0, (x + 3, y - 1), 'm');
    terminal.shows("▸ 1");
    terminal.mouse(65, (x + 3, y), 'M');
    terminal.shows("▸ 2");
    person.leaves();
}
