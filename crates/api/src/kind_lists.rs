//! `/api/v1/flavors` and `/api/v1/images`: what kinds of target keep lists of.

use tpu_ops::front::kind_lists::{self, KindList};
use tpu_wire::pages::KindDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

const IMAGES: [Parameter; 1] = [Parameter::text("filter", "those with this in their names")];

/// What is read of those lists.
pub(super) fn routes() -> Vec<Route> {
    let of_kind = Gives::Json(shape::<KindDocument<'_>>);
    vec![
        Route::get("/api/v1/flavors", "Lists what jobs may ask for by name", of_kind, |asked| {
            listed(asked, KindList::Flavors)
        }),
        Route::get("/api/v1/images", "Lists the images of the registry", of_kind, |asked| {
            listed(asked, KindList::Images(asked.text("filter").unwrap_or_default()))
        })
        .with(&IMAGES),
    ]
}

fn listed(asked: &Asked<'_>, list: KindList<'_>) -> Result<Answer, Failure> {
    let answer = kind_lists::listed(asked.ctx, list)?.answer;
    Ok(Answer::document(&KindDocument { answer: &answer }))
}
