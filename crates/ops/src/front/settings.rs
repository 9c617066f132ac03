//! Settings of users, and of the daemon.

use regex::Regex;
use serde_json::Value;

use tpu_core::model::ids::UserName;
use tpu_core::model::settings::{KEYS, SettingOrigin, Settings};

use crate::act::notices;
use crate::base::ctx::user_of;
use crate::base::error::did_you_mean;
use crate::{Ctx, Error};

/// A setting as it holds: key, value, and the layer it came from.
pub type Line = (&'static str, Value, SettingOrigin);

/// All settings that hold for a user.
pub fn list(ctx: &Ctx, user: &UserName) -> Result<Vec<Line>, Error> {
    let data = ctx.data()?;
    let settings = ctx.settings(Some(user_of(&data, user)?))?;
    let lines = settings.values().into_iter();
    Ok(lines.map(|(key, value)| (key, value, settings.origin(key).clone())).collect())
}

/// Changes a setting in data.json. Returns the layer that hides the new value, if one does.
pub fn set(
    ctx: &Ctx,
    user: &UserName,
    key: &str,
    value: &str,
) -> Result<Option<SettingOrigin>, Error> {
    let origin = SettingOrigin::User(user.as_str().to_owned());
    if let ("checkpoint_pattern", Err(error)) = (key, Regex::new(value)) {
        return Err(Error::usage(format!("checkpoint_pattern: {error}"))
            .hint("as in: tpu set-settings checkpoint_pattern 'model_[0-9]+'"));
    }
    if key == "notify" {
        notices::begin(ctx)?;
    }
    ctx.transact(|tx| {
        user_of(&tx.data, user)?;
        let owner = tx.data.user_mut(user).expect("found a line above");
        owner.settings.set(key, value, &origin)?;
        let own = Settings::merge(&[(origin.clone(), &owner.settings)])?;
        if key == "notify" {
            notices::have_ways(own.notify.as_deref().unwrap_or_default())?;
        }
        ctx.kinds.checked(own)?;
        tx.edited(Some(user), format!("{key} is {value}"));
        Ok(())
    })?;
    let data = ctx.data()?;
    let settings = ctx.settings(Some(user_of(&data, user)?))?;
    Ok(Some(settings.origin(key).clone()).filter(|holds| *holds != origin))
}

/// Puts the settings of a user back to the defaults; keys that are not ours stay. Returns what said something
/// else, with its values.
pub fn reset(ctx: &Ctx, user: &UserName) -> Result<Vec<(String, Value)>, Error> {
    ctx.transact(|tx| {
        user_of(&tx.data, user)?;
        let dropped = tx.data.user_mut(user).expect("found a line above").settings.reset();
        tx.edited(Some(user), "settings are the defaults");
        Ok(dropped)
    })
}

/// The known key that a word is.
pub fn key(word: &str) -> Option<&'static str> {
    KEYS.iter().find(|key| **key == word).copied()
}

/// Takes what a user has said of some settings out of data.json, so that what others say of them holds again. Returns
/// what said something else than the defaults, with its values.
pub fn unset(ctx: &Ctx, user: &UserName, keys: &[&str]) -> Result<Vec<(String, Value)>, Error> {
    ctx.transact(|tx| {
        user_of(&tx.data, user)?;
        let dropped = tx.data.user_mut(user).expect("found a line above").settings.take_out(keys);
        tx.edited(Some(user), format!("{} as without a word", keys.join(", ")));
        Ok(dropped)
    })
}

/// Sets the number of the next window. Refused where a window of that number could be met again.
pub fn reset_window_number(ctx: &Ctx, user: &UserName, number: u32) -> Result<(), Error> {
    if number == 0 {
        return Err(Error::usage("no job has the number 0: window 0 is the home of the session")
            .hint("as in: tpu reset-window-num 1"));
    }
    let session = {
        let data = ctx.data()?;
        user_of(&data, user)?.tmux_name.clone()
    };
    let highest_window = match ctx.tmux.look() {
        tpu_core::model::facts::TmuxFact::Up { panes, .. } => {
            panes.iter().filter(|pane| pane.session == session).map(|pane| pane.window_index).max()
        }
        tpu_core::model::facts::TmuxFact::Down { .. } => None,
        tpu_core::model::facts::TmuxFact::Unknown { reason } => {
            return Err(Error::unreachable(format!("tmux cannot be asked: {reason}"))
                .hint("nothing was changed; try again"));
        }
    };
    ctx.transact(|tx| {
        let highest_record = user_of(&tx.data, user)?.highest_number();
        let highest_waiting = tx.data.queues().highest_number(user);
        let highest = highest_record.max(highest_window).max(highest_waiting).unwrap_or(0);
        if number <= highest {
            return Err(Error::refused(format!("numbers up to {highest} of {user} are in use"))
                .hint(format!("`tpu clean {user}` first, or a number above {highest}")));
        }
        tx.data.user_mut(user).expect("found above").windows_offset = number;
        tx.edited(Some(user), format!("the next job gets number {number}"));
        Ok(())
    })
}

/// Changes a setting of the daemon; seconds.
pub fn set_monitor(ctx: &Ctx, key: &str, seconds: u32) -> Result<(), Error> {
    const KEYS: [&str; 2] = ["checking_freq", "test_freq"];
    ctx.transact(|tx| {
        let config = tx.data.monitor_config_mut();
        match key {
            "checking_freq" => config.set_checking_freq(seconds),
            "test_freq" => config.test_freq = seconds,
            _ => {
                let hint = did_you_mean(key, KEYS)
                    .unwrap_or_else(|| format!("one of {}", KEYS.join(", ")));
                return Err(Error::usage(format!("the daemon has no setting '{key}'")).hint(hint));
            }
        }
        tx.edited(None, format!("{key} of the daemon is {seconds} s"));
        Ok(())
    })
}
