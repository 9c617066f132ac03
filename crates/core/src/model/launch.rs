//! How the run of an attempt was started, and how its command ended.

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
}
