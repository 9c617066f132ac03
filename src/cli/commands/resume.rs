//! `tpu resume` and `tpu rerun`.

use crate::cli::Outcome;
use crate::cli::app::{App, Undone};
use crate::cli::args::Again;
use crate::cli::commands::jobfile::setup_how;
use crate::cli::commands::kill;
use crate::cli::commands::person::{make_usable, show_step};
use crate::cli::commands::run::{self, PlanInWords};
use crate::cli::commands::waiting::of_several;
use crate::cli::print::Output;
use tpu_core::model::job::{Job, Succession};
use tpu_core::model::setup::SetUpHow;
use tpu_core::model::view::JobView;
use tpu_core::plan::resume_from::{self, ResumeFrom};
use tpu_core::text::escape;
use tpu_ops::Error;
use tpu_ops::act::resume::{self, Again as AgainDone, AgainRequest};
use tpu_ops::act::{selection, stage};
use tpu_ops::base::called;
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::environment::{self, WhichEnvironment};
use tpu_wire::launches::{
    SuccessorDocument, SuccessorPart, SuccessorPlanDocument, SuccessorPlanPart, SuccessorsDocument,
};

/// From the last checkpoint, or from scratch.
pub(in crate::cli) fn again(app: &App, args: &Again, how: Succession) -> Outcome {
    let requests = requests(app, args, how)?;
    let [request] = requests.as_slice() else {
        return members_again(app, args, requests);
    };
    let request = from_nothing(app, although_killed(app, request.clone())?)?;
    if app.global.dry_run {
        let (plan, warnings) = resume::plan(app.ctx()?, &request)?;
        let PlanInWords { argv, script, text, refused } = run::in_words(app.ctx()?, &plan)?;
        let document = SuccessorPlanDocument {
            plan: SuccessorPlanPart {
                user: &plan.user,
                parent: request.job.window,
                target: &plan.target.name,
                dir: &plan.dir,
                stage: plan.stage,
                argv,
                script,
                refused: refused.as_ref().map(|refused| refused.message.clone()),
            },
        };
        let (code, why) = run::verdict(refused);
        return Ok(Output::new(text, &document).notes(warnings).notes(why).code(code));
    }
    let (text, again) = start(app, args, &request)?;
    Ok(Output::new(text, &SuccessorDocument::from(&again.launched)).notes(again.warnings))
}

/// Several jobs, one after the other; what speaks against one keeps the others from nothing.
fn members_again(app: &App, args: &Again, requests: Vec<AgainRequest>) -> Outcome {
    let (mut text, mut notes) = (String::new(), Vec::new());
    let (mut jobs, mut launched, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for request in requests {
        let asked = although_killed(app, request).and_then(|request| from_nothing(app, request));
        let done = asked.and_then(|request| {
            if app.global.dry_run {
                notes.extend(resume::plan(app.ctx()?, &request)?.1);
                jobs.push(request.job);
                return Ok(());
            }
            let (line, again) = start(app, args, &request)?;
            text += &format!("{line}\n");
            notes.extend(again.warnings);
            launched.push(again.launched);
            Ok(())
        });
        problems.extend(done.err());
    }
    let nothing = jobs.is_empty() && launched.is_empty();
    let output = if app.global.dry_run {
        kill::listed(app.ctx()?, "Would resume", &jobs)?
    } else {
        let successors = launched.iter().map(SuccessorPart::from).collect();
        Output::new(text, &SuccessorsDocument { successors })
    };
    of_several(output.notes(notes), nothing, problems)
}

/// Starts the successor of one job, and says so.
fn start(app: &App, args: &Again, request: &AgainRequest) -> Result<(String, AgainDone), Error> {
    let ctx = app.ctx()?;
    let target = match &request.target {
        Some(target) => target.clone(),
        None => job_of(&*ctx.data()?, &request.job)?.tpu.to_string(),
    };
    if make_usable(app, &target, args.apply)? {
        let provided = resume::provide_target(ctx, request, &mut |step| show_step(app, Some(step)));
        show_step(app, None);
        provided?;
    }
    let data = ctx.data()?;
    let job = job_of(&data, &request.job)?;
    let variables = match request.environment {
        WhichEnvironment::Kept => named(&environment::differing(ctx, job)),
        WhichEnvironment::OfNow | WhichEnvironment::Clean => None,
    };
    // It only says something, and refuses nothing.
    let changed = named(&stage::changed_in_place(ctx, job).unwrap_or_default());
    let mut again = resume::again(ctx, request)?;
    again.warnings.extend(variables.map(|names| {
        format!("it keeps the environment of its first start; {names} differ now: --env-now uses the current values")
    }));
    again.warnings.extend(changed.map(|files| {
        format!("it runs the code as it is now; changed since it first began: {files}")
    }));
    let launched = &again.launched;
    let done = match request.how {
        Succession::Resume => "Resumed",
        Succession::Rerun => "Started again",
    };
    let text = format!("{done} {} as {} on {}.", request.job, launched.job, launched.target);
    Ok((text, again))
}

/// The first of some names, and how many more there are; `None` without any.
fn named(names: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let (shown, more) = names.split_at(names.len().min(SHOWN));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!shown.is_empty()).then(|| escape(&shown.join(", ")).into_owned() + &more)
}

/// Asks whether a job is to be started again that a person has killed.
fn although_killed(app: &App, request: AgainRequest) -> Result<AgainRequest, Error> {
    let data = app.ctx()?.data()?;
    if request.force || !data.job(&request.job).is_some_and(Job::is_killed) {
        return Ok(request);
    }
    let verb = request.how.verb();
    let request = AgainRequest { however_ended: true, ..request };
    if app.asks() {
        // What would be refused is refused before anybody is asked.
        resume::plan(app.ctx()?, &request)?;
        let hint =
            format!("`-y` answers yes: tpu {verb} {} {} -y", request.job.window, request.job.user);
        let undone = Undone { what: "nothing was started", hint: &hint };
        app.agree(&format!("{} was killed: {verb} it?", request.job), undone)?;
    }
    Ok(request)
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
    let which = kill::names(ctx, std::slice::from_ref(job))?;
    let question =
        format!("{which} has nothing to resume from: {why}. Start it again from scratch?");
    let from_nothing = app.confirm(&question)?;
    Ok(AgainRequest { from_nothing, ..request })
}

fn requests(app: &App, args: &Again, how: Succession) -> Result<Vec<AgainRequest>, Error> {
    let data = app.ctx()?.data()?;
    let mut sorted = selection::sort(&args.words, &data)?;
    let mut target = sorted.take("tpu").or_else(|| sorted.take("ka"));
    if target.is_none() {
        // The one word that may name the job names no target.
        let is_job = |word: &str| {
            let is_alone = sorted.rest.len() + sorted.numbers.len() + sorted.windows.len() == 1;
            is_alone && called::is_name(&data, word)
        };
        let is_target = |word: &String| data.resolve_target(word).is_some() && !is_job(word);
        let at = sorted.rest.iter().position(is_target);
        target = at.map(|at| sorted.rest.remove(at));
    }
    let applies = |view: &JobView| {
        let is_over = view.shown.unknown.is_none() && !view.shown.status.is_live();
        // What a person has killed is started again only where it is named.
        let is_killed = data.job(&view.id).is_some_and(Job::is_killed);
        view.failure().is_some() && !is_killed || args.force && is_over
    };
    let jobs = app.requester()?.all_jobs_of(&data, sorted, applies)?;
    let (force, from_nothing) = (args.force, app.global.yes);
    let setup = match &args.setup {
        None => SetUpHow::Auto,
        Some(typed) => setup_how(typed)?,
    };
    let environment = match (args.env_now, args.clean_env) {
        (true, _) => WhichEnvironment::OfNow,
        (_, true) => WhichEnvironment::Clean,
        _ => WhichEnvironment::Kept,
    };
    let (on, turn) = (None, None);
    let of = |job| AgainRequest {
        job,
        how,
        target: target.clone(),
        on: on.clone(),
        force,
        however_ended: args.however_ended,
        from_nothing,
        setup,
        turn: turn.clone(),
        environment,
    };
    Ok(jobs.into_iter().map(of).collect())
}
