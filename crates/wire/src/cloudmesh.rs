//! What became of files of Cloudmesh, and its jobset.

use std::path::Path;

use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::policy::Policy;
use tpu_jobfile::cloudmesh::{ImportedHost, ImportedJob, ReadField};
use tpu_ops::act::hosts::detect::Asked;
use tpu_ops::front::cloudmesh::import::{CloudmeshImport, HostFate, ImportedFile, PolicyFate};
use tpu_ops::front::cloudmesh::list::{CmsList, word_of};
use tpu_ops::front::cloudmesh::ready::JobFate;
use tpu_ops::waiting::words::wants;

use super::document::{documents, part};
use super::jobs::{JobIdPart, JobPart};

documents! {
    /// What became of files.
    pub struct CloudmeshDocument<'a> from import: &'a CloudmeshImport {
        /// Each of them.
        files: Vec<CloudmeshFilePart<'a>>,
        /// Hosts that were tried and did not answer; they are hosts all the same.
        silent: Vec<SilentHostPart<'a>> = import.answers.iter().filter_map(silent).collect(),
    }

    /// A host that did not answer.
    pub struct SilentHostPart<'a> {
        /// Its name.
        name: &'a str,
        /// Why it does not answer.
        why: &'a str,
    }

    /// What became of a file.
    pub struct CloudmeshFilePart<'a> from imported: &'a ImportedFile {
        /// Where it lies.
        path: String = imported.path.display().to_string(),
        /// What it is, in words: a jobset, a queue, a cluster.
        is: String = imported.file.kind.in_words(),
        /// Its hosts.
        hosts: Vec<CloudmeshHostPart<'a>> =
            imported.each_host().map(CloudmeshHostPart::from).collect(),
        /// The policy of its scheduler; null where it has none.
        policy: Option<CloudmeshPolicyPart> =
            imported.file.policy.zip(imported.policy.as_ref()).map(CloudmeshPolicyPart::from),
        /// Its jobs.
        jobs: Vec<CloudmeshJobPart<'a>> = imported.each_job().map(CloudmeshJobPart::from).collect(),
        /// What it says beside these.
        fields: Vec<ReadFieldPart<'a>> = part(&imported.file.fields),
    }

    /// A host of a file.
    pub struct CloudmeshHostPart<'a> from (host, fate): (&'a ImportedHost, &'a HostFate) {
        /// Its name.
        name: &'a str,
        /// The line on which it stands.
        line: u64,
        /// What became of it: added, joined (a pool), known, differs (it is left as it is).
        fate: &'static str = host_word(fate),
        /// How the file differs from what is known.
        differences: &'a [String] = if let HostFate::Differs(how) = fate { how } else { &[] },
        /// Every field, and what became of it.
        fields: Vec<ReadFieldPart<'a>>,
    }

    /// The policy of a scheduler.
    pub struct CloudmeshPolicyPart from (policy, fate): (Policy, &'a PolicyFate) {
        /// Its word.
        policy: &'static str = policy.as_str(),
        /// What became of it: set, known, differs (another one holds and stays), nobody (no user is known whose it could
        /// be).
        fate: &'static str = policy_word(fate),
    }

    /// A job of a file.
    pub struct CloudmeshJobPart<'a> from (job, fate): (&'a ImportedJob, &'a JobFate) {
        /// Its name.
        name: &'a str,
        /// The line on which it stands.
        line: u64,
        /// What its state means here.
        becomes: &'static str = job.state.as_str(),
        /// What became of it: added (it is held), known (it waits already), differs (the same, with other values, and is
        /// left as it is), begun (it has begun here), over, at work (by its state, and left alone), refused, nobody (no user
        /// is known whose it could be).
        fate: &'static str = fate.word(),
        /// The same in words.
        what: String = fate.in_words(&job.name),
        /// What keeps it from beginning as it is.
        notes: &'a [String] = if let JobFate::Added(notes) = fate { notes } else { &[] },
        /// Every field, and what becomes of it.
        fields: Vec<ReadFieldPart<'a>>,
    }

    /// A field of a file.
    pub struct ReadFieldPart<'a> from field: &'a ReadField {
        /// Its name.
        name: &'a str,
        /// What stands there.
        value: &'a str,
        /// What becomes of it.
        becomes: &'a str,
    }

    /// The jobset that somebody works with.
    pub struct JobsetDocument<'a> {
        /// Where it lies.
        jobset: &'a Path,
        /// Whether it is there.
        is_there: bool,
    }

    /// Jobs that were added, run, made ready again or taken away, line by line.
    pub struct CmsJobsChangedDocument<'a> {
        /// What became of each, for people.
        said: &'a [String],
        /// Those that have begun.
        started: Vec<JobIdPart<'a>>,
    }

    /// The jobs that are here, those that wait, and those that stand in the jobset alone.
    pub struct CmsJobsDocument<'a> from list: &'a CmsList {
        /// The jobs that have begun.
        jobs: Vec<JobPart<'a>>,
        /// Those that wait, ready ones too.
        waiting: Vec<CmsWaitingPart<'a>>,
        /// Those that stand in the jobset and are not here.
        in_file: Vec<CmsInFilePart<'a>>,
    }

    /// A job that waits.
    pub struct CmsWaitingPart<'a> from entry: &'a QueueEntry {
        /// Whose it is.
        user: &'a UserName,
        /// Its number.
        window: JobNumber = entry.number,
        /// Its name; null if it has none.
        name: Option<&'a str> = part(&entry.spec.name),
        /// ready, undefined (it names no host), held (by somebody) or queued.
        status: &'static str = word_of(entry),
        /// Where it is to run.
        target: String = wants(&entry.spec.target),
    }

    /// A job that stands in the jobset alone.
    pub struct CmsInFilePart<'a> from job: &'a ImportedJob {
        /// Its name.
        name: &'a str,
        /// What its state means here.
        becomes: &'static str = job.state.as_str(),
    }

    /// A jobset that was written to begin with.
    pub struct TemplateDocument<'a> {
        /// Where it lies.
        file: &'a Path,
        /// The names of its jobs.
        jobs: &'a [String],
    }

    /// How a host is chosen for a user's jobs.
    pub struct PolicyDocument<'a> {
        /// Whose jobs; null where nobody is known.
        user: Option<&'a UserName>,
        /// The word of the policy.
        policy: &'static str,
        /// Who says so.
        origin: String,
    }

    /// Whether the service answers that `tpu cms job --service start` begins.
    pub struct CmsServiceDocument<'a> {
        /// Whether it does.
        answers: bool,
        /// Where it says what there is.
        docs: &'a str,
    }
}

/// A host that was tried, if it did not answer.
fn silent((name, answer): &Asked) -> Option<SilentHostPart<'_>> {
    Some(SilentHostPart { name: name.as_str(), why: answer.as_ref().err()? })
}

/// The word for what became of a host.
fn host_word(fate: &HostFate) -> &'static str {
    match fate {
        HostFate::Added => "added",
        HostFate::Joined(_) => "joined",
        HostFate::Known => "known",
        HostFate::Differs(_) => "differs",
    }
}

/// The word for what became of a policy.
fn policy_word(fate: &PolicyFate) -> &'static str {
    match fate {
        PolicyFate::Set(_) => "set",
        PolicyFate::Same(_) => "known",
        PolicyFate::Other(..) => "differs",
        PolicyFate::Nobody => "nobody",
    }
}
