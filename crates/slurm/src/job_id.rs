//! What identifies a job to Slurm: the name that it was submitted under, which nothing else ever has, and the number
//! that Slurm gave it, which is used again after a reset. Both lie in the handle of a run.

use std::fmt;

use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;

/// How the names of our jobs begin.
const PREFIX: &str = "tpu-";

/// The name of the job of a launch. A job array has that of its first member.
pub(super) fn name_of(token: &LaunchToken) -> String {
    format!("{PREFIX}{token}")
}

/// A number that Slurm gave: `1234`, or `1234_7` for a task of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlurmId {
    /// The number of the job.
    pub(super) base: u64,
    /// The task.
    pub(super) task: Option<u32>,
}

impl SlurmId {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once('_') {
            Some((base, task)) => {
                Some(Self { base: base.parse().ok()?, task: Some(task.parse().ok()?) })
            }
            None => Some(Self { base: text.parse().ok()?, task: None }),
        }
    }
}

impl fmt::Display for SlurmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}_{task}", self.base),
            None => write!(f, "{}", self.base),
        }
    }
}

/// A job as its handle says: `tpu-TOKEN` until Slurm has given it a number, then `1234@tpu-TOKEN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobRef {
    /// The name that it was to be submitted under.
    pub(super) name: String,
    /// The name of its own launch, where that is another one.
    pub(super) own: Option<String>,
    /// Its number, once that is known.
    pub(super) id: Option<SlurmId>,
    /// Which task it is, if it is one of an array.
    pub(super) task: Option<u32>,
}

impl JobRef {
    /// That of a record.
    pub(super) fn of(job: &Job) -> Self {
        let token = job.launch.as_ref().map(|launch| &launch.token);
        let own = token.map(name_of).unwrap_or_default();
        let text = job.engine.as_ref().and_then(|run| run.id.as_deref()).unwrap_or_default();
        let (id, name) = match text.split_once('@') {
            Some((id, name)) => (SlurmId::parse(id), name),
            None => (None, text),
        };
        let task = job.member().map(|member| member.index);
        // Of a group the first member has given its name. Whoever is no member has the name of his own launch, or
        // is another job.
        if name.is_empty() || name == own || task.is_none() {
            return Self { id: id.filter(|_| name == own), name: own, own: None, task };
        }
        Self { name: name.to_owned(), own: Some(own), id, task }
    }

    /// The names under which it can be found.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.own).map(String::as_str)
    }
}

/// What the handle keeps of a job that has no number yet, or has one.
pub(super) fn kept(name: &str, id: Option<SlurmId>) -> String {
    match id {
        Some(id) => format!("{id}@{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
    use tpu_core::model::job::{EngineRun, Launch, LaunchMode};
    use tpu_core::model::member::Member;
    use tpu_core::model::spec::StoredSpec;
    use tpu_core::model::target::TargetKind;
    use tpu_core::model::time::Timestamp;

    fn job(token: &str, id: Option<&str>, member: Option<u32>) -> Job {
        let number = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&number, TargetName::from("gpu"), "/d".to_owned());
        job.launch = Some(Launch::claimed(token, LaunchMode::Native, Timestamp::from_second(0)));
        let kind = TargetKind::new("slurm");
        let id = id.map(str::to_owned);
        job.engine =
            Some(Box::new(EngineRun { kind, cluster: "usual".to_owned(), id, name: None }));
        let member = member.map(|index| Member { group: JobNumber(5), index });
        job.spec = Some(Box::new(StoredSpec { member, ..StoredSpec::default() }));
        job
    }

    #[test]
    fn a_handle_keeps_name_and_number() {
        let id = SlurmId { base: 1234, task: Some(7) };
        let text = kept("tpu-first", Some(id));
        assert_eq!(text, "1234_7@tpu-first");
        let found = JobRef::of(&job("mine", Some(&text), Some(7)));
        assert_eq!((found.id, found.task), (Some(id), Some(7)));
        assert_eq!(found.names().collect::<Vec<_>>(), ["tpu-first", "tpu-mine"]);
        let unnumbered = JobRef::of(&job("mine", Some(&kept("tpu-mine", None)), None));
        assert_eq!((unnumbered.id, unnumbered.task), (None, None));
        assert_eq!(unnumbered.names().collect::<Vec<_>>(), ["tpu-mine"]);
        assert_eq!(JobRef::of(&job("mine", None, None)).name, "tpu-mine");
        let another = JobRef::of(&job("another", Some("1234@tpu-mine"), None));
        assert_eq!((another.name.as_str(), another.id), ("tpu-another", None));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for odd in ["", "a", "1_", "_1", "1_a", "-1", "99999999999999999999999"] {
            assert_eq!(SlurmId::parse(odd), None, "{odd}");
        }
    }
}
