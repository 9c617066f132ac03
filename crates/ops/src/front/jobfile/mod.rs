//! Job files: on the disk, and as requests.

pub mod body;
mod privileged;
pub mod ready;
mod strict_json;

use std::path::Path;

use tpu_engine::kinds::{KindOfTarget, KindOption, Kinds};
use tpu_jobfile::BadFile;
use tpu_jobfile::own::{KindKey, KindWords};
use tpu_jobfile::yaml::{self, Yaml};

use crate::{Ctx, Error};

/// The text of a file; `shown` is what a person called it.
pub fn text(ctx: &Ctx, path: &Path, shown: &str) -> Result<String, Error> {
    // A file that never ends is not read to its end.
    let bytes = ctx.store.disk().read_at(path, 0, yaml::LARGEST + 1).map_err(|e| {
        let what = format!("cannot read {shown}: {e}");
        let error = match e.kind() {
            std::io::ErrorKind::NotFound => Error::not_found(what),
            _ => Error::state(what),
        };
        error.hint(
            "name a file that is there, with its path from here: it holds a target: and a command:",
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Error::usage(format!("{shown}:{line}:{column}: it is no text in UTF-8"))
            .hint("save it as UTF-8; a file is read whole or not at all")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The documents of a file; `shown` is what a person called it.
pub fn documents(ctx: &Ctx, path: &Path, shown: &str) -> Result<Vec<Yaml>, Error> {
    let bad = |bad: BadFile| Error::usage(format!("{shown}{}", bad.in_words())).hint(bad.hint);
    yaml::read_all(&text(ctx, path, shown)?).map_err(bad)
}

/// What a file of jobs may say of a target of each kind.
pub fn kind_words(kinds: &Kinds) -> Vec<KindWords> {
    let key = |option: &KindOption| KindKey {
        option: option.name,
        also: option.in_file,
        is_many: option.is_many,
        takes_map: option.takes_map,
    };
    let words = |kind: &dyn KindOfTarget| KindWords {
        word: kind.word().to_string(),
        options: kind.job_options().iter().map(key).collect(),
    };
    kinds.all().map(words).collect()
}

/// Whether a word names a file of jobs: it ends in `.yaml` or `.yml`.
pub fn is_file(word: &str) -> bool {
    let end = Path::new(word).extension();
    !word.contains('=') && end.is_some_and(|end| end == "yaml" || end == "yml")
}
