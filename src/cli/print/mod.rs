//! What people and scripts see: results on stdout, messages on stderr, one JSON document with `--json`.

pub(super) mod block;
pub(super) mod csv;
pub(super) mod plot;
pub(super) mod table;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Map, Value};

use tpu_core::text;
use tpu_ops::act::callbacks::own_line;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::{Error, Kind};
use tpu_system::sys::env::Env;
use tpu_wire::errors::ErrorDocument;
use tpu_wire::pages::EmptyDocument;
use tpu_wire::schema::Document;
use tpu_wire::targets::WouldDocument;

use super::args::{Cli, Color, Globals};
use super::{dashes, keys, legacy};

/// The result of a command, for people and for scripts.
#[derive(Debug)]
pub(super) struct Output {
    /// For people: lines on stdout.
    pub(super) text: String,
    /// For scripts: the members of the JSON document.
    members: Map<String, Value>,
    /// For people, on stderr: what they should know.
    pub(super) notes: Vec<String>,
    /// The exit code.
    pub(super) code: u8,
    /// With `--json`, print the text as it is: whole JSON documents, one on each line.
    pub(super) is_json_lines: bool,
}

impl Default for Output {
    /// Nothing to say.
    fn default() -> Self {
        Self::new("", &EmptyDocument {})
    }
}

impl Output {
    /// A result with both faces.
    pub(super) fn new(text: impl Into<String>, document: &impl Document) -> Self {
        Self {
            text: text.into(),
            members: tpu_wire::members(document),
            notes: Vec::new(),
            code: 0,
            is_json_lines: false,
        }
    }

    /// A result of which only the face is made that is printed, for what has a thousand parts.
    pub(super) fn either<D: Document>(
        global: &Globals,
        text: impl FnOnce() -> String,
        document: impl FnOnce() -> D,
    ) -> Self {
        Self::lines(if global.json { tpu_wire::text(&document()) } else { text() })
    }

    /// A result that is printed as it is; with `--json` it is whole JSON documents, one on each line.
    pub(super) fn lines(text: String) -> Self {
        Self { text, is_json_lines: true, ..Self::default() }
    }

    /// The same as what a dry run says: nothing of it was done.
    pub(super) fn dry_run_of(mut self) -> Self {
        self.text = format!("Dry run, nothing was changed. It would say:\n{}", self.text);
        self.members.insert("dry_run".to_owned(), Value::Bool(true));
        self
    }

    /// What a dry run says of something outside that cannot be tried out, once nothing speaks against it.
    pub(super) fn would(what: &str) -> Self {
        let text = format!("Would {what}. Nothing was changed.");
        Self::new(text, &WouldDocument { dry_run: true, would: what })
    }

    /// The same with more for a person to read below it.
    pub(super) fn with_details(mut self, details: &str) -> Self {
        self.text = format!("{}\n{details}", self.text.trim_end_matches('\n'));
        self
    }

    /// The same with this exit code.
    pub(super) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// The same with notes.
    pub(super) fn notes(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

/// What stands before each line of an error.
const ERROR: &str = "error:";
/// What stands before each line of advice.
const HINT: &str = "hint:";
/// What stands before a note.
const NOTE: &str = "note:";

/// What a command has told of its failure, read back from what it printed.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What went wrong.
    pub(super) errors: String,
    /// What to do about it.
    pub(super) hints: String,
}

/// Reads back what [`error`] printed without colours.
pub(super) fn told(printed: &str) -> Told {
    let of = |mark: &str| {
        let lines: Vec<&str> = printed
            .lines()
            .filter_map(|line| Some(line.strip_prefix(mark)?.trim_start()))
            .collect();
        lines.join(" ")
    };
    Told { errors: of(ERROR), hints: of(HINT) }
}

/// Notes as they were before they were printed.
pub(super) fn without_marks(printed: &str) -> String {
    let lines = printed.lines().map(|line| line.strip_prefix(NOTE).map_or(line, str::trim_start));
    lines.collect::<Vec<_>>().join("\n")
}

/// What goes to stdout: one document with `--json`, else the text.
pub(super) fn printed(output: &Output, global: &Globals) -> String {
    if !global.json {
        return ended(&output.text);
    }
    let text = if output.is_json_lines {
        ended(&output.text)
    } else {
        ended(&serde_json::to_string(&output.members).unwrap_or_default())
    };
    text::harmless_json(&text).into_owned()
}

/// What is printed into the window of a job, marked as ours; anything else as it is.
fn marked(text: &str, global: &Globals) -> String {
    let Some(id) = global.window_of.as_ref().filter(|_| !global.json) else {
        return text.to_owned();
    };
    // The mark names the job; to name it twice helps nobody.
    let (id, subject) = (id.to_string(), format!("{id} "));
    let said = |line| own_line(&id, str::strip_prefix(line, &subject).unwrap_or(line)) + "\n";
    text.lines().map(said).collect()
}

/// Prints a result. A reader that has gone away is no failure.
pub(super) fn output(output: &Output, global: &Globals) -> ExitCode {
    let text = printed(output, global);
    let written = if global.json {
        document_to_stdout(&text)
    } else {
        to_stdout(&marked(&text, global), choice(global.color))
    };
    for note in &output.notes {
        let note = format!("{} {note}\n", paint(AnsiColor::Yellow, NOTE));
        to_stderr(&marked(&note, global), global);
    }
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => error(&unsaid(&e, output), global),
        _ => ExitCode::from(output.code),
    }
}

/// What was done cannot be told where it should be: said here, so that nobody does it twice.
fn unsaid(e: &io::Error, output: &Output) -> Error {
    let said = output.text.lines().next().unwrap_or_default();
    Error::failed(format!("cannot print: {e}"))
        .hint(format!("all else is done, and need not be repeated: {}", text::cut(said, 200)))
}

/// Prints an error: what, where, what to do next.
pub(super) fn error(error: &Error, global: &Globals) -> ExitCode {
    if global.json {
        let document = tpu_wire::text(&ErrorDocument::from(error));
        to_stderr(&text::harmless_json(&format!("{document}\n")), global);
    } else {
        let mut said = String::new();
        let mut each = error.each().peekable();
        while let Some(one) = each.next() {
            for line in one.message.lines() {
                said += &format!("{} {}\n", paint(AnsiColor::Red, ERROR), text::escape(line));
            }
            // Advice that is for several in a row stands once, under the last of them.
            if each.peek().is_some_and(|next| next.advice() == one.advice()) {
                continue;
            }
            for line in one.advice().lines() {
                said += &format!("{} {}\n", paint(AnsiColor::Cyan, HINT), text::escape(line));
            }
        }
        to_stderr(&marked(&said, global), global);
    }
    ExitCode::from(error.kind.exit_code())
}

/// What clap could not understand, in our words and with our codes. Help and version go to stdout.
pub(super) fn usage_error(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _printed = to_stdout(&error.render().ansi().to_string(), ColorChoice::Auto);
            ExitCode::SUCCESS
        }
        _ => {
            let mut misunderstood = misunderstood(error);
            // An option of a program is none of ours.
            let is_option = error.kind() == ErrorKind::UnknownArgument;
            if let Some(first) = dashes::command_in(words).filter(|_| is_option) {
                misunderstood = misunderstood.hint(dashes::advice(words, first));
            }
            self::error(&misunderstood, &Globals { json, ..Globals::plain() })
        }
    }
}

/// What clap could not understand, in our words.
pub(super) fn misunderstood(error: &clap::Error) -> Error {
    if let Some((typed, remedy)) = on_purpose(error) {
        return Error::refused(format!("tpu has no '{typed}', on purpose")).hint(remedy);
    }
    let (message, hint) = which_word(error).unwrap_or_else(|| in_our_words(error));
    Error::new(Kind::Usage, message).hint(hint)
}

/// A command of the original that is not there on purpose, and what to do instead.
fn on_purpose(error: &clap::Error) -> Option<(String, &'static str)> {
    let typed = match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(typed) => typed.clone(),
        _ => return None,
    };
    let remedy = legacy::gone(&typed)?;
    Some((typed, remedy))
}

/// The hint for a flag that resembles none.
const NO_FLAG: &str = "`tpu help COMMAND` lists the flags; a config is KEY=VALUE, without dashes";

/// What is said where a command is one of several words, and none was typed: which there are.
fn which_word(error: &clap::Error) -> Option<(String, String)> {
    let text = error.render().to_string();
    let named = match error.kind() {
        // Which of the two clap says hangs on whether a variable gave it any argument at all.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            text.lines().find_map(|line| line.trim().strip_prefix("Usage: tpu "))?
        }
        ErrorKind::MissingSubcommand => text.split('\'').nth(1)?.strip_prefix("tpu ")?,
        _ => return None,
    };
    let name = named.split_whitespace().next()?;
    let all = Cli::definitions();
    let command = all.find_subcommand(name)?;
    let visible = command.get_subcommands().filter(|word| !word.is_hide_set());
    let words: Vec<&str> =
        visible.map(clap::Command::get_name).filter(|word| *word != "help").collect();
    let first = words.first()?;
    let message = format!("tpu {name}: which? {}", words.join(", "));
    Some((message, format!("as in: tpu {name} {first}; `tpu help {name}` explains each")))
}

/// clap's message without its own decoration, and a hint that always names the next step.
fn in_our_words(error: &clap::Error) -> (String, String) {
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut hint = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(tip) = line.strip_prefix("tip: ") {
            // clap's advice to put what it does not know behind `--` would make a command of it.
            let tip = if tip.contains("use '-- ") { NO_FLAG } else { tip };
            hint.get_or_insert_with(|| tip.to_owned());
        } else if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        } else if !line.is_empty() {
            message.push(line.strip_prefix("error: ").unwrap_or(line).to_owned());
        }
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let typed = text.split('\'').nth(1).unwrap_or_default().to_owned();
        (message, hint) = no_command(&typed, &text);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) {
        if let Some(flag) = legacy::meant_flag(typed) {
            hint = Some(format!("did you mean '{flag}'?"));
        } else if let Some(key) = keys::meant(typed) {
            hint = Some(format!("`tpu run` and `tpu submit` take it with a value: {key}=VALUE"));
        }
    }
    let hint = hint.unwrap_or_else(|| "`tpu help COMMAND` explains a command".to_owned());
    (message.join(" "), hint)
}

/// The same for a word that is no command, or none of a group of commands, which the usage beneath names.
fn no_command(typed: &str, text: &str) -> (Vec<String>, Option<String>) {
    let command = Cli::definitions();
    let usage = text.lines().find_map(|line| line.trim_start().strip_prefix("Usage: tpu "));
    let group = usage.and_then(|usage| command.find_subcommand(usage.split(' ').next()?));
    let names = |of: &'_ clap::Command| -> Vec<String> {
        of.get_subcommands().map(|one| one.get_name().to_owned()).collect()
    };
    if let Some(group) = group.filter(|group| group.has_subcommands()) {
        let (name, known) = (group.get_name(), names(group));
        let near = did_you_mean(typed, known.iter().map(String::as_str));
        let all = format!("`tpu help {name}` lists its commands");
        let message = format!("there is no command '{name} {typed}'");
        return (vec![message], Some(near.unwrap_or(all)));
    }
    let known = names(&command);
    let old = legacy::COMMANDS.iter().map(|(typed, _)| *typed);
    let near = legacy::meant(typed)
        .map(|command| format!("did you mean '{command}'?"))
        .or_else(|| did_you_mean(typed, known.iter().map(String::as_str).chain(old)));
    (vec![format!("there is no command '{typed}'")], near)
}

impl Globals {
    /// These flags, and where none was typed, what the environment says.
    pub(super) fn or_of(self, env: &Env) -> Self {
        let said = |name: &str| env.vars.get(OsStr::new(name)).filter(|value| !value.is_empty());
        let socket = || said("TPU_TMUX_SOCKET").map(|name| name.to_string_lossy().into_owned());
        Self {
            data: self.data.or_else(|| said("TPU_DATA").map(PathBuf::from)),
            settings: self.settings.or_else(|| said("TPU_SETTINGS").map(PathBuf::from)),
            tmux_socket: self.tmux_socket.or_else(socket),
            ..self
        }
    }

    /// Flags as if none were typed.
    pub(super) fn plain() -> Self {
        Self {
            data: None,
            settings: None,
            user: None,
            tmux_socket: None,
            cloud: None,
            json: false,
            yes: false,
            no_input: false,
            dry_run: false,
            verbose: false,
            color: Color::Auto,
            help: None,
            window_of: None,
        }
    }
}

/// When to colour, as asked for.
pub(super) fn choice(color: Color) -> ColorChoice {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::AlwaysAnsi,
        Color::Never => ColorChoice::Never,
    }
}

/// Whether the terminal shows plain characters only. A terminal that does not say so is most likely a modern one inside
/// tmux.
pub(super) fn is_ascii(env: &Env) -> bool {
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env.non_empty(name))
        .is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"));
    !utf8 && env.var("TERM").is_some_and(|term| term == "linux" || term == "vt100")
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Writes to stdout with or without colours; of what came from outside nothing else reaches a terminal.
pub(super) fn to_stdout(text: &str, choice: ColorChoice) -> io::Result<()> {
    // Somebody else of this process may wait here for a reader who does not read on.
    if text.is_empty() {
        return Ok(());
    }
    let mut out = AutoStream::new(io::stdout(), choice);
    out.write_all(text::harmless(text).as_bytes())?;
    out.flush()
}

/// Writes a document to stdout, which is harmless as [`printed`] has made it and has no colours.
fn document_to_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Empties the terminal, so that what is printed next stands where this stood.
pub(super) fn clear() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"\x1b[H\x1b[2J")?;
    out.flush()
}

/// Writes to stderr; nobody is left to tell if that fails.
fn to_stderr(text: &str, global: &Globals) {
    let mut out = AutoStream::new(io::stderr(), choice(global.color));
    let _printed = out.write_all(text::harmless(text).as_bytes());
}

/// Text in a colour.
pub(super) fn paint(color: AnsiColor, text: &str) -> String {
    let style = Style::new().fg_color(Some(color.into()));
    format!("{style}{text}{style:#}")
}
