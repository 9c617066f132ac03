//! `tpu files`: what a job wrote, and copies of it.

use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::JobFilesArgs;
use crate::cli::print::{Output, table};
use tpu_core::model::ids::JobId;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::text::{self, escape};
use tpu_ops::act::results::{self, InTree, Into, Results};
use tpu_ops::base::code_dir;
use tpu_ops::observe::tracked_run;
use tpu_ops::waiting::whose::Purpose;
use tpu_ops::{Ctx, Error};
use tpu_wire::files::{CopiedFilesDocument, FilesDocument};
use tpu_wire::jobs::JobIdPart;

/// `files`.
pub(in crate::cli) fn files(app: &App, args: &JobFilesArgs) -> Outcome {
    let ctx = app.ctx()?;
    let id = app.requester()?.one_job(&args.words, Purpose::Look)?;
    if !args.get.is_empty() {
        return get(ctx, &id, (args, app.global.yes));
    }
    if args.to.is_some() {
        return Err(Error::usage("--to needs --get: it says where the copied files go")
            .hint(format!("tpu files {} --get PATH --to DIR", id.window)));
    }
    let results = results::of(ctx, &id)?;
    let zone = app.zone(&*ctx.data()?, Some(&id.user))?;
    let run = tracked_run::link(ctx, &id);
    let document = FilesDocument::of(&id, (&results, run.as_deref()), usize::MAX);
    let run = run.iter().map(|link| format!("Its run: {}\n", escape(link)));
    let text = listed(ctx, &id, &results, &zone) + &run.collect::<String>();
    Ok(Output::new(text, &document))
}

fn get(ctx: &Ctx, id: &JobId, (args, yes): (&JobFilesArgs, bool)) -> Outcome {
    let dir = Path::new(args.to.as_deref().unwrap_or("."));
    // Here lie the files that are being worked on.
    let into = Into { dir, replaces: yes || args.to.is_some() };
    let copied = results::get(ctx, id, &args.get, into)?;
    let files: Vec<String> =
        copied.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let here = |path: &String| format!("Copied {}", escape(&code_dir::shown(ctx, path)));
    let text = files.iter().map(here).collect::<Vec<_>>().join("\n");
    Ok(Output::new(text, &CopiedFilesDocument { job: JobIdPart::from(id), files }))
}

fn listed(ctx: &Ctx, id: &JobId, results: &Results, zone: &Zone) -> String {
    let shown = |path: &str| escape(&code_dir::shown(ctx, path)).into_owned();
    let others = if results.is_shared { " and the others of its group" } else { "" };
    let mut text = format!("Files of {id}{others} in {}\n", shown(&results.dir));
    if results.files.is_empty() {
        text += "It wrote no file there.\n";
    } else {
        let row = |file: &InTree| {
            vec![
                escape(&file.path.to_string_lossy()).into_owned(),
                text::bytes(file.bytes),
                zone.stamp(Timestamp::from_second(file.written.0)),
            ]
        };
        let rows: Vec<Vec<String>> = results.files.iter().map(row).collect();
        text += &table::columns(&["file", "size", "written"], &rows);
        text += &format!("To copy one here: tpu files {} --get PATH\n", id.window);
    }
    for link in &results.linked {
        let to = link.leads_to.as_deref().unwrap_or(&link.path);
        text += &format!(
            "{} is {}: what it wrote there is there.\n",
            escape(&link.path.to_string_lossy()),
            shown(&to.to_string_lossy()),
        );
    }
    text
}
