//! Who asks, and what they may: `admin` everything, `lab` its own namespace, nobody else anything but what is open
//! to all.

use serde_json::{Value, json};

use super::refused::{Refused, Subject};
use super::resources::ApiResource;

/// The namespace of the user `lab`.
pub const LAB: &str = "lab";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// May everything.
    Admin,
    /// May use Jobs, pods and logs of one namespace.
    Lab,
    /// Has said nothing of themselves.
    Anonymous,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    /// `get`, `list`, `create` …
    pub(super) verb: &'a str,
    /// Group of the API.
    pub(super) group: &'a str,
    /// Resource; with what is below it after a slash.
    pub(super) resource: &'a str,
    /// Namespace, empty for the whole cluster.
    pub(super) namespace: &'a str,
    /// Object, empty for all.
    pub(super) name: &'a str,
}

/// What `lab` may do in its namespace: verbs, group, resources.
const LAB_RULES: &[(&[&str], &str, &[&str])] = &[
    (
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "batch",
        &["jobs"],
    ),
    (&["delete", "get", "list", "watch"], "", &["pods"]),
    (&["get"], "", &["pods/log", "pods/status"]),
    (
        &["create", "delete", "get", "list", "patch", "update", "watch"],
        "",
        &["configmaps", "secrets", "services"],
    ),
    (&["get", "list", "watch"], "", &["events", "persistentvolumeclaims", "resourcequotas"]),
];

/// What everybody may read who is somebody.
const DOCUMENTS: &[&str] =
    &["/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"];
/// What everybody may read.
const OPEN: &[&str] = &["/version", "/healthz", "/livez", "/readyz"];

impl Asking {
    /// As the server names them.
    pub(super) fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Lab => "lab",
            Self::Anonymous => "system:anonymous",
        }
    }

    /// Why it is allowed, if it is: empty for the administrator, as recorded.
    fn allowed(self, wish: &Wish<'_>) -> Option<String> {
        match self {
            Self::Admin => Some(String::new()),
            Self::Lab if wish.group == "authorization.k8s.io" && wish.verb == "create" => Some(
                "RBAC: allowed by ClusterRoleBinding \"system:basic-user\" of ClusterRole \
                      \"system:basic-user\" to Group \"system:authenticated\""
                    .to_owned(),
            ),
            // Its own namespace may be looked at: `kubectl` asks for it where an object is not there.
            Self::Lab if wish.namespace == LAB => {
                let of_namespace = wish.resource == "namespaces" && wish.verb == "get";
                let by_rule = LAB_RULES.iter().any(|(verbs, group, resources)| {
                    verbs.contains(&wish.verb)
                        && *group == wish.group
                        && resources.contains(&wish.resource)
                });
                (by_rule || of_namespace).then(|| {
                    format!("RBAC: allowed by RoleBinding \"runner/{LAB}\" of Role \"runner\" to User \"lab\"")
                })
            }
            Self::Lab | Self::Anonymous => None,
        }
    }

    /// Refuses what they may not do.
    pub(super) fn check(self, wish: &Wish<'_>) -> Result<(), Refused> {
        if self.allowed(wish).is_some() {
            return Ok(());
        }
        let place = if wish.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", wish.namespace)
        };
        let kind = wish.resource.split('/').next().unwrap_or_default();
        let why = format!(
            "User {:?} cannot {} resource {:?} in API group {:?} {place}",
            self.user(),
            wish.verb,
            wish.resource,
            wish.group
        );
        let subject = Subject { name: wish.name, group: wish.group, kind };
        Err(Refused::forbidden(&subject, &why, &[]))
    }

    /// Refuses a path that is no resource.
    pub(super) fn check_path(self, verb: &str, path: &str) -> Result<(), Refused> {
        let below = |all: &[&str]| {
            all.iter().any(|open| path == *open || path.starts_with(&format!("{open}/")))
        };
        let allowed = match self {
            Self::Admin => true,
            Self::Lab => verb == "get" && below(DOCUMENTS),
            Self::Anonymous => verb == "get" && below(OPEN),
        };
        if allowed {
            return Ok(());
        }
        let text = format!("forbidden: User {:?} cannot {verb} path {path:?}", self.user());
        Err(Refused::new(403, "Forbidden", &text, Some(json!({}))))
    }

    /// The answer to "may I?" and "what may I?".
    pub(super) fn review(self, resource: &ApiResource, mut asked: Value) -> Value {
        asked["metadata"] = json!({"creationTimestamp": null});
        if resource.kind == "SelfSubjectRulesReview" {
            asked["status"] = self.rules(asked["spec"]["namespace"].as_str().unwrap_or_default());
            asked["spec"] = json!({});
            return asked;
        }
        let of = &asked["spec"]["resourceAttributes"];
        let word = |key: &str| of[key].as_str().unwrap_or_default();
        let allowed = if of.is_object() {
            let resource = match word("subresource") {
                "" => word("resource").to_owned(),
                below => format!("{}/{below}", word("resource")),
            };
            self.allowed(&Wish {
                verb: word("verb"),
                group: word("group"),
                resource: &resource,
                namespace: word("namespace"),
                name: word("name"),
            })
        } else {
            let of = &asked["spec"]["nonResourceAttributes"];
            let word = |key: &str| of[key].as_str().unwrap_or_default();
            self.check_path(word("verb"), word("path")).ok().map(|()| String::new())
        };
        let mut status = json!({"allowed": allowed.is_some()});
        if let Some(reason) = allowed.filter(|reason| !reason.is_empty()) {
            status["reason"] = json!(reason);
        }
        asked["status"] = status;
        asked
    }

    fn rules(self, namespace: &str) -> Value {
        let rule = |verbs: &[&str], group: &str, resources: &[&str]| json!({"verbs": verbs, "apiGroups": [group], "resources": resources});
        let reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
        let mut resources = vec![rule(&["create"], "authorization.k8s.io", &reviews)];
        match self {
            Self::Admin => resources.push(rule(&["*"], "*", &["*"])),
            Self::Lab if namespace == LAB => {
                let own = LAB_RULES.iter().map(|(verbs, group, of)| rule(verbs, group, of));
                resources.extend(own);
            }
            Self::Lab | Self::Anonymous => {}
        }
        let paths: Vec<String> =
            DOCUMENTS.iter().flat_map(|path| [(*path).to_owned(), format!("{path}/*")]).collect();
        json!({
            "resourceRules": resources,
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": paths}],
            "incomplete": false,
        })
    }
}

/// The tokens of the users, made at start.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    /// Of `admin`.
    pub(super) admin: String,
    /// Of `lab`.
    pub(super) lab: String,
}

impl Tokens {
    /// Who a request is from: an unknown token is refused, without one they are anonymous [auth-*].
    pub(super) fn asking(&self, authorization: Option<&str>) -> Result<Asking, Refused> {
        let Some(token) = authorization.and_then(|text| text.strip_prefix("Bearer ")) else {
            return Ok(Asking::Anonymous);
        };
        match token.trim() {
            "" => Ok(Asking::Anonymous),
            token if token == self.admin => Ok(Asking::Admin),
            token if token == self.lab => Ok(Asking::Lab),
            _ => Err(Refused::new(401, "Unauthorized", "Unauthorized", None)),
        }
    }
}
