//! Which words a short name may not be: those that mean something wherever a short name can stand.

use crate::model::data::Data;
use crate::model::ids::TargetName;
use crate::model::rules::{Action, NAMED};
use crate::model::target::Target;
use crate::plan::types::{TypeExpr, parse_type};

use super::Error;

/// Keys of the grammar, and the letters that stand for some of them.
const KEYS: [&str; 25] = [
    "tag", "dir", "rule", "user", "id", "w", "window", "windows", "tpu", "ka", "zone", "ssn",
    "monitor", "config", "s", "m", "n", "t", "v", "d", "type", "status", "name", "style", "all",
];

/// Sizes of types begin here: `v2-1` is the first of somebody's targets and no type.
const SMALLEST_SIZE: u32 = 4;

/// Refuses a short name that already means something; `commands` are the words of the command line.
pub(super) fn refuse_taken(data: &Data, name: &str, commands: &[String]) -> Result<(), Error> {
    match meaning(data, name, commands) {
        None => Ok(()),
        Some(meaning) => {
            Err(Error::refused(format!("'{name}' already means something: {meaning}"))
                .hint("take another short name, or add something to it"))
        }
    }
}

/// What a name means already, if it means anything.
fn meaning(data: &Data, name: &str, commands: &[String]) -> Option<&'static str> {
    meaning_in_grammar(name, commands).or_else(|| {
        if data.users().iter().any(|user| user.name.as_str() == name) {
            Some("it is a user")
        } else if data.registry().is_known_beside_aliases(&TargetName::from(name)) {
            Some("it is a target")
        } else {
            None
        }
    })
}

/// What a name means on the command line, whatever users and targets there are.
pub(super) fn meaning_in_grammar(name: &str, commands: &[String]) -> Option<&'static str> {
    let is_truth = ["true", "false"].contains(&name.to_ascii_lowercase().as_str());
    if KEYS.contains(&name) || is_truth {
        Some("it is a word of the grammar, as in tag=NAME")
    } else if commands.iter().any(|command| command == name) {
        Some("it is a command")
    } else if Target::built_in().iter().any(|target| target.name.as_str() == name) {
        Some("it is this machine")
    } else if NAMED.contains(&name) || Action::parse(name).is_some() {
        Some("it is a rule")
    } else if is_type(name) {
        Some("it is a type of accelerator")
    } else if name.chars().all(|c| c.is_ascii_digit()) {
        Some("it is a number, which is a window")
    } else {
        None
    }
}

fn is_type(name: &str) -> bool {
    match parse_type(name) {
        Some(of) => of.size >= SMALLEST_SIZE || of.variant.is_some(),
        None => TypeExpr::parse(name).is_some(),
    }
}
