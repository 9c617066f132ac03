//! What identifies a Job: the launch token in a label, which nothing else ever has; its name, which people see; and the
//! identity that the server gave it. Name and identity lie in the handle of a run.

use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;

use super::options::NODES;

/// The label that holds the launch token, of Jobs, pods and everything else that belongs to a launch.
pub(super) const LAUNCH: &str = "tpu.launch";

/// The label by which Kueue has a Job wait in one of its queues.
pub(super) const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The name of a Job whose user has given none.
const UNNAMED: &str = "tpu";

/// So many characters a name has at most: it is a label of the pods (names of labels, RFC 1123).
const MOST: usize = 63;

/// So many characters a rank has at most, with the dash before it.
pub(super) const RANK: usize = 4;

/// So many characters of the token make a name nobody else's.
const TOKEN: usize = 8;

/// A Job as the record and its handle say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobRef {
    /// Its launch token.
    pub(super) token: String,
    /// Its name.
    pub(super) name: String,
    /// Its identity, once the server has said it.
    pub(super) uid: Option<String>,
}

impl JobRef {
    /// That of a record.
    pub(super) fn of(job: &Job) -> Self {
        let token = job.launch.as_ref().map(|launch| launch.token.clone());
        let token = token.unwrap_or_else(|| "".into());
        let name = name_of(job, &token);
        let text = job.engine.as_ref().and_then(|run| run.id.as_deref()).unwrap_or_default();
        // A handle that was taken over with its record from another attempt says nothing of this one.
        let uid = text.split_once('@').filter(|(_, of)| *of == name).map(|(uid, _)| uid.to_owned());
        Self { token: token.as_str().to_owned(), name, uid }
    }

    /// What the handle keeps.
    pub(super) fn kept(&self) -> String {
        match &self.uid {
            Some(uid) => format!("{uid}@{}", self.name),
            None => self.name.clone(),
        }
    }

    /// The selector of labels that finds all that belongs to it.
    pub(super) fn selector(&self) -> String {
        format!("{LAUNCH}={}", self.token)
    }
}

/// The name of the Job of a launch. One that a person has given as it is to be is taken once: who goes on from it has it
/// with a word of the token, like every other.
fn name_of(job: &Job, token: &LaunchToken) -> String {
    let said = job.spec.as_ref().and_then(|spec| spec.options.get(super::options::JOB_NAME));
    if let (Some(name), None) = (said, job.father) {
        return name.to_owned();
    }
    let base = plain(said.or(job.name()).unwrap_or(UNNAMED));
    let token: String = token
        .as_str()
        .to_ascii_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(TOKEN)
        .collect();
    // The name of a pod that has a rank has that behind it.
    let is_ranked = job.spec.as_ref().is_some_and(|spec| spec.options.get(NODES).is_some());
    let most = MOST - TOKEN - 1 - if is_ranked { RANK } else { 0 };
    let base: String = base.chars().take(most).collect();
    format!("{}-{token}", base.trim_end_matches('-'))
}

/// A name as the server takes it: lower-case letters, digits and dashes.
fn plain(name: &str) -> String {
    let plain: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { UNNAMED.to_owned() } else { plain.to_owned() }
}

/// Whether the server takes a name as it is.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= MOST && !name.is_empty() && plain(name) == name
}

/// A text as the value of a label: what is not allowed there is a dash.
pub(super) fn label(text: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = text.chars().map(fits).take(MOST).collect();
    text.trim_matches(['-', '_', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
    use tpu_core::model::job::{EngineRun, Launch, LaunchMode};
    use tpu_core::model::spec::StoredSpec;
    use tpu_core::model::target::TargetKind;
    use tpu_core::model::time::Timestamp;

    fn job(name: Option<&str>, as_is: Option<&str>, id: Option<&str>) -> Job {
        let number = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&number, TargetName::from("lab"), "/d".to_owned());
        let token = "AB12cd34ef56";
        job.launch = Some(Launch::claimed(token, LaunchMode::Native, Timestamp::from_second(0)));
        let (kind, cluster) = (TargetKind::new("kubernetes"), "namespace=n".to_owned());
        job.engine =
            Some(Box::new(EngineRun { kind, cluster, id: id.map(str::to_owned), name: None }));
        let options =
            as_is.map(|name| (super::super::options::JOB_NAME, name)).into_iter().collect();
        let name = name.map(str::to_owned);
        job.spec = Some(Box::new(StoredSpec { name, options, ..StoredSpec::default() }));
        job
    }

    #[test]
    fn names_are_such_as_the_server_takes() {
        let name = |said: Option<&str>| JobRef::of(&job(said, None, None)).name;
        assert_eq!(name(None), "tpu-ab12cd34");
        assert_eq!(name(Some("Llama_7B (new)")), "llama-7b--new-ab12cd34");
        let long = name(Some(&"x".repeat(200)));
        assert!(long.len() == MOST && is_name(&long), "{long}");
        assert!(is_name(&name(Some("--"))) && is_name(&name(Some("grüße"))));
    }

    #[test]
    fn a_name_that_was_given_is_taken_once() {
        let mut first = job(None, Some("mine"), None);
        assert_eq!(JobRef::of(&first).name, "mine");
        first.father = Some(JobNumber(6));
        assert_eq!(JobRef::of(&first).name, "mine-ab12cd34");
    }

    #[test]
    fn a_handle_keeps_name_and_identity() {
        let known = JobRef::of(&job(Some("a"), None, Some("u-1@a-ab12cd34")));
        assert_eq!((known.uid.as_deref(), known.kept().as_str()), (Some("u-1"), "u-1@a-ab12cd34"));
        let another = JobRef::of(&job(Some("a"), None, Some("u-1@b-ab12cd34")));
        assert_eq!(another.uid, None);
    }

    #[test]
    fn labels_hold_what_they_may() {
        assert_eq!(label("alice@lab: v4/8"), "alice-lab--v4-8");
        assert_eq!(label("-x-"), "x");
    }
}
