//! Settings of users and of the daemon.

use serde_json::Value;

use tpu_core::model::ids::UserName;

use super::document::documents;
use super::words::Members;

documents! {
    /// The settings that hold for a user.
    pub struct SettingsDocument<'a> {
        /// For whom.
        user: &'a UserName,
        /// Value by key.
        settings: Members<Value>,
        /// The layer that each value comes from.
        origins: Members<String>,
    }

    /// A setting that was changed.
    pub struct SettingDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// Its key.
        key: &'a str,
        /// Its value, as it was typed.
        value: &'a str,
    }

    /// Settings that are the defaults again.
    pub struct DroppedSettingsDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// What was set and is not any more, by key.
        dropped: Members<Value>,
    }

    /// The number that the next job gets.
    pub struct NextNumberDocument<'a> {
        /// Whose.
        user: &'a UserName,
        /// The number.
        next: u32,
    }

    /// A setting of the daemon that was changed.
    pub struct MonitorSettingDocument<'a> {
        /// Its key.
        key: &'a str,
        /// Its value in seconds.
        value: u32,
    }

    /// The settings of the daemon.
    pub struct MonitorSettingsDocument {
        /// Seconds between two turns.
        checking_freq: u32,
        /// Seconds between two runs of the checks of `doctor`.
        test_freq: u32,
    }
}
