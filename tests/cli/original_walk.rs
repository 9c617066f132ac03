//! The original's manual, walked through section by section as its users would: every command line typed
//! on a terminal, with the names that stand there, against its own data file and a simulated fleet. Where
//! the manual says that a command asks or opens a screen, the answers and keys are typed too.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;
use tpu_core::model::ids::{JobId, JobNumber};

/// The data file of the manual: its two JSON blocks, with directories of the test.
const DATA: &str = include_str!("../data/original/data.json");

/// What `staging.sh` is to do, by a config: `mode=busy` trains for ever, `mode=fail` fails behind a
/// checkpoint, else it finishes at once.
const STAGING: &str = r#"
here=$(tmux display-message -p -t "$TMUX_PANE" '#S:#I')
log=$ORIGINAL_LOGS/$TPU_LAUNCH
mkdir -p "$log/checkpoint_1" && echo weights >"$log/checkpoint_1/data"
printf '%s\n' "$@" >"$log/arguments"
tpu upd-log "$here" "$log" "$PWD" "${1#ka=}" now
echo "step 1/100 loss 0.5"
case " $* " in
  *mode=busy*) sleep 1000 ;;
  *mode=talks*) seq -f 'the weather of day %g is fair' 1 2600; sleep 1000 ;;
  *mode=fail*) echo 'DEADLINE_EXCEEDED: failed to connect to all addresses (grpc_status:14)'; exit 3 ;;
  *) tpu finish-job "$here" ;;
esac
"#;

/// A lab as the manual describes it, and a person who types.
struct Walk {
    env: TestEnv,
    terminal: Terminal,
    /// How many command lines were typed.
    typed: Cell<u32>,
}

impl Walk {
    /// Users `xibo` and `lyy` beside the manual's own, each with two directories of code, on a simulated fleet.
    fn new() -> Self {
        let mut env = TestEnv::new();
        let mut data: Value = serde_json::from_str(&DATA.replace("@DIR@", env.root())).unwrap();
        data["users"]["username"]["job_data"] = json!([]);
        for name in ["v2-32-1", "v2-32-2", "v2-32-6", "v2-32-preemptible-1", "v2-32-preemptible-2"]
        {
            let alias = name.replace("preemptible-", "p");
            data["tpu_aliases"][alias] = format!("kmh-tpuvm-{name}").into();
        }
        data["all_tpus"] = json!({
            "europe-west4-a": ["kmh-tpuvm-v2-32-1", "kmh-tpuvm-v2-32-2", "kmh-tpuvm-v2-32-6",
                               "kmh-tpuvm-v2-32-preemptible-1", "kmh-tpuvm-v2-32-preemptible-2"],
            "us-central2-b": ["kmh-tpuvm-v4-32-1"],
            "preemptible": ["kmh-tpuvm-v2-32-preemptible-1", "kmh-tpuvm-v2-32-preemptible-2"],
        });
        env.write_data(&data);
        std::fs::create_dir(env.path("bin")).unwrap();
        std::os::unix::fs::symlink(TPU, env.path("bin/tpu")).unwrap();
        let inherited = env.tmux().env().var("PATH").unwrap().to_owned();
        env.set("PATH", format!("{}:{inherited}", env.path("bin").display()));
        env.set("ORIGINAL_LOGS", env.path("logs"));
        env.set("TPU_CLOUD", "sim");
        for user in ["xibo", "lyy"] {
            for slot in ["1", "2"] {
                let code = env.path(&format!("code-{user}-{slot}"));
                std::fs::create_dir(&code).unwrap();
                write_file(&code.join("staging.sh"), STAGING);
            }
            env.tpu(&format!("add-user {user} --dir {}/code-{user}-1", env.root())).exits(0);
            env.tpu(&format!("set-dir {}/code-{user}-2 2 {user}", env.root())).exits(0);
            env.tpu(&format!("-a mode config.mode {user}")).exits(0);
        }
        let terminal = Terminal::new(&env);
        terminal.resize((120, 50));
        Self { env, terminal, typed: Cell::new(0) }
    }

    /// Types a command line and leaves it running.
    fn begins(&self, line: &str) {
        let number = self.typed.get() + 1;
        self.typed.set(number);
        self.terminal.command(&format!("{line}; echo \"[{number}: $?]\""));
    }

    /// What the terminal has shown since the last command line was typed.
    fn since_typed(&self) -> String {
        let text = self.terminal.tmux.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", "person"]);
        let typed = format!("echo \"[{}: $?]\"", self.typed.get());
        text.rsplit_once(&typed).map_or(String::new(), |(_, since)| since.to_owned())
    }

    /// Waits for a question and answers it.
    #[track_caller]
    fn answers(&self, question: &str, answer: &str) {
        let what = format!("the question {question:?}");
        self.terminal.until(&what, || self.since_typed().contains(question));
        self.terminal.command(answer);
    }

    /// Waits for the end of what was typed, which is to have this exit code and to have shown these words.
    #[track_caller]
    fn ends(&self, code: i32, words: &[&str]) -> String {
        let (mut text, mut ended) = (String::new(), None);
        let start = format!("[{}: ", self.typed.get());
        self.terminal.until("the command ends", || {
            text = self.since_typed();
            ended = text.lines().find_map(|line| {
                line.strip_prefix(&start)?.trim_end().strip_suffix(']')?.parse::<i32>().ok()
            });
            ended.is_some() && text.trim_end().ends_with("ready>")
        });
        assert_eq!(ended, Some(code), "{text}");
        for word in words {
            assert!(text.contains(word), "expected to read {word:?}:\n{text}");
        }
        text
    }

    /// Types a command line that asks nothing.
    #[track_caller]
    fn types(&self, line: &str, code: i32, words: &[&str]) -> String {
        self.begins(line);
        self.ends(code, words)
    }

    /// Types a command line that opens the screen, which is to show these words, and leaves it.
    #[track_caller]
    fn watches(&self, line: &str, words: &[&str]) -> String {
        self.begins(line);
        for word in words {
            self.terminal.shows(word);
        }
        let screen = self.terminal.screen();
        self.terminal.press("q");
        self.ends(0, &[]);
        screen
    }

    /// Waits until a record has this status.
    #[track_caller]
    fn is(&self, user: &str, window: u64, status: &str) {
        wait_until(&format!("{user}/{window} is {status}"), || {
            self.env.job(user, window)["status"] == status
        });
    }

    /// The arguments that an attempt's script was given.
    fn arguments(&self, user: &str, window: u64) -> String {
        let log = self.env.job(user, window)["log_dir"].as_str().unwrap().to_owned();
        std::fs::read_to_string(format!("{log}/arguments")).unwrap()
    }
}

#[test]
fn quickstart() {
    let walk = Walk::new();
    // Step by step, as `tpu add-user` asks.
    walk.begins("tpu add-user");
    for (question, answer) in
        [("Name:", "hanhong"), ("tmux session", ""), ("Directory of your code", "")]
    {
        walk.answers(question, answer);
    }
    walk.ends(0, &["hanhong", "tpu init --name hanhong"]);
    let code = walk.env.path("code-xibo-1");
    walk.types(&format!("cd {} && tpu set-cur 1 hanhong", code.display()), 0, &["code-xibo-1"]);
    walk.watches("tpu run v2-32-p2 xibo mode=busy", &["r resume", "▸ 1", "running"]);
    walk.watches("tpu monitor xibo", &["r resume", "running"]);
    walk.types("tpu check xibo", 0, &["Window 1", "TPU: v2-32-p2", "Status: running"]);
    walk.types("tpu tldr", 0, &["tpu run", "tpu monitor"]);
    walk.types("tpu clear xibo", 0, &["Archived 0 jobs"]);
    walk.types("tpu -a lr config.training.learning_rate xibo", 0, &["lr"]);
    walk.watches("tpu run v2-32-6 xibo lr=0.01", &["r resume", "▸ 2"]);
    walk.is("xibo", 2, "finished");
    assert!(walk.arguments("xibo", 2).contains("--config.training.learning_rate=0.01"));
    walk.types("tpu describe v2-32-6", 0, &["READY"]);
    // The manual's lab mounts a disk; here no recipe stands for it, and the command says so.
    walk.types("tpu solve v2-32-6", 4, &["recipe", "tpu help solve"]);
}

#[test]
fn directories_and_runs() {
    let walk = Walk::new();
    let code = walk.env.path("code-xibo-2");
    walk.types(&format!("cd {} && tpu set-cur 3 xibo", code.display()), 0, &["3: "]);
    walk.types("tpu ls xibo", 0, &["1: ", "code-xibo-1 (default)", "2: ", "3: "]);
    walk.types("tpu set-settings monitor_after_run False xibo", 0, &[]);
    walk.types("tpu run v2-32-6 xibo", 0, &["Started xibo/1 on kmh-tpuvm-v2-32-6"]);
    walk.is("xibo", 1, "finished");
    walk.types("tpu run kmh-tpuvm-v2-32-1 xibo", 0, &["Started xibo/2 on kmh-tpuvm-v2-32-1"]);
    assert_eq!(walk.env.job("xibo", 2)["job_dir_id"], 1);
    walk.watches("tpu run v2-32-p1 lyy dir=2", &["r resume", "▸ 1"]);
    assert_eq!(walk.env.job("lyy", 1)["job_dir_id"], 2);
    walk.types("tpu -lta", 0, &["v2-32-p1", "kmh-tpuvm-v2-32-preemptible-1"]);
    walk.types("tpu -ta v4-32-py2 kmh-tpuvm-v4-32-preemptible-yiyang2", 0, &["v4-32-py2"]);
    walk.types("tpu check xibo", 0, &["Window 1", "Window 2"]);
    walk.types("tpu swap-dir 1 2 xibo", 0, &["Swapped directories 1 and 2"]);
    walk.types("tpu ls xibo", 0, &["code-xibo-2 (default)", "3: "]);
    walk.types("tpu del-dir 3 xibo", 0, &[]);
    let listed = walk.types("tpu ls xibo", 0, &["2: "]);
    assert!(!listed.contains("\n3: "), "{listed}");

    // 2B: tags, rules, no monitor, and the question about a target that was taken away.
    walk.types("tpu run v2-32-6 lyy -q tag=your_tag rule=resume mode=busy", 0, &["Started lyy/2"]);
    walk.types("tpu add-tag 2 tag_name lyy", 0, &[]);
    walk.types("tpu check lyy", 0, &["Window 2 (tag: tag_name)"]);
    assert_eq!(walk.env.job("lyy", 2)["rules"]["grpc"], "resume");
    walk.env.tpu("sim preempt v2-32-p2").exits(0);
    walk.begins("tpu run v2-32-p2 xibo -q");
    walk.answers("Make it usable first? [y/N]", "n");
    walk.ends(4, &["PREEMPTED"]);
    walk.begins("tpu run v2-32-p2 xibo -q");
    walk.answers("Make it usable first? [y/N]", "y");
    walk.ends(0, &["Started xibo/3"]);
    walk.is("xibo", 3, "finished");
    walk.env.tpu("sim preempt v2-32-p2").exits(0);
    walk.types("tpu run v2-32-p2 xibo -apply -q", 0, &["Started xibo/4"]);
}

#[test]
fn the_monitor_s_flags_and_its_interval() {
    let walk = Walk::new();
    walk.types("tpu run v2-32-6 xibo -q mode=busy", 0, &["Started xibo/1"]);
    walk.is("xibo", 1, "running");
    walk.terminal.command("clear; tpu set-settings time_zone UTC xibo");
    // Each letter shows its own column, and only that.
    for (flags, shown, hidden) in [
        ("-dsv", ["code-xibo-1", "running"], "v2-32-6 "),
        ("-ts", ["v2-32-6", "running"], "code-xibo-1 "),
        ("-wd", ["▸ 1", "code-xibo-1"], "v2-32-6 "),
    ] {
        let screen =
            walk.watches(&format!("tpu monitor xibo {flags}"), &["r resume", shown[0], shown[1]]);
        let row = screen.lines().find(|line| line.contains('▸')).unwrap_or_default();
        let row = row.split("││").next().unwrap_or_default();
        assert!(!row.contains(hidden), "{flags} shows {hidden:?}:\n{screen}");
        assert!(row.contains(shown[0]) && row.contains(shown[1]), "{flags}:\n{screen}");
    }
    // `check` has the same letters; `v` adds what the window shows, also of a healthy job.
    let with = walk.types("tpu check xibo -wdtsv", 0, &["Window 1", "DIR: ", "TPU: ", "Status: "]);
    assert!(with.contains("step 1/100 loss 0.5"), "{with}");
    let without = walk.types("tpu check xibo -wdts", 0, &["Window 1"]);
    assert!(!without.contains("step 1/100 loss 0.5\n"), "{without}");
    // The interval: what changes is seen within it.
    walk.types("tpu set-settings monitor_upd_time 1 xibo", 0, &[]);
    walk.types("tpu get-settings xibo", 0, &["monitor_upd_time: 1"]);
    walk.begins("tpu monitor xibo");
    walk.terminal.shows("running");
    walk.env.tpu("kill 1 xibo -y").exits(0);
    walk.terminal.shows("killed");
    walk.terminal.press("q");
    walk.ends(0, &[]);
}

#[test]
fn how_much_output_decides_a_status_and_how_much_is_shown() {
    let walk = Walk::new();
    walk.types("tpu set-settings monitor_after_run False xibo", 0, &[]);
    walk.types("tpu run v2-32-6 xibo mode=talks", 0, &["Started xibo/1"]);
    wait_until("all is printed", || {
        walk.env.pane_id("xibo", 1).is_some_and(|pane| {
            walk.env.tmux().run(&["capture-pane", "-p", "-t", &pane]).contains("day 2600 is")
        })
    });
    // `show_length`: characters of output that are shown.
    for (length, first, before) in [("200", 2_599, 2_598), ("800", 2_591, 2_590)] {
        walk.types(&format!("tpu set-settings show_length {length} xibo"), 0, &[]);
        let (first, before) = (format!("day {first} is"), format!("day {before} is"));
        let text = walk.types("tpu check xibo -v", 0, &["day 2600 is", &first]);
        assert!(!text.contains(&before), "show_length is {length}:\n{text}");
    }
    // `monitor_length`: characters of output that decide a status. Behind its only step the job has printed
    // more lines than are read anyway.
    for length in ["800", "50000"] {
        walk.types(&format!("tpu set-settings monitor_length {length} xibo"), 0, &[]);
        let text = walk.types("tpu check xibo", 0, &["Status: running"]);
        assert!(!text.contains("step 1/100"), "monitor_length is {length}:\n{text}");
    }
    walk.begins("tpu monitor xibo");
    walk.terminal.shows("day 2600 is");
    walk.env.tpu("set-settings monitor_length 200000 xibo").exits(0);
    walk.terminal.shows("step 1/100");
    walk.terminal.press("q");
    walk.ends(0, &[]);
    walk.types("tpu check xibo", 0, &["Status: running · step 1/100 · 1 % · loss 0.5"]);
    // A few characters hide nothing that counts in any case.
    walk.types("tpu set-settings monitor_length 1 xibo", 0, &[]);
    walk.types("tpu run v2-32-2 xibo mode=fail rule=pass", 0, &["Started xibo/2"]);
    walk.is("xibo", 2, "error");
    assert_eq!(walk.env.job("xibo", 2)["error"], "grpc");
}

#[test]
fn the_spreadsheet() {
    let walk = Walk::new();
    walk.begins("tpu run v2-32-6 xibo -q -ssn mode=busy");
    walk.answers("Notes:", "a long night");
    walk.ends(0, &["Started xibo/1"]);
    walk.types("tpu find v2", 0, &["v2-32-6", "xibo"]);
    walk.types("tpu find v2 style=full", 0, &["a long night"]);
    walk.types("tpu run v2-32-2 xibo -q ssn=your_notes", 0, &["Started xibo/2"]);
    walk.begins("tpu run v2-32-1 xibo -q --set-spreadsheet-notes mode=busy");
    walk.answers("Notes:", "another night");
    walk.ends(0, &["Started xibo/3"]);
    walk.types("tpu board export csv", 0, &["a long night", "another night"]);
    walk.types("tpu find v34 -n", 0, &["v4-32-1"]);
    walk.types("tpu find v2 -p", 0, &["v2-32-p1", "v2-32-p2"]);
    walk.types("tpu find v* -n", 0, &["v2-1 ", "v4-32-1"]);
    walk.types("tpu release v2-32-6 lyy", 4, &["xibo"]);
    walk.is("xibo", 2, "finished");
    walk.types("tpu release v2-32-2", 0, &["free"]);
    walk.types("tpu rel v2-32-2 xibo", 0, &["free"]);
}

#[test]
fn killing_and_cleaning_up() {
    let walk = Walk::new();
    walk.types("tpu set-settings monitor_after_run False xibo", 0, &[]);
    for (window, kill) in (1..).zip([
        "tpu kill w=1 xibo",
        "tpu kill-job -w=2 xibo",
        "tpu -k window=3 xibo",
        "tpu -kj 4 xibo",
        "tpu kill 5 xibo",
    ]) {
        walk.types("tpu run v2-32-6 xibo mode=busy", 0, &[&format!("Started xibo/{window}")]);
        walk.types(kill, 0, &[&format!("Killed xibo/{window}")]);
    }
    walk.types("tpu clean xibo", 0, &["Archived 5 jobs"]);

    // A parent is cleaned with its child, or with `-re` before it.
    walk.types("tpu run v2-32-6 xibo mode=fail", 0, &["Started xibo/6"]);
    walk.is("xibo", 6, "error");
    walk.types("tpu set-rule 6 pass xibo", 0, &[]);
    walk.env.change(|data| {
        let job = data.job_mut(&JobId::new("xibo".into(), JobNumber(6))).unwrap();
        job.extra_configs = "--config.mode=busy".to_owned();
    });
    walk.types("tpu resume windows=6 xibo", 0, &["Resumed xibo/6 as xibo/7"]);
    walk.types("tpu clean xibo", 0, &["Archived 0 jobs"]);
    walk.types("tpu clean xibo -re", 0, &["Archived 1 job"]);

    walk.types("tpu -kw 7 xibo", 0, &["closed 1 window"]);
    walk.types("tpu run v2-32-6 xibo", 0, &["Started xibo/8"]);
    walk.is("xibo", 8, "finished");
    for (line, said) in [
        ("tpu clear-error xibo", "Archived 0 jobs"),
        ("tpu clear-finished xibo", "Archived 1 job"),
        ("tpu clear-all xibo", "Archived 0 jobs"),
        ("tpu -czw xibo", "closed 0 windows"),
        ("tpu -czj xibo", "Archived 0 jobs"),
    ] {
        walk.types(line, 0, &[said]);
    }
    // A window that is closed by hand leaves a record, and `clean` sees to it.
    walk.types("tpu run v2-32-6 xibo mode=busy", 0, &["Started xibo/9"]);
    let pane = walk.env.pane_id("xibo", 9).unwrap();
    walk.env.tmux().run(&["kill-pane", "-t", &pane]);
    wait_until("it has ended", || walk.env.tpu("check xibo").to_string().contains("closed)"));
    walk.types("tpu check xibo", 0, &["Window 9", "killed (window closed)"]);
    walk.types("tpu clean xibo", 0, &["Archived 1 job"]);
}

#[test]
fn environment_operations() {
    let walk = Walk::new();
    walk.types("tpu check-status v2-32-p1", 0, &["READY"]);
    walk.types("tpu describe v2-32-p1", 0, &["READY", "v2-32"]);
    walk.begins("tpu reapply v2-32-p1");
    walk.answers("[y/N]", "y");
    walk.ends(0, &["is READY"]);
    walk.env.tpu("sim preempt v2-32-p1").exits(0);
    walk.types("tpu check-status v2-32-p1", 0, &["PREEMPTED"]);
    walk.types("tpu apply v2-32-p1", 0, &["is READY"]);
    // The limit of `applyy`: so many tries and no more.
    walk.env.tpu("sim preempt v2-32-p1").exits(0);
    walk.env.tpu("sim capacity v2-32-p1 --off --times 9").exits(0);
    let text = walk.types("tpu applyy v2-32-p1 t=1 m=2", 1, &["capacity"]);
    assert!(text.contains('2'), "{text}");
    // What a lab mounts stands in its recipes; without one the command says what is missing.
    walk.types("tpu mount-disk v2-32-6", 4, &["recipe", "tpu help solve"]);
    walk.types("tpu solve v2-32-6", 4, &["recipe", "tpu help solve"]);
}

#[test]
fn passing_configs() {
    let walk = Walk::new();
    walk.types("tpu -a lr config.training.learning_rate xibo", 0, &["lr"]);
    walk.types("tpu -alias momentum config.training.momentum xibo", 0, &["momentum"]);
    walk.types("tpu -sa xibo", 0, &["config.training.learning_rate", "config.training.momentum"]);
    walk.types("tpu del-config-alias momentum xibo", 0, &[]);
    let listed = walk.types("tpu -sa xibo", 0, &[]);
    assert!(!listed.contains("momentum"), "{listed}");
    walk.types("tpu run v2-32-6 xibo lr=0.01 -q", 0, &["Started xibo/1"]);
    walk.is("xibo", 1, "finished");
    walk.types(
        "tpu run v2-32-6 xibo config.training.learning_rate=0.01 -q",
        0,
        &["Started xibo/2"],
    );
    walk.is("xibo", 2, "finished");
    for window in [1, 2] {
        let words = walk.arguments("xibo", window);
        assert!(words.contains("--config.training.learning_rate=0.01\n"), "{words}");
        assert!(words.starts_with("ka=kmh-tpuvm-v2-32-6\nzone=europe-west4-a\n"), "{words}");
    }
    // The aliases that a new user of the manual has.
    for (alias, full) in [
        ("lr", "config.training.learning_rate"),
        ("bs", "config.training.batch_size"),
        ("ep", "config.training.num_epochs"),
        ("wd", "config.training.weight_decay"),
        ("b1", "config.training.adam_b1"),
        ("b2", "config.training.adam_b2"),
        ("ckpt", "config.training.checkpoint_per_epoch"),
    ] {
        assert_eq!(walk.env.data()["users"]["xibo"]["config_aliases"][alias], full);
    }
}

#[test]
fn resuming_and_rerunning() {
    let walk = Walk::new();
    walk.types("tpu run v2-32-6 xibo mode=fail --log-stage -q", 0, &["Started xibo/1"]);
    walk.is("xibo", 1, "error");
    assert_eq!(walk.env.job("xibo", 1)["error"], "grpc");
    walk.types("tpu resume windows=1 xibo", 0, &["Resumed xibo/1 as xibo/2"]);
    walk.is("xibo", 2, "error");
    let words = walk.arguments("xibo", 2);
    assert!(
        words.contains("--config.stage=1\n") && words.contains("--config.load_from="),
        "{words}"
    );
    walk.types("tpu resume windows=2 tpu=v2-32-2 xibo", 0, &["xibo/3 on kmh-tpuvm-v2-32-2"]);
    walk.is("xibo", 3, "error");
    assert!(walk.arguments("xibo", 3).contains("--config.stage=2\n"));
    assert!(walk.arguments("xibo", 3).starts_with("ka=kmh-tpuvm-v2-32-2\n"));
    walk.types("tpu rerun windows=3 xibo", 0, &["xibo/4"]);
    walk.is("xibo", 4, "error");
    assert!(!walk.arguments("xibo", 4).contains("load_from"));
    walk.types("tpu rerun windows=4 tpu=v2-32-1 xibo", 0, &["xibo/5"]);
    walk.types("tpu run v2-32-p2 lyy rule=rerun -q", 0, &["Started lyy/1"]);
    walk.types("tpu run v2-32-2 lyy rule=resume -q", 0, &["Started lyy/2"]);
    assert_eq!(walk.env.job("lyy", 1)["rules"]["grpc"], "rerun");
    assert_eq!(walk.env.job("lyy", 2)["rules"]["grpc"], "resume");
    let rules = walk.types("tpu check-rules", 0, &["reapply", "pass", "rerun", "pre", "resume"]);
    assert!(rules.contains("preempted"), "{rules}");
}

#[test]
fn a_preempted_job_comes_back_after_a_reapply_and_ack_is_heard() {
    let walk = Walk::new();
    walk.types("tpu daemon start", 0, &["daemon runs"]);
    // A failure of the distributed runtime first: resumed on the same target.
    walk.types("tpu run v2-32-2 lyy rule=resume -q mode=fail", 0, &["Started lyy/1"]);
    walk.types("tpu ack", 0, &[]);
    wait_until("lyy/1 is resumed", || walk.env.job("lyy", 1)["status"] == "resumed");
    walk.types("tpu set-rule 2 pass lyy", 0, &[]);
    // The target is taken away: made anew, then resumed.
    walk.types("tpu run v2-32-p2 xibo -q mode=busy", 0, &["Started xibo/1"]);
    walk.is("xibo", 1, "running");
    walk.env.tpu("sim preempt v2-32-p2").exits(0);
    walk.types("tpu ack", 0, &[]);
    wait_until("xibo/1 is resumed", || walk.env.job("xibo", 1)["status"] == "resumed");
    walk.is("xibo", 2, "running");
    assert!(walk.arguments("xibo", 2).contains("--config.load_from="));
    walk.types("tpu check-status v2-32-p2", 0, &["READY"]);
    walk.types("tpu check xibo", 0, &["resume: 1; stage: 1"]);
    walk.types("tpu daemon stop", 0, &["daemon has stopped"]);
}

#[test]
fn user_settings() {
    let walk = Walk::new();
    walk.types("tpu set-settings monitor_verbose True xibo", 0, &[]);
    walk.types("tpu set-settings time_zone cn xibo", 0, &[]);
    walk.types("tpu get-settings xibo", 0, &["monitor_verbose: true", "time_zone: cn"]);
    walk.types("tpu get-settings username", 0, &["show_length: 300", "time_zone: us"]);
    walk.types("tpu reset-settings xibo", 0, &[]);
    for line in [
        "monitor_after_run: true",
        "monitor_upd_time: 5",
        "monitor_length: 800",
        "monitor_dir: true",
        "monitor_tpu: true",
        "monitor_verbose: false",
        "show_length: 200",
        "extra_settings: {}",
    ] {
        walk.types("tpu get-settings xibo", 0, &[line]);
    }
    walk.types("tpu reset-window-num 30 xibo", 0, &["30"]);
    walk.types("tpu run v2-32-6 xibo -q", 0, &["Started xibo/30"]);
}

#[test]
fn documentation() {
    let walk = Walk::new();
    walk.types("tpu tldr", 0, &["tpu run"]);
    for command in ["run", "monitor", "-czw", "set-cur", "reapply"] {
        walk.types(&format!("tpu -h {command}"), 0, &["Usage: tpu"]);
    }
}

/// What `doctor` says of a lab in which this was done.
#[track_caller]
fn diagnosed(walk: &Walk, words: &[&str]) {
    let text = walk.types("tpu doctor", 0, words);
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn doctor_on_what_the_original_s_unit_tests_look_for() {
    let walk = Walk::new();
    walk.types("tpu run v2-32-6 xibo -q mode=fail", 0, &["Started xibo/1"]);
    walk.is("xibo", 1, "error");
    walk.types("tpu resume windows=1 xibo", 0, &["xibo/2"]);
    walk.is("xibo", 2, "error");

    // Two records of one window.
    let sound = walk.env.data();
    let mut data = sound.clone();
    let jobs = data["users"]["xibo"]["job_data"].as_array_mut().unwrap();
    let twin = jobs[1].clone();
    jobs.push(twin);
    walk.env.write_data(&data);
    diagnosed(&walk, &["xibo", "2"]);
    // A child that is not there.
    let mut data = sound.clone();
    data["users"]["xibo"]["job_data"].as_array_mut().unwrap().pop();
    walk.env.write_data(&data);
    diagnosed(&walk, &["xibo/1", "2"]);
    // A zombie: a record whose window is gone.
    walk.env.write_data(&sound);
    walk.types("tpu run v2-32-2 xibo -q mode=busy", 0, &["Started xibo/3"]);
    walk.is("xibo", 3, "running");
    let pane = walk.env.pane_id("xibo", 3).unwrap();
    walk.env.tmux().run(&["kill-pane", "-t", &pane]);
    wait_until("it has ended", || walk.env.tpu("check xibo").to_string().contains("closed)"));
    diagnosed(&walk, &["xibo/3"]);
    // The lock, held by somebody who does not let go.
    let file = std::fs::File::options().write(true).open(walk.env.path("data.json.lock"));
    let mut lock = fd_lock::RwLock::new(file.unwrap());
    let held = lock.write().unwrap();
    diagnosed(&walk, &["lock"]);
    drop(held);
}
