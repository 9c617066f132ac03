//! `import`: the settings of that job manager become ours. What ours say already has the last word.

use std::path::Path;

use serde_json::{Value, json};

use tpu_engine::kinds::KindAnswer;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::at;
use crate::settings::KubernetesSettings;

/// Takes a file of settings over.
pub(super) fn import(effects: &Effects, named: Option<&String>) -> Result<KindAnswer, RunError> {
    let home = Path::new(effects.env.non_empty("HOME").unwrap_or_default());
    let from = named.map_or_else(|| home.join(at::FILE), |file| effects.env.cwd.join(file));
    let bad = |why| RunError::usage(why, "correct the file, and import it again");
    let its = KubernetesSettings::of_file(&from).map_err(bad)?.ok_or_else(|| at::none(&from))?;
    let own = KubernetesSettings::own_file().ok_or_else(|| {
        RunError::state(
            "there is no home directory to keep settings in",
            "set HOME, or XDG_CONFIG_HOME",
        )
    })?;
    let before = KubernetesSettings::of_file(&own).map_err(bad)?.unwrap_or_default();
    let is_root = its.job.security_context.as_ref().is_some_and(|of| of["runAsUser"] == json!(0));
    if is_root && before.job.security_context.is_none() {
        effects.warn([
            "its securityContext has every job run as root from now on: take it out of \
            kubernetes.json, and jobs run under your own number"
                .to_owned(),
        ]);
    }
    let mut after = its.and(before.clone());
    let mut seen = Vec::new();
    // Theirs stand before ours, and the last of a name holds.
    after.job.annotations.reverse();
    after.job.annotations.retain(|of| {
        !seen.contains(&of.key) && {
            seen.push(of.key.clone());
            true
        }
    });
    after.job.annotations.reverse();
    once(&mut after.job.image_pull_secrets);
    once(&mut after.job.volumes);
    let answer = json!({"from": from, "to": own, "changed": after != before});
    let (from, to) = (from.display(), own.display());
    if after == before {
        let text = format!("{to} says all of {from} already.\n");
        return Ok(KindAnswer { text, answer, ..KindAnswer::default() });
    }
    if effects.store.is_dry_run() {
        let text = format!("Would write what {from} says into {to}. Nothing was changed.\n");
        return Ok(KindAnswer { text, answer, ..KindAnswer::default() });
    }
    write(effects, &own, &after)?;
    let text =
        format!("{to} says what {from} says from now on; `tpu flavors` shows the flavors.\n");
    Ok(KindAnswer { text, answer, ..KindAnswer::default() })
}

/// Leaves out what stands before already.
fn once<T: Clone + PartialEq>(list: &mut Vec<T>) {
    let mut known: Vec<T> = Vec::new();
    list.retain(|one| {
        let is_new = !known.contains(one);
        if is_new {
            known.push(one.clone());
        }
        is_new
    });
}

fn write(effects: &Effects, path: &Path, settings: &KubernetesSettings) -> Result<(), RunError> {
    let cannot = |why: String| {
        let what = format!("{} cannot be written: {why}", path.display());
        RunError::state(what, "this account must be able to write there")
    };
    let value = serde_json::to_value(settings).map_err(|e| cannot(e.to_string()))?;
    let text = format!("{:#}\n", without_nothing(value));
    let disk = &**effects.store.disk();
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    for dir in above.into_iter().rev().filter(|dir| !dir.is_dir()) {
        disk.make_dir(dir, 0o700).map_err(|e| cannot(e.to_string()))?;
    }
    Ok(atomic::write_file(disk, path, text.as_bytes(), 0o644)?)
}

/// Without what is not said.
fn without_nothing(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.into_iter().map(|(name, value)| (name, without_nothing(value)));
            let is_something =
                |value: &Value| !value.is_null() && *value != json!([]) && *value != json!({});
            Value::Object(said.filter(|(_, value)| is_something(value)).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(without_nothing).collect()),
        other => other,
    }
}
