//! What became of files of Cloudmesh, and its jobset.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_jobfile::cloudmesh::{ImportedHost, ImportedJob, ReadField};
use tpu_ops::front::cloudmesh::import::{CloudmeshImport, HostFate, ImportedFile, PolicyFate};
use tpu_ops::front::cloudmesh::list::{CmsList, word_of};
use tpu_ops::front::cloudmesh::ready::JobFate;
use tpu_ops::waiting::words::wants;

use super::jobs::{JobIdPart, JobPart};

/// What became of files.
#[derive(Serialize, JsonSchema)]
pub struct CloudmeshDocument {
    /// Each of them.
    pub files: Vec<CloudmeshFilePart>,
    /// Hosts that were tried and did not answer; they are hosts all the same.
    pub silent: Vec<SilentHostPart>,
}

impl From<&CloudmeshImport> for CloudmeshDocument {
    fn from(import: &CloudmeshImport) -> Self {
        let silent = import.answers.iter().filter_map(|(name, answer)| {
            let why = answer.as_ref().err()?.clone();
            Some(SilentHostPart { name: name.as_str().to_owned(), why })
        });
        Self {
            files: import.files.iter().map(CloudmeshFilePart::from).collect(),
            silent: silent.collect(),
        }
    }
}

/// A host that did not answer.
#[derive(Serialize, JsonSchema)]
pub struct SilentHostPart {
    /// Its name.
    pub name: String,
    /// Why it does not answer.
    pub why: String,
}

/// What became of a file.
#[derive(Serialize, JsonSchema)]
pub struct CloudmeshFilePart {
    /// Where it lies.
    pub path: String,
    /// What it is, in words: a jobset, a queue, a cluster.
    pub is: String,
    /// Its hosts.
    pub hosts: Vec<CloudmeshHostPart>,
    /// The policy of its scheduler; null where it has none.
    pub policy: Option<CloudmeshPolicyPart>,
    /// Its jobs.
    pub jobs: Vec<CloudmeshJobPart>,
    /// What it says beside these.
    pub fields: Vec<ReadFieldPart>,
}

impl From<&ImportedFile> for CloudmeshFilePart {
    fn from(imported: &ImportedFile) -> Self {
        let file = &imported.file;
        let fate = imported.policy.as_ref();
        let policy = file.policy.zip(fate).map(|(policy, fate)| CloudmeshPolicyPart {
            policy: policy.as_str(),
            fate: match fate {
                PolicyFate::Set(_) => "set",
                PolicyFate::Same(_) => "known",
                PolicyFate::Other(..) => "differs",
                PolicyFate::Nobody => "nobody",
            },
        });
        let job = |(job, fate): (&ImportedJob, &JobFate)| CloudmeshJobPart {
            name: job.name.clone(),
            line: job.line,
            becomes: job.state.as_str(),
            fate: fate.word(),
            what: fate.in_words(&job.name),
            notes: if let JobFate::Added(notes) = fate { notes.clone() } else { Vec::new() },
            fields: job.fields.iter().map(ReadFieldPart::from).collect(),
        };
        Self {
            path: imported.path.display().to_string(),
            is: file.kind.in_words(),
            hosts: imported.each_host().map(CloudmeshHostPart::from).collect(),
            policy,
            jobs: imported.each_job().map(job).collect(),
            fields: file.fields.iter().map(ReadFieldPart::from).collect(),
        }
    }
}

/// A host of a file.
#[derive(Serialize, JsonSchema)]
pub struct CloudmeshHostPart {
    /// Its name.
    pub name: String,
    /// The line on which it stands.
    pub line: u64,
    /// What became of it: added, joined (a pool), known, differs (it is left as it is).
    pub fate: &'static str,
    /// How the file differs from what is known.
    pub differences: Vec<String>,
    /// Every field, and what became of it.
    pub fields: Vec<ReadFieldPart>,
}

impl From<(&ImportedHost, &HostFate)> for CloudmeshHostPart {
    fn from((host, fate): (&ImportedHost, &HostFate)) -> Self {
        let (fate, differences) = match fate {
            HostFate::Added => ("added", Vec::new()),
            HostFate::Joined(_) => ("joined", Vec::new()),
            HostFate::Known => ("known", Vec::new()),
            HostFate::Differs(how) => ("differs", how.clone()),
        };
        let fields = host.fields.iter().map(ReadFieldPart::from).collect();
        Self { name: host.name.clone(), line: host.line, fate, differences, fields }
    }
}

/// The policy of a scheduler.
#[derive(Serialize, JsonSchema)]
pub struct CloudmeshPolicyPart {
    /// Its word.
    pub policy: &'static str,
    /// What became of it: set, known, differs (another one holds and stays), nobody (no user is known whose it could
    /// be).
    pub fate: &'static str,
}

/// A job of a file.
#[derive(Serialize, JsonSchema)]
pub struct CloudmeshJobPart {
    /// Its name.
    pub name: String,
    /// The line on which it stands.
    pub line: u64,
    /// What its state means here.
    pub becomes: &'static str,
    /// What became of it: added (it is held), known (it waits already), differs (the same, with other values, and is
    /// left as it is), begun (it has begun here), over, at work (by its state, and left alone), refused, nobody (no user
    /// is known whose it could be).
    pub fate: &'static str,
    /// The same in words.
    pub what: String,
    /// What keeps it from beginning as it is.
    pub notes: Vec<String>,
    /// Every field, and what becomes of it.
    pub fields: Vec<ReadFieldPart>,
}

/// A field of a file.
#[derive(Serialize, JsonSchema)]
pub struct ReadFieldPart {
    /// Its name.
    pub name: String,
    /// What stands there.
    pub value: String,
    /// What becomes of it.
    pub becomes: String,
}

impl From<&ReadField> for ReadFieldPart {
    fn from(field: &ReadField) -> Self {
        let ReadField { name, value, becomes } = field.clone();
        Self { name, value, becomes }
    }
}

/// The jobset that somebody works with.
#[derive(Serialize, JsonSchema)]
pub struct JobsetDocument<'a> {
    /// Where it lies.
    pub jobset: &'a Path,
    /// Whether it is there.
    pub is_there: bool,
}

/// Jobs that were added, run, made ready again or taken away, line by line.
#[derive(Serialize, JsonSchema)]
pub struct CmsJobsChangedDocument<'a> {
    /// What became of each, for people.
    pub said: &'a [String],
    /// Those that have begun.
    pub started: Vec<JobIdPart<'a>>,
}

/// The jobs that are here, those that wait, and those that stand in the jobset alone.
#[derive(Serialize, JsonSchema)]
pub struct CmsJobsDocument<'a> {
    /// The jobs that have begun.
    pub jobs: Vec<JobPart<'a>>,
    /// Those that wait, ready ones too.
    pub waiting: Vec<CmsWaitingPart<'a>>,
    /// Those that stand in the jobset and are not here.
    pub in_file: Vec<CmsInFilePart<'a>>,
}

impl<'a> From<&'a CmsList> for CmsJobsDocument<'a> {
    fn from(list: &'a CmsList) -> Self {
        let waiting = |entry: &'a QueueEntry| CmsWaitingPart {
            user: &entry.user,
            window: entry.number,
            name: entry.spec.name.as_deref(),
            status: word_of(entry),
            target: wants(&entry.spec.target),
        };
        let in_file =
            |job: &'a ImportedJob| CmsInFilePart { name: &job.name, becomes: job.state.as_str() };
        Self {
            jobs: list.jobs.iter().map(JobPart::from).collect(),
            waiting: list.waiting.iter().map(waiting).collect(),
            in_file: list.in_file.iter().map(in_file).collect(),
        }
    }
}

/// A job that waits.
#[derive(Serialize, JsonSchema)]
pub struct CmsWaitingPart<'a> {
    /// Whose it is.
    pub user: &'a UserName,
    /// Its number.
    pub window: JobNumber,
    /// Its name; null if it has none.
    pub name: Option<&'a str>,
    /// ready, undefined (it names no host), held (by somebody) or queued.
    pub status: &'static str,
    /// Where it is to run.
    pub target: String,
}

/// A job that stands in the jobset alone.
#[derive(Serialize, JsonSchema)]
pub struct CmsInFilePart<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its state means here.
    pub becomes: &'static str,
}

/// A jobset that was written to begin with.
#[derive(Serialize, JsonSchema)]
pub struct TemplateDocument<'a> {
    /// Where it lies.
    pub file: &'a Path,
    /// The names of its jobs.
    pub jobs: &'a [String],
}

/// How a host is chosen for a user's jobs.
#[derive(Serialize, JsonSchema)]
pub struct PolicyDocument<'a> {
    /// Whose jobs; null where nobody is known.
    pub user: Option<&'a UserName>,
    /// The word of the policy.
    pub policy: &'static str,
    /// Who says so.
    pub origin: String,
}

/// Whether the service answers that `tpu cms job --service start` begins.
#[derive(Serialize, JsonSchema)]
pub struct CmsServiceDocument<'a> {
    /// Whether it does.
    pub answers: bool,
    /// Where it says what there is.
    pub docs: &'a str,
}
