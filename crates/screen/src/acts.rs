//! What the acts of keys do, and what they would do: each is one use case, called by values.

use super::message::{Act, Did, Problem, ids};
use tpu_core::model::entry::Priority;
use tpu_core::model::execution::Copying;
use tpu_core::model::ids::{JobId, QueueName, TargetName};
use tpu_core::model::job::Succession;
use tpu_core::model::member::Array;
use tpu_core::model::setup::SetUpHow;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::sweep::Sweep;
use tpu_core::text;
use tpu_ops::act::hosts::edit as hosts;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::launch::check::parse_rules;
use tpu_ops::act::provision::{self, Insistence};
use tpu_ops::act::recipes;
use tpu_ops::act::resume::{self, AgainRequest};
use tpu_ops::act::target_spec::Wish;
use tpu_ops::act::{kill, service};
use tpu_ops::base::called::JobWord;
use tpu_ops::base::code_dir;
use tpu_ops::base::environment::WhichEnvironment;
use tpu_ops::base::named::resolve_target;
use tpu_ops::front::clean::{self, Ends, Extent};
use tpu_ops::front::dry_run;
use tpu_ops::observe::fleet;
use tpu_ops::waiting::begin::{self, QueueOutcome, QueueRequest, When};
use tpu_ops::waiting::queue::keep::Nobody;
use tpu_ops::waiting::queue::submit::Submission;
use tpu_ops::waiting::queue::wanted::wanted;
use tpu_ops::waiting::queue::{edit, pass};
use tpu_ops::waiting::rules;
use tpu_ops::{Ctx, Error};

/// Does it. `flags` are the global flags that a daemon is to have. Typed commands are
/// nobody's here.
pub(super) fn carry_out(ctx: &Ctx, flags: &[String], act: &Act) -> Result<Did, Problem> {
    let words = match act {
        Act::Resume(job) => again(ctx, job, Succession::Resume),
        Act::Rerun(job) => again(ctx, job, Succession::Rerun),
        Act::Kill(jobs) => kill(ctx, jobs),
        Act::TakeOut { waiting, kill: jobs } => {
            edit::dequeue(ctx, waiting)?;
            let mut told = vec![format!("{} taken out of the queue", ids(waiting))];
            if !jobs.is_empty() {
                told.push(kill(ctx, jobs)?);
            }
            Ok(begun(ctx, told))
        }
        Act::Hold(waiting) => {
            edit::hold(ctx, waiting, None)?;
            Ok(begun(ctx, vec![format!("{} held", ids(waiting))]))
        }
        Act::Release(waiting) => {
            edit::unhold(ctx, waiting)?;
            Ok(begun(ctx, vec![format!("{}: begins when its turn comes", ids(waiting))]))
        }
        Act::SetPriority(job, priority) => {
            edit::set_priority(ctx, std::slice::from_ref(job), *priority)?;
            Ok(begun(ctx, vec![format!("{job} has priority {priority}")]))
        }
        Act::MoveFirst(waiting) => {
            still_wait(ctx, waiting)?;
            edit::move_to_front(ctx, waiting)?;
            Ok(begun(ctx, vec![format!("{}: first of its priority", ids(waiting))]))
        }
        Act::Clean(user) => {
            let cleaned = clean::clean(ctx, user, Extent::of(Ends::All))?;
            let said = [vec![cleaned.summary()], cleaned.remarks()].concat();
            Ok(said.join(" "))
        }
        Act::Tag(job, tag) => {
            rules::add_tag(ctx, std::slice::from_ref(job), tag)?;
            Ok(if tag.is_empty() {
                format!("{job} has no tag now")
            } else {
                format!("tagged {job}: {tag}")
            })
        }
        Act::SetRule(job, rule) => {
            let parsed = parse_rules(rule)?;
            rules::set_rule(ctx, job, &parsed)?;
            Ok(format!("{job} has the rules {parsed} now."))
        }
        Act::IgnoreError(job) => {
            rules::ignore_error(ctx, job)?;
            Ok(format!("{job} counts as running until it prints another error."))
        }
        Act::Reapply { target, then_resume } => {
            let fact = provision::provide(ctx, target, &Wish::default(), true)?;
            let made = format!("{target} is {}.", fact.raw_state);
            match then_resume {
                Some(job) => Ok(format!("{made} {}", again(ctx, job, Succession::Resume)?)),
                None => Ok(made),
            }
        }
        Act::Solve(target) => solve(ctx, target),
        Act::Drain(target) => {
            hosts::drain(ctx, &[target.as_str().to_owned()], None)?;
            Ok(format!("{target} takes no new jobs; what runs there goes on."))
        }
        Act::Undrain(target) => {
            hosts::undrain(ctx, &[target.as_str().to_owned()])?;
            Ok(format!("{target} takes jobs again."))
        }
        Act::StartDaemon => {
            let how = service::How { flags: flags.to_vec(), ..service::How::default() };
            let runs = service::start(ctx, &how)?;
            Ok(format!("The daemon runs: {}.", runs.in_words(ctx)))
        }
        Act::StopDaemon => {
            service::stop(ctx)?;
            Ok("The daemon has stopped. Running jobs continue; failed jobs are not restarted."
                .into())
        }
        Act::Run(request) => {
            let outcome = begin::start(ctx, &with_code(ctx, request)?, When::Now, &Nobody)?;
            return Ok(Did { words: outcome.in_words(), began: outcome.job().cloned() });
        }
        Act::Submit { request, queue, priority, sweep } => {
            let waiting = waiting(ctx, request, queue, *priority, sweep.as_ref())?;
            match begin::queue(ctx, &QueueRequest::of(&waiting))? {
                QueueOutcome::New(queued) => {
                    let began = queued.jobs.first().map(|job| job.id.clone());
                    let mut told = queued.in_words(ctx)?;
                    told.extend(queued.trouble);
                    return Ok(Did { words: told.join(" "), began });
                }
                QueueOutcome::Answered(_) | QueueOutcome::Would(_) => Err(no_act()),
            }
        }
        Act::Command(_) | Act::Confirmed(_) => Err(no_act()),
    };
    words.map(Did::from)
}

/// Says what it would do, without doing anything.
pub(super) fn would(ctx: &Ctx, act: &Act) -> Result<String, Problem> {
    let nothing_else = |what: String| format!("Would {what}. Nothing was changed.");
    Ok(match act {
        Act::Resume(job) => would_go_on(ctx, job, Succession::Resume)?,
        Act::Rerun(job) => would_go_on(ctx, job, Succession::Rerun)?,
        Act::Kill(jobs) => {
            let (can, problems) = kill::dry_run(ctx, jobs, false);
            let can: Vec<String> = can.iter().map(JobId::to_string).collect();
            match Error::all(problems) {
                Some(error) if can.is_empty() => return Err(error.into()),
                other => {
                    let would = format!("Would kill {}.", can.join(", "));
                    other.map_or(would.clone(), |error| format!("{would}\n{}", error.message))
                }
            }
        }
        Act::Clean(user) => {
            clean::dry_run_clean(ctx, user, Extent::of(Ends::All))?.would_in_words(user)
        }
        Act::IgnoreError(job) => {
            rules::may_ignore_error(ctx, job)?;
            nothing_else(format!("count {job} as running until it prints another error"))
        }
        Act::Reapply { target, .. } => {
            dry_run::remake(ctx, target, &Wish::default(), true)?.to_text()
        }
        Act::Solve(target) => {
            let before = match fleet::obstacle(ctx, target.as_str())? {
                Some(_) => dry_run::remake(ctx, target, &Wish::default(), false)?.to_text(),
                None => dry_run::line("target", target.as_str()),
            };
            before + &dry_run::recipe_to_text(ctx, &solving(ctx, target)?)?
        }
        Act::Run(request) => {
            let request = with_code(ctx, request)?;
            begin::start(&ctx.dry_run(), &request, When::Now, &Nobody)?.in_words()
        }
        Act::Submit { request, queue, priority, sweep } => {
            let (dry, waiting) =
                (ctx.dry_run(), waiting(ctx, request, queue, *priority, sweep.as_ref())?);
            begin::queue(&dry, &QueueRequest::of(&waiting))?;
            let known = edit::find(&*ctx.data()?, queue)?;
            let mut how = dry_run::line("queue", &format!("{queue}: {}", edit::in_words(&known)))
                + &dry_run::line("priority", &priority.to_string());
            let mut one = in_turn(ctx, request)?;
            if let Some(sweep) = sweep {
                let members = text::counted(sweep.members(), "job");
                let limit = request.spec.array.as_ref().and_then(Array::at_once);
                let limit = limit.map(|most| format!(", {most} at once")).unwrap_or_default();
                let all = format!("{members}{limit}: {}; the first one:", sweep.in_words());
                how += &dry_run::line("sweep", &all);
                one.spec.configs.extend(sweep.given(0));
                one.spec.array = None;
            }
            match begin::start(&dry, &one, When::Now, &Nobody) {
                Ok(plan) => how + &plan.in_words(),
                Err(error) => how + &dry_run::line("now", &error.message),
            }
        }
        Act::StartDaemon => {
            service::is_free(ctx)?;
            service::may_start(ctx, &service::How::default())?;
            nothing_else("start the daemon".to_owned())
        }
        Act::StopDaemon => {
            service::may_stop(ctx)?;
            nothing_else("end the daemon".to_owned())
        }
        Act::Drain(target) => nothing_else(format!("let nothing new begin on {target}")),
        Act::Undrain(target) => nothing_else(format!("let jobs begin on {target} again")),
        Act::TakeOut { waiting, .. } | Act::Hold(waiting) | Act::MoveFirst(waiting) => {
            still_wait(ctx, waiting)?;
            match act {
                Act::TakeOut { .. } => {
                    nothing_else(format!("take {} out of the queue", ids(waiting)))
                }
                Act::Hold(_) => nothing_else(format!("hold {}", ids(waiting))),
                _ => nothing_else(format!("let {} begin first of its priority", ids(waiting))),
            }
        }
        Act::Tag(..) | Act::SetRule(..) | Act::Release(_) | Act::SetPriority(..) => {
            nothing_else(act.progressive())
        }
        Act::Command(_) | Act::Confirmed(_) => return Err(no_act()),
    })
}

/// A typed command is run by the command line, as are its questions.
fn no_act() -> Problem {
    Problem::new("an error inside tpu: a typed command is no act of a key", "please report it")
}

fn request(job: &JobId, how: Succession) -> AgainRequest {
    AgainRequest {
        job: job.clone(),
        how,
        target: None,
        on: None,
        force: false,
        however_ended: false,
        from_nothing: false,
        setup: SetUpHow::Auto,
        turn: None,
        environment: WhichEnvironment::Kept,
    }
}

fn again(ctx: &Ctx, job: &JobId, how: Succession) -> Result<String, Problem> {
    let again = resume::again(ctx, &request(job, how))?;
    let from = again.from_step.map(|step| format!(" from step {step}")).unwrap_or_default();
    let how = match how {
        Succession::Resume => "goes on",
        Succession::Rerun => "begins from scratch",
    };
    let mut toast = format!("{job} {how}{from} as {}", again.launched.job);
    for warning in again.warnings {
        toast += &format!("; {warning}");
    }
    Ok(toast)
}

fn would_go_on(ctx: &Ctx, job: &JobId, how: Succession) -> Result<String, Error> {
    let (plan, warnings) = resume::plan(ctx, &request(job, how))?;
    Ok(warnings.into_iter().fold(plan.to_text(), |text, warning| text + &warning + "\n"))
}

/// A job and how it waits.
fn waiting(
    ctx: &Ctx,
    request: &RunRequest,
    queue: &QueueName,
    priority: Priority,
    sweep: Option<&Sweep>,
) -> Result<[(RunRequest, Submission); 1], Error> {
    let (queue, sweep) = (queue.clone(), sweep.cloned());
    let how = Submission { queue, priority, sweep, ..Submission::default() };
    Ok([(in_turn(ctx, request)?, how)])
}

/// The same, with the code of the directory that its form names.
fn with_code(ctx: &Ctx, request: &RunRequest) -> Result<RunRequest, Error> {
    let mut request = request.clone();
    let spec = &mut request.spec;
    code_dir::stand_in_typed(ctx, spec)?;
    if spec.command.is_some() && spec.code.is_some() {
        spec.execution.copying = Copying::KnownWithLinks;
        spec.execution.outputs = ctx.settings(ctx.data()?.user(&request.user))?.outputs;
    }
    Ok(request)
}

/// A job as it waits: the word for its target may mean any of several.
fn in_turn(ctx: &Ctx, request: &RunRequest) -> Result<RunRequest, Error> {
    let mut request = with_code(ctx, request)?;
    if let TargetRequest::Named(word) = &request.spec.target {
        request.spec.target = wanted(&*ctx.data()?, word);
    }
    Ok(request)
}

/// Refuses what waits no more.
fn still_wait(ctx: &Ctx, waiting: &[JobId]) -> Result<(), Error> {
    let data = ctx.data()?;
    for id in waiting {
        let (_, gone) = edit::called(&data, &id.user, &[JobWord::Number(id.window)])?;
        Error::worst(gone).map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// What was done, and what has begun in the places that became free by it.
fn begun(ctx: &Ctx, mut told: Vec<String>) -> String {
    let (passage, trouble) = pass::look(ctx, usize::MAX);
    told.extend(passage.in_words().into_iter().chain(trouble));
    told.join("; ")
}

fn kill(ctx: &Ctx, jobs: &[JobId]) -> Result<String, Problem> {
    let (mut killed, mut told) = (Vec::new(), Vec::new());
    let mut problems = Vec::new();
    for (job, result) in kill::kill(ctx, jobs, false) {
        match result {
            Ok(done) => match done.was_not_running() {
                Some(text) => told.push(text),
                None => killed.push(job.to_string()),
            },
            Err(error) => problems.push(error),
        }
    }
    let killed = (!killed.is_empty()).then(|| format!("killed {}", killed.join(", ")));
    let done: Vec<String> = killed.into_iter().chain(told).collect();
    match Error::worst(problems) {
        None => Ok(done.join("; ")),
        Some(error) => {
            let message = done.into_iter().chain([error.message]).collect::<Vec<_>>().join("\n");
            Err(Error { message, ..error }.into())
        }
    }
}

/// The recipe of that name for a target.
fn solving(ctx: &Ctx, target: &TargetName) -> Result<recipes::Request, Error> {
    let target = resolve_target(&*ctx.data()?, target.as_str())?;
    Ok(recipes::Request { recipe: "solve".to_owned(), target, force: false })
}

/// The target first, then its machines.
fn solve(ctx: &Ctx, target: &TargetName) -> Result<String, Problem> {
    // A file with mistakes is an error before anything happens.
    recipes::read(ctx)?;
    let request = solving(ctx, target)?;
    if fleet::obstacle(ctx, target.as_str())?.is_some() {
        let how = (false, Insistence::ONCE);
        provision::insist(ctx, target, &Wish::default(), how, &mut |_| ())?;
    }
    let outcomes = recipes::run(ctx, &request, &mut |_| ())?;
    let said = recipes::in_words(&request, &outcomes);
    let bad: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.is_well())
        .map(|outcome| format!("worker {}: {}", outcome.worker, outcome.log.display()))
        .collect();
    if bad.is_empty() {
        return Ok(said.trim_end().to_owned());
    }
    let last = said.lines().next_back().unwrap_or_default().to_owned();
    Err(Problem::new(last, format!("its logs say why: {}", bad.join(", "))))
}
