//! How the daemon turns, and the rule for what an original's file says about it.

use serde_json::{Value, json};

use super::read::{self, DataError, Fields, Json, Path};

/// How the daemon turns (`monitor_config`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// Seconds between two runs of the checks of `doctor`.
    pub test_freq: u32,
    checking_freq: u32,
    /// Whether `checking_freq` was set with this program.
    set: bool,
}

/// What the original puts into every new file and never reads.
const UNREAD_CHECKING_FREQ: u32 = 600;

/// The key beside `checking_freq` that says that it was set with this program.
const SET_MARK: &str = "checking_freq_set";

impl Default for MonitorConfig {
    fn default() -> Self {
        Self { test_freq: 3600, checking_freq: 30, set: false }
    }
}

impl MonitorConfig {
    /// Seconds between two turns. The 600 of an original's file counts as 30 until somebody sets it.
    pub fn checking_freq(&self) -> u32 {
        self.checking_freq
    }

    /// Sets the seconds between two turns.
    pub fn set_checking_freq(&mut self, seconds: u32) {
        self.checking_freq = seconds;
        self.set = true;
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let fields = Fields::new(value, path)?;
        let default = Self::default();
        let set = fields.with(SET_MARK, read::flag)?.unwrap_or(false);
        let found = fields.with("checking_freq", read::number)?;
        let checking_freq = match found {
            Some(UNREAD_CHECKING_FREQ) if !set => default.checking_freq,
            Some(seconds) => seconds,
            None => default.checking_freq,
        };
        let test_freq = fields.with("test_freq", read::number)?.unwrap_or(default.test_freq);
        Ok(Self { test_freq, checking_freq, set })
    }

    /// The value for the file: what was there, with what has changed since.
    pub(super) fn write(&self, was: &Self, old: Option<&Value>) -> Value {
        let mut map = old.and_then(Value::as_object).cloned().unwrap_or_default();
        if self.test_freq != was.test_freq || old.is_none() {
            map.insert("test_freq".to_owned(), json!(self.test_freq));
        }
        if (self.checking_freq, self.set) != (was.checking_freq, was.set) || old.is_none() {
            map.insert("checking_freq".to_owned(), json!(self.checking_freq));
        }
        if self.set != was.set {
            map.insert(SET_MARK.to_owned(), json!(self.set));
        }
        Value::Object(map)
    }
}

/// The spelling of the daemon's configuration in this document.
pub(super) fn key(document: &Fields<'_>) -> &'static str {
    if !document.has("monitor_config") && document.has("MONITOR_config") {
        "MONITOR_config"
    } else {
        "monitor_config"
    }
}
