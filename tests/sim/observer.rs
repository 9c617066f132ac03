//! Sees the simulated world, and says which of the things that must never happen (1 to 9, as numbered in
//! the specification of the daemon; 20: a job whose window a person has closed counts as lost, or one that nobody has
//! ended as killed) has happened. It reads no record to know what is true: whether a
//! program runs, and of which lineage it is, it knows from the program's own start.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use tpu_core::model::data::Data;
use tpu_core::model::facts::PaneFact;
use tpu_system::sys::procs::Signal;
use tpu_system::sys::random::Random as _;

use super::turns::Turns;
use super::world::{Pid, Purpose, Role, State};
use super::{DATA, cluster};

/// How a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It does what it should.
    Working,
    /// It stands still, because its target is gone or its peers are.
    Hung,
    /// Its window has gone and it goes on.
    Orphan,
    /// It is dead.
    Ended,
}

/// Why a program ended or stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its target was taken away.
    Preempted,
    /// Its peers were lost.
    Grpc,
    /// It has a mistake.
    Mistake,
    /// It is done.
    Finished,
    /// Its window, its server or its machine went.
    Window,
    /// Somebody stopped it.
    Stopped,
}

/// One program of a job, from its start on.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) token: String,
    pub(crate) lineage: u32,
    pub(crate) target: String,
    pub(crate) pid: Pid,
    pub(crate) health: Health,
    pub(crate) cause: Option<Cause>,
    /// What it says last, and its exit code.
    pub(crate) last_words: &'static str,
    pub(crate) exit: i32,
    /// When its launcher began, when something struck it, and when it was dead.
    pub(crate) began: Duration,
    pub(crate) struck: Option<Duration>,
    pub(crate) ended: Option<Duration>,
    /// Whether it has kept any of its work.
    pub(crate) kept: bool,
    /// Whether nothing is left for it to do but to say so.
    pub(crate) is_done: bool,
}

/// What a person began with one `run`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    pub(crate) rule: String,
    pub(crate) programs: Vec<usize>,
    pub(crate) finished: bool,
    /// Somebody asked for its end; it has been told that the end has come.
    pub(crate) kill_asked: bool,
    pub(crate) killed: bool,
    /// What it has reached and kept, in seconds of work, and what it needs.
    pub(crate) kept: f64,
    pub(crate) needs: f64,
    /// What it had reached when it last said something, kept or not.
    pub(crate) reached: f64,
    /// How long its programs did what they should, in seconds.
    pub(crate) worked: f64,
    /// When it last stopped doing so, and which target it was on.
    pub(crate) down: Option<Duration>,
    /// How long it was down in all, and how long somebody who knows everything would have been.
    pub(crate) was_down: f64,
    pub(crate) had_to: f64,
    /// Where its attempts keep their work, in the order in which they began.
    pub(crate) logs: Vec<PathBuf>,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    pub(crate) programs: Vec<Program>,
    pub(crate) lineages: BTreeMap<u32, Lineage>,
    /// Records by user, window and launch, with their status.
    records: BTreeMap<String, String>,
    /// The same, as a power failure would leave them.
    durable: BTreeMap<String, String>,
    /// The launches whose window a person has closed, each with its target as long as that is well.
    closed: BTreeMap<String, Option<String>>,
    /// When the machines of a target were last taken away.
    gone: BTreeMap<String, Duration>,
    /// How often the daemon's rules did something, for the figures.
    pub(crate) deletes: u32,
    /// Whether each program that keeps its work on the disk began from what an earlier one had kept.
    pub(crate) loaded: Vec<bool>,
    /// What waits in queues, in a world that has some.
    pub(crate) turns: Option<Turns>,
}

impl Observer {
    /// A program is dead.
    pub(crate) fn ended(&mut self, number: usize, now: Duration) {
        if let Some(program) = self.programs.get_mut(number) {
            program.health = Health::Ended;
            program.ended.get_or_insert(now);
        }
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (usize, &Program)> {
        self.programs.iter().enumerate().filter(|(_, program)| program.health != Health::Ended)
    }

    /// Those of these records that say from now on that a cluster has their job no more, while its program does there
    /// what it should and nobody has asked for its end.
    fn taken_for_gone(&self, records: &BTreeMap<String, String>) -> Vec<String> {
        let is_news = |(name, status): &(&String, &String)| {
            ["killed", "error lost"].contains(&status.as_str())
                && self.records.get(*name).is_some_and(|before| before != *status)
        };
        let is_at_work = |(name, _): &(&String, &String)| {
            let token = name.rsplit(' ').next().unwrap_or_default();
            self.live().any(|(_, program)| {
                let lineage = self.lineages.get(&program.lineage);
                let is_wanted = !lineage.is_some_and(|lineage| lineage.kill_asked);
                let is_there = cluster::TARGETS.contains(&program.target.as_str());
                program.token == token && is_there && is_wanted && program.health == Health::Working
            })
        };
        records.iter().filter(is_news).filter(is_at_work).map(|(name, _)| name.clone()).collect()
    }

    /// What these records say wrongly from now on of windows that a person has closed, in a world without queues, out of
    /// which persons take jobs as well.
    fn taken_for_closed(
        &self,
        records: &BTreeMap<String, String>,
        by: Option<&Purpose>,
    ) -> Vec<String> {
        let is_daemon = by == Some(&Purpose::Monitor) && self.turns.is_none();
        let wrong = |(name, status): (&String, &String)| {
            let before = self.records.get(name).filter(|before| *before != status)?;
            let token = name.rsplit(' ').next().unwrap_or_default();
            let program = self.programs.iter().find(|program| program.token == token)?;
            if cluster::TARGETS.contains(&program.target.as_str()) {
                return None;
            }
            let is_asked = self.lineages.get(&program.lineage).is_some_and(|of| of.kill_asked);
            let closed = self.closed.get(token);
            match status.as_str() {
                "error lost" if closed.is_some_and(Option::is_some) => {
                    Some(format!("{name} was {before} and counts as lost; its window was closed"))
                }
                "killed" if closed.is_none() && !is_asked && is_daemon => {
                    Some(format!("{name} was {before} and counts as killed by nobody"))
                }
                _ => None,
            }
        };
        records.iter().filter_map(wrong).collect()
    }
}

/// The entries in a data file that wait in queues.
fn waiting(bytes: &[u8]) -> BTreeSet<String> {
    let data: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let entries = data["queue"]["entries"].as_array().cloned().unwrap_or_default();
    let name = |entry: &Value| {
        format!("{}/{}", entry["user"].as_str().unwrap_or_default(), entry["number"])
    };
    entries.iter().map(name).collect()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The records in a data file; `None` if it does not parse.
fn records(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let data: Value = serde_json::from_slice(bytes).ok()?;
    let mut records = BTreeMap::new();
    for (user, value) in data["users"].as_object()? {
        for job in value["job_data"].as_array()? {
            let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap_or("-");
            let name = format!("{user}/{} {token}", job["windows_id"]);
            let word = |key: &str| job[key].as_str().unwrap_or("-").to_owned();
            let entry = &job["extra_msgs"]["waited"]["entry"]["number"];
            let status = match word("status") {
                failed if failed == "error" => format!("{failed} {}", word("error")),
                starting if entry.is_u64() => format!("{starting} {user}/{entry}"),
                other => other,
            };
            if records.insert(name, status).is_some() {
                return None;
            }
        }
    }
    Some(records)
}

impl State {
    /// A process reads the data file; what it reads under the lock is what it may replace.
    pub(crate) fn data_read(&mut self, me: Pid, bytes: &[u8]) {
        let holds = self.locks.iter().any(|(path, holder)| is_lock(path) && *holder == me);
        if let Some(proc) = self.proc_mut(me).filter(|_| holds) {
            proc.base = Some(hash(bytes));
        }
        let at = self.own_time(me);
        if let Some(turns) = &mut self.observer.turns {
            turns.read_by(me, at);
        }
    }

    /// A process is about to replace the data file.
    pub(crate) fn data_replaced(&mut self, me: Pid, before: Option<&[u8]>) {
        let holds = self.locks.iter().any(|(path, holder)| is_lock(path) && *holder == me);
        if !holds {
            self.violation("4: the data file was replaced without its lock".to_owned());
        }
        let base = self.proc(me).and_then(|proc| proc.base);
        if base.is_none() || base != before.map(hash) {
            self.violation("4: something older was written back over newer data".to_owned());
        }
    }

    /// The data file has other contents, or none.
    pub(crate) fn data_changed(
        &mut self,
        by: Option<Pid>,
        bytes: Option<&[u8]>,
        archive: Option<&[u8]>,
    ) {
        let Some(now) = bytes.and_then(records) else {
            self.violation("4: the data file is gone or cannot be read".to_owned());
            return;
        };
        let archived = String::from_utf8_lossy(archive.unwrap_or_default());
        let waiting = waiting(bytes.unwrap_or_default());
        let mut lost = Vec::new();
        for (name, status) in &self.observer.records {
            let token = name.rsplit(' ').next().unwrap_or_default();
            let waits = |entry: &str| waiting.contains(entry);
            match now.get(name) {
                None if status.strip_prefix("starting ").is_some_and(waits) => {
                    if self.observer.live().any(|(_, program)| program.token == token) {
                        lost.push(format!("{name} waits again, and is at work"));
                    }
                }
                None if !archived.contains(token) => lost.push(format!("{name} is in no file")),
                Some(new) if is_final(status) && new != status => {
                    lost.push(format!("{name} was {status} and is {new}"));
                }
                None | Some(_) => {}
            }
        }
        if let Some(first) = lost.first() {
            self.violation(format!("4: {first}"));
        }
        for name in self.observer.taken_for_gone(&now) {
            self.violation(format!("5: {name} counts as gone, and is at work"));
        }
        let purpose = by.and_then(|pid| self.purpose(pid));
        for what in self.observer.taken_for_closed(&now, purpose.as_ref()) {
            self.violation(format!("20: {what}"));
        }
        self.observer.records = now;
        let data = bytes.and_then(|bytes| Data::parse(bytes).ok());
        let wrong =
            self.observer.turns.as_mut().zip(data).map(|(turns, data)| turns.changed(data, by));
        wrong.unwrap_or_default().into_iter().for_each(|text| self.violation(text));
    }

    /// Lines for the journal: they tell a reader of the trace what the program thinks.
    pub(crate) fn events(&mut self, me: Pid, lines: &[u8]) {
        for line in String::from_utf8_lossy(lines).lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let text = event["text"].as_str().unwrap_or_default();
            let (user, job) = (event["user"].as_str().unwrap_or_default(), &event["job"]);
            let kind = event["kind"].as_str().unwrap_or_default();
            self.note(Some(me), &format!("  says {user}/{job} {kind}: {text}"));
        }
    }

    /// What has been written is on the platter.
    pub(crate) fn data_synced(&mut self) {
        self.observer.durable = self.observer.records.clone();
    }

    /// After a power failure: what was promised to last is there.
    pub(crate) fn power_failed(&mut self, bytes: Option<&[u8]>, archive: Option<&[u8]>) {
        self.observer.records = self.observer.durable.clone();
        let data = bytes.and_then(|bytes| Data::parse(bytes).ok());
        if let Some((turns, data)) = self.observer.turns.as_mut().zip(data) {
            turns.falls_back(&data, &String::from_utf8_lossy(archive.unwrap_or_default()));
        }
        self.data_changed(None, bytes, archive);
        self.data_synced();
    }

    /// A call that changes a target arrives at the control plane.
    pub(crate) fn cloud_called(&mut self, me: Pid, what: &str, target: &str, word: &str) {
        if self.is_for_a_person(me, &[Purpose::Reapply]) {
            return;
        }
        if what == "delete" {
            self.observer.deletes += 1;
        }
        if what == "delete" && word == "READY" {
            self.violation(format!("5: {target} is deleted although it is READY"));
        }
        let now = self.own_time(me);
        let zone = zone_of(target);
        let asked = self.proc(me).and_then(|proc| proc.asked.get(&zone).copied());
        let age = asked.map(|at| now.saturating_sub(at));
        if age.is_none_or(|age| age > Duration::from_secs(65)) {
            self.violation(format!("7: {what} of {target}, on an answer that is {age:?} old"));
        }
    }

    /// The machines of a target are gone: its programs hear nothing more.
    pub(crate) fn machines_gone(&mut self, target: &str) {
        self.observer.gone.insert(target.to_owned(), self.now);
        for of in self.observer.closed.values_mut().filter(|of| of.as_deref() == Some(target)) {
            *of = None;
        }
        let struck: Vec<usize> = self
            .observer
            .live()
            .filter(|(_, program)| program.target == target && program.health == Health::Working)
            .map(|(number, _)| number)
            .collect();
        for number in struck {
            let words = "client_loop: send disconnect: Broken pipe\n";
            if self.chance(self.habits.ends_well) {
                self.is_done_without_its_target(number);
            } else {
                self.fail(number, Cause::Preempted, words, 255);
            }
        }
    }

    /// The target of a program is gone when all is done: it only has to say so.
    fn is_done_without_its_target(&mut self, number: usize) {
        let now = self.now;
        let Some(program) = self.observer.programs.get_mut(number) else { return };
        (program.health, program.is_done) = (Health::Hung, true);
        program.cause = Some(Cause::Preempted);
        program.struck.get_or_insert(now);
        let (lineage, pid) = (program.lineage, program.pid);
        self.observer.lineages.entry(lineage).or_default().down.get_or_insert(now);
        self.note(Some(pid), "is done without its target");
    }

    /// A program fails: it ends soon, or hangs.
    pub(crate) fn fail(&mut self, number: usize, cause: Cause, words: &'static str, exit: i32) {
        let hangs = cause == Cause::Preempted && self.rng.below(2) == 0;
        let ends = self.now + self.between(200, 20_000);
        let Some(program) = self.observer.programs.get_mut(number) else { return };
        program.health = Health::Hung;
        program.cause = Some(cause);
        program.struck.get_or_insert(self.now);
        let lineage = program.lineage;
        (program.last_words, program.exit) = (if hangs { "" } else { words }, exit);
        let pid = program.pid;
        let now = self.now;
        self.observer.lineages.entry(lineage).or_default().down.get_or_insert(now);
        self.note(Some(pid), &format!("fails ({cause:?}), hangs: {hangs}"));
        if let Some(proc) = self.proc_mut(pid).filter(|_| !hangs) {
            proc.ends = Some(ends);
        }
    }

    /// A signal arrives. Whether there was somebody to get it.
    pub(crate) fn signalled(&mut self, me: Pid, victim: Pid, signal: Signal) -> bool {
        self.signals(me);
        if !self.is_alive(victim) {
            return false;
        }
        let Some(Role::Program(number)) = self.proc(victim).map(|proc| proc.role.clone()) else {
            self.violation(format!("6: {signal:?} to process {}, which is no job's", victim.pid));
            return true;
        };
        let Some(program) = self.observer.programs.get(number).cloned() else { return true };
        let wanted = self.observer.lineages.get(&program.lineage).is_some_and(|l| l.kill_asked);
        // One that has said that it is done is over, though it is still there.
        if program.health == Health::Working && !wanted && !program.is_done {
            self.violation(format!(
                "6: {signal:?} to a program of lineage {} that does what it should",
                program.lineage
            ));
        }
        let heeds = match signal {
            Signal::Interrupt => self.rng.below(10) < 7,
            Signal::Terminate => self.rng.below(10) < 8,
            Signal::Kill => true,
            Signal::HangUp | Signal::User1 | Signal::User2 => false,
        };
        if heeds {
            let most = if signal == Signal::Kill { 1 } else { 9_000 };
            let ends = self.now + self.between(0, most);
            if let Some(program) = self.observer.programs.get_mut(number) {
                program.cause.get_or_insert(Cause::Stopped);
                program.exit = if signal == Signal::Interrupt { 130 } else { 143 };
            }
            if let Some(proc) = self.proc_mut(victim) {
                proc.ends = Some(proc.ends.map_or(ends, |known| known.min(ends)));
            }
        }
        true
    }

    /// The process id of what runs in a pane that is there.
    pub(crate) fn process_of(&self, host: usize, pane: &PaneFact) -> Option<u32> {
        self.hosts.get(host)?.tmux.process_id(&pane.pane_id)
    }

    /// The window of a pane has been closed, by a process or by hand, and with it the process of that id.
    pub(crate) fn window_closed(
        &mut self,
        by: Option<Pid>,
        host: usize,
        (pane, pid): (&PaneFact, Option<u32>),
    ) {
        let shell = self.hosts.get(host).zip(pid).and_then(|(machine, pid)| {
            machine.procs.get(&pid).map(|(start, _)| Pid { host, pid, start: *start })
        });
        let token = pane.launch.as_ref().map(|token| token.as_str().to_owned());
        let program = token.and_then(|token| {
            let found = self.observer.live().find(|(_, program)| program.token == token);
            found.map(|(number, _)| number)
        });
        if let Some(me) = by {
            if pane.launch.is_none() && !self.is_for_a_person(me, &[Purpose::Clean]) {
                self.violation(format!("6: {} is no job's, and is closed", pane.pane_id));
            }
            if let Some(found) = program.and_then(|number| self.observer.programs.get(number)) {
                let wanted = self.observer.lineages.get(&found.lineage);
                let wanted = wanted.is_some_and(|lineage| lineage.kill_asked);
                if found.health == Health::Working && !wanted {
                    let text =
                        format!("6: the window of lineage {} at work is closed", found.lineage);
                    self.violation(text);
                }
            }
        }
        if let Some(shell) = shell {
            self.kill(shell, "its window is closed");
        }
        if let Some(number) = program {
            self.hang_up(number);
        }
    }

    /// A person has closed the window of a launch, and its launcher has written that down.
    pub(crate) fn closed_by_hand(&mut self, token: &str) {
        let observer = &mut self.observer;
        let Some(program) = observer.programs.iter().find(|of| of.token == token) else { return };
        let is_gone = observer.gone.get(&program.target).is_some_and(|at| *at >= program.began);
        let target = Some(program.target.clone()).filter(|_| !is_gone);
        observer.closed.insert(token.to_owned(), target);
    }

    /// What launchers have written down may be lost with the power.
    pub(crate) fn closed_may_be_forgotten(&mut self) {
        self.observer.closed.values_mut().for_each(|of| *of = None);
    }

    /// The terminal of a program is gone.
    pub(crate) fn hang_up(&mut self, number: usize) {
        let survives = self.rng.below(8) == 0;
        let Some(program) = self.observer.programs.get_mut(number) else { return };
        if program.health == Health::Ended {
            return;
        }
        program.cause.get_or_insert(Cause::Window);
        let pid = program.pid;
        // What is done has nothing to go on with.
        if survives && !program.is_done {
            program.health = Health::Orphan;
            let ends = self.now + self.between(1_000, 300_000);
            if let Some(proc) = self.proc_mut(pid) {
                proc.ends = Some(proc.ends.map_or(ends, |known| known.min(ends)));
            }
            self.note(Some(pid), "goes on without its window");
        } else {
            self.kill(pid, "hang-up");
        }
    }

    /// A program begins. Here the first three things would happen.
    pub(crate) fn program_begins(&mut self, program: Program) -> usize {
        let (lineage, target) = (program.lineage, program.target.clone());
        let others: Vec<(u32, String, Health)> = self
            .observer
            .live()
            .map(|(_, other)| (other.lineage, other.target.clone(), other.health))
            .collect();
        if let Some((.., health)) = others.iter().find(|(other, ..)| *other == lineage) {
            self.violation(format!(
                "1: lineage {lineage} begins again, and is at work ({health:?})"
            ));
        }
        let is_shared =
            target == tpu_core::model::target::LOCAL || cluster::TARGETS.contains(&&*target);
        let on_it = |other: &str| other == target && !is_shared;
        if let Some((other, ..)) = others.iter().find(|(_, other, _)| on_it(other)) {
            self.violation(format!("2: lineage {lineage} begins on {target}, where {other} is"));
        }
        let known = self.observer.lineages.entry(lineage).or_default();
        known.programs.push(self.observer.programs.len());
        if let Some(since) = known.down.take() {
            known.was_down += self.now.saturating_sub(since).as_secs_f64();
        }
        let over = match (known.finished, known.killed) {
            (true, _) => Some("finished"),
            (_, true) => Some("killed"),
            (false, false) => None,
        };
        if let Some(over) = over {
            self.violation(format!("3: lineage {lineage} begins again, and was {over}"));
        }
        let pid = program.pid;
        self.note(Some(pid), &format!("lineage {lineage} begins on {target}"));
        self.observer.programs.push(program);
        self.turns_hold();
        self.observer.programs.len() - 1
    }

    /// Somebody was told that a job has been killed.
    pub(crate) fn kill_told(&mut self, lineage: u32, token: &str) {
        let alive = self.observer.live().any(|(_, program)| program.token == token);
        if alive {
            self.violation(format!("3: lineage {lineage} is said to be killed, and is at work"));
        }
        self.observer.lineages.entry(lineage).or_default().killed = true;
    }
}

/// The zone of a target of the world.
pub(crate) fn zone_of(target: &str) -> String {
    let index = target.rsplit('-').next().and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    format!("zone-{}", index % 2)
}

/// Whether a path is the lock of the data file.
pub(crate) fn is_lock(path: &Path) -> bool {
    path.as_os_str().to_str().is_some_and(|path| path == format!("{DATA}.lock"))
}

fn is_final(status: &str) -> bool {
    matches!(status, "finished" | "killed" | "resumed" | "rerunned")
}
