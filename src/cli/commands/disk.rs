//! `tpu disk`: what lies on the disk of this machine, and how to remove it.

use std::path::{Path, PathBuf};

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::DiskArgs;
use crate::cli::print::{Output, table};
use crate::cli::progress::Progress;
use tpu_core::text::{self, escape};
use tpu_ops::Ctx;
use tpu_ops::base::code_dir;
use tpu_ops::front::disk_use::{self, DiskRow, DiskUse, FilePurpose};
use tpu_wire::disk::DiskDocument;

/// `disk`.
pub(in crate::cli) fn run(app: &App, args: &DiskArgs) -> Outcome {
    let ctx = app.ctx()?;
    let user = match args.words.as_slice() {
        [] => None,
        words => Some(app.requester()?.only_user(words)?),
    };
    let used = {
        let _line = Progress::new(app, "counting");
        disk_use::report(ctx, user.as_ref())?
    };
    let unread =
        |dir: &PathBuf| format!("{} could not be read, and is not counted", shown(ctx, dir));
    let notes = used.unread.iter().map(unread).collect();
    let text = || told(ctx, &used);
    Ok(Output::either(&app.global, text, || DiskDocument::from(&used)).notes(notes))
}

fn told(ctx: &Ctx, used: &DiskUse) -> String {
    let row = |row: &DiskRow| {
        let places: Vec<String> = row.places.iter().map(|place| shown(ctx, place)).collect();
        vec![in_words(row.purpose).to_owned(), text::bytes(row.bytes), places.join(", ")]
    };
    let mut rows: Vec<Vec<String>> = used.rows.iter().map(row).collect();
    rows.push(vec!["total".to_owned(), text::bytes(used.total()), String::new()]);
    let table = table::columns(&["what", "size", "where"], &rows);
    let kept = match used.keep_code.as_str() {
        "0" | "0s" | "0d" => "their code is removed at once".to_owned(),
        span => format!("their code is removed after {span}"),
    };
    format!(
        "{table}`tpu clean` moves ended jobs into the archive; {kept} (keep_code). What they wrote stays.\n\
         `tpu clean --with-results` removes that, too. Logs and checkpoints stay.\n"
    )
}

fn shown(ctx: &Ctx, path: &Path) -> String {
    escape(&code_dir::shown(ctx, &path.to_string_lossy())).into_owned()
}

fn in_words(purpose: FilePurpose) -> &'static str {
    match purpose {
        FilePurpose::Copies => "copies of code",
        FilePurpose::Results => "  of that, what jobs wrote",
        FilePurpose::Logs => "logs and checkpoints",
        FilePurpose::Backups => "backups of the state file",
        FilePurpose::Archive => "archive",
        FilePurpose::State => "other state",
    }
}
