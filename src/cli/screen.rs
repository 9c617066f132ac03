//! Opens the monitor: what was typed and the settings, as the screen's options.

mod commands;
#[cfg(feature = "lab")]
pub(super) mod of_demo;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anstream::ColorChoice;

use tpu_core::model::ids::JobId;
use tpu_core::model::settings::Settings;
use tpu_core::model::time::Zone;
use tpu_core::model::view::Whose;
use tpu_ops::{Ctx, Error};
pub(super) use tpu_screen::Options;
use tpu_screen::backend::CliFunctions;
use tpu_screen::bridge::Bridge;
pub(super) use tpu_screen::bridge::Captioner;
use tpu_screen::model::Columns;
use tpu_screen::plain::run_plain;
use tpu_screen::typed::Commands;
pub(super) use tpu_screen::typed::{Nature, TellNature};
use tpu_screen::{Backend, MonitorError};
use tpu_system::sys::env::Env;

use super::app::App;
use super::args::{Cli, Color, MonitorArgs};
use super::screen_settings::keys;
use super::{console, print};

/// Whose jobs the monitor shows, and how.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Whose, where no words say it.
    pub(super) whose: Whose,
    /// The words as typed, resolved when the data is read.
    pub(super) words: Vec<String>,
    /// Everybody, although there are words.
    pub(super) all_users: bool,
    /// `-wdtsv`.
    pub(super) show: Option<String>,
    /// The job to begin with.
    pub(super) select: Option<JobId>,
    /// Lines in place of a screen.
    pub(super) plain: bool,
}

/// The scope that the words of `monitor` name.
pub(super) fn scope(MonitorArgs { check, plain }: &MonitorArgs) -> Scope {
    Scope {
        words: check.words.clone(),
        all_users: check.all_users,
        show: check.show.clone(),
        plain: *plain,
        ..Scope::default()
    }
}

/// The options for the scope that was typed. `nature` tells what a command that is typed into the screen asks for.
pub(super) fn options(app: &App, scope: &Scope, nature: TellNature) -> Result<Options, Error> {
    if scope.plain && app.global.json {
        return Err(Error::usage("--plain prints lines for people, and no JSON")
            .hint("`tpu check --json` shows the jobs; `tpu serve` has their events as a stream"));
    }
    let ctx = app.ctx()?;
    let whose = match scope.whose.only() {
        _ if scope.all_users => Whose::default(),
        Some(_) => scope.whose.clone(),
        None => app.requester()?.users_of_list(&scope.words)?,
    };
    let data = ctx.data()?;
    let settings = ctx.settings(whose.only().and_then(|name| data.user(name)))?;
    let columns = match scope.show.as_deref() {
        Some(letters) => Columns::from_flags(letters).ok_or_else(|| {
            Error::usage(format!("-{letters}: not all of these are columns"))
                .hint("w number, d directory, t target, s status, v output")
        })?,
        None => Columns {
            dir: settings.monitor_dir,
            target: settings.monitor_tpu,
            output: settings.monitor_verbose,
            ..Columns::default()
        },
    };
    // Who names columns with the command means these.
    let column_names = settings.monitor_columns.clone().filter(|_| scope.show.is_none());
    let options = usual(app, &settings, app.zone(&data, whose.only())?, nature);
    Ok(Options { column_names, whose, columns, select: scope.select.clone(), ..options })
}

/// Whether there is a terminal for the screen, and it can draw.
pub(super) fn can_draw(app: &App) -> bool {
    app.on_terminal() && draws(&app.env)
}

/// Whether the terminal can move its cursor. Only one that is called dumb says that it cannot: nothing is looked up by the
/// name, so that any other, and none, may well be one that draws.
fn draws(env: &Env) -> bool {
    env.var("TERM").is_none_or(|term| term != "dumb")
}

fn usual(app: &App, settings: &Settings, zone: Zone, nature: TellNature) -> Options {
    let theme = Some(settings.theme.clone()).filter(|theme| theme != "default");
    Options {
        whose: Whose::default(),
        columns: Columns::default(),
        column_names: None,
        theme,
        ascii: print::is_ascii(&app.env),
        no_color: app.env.non_empty("NO_COLOR").is_some() || app.global.color == Color::Never,
        refresh: Duration::from_secs(settings.monitor_upd_time.into()),
        zone,
        keys: keys(settings),
        select: None,
        commands: Commands { known: known_commands(), nature },
        flags: app.flags(),
    }
}

/// Every command that people may type, with the first line of its help.
fn known_commands() -> Vec<(String, String)> {
    let all = Cli::definitions();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set());
    visible
        .map(|command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            (command.get_name().to_owned(), about)
        })
        .collect()
}

/// What to do where there is no screen.
const WITHOUT_SCREEN: &str =
    "`tpu monitor --plain` prints changes line by line, `tpu check` shows the same as text";

/// The screen over these effects, with a line above the bottom line where somebody has one.
fn bridge(ctx: Ctx, options: &Options, caption: Option<Captioner>) -> Arc<dyn Backend> {
    let lent = CliFunctions { run: commands::run, explain: commands::explain };
    let bridge = Bridge::new(ctx, options.flags.clone(), lent);
    match caption {
        Some(caption) => Arc::new(bridge.captioned(caption)),
        None => Arc::new(bridge),
    }
}

/// Opens the screen and stays until the person leaves it, or a signal ends it. Returns the exit code: 128
/// and the signal's number, as a shell counts.
pub(super) fn open(ctx: Ctx, options: Options, caption: Option<Captioner>) -> Result<u8, Error> {
    if console::is_terminal() && !draws(&ctx.env) {
        return Err(Error::failed("the monitor needs a terminal that can draw; TERM is dumb")
            .hint(WITHOUT_SCREEN));
    }
    let backend = bridge(ctx, &options, caption);
    exit_code(tpu_screen::run(&backend, options))
}

/// Tells what changes, line by line, until a signal ends it or nobody reads any more. Returns the exit code, as
/// [`open`] does.
pub(super) fn tell(ctx: Ctx, options: &Options) -> Result<u8, Error> {
    let backend = bridge(ctx, options, None);
    let say = |lines: &str| print::to_stdout(lines, ColorChoice::Never);
    match run_plain(&backend, options, say) {
        Err(MonitorError::Terminal(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(MonitorError::Terminal(e)) => Err(Error::failed(format!("cannot print: {e}"))
            .hint("the output was closed or its disk is full")),
        ended => exit_code(ended),
    }
}

/// The exit code that stands for how a screen ended, or what the person is told.
fn exit_code(ended: Result<(), MonitorError>) -> Result<u8, Error> {
    match ended {
        Ok(()) => Ok(0),
        Err(MonitorError::Signal(signal)) => Ok(u8::try_from(128 + signal).unwrap_or(1)),
        Err(MonitorError::NoTerminal) => {
            Err(Error::failed("the monitor needs a terminal").hint(WITHOUT_SCREEN))
        }
        Err(other) => Err(Error::failed(other.to_string())
            .hint(format!("{WITHOUT_SCREEN}; TERM names the kind of terminal"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::dispatch::nature;
    use tpu_screen::typed::{self, OWN, Typed};

    /// Every command of the command line is proposed behind `:` and does there what it does here.
    #[test]
    fn the_command_line_of_the_screen_reaches_every_command() {
        let all = Cli::definitions();
        let offered = known_commands();
        for command in all.get_subcommands() {
            let name = command.get_name();
            let is_offered =
                offered.iter().any(|(known, about)| known == name && !about.is_empty());
            assert_eq!(is_offered, !command.is_hide_set(), "{name}");
            let reached = match typed::parse(&format!("{name} x"), nature, &[]) {
                Ok(Typed::Command(words) | Typed::Foreground(words) | Typed::Destroy(words, _)) => {
                    words == [name, "x"]
                }
                // The monitor in the monitor is this one.
                Ok(Typed::User(users)) => name == "monitor" && users == ["x"],
                _ => false,
            };
            assert!(reached, "{name} is not reached");
            assert!(
                OWN.iter().all(|(own, _)| *own != name),
                "{name} is hidden by one of the screen's own"
            );
        }
        assert_eq!(offered.len(), all.get_subcommands().filter(|c| !c.is_hide_set()).count());
    }
}
