//! Who is at work here: the user whom the environment, the settings or the account name. Nobody is asked.

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;

use super::ctx::user_of;
use crate::{Ctx, Error};

/// The user who is at work here, whoever a request is about: whom the environment, the settings or the
/// account name.
pub fn user_at_work(ctx: &Ctx, data: &Data) -> Result<Option<UserName>, Error> {
    let setting = ctx.settings(None)?.user;
    if let Some(name) = setting.as_deref().map(UserName::from) {
        return user_of(data, &name).map(|user| Some(user.name.clone()));
    }
    let account = account(ctx).unwrap_or_default();
    let as_user = as_user(&account);
    let names = [account, as_user.clone(), second_name(&as_user)];
    let names = names.map(|name| UserName::from(name.as_str()));
    if let Some(user) = names.iter().find_map(|name| data.user(name)) {
        return Ok(Some(user.name.clone()));
    }
    match data.users() {
        [] => Err(Error::not_found("there is no user yet")
            .hint("begin in the directory of your code: tpu init")),
        [only] => Ok(Some(only.name.clone())),
        _ => Ok(None),
    }
}

/// Who is at work here, for what others read later: the user, else the account.
pub(crate) fn name_at_work(ctx: &Ctx, data: &Data) -> String {
    let user = user_at_work(ctx, data).ok().flatten().map(|user| user.to_string());
    user.or_else(|| account(ctx)).unwrap_or_else(|| "somebody".to_owned())
}

/// The name of an account as that of a user can be written: letters, digits, `-` and `_`, with a letter first.
pub fn as_user(account: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name = account.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    name.chars().map(plain).take(30).collect()
}

/// The name of a user where the first one means something else.
pub fn second_name(name: &str) -> String {
    format!("{name}-1")
}

/// The account, as the environment calls it.
pub fn account(ctx: &Ctx) -> Option<String> {
    ["USER", "LOGNAME"].iter().find_map(|name| ctx.env.non_empty(name)).map(str::to_owned)
}
