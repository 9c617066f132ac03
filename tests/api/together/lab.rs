//! The place of the proof: a server that is killed and begun again, the daemon, the screen and commands, all of them
//! real programs over one data file.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::token::TokenRole;
use tpu_system::store::Event;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::procs::Signal;

use super::super::{Said, doors, heard, token};
use crate::common::dice::Dice;
use crate::common::env::{Running, TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::wait::wait_for;

/// Whose jobs there are.
pub(super) const USERS: [&str; 2] = ["alice", "bob"];
/// So many jobs are acted on at random; older ones are ended by whoever comes across them, so that the file stays
/// small.
const KNOWN: usize = 60;

/// How much is to be done.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// So many acts in all.
    Acts(usize),
    /// What can be done in this time.
    Time(Duration),
}

/// Somebody who asks over HTTP.
pub(super) struct Holder {
    /// As the journal calls them.
    pub(super) actor: String,
    /// The token.
    pub(super) token: String,
    /// Whose jobs they act on.
    pub(super) user: &'static str,
    /// Whether the token is about several users, so that a request says whose jobs it means.
    pub(super) is_admin: bool,
}

/// The place.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    socket: PathBuf,
    extent: Extent,
    clock: SystemClock,
    acts: AtomicUsize,
    kills: AtomicUsize,
    is_over: AtomicBool,
    known: Mutex<Vec<JobId>>,
}

impl Lab {
    /// A place in which three jobs at a time run on this machine.
    pub(super) fn new(extent: Extent) -> Self {
        let env = TestEnv::new();
        for user in USERS {
            env.code(user, "staging.sh", "true\n");
        }
        drop(env.tpu("hosts set local --max-jobs 3").exits(0));
        let socket = env.path("api.sock");
        Self {
            env,
            socket,
            extent,
            clock: SystemClock::new(),
            acts: AtomicUsize::new(0),
            kills: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// So many who ask, each with a token of its own; some of them admins.
    pub(super) fn holders(&self, count: usize) -> Vec<Holder> {
        let ctx = doors(&self.env);
        let one = |number: usize| {
            let (name, user) = (format!("c{number}"), USERS[number % USERS.len()]);
            let is_admin = number % 5 == 4;
            let role = if is_admin { TokenRole::Admin } else { TokenRole::Operator };
            let users: &[&str] = if is_admin { &[] } else { &[user] };
            let token = token(&ctx, &name, role, users);
            Holder { actor: format!("api token {name}"), token, user, is_admin }
        };
        (0..count).map(one).collect()
    }

    /// The screen, as somebody has it open all the time.
    pub(super) fn screen(&self) -> Terminal {
        let terminal = Terminal::new(&self.env);
        terminal.command(&format!("{TPU} monitor alice"));
        terminal.tpu();
        terminal
    }

    /// A server, which need not listen yet.
    fn serve(&self) -> Running {
        self.env.start_tpu(&format!("serve --socket {}", self.socket.display()), &[])
    }

    /// Serves until all is over, killed at random moments and begun again: so many acts apart, at least and at most.
    /// The last server is left to the caller.
    pub(super) fn serve_and_kill(&self, mut dice: Dice, (least, most): (usize, usize)) -> Running {
        let mut server = self.serve();
        loop {
            let next = self.acts() + least + dice.below(most - least);
            wait_for("another act", || (self.is_over() || self.acts() >= next).then_some(()));
            if self.is_over() {
                return server;
            }
            server.kill();
            self.kills.fetch_add(1, Ordering::SeqCst);
            server = self.serve();
        }
    }

    /// How often the server was killed.
    pub(super) fn kills(&self) -> usize {
        self.kills.load(Ordering::SeqCst)
    }

    /// How many acts there were.
    pub(super) fn acts(&self) -> usize {
        self.acts.load(Ordering::SeqCst)
    }

    /// One more act.
    pub(super) fn count(&self) {
        let acts = self.acts.fetch_add(1, Ordering::SeqCst) + 1;
        let is_over = match self.extent {
            Extent::Acts(most) => acts >= most,
            Extent::Time(span) => self.clock.monotonic() >= span,
        };
        if is_over {
            self.is_over.store(true, Ordering::SeqCst);
        }
    }

    /// Whether enough was done.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// How long it has taken so far.
    pub(super) fn seconds(&self) -> u64 {
        self.clock.monotonic().as_secs()
    }

    /// Asks the server that there is, or the next one. `None` where it was cut off: then nobody knows what came of it.
    pub(super) fn ask(
        &self,
        (token, line): (&str, &str),
        headers: &[String],
        body: &str,
    ) -> Option<Said> {
        let mut stream = wait_for("a server", || UnixStream::connect(&self.socket).ok());
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let mut request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        for header in headers {
            request += &format!("{header}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).ok()?;
        let said = heard(stream);
        let length = said.header("content-length").and_then(|length| length.parse().ok());
        (length == Some(said.body.len())).then_some(said)
    }

    /// Remembers a job that others may act on.
    pub(super) fn knows(&self, job: JobId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push(job);
    }

    /// A job of a user that somebody may act on; whether it is one of too many, so that it is to be ended.
    pub(super) fn some_job(&self, dice: &mut Dice, user: &str) -> Option<(JobId, bool)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |job: &&JobId| job.user.as_str() == user;
        if known.iter().filter(own).count() > KNOWN / USERS.len() {
            let oldest = known.iter().position(|job| own(&job))?;
            return Some((known.remove(oldest), true));
        }
        let all: Vec<&JobId> = known.iter().filter(own).collect();
        if all.is_empty() {
            return None;
        }
        // Most act on the same few, so that they meet.
        let last = all.len() - 1 - dice.below(all.len().min(8));
        let any = dice.below(all.len());
        Some((all[if dice.is(6) { last } else { any }].clone(), false))
    }

    /// Waits until nothing is at work, and nothing waits that could begin.
    pub(super) fn comes_to_rest(&self) {
        let is_quiet = |data: &Data| {
            data.jobs().all(|job| !job.status.is_live() && !job.is_being_killed())
                && data.queues().entries.iter().all(|entry| entry.held.is_some())
        };
        wait_for_rest(|| is_quiet(&self.data()));
    }

    /// The state.
    pub(super) fn data(&self) -> Data {
        Data::parse(&self.env.data_bytes()).unwrap()
    }

    /// All that the journal says, the oldest first.
    pub(super) fn history(&self) -> Vec<Event> {
        let parts = [".3", ".2", ".1", ""].map(|part| format!("tpu-state/events{part}.jsonl"));
        assert!(!self.env.path(&parts[0]).exists(), "the beginning of the journal may be gone");
        let mut events = Vec::new();
        for part in parts {
            let text = std::fs::read_to_string(self.env.path(&part)).unwrap_or_default();
            events.extend(text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap()));
        }
        events
    }

    /// Ends the daemon as somebody does who has time.
    pub(super) fn end(running: Running) {
        running.signal(Signal::Terminate);
        assert_eq!(running.wait(), 0);
    }
}

/// What waits begins three at a time: that takes as long as it takes.
fn wait_for_rest(mut is_quiet: impl FnMut() -> bool) {
    let limit = Duration::from_secs(600);
    crate::common::wait::wait_at_most(limit, "everything that may begin to end", || {
        is_quiet().then_some(())
    });
}
