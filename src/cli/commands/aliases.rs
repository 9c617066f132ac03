//! Config aliases: `-a`, `-sa`, `del-config-alias`.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::legacy;
use crate::cli::print::Output;
use tpu_core::model::ids::UserName;
use tpu_ops::Error;
use tpu_ops::act::selection::{self, Sorted};
use tpu_ops::base::ctx::user_of;
use tpu_ops::front::aliases;
use tpu_wire::users::{ConfigAliasDocument, ConfigAliasesDocument, ForgottenConfigAliasDocument};

fn sorted(app: &App, words: &[String]) -> Result<(UserName, Sorted), Error> {
    let data = app.ctx()?.data()?;
    // `ALIAS FULL USER`: of two users the last one is meant, and the first is refused as an alias.
    if let [alias, full, owner] = words
        && let Some(owner) = data.user(&UserName::from(owner.as_str()))
    {
        let mut sorted = Sorted::default();
        sorted.rest = vec![alias.clone(), full.clone()];
        return Ok((owner.name.clone(), sorted));
    }
    let sorted = selection::sort(words, &data)?;
    sorted.no_selector()?;
    sorted.no_window()?;
    let user = app.user(&data, sorted.user.clone())?;
    Ok((user, sorted))
}

/// `-a ALIAS FULL`.
pub(in crate::cli) fn add(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = sorted(app, words)?;
    // Or a number or a user in the place of the alias: that is what is to be said.
    let (([alias, full], _) | ([_], [alias, full, ..])) = (sorted.rest.as_slice(), words) else {
        return Err(Error::usage("an alias and what it stands for, please")
            .hint("as in: tpu -a lr config.training.learning_rate"));
    };
    if sorted.rest.len() == 2 {
        sorted.no_pair()?;
        sorted.no_number()?;
    }
    aliases::add(app.ctx()?, &user, (alias, full), &legacy::command_words())?;
    Ok(Output::new(
        format!("{alias} stands for {full} now."),
        &ConfigAliasDocument { user: &user, alias, full },
    ))
}

/// `-sa`.
pub(in crate::cli) fn list(app: &App, words: &[String]) -> Outcome {
    let user = app.requester()?.only_user(words)?;
    let data = app.ctx()?.data()?;
    let owner = user_of(&data, &user)?;
    let mut text = String::new();
    for (alias, full) in &owner.config_aliases {
        text += &format!("{alias}: {full}\n");
    }
    if text.is_empty() {
        text =
            format!("{user} has no config aliases. As in: tpu -a lr config.training.learning_rate");
    }
    Ok(Output::new(text, &ConfigAliasesDocument::from((owner, &user))))
}

/// `del-config-alias ALIAS`.
pub(in crate::cli) fn delete(app: &App, words: &[String]) -> Outcome {
    let (user, sorted) = sorted(app, words)?;
    let [alias] = sorted.rest.as_slice() else {
        return Err(Error::usage("which alias?").hint(format!("`tpu -sa {user}` lists them")));
    };
    sorted.no_pair()?;
    sorted.no_number()?;
    let full = aliases::delete(app.ctx()?, &user, alias)?;
    Ok(Output::new(
        format!("{alias} no longer stands for {full}."),
        &ForgottenConfigAliasDocument { user: &user, alias },
    ))
}
