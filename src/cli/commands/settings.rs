//! Settings of users and of the daemon.

use serde_json::Value;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{GetSettings, SetSettings};
use crate::cli::print::Output;
use crate::cli::screen_settings;
use tpu_core::model::time::LOCAL;
use tpu_ops::Error;
use tpu_ops::act::selection;
use tpu_ops::front::settings;
use tpu_wire::settings::{
    DroppedSettingsDocument, MonitorSettingDocument, MonitorSettingsDocument, NextNumberDocument,
    SettingDocument, SettingsDocument,
};
use tpu_wire::words::Members;

/// `get-settings`.
pub(in crate::cli) fn get(app: &App, args: &GetSettings) -> Outcome {
    let user = app.requester()?.only_user(&args.words)?;
    let mut text = String::new();
    let mut values = Vec::new();
    let mut origins = Vec::new();
    for (key, value, origin) in settings::list(app.ctx()?, &user)? {
        let shown = shown(&value);
        text += &if args.origin {
            let here = (key == "time_zone" && shown == LOCAL)
                .then(|| app.env.local_zone().iana_name().map(|name| format!(": {name} here")))
                .flatten()
                .unwrap_or_default();
            format!("{key}: {shown}  ({origin}{here})\n")
        } else {
            format!("{key}: {shown}\n")
        };
        origins.push((key.to_owned(), origin.to_string()));
        values.push((key.to_owned(), value));
    }
    let document =
        SettingsDocument { user: &user, settings: Members(values), origins: Members(origins) };
    Ok(Output::new(text, &document))
}

/// A value as it is typed.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// `set-settings KEY VALUE`.
pub(in crate::cli) fn set(app: &App, args: &SetSettings) -> Outcome {
    let (Some(key), Some(value)) = (&args.key, &args.value) else {
        return Err(Error::usage("a key and a value, please")
            .hint("as in: tpu set-settings monitor_after_run False"));
    };
    let user = app.requester()?.only_user(&args.words)?;
    screen_settings::check_setting(key, value)?;
    let hidden = settings::set(app.ctx()?, &user, key, value)?;
    let notes = hidden.iter().map(|layer| format!("{layer} says otherwise and wins"));
    let notes = notes.collect();
    Ok(Output::new(
        format!("{key} is {value} for {user} now."),
        &SettingDocument { user: &user, key, value },
    )
    .notes(notes))
}

/// `reset-settings [KEY…]`.
pub(in crate::cli) fn reset(app: &App, words: &[String]) -> Outcome {
    let keys: Vec<&str> = words.iter().filter_map(|word| settings::key(word)).collect();
    let rest: Vec<String> =
        words.iter().filter(|word| settings::key(word).is_none()).cloned().collect();
    let user = app.requester()?.only_user(&rest)?;
    let (dropped, mut text) = if keys.is_empty() {
        let dropped = settings::reset(app.ctx()?, &user)?;
        (dropped, format!("The settings of {user} are the defaults again.\n"))
    } else {
        let dropped = settings::unset(app.ctx()?, &user, &keys)?;
        (dropped, format!("{user} says nothing of {} any more.\n", keys.join(", ")))
    };
    for (key, value) in &dropped {
        let value = shown(value);
        text += &format!("{key} was {}\n", tpu_core::text::escape(&value));
    }
    Ok(Output::new(text, &DroppedSettingsDocument { user: &user, dropped: Members(dropped) }))
}

/// `reset-window-num [N=1]`.
pub(in crate::cli) fn reset_window_number(app: &App, words: &[String]) -> Outcome {
    let data = app.ctx()?.data()?;
    let sorted = selection::sort(words, &data)?;
    sorted.nothing_else()?;
    sorted.no_window()?;
    let number = match sorted.numbers.as_slice() {
        [] => 1,
        [one] => *one,
        _ => return Err(Error::usage("one number, please").hint("as in: tpu reset-window-num 20")),
    };
    let user = app.user(&data, sorted.user)?;
    settings::reset_window_number(app.ctx()?, &user, number)?;
    Ok(Output::new(
        format!("The next job of {user} gets number {number}."),
        &NextNumberDocument { user: &user, next: number },
    ))
}

/// `-smc KEY VALUE`.
pub(in crate::cli) fn set_monitor(app: &App, words: &[String]) -> Outcome {
    let [key, value] = words else {
        return Err(
            Error::usage("a key and a value, please").hint("as in: tpu -smc checking_freq 60")
        );
    };
    let seconds: u32 = value.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
        Error::usage(format!("{key} {value}: not a number of seconds"))
            .hint("as in: tpu -smc checking_freq 60")
    })?;
    settings::set_monitor(app.ctx()?, key, seconds)?;
    let document = MonitorSettingDocument { key, value: seconds };
    Ok(Output::new(format!("{key} is {seconds} s now."), &document))
}

/// `-gmc`.
pub(in crate::cli) fn get_monitor(app: &App) -> Outcome {
    let data = app.ctx()?.data()?;
    let config = data.monitor_config();
    let text =
        format!("checking_freq: {}\ntest_freq: {}\n", config.checking_freq(), config.test_freq);
    let document = MonitorSettingsDocument {
        checking_freq: config.checking_freq(),
        test_freq: config.test_freq,
    };
    Ok(Output::new(text, &document))
}
