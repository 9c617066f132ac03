//! Settings of the screen: whether it will understand a value, and the keys as it takes them.

use tpu_core::model::settings::{Layer, SettingOrigin, Settings};
use tpu_ops::Error;
use tpu_screen::keys::KeyMap;
use tpu_screen::theme::Theme;
use tpu_screen::view::columns::{self, UnknownColumn};

/// Refuses a value that the screen would not understand later. What is no setting at all is others' to say.
pub(super) fn check_setting(key: &str, value: &str) -> Result<(), Error> {
    let origin = SettingOrigin::Flag(key.to_owned());
    let mut layer = Layer::default();
    if layer.set(key, value, &origin).is_err() {
        return Ok(());
    }
    let settings = Settings::merge(&[(origin, &layer)])?;
    let theme = Some(settings.theme.as_str()).filter(|theme| *theme != "default");
    if let Some(Err(error)) = theme.map(Theme::named) {
        return Err(Error::usage(error.to_string()).hint("as in: tpu set-settings theme light"));
    }
    let columns = settings.monitor_columns.as_deref().map(columns::chosen);
    if let Some(Err(error)) = columns {
        return Err(Error::usage(error.to_string()).hint(UnknownColumn::hint()));
    }
    if let Err(error) = KeyMap::new(&keys(&settings)) {
        let hint = "as in: tpu set-settings keys '{\"quit\": \"q\"}'";
        return Err(Error::usage(error.to_string()).hint(hint));
    }
    Ok(())
}

/// The keys of a person, as the screen takes them.
pub(super) fn keys(settings: &Settings) -> Vec<(String, String)> {
    settings.keys.iter().map(|(action, keys)| (action.clone(), keys.join(" "))).collect()
}
