//! The top level of data.json, apart from `users`.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::board::Board;
use super::entry::{self, QueueEntry};
use super::monitor_config::{self, MonitorConfig};
use super::original_log::OriginalLog;
use super::queues::Queues;
use super::read::{self, DataError, Fields, Json};
use super::registry::Registry;

/// The key of the format. The original passes over it, as over every key that it does not know.
pub(super) const FORMAT_KEY: &str = "tpu_format";

/// A value that must not be seen by chance: it has no `Display`, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself. Never for an argument, a window title, a log or JSON output.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The typed top level, apart from `users`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Head {
    /// Only read: it changes with the program.
    pub(super) format: Option<u32>,
    pub(super) user_list: Vec<String>,
    pub(super) id_list: Vec<u32>,
    pub(super) id_user: Vec<(u32, String)>,
    pub(super) user_id: Vec<(String, u32)>,
    pub(super) registry: Registry,
    pub(super) board: Board,
    /// Shared with the head that was read, as long as nobody changes it: thousands may wait.
    pub(super) queues: Arc<Queues>,
    /// Who waited before there was a queue, without numbers yet.
    pub(super) tickets: Vec<QueueEntry>,
    pub(super) monitor: MonitorConfig,
    /// Only read: it is the original's.
    pub(super) original_log: OriginalLog,
    pub(super) monitor_all_check_time: u32,
    pub(super) wandb_api_key: Option<Secret>,
    pub(super) conda_env_name: Option<String>,
    pub(super) ack: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            format: None,
            user_list: Vec::new(),
            id_list: Vec::new(),
            id_user: Vec::new(),
            user_id: Vec::new(),
            registry: Registry::default(),
            board: Board::default(),
            queues: Arc::default(),
            tickets: Vec::new(),
            monitor: MonitorConfig::default(),
            original_log: OriginalLog::default(),
            monitor_all_check_time: 20,
            wandb_api_key: None,
            conda_env_name: None,
            ack: false,
        }
    }
}

impl Head {
    /// Reads all but the queue, which may be long and is met on the walk through the document.
    pub(super) fn read(fields: &Fields<'_>, queues: Queues) -> Result<Self, DataError> {
        let word = |key: &str| Some(key.to_owned());
        let id = |key: &str| key.trim().parse().ok();
        Ok(Self {
            format: fields.with(FORMAT_KEY, read::number)?,
            user_list: fields
                .with("user_list", |value, path| read::list(value, path, read::text))?
                .unwrap_or_default(),
            id_list: fields
                .with("id_list", |value, path| read::list(value, path, read::number))?
                .unwrap_or_default(),
            id_user: fields
                .with("id_user_dict", |value, path| read::pairs(value, path, id, read::text))?
                .unwrap_or_default(),
            user_id: fields
                .with("user_id_dict", |value, path| read::pairs(value, path, word, read::number))?
                .unwrap_or_default(),
            registry: Registry::read(fields)?,
            board: fields.with("board", Board::read)?.unwrap_or_default(),
            queues: Arc::new(queues),
            tickets: fields.with("waiting", entry::read_tickets)?.unwrap_or_default(),
            monitor: fields
                .with(monitor_config::key(fields), MonitorConfig::read)?
                .unwrap_or_default(),
            original_log: OriginalLog::read(fields),
            monitor_all_check_time: fields.with_or("monitor_all_check_time", 20, read::number)?,
            wandb_api_key: fields.with("wandb_api_key", read::text)?.map(Secret::new),
            conda_env_name: fields.with("conda_env_name", read::text)?,
            ack: fields.with_or("ack_MONITOR", false, read::flag)?,
        })
    }

    /// The keys whose values differ from those of `was`, which is what `document` reads as.
    pub(super) fn changes(&self, was: &Self, document: &Fields<'_>) -> Vec<(&'static str, Value)> {
        let mut changes = Vec::new();
        let mut set = |key: &'static str, differs: bool, value: Value| {
            if differs {
                changes.push((key, value));
            }
        };
        set("user_list", was.user_list != self.user_list, json!(self.user_list));
        set("id_list", was.id_list != self.id_list, json!(self.id_list));
        let id_user = self.id_user.iter().map(|(id, user)| (id.to_string(), json!(user)));
        set("id_user_dict", was.id_user != self.id_user, Value::Object(id_user.collect()));
        let user_id = self.user_id.iter().map(|(user, id)| (user.clone(), json!(id)));
        set("user_id_dict", was.user_id != self.user_id, Value::Object(user_id.collect()));
        changes.extend(self.registry.changes(&was.registry, document));
        let mut set = |key: &'static str, differs: bool, value: Value| {
            if differs {
                changes.push((key, value));
            }
        };
        let old = |key: &str| document.get(key).map(Json::to_value);
        set("waiting", was.tickets != self.tickets, json!([]));
        // They are written anew where something of them has changed, and not else.
        let queues = (was.queues != self.queues).then(|| self.queues.write());
        set("queue", queues.is_some(), queues.unwrap_or_default());
        set("board", was.board != self.board, self.board.write(old("board").as_ref()));
        let key = monitor_config::key(document);
        let monitor = self.monitor.write(&was.monitor, old(key).as_ref());
        set(key, was.monitor != self.monitor, monitor);
        let every = self.monitor_all_check_time;
        set("monitor_all_check_time", was.monitor_all_check_time != every, json!(every));
        let secret = self.wandb_api_key.as_ref().map(Secret::reveal);
        set("wandb_api_key", was.wandb_api_key != self.wandb_api_key, json!(secret));
        let conda = was.conda_env_name != self.conda_env_name;
        set("conda_env_name", conda, json!(self.conda_env_name));
        set("ack_MONITOR", was.ack != self.ack, json!(self.ack));
        changes
    }
}
