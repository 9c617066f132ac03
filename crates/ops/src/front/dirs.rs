//! Working directories by slot.

use std::path::Path;

use tpu_core::model::data::User;
use tpu_core::model::ids::UserName;

use crate::base::ctx::user_of;
use crate::{Ctx, Error};

/// Slots run from 1 to this, as in the original.
const HIGHEST: u32 = 100;

/// Makes an existing directory a slot.
pub fn set(
    ctx: &Ctx,
    user: &UserName,
    slot: u32,
    path: &Path,
) -> Result<Vec<(u32, String)>, Error> {
    if !(1..=HIGHEST).contains(&slot) {
        return Err(Error::usage(format!("directory {slot}: slots run from 1 to {HIGHEST}"))
            .hint("`tpu ls` shows which are taken"));
    }
    if !path.is_absolute() {
        return Err(Error::usage(format!("{} is not an absolute path", path.display()))
            .hint(format!("in the directory itself: tpu set-cur {slot} {user}")));
    }
    if !path.is_dir() {
        return Err(Error::not_found(format!("{} is not a directory", path.display()))
            .hint("create it first, or check the spelling"));
    }
    let Some(text) = path.to_str() else {
        return Err(Error::usage(format!("{} is no UTF-8 and cannot be stored", path.display()))
            .hint("give it a plain name, or a symbolic link with one"));
    };
    ctx.transact(|tx| {
        user_of(&tx.data, user)?;
        let owner = tx.data.user_mut(user).expect("found a line above");
        owner.set_dir(slot, text.to_owned());
        let slots = owner.working_dir.clone();
        tx.edited(Some(user), format!("directory {slot} is {text}"));
        Ok(slots)
    })
}

/// Forgets a slot.
pub fn delete(ctx: &Ctx, user: &UserName, slot: u32) -> Result<(), Error> {
    ctx.transact(|tx| {
        known(user_of(&tx.data, user)?, slot)?;
        let owner = tx.data.user_mut(user).expect("found a line above");
        owner.working_dir.retain(|(known, _)| *known != slot);
        tx.edited(Some(user), format!("directory {slot} is forgotten"));
        Ok(())
    })
}

/// Exchanges the paths of two slots.
pub fn swap(ctx: &Ctx, user: &UserName, a: u32, b: u32) -> Result<(), Error> {
    ctx.transact(|tx| {
        let owner = user_of(&tx.data, user)?;
        let (path_a, path_b) = (known(owner, a)?.to_owned(), known(owner, b)?.to_owned());
        let owner = tx.data.user_mut(user).expect("found a line above");
        owner.set_dir(a, path_b);
        owner.set_dir(b, path_a);
        tx.edited(Some(user), format!("directories {a} and {b} are swapped"));
        Ok(())
    })
}

/// The path of a slot.
pub fn known(user: &User, slot: u32) -> Result<&str, Error> {
    user.dir(slot).ok_or_else(|| {
        Error::not_found(format!("{} has no directory {slot}", user.name)).hint(format!(
            "`tpu ls {}` lists them; in the directory itself: tpu set-cur {slot} {}",
            user.name, user.name
        ))
    })
}
