//! `tpu resume` and `tpu rerun`.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::Again;
use crate::cli::commands::run;
use crate::cli::print::Output;
use crate::model::job::Succession;
use crate::ops::resume::{self, AgainRequest};
use crate::ops::selection;
use crate::ops::whose::Purpose;
use crate::ops::{Error, ctx::job_of};
use crate::plan::resume_from::{self, ResumeFrom};
use crate::wire::launches::{SuccessorDocument, SuccessorPlanDocument, SuccessorPlanPart};

/// From the last checkpoint.
pub(in crate::cli) fn resume(app: &App, args: &Again) -> Outcome {
    again(app, args, Succession::Resume)
}

/// From scratch.
pub(in crate::cli) fn rerun(app: &App, args: &Again) -> Outcome {
    again(app, args, Succession::Rerun)
}

fn again(app: &App, args: &Again, how: Succession) -> Outcome {
    let ctx = app.ctx()?;
    let request = from_nothing(app, request(app, args, how)?)?;
    if app.global.dry_run {
        let (plan, warnings) = resume::plan(ctx, &request)?;
        let (argv, script, text) = run::in_words(ctx, &plan)?;
        let document = SuccessorPlanDocument {
            plan: SuccessorPlanPart {
                user: &plan.user,
                parent: request.job.window,
                target: &plan.target.name,
                dir: &plan.dir,
                stage: plan.stage,
                argv,
                script,
            },
        };
        return Ok(Output::new(text, &document).notes(warnings));
    }
    let target = match &request.target {
        Some(target) => target.clone(),
        None => job_of(&*ctx.data()?, &request.job)?.tpu.to_string(),
    };
    if run::make_usable(app, &target, args.apply)? {
        resume::provide_target(ctx, &request)?;
    }
    let again = resume::again(ctx, &request)?;
    let launched = again.launched;
    let done = match how {
        Succession::Resume => "Resumed",
        Succession::Rerun => "Started again",
    };
    let text =
        format!("{done} {} as window {} on {}.", request.job, launched.job.window, launched.target);
    Ok(Output::new(text, &SuccessorDocument::from(&launched)).notes(again.warnings))
}

/// Asks whether to start from scratch, where there is nothing to resume from.
fn from_nothing(app: &App, request: AgainRequest) -> Result<AgainRequest, Error> {
    let ctx = app.ctx()?;
    if request.from_nothing || !app.may_ask() {
        return Ok(request);
    }
    if app.global.dry_run {
        // A person would be asked, and may say yes.
        return Ok(AgainRequest { from_nothing: true, ..request });
    }
    // What speaks against it is said by the resume itself.
    let Ok(Some(ResumeFrom::Nothing(looked))) = resume::start_of(ctx, &request) else {
        return Ok(request);
    };
    let (job, why) = (&request.job, resume_from::nowhere(&looked));
    let question = format!("{job} has nothing to resume from: {why}. Start it again from scratch?");
    let from_nothing = app.confirm(&question)?;
    Ok(AgainRequest { from_nothing, ..request })
}

fn request(app: &App, args: &Again, how: Succession) -> Result<AgainRequest, Error> {
    let data = app.ctx()?.data()?;
    let mut sorted = selection::sort(&args.words, &data)?;
    let mut target = sorted.take("tpu").or_else(|| sorted.take("ka"));
    if target.is_none() {
        let at = sorted.rest.iter().position(|word| data.resolve_target(word).is_some());
        target = at.map(|at| sorted.rest.remove(at));
    }
    let job = app.requester()?.one_job_of(&data, sorted, Purpose::Change)?;
    let from_nothing = app.global.yes;
    Ok(AgainRequest { job, how, target, force: args.force, from_nothing })
}
