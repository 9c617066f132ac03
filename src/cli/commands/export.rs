//! `tpu export`: jobs, curves, events and logs for other programs, in a directory.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Export;
use crate::cli::print::Output;
use crate::cli::progress::Progress;
use tpu_core::text::{counted, escape};
use tpu_ops::base::code_dir;
use tpu_ops::front::export::{self, ExportReport, ExportRequest};
use tpu_ops::{Error, Kind};
use tpu_wire::leaving::ExportDocument;

/// `export`.
pub(in crate::cli) fn run(app: &App, args: &Export) -> Outcome {
    let ctx = app.ctx()?;
    let user = match args.words.as_slice() {
        [] if app.global.user.is_none() => None,
        [] => Some(app.user(&*ctx.data()?, None)?),
        words => Some(app.requester()?.only_user(words)?),
    };
    let dir = app.env.cwd.join(&args.dir).components().collect();
    let request = ExportRequest { dir, user, code: !args.no_code };
    let shown = code_dir::shown(ctx, &request.dir.to_string_lossy());
    if app.global.dry_run {
        export::may_begin(&request)?;
        let attempts = counted(export::count(ctx, &request)?, "attempt");
        return Ok(Output::would(&format!("write {attempts} into {shown}")));
    }
    let report = {
        let _line = Progress::new(app, "exporting");
        export::export(ctx, &request)?
    };
    let notes = report.missing.iter().map(said).collect();
    let text = format!("{} in {}.", in_words(&report), escape(&shown));
    let code = if report.is_cut_short() { Kind::Unreachable.exit_code() } else { 0 };
    Ok(Output::new(text, &ExportDocument::from(&report)).notes(notes).code(code))
}

fn said(error: &Error) -> String {
    format!("not exported: {}", error.message.lines().next().unwrap_or_default())
}

fn in_words(report: &ExportReport) -> String {
    let rows = report.rows.iter().map(|(name, count)| format!("{name}: {count}"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    let (logs, code) = (counted(report.logs, "log"), counted(report.code, "copy"));
    format!("Wrote {rows} (rows, as CSV and JSON), {logs} and the code of {code}")
}
