//! What all requests share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use tpu_core::model::ids::TargetName;
use tpu_ops::base::account::BY_REQUEST;
use tpu_ops::observe::curves::CurveMemory;
use tpu_ops::{Ctx, Error};

use super::counted::Counted;
use super::failure::Failure;
use super::links::LoginLinks;
use super::looks::Looks;
use super::pulse::Pulse;
use super::takes::Room;
use super::who::{Lately, Who};

/// Requests that read and change the state at once; others wait for one of them.
const AT_ONCE: usize = 32;
/// Those that wait for programs to end and machines to answer.
const SLOW: usize = 32;
/// Those that anybody may make.
const OPEN: usize = 4;
/// Threads on which all this is done.
pub(super) const THREADS: usize = AT_ONCE + SLOW + OPEN + MADE;
/// Logs that are followed at once.
const FOLLOWED: usize = 200;
/// Targets that are made at once.
const MADE: usize = 16;
/// An answer that is made gets so long to leave.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Who finds no room for so long is told to come later.
const PATIENCE: Duration = Duration::from_secs(5);

/// What all requests share: the doors to the world, the last look, those who follow the journal.
pub(super) struct Served {
    /// The doors; each request acts through a copy in its own name.
    pub(super) ctx: Arc<Ctx>,
    /// How jobs are, looked at for everybody at once.
    pub(super) looks: Looks,
    /// The journal as it grows.
    pub(super) pulse: Pulse,
    /// Those who showed nothing of worth lately.
    pub(super) strangers: Lately,
    /// Room for what is done to answer.
    rooms: Rooms,
    /// Room for those who follow a log.
    pub(super) followers: Arc<Semaphore>,
    /// Room for targets that are made.
    pub(super) makers: Arc<Semaphore>,
    /// Those that are made just now.
    pub(super) making: Mutex<BTreeSet<TargetName>>,
    /// What was read of the curves of logs that have not grown since.
    pub(super) curves: Mutex<CurveMemory>,
    /// What was refused lately, by whom it was tried and whether it was grave: nobody's flood hides what somebody else
    /// tries.
    pub(super) denials: Mutex<BTreeMap<(String, bool), Lately>>,
    /// Links that log a browser in.
    pub(super) links: LoginLinks,
    /// Names under which this server may be called beside those of this machine.
    pub(super) hosts: Vec<String>,
    /// Whether browsers reach it by TLS.
    pub(super) is_secure: bool,
    /// Words that no name of a host may be, as they are commands.
    pub(super) job_words: Vec<String>,
    /// Requests that were answered, by status.
    pub(super) counted: Counted,
    /// What there is.
    pub(super) description: Description,
}

/// Places for requests that are being carried out, by what they wait for.
struct Rooms {
    usual: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Rooms {
    fn new() -> Self {
        let [usual, slow, open] =
            [AT_ONCE, SLOW, OPEN].map(|places| Arc::new(Semaphore::new(places)));
        Self { usual, slow, open }
    }

    fn of(&self, room: Room) -> Arc<Semaphore> {
        Arc::clone(match room {
            Room::Usual => &self.usual,
            Room::Slow => &self.slow,
            Room::Open => &self.open,
        })
    }
}

/// What there is, as text that is made once.
pub(super) struct Description {
    /// OpenAPI, JSON.
    pub(super) for_programs: String,
    /// A page.
    pub(super) for_people: String,
}

impl Served {
    /// Before anybody has asked.
    pub(super) fn new(
        ctx: Arc<Ctx>,
        (hosts, is_secure): (Vec<String>, bool),
        (description, job_words): (Description, Vec<String>),
    ) -> Self {
        Self {
            ctx,
            looks: Looks::default(),
            pulse: Pulse::default(),
            strangers: Lately::default(),
            rooms: Rooms::new(),
            followers: Arc::new(Semaphore::new(FOLLOWED)),
            makers: Arc::new(Semaphore::new(MADE)),
            making: Mutex::default(),
            curves: Mutex::default(),
            denials: Mutex::default(),
            links: LoginLinks::default(),
            hosts,
            is_secure,
            job_words,
            counted: Counted::default(),
            description,
        }
    }

    /// Does what waits for files and programs beside those who serve, as many at once as there is room for. Who finds none
    /// for long is told to come later; an error inside us has not hurt anybody else.
    pub(super) async fn beside<T: Send + 'static>(
        &self,
        room: Room,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let room = tokio::time::timeout(PATIENCE, self.rooms.of(room).acquire_owned()).await;
        let Ok(Ok(room)) = room else {
            let error = Error::refused("too much is asked at once").passing().hint("come later");
            let busy = Failure::from(error).status(StatusCode::SERVICE_UNAVAILABLE);
            return Err(busy.header("retry-after", "5"));
        };
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(room);
            done
        });
        done.await.map_err(|_| {
            Error::failed("an error inside tpu").hint("please report it; `tpu doctor`").into()
        })
    }

    /// Waits until nothing is being done that somebody asked for, and is said; so long at most.
    pub(super) async fn quiet(&self, most: Duration) {
        let all = async {
            for (room, places) in [(Room::Usual, AT_ONCE), (Room::Slow, SLOW)] {
                let room = self.rooms.of(room);
                drop(room.acquire_many(u32::try_from(places).unwrap_or(1)).await);
            }
        };
        drop(tokio::time::timeout(most, all).await);
        tokio::time::sleep(LAST_WORDS).await;
    }

    /// Whether this is a name of ours, with a port or without: of this machine, an address, or one that was said. A name
    /// that somebody else gave to our address is none (DNS rebinding).
    pub(super) fn is_called(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let own = self.ctx.env.hostname.to_ascii_lowercase();
        let is_said = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(&name));
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok() || name == own || is_said
    }

    /// The surroundings of one request, in whose name it acts; of a trial those in which nothing is changed.
    pub(super) fn ctx_of(&self, who: &Who, is_trial: bool) -> Ctx {
        let actor = format!("{BY_REQUEST}{}", who.name);
        let ctx = self.ctx.on_behalf(&actor).only_on(&who.rights.only_on);
        if is_trial { ctx.dry_run() } else { ctx }
    }
}
