//! Gives targets back that were made for a job and go with it (`tpu: {delete_after: done}`).
//!
//! What is to go is written down when its job enters the queue, and that it was made for it once it is there; the
//! daemon gives it back when nothing more comes of the job and nobody else has it or waits for it. Whoever comes after
//! a crash finds it still there, on its way out, or gone. What was there before, or was made anew by somebody else,
//! stays.

use crate::act::provision;
use crate::base::{records, watch};
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::loan::Loan;
use tpu_core::model::spec::TargetRequest;
use tpu_core::plan::budget::comes_back;
use tpu_engine::provider::Verb;
use tpu_system::store::Tx;

use super::order;

/// The targets that may go now, as far as records tell.
pub fn look(ctx: &Ctx) -> Result<Vec<TargetName>, Error> {
    let data = ctx.data()?;
    let here = watch::place(ctx);
    let is_due = |loan: &&Loan| {
        let is_ours = loan.place == here || !watch::is_attended(ctx, &loan.place);
        is_ours && is_over(&data, &loan.job) && !is_wanted(&data, loan)
    };
    Ok(data.queues().loans.iter().filter(is_due).map(|loan| loan.target.clone()).collect())
}

/// Writes down that a target goes with a job.
pub(super) fn promise(tx: &mut Tx<'_>, job: &JobId, ordered: &TargetRequest, place: &str) {
    let names = match ordered {
        TargetRequest::Named(name) => std::slice::from_ref(name),
        TargetRequest::Any(any) => any.among.as_slice(),
    };
    tx.data.queues_mut().loans.extend(names.iter().map(|name| Loan {
        target: TargetName::from(name.as_str()),
        job: job.clone(),
        place: place.to_owned(),
        made: None,
    }));
}

/// Writes down by which request a target is made for a job, where it goes with it: before it is asked for, since
/// whoever sees it there first may begin the job, and nobody makes it any more then.
pub(super) fn made_by(
    ctx: &Ctx,
    job: &JobId,
    target: &TargetName,
    mark: &str,
) -> Result<(), Error> {
    let is_it = |loan: &Loan| {
        loan.target == *target && loan.job == *job && loan.made.as_deref() != Some(mark)
    };
    if !ctx.data()?.queues().loans.iter().any(is_it) {
        return Ok(());
    }
    ctx.transact(|tx| {
        let loans = tx.data.queues_mut().loans.iter_mut();
        for loan in loans.filter(|loan| is_it(loan)) {
            loan.made = Some(mark.to_owned());
        }
        Ok(())
    })
}

/// Whether nothing more comes of a job by itself.
fn is_over(data: &Data, id: &JobId) -> bool {
    let queues = data.queues();
    if queues.entry(id).is_some() || queues.successor_of(id).is_some() {
        return false;
    }
    let Some(job) = data.job(id) else { return true };
    let is_at_work = job.status.is_live() || job.is_being_killed() || job.intent.is_some();
    let is_open = matches!(job.status, Status::Error(_)) && comes_back(job);
    job.child.is_none() && !is_at_work && !is_open
}

/// Whether somebody else waits for a target, or has it, as far as records tell.
fn is_wanted(data: &Data, loan: &Loan) -> bool {
    order::is_in_use(data, &loan.target)
}

/// The words by which requests are known that were made for a job: for its place in the queue, and by its rules.
fn marks<'d>(data: &'d Data, loan: &'d Loan) -> Vec<&'d str> {
    let user = data.user(&loan.job.user);
    let lineage = user.and_then(|user| Lineage::of(user, loan.job.window));
    let windows = lineage.map(|lineage| lineage.windows).unwrap_or_default();
    let jobs = windows.into_iter().filter_map(|window| user?.job(window));
    let token = |job: &'d Job| job.launch.as_ref().map(|launch| launch.token.as_str());
    jobs.filter_map(token).chain(loan.made.as_deref()).collect()
}

/// Whether the job has ever run on a target: else it was asked for in vain.
fn has_run_on(data: &Data, loan: &Loan) -> bool {
    data.job(&loan.job).is_some_and(|job| job.tpu == loan.target)
}

/// Gives a target back, if it is one to be given back. What came of it, on one line.
pub fn give_back(ctx: &Ctx, target: &TargetName) -> Result<String, Error> {
    provision::alone(ctx, target, || {
        let data = ctx.data()?;
        let here = |loan: &&Loan| loan.target == *target && is_over(&data, &loan.job);
        let Some(loan) = data.queues().loans.iter().find(here) else {
            return Ok(format!("{target}: nobody gives it back any more"));
        };
        let fact = ProviderFacts::ask_of(ctx, &data, target).fact(&data, target);
        let job = &loan.job;
        let is_ours = loan.made.is_some()
            && fact.request.as_deref().is_some_and(|request| {
                marks(&data, loan).iter().any(|mark| request.starts_with(mark))
            });
        let text = match fact.state {
            TargetState::Unknown => return Err(provision::unknown(target, &fact.raw_state)),
            TargetState::Gone if loan.made.is_none() || !has_run_on(&data, loan) => {
                forget(ctx, loan, None)?;
                return Ok(format!("{target} was not made for {job}"));
            }
            TargetState::Gone => format!("{target} is gone: {job}, for which it was made, is over"),
            TargetState::Deleting => return Ok(format!("{target} is being deleted")),
            _ if !is_ours => format!("{target} stays: it was not made for {job}, which is over"),
            _ => {
                may_go(ctx, target)?;
                provision::turn(ctx, target, fact.zone.as_deref(), Verb::Delete, &mut || {
                    may_go(ctx, target)
                })?;
                fail::fail_point!("loan-deleted");
                format!("{target} is deleted: {job}, for which it was made, is over")
            }
        };
        forget(ctx, loan, Some(&text))?;
        Ok(text)
    })
}

/// Refuses while anybody uses a target, by the facts, or waits for it.
fn may_go(ctx: &Ctx, target: &TargetName) -> Result<(), Error> {
    let data = ctx.data()?;
    if order::is_in_use(&data, target) {
        return Err(Error::refused(format!("somebody waits for {target}, or has it"))
            .hint("it goes when nobody does any more"));
    }
    if let Some(job) = snapshot::users_of_target(ctx, &data, target).live.first() {
        return Err(Error::refused(format!("{target} is in use by {job}"))
            .hint("it is deleted when nobody uses it any more"));
    }
    Ok(())
}

/// Takes the promise away, with a line about the job that says what has become of it.
fn forget(ctx: &Ctx, loan: &Loan, text: Option<&str>) -> Result<(), Error> {
    ctx.transact(|tx| {
        let before = tx.data.queues().loans.len();
        tx.data.queues_mut().loans.retain(|known| known != loan);
        if let Some(text) = text.filter(|_| tx.data.queues().loans.len() < before) {
            records::note(tx, &loan.job, "delete", text);
        }
        Ok(())
    })
}
