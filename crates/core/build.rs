//! Writes the built-in rules down with the words that each of their expressions requires.
//!
//! Deriving those words takes a process longer than reading its panes does, so it is done here, once. The
//! test in `src/classify/builtin.rs` holds that this gives what reading `assets/patterns.toml` as a lab's
//! own file would give.

#[path = "src/classify/needles.rs"]
mod needles;

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use toml::Table;

const PATTERNS: &str = "../../assets/patterns.toml";

fn main() -> Result<(), Box<dyn Error>> {
    let mut cargo = std::io::stdout();
    for file in [PATTERNS, "build.rs", "src/classify/needles.rs"] {
        writeln!(cargo, "cargo::rerun-if-changed={file}")?;
    }
    let file: Table = std::fs::read_to_string(PATTERNS)?.parse()?;
    let lists = serde_json::to_value(file.get("unless"))?;
    let mut rules = serde_json::to_value(file.get("rule"))?;
    for rule in rules.as_array_mut().ok_or("no rules")? {
        let id = rule.get("id").map_or_else(String::new, Value::to_string);
        // They are tried by the tests, and take a fifth of the text.
        for field in ["examples", "counterexamples"] {
            drop(rule.as_object_mut().and_then(|rule| rule.remove(field)));
        }
        share(rule, &lists).map_err(|why| format!("{PATTERNS}: rule {id}: {why}"))?;
        for field in ["regex", "unless"] {
            if let Some(sources) = rule.get_mut(field) {
                let with_needles = expressions(sources);
                *sources = with_needles.map_err(|why| format!("{PATTERNS}: rule {id}: {why}"))?;
            }
        }
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo says there where a build script may write"
    )]
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    #[expect(clippy::disallowed_methods, reason = "nobody reads it before this program has ended")]
    std::fs::write(Path::new(&folder).join("patterns.json"), rules.to_string())?;
    Ok(())
}

/// Puts the lists that a rule names behind its own `unless`.
fn share(rule: &mut Value, lists: &Value) -> Result<(), Box<dyn Error>> {
    let rule = rule.as_object_mut().ok_or("it is no table")?;
    let Some(Value::Array(names)) = rule.remove("unless_lists") else { return Ok(()) };
    let mut all = match rule.remove("unless") {
        None => Vec::new(),
        Some(Value::Array(own)) => own,
        Some(own) => vec![own],
    };
    for name in &names {
        match name.as_str().and_then(|name| lists.get(name)) {
            Some(Value::Array(list)) => all.extend(list.iter().cloned()),
            Some(one) => all.push(one.clone()),
            None => return Err(format!("no list {name}").into()),
        }
    }
    rule.insert("unless".to_owned(), all.into());
    Ok(())
}

/// One expression or several, each with its needles: an `Expression` of `src/classify/builtin.rs`.
fn expressions(sources: &Value) -> Result<Value, Box<dyn Error>> {
    let one = std::slice::from_ref(sources);
    let mut all = Vec::new();
    for source in sources.as_array().map_or(one, Vec::as_slice) {
        let source = source.as_str().ok_or("an expression is no string")?;
        let needles = needles::read(source)?;
        let words = needles.words.iter().map(|needle| (&needle.word, needle.exact));
        all.push(json!((source, needles.leading, words.collect::<Vec<_>>())));
    }
    Ok(all.into())
}
