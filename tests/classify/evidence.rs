//! The evidence of a failure is the line that a person wants to read, and it begins with the words that
//! matter.
//!
//! Texts stand in `tests/cases/classify/evidence.toml`.

use std::path::Path;

use serde::Deserialize;
use tpu_core::classify::{Classifier, Input};
use tpu_core::model::exit::Exit;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    class: String,
    exit_code: Option<i32>,
    /// Where the evidence begins; a text that shows no failure has none to check.
    shows: Option<String>,
    text: String,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/classify/evidence.toml");
    let text = std::fs::read_to_string(path).unwrap();
    toml::from_str::<Cases>(&text).unwrap().case
}

#[test]
fn the_words_that_say_why_come_first() {
    let mut wrong = String::new();
    for case in cases() {
        // As a window shows it, and as a terminal writes it.
        for text in [case.text.clone(), case.text.replace('\n', "\r\n")] {
            let input = Input {
                text: text.as_bytes(),
                exit: case.exit_code.map(Exit::Program),
                ..Input::default()
            };
            let verdict = Classifier::builtin().classify(&input);
            let shown = verdict.evidence.as_ref().map(|e| e.line.as_str()).unwrap_or_default();
            let begins = case.shows.as_deref().is_none_or(|words| shown.starts_with(words));
            if verdict.class.as_str() != case.class || !begins {
                wrong += &format!(
                    "{}\n  wanted {}: {:?}\n  found  {}: {:?}\n",
                    case.name,
                    case.class,
                    case.shows,
                    verdict.class.as_str(),
                    verdict.evidence
                );
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
