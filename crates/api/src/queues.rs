//! `/api/v1/queues`: which there are, and whether they let anything begin; `/api/v1/queue`: what waits in them, and why.

use tpu_core::model::ids::QueueName;
use tpu_core::model::queue::QueueState;
use tpu_ops::front::queue_list;
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_wire::queue::{QueueChangedDocument, QueueDocument, QueuePart, QueuesDocument};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::{Needs, Parameter};

const QUEUE: [Parameter; 1] = [Parameter::text("queue", "its name")];

/// What is done with queues.
pub(super) fn routes() -> Vec<Route> {
    let changed = Gives::Json(shape::<QueueChangedDocument<'_>>);
    let change = |path, says, run| {
        Route::post(path, says, changed, run).with(&QUEUE).needs(Needs::Administering)
    };
    vec![
        Route::get(
            "/api/v1/queues",
            "Lists queues; what waits in them stands among the jobs",
            Gives::Json(shape::<QueuesDocument<'_>>),
            list,
        ),
        Route::get(
            "/api/v1/queue",
            "Lists what waits, in the order of the turns: why, and when it is expected to begin",
            Gives::Json(shape::<QueueDocument<'_>>),
            waiting,
        )
        .slow(),
        change("/api/v1/queues/{queue}/pause", "Lets nothing of a queue begin", |asked| {
            set(asked, QueueState::Paused)
        }),
        change("/api/v1/queues/{queue}/resume", "Lets it begin again", |asked| {
            set(asked, QueueState::Open)
        }),
        change("/api/v1/queues/{queue}/drain", "Lets nothing more enter a queue", |asked| {
            set(asked, QueueState::Draining)
        }),
    ]
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let queues = asked.ctx.data()?.queues().all();
    Ok(Answer::document(&QueuesDocument { queues: queues.iter().map(QueuePart::from).collect() }))
}

/// As `tpu queue` says it, of those whose jobs may be seen.
fn waiting(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let mut list = queue_list::list(asked.ctx, &data, &[])?;
    list.entries.retain(|listed| asked.who.rights.may_see(&listed.entry.user));
    Ok(Answer::document(&QueueDocument::from(&list)))
}

fn set(asked: &Asked<'_>, state: QueueState) -> Result<Answer, Failure> {
    let name = QueueName::new(asked.text("queue").unwrap_or_default());
    let edit = QueueEdit { state: Some(state), ..QueueEdit::default() };
    let queue = edit::set(asked.ctx, &name, &edit)?;
    Ok(Answer::document(&QueueChangedDocument { queue: Some(QueuePart::from(&queue)) }))
}
