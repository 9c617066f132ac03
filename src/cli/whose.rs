//! Asks a person which user a command is about, and says what to type where nobody can be asked.

use std::ffi::OsString;

use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::base::ctx::user_of;
use tpu_ops::waiting::whose::unnamed;

use super::console;

/// Asks which of the users is meant. Without a person to ask, the error says how to name a user in the command, whose
/// words are `typed`.
pub(super) fn ask(data: &Data, typed: &[OsString], may_ask: bool) -> Result<UserName, Error> {
    if !may_ask {
        let first = data.users().first().map_or("NAME", |user| user.name.as_str());
        return Err(unnamed(data).hint(format!(
            "as in: {}; to be {first} in every command: export TPU_USER={first}",
            with_user(typed, first)
        )));
    }
    let names: Vec<&str> = data.users().iter().map(|user| user.name.as_str()).collect();
    let answer = console::ask(&format!("Whose? There are {}: ", names.join(", ")))?;
    Ok(user_of(data, &UserName::from(answer.trim()))?.name.clone())
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
    tpu_core::text::escape(&line).into_owned()
}
