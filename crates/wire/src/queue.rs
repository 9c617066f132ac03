//! What waits in the queue: `submit`, `queue`, `hold`, `priority`, `dequeue`.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber, QueueName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::member::Array;
use tpu_core::model::queue::{Queue, QueuePolicy, QueueState};
use tpu_core::plan::expected::ExpectedStart;
use tpu_ops::front::queue_list::{ListedEntry, QueueList};
use tpu_ops::waiting::begin::{QueuedJob, QueuedJobs};
use tpu_ops::waiting::words::wants;

use super::jobs::JobIdPart;
use super::words::{TimePart, Word};

/// Jobs that were submitted.
#[derive(Serialize, JsonSchema)]
pub struct SubmittedDocument<'a> {
    /// The jobs and groups.
    pub jobs: Vec<SubmittedPart<'a>>,
    /// Those that have begun at once.
    pub started: Vec<JobIdPart<'a>>,
}

impl<'a> SubmittedDocument<'a> {
    /// What was queued; `started` are those that have begun since.
    pub fn of(queued: &'a QueuedJobs, started: &'a [JobId]) -> Self {
        let part = |job: &'a QueuedJob| SubmittedPart {
            user: &job.id.user,
            window: job.id.window,
            name: job.name.as_deref(),
            members: job.members.clone(),
        };
        Self {
            jobs: queued.jobs.iter().map(part).collect(),
            started: started.iter().map(JobIdPart::from).collect(),
        }
    }

    /// What has become of jobs that were queued before, as they are called now; `begun` are those that have begun.
    pub fn now(data: &'a Data, jobs: &'a [JobId], begun: &'a [JobId]) -> Self {
        Self {
            jobs: jobs.iter().map(|id| SubmittedPart::now(data, id)).collect(),
            started: begun.iter().map(JobIdPart::from).collect(),
        }
    }
}

/// A job or a group that was submitted.
#[derive(Serialize, JsonSchema)]
pub struct SubmittedPart<'a> {
    /// Whose it is.
    pub user: &'a UserName,
    /// Its number.
    pub window: JobNumber,
    /// The name by which it is called; null if it has none.
    pub name: Option<&'a str>,
    /// Its members; null for a job by itself.
    pub members: Option<Vec<u32>>,
}

impl<'a> SubmittedPart<'a> {
    /// A job or a group as it is known now: members that wait, and those that have begun.
    fn now(data: &'a Data, id: &'a JobId) -> Self {
        let (entry, job) = (data.queues().entry(id), data.job(id));
        let waiting = entry.and_then(|entry| entry.spec.array.as_ref());
        let begun = data.user(&id.user).map(User::jobs).unwrap_or_default().iter();
        let begun = begun.filter_map(Job::member).filter(|member| member.group == id.window);
        let mut members: Vec<u32> = begun.map(|member| member.index).collect();
        members.extend(waiting.into_iter().flat_map(Array::indexes));
        members.sort_unstable();
        members.dedup();
        Self {
            user: &id.user,
            window: id.window,
            name: entry.and_then(|entry| entry.spec.name.as_deref()).or_else(|| job?.name()),
            members: (!members.is_empty()).then_some(members),
        }
    }
}

/// What waits.
#[derive(Serialize, JsonSchema)]
pub struct QueueDocument<'a> {
    /// All queues.
    pub queues: Vec<QueuePart<'a>>,
    /// What waits, in the order of the turns.
    pub entries: Vec<QueueEntryPart<'a>>,
}

impl<'a> From<&'a QueueList<'a>> for QueueDocument<'a> {
    fn from(list: &'a QueueList<'a>) -> Self {
        Self {
            queues: list.queues.iter().map(QueuePart::from).collect(),
            entries: list.entries.iter().map(QueueEntryPart::from).collect(),
        }
    }
}

/// A queue.
#[derive(Serialize, JsonSchema)]
pub struct QueuePart<'a> {
    /// Its name.
    pub name: &'a QueueName,
    /// Who may begin before whom.
    pub policy: Word<QueuePolicy>,
    /// How many of its jobs may be at work at once; null without a limit.
    pub max_parallel: Option<u32>,
    /// Where its jobs begin, whatever they name; empty where each says it.
    pub on: &'a [String],
    /// What it does.
    pub state: Word<QueueState>,
}

impl<'a> From<&'a Queue> for QueuePart<'a> {
    fn from(queue: &'a Queue) -> Self {
        let Queue { name, policy, max_parallel, on, state } = queue;
        Self { name, policy: Word(*policy), max_parallel: *max_parallel, on, state: Word(*state) }
    }
}

/// What waits, as it stands now.
#[derive(Serialize, JsonSchema)]
pub struct QueueEntryPart<'a> {
    /// Whose it is.
    pub user: &'a UserName,
    /// The number of the job or the group.
    pub window: JobNumber,
    /// The name by which it is called; null if it has none.
    pub name: Option<&'a str>,
    /// The members that wait; null for a job by itself.
    pub members: Option<Vec<u32>>,
    /// The queue in which it stands.
    pub queue: &'a QueueName,
    /// Its place there, from 1.
    pub position: usize,
    /// How urgent it is, from 0 to 100.
    pub priority: u8,
    /// Whether somebody holds it.
    pub held: bool,
    /// Why it waits; null where it begins at the next look.
    pub reason: Option<String>,
    /// On what it is to begin.
    pub wants: String,
    /// When it was submitted.
    pub since: TimePart,
    /// When it is expected to begin, of a group its first member; null where that cannot be foreseen.
    pub expected_start: Option<TimePart>,
    /// When the last of its members that wait is; null where that cannot be foreseen.
    pub expected_last_start: Option<TimePart>,
}

impl<'a> From<&ListedEntry<'a>> for QueueEntryPart<'a> {
    fn from(listed: &ListedEntry<'a>) -> Self {
        let ListedEntry { entry, standing, expected } = listed;
        let (first, last) = match expected {
            Some(ExpectedStart::About { first, last, .. }) => (Some(*first), *last),
            Some(ExpectedStart::Unknown(_)) | None => (None, None),
        };
        Self {
            user: &entry.user,
            window: entry.number,
            name: entry.spec.name.as_deref(),
            members: members(entry),
            queue: &entry.queue,
            position: standing.position,
            priority: entry.priority.number(),
            held: entry.held.is_some(),
            reason: standing.waits.as_ref().map(ToString::to_string),
            wants: wants(&entry.spec.target),
            since: TimePart(entry.since),
            expected_start: first.map(TimePart),
            expected_last_start: last.map(TimePart),
        }
    }
}

/// What waits, one entry of it.
#[derive(Serialize, JsonSchema)]
pub struct QueueEntryDocument<'a> {
    /// The entry.
    pub entry: QueueEntryPart<'a>,
}

/// The members of an entry that wait.
pub fn members(entry: &QueueEntry) -> Option<Vec<u32>> {
    entry.spec.array.as_ref().map(|array| array.indexes().to_vec())
}

/// What was changed of what waits.
#[derive(Serialize, JsonSchema)]
pub struct WaitingChangedDocument<'a> {
    /// The jobs and groups.
    pub jobs: Vec<JobIdPart<'a>>,
    /// Those that have begun since.
    pub started: Vec<JobIdPart<'a>>,
}

impl<'a> WaitingChangedDocument<'a> {
    /// The document.
    pub fn of(jobs: &'a [JobId], started: &'a [JobId]) -> Self {
        Self {
            jobs: jobs.iter().map(JobIdPart::from).collect(),
            started: started.iter().map(JobIdPart::from).collect(),
        }
    }
}

/// The queues that there are.
#[derive(Serialize, JsonSchema)]
pub struct QueuesDocument<'a> {
    /// The usual one, and those that were made.
    pub queues: Vec<QueuePart<'a>>,
}

/// A queue that was made, changed or forgotten.
#[derive(Serialize, JsonSchema)]
pub struct QueueChangedDocument<'a> {
    /// The queue; null where it is there no more.
    pub queue: Option<QueuePart<'a>>,
}
