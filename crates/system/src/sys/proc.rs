//! Running other programs: an argument vector, never a shell.

mod pipes;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;

pub use pipes::{Dialog, DialogTurn};

/// What a program reads on its standard input.
#[derive(Clone, Debug)]
pub enum Feed {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file, from its beginning, whether it still has a name or not.
    File(Arc<File>),
}

impl PartialEq for Feed {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            (Self::File(one), Self::File(other)) => Arc::ptr_eq(one, other),
            (Self::Bytes(_), Self::File(_)) | (Self::File(_), Self::Bytes(_)) => false,
        }
    }
}

impl Eq for Feed {}

impl<T: Into<Vec<u8>>> From<T> for Feed {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// A program to run. Built up by its methods; [`run`] and [`run_in_foreground`] start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// Program: a path, or a name to look up in the child's PATH.
    pub program: OsString,
    /// Arguments, passed on byte for byte.
    pub args: Vec<OsString>,
    /// What the program reads on its standard input; nothing at all by default.
    pub stdin: Option<Feed>,
    /// How long [`run`] waits before it kills the program.
    pub timeout: Duration,
    /// Whether the child starts without the variables of this process.
    pub env_clear: bool,
    /// Variables to set (`Some`) or to remove (`None`), in order.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Working directory; ours if `None`.
    pub cwd: Option<PathBuf>,
    /// Whether the child leads a process group of its own, which is killed as a whole on time-out. A
    /// group of its own gets no Ctrl-C and cannot ask on the terminal.
    pub own_group: bool,
}

impl Spawn {
    /// A program without arguments, with our environment and a time-out of 60 s.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            stdin: None,
            timeout: Duration::from_secs(60),
            env_clear: false,
            env: Vec::new(),
            cwd: None,
            own_group: false,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets what the program reads.
    #[must_use]
    pub fn stdin(mut self, feed: impl Into<Feed>) -> Self {
        self.stdin = Some(feed.into());
        self
    }

    /// Sets the time-out.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts from no variables at all.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.env_clear = true;
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.cwd = Some(cwd.as_ref().to_owned());
        self
    }

    /// Makes the child the leader of its own process group.
    #[must_use]
    pub fn own_group(mut self) -> Self {
        self.own_group = true;
        self
    }

    #[expect(clippy::disallowed_methods, reason = "sys::proc is the door to other programs")]
    pub(super) fn command(&self) -> Command {
        let mut command = match self.in_path() {
            Some(path) => {
                let mut command = Command::new(path);
                command.arg0(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.args);
        if self.env_clear {
            command.env_clear();
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        if self.own_group {
            command.process_group(0);
        }
        command
    }

    /// Where the program lies, if it is a name and the child has a PATH of its own. Left to look there by
    /// itself, the standard library copies this whole process first (fork), which costs the more the
    /// larger it is, instead of starting the program at once (`posix_spawn`).
    fn in_path(&self) -> Option<PathBuf> {
        if self.program.as_bytes().contains(&b'/') {
            return None;
        }
        let (_, path) = self.env.iter().rfind(|(name, _)| name == "PATH")?;
        let runs = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        // A relative one is relative to where the child starts.
        std::env::split_paths(path.as_ref()?)
            .take_while(|directory| directory.is_absolute())
            .map(|directory| directory.join(&self.program))
            .find(runs)
    }

    /// Its standard input as it is to be opened, and what is to be written there then.
    pub(super) fn input(&self) -> Result<(Stdio, &[u8]), ProcError> {
        match &self.stdin {
            None => Ok((Stdio::null(), &[])),
            Some(Feed::Bytes(bytes)) => Ok((Stdio::piped(), bytes)),
            Some(Feed::File(file)) => {
                // Opened anew: each reader has its own place in it.
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let file = File::open(path).map_err(|error| self.error(error))?;
                Ok((file.into(), &[]))
            }
        }
    }

    pub(super) fn error(&self, error: io::Error) -> ProcError {
        let program = self.program.to_string_lossy().into_owned();
        // A missing working directory is reported with the same error code as a missing program.
        match &self.cwd {
            Some(cwd) if error.kind() == io::ErrorKind::NotFound && !cwd.is_dir() => {
                ProcError::NoDirectory { program, directory: cwd.clone() }
            }
            _ if error.kind() == io::ErrorKind::NotFound => ProcError::Missing { program },
            _ if Errno::from_io_error(&error) == Some(Errno::NOEXEC) => {
                ProcError::NoProgram { program }
            }
            _ => ProcError::Io { program, source: error },
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessStatus {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ProcessStatus {
    /// Whether it returned 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// The code as a shell reports it: a signal is 128 and its number.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<ExitStatus> for ProcessStatus {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or(0)),
        }
    }
}

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub status: ProcessStatus,
    /// Everything it wrote to standard output.
    pub stdout: Vec<u8>,
    /// Everything it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text; bytes that are no UTF-8 become replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text without blanks around it.
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

/// Why a program gave no [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// There is no such program.
    #[error("there is no program '{program}' in PATH")]
    Missing {
        /// The name that was looked up.
        program: String,
    },
    /// The directory it was to run in does not exist.
    #[error("cannot run '{program}' in '{}': no such directory", directory.display())]
    NoDirectory {
        /// The program.
        program: String,
        /// The directory.
        directory: PathBuf,
    },
    /// It did not end in time and was killed.
    #[error("'{program}' did not end within {:.0} s and was killed", after.as_secs_f64())]
    TimedOut {
        /// The program.
        program: String,
        /// The time-out.
        after: Duration,
    },
    /// It may be run, and is neither a program of this machine nor a script that says what runs it.
    #[error(
        "'{program}' is no program: if it is a script, its first line must be '#!/bin/sh' or the like"
    )]
    NoProgram {
        /// The program.
        program: String,
    },
    /// The operating system refused something else.
    #[error("cannot run '{program}'")]
    Io {
        /// The program.
        program: String,
        /// What it said.
        source: io::Error,
    },
}

/// Runs a program to its end and returns what it wrote.
///
/// A child of the program that keeps its outputs open does not keep us waiting: once the program itself
/// has ended, what is there is taken. On time-out the program (with `own_group` its whole group) gets
/// SIGKILL and is reaped.
pub fn run(spawn: &Spawn) -> Result<Output, ProcError> {
    let (stdin, to_write) = spawn.input()?;
    pipes::exchange(spawn, stdin, to_write)
}

/// Runs a program to its end, however long that takes, and returns what it wrote. It reads nothing.
///
/// Its outputs are files without a name and not pipes: if this process ends first, the program goes on
/// undisturbed.
pub fn run_unattended(spawn: &Spawn) -> Result<Output, ProcError> {
    let wrong = |error| spawn.error(error);
    let (mut out, mut err) =
        (tempfile::tempfile().map_err(wrong)?, tempfile::tempfile().map_err(wrong)?);
    let mut command = spawn.command();
    command.stdin(Stdio::null());
    command.stdout(out.try_clone().map_err(wrong)?);
    command.stderr(err.try_clone().map_err(wrong)?);
    let status = start(&mut command).and_then(|mut child| child.wait()).map_err(wrong)?;
    let status = ProcessStatus::from(status);
    let (stdout, stderr) = (whole(&mut out).map_err(wrong)?, whole(&mut err).map_err(wrong)?);
    Ok(Output { status, stdout, stderr })
}

/// All that stands in a file.
fn whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Leaves the terminal and the process group that this process was started in, and makes it that program.
/// Neither keys nor a hang-up of the terminal reach it. Returns only if that fails.
pub fn become_program_apart(spawn: &Spawn) -> ProcError {
    match rustix::process::setsid() {
        Ok(_) => become_program(spawn),
        Err(error) => spawn.error(error.into()),
    }
}

/// Leaves the terminal and the session that this process was started in: neither keys nor a hang-up reach it.
pub fn leave_terminal() {
    // It fails where this process leads a group already, as one that is hosted by something else does.
    rustix::process::setsid().map(|_| ()).unwrap_or_default();
}

/// Runs a program with our terminal, standard input and outputs, until it ends. Ctrl-C is the program's
/// business meanwhile: it does not end us.
pub fn run_in_foreground(spawn: &Spawn) -> Result<ProcessStatus, ProcError> {
    // A handler, unlike "ignore", is not inherited: the program starts with the default reaction.
    let seen = Arc::new(AtomicBool::new(false));
    let guards = [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT]
        .map(|signal| signal_hook::flag::register(signal, Arc::clone(&seen)));
    let status = spawn.command().status();
    for guard in guards.into_iter().flatten() {
        signal_hook::low_level::unregister(guard);
    }
    status.map(ProcessStatus::from).map_err(|error| spawn.error(error))
}

/// Held for reading by everybody who starts a program, until it runs.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts a program.
pub(super) fn start(command: &mut Command) -> io::Result<Child> {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Starts a program in a session of its own (by `setsid`, of util-linux), with both outputs into `output`, and
/// leaves it running: whoever starts it waits for it.
pub fn start_apart(spawn: &Spawn, output: &PipeWriter) -> Result<Child, ProcError> {
    let mut apart = spawn.clone();
    apart.program = "setsid".into();
    apart.args.insert(0, spawn.program.clone());
    let both = output.try_clone().and_then(|one| Ok((one, output.try_clone()?)));
    let (one, other) = both.map_err(|error| spawn.error(error))?;
    let mut command = apart.command();
    command.stdin(Stdio::null()).stdout(one).stderr(other);
    start(&mut command).map_err(|error| apart.error(error))
}

/// Starts a program that outlives this process: it reads nothing, both outputs go to the end of `output`, and it has no
/// other open file of this process or of whoever started that. The program leaves the terminal by itself.
pub fn start_lasting(spawn: &Spawn, output: &File) -> Result<Child, ProcError> {
    // What a shell or a test holds open for its children would stay open as long as the program.
    const CLOSED: &str = "for fd in /dev/fd/*; do fd=${fd##*/}; \
        case $fd in 0|1|2|*[!0-9]*) ;; *) eval \"exec $fd>&-\" ;; esac; done; exec \"$@\"";
    let wrong = |error| spawn.error(error);
    let mut lasting = spawn.clone();
    let words = ["-c", CLOSED, "bash"].map(OsString::from);
    lasting.args =
        words.into_iter().chain([spawn.program.clone()]).chain(spawn.args.clone()).collect();
    lasting.program = "bash".into();
    let mut command = lasting.command();
    command.stdin(Stdio::null());
    command.stdout(output.try_clone().map_err(wrong)?);
    command.stderr(output.try_clone().map_err(wrong)?);
    start(&mut command).map_err(|error| lasting.error(error))
}

/// Stops this process with its group, as a shell expects of Ctrl-Z, until somebody continues it.
///
/// Not while a program is being started: that would be stopped before it is a program, and the thread that
/// starts it waits for that and cannot stop; so nobody would see that we have.
pub fn stop_group() -> io::Result<()> {
    let _nobody_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    Ok(rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?)
}

/// Makes this process that program. Returns only if that fails.
pub fn become_program(spawn: &Spawn) -> ProcError {
    spawn.error(spawn.command().exec())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::sys::clock::{Clock as _, SystemClock};
    use crate::sys::procs;

    fn sh(script: &str) -> Spawn {
        Spawn::new("sh").args(["-c", script]).timeout(Duration::from_secs(20))
    }

    #[test]
    fn output_status_and_signal_come_back() {
        let output = run(&sh("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!(output.text(), "out\n");
        assert_eq!(output.complaint(), "err");
        assert_eq!(output.status, ProcessStatus::Code(3));
        let killed = run(&sh("kill -9 $$")).unwrap();
        assert_eq!(killed.status, ProcessStatus::Signal(9));
        assert_eq!(killed.status.shell_code(), 137);
    }

    #[test]
    fn a_name_is_looked_up_in_the_childs_own_path() {
        let dir = tempfile::tempdir().unwrap();
        let places = "mkdir none data first second
            for folder in data first second; do
                printf '#!/bin/sh\\necho %s\\n' $folder > $folder/tpu-greets
            done
            chmod +x first/tpu-greets second/tpu-greets";
        assert!(run(&sh(places).cwd(dir.path())).unwrap().status.success());
        let said = |path: String, cwd: &str| {
            let greets = Spawn::new("tpu-greets").env_clear().env("PATH", path);
            run(&greets.cwd(dir.path().join(cwd))).map(|output| output.text())
        };
        let at = |folder: &str| dir.path().join(folder).display().to_string();
        let path = [at("none"), at("data"), at("first"), at("second")].join(":");
        assert_eq!(said(path, "").unwrap(), "first\n");
        assert_eq!(said(format!(".:{}", at("first")), "second").unwrap(), "second\n");
        assert!(matches!(said(at("none"), ""), Err(ProcError::Missing { .. })));
        let name = Spawn::new("sh").args(["-c", "echo $0"]).env_clear().env("PATH", "/bin");
        assert_eq!(run(&name).unwrap().text(), "sh\n", "it is called what it was called by us");
    }

    #[test]
    fn both_outputs_and_the_input_may_be_larger_than_a_pipe() {
        let input = vec![b'x'; 300_000];
        let output = run(&sh("cat; head -c 300000 /dev/zero >&2").stdin(input.clone())).unwrap();
        assert_eq!(output.stdout, input);
        assert_eq!(output.stderr.len(), 300_000);
    }

    #[test]
    fn a_program_that_does_not_read_its_input_is_no_error() {
        let output = run(&sh("exit 0").stdin(vec![b'x'; 300_000])).unwrap();
        assert!(output.status.success());
    }

    #[test]
    fn arguments_and_variables_arrive_byte_for_byte() {
        let hostile = "a b;c $(d) `e` 'f' \"g\"\n#{h}";
        let output = run(&sh(r#"printf '%s|%s|%s' "$1" "$SET" "${GONE-unset}""#)
            .args(["sh", hostile])
            .env("SET", hostile)
            .env("GONE", "x")
            .env_remove("GONE"))
        .unwrap();
        assert_eq!(output.text(), format!("{hostile}|{hostile}|unset"));
        let bare = run(&Spawn::new("/usr/bin/env").env_clear().env("ONLY", "1")).unwrap();
        assert_eq!(bare.text(), "ONLY=1\n");
    }

    #[test]
    fn a_time_out_kills_the_whole_group() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut timeout = Duration::from_millis(200);
        // On a busy machine the script may be killed before it has a child: then with more time.
        let child = loop {
            let spawn = sh(r#"sleep 1000 & echo $! > "$1"; wait"#)
                .args([OsStr::new("sh"), file.path().as_os_str()])
                .timeout(timeout)
                .own_group();
            assert!(matches!(run(&spawn), Err(ProcError::TimedOut { .. })));
            let written = std::fs::read_to_string(file.path()).unwrap();
            match written.trim().parse() {
                Ok(pid) => break pid,
                Err(_) => timeout *= 2,
            }
            assert!(timeout < Duration::from_secs(20));
        };
        let clock = SystemClock::new();
        while procs::Process::read(child).is_some_and(|process| !process.zombie) {
            assert!(clock.monotonic() < Duration::from_secs(20), "the child survived");
            clock.sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_child_that_holds_the_output_keeps_nobody_waiting() {
        let output = run(&sh("sleep 1000 & echo $!")).unwrap();
        let child = procs::Process::read(output.text().trim().parse().unwrap()).unwrap();
        assert!(procs::signal(&child, procs::Signal::Kill).unwrap());
    }

    #[test]
    fn what_an_unattended_program_writes_is_read_at_its_end() {
        let output =
            run_unattended(&sh("head -c 300000 /dev/zero; cat; echo err >&2; exit 3")).unwrap();
        assert_eq!((output.stdout.len(), output.complaint().as_str()), (300_000, "err"));
        assert_eq!(output.status, ProcessStatus::Code(3));
        let missing = run_unattended(&Spawn::new("no-such-program-of-ours")).unwrap_err();
        assert!(matches!(missing, ProcError::Missing { .. }), "{missing}");
    }

    #[test]
    fn a_program_without_open_pipes_is_waited_for() {
        let output = run(&sh("exec >&- 2>&-; sleep 0.1; exit 5")).unwrap();
        assert_eq!(output.status, ProcessStatus::Code(5));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = run(&Spawn::new("no-such-program-of-ours")).unwrap_err();
        assert_eq!(missing.to_string(), "there is no program 'no-such-program-of-ours' in PATH");
        let lost = run(&sh("true").cwd("/no/such/place")).unwrap_err();
        assert!(matches!(lost, ProcError::NoDirectory { .. }), "{lost}");
        let file = run(&Spawn::new("/etc/passwd")).unwrap_err();
        assert!(matches!(file, ProcError::Io { .. }), "{file}");
    }

    #[test]
    fn a_script_that_does_not_say_what_runs_it_is_told_from_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let place = "echo 'echo hello' > greets; chmod +x greets";
        assert!(run(&sh(place).cwd(dir.path())).unwrap().status.success());
        let path = dir.path().display().to_string();
        let found = run(&Spawn::new("greets").env_clear().env("PATH", path)).unwrap_err();
        assert!(matches!(found, ProcError::NoProgram { .. }), "{found}");
        assert!(found.to_string().contains("'#!/bin/sh'"), "{found}");
    }
}
