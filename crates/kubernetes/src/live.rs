//! What a process that stays hears of runs by itself: what their containers print, and that something has happened.
//!
//! One thread for all clusters, at work only while runs are followed. What it hears of Jobs and pods says no more than
//! that it is time to look: how they are is always asked anew, so that nothing depends on an event that was missed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::api::{ApiCall, ApiVerb};
use super::asking::Asking;
use super::cluster::NamespaceAt;
use super::kept::LogBegins;
use super::life::Life;
use super::manifest::MAIN;
use super::names::LAUNCH;
use super::request::LogQuestion;
use super::stamped::Stamped;

/// So long the beginning of an answer is waited for.
const BEGINNING: Duration = Duration::from_secs(10);

/// A stream of events that has ended is asked for again after this time.
const AGAIN: Duration = Duration::from_secs(2);

/// A log that says nothing for so long is asked for anew: it may be its connection that is silent.
const SILENCE: Duration = Duration::from_secs(60);

/// So many lines are kept in one step, where they come faster than that.
const AT_ONCE: usize = 10_000;

/// Events are asked for in streams of so many seconds.
const WATCHING_S: u32 = 300;

/// What is to be done on the thread.
type Work = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// What follows runs.
#[derive(Default)]
pub(super) struct Followers {
    /// Whether this process stays.
    stays: AtomicBool,
    /// How often something has happened.
    events: AtomicU64,
    now: Mutex<Following>,
}

/// What is followed now.
#[derive(Default)]
struct Following {
    /// Where work is handed in; `None` before there is any.
    work: Option<UnboundedSender<Work>>,
    /// The pods whose logs are read, by their identities, with whether an answer has begun.
    pods: BTreeMap<String, bool>,
    /// What is watched: the namespaces, and the lists in them.
    watched: BTreeSet<(NamespaceAt, String)>,
}

impl Followers {
    /// Says that this process stays. How often something has happened to a run so far.
    pub(super) fn stay(&self) -> u64 {
        self.stays.store(true, Ordering::Relaxed);
        self.events.load(Ordering::Relaxed)
    }

    fn now(&self) -> MutexGuard<'_, Following> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows pods that are not followed yet, if this process stays. Those that are followed already, by identity.
    pub(super) fn follow(
        self: &Arc<Self>,
        cluster: &NamespaceAt,
        lives: Vec<Life>,
        asking: &Asking,
    ) -> BTreeSet<String> {
        if !self.stays.load(Ordering::Relaxed) || lives.is_empty() {
            return BTreeSet::new();
        }
        let mut now = self.now();
        let followed = now
            .pods
            .iter()
            .filter(|(_, has_begun)| **has_begun)
            .map(|(uid, _)| uid.clone())
            .collect();
        for path in watched_paths(&cluster.namespace) {
            if now.watched.insert((cluster.clone(), path.clone())) {
                now.hand_in(Box::pin(watch(
                    Arc::clone(self),
                    cluster.clone(),
                    asking.clone(),
                    path,
                )));
            }
        }
        for life in lives {
            if now.pods.contains_key(&life.uid) {
                continue;
            }
            now.pods.insert(life.uid.clone(), false);
            now.hand_in(Box::pin(read_log(Arc::clone(self), life, asking.clone())));
        }
        followed
    }

    fn has_begun(&self, uid: &str) {
        if let Some(has_begun) = self.now().pods.get_mut(uid) {
            *has_begun = true;
        }
    }

    fn is_over(&self, uid: &str) {
        self.now().pods.remove(uid);
        self.happened();
    }

    fn happened(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether no pod is followed any more: then nothing is watched either, until somebody follows again.
    fn leave_watching(&self, cluster: &NamespaceAt, path: &str) -> bool {
        let mut now = self.now();
        let is_idle = now.pods.is_empty();
        if is_idle {
            now.watched.remove(&(cluster.clone(), path.to_owned()));
        }
        is_idle
    }
}

impl Following {
    fn hand_in(&mut self, work: Work) {
        if self.work.is_none() {
            self.work = begin();
        }
        if self.work.as_ref().is_none_or(|open| open.send(work).is_err()) {
            // The thread is gone: the next one to follow begins another.
            self.work = None;
            self.pods.clear();
            self.watched.clear();
        }
    }
}

/// Begins the thread. It ends with the process.
fn begin() -> Option<UnboundedSender<Work>> {
    let (open, mut handed_in) = unbounded_channel::<Work>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let thread = std::thread::Builder::new().name("kubernetes".to_owned());
    let run = move || {
        runtime.block_on(async {
            while let Some(work) = handed_in.recv().await {
                tokio::spawn(work);
            }
        });
    };
    thread.spawn(run).ok().map(|_| open)
}

/// Reads the log of a pod as it is printed, until it ends or breaks. Whoever looks next finds that it is not followed.
async fn read_log(followers: Arc<Followers>, life: Life, asking: Asking) {
    let question = LogQuestion {
        pod: &life.pod,
        container: MAIN,
        since: life.log.since(&life.uid),
        limit: BEGINNING,
    };
    let call = question.call(&life.namespace).with("follow", "true");
    if let Some(response) = opened(&asking, &call).await {
        followers.has_begun(&life.uid);
        let mut body = response.into_body();
        let (mut stamped, mut begins) = (Stamped::default(), LogBegins::Anew);
        // A connection that died without a word ends like any other: whoever looks next follows anew.
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENCE, body.frame()).await {
            let Some(bytes) = frame.data_ref() else { continue };
            let mut lines = stamped.feed(bytes);
            // Much that comes at once is kept at once.
            while lines.len() < AT_ONCE
                && let Ok(Some(Ok(frame))) =
                    tokio::time::timeout(Duration::ZERO, body.frame()).await
            {
                lines.extend(frame.data_ref().map(|bytes| stamped.feed(bytes)).unwrap_or_default());
            }
            // What cannot be kept now is read again from where the kept text ends.
            if life.log.keep(&life.uid, (begins, &lines), false).is_err() {
                break;
            }
            if !lines.is_empty() {
                begins = LogBegins::Behind;
            }
        }
    }
    followers.is_over(&life.uid);
}

/// The stream that a question opens, if the server answers with one. Where the credentials have run out they are read anew
/// for the next.
async fn opened(asking: &Asking, call: &ApiCall) -> Option<http::Response<Body>> {
    let begun = tokio::time::timeout(BEGINNING, asking.begun(call)).await;
    let response = begun.ok()?.ok()?;
    if response.status() == http::StatusCode::UNAUTHORIZED {
        asking.forget();
    }
    (response.status() == http::StatusCode::OK).then_some(response)
}

fn watched_paths(namespace: &str) -> [String; 2] {
    [
        format!("/apis/batch/v1/namespaces/{namespace}/jobs"),
        format!("/api/v1/namespaces/{namespace}/pods"),
    ]
}

/// Hears that something has happened to our Jobs or pods.
async fn watch(followers: Arc<Followers>, cluster: NamespaceAt, asking: Asking, path: String) {
    loop {
        let call = ApiCall::new(ApiVerb::Get, path.clone(), BEGINNING)
            .with("labelSelector", LAUNCH)
            .with("watch", "true")
            .with("timeoutSeconds", WATCHING_S.to_string());
        if let Some(response) = opened(&asking, &call).await {
            let mut body = response.into_body();
            let most = Duration::from_secs(u64::from(WATCHING_S)) + BEGINNING;
            while let Ok(Some(Ok(frame))) = tokio::time::timeout(most, body.frame()).await {
                if frame.data_ref().is_some_and(|bytes| !bytes.is_empty()) {
                    followers.happened();
                }
            }
        }
        if followers.leave_watching(&cluster, &path) {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
