//! `tpu history`: the journal.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::History;
use crate::cli::print::{Output, table};
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::time::Zone;
use tpu_ops::Kind;
use tpu_ops::act::selection;
use tpu_ops::base::called::JobWord;
use tpu_ops::base::known_as;
use tpu_ops::observe::journal::{self, Event};
use tpu_ops::waiting::whose::{About, Purpose};
use tpu_system::sys::accounts;
use tpu_wire::events::EventsDocument;

use super::archive;

/// Prints the newest events, oldest first.
pub(in crate::cli) fn history(app: &App, args: &History) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let mut sorted = selection::sort(&args.words, &data)?;
    sorted.no_selector()?;
    let mut jobs = sorted.take_jobs(&data)?;
    sorted.no_pair()?;
    jobs.dedup();
    let requester = app.requester()?;
    let (user, window) = match jobs.as_slice() {
        // Without a user or a window: everybody's events.
        [] if sorted.user.is_none() => (None, None),
        [] => {
            let about = About { word: sorted.user, purpose: Purpose::Look, jobs: &jobs };
            (Some(requester.user(&data, &about)?), None)
        }
        // One that was cleaned away has its events all the same, and so has a group.
        [JobWord::Number(number)] => {
            let about = About { word: sorted.user, purpose: Purpose::Look, jobs: &jobs };
            (Some(requester.user(&data, &about)?), Some(*number))
        }
        jobs => {
            let job = match requester.one_of(&data, (sorted.user, jobs), Purpose::Look) {
                Err(error) if error.kind == Kind::NotFound => {
                    let hint =
                        |id: &JobId| format!("archived: tpu history {} {}", id.window, id.user);
                    archive::meant(app, &args.words, error, &hint)?
                }
                found => found?,
            };
            (Some(job.user), Some(job.window))
        }
    };
    let events = journal::newest(ctx, user.as_ref(), window, args.lines)?;
    let mut text = lines(app, (&data, &events), &app.zone(&data, user.as_ref())?);
    if events.is_empty() {
        "Nothing has happened yet.".clone_into(&mut text);
    }
    Ok(Output::new(text, &EventsDocument::from(&*events)))
}

/// Who did it: the command, and the account where that is another one than one's own.
fn by(event: &Event, own: &str) -> String {
    match event.account.as_deref().filter(|account| *account != own) {
        Some(other) => format!("{} by {other}", event.actor),
        None => event.actor.clone(),
    }
}

/// Events for people, one on each line.
pub(super) fn lines(app: &App, (data, events): (&Data, &[Event]), zone: &Zone) -> String {
    let own = accounts::name(app.env.uid);
    let row = |event: &Event| {
        let job = match (&event.user, event.job) {
            (Some(user), Some(window)) => {
                known_as::with_name(data, &JobId::new(user.clone(), window))
            }
            (Some(user), None) => user.to_string(),
            (None, _) => "-".to_owned(),
        };
        let what = tpu_core::text::escape(&event.text);
        let at = zone.stamp(event.at);
        vec![at, job, event.kind.clone(), format!("{what}  ({})", by(event, &own))]
    };
    table::aligned(&events.iter().map(row).collect::<Vec<_>>())
}
