//! The namespaces that can be targets: those of the contexts of a kubeconfig in which one may create Jobs.

use serde_json::json;

use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::api::{ApiCall, ApiServers, ApiVerb};
use super::cluster::{DEFAULT_NAMESPACE, NamespaceAt};
use super::kubeconfig::kubeconfig;
use super::request::PATIENCE;

/// A context: its name, and the namespace that it means.
struct Context {
    name: String,
    namespace: String,
}

/// Each context in which this account may create Jobs, as it is to be registered.
pub(super) fn found(
    servers: &dyn ApiServers,
    said: &Registration,
    effects: &Effects,
) -> Result<Vec<(TargetName, Registration)>, RunError> {
    let cluster = NamespaceAt::of(&said.options, &effects.env);
    let contexts = contexts(&cluster)?;
    if contexts.is_empty() {
        return Err(RunError::not_found(
            "there is no kubeconfig with a context in it",
            "name one: --kubeconfig FILE; `kubectl config get-contexts` lists them",
        ));
    }
    let named = said.options.get("context");
    let mut all = Vec::new();
    let mut silent = None;
    for context in contexts.iter().filter(|context| named.is_none_or(|name| name == context.name)) {
        let namespace =
            said.options.get("namespace").map_or_else(|| context.namespace.clone(), str::to_owned);
        let at = NamespaceAt {
            context: Some(context.name.clone()),
            namespace: namespace.clone(),
            ..cluster.clone()
        };
        match may_create(servers, &at, effects) {
            Ok(true) => all.push(registered(said, &at)),
            Ok(false) => {}
            Err(why) => silent = Some(format!("{}: {why}", context.name)),
        }
    }
    match silent {
        Some(why) if all.is_empty() => Err(RunError::unreachable(
            format!("no cluster says what may be done there: {why}"),
            "`kubectl --context NAME auth can-i create jobs` asks the same",
        )),
        Some(_) | None => Ok(all),
    }
}

fn contexts(cluster: &NamespaceAt) -> Result<Vec<Context>, RunError> {
    let known = kubeconfig(cluster)
        .map_err(|why| RunError::usage(why, "`kubectl config view` reads the same file"))?;
    let contexts = known.into_iter().flat_map(|known| known.contexts);
    let namespace = |of: Option<String>| of.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Ok(contexts
        .map(|context| Context {
            name: context.name,
            namespace: namespace(context.context.and_then(|of| of.namespace)),
        })
        .collect())
}

/// The context that is meant where none is named, and its namespace.
pub(super) fn current(cluster: &NamespaceAt) -> Result<Option<(String, String)>, String> {
    let Some(known) = kubeconfig(cluster)? else { return Ok(None) };
    let wanted = cluster.context.clone().or(known.current_context);
    let Some(name) = wanted else { return Ok(None) };
    let found = known.contexts.into_iter().find(|context| context.name == name);
    let Some(found) = found else { return Err(format!("there is no context {name} in it")) };
    let namespace = found.context.and_then(|of| of.namespace);
    Ok(Some((name, namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()))))
}

/// Whether Jobs may be created there, by the server's word (`SelfSubjectAccessReview`).
fn may_create(
    servers: &dyn ApiServers,
    cluster: &NamespaceAt,
    effects: &Effects,
) -> Result<bool, String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": cluster.namespace, "group": "batch", "resource": "jobs", "verb": "create",
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let call = ApiCall::new(ApiVerb::Post, path, PATIENCE).sending(review);
    let answer =
        servers.open(cluster, effects).ask(&call).map_err(|silence| silence.to_string())?;
    if answer.status != 201 {
        return Err(format!("HTTP {}", answer.status));
    }
    let said: serde_json::Value =
        serde_json::from_slice(&answer.body).map_err(|e| e.to_string())?;
    Ok(said["status"]["allowed"].as_bool().unwrap_or_default())
}

fn registered(said: &Registration, cluster: &NamespaceAt) -> (TargetName, Registration) {
    let of_all = said.options.pairs();
    let of_all =
        of_all.filter(|(name, _)| !matches!(*name, "context" | "namespace" | "kubeconfig"));
    let mut options: KindOptions = of_all.collect();
    let context = cluster.context.as_deref().unwrap_or_default();
    options.say("context", context);
    options.say("namespace", &cluster.namespace);
    if let Some(files) = &cluster.kubeconfig {
        options.say("kubeconfig", files);
    }
    let registration =
        Registration { kind: TargetKind::new(super::WORD), engine: true, options, ..said.clone() };
    (TargetName::new(context), registration)
}
