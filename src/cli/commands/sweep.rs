//! `sweep`: the members of a group in the order of their losses.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::SweepArgs;
use crate::cli::print::{Output, block, table::columns};
use tpu_core::model::view::JobView;
use tpu_core::text::{counted, escape};
use tpu_ops::Error;
use tpu_ops::act::selection;
use tpu_ops::observe::snapshot;
use tpu_ops::observe::sweeps::{self, RankBy, Ranked};
use tpu_ops::waiting::queue::shown::{self, WaitingMembers};
use tpu_wire::jobs::JobPart;
use tpu_wire::sweep::{RankedPart, SweepDocument};

/// `sweep`.
pub(in crate::cli) fn sweep(app: &App, args: &SweepArgs) -> Outcome {
    let by = match args.by.as_str() {
        "last" => RankBy::Last,
        "best" => RankBy::Best,
        other => {
            return Err(Error::usage(format!("--by {other}: not known")).hint("last or best"));
        }
    };
    let ctx = app.ctx()?;
    let (whose, called) = app.requester()?.users_and_jobs_of_list(&args.words)?;
    if called.is_empty() {
        return Err(Error::usage("which group?")
            .hint("as in: tpu sweep 12; `tpu check` and `tpu queue` list the groups"));
    }
    let memory = &mut snapshot::LookMemory::default();
    let mut look = shown::look(ctx, memory, &whose, WaitingMembers::Folded)?;
    selection::choose_called(&*ctx.data()?, &mut look.jobs, &called, &whose)?;
    let (waiting, begun): (Vec<&JobView>, Vec<&JobView>) =
        look.jobs.iter().partition(|job| job.is_queued());
    let begun: Vec<&JobView> = begun.into_iter().filter(|job| job.leaf).collect();
    let ranked = sweeps::ranked(ctx, &begun, by);
    let waiting: usize = waiting
        .iter()
        .map(|job| {
            let queued = job.shown.queued.as_ref();
            queued.and_then(|queued| queued.members.as_ref()).map_or(1, Vec::len)
        })
        .sum();
    let rank_of = |one: &Ranked<'_>, at: usize| one.loss(by).map(|_| at + 1);
    let text = || {
        let row = |(at, one): (usize, &Ranked<'_>)| {
            let loss =
                |loss: Option<f64>| loss.map(|loss| format!("{loss:.4}")).unwrap_or_default();
            let last =
                if one.is_diverged { "nan".to_owned() } else { loss(one.last.map(|p| p.value)) };
            vec![
                rank_of(one, at).map(|rank| rank.to_string()).unwrap_or_default(),
                one.job.label(),
                block::status(one.job),
                last,
                loss(one.best.map(|point| point.value)),
                one.last.map(|point| format!("{:.0}", point.step)).unwrap_or_default(),
                escape(&one.differs.join(" ")).into_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = ranked.iter().enumerate().map(row).collect();
        let head = ["RANK", "MEMBER", "STATUS", "LAST", "BEST", "STEP", "DIFFERS IN"];
        let mut text = if rows.is_empty() { String::new() } else { columns(&head, &rows) };
        if waiting > 0 {
            text += &format!("{} of it not begun.\n", counted(waiting, "job"));
        }
        text
    };
    let document = || SweepDocument {
        jobs: ranked
            .iter()
            .enumerate()
            .map(|(at, one)| RankedPart {
                rank: rank_of(one, at),
                last_loss: one.last.filter(|_| !one.is_diverged).map(|point| point.value),
                best_loss: one.best.map(|point| point.value),
                step: one.last.map(|point| point.step),
                differs: one.differs.clone(),
                job: JobPart::from(one.job),
            })
            .collect(),
        waiting,
    };
    Ok(Output::either(&app.global, text, document))
}
