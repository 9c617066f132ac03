//! A key of a job, said once: how its value is read, how it is written, and what an editor is told of it.

use std::fmt;

use serde_json::{Value, json};

use crate::BadFile;
use crate::yaml::Yaml;
use tpu_core::model::arguments::{self, ArgumentStyle};
use tpu_core::model::capacity::Ask;
use tpu_core::model::entry::Priority;
use tpu_core::model::execution::is_output;
use tpu_core::model::notify::Receiver;
use tpu_core::model::policy::Policy;
use tpu_core::model::repeat::Repeat;
use tpu_core::model::rules::Rules;
use tpu_core::model::setup::Module;
use tpu_core::model::variables;
use tpu_core::text::either;

use super::values::{bad, bad_key, map, text, texts, truth, word};
use super::{KindWords, OwnJob, notify, repeat, schema, setup, written};

/// A sort of value, which a field of this type holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<T> {
    /// Reads the value of a key, which is named in problems.
    pub read: fn(&Yaml, &str) -> Result<T, BadFile>,
    /// Writes it; `None` where the default need not be said.
    pub write: fn(&T) -> Option<Yaml>,
    /// Its JSON Schema.
    pub schema: fn() -> Value,
}

/// What becomes of a key: the table of keys has one for each.
pub(super) trait Form: fmt::Debug + Sync {
    /// Reads its value into a job.
    fn read(&self, value: &Yaml, key: &str, job: &mut OwnJob) -> Result<(), BadFile>;

    /// Its value in the file of a job; `None` where it is left out.
    fn write(&self, job: &mut OwnJob) -> Option<Yaml>;

    /// The JSON Schema of its value.
    fn schema(&self, kinds: &[KindWords]) -> Value;
}

/// A key that is one field of a job: the sort of its value, and the field.
#[derive(Debug)]
pub(super) struct PlainKey<T>(pub Shape<T>, pub fn(&mut OwnJob) -> &mut T);

impl<T: fmt::Debug> Form for PlainKey<T> {
    fn read(&self, value: &Yaml, key: &str, job: &mut OwnJob) -> Result<(), BadFile> {
        *(self.1)(job) = (self.0.read)(value, key)?;
        Ok(())
    }

    fn write(&self, job: &mut OwnJob) -> Option<Yaml> {
        (self.0.write)((self.1)(job))
    }

    fn schema(&self, _: &[KindWords]) -> Value {
        (self.0.schema)()
    }
}

/// A key whose meaning depends on others, with which `job` reads it: how it is written, and its JSON Schema.
#[derive(Debug)]
pub(super) struct JointKey(pub fn(&OwnJob) -> Option<Yaml>, pub fn(&[KindWords]) -> Value);

impl Form for JointKey {
    fn read(&self, _: &Yaml, _: &str, _: &mut OwnJob) -> Result<(), BadFile> {
        Ok(())
    }

    fn write(&self, job: &mut OwnJob) -> Option<Yaml> {
        (self.0)(job)
    }

    fn schema(&self, kinds: &[KindWords]) -> Value {
        (self.1)(kinds)
    }
}

type Pairs = Vec<(String, String)>;

/// One value that is not blank. The reader shows an example where something else stands.
const fn line(read: fn(&Yaml, &str) -> Result<Option<String>, BadFile>) -> Shape<Option<String>> {
    Shape { read, write: |said| written::maybe(said.as_ref()), schema: schema::text }
}

fn line_as(value: &Yaml, key: &str, example: &str) -> Result<Option<String>, BadFile> {
    Ok(Some(text(value, key, example)?.to_owned()))
}

pub(super) const NAME: Shape<Option<String>> =
    line(|value, key| line_as(value, key, "name: train"));

pub(super) const QUEUE: Shape<Option<String>> =
    line(|value, key| line_as(value, key, "queue: night"));

pub(super) const TAG: Shape<Option<String>> = line(|value, key| line_as(value, key, "tag: TEXT"));

pub(super) const NOTES: Shape<Option<String>> =
    line(|value, key| line_as(value, key, "notes: TEXT"));

/// A file for what a command prints.
pub(super) const OUTPUT: Shape<Option<String>> = Shape { schema: schema::output, ..line(output) };

fn output(value: &Yaml, key: &str) -> Result<Option<String>, BadFile> {
    let file = text(value, key, "output: train.out")?;
    if file.contains('\n') || file.ends_with('/') {
        let what = format!("'{}' is no name of a file", file.escape_debug());
        return Err(bad(value, key, what, "as in output: train.out, or ~/logs/train.out"));
    }
    Ok(Some(file.to_owned()))
}

/// Events with what is done after them, or a name of rules.
pub(super) const RULES: Shape<Option<String>> = Shape { schema: schema::rules, ..line(rules) };

fn rules(value: &Yaml, key: &str) -> Result<Option<String>, BadFile> {
    const EXAMPLE: &str = "rules: {preempted: resume}";
    let check = |at: &Yaml, field: &str, typed: &str| {
        Rules::parse(typed).map(|_| ()).map_err(|what| {
            bad(at, field, format!("{what} is unknown"), "`tpu check-rules` lists them")
        })
    };
    if let Some(typed) = value.text() {
        check(value, key, typed)?;
        return Ok(Some(typed.to_owned()));
    }
    let mut all = Vec::new();
    for (kind, action) in map(value, key, EXAMPLE)? {
        let field = format!("{key}.{kind}");
        let rule = format!("{kind}:{}", text(action, &field, EXAMPLE)?);
        check(action, &field, &rule)?;
        all.push(rule);
    }
    Ok(Some(all.join(",")))
}

pub(super) const TRUTH: Shape<bool> =
    Shape { read: truth, write: |is| written::truth(*is), schema: schema::truth };

/// A time such as `30m`.
pub(super) const SECONDS: Shape<Option<u64>> = Shape {
    read: |value, key| setup::seconds(value, key).map(Some),
    write: |seconds| seconds.map(written::seconds),
    schema: schema::seconds,
};

/// All workers, or some of them by their numbers.
pub(super) const WORKERS: Shape<Option<Vec<u32>>> = Shape {
    read: setup::workers,
    write: |workers| workers.as_deref().and_then(written::workers),
    schema: schema::workers,
};

pub(super) const PRIORITY: Shape<Option<Priority>> = Shape {
    read: |value, key| {
        let priority = Priority::parse(text(value, key, "priority: 50")?);
        let bad = || bad(value, key, "no number from 0 to 100", "as in priority: 50");
        priority.ok_or_else(bad).map(Some)
    },
    write: |priority| priority.map(Priority::number).map(written::number),
    schema: || schema::whole(0, 100),
};

pub(super) const POLICY: Shape<Option<Policy>> = Shape {
    read: |value, key| {
        let policy = Policy::parse(text(value, key, "policy: smart")?);
        let bad = || bad(value, key, "no such policy", either(&Policy::ALL.map(Policy::as_str)));
        policy.ok_or_else(bad).map(Some)
    },
    write: |policy| policy.map(|policy| written::text(policy.as_str())),
    schema: || schema::choice(&Policy::ALL.map(Policy::as_str)),
};

pub(super) const REPEAT: Shape<Option<Repeat>> =
    Shape { read: repeat::read, write: |of| of.map(written::repeat), schema: schema::repeat };

pub(super) const NOTIFY: Shape<Option<Vec<Receiver>>> = Shape {
    read: |value, key| notify::read(value, key).map(Some),
    write: |of| of.as_deref().map(written::notify),
    schema: schema::notify,
};

pub(super) const SETUP: Shape<Vec<Module>> = Shape {
    read: setup::modules,
    write: |modules| written::list_of(modules.iter().map(written::module)),
    schema: || json!({ "type": "array", "items": schema::module() }),
};

/// Variables with their values.
pub(super) const ENV: Shape<Pairs> = Shape {
    read: env,
    write: |all| written::names(all),
    schema: || schema::names(&json!({ "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }), &schema::word()),
};

fn env(value: &Yaml, key: &str) -> Result<Pairs, BadFile> {
    let mut all = Vec::new();
    for (name, value) in map(value, key, "env: {WANDB_PROJECT: x}")? {
        let field = format!("{key}.{name}");
        variables::as_own(name).map_err(|(what, hint)| bad_key(value, &field, what, hint))?;
        if variables::looks_secret(name) {
            let what = "it looks like a secret, and would stand in data.json for all to read";
            return Err(bad_key(value, &field, what, format!("secrets: [{name}]")));
        }
        all.push((name.clone(), word(value, &field)?.to_owned()));
    }
    Ok(all)
}

/// How the program takes them.
pub(super) const ARGUMENTS: Shape<Option<ArgumentStyle>> = Shape {
    read: |value, key| {
        let style = ArgumentStyle::parse(text(value, key, "arguments: flags")?);
        let words = ArgumentStyle::ALL.map(ArgumentStyle::as_str);
        style.ok_or_else(|| bad(value, key, "no such style", either(&words))).map(Some)
    },
    write: |style| style.map(|style| written::text(style.as_str())),
    schema: || schema::choice(&ArgumentStyle::ALL.map(ArgumentStyle::as_str)),
};

/// What a resume adds to the arguments.
pub(super) const RESUME_ARGS: Shape<Option<String>> = line(|value, key| {
    let template = text(value, key, "resume_args: --resume {checkpoint}")?;
    let what =
        |expected| bad(value, key, format!("it should be {expected}"), "--resume {checkpoint}");
    arguments::template(template).map_err(what)?;
    Ok(Some(template.to_owned()))
});

/// The directory of its checkpoints.
pub(super) const CHECKPOINT_DIR: Shape<Option<String>> =
    line(|value, key| line_as(value, key, "checkpoint_dir: out/weights"));

/// Names and values for the program.
pub(super) const CONFIGS: Shape<Pairs> = Shape {
    read: configs,
    write: |all| written::names(all),
    schema: || schema::names(&json!({ "pattern": "^[^=]+$" }), &schema::word()),
};

fn configs(value: &Yaml, key: &str) -> Result<Pairs, BadFile> {
    let mut all = Vec::new();
    for (name, value) in map(value, key, "configs: {lr: 1e-3}")? {
        let field = format!("{key}.{name}");
        let is_own = ["user", "id", "w", "window", "windows", "dir", "tpu", "ka", "monitor"]
            .into_iter()
            .chain(["tag", "ssn", "rule"])
            .chain(Ask::KEYS)
            .any(|own| own == name);
        if is_own || name.is_empty() || name.contains('=') {
            let hint = "give it to the program in the command";
            return Err(bad_key(value, &field, "it cannot be the name of a config", hint));
        }
        all.push((name.clone(), word(value, &field)?.to_owned()));
    }
    Ok(all)
}

/// Directories below the code.
pub(super) const OUTPUTS: Shape<Vec<String>> = Shape {
    read: |value, key| {
        let all = texts(value, key, "outputs: [runs, wandb]")?.into_iter();
        let one = |(at, path): (&Yaml, &str)| {
            let hint = "as in outputs: [runs, results/plots]";
            let path = path.trim_end_matches('/');
            if is_output(path) {
                Ok(path.to_owned())
            } else {
                Err(bad(at, key, "it is no path below the code", hint))
            }
        };
        all.map(one).collect()
    },
    write: |all| written::list(all),
    schema: || schema::texts(&schema::below()),
};

/// Names of variables whose values come from elsewhere.
pub(super) const SECRETS: Shape<Vec<String>> = Shape {
    read: secrets,
    write: |all| written::list(all),
    schema: || schema::texts(&schema::matching("[A-Z_][A-Z0-9_]*")),
};

fn secrets(value: &Yaml, key: &str) -> Result<Vec<String>, BadFile> {
    let mut all: Vec<String> = Vec::new();
    for (at, name) in texts(value, key, "secrets: [WANDB_API_KEY]")? {
        variables::as_secret(name).map_err(|(what, hint)| bad(at, key, what, hint))?;
        if all.iter().any(|known| known == name) {
            return Err(bad(at, key, format!("{name} is there twice"), "leave one away"));
        }
        all.push(name.to_owned());
    }
    Ok(all)
}
