//! `tpu show` and `tpu script`: everything of one job in one place, and what started it.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{ScriptOfJob, ShowJob};
use crate::cli::print::Output;
use tpu_core::text::escape;
use tpu_ops::front::show;
use tpu_ops::waiting::whose::Purpose;
use tpu_wire::jobs::{JobIdPart, JobScriptDocument, ShowDocument, ToldDocument};

use super::history::lines;
use super::{check, queue};

/// `show`.
pub(in crate::cli) fn show(app: &App, args: &ShowJob) -> Outcome {
    let ctx = app.ctx()?;
    let found = app.requester()?.one_job(&args.words, Purpose::Look);
    let id = match found {
        Ok(id) => id,
        // What waits and has not begun.
        Err(error) if !args.raw => return queue::explain(app, &args.words)?.ok_or(error),
        Err(error) => return Err(error),
    };
    let job = JobIdPart::from(&id);
    if args.raw {
        let told = show::told(ctx, &id)?;
        return Ok(Output::new(told.clone(), &ToldDocument { job, raw: &told }));
    }
    let whole = show::whole(ctx, &id)?;
    let mut text = check::explained(app.ctx()?, &whole.view)?;
    let mut section = |name: &str, content: &str| {
        if !content.trim().is_empty() {
            text += &format!("\n{name}\n");
            for line in content.trim_end().lines() {
                text += &format!("  {}\n", escape(line));
            }
        }
    };
    let data = ctx.data()?;
    let happened = lines(app, (&data, &whole.events), &app.zone(&data, Some(&id.user))?);
    section("what has happened", &happened);
    section("what started it", whole.script.as_deref().unwrap_or_default());
    section(
        "what runs it says",
        match &whole.told {
            Ok(told) => told,
            Err(error) => &error.message,
        },
    );
    Ok(Output::new(text, &ShowDocument::from(&whole)))
}

/// `script`.
pub(in crate::cli) fn script(app: &App, args: &ScriptOfJob) -> Outcome {
    let id = app.requester()?.one_job(&args.words, Purpose::Look)?;
    if args.yaml {
        let (file, left_out) = show::as_file(app.ctx()?, &id)?;
        let document = JobScriptDocument { job: JobIdPart::from(&id), script: &file };
        let left_out = left_out.iter().map(|what| format!("# not said here: {}\n", escape(what)));
        return Ok(Output::new(left_out.collect::<String>() + &file, &document));
    }
    let script = show::script(app.ctx()?, &id)?;
    let document = JobScriptDocument { job: JobIdPart::from(&id), script: &script };
    Ok(Output::new(script.clone(), &document))
}
