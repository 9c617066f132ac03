//! `submit`: as `tpu run` on the target that is meant, with what its settings say.

use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::{Map, Value, json};

use tpu_engine::kinds::KindAnswer;
use tpu_engine::runner::RunError;

use super::at::{self, At};
use super::{ours, words};
use crate::options;
use crate::settings::{KubernetesSettings, ValueType};

/// Submits a Job.
pub(super) fn submit(
    at: &At<'_>,
    settings: &KubernetesSettings,
    said: &ArgMatches,
) -> Result<KindAnswer, RunError> {
    let effects = at.site.effects;
    let get = |name: &str| said.get_one::<String>(name).map(String::as_str);
    let image = settings.image(get(words::IMAGE)).ok_or_else(|| {
        RunError::usage("no image is named", "name one, as in: -i alpine, or set job.defaultImage")
    })?;
    let flavor = settings
        .flavor_beside(get(words::FLAVOR), &effects.env.cwd)
        .map_err(|why| RunError::usage(why, "`tpu kjob resources-flavors` lists them"))?
        .ok_or_else(|| {
            let what = "no flavor is named, and none is the default";
            RunError::usage(
                what,
                "name one, as in: -r no-gpu; `tpu kjob resources-flavors` lists them",
            )
        })?;
    let name =
        get(words::JOB).map_or_else(|| format!("jobman-{}", effects.random.hex(8)), str::to_owned);
    let words: Vec<OsString> =
        said.get_many::<OsString>(words::WORDS).unwrap_or_default().cloned().collect();
    let words_are = match (words.is_empty(), said.get_flag(words::COMMAND)) {
        (true, _) => options::NONE,
        (false, true) => options::COMMAND,
        (false, false) => options::ARGS,
    };
    let flavor_json = json!(flavor).to_string();
    let mut run = ours(&["run", at.target.as_str(), "-q"]);
    let mut say = |name: &str, value: &str| run.push(OsString::from(format!("--{name}={value}")));
    say(options::IMAGE, &image);
    say(options::FLAVOR, &flavor_json);
    say(options::JOB_NAME, &name);
    say(options::WORDS_ARE, words_are);
    say(options::CODE, options::NONE);
    let annotations = annotations(at, settings, &flavor.name);
    say(options::ANNOTATIONS, &Value::Object(annotations).to_string());
    if let Some(given) = get(words::ANNOTATIONS) {
        say(options::ANNOTATIONS, given);
    }
    for variable in said.get_many::<String>(words::ENV).unwrap_or_default() {
        say(options::VARIABLE, variable);
    }
    if let Some(class) =
        flavor.priority_class_name.as_ref().or(settings.job.priority_class_name.as_ref())
    {
        say(options::PRIORITY_CLASS, class);
    }
    if let Some(context) = &settings.job.security_context {
        say(options::SECURITY_CONTEXT, &context.to_string());
    }
    for volume in &settings.job.volumes {
        let volume = volume.as_str().map_or_else(|| volume.to_string(), str::to_owned);
        say(options::VOLUME, &volume);
    }
    for secret in &settings.job.image_pull_secrets {
        say(options::PULL_SECRET, secret);
    }
    if let Some(seconds) = settings.job.ttl_seconds {
        say(options::TTL, &seconds.to_string());
    }
    // These settings hold, and not ours once more: a prefix is put before an image once.
    say(options::SETTINGS_ARE, options::SAID);
    run.push(OsString::from("--"));
    if words.is_empty() {
        // A command is wanted there; of this one nothing reaches the container.
        run.push(OsString::from(&image));
    }
    run.extend(words);
    let text =
        format!("Job named '{name}' created successfully by user '{}'\n", at::user(effects, said)?);
    Ok(KindAnswer { text, then: run, ..KindAnswer::default() })
}

/// Those of the settings, and the name of the flavor under the name that they have for it.
fn annotations(at: &At<'_>, settings: &KubernetesSettings, flavor: &str) -> Map<String, Value> {
    let value = |of: &str, kind: ValueType| match kind {
        ValueType::String => of.to_owned(),
        ValueType::Env => at.site.effects.env.var(of).unwrap_or_default().to_owned(),
    };
    let said = settings.job.annotations.iter();
    let mut all: Map<String, Value> =
        said.map(|of| (of.key.clone(), json!(value(&of.value, of.value_type)))).collect();
    all.insert(settings.flavor_annotation().to_owned(), json!(flavor));
    all
}
