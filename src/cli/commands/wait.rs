//! `tpu wait`: returns when jobs have ended.

use std::time::Duration;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Wait, WaitFor};
use crate::cli::print::Output;
use crate::cli::progress::Progress;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Status;
use tpu_core::model::time;
use tpu_core::model::view::{JobView, Whose};
use tpu_ops::act::results;
use tpu_ops::base::called::WaitingCalled;
use tpu_ops::observe::snapshot;
use tpu_ops::waiting::queue::{
    self,
    shown::{self, WaitingMembers},
};
use tpu_ops::waiting::whose::{Meant, Purpose, Several};
use tpu_ops::{Ctx, Error, Kind};
use tpu_wire::jobs::{JobPart, WaitDocument};

/// How often we look.
const POLL: Duration = Duration::from_millis(500);

/// Waits for jobs, each followed to the leaf of its lineage.
pub(in crate::cli) fn wait(app: &App, args: &Wait) -> Outcome {
    let ctx = app.ctx()?;
    let Meant { jobs, waiting } = app.requester()?.many(
        &args.words,
        Several { all: false, purpose: Purpose::Look },
        |_| true,
    )?;
    let mut awaited: Vec<Awaited> = jobs.into_iter().map(Awaited::Job).collect();
    awaited.extend(waiting.into_iter().map(Awaited::Waiting));
    let whose = Whose::of(awaited.iter().map(|one| one.id().user.clone()));
    let timeout = args.timeout.as_deref().map(duration).transpose()?;
    let start = ctx.clock.monotonic();
    let mut memory = snapshot::LookMemory::default();
    let progress = Progress::new(app, "waiting");
    loop {
        let look = shown::look(ctx, &mut memory, &whose, WaitingMembers::Folded)?;
        let mut views: Vec<JobView> = Vec::new();
        for one in &mut awaited {
            let found = one.views(ctx, &look.jobs)?;
            views.extend(
                found
                    .into_iter()
                    .filter(|view| views.iter().all(|known| known.id != view.id))
                    .collect::<Vec<_>>(),
            );
        }
        progress.say(standing(&views));
        if let Some(output) = verdict(ctx, args.what, &views) {
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

/// What is waited for.
enum Awaited {
    /// A job, by one of its attempts.
    Job(JobId),
    /// What has no attempt yet.
    Waiting(WaitingCalled),
}

impl Awaited {
    fn id(&self) -> &JobId {
        match self {
            Self::Job(id) => id,
            Self::Waiting(called) => &called.id,
        }
    }

    /// How it is: the newest attempts, and those that wait on. What has begun under another number is that from then
    /// on.
    fn views(&mut self, ctx: &Ctx, jobs: &[JobView]) -> Result<Vec<JobView>, Error> {
        let called = match self {
            Self::Job(id) => return newest(id, jobs).map(|view| vec![view]),
            Self::Waiting(called) => called,
        };
        let is_meant = |index: u32| called.members.as_ref().is_none_or(|all| all.contains(&index));
        let mut views: Vec<JobView> = Vec::new();
        for view in jobs.iter().filter(|view| view.id.user == called.id.user) {
            match (&view.shown.queued, view.member) {
                (Some(_), _) if view.id == called.id => views.extend(restricted(view, is_meant)),
                (None, Some(member)) if member.group == called.id.window => {
                    views.extend((view.leaf && is_meant(member.index)).then(|| view.clone()));
                }
                (None, None) if view.id == called.id => views.push(newest(&called.id, jobs)?),
                (_, _) => {}
            }
        }
        if !views.is_empty() {
            return Ok(views);
        }
        let Some(now) = queue::renumbered(ctx, &called.id)? else {
            let what = format!("{called} was taken out of the queue and never began");
            return Err(Error::not_found(what)
                .hint(format!("who did that: tpu history {}", called.id.window)));
        };
        let view = newest(&now, jobs)?;
        *self = Self::Job(now);
        Ok(vec![view])
    }
}

/// The members that wait, of those that are meant.
fn restricted(view: &JobView, is_meant: impl Fn(u32) -> bool) -> Option<JobView> {
    let mut view = view.clone();
    let waits = view.shown.queued.as_mut()?;
    let is_left = match (&mut waits.members, view.member) {
        (Some(members), _) => {
            members.retain(|index| is_meant(*index));
            !members.is_empty()
        }
        (None, Some(member)) => is_meant(member.index),
        (None, None) => true,
    };
    is_left.then_some(view)
}

/// The newest attempt of the lineage of a job.
fn newest(job: &JobId, jobs: &[JobView]) -> Result<JobView, Error> {
    let is_it = |view: &&JobView| view.id.user == job.user && !view.is_queued();
    let mut own = jobs.iter().filter(is_it);
    let leaf = own.find(|view| view.id == *job).and_then(|view| view.lineage.last().copied());
    let view = jobs.iter().filter(is_it).find(|view| Some(view.id.window) == leaf);
    view.cloned().ok_or_else(|| {
        Error::not_found(format!("{job} was cleaned away")).hint("`tpu history` tells how it ended")
    })
}

/// How the jobs are, on one line.
fn standing(views: &[JobView]) -> String {
    let one = |view: &JobView| {
        if let Some(queued) = &view.shown.queued {
            return format!("{} {}, {}", view.id, queued.word(), queued.in_words());
        }
        let done = view.shown.progress.percent_done().map(|done| format!(" {done}"));
        format!("{} {}{}", view.id, view.shown.status, done.unwrap_or_default())
    };
    views.iter().map(one).collect::<Vec<_>>().join(" · ")
}

/// What to return, once it is decided. Exit 0 only when all finished well.
fn verdict(ctx: &Ctx, what: WaitFor, views: &[JobView]) -> Option<Output> {
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
        text += &match &view.shown.queued {
            Some(queued) => format!("{} is {}\n", view.id, queued.word()),
            None => format!("{}\n", results::last_words(ctx, view)),
        };
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
