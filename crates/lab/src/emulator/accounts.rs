//! Quotas and bills as the APIs beside Cloud TPU tell them: Cloud Quotas, Compute Engine, `BigQuery`, each in its own
//! words for what it refuses.
//!
//! `BigQuery` is no database here. It knows one form of query, that of `tpu billing`: which table, which column stands
//! for the category, and which days, by their parameters.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::api::{Answer, quietly};
use super::request::ApiRequest;
use crate::sim::faults::Delivery;
use crate::sim::fleet::Fleet;
use crate::sim::{Call, SimCloud};
use tpu_core::model::billing::{Charge, ChargeBy, INVOICE_ZONE};
use tpu_engine::provider::{ProviderError, Trouble};

/// Entries on a page when nobody says how many.
const PAGE: usize = 500;

/// An error in the words of an API: `WORD: message`.
fn refused(trouble: Trouble, message: String) -> ProviderError {
    ProviderError::new(trouble, "answer", message)
}

/// Asks the fleet, unless questions come too fast; `denied` is what is said to who may not ask.
fn asked(
    sim: &SimCloud,
    call: Call,
    service: &str,
    denied: &str,
    work: impl Fn(&mut Fleet) -> Result<Value, ProviderError>,
) -> Answer {
    let answered = sim.accounted(call, "answer", None, |fleet| {
        if let Some(fewer) = fleet.accounts.too_fast.checked_sub(1) {
            fleet.accounts.too_fast = fewer;
            return Err(refused(
                Trouble::Quota,
                format!(
                    "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Read requests' and limit 'Read requests \
                     per minute' of service '{service}.googleapis.com' for consumer 'project_number:1'."
                ),
            ));
        }
        work(fleet)
    });
    in_words(answered, denied)
}

fn in_words(
    answered: Result<(Delivery, Result<Value, ProviderError>), ProviderError>,
    denied: &str,
) -> Answer {
    let (delivery, given) = match answered {
        Ok(answered) => answered,
        Err(error) => return quietly(Err(error)),
    };
    let is_denied = delivery.error == Some(Trouble::Permission);
    let denial = || refused(Trouble::Permission, format!("PERMISSION_DENIED: {denied}"));
    let given = given.map_err(|error| if is_denied { denial() } else { error });
    Answer { delivery, given }
}

/// A page of `all`, which begins where the token says, and the token of the next one.
fn page<T>(
    fleet: &Fleet,
    request: &ApiRequest,
    size: &str,
    all: Vec<T>,
) -> Result<(Vec<T>, Option<String>), ProviderError> {
    let wrong = |name: &str| {
        refused(Trouble::User, format!("INVALID_ARGUMENT: the value of '{name}' is invalid"))
    };
    let number = |name: &str| match request.parameter(name) {
        None => Ok(None),
        Some(text) => text.parse::<usize>().map(Some).map_err(|_| wrong(name)),
    };
    let begin = number("pageToken")?.unwrap_or(0);
    let most = number(size)?.filter(|size| *size > 0).unwrap_or(PAGE).min(PAGE);
    let most = fleet.accounts.most_on_a_page.unwrap_or(most).min(most);
    let end = begin.saturating_add(most);
    let next = (end < all.len()).then(|| end.to_string());
    Ok((all.into_iter().skip(begin).take(most).collect(), next))
}

/// `quotaInfos` of a service, by Cloud Quotas.
pub(super) fn quota_infos(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (project, service) = (request.place("project"), request.place("service"));
    let denied = format!(
        "Permission 'cloudquotas.quotas.get' denied on resource \
         '//cloudquotas.googleapis.com/projects/{project}/locations/global/services/{service}' (or it may not exist)."
    );
    asked(sim, Call::Quota, "cloudquotas", &denied, |fleet| {
        let mut by_id: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let granted = if service == "tpu.googleapis.com" { fleet.granted() } else { Vec::new() };
        for of in granted {
            let place = &of.location;
            let kind = match place.as_str() {
                "global" => None,
                place if fleet.zones.contains(place) => Some("zone"),
                _ => Some("region"),
            };
            let mut entry = json!({ "details": {}, "applicableLocations": [place] });
            // A value of 0 is left out, as the JSON of protocol buffers leaves it out.
            if of.limit != Some(0) {
                let limit = of.limit.map_or_else(|| "-1".to_owned(), |limit| limit.to_string());
                entry["details"]["value"] = json!(limit);
            }
            if let Some(kind) = kind {
                entry["dimensions"] = json!({ kind: place });
            }
            by_id.entry(of.id).or_default().push(entry);
        }
        let parent = format!("projects/{project}/locations/global/services/{service}");
        let info = |(id, entries): (String, Vec<Value>)| {
            json!({
                "name": format!("{parent}/quotaInfos/{id}"), "quotaId": id, "service": service,
                "metric": format!("{service}/{}", id.to_ascii_lowercase()), "isPrecise": true,
                "containerType": "PROJECT", "dimensions": ["zone"], "dimensionsInfos": entries,
            })
        };
        let rate = json!({
            "name": format!("{parent}/quotaInfos/ReadRequestsPerMinutePerProject"), "service": service,
            "quotaId": "ReadRequestsPerMinutePerProject", "refreshInterval": "minute",
            "dimensionsInfos": [{ "details": { "value": "1200" }, "applicableLocations": ["global"] }],
        });
        let all: Vec<Value> = by_id.into_iter().map(info).chain([rate]).collect();
        let (entries, next) = page(fleet, request, "pageSize", all)?;
        let mut answer = json!({ "quotaInfos": entries });
        if let Some(next) = next {
            answer["nextPageToken"] = json!(next);
        }
        Ok(answer)
    })
}

/// Figures as Compute Engine writes them.
fn figures(all: &[(String, i64, u64)]) -> Vec<Value> {
    #[expect(clippy::cast_precision_loss, reason = "as the API has them")]
    let figure = |(name, limit, used): &(String, i64, u64)| json!({ "metric": name, "limit": *limit as f64, "usage": *used as f64 });
    all.iter().map(figure).collect()
}

/// The regions of Compute Engine, with their quotas.
pub(super) fn regions(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let project = request.place("project");
    let denied = format!("Required 'compute.regions.list' permission for 'projects/{project}'");
    asked(sim, Call::Compute, "compute", &denied, |fleet| {
        let all = fleet.resources().into_iter().filter(|(place, _)| place != "global");
        let region = |(name, quotas): (String, Vec<(String, i64, u64)>)| {
            json!({
                "kind": "compute#region", "name": name, "status": "UP", "quotas": figures(&quotas),
            })
        };
        let (items, next) = page(fleet, request, "maxResults", all.map(region).collect())?;
        let mut answer = json!({ "kind": "compute#regionList", "items": items });
        if let Some(next) = next {
            answer["nextPageToken"] = json!(next);
        }
        Ok(answer)
    })
}

/// A project of Compute Engine, with its quotas.
pub(super) fn project(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let project = request.place("project");
    let denied = format!("Required 'compute.projects.get' permission for 'projects/{project}'");
    asked(sim, Call::Compute, "compute", &denied, |fleet| {
        let quotas = fleet.resources().remove("global").unwrap_or_default();
        Ok(json!({
            "kind": "compute#project", "name": project, "quotas": figures(&quotas),
            "commonInstanceMetadata": { "kind": "compute#metadata", "items": [] },
        }))
    })
}

/// What a query asks for.
struct Query {
    table: String,
    by: ChargeBy,
    first: String,
    behind: String,
}

impl Query {
    /// Reads the one form of query that there is here.
    fn read(body: &Value) -> Result<Self, ProviderError> {
        let wrong = |what: &str| refused(Trouble::User, format!("INVALID_ARGUMENT: {what}"));
        let text =
            body["query"].as_str().ok_or_else(|| wrong("Required parameter is missing: query"))?;
        if body["useLegacySql"].as_bool() != Some(false) || body["parameterMode"] != "NAMED" {
            return Err(wrong("this is not legacy SQL, and its parameters have names"));
        }
        let table = text.split('`').nth(1).ok_or_else(|| wrong("Table name missing"))?;
        let category =
            text.split(" AS category").next().and_then(|before| before.rsplit(' ').next());
        let by = match category {
            Some("service.description") => ChargeBy::Service,
            Some("sku.description") => ChargeBy::Sku,
            Some("project.id") => ChargeBy::Project,
            other => {
                return Err(wrong(&format!("Unrecognized name: {}", other.unwrap_or_default())));
            }
        };
        let parameters = body["queryParameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let parameter = |name: &str, of_type: &str| {
            let is_it = |of: &&Value| of["name"] == name && of["parameterType"]["type"] == of_type;
            let found = parameters.iter().find(is_it);
            let value = found.and_then(|of| of["parameterValue"]["value"].as_str());
            let missing = || wrong(&format!("Query parameter '{name}' not found"));
            value.map(str::to_owned).ok_or_else(missing)
        };
        if parameter("zone", "STRING")? != INVOICE_ZONE {
            return Err(wrong("the bills here are kept in California"));
        }
        let (first, behind) = (parameter("first", "DATE")?, parameter("behind", "DATE")?);
        Ok(Self { table: table.to_owned(), by, first, behind })
    }

    /// The name of its job, from which it is read again: the emulator keeps nothing.
    fn job(&self) -> String {
        let parts = [self.table.as_str(), self.by.as_str(), &self.first, &self.behind];
        let text = parts.join("/");
        let hex: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("job_{}", hex.concat())
    }

    /// Reads the name of a job.
    fn of_job(name: &str) -> Option<Self> {
        let hex = name.strip_prefix("job_")?;
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        let text = String::from_utf8(bytes?).ok()?;
        let mut parts = text.split('/').map(str::to_owned);
        let (table, by) = (parts.next()?, ChargeBy::parse(&parts.next()?)?);
        Some(Self { table, by, first: parts.next()?, behind: parts.next()? })
    }
}

/// Begins a query.
pub(super) fn query(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    match Query::read(&body) {
        Ok(asked) => {
            let size = body["maxResults"].as_u64().and_then(|size| usize::try_from(size).ok());
            answer(sim, request, &asked, size)
        }
        Err(error) => quietly(Err(error)),
    }
}

/// What has become of one, and a page of its result.
pub(super) fn query_results(sim: &SimCloud, request: &ApiRequest) -> Answer {
    let (project, job) = (request.place("project"), request.place("job"));
    if let Some(asked) = Query::of_job(job) {
        return answer(sim, request, &asked, None);
    }
    let message = format!("NOT_FOUND: Not found: Job {project}:US.{job}");
    quietly(Err(refused(Trouble::NotFound, message)))
}

fn answer(sim: &SimCloud, request: &ApiRequest, of: &Query, size: Option<usize>) -> Answer {
    let project = request.place("project");
    let job = format!(
        "Access Denied: Project {project}: User does not have bigquery.jobs.create permission in project {project}."
    );
    let may_begin = asked(sim, Call::Query, "bigquery", &job, |_| Ok(Value::Null));
    if may_begin.given.is_err() {
        return may_begin;
    }
    let shown = of.table.replacen('.', ":", 1);
    let data = format!(
        "Access Denied: Table {shown}: User does not have permission to query table {shown}, or perhaps it does not exist."
    );
    let answered = sim.accounted(Call::Query, "answer", Some(&of.table), |fleet| {
        let reference = json!({ "projectId": project, "jobId": of.job(), "location": "US" });
        let head = |is_done: bool| {
            json!({
                "kind": "bigquery#queryResponse", "jobReference": reference, "jobComplete": is_done,
            })
        };
        if let Some(fewer) = fleet.accounts.slow_looks.checked_sub(1) {
            fleet.accounts.slow_looks = fewer;
            return Ok(head(false));
        }
        let charges = fleet.accounts.charges(&of.table, &of.first, &of.behind, of.by);
        let charges = charges.ok_or_else(|| {
            let message =
                format!("NOT_FOUND: Not found: Table {shown} was not found in location US");
            refused(Trouble::NotFound, message)
        })?;
        let total = charges.len();
        let (mut rows, mut next) = page(fleet, request, "maxResults", charges)?;
        if let Some(size) = size.filter(|size| *size < rows.len()) {
            rows.truncate(size);
            next = Some(size.to_string());
        }
        let mut answer = head(true);
        answer["totalRows"] = json!(total.to_string());
        answer["schema"] = json!({ "fields": [
            { "name": "day", "type": "STRING", "mode": "NULLABLE" },
            { "name": "category", "type": "STRING", "mode": "NULLABLE" },
            { "name": "currency", "type": "STRING", "mode": "NULLABLE" },
            { "name": "cost", "type": "NUMERIC", "mode": "NULLABLE" },
            { "name": "credits", "type": "NUMERIC", "mode": "NULLABLE" },
        ] });
        if !rows.is_empty() {
            answer["rows"] = rows.iter().map(row).collect();
        }
        if let Some(next) = next {
            answer["pageToken"] = json!(next);
        }
        Ok(answer)
    });
    let mut answer = in_words(answered, &data);
    // What happens to its first half happens to the whole.
    answer.delivery.lost |= may_begin.delivery.lost;
    answer.delivery.slow_s = answer.delivery.slow_s.max(may_begin.delivery.slow_s);
    answer
}

/// A row as `BigQuery` writes it: every cell is text.
fn row(charge: &Charge) -> Value {
    // NUMERIC has nine digits behind the point, and no trailing zeros.
    let amount = |amount: f64| {
        let text = format!("{amount:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let Charge { day, category, currency, cost, credits } = charge;
    let cells = [day.clone(), category.clone(), currency.clone(), amount(*cost), amount(*credits)];
    json!({ "f": cells.map(|cell| json!({ "v": cell })) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_found_again_by_its_name() {
        let of = Query {
            table: "lab.b.t-1".to_owned(),
            by: ChargeBy::Sku,
            first: "2026-10-01".to_owned(),
            behind: "2026-11-01".to_owned(),
        };
        let again = Query::of_job(&of.job()).unwrap();
        assert_eq!((again.table, again.by), (of.table, ChargeBy::Sku));
        assert_eq!((again.first, again.behind), (of.first, of.behind));
        for bad in ["", "job_", "job_0", "job_\u{e9}\u{e9}", "job_zz", "job_ff", "x"] {
            assert!(Query::of_job(bad).is_none(), "{bad}");
        }
    }
}
