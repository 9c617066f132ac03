//! The simulated cloud behind Google's REST API, on this machine only: Google's own command line and our
//! own provider work against it. It keeps nothing; the fleet is the simulator's.
//!
//! Start with [`Emulator`]; `routes` has the table of the API's methods, `api` what each of them does,
//! `words` the JSON.

mod accounts;
mod api;
mod request;
mod routes;
mod storage;
mod words;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::sim::SimCloud;
use request::{ApiRequest, Connection};
use routes::Handler;
use tpu_system::sys::clock::{Clock as _, SystemClock};

/// How often the server looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Where every request is written down: one line of JSON each, without what says who asked.
pub type Log = Box<dyn Write + Send>;

/// A server that is not running yet.
pub struct Emulator {
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    served: Arc<Served>,
}

/// What all connections share.
struct Served {
    sim: SimCloud,
    clock: SystemClock,
    log: Option<Mutex<Log>>,
}

impl Emulator {
    /// Takes a port of this machine, any free one for 0. It ends soon after `stop` is set.
    pub fn bind(
        sim: SimCloud,
        port: u16,
        stop: Arc<AtomicBool>,
        log: Option<Log>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let served = Served { sim, clock: SystemClock::new(), log: log.map(Mutex::new) };
        Ok(Self { listener, stop, served: Arc::new(served) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The simulator behind it.
    pub fn sim(&self) -> &SimCloud {
        &self.served.sim
    }

    /// Serves until it is to stop. Whoever is connected then is cut off.
    pub fn serve(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let done = runtime.block_on(self.serve_until_stopped());
        // A slow answer keeps nobody from the end.
        runtime.shutdown_background();
        done
    }

    async fn serve_until_stopped(&self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let router = routes::router(Arc::clone(&self.served));
        let service = router.into_make_service_with_connect_info::<Connection>();
        let serving = tokio::spawn(axum::serve(listener, service).into_future());
        while !self.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
        serving.abort();
        Ok(())
    }
}

/// What becomes of a request.
enum Reaction {
    /// It is answered.
    Answer(StatusCode, Value),
    /// Its connection is closed without a word.
    Hang,
}

impl Served {
    /// Answers one request, and writes down how. Waits where the simulated cloud is slow.
    fn react(&self, request: &ApiRequest, handler: Handler) -> Reaction {
        let at = self.clock.monotonic();
        let answer = handler(&self.sim, request);
        // Whoever waits longer than this has hung up.
        let is_heard = self.sim.linger(answer.delivery.slow_s) && !answer.delivery.lost;
        let reaction = match answer.given {
            _ if !is_heard => Reaction::Hang,
            Ok(value) => Reaction::Answer(StatusCode::OK, value),
            Err(error) => {
                let (status, body) = words::refusal(&error);
                Reaction::Answer(status, body)
            }
        };
        self.write_down(at, request, &reaction);
        reaction
    }

    fn write_down(&self, at: Duration, request: &ApiRequest, reaction: &Reaction) {
        let status = match reaction {
            Reaction::Answer(status, _) => Some(status.as_u16()),
            Reaction::Hang => None,
        };
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        self.write_line_at(at, (request.method.as_str(), &request.target), (&body, status));
    }

    /// Writes a request down that was answered just now.
    fn write_line(&self, method: &str, target: &str, body: &Value, status: Option<u16>) {
        self.write_line_at(self.clock.monotonic(), (method, target), (body, status));
    }

    fn write_line_at(
        &self,
        at: Duration,
        (method, target): (&str, &str),
        (body, status): (&Value, Option<u16>),
    ) {
        let Some(log) = &self.log else { return };
        let line = json!({
            "at_ms": u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            "method": method, "target": target, "body": body, "status": status,
        });
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written is no reason not to answer.
        drop(log.write_all(format!("{line}\n").as_bytes()).and_then(|()| log.flush()));
    }
}
