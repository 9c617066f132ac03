//! What waits, in the order of the turns: why, and when it is expected to begin.

use crate::waiting::queue::field::Avoided;
use crate::waiting::queue::{self, edit, expected, places, why};
use crate::waiting::words::{nobody_starts, wants};
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::queue::Queue;
use tpu_core::model::time::{self, Timestamp};
use tpu_core::plan::board::Pick;
use tpu_core::plan::expected::ExpectedStart;
use tpu_core::plan::queue::EntryStanding;
use tpu_core::text::columns::columns;
use tpu_core::text::escape;

/// Something that waits, as it stands now.
#[derive(Clone, Debug)]
pub struct ListedEntry<'a> {
    /// What waits.
    pub entry: &'a QueueEntry,
    /// How it stands.
    pub standing: EntryStanding<Vec<Pick>>,
    /// When it is expected to begin, as far as that can be foreseen.
    pub expected: Option<ExpectedStart>,
}

/// Queues, and what waits in them.
#[derive(Clone, Debug)]
pub struct QueueList<'a> {
    /// The queues.
    pub queues: Vec<Queue>,
    /// What waits, in the order of the turns.
    pub entries: Vec<ListedEntry<'a>>,
    /// Before it was foreseen when they begin.
    now: Timestamp,
}

/// Lists what waits. The words name users and queues; without one all are meant.
pub fn list<'a>(ctx: &Ctx, data: &'a Data, words: &[String]) -> Result<QueueList<'a>, Error> {
    let (users, names): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| data.user(&UserName::from(word.as_str())).is_some());
    let names: Vec<QueueName> = names.into_iter().map(QueueName::new).collect();
    for name in &names {
        edit::find(data, name)?;
    }
    let is_meant = |name: &QueueName| names.is_empty() || names.contains(name);
    let is_theirs =
        |user: &UserName| users.is_empty() || users.iter().any(|name| **name == user.as_str());
    let mut queues = data.queues().all();
    queues.retain(|queue| is_meant(&queue.name));
    let is_seen = |entry: &QueueEntry| is_meant(&entry.queue) && is_theirs(&entry.user);
    let mut standings = queue::standings(ctx, data, &Avoided::new())?;
    let would_begin: Vec<bool> = standings.iter().map(|one| one.waits.is_none()).collect();
    places::tell(ctx, data, &mut standings, &is_seen);
    let now = ctx.clock.now();
    let mut expected = expected::expected(ctx, data, &is_seen, expected::OF_LIST)?;
    let listed = |(standing, would_begin): (EntryStanding<Vec<Pick>>, bool)| {
        let entry = data.queues().entries.get(standing.entry).filter(|entry| is_seen(entry))?;
        let expected = expected.remove(&entry.id());
        // A machine that does not answer tells nobody when it will.
        let expected = expected.filter(|_| !would_begin || standing.waits.is_none());
        Some(ListedEntry { entry, standing, expected })
    };
    let entries = standings.into_iter().zip(would_begin).filter_map(listed).collect();
    Ok(QueueList { queues, entries, now })
}

impl QueueList<'_> {
    /// For people: a table of what waits, and the queues that are not as usual.
    pub fn in_words(&self, ctx: &Ctx) -> String {
        let now = self.now;
        let row = |listed: &ListedEntry<'_>| {
            let ListedEntry { entry, standing, expected } = listed;
            let members = entry.spec.array.as_ref().map(|array| array.indexes().len());
            vec![
                format!("{} {}", entry.queue, standing.position),
                entry.id().to_string(),
                escape(entry.spec.name.as_deref().unwrap_or_default()).into_owned(),
                members.map(|members| members.to_string()).unwrap_or_default(),
                entry.priority.to_string(),
                escape(&wants(&entry.spec.target)).into_owned(),
                time::age(now.seconds_since(entry.since)),
                expected.as_ref().map_or_else(|| "?".to_owned(), |it| it.in_short(now)),
                escape(&why(ctx, standing)).into_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = self.entries.iter().map(row).collect();
        let mut text = if rows.is_empty() {
            "Nothing waits. As in: tpu submit v4-8 -- python3 train.py\n".to_owned()
        } else {
            columns(&TITLES, &rows)
        };
        let usual = Queue::new(QueueName::usual());
        for queue in self.queues.iter().filter(|queue| **queue != usual) {
            text += &format!("{}: {}\n", queue.name, edit::in_words(queue));
        }
        text
    }

    /// What people should know beside it.
    pub fn notes(&self, ctx: &Ctx) -> Vec<String> {
        if self.entries.is_empty() { Vec::new() } else { nobody_starts(ctx) }
    }
}

const TITLES: [&str; 9] =
    ["QUEUE", "JOB", "NAME", "JOBS", "PRIORITY", "WANTS", "SINCE", "STARTS IN", "WHY IT WAITS"];
