//! Which tmux commands one call is made of. Pure.
//!
//! The words of each command come from the builders of `tmux_interface`. Putting several commands into
//! one call, quoting them for the place where they stand, and guarding one by a condition that the server
//! checks is the thin layer here.

use tmux_interface::{
    AttachSession, CapturePane, DisplayMessage, IfShell, KillPane, KillServer, ListClients,
    ListPanes, ListWindows, MoveWindow, NewSession, NewWindow as OpenWindow, SetOption, SourceFile,
    SwitchClient, TmuxCommand,
};

use super::{Capture, NewWindow, formats, quote};
use tpu_core::model::facts::PaneFact;

/// Columns and rows of a window that nobody looks at: wide, so that the lines of jobs are not wrapped.
const SIZE: (usize, usize) = (200, 50);

/// How long a message is shown.
const SHOWN_MS: usize = 10_000;

/// Commands that go to the server together, in order. The first one that fails ends the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    words: Vec<String>,
}

impl Chain {
    /// A call that begins with this command.
    pub(super) fn new(command: &TmuxCommand<'_>) -> Self {
        Self::default().then(command)
    }

    /// Adds a command.
    pub(super) fn then(mut self, command: &TmuxCommand<'_>) -> Self {
        if !self.words.is_empty() {
            self.words.push(";".to_owned());
        }
        self.words.extend(command.to_vec().iter().map(|word| quote::argument(word).into_owned()));
        self
    }

    /// The arguments for the `tmux` program.
    pub(super) fn into_args(self) -> Vec<String> {
        self.words
    }

    /// The first word, for messages.
    pub(super) fn name(&self) -> String {
        self.words.first().cloned().unwrap_or_default()
    }
}

/// The session of exactly this name, by its current window.
fn session_target(session: &str) -> String {
    format!("={session}:")
}

/// A place for a window. Exact only for creating, and for what exists at that index for certain.
fn index_target(session: &str, index: u32) -> String {
    format!("={session}:{index}")
}

/// The pane in the session of exactly this name, wherever it is there: it may be in others, too.
fn pane_in_session(pane: &PaneFact) -> String {
    format!("{}.{}", session_target(&pane.session), pane.pane_id)
}

/// The pane at its index. Exact only where [`Guard::in_place`] looks: tmux takes the index for the start of a name as
/// well, and does not look whether the pane is in that window (seen on tmux 3.3a).
fn pane_in_place(pane: &PaneFact) -> String {
    format!("{}.{}", index_target(&pane.session, pane.window_index), pane.pane_id)
}

/// A command as tmux reads it in a file or in an argument of `if-shell`.
pub(super) fn line(command: &TmuxCommand<'_>) -> String {
    quote::line(&command.to_vec())
}

/// The server, then all panes of all sessions. On a server without a session the second part fails with
/// "no current target".
pub(super) fn look() -> Chain {
    let server = DisplayMessage::new().print().message(formats::SERVER).build();
    Chain::new(&server).then(&ListPanes::new().all().format(formats::PANE).build())
}

/// Sets the options that jobs rely on, on a session that exists, and lists its windows.
///
/// All are options of this session but one: `exit-unattached` is the server's, and while it is on the
/// server ends as soon as nobody is attached.
pub(super) fn prepare_session(session: &str, history: u32) -> Chain {
    let chain = set_session_options(Chain::default(), session, history);
    chain.then(&list_windows(session))
}

/// Creates a session with a home window at index 0, prepared as by [`prepare_session`].
pub(super) fn create_session(session: &str, history: u32, shell: &str) -> Chain {
    let target = session_target(session);
    let mut create = NewSession::new()
        .detached()
        .session_name(quote::name(session))
        .window_name("home")
        .width(SIZE.0)
        .height(SIZE.1)
        .build();
    push_home_program(&mut create, shell);
    // `base-index` may have put the window elsewhere; at this moment it is the session's only one.
    let move_home =
        MoveWindow::new().src_window(target.as_str()).dst_window(index_target(session, 0)).build();
    let home_at_0 = IfShell::new()
        .not_execute()
        .target_pane(target.as_str())
        .shell_command("#{!=:#{window_index},0}")
        .command(line(&move_home))
        .build();
    // The options come first: they keep the session alive, and stop windows from being renumbered.
    set_session_options(Chain::new(&create), session, history)
        .then(&keep_when_ended(&target))
        .then(&home_at_0)
        .then(&list_windows(session))
}

/// Adds the home window to a session that has no window 0.
pub(super) fn add_home(session: &str, shell: &str) -> Chain {
    let target = index_target(session, 0);
    let mut open =
        OpenWindow::new().detached().window_name("home").target_window(target.as_str()).build();
    push_home_program(&mut open, shell);
    Chain::new(&open).then(&keep_when_ended(&target))
}

/// The home window's program: a shell, started without the help of `default-shell` and
/// `default-command`.
fn push_home_program(command: &mut TmuxCommand<'_>, shell: &str) {
    for word in ["/bin/sh", "-c", r#"exec "$0""#, shell] {
        command.push_param(word.to_owned());
    }
}

/// The home window stays when its shell ends: without a window, session and server would end too.
fn keep_when_ended(target: &str) -> TmuxCommand<'static> {
    SetOption::new()
        .window()
        .target_pane(target.to_owned())
        .option("remain-on-exit")
        .value("on")
        .build()
}

fn set_session_options(chain: Chain, session: &str, history: u32) -> Chain {
    let target = session_target(session);
    let set = |option: &'static str, value: String| {
        SetOption::new().target_pane(target.clone()).option(option).value(value).build()
    };
    let longer_history = IfShell::new()
        .not_execute()
        .target_pane(target.as_str())
        .shell_command(format!("#{{e|<:#{{history-limit}},{history}}}"))
        .command(line(&set("history-limit", history.to_string())))
        .build();
    chain
        .then(&set("destroy-unattached", "off".to_owned()))
        .then(&set("renumber-windows", "off".to_owned()))
        .then(&set("default-size", format!("{}x{}", SIZE.0, SIZE.1)))
        .then(&SetOption::new().server().option("exit-unattached").value("off").build())
        .then(&longer_history)
}

fn list_windows(session: &str) -> TmuxCommand<'static> {
    ListWindows::new().target_session(session_target(session)).format(formats::WINDOW).build()
}

/// Opens a window, marks its pane, and prints the pane. Its directory is that of the calling process.
pub(super) fn open_window(window: &NewWindow) -> Chain {
    let target = index_target(&window.session, window.index);
    let mut open = OpenWindow::new()
        .detached()
        .window_name(quote::name(&window.name))
        .target_window(target.as_str())
        .build();
    open.push_param("--");
    if let [program] = window.argv.as_slice() {
        // A single word would be read by a shell.
        for word in ["/bin/sh", "-c", r#"exec "$0""#, program] {
            open.push_param(word.to_owned());
        }
    } else {
        for word in &window.argv {
            open.push_param(word.clone());
        }
    }
    // From here the index exists, so it is found before any window that is named like it.
    let mark = |option: &'static str, value: &str| {
        SetOption::new()
            .pane()
            .target_pane(target.clone())
            .option(option)
            .value(value.to_owned())
            .build()
    };
    Chain::new(&open)
        .then(&mark("@tpu_job", &window.job.to_string()))
        .then(&mark("@tpu_launch", window.launch.as_str()))
        .then(&ListPanes::new().target(target.as_str()).format(formats::PANE).build())
}

/// The same, then `mark`; then commands are read from the standard input as by [`source_stdin`]. What ends captures
/// is another word than this one: a command line is public, and a pane may show it.
pub(super) fn look_and_wait(mark: &str) -> Chain {
    look().then(&say(mark)).then(&source())
}

/// Reads commands from the standard input: no limit on their number, and one that fails leaves the
/// others alone.
pub(super) fn source_stdin() -> Chain {
    Chain::new(&source())
}

fn source() -> TmuxCommand<'static> {
    SourceFile::new().path("-").build()
}

/// Prints a line.
fn say(line: &str) -> TmuxCommand<'_> {
    DisplayMessage::new().print().message(line).build()
}

/// What to put into a file to print a line.
pub(super) fn said(words: &str) -> String {
    line(&say(words)) + "\n"
}

/// Which panes there are and how each is, in as few words as tell a change.
pub(super) fn wake_mark() -> Chain {
    Chain::new(&ListPanes::new().all().format(formats::PULSE).build())
}

/// Reads the pane only if it is still what it was at the last look, and still where it was: a window of
/// the original is a job's by its place alone.
pub(super) fn capture_known(
    pane: &PaneFact,
    server_pid: u32,
    capture: &Capture,
    refusal: &str,
) -> Chain {
    Guard::in_place(pane, server_pid).around(&[capture_joined(capture)], refusal)
}

/// Reads a pane with wrapped lines joined.
pub(super) fn capture_joined(pane: &Capture) -> TmuxCommand<'_> {
    capture(pane, CapturePane::new().join())
}

/// Reads a pane row by row, with the blanks that were written at the end of a row, as in a joined line.
pub(super) fn capture_rows(pane: &Capture) -> TmuxCommand<'_> {
    capture(pane, CapturePane::new().trailing_spaces())
}

fn capture<'p>(pane: &'p Capture, command: CapturePane<'p>) -> TmuxCommand<'p> {
    let start = pane.history.map_or_else(|| "-".to_owned(), |count| format!("-{count}"));
    let mut command = command.stdout();
    if pane.colours {
        command = command.escape_sequences();
    }
    command.start_line(start).target_pane(pane.pane_id.as_str()).build()
}

/// Who is in each pane.
pub(super) fn occupants() -> Chain {
    Chain::new(&ListPanes::new().all().format(formats::OCCUPANT).build())
}

/// Closes the pane, if it is what it was at the last look ([`Guard::still_it`]).
pub(super) fn close_pane(pane: &PaneFact, server_pid: u32, refusal: &str) -> Chain {
    Guard::still_it(pane, server_pid).around(&close(pane), refusal)
}

/// The same, and only if nobody looks at the window.
pub(super) fn close_unwatched(pane: &PaneFact, server_pid: u32, refusal: &str) -> Chain {
    let guard = Guard::still_it(pane, server_pid);
    guard.and(equal("window_active_clients", "0")).around(&close(pane), refusal)
}

/// Prints the process id of the pane's program, if the pane is what it was at the last look.
pub(super) fn process(pane: &PaneFact, server_pid: u32, refusal: &str) -> Chain {
    let print = DisplayMessage::new().print().target_pane(pane.pane_id.as_str());
    let print = print.message(formats::PROCESS).build();
    Guard::still_it(pane, server_pid).around(&[print], refusal)
}

fn close(pane: &PaneFact) -> [TmuxCommand<'_>; 2] {
    // A session that tpu did not prepare may still renumber its windows, and with them the jobs.
    let keep_numbers = SetOption::new()
        .target_pane(pane.pane_id.as_str())
        .option("renumber-windows")
        .value("off")
        .build();
    // The pane alone: a window goes with its last one, and panes that somebody has put beside it stay.
    let close = KillPane::new().target_pane(pane.pane_id.as_str()).build();
    [keep_numbers, close]
}

/// What must hold for something to be done to a pane. The server decides and acts in one go, so nothing can come
/// between.
struct Guard {
    /// Where the conditions are looked at. If it is not found, tmux looks at them somewhere else, and then they fail.
    target: String,
    conditions: Vec<String>,
}

impl Guard {
    /// Server, pane and launch are still those of the last look. A pane without a launch of ours is known by its
    /// place alone: it must still be there.
    fn still_it(pane: &PaneFact, server_pid: u32) -> Self {
        match &pane.launch {
            Some(_) => Self::same_pane(pane, server_pid),
            None => Self::in_place(pane, server_pid),
        }
    }

    /// The same, and any pane must still be at its place.
    fn in_place(pane: &PaneFact, server_pid: u32) -> Self {
        let same = Self { target: pane_in_place(pane), ..Self::same_pane(pane, server_pid) };
        same.and(equal("session_name", &pane.session))
            .and(equal("window_index", &pane.window_index.to_string()))
            .and(format!("#{{m:* {} *, #{{P:#{{pane_id}} }}}}", pane.pane_id))
    }

    fn same_pane(pane: &PaneFact, server_pid: u32) -> Self {
        let launch = pane.launch.as_ref().map_or("", |token| token.as_str());
        let conditions = vec![
            equal("pid", &server_pid.to_string()),
            equal("pane_id", &pane.pane_id),
            equal("@tpu_launch", launch),
        ];
        Self { target: pane.pane_id.clone(), conditions }
    }

    fn and(mut self, condition: String) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Does something if all conditions hold; prints `refusal` otherwise.
    fn around(self, then: &[TmuxCommand<'_>], refusal: &str) -> Chain {
        let all = self.conditions.into_iter().reduce(|all, one| format!("#{{&&:{all},{one}}}"));
        let then: Vec<String> = then.iter().map(line).collect();
        let mut command = IfShell::new()
            .not_execute()
            .target_pane(self.target)
            .shell_command(all.unwrap_or_default())
            .command(then.join(" ; "))
            .build();
        command.push_param(line(&say(refusal)));
        Chain::new(&command)
    }
}

/// The condition that a format variable has this value.
fn equal(name: &str, value: &str) -> String {
    format!("#{{==:#{{{name}}},{}}}", quote::in_format(value))
}

/// Ends the server, if it is the one with this pid.
pub(super) fn end_server(server_pid: u32) -> Chain {
    let condition = format!("#{{==:#{{pid}},{server_pid}}}");
    let command = IfShell::new()
        .not_execute()
        .shell_command(condition)
        .command(line(&KillServer::new().build()))
        .build();
    Chain::new(&command)
}

/// The whole command line that shows a pane to a person. `inside` says whether the caller's terminal is
/// a tmux client, and if so whether one of this very server.
pub(super) fn attach(pane: &PaneFact, socket: &str, inside: Option<bool>) -> Vec<String> {
    let target = pane_in_session(pane);
    let tmux = ["tmux", "-u", "-L", socket];
    let (start, command) = match inside {
        Some(true) => (&[][..], SwitchClient::new().target_session(target).build()),
        // tmux refuses to attach from inside another tmux as long as it can see it.
        Some(false) => {
            (&["env", "-u", "TMUX"][..], AttachSession::new().target_session(target).build())
        }
        None => (&[][..], AttachSession::new().target_session(target).build()),
    };
    let fixed = start.iter().chain(&tmux).map(|word| (*word).to_owned());
    fixed.chain(Chain::new(&command).into_args()).collect()
}

/// Lists the terminals that look at a session.
pub(super) fn clients(session: &str) -> Chain {
    let target = session_target(session);
    let list = ListClients::new().target_session(target).format("#{client_name}").build();
    Chain::new(&list)
}

/// Shows a line on a terminal for some time, or until a key is pressed.
pub(super) fn tell(client: &str, line: &str) -> Chain {
    let line = quote::message(line);
    let show = DisplayMessage::new().target_client(client).delay(SHOWN_MS).message(line).build();
    Chain::new(&show)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::{JobId, LaunchToken};

    #[test]
    fn a_word_that_ends_in_a_semicolon_does_not_end_the_command() {
        let window = NewWindow {
            session: "alice".to_owned(),
            index: 7,
            name: "#7".to_owned(),
            cwd: "/".into(),
            argv: vec!["echo".to_owned(), "a;".to_owned(), ";".to_owned()],
            job: JobId::parse("alice/7").unwrap(),
            launch: LaunchToken::from("ab"),
        };
        let args = open_window(&window).into_args();
        let first: Vec<&str> = args.iter().map(String::as_str).take_while(|a| *a != ";").collect();
        assert_eq!(
            first,
            ["new-window", "-d", "-n", "##7", "-t", "=alice:7", "--", "echo", "a\\;", "\\;"]
        );
        assert_eq!(args.iter().filter(|arg| *arg == ";").count(), 3);
    }
}
