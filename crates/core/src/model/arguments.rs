//! How a program takes its arguments: what `lr=0.05` becomes, and what a restart adds.

use serde::Serialize;

use super::launch::Checkpoint;
use super::read::{self, DataError, Json, Path};
use super::words::words;

/// How a program takes `key=value`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentStyle {
    /// `--config.training.learning_rate=0.05`, by the aliases of the user, as programs of the original take it; a resume adds
    /// `--config.load_from=DIR`.
    #[default]
    Config,
    /// `--lr=0.05`; a resume adds nothing.
    Flags,
    /// `lr=0.05`, as Hydra takes it; a resume adds nothing.
    Hydra,
}

words! {
    /// The spelling in settings, job files and records.
    ArgumentStyle {
        Config: "config",
        Flags: "flags",
        Hydra: "hydra",
    }
}

impl ArgumentStyle {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.as_str() == text)
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        read::one_of(value, path, Self::parse, "config, flags or hydra")
    }

    /// The argument that gives the program a value.
    pub fn argument(self, name: &str, value: &str) -> String {
        match self {
            Self::Config | Self::Flags => format!("--{name}={value}"),
            Self::Hydra => format!("{name}={value}"),
        }
    }
}

/// What stands for something in `resume_args`.
const FIELDS: [&str; 4] = ["{checkpoint}", "{checkpoint_dir}", "{step}", "{attempt}"];

/// Reads a template of arguments that a resume adds: `--resume {checkpoint}`.
pub(super) fn read_template(value: Json<'_>, path: &Path<'_>) -> Result<Option<String>, DataError> {
    if value.is_null() {
        return Ok(None);
    }
    let text = read::text(value, path)?;
    match template(&text) {
        Ok(_) => Ok(Some(text)),
        Err(expected) => Err(path.error(expected, Some(value))),
    }
}

/// The words of such a template, or what it should be.
pub fn template(text: &str) -> Result<Vec<String>, &'static str> {
    let words = shlex::split(text).ok_or("arguments with closed quotes")?;
    let is_known = |word: &String| {
        let rest = FIELDS.iter().fold(word.clone(), |rest, field| rest.replace(field, ""));
        !rest.contains(['{', '}'])
    };
    if words.iter().all(is_known) {
        Ok(words)
    } else {
        Err("arguments with {checkpoint}, {checkpoint_dir}, {step} or {attempt}")
    }
}

/// What a resume adds by such a template. An option whose value is empty is left out: `--resume {checkpoint}` where there
/// is no checkpoint.
pub fn resume_arguments(text: &str, from: Option<&Checkpoint>, attempt: u32) -> Vec<String> {
    let step = from.and_then(|from| from.step).map(|step| step.to_string()).unwrap_or_default();
    let path = from.and_then(|from| from.path.clone()).unwrap_or_default();
    let dir = from.map(|from| from.dir.clone()).unwrap_or_default();
    let values = [path, dir, step, attempt.to_string()];
    let fields = || FIELDS.iter().zip(&values);
    let mut arguments: Vec<String> = Vec::new();
    let mut is_after_option = false;
    for word in template(text).unwrap_or_default() {
        let is_empty = fields().any(|(field, value)| value.is_empty() && word.contains(field));
        if is_empty {
            if is_after_option && !word.starts_with('-') {
                arguments.pop();
            }
            is_after_option = false;
            continue;
        }
        // What a field stands for may look like another one.
        let mut rest = word.as_str();
        let mut filled = String::new();
        while let Some(at) = rest.find('{') {
            let (before, field) = rest.split_at(at);
            filled += before;
            let found = fields().find(|(name, _)| field.starts_with(**name));
            let (name, value) = found.map_or(("{", "{"), |(name, value)| (*name, value));
            filled += value;
            rest = field.get(name.len()..).unwrap_or_default();
        }
        filled += rest;
        is_after_option = word.starts_with('-') && !word.contains('=');
        arguments.push(filled);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_without_a_value_is_left_out() {
        let from = Checkpoint {
            path: Some("/runs/{step}/ckpt 10.pt".to_owned()),
            dir: "/runs/{step}".to_owned(),
            step: Some(10),
        };
        let with = |text| resume_arguments(text, Some(&from), 2);
        assert_eq!(with("--resume {checkpoint}"), ["--resume", "/runs/{step}/ckpt 10.pt"]);
        assert_eq!(with("-q --at={step} {attempt}"), ["-q", "--at=10", "2"]);
        assert_eq!(with("resume={checkpoint_dir}/{step}"), ["resume=/runs/{step}/10"]);
        let without = |text| resume_arguments(text, None, 1);
        assert_eq!(without("--resume {checkpoint} --fast"), ["--fast"]);
        assert_eq!(without("--fast --resume={checkpoint} +x={step}"), ["--fast"]);
        assert_eq!(without("--fast {checkpoint} --attempt {attempt}"), ["--attempt", "1"]);
        let unknown = Checkpoint { path: None, step: None, ..from };
        let with = |text| resume_arguments(text, Some(&unknown), 1);
        assert_eq!(with("--resume {checkpoint} --dir {checkpoint_dir}"), ["--dir", "/runs/{step}"]);
    }

    #[test]
    fn a_template_has_fields_that_are_known() {
        template("--resume '{checkpoint}' --x={step}").unwrap();
        template("--resume {path}").unwrap_err();
        template("--resume '{checkpoint}").unwrap_err();
    }
}
