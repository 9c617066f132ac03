//! A member of the lab: name, tmux session, working directories, aliases, settings, jobs.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::arguments::ArgumentStyle;
use super::codec;
use super::ids::{JobNumber, UserName};
use super::job::Job;
use super::json::{Edits, Item, Style};
use super::read::{self, DataError, Fields, Json, Path};
use super::settings::Layer;
use super::source::{LaidOut, Raw, Source};
use super::walk::{Member, Walk};

/// The config aliases that a new user gets, as the original's README lists them, and that of the seed: most sweeps
/// have one.
pub const DEFAULT_ALIASES: [(&str, &str); 8] = [
    ("lr", "config.training.learning_rate"),
    ("bs", "config.training.batch_size"),
    ("ep", "config.training.num_epochs"),
    ("wd", "config.training.weight_decay"),
    ("b1", "config.training.adam_b1"),
    ("b2", "config.training.adam_b2"),
    ("ckpt", "config.training.checkpoint_per_epoch"),
    ("seed", "config.seed"),
];

/// One user. Jobs are reached through methods, so that the document knows which records changed.
#[derive(Clone, Debug)]
pub struct User {
    /// Number in the file; of no other use.
    pub id: u32,
    /// The key under `users`.
    pub name: UserName,
    /// Name of the tmux session, unique over all users.
    pub tmux_name: String,
    /// Working directories by slot, in the order of the file.
    pub working_dir: Vec<(u32, String)>,
    /// Alias and what it stands for, in the order of the file.
    pub config_aliases: Vec<(String, String)>,
    /// Settings that differ from the built-in ones.
    pub settings: Layer,
    /// No window below this number is given out again. See [`User::next_window`].
    pub windows_offset: u32,
    jobs: Vec<Job>,
    /// For each job: where its record stands in the text that was read, and whether it was touched.
    texts: Vec<JobText>,
    /// Where the user's own record stands in that text.
    span: Option<Range<usize>>,
}

#[derive(Clone, Debug, Default)]
struct JobText {
    range: Option<Range<usize>>,
    touched: bool,
}

impl User {
    /// A new user with the default aliases.
    pub fn new(id: u32, name: UserName) -> Self {
        let aliases = DEFAULT_ALIASES.map(|(alias, full)| (alias.to_owned(), full.to_owned()));
        Self {
            id,
            tmux_name: name.as_str().to_owned(),
            name,
            working_dir: Vec::new(),
            config_aliases: aliases.to_vec(),
            settings: Layer::default(),
            windows_offset: 1,
            jobs: Vec::new(),
            texts: Vec::new(),
            span: None,
        }
    }

    /// All jobs, in the order of the file.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The job of a window.
    pub fn job(&self, window: JobNumber) -> Option<&Job> {
        self.jobs.get(self.place_of(window)?)
    }

    /// Where the record of this number stands. Numbers rise as jobs are added, so it is nearly always found by
    /// halves; whoever asks for each job in turn would else walk all of them as often.
    fn place_of(&self, window: JobNumber) -> Option<usize> {
        let place = self.jobs.partition_point(|job| job.windows_id < window);
        let is_it = |job: &Job| job.windows_id == window;
        match self.jobs.get(place) {
            Some(job) if is_it(job) => Some(place),
            _ => self.jobs.iter().position(is_it),
        }
    }

    /// The job of a window, to be changed.
    pub fn job_mut(&mut self, window: JobNumber) -> Option<&mut Job> {
        let at = self.place_of(window)?;
        self.texts.get_mut(at)?.touched = true;
        self.jobs.get_mut(at)
    }

    /// Appends a record and raises the offset beyond its window.
    pub fn push_job(&mut self, job: Job) {
        self.windows_offset = self.windows_offset.max(job.windows_id.0.saturating_add(1));
        self.jobs.push(job);
        self.texts.push(JobText { range: None, touched: true });
    }

    /// Takes a record out. The caller archives it.
    pub fn remove_job(&mut self, window: JobNumber) -> Option<Job> {
        let at = self.place_of(window)?;
        self.remove_job_at(at)
    }

    /// Takes the record at a place of [`User::jobs`] out. The caller archives it.
    pub(crate) fn remove_job_at(&mut self, at: usize) -> Option<Job> {
        if at >= self.jobs.len() {
            return None;
        }
        let _: JobText = self.texts.remove(at);
        Some(self.jobs.remove(at))
    }

    /// The id for a new job, and the offset raised beyond it, so that it is never given out again.
    ///
    /// In the original `windows_offset` is the next id. Ours is the highest of that, one more than every
    /// record, and one more than the highest window that tmux shows in the session.
    pub fn next_window(&mut self, highest_in_session: Option<u32>) -> JobNumber {
        let beyond = |id: u32| id.saturating_add(1);
        let records = self.highest_number().map_or(0, beyond);
        let session = highest_in_session.map_or(0, beyond);
        // Window 0 is the session's home and never a job.
        let next = self.windows_offset.max(records).max(session).max(1);
        self.windows_offset = beyond(next);
        JobNumber(next)
    }

    /// The highest number that a record or a group has.
    pub fn highest_number(&self) -> Option<u32> {
        let numbers = |job: &Job| {
            let group = job.member().map(|member| member.group.0);
            [Some(job.windows_id.0), group].into_iter().flatten()
        };
        self.jobs.iter().flat_map(numbers).max()
    }

    /// The path of a slot.
    pub fn dir(&self, slot: u32) -> Option<&str> {
        self.working_dir.iter().find(|(known, _)| *known == slot).map(|(_, path)| path.as_str())
    }

    /// Sets the path of a slot.
    pub fn set_dir(&mut self, slot: u32, path: String) {
        set_pair(&mut self.working_dir, slot, path);
    }

    /// What a config alias stands for.
    pub fn alias(&self, alias: &str) -> Option<&str> {
        self.config_aliases.iter().find(|(known, _)| known == alias).map(|(_, full)| full.as_str())
    }

    /// What an alias stands for where arguments are of a style. Those that every user gets are names of programs of the original.
    pub fn alias_in(&self, style: ArgumentStyle, alias: &str) -> Option<&str> {
        let full = self.alias(alias)?;
        let is_usable = style == ArgumentStyle::Config || !DEFAULT_ALIASES.contains(&(alias, full));
        is_usable.then_some(full)
    }

    /// Sets a config alias.
    pub fn set_alias(&mut self, alias: &str, full: &str) {
        set_pair(&mut self.config_aliases, alias.to_owned(), full.to_owned());
    }
}

/// Replaces the value of a key in an ordered list of pairs, or appends the pair.
pub(super) fn set_pair<K: PartialEq, V>(pairs: &mut Vec<(K, V)>, key: K, value: V) {
    match pairs.iter_mut().find(|(known, _)| *known == key) {
        Some(pair) => pair.1 = value,
        None => pairs.push((key, value)),
    }
}

/// The fields of a user apart from the jobs.
struct Head {
    id: u32,
    tmux_name: String,
    working_dir: Vec<(u32, String)>,
    config_aliases: Vec<(String, String)>,
    settings: Layer,
    windows_offset: u32,
}

fn read_head(fields: &Fields<'_>, name: &UserName) -> Result<Head, DataError> {
    let slot = |key: &str| key.trim().parse().ok();
    let word = |key: &str| Some(key.to_owned());
    fields.with("name", read::text)?;
    Ok(Head {
        id: fields.with_or("id", 0, read::number)?,
        tmux_name: fields
            .with("tmux_name", read::text)?
            .unwrap_or_else(|| name.as_str().to_owned()),
        working_dir: fields
            .with("working_dir", |value, path| read::pairs(value, path, slot, read::text))?
            .unwrap_or_default(),
        config_aliases: fields
            .with("config_aliases", |value, path| read::pairs(value, path, word, read::text))?
            .unwrap_or_default(),
        settings: fields.with("settings", Layer::read_user)?.unwrap_or_default(),
        windows_offset: fields.with_or("windows_offset", 1, read::number)?,
    })
}

/// Reads the user that comes next on a walk through `document`.
pub(super) fn read_user<'a>(
    walk: &mut Walk<'a>,
    document: &Arc<String>,
    name: UserName,
    path: &Path<'_>,
) -> Result<User, DataError> {
    let start = walk.at();
    if walk.peek() != Some(b'{') {
        return Err(path.error("a user", Some(Json::new(walk.value()))));
    }
    let mut members: Vec<Member<'a>> = Vec::new();
    let mut jobs = Vec::new();
    let mut texts = Vec::new();
    walk.object(|walk, key| {
        if !key.is("job_data") {
            members.push(Member { key, value: walk.value() });
            return Ok(());
        }
        // Of a key that is there twice, the last one counts, as everywhere in JSON.
        jobs.clear();
        texts.clear();
        let path = Path::Key(path, "job_data");
        if walk.peek() != Some(b'[') {
            let found = Json::new(walk.value());
            return if found.is_null() {
                Ok(())
            } else {
                Err(path.error("a list of jobs", Some(found)))
            };
        }
        walk.array(|walk| {
            let path = Path::Index(&path, jobs.len());
            let start = walk.at();
            if walk.peek() != Some(b'{') {
                return Err(path.error("a job", Some(Json::new(walk.value()))));
            }
            let mut job = codec::read_job(&Fields::take(walk, &path), &name)?;
            let range = start..walk.at();
            job.raw = Raw::new(document, range.clone());
            jobs.push(job);
            texts.push(JobText { range: Some(range), touched: false });
            Ok(())
        })
    })?;
    let span = start..walk.at();
    let head = read_head(&Fields::of(members, path), &name)?;
    Ok(User {
        id: head.id,
        name,
        tmux_name: head.tmux_name,
        working_dir: head.working_dir,
        config_aliases: head.config_aliases,
        settings: head.settings,
        windows_offset: head.windows_offset,
        jobs,
        texts,
        span: Some(span),
    })
}

fn pairs_value<K: ToString>(pairs: &[(K, String)]) -> Value {
    let pairs = pairs.iter().map(|(key, value)| (key.to_string(), json!(value)));
    Value::Object(pairs.collect())
}

/// The text of a user's record, which stands at `depth`.
pub(super) fn write_user(user: &User, source: &Source, style: &Style, depth: usize) -> String {
    let Some(old) = user.span.clone().and_then(|range| source.part(range)) else {
        return style.render(&new_user_value(user), depth);
    };
    let found = source.members(old);
    let mut edits = Edits::default();
    let raw = |key: &str| found.iter().rfind(|member| member.key.is(key)).map(|m| m.value);
    let mut set = |key: &str, differs: bool, value: Value| {
        if differs {
            let text = match raw(key) {
                Some(old) => style.patch(old, &value, depth + 1),
                None => style.render(&value, depth + 1),
            };
            edits.set(key, text);
        }
    };
    let members = found.iter().map(LaidOut::member).collect();
    let was = read_head(&Fields::of(members, &Path::Root), &user.name).ok();
    let was = was.as_ref();
    set("id", was.is_none_or(|was| was.id != user.id), json!(user.id));
    let tmux = was.is_none_or(|was| was.tmux_name != user.tmux_name);
    set("tmux_name", tmux, json!(user.tmux_name));
    let dirs = was.is_none_or(|was| was.working_dir != user.working_dir);
    set("working_dir", dirs, pairs_value(&user.working_dir));
    let aliases = was.is_none_or(|was| was.config_aliases != user.config_aliases);
    set("config_aliases", aliases, pairs_value(&user.config_aliases));
    let settings = was.is_none_or(|was| was.settings != user.settings);
    set("settings", settings, user.settings.to_value());
    let offset = was.is_none_or(|was| was.windows_offset != user.windows_offset);
    set("windows_offset", offset, json!(user.windows_offset));
    let old_jobs = found.iter().rfind(|member| member.key.is("job_data"));
    if let Some(text) = write_jobs(user, source, style, depth + 1, old_jobs.map(|m| m.value)) {
        edits.set("job_data", text);
    }
    if edits.is_empty() { old.to_owned() } else { style.edit_object(&found, &edits, depth) }
}

/// The text of `job_data` at `depth`; `None` if nothing in it changed.
fn write_jobs(
    user: &User,
    source: &Source,
    style: &Style,
    depth: usize,
    old: Option<&str>,
) -> Option<String> {
    let old = old.filter(|old| old.starts_with('['));
    // Where the old array begins in the source: texts are known by their place in it.
    let base = old.map_or(0, |old| source.place(old));
    let found = old.map(|old| source.members(old)).unwrap_or_default();
    let mut same = true;
    let mut items = Vec::with_capacity(user.jobs.len());
    for (job, text) in user.jobs.iter().zip(&user.texts) {
        let was = text.range.clone().and_then(|range| Some((range.start, source.part(range)?)));
        let item = if let Some((start, was)) = was {
            let text = if text.touched {
                let now = style.patch(was, &job.to_value(), depth + 1);
                same &= now == was;
                now.into()
            } else {
                was.into()
            };
            Item { at: start.checked_sub(base), text }
        } else {
            same = false;
            Item { at: None, text: style.render(&job.to_value(), depth + 1).into() }
        };
        items.push(item);
    }
    if same && found.len() == items.len() {
        return None;
    }
    Some(style.edit_array(&found, items, depth))
}

fn new_user_value(user: &User) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "tmux_name": user.tmux_name,
        "working_dir": pairs_value(&user.working_dir),
        "job_data": user.jobs.iter().map(Job::to_value).collect::<Vec<_>>(),
        "config_aliases": pairs_value(&user.config_aliases),
        "settings": user.settings.to_value(),
        "windows_offset": user.windows_offset,
        "logs": [],
    })
}
