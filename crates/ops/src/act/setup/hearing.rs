//! What the workers of a job say while they set up: kept in a log for each module and worker, and in the window how far
//! they are. Once a worker is ready, what it says is its command's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::classify::own_line;
use tpu_core::text::escape;

use super::SetUp;

/// Between two words of a step that is at work.
const EVERY: Duration = Duration::from_secs(5);

/// What is heard of all workers of a job.
pub struct Hearing {
    /// The job, for whoever reads the window.
    job: String,
    mark: String,
    /// The module of each step.
    modules: Vec<String>,
    logs: Option<PathBuf>,
    workers: BTreeMap<u32, Of>,
    failed: Option<String>,
}

/// What is heard of one of them.
#[derive(Default)]
struct Of {
    /// The step at which it is, and the last that is over.
    step: Option<usize>,
    ended: Option<usize>,
    /// Whether something of the module was brought about.
    has_set_up: bool,
    is_ready: bool,
    log: Option<File>,
    last: String,
    shown: Option<Duration>,
}

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetUpLine {
    /// It is the command's.
    Command(Vec<u8>),
    /// It is the set-up's; what the window is to show.
    SetUp(Option<Vec<u8>>),
    /// The worker is ready, and so are all others.
    AllReady(Vec<u8>),
    /// It has failed: why, and what the window is to show.
    Failed(String, Vec<u8>),
}

impl Hearing {
    /// Of these workers, which log into the directory of the job.
    pub fn new(setup: &SetUp, job: &str, logs: Option<&str>, workers: &[u32]) -> Self {
        Self {
            job: job.to_owned(),
            mark: setup.mark(),
            modules: setup.modules(),
            logs: logs.map(Into::into),
            workers: workers.iter().map(|worker| (*worker, Of::default())).collect(),
            failed: None,
        }
    }

    /// The workers, in order.
    pub fn workers(&self) -> Vec<u32> {
        self.workers.keys().copied().collect()
    }

    /// Why it has failed.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Takes a line of a worker, with its end.
    pub fn hear(&mut self, worker: u32, line: Vec<u8>, now: Duration) -> SetUpLine {
        let Some(of) = self.workers.get_mut(&worker).filter(|of| !of.is_ready) else {
            return SetUpLine::Command(line);
        };
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some(said) = text.strip_prefix(self.mark.as_str()) {
            return self.own(worker, said.trim_start());
        }
        if let Some(log) = &mut of.log {
            // What cannot be kept is shown all the same.
            drop(log.write_all(&line));
        }
        if text.is_empty() {
            return SetUpLine::SetUp(None);
        }
        text.clone_into(&mut of.last);
        if of.shown.is_some_and(|shown| now < shown + EVERY) {
            return SetUpLine::SetUp(None);
        }
        of.shown = Some(now);
        let module = of.step.and_then(|step| self.modules.get(step)).map_or("", String::as_str);
        let shown = format!("set-up: {module}{}: {}", self.where_at(worker), escape(text));
        SetUpLine::SetUp(Some(self.line(&shown)))
    }

    /// A worker has ended, or is lost: why the set-up has failed, if it has by that.
    pub fn ended(&mut self, worker: u32, how: &str) -> Option<(String, Vec<u8>)> {
        let of = self.workers.get(&worker).filter(|of| !of.is_ready)?;
        if self.failed.is_some() {
            return None;
        }
        let module = of.step.and_then(|step| self.modules.get(step));
        let module = module.cloned().unwrap_or_else(|| "it".to_owned());
        Some(self.fail(&format!("{module}{}: {how}", self.where_at(worker))))
    }

    /// One of the lines in which `setup.sh` speaks of itself.
    fn own(&mut self, worker: u32, said: &str) -> SetUpLine {
        let (is_many, total) = (self.workers.len() > 1, self.workers.len());
        let mut words = said.split(' ');
        let first = words.next().unwrap_or_default();
        if first == "ready" {
            if let Some(of) = self.workers.get_mut(&worker) {
                of.is_ready = true;
                of.log = None;
            }
            let ready = self.workers.values().filter(|of| of.is_ready).count();
            if ready < total {
                return SetUpLine::SetUp(None);
            }
            let on = if is_many { format!(" on {total} workers") } else { String::new() };
            return SetUpLine::AllReady(self.line(&format!("set-up: all of it is so{on}")));
        }
        let (Ok(step), Some(event)) = (first.parse::<usize>(), words.next()) else {
            return SetUpLine::SetUp(None);
        };
        let Some(module) = self.modules.get(step).cloned() else { return SetUpLine::SetUp(None) };
        let is_last = self.modules.get(step + 1) != Some(&module);
        let is_first =
            step.checked_sub(1).and_then(|before| self.modules.get(before)) != Some(&module);
        let at = self.where_at(worker);
        let log = self.log(worker, &module);
        let Some(of) = self.workers.get_mut(&worker) else { return SetUpLine::SetUp(None) };
        of.step = Some(step);
        match event {
            "begins" if is_first => {
                of.has_set_up = false;
                of.log = log.as_deref().and_then(created);
                SetUpLine::SetUp(None)
            }
            "waits" => {
                let line =
                    format!("set-up: {module}{at}: waits for another set-up on that machine");
                SetUpLine::SetUp(Some(self.line(&line)))
            }
            "well" | "done" => {
                of.has_set_up |= event == "done";
                of.ended = Some(step);
                if !is_last {
                    return SetUpLine::SetUp(None);
                }
                let how = if of.has_set_up { "set up" } else { "is so already" };
                let over = |of: &&Of| of.ended.is_some_and(|ended| ended >= step);
                let count = self.workers.values().filter(over).count();
                let of_all = if is_many { format!(" ({count} of {total})") } else { String::new() };
                let line = format!("set-up: {module}{at}: {how}{of_all}");
                SetUpLine::SetUp(Some(self.line(&line)))
            }
            "failed" => {
                let what = match words.next() {
                    Some("again") => "it was set up, and its check still",
                    Some("check") => "its check",
                    _ => "its set-up",
                };
                let how = match words.next().unwrap_or("?") {
                    "124" | "137" => "took too long".to_owned(),
                    code => format!("ended with {code}"),
                };
                let last = match of.last.as_str() {
                    "" => String::new(),
                    last => format!(": {}", escape(last)),
                };
                if self.failed.is_some() {
                    return SetUpLine::SetUp(None);
                }
                let (why, line) = self.fail(&format!("{module}{at}: {what} {how}{last}"));
                SetUpLine::Failed(why, line)
            }
            _ => SetUpLine::SetUp(None),
        }
    }

    fn fail(&mut self, why: &str) -> (String, Vec<u8>) {
        self.failed = Some(why.to_owned());
        (why.to_owned(), self.line(&format!("set-up failed: {why}")))
    }

    /// Which worker it is, where there are several.
    fn where_at(&self, worker: u32) -> String {
        if self.workers.len() > 1 { format!(" on worker {worker}") } else { String::new() }
    }

    fn log(&self, worker: u32, module: &str) -> Option<PathBuf> {
        Some(self.logs.as_ref()?.join(format!("{module}_worker_{worker}.log")))
    }

    fn line(&self, text: &str) -> Vec<u8> {
        format!("{}\n", own_line(&self.job, text)).into_bytes()
    }
}

fn created(path: &Path) -> Option<File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hearing(workers: &[u32]) -> Hearing {
        Hearing {
            job: "alice/1".to_owned(),
            mark: "MARK".to_owned(),
            modules: ["docker", "wheels"].map(str::to_owned).to_vec(),
            logs: None,
            workers: workers.iter().map(|worker| (*worker, Of::default())).collect(),
            failed: None,
        }
    }

    fn hear(hearing: &mut Hearing, worker: u32, line: &str) -> SetUpLine {
        hearing.hear(worker, format!("{line}\n").into_bytes(), Duration::ZERO)
    }

    fn shown(heard: &SetUpLine) -> String {
        match heard {
            SetUpLine::Command(bytes)
            | SetUpLine::SetUp(Some(bytes))
            | SetUpLine::AllReady(bytes)
            | SetUpLine::Failed(_, bytes) => String::from_utf8_lossy(bytes).trim().to_owned(),
            SetUpLine::SetUp(None) => String::new(),
        }
    }

    #[test]
    fn nobody_begins_before_all_are_ready_and_then_what_is_said_is_the_commands() {
        let mut of = hearing(&[0, 1]);
        hear(&mut of, 0, "MARK 0 begins");
        let heard = hear(&mut of, 0, "MARK 0 done");
        assert!(
            shown(&heard).ends_with("set-up: docker on worker 0: set up (1 of 2)"),
            "{heard:?}"
        );
        hear(&mut of, 1, "MARK 0 begins");
        let heard = hear(&mut of, 1, "MARK 0 well");
        assert!(shown(&heard).ends_with("docker on worker 1: is so already (2 of 2)"), "{heard:?}");
        assert_eq!(hear(&mut of, 0, "MARK ready"), SetUpLine::SetUp(None));
        assert!(matches!(hear(&mut of, 1, "MARK ready"), SetUpLine::AllReady(_)));
        assert_eq!(
            hear(&mut of, 0, "MARK 0 begins"),
            SetUpLine::Command(b"MARK 0 begins\n".to_vec())
        );
        assert_eq!(of.ended(0, "ended with 1"), None);
    }

    #[test]
    fn the_first_failure_counts_and_says_its_last_words() {
        let mut of = hearing(&[0, 1]);
        hear(&mut of, 1, "MARK 1 begins");
        hear(&mut of, 1, "no space left");
        let SetUpLine::Failed(why, _) = hear(&mut of, 1, "MARK 1 failed set-up 1") else {
            panic!()
        };
        assert_eq!(why, "wheels on worker 1: its set-up ended with 1: no space left");
        assert_eq!(hear(&mut of, 0, "MARK 0 failed set-up 1"), SetUpLine::SetUp(None));
        assert_eq!(of.ended(0, "ended with 130"), None);
    }

    #[test]
    fn a_worker_that_ends_before_it_is_ready_is_a_failure() {
        let mut of = hearing(&[0]);
        hear(&mut of, 0, "MARK 0 begins");
        let (why, line) = of.ended(0, "ended with 137").unwrap();
        assert_eq!(why, "docker: ended with 137");
        assert!(
            String::from_utf8(line).unwrap().contains("tpu: alice/1 \u{b7} set-up failed: docker")
        );
    }
}
