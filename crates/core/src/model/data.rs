//! data.json as types, without loss.
//!
//! [`Data`] holds the text that it was read from beside the typed values. What has not changed is
//! written back as it stood (see [`super::json`]), so unknown keys, their order, spellings, numbers and
//! layout survive, and a document without changes gives the very same bytes.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

pub use super::head::Secret;
use super::host::Drained;
pub use super::monitor_config::MonitorConfig;
pub use super::read::DataError;
pub use super::user::{DEFAULT_ALIASES, User};

use super::board::Board;
use super::check::check;
use super::head::{FORMAT_KEY, Head};
use super::ids::{JobId, JobNumber, TargetName, UserName};
use super::job::Job;
use super::json::{Edits, Style};
use super::original_log::OriginalLog;
use super::queues::Queues;
use super::read::{Fields, Json, Path};
use super::registry::{self, Registry};
use super::settings;
use super::source::{LaidOut, Source};
use super::target::{Registration, Target};
use super::user::{read_user, set_pair, write_user};
use super::walk::{Member, Walk};

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON.
    #[error("{message} (line {line}, column {column})")]
    Syntax {
        /// The parser's words.
        message: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// It is JSON, and something in it cannot be understood.
    #[error(transparent)]
    Shape(#[from] DataError),
}

/// The format of the state file that this program writes. A file that does not say which has it is of the first, which is also
/// the original's. It rises when an earlier program would lose or misread what this one writes.
pub const FORMAT: u32 = 1;

/// The format of a file that says none.
const FIRST_FORMAT: u32 = 1;

/// The members of a document by which it is known as a state file.
pub const OUR_KEYS: [&str; 18] = [
    "users",
    "user_list",
    "id_list",
    "id_user_dict",
    "user_id_dict",
    "tpu_aliases",
    "all_tpus",
    "targets",
    "board",
    "waiting",
    "queue",
    "monitor_config",
    "MONITOR_config",
    "monitor_all_check_time",
    "wandb_api_key",
    "conda_env_name",
    "MONITOR_logs",
    "ack_MONITOR",
];

/// The whole document.
#[derive(Clone)]
pub struct Data {
    source: Source,
    users: Vec<User>,
    /// Shared with what the source reads as, as long as nobody changes it.
    head: Arc<Head>,
    /// What the source reads as.
    was: Arc<Head>,
}

impl fmt::Debug for Data {
    /// Names only: the text holds a key that nobody must see by chance.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data")
            .field("users", &self.users.iter().map(|user| &user.name).collect::<Vec<_>>())
            .field("jobs", &self.jobs().count())
            .finish_non_exhaustive()
    }
}

impl Data {
    /// The document with which a lab begins.
    pub fn empty() -> Self {
        let value = json!({
            "users": {}, "user_list": [], "id_list": [], "id_user_dict": {}, "user_id_dict": {},
            "tpu_aliases": {}, "all_tpus": {}, "monitor_config": { "test_freq": 3600, "checking_freq": 30 },
            "wandb_api_key": null, "conda_env_name": null, "monitor_all_check_time": 20,
            "MONITOR_logs": [], "ack_MONITOR": false, FORMAT_KEY: FORMAT,
        });
        let source = Style::default().render(&value, 0) + "\n";
        let source = Source::new(Arc::new(source), Vec::new());
        let head = Arc::new(Head { format: Some(FORMAT), ..Head::default() });
        Self { source, users: Vec::new(), was: Arc::clone(&head), head }
    }

    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let unread = Unread::new(bytes.to_vec())?;
        unread.check()?;
        unread.read()
    }

    /// The format of a document, also of one that cannot be read otherwise.
    pub fn format_of(bytes: &[u8]) -> u32 {
        #[derive(serde::Deserialize)]
        struct Said {
            tpu_format: Option<u32>,
        }
        let said: Option<Said> = serde_json::from_slice(bytes).ok();
        said.and_then(|said| said.tpu_format).unwrap_or(FIRST_FORMAT)
    }

    /// Its format.
    pub fn format(&self) -> u32 {
        self.head.format.unwrap_or(FIRST_FORMAT)
    }

    /// Whether a later program wrote it, which alone may change it.
    pub fn is_newer(&self) -> bool {
        self.format() > FORMAT
    }

    /// Whether it was read from exactly these bytes and, if nothing was changed, still is them.
    pub fn is_version(&self, bytes: &[u8]) -> bool {
        self.source.text().as_bytes() == bytes
    }

    /// The document for the file. Without changes these are the bytes that were read.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_text().into_bytes()
    }

    /// The document as text.
    pub fn to_text(&self) -> String {
        let source = self.source.text();
        let style = Style::detect(source);
        let start = source.find('{').unwrap_or(0);
        let (before, rest) = source.split_at_checked(start).unwrap_or(("", source));
        let document = rest.trim_ascii_end();
        let after = rest.get(document.len()..).unwrap_or("");
        let found = self.source.members(document);
        let raw = |key: &str| found.iter().rfind(|member| member.key.is(key)).map(|m| m.value);
        let mut edits = Edits::default();
        if let Some(text) = write_users(&self.users, &self.source, &style, raw("users")) {
            edits.set("users", text);
        }
        let members = found.iter().map(LaidOut::member).collect();
        let is_changed = !Arc::ptr_eq(&self.head, &self.was);
        let changes =
            is_changed.then(|| self.head.changes(&self.was, &Fields::of(members, &Path::Root)));
        for (key, value) in changes.into_iter().flatten() {
            let text = match raw(key) {
                Some(old) => style.patch(old, &value, 1),
                None => style.render(&value, 1),
            };
            edits.set(key, text);
        }
        if edits.is_empty() {
            return source.to_owned();
        }
        format!("{before}{}{after}", style.edit_object(&found, &edits, 0))
    }

    /// The document as plain JSON, for commands that edit it by path.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.to_text()).unwrap_or(Value::Null)
    }

    /// The same document with the contents of `value`, checked like one that was read.
    pub fn replaced(&self, value: &Value) -> Result<Self, ReadError> {
        let text = self.to_text();
        let style = Style::detect(&text);
        let document = text.trim_ascii();
        let after = text.trim_ascii_start().get(document.len()..).unwrap_or("");
        let new = Self::parse(format!("{}{after}", style.patch(document, value, 0)).as_bytes())?;
        if new.head.format != self.head.format {
            let path = Path::Key(&Path::Root, FORMAT_KEY);
            let found = new.head.format.map(|format| format.to_string());
            let found = found.as_deref().map(Json::new);
            return Err(path
                .error("the format that the file has, since tpu alone writes it", found)
                .into());
        }
        Ok(new)
    }

    /// All users, in the order of the file.
    pub fn users(&self) -> &[User] {
        &self.users
    }

    /// One user.
    pub fn user(&self, name: &UserName) -> Option<&User> {
        self.users.iter().find(|user| user.name == *name)
    }

    /// One user, to be changed.
    pub fn user_mut(&mut self, name: &UserName) -> Option<&mut User> {
        self.users.iter_mut().find(|user| user.name == *name)
    }

    /// The user with this number.
    pub fn user_by_id(&self, id: u32) -> Option<&User> {
        self.users.iter().find(|user| user.id == id)
    }

    /// The user whose tmux session this is.
    pub fn user_of_session(&self, session: &str) -> Option<&User> {
        self.users.iter().find(|user| user.tmux_name == session)
    }

    /// Adds a user with a free number and enters it into all lists. `false` if the name is taken.
    pub fn add_user(&mut self, name: &UserName) -> bool {
        if self.user(name).is_some() {
            return false;
        }
        let used = self.users.iter().map(|user| user.id).chain(self.head.id_list.iter().copied());
        let id = used.max().map_or(0, |id| id.saturating_add(1));
        let mut new = User::new(id, name.clone());
        new.settings = settings::Layer::for_new_user();
        self.users.push(new);
        let text = name.as_str().to_owned();
        if !self.head.user_list.contains(&text) {
            Arc::make_mut(&mut self.head).user_list.push(text.clone());
        }
        Arc::make_mut(&mut self.head).id_list.push(id);
        set_pair(&mut Arc::make_mut(&mut self.head).id_user, id, text.clone());
        set_pair(&mut Arc::make_mut(&mut self.head).user_id, text, id);
        true
    }

    /// Enters every user into the lists beside the users.
    pub(crate) fn list_users(&mut self) {
        for user in &self.users {
            let name = user.name.as_str().to_owned();
            if !self.head.user_list.contains(&name) {
                Arc::make_mut(&mut self.head).user_list.push(name.clone());
            }
            if !self.head.id_list.contains(&user.id) {
                Arc::make_mut(&mut self.head).id_list.push(user.id);
            }
            set_pair(&mut Arc::make_mut(&mut self.head).id_user, user.id, name.clone());
            set_pair(&mut Arc::make_mut(&mut self.head).user_id, name, user.id);
        }
    }

    /// Whether a user is in the lists beside the users.
    pub fn is_listed(&self, user: &User) -> bool {
        let name = user.name.as_str();
        self.head.user_list.iter().any(|known| known == name)
            && self.head.user_id.iter().any(|(known, id)| known == name && *id == user.id)
    }

    /// Takes a user out of the document and of all lists.
    pub fn remove_user(&mut self, name: &UserName) -> Option<User> {
        let at = self.users.iter().position(|user| user.name == *name)?;
        let user = self.users.remove(at);
        Arc::make_mut(&mut self.head).user_list.retain(|known| known != name.as_str());
        Arc::make_mut(&mut self.head).id_list.retain(|id| *id != user.id);
        Arc::make_mut(&mut self.head).id_user.retain(|(id, _)| *id != user.id);
        Arc::make_mut(&mut self.head).user_id.retain(|(known, _)| known != name.as_str());
        Some(user)
    }

    /// One job.
    pub fn job(&self, id: &JobId) -> Option<&Job> {
        self.user(&id.user)?.job(id.window)
    }

    /// One job, to be changed.
    pub fn job_mut(&mut self, id: &JobId) -> Option<&mut Job> {
        self.user_mut(&id.user)?.job_mut(id.window)
    }

    /// The jobs of all users.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.users.iter().flat_map(User::jobs)
    }

    /// Aliases, zones and registrations of targets.
    pub fn registry(&self) -> &Registry {
        &self.head.registry
    }

    /// Aliases, zones and registrations of targets, to be changed.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut Arc::make_mut(&mut self.head).registry
    }

    /// The target of a full name, if anything in the document knows it, or `local`.
    pub fn target(&self, name: &TargetName) -> Option<Target> {
        self.head.registry.target(name)
    }

    /// The registration of a full name.
    pub fn registration(&self, name: &TargetName) -> Option<&Registration> {
        self.head.registry.registration(name)
    }

    /// That nothing new is to begin on a target, where somebody has said so.
    pub fn drained(&self, name: &TargetName) -> Option<&Drained> {
        self.registration(name)?.host.as_ref()?.drained.as_ref()
    }

    /// The target of an alias or a full name.
    pub fn resolve_target(&self, text: &str) -> Option<Target> {
        self.head.registry.resolve(text)
    }

    /// The shortest alias of a target, else its full name.
    pub fn target_label(&self, name: &TargetName) -> String {
        registry::label(&self.head.registry, name)
    }

    /// What people wrote about targets.
    pub fn board(&self) -> &Board {
        &self.head.board
    }

    /// What people wrote about targets, to be changed.
    pub fn board_mut(&mut self) -> &mut Board {
        &mut Arc::make_mut(&mut self.head).board
    }

    /// What waits to be started.
    pub fn queues(&self) -> &Queues {
        &self.head.queues
    }

    /// What waits to be started, to be changed.
    pub fn queues_mut(&mut self) -> &mut Queues {
        Arc::make_mut(&mut Arc::make_mut(&mut self.head).queues)
    }

    /// A number for a new job or group of a user, which is never given out again: see [`User::next_window`]. What
    /// waits has numbers, and so have tasks.
    pub fn next_number(&mut self, user: &UserName, highest: Option<u32>) -> Option<JobNumber> {
        let highest = self.head.queues.highest_number(user).max(highest);
        Some(self.user_mut(user)?.next_window(highest))
    }

    /// Lets those stand in the queue who waited before there was one. Everybody who reads the file gives them the
    /// same numbers; whoever changes it writes them down.
    fn number_tickets(&mut self) {
        if self.head.tickets.is_empty() {
            return;
        }
        for mut ticket in std::mem::take(&mut Arc::make_mut(&mut self.head).tickets) {
            if let Some(number) = self.next_number(&ticket.user, None) {
                ticket.number = number;
                self.queues_mut().entries.push(ticket);
            }
        }
    }

    /// How the daemon turns.
    pub fn monitor_config(&self) -> &MonitorConfig {
        &self.head.monitor
    }

    /// How the daemon turns, to be changed.
    pub fn monitor_config_mut(&mut self) -> &mut MonitorConfig {
        &mut Arc::make_mut(&mut self.head).monitor
    }

    /// Seconds between two rounds of `maj`.
    pub fn monitor_all_check_time(&self) -> u32 {
        self.head.monitor_all_check_time
    }

    /// What the original's monitor says of itself.
    pub fn original_log(&self) -> &OriginalLog {
        &self.head.original_log
    }

    /// Whether somebody asked the daemon to look at once (`ack`).
    pub fn ack(&self) -> bool {
        self.head.ack
    }

    /// Asks the daemon to look at once, or notes that it did.
    pub fn set_ack(&mut self, ack: bool) {
        Arc::make_mut(&mut self.head).ack = ack;
    }
}

/// A document that is text and has not been read. To check it and to read it are two passes that need
/// nothing of each other.
pub struct Unread {
    text: Arc<String>,
}

impl Unread {
    /// The document that these bytes are.
    pub fn new(bytes: Vec<u8>) -> Result<Self, ReadError> {
        let text = String::from_utf8(bytes).map_err(|e| {
            let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or(&[]);
            ReadError::Syntax {
                message: "text that is not UTF-8".to_owned(),
                line: before.split(|byte| *byte == b'\n').count(),
                column: before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1,
            }
        })?;
        Ok(Self { text: Arc::new(text) })
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Whether it is JSON, and all of it readable.
    pub fn check(&self) -> Result<(), ReadError> {
        check(&self.text).map_err(|e| ReadError::Syntax {
            message: settings::syntax(&e),
            line: e.line(),
            column: e.column(),
        })
    }

    /// Takes what is needed from it, in one walk. What comes of it counts only if [`Unread::check`] finds
    /// nothing.
    pub fn read(&self) -> Result<Data, ReadError> {
        let text = &self.text;
        let start = text.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(0);
        let mut walk = Walk::document(text, start);
        if walk.peek() != Some(b'{') {
            return Err(Path::Root.error("a map", Some(Json::new(walk.value()))).into());
        }
        let mut users = Vec::new();
        let mut members = Vec::new();
        let mut has_users = false;
        let mut queues = Queues::default();
        walk.object(|walk, key| {
            if key.is("users") {
                has_users = true;
                users = read_users(walk, text)?;
            } else if key.is("queue") {
                let from = walk.at();
                queues = Queues::read(walk, &Path::Key(&Path::Root, "queue"))?;
                members.push(Member { key, value: text.get(from..walk.at()).unwrap_or_default() });
            } else {
                members.push(Member { key, value: walk.value() });
            }
            Ok::<_, DataError>(())
        })?;
        // Every key may be missing. A document that has others and none of ours is somebody else's, and to
        // take it for an empty one would be to write into it.
        let is_ours = |member: &Member<'_>| OUR_KEYS.iter().any(|key| member.key.is(key));
        if !has_users && !members.is_empty() && !members.iter().any(is_ours) {
            let found = Some(Json::new(text.trim_ascii()));
            return Err(Path::Root.error("a map with a key 'users'", found).into());
        }
        let head = Arc::new(Head::read(&Fields::of(members, &Path::Root), queues)?);
        let source = Source::new(Arc::clone(text), walk.into_spans());
        let mut data = Data { source, users, was: Arc::clone(&head), head };
        data.number_tickets();
        Ok(data)
    }
}

/// Reads the users that come next on a walk through `document`.
fn read_users(walk: &mut Walk<'_>, document: &Arc<String>) -> Result<Vec<User>, DataError> {
    let path = Path::Key(&Path::Root, "users");
    if walk.peek() != Some(b'{') {
        let found = Json::new(walk.value());
        return if found.is_null() {
            Ok(Vec::new())
        } else {
            Err(path.error("a map of users", Some(found)))
        };
    }
    let mut users: Vec<User> = Vec::new();
    walk.object(|walk, key| {
        let name = key.name();
        let path = Path::Key(&path, &name);
        let user = read_user(walk, document, UserName::new(&*name), &path)?;
        users.retain(|known| known.name != user.name);
        users.push(user);
        Ok(())
    })?;
    Ok(users)
}

/// The text of `users`; `None` if nothing in it changed.
fn write_users(
    users: &[User],
    source: &Source,
    style: &Style,
    old: Option<&str>,
) -> Option<String> {
    let old = old.filter(|old| old.starts_with('{'));
    let found = old.map(|old| source.members(old)).unwrap_or_default();
    let mut edits = Edits::default();
    for user in users {
        let text = write_user(user, source, style, 2);
        let was = found.iter().rfind(|member| member.key.is(user.name.as_str()));
        if was.is_none_or(|was| was.value != text) {
            edits.set(user.name.as_str(), text);
        }
    }
    for member in &found {
        let name = member.key.name();
        if !users.iter().any(|user| user.name.as_str() == name) {
            edits.remove(&name);
        }
    }
    if edits.is_empty() { None } else { Some(style.edit_object(&found, &edits, 1)) }
}
