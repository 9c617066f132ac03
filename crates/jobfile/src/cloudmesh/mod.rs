//! The files of Cloudmesh: jobsets (`cloudmesh.jobset.hosts|jobs|scheduler`), `*-queue.yaml` and `*-cluster.yaml`.
//!
//! Every field is kept with what it said and what it means here, so that a person sees what became of each. Values are
//! often quoted numbers (`'2'`) or blanks (`' '`): both are understood.

mod converted;
mod fields;
mod hosts;
mod jobs;
pub mod template;

use tpu_core::model::policy::Policy;

use super::BadFile;
use super::yaml::{self, Yaml};
use fields::Fields;

pub use converted::converted;
pub use fields::ReadField;
pub use hosts::ImportedHost;
pub use jobs::{ImportedJob, ImportedState};

/// Which of its files one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudmeshKind {
    /// Hosts, jobs and a scheduler.
    Jobset,
    /// The jobs of a queue, which has this name.
    Queue(String),
    /// The hosts of a cluster, which has this name.
    Cluster(String),
}

impl CloudmeshKind {
    /// What it is, for people.
    pub fn in_words(&self) -> String {
        match self {
            Self::Jobset => "a jobset".to_owned(),
            Self::Queue(name) => format!("the queue {name}"),
            Self::Cluster(name) => format!("the cluster {name}"),
        }
    }
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudmeshFile {
    /// What it is.
    pub kind: CloudmeshKind,
    /// What it says beside its hosts and jobs.
    pub fields: Vec<ReadField>,
    /// Its hosts, in their order.
    pub hosts: Vec<ImportedHost>,
    /// How its scheduler chooses a host.
    pub policy: Option<Policy>,
    /// Its jobs, in their order.
    pub jobs: Vec<ImportedJob>,
}

/// Reads a file. `name` is its last part, which says what it is where its contents do not.
pub fn read(name: &str, text: &str) -> Result<CloudmeshFile, BadFile> {
    let yaml = yaml::read(text)?;
    let mut file = CloudmeshFile {
        kind: kind(name, &yaml)?,
        fields: Vec::new(),
        hosts: Vec::new(),
        policy: None,
        jobs: Vec::new(),
    };
    match &file.kind {
        CloudmeshKind::Jobset => read_jobset(&yaml, &mut file)?,
        CloudmeshKind::Queue(_) => file.jobs = all(&yaml, "", jobs::read)?,
        CloudmeshKind::Cluster(_) => {
            file.hosts = all(&yaml, "", hosts::read_of_cluster)?;
            hosts::refuse_one_twice(&file.hosts)?;
        }
    }
    Ok(file)
}

/// Reads a file of jobs alone, as `job add FILE` takes it: a jobset, or names with the fields of a job below each.
pub fn read_jobs(name: &str, text: &str) -> Result<Vec<ImportedJob>, BadFile> {
    let yaml = yaml::read(text)?;
    match kind(name, &yaml) {
        Ok(CloudmeshKind::Jobset | CloudmeshKind::Cluster(_)) => read(name, text).map(|it| it.jobs),
        Ok(CloudmeshKind::Queue(_)) | Err(_) => all(&yaml, "", jobs::read),
    }
}

fn kind(name: &str, yaml: &Yaml) -> Result<CloudmeshKind, BadFile> {
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    if let Some(queue) = stem.strip_suffix("-queue") {
        return Ok(CloudmeshKind::Queue(queue.to_owned()));
    }
    if let Some(cluster) = stem.strip_suffix("-cluster") {
        return Ok(CloudmeshKind::Cluster(cluster.to_owned()));
    }
    if yaml.get("cloudmesh").is_some() {
        return Ok(CloudmeshKind::Jobset);
    }
    Err(BadFile {
        line: None,
        column: None,
        field: String::new(),
        what: "it is no file of Cloudmesh".to_owned(),
        hint: "a jobset has `cloudmesh:` and below it `jobset:`; other files are called \
               NAME-queue.yaml or NAME-cluster.yaml"
            .to_owned(),
    })
}

/// Each member of a map, read with its name.
fn all<T>(
    yaml: &Yaml,
    path: &str,
    read: impl Fn(&str, Fields<'_>) -> Result<T, BadFile>,
) -> Result<Vec<T>, BadFile> {
    let below = |name: &str| fields::below(path, name);
    let members = yaml.members(path)?.iter();
    members
        .map(|(name, value)| {
            fields::refuse_unsafe(value.line, &below(name), name)?;
            read(name, Fields::new(value, below(name))?)
        })
        .collect()
}

fn read_jobset(yaml: &Yaml, file: &mut CloudmeshFile) -> Result<(), BadFile> {
    let mut user = None;
    for (key, value) in yaml.members("")? {
        if key != "cloudmesh" {
            file.fields.push(fields::unknown(key, value));
            continue;
        }
        for (key, value) in value.members("cloudmesh")? {
            let path = fields::below("cloudmesh", key);
            match key.as_str() {
                "default" => user = read_default(value, &path, &mut file.fields)?,
                "jobset" => read_set(value, &path, file)?,
                _ => file.fields.push(fields::unknown(&path, value)),
            }
        }
    }
    for host in &mut file.hosts {
        host.user = host.user.take().or_else(|| user.clone());
    }
    hosts::refuse_one_twice(&file.hosts)
}

/// `cloudmesh.default`: the account of hosts and jobs that name none.
fn read_default(
    yaml: &Yaml,
    path: &str,
    others: &mut Vec<ReadField>,
) -> Result<Option<String>, BadFile> {
    let mut fields = Fields::new(yaml, path.to_owned())?;
    let user = fields.text("user", "the account on hosts that name none")?;
    others.extend(fields.rest().into_iter().map(|field| field.below(path)));
    Ok(user)
}

fn read_set(yaml: &Yaml, path: &str, file: &mut CloudmeshFile) -> Result<(), BadFile> {
    for (key, value) in yaml.members(path)? {
        let path = fields::below(path, key);
        match key.as_str() {
            "hosts" => file.hosts = all(value, &path, hosts::read_of_jobset)?,
            "jobs" => file.jobs = all(value, &path, jobs::read)?,
            "scheduler" => read_scheduler(value, &path, file)?,
            _ => file.fields.push(fields::unknown(&path, value)),
        }
    }
    Ok(())
}

fn read_scheduler(yaml: &Yaml, path: &str, file: &mut CloudmeshFile) -> Result<(), BadFile> {
    let mut fields = Fields::new(yaml, path.to_owned())?;
    let line = fields.line("policy");
    if let Some(word) = fields.text("policy", "the setting `policy`")? {
        file.policy = Some(Policy::parse(&word).ok_or_else(|| {
            let what = format!("'{word}' is no policy");
            BadFile::new(line, fields::below(path, "policy"), what, policies())
        })?);
    }
    file.fields.extend(fields.rest().into_iter().map(|field| field.below(path)));
    Ok(())
}

/// The words of the policies, as advice.
pub fn policies() -> String {
    format!("it is {}", tpu_core::text::either(&Policy::ALL.map(Policy::as_str)))
}
