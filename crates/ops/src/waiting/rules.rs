//! Tags, rules and withdrawn errors: small changes to one record.

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Event, StoredVerdict};
use tpu_core::model::rules::Rules;
use tpu_core::model::view::JobView;

use crate::act::outlook;
use crate::base::ctx::job_mut;
use crate::base::records;
use crate::{Ctx, Error};

/// Tags jobs; an empty tag takes the tags away.
pub fn add_tag(ctx: &Ctx, ids: &[JobId], tag: &str) -> Result<(), Error> {
    ctx.transact(|tx| {
        for id in ids {
            job_mut(&mut tx.data, id)?.job_tags = (!tag.is_empty()).then(|| tag.to_owned());
            records::note(tx, id, "tag", tag);
        }
        Ok(())
    })
}

/// Tags a job and sets its rules, both or neither; what is not said stays. Of what waits it is what it will begin with.
pub fn change(
    ctx: &Ctx,
    id: &JobId,
    tag: Option<&str>,
    rules: Option<&Rules>,
) -> Result<(), Error> {
    ctx.transact(|tx| {
        let own = tag.map(|tag| (!tag.is_empty()).then(|| tag.to_owned()));
        let mut record = Some(id.clone());
        if let Some(entry) = tx.data.queues_mut().entry_mut(id) {
            if let Some(own) = &own {
                entry.spec.tag.clone_from(own);
            }
            if let Some(rules) = rules {
                entry.spec.rules = Some(rules.to_string());
            }
            // What goes on from another attempt takes over what is said of that.
            record = entry.succeeds.as_ref().map(|of| JobId::new(id.user.clone(), of.job));
        }
        if let Some(record) = record {
            let job = job_mut(&mut tx.data, &record)?;
            if let Some(own) = own {
                job.job_tags = own;
            }
            if let Some(rules) = rules {
                job.rules = rules.clone();
            }
        }
        if let Some(tag) = tag {
            records::note(tx, id, "tag", tag);
        }
        if let Some(rules) = rules {
            records::note(tx, id, "rule", rules.to_string());
        }
        Ok(())
    })
}

/// Sets what happens by itself when a job fails.
pub fn set_rule(ctx: &Ctx, id: &JobId, rules: &Rules) -> Result<(), Error> {
    ctx.transact(|tx| {
        job_mut(&mut tx.data, id)?.rules = rules.clone();
        records::note(tx, id, "rule", rules.to_string());
        Ok(())
    })
}

/// Refuses where the error that a job shows cannot be withdrawn; how the job is, and that error.
pub fn may_ignore_error(ctx: &Ctx, id: &JobId) -> Result<(JobView, ErrorKind), Error> {
    let view = outlook::look_at(ctx, id)?;
    let Some(kind) = view.failure() else {
        return Err(Error::refused(format!("{id} is {} and shows no error", view.shown.status))
            .hint(format!("tpu explain w={} {} says why", id.window, id.user)));
    };
    // Only what is at work can count as running again: an end stays one, whatever its text says.
    let why = match (kind, view.exit, view.window_alive) {
        (ErrorKind::Preempted, ..) => Some("its target was taken away".to_owned()),
        (_, Some(exit), _) => Some(format!("it has ended: {exit}")),
        (_, None, Some(false)) => Some("it runs no more".to_owned()),
        (_, None, Some(true) | None) => None,
    };
    if let Some(why) = why {
        let of = format!("w={} {}", id.window, id.user);
        return Err(Error::refused(format!("{id} cannot count as running: {why}")).hint(format!(
            "resume it from its checkpoint, or start it from scratch: tpu resume {of}, tpu rerun {of}"
        )));
    }
    Ok((view, kind))
}

/// Withdraws the error that a job shows, until it prints something else that is one.
pub fn ignore_error(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let (view, kind) = may_ignore_error(ctx, id)?;
    ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        if job.status != view.stored {
            return Err(Error::refused(format!("{id} has become {} meanwhile", job.status))
                .hint("`tpu check` shows where it stands; then try again"));
        }
        if !job.status.is_live() {
            job.apply(&Event::ErrorWithdrawn)?;
        }
        job.verdict = Some(StoredVerdict {
            ignored: true,
            ..StoredVerdict::new(kind, view.shown.evidence.as_ref())
        });
        records::note(tx, id, "ignored", kind.as_str());
        Ok(())
    })
}
