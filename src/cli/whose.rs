//! Whose: which user a command is about. The one place where this is decided.
//!
//! The name that is typed, `TPU_USER`, the setting `user`, the account's own user, the only user there is.
//! Where none of these says who, a command that only looks means the one user who has the window; what shows
//! lists shows everybody; whatever else asks, and without a person to ask it names the command to type.

use std::ffi::OsString;

use crate::model::data::Data;
use crate::model::ids::{JobNumber, UserName};
use crate::model::view::Whose;
use crate::ops::{Error, ctx::user_of};

use super::app::App;
use super::resolve::{self, Sorted};

/// What a command does with what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It shows it: the wrong user's would be seen and harm nobody.
    Look,
    /// It changes it.
    Change,
}

/// The user whom the words, the flags, the environment, the settings or the account name; `None` if nothing
/// does. Asks nobody.
pub(super) fn said(
    app: &App,
    data: &Data,
    word: Option<UserName>,
) -> Result<Option<UserName>, Error> {
    let flag = app.global.user.as_deref().map(UserName::from);
    if let (Some(word), Some(flag)) = (&word, &flag)
        && word != flag
    {
        return Err(
            Error::usage(format!("two users are named: {word} and --user {flag}")).hint("name one")
        );
    }
    match word.or(flag) {
        Some(name) => user_of(data, &name).map(|user| Some(user.name.clone())),
        None => person(app, data),
    }
}

/// The user who is at work here, whoever a command is about: whom the environment, the settings or the account
/// name.
pub(super) fn person(app: &App, data: &Data) -> Result<Option<UserName>, Error> {
    let setting = app.ctx()?.settings(None)?.user;
    if let Some(name) = setting.as_deref().map(UserName::from) {
        return user_of(data, &name).map(|user| Some(user.name.clone()));
    }
    let account = ["USER", "LOGNAME"].iter().find_map(|name| app.env.non_empty(name));
    if let Some(user) = account.and_then(|name| data.user(&UserName::from(name))) {
        return Ok(Some(user.name.clone()));
    }
    match data.users() {
        [] => Err(Error::not_found("there is no user yet")
            .hint("begin in the directory of your code: tpu init")),
        [only] => Ok(Some(only.name.clone())),
        _ => Ok(None),
    }
}

/// The one user that a command is about, which takes `windows` of theirs.
pub(super) fn one(
    app: &App,
    data: &Data,
    word: Option<UserName>,
    (purpose, windows): (Purpose, &[JobNumber]),
) -> Result<UserName, Error> {
    if let Some(user) = said(app, data, word)? {
        return Ok(user);
    }
    if purpose == Purpose::Look && !windows.is_empty() {
        let has_all = |user: &&crate::model::data::User| {
            windows.iter().all(|window| user.job(*window).is_some())
        };
        let mut holders = data.users().iter().filter(has_all);
        if let (Some(only), None) = (holders.next(), holders.next()) {
            return Ok(only.name.clone());
        }
    }
    ask(app, data)
}

/// Whose jobs a list shows that takes users and nothing else.
pub(super) fn shown(app: &App, words: &[String]) -> Result<Whose, Error> {
    let (whose, sorted) = listed(app, words)?;
    sorted.no_number()?;
    Ok(whose)
}

/// Whose jobs a list shows: of those who are named, else of whom anything says, else everybody's. Beside
/// users there are windows at most.
pub(super) fn listed(app: &App, words: &[String]) -> Result<(Whose, Sorted), Error> {
    let data = app.ctx()?.data()?;
    let mut named: Vec<UserName> = Vec::new();
    let mut rest = Vec::new();
    for word in words {
        match resolve::sort(std::slice::from_ref(word), &data)?.user {
            Some(user) => named.push(user_of(&data, &user)?.name.clone()),
            None => rest.push(word.clone()),
        }
    }
    let sorted: Sorted = resolve::sort(&rest, &data)?;
    sorted.nothing_else()?;
    if named.len() > 1 {
        named.extend(app.global.user.as_deref().map(UserName::from));
        return Ok((Whose::of(named), sorted));
    }
    Ok((Whose::of(said(app, &data, named.pop())?), sorted))
}

/// Asks, once in a command. Nobody to ask: says what to type.
fn ask(app: &App, data: &Data) -> Result<UserName, Error> {
    if let Some(answered) = app.asked_user.get() {
        return Ok(answered.clone());
    }
    let names: Vec<&str> = data.users().iter().map(|user| user.name.as_str()).collect();
    let names = names.join(", ");
    if !app.may_ask() {
        let first = data.users().first().map_or("NAME", |user| user.name.as_str());
        return Err(Error::usage(format!("whose? There are {names}")).hint(format!(
            "as in: {}; to be {first} in every command: export TPU_USER={first}",
            with_user(&app.typed, first)
        )));
    }
    let answer = app.console.ask(&format!("Whose? There are {names}: "))?;
    let user = user_of(data, &UserName::from(answer.trim()))?.name.clone();
    Ok(app.asked_user.get_or_init(|| user).clone())
}

/// The command as it was typed, with a user; what stands behind `--` stays there.
fn with_user(typed: &[OsString], user: &str) -> String {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (before, behind) = typed.split_at(end);
    let mut line = "tpu".to_owned();
    let said = ["--user".into(), user.into()];
    for word in before.iter().chain(&said).chain(behind) {
        let word = word.to_string_lossy();
        // What no shell reads as anything else stands as it was typed.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=,.:/@%".contains(c);
        line.push(' ');
        if !word.is_empty() && word.chars().all(plain) {
            line += &word;
        } else {
            line += &shlex::try_quote(&word).unwrap_or_else(|_| word.clone());
        }
    }
    crate::text::escape(&line).into_owned()
}
