//! Who is at work here: the user whom the environment, the settings or the account name. Nobody is asked.

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_system::sys::accounts;
use tpu_system::sys::env::Env;

use super::ctx::user_of;
use crate::{Ctx, Error};

/// The user who is at work here, whoever a request is about: whom the environment, the settings or the
/// account name.
pub fn user_at_work(ctx: &Ctx, data: &Data) -> Result<Option<UserName>, Error> {
    let setting = ctx.settings(None)?.user;
    if let Some(name) = setting.as_deref().map(UserName::from) {
        return user_of(data, &name).map(|user| Some(user.name.clone()));
    }
    let as_user = as_user(&ctx.env);
    let names = [account(&ctx.env), as_user.clone(), second_name(&as_user)];
    let names = names.map(|name| UserName::from(name.as_str()));
    if let Some(user) = names.iter().find_map(|name| data.user(name)) {
        return Ok(Some(user.name.clone()));
    }
    match data.users() {
        [] => Err(Error::not_found("there is no user yet")
            .hint("type this in the directory of your code: tpu init")),
        [only] => Ok(Some(only.name.clone())),
        _ => Ok(None),
    }
}

/// Who is at work here, for what others read later: the user, else the account.
pub(crate) fn name_at_work(ctx: &Ctx, data: &Data) -> String {
    let user = user_at_work(ctx, data).ok().flatten().map(|user| user.to_string());
    user.unwrap_or_else(|| account(&ctx.env))
}

/// Who submits a job of a user, where that is not this user: the bearer of a token, else another user who is at work here.
pub(crate) fn submitter(ctx: &Ctx, data: &Data, owner: &UserName) -> Option<String> {
    // The socket and links are the account's own.
    let bearer = ctx.actor.strip_prefix(BY_REQUEST);
    let is_of_token =
        |bearer: &&str| bearer.strip_prefix("token ").is_some_and(|name| !name.starts_with(LINK));
    if let Some(bearer) = bearer.filter(is_of_token) {
        return Some(bearer.to_owned());
    }
    let at_work = user_at_work(ctx, data).ok().flatten();
    at_work.filter(|user| user != owner).map(|user| user.to_string())
}

/// What tokens of links are called with which the account logs a browser in, before what tells them apart.
pub(crate) const LINK: &str = "link-";

/// What begins the name of an actor who asks over HTTP.
pub const BY_REQUEST: &str = "api ";

/// The user name of an account: letters, digits, `-` and `_`, with a letter first.
pub fn as_user(env: &Env) -> String {
    let account = account(env);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name = account.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let name: String = name.chars().map(plain).take(30).collect();
    if name.is_empty() { numbered(env) } else { name }
}

/// The name of a user where the first one means something else.
pub fn second_name(name: &str) -> String {
    format!("{name}-1")
}

/// The account: as the environment calls it, else by its name on this machine, else by its number. In a container the
/// environment often has no name for it, and neither has the machine.
pub fn account(env: &Env) -> String {
    let listed = || accounts::listed_name(env.uid).unwrap_or_else(|| numbered(env));
    in_environment(env).map_or_else(listed, str::to_owned)
}

/// The account, as the environment calls it.
pub fn in_environment(env: &Env) -> Option<&str> {
    ["USER", "LOGNAME"].iter().find_map(|name| env.non_empty(name))
}

fn numbered(env: &Env) -> String {
    format!("user-{}", env.uid)
}
