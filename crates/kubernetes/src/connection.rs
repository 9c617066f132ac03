//! Real API servers, and for each a small runtime that is at work only while somebody waits for an answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use tpu_system::effects::Effects;

use super::api::{ApiAnswer, ApiCall, ApiServer, ApiServers, Unanswered};
use super::asking::Asking;
use super::cluster::NamespaceAt;
use super::life::Life;
use super::live::Followers;

/// So many questions are under way at once.
const SIDE_BY_SIDE: usize = 32;

/// The clusters of kubeconfig files, each with one connection for the whole process.
#[derive(Default)]
pub(super) struct RealServers {
    open: Mutex<HashMap<NamespaceAt, Arc<Connection>>>,
    followers: Arc<Followers>,
}

impl ApiServers for RealServers {
    fn open(&self, cluster: &NamespaceAt, _: &Effects) -> Arc<dyn ApiServer> {
        let key = NamespaceAt { log_volume: None, image: None, ..cluster.clone() };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = open
            .entry(key.clone())
            .or_insert_with(|| Arc::new(Connection::new(key, &self.followers)));
        Arc::clone(connection) as Arc<dyn ApiServer>
    }

    fn wakes(&self) -> u64 {
        self.followers.stay()
    }
}

/// One server, by one user's credentials.
pub(super) struct Connection {
    at: NamespaceAt,
    asking: Asking,
    /// What the followers ask by. A connection moves on with the runtime that opened it, and the one of questions rests
    /// between them.
    following: Asking,
    runtime: std::io::Result<Runtime>,
    followers: Arc<Followers>,
}

impl Connection {
    fn new(at: NamespaceAt, followers: &Arc<Followers>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self {
            asking: Asking::new(at.clone()),
            following: Asking::new(at.clone()),
            at,
            runtime,
            followers: Arc::clone(followers),
        }
    }

    fn runtime(&self) -> Result<&Runtime, Unanswered> {
        self.runtime.as_ref().map_err(|e| Unanswered::NotSent(e.to_string()))
    }
}

impl ApiServer for Connection {
    fn ask(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered> {
        self.runtime()?.block_on(self.asking.answer(call))
    }

    fn ask_all(&self, calls: &[ApiCall]) -> Vec<Result<ApiAnswer, Unanswered>> {
        let unheard = || Err(Unanswered::Broken("the question was given up".to_owned()));
        let mut answers: Vec<_> = calls.iter().map(|_| unheard()).collect();
        let runtime = match self.runtime() {
            Ok(runtime) => runtime,
            Err(silence) => return calls.iter().map(|_| Err(silence.clone())).collect(),
        };
        runtime.block_on(async {
            let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
            let mut asked = JoinSet::new();
            for (place, call) in calls.iter().cloned().enumerate() {
                let (asking, places) = (self.asking.clone(), Arc::clone(&places));
                asked.spawn(async move {
                    let _permit = places.acquire().await;
                    (place, asking.answer(&call).await)
                });
            }
            while let Some(answer) = asked.join_next().await {
                let Ok((place, answer)) = answer else { continue };
                if let Some(of) = answers.get_mut(place) {
                    *of = answer;
                }
            }
        });
        answers
    }

    fn follow(&self, namespace: &str, lives: Vec<Life>) -> BTreeSet<String> {
        let cluster = NamespaceAt { namespace: namespace.to_owned(), ..self.at.clone() };
        self.followers.follow(&cluster, lives, &self.following)
    }
}
