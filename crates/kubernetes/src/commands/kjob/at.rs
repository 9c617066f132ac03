//! Where its commands are carried out, with which settings, and for whom.

use std::path::Path;

use clap::ArgMatches;

use tpu_core::model::data::Data;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::options::KindOptions;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use crate::cluster::NamespaceAt;
use crate::names::JobRef;
use crate::settings::KubernetesSettings;
use crate::site::Site;
use crate::{Kubernetes, WORD, found};

/// The target that is meant where nobody names one.
pub(super) struct At<'a> {
    /// Its name.
    pub(super) target: TargetName,
    /// Its namespace.
    pub(super) site: Site<'a>,
}

impl<'a> At<'a> {
    /// The one of the settings, else the only one, else that of the current context.
    pub(super) fn find(
        effects: &'a Effects,
        settings: &KubernetesSettings,
    ) -> Result<Self, RunError> {
        let data = effects.data()?;
        Ok(Self::open(effects, target(&data, effects, settings)?))
    }

    /// The one that is named.
    pub(super) fn named(effects: &'a Effects, name: &str) -> Result<Self, RunError> {
        let data = effects.data()?;
        let all = namespaces(&data);
        let meant = data.resolve_target(name).map(|target| target.name);
        let found = all.iter().find(|(name, _)| meant.as_ref() == Some(*name));
        let known = found.copied().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            let hint = match names.as_slice() {
                [] => format!("register one: tpu register {name} --kind {WORD}"),
                names => format!("these are: {}", names.join(", ")),
            };
            let what = format!("{name} is not a registered namespace of a Kubernetes cluster");
            RunError::not_found(what, hint)
        })?;
        Ok(Self::open(effects, known))
    }

    fn open(effects: &'a Effects, (target, options): (&TargetName, &KindOptions)) -> Self {
        let cluster = NamespaceAt::of(options, &effects.env);
        let server = Kubernetes::servers().open(&cluster, effects);
        Self { target: target.clone(), site: Site { server, cluster, effects } }
    }

    /// The record that has a Job of this name, the newest first.
    pub(super) fn record<'d>(&self, data: &'d Data, name: &str) -> Option<&'d Job> {
        let is_here = |job: &&Job| job.tpu == self.target && job.engine.is_some();
        let of_name = data.jobs().filter(is_here).filter(|job| JobRef::of(job).name == name);
        of_name.max_by_key(|job| job.windows_id)
    }

    /// The error for a Job that is not there.
    pub(super) fn unknown(&self, name: &str) -> RunError {
        let what = format!("{} has no Job {name}", self.site.cluster.in_words());
        RunError::not_found(what, "`tpu kjob list` lists them")
    }
}

/// The target that is meant where an image is named and no target.
pub(in super::super::super) fn usual_target(effects: &Effects) -> Result<TargetName, RunError> {
    let settings = KubernetesSettings::read()
        .map_err(|why| RunError::usage(why, "correct the file, or move it away"))?;
    let data = effects.data()?;
    target(&data, effects, &settings).map(|(name, _)| name.clone())
}

/// The namespaces that are known here.
fn namespaces(data: &Data) -> Vec<(&TargetName, &KindOptions)> {
    let all = data.registry().registrations().filter(|(_, known)| known.kind.as_str() == WORD);
    all.map(|(name, known)| (name, &known.options)).collect()
}

fn target<'d>(
    data: &'d Data,
    effects: &Effects,
    settings: &KubernetesSettings,
) -> Result<(&'d TargetName, &'d KindOptions), RunError> {
    let all = namespaces(data);
    if let Some(said) = &settings.target {
        let named = data.resolve_target(said).map(|target| target.name);
        let found = all.into_iter().find(|(name, _)| named.as_ref() == Some(*name));
        return found.ok_or_else(|| {
            let what = format!(
                "{said}, the target of kubernetes.json, is no namespace that is known here"
            );
            RunError::not_found(what, format!("tpu register {said} --kind {WORD}"))
        });
    }
    if let [only] = all.as_slice() {
        return Ok(*only);
    }
    let register = format!("register one: tpu register lab --kind {WORD} --context NAME");
    if all.is_empty() {
        return Err(RunError::not_found(
            "no namespace of a Kubernetes cluster is registered",
            register,
        ));
    }
    let usual = NamespaceAt::of(&KindOptions::default(), &effects.env);
    let current = found::current(&usual).ok().flatten();
    let is_current = |options: &KindOptions| {
        current.as_ref().is_some_and(|(context, namespace)| {
            options.get("context") == Some(context) && options.get("namespace") == Some(namespace)
        })
    };
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    all.into_iter().find(|(_, options)| is_current(options)).ok_or_else(|| {
        RunError::usage(
            format!("which of these is meant: {names}? None is the current context"),
            format!("name it, or say \"target\": NAME in kubernetes.json; or {register}"),
        )
    })
}

/// The settings of that job manager: a file that is named alone, else its own over ours.
pub(super) fn settings(
    effects: &Effects,
    named: Option<&String>,
) -> Result<KubernetesSettings, RunError> {
    let bad = |why| {
        RunError::usage(
            why,
            "correct the file; JSON has a comma between two members and none behind the last",
        )
    };
    if let Some(file) = named {
        let path = effects.env.cwd.join(file);
        return KubernetesSettings::of_file(&path).map_err(bad)?.ok_or_else(|| none(&path));
    }
    let ours = KubernetesSettings::read().map_err(bad)?;
    let Some(home) = effects.env.non_empty("HOME") else { return Ok(ours) };
    let its = KubernetesSettings::of_file(&Path::new(home).join(FILE)).map_err(bad)?;
    Ok(match its {
        Some(its) => ours.and(its),
        None => ours,
    })
}

/// Its settings, from a home on.
pub(super) const FILE: &str = ".jobman/settings.json";

/// The error for a file that is not there.
pub(super) fn none(path: &Path) -> RunError {
    RunError::not_found(format!("there is no {}", path.display()), "name the file of its settings")
}

/// Who asks, as far as this was said: by a flag, by the environment, or because nobody else is there.
pub(super) fn user(effects: &Effects, said: &ArgMatches) -> Result<String, RunError> {
    let flag = said.try_get_one::<String>("user").ok().flatten().cloned();
    let named = flag.or_else(|| effects.env.non_empty("TPU_USER").map(str::to_owned));
    if let Some(named) = named {
        return Ok(named);
    }
    let data = effects.data()?;
    let account = effects.env.non_empty("USER").unwrap_or_default();
    let known = data.users().iter().find(|user| user.name.as_str() == account);
    let only = data.users().first().filter(|_| data.users().len() == 1);
    Ok(known.or(only).map_or(account.to_owned(), |user| user.name.to_string()))
}
