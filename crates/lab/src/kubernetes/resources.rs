//! The resources that are served, and what discovery says of them.

use serde_json::{Value, json};

/// One resource.
#[derive(Debug)]
pub(super) struct ApiResource {
    /// Group, empty for the core.
    pub(super) group: &'static str,
    /// Version.
    pub(super) version: &'static str,
    /// As in paths.
    pub(super) plural: &'static str,
    /// As in objects.
    pub(super) kind: &'static str,
    /// Whether its objects lie in namespaces.
    pub(super) namespaced: bool,
    /// Short names for the command line.
    short: &'static [&'static str],
    /// What is below an object: `log`, `status`.
    pub(super) below: &'static [&'static str],
    /// Whether objects may be selected by these fields, beside name and namespace.
    pub(super) fields: &'static [&'static str],
    /// Whether it is only asked, and keeps nothing.
    pub(super) is_review: bool,
}

const fn kept(
    (group, version): (&'static str, &'static str),
    (plural, kind): (&'static str, &'static str),
    short: &'static [&'static str],
    below: &'static [&'static str],
    fields: &'static [&'static str],
) -> ApiResource {
    ApiResource {
        group,
        version,
        plural,
        kind,
        namespaced: true,
        short,
        below,
        fields,
        is_review: false,
    }
}

const fn everywhere(mut of: ApiResource) -> ApiResource {
    of.namespaced = false;
    of
}

const fn review(plural: &'static str, kind: &'static str) -> ApiResource {
    let mut of = everywhere(kept(("authorization.k8s.io", "v1"), (plural, kind), &[], &[], &[]));
    of.is_review = true;
    of
}

const CORE: (&str, &str) = ("", "v1");
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "source",
    "type",
];

/// Namespaces.
pub(super) static NAMESPACES: ApiResource = everywhere(kept(
    CORE,
    ("namespaces", "Namespace"),
    &["ns"],
    &["status", "finalize"],
    &["status.phase"],
));
/// Nodes.
pub(super) static NODES: ApiResource =
    everywhere(kept(CORE, ("nodes", "Node"), &["no"], &["status"], &["spec.unschedulable"]));
/// Pods.
pub(super) static PODS: ApiResource =
    kept(CORE, ("pods", "Pod"), &["po"], &["binding", "log", "status"], POD_FIELDS);
/// Events.
pub(super) static EVENTS: ApiResource = kept(CORE, ("events", "Event"), &["ev"], &[], EVENT_FIELDS);
/// Config maps.
pub(super) static CONFIG_MAPS: ApiResource =
    kept(CORE, ("configmaps", "ConfigMap"), &["cm"], &[], &[]);
/// Secrets.
pub(super) static SECRETS: ApiResource = kept(CORE, ("secrets", "Secret"), &[], &[], &["type"]);
/// Services: kept, and nothing more: nothing here has an address of its own.
pub(super) static SERVICES: ApiResource =
    kept(CORE, ("services", "Service"), &["svc"], &["status"], &[]);
/// Volume claims.
pub(super) static CLAIMS: ApiResource =
    kept(CORE, ("persistentvolumeclaims", "PersistentVolumeClaim"), &["pvc"], &["status"], &[]);
/// Quotas.
pub(super) static QUOTAS: ApiResource =
    kept(CORE, ("resourcequotas", "ResourceQuota"), &["quota"], &["status"], &[]);
/// Jobs.
pub(super) static JOBS: ApiResource =
    kept(("batch", "v1"), ("jobs", "Job"), &[], &["status"], &["status.successful"]);
/// Priority classes.
pub(super) static PRIORITY_CLASSES: ApiResource = everywhere(kept(
    ("scheduling.k8s.io", "v1"),
    ("priorityclasses", "PriorityClass"),
    &["pc"],
    &[],
    &[],
));
/// "May I?"
pub(super) static ACCESS_REVIEWS: ApiResource =
    review("selfsubjectaccessreviews", "SelfSubjectAccessReview");
/// "What may I?"
pub(super) static RULES_REVIEWS: ApiResource =
    review("selfsubjectrulesreviews", "SelfSubjectRulesReview");

/// All of them.
pub(super) static RESOURCES: [&ApiResource; 13] = [
    &CONFIG_MAPS,
    &EVENTS,
    &NAMESPACES,
    &NODES,
    &CLAIMS,
    &PODS,
    &QUOTAS,
    &SECRETS,
    &SERVICES,
    &JOBS,
    &PRIORITY_CLASSES,
    &ACCESS_REVIEWS,
    &RULES_REVIEWS,
];

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl ApiResource {
    /// `batch/v1`, or `v1`.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether two are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.plural == other.plural && self.group == other.group
    }

    fn listed(&self) -> Vec<Value> {
        let entry = |name: &str, verbs: &[&str]| {
            json!({
                "name": name, "singularName": "", "namespaced": self.namespaced,
                "kind": self.kind, "verbs": verbs,
            })
        };
        if self.is_review {
            return vec![entry(self.plural, &["create"])];
        }
        let verbs: Vec<&str> = VERBS
            .into_iter()
            .filter(|verb| !(self.is(&NAMESPACES) && *verb == "deletecollection"))
            .collect();
        let mut first = entry(self.plural, &verbs);
        if !self.short.is_empty() {
            first["shortNames"] = json!(self.short);
        }
        if self.is(&PODS) || self.is(&JOBS) || self.is(&SERVICES) {
            first["categories"] = json!(["all"]);
        }
        let mut all = vec![first];
        for below in self.below {
            let name = format!("{}/{below}", self.plural);
            all.push(match *below {
                "log" => entry(&name, &["get"]),
                "finalize" => entry(&name, &["update"]),
                "binding" => {
                    let mut binding = entry(&name, &["create"]);
                    binding["kind"] = json!("Binding");
                    binding
                }
                _ => entry(&name, &["get", "patch", "update"]),
            });
        }
        all
    }
}

/// The groups beside the core, each with its one version.
fn groups() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> = RESOURCES.iter().map(|of| (of.group, of.version)).collect();
    all.retain(|(group, _)| !group.is_empty());
    all.dedup();
    all
}

fn group(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version.clone()], "preferredVersion": version})
}

/// What discovery answers at a path: `/version`, `/api`, `/apis/…`.
pub(super) fn discovery(path: &str, address: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => {
            let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
            for (name, version) in groups() {
                paths.extend([format!("/apis/{name}"), format!("/apis/{name}/{version}")]);
            }
            paths.extend(
                ["/healthz", "/livez", "/openapi/v2", "/readyz", "/version"].map(str::to_owned),
            );
            Some(json!({ "paths": paths }))
        }
        ["version"] => Some(json!({
            "major": "1", "minor": "20", "gitVersion": "v1.20.2", "gitCommit": "", "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.19.8", "compiler": "gc",
            "platform": "linux/amd64",
        })),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        })),
        ["apis"] => {
            let groups: Vec<Value> =
                groups().into_iter().map(|(name, version)| group(name, version)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let (_, version) = groups().into_iter().find(|(known, _)| known == name)?;
            let mut found = json!({"kind": "APIGroup", "apiVersion": "v1"});
            if let (Some(found), Value::Object(more)) =
                (found.as_object_mut(), group(name, version))
            {
                found.extend(more);
            }
            Some(found)
        }
        ["api", "v1"] => Some(listed("", "v1")),
        ["apis", name, version] => groups()
            .iter()
            .any(|(known, of)| known == name && of == version)
            .then(|| listed(name, version)),
        _ => None,
    }
}

fn listed(group: &str, version: &str) -> Value {
    let within = RESOURCES.iter().filter(|of| of.group == group && of.version == version);
    let resources: Vec<Value> = within.flat_map(|of| of.listed()).collect();
    let mut list = json!({"kind": "APIResourceList"});
    if group.is_empty() {
        list["groupVersion"] = json!(version);
    } else {
        list["apiVersion"] = json!("v1");
        list["groupVersion"] = json!(format!("{group}/{version}"));
    }
    list["resources"] = json!(resources);
    list
}
