//! Short names for config keys.

use tpu_core::model::ids::UserName;

use crate::base::ctx::user_of;
use crate::base::error::did_you_mean;
use crate::base::names::refuse_taken;
use crate::{Ctx, Error};

/// Gives a config key a short name.
pub fn add(
    ctx: &Ctx,
    user: &UserName,
    (alias, full): (&str, &str),
    commands: &[String],
) -> Result<(), Error> {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if alias.is_empty() || !alias.chars().all(plain) {
        return Err(Error::usage(format!("'{alias}' cannot be an alias"))
            .hint("letters, digits, '_', '-' and '.'"));
    }
    if full.is_empty() || full.chars().any(|c| c.is_whitespace() || c == '=') {
        return Err(Error::usage(format!("'{full}' cannot be a config key"))
            .hint("as in: tpu -a lr config.training.learning_rate"));
    }
    ctx.transact(|tx| {
        user_of(&tx.data, user)?;
        refuse_taken(&tx.data, alias, commands)?;
        tx.data.user_mut(user).expect("found a line above").set_alias(alias, full);
        tx.edited(Some(user), format!("{alias} stands for {full}"));
        Ok(())
    })
}

/// Forgets a config alias; what it stood for.
pub fn delete(ctx: &Ctx, user: &UserName, alias: &str) -> Result<String, Error> {
    ctx.transact(|tx| {
        let owner = user_of(&tx.data, user)?;
        let known = owner.config_aliases.iter().map(|(alias, _)| alias.as_str());
        let Some(full) = owner.alias(alias).map(str::to_owned) else {
            let hint = did_you_mean(alias, known)
                .unwrap_or_else(|| format!("`tpu -sa {user}` lists them"));
            return Err(Error::not_found(format!("{user} has no alias '{alias}'")).hint(hint));
        };
        let owner = tx.data.user_mut(user).expect("found above");
        owner.config_aliases.retain(|(known, _)| known != alias);
        tx.edited(Some(user), format!("{alias} no longer stands for {full}"));
        Ok(full)
    })
}
