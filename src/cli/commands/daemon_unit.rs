//! `daemon install` and `daemon uninstall`: the daemon begins with this machine, or no more.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::StartDaemon;
use crate::cli::print::Output;
use tpu_ops::Error;
use tpu_ops::act::service::{self, How};
use tpu_ops::front::daemon_unit::{self, Unit};
use tpu_wire::daemon::DaemonUnitDocument;

/// `daemon install`: what is written is shown first.
pub(in crate::cli) fn install(app: &App, args: &StartDaemon) -> Outcome {
    let ctx = app.ctx()?;
    let serving = args.also.wanted().map(|serving| {
        let flags = serving.to_flags(&app.env.cwd);
        [vec!["--serve".to_owned()], flags].concat()
    });
    let beside_original = args.beside_original;
    let how = How { flags: app.flags(), serving, beside_original, ..How::default() };
    service::may_start(ctx, &how)?;
    let unit = daemon_unit::plan(ctx, &how)?;
    let shown = unit.in_words();
    if app.global.dry_run {
        return Ok(Output::new(format!("Would write {shown}"), &document(&unit, false)));
    }
    if !app.global.yes {
        app.tell(&format!("This will be written: {shown}"));
        let undone = Undone { what: "nothing was written", hint: "add -y to have it written" };
        if !app.may_ask() {
            return Err(Error::usage("nothing was written, since nobody can be asked here")
                .hint("add -y to have it written: tpu daemon install -y"));
        }
        app.agree("Write it?", undone)?;
    }
    let done = daemon_unit::install(ctx, &how, &unit)?;
    let text = if app.global.yes { format!("Wrote {shown}\n{done}") } else { done };
    let lingers = matches!(unit, Unit::Systemd { .. }).then(|| {
        "it begins when you log in and ends when you have logged out; to have it run without you: loginctl \
         enable-linger"
            .to_owned()
    });
    Ok(Output::new(text, &document(&unit, true)).notes(lingers.into_iter().collect()))
}

/// `daemon uninstall`.
pub(in crate::cli) fn uninstall(app: &App) -> Outcome {
    let ctx = app.ctx()?;
    let found = daemon_unit::installed(ctx)?;
    let shown: Vec<String> = found.iter().map(Unit::in_words).collect();
    let [first, ..] = found.as_slice() else { return Ok(Output::default()) };
    if app.global.dry_run {
        let text = format!("Would remove {}", shown.join("\n"));
        return Ok(Output::new(text, &document(first, true)));
    }
    daemon_unit::uninstall(ctx)?;
    let text = format!(
        "Removed {}\nA running daemon continues; `tpu daemon stop` ends it.",
        shown.join("\n")
    );
    Ok(Output::new(text, &document(first, false)))
}

fn document(unit: &Unit, installed: bool) -> DaemonUnitDocument<'_> {
    DaemonUnitDocument {
        installed,
        how: unit.word(),
        file: unit.file().map(|file| file.display().to_string()),
        text: Some(unit.text()),
    }
}
