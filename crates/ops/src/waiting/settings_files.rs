//! Where settings stand that lie over those of data.json: the machine's file, one that a request names, the
//! environment, and a flag. From the weakest to the strongest.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tpu_core::model::settings::{Layer, SettingOrigin};
use tpu_system::sys::env::Env;
use tpu_system::sys::files;

use crate::Error;
use crate::base::setting_layers::Stack;

/// Variables that are settings.
const VARIABLES: [(&str, &str); 6] = [
    ("TPU_USER", "user"),
    ("TPU_CLOUD", "cloud"),
    ("TPU_PROJECT", "project"),
    ("TPU_CLOUD_ENDPOINT", "cloud_endpoint"),
    ("TPU_CLOUD_AUTH", "cloud_auth"),
    ("TPU_DAEMON_AUTOSTART", "daemon_autostart"),
];

/// All places of a program or a request; read as often as they may have changed.
#[derive(Clone, Debug)]
pub struct SettingsPlaces {
    /// The machine's file. It need not be there.
    pub machine: Option<PathBuf>,
    /// The file that was named. It must be there.
    pub named: Option<PathBuf>,
    /// The environment.
    pub env: Env,
    /// The control plane that was named.
    pub cloud: Option<String>,
}

impl SettingsPlaces {
    /// Reads them all.
    pub fn read(&self) -> Result<Stack, Error> {
        let mut layers = Stack::new();
        if let Some(path) = &self.machine {
            layers.extend(file(path, SettingOrigin::File(path.display().to_string()), true)?);
        }
        if let Some(path) = &self.named {
            layers.extend(file(path, SettingOrigin::Given(path.display().to_string()), false)?);
        }
        for (variable, key) in VARIABLES {
            if let Some(value) = self.env.non_empty(variable) {
                layers.push(single(key, value, SettingOrigin::Environment(variable.to_owned()))?);
            }
        }
        if let Some(cloud) = &self.cloud {
            layers.push(single("cloud", cloud, SettingOrigin::Flag("--cloud".to_owned()))?);
        }
        Ok(layers)
    }
}

/// One setting.
fn single(key: &str, value: &str, origin: SettingOrigin) -> Result<(SettingOrigin, Layer), Error> {
    let mut layer = Layer::default();
    layer.set(key, value, &origin)?;
    Ok((origin, layer))
}

/// A file of settings; one that need not be there is no layer if it is not.
fn file(
    path: &Path,
    origin: SettingOrigin,
    is_optional: bool,
) -> Result<Option<(SettingOrigin, Layer)>, Error> {
    // Only what was named may be a pipe.
    let read =
        if is_optional { files::read_to_string(path) } else { std::fs::read_to_string(path) };
    match read {
        Ok(text) => {
            let layer = Layer::parse(&text, &origin)?;
            Ok(Some((origin, layer)))
        }
        Err(e) if is_optional && e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => {
            Err(Error::usage(format!("cannot read the settings file {}: {e}", path.display()))
                .hint("check --settings and $TPU_SETTINGS"))
        }
    }
}
