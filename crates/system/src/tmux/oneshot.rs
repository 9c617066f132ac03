//! The real tmux: one `tmux` process per call, several commands in one call; one for a look and what it reads.

mod tell;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::commands::{self, Chain};
use super::reading::{self, Cut};
use super::{Capture, Captured, Look, NewWindow, Occupant, Tmux, TmuxError, formats, version};
use crate::sys::env::Env;
use crate::sys::proc::{self, Dialog, DialogTurn, Output, ProcError, ProcessStatus, Spawn};
use crate::sys::random::{OsRandom, Random as _};
use tpu_core::model::facts::{PaneFact, Place, TmuxFact};
use tpu_core::model::variables;

/// How long a server may take for one call. A healthy one needs milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The tmux server of one socket, asked by one process per call.
#[derive(Debug)]
pub struct OneShot {
    /// Socket name (`tmux -L`).
    socket: String,
    /// The variables of every `tmux` process, and so of a server that one of them starts.
    vars: BTreeMap<OsString, OsString>,
    /// The shell of home windows.
    shell: String,
    /// Where a server of ours runs; pid and start time are 0.
    here: Place,
    /// A line that no pane shows by chance: ends each capture, and says that a guard refused.
    mark: String,
    /// How long one call may take.
    timeout: Duration,
    /// Whether the program is new enough, once somebody had to know.
    version: OnceLock<Result<(), String>>,
    /// Processes of looks that read nothing, until they have ended by themselves.
    left: Mutex<Vec<Dialog>>,
}

/// The process of a look, as long as it may still be told what to read.
struct Waiting<'t> {
    tmux: &'t OneShot,
    process: Mutex<Option<Dialog>>,
}

impl Waiting<'_> {
    fn taken(&self) -> Option<Dialog> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(process) = self.taken() {
            self.tmux.leave(process);
        }
    }
}

impl OneShot {
    /// The server of the socket named `socket` (as `tmux -L`), or tmux's default one. Which tmux we may
    /// ourselves run in (`$TMUX`) plays no part. Starts nothing and asks nothing.
    pub fn new(socket: Option<&str>, env: &Env) -> Self {
        let socket = socket.unwrap_or("default").to_owned();
        let mut vars = env.vars.clone();
        // What tells a process whose job, pane or server it belongs to: a server that inherited it would hand it
        // to every window it ever opens.
        for name in variables::of_jobs().chain(["TMUX", "TMUX_PANE"]) {
            vars.remove(OsStr::new(name));
        }
        let here = Place {
            host: env.hostname.clone(),
            boot: env.boot_id.clone(),
            uid: env.uid,
            socket: socket_path(env, &socket).to_string_lossy().into_owned(),
            server_pid: 0,
            server_start: 0,
        };
        Self {
            socket,
            vars,
            shell: home_shell(env.non_empty("SHELL")),
            here,
            mark: format!("tpu-mark-{}", OsRandom.hex(12)),
            timeout: TIMEOUT,
            version: OnceLock::new(),
            left: Mutex::new(Vec::new()),
        }
    }

    /// Changes how long one call may take; 10 s otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The program with everything that is the same for each call.
    fn spawn(&self, args: impl IntoIterator<Item = String>) -> Spawn {
        let mut spawn = Spawn::new("tmux")
            .args(["-u", "-L", &self.socket])
            .args(args)
            .timeout(self.timeout)
            // A Ctrl-C is meant for whoever asked us, and not for a question that is half answered.
            .own_group()
            .env_clear();
        spawn.env =
            self.vars.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        spawn
    }

    /// One call; an error if tmux refused any of its commands.
    fn call(&self, chain: Chain) -> Result<Output, TmuxError> {
        let name = chain.name();
        let spawn = self.spawn(chain.into_args());
        self.finish(&name, &spawn)
    }

    fn finish(&self, name: &str, spawn: &Spawn) -> Result<Output, TmuxError> {
        let output = run(name, spawn)?;
        if output.status.success() { Ok(output) } else { Err(self.refusal(name, &output)) }
    }

    /// What tmux meant by failing.
    fn refusal(&self, command: &str, output: &Output) -> TmuxError {
        let message = output.complaint();
        let nobody_listens = message.starts_with("no server running on")
            || message.starts_with("error connecting to")
                && (message.ends_with("(No such file or directory)")
                    || message.ends_with("(Connection refused)"));
        if nobody_listens {
            return TmuxError::NoServer { socket: self.here.socket.clone() };
        }
        let message = if message.is_empty() {
            format!("ended with {:?} and said nothing", output.status)
        } else {
            message
        };
        TmuxError::Failed { command: command.to_owned(), message }
    }

    /// Refuses a tmux that is too old. Asked once, and not before something is to be changed or an
    /// answer could not be read: looking must not cost a second process.
    fn check_version(&self) -> Result<(), TmuxError> {
        if let Some(known) = self.version.get() {
            return known.clone().map_err(|found| TmuxError::TooOld { found });
        }
        let output = run("-V", &self.spawn(["-V".to_owned()]))?;
        let text = output.text().trim().to_owned();
        let verdict = if version::is_supported(&text) { Ok(()) } else { Err(text) };
        self.version.get_or_init(|| verdict).clone().map_err(|found| TmuxError::TooOld { found })
    }

    /// An answer that cannot be read: by age of the program, or for a reason nobody knows.
    fn unreadable(&self, command: &str, problem: &formats::Unreadable) -> TmuxError {
        match self.check_version() {
            Ok(()) => {
                TmuxError::Failed { command: command.to_owned(), message: problem.to_string() }
            }
            Err(error) => error,
        }
    }

    /// The window indices that a call printed, if they are those of this session and no other.
    fn windows_of(&self, session: &str, output: &Output) -> Result<Vec<u32>, TmuxError> {
        let mut indices = Vec::new();
        for line in output.text().lines() {
            let (index, found) = formats::window(line)
                .map_err(|problem| self.unreadable("list-windows", &problem))?;
            if found != session {
                return Err(TmuxError::Failed {
                    command: "list-windows".to_owned(),
                    message: format!("took session '{found}' for '{session}'"),
                });
            }
            indices.push(index);
        }
        Ok(indices)
    }

    /// Runs a guarded command; `Changed` if the guard refused.
    fn act(&self, pane: &PaneFact, chain: Chain) -> Result<Output, TmuxError> {
        self.check_version()?;
        let output = self.call(chain)?;
        if output.text().trim() == self.mark {
            return Err(TmuxError::Changed { pane: pane.pane_id.clone() });
        }
        Ok(output)
    }
}

impl Tmux for OneShot {
    fn usable(&self) -> Result<(), TmuxError> {
        self.check_version()
    }

    fn look(&self) -> TmuxFact {
        let chain = commands::look();
        let name = chain.name();
        let seen = run(&name, &self.spawn(chain.into_args()));
        seen.and_then(|output| self.seen(&name, &output)).unwrap_or_else(|e| self.failure(&e))
    }

    fn look_to_read(&self) -> Look<'_> {
        let (fact, open) =
            self.look_and_wait().unwrap_or_else(|error| (self.failure(&error), None));
        let open = Waiting { tmux: self, process: Mutex::new(open) };
        let read = move |panes: &[Capture]| match open.taken() {
            Some(process) => self.read_on(process, panes),
            None => self.capture(panes),
        };
        Look { fact, read: Box::new(read) }
    }

    fn ensure_session(&self, session: &str, history: u32) -> Result<(), TmuxError> {
        check_session_name(session)?;
        self.check_version()?;
        // Almost always it exists. What another process does at the same time is met in the next round.
        let mut round = 0;
        loop {
            round += 1;
            let prepared = match self.call(commands::prepare_session(session, history)) {
                Err(error) if is_missing(&error) => {
                    let chain = commands::create_session(session, history, &self.shell);
                    let name = chain.name();
                    let mut spawn = self.spawn(chain.into_args());
                    spawn
                        .env
                        .retain(|(name, _)| name.to_str().is_some_and(variables::is_of_server));
                    self.finish(&name, &spawn)
                }
                other => other,
            };
            let failure = match prepared {
                Ok(output) if self.windows_of(session, &output)?.contains(&0) => return Ok(()),
                Ok(_) => match self.call(commands::add_home(session, &self.shell)) {
                    Ok(_) => return Ok(()),
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            if round == 3 {
                return Err(failure);
            }
        }
    }

    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        let failed =
            |message: String| Err(TmuxError::Failed { command: "new-window".to_owned(), message });
        check_session_name(&window.session)?;
        if window.argv.is_empty() {
            return failed("no program was given".to_owned());
        }
        self.check_version()?;
        // The window starts in the directory of the calling process. Unlike an argument, that one is not
        // expanded as a format, may be any bytes, and fails here if it is missing.
        let chain = commands::open_window(window);
        let name = chain.name();
        let spawn = self.spawn(chain.into_args()).cwd(&window.cwd).env("PWD", &window.cwd);
        let output = self.finish(&name, &spawn)?;
        let text = output.text();
        let pane = formats::pane(text.trim_end_matches('\n'))
            .map_err(|problem| self.unreadable("new-window", &problem))?;
        let is_ours = pane.session == window.session
            && pane.window_index == window.index
            && pane.job.as_ref() == Some(&window.job)
            && pane.launch.as_ref() == Some(&window.launch);
        if !is_ours {
            return failed(format!(
                "asked for {}:{} and got {}:{} ({})",
                window.session, window.index, pane.session, pane.window_index, pane.pane_id
            ));
        }
        Ok(pane)
    }

    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        if panes.is_empty() {
            return Ok(Vec::new());
        }
        self.read(reading::lines(panes, &self.mark), |text| reading::cut(text, &self.mark, panes))
            .and_then(|cut| self.whole(cut, panes))
    }

    fn capture_known(
        &self,
        pane: &PaneFact,
        server_pid: u32,
        capture: &Capture,
    ) -> Result<Bytes, TmuxError> {
        let chain = commands::capture_known(pane, server_pid, capture, &self.mark);
        let changed = || TmuxError::Changed { pane: pane.pane_id.clone() };
        let output = match self.call(chain) {
            Ok(output) => output,
            // A pane that is gone cannot even be asked.
            Err(TmuxError::Failed { message, .. }) if message.starts_with("can't find") => {
                return Err(changed());
            }
            Err(error) => return Err(error),
        };
        if output.stdout.trim_ascii() == self.mark.as_bytes() {
            return Err(changed());
        }
        Ok(reading::without_blank_end(&output.stdout.into()))
    }

    fn wake_mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match run("list-panes", &self.spawn(commands::wake_mark().into_args())) {
            Ok(output) => (output.stdout, output.stderr).hash(&mut hasher),
            Err(error) => error.to_string().hash(&mut hasher),
        }
        hasher.finish()
    }

    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.act(pane, commands::close_pane(pane, server_pid, &self.mark)).map(drop)
    }

    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError> {
        let output = self.act(pane, commands::process(pane, server_pid, &self.mark))?;
        formats::process(output.text().trim_end_matches('\n'))
            .map_err(|problem| self.unreadable("display-message", &problem))
    }

    fn occupants(&self) -> Result<BTreeMap<String, Occupant>, TmuxError> {
        let output = self.call(commands::occupants())?;
        let text = output.text();
        text.lines()
            .map(|line| {
                formats::occupant(line).map_err(|problem| self.unreadable("list-panes", &problem))
            })
            .collect()
    }

    fn close_unwatched(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.act(pane, commands::close_unwatched(pane, server_pid, &self.mark)).map(drop)
    }

    fn attach_argv(&self, pane: &PaneFact, inside: Option<&str>) -> Vec<String> {
        commands::attach(pane, &self.socket, inside.map(|tmux| self.is_inside(tmux)))
    }

    fn tell(&self, session: &str, line: &str) -> Result<usize, TmuxError> {
        self.tell_all(session, line)
    }

    fn is_there(&self, pid: u32) -> bool {
        crate::sys::procs::is_tmux_server(pid) || super::has_seen(&self.look(), pid)
    }

    fn end_server(&self, server_pid: u32) -> Result<(), TmuxError> {
        match self.call(commands::end_server(server_pid)) {
            Ok(_) | Err(TmuxError::NoServer { .. }) => Ok(()),
            // The server may be gone before it has answered.
            Err(TmuxError::Failed { message, .. }) if message.contains("server exited") => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl OneShot {
    /// A look whose process waits for what it is to read.
    fn look_and_wait(&self) -> Result<(TmuxFact, Option<Dialog>), TmuxError> {
        let end = format!("{}-seen", self.mark);
        let chain = commands::look_and_wait(&end);
        let name = chain.name();
        let wrong = |error| in_our_words(&name, &error);
        let mut dialog = Dialog::begin(&self.spawn(chain.into_args())).map_err(wrong)?;
        let end = end + "\n";
        match dialog.listen(end.as_bytes()).map_err(wrong)? {
            DialogTurn::All(mut stdout) => {
                stdout.truncate(stdout.len() - end.len());
                let output = Output { status: ProcessStatus::Code(0), stdout, stderr: Vec::new() };
                Ok((self.seen(&name, &output)?, Some(dialog)))
            }
            DialogTurn::Ended(output) => match self.seen(&name, &output)? {
                TmuxFact::Up { .. } if output.status.success() => {
                    let message = "ended in the middle of its answer".to_owned();
                    Err(TmuxError::Failed { command: name, message })
                }
                fact => Ok((fact, None)),
            },
        }
    }

    /// What the process of a look reads. Nobody else is asked where it has ended: the panes were those of its server.
    fn read_on(&self, open: Dialog, panes: &[Capture]) -> Result<Captured, TmuxError> {
        if panes.is_empty() {
            self.leave(open);
            return Ok(Vec::new());
        }
        let end = format!("{}-end", self.mark);
        let lines = reading::lines(panes, &self.mark) + &commands::said(&end);
        let end = end + "\n";
        let said = open.tell(lines.as_bytes(), end.as_bytes());
        match said.map_err(|error| in_our_words("capture-pane", &error))? {
            DialogTurn::All(mut text) => {
                text.truncate(text.len() - end.len());
                let cut = reading::cut(&text.into(), &self.mark, panes).ok_or_else(|| {
                    let message = "answered with something else than what was asked for".to_owned();
                    TmuxError::Failed { command: "capture-pane".to_owned(), message }
                })?;
                self.whole(cut, panes)
            }
            DialogTurn::Ended(output) => Err(self.refusal("capture-pane", &output)),
        }
    }

    /// Reads panes in a call of its own, by what the server is told, and by how its answer is cut.
    fn read<T>(
        &self,
        lines: String,
        cut: impl FnOnce(&Bytes) -> Option<T>,
    ) -> Result<T, TmuxError> {
        let spawn = self.spawn(commands::source_stdin().into_args()).stdin(lines);
        // A pane that is gone fails its own command and the exit code; the others are there all the same.
        let mut output = run("capture-pane", &spawn)?;
        let text = Bytes::from(std::mem::take(&mut output.stdout));
        cut(&text).ok_or_else(|| self.refusal("capture-pane", &output))
    }

    /// What was read, with those panes that have to be read once more.
    fn whole(&self, cut: Cut, panes: &[Capture]) -> Result<Captured, TmuxError> {
        let Cut { mut captured, again } = cut;
        if again.is_empty() {
            return Ok(captured);
        }
        let of = |at: &usize| panes.get(*at).cloned();
        let asked: Vec<Capture> = again.iter().filter_map(of).collect();
        let read = self.read(reading::marked(&asked, &self.mark), |text| {
            reading::cut_marked(text, &self.mark, asked.len())
        })?;
        for (at, text) in again.into_iter().zip(read) {
            if let Some(place) = captured.get_mut(at) {
                *place = text;
            }
        }
        Ok(captured)
    }

    /// Lets the process of a look end that has nothing to read. It is not waited for, and not killed: a client that
    /// is killed while it waits stays in the server's memory (measured with tmux 3.3a: 5 kB for each).
    fn leave(&self, process: Dialog) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(process);
        left.retain_mut(|process| !process.hang_up());
    }

    /// What was seen of the server, by what the commands of a look have printed.
    fn seen(&self, name: &str, output: &Output) -> Result<TmuxFact, TmuxError> {
        // The server has introduced itself, and then there is not one pane that could be "current".
        let is_empty = output.complaint() == "no current target" && !output.stdout.is_empty();
        if !output.status.success() && !is_empty {
            return Err(self.refusal(name, output));
        }
        let text = output.text();
        let mut lines = text.lines();
        let place = formats::server(lines.next().unwrap_or_default(), &self.here)
            .map_err(|problem| self.unreadable("list-panes", &problem))?;
        let panes = lines
            .map(formats::pane)
            .collect::<Result<_, _>>()
            .map_err(|problem| self.unreadable("list-panes", &problem))?;
        Ok(TmuxFact::Up { place, panes })
    }

    /// A look that failed, as a fact.
    fn failure(&self, error: &TmuxError) -> TmuxFact {
        match error {
            TmuxError::NoServer { .. } => TmuxFact::Down { place: self.here.clone() },
            other => TmuxFact::Unknown { reason: other.to_string() },
        }
    }

    /// Whether a client's `$TMUX` (`<socket>,<pid>,<session>`) names this server.
    fn is_inside(&self, tmux: &str) -> bool {
        let socket = tmux.rsplitn(3, ',').nth(2).unwrap_or(tmux);
        let same = |one: &Path, two: &Path| match (one.canonicalize(), two.canonicalize()) {
            (Ok(one), Ok(two)) => one == two,
            _ => one == two,
        };
        same(Path::new(socket), Path::new(&self.here.socket))
    }
}

/// Runs `tmux` to its end.
fn run(command: &str, spawn: &Spawn) -> Result<Output, TmuxError> {
    proc::run(spawn).map_err(|error| in_our_words(command, &error))
}

/// What can go wrong with the process, as what can go wrong with tmux.
fn in_our_words(command: &str, error: &ProcError) -> TmuxError {
    match error {
        ProcError::Missing { .. } => TmuxError::Missing,
        ProcError::TimedOut { after, .. } => {
            TmuxError::TimedOut { command: command.to_owned(), seconds: after.as_secs() }
        }
        ProcError::NoDirectory { directory, .. } => TmuxError::Failed {
            command: command.to_owned(),
            message: format!("there is no directory '{}'", directory.display()),
        },
        ProcError::NoProgram { .. } => {
            TmuxError::Failed { command: command.to_owned(), message: error.to_string() }
        }
        ProcError::Io { source, .. } => {
            TmuxError::Failed { command: command.to_owned(), message: format!("{error}: {source}") }
        }
    }
}

/// Whether a call failed because the session, or the whole server, does not exist yet.
fn is_missing(error: &TmuxError) -> bool {
    match error {
        TmuxError::NoServer { .. } => true,
        TmuxError::Failed { message, .. } => {
            message.starts_with("can't find session") || message.starts_with("no such session")
        }
        _ => false,
    }
}

/// Refuses names that tmux would change or read as something else. `#` is fine: it is escaped.
pub(super) fn check_session_name(name: &str) -> Result<(), TmuxError> {
    let reason = if name.is_empty() {
        "it is empty; choose a short word such as 'alice'"
    } else if name.contains(['.', ':']) {
        "tmux replaces '.' and ':' by '_'; choose a name without them"
    } else if name.starts_with('$') {
        "tmux reads a leading '$' as the id of a session; choose a name that starts with a letter"
    } else if name.chars().any(char::is_control) {
        "it holds a control character; choose a short word such as 'alice'"
    } else {
        return Ok(());
    };
    Err(TmuxError::BadName { name: name.to_owned(), reason })
}

/// The shell for a home window: the user's, unless it is one that only refuses to be one.
fn home_shell(shell: Option<&str>) -> String {
    let refuses = |shell: &&str| !shell.ends_with("/false") && !shell.ends_with("/nologin");
    shell.filter(refuses).unwrap_or("/bin/sh").to_owned()
}

/// Where tmux puts the socket of this name: below `$TMUX_TMPDIR`, or `/tmp` if that does not exist.
fn socket_path(env: &Env, name: &str) -> PathBuf {
    let set = env.var_os("TMUX_TMPDIR").filter(|value| !value.is_empty()).map(Path::new);
    let base = set.into_iter().chain([Path::new("/tmp")]).find_map(|path| path.canonicalize().ok());
    let base = base.unwrap_or_else(|| PathBuf::from("/tmp"));
    base.join(format!("tmux-{}", env.uid)).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tmux_cannot_keep_are_refused() {
        for name in ["", "a.b", "a:b", "$1", "a\nb"] {
            let error = check_session_name(name).unwrap_err().to_string();
            assert!(error.contains("choose"), "{error}");
        }
        for name in ["alice", "b", "wör ld", "x#{pid}", "=x", "@1", "-t"] {
            assert!(check_session_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_server_gets_the_environment_without_what_marks_a_job() {
        let env = Env::fixed([
            ("PATH", "/bin"),
            ("TMUX", "/tmp/tmux-0/default,1,0"),
            ("TMUX_TMPDIR", "/"),
            ("TPU_JOB", "alice/7"),
            ("TPU_LAUNCH", "ab"),
            ("TPU_NAME", "of-somebody-else"),
        ]);
        let tmux = OneShot::new(None, &env);
        let names: Vec<_> = tmux.vars.keys().map(|name| name.to_string_lossy()).collect();
        assert_eq!(names, ["PATH", "TMUX_TMPDIR", "TPU_NAME"]);
        assert_eq!(tmux.here.socket, format!("/tmux-{}/default", env.uid));
    }

    #[test]
    fn an_absent_program_is_said_and_not_taken_for_an_absent_server() {
        let tmux = OneShot::new(None, &Env::fixed([("PATH", "/no/such/directory")]));
        let seen = tmux.look();
        assert!(matches!(seen, TmuxFact::Unknown { reason } if reason.contains("not installed")));
        assert!(matches!(tmux.ensure_session("alice", 1), Err(TmuxError::Missing)));
    }
}
