//! The demo's truth: no caption on its screen is contradicted by what is written down. The real demo runs in a terminal;
//! the screen is read again and again, and what it claims is looked up in the lab's own journal, records, logs and fleet.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::wait::wait_at_most;

/// The whole story has to be told within this.
const LIMIT: Duration = Duration::from_secs(100);

/// So many seconds a count-down on the screen may be wrong: a look, a frame, and a busy machine.
const SLACK_S: i64 = 8;

/// Everything that a caption may say, and the check of it. What is not here is not said.
const CLAIMS: [(&str, Check); 20] = [
    (r"^(\d+) jobs? started(?:, \d+ in the queue)?$", Lab::started),
    (r"^(\S+)'s (\S+) was taken(?: \d+ s ago)?$", Lab::taken),
    (r"^(\S+) lost its connection on (\S+?)(?: \d+ s ago)?$", Lab::disconnected),
    (r"^(\S+) lost its connections(?: \d+ s ago)?, with (\S+) on it$", Lab::broken),
    (r"^(\S+) ran out of memory(?: \d+ s ago)?$", Lab::out_of_memory),
    (r"^(\S+) was killed by a signal(?: \d+ s ago)?$", Lab::killed),
    (r"^(\S+) failed \(unknown\)(?: \d+ s ago)?$", Lab::failed),
    (r"^nobody has noticed yet$", fine),
    (r"^the daemon has seen it$", fine),
    (r"^a new one (?:is being|was) made$", fine),
    (r"^nobody brings it back unasked$", fine),
    (r"^left alone: .*$", fine),
    (r"^(\S+) is to go on for it$", Lab::resumed),
    (r"^(\S+) has been started for it$", Lab::resumed),
    (r"^(\S+) goes on from step (\d+)(?:, (\d+) s lost)?$", Lab::goes_on),
    (
        r"^(\S+) of the queue began on (\S+?), (?:nothing waits any more|\d+ jobs? still waits?)$",
        Lab::began,
    ),
    (r"^(\S+) left (\S+)$", Lab::left),
    (
        r"^(\S+) of the queue began there, (?:nothing waits any more|\d+ jobs? still waits?)$",
        Lab::began,
    ),
    (r"^in about (\d+) s (\S+) will (?:be taken away|lose its connections)$", fine),
    (
        r"^(?:next: \d+ jobs? of the queue, when a place is free|your turn: r on \S+ brings it back; q ends|q ends it)$",
        fine,
    ),
];

/// Insists that a claim is so; the words of it come from the pattern.
type Check = fn(&Lab, &[&str]);

/// Nothing more than the order of what was said is to be checked, or what comes.
fn fine(_: &Lab, _: &[&str]) {}

/// What a lab has written down.
struct Lab {
    events: Vec<Value>,
    happened: Vec<Value>,
    data: Value,
    /// What each job has printed, by its log directory.
    outputs: HashMap<String, String>,
}

impl Lab {
    fn read(root: &Path) -> Option<Self> {
        let state = root.join("tpu-state");
        let text = |path: PathBuf| std::fs::read_to_string(path).ok();
        let lines = text(state.join("events.jsonl"))?;
        let fleet: Value = serde_json::from_str(&text(state.join("sim.json"))?).ok()?;
        let data: Value = serde_json::from_str(&text(root.join("data.json"))?).ok()?;
        let users = data["users"].as_object()?.values();
        let jobs = users.filter_map(|user| user["job_data"].as_array()).flatten();
        let logs = jobs.filter_map(|job| job["log_dir"].as_str());
        let outputs = logs
            .filter_map(|log| Some((log.to_owned(), text(Path::new(log).join("output.log"))?)))
            .collect();
        Some(Self {
            outputs,
            // The last line may be half written.
            events: lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            happened: fleet["history"].as_array()?.clone(),
            data,
        })
    }

    /// The events of a job of a kind, with their places in the journal.
    fn of<'a>(&'a self, job: &str, kind: &str) -> Vec<(usize, &'a Value)> {
        let is_it = |event: &Value| {
            let id = format!("{}/{}", event["user"].as_str().unwrap_or_default(), event["job"]);
            id == job && event["kind"] == kind
        };
        self.events.iter().enumerate().filter(|(_, event)| is_it(event)).collect()
    }

    #[track_caller]
    fn one<'a>(&'a self, job: &str, kind: &str) -> (usize, &'a Value) {
        let all = self.of(job, kind);
        *all.last().unwrap_or_else(|| panic!("the journal has no {kind} of {job}"))
    }

    fn record(&self, job: &str) -> &Value {
        let (user, window) = job.split_once('/').unwrap();
        let jobs = self.data["users"][user]["job_data"].as_array().unwrap();
        let window: u64 = window.parse().unwrap();
        jobs.iter().find(|one| one["windows_id"] == window).unwrap()
    }

    #[track_caller]
    fn has_no_child(&self, job: &str) {
        let (user, window) = job.split_once('/').unwrap();
        let window: u64 = window.parse().unwrap();
        let mut jobs = self.data["users"][user]["job_data"].as_array().unwrap().iter();
        let child = jobs.find(|one| one["extra_msgs"]["father"] == window);
        assert!(child.is_none(), "{job} is not left alone: {child:?}");
    }

    /// The full name of a target of the lab.
    fn full(&self, alias: &str) -> String {
        let known = self.data["tpu_aliases"][alias].as_str();
        known.map_or_else(|| alias.to_owned(), str::to_owned)
    }

    fn happened(&self, target: &str, what: &str) -> Option<jiff::Timestamp> {
        let all = self.happened.iter().rev();
        all.filter(|one| one["target"] == target && one["what"] == what)
            .find_map(|one| one["at"].as_str()?.parse().ok())
    }

    #[track_caller]
    fn error(&self, job: &str, kind: &str) {
        let all = self.of(job, "error");
        let says = |(_, event): &(usize, &Value)| {
            event["text"].as_str().is_some_and(|text| text.starts_with(kind))
        };
        assert!(all.iter().any(says), "{job} is not {kind} in the journal: {all:?}");
    }

    fn started(&self, words: &[&str]) {
        let count: usize = words[0].parse().unwrap();
        let runs = self.events.iter().filter(|event| event["kind"] == "run").count();
        assert!(runs >= count, "{count} jobs were said to be started, {runs} are");
    }

    fn taken(&self, words: &[&str]) {
        let target = self.full(words[1]);
        assert_eq!(self.one(words[0], "run").1["data"]["target"], target);
        let gone = self.happened(&target, "preempted");
        assert!(gone.is_some(), "{target} was not taken: {:?}", self.happened);
    }

    fn disconnected(&self, words: &[&str]) {
        let target = self.full(words[1]);
        assert_eq!(self.one(words[0], "run").1["data"]["target"], target);
        self.error(words[0], "grpc");
        assert!(self.happened(&target, "grpc error").is_some());
    }

    fn broken(&self, words: &[&str]) {
        let target = self.full(words[0]);
        assert_eq!(self.one(words[1], "run").1["data"]["target"], target);
        assert!(self.happened(&target, "grpc error").is_some(), "{:?}", self.happened);
    }

    fn out_of_memory(&self, words: &[&str]) {
        self.error(words[0], "oom");
    }

    fn killed(&self, words: &[&str]) {
        self.error(words[0], "killed-by-signal");
    }

    fn failed(&self, words: &[&str]) {
        self.error(words[0], "unknown");
    }

    fn resumed(&self, words: &[&str]) {
        self.one(words[0], "resume");
    }

    /// It is the child of one that failed, its own log says the step, and the seconds are those between two instants that
    /// are written down.
    fn goes_on(&self, words: &[&str]) {
        let job = words[0];
        self.resumed(words);
        let record = self.record(job);
        let output = &self.outputs[record["log_dir"].as_str().unwrap()];
        let step = format!("resumed at step {} from", words[1]);
        assert!(output.contains(&step), "{job} does not say: {step}\n{output}");
        let father =
            format!("{}/{}", job.split_once('/').unwrap().0, record["extra_msgs"]["father"]);
        let target = self.one(job, "resume").1["data"]["target"].as_str().unwrap();
        let cause = match self.record(&father)["error"].as_str().unwrap() {
            "preempted" => self.happened(target, "preempted"),
            _ => self.happened(target, "grpc error"),
        };
        let Some(lost) = words.get(2) else { return };
        let started: jiff::Timestamp =
            self.one(job, "started").1["at"].as_str().unwrap().parse().unwrap();
        // As whoever subtracts the two clock readings would count them.
        let seconds = started.as_second() - cause.unwrap().as_second();
        assert_eq!(seconds.to_string(), *lost, "seconds that {job} is said to have lost");
    }

    fn began(&self, words: &[&str]) {
        let (_, run) = self.one(words[0], "run");
        if let Some(target) = words.get(1) {
            assert_eq!(run["data"]["target"], self.full(target));
        }
    }

    fn left(&self, words: &[&str]) {
        self.one(words[0], "finished");
        assert_eq!(self.one(words[0], "run").1["data"]["target"], self.full(words[1]));
    }

    /// Checks a whole caption.
    fn check(&self, caption: &str) {
        let parts: Vec<&str> = caption.split(" · ").flat_map(|side| side.split(" → ")).collect();
        for part in &parts {
            let part = part.split(", and ").next().unwrap();
            let known = CLAIMS.iter().find_map(|(pattern, check)| {
                let found = Regex::new(pattern).unwrap().captures(part)?;
                let words = found.iter().skip(1).flatten().map(|word| word.as_str());
                Some((*check, words.collect::<Vec<&str>>()))
            });
            let (check, words) = known.unwrap_or_else(|| panic!("nobody knows the claim: {part}"));
            check(self, &words);
        }
        self.in_order(&parts);
    }

    /// What a caption joins by arrows has happened in this order.
    fn in_order(&self, parts: &[&str]) {
        let subject = parts[0].split([' ', '\'']).next().unwrap();
        let is_left = |part: &&str| part.starts_with("left alone") || part.contains("unasked");
        if parts.iter().any(is_left) {
            self.one(subject, "error");
            self.has_no_child(subject);
        }
        if parts.contains(&"the daemon has seen it") {
            self.one(subject, "error");
        }
        let first = Regex::new(r"^(\S+)'s (\S+) was taken").unwrap();
        let Some(found) = first.captures(parts[0]) else {
            if let (Some(left), Some(began)) = (parts[0].split_once(" left "), parts.get(1))
                && let Some((job, _)) = began.split_once(" of the queue began there")
            {
                assert!(self.one(left.0, "finished").0 < self.one(job, "run").0, "{parts:?}");
            }
            return;
        };
        let target = self.full(&found[2]);
        let gone = self.happened(&target, "preempted").unwrap();
        if parts.contains(&"a new one is being made") {
            let creating = self.happened(&target, "creating").unwrap();
            assert!(creating > gone, "no new {target} is made: {:?}", self.happened);
        }
        if parts.contains(&"a new one was made") {
            let ready = self.happened(&target, "ready").unwrap();
            assert!(ready > gone, "{target} was not made anew: {:?}", self.happened);
        }
        let back = parts.iter().find_map(|part| part.split_once(" goes on from"));
        if let Some((child, _)) = back {
            let father = self.record(child)["extra_msgs"]["father"].to_string();
            assert_eq!(format!("{}/{father}", child.split_once('/').unwrap().0), found[1]);
            assert!(self.one(&found[1], "error").0 < self.one(child, "resume").0, "{parts:?}");
        }
    }
}

/// The line above the bottom line.
fn caption(screen: &str) -> Option<String> {
    let mut lines = screen.trim_end().lines().rev();
    // The screen is drawn, and not the shell.
    screen.lines().next().filter(|head| head.contains(" all users "))?;
    lines.nth(1).map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// The demo in the terminal. Also after a failure it takes itself down before the test's directory goes.
struct Shown<'a> {
    terminal: &'a Terminal,
    place: &'a Path,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let clock = SystemClock::new();
        let is_gone = || std::fs::read_dir(self.place).is_ok_and(|mut left| left.next().is_none());
        if is_gone() {
            return;
        }
        self.terminal.press("q");
        while !is_gone() && clock.monotonic() < Duration::from_secs(20) {
            clock.sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn no_caption_is_contradicted_by_what_is_written_down() {
    let _alone = super::demo::alone();
    let mut env = TestEnv::new();
    let place = env.path("tmp");
    std::fs::create_dir(&place).unwrap();
    env.set("TMPDIR", place.as_os_str());
    let terminal = Terminal::new(&env);
    terminal.resize((200, 40));
    terminal.command(&format!("clear; {TPU} demo"));
    let _shown = Shown { terminal: &terminal, place: &place };
    let root = wait_at_most(LIMIT, "the lab is laid out", || {
        let mut found = std::fs::read_dir(&place).ok()?.flatten();
        found.find(|entry| entry.path().join("tpu-state").is_dir()).map(|entry| entry.path())
    });
    let mut told: Vec<(i64, String)> = Vec::new();
    let is_back = |(_, line): &(i64, String)| line.contains(" goes on from step");
    wait_at_most(LIMIT, "the story is told to its end", || {
        let screen = terminal.screen();
        // Read after the screen: what that shows has been written down before.
        // The first frames are drawn before there is one.
        let line = caption(&screen).filter(|line| !told.is_empty() || is_claim(line))?;
        let now = SystemClock::new().now().as_second();
        if told.last().is_none_or(|(_, last)| *last != line) {
            Lab::read(&root)?.check(&line);
            told.push((now, line));
        }
        let last = &told.last()?.1;
        last.contains("your turn: r on").then_some(())
    });
    assert!(told.iter().filter(|told| is_back(told)).count() >= 2, "{told:#?}");
    let lab = Lab::read(&root).unwrap();
    announced_came(&lab, &told);

    // Narrow screens show fewer words, and none that is cut off.
    for size in [(80, 24), (60, 16)] {
        terminal.resize(size);
        terminal.until("a caption without a cut", || {
            let line = caption(&terminal.screen()).unwrap_or_default();
            line.contains("alice/") && !line.contains('…')
        });
    }
    terminal.resize((120, 60));
    terminal.press("q");
    terminal.shows("To begin for real");
    terminal.prompts();
    let text = terminal.screen();
    the_text_is_true(&lab, &text);
    assert!(std::fs::read_dir(&place).unwrap().next().is_none(), "something is left behind");
}

/// Whether a line begins as a caption does.
fn is_claim(line: &str) -> bool {
    let first = line.split(" · ").next().and_then(|side| side.split(" → ").next());
    let first = first.unwrap_or_default();
    CLAIMS.iter().any(|(pattern, _)| Regex::new(pattern).unwrap().is_match(first))
}

/// What was announced has come, and when it was said to come.
fn announced_came(lab: &Lab, told: &[(i64, String)]) {
    let announced = Regex::new(r"in about (\d+) s (\S+) will (be taken away|lose)").unwrap();
    let mut count = 0;
    for (at, line) in told {
        let Some(found) = announced.captures(line) else { continue };
        let what = if &found[3] == "lose" { "grpc error" } else { "preempted" };
        let came = lab.happened(&lab.full(&found[2]), what);
        let came = came.unwrap_or_else(|| panic!("it never came: {line}"));
        let left: i64 = found[1].parse().unwrap();
        let off = came.as_second() - at - left;
        assert!(off.abs() < SLACK_S, "{off} s off: {line}");
        count += 1;
    }
    assert!(count >= 4, "little was announced: {told:?}");
}

/// The text at the end names the same jobs, steps and seconds, and three commands that are there.
fn the_text_is_true(lab: &Lab, text: &str) {
    let back = Regex::new(r"(\S+) as (\S+) on .*? from step (\d+), (\d+) s lost").unwrap();
    let all: Vec<_> = back.captures_iter(text).collect();
    assert_eq!(all.len(), 2, "{text}");
    for found in &all {
        let father = lab.record(&found[2])["extra_msgs"]["father"].to_string();
        assert!(found[1].ends_with(&format!("/{father}")), "{text}");
        lab.goes_on(&[&found[2], &found[3], &found[4]]);
    }
    let alone = Regex::new(r"left alone +(\S+): (.+)").unwrap();
    let alone: Vec<_> = alone.captures_iter(text).collect();
    assert!(!alone.is_empty(), "{text}");
    for found in &alone {
        lab.has_no_child(&found[1]);
    }
    for command in tpu::demo::report::FIRST_COMMANDS {
        assert!(text.contains(command), "{text}");
    }
}
