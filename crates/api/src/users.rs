//! `/api/v1/users`: who there is, and where they work.

use tpu_ops::base::ctx::user_of;
use tpu_wire::users::{ConfigAliasesDocument, DirsDocument, UserPart, UsersDocument};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

const USER: [Parameter; 1] = [Parameter::text("user", "whose")];

/// What is read of users.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/users", "Lists users", Gives::Json(shape::<UsersDocument<'_>>), list),
        Route::get(
            "/api/v1/users/{user}/dirs",
            "Lists the directories of a user, by their slots",
            Gives::Json(shape::<DirsDocument<'_>>),
            dirs,
        )
        .with(&USER),
        Route::get(
            "/api/v1/users/{user}/aliases",
            "Lists the short names of a user for configs",
            Gives::Json(shape::<ConfigAliasesDocument<'_>>),
            aliases,
        )
        .with(&USER),
    ]
}

fn dirs(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (data, name) = (asked.ctx.data()?, asked.user());
    let user = user_of(&data, &name)?;
    Ok(Answer::document(&DirsDocument::from((&name, &*user.working_dir))))
}

fn aliases(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (data, name) = (asked.ctx.data()?, asked.user());
    Ok(Answer::document(&ConfigAliasesDocument::from((user_of(&data, &name)?, &name))))
}

fn list(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let data = asked.ctx.data()?;
    let seen = data.users().iter().filter(|user| asked.who.rights.may_see(&user.name));
    Ok(Answer::document(&UsersDocument { users: seen.map(UserPart::from).collect() }))
}
