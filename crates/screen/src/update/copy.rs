//! `y`: what a job or a target is called and where it is, for the clipboard.

use super::note;
use crate::message::Effect;
use crate::model::{Choice, ChoiceOf, Model, Overlay, Page};
use crate::tabs::Tab;
use crate::view::page;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Lets the person choose what is copied of the selected job; the name of a target is all there is of it.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    if model.tab == Tab::Targets {
        let row = model.boards.chosen(model.tab);
        let targets = model.boards.targets.seen.as_ref().map(|seen| &seen.targets);
        let target = row.and_then(|row| Some(targets?.get(row.at)?.target.to_string()));
        return target.map_or_else(Vec::new, |target| copied(model, &target.clone(), target));
    }
    let Some(job) = model.selected() else { return Vec::new() };
    let title = format!("Copy which of {}?", text::escape(&job.in_words()));
    let options = offers(job);
    model.overlay = Some(Overlay::Choice(Choice { title, options, at: 0, of: ChoiceOf::Copy }));
    Vec::new()
}

/// What can be copied of a job, by its name: only what is known.
fn offers(job: &JobView) -> Vec<(String, String)> {
    let evidence = job.shown.evidence.as_ref().map(|evidence| evidence.line.clone());
    let all = [
        ("name", Some(job.called())),
        ("target", Some(job.target.to_string())),
        ("directory", Some(job.dir.1.clone())),
        ("log directory", job.log_dir.clone()),
        ("stage directory", job.stage_dir.clone()),
        ("arguments", Some(job.configs.clone())),
        ("what broke", evidence.filter(|_| job.failure().is_some())),
        ("address", address(&job.tail)),
    ];
    // What a paste into a shell would act on is shown, and copied, as an escape.
    let known = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), text::escape(&value?).into_owned())));
    known.filter(|(_, value)| !value.trim().is_empty()).collect()
}

/// The newest address of a page that the output names: trackers print the one of the run.
fn address(output: &str) -> Option<String> {
    let words =
        output.split(|c: char| c.is_whitespace() || c.is_control() || "\"'<>()[]".contains(c));
    let mut pages =
        words.filter(|word| word.starts_with("https://") || word.starts_with("http://"));
    pages.next_back().map(|page| page.trim_end_matches(['.', ',', ';', ':']).to_owned())
}

/// Copies a page whole.
pub(super) fn whole(model: &mut Model, page: &Page) -> Vec<Effect> {
    let Some(text) = page::as_text(model, page) else { return Vec::new() };
    let lines = text::counted(text.lines().count(), "line");
    copied(model, &lines, text)
}

/// Copies a text, and says so.
pub(super) fn copied(model: &mut Model, what: &str, text: String) -> Vec<Effect> {
    let what = text::cut(what, 60);
    note(
        model,
        format!("Copied {what}: to the terminal's clipboard, and inside tmux to its buffer."),
    );
    vec![Effect::Copy(text)]
}
