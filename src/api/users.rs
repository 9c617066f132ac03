//! `/api/v1/users`: who there is.

use crate::wire::users::{UserPart, UsersDocument};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};

/// What is read of users.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/v1/users", "Lists users", Gives::Json(shape::<UsersDocument<'_>>), list)]
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let seen = data.users().iter().filter(|user| asked.who.rights.may_see(&user.name));
    Ok(Answer::document(&UsersDocument { users: seen.map(UserPart::from).collect() }))
}
