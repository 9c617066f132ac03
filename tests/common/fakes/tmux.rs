//! A tmux server in memory, behind the same door and with the same strictness as the real one. Tests can
//! also close windows behind a job's back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tpu_core::model::facts::{PaneFact, Place, TmuxFact};
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_system::sys::clock::Clock;
use tpu_system::tmux::{Capture, Captured, NewWindow, Occupant, Tmux, TmuxError};

/// Rows of every pane.
const ROWS: usize = 50;

/// The server in memory. Cheap to share: all methods take `&self`.
pub(crate) struct FakeTmux {
    clock: Arc<dyn Clock>,
    server: Mutex<Server>,
}

/// What the server has and is.
struct Server {
    place: Place,
    /// Why questions fail, while they do.
    failing: Option<String>,
    /// Windows by session and index; each has one pane.
    sessions: BTreeMap<String, BTreeMap<u32, Window>>,
    /// Counts windows and panes. Begins anew with each server, as with the real one: `%1` comes again.
    next_id: u32,
    /// Counts processes, over all servers.
    next_pid: u32,
}

/// One window with its one pane.
#[derive(Clone, Debug)]
struct Window {
    name: String,
    fact: PaneFact,
    /// The process id of the pane's program.
    pid: u32,
    options: BTreeMap<String, String>,
    text: Vec<u8>,
    opened: Option<NewWindow>,
    watchers: u32,
}

impl FakeTmux {
    /// A place where no server runs yet.
    pub(crate) fn new(place: Place, clock: Arc<dyn Clock>) -> Self {
        let place = Place { server_pid: 0, server_start: 0, ..place };
        let server =
            Server { place, failing: None, sessions: BTreeMap::new(), next_id: 0, next_pid: 1_000 };
        Self { clock, server: Mutex::new(server) }
    }

    /// One of the first boot of a machine called `testhost`.
    pub(crate) fn on_testhost(clock: Arc<dyn Clock>) -> Self {
        let place = Place {
            host: "testhost".to_owned(),
            boot: "boot-1".to_owned(),
            uid: 1_000,
            socket: "/tmp/tmux-1000/fake".to_owned(),
            server_pid: 0,
            server_start: 0,
        };
        Self::new(place, clock)
    }

    /// The state is replaced in whole steps, so it is usable whatever happened to another thread.
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.now().as_second()).unwrap_or(0)
    }

    /// Makes every question fail with this reason, until [`FakeTmux::recover`].
    pub(crate) fn fail(&self, reason: &str) {
        self.server().failing = Some(reason.to_owned());
    }

    /// Ends the effect of [`FakeTmux::fail`].
    pub(crate) fn recover(&self) {
        self.server().failing = None;
    }

    /// Whether a server runs.
    pub(crate) fn is_up(&self) -> bool {
        self.server().place.server_pid > 0
    }

    /// Ends the server with all its windows.
    pub(crate) fn stop(&self) {
        let mut server = self.server();
        server.sessions.clear();
        server.place.server_pid = 0;
        server.place.server_start = 0;
    }

    /// Ends the server and starts an empty one with another pid and start time.
    pub(crate) fn restart(&self) {
        self.stop();
        self.server().start(self.now());
    }

    /// So many clients look at the window of a pane from now on.
    pub(crate) fn set_watchers(&self, pane_id: &str, watchers: u32) {
        if let Some(window) = self.server().window_of_pane(pane_id) {
            window.watchers = watchers;
        }
    }

    /// Replaces everything that a pane has ever shown.
    pub(crate) fn set_text(&self, pane_id: &str, text: impl Into<Vec<u8>>) {
        let now = self.now();
        if let Some(window) = self.server().window_of_pane(pane_id) {
            window.text = text.into();
            window.fact.activity = now;
            let lines = window.text.split(|byte| *byte == b'\n').count().saturating_sub(1);
            window.fact.history_size = lines.saturating_sub(ROWS) as u64;
            window.fact.cursor_y = u32::try_from(lines.min(ROWS - 1)).unwrap_or(0);
        }
    }

    /// The program of a pane ends, and its window stays (`remain-on-exit`).
    pub(crate) fn end_program(&self, pane_id: &str) {
        if let Some(window) = self.server().window_of_pane(pane_id) {
            window.fact.dead = true;
        }
    }

    /// Somebody closes a window. The last window takes its session along, the last session the server.
    pub(crate) fn close_by_hand(&self, session: &str, index: u32) {
        self.server().close(session, index);
    }

    /// Somebody opens a window that has nothing to do with us; false when the number is in use, as tmux
    /// refuses it then.
    pub(crate) fn open_by_hand(&self, session: &str, index: u32, name: &str) -> bool {
        let now = self.now();
        let mut server = self.server();
        if server.place.server_pid == 0 {
            server.start(now);
        }
        let free = server.window(session, index).is_none();
        if free {
            server.add(session, index, name, now);
        }
        free
    }

    /// Somebody moves a window to a number of its session that is free.
    pub(crate) fn move_by_hand(&self, session: &str, index: u32, to: u32) {
        let mut server = self.server();
        let Some(windows) = server.sessions.get_mut(session) else { return };
        if let Some(mut window) = windows.remove(&index) {
            window.fact.window_index = to;
            windows.entry(to).or_insert(window);
        }
    }

    /// The process id of a pane's program, also of one that has ended.
    pub(crate) fn process_id(&self, pane_id: &str) -> Option<u32> {
        Some(self.server().window_of_pane(pane_id)?.pid)
    }

    /// Somebody renames a window.
    pub(crate) fn rename_window(&self, session: &str, index: u32, name: &str) {
        if let Some(window) = self.server().window(session, index) {
            name.clone_into(&mut window.name);
        }
    }

    /// The name of a window.
    pub(crate) fn window_name(&self, session: &str, index: u32) -> Option<String> {
        self.server().window(session, index).map(|window| window.name.clone())
    }

    /// What a pane was opened with: whoever simulates programs reads here what to play.
    pub(crate) fn opened(&self, pane_id: &str) -> Option<NewWindow> {
        self.server().window_of_pane(pane_id)?.opened.clone()
    }

    /// An option that was set on a pane.
    pub(crate) fn pane_option(&self, pane_id: &str, option: &str) -> Option<String> {
        self.server().window_of_pane(pane_id)?.options.get(option).cloned()
    }

    /// The program in a pane sets an option of it.
    pub(crate) fn set_pane_option(&self, pane_id: &str, option: &str, value: &str) {
        let mut server = self.server();
        let Some(window) = server.window_of_pane(pane_id) else { return };
        if option == "@tpu_exit" {
            window.fact.exit = value.parse().ok();
        }
        window.options.insert(option.to_owned(), value.to_owned());
    }
}

impl Server {
    fn start(&mut self, now: u64) {
        self.next_id = 0;
        self.next_pid += 1;
        self.place.server_pid = self.next_pid;
        self.place.server_start = now;
    }

    fn window(&mut self, session: &str, index: u32) -> Option<&mut Window> {
        self.sessions.get_mut(session)?.get_mut(&index)
    }

    fn window_of_pane(&mut self, pane_id: &str) -> Option<&mut Window> {
        let mut windows = self.sessions.values_mut().flat_map(BTreeMap::values_mut);
        windows.find(|window| window.fact.pane_id == pane_id)
    }

    fn add(&mut self, session: &str, index: u32, name: &str, now: u64) -> &mut Window {
        let id = self.next_id;
        self.next_id += 1;
        self.next_pid += 1;
        let fact = PaneFact {
            session: session.to_owned(),
            window_index: index,
            pane_id: format!("%{id}"),
            dead: false,
            activity: now,
            history_size: 0,
            cursor_y: 0,
            cursor_x: 0,
            job: None,
            launch: None,
            exit: None,
        };
        let window = Window {
            name: name.to_owned(),
            fact,
            pid: self.next_pid,
            options: BTreeMap::new(),
            text: Vec::new(),
            opened: None,
            watchers: 0,
        };
        self.sessions.entry(session.to_owned()).or_default().entry(index).or_insert(window)
    }

    fn close(&mut self, session: &str, index: u32) {
        let Some(windows) = self.sessions.get_mut(session) else { return };
        windows.remove(&index);
        if windows.is_empty() {
            self.sessions.remove(session);
        }
        if self.sessions.is_empty() {
            self.place.server_pid = 0;
            self.place.server_start = 0;
        }
    }

    /// Whether the server answers at all, and answers that it runs.
    fn check(&self, command: &str) -> Result<(), TmuxError> {
        if let Some(reason) = &self.failing {
            return Err(TmuxError::Failed { command: command.to_owned(), message: reason.clone() });
        }
        if self.place.server_pid == 0 {
            return Err(TmuxError::NoServer { socket: self.place.socket.clone() });
        }
        Ok(())
    }

    /// The window that a guarded command may act on.
    fn guarded(
        &mut self,
        command: &str,
        pane: &PaneFact,
        server_pid: u32,
    ) -> Result<&mut Window, TmuxError> {
        self.check(command)?;
        let same_server = self.place.server_pid == server_pid;
        self.window_of_pane(&pane.pane_id)
            .filter(|window| {
                let place = |pane: &PaneFact| (pane.session.clone(), pane.window_index);
                same_server
                    && window.fact.launch == pane.launch
                    && (pane.launch.is_some() || place(&window.fact) == place(pane))
            })
            .ok_or_else(|| TmuxError::Changed { pane: pane.pane_id.clone() })
    }
}

impl Tmux for FakeTmux {
    fn look(&self) -> TmuxFact {
        let server = self.server();
        match server.check("list-panes") {
            Ok(()) => {
                let windows = server.sessions.values().flat_map(BTreeMap::values);
                let panes = windows.map(|window| window.fact.clone()).collect();
                TmuxFact::Up { place: server.place.clone(), panes }
            }
            Err(TmuxError::NoServer { .. }) => TmuxFact::Down { place: server.place.clone() },
            Err(error) => TmuxFact::Unknown { reason: error.to_string() },
        }
    }

    fn ensure_session(&self, session: &str, _history: u32) -> Result<(), TmuxError> {
        may_be_named(session)?;
        let now = self.now();
        let mut server = self.server();
        match server.check("new-session") {
            Err(TmuxError::NoServer { .. }) => server.start(now),
            other => other?,
        }
        if server.window(session, 0).is_none() {
            server.add(session, 0, "home", now);
        }
        Ok(())
    }

    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        may_be_named(&window.session)?;
        let failed =
            |message: String| Err(TmuxError::Failed { command: "new-window".to_owned(), message });
        if window.argv.is_empty() {
            return failed("no program was given".to_owned());
        }
        let now = self.now();
        let mut server = self.server();
        server.check("new-window")?;
        if !server.sessions.contains_key(&window.session) {
            return failed(format!("can't find session: {}", window.session));
        }
        if server.window(&window.session, window.index).is_some() {
            return failed(format!("create window failed: index {} in use", window.index));
        }
        let added = server.add(&window.session, window.index, &window.name, now);
        added.fact.job = Some(window.job.clone());
        added.fact.launch = Some(window.launch.clone());
        added.opened = Some(window.clone());
        Ok(added.fact.clone())
    }

    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        if panes.is_empty() {
            return Ok(Vec::new());
        }
        let mut server = self.server();
        server.check("capture-pane")?;
        let texts = panes.iter().map(|capture| {
            let window = server.window_of_pane(&capture.pane_id)?;
            let lines = capture.history.map(|count| ROWS + count as usize);
            Some(last_lines(&window.text, lines).into())
        });
        Ok(texts.collect())
    }

    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        let mut server = self.server();
        let fact = server.guarded("kill-window", pane, server_pid)?.fact.clone();
        server.close(&fact.session, fact.window_index);
        Ok(())
    }

    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError> {
        let mut server = self.server();
        let window = server.guarded("display-message", pane, server_pid)?;
        Ok((!window.fact.dead).then_some(window.pid))
    }

    fn occupants(&self) -> Result<BTreeMap<String, Occupant>, TmuxError> {
        let server = self.server();
        server.check("list-panes")?;
        let windows = server.sessions.values().flat_map(BTreeMap::values);
        let occupant = |window: &Window| {
            let program = window.opened.as_ref().and_then(|opened| opened.argv.first().cloned());
            let program = program.unwrap_or_else(|| "sh".to_owned());
            (window.fact.pane_id.clone(), Occupant { program, watchers: window.watchers })
        };
        Ok(windows.map(occupant).collect())
    }

    fn close_unwatched(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        if self.server().guarded("kill-window", pane, server_pid)?.watchers > 0 {
            return Err(TmuxError::Changed { pane: pane.pane_id.clone() });
        }
        self.close_pane(pane, server_pid)
    }

    fn attach_argv(&self, pane: &PaneFact, _inside: Option<&str>) -> Vec<String> {
        let target = format!("={}:{}", pane.session, pane.window_index);
        ["tmux", "attach-session", "-t", &target].map(str::to_owned).to_vec()
    }

    fn end_server(&self, server_pid: u32) -> Result<(), TmuxError> {
        if self.server().place.server_pid == server_pid {
            self.stop();
        }
        Ok(())
    }
}

/// Refuses the names that tmux cannot keep.
fn may_be_named(session: &str) -> Result<(), TmuxError> {
    let changed = |c: char| c.is_control() || matches!(c, '.' | ':');
    if session.is_empty() || session.starts_with('$') || session.contains(changed) {
        let reason = "choose a short word such as 'alice'";
        return Err(TmuxError::BadName { name: session.to_owned(), reason });
    }
    Ok(())
}

/// The last `count` lines, or all, without the blank ones at the end; every line ends in a newline.
fn last_lines(text: &[u8], count: Option<usize>) -> Vec<u8> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let skip = count.map_or(0, |count| lines.len().saturating_sub(count));
    let used = lines.iter().rposition(|line| !line.trim_ascii().is_empty()).map_or(0, |at| at + 1);
    let shown = lines.into_iter().take(used).skip(skip);
    shown.flat_map(|line| [line, b"\n"]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::ManualClock;

    fn fake() -> (FakeTmux, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_000)));
        (FakeTmux::on_testhost(Arc::clone(&clock) as Arc<dyn Clock>), clock)
    }

    fn window() -> NewWindow {
        NewWindow {
            session: "alice".to_owned(),
            index: 7,
            name: "run".to_owned(),
            cwd: "/".into(),
            argv: vec!["train".to_owned()],
            job: JobId::parse("alice/7").expect("this is a job's id"),
            launch: LaunchToken::from("t"),
        }
    }

    #[test]
    fn what_somebody_looks_at_is_not_closed_unwatched() {
        let (tmux, _clock) = fake();
        tmux.ensure_session("alice", 0).unwrap();
        let pane = tmux.open_window(&window()).unwrap();
        let TmuxFact::Up { place, .. } = tmux.look() else { panic!("it is up") };
        tmux.set_watchers(&pane.pane_id, 1);
        assert_eq!(tmux.occupants().unwrap()[&pane.pane_id].watchers, 1);
        let refused = tmux.close_unwatched(&pane, place.server_pid);
        assert!(matches!(refused, Err(TmuxError::Changed { .. })), "{refused:?}");
        tmux.set_watchers(&pane.pane_id, 0);
        tmux.close_unwatched(&pane, place.server_pid).unwrap();
        assert!(!tmux.occupants().unwrap().contains_key(&pane.pane_id));
    }

    #[test]
    fn a_server_that_does_not_answer_is_unknown_to_all() {
        let (tmux, _) = fake();
        tmux.ensure_session("alice", 10).unwrap();
        tmux.fail("the server hangs");
        assert!(matches!(tmux.look(), TmuxFact::Unknown { reason } if reason.contains("hangs")));
        assert!(tmux.open_window(&window()).is_err());
        assert!(tmux.ensure_session("bob", 10).is_err());
        tmux.recover();
        let TmuxFact::Up { panes, .. } = tmux.look() else { panic!("it answers again") };
        assert_eq!(panes.len(), 1, "nothing happened meanwhile");
    }

    #[test]
    fn what_a_simulation_does_to_a_pane_is_seen() {
        let (tmux, clock) = fake();
        tmux.ensure_session("alice", 10).unwrap();
        let pane = tmux.open_window(&window()).unwrap();
        assert_eq!(tmux.opened(&pane.pane_id), Some(window()));
        clock.advance(std::time::Duration::from_secs(5));
        tmux.set_text(&pane.pane_id, "a\n".repeat(80));
        tmux.end_program(&pane.pane_id);
        tmux.rename_window("alice", 7, "done");
        let TmuxFact::Up { place, panes } = tmux.look() else { panic!("it runs") };
        let seen = &panes[1];
        assert_eq!((seen.activity, seen.history_size, seen.dead), (1_005, 30, true));
        assert_eq!(tmux.window_name("alice", 7).as_deref(), Some("done"));
        tmux.set_pane_option(&pane.pane_id, "@tpu_exit", "9");
        assert_eq!(tmux.pane_option(&pane.pane_id, "@tpu_exit").as_deref(), Some("9"));
        tmux.restart();
        let TmuxFact::Up { place: after, panes } = tmux.look() else { panic!("it runs") };
        assert_eq!(panes, []);
        assert_ne!((place.server_pid, place.server_start), (after.server_pid, after.server_start));
    }

    #[test]
    fn the_last_window_takes_the_server_along() {
        let (tmux, _) = fake();
        tmux.ensure_session("alice", 10).unwrap();
        tmux.close_by_hand("alice", 0);
        assert!(matches!(tmux.look(), TmuxFact::Down { place } if place.server_pid == 0));
    }
}
