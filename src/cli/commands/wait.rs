//! `tpu wait`: returns when jobs have ended.

use std::time::Duration;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Wait, WaitFor};
use crate::cli::print::Output;
use crate::cli::progress::Progress;
use crate::model::job::Status;
use crate::model::time;
use crate::model::view::{JobView, Whose};
use crate::ops::whose::{Purpose, Several};
use crate::ops::{Error, Kind, snapshot};
use crate::wire::jobs::{JobPart, WaitDocument};

/// How often we look.
const POLL: Duration = Duration::from_millis(500);

/// Waits for jobs, each followed to the leaf of its lineage.
pub(in crate::cli) fn wait(app: &App, args: &Wait) -> Outcome {
    let ctx = app.ctx()?;
    let jobs = app.requester()?.many_jobs(
        &args.words,
        Several { all: false, purpose: Purpose::Look },
        |_| true,
    )?;
    let timeout = args.timeout.as_deref().map(duration).transpose()?;
    let start = ctx.clock.monotonic();
    let mut memory = snapshot::LookMemory::default();
    let progress = Progress::new(app, "waiting");
    loop {
        let mut views = Vec::new();
        for job in &jobs {
            let look = snapshot::look(ctx, &mut memory, &Whose::of([job.user.clone()]))?;
            let leaf = look
                .jobs
                .iter()
                .find(|view| view.id == *job)
                .and_then(|view| view.lineage.last().copied());
            let view = look.jobs.into_iter().find(|view| Some(view.id.window) == leaf);
            views.push(view.ok_or_else(|| {
                Error::not_found(format!("{job} was cleaned away"))
                    .hint("`tpu history` tells how it ended")
            })?);
        }
        progress.say(standing(&views));
        if let Some(output) = verdict(args.what, &views) {
            return Ok(output);
        }
        if timeout.is_some_and(|limit| ctx.clock.monotonic().saturating_sub(start) >= limit) {
            let what = match args.what {
                WaitFor::End | WaitFor::Finished => "the jobs are not",
                WaitFor::Error => "no job has failed",
            };
            return Err(Error::new(Kind::TimeOver, format!("the time is over and {what}")));
        }
        ctx.clock.sleep(POLL);
    }
}

/// How the jobs are, on one line.
fn standing(views: &[JobView]) -> String {
    let one = |view: &JobView| {
        let done = view.shown.progress.percent_done().map(|done| format!(" {done}"));
        format!("{} {}{}", view.id, view.shown.status, done.unwrap_or_default())
    };
    views.iter().map(one).collect::<Vec<_>>().join(" · ")
}

/// What to return, once it is decided. Exit 0 only when all finished well.
fn verdict(what: WaitFor, views: &[JobView]) -> Option<Output> {
    let ended = |view: &JobView| view.shown.unknown.is_none() && !view.shown.status.is_live();
    let well = |view: &JobView| view.shown.status == Status::Finished;
    let decided = match what {
        WaitFor::End => views.iter().all(ended),
        WaitFor::Finished => views.iter().all(well) || views.iter().any(|v| ended(v) && !well(v)),
        WaitFor::Error => {
            views.iter().any(|view| view.failure().is_some()) || views.iter().all(ended)
        }
    };
    if !decided {
        return None;
    }
    let mut text = String::new();
    for view in views {
        text += &format!("{} is {}\n", view.id, view.shown.status);
    }
    let document = WaitDocument { jobs: views.iter().map(JobPart::from).collect() };
    Some(Output::new(text, &document).code(u8::from(!views.iter().all(well))))
}

fn duration(text: &str) -> Result<Duration, Error> {
    let seconds = time::parse_age(text).ok_or_else(|| {
        Error::usage(format!("--timeout {text}: not a time")).hint("as in 90s, 30m or 2h")
    })?;
    Ok(Duration::from_secs(seconds))
}
