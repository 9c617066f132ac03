//! What is still to be told, as it stands in its file: how far the journal was read, and for each receiver what waits.
//! What of it is due decides `plan::notices`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ids::{JobId, JobNumber, UserName};
use super::notice::Notice;
use super::notify::Receiver;
use super::time::Timestamp;

/// How far a journal was read. Its parts are renamed as they grow old, so that one is known by how it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// So many bytes of its part.
    pub offset: u64,
    /// The mark of its beginning.
    pub mark: u64,
}

/// All that is still to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    /// How far the journal was read.
    pub read: Bookmark,
    /// What was seen, of which people are told once.
    #[serde(default)]
    pub seen: OutboxSeen,
    /// Failures that may yet turn out to be that the target was taken away.
    #[serde(default)]
    pub held: Vec<HeldNotice>,
    /// A line for each receiver to whom anything was ever to go.
    #[serde(default)]
    pub lines: Vec<OutboxLine>,
}

/// A failure of which the control plane is still to say what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldNotice {
    /// The job that failed.
    pub job: JobId,
    /// What is told of it, unless the target was taken away: that is told by itself.
    pub notice: Notice,
}

/// What was there at the last look and is told as it comes or goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxSeen {
    /// Users of whom something waited in the queue.
    #[serde(default)]
    pub waiting: BTreeSet<UserName>,
    /// The last of what waited of each: its own receivers are told as well that nothing waits any more.
    #[serde(default)]
    pub last: BTreeMap<UserName, JobNumber>,
    /// States that were told, as long as they last.
    #[serde(default)]
    pub states: BTreeSet<String>,
}

/// What goes to one receiver, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxLine {
    /// Whose affairs they are.
    pub user: UserName,
    /// The account of the jobs (its Unix user id), which sends: as itself, with its own secrets. Whoever comes first sends
    /// what earlier versions put here without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Who is told, as it was said when the newest came in.
    pub to: Receiver,
    /// Seconds that are gathered.
    pub merge_s: u32,
    /// What waits, the oldest first.
    pub waiting: Vec<Awaiting>,
    /// What of it was tried together and is tried so again: a receiver then knows it by its id.
    pub tried: Option<Together>,
    /// How often in vain.
    pub attempts: u32,
    /// Not to be tried before.
    pub again: Option<Timestamp>,
    /// When something was last sent.
    pub sent: Option<Timestamp>,
    /// Why the last try was in vain.
    pub error: Option<String>,
    /// So many could not be told and were given up.
    #[serde(default)]
    pub lost: u64,
}

/// Something that waits to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaiting {
    /// What.
    pub notice: Notice,
    /// Since when it waits.
    pub since: Timestamp,
}

/// The first of a line, sent together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// By which a receiver knows that it had it before.
    pub id: String,
    /// So many.
    pub count: usize,
    /// Who sends it now, since when; nobody does after a failure.
    pub by: Option<(String, Timestamp)>,
}
