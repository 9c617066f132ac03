//! Asking a real API server: the user's kubeconfig, and `kube`'s client, whose credentials are read anew when they have run
//! out.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use jiff::fmt::rfc2822;
use kube::client::{AuthError, Body};
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use tpu_core::model::login;
use tpu_core::model::time::Timestamp;

use super::api::{ApiAnswer, ApiCall, Unanswered};
use super::causes::in_words;
use super::cluster::NamespaceAt;
use super::kubeconfig::kubeconfig;

/// A server that takes no connection within this time is not there.
const CONNECTING: Duration = Duration::from_millis(2_400);

/// A server that is asked too often, and does not say when to ask again, is asked after this time.
const LATER: Duration = Duration::from_secs(1);

/// A program that has handed out no credentials for so long is begun once more.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// So many that hand out nothing are waited for at once: each holds a thread until it ends.
const MOST_AT_WORK: usize = 3;

/// Where all of them hang one more is begun so often: what they wait for may be there again, and they do not see it.
const ONE_MORE: Duration = Duration::from_secs(600);

/// What asks a server, wherever it runs.
#[derive(Clone)]
pub(super) struct Asking {
    at: NamespaceAt,
    client: Arc<Mutex<Opened>>,
    /// How many clients are being made.
    at_work: Arc<AtomicUsize>,
    given_up: Duration,
}

/// What making a client has come to; `None` as long as it goes on.
type Made = Option<Result<Client, Unanswered>>;

/// Whether there is a client.
#[derive(Default)]
enum Opened {
    /// Not yet, or not any more.
    #[default]
    No,
    /// It is being made since then: what it comes to is told to everybody who waits for it.
    Soon(Instant, watch::Receiver<Made>),
    /// There is one.
    Yes(Client),
}

impl Asking {
    /// What asks the server of a namespace. Nothing is read yet.
    pub(super) fn new(at: NamespaceAt) -> Self {
        Self { at, client: Arc::default(), at_work: Arc::default(), given_up: GIVEN_UP }
    }

    /// Asks once; again where the credentials have run out, by those that are found then, and where the server wants to be
    /// asked later and there is time for that: it has done nothing then.
    pub(super) async fn answer(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered> {
        let until = Instant::now() + call.limit;
        let mut has_read_anew = false;
        loop {
            let answer = self.within(call, until).await?;
            let later = Instant::now() + answer.retry_after.unwrap_or(LATER);
            match answer.status {
                401 if !has_read_anew => {
                    has_read_anew = true;
                    self.forget();
                }
                429 if later < until => tokio::time::sleep_until(later).await,
                _ => return Ok(answer),
            }
        }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the credentials read anew for the next question.
    pub(super) fn forget(&self) {
        *self.opened() = Opened::No;
    }

    /// One exchange. What has come of an answer when the time is over is an answer that was cut off.
    async fn within(&self, call: &ApiCall, until: Instant) -> Result<ApiAnswer, Unanswered> {
        let Ok(client) = tokio::time::timeout_at(until, self.client()).await else {
            let why = "who asks is not known yet: what hands out the credentials has not ended";
            return Err(Unanswered::NotSent(why.to_owned()));
        };
        drop(client?);
        let begun = tokio::time::timeout_at(until, self.begun(call)).await;
        let response = begun.unwrap_or(Err(Unanswered::Late(call.limit)))?;
        let (head, mut body) = response.into_parts();
        let seconds = head.headers.get(http::header::RETRY_AFTER);
        let retry_after = seconds.and_then(|text| text.to_str().ok()?.trim().parse().ok());
        let mut bytes = BytesMut::new();
        let is_cut = loop {
            match tokio::time::timeout_at(until, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                }
                Ok(None) => break false,
                Ok(Some(Err(_))) | Err(_) => break true,
            }
        };
        let retry_after = retry_after.map(Duration::from_secs);
        Ok(ApiAnswer {
            status: head.status.as_u16(),
            retry_after,
            said_at: date(&head.headers),
            body: bytes.freeze(),
            is_cut,
        })
    }

    /// Sends a question; what is answered is still to be read.
    pub(super) async fn begun(&self, call: &ApiCall) -> Result<http::Response<Body>, Unanswered> {
        let client = self.client().await?;
        let body = call.body.as_ref().map(|body| body.to_string().into_bytes());
        let request = http::Request::builder()
            .method(call.verb.method())
            .uri(call.uri())
            .header(http::header::ACCEPT, "application/json, */*")
            .header(http::header::CONTENT_TYPE, call.verb.content_type())
            .body(Body::from(body.unwrap_or_default()))
            .map_err(|e| Unanswered::NotSent(e.to_string()))?;
        client.send(request).await.map_err(|error| {
            let why = in_words(&error);
            if never_left(&error) { Unanswered::NotSent(why) } else { Unanswered::Broken(why) }
        })
    }

    /// The client. It is made on a thread of its own: a program that hands out credentials may take its time, or never end,
    /// and whoever asks goes when his own time is over.
    async fn client(&self) -> Result<Client, Unanswered> {
        let begun = match &*self.opened() {
            Opened::Yes(client) => return Ok(client.clone()),
            Opened::Soon(since, soon) if since.elapsed() < self.patience() => Some(soon.clone()),
            Opened::Soon(..) | Opened::No => None,
        };
        let mut soon = begun.map_or_else(|| self.begin(), Ok)?;
        let unmade = || Err(Unanswered::NotSent("it was given up".to_owned()));
        let made = match soon.wait_for(Option::is_some).await {
            Ok(made) => made.clone().unwrap_or_else(unmade),
            Err(_) => unmade(),
        };
        let mut opened = self.opened();
        // Who has forgotten it meanwhile, or begun anew, does not mean this one.
        if matches!(&*opened, Opened::Soon(_, other) if other.same_channel(&soon)) {
            *opened = made.clone().map_or(Opened::No, Opened::Yes);
        }
        made
    }

    /// How long the newest program is waited for until another one is begun.
    fn patience(&self) -> Duration {
        let are_most = self.at_work.load(Ordering::Relaxed) >= MOST_AT_WORK;
        if are_most { ONE_MORE } else { self.given_up }
    }

    /// Begins to make a client.
    fn begin(&self) -> Result<watch::Receiver<Made>, Unanswered> {
        let (tell, soon) = watch::channel(None);
        let (at, runtime) = (self.at.clone(), Handle::current());
        let at_work = Arc::clone(&self.at_work);
        let make = move || {
            drop(tell.send(Some(runtime.block_on(connect(&at)))));
            at_work.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = std::thread::Builder::new().name("kubernetes login".to_owned());
        self.at_work.fetch_add(1, Ordering::Relaxed);
        thread.spawn(make).map_err(|e| {
            self.at_work.fetch_sub(1, Ordering::Relaxed);
            Unanswered::NotSent(e.to_string())
        })?;
        *self.opened() = Opened::Soon(Instant::now(), soon.clone());
        Ok(soon)
    }
}

/// A client with the credentials that are found now.
async fn connect(cluster: &NamespaceAt) -> Result<Client, Unanswered> {
    let config = config(cluster).await.map_err(Unanswered::Login)?;
    Client::try_from(config).map_err(|error| {
        let why = in_words(&error);
        // A program that hands out credentials may have failed for the way to whoever knows them.
        let is_program = matches!(error, kube::Error::Auth(AuthError::AuthExecRun { .. }));
        if is_program && login::remedy(&why).is_none() {
            Unanswered::NotSent(why)
        } else {
            Unanswered::Login(why)
        }
    })
}

async fn config(cluster: &NamespaceAt) -> Result<Config, String> {
    let mut config = match kubeconfig(cluster)? {
        Some(known) => {
            let options = KubeConfigOptions {
                context: cluster.context.clone(),
                ..KubeConfigOptions::default()
            };
            Config::from_custom_kubeconfig(known, &options).await.map_err(|e| in_words(&e))?
        }
        None => Config::incluster().map_err(|_| {
            "there is no kubeconfig, neither in KUBECONFIG nor ~/.kube/config".to_owned()
        })?,
    };
    config.connect_timeout = Some(CONNECTING);
    config.read_timeout = None;
    config.write_timeout = None;
    // What may be repeated is known to whoever asks.
    config.default_retry = false;
    Ok(config)
}

/// Whether a request has never left this machine, for certain.
fn never_left(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(of) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return of.is_connect();
        }
        cause = error.source();
    }
    false
}

/// When something was said: a date of HTTP (RFC 9110, 5.6.7) is one of mail.
fn date(headers: &http::HeaderMap) -> Option<Timestamp> {
    let date = headers.get(http::header::DATE)?.to_str().ok()?;
    Some(Timestamp::from_jiff(rfc2822::parse(date).ok()?.timestamp()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::api::ApiVerb;
    use super::*;

    #[test]
    fn the_date_of_an_answer_is_the_clock_of_its_server() {
        let said = |text: &'static str| {
            let value = http::HeaderValue::from_static(text);
            date(&http::HeaderMap::from_iter([(http::header::DATE, value)]))
        };
        let at = Timestamp::parse_rfc3339("2027-01-15T08:49:37Z");
        assert!(at.is_some());
        assert_eq!(said("Fri, 15 Jan 2027 08:49:37 GMT"), at);
        assert_eq!(said("yesterday"), None);
        assert_eq!(date(&http::HeaderMap::new()), None);
    }

    #[test]
    fn what_says_who_asks_and_is_not_there_is_a_matter_of_a_login() {
        let nowhere = Some("/nowhere/at/all".to_owned());
        let asking = Asking::new(NamespaceAt { kubeconfig: nowhere, ..NamespaceAt::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = ApiCall::new(ApiVerb::Get, "/version", Duration::from_secs(60));
        let unanswered = runtime.block_on(asking.answer(&call)).unwrap_err();
        assert!(
            matches!(&unanswered, Unanswered::Login(why) if why.contains("/nowhere/at/all")),
            "{unanswered:?}"
        );
    }

    #[test]
    fn programs_that_never_hand_out_credentials_are_not_begun_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let (config, ends) = (dir.path().join("config"), dir.path().join("ends"));
        // Nor without its directory: one that has not looked before that goes would stay.
        let wait = format!(
            "while [ -e '{}' ] && [ ! -e '{}' ]; do sleep 0.2; done",
            dir.path().display(),
            ends.display()
        );
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:1"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "users": [{"name": "lab", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", wait],
                "interactiveMode": "Never",
            }}}],
        });
        std::io::Write::write_all(
            &mut std::fs::File::create(&config).unwrap(),
            text.to_string().as_bytes(),
        )
        .unwrap();
        let at = NamespaceAt {
            kubeconfig: config.to_str().map(str::to_owned),
            ..NamespaceAt::default()
        };
        // As if each had been waited for long enough.
        let asking = Asking { given_up: Duration::ZERO, ..Asking::new(at) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = ApiCall::new(ApiVerb::Get, "/version", Duration::from_millis(10));
        for _ in 0..MOST_AT_WORK * 3 {
            let unanswered = runtime.block_on(asking.answer(&call)).unwrap_err();
            assert!(matches!(&unanswered, Unanswered::NotSent(why) if why.contains("credentials")));
            assert!(asking.at_work.load(Ordering::Relaxed) <= MOST_AT_WORK, "each holds a thread");
        }
        assert_eq!(asking.at_work.load(Ordering::Relaxed), MOST_AT_WORK, "and is begun once more");
        std::fs::File::create(&ends).unwrap();
        // The newest has gone on as well: what it handed out was nothing.
        let call = ApiCall::new(ApiVerb::Get, "/version", Duration::from_secs(60));
        let unanswered = runtime.block_on(asking.answer(&call)).unwrap_err();
        assert!(!unanswered.to_string().contains("is not known yet"), "{unanswered}");
    }
}
