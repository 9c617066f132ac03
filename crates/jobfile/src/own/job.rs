//! One job: what its keys say.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::BadFile;
use crate::yaml::{Yaml, YamlValue};
use tpu_core::model::capacity::Ask;
use tpu_core::model::entry::AfterWhich;
use tpu_core::model::execution::{Copying, Execution};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::member::Array;
use tpu_core::model::order::TargetOrder;
use tpu_core::model::repeat::Repeat;
use tpu_core::model::repository::Repository;
use tpu_core::model::rules::Action;
use tpu_core::model::setup::Module;
use tpu_core::model::sweep::{Sweep, values};

use super::filled::Known;
use super::keys::{self, KEYS, KeyState};
use super::order;
use super::retry;
use super::schema::REPOSITORY;
use super::setup::as_directory;
use super::several::Said;
use super::target;
use super::values::{bad, bad_key, map, text, texts, truth, unknown, word};
use super::written::FED;
use super::{Before, Given, KeyPlaces, OwnCode, OwnJob, OwnTarget, Place};

/// The values of a job by their keys, with all fields filled in.
struct Values(Vec<(String, Yaml)>);

impl Values {
    fn get(&self, key: &str) -> Option<&Yaml> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// What a reader makes of the value of a key.
    fn with<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Yaml, &str) -> Result<T, BadFile>,
    ) -> Result<Option<T>, BadFile> {
        self.get(key).map(|value| read(value, key)).transpose()
    }

    /// Where they stand.
    fn places(&self) -> Vec<(String, Place)> {
        let place = |(key, value): &(String, Yaml)| (key.clone(), (value.line, value.column));
        self.0.iter().map(place).collect()
    }

    /// Refuses a key that makes no sense beside, or without, another.
    fn refuse(&self, key: &str, what: &str, hint: &str) -> Result<(), BadFile> {
        self.get(key).map_or(Ok(()), |value| Err(bad_key(value, key, what, hint)))
    }

    /// Refuses a key that makes no sense without a command.
    fn needs_command(&self, key: &str, what: &str) -> Result<(), BadFile> {
        match self.get("command").or_else(|| self.get("script")) {
            Some(_) => Ok(()),
            None => self.refuse(key, what, "leave it away"),
        }
    }
}

/// Reads a job. `above` are the names of those that stand above it in its file.
pub(super) fn read(
    said: &Said,
    given: &Given<'_>,
    (room, asked): (&Cell<usize>, &RefCell<BTreeSet<String>>),
    above: &[Option<&str>],
) -> Result<OwnJob, BadFile> {
    let (line, column) = said.place;
    let bad_job = |what: &str, hint: &str| {
        let field = said.called.as_ref().map(|name| format!("jobs.{name}")).unwrap_or_default();
        BadFile::new(line, field, what, hint).at_column(column)
    };
    for (key, value) in &said.members {
        match keys::key(key).map(|key| key.state) {
            Some(KeyState::Built) => {}
            Some(KeyState::Later(instead)) => {
                return Err(bad_key(value, key, "not supported yet", instead));
            }
            None => return Err(unknown(value, (key, key), keys::names())),
        }
    }
    let known = Known::new(room, &said.members, given.set, asked);
    let fill = |(key, value): &(String, Yaml)| Ok((key.clone(), known.fill(value, key)?));
    let values = Values(said.members.iter().map(fill).collect::<Result<_, _>>()?);
    let in_command = known.in_command();
    let Some(on) = values.get("target") else {
        return Err(bad_job("it has no target:", "as in target: local"));
    };
    let mut job = OwnJob::at(said.place, KeyPlaces(values.places()));
    let is_order = order::is_order(on);
    job.target = OwnTarget::at((on.line, on.column));
    if !is_order {
        (job.target, job.asks) = target::read(on, given.kinds)?;
    }
    for key in Ask::KEYS {
        let Some(value) = values.get(key) else { continue };
        if job.asks.iter().any(|(known, _)| known == key) {
            return Err(bad_key(value, key, "target: says it already", "leave one of them away"));
        }
        job.asks.push(target::ask(key, value, key)?);
    }
    job.command = fed(&values)?;
    (job.array, job.sweep) = array(&values, &in_command)?;
    for key in KEYS {
        if let Some(value) = values.get(key.name) {
            key.form.read(value, key.name, &mut job)?;
        }
    }
    if let Some(called) = &said.called {
        job.name = Some(called.clone());
    }
    let name = job.name.as_deref();
    if name.is_some() && above.contains(&name) {
        return Err(bad_job("a job above has the same name", "give each a name of its own"));
    }
    job.order = ordered(&values, (on, is_order), name)?;
    if job.order.is_some() {
        let what = "an array on a TPU that is made for it is not supported yet";
        values.refuse("array", what, "write a job for each, parted by ---")?;
    }
    job.waits.after = after(&values, name, above)?;
    (job.dir, job.code, job.execution.workplace) = directory(&values)?;
    job.is_in_place = copied(&values, &mut job.execution)?;
    begins_again(&values, &job.execution)?;
    values.needs_command("output", "there is no command: that could print")?;
    with_keys(&values, &mut job.execution)?;
    let beside = (values.get("rules"), job.execution.repeat);
    let retry = values.with("retry", |value, field| retry::read(value, field, beside))?;
    job.execution.retry = retry.flatten();
    Ok(job)
}

/// The target that is made for a job which names none.
fn ordered(
    values: &Values,
    (on, is_order): (&Yaml, bool),
    name: Option<&str>,
) -> Result<Option<TargetOrder>, BadFile> {
    if !is_order {
        let hint = "it is about one that is made: target: {accelerator: v6e-16, zone: us-east5-b}";
        values.refuse("tpu", "target: names one", hint)?;
        values.refuse(
            "user",
            "target: names one",
            "say it of that: tpu register NAME --ssh-user LOGIN",
        )?;
        return Ok(None);
    }
    let login =
        values.with("user", |value, field| Ok(text(value, field, "user: alice")?.to_owned()))?;
    order::read(on, values.get("tpu"), (name, login)).map(Some)
}

/// Refuses what contradicts that a command begins again where it runs.
fn begins_again(values: &Values, job: &Execution) -> Result<(), BadFile> {
    let Some(repeat) = job.repeat else { return Ok(()) };
    values.needs_command("repeat", "there is no command: that could end")?;
    let silence = values.get("idle_timeout");
    if let Some((at, most)) = silence.zip(job.idle_timeout_s)
        && most <= u64::from(repeat.pause_s)
    {
        let what = format!("repeat: prints nothing for {} s between two runs", repeat.pause_s);
        return Err(bad(at, "idle_timeout", what, "make it longer, or the pause shorter"));
    }
    let Some(YamlValue::Map(rules)) = values.get("rules").map(|rules| &rules.value) else {
        return Ok(());
    };
    let is_answered = |name: &str, action: &Yaml| {
        ErrorKind::parse(name).is_some_and(Repeat::answers)
            && action.text() != Some(Action::Pass.as_str())
    };
    match rules.iter().find(|(name, action)| is_answered(name, action)) {
        Some((name, action)) => {
            let what = "repeat: says already what is done when the command ends so";
            Err(bad_key(action, &format!("rules.{name}"), what, "leave it out in one of them"))
        }
        None => Ok(()),
    }
}

/// Adds the secrets that its set-up names, and refuses those that have a value in `env:`.
fn with_keys(values: &Values, job: &mut Execution) -> Result<(), BadFile> {
    let has_value = |name: &str| job.variables.iter().any(|(known, _)| known == name);
    let secrets = values.get("secrets").map(|value| texts(value, "secrets", "")).transpose()?;
    if let Some((at, _)) = secrets.into_iter().flatten().find(|(_, name)| has_value(name)) {
        return Err(bad(at, "secrets", "env: has a value for it", "leave one of them away"));
    }
    for module in &job.setup {
        let Module::Wandb(of) = module else { continue };
        if has_value(&of.key) {
            let what = format!("wandb: {}: env: has a value for it", of.key);
            values.refuse("setup", &what, "leave it out there: it is a secret")?;
        }
        if !job.secrets.contains(&of.key) {
            job.secrets.push(of.key.clone());
        }
    }
    Ok(())
}

/// Where its code is, by its slot or otherwise, or the directory of its machines in which it runs as it lies there.
type Directory = (Option<u32>, Option<OwnCode>, Option<String>);

fn directory(values: &Values) -> Result<Directory, BadFile> {
    let is_none = values.get("code").is_some_and(|code| code.text() == Some("none"));
    let path = |value: &Yaml, field: &str| {
        let said = text(value, field, NO_CODE)?;
        as_directory(said).ok_or_else(|| {
            let what = format!("'{said}' is no directory of a machine");
            bad(value, field, what, format!("with code: none it is one, as in {NO_CODE}"))
        })
    };
    if is_none {
        if values.get("dir").is_none() {
            let what = "dir: is missing: nothing says where it runs";
            values.refuse("code", what, &format!("as in {NO_CODE}"))?;
        }
        return Ok((None, None, values.with("dir", path)?));
    }
    let is_place = values.get("code").is_some_and(|code| how_copied(code).is_none());
    let Some(dir) = values.get("dir") else {
        let code = if is_place { values.with("code", code)? } else { None };
        return Ok((None, code, None));
    };
    if is_place {
        values.refuse("code", "dir: says already where its code is", "leave one of them away")?;
    }
    let said = text(dir, "dir", "dir: 1")?;
    match (said.parse(), as_directory(said)) {
        (Ok(slot), _) => Ok((Some(slot), None, None)),
        (Err(_), Some(path)) => Ok((None, Some(OwnCode::Dir(path)), None)),
        (Err(_), None) => {
            let hint = "as in dir: 2, or dir: ~/exp";
            Err(bad(dir, "dir", format!("'{said}' is no slot and no directory"), hint))
        }
    }
}

const NO_CODE: &str = "code: none, and dir: /where/on/the/machine";

/// `code:`, where it says how code is copied, and not where it is: `in-place`, or what becomes of what is ignored.
fn how_copied(code: &Yaml) -> Option<&Yaml> {
    let is_in_place = code.text() == Some(IN_PLACE);
    if is_in_place { Some(code) } else { code.get("ignored") }
}

/// Reads how code is copied, beside where it is: whether it stays in its place.
fn copied(values: &Values, execution: &mut Execution) -> Result<bool, BadFile> {
    let Some((code, how)) = values.get("code").and_then(|code| Some((code, how_copied(code)?)))
    else {
        return Ok(false);
    };
    values.needs_command("code", "there is no command: a script is staged as it says itself")?;
    if how.text() == Some(IN_PLACE) {
        if values.get("dir").and_then(Yaml::text).is_some_and(|dir| dir.parse::<u32>().is_ok()) {
            values.refuse(
                "dir",
                "code: in-place runs in no slot",
                "write its path, as in dir: ~/exp",
            )?;
        }
        return Ok(true);
    }
    if let Some((key, of)) = map(code, "code", IGNORED)?.iter().find(|(key, _)| key != "ignored") {
        return Err(bad(
            of,
            &format!("code.{key}"),
            "ignored: says how code is copied",
            format!("alone, as in {IGNORED}"),
        ));
    }
    match how.text() {
        Some("link") => execution.copying = Copying::KnownWithLinks,
        Some("leave") => {}
        _ => {
            return Err(bad(
                how,
                "code.ignored",
                "it is link or leave",
                format!("as in {IGNORED}"),
            ));
        }
    }
    Ok(false)
}

/// The word for code that is not copied.
const IN_PLACE: &str = "in-place";
const IGNORED: &str = "code: {ignored: link}";

/// `code:`: `.`, or a repository; that there is `none` is known already.
fn code(value: &Yaml, field: &str) -> Result<OwnCode, BadFile> {
    const EXAMPLE: &str = "code: {repo: 'https://host/lab/train.git', branch: main}";
    if value.text() == Some(".") {
        return Ok(OwnCode::Here((value.line, value.column)));
    }
    let mut repository = Repository { url: String::new(), branch: None };
    if value.text().is_some() {
        let hint = format!("`.`, the directory of this file; or {EXAMPLE}; or {NO_CODE}");
        return Err(bad(value, field, "it is no place of code", hint));
    }
    for (key, of) in map(value, field, EXAMPLE)? {
        let field = format!("{field}.{key}");
        let said = text(of, &field, EXAMPLE)?;
        if said.starts_with('-') {
            return Err(bad(
                of,
                &field,
                "git would take it for an option",
                format!("as in {EXAMPLE}"),
            ));
        }
        match key.as_str() {
            "repo" if Repository::has_secret(said) => {
                let hint = "without it: git asks its credential helper (git help credentials), or take an ssh URL";
                return Err(bad(
                    of,
                    &field,
                    "a password or a token would be in records and logs",
                    hint,
                ));
            }
            "repo" => said.clone_into(&mut repository.url),
            "branch" => repository.branch = Some(said.to_owned()),
            _ => return Err(unknown(of, (&field, key), REPOSITORY.into_iter())),
        }
    }
    if repository.url.is_empty() {
        return Err(bad(value, field, "repo: is missing", format!("as in {EXAMPLE}")));
    }
    Ok(OwnCode::Repository(repository))
}

/// The command, with the file that it reads.
fn fed(values: &Values) -> Result<Option<Vec<OsString>>, BadFile> {
    let command = command(values)?;
    let file = values
        .with("stdin", |value, field| Ok(text(value, field, "stdin: questions.txt")?.to_owned()))?;
    let Some(file) = file else { return Ok(command) };
    values.needs_command("stdin", "there is no command: that could read it")?;
    let begin: [OsString; 4] = ["bash".into(), "-c".into(), FED.into(), file.into()];
    Ok(command.map(|words| begin.into_iter().chain(words).collect()))
}

fn command(values: &Values) -> Result<Option<Vec<OsString>>, BadFile> {
    let Some(command) = values.get("command") else {
        values.refuse("shell", "there is no command: in one string", "leave it away")?;
        if values.get("script").is_none() && values.get("setup").is_some() {
            // It sets up, and is finished.
            return Ok(Some(vec!["true".into()]));
        }
        let script = |value: &Yaml, field: &str| {
            Ok(vec!["bash".into(), text(value, field, "script: staging.sh")?.into()])
        };
        return values.with("script", script);
    };
    values.refuse("script", "there is a command: already", "leave one of them away")?;
    let is_bash = |value: &Yaml, field: &str| match text(value, field, "shell: bash")? {
        "bash" => Ok(()),
        other => Err(bad(value, field, format!("{other}: not supported yet"), "shell: bash")),
    };
    values.with("shell", is_bash)?;
    match &command.value {
        YamlValue::List(words) if !words.is_empty() => {
            values.refuse("shell", "a list is words, which no shell reads", "leave it away")?;
            words.iter().map(|value| Ok(word(value, "command")?.into())).collect()
        }
        _ => {
            text(command, "command", "command: python train.py")?;
            values.refuse(
                "configs",
                "shell text takes no configs",
                "write {{name}} in it, or make it a list: command: [python, train.py]",
            )?;
            // What a rule adds when the job is resumed is in "$@".
            Ok(["bash", "-c", word(command, "command")?, "bash"].map(OsString::from).to_vec())
        }
    }
    .map(Some)
}

fn array(
    values: &Values,
    in_command: &[String],
) -> Result<(Option<Array>, Option<Sweep>), BadFile> {
    let Some(array) = values.get("array") else {
        for key in ["zip", "max_parallel"] {
            values.refuse(key, "it is about an array:, and there is none", "leave it away")?;
        }
        return Ok((None, None));
    };
    let most = |value: &Yaml, field: &str| {
        let number = text(value, field, "max_parallel: 4")?.parse::<u32>().ok();
        number
            .filter(|number| *number > 0)
            .ok_or_else(|| bad(value, field, "no number of jobs", "as in max_parallel: 4"))
    };
    let most = values.with("max_parallel", most)?;
    let is_zipped = values.with("zip", truth)?.unwrap_or_default();
    let members = |typed: &str| {
        Array::parse(typed)
            .map_err(|error| bad(array, "array", format!("{typed}: {error}"), "as in 0-99%8"))
    };
    let limit = most.map(|most| format!("%{most}")).unwrap_or_default();
    let YamlValue::Map(axes) = &array.value else {
        values.refuse(
            "zip",
            "it is about names with values, as array: {lr: [1, 2]}",
            "leave it",
        )?;
        let typed = text(array, "array", "array: 0-99%8")?;
        if most.is_some() && typed.contains('%') {
            values.refuse("max_parallel", "% says it already", "leave one of them away")?;
        }
        return Ok((Some(members(&format!("{typed}{limit}"))?), None));
    };
    let mut of = Vec::new();
    for (axis, said) in axes {
        let field = format!("array.{axis}");
        if axis.parse::<f64>().is_ok() && said.value == YamlValue::Blank {
            let what = "a value stands where a name is expected";
            return Err(bad_key(said, &field, what, "several values are a list: lr: [0.1, 0.2]"));
        }
        if let (false, YamlValue::Text(_)) = (in_command.contains(axis), &command_of(values)) {
            let what = "no member gets it: it does not stand in the command";
            return Err(bad_key(said, &field, what, format!("write {{{{{axis}}}}} there")));
        }
        let list: Vec<String> = match &said.value {
            YamlValue::List(all) if !all.is_empty() => all
                .iter()
                .map(|one| Ok(text(one, &field, "lr: [1e-3, 1e-4]")?.to_owned()))
                .collect::<Result<_, BadFile>>()?,
            _ => self::values(text(said, &field, "seed: 0-4")?),
        };
        of.push((axis.clone(), list));
    }
    let sweep = Sweep::of(of, is_zipped, in_command.to_vec())
        .map_err(|error| bad(array, "array", error.to_string(), "as in {lr: [1e-3, 1e-4]}"))?;
    let last = sweep.members().saturating_sub(1);
    Ok((Some(members(&format!("0-{last}{limit}"))?), Some(sweep)))
}

/// The value of the command; without one nothing is filled in, and members get arguments.
fn command_of(values: &Values) -> YamlValue {
    values.get("command").map_or(YamlValue::Blank, |command| command.value.clone())
}

/// The jobs that have to end before one of this name.
fn after(
    values: &Values,
    name: Option<&str>,
    above: &[Option<&str>],
) -> Result<Vec<(AfterWhich, Before)>, BadFile> {
    let mut after = Vec::new();
    for (key, which) in [
        ("after", AfterWhich::Ok),
        ("after_any", AfterWhich::Any),
        ("after_not", AfterWhich::Not),
        ("after_each", AfterWhich::Each),
    ] {
        let Some(value) = values.get(key) else { continue };
        for (at, word) in texts(value, key, &format!("{key}: 12"))? {
            if name == Some(word) {
                return Err(bad(at, key, "a job cannot wait for itself", "name another one"));
            }
            let before = match above.iter().position(|above| *above == Some(word)) {
                Some(index) => Before::OfFile(index),
                None => Before::Other((at.line, at.column), word.to_owned()),
            };
            after.push((which, before));
        }
    }
    Ok(after)
}
