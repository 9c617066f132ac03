//! The simulated cloud behind the REST API, and our own provider in front of it, in one process: they share
//! a clock that the test moves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Map, Value};

use tpu::cloud::emulator::Emulator;
use tpu::cloud::google::{Google, GoogleConfig};
use tpu::cloud::sim::SimCloud;
use tpu::model::settings::CloudAuth;
use tpu::model::time::Timestamp;
use tpu::sys::clock::{Clock, ManualClock};
use tpu::sys::env::Env;
use tpu::sys::random::SeededRandom;

use super::sim::open;

/// A running emulator and a provider that speaks to it.
pub(crate) struct Rest {
    /// The provider under test.
    pub(crate) google: Google,
    /// The clock of both.
    pub(crate) clock: Arc<ManualClock>,
    emulator: Arc<Emulator>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    log: Lines,
    dir: tempfile::TempDir,
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
        let stop = Arc::new(AtomicBool::new(false));
        let log = Lines::default();
        let emulator =
            Emulator::bind(sim, 0, Arc::clone(&stop), Some(Box::new(log.clone()))).unwrap();
        let emulator = Arc::new(emulator);
        let endpoint = format!("http://{}/", emulator.address().unwrap());
        let thread = {
            let emulator = Arc::clone(&emulator);
            std::thread::spawn(move || emulator.serve().unwrap())
        };
        let google = google(&endpoint, &clock, 1);
        Self { google, clock, emulator, stop, thread: Some(thread), log, dir }
    }

    /// The simulator behind it.
    pub(crate) fn sim(&self) -> &SimCloud {
        self.emulator.sim()
    }

    /// Where the API is.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/", self.emulator.address().unwrap())
    }

    /// Another process's provider.
    pub(crate) fn another(&self, list_tries: u32) -> Google {
        google(&self.endpoint(), &self.clock, list_tries)
    }

    /// Everything that was asked so far, without the alphabet of the protocol: method and path.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let lines = self.log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(lines).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The directory of the fleet.
    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }
}

impl Drop for Rest {
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
