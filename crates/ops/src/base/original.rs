//! The original's monitor beside us. It acts on the same jobs by rules of its own and knows no lease, so two would act on
//! one job: nothing here acts while it is at work, unless a person insists.

use tpu_core::model::data::Data;
use tpu_core::model::time::{self, Timestamp};
use tpu_core::plan::original::{SCRIPTS, script_of, silent_after_s, wrote_lately};
use tpu_system::sys::accounts;

use crate::{Ctx, Error};

/// The variable by which a person insists for all commands, as by `--beside-original`.
const INSISTS: &str = "TPU_BESIDE_ORIGINAL";

/// What shows that it is at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Original {
    /// Processes on this machine, `monitor.sh` before what it starts.
    Runs(Vec<OriginalProcess>),
    /// Its log in the data file has grown: it runs on another machine, or has just been ended.
    Wrote {
        /// So long ago.
        age_s: u64,
        /// In so many seconds it counts as gone, unless it writes again.
        left_s: u64,
    },
}

/// A process of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalProcess {
    script: &'static str,
    pid: u32,
    account: String,
}

impl Original {
    /// What was seen, as a part of a sentence.
    pub fn in_words(&self) -> String {
        match self {
            Self::Runs(processes) => {
                let one = |of: &OriginalProcess| {
                    format!("{} (process {} of {})", of.script, of.pid, of.account)
                };
                let all: Vec<String> = processes.iter().map(one).collect();
                format!("the original's monitor runs: {}", all.join(" and "))
            }
            Self::Wrote { age_s, .. } => {
                let ago = time::age(*age_s);
                format!("the original's monitor wrote to MONITOR_logs of the data file {ago} ago")
            }
        }
    }

    /// What a person does about it.
    fn advice(&self) -> String {
        let end = match self {
            Self::Runs(processes) => {
                let pids: Vec<String> = processes.iter().map(|of| of.pid.to_string()).collect();
                format!("end it first: kill {}", pids.join(" "))
            }
            Self::Wrote { left_s, .. } => format!(
                "end it where it runs; {} after its last entry it counts as gone",
                time::age(*left_s)
            ),
        };
        format!(
            "{end}; to see what would be done: tpu daemon run --watch-only; to act beside it all the same: \
             --beside-original"
        )
    }
}

/// Whether a person insists by the environment that the daemon acts beside the original's monitor.
pub fn is_insisted(ctx: &Ctx) -> bool {
    ctx.env.non_empty(INSISTS).is_some_and(|value| value != "0")
}

/// Its processes on this machine. The error says why nobody can tell.
pub fn by_processes(ctx: &Ctx) -> Result<Option<Original>, String> {
    let unseen = |e| format!("whether the original's monitor runs here cannot be seen: {e}");
    let started = ctx.procs.started_with(&SCRIPTS).map_err(unseen)?;
    let mut found: Vec<OriginalProcess> = started
        .into_iter()
        .filter_map(|process| {
            let script = script_of(&process.words)?;
            Some(OriginalProcess { script, pid: process.pid, account: accounts::name(process.uid) })
        })
        .collect();
    // Whoever ends what is started again before what starts it ends it in vain.
    found.sort_unstable_by_key(|of| (of.script == SCRIPTS[0], of.pid));
    Ok((!found.is_empty()).then_some(Original::Runs(found)))
}

/// Whether its log has grown lately: by the time of its newest entry, or when somebody saw it grow.
pub fn by_log(ctx: &Ctx, data: &Data, grew: Option<Timestamp>) -> Option<Original> {
    let log = data.original_log();
    let newest = log.newest(&ctx.env.local_zone()).max(grew)?;
    let age_s = wrote_lately(newest, log.every_s, ctx.clock.now())?;
    let left_s = silent_after_s(log.every_s).saturating_sub(age_s);
    Some(Original::Wrote { age_s, left_s })
}

/// Refuses to begin to act while it is at work. That nobody can tell is said, and no reason.
pub fn may_act_beside(ctx: &Ctx, data: &Data) -> Result<(), Error> {
    let by_processes = by_processes(ctx).unwrap_or_else(|unseen| {
        ctx.warn([unseen]);
        None
    });
    match by_processes.or_else(|| by_log(ctx, data, None)) {
        None => Ok(()),
        Some(original) => {
            let seen = original.in_words();
            Err(Error::refused(format!("{seen}: two of them would act on the same jobs"))
                .hint(original.advice()))
        }
    }
}
