//! Whether a window's place is the one we look at, decided from the stored place and one look at tmux.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, PaneFact, Place, RunFact, RunState, TmuxFact};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_system::sys::procs::Processes;

/// What one look at tmux says about a job's window.
#[derive(Clone, Debug, PartialEq)]
pub enum Window<'a> {
    /// It exists, and this is its pane.
    Here(&'a PaneFact),
    /// A server answered, it is the window's own, and the window is not there.
    Gone,
    /// What it lived on was restarted: the window is gone for certain.
    Lost(Restart),
    /// It lives where we cannot look.
    Elsewhere(String),
    /// The question could not be answered.
    Unknown(String),
}

/// What has ended since a window was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The machine, which was started anew: nothing that was begun before goes on.
    Machine,
    /// Only the tmux server, and another one answers: whoever was opening a window may still do so, on that one.
    Server,
    /// Only the tmux server, and none answers.
    NoServer,
}

impl Restart {
    fn in_words(self) -> &'static str {
        match self {
            Self::Machine => "the machine has been restarted since",
            Self::Server => "the tmux server has been restarted since",
            Self::NoServer => "its tmux server has ended",
        }
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

impl Window<'_> {
    /// What the window of `job` says about its run, whose command has ended in this way if that is known.
    pub fn fact(&self, job: &Job, exit: Option<Exit>) -> RunFact {
        // A server that does not say when a pane last printed says nothing about it.
        let heard = |pane: &PaneFact| {
            let activity = i64::try_from(pane.activity).ok().filter(|activity| *activity > 0);
            activity.map(Timestamp::from_second)
        };
        let with = |state, raw, reason: Cow<'static, str>| RunFact {
            exit,
            reason: Some(reason),
            ..RunFact::new(state, raw)
        };
        let is_opened = job.launch.as_ref().is_none_or(|launch| launch.confirmed);
        let gone = |raw, reason: &'static str| {
            if is_opened {
                (ErrorKind::Lost, raw, reason)
            } else {
                (ErrorKind::Launch, "no-window", "its window was never opened")
            }
        };
        let (cause, raw, reason) = match self {
            Self::Here(pane) if pane.dead => {
                let fact =
                    with(RunState::Ended, "pane-dead", "the window's program has ended".into());
                return RunFact { last_output: heard(pane), ..fact };
            }
            Self::Here(pane) => {
                let fact = RunFact::new(RunState::Running, "window-here");
                return RunFact { exit, last_output: heard(pane), ..fact };
            }
            Self::Elsewhere(reason) => {
                return with(RunState::Elsewhere, "window-elsewhere", reason.clone().into());
            }
            Self::Unknown(reason) => {
                return with(RunState::Unknown, "window-unknown", reason.clone().into());
            }
            Self::Gone => gone("window-gone", "its window is gone"),
            // Nobody opens it any more who was about to.
            Self::Lost(Restart::Machine) => {
                (ErrorKind::Lost, "window-lost", Restart::Machine.in_words())
            }
            Self::Lost(server @ (Restart::Server | Restart::NoServer)) => {
                gone("window-lost", server.in_words())
            }
        };
        RunFact { cause: Some(cause), ..with(RunState::Gone, raw, reason.into()) }
    }
}

/// Finds the window of `job`.
///
/// A pane counts if its `@tpu_launch` is the launch's token. A pane without marks (made by the original)
/// counts by session and index, if the record has no launch of ours. Equal indices of other users or of
/// later launches never do. A record that does not say where its window lives is missed only on a server
/// that has its user's session; on any other one nothing is known. Where no server answers, the window is gone if
/// its own server is none of `procs` any more.
pub fn find<'a>(job: &Job, session: &str, tmux: &'a TmuxFact, procs: &dyn Processes) -> Window<'a> {
    judged((job, session), tmux, procs, |panes| {
        panes.iter().find(|pane| is_window_of(job, session, pane))
    })
}

/// One look at tmux in which many windows are to be found: each costs a look at the few panes that may be
/// it, and not at all of them.
pub struct Indexed<'a> {
    tmux: &'a TmuxFact,
    procs: &'a dyn Processes,
    by_launch: HashMap<&'a LaunchToken, Vec<&'a PaneFact>>,
    /// Panes without a launch.
    by_index: HashMap<u32, Vec<&'a PaneFact>>,
}

impl<'a> Indexed<'a> {
    /// Prepares a look.
    pub fn new(tmux: &'a TmuxFact, procs: &'a dyn Processes) -> Self {
        let panes = match tmux {
            TmuxFact::Up { panes, .. } => panes.as_slice(),
            TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => &[],
        };
        let mut by_launch: HashMap<_, Vec<_>> = HashMap::new();
        let mut by_index: HashMap<_, Vec<_>> = HashMap::new();
        for pane in panes {
            match &pane.launch {
                Some(token) => by_launch.entry(token).or_default().push(pane),
                None => by_index.entry(pane.window_index).or_default().push(pane),
            }
        }
        Self { tmux, procs, by_launch, by_index }
    }

    /// Finds the window of `job`, as [`find`] does.
    pub fn find(&self, job: &Job, session: &str) -> Window<'a> {
        judged((job, session), self.tmux, self.procs, |_| {
            let candidates = match &job.launch {
                Some(launch) => self.by_launch.get(&launch.token),
                None => self.by_index.get(&job.windows_id.0),
            };
            let mut candidates = candidates.into_iter().flatten().copied();
            candidates.find(|pane| is_window_of(job, session, pane))
        })
    }
}

/// What is known of the window of `job`, given how it is found among the panes.
fn judged<'a>(
    (job, session): (&Job, &str),
    tmux: &'a TmuxFact,
    procs: &dyn Processes,
    find: impl FnOnce(&'a [PaneFact]) -> Option<&'a PaneFact>,
) -> Window<'a> {
    if let Some(run) = &job.engine {
        return Window::Elsewhere(format!("{} has it, and nobody here knows that", run.cluster));
    }
    let (here, panes) = match tmux {
        TmuxFact::Unknown { reason } => return Window::Unknown(reason.clone()),
        TmuxFact::Up { place, panes } => (place, Some(panes)),
        TmuxFact::Down { place } => (place, None),
    };
    let found = panes.and_then(|panes| find(panes));
    if let Some(place) = &job.place
        && let Some(verdict) = elsewhere_or_lost(place, here, panes.is_some())
    {
        return match (verdict, found) {
            // Its mark proves more than the note of a server that ended between the claim and the window.
            (Window::Lost(_), Some(pane)) if job.launch.is_some() => Window::Here(pane),
            (verdict, _) => verdict,
        };
    }
    let Some(panes) = panes else {
        return match &job.place {
            Some(place) if has_ended(place, procs) => Window::Lost(Restart::NoServer),
            Some(place) if place.server_pid != 0 => Window::Unknown(format!(
                "no tmux server answers on {}, and its own lives (process {})",
                here.socket, place.server_pid
            )),
            Some(_) => Window::Unknown(format!("no tmux server answers on {}", here.socket)),
            None => {
                Window::Unknown(nowhere(job, &format!("no tmux server answers on {}", here.socket)))
            }
        };
    };
    match found {
        Some(pane) => Window::Here(pane),
        None if job.place.is_none() && !panes.iter().any(|pane| pane.session == session) => {
            let why = format!("its record names no tmux server, and here is no session {session}");
            Window::Unknown(nowhere(job, &why))
        }
        None => Window::Gone,
    }
}

/// Compares the stored place with the one we look at; `None` when windows there can be judged.
fn elsewhere_or_lost<'a>(place: &Place, here: &Place, up: bool) -> Option<Window<'a>> {
    if place.host != here.host {
        return Some(Window::Elsewhere(format!("its window is on host {}", place.host)));
    }
    if place.uid != here.uid {
        return Some(Window::Elsewhere(format!("its tmux server belongs to uid {}", place.uid)));
    }
    if place.boot != here.boot {
        return Some(Window::Lost(Restart::Machine));
    }
    if place.socket != here.socket {
        return Some(Window::Elsewhere(format!("its window is on tmux socket {}", place.socket)));
    }
    let same_server =
        place.server_pid == here.server_pid && place.server_start == here.server_start;
    (up && !same_server).then_some(Window::Lost(Restart::Server))
}

/// Why nobody can tell how a job is whose record names no tmux server, and the way out.
fn nowhere(job: &Job, why: &str) -> String {
    let (window, user) = (job.windows_id, &job.user);
    format!("{why}; if it has ended: tpu kill w={window} {user} --force")
}

/// Whether the record of a job claims no window that anybody could look for: the original wrote down no place, and
/// tmux, which has answered or ended, shows none.
pub fn claims_none(job: &Job, window: &Window<'_>, tmux: &TmuxFact) -> bool {
    let is_without = job.place.is_none() && job.launch.is_none() && job.engine.is_none();
    let has_answered = !matches!(tmux, TmuxFact::Unknown { .. });
    is_without && has_answered && matches!(window, Window::Unknown(_))
}

/// Whether the tmux server of a window on this machine has ended for certain.
fn has_ended(place: &Place, procs: &dyn Processes) -> bool {
    place.server_pid != 0 && !procs.is_alive(place.server_pid, place.server_start)
}

/// The panes of the window of `pane` beside it.
pub fn beside<'a>(pane: &'a PaneFact, tmux: &'a TmuxFact) -> impl Iterator<Item = &'a PaneFact> {
    let panes = match tmux {
        TmuxFact::Up { panes, .. } => panes.as_slice(),
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => &[],
    };
    let of = |pane: &'a PaneFact| (&pane.session, pane.window_index);
    panes.iter().filter(move |other| of(other) == of(pane) && other.pane_id != pane.pane_id)
}

/// Whether `pane` is the window of `job`.
pub fn is_window_of(job: &Job, session: &str, pane: &PaneFact) -> bool {
    match (&job.launch, &pane.launch) {
        (Some(launch), Some(token)) => launch.token == *token,
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => {
            pane.session == session
                && pane.window_index == job.windows_id.0
                && pane.job.as_ref().is_none_or(|id| *id == job.id())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
    use tpu_core::model::job::{Launch, LaunchMode};
    use tpu_system::sys::procs::{Process, Signal, Table};

    /// A machine on which these processes live, each with its start.
    struct Alive(&'static [(u32, u64)]);

    impl Processes for Alive {
        fn table(&self) -> io::Result<Table> {
            Ok(Table::default())
        }

        fn is_alive(&self, pid: u32, start: u64) -> bool {
            self.0.contains(&(pid, start))
        }

        fn signal(&self, _process: &Process, _signal: Signal) -> io::Result<bool> {
            Ok(false)
        }
    }

    fn find<'a>(job: &Job, session: &str, tmux: &'a TmuxFact) -> Window<'a> {
        super::find(job, session, tmux, &Alive(&[(10, 100)]))
    }

    fn place() -> Place {
        Place {
            host: "h".to_owned(),
            boot: "b".to_owned(),
            uid: 1,
            socket: "/tmp/s".to_owned(),
            server_pid: 10,
            server_start: 100,
        }
    }

    fn pane(session: &str, index: u32, token: Option<&str>) -> PaneFact {
        PaneFact {
            session: session.to_owned(),
            window_index: index,
            pane_id: "%1".to_owned(),
            dead: false,
            activity: 0,
            history_size: 0,
            cursor_y: 0,
            cursor_x: 0,
            job: None,
            launch: token.map(LaunchToken::from),
            exit: None,
        }
    }

    fn job(token: Option<&str>) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&id, TargetName::from("local"), "/d".to_owned());
        if let Some(token) = token {
            job.place = Some(place());
            job.launch = Some(Launch {
                confirmed: true,
                ..Launch::claimed(token, LaunchMode::Native, Timestamp::from_second(0))
            });
        }
        job
    }

    #[test]
    fn a_window_is_known_by_its_token_wherever_it_moved() {
        let tmux = TmuxFact::Up { place: place(), panes: vec![pane("other", 99, Some("t"))] };
        assert!(matches!(find(&job(Some("t")), "alice", &tmux), Window::Here(_)));
        let foreign = TmuxFact::Up { place: place(), panes: vec![pane("alice", 7, Some("u"))] };
        assert_eq!(find(&job(Some("t")), "alice", &foreign), Window::Gone);
        let unmarked = TmuxFact::Up { place: place(), panes: vec![pane("alice", 7, None)] };
        assert_eq!(find(&job(Some("t")), "alice", &unmarked), Window::Gone);
    }

    #[test]
    fn a_mark_on_a_server_that_the_record_does_not_know_is_still_its_window() {
        let mut newer = place();
        newer.server_pid += 1;
        let with = |pane| TmuxFact::Up { place: newer.clone(), panes: vec![pane] };
        assert!(matches!(
            find(&job(Some("t")), "alice", &with(pane("alice", 7, Some("t")))),
            Window::Here(_)
        ));
        let mut unmarked = job(Some("t"));
        unmarked.launch = None;
        let found = with(pane("alice", 7, None));
        assert!(
            matches!(find(&unmarked, "alice", &found), Window::Lost(_)),
            "an index is no proof"
        );
    }

    #[test]
    fn a_window_of_the_original_is_known_by_session_and_index() {
        let tmux = TmuxFact::Up {
            place: place(),
            panes: vec![pane("bird", 7, None), pane("alice", 7, None)],
        };
        assert!(
            matches!(find(&job(None), "alice", &tmux), Window::Here(p) if p.session == "alice")
        );
        assert!(matches!(find(&job(None), "b", &tmux), Window::Unknown(_)), "no session b here");
        let closed = TmuxFact::Up { place: place(), panes: vec![pane("alice", 0, None)] };
        assert_eq!(find(&job(None), "alice", &closed), Window::Gone);
    }

    #[test]
    fn an_index_finds_what_a_search_finds() {
        let split = |mut pane: PaneFact, id: &str| {
            pane.pane_id = id.to_owned();
            pane
        };
        let mut others = pane("alice", 7, None);
        others.job = Some(JobId::new(UserName::from("bob"), JobNumber(7)));
        let panes = vec![
            others,
            pane("bird", 7, None),
            split(pane("alice", 7, None), "%2"),
            split(pane("alice", 7, None), "%3"),
            split(pane("other", 9, Some("t")), "%4"),
            split(pane("other", 9, Some("t")), "%5"),
        ];
        let up = TmuxFact::Up { place: place(), panes };
        for tmux in [&up, &TmuxFact::Down { place: place() }] {
            let index = Indexed::new(tmux, &Alive(&[(10, 100)]));
            for job in [job(None), job(Some("t")), job(Some("u"))] {
                for session in ["alice", "bird", "nobody"] {
                    assert_eq!(index.find(&job, session), find(&job, session, tmux), "{session}");
                }
            }
        }
    }

    #[test]
    fn another_place_is_unknown_and_another_boot_or_server_is_lost() {
        let with = |change: fn(&mut Place)| {
            let mut here = place();
            change(&mut here);
            TmuxFact::Up { place: here, panes: vec![] }
        };
        let job = job(Some("t"));
        let find = |tmux: &TmuxFact| format!("{:?}", find(&job, "alice", tmux));
        assert!(find(&with(|p| p.host = "other".to_owned())).starts_with("Elsewhere"));
        assert!(find(&with(|p| p.uid = 2)).starts_with("Elsewhere"));
        assert!(find(&with(|p| p.socket = "/x".to_owned())).starts_with("Elsewhere"));
        assert!(find(&with(|p| p.boot = "c".to_owned())).starts_with("Lost"));
        assert!(find(&with(|p| p.server_pid = 11)).starts_with("Lost"));
        assert!(find(&with(|p| p.server_start = 101)).starts_with("Lost"));
        assert!(find(&TmuxFact::Down { place: place() }).starts_with("Unknown"));
        assert!(find(&TmuxFact::Unknown { reason: "x".to_owned() }).starts_with("Unknown"));
    }

    #[test]
    fn where_no_server_answers_a_window_is_gone_if_its_server_has_ended() {
        let down = TmuxFact::Down { place: place() };
        let at =
            |job: &Job, alive| format!("{:?}", super::find(job, "alice", &down, &Alive(alive)));
        let mut job = job(Some("t"));
        assert_eq!(at(&job, &[]), "Lost(NoServer)");
        assert_eq!(at(&job, &[(10, 101)]), "Lost(NoServer)", "another process has its number");
        assert!(at(&job, &[(10, 100)]).starts_with("Unknown"), "it lives and is silent");
        job.place = None;
        assert!(at(&job, &[]).starts_with("Unknown"), "nobody knows which server it was");
        let mut elsewhere = place();
        elsewhere.host = "other".to_owned();
        job.place = Some(elsewhere);
        assert!(at(&job, &[]).starts_with("Elsewhere"));
        let mut unsaid = place();
        unsaid.server_pid = 0;
        job.place = Some(unsaid);
        assert!(at(&job, &[]).starts_with("Unknown"));
    }
}
