//! Settings of users and of the daemon.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tpu_core::model::ids::UserName;

use super::words::Members;

/// The settings that hold for a user.
#[derive(Serialize, JsonSchema)]
pub struct SettingsDocument<'a> {
    /// For whom.
    pub user: &'a UserName,
    /// Value by key.
    pub settings: Members<Value>,
    /// The layer that each value comes from.
    pub origins: Members<String>,
}

/// A setting that was changed.
#[derive(Serialize, JsonSchema)]
pub struct SettingDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// Its key.
    pub key: &'a str,
    /// Its value, as it was typed.
    pub value: &'a str,
}

/// Settings that are the defaults again.
#[derive(Serialize, JsonSchema)]
pub struct DroppedSettingsDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// What was set and is not any more, by key.
    pub dropped: Members<Value>,
}

/// The number that the next job gets.
#[derive(Serialize, JsonSchema)]
pub struct NextNumberDocument<'a> {
    /// Whose.
    pub user: &'a UserName,
    /// The number.
    pub next: u32,
}

/// A setting of the daemon that was changed.
#[derive(Serialize, JsonSchema)]
pub struct MonitorSettingDocument<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its value in seconds.
    pub value: u32,
}

/// The settings of the daemon.
#[derive(Serialize, JsonSchema)]
pub struct MonitorSettingsDocument {
    /// Seconds between two turns.
    pub checking_freq: u32,
    /// Seconds between two runs of the checks of `doctor`.
    pub test_freq: u32,
}
