//! What the original's monitor says of itself in the data file: its log, and how often it looks.

use jiff::tz::TimeZone;

use super::read::{self, Fields, Json};
use super::time::Timestamp;

/// How often the original's monitor looks where the file does not say it.
const EVERY_S: u32 = 600;

/// Its log (`MONITOR_logs`), of which only the end is read, and its `checking_freq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalLog {
    /// Length of the log in bytes. It grows with each entry.
    pub bytes: usize,
    /// Seconds between two of its rounds.
    pub every_s: u32,
    /// The time of the newest entry, as it is written there.
    newest: Option<String>,
}

impl Default for OriginalLog {
    fn default() -> Self {
        Self { bytes: 0, every_s: EVERY_S, newest: None }
    }
}

impl OriginalLog {
    /// Reads what there is. What cannot be understood here says nothing, and is no error: it is not our file's part.
    pub(super) fn read(document: &Fields<'_>) -> Self {
        let log = document.get("MONITOR_logs").map(Json::text).unwrap_or_default();
        // The newest versions read the spelling in capitals, and nothing else.
        let every_s = ["MONITOR_config", "monitor_config"].into_iter().find_map(|key| {
            let path = document.below(key);
            let config = Fields::new(document.get(key)?, &path).ok()?;
            config.with("checking_freq", read::number).ok()?
        });
        Self { bytes: log.len(), every_s: every_s.unwrap_or(EVERY_S), newest: last_time(log) }
    }

    /// The time of its newest entry, which it takes from the clock of its machine.
    pub fn newest(&self, machine: &TimeZone) -> Option<Timestamp> {
        Timestamp::parse_original(self.newest.as_deref()?, machine)
    }
}

/// The text of the last `"time": "…"` of a list. In a text of an entry its quotation marks would be escaped.
fn last_time(list: &str) -> Option<String> {
    const KEY: &str = "\"time\"";
    let behind = list.get(list.rfind(KEY)? + KEY.len()..)?;
    let value = behind.trim_start().strip_prefix(':')?.trim_start();
    let inner = value.strip_prefix('"')?;
    inner.split_once('"').map(|(time, _)| time.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::data::Data;

    #[test]
    fn the_newest_entry_and_the_freq_of_the_original_are_read_and_no_more_is_needed() {
        let utc = TimeZone::UTC;
        let table = [
            (r"{}", None, 600),
            (r#"{"MONITOR_logs": []}"#, None, 600),
            (
                r#"{"MONITOR_logs": [{"time": "2025-04-20 01:10:25", "msg": "a"},
                    {"time" : "2025-04-20 01:10:26", "msg": "the \"time\": \"now\""}],
                    "MONITOR_config": {"checking_freq": 900}, "monitor_config": {"checking_freq": 30}}"#,
                Some("2025-04-20T01:10:26Z"),
                900,
            ),
            (
                r#"{"MONITOR_logs": [{"msg": "a", "time": "soon"}], "monitor_config": {"checking_freq": 120}}"#,
                None,
                120,
            ),
            (r#"{"MONITOR_logs": [["\ud800"]]}"#, None, 600),
            (r#"{"MONITOR_logs": "x"}"#, None, 600),
        ];
        for (text, newest, every_s) in table {
            let data = Data::parse(text.as_bytes()).unwrap();
            let log = data.original_log();
            let found = log.newest(&utc).map(Timestamp::to_rfc3339);
            assert_eq!((found.as_deref(), log.every_s), (newest, every_s), "{text}");
        }
    }
}
