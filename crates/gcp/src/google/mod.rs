//! Cloud TPU VMs through Google's REST API, version 2.
//!
//! One list call tells the state of the whole fleet, whatever its size; a zone that the answer calls
//! unreachable is unknown, and so is everything when the call fails. Nothing is read and nobody is asked
//! before the first call. Start with [`Google`]; `wire` reads and writes the JSON, `answers` is the table
//! of refusals, `http` the one client, `auth` knows who we are.

mod answers;
mod auth;
mod billing;
mod http;
mod listing;
mod quota;
mod storage;
pub mod wire;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::queued::{self, Queued};
use crate::GOOGLE;
use auth::Credentials;
use http::{Ask, Http, Method};
use tpu_core::model::billing::{BillingQuery, Charge};
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::facts::TargetFact;
use tpu_core::model::settings::CloudAuth;
use tpu_core::model::target::ProviderName;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::storage::ObjectStore;
use tpu_engine::provider::{
    Answer, ENDPOINT_SETTING, EVERYWHERE, Operation, Progress, Provider, ProviderError,
    QuotaReport, RequestId, TargetAt, TargetSpec, Trouble, Verb, ZoneAnswer,
};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::env::Env;
use tpu_system::sys::random::Random;
use wire::Asked;

/// Where the API is, unless the settings say otherwise.
const ENDPOINT: &str = "https://tpu.googleapis.com";

/// The same for Cloud Storage (JSON API, version 1).
const STORAGE: &str = "https://storage.googleapis.com";

/// What the provider is made of.
pub struct GoogleConfig {
    /// Address of the API without its version; Google's own if `None`.
    pub endpoint: Option<String>,
    /// The project; every call says what to set if `None`.
    pub project: Option<String>,
    /// Whether the API wants to know who we are.
    pub auth: CloudAuth,
    /// What every new node gets beside what is asked for, in the words of the API.
    pub node: Map<String, Value>,
    /// Variables, home and working directory.
    pub env: Env,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Jitter between two tries.
    pub random: Arc<dyn Random>,
    /// How often a page of a list is asked for until its failure counts ([`tpu_engine::provider::retry::TRIES`]). Every
    /// other call is repeated by whoever makes it.
    pub list_tries: u32,
}

/// The door to Cloud TPU.
pub struct Google {
    config: GoogleConfig,
    api: OnceLock<Result<Api, ProviderError>>,
    /// Operations that this process has begun, by request: asked again, it is the same one.
    begun: Mutex<HashMap<RequestId, String>>,
    memory: Mutex<Memory>,
    /// Rounds of questions about all zones that have begun.
    rounds: AtomicU64,
    /// The newest of them, and what it said.
    newest: Mutex<(u64, Vec<ZoneAnswer>)>,
}

/// The client and who we are.
struct Api {
    http: Http,
    credentials: Credentials,
    base: String,
    /// Where Cloud Storage is.
    storage: String,
    /// What stands in for every API of the cloud; none but the real ones if `None`.
    stand_in: Option<String>,
    project: String,
}

/// What this process has seen so far.
#[derive(Default)]
struct Memory {
    /// When each zone last answered.
    answered: BTreeMap<String, Timestamp>,
    /// The word of each target, by zone and name, and when it was first seen with it.
    words: HashMap<(String, String), (String, Timestamp)>,
    /// The queued resources, as they last were.
    queued: Vec<Queued>,
    /// When they were last listed, on the clock that never jumps.
    queued_at: Option<Duration>,
    /// Whether this process has asked for or deleted one since.
    queued_changed: bool,
}

impl Google {
    /// Opens the door. Nothing is read or asked yet.
    pub fn open(config: GoogleConfig) -> Self {
        Self {
            config,
            api: OnceLock::new(),
            begun: Mutex::default(),
            memory: Mutex::default(),
            rounds: AtomicU64::new(0),
            newest: Mutex::default(),
        }
    }

    /// The client, made when it is first needed.
    fn api(&self) -> Result<&Api, ProviderError> {
        self.api.get_or_init(|| Api::open(&self.config)).as_ref().map_err(Clone::clone)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The zone of a target: as said, else the one zone that has a target of that name.
    fn zone_of(&self, target: &TargetAt, doing: &str) -> Result<Option<String>, ProviderError> {
        if let Some(zone) = &target.zone {
            return Ok(Some(zone.clone()));
        }
        let mut zones: Vec<String> = Vec::new();
        for answer in self.list(&[]) {
            match answer.answer {
                Answer::Facts { targets, .. } => {
                    let named = targets.into_iter().filter(|fact| fact.name == target.name);
                    zones.extend(named.filter_map(|fact| fact.zone));
                }
                Answer::Unknown { error, .. } => {
                    return Err(ProviderError { doing: doing.to_owned(), ..error });
                }
            }
        }
        match zones.as_slice() {
            [] => Ok(None),
            [_] => Ok(zones.pop()),
            several => Err(ProviderError::new(
                Trouble::User,
                doing,
                format!("there is one in each of {}", several.join(", ")),
            )
            .remedy(format!("say which: tpu register {} --zone ZONE", target.name))),
        }
    }

    /// The queued resource for a target, if there is one.
    fn queued_for(
        &self,
        api: &Api,
        zone: &str,
        target: &TargetAt,
    ) -> Result<Option<Queued>, ProviderError> {
        let (all, _) = self.list_queued(api, zone)?;
        Ok(all.into_iter().find(|queued| queued.target == target.name && queued.zone == zone))
    }

    /// Asks for a change of one node; not being there is an error only where `absent` is none.
    fn change(
        &self,
        verb: Verb,
        target: &TargetAt,
        call: impl FnOnce(&Api, &str, &str) -> Result<Value, ProviderError>,
    ) -> Result<Operation, ProviderError> {
        let doing = format!("{} {target}", verb.as_str());
        let api = self.api()?;
        let now = self.config.clock.now();
        let done = |zone: &str| Operation {
            name: String::new(),
            verb,
            target: target.name.clone(),
            zone: zone.to_owned(),
            began: now,
            progress: Progress::Done,
        };
        let Some(zone) = self.zone_of(target, &doing)? else {
            return match verb {
                Verb::Delete => Ok(done("")),
                _ => Err(ProviderError::new(
                    Trouble::NotFound,
                    doing,
                    "no zone has a target of that name",
                )),
            };
        };
        match call(api, &zone, &doing) {
            Err(error) if verb == Verb::Delete && error.trouble == Trouble::NotFound => {
                Ok(done(&zone))
            }
            Err(error) => Err(error),
            Ok(value) => {
                let name = target.name.as_str();
                let asked = Asked { verb: Some(verb), target: Some(name), doing: &doing, now };
                Ok(wire::operation(&value, &asked))
            }
        }
    }

    /// What is in the way of a creation.
    fn existing(
        &self,
        spec: &TargetSpec,
        request: &RequestId,
        error: ProviderError,
    ) -> ProviderError {
        match self.describe(&spec.at()) {
            Ok(mut fact) => {
                if fact.request == Some(wire::label(request)) {
                    fact.request = Some(request.0.clone());
                }
                let message = format!("{}, {}", error.message, fact.raw_state);
                ProviderError { message, ..error }.existing(fact)
            }
            Err(_) => error,
        }
    }
}

impl Api {
    fn open(config: &GoogleConfig) -> Result<Self, ProviderError> {
        let endpoint = config.endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/');
        let wrong = |what: String| {
            ProviderError::new(Trouble::User, "reach the cloud", what)
                .remedy(format!("correct it: {ENDPOINT_SETTING}"))
        };
        let host = http::host_of(endpoint).filter(|host| !host.is_empty()).ok_or_else(|| {
            wrong(format!("cloud_endpoint '{endpoint}' is no address such as https://HOST"))
        })?;
        let is_safe = endpoint.starts_with("https://") || http::is_loopback(host);
        if config.auth == CloudAuth::Google && !is_safe {
            return Err(wrong(format!(
                "cloud_endpoint '{endpoint}' is not encrypted, and would be told who you are"
            ))
            .remedy(
                "use https://, or, if it wants no credentials: tpu set-settings cloud_auth none",
            ));
        }
        let project = config.project.clone().filter(|project| !project.is_empty());
        let project = project.ok_or_else(|| {
            ProviderError::new(Trouble::User, "reach the cloud", "nobody has said which project")
                .remedy("tpu set-settings project NAME, or export TPU_PROJECT=NAME")
        })?;
        let wanted = config.auth == CloudAuth::Google;
        Ok(Self {
            http: Http::new(&config.env, Arc::clone(&config.clock))?,
            credentials: Credentials::new(config.env.clone(), Arc::clone(&config.clock), wanted),
            base: format!("{endpoint}/v2"),
            // Who stands in for the one stands in for the other as well.
            storage: config.endpoint.as_ref().map_or(STORAGE, |_| endpoint).to_owned(),
            stand_in: config.endpoint.as_ref().map(|_| endpoint.to_owned()),
            project: escaped(&project),
        })
    }

    /// Where an API is, by the first word of its host.
    fn host(&self, service: &str) -> String {
        let own = || format!("https://{service}.googleapis.com");
        self.stand_in.clone().unwrap_or_else(own)
    }

    /// `projects/P/locations/Z`.
    fn zone(&self, zone: &str) -> String {
        format!("projects/{}/locations/{}", self.project, escaped(zone))
    }

    fn node(&self, zone: &str, target: &TargetAt) -> String {
        format!("{}/nodes/{}", self.zone(zone), escaped(target.name.as_str()))
    }

    fn get(&self, path: &str, doing: &str) -> Result<Value, ProviderError> {
        self.ask(Method::Get, path, None, doing)
    }

    /// One call; a token that has just expired is replaced once.
    fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        doing: &str,
    ) -> Result<Value, ProviderError> {
        self.ask_at(method, &format!("{}/{path}", self.base), body, doing)
    }

    /// The same at a whole address.
    fn ask_at(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        doing: &str,
    ) -> Result<Value, ProviderError> {
        let body = body.map(|body| body.to_string().into_bytes());
        for is_last in [false, true] {
            let bearer = self.credentials.bearer(&self.http).map_err(|error| ProviderError {
                doing: format!("{doing}: {}", error.doing),
                ..error
            })?;
            let mut headers = vec![("accept", "application/json")];
            if body.is_some() {
                headers.push(("content-type", "application/json"));
            }
            if let Some(bearer) = &bearer {
                headers.push(("authorization", bearer));
            }
            let ask = Ask { method, url, headers: &headers, body: body.as_deref(), doing };
            let reply = self.http.send(&ask)?;
            if reply.status == 401 && bearer.is_some() && self.credentials.forget() && !is_last {
                continue;
            }
            return answers::judge(&reply, doing).map_err(|error| match error.trouble {
                Trouble::Auth => {
                    let remedy = self.credentials.remedy();
                    error.remedy(remedy)
                }
                _ => error,
            });
        }
        Err(ProviderError::new(Trouble::Auth, doing, "the API knows none of our tokens"))
    }
}

/// Text as a part of a URL.
pub(super) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte) { out.push(char::from(byte)) } else { out += &format!("%{byte:02X}") }
    }
    out
}

impl Provider for Google {
    fn name(&self) -> ProviderName {
        GOOGLE
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        if !zones.is_empty() {
            return self.list_zones(zones);
        }
        // Those who come while others ask share the next answer: it is newer than their question.
        let arrived = self.rounds.load(Ordering::SeqCst);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.0 <= arrived {
            let round = self.rounds.fetch_add(1, Ordering::SeqCst) + 1;
            *newest = (round, self.list_everywhere());
        }
        newest.1.clone()
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        let doing = format!("describe {target}");
        let api = self.api()?;
        let now = self.config.clock.now();
        let nowhere = || {
            ProviderError::new(
                Trouble::NotFound,
                doing.clone(),
                "NOT_FOUND: there is no such target",
            )
        };
        let zone = self.zone_of(target, &doing)?.ok_or_else(nowhere)?;
        let mut facts = Vec::new();
        let absent = match api.get(&api.node(&zone, target), &doing) {
            Ok(value) => {
                let fact = wire::node(&value, now).ok_or_else(|| {
                    ProviderError::new(Trouble::Transient, doing.clone(), "the answer is no node")
                })?;
                facts.push(fact);
                if wire::parent(&value).is_none() {
                    return self.remembered(facts, now).pop().ok_or_else(nowhere);
                }
                None
            }
            Err(error) if error.trouble == Trouble::NotFound => Some(error),
            Err(error) => return Err(error),
        };
        let queued: Vec<Queued> = self.queued_for(api, &zone, target)?.into_iter().collect();
        queued::join(&mut facts, &queued, self.name().as_str());
        self.remembered(facts, now).pop().ok_or_else(|| absent.unwrap_or_else(nowhere))
    }

    fn create(&self, spec: &TargetSpec, request: &RequestId) -> Result<Operation, ProviderError> {
        let doing = format!("create {}", spec.at());
        let earlier = || self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let known = earlier().get(request).cloned();
        if let Some(name) = known {
            return self.operation(&name);
        }
        let api = self.api()?;
        let parent = api.zone(&spec.zone);
        let name = spec.name.as_str();
        let node = wire::new_node(spec, request, &self.config.node);
        let asked = if spec.queued {
            let id = escaped(&queued::name_for(&spec.name));
            let uuid = queued::uuid(request);
            let path = format!("{parent}/queuedResources?queuedResourceId={id}&requestId={uuid}");
            self.memory().queued_changed = true;
            let body = wire::new_queued(spec, node, &parent);
            api.ask(Method::Post, &path, Some(&body), &doing)
        } else {
            let path = format!("{parent}/nodes?nodeId={}", escaped(name));
            api.ask(Method::Post, &path, Some(&node), &doing)
        };
        let value = asked.map_err(|error| match error.trouble {
            Trouble::AlreadyExists => self.existing(spec, request, error),
            _ => error,
        })?;
        let now = self.config.clock.now();
        let asked = Asked { verb: Some(Verb::Create), target: Some(name), doing: &doing, now };
        let operation = wire::operation(&value, &asked);
        earlier().insert(request.clone(), operation.name.clone());
        Ok(operation)
    }

    fn delete(&self, target: &TargetAt, force: bool) -> Result<Operation, ProviderError> {
        self.change(Verb::Delete, target, |api, zone, doing| {
            let queued = if force { self.queued_for(api, zone, target)? } else { None };
            match queued {
                // With force, the API takes the nodes away first, then the request.
                Some(queued) => {
                    self.memory().queued_changed = true;
                    let name = escaped(&queued.name);
                    let path = format!("{}/queuedResources/{name}?force=true", api.zone(zone));
                    api.ask(Method::Delete, &path, None, doing)
                }
                None => api.ask(Method::Delete, &api.node(zone, target), None, doing),
            }
        })
    }

    fn start(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.change(Verb::Start, target, |api, zone, doing| {
            let path = format!("{}:start", api.node(zone, target));
            api.ask(Method::Post, &path, Some(&json!({})), doing)
        })
    }

    fn stop(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.change(Verb::Stop, target, |api, zone, doing| {
            let path = format!("{}:stop", api.node(zone, target));
            api.ask(Method::Post, &path, Some(&json!({})), doing)
        })
    }

    fn can_reboot(&self) -> bool {
        false
    }

    fn reboot(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        let doing = format!("reboot {target}");
        Err(ProviderError::new(Trouble::User, doing, "the API cannot restart machines")
            .remedy(format!("stop and start it: tpu restart {}", target.name)))
    }

    fn bucket_place(&self, bucket: &str) -> Result<BucketPlace, ProviderError> {
        let doing = format!("look at bucket {bucket}");
        let api = self.api()?;
        let url = format!("{}/storage/v1/b/{}", api.storage, escaped(bucket));
        let value = api.ask_at(Method::Get, &url, None, &doing)?;
        wire::bucket(&value)
            .ok_or_else(|| ProviderError::new(Trouble::Transient, doing, "the answer is no bucket"))
    }

    fn quota(&self) -> Result<QuotaReport, ProviderError> {
        self.quota_report()
    }

    fn charges(&self, asked: &BillingQuery) -> Result<Vec<Charge>, ProviderError> {
        self.billed(asked)
    }

    fn storage(&self) -> Option<&dyn ObjectStore> {
        Some(self)
    }

    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        let doing = format!("look at {name}");
        if !name.starts_with("projects/") || name.contains(['?', '#', '%']) {
            let message = "NOT_FOUND: that is no operation of this cloud";
            return Err(ProviderError::new(Trouble::NotFound, doing, message));
        }
        let value = self.api()?.get(name, &doing)?;
        let now = self.config.clock.now();
        // What fails is not the look but what was begun.
        let begun = value["metadata"]["verb"].as_str().unwrap_or("finish");
        let target = value["metadata"]["target"].as_str().and_then(wire::zone_and_id);
        let doing = match target {
            Some((zone, id)) => format!("{begun} {id} in zone {zone}"),
            None => doing,
        };
        let asked = Asked { verb: None, target: None, doing: &doing, now };
        let mut operation = wire::operation(&value, &asked);
        name.clone_into(&mut operation.name);
        Ok(operation)
    }

    fn pace(&self) -> (Duration, Duration) {
        (Duration::from_secs(1), Duration::from_secs(10))
    }
}
