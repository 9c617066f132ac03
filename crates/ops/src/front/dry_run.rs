//! What making a target usable or anew, or following a recipe on it, would do: found out by looking alone,
//! so that a person can read it before it is done.

use tpu_core::model::facts::{TargetFact, TargetState, TargetStep};
use tpu_core::model::ids::TargetName;
use tpu_core::model::recipe::Step;
use tpu_core::model::time;
use tpu_core::text::escape;
use tpu_engine::provider::TargetSpec;

use crate::act::provision;
use crate::act::recipes::{self, Request};
use crate::act::target_spec::{self, Wish};
use crate::observe::fleet::ProviderFacts;
use crate::{Ctx, Error};

/// What would be done to a target itself.
#[derive(Clone, Debug)]
pub struct Remake {
    /// Which one.
    pub target: TargetName,
    /// What its control plane says of it, with how long that has been so.
    pub state: String,
    /// What would be done, in words.
    pub does: &'static str,
    /// What would be asked for.
    pub spec: TargetSpec,
}

/// What `apply` would do to a target; `anew`, what `reapply` would. Fails where they would: while a job uses
/// the target, or while nobody knows how it is.
pub fn remake(ctx: &Ctx, name: &TargetName, wish: &Wish, anew: bool) -> Result<Remake, Error> {
    provision::is_watched(ctx, name)?;
    if anew {
        provision::unused(ctx, name, None)?;
    }
    let data = ctx.data()?;
    let fact = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
    let spec = target_spec::spec(&data, name, wish, &fact)?;
    let does = does(&fact, anew)?;
    let since = fact.since.map(|since| ctx.clock.now().seconds_since(since));
    let age = since.map(|s| format!(" for {}", time::age(s))).unwrap_or_default();
    Ok(Remake { target: name.clone(), state: format!("{}{age}", fact.raw_state), does, spec })
}

/// The steps from a state to a usable target, in words.
fn does(fact: &TargetFact, anew: bool) -> Result<&'static str, Error> {
    Ok(match (fact.state.step(), anew) {
        (TargetStep::Launch | TargetStep::Start, true) => {
            "delete it with all that is on it, then create it"
        }
        (TargetStep::Launch, false) => "nothing: it is usable",
        (TargetStep::Start, false) => "start it",
        (TargetStep::Wait, _) if fact.state == TargetState::Deleting => {
            "wait until it is deleted, then create it"
        }
        (TargetStep::Wait, true) => "wait until it is usable, then delete it and create it",
        (TargetStep::Wait, false) => "wait until it is usable",
        (TargetStep::DeleteThenCreate, _) => "delete what is left of it, then create it",
        (TargetStep::Create, _) => "create it",
        (TargetStep::Nothing, _) => return Err(provision::unknown(&fact.name, &fact.raw_state)),
    })
}

impl Remake {
    /// For people: a line for each part.
    pub fn to_text(&self) -> String {
        let spec = &self.spec;
        let mut text = line("target", self.target.as_str());
        text += &line("state", &self.state);
        text += &line("would", self.does);
        text += &line("zone", &spec.zone);
        text += &line("type", &spec.accelerator);
        text += &line("pricing", spec.pricing.as_str());
        if let Some(version) = &spec.runtime_version {
            text += &line("version", version);
        }
        if spec.queued {
            text += &line("queued", "it waits for capacity in its place");
        }
        text
    }
}

/// What a recipe would do on each worker of its target: a line for each step.
pub fn recipe(ctx: &Ctx, request: &Request) -> Result<Vec<(String, String)>, Error> {
    let steps = recipes::steps(ctx, request)?;
    Ok(steps.into_iter().map(|step| (step.name.clone(), in_words(&step, request.force))).collect())
}

/// The same for people, behind what is said of the target.
pub fn recipe_to_text(ctx: &Ctx, request: &Request) -> Result<String, Error> {
    let steps = recipe(ctx, request)?;
    Ok(steps_to_text(request, &steps))
}

/// The steps of [`recipe`], for people.
pub fn steps_to_text(request: &Request, steps: &[(String, String)]) -> String {
    let mut text = line("recipe", &request.recipe);
    for (name, what) in steps {
        text += &line("on each", &escape(&format!("{name}: {what}")));
    }
    text
}

fn in_words(step: &Step, force: bool) -> String {
    let first = |command: &str| {
        let mut lines = command.trim().lines();
        let line = lines.next().unwrap_or_default().to_owned();
        if lines.next().is_some() { line + " …" } else { line }
    };
    match (&step.check, &step.setup) {
        (Some(check), Some(_)) if !force => format!("set up where this fails: {}", first(check)),
        (_, Some(setup)) => format!("set up: {}", first(setup)),
        (Some(check), None) => format!("look: {}", first(check)),
        (None, None) => "nothing".to_owned(),
    }
}

/// A name and a value in two columns.
pub fn line(name: &str, value: &str) -> String {
    format!("{name:<10} {value}\n")
}
