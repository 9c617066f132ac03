//! The rule of a job: what happens by itself when it fails.

use super::act;
use crate::message::{Act, Effect};
use crate::model::{Choice, ChoiceOf, Model, Overlay};
use tpu_core::model::ids::JobId;
use tpu_core::model::rules::{Action, NAMED, Rules};
use tpu_core::text;

/// Lets the person choose the rule of the selected job; the one that it has is marked.
pub(super) fn choose(model: &mut Model) {
    let Some(job) = model.selected() else { return };
    let now = job.rules.name();
    let options: Vec<(String, String)> = NAMED
        .iter()
        .map(|name| ((*name).to_owned(), in_words(&Rules::named(name).unwrap_or_default())))
        .collect();
    let at = options.iter().position(|(name, _)| Some(name.as_str()) == now).unwrap_or(0);
    let title = format!("What happens by itself when {} fails?", text::escape(&job.in_words()));
    let of = ChoiceOf::Rule(job.id.clone());
    model.overlay = Some(Overlay::Choice(Choice { title, options, at, of }));
}

/// `preempted: reapply, grpc: resume`; what passes is left out.
pub(super) fn in_words(rules: &Rules) -> String {
    let acts = rules.iter().filter(|(_, action)| *action != Action::Pass);
    let words: Vec<String> = acts.map(|(kind, action)| format!("{kind}: {action}")).collect();
    if words.is_empty() { "nothing, whatever happens".to_owned() } else { words.join(", ") }
}

/// Gives a job the rule that was chosen.
pub(super) fn set(model: &mut Model, job: &JobId, rule: &str) -> Vec<Effect> {
    act(model, Act::SetRule(job.clone(), rule.to_owned()))
}
