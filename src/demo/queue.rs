//! The demo's queue: a small sweep for one target, whose members begin one after the other as it becomes free.

use std::ffi::OsString;

use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::member::Array;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::waiting::queue::submit::{self, Submission};
use tpu_ops::{Ctx, Error};

/// The learning rates of the sweep.
pub(super) const RATES: [&str; 3] = ["0.003", "0.01", "0.03"];

/// Puts the sweep into the queue. The daemon lets its members begin.
pub(super) fn fill(ctx: &Ctx, user: &str, target: &str) -> Result<JobId, Error> {
    let mut configs = vec![("lr".to_owned(), RATES.join(","))];
    let wrong = |e: &dyn std::fmt::Display| Error::failed(format!("the demo's sweep: {e}"));
    let sweep = Sweep::take(&mut configs, false).map_err(|e| wrong(&e))?;
    let last = sweep.members().saturating_sub(1);
    let words = ["./train.sh", "--config.steps=45", "--config.step_ms=100"];
    let spec = JobSpec {
        configs,
        array: Some(Array::parse(&format!("0-{last}")).map_err(|e| wrong(&e))?),
        tag: Some("sweep".to_owned()),
        log_stage: true,
        command: Some(words.map(OsString::from).to_vec()),
        ..JobSpec::on(TargetRequest::Named(target.to_owned()))
    };
    let request = RunRequest::new(UserName::from(user), spec);
    let how = Submission { sweep: Some(sweep), ..Submission::default() };
    submit::enter(ctx, &request, &how)
}
