//! What a month has cost, from the table of `BigQuery` to which Cloud Billing exports.
//!
//! One query (`jobs.query`, <https://cloud.google.com/bigquery/docs/reference/rest/v2/jobs/query>); what is not done at
//! once, and every further page, is fetched by `jobs.getQueryResults`
//! (<https://cloud.google.com/bigquery/docs/reference/rest/v2/jobs/getQueryResults>). Columns are those of the standard
//! export, which the detailed one has as well
//! (<https://cloud.google.com/billing/docs/how-to/export-data-bigquery-tables/standard-usage>). Days begin at midnight in
//! California, as on the invoice.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::listing::unreadable;
use super::quota::Rights;
use super::{Api, Google, Method, escaped};
use crate::queued;
use tpu_core::model::billing::{BillingQuery, Charge, ChargeBy, INVOICE_ZONE};
use tpu_engine::provider::{ProviderError, RequestId, Trouble};

/// Rows on a page.
const PAGE: u32 = 1_000;
/// More pages than a month has rows.
const PAGES: usize = 1_000;
/// How long the server holds one question for what is not done yet, in milliseconds.
const HOLD_MS: u32 = 20_000;
/// How often it is asked until a query counts as lost: some ten minutes.
const LOOKS: u32 = 30;
/// Between two such questions, should the server not hold them.
const BREATH: Duration = Duration::from_millis(200);

const JOB: Rights = Rights { api: "bigquery.googleapis.com", role: "roles/bigquery.jobUser" };
const DATA: Rights = Rights { api: "bigquery.googleapis.com", role: "roles/bigquery.dataViewer" };

/// The query. Nothing that a person types stands in it but the name of the table, of which
/// [`tpu_core::model::billing::BillingTable`] has made sure that it is one.
fn sql(asked: &BillingQuery) -> String {
    let category = match asked.by {
        ChargeBy::Service => "service.description",
        ChargeBy::Sku => "sku.description",
        ChargeBy::Project => "project.id",
    };
    format!(
        "SELECT CAST(DATE(usage_start_time, @zone) AS STRING) AS day, {category} AS category, currency, \
         SUM(CAST(cost AS NUMERIC)) AS cost, \
         SUM(IFNULL((SELECT SUM(CAST(credit.amount AS NUMERIC)) FROM UNNEST(credits) AS credit), 0)) AS credits \
         FROM `{}` \
         WHERE usage_start_time >= TIMESTAMP(@first, @zone) AND usage_start_time < TIMESTAMP(@behind, @zone) \
         GROUP BY day, category, currency ORDER BY day, category, currency",
        asked.table
    )
}

fn parameter(name: &str, of_type: &str, value: &str) -> Value {
    json!({
        "name": name, "parameterType": { "type": of_type }, "parameterValue": { "value": value },
    })
}

impl Google {
    /// What a month has cost.
    pub(super) fn billed(&self, asked: &BillingQuery) -> Result<Vec<Charge>, ProviderError> {
        let doing = format!("read {}", asked.table);
        let api = self.api().map_err(|e| ProviderError { doing: doing.clone(), ..e })?;
        self.queried(api, asked, &doing).map_err(|error| explained(error, asked, &api.project))
    }

    fn queried(
        &self,
        api: &Api,
        asked: &BillingQuery,
        doing: &str,
    ) -> Result<Vec<Charge>, ProviderError> {
        let queries =
            format!("{}/bigquery/v2/projects/{}/queries", api.host("bigquery"), api.project);
        let request = RequestId(self.config.random.hex(16));
        let body = json!({
            "query": sql(asked), "useLegacySql": false, "parameterMode": "NAMED",
            "queryParameters": [
                parameter("zone", "STRING", INVOICE_ZONE),
                parameter("first", "DATE", &asked.month.first_day()),
                parameter("behind", "DATE", &asked.month.day_behind()),
            ],
            "maxResults": PAGE, "timeoutMs": HOLD_MS,
            // The same question again is the same query, and is paid for once.
            "requestId": queued::uuid(&request),
        });
        let ask = |body: &Value| api.ask_at(Method::Post, &queries, Some(body), doing);
        let mut page = self.persistently(|| ask(&body))?;
        let job = page["jobReference"].clone();
        let mut charges = Vec::new();
        let (mut looks, mut tokens) = (0, BTreeSet::new());
        loop {
            let token = match page["jobComplete"].as_bool() {
                Some(true) => {
                    charges.extend(rows(&page).ok_or_else(|| unreadable(doing))?);
                    match &page["pageToken"] {
                        Value::Null => return Ok(charges),
                        Value::String(token) if token.is_empty() => return Ok(charges),
                        Value::String(token) => Some(token.clone()),
                        _ => return Err(unreadable(doing)),
                    }
                }
                Some(false) => None,
                None => return Err(unreadable(doing)),
            };
            let is_lost = if let Some(token) = &token {
                !tokens.insert(token.clone()) || tokens.len() > PAGES
            } else {
                looks += 1;
                self.config.clock.sleep(BREATH);
                looks > LOOKS
            };
            if is_lost {
                let message = match token {
                    Some(_) => "the result never ends: the API gives the same page again",
                    None => "the query is not done yet",
                };
                return Err(ProviderError::new(Trouble::Transient, doing, message));
            }
            let at = results(&job, token.as_deref()).ok_or_else(|| unreadable(doing))?;
            let url = format!("{queries}/{at}");
            page = self.persistently(|| api.ask_at(Method::Get, &url, None, doing))?;
        }
    }
}

/// Where more of a query's result is, below `queries/`.
fn results(job: &Value, token: Option<&str>) -> Option<String> {
    let id = job["jobId"].as_str()?;
    let mut at = format!("{}?maxResults={PAGE}&timeoutMs={HOLD_MS}", escaped(id));
    if let Some(location) = job["location"].as_str() {
        at += &format!("&location={}", escaped(location));
    }
    if let Some(token) = token {
        at += &format!("&pageToken={}", escaped(token));
    }
    Some(at)
}

/// The rows of a page: `BigQuery` writes each cell as text. `None` for what is no page of this query.
fn rows(page: &Value) -> Option<Vec<Charge>> {
    let rows = match &page["rows"] {
        // A result without rows has no such member.
        Value::Null => return Some(Vec::new()),
        rows => rows.as_array()?,
    };
    let row = |row: &Value| {
        let [day, category, currency, cost, credits] = row["f"].as_array()?.as_slice() else {
            return None;
        };
        let text = |cell: &Value| cell["v"].as_str().map(str::to_owned);
        let amount = |cell: &Value| match &cell["v"] {
            Value::Null => Some(0.0),
            value => value.as_str()?.parse::<f64>().ok().filter(|amount| amount.is_finite()),
        };
        Some(Charge {
            day: text(day)?,
            // Taxes and adjustments are of no project.
            category: text(category).unwrap_or_else(|| "-".to_owned()),
            currency: text(currency).unwrap_or_default(),
            cost: amount(cost)?,
            credits: amount(credits)?,
        })
    };
    rows.iter().map(row).collect()
}

/// An error with what can be done about it.
fn explained(error: ProviderError, asked: &BillingQuery, project: &str) -> ProviderError {
    let setting = "the setting billing_table names it: tpu get-settings billing_table --origin";
    match error.trouble {
        Trouble::Permission if error.message.contains("bigquery.jobs.create") => {
            JOB.named(error, project)
        }
        Trouble::Permission => DATA.named(error, asked.table.project()),
        Trouble::NotFound => error.remedy(format!(
            "{setting}; where it is shows the console: Billing, Billing export, BigQuery export"
        )),
        Trouble::User => error.remedy(format!(
            "is {} an export of Cloud Billing (standard or detailed usage cost)? {setting}",
            asked.table
        )),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::billing::{BillingTable, Month};

    #[test]
    fn what_a_person_says_stands_in_parameters() {
        for by in ChargeBy::ALL {
            let asked = BillingQuery {
                table: BillingTable::parse("lab.billing.t").unwrap(),
                month: Month::parse("2026-10").unwrap(),
                by,
            };
            let text = sql(&asked);
            assert!(!text.contains("2026") && text.matches('`').count() == 2, "{text}");
            assert!(text.contains("FROM `lab.billing.t` WHERE"), "{text}");
        }
    }

    #[test]
    fn what_is_no_row_makes_no_charge() {
        let row = |cells: Value| json!({"rows": [{"f": cells}]});
        let good = row(
            json!([{"v": "2026-10-01"}, {"v": null}, {"v": "EUR"}, {"v": "1.25"}, {"v": "-0.5"}]),
        );
        let charge = rows(&good).unwrap().remove(0);
        assert_eq!((charge.category.as_str(), charge.net()), ("-", 0.75));
        assert_eq!(rows(&json!({})), Some(Vec::new()));
        for bad in [
            json!({"rows": 7}),
            row(json!([])),
            row(json!([{"v": "2026-10-01"}, {"v": "s"}, {"v": "EUR"}, {"v": "much"}, {"v": "0"}])),
            row(json!([{"v": "2026-10-01"}, {"v": "s"}, {"v": "EUR"}, {"v": "NaN"}, {"v": "0"}])),
            row(json!([{"v": null}, {"v": "s"}, {"v": "EUR"}, {"v": "1"}, {"v": "0"}])),
        ] {
            assert_eq!(rows(&bad), None, "{bad}");
        }
    }
}
