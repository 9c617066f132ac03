//! Questions to one namespace, and their answers as values or as what went wrong, in words for a person.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::RunError;

use super::api::{ApiAnswer, ApiCall, ApiServer, ApiVerb, Unanswered};
use super::cluster::NamespaceAt;

/// A question that a person waits for may take so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);

/// All questions of one look may take so long together.
pub(super) const LOOK: Duration = Duration::from_millis(2_500);

/// So often something is asked for where writers have met.
const TRIES: u32 = 5;

/// The server gives up a creation that takes longer, and so do we a little later.
pub(super) const CREATING: Duration = Duration::from_secs(10);

/// What a person does where nobody knows who asks.
const LOGIN: &str = "log in again: `kubectl get pods` says what is missing (on GKE: gcloud auth login, then gcloud \
                     container clusters get-credentials CLUSTER)";

/// What a question came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server has answered, and refuses. What was asked for is not done.
    Refused(Refused),
    /// It has said of itself that it failed, or cut its answer off. What was asked for may be done.
    Failed(String),
    /// Nobody knows there who asks, or what says so is missing here: nothing was done. The same until a person has logged
    /// in.
    Login(String),
    /// The question never left.
    NotSent(String),
    /// There was no answer. What was asked for may be done.
    Silent(String),
}

/// A refusal of the server: a `Status` with a code between 400 and 499.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The status of HTTP.
    pub(super) code: u16,
    /// Its reason: `AlreadyExists`, `Forbidden`, …
    pub(super) reason: String,
    /// Its sentence.
    pub(super) message: String,
}

impl Trouble {
    /// The code of a refusal.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(refused) => Some(refused.code),
            Self::Login(_) | Self::Failed(_) | Self::NotSent(_) | Self::Silent(_) => None,
        }
    }

    /// Whether something of that name is there already. Another sort of conflict is one of writers, such as those of a
    /// quota, and settled by asking again.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.code == 409 && refused.reason == "AlreadyExists")
    }

    fn is_of_writers(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.code == 409 && refused.reason == "Conflict")
    }

    /// Whether what has that name is not what was meant.
    fn is_about_another(&self) -> bool {
        self.is_of_writers() && self.why().contains("precondition")
    }

    /// Why, in words.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Refused(refused) => refused.message.clone(),
            Self::Login(why) => format!("it is not known there who asks ({why}); {LOGIN}"),
            Self::Failed(why) | Self::NotSent(why) | Self::Silent(why) => why.clone(),
        }
    }

    /// The error for a person.
    pub(super) fn error(&self, cluster: &NamespaceAt) -> RunError {
        let at = cluster.in_words();
        match self {
            Self::Login(why) => {
                RunError::login(format!("{at} does not know who asks: {why}"), LOGIN)
            }
            Self::Refused(refused) => match refused.code {
                403 => RunError::refused(
                    format!("{at} does not allow it: {}", refused.message),
                    "`kubectl auth can-i --list` shows what you may do there",
                ),
                404 => RunError::not_found(
                    format!("{at}: {}", refused.message),
                    "`kubectl get namespaces` lists what there is",
                ),
                409 => RunError::refused(format!("{at}: {}", refused.message), "take another name"),
                429 => RunError::unreachable(
                    format!("{at} is asked too often: {}", refused.message),
                    "nothing was changed; try again in a moment",
                ),
                _ => RunError::usage(
                    format!("{at} does not take it: {}", refused.message),
                    "change what is asked for; --dry-run shows it",
                ),
            },
            Self::Failed(why) | Self::NotSent(why) | Self::Silent(why) => RunError::unreachable(
                format!("{at} does not answer: {why}"),
                "nothing was changed; try again when it answers",
            ),
        }
    }
}

/// An error of the server.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
}

/// What an answer says: its body, or what went wrong.
fn read(answered: Result<ApiAnswer, Unanswered>) -> Result<ApiAnswer, Trouble> {
    let answer = match answered {
        Ok(answer) => answer,
        Err(Unanswered::NotSent(why)) => return Err(Trouble::NotSent(why)),
        Err(Unanswered::Login(why)) => return Err(Trouble::Login(why)),
        Err(silence) => return Err(Trouble::Silent(silence.to_string())),
    };
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    let status: Status = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = if status.message.is_empty() {
        let text = String::from_utf8_lossy(&answer.body);
        let first = text.lines().next().unwrap_or_default().trim().to_owned();
        if first.is_empty() { format!("HTTP {}", answer.status) } else { first }
    } else {
        status.message
    };
    if answer.status == 401 {
        return Err(Trouble::Login(message));
    }
    Err(if (400..500).contains(&answer.status) && answer.status != 408 {
        Trouble::Refused(Refused { code: answer.status, reason: status.reason, message })
    } else {
        Trouble::Failed(format!("HTTP {}: {message}", answer.status))
    })
}

/// Reads what was sent.
fn parsed<T: DeserializeOwned>(answer: &ApiAnswer) -> Result<T, Trouble> {
    if answer.is_cut {
        return Err(Trouble::Silent("its answer was cut off".to_owned()));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|e| Trouble::Failed(format!("its answer cannot be read: {e}")))
}

/// The objects of a list.
#[derive(Deserialize)]
struct Items<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// What a selector of labels chooses.
pub(super) struct Labelled {
    pub(super) jobs: Vec<Job>,
    pub(super) pods: Vec<Pod>,
    /// When the server said so, by its own clock, where it tells that.
    pub(super) said_at: Option<Timestamp>,
}

/// One namespace of a server.
#[derive(Clone, Copy)]
pub(super) struct Namespace<'a> {
    server: &'a dyn ApiServer,
    name: &'a str,
}

impl<'a> Namespace<'a> {
    /// The namespace of that name.
    pub(super) fn new(server: &'a dyn ApiServer, name: &'a str) -> Self {
        Self { server, name }
    }

    fn jobs(&self) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs", self.name)
    }

    fn core(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.name)
    }

    fn list<T: DeserializeOwned>(&self, call: &ApiCall) -> Result<Vec<T>, Trouble> {
        Ok(parsed::<Items<T>>(&read(self.server.ask(call))?)?.items)
    }

    /// The Jobs and the pods that a selector of labels chooses, by two questions side by side.
    pub(super) fn of_label(&self, selector: &str, limit: Duration) -> Result<Labelled, Trouble> {
        let of =
            |path: String| ApiCall::new(ApiVerb::Get, path, limit).with("labelSelector", selector);
        let calls = [of(self.jobs()), of(self.core("pods"))];
        let mut answers = self.server.ask_all(&calls).into_iter();
        let mut next =
            || read(answers.next().unwrap_or(Err(Unanswered::Broken("no answer".to_owned()))));
        let (jobs, pods) = (next()?, next()?);
        Ok(Labelled {
            jobs: parsed::<Items<Job>>(&jobs)?.items,
            pods: parsed::<Items<Pod>>(&pods)?.items,
            said_at: pods.said_at,
        })
    }

    /// The pods that a selector of labels chooses, and when the server said so, by its own clock, where it tells that.
    pub(super) fn pods_of_label(
        &self,
        selector: &str,
        limit: Duration,
    ) -> Result<(Vec<Pod>, Option<Timestamp>), Trouble> {
        let call = ApiCall::new(ApiVerb::Get, self.core("pods"), limit);
        let pods = read(self.server.ask(&call.with("labelSelector", selector)))?;
        Ok((parsed::<Items<Pod>>(&pods)?.items, pods.said_at))
    }

    /// A Job, if there is one of that name.
    pub(super) fn job(&self, name: &str, limit: Duration) -> Result<Option<Job>, Trouble> {
        found(self.get(&format!("{}/{name}", self.jobs()), limit))
    }

    /// A volume claim, if there is one of that name.
    pub(super) fn claim(&self, name: &str, limit: Duration) -> Result<Option<Value>, Trouble> {
        found(self.get(&format!("{}/{name}", self.core("persistentvolumeclaims")), limit))
    }

    /// A Job as the server writes it.
    pub(super) fn raw_job(&self, name: &str, limit: Duration) -> Result<Value, Trouble> {
        self.get(&format!("{}/{name}", self.jobs()), limit)
    }

    /// The Jobs of a namespace, or of all of them, as the server writes them.
    pub(super) fn jobs_of(
        &self,
        namespace: Option<&str>,
        limit: Duration,
    ) -> Result<Vec<Value>, Trouble> {
        let path = match namespace {
            Some(name) => format!("/apis/batch/v1/namespaces/{name}/jobs"),
            None => "/apis/batch/v1/jobs".to_owned(),
        };
        self.list(&ApiCall::new(ApiVerb::Get, path, limit))
    }

    /// The nodes of the cluster.
    pub(super) fn nodes(&self, limit: Duration) -> Result<Vec<Node>, Trouble> {
        self.list(&ApiCall::new(ApiVerb::Get, "/api/v1/nodes", limit))
    }

    /// The pods of a namespace, or of all of them.
    pub(super) fn pods_of(
        &self,
        namespace: Option<&str>,
        limit: Duration,
    ) -> Result<Vec<Pod>, Trouble> {
        let path = match namespace {
            Some(name) => format!("/api/v1/namespaces/{name}/pods"),
            None => "/api/v1/pods".to_owned(),
        };
        self.list(&ApiCall::new(ApiVerb::Get, path, limit))
    }

    /// Its name.
    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    /// A config map, wherever it is.
    pub(super) fn config_map(
        &self,
        namespace: &str,
        name: &str,
        limit: Duration,
    ) -> Result<Value, Trouble> {
        self.get(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}"), limit)
    }

    fn get<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T, Trouble> {
        parsed(&read(self.server.ask(&ApiCall::new(ApiVerb::Get, path, limit)))?)
    }

    /// What happened to the Jobs or the pods of the namespace and is worth a warning.
    pub(super) fn warnings(&self, kind: &str, limit: Duration) -> Result<Vec<Event>, Trouble> {
        let selector = format!("type=Warning,involvedObject.kind={kind}");
        let call =
            ApiCall::new(ApiVerb::Get, self.core("events"), limit).with("fieldSelector", selector);
        self.list(&call)
    }

    /// Which pods of the namespace had to go for others. Nothing warns of that.
    pub(super) fn preemptions(&self, limit: Duration) -> Result<Vec<Event>, Trouble> {
        let selector = "reason=Preempted,involvedObject.kind=Pod";
        let call = ApiCall::new(ApiVerb::Get, self.core("events"), limit);
        self.list(&call.with("fieldSelector", selector))
    }

    /// Creates a Job: only tried out, if so wanted.
    pub(super) fn create_job(&self, manifest: Value, is_trial: bool) -> Result<Job, Trouble> {
        self.create(self.jobs(), manifest, is_trial)
    }

    /// Creates an object of the core API.
    pub(super) fn create_core(&self, resource: &str, object: Value) -> Result<Value, Trouble> {
        self.create(self.core(resource), object, false)
    }

    fn create<T: DeserializeOwned>(
        &self,
        path: String,
        object: Value,
        is_trial: bool,
    ) -> Result<T, Trouble> {
        let mut call = ApiCall::new(ApiVerb::Post, path, CREATING + Duration::from_secs(2))
            .with("timeout", format!("{}s", CREATING.as_secs()))
            .with("fieldManager", "tpu")
            .sending(object);
        if is_trial {
            call = call.with("dryRun", "All");
        }
        let mut tries = 1;
        loop {
            match read(self.server.ask(&call)) {
                Err(trouble) if trouble.is_of_writers() && tries < TRIES => tries += 1,
                answer => return parsed(&answer?),
            }
        }
    }

    /// Has an object of the core API belong to a Job, with which it goes.
    pub(super) fn own(
        &self,
        (resource, name): (&str, &str),
        (job, uid): (&str, &str),
    ) -> Result<(), Trouble> {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid});
        let path = format!("{}/{name}", self.core(resource));
        let call = ApiCall::new(ApiVerb::MergePatch, path, PATIENCE)
            .with("fieldManager", "tpu")
            .sending(json!({"metadata": {"ownerReferences": [owner]}}));
        read(self.server.ask(&call)).map(drop)
    }

    /// Deletes exactly the Job of that identity, and its pods behind it. Whether there was one.
    pub(super) fn delete_job(&self, name: &str, uid: &str) -> Result<bool, Trouble> {
        let call = self.deletion_of_job(name, uid);
        self.deleted(&call, self.server.ask(&call))
    }

    /// The same of several Jobs side by side, in their order.
    pub(super) fn delete_jobs(&self, jobs: &[(&str, &str)]) -> Vec<Result<bool, Trouble>> {
        let calls: Vec<ApiCall> =
            jobs.iter().map(|(name, uid)| self.deletion_of_job(name, uid)).collect();
        let answers = self.server.ask_all(&calls);
        calls.iter().zip(answers).map(|(call, answer)| self.deleted(call, answer)).collect()
    }

    fn deletion_of_job(&self, name: &str, uid: &str) -> ApiCall {
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Background", "preconditions": {"uid": uid},
        });
        ApiCall::new(ApiVerb::Delete, format!("{}/{name}", self.jobs()), PATIENCE).sending(body)
    }

    /// Deletes an object of the core API. Whether there was one.
    pub(super) fn delete_core(&self, resource: &str, name: &str) -> Result<bool, Trouble> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        let path = format!("{}/{name}", self.core(resource));
        let call = ApiCall::new(ApiVerb::Delete, path, PATIENCE).sending(body);
        self.deleted(&call, self.server.ask(&call))
    }

    /// What came of a deletion, which is asked for again where writers have met. Whether there was something.
    fn deleted(
        &self,
        call: &ApiCall,
        answered: Result<ApiAnswer, Unanswered>,
    ) -> Result<bool, Trouble> {
        let mut answer = read(answered);
        for _ in 1..TRIES {
            match &answer {
                Err(trouble) if trouble.is_of_writers() && !trouble.is_about_another() => {
                    answer = read(self.server.ask(call));
                }
                Ok(_) | Err(_) => break,
            }
        }
        match answer {
            Ok(_) => Ok(true),
            // Another one of its name is none of ours.
            Err(trouble) if trouble.code() == Some(404) || trouble.is_about_another() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Asks for logs side by side; each as it came, the status with it.
    pub(super) fn logs(&self, wanted: &[LogQuestion<'_>]) -> Vec<Result<ApiAnswer, Trouble>> {
        let calls: Vec<ApiCall> = wanted.iter().map(|wanted| wanted.call(self.name)).collect();
        self.server.ask_all(&calls).into_iter().map(read).collect()
    }

    /// What a container has printed, as it was.
    pub(super) fn plain_log(&self, wanted: &PlainLog<'_>) -> Result<Vec<u8>, Trouble> {
        let path = format!("{}/{}/log", self.core("pods"), wanted.pod);
        let call = ApiCall::new(ApiVerb::Get, path, PATIENCE).with("container", wanted.container);
        let answer = read(self.server.ask(&call))?;
        if answer.is_cut {
            return Err(Trouble::Silent("its log was cut off".to_owned()));
        }
        Ok(answer.body.to_vec())
    }

    /// The version of the server: `(1, 20)`.
    pub(super) fn version(&self, limit: Duration) -> Result<(u32, u32), Trouble> {
        let version: Value = self.get("/version", limit)?;
        // Some clusters have `27+` there.
        let number = |key: &str| {
            let text = version.get(key).and_then(Value::as_str).unwrap_or_default();
            text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
        };
        Ok((number("major"), number("minor")))
    }
}

/// A log that is asked for as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainLog<'a> {
    /// The pod.
    pub(super) pod: &'a str,
    /// The container.
    pub(super) container: &'a str,
}

/// One log that is asked for, with the time of each line in front of it.
#[derive(Clone, Debug)]
pub(super) struct LogQuestion<'a> {
    /// The pod.
    pub(super) pod: &'a str,
    /// The container.
    pub(super) container: &'a str,
    /// Lines from this second on, as RFC 3339 has it.
    pub(super) since: Option<String>,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl LogQuestion<'_> {
    /// The request.
    pub(super) fn call(&self, namespace: &str) -> ApiCall {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{}/log", self.pod);
        let call = ApiCall::new(ApiVerb::Get, path, self.limit)
            .with("container", self.container)
            .with("timestamps", "true");
        match &self.since {
            Some(since) => call.with("sinceTime", since),
            None => call,
        }
    }
}

/// What is not there is none.
fn found<T>(answer: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Trouble::Refused(refused)) if refused.code == 404 => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> ApiAnswer {
        ApiAnswer { status, body: body.to_owned().into(), ..ApiAnswer::default() }
    }

    #[test]
    fn only_an_answer_that_refuses_is_a_refusal() {
        let text = r#"{"kind":"Status","message":"jobs.batch \"x\" already exists","reason":"AlreadyExists","code":409}"#;
        let refused = read(Ok(answered(409, text))).unwrap_err();
        assert_eq!(
            (refused.code(), refused.why().as_str()),
            (Some(409), "jobs.batch \"x\" already exists")
        );
        for open in [
            Ok(answered(500, "Internal")),
            Ok(answered(504, "")),
            Ok(answered(408, "")),
            Err(Unanswered::Late(PATIENCE)),
        ] {
            assert_eq!(read(open.clone()).unwrap_err().code(), None, "{open:?}");
        }
        let unknown = read(Ok(answered(401, r#"{"kind":"Status","message":"Unauthorized"}"#)));
        let unknown = unknown.unwrap_err();
        assert_eq!((unknown.code(), &unknown), (None, &Trouble::Login("Unauthorized".to_owned())));
        assert!(matches!(unknown.error(&NamespaceAt::default()), RunError::Login(said)
            if said.hint.as_deref().is_some_and(|hint| hint.contains("kubectl get pods"))));
        let unsent = read(Err(Unanswered::NotSent("refused".to_owned())));
        assert_eq!(unsent.unwrap_err(), Trouble::NotSent("refused".to_owned()));
    }

    #[test]
    fn what_was_cut_off_is_no_answer() {
        let cut =
            ApiAnswer { is_cut: true, body: "{}".into(), status: 201, ..ApiAnswer::default() };
        assert!(matches!(parsed::<Value>(&cut), Err(Trouble::Silent(_))));
    }
}
