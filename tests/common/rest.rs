//! The simulated cloud behind the REST API, and our own provider in front of it, in one process: they share
//! a clock that the test moves.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Map, Value};

use tpu_core::model::settings::CloudAuth;
use tpu_core::model::time::Timestamp;
use tpu_gcp::google::{Google, GoogleConfig};
use tpu_lab::emulator::Emulator;
use tpu_lab::sim::SimCloud;
use tpu_system::sys::clock::{Clock, ManualClock, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::random::SeededRandom;

use super::env::TestEnv;
use super::sim::open;

/// A running emulator and a provider that speaks to it.
pub(crate) struct Rest {
    /// The provider under test.
    pub(crate) google: Google,
    /// The clock of both.
    pub(crate) clock: Arc<ManualClock>,
    served: Served,
    _dir: tempfile::TempDir,
}

/// What was asked, line by line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Rest {
    /// A fleet of words alone; each list is asked for once.
    pub(crate) fn new(targets: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
        let sim = open(dir.path(), Arc::clone(&clock) as Arc<dyn Clock>, targets, false);
        let served = Served::new(sim);
        let google = google(&served.endpoint(), &clock, 1);
        Self { google, clock, served, _dir: dir }
    }

    /// The simulator behind it.
    pub(crate) fn sim(&self) -> &SimCloud {
        self.served.sim()
    }

    /// Where the API is.
    pub(crate) fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// Another process's provider.
    pub(crate) fn another(&self, list_tries: u32) -> Google {
        google(&self.endpoint(), &self.clock, list_tries)
    }

    /// Everything that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.served.asked()
    }
}

/// A running emulator, and what it was asked.
pub(crate) struct Served {
    emulator: Arc<Emulator>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    log: Lines,
}

impl Served {
    fn new(sim: SimCloud) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let log = Lines::default();
        let emulator =
            Emulator::bind(sim, 0, Arc::clone(&stop), Some(Box::new(log.clone()))).unwrap();
        let emulator = Arc::new(emulator);
        let serving = Arc::clone(&emulator);
        let thread = std::thread::spawn(move || serving.serve().unwrap());
        Self { emulator, stop, thread: Some(thread), log }
    }

    /// The fleet beside the data file of a test, for programs that it starts: they are told where it is.
    pub(crate) fn beside(env: &mut TestEnv) -> Self {
        let state = env.path("tpu-state");
        let clock = Arc::new(SystemClock::new());
        let served = Self::new(open(&state, clock, &[], true));
        env.set("TPU_CLOUD", "google");
        env.set("TPU_CLOUD_AUTH", "none");
        env.set("TPU_PROJECT", "lab");
        env.set("TPU_CLOUD_ENDPOINT", served.endpoint());
        served
    }

    /// A fleet of its own in a directory.
    pub(crate) fn in_directory(dir: &Path, targets: &[(&str, &str)]) -> Self {
        Self::new(open(dir, Arc::new(SystemClock::new()), targets, true))
    }

    /// The simulator behind it.
    pub(crate) fn sim(&self) -> &SimCloud {
        self.emulator.sim()
    }

    /// Where the API is.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/", self.emulator.address().unwrap())
    }

    /// Everything that was asked so far: `at_ms`, `method`, `target`, `body`, `status`.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let lines = self.log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(lines).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Our provider for an endpoint, without credentials, in the project `lab`.
pub(crate) fn google(endpoint: &str, clock: &Arc<ManualClock>, list_tries: u32) -> Google {
    let env = Env::fixed([("HOME", "/nonexistent")]);
    with_env(endpoint, clock, list_tries, (env, CloudAuth::None))
}

/// The same in an environment of its own.
pub(crate) fn with_env(
    endpoint: &str,
    clock: &Arc<ManualClock>,
    list_tries: u32,
    (env, auth): (Env, CloudAuth),
) -> Google {
    Google::open(GoogleConfig {
        endpoint: Some(endpoint.to_owned()),
        project: Some("lab".to_owned()),
        auth,
        node: Map::new(),
        env,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        random: Arc::new(SeededRandom::new(1)),
        list_tries,
    })
}
