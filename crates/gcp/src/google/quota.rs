//! Quotas: what Cloud TPU grants, what the nodes that there are take of it, and Compute Engine's own figures for
//! addresses, instances and disks.
//!
//! Limits of TPUs come from the Cloud Quotas API, which has every quota with its value for each zone, and is not a beta
//! as the quotas of Service Usage are (<https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/list>).
//! It does not know what is in use; Cloud Monitoring does, up to a day late and by a further role, so the nodes
//! themselves are counted
//! (<https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes/list>). Compute Engine says limit and
//! use together, of all regions in one list
//! (<https://cloud.google.com/compute/docs/reference/rest/v1/regions/list>) and of the project
//! (<https://cloud.google.com/compute/docs/reference/rest/v1/projects/get>).

use std::collections::BTreeSet;
use std::thread;

use serde_json::Value;

use super::listing::{Listed, unreadable};
use super::{Api, EVERYWHERE, Google, Method, wire};
use crate::quota::{self, Granted, InUse, PaidFrom};
use tpu_core::model::quota::QuotaRow;
use tpu_core::model::target::Pricing;
use tpu_core::text::escape;
use tpu_engine::provider::{ProviderError, QuotaReport, Trouble};

/// Entries on a page.
const PAGE: u32 = 500;

/// The quotas of Compute Engine that matter to who runs TPUs.
const RESOURCES: [&str; 6] = [
    "IN_USE_ADDRESSES",
    "STATIC_ADDRESSES",
    "INSTANCES",
    "DISKS_TOTAL_GB",
    "SSD_TOTAL_GB",
    "LOCAL_SSD_TOTAL_GB",
];

/// What may be done with an answer, by the role that is needed for it.
pub(super) struct Rights {
    /// The API, as `gcloud services enable` calls it.
    pub(super) api: &'static str,
    /// The role with the permission.
    pub(super) role: &'static str,
}

const LIMITS: Rights =
    Rights { api: "cloudquotas.googleapis.com", role: "roles/cloudquotas.viewer" };
const NODES: Rights = Rights { api: "tpu.googleapis.com", role: "roles/tpu.viewer" };
const COMPUTE: Rights = Rights { api: "compute.googleapis.com", role: "roles/compute.viewer" };

impl Rights {
    /// An error with the role that is missing, or the API that is off.
    pub(super) fn named(&self, error: ProviderError, project: &str) -> ProviderError {
        if error.trouble != Trouble::Permission {
            return error;
        }
        let Self { api, role } = self;
        let is_off = ["has not been used", "SERVICE_DISABLED", "it is disabled"]
            .iter()
            .any(|words| error.message.contains(words));
        if is_off {
            return error.remedy(format!(
                "switch the API on: gcloud services enable {api} --project {project}"
            ));
        }
        error.remedy(format!(
            "the role {role} is needed; an owner of the project gives it: \
             gcloud projects add-iam-policy-binding {project} --member user:YOU@EXAMPLE.ORG --role {role}"
        ))
    }
}

impl Google {
    /// All of it, each part asked beside the others.
    pub(super) fn quota_report(&self) -> Result<QuotaReport, ProviderError> {
        let doing = "look at quotas";
        let api = self.api().map_err(|e| ProviderError { doing: doing.to_owned(), ..e })?;
        let (granted, nodes, regions, project) = thread::scope(|scope| {
            let granted = scope.spawn(|| self.granted(api));
            let regions = scope.spawn(|| self.regions(api));
            let project = scope.spawn(|| self.project_wide(api));
            let nodes = self.pages(api, (EVERYWHERE, "nodes"), "count the nodes");
            (joined(granted), nodes, joined(regions), joined(project))
        });
        let named = |rights: &Rights, error| rights.named(error, &api.project);
        let mut report = QuotaReport::default();
        let mut or_unknown = |error| report.unknown.push(error);
        let granted = granted.map_err(|e| or_unknown(named(&LIMITS, e))).ok();
        let nodes = nodes.and_then(|listed| in_use(&listed));
        let nodes = nodes.map_err(|e| or_unknown(named(&NODES, e))).ok();
        let regions = regions.map_err(|e| or_unknown(named(&COMPUTE, e))).ok();
        let project = project.map_err(|e| or_unknown(named(&COMPUTE, e))).ok();
        let (nodes, silent) =
            nodes.map_or((None, BTreeSet::new()), |(nodes, silent)| (Some(nodes), silent));
        for zone in &silent {
            let message = format!("UNAVAILABLE: the API cannot reach zone {}", escape(zone));
            or_unknown(ProviderError::new(Trouble::Transient, "count the nodes", message));
        }
        report.rows = quota::rows(&granted.unwrap_or_default(), nodes.as_deref(), &silent);
        report.rows.extend(regions.unwrap_or_default());
        report.rows.extend(project.unwrap_or_default());
        match report.unknown.pop() {
            // Nobody has said anything: that is no report.
            Some(first) if report.rows.is_empty() && nodes.is_none() => {
                Err(report.unknown.into_iter().next().unwrap_or(first))
            }
            last => {
                report.unknown.extend(last);
                Ok(report)
            }
        }
    }

    /// What Cloud TPU grants.
    fn granted(&self, api: &Api) -> Result<Vec<Granted>, ProviderError> {
        let doing = "list the quotas of Cloud TPU";
        let url = format!(
            "{}/v1/projects/{}/locations/global/services/tpu.googleapis.com/quotaInfos?pageSize={PAGE}",
            api.host("cloudquotas"),
            api.project
        );
        let listed = self.pages_at(api, (&url, "quotaInfos"), doing)?;
        let mut all = Vec::new();
        for entry in &listed.entries {
            all.extend(grants(entry).ok_or_else(|| unreadable(doing))?);
        }
        Ok(all)
    }

    /// What Compute Engine says of each region.
    fn regions(&self, api: &Api) -> Result<Vec<QuotaRow>, ProviderError> {
        let doing = "list the quotas of Compute Engine";
        let (host, project) = (api.host("compute"), &api.project);
        let url = format!("{host}/compute/v1/projects/{project}/regions?maxResults={PAGE}");
        let listed = self.pages_at(api, (&url, "items"), doing)?;
        let mut all = Vec::new();
        for region in &listed.entries {
            let name = region["name"].as_str().ok_or_else(|| unreadable(doing))?;
            all.extend(resources(region, name).ok_or_else(|| unreadable(doing))?);
        }
        Ok(all)
    }

    /// What it says of the project as a whole.
    fn project_wide(&self, api: &Api) -> Result<Vec<QuotaRow>, ProviderError> {
        let doing = "look at the quotas of the project";
        let url = format!("{}/compute/v1/projects/{}", api.host("compute"), api.project);
        let value = self.persistently(|| api.ask_at(Method::Get, &url, None, doing))?;
        resources(&value, "global").ok_or_else(|| unreadable(doing))
    }
}

/// What a thread has found; one that has panicked found nothing.
fn joined<T>(
    thread: thread::ScopedJoinHandle<'_, Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let broken = |_| {
        let message = "the question broke off";
        Err(ProviderError::new(Trouble::Transient, "look at quotas", message))
    };
    thread.join().unwrap_or_else(broken)
}

/// The values of one `QuotaInfo`, by place. A value without a zone or a region of its own holds for all of its
/// `applicableLocations` that have none. Rates, which are granted anew each minute, are left out. `None` for what is no
/// `QuotaInfo`.
fn grants(info: &Value) -> Option<Vec<Granted>> {
    let id = info["quotaId"].as_str()?;
    if info["refreshInterval"].as_str().is_some_and(|every| !every.is_empty()) {
        return Some(Vec::new());
    }
    let dimensions = match &info["dimensionsInfos"] {
        Value::Null => return Some(Vec::new()),
        value => value.as_array()?,
    };
    let own = |entry: &Value| {
        let of = &entry["dimensions"];
        of["zone"].as_str().or_else(|| of["region"].as_str()).map(str::to_owned)
    };
    let mut all: Vec<Granted> = Vec::new();
    let mut put = |location: &str, limit| {
        if !all.iter().any(|known| known.location == location) {
            all.push(Granted { id: id.to_owned(), location: location.to_owned(), limit });
        }
    };
    for entry in dimensions {
        if let Some(location) = own(entry) {
            put(&location, limit(&entry["details"]["value"]).ok()?);
        }
    }
    for entry in dimensions.iter().filter(|entry| own(entry).is_none()) {
        let limit = limit(&entry["details"]["value"]).ok()?;
        for location in entry["applicableLocations"].as_array()? {
            put(location.as_str()?, limit);
        }
    }
    Some(all)
}

/// A 64-bit number, which the API writes as text and leaves out where it is 0; a negative one stands for no limit.
fn limit(value: &Value) -> Result<Option<u64>, NoFigure> {
    let limit = match value {
        Value::Null => 0,
        Value::String(text) => text.parse::<i64>().map_err(|_| NoFigure)?,
        value => value.as_i64().ok_or(NoFigure)?,
    };
    Ok(u64::try_from(limit).ok())
}

/// What should have been a figure.
#[derive(Debug)]
struct NoFigure;

/// The figures of a region or a project of Compute Engine; `None` where they are none.
fn resources(of: &Value, location: &str) -> Option<Vec<QuotaRow>> {
    let quotas = match &of["quotas"] {
        Value::Null => return Some(Vec::new()),
        value => value.as_array()?,
    };
    let mut rows = Vec::new();
    for quota in quotas {
        let metric = quota["metric"].as_str()?;
        if RESOURCES.contains(&metric) {
            rows.push(QuotaRow {
                zone: location.to_owned(),
                kind: metric.to_ascii_lowercase().replace('_', "-"),
                used: whole(&quota["usage"]).ok()?,
                limit: whole(&quota["limit"]).ok()?,
            });
        }
    }
    Some(rows)
}

/// A number of whole things, which the API writes as a fraction and leaves out where it is 0.
fn whole(value: &Value) -> Result<Option<u64>, NoFigure> {
    if value.is_null() {
        return Ok(Some(0));
    }
    let number = value.as_f64().ok_or(NoFigure)?.round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 up; what is beyond is as good as no limit"
    )]
    Ok((number >= 0.0).then_some(number as u64))
}

/// The nodes that there are, and the zones that did not say.
fn in_use(listed: &Listed) -> Result<(Vec<InUse>, BTreeSet<String>), ProviderError> {
    let node = |entry: &Value| {
        let (zone, _) = entry["name"].as_str().and_then(wire::zone_and_id)?;
        let scheduling = &entry["schedulingConfig"];
        let paid_from = match wire::pricing(scheduling) {
            _ if scheduling["reserved"].as_bool() == Some(true) => PaidFrom::Reserved,
            Pricing::Spot | Pricing::Preemptible => PaidFrom::Preemptible,
            Pricing::OnDemand => PaidFrom::OnDemand,
        };
        // Of one that does not say its type nobody knows what it takes.
        let accelerator = entry["acceleratorType"].as_str().unwrap_or_default().to_owned();
        Some(InUse { zone: zone.to_owned(), accelerator, paid_from })
    };
    let nodes: Option<Vec<InUse>> = listed.entries.iter().map(node).collect();
    let nodes = nodes.ok_or_else(|| unreadable("count the nodes"))?;
    Ok((nodes, listed.unreachable.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_a_zone_comes_before_the_one_for_all() {
        let info = json!({
            "quotaId": "TPUV4sPodPerProjectPerZoneForTPUAPI", "dimensions": ["zone"],
            "dimensionsInfos": [
                {"details": {"value": "8"}, "applicableLocations": ["a-1-a", "a-1-b", "a-1-c"]},
                {"dimensions": {"zone": "a-1-b"}, "details": {"value": "64"}, "applicableLocations": ["a-1-b"]},
                {"dimensions": {"zone": "a-1-c"}, "details": {"value": "-1"}, "applicableLocations": ["a-1-c"]},
                {"dimensions": {"zone": "a-1-d"}, "details": {}, "applicableLocations": ["a-1-d"]},
            ],
        });
        let mut all: Vec<(String, Option<u64>)> =
            grants(&info).unwrap().into_iter().map(|of| (of.location, of.limit)).collect();
        all.sort_unstable();
        let of = |zone: &str, limit| (zone.to_owned(), limit);
        let expected =
            [of("a-1-a", Some(8)), of("a-1-b", Some(64)), of("a-1-c", None), of("a-1-d", Some(0))];
        assert_eq!(all, expected);
        let rate =
            json!({"quotaId": "ReadsPerMinute", "refreshInterval": "minute", "dimensionsInfos": 7});
        assert_eq!(grants(&rate), Some(Vec::new()));
        for bad in [
            json!(7),
            json!({"quotaId": "x", "dimensionsInfos": [{"details": {"value": "x"},
            "applicableLocations": ["z"]}]}),
            json!({"quotaId": "x", "dimensionsInfos": "all"}),
        ] {
            assert_eq!(grants(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_node_says_how_it_is_paid_for() {
        let node = |zone: &str, accelerator: &str, scheduling: Value| {
            json!({"name": format!("projects/p/locations/{zone}/nodes/n"),
                   "acceleratorType": accelerator, "schedulingConfig": scheduling})
        };
        let listed = |entries: Vec<Value>| Listed {
            entries,
            unreachable: BTreeSet::from(["c-1-c".to_owned()]),
        };
        let (nodes, silent) = in_use(&listed(vec![
            node("a-1-a", "v4-8", json!({"reserved": true})),
            node("a-1-a", "v4-16", json!({"spot": true})),
            node("a-1-b", "v4-32", json!({"preemptible": true})),
            node("a-1-b", "v4-64", Value::Null),
        ]))
        .unwrap();
        let all: Vec<_> = nodes.iter().map(|of| (of.accelerator.as_str(), of.paid_from)).collect();
        assert_eq!(
            all,
            [
                ("v4-8", PaidFrom::Reserved),
                ("v4-16", PaidFrom::Preemptible),
                ("v4-32", PaidFrom::Preemptible),
                ("v4-64", PaidFrom::OnDemand),
            ]
        );
        assert_eq!(silent, BTreeSet::from(["c-1-c".to_owned()]));
        assert!(in_use(&listed(vec![json!({"name": "n"})])).is_err());
    }

    #[test]
    fn figures_that_are_none_are_no_figures() {
        let of = |quotas: Value| resources(&json!({"quotas": quotas}), "r");
        let row = of(json!([{"metric": "INSTANCES", "limit": 24.0, "usage": 3.0}])).unwrap();
        assert_eq!(
            (row[0].used, row[0].limit, row[0].kind.as_str()),
            (Some(3), Some(24), "instances")
        );
        assert_eq!(of(json!([{"metric": "CPUS", "limit": "many"}])), Some(Vec::new()));
        for bad in [json!([{"metric": "INSTANCES", "limit": "many"}]), json!("x"), json!([{}])] {
            assert_eq!(of(bad.clone()), None, "{bad}");
        }
    }
}
