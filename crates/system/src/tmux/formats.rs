//! What tmux is asked to print, and how it is read. Pure.
//!
//! Fields are separated by blanks and colons, never by control characters: some versions print those as
//! `_` or as escapes. Numbers and ids come first; then the session, whose name cannot hold a colon; then
//! our pane options, the one that may hold anything (a job's user is free text) last.

use super::Occupant;
use tpu_core::model::facts::{PaneFact, Place};
use tpu_core::model::ids::{JobId, LaunchToken};

/// One line of it describes one pane; [`pane`] reads it. Each field costs 0.5 ms at 1 000 windows, whichever it is,
/// and an option 0.3 ms (measured, tmux 3.3a): what only some need is asked for there. A window is told from others
/// by session and index, which no two windows share at one moment.
pub(super) const PANE: &str = "#{window_index} #{pane_id} #{pane_dead} #{window_activity} #{history_size} \
     #{cursor_y} #{cursor_x} #{session_name}:#{@tpu_exit}:#{@tpu_launch}:#{@tpu_job}";

/// One line of it changes when a pane's job ends; nobody reads it. The server's pid tells a pane of an
/// earlier server from one of this one with the same id.
pub(super) const PULSE: &str = "#{pane_id} #{pane_dead} #{@tpu_exit} #{pid}";

/// One line of it describes the server; [`server`] reads it.
pub(super) const SERVER: &str = "#{pid} #{start_time} #{socket_path}";

/// One line of it describes a window of a session; [`window`] reads it.
pub(super) const WINDOW: &str = "#{window_index} #{session_name}";

/// The process id of a pane's own program; [`process`] reads it. Of one that has ended tmux keeps the number, which
/// may be anybody's by then (measured, tmux 3.3a).
pub(super) const PROCESS: &str = "#{?pane_dead,ended,#{pane_pid}}";

/// One line of it says who is in a pane; [`occupant`] reads it.
pub(super) const OCCUPANT: &str = "#{pane_id} #{window_active_clients} #{pane_current_command}";

/// A line that is not of the form asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tmux answered with a line that cannot be read: '{}'", tpu_core::text::escape(line))]
pub(super) struct Unreadable {
    /// The line.
    line: String,
}

impl Unreadable {
    /// Wraps the line.
    pub(super) fn new(line: &str) -> Self {
        Self { line: line.to_owned() }
    }
}

/// Reads a line of [`PANE`].
pub(super) fn pane(line: &str) -> Result<PaneFact, Unreadable> {
    pane_fields(line).ok_or_else(|| Unreadable::new(line))
}

fn pane_fields(line: &str) -> Option<PaneFact> {
    let mut fields = line.splitn(8, ' ');
    let mut next = || fields.next();
    let fact = PaneFact {
        window_index: next()?.parse().ok()?,
        pane_id: pane_id(next()?)?,
        dead: next()? == "1",
        activity: next()?.parse().ok()?,
        history_size: next()?.parse().ok()?,
        cursor_y: next()?.parse().ok()?,
        cursor_x: next()?.parse().ok()?,
        session: String::new(),
        exit: None,
        launch: None,
        job: None,
    };
    let mut names = next()?.splitn(4, ':');
    Some(PaneFact {
        session: names.next()?.to_owned(),
        exit: names.next()?.parse().ok(),
        launch: Some(names.next()?).filter(|token| !token.is_empty()).map(LaunchToken::new),
        job: JobId::parse(names.next()?),
        ..fact
    })
}

/// A pane's id as tmux gives them: `%` and a number.
fn pane_id(text: &str) -> Option<String> {
    let number = text.strip_prefix('%')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned())
}

/// Reads a line of [`SERVER`]; host, boot and user are those of `here`.
pub(super) fn server(line: &str, here: &Place) -> Result<Place, Unreadable> {
    let read = || {
        let mut fields = line.splitn(3, ' ');
        let server_pid = fields.next()?.parse().ok()?;
        let server_start = fields.next()?.parse().ok()?;
        let socket = fields.next()?.to_owned();
        Some(Place { socket, server_pid, server_start, ..here.clone() })
    };
    read().ok_or_else(|| Unreadable::new(line))
}

/// Reads a line of [`WINDOW`]: index and session.
pub(super) fn window(line: &str) -> Result<(u32, &str), Unreadable> {
    let read = || {
        let (index, session) = line.split_once(' ')?;
        Some((index.parse().ok()?, session))
    };
    read().ok_or_else(|| Unreadable::new(line))
}

/// Reads a line of [`PROCESS`]; `None` of a program that has ended.
pub(super) fn process(line: &str) -> Result<Option<u32>, Unreadable> {
    match line {
        "ended" => Ok(None),
        // What is below 0 and 1 is everybody's, and no pane has them.
        number => match number.parse() {
            Ok(pid @ 2..) => Ok(Some(pid)),
            Ok(_) | Err(_) => Err(Unreadable::new(line)),
        },
    }
}

/// Reads a line of [`OCCUPANT`]: the pane's id, and who is in it.
pub(super) fn occupant(line: &str) -> Result<(String, Occupant), Unreadable> {
    let read = || {
        let mut fields = line.splitn(3, ' ');
        let pane = pane_id(fields.next()?)?;
        let watchers = fields.next()?.parse().ok()?;
        Some((pane, Occupant { program: fields.next()?.to_owned(), watchers }))
    };
    read().ok_or_else(|| Unreadable::new(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::{JobNumber, UserName};

    #[test]
    fn a_pane_of_a_job_is_read() {
        let line = "7 %34 0 1795161731 250 49 3 al ice:143:ab12:al: i/ce/7";
        let fact = pane(line).unwrap();
        assert_eq!((fact.window_index, fact.pane_id.as_str(), fact.dead), (7, "%34", false));
        assert_eq!((fact.activity, fact.history_size), (1_795_161_731, 250));
        assert_eq!((fact.cursor_y, fact.cursor_x), (49, 3));
        assert_eq!(fact.session, "al ice");
        assert_eq!(fact.exit, Some(143));
        assert_eq!(fact.launch, Some(LaunchToken::from("ab12")));
        assert_eq!(fact.job, Some(JobId::new(UserName::from("al: i/ce"), JobNumber(7))));
    }

    #[test]
    fn a_pane_that_is_no_job_is_read() {
        let fact = pane("0 %0 1 5 0 0 0 a:::").unwrap();
        assert_eq!((fact.job, fact.launch, fact.exit, fact.dead), (None, None, None, true));
    }

    #[test]
    fn a_line_that_is_cut_or_foreign_is_not_guessed_at() {
        let whole = "7 %34 0 1795161731 250 49 3 alice:::";
        for cut in 0..whole.len() {
            assert!(pane(&whole[..cut]).is_err(), "{}", &whole[..cut]);
        }
        assert!(pane("7 34 0 1 250 49 3 alice:::").is_err());
        assert!(pane("7 %x 0 1 250 49 3 alice:::").is_err());
    }

    #[test]
    fn a_process_is_a_number_that_a_program_can_have() {
        assert_eq!(process("4711"), Ok(Some(4711)));
        assert_eq!(process("ended"), Ok(None));
        for line in ["", "0", "1", "-1", "4711 ", "4294967296"] {
            assert!(process(line).is_err(), "{line}");
        }
    }
}
