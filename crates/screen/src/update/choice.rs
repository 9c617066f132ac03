//! Choosing one of several answers: a rule, what is copied, whose plan is shown.

use super::{actions, copy, rules};
use crate::keys::Command;
use crate::message::Effect;
use crate::model::{Choice, ChoiceOf, Model, Overlay};

pub(super) fn command(model: &mut Model, command: Command) -> Vec<Effect> {
    // Taken off while it is handled; put back unless it is done.
    let Some(Overlay::Choice(mut choice)) = model.overlay.take() else { return Vec::new() };
    let count = choice.options.len().max(1);
    match command {
        Command::Down => choice.at = (choice.at + 1) % count,
        Command::Up => choice.at = (choice.at + count - 1) % count,
        Command::Accept => return chosen(model, choice).unwrap_or_default(),
        _ => return Vec::new(),
    }
    model.overlay = Some(Overlay::Choice(choice));
    Vec::new()
}

/// Does what the chosen answer says.
fn chosen(model: &mut Model, choice: Choice) -> Option<Vec<Effect>> {
    Some(match choice.of {
        ChoiceOf::Rule(job) => {
            let (rule, _) = choice.options.get(choice.at)?;
            rules::set(model, &job, rule)
        }
        ChoiceOf::Copy => {
            let (_, value) = choice.options.into_iter().nth(choice.at)?;
            copy::copied(model, &value.clone(), value)
        }
        ChoiceOf::Plan(plans) => {
            let (_, act) = plans.into_iter().nth(choice.at)?;
            actions::show_plan(model, act)
        }
    })
}
