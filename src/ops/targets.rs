//! What is known of targets: aliases and registrations.

use crate::model::ids::TargetName;
use crate::model::target::{LOCAL, Registration};

use super::{Ctx, Error};

/// Gives a target a short name. Returns whether the target was known before.
pub fn add_alias(ctx: &Ctx, alias: &str, full: &str) -> Result<bool, Error> {
    checked_name(full)?;
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if alias.is_empty() || !alias.chars().all(plain) || alias.chars().all(|c| c.is_ascii_digit()) {
        return Err(Error::usage(format!("'{alias}' cannot be a target alias"))
            .hint("letters, digits, '_', '-' and '.', and not a number"));
    }
    ctx.transact(|tx| {
        if alias == LOCAL || tx.data.users().iter().any(|user| user.name.as_str() == alias) {
            return Err(Error::refused(format!("'{alias}' already means something else"))
                .hint("take another short name"));
        }
        let full = TargetName::from(full);
        let known = tx.data.target(&full).is_some();
        tx.edited(None, format!("{alias} stands for {full}"));
        tx.data.registry_mut().set_alias(alias, full);
        Ok(known)
    })
}

/// Makes a target known.
pub fn register(ctx: &Ctx, name: &str, registration: &Registration) -> Result<(), Error> {
    checked_name(name)?;
    ctx.transact(|tx| {
        tx.data.registry_mut().register(TargetName::from(name), registration.clone());
        tx.edited(None, format!("{name} is registered"));
        Ok(())
    })
}

/// Forgets a target and its aliases. Refused while a record claims it.
pub fn forget(ctx: &Ctx, typed: &str) -> Result<TargetName, Error> {
    ctx.transact(|tx| {
        let target = super::launch::check::resolve_target(&tx.data, typed)?;
        if target.is_local() {
            return Err(Error::refused("`local` is this machine and is always there")
                .hint("run there with: tpu run local -- COMMAND"));
        }
        let user = tx.data.jobs().find(|job| job.tpu == target.name && job.status.is_live());
        if let Some(job) = user {
            return Err(Error::refused(format!("{} is in use by {}", target.name, job.id()))
                .hint(format!("tpu kill w={} {}", job.windows_id, job.user)));
        }
        tx.data.registry_mut().forget(&target.name);
        tx.edited(None, format!("{} is forgotten", target.name));
        Ok(target.name)
    })
}

fn checked_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name == LOCAL || !name.chars().all(plain) {
        return Err(Error::usage(format!("'{name}' cannot be the full name of a target"))
            .hint("letters, digits, '-', '_' and '.'"));
    }
    Ok(())
}
