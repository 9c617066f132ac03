//! Tags, rules, withdrawn errors and the stage directory of one job; the tables of rules.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::{Output, table};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::JobId;
use tpu_core::model::rules::{NAMED, Rules};
use tpu_ops::Error;
use tpu_ops::act::launch::check::parse_rules;
use tpu_ops::act::selection::{self, Sorted};
use tpu_ops::base::ctx::job_of;
use tpu_ops::waiting::rules;
use tpu_ops::waiting::whose::Purpose;
use tpu_wire::jobs::{
    JobIdDocument, JobIdPart, RuleDocument, RulesDocument, StageDirDocument, TagDocument,
    TagsDocument,
};

use super::waiting::agree_to_change;

/// A job and the one further word that the command takes, which is free text: it is the second of two, unless it
/// alone can be a job.
fn job_and_word(app: &App, words: &[String], what: &str) -> Result<(Sorted, String), Error> {
    let data = app.ctx()?.data()?;
    let sorted_alone = |word: &String| selection::sort(std::slice::from_ref(word), &data);
    let mut has_window = false;
    let mut free: Vec<usize> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let sorted = sorted_alone(word)?;
        has_window |= !sorted.windows.is_empty();
        if !sorted.rest.is_empty() || !sorted.numbers.is_empty() {
            free.push(at);
        }
    }
    let is_job = |at: &usize| words.get(*at).is_some_and(|word| selection::is_job(&data, word));
    let at = match free.as_slice() {
        [one] if has_window => *one,
        [first, second] if !has_window && !is_job(first) && is_job(second) => *first,
        [_, second] if !has_window => *second,
        [] | [_] => {
            let name = what.to_uppercase();
            return Err(Error::usage(format!("which {what}?"))
                .hint(format!("as in: tpu {} 7 {name}", app.name)));
        }
        several => {
            let of_text = several.iter().filter(|at| !is_job(at));
            let texts: Vec<&str> =
                of_text.filter_map(|at| words.get(*at)).map(String::as_str).collect();
            let what = format!("one {what} at a time, please: {}", texts.join(" "));
            return Err(Error::usage(what).hint("put quotes around one that holds blanks"));
        }
    };
    let mut called = words.to_vec();
    let word = called.remove(at);
    Ok((selection::sort(&called, &data)?, word))
}

/// `add-tag`.
pub(in crate::cli) fn add_tag(app: &App, words: &[String]) -> Outcome {
    let (sorted, tag) = job_and_word(app, words, "tag")?;
    let jobs = app.requester()?.all_jobs_of(&*app.ctx()?.data()?, sorted, |_| true)?;
    agree_to_change(app, &jobs)?;
    rules::add_tag(app.ctx()?, &jobs, &tag)?;
    let names: Vec<String> = jobs.iter().map(JobId::to_string).collect();
    let text = format!("Tagged {}: {tag}", names.join(", "));
    if let [job] = jobs.as_slice() {
        return Ok(Output::new(text, &TagDocument { job: JobIdPart::from(job), tag: &tag }));
    }
    let document = TagsDocument { jobs: jobs.iter().map(JobIdPart::from).collect(), tag: &tag };
    Ok(Output::new(text, &document))
}

/// `set-rule`.
pub(in crate::cli) fn set_rule(app: &App, words: &[String]) -> Outcome {
    let (sorted, typed) = job_and_word(app, words, "rule")?;
    let job = app.requester()?.one_job_of(&*app.ctx()?.data()?, sorted, Purpose::Change)?;
    let parsed = parse_rules(&typed)?;
    agree_to_change(app, std::slice::from_ref(&job))?;
    rules::set_rule(app.ctx()?, &job, &parsed)?;
    Ok(Output::new(
        format!("{job} has the rules {parsed} now."),
        &RuleDocument { job: JobIdPart::from(&job), rule: &typed },
    ))
}

/// `ignore-error`.
pub(in crate::cli) fn ignore_error(app: &App, words: &[String]) -> Outcome {
    let job = app.requester()?.one_job(words, Purpose::Change)?;
    agree_to_change(app, std::slice::from_ref(&job))?;
    rules::ignore_error(app.ctx()?, &job)?;
    Ok(Output::new(
        format!("{job} counts as running until it prints another error."),
        &JobIdDocument { job: JobIdPart::from(&job) },
    ))
}

/// `get-stage-dir`.
pub(in crate::cli) fn stage_dir(app: &App, words: &[String]) -> Outcome {
    let id = app.requester()?.one_job(words, Purpose::Look)?;
    let data = app.ctx()?.data()?;
    match &job_of(&data, &id)?.stage_dir {
        Some(dir) => Ok(Output::new(dir.clone(), &StageDirDocument { stage_dir: dir })),
        None => Err(Error::not_found(format!("{id} has not reported a stage directory"))
            .hint("staging.sh reports it with tpu upd-log")),
    }
}

/// `check-rules`: the very tables that the engine uses.
pub(in crate::cli) fn check_rules() -> Output {
    let named: Vec<(&str, Rules)> =
        NAMED.into_iter().filter_map(|name| Some((name, Rules::named(name)?))).collect();
    let mut head = vec!["event"];
    head.extend(named.iter().map(|(name, _)| *name));
    let rows: Vec<Vec<String>> = ErrorKind::ALL
        .into_iter()
        .map(|kind| {
            let actions = named.iter().map(|(_, rules)| rules.action(kind).as_str().to_owned());
            std::iter::once(kind.as_str().to_owned()).chain(actions).collect()
        })
        .collect();
    let mut text = table::columns(&head, &rows);
    text += "\npre is the default on preemptible and spot targets, pass elsewhere. Of your own: \
             rule=preempted:reapply,grpc:rerun\n";
    Output::new(text, &RulesDocument::named())
}
