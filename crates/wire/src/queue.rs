//! What waits in the queue: `submit`, `queue`, `hold`, `priority`, `dequeue`.

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

use super::document::{documents, part};
use super::jobs::JobIdPart;
use super::words::{TimePart, Word};

documents! {
    /// Jobs that were submitted.
    pub struct SubmittedDocument<'a> {
        /// The jobs and groups.
        jobs: Vec<SubmittedPart<'a>>,
        /// Those that have begun at once.
        started: Vec<JobIdPart<'a>>,
    }

    /// A job or a group that was submitted.
    pub struct SubmittedPart<'a> from job: &'a QueuedJob {
        /// Whose it is.
        user: &'a UserName = &job.id.user,
        /// Its number.
        window: JobNumber = job.id.window,
        /// The name by which it is called; null if it has none.
        name: Option<&'a str>,
        /// Its members; null for a job by itself.
        members: Option<Vec<u32>>,
    }

    /// What waits.
    pub struct QueueDocument<'a> from list: &'a QueueList<'a> {
        /// All queues.
        queues: Vec<QueuePart<'a>>,
        /// What waits, in the order of the turns.
        entries: Vec<QueueEntryPart<'a>>,
    }

    /// A queue.
    pub struct QueuePart<'a> from queue: &'a Queue {
        /// Its name.
        name: &'a QueueName,
        /// Who may begin before whom.
        policy: Word<QueuePolicy>,
        /// How many of its jobs may be at work at once; null without a limit.
        max_parallel: Option<u32>,
        /// Where its jobs begin, whatever they name; empty where each says it.
        on: &'a [String],
        /// What it does.
        state: Word<QueueState>,
    }

    /// What waits, as it stands now.
    pub struct QueueEntryPart<'a> from listed: &'a ListedEntry<'a> {
        /// Whose it is.
        user: &'a UserName = &listed.entry.user,
        /// The number of the job or the group.
        window: JobNumber = listed.entry.number,
        /// The name by which it is called; null if it has none.
        name: Option<&'a str> = part(&listed.entry.spec.name),
        /// The members that wait; null for a job by itself.
        members: Option<Vec<u32>> = members(listed.entry),
        /// The queue in which it stands.
        queue: &'a QueueName = &listed.entry.queue,
        /// Its place there, from 1.
        position: usize = listed.standing.position,
        /// How urgent it is, from 0 to 100.
        priority: u8 = listed.entry.priority.number(),
        /// Whether somebody holds it.
        held: bool = listed.entry.held.is_some(),
        /// Why it waits; null where it starts at the next look.
        reason: Option<String> = listed.standing.waits.as_ref().map(ToString::to_string),
        /// On what it is to begin.
        wants: String = wants(&listed.entry.spec.target),
        /// When it was submitted.
        since: TimePart = part(&listed.entry.since),
        /// When it is expected to begin, of a group its first member; null where that cannot be foreseen.
        expected_start: Option<TimePart> =
            listed.expected.as_ref().and_then(ExpectedStart::first).map(TimePart),
        /// When the last of its members that wait is; null where that cannot be foreseen.
        expected_last_start: Option<TimePart> =
            listed.expected.as_ref().and_then(ExpectedStart::last).map(TimePart),
    }

    /// What waits, one entry of it.
    pub struct QueueEntryDocument<'a> {
        /// The entry.
        entry: QueueEntryPart<'a>,
    }

    /// What was changed of what waits.
    pub struct WaitingChangedDocument<'a> {
        /// The jobs and groups.
        jobs: Vec<JobIdPart<'a>>,
        /// Those that have begun since.
        started: Vec<JobIdPart<'a>>,
    }

    /// The queues that there are.
    pub struct QueuesDocument<'a> {
        /// The usual one, and those that were made.
        queues: Vec<QueuePart<'a>>,
    }

    /// A queue that was made, changed or forgotten.
    pub struct QueueChangedDocument<'a> {
        /// The queue; null where it is there no more.
        queue: Option<QueuePart<'a>>,
    }
}

impl<'a> SubmittedDocument<'a> {
    /// What was queued; `started` are those that have begun since.
    pub fn of(queued: &'a QueuedJobs, started: &'a [JobId]) -> Self {
        Self { jobs: part(&queued.jobs), started: part(started) }
    }

    /// What has become of jobs that were queued before, as they are called now; `begun` are those that have begun.
    pub fn now(data: &'a Data, jobs: &'a [JobId], begun: &'a [JobId]) -> Self {
        Self {
            jobs: jobs.iter().map(|id| SubmittedPart::now(data, id)).collect(),
            started: part(begun),
        }
    }
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

/// The members of an entry that wait.
pub fn members(entry: &QueueEntry) -> Option<Vec<u32>> {
    entry.spec.array.as_ref().map(|array| array.indexes().to_vec())
}

impl<'a> WaitingChangedDocument<'a> {
    /// The document.
    pub fn of(jobs: &'a [JobId], started: &'a [JobId]) -> Self {
        Self { jobs: part(jobs), started: part(started) }
    }
}
