//! `/api/v1/hosts`: machines of one's own, and who is there.

use tpu_core::model::ids::TargetName;
use tpu_ops::act::hosts::{self, edit};
use tpu_ops::{Ctx, Error};
use tpu_wire::hosts::{HostsChangedDocument, HostsDocument};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::{Needs, Parameter};

const HOST: [Parameter; 1] = [Parameter::text("host", "its name")];

/// What is read of machines, and done with them.
pub(super) fn routes() -> Vec<Route> {
    let changed = Gives::Json(shape::<HostsChangedDocument<'_>>);
    let change = |path, says, run| {
        Route::post(path, says, changed, run).with(&HOST).needs(Needs::Administering)
    };
    vec![
        Route::get(
            "/api/v1/hosts",
            "Lists machines of one's own, and who is there",
            Gives::Json(shape::<HostsDocument<'_>>),
            list,
        ),
        change("/api/v1/hosts/{host}/drain", "Lets nothing new begin on a machine", |asked| {
            changed_by(asked, |ctx, hosts| edit::drain(ctx, hosts, None))
        }),
        change("/api/v1/hosts/{host}/undrain", "Lets jobs begin on it again", |asked| {
            changed_by(asked, edit::undrain)
        }),
    ]
}

fn changed_by(
    asked: &Asked<'_>,
    act: impl FnOnce(&Ctx, &[String]) -> Result<Vec<TargetName>, Error>,
) -> Result<Answer, Failure> {
    let host = asked.text("host").unwrap_or_default().to_owned();
    let hosts = act(asked.ctx, &[host])?;
    Ok(Answer::document(&HostsChangedDocument { hosts: &hosts }))
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    asked.who.sees_everybody()?;
    let hosts = hosts::list(asked.ctx, &[])?;
    Ok(Answer::document(&HostsDocument::at(&hosts, asked.ctx.clock.now())))
}
