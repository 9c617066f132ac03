//! The simulated cloud behind Google's REST API, on this machine only: Google's own command line and our
//! own provider work against it. It keeps nothing; the fleet is the simulator's.
//!
//! Start with [`Emulator`]; `api` has the routes, `words` the JSON, `http` the protocol.

mod api;
mod http;
mod words;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::sim::SimCloud;
use crate::sys::clock::{Clock as _, SystemClock};
use http::{Reaction, Request};

/// How often the server looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Where every request is written down: one line of JSON each, without what says who asked.
pub type Log = Box<dyn Write + Send>;

/// A server that is not running yet.
pub struct Emulator {
    listener: TcpListener,
    served: Arc<Served>,
}

/// What all connections share.
struct Served {
    sim: SimCloud,
    stop: Arc<AtomicBool>,
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
        let log = log.map(Mutex::new);
        let served = Served { sim, stop, clock: SystemClock::new(), log };
        Ok(Self { listener, served: Arc::new(served) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The simulator behind it.
    pub fn sim(&self) -> &SimCloud {
        &self.served.sim
    }

    /// Serves, each connection in a thread of its own, until it is to stop.
    pub fn serve(&self) -> io::Result<()> {
        let stop = &self.served.stop;
        while !stop.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // Nobody, or somebody who has gone already.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e),
            };
            stream.set_nonblocking(false)?;
            let served = Arc::clone(&self.served);
            thread::spawn(move || {
                // A connection that breaks is its client's affair.
                drop(http::serve(stream, &served.stop, |request| served.react(request)));
            });
        }
        Ok(())
    }
}

impl Served {
    fn react(&self, request: &Request) -> Reaction {
        let at = self.clock.monotonic();
        let reaction = api::react(&self.sim, request);
        if let Some(log) = &self.log {
            let status = match &reaction {
                Reaction::Answer(status, _) => json!(status),
                Reaction::Hang => Value::Null,
            };
            let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            let line = json!({
                "at_ms": u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
                "method": request.method, "target": request.target, "body": body, "status": status,
            });
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that cannot be written is no reason not to answer.
            drop(log.write_all(format!("{line}\n").as_bytes()).and_then(|()| log.flush()));
        }
        reaction
    }
}
