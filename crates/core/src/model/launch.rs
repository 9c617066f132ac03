//! How the run of an attempt was started, and how its command ended.

use super::facts::{RunFact, RunState};
use super::ids::LaunchToken;
use super::time::Timestamp;
use super::words::words;

/// After this many seconds a claimed launch of which there is nothing to be seen has failed.
pub const LAUNCH_LIMIT_S: u64 = 30;

/// Which way a job is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchMode {
    /// The users' own `staging.sh` does the work and calls back.
    Script,
    /// A command; staging, log and exit code are ours.
    Native,
}

words! {
    /// The spelling in data.json.
    LaunchMode {
        Script: "script",
        Native: "native",
    }
}

impl LaunchMode {
    /// Reads the spelling in data.json.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// How and when the window of a job was opened (`extra_msgs.launch`). Absent in records of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The mark that record, pane and processes share.
    pub token: LaunchToken,
    /// Script or native.
    pub mode: LaunchMode,
    /// When the claim was made.
    pub at: Timestamp,
    /// Whether the window is known to exist. Until then the launch can be adopted or given up.
    pub confirmed: bool,
    /// Exit code of the job's command, once recorded.
    pub exit: Option<i32>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When the machine that it began on was created, once its control plane has been seen to say so. A
    /// target of the same name that was created at another instant is another machine.
    pub machine: Option<Timestamp>,
    /// Whether it was seen where it ran that nothing of it is at work any more, though nobody has reported an end: from
    /// elsewhere nobody could tell.
    pub over: bool,
    /// Since when it had waited in a queue by then; `None` where it began at once.
    pub queued: Option<Timestamp>,
    /// From what it goes on; `None` where it begins anew.
    pub from: Option<Checkpoint>,
    /// How many attempts of its lineage were before it.
    pub attempt: u32,
    /// When its engine had it at work, as far as that was seen: none while it has only waited there. `None` where it does not
    /// wait once it is claimed, and in records of earlier versions: it is at work from the claim on.
    pub worked: Option<Vec<Stretch>>,
}

/// A time in which an attempt was at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it began.
    pub from: Timestamp,
    /// When it was over; `None` while it is not, or while only the end of the attempt tells.
    pub until: Option<Timestamp>,
}

impl Stretch {
    /// How long it was, where one that is open is so until `end`.
    pub fn lasted_s(&self, end: Timestamp) -> u64 {
        self.until.unwrap_or(end).seconds_since(self.from)
    }
}

/// From what an attempt goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The checkpoint; `None` where nobody knows whether there is one.
    pub path: Option<String>,
    /// The directory in which it lies, or may lie; empty in records of earlier versions.
    pub dir: String,
    /// Its step, where that is known.
    pub step: Option<u64>,
}

impl Launch {
    /// The step of the checkpoint from which it goes on, where that is known.
    pub fn from_step(&self) -> Option<u64> {
        self.from.as_ref()?.step
    }

    /// One that was claimed then, and of which nothing else is known yet.
    pub fn claimed(token: impl Into<LaunchToken>, mode: LaunchMode, at: Timestamp) -> Self {
        let token = token.into();
        Self {
            token,
            mode,
            at,
            confirmed: false,
            exit: None,
            ended: None,
            machine: None,
            over: false,
            queued: None,
            from: None,
            attempt: 0,
            worked: None,
        }
    }

    /// When it was at work, as far as its record tells; `None` where that is from the claim on. What has ended with an exit
    /// code has been at work, also where nobody saw it begin.
    pub fn stretches(&self) -> Option<Vec<Stretch>> {
        self.worked.clone().filter(|all| !all.is_empty() || self.exit.is_none())
    }

    /// For how many seconds it was at work; `None` while it has not ended, and of what has only waited.
    pub fn ran_s(&self) -> Option<u64> {
        let ended = self.ended?;
        match self.stretches() {
            Some(all) if all.is_empty() => None,
            Some(all) => Some(all.iter().map(|of| of.lasted_s(ended)).sum()),
            None => Some(ended.seconds_since(self.at)),
        }
    }

    /// When it was at work by its record and by what was just seen of its run.
    pub fn worked_by(&self, run: &RunFact, now: Timestamp) -> Option<Vec<Stretch>> {
        let waits = run.state == RunState::Pending;
        let Some(known) = &self.worked else {
            return if waits { Some(Vec::new()) } else { None };
        };
        if self.ended.is_some() {
            return self.stretches();
        }
        let mut all = known.clone();
        if waits {
            close(&mut all, now);
        } else if let Some(from) = run.began.or_else(|| {
            // An engine that does not say when it began has it at work now.
            let is_news = all.last().is_none_or(|last| last.until.is_some());
            (run.state == RunState::Running && is_news).then_some(now)
        }) {
            begin(&mut all, from.max(self.at));
        }
        Some(all)
    }
}

/// Ends the stretch that is open.
fn close(all: &mut [Stretch], at: Timestamp) {
    if let Some(last) = all.last_mut() {
        last.until.get_or_insert(at.max(last.from));
    }
}

/// Adds a stretch that has begun then, unless it is known.
fn begin(all: &mut Vec<Stretch>, from: Timestamp) {
    if all.last().is_some_and(|last| last.from >= from) {
        return;
    }
    close(all, from);
    all.push(Stretch { from, until: None });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    fn run(state: RunState, began: Option<i64>) -> RunFact {
        RunFact { began: began.map(at), ..RunFact::of_engine(state, "raw", None) }
    }

    #[test]
    fn only_what_its_engine_runs_is_at_work() {
        let of = |worked| Launch { worked, ..Launch::claimed("t", LaunchMode::Native, at(100)) };
        let open = |from: i64| Stretch { from: at(from), until: None };
        let closed = |from: i64, until: i64| Stretch { until: Some(at(until)), ..open(from) };
        let queued = of(Some(Vec::new()));
        let pending = run(RunState::Pending, None);
        assert_eq!(queued.worked_by(&pending, at(900)), Some(Vec::new()), "it waits");
        assert_eq!(
            of(None).worked_by(&pending, at(900)),
            Some(Vec::new()),
            "also by an old record"
        );
        let runs = run(RunState::Running, Some(400));
        assert_eq!(queued.worked_by(&runs, at(900)), Some(vec![open(400)]));
        let unsaid = run(RunState::Running, None);
        assert_eq!(queued.worked_by(&unsaid, at(900)), Some(vec![open(900)]));
        let at_work = of(Some(vec![open(400)]));
        assert_eq!(at_work.worked_by(&unsaid, at(950)), Some(vec![open(400)]), "the same one");
        assert_eq!(at_work.worked_by(&pending, at(950)), Some(vec![closed(400, 950)]), "again");
        let again = of(Some(vec![closed(400, 950)]));
        let anew = run(RunState::Running, Some(990));
        let both = Some(vec![closed(400, 950), open(990)]);
        assert_eq!(again.worked_by(&anew, at(999)), both);
        assert_eq!(
            of(None).worked_by(&anew, at(999)),
            None,
            "a window is at work from its claim on"
        );
    }

    #[test]
    fn what_ended_without_ever_being_at_work_was_not() {
        let of = |exit, worked| Launch {
            exit,
            ended: Some(at(500)),
            worked,
            ..Launch::claimed("t", LaunchMode::Native, at(100))
        };
        assert_eq!(of(None, Some(Vec::new())).stretches(), Some(Vec::new()), "it was cancelled");
        assert_eq!(of(Some(0), Some(Vec::new())).stretches(), None, "nobody saw it begin");
        let begun = Stretch { from: at(400), until: None };
        assert_eq!(of(Some(0), Some(vec![begun])).stretches(), Some(vec![begun]));
        let ran =
            [None, Some(Vec::new()), Some(vec![begun])].map(|worked| of(None, worked).ran_s());
        assert_eq!(ran, [Some(400), None, Some(100)]);
    }
}
