//! `tpu billing`: what a month has cost by day and category, credits apart, as the export in `BigQuery` has it; what a
//! person types is never part of a query's text.

use serde_json::{Value, json};

use tpu_lab::sim::{AccountChange, BillLine, Call};

use super::made::{account, denied, near};
use crate::cli::json_schema::assert_described;
use crate::common::env::TestEnv;
use crate::common::rest::Served;
use crate::common::server::Server;

const TABLE: &str = "lab.billing.gcp_billing_export_v1_01AB23_456789_CDEF01";

/// A lab whose bills the emulator keeps.
fn lab() -> (TestEnv, Served) {
    let mut env = TestEnv::new();
    env.write_data(&env.two_users());
    let served = Served::beside(&mut env);
    drop(env.tpu(&format!("set-settings billing_table {TABLE} alice")).exits(0));
    env.set("TPU_USER", "alice");
    (env, served)
}

fn line(served: &Served, day: &str, (service, sku): (&str, &str), (cost, credits): (f64, f64)) {
    bill(served, day, (service, sku, "lab"), (cost, credits, None));
}

fn bill(
    served: &Served,
    day: &str,
    (service, sku, project): (&str, &str, &str),
    (cost, credits, currency): (f64, f64, Option<&str>),
) {
    account(
        served,
        AccountChange::Bill(BillLine {
            table: TABLE.to_owned(),
            day: day.to_owned(),
            service: service.to_owned(),
            sku: sku.to_owned(),
            project: Some(project.to_owned()),
            cost,
            credits,
            currency: currency.map(str::to_owned),
        }),
    );
}

/// Three days of October and one on each side of it.
fn october(served: &Served) {
    line(served, "2026-09-30", ("Cloud TPU", "v4"), (1_000.0, 0.0));
    line(served, "2026-10-01", ("Cloud TPU", "v4"), (400.25, -100.0));
    line(served, "2026-10-01", ("Cloud TPU", "v5e"), (50.5, 0.0));
    line(served, "2026-10-01", ("Cloud Storage", "Standard"), (2.125, 0.0));
    line(served, "2026-10-17", ("Cloud Storage", "Standard"), (0.1, 0.0));
    line(served, "2026-10-17", ("Cloud Storage", "Egress"), (0.2, -0.3));
    line(served, "2026-10-31", ("Cloud TPU", "v4"), (300.0, -75.5));
    line(served, "2026-11-01", ("Cloud TPU", "v4"), (2_000.0, 0.0));
}

/// Day, category, cost, credits and what is left.
type Row = (&'static str, &'static str, f64, f64, f64);

const BY_SERVICE: &[Row] = &[
    ("2026-10-01", "Cloud Storage", 2.125, 0.0, 2.125),
    ("2026-10-01", "Cloud TPU", 450.75, -100.0, 350.75),
    ("2026-10-17", "Cloud Storage", 0.3, -0.3, 0.0),
    ("2026-10-31", "Cloud TPU", 300.0, -75.5, 224.5),
];

#[track_caller]
fn are(document: &Value, rows: &[Row]) {
    let found = document["rows"].as_array().unwrap();
    assert_eq!(found.len(), rows.len(), "{document:#}");
    for (found, (day, category, cost, credits, net)) in found.iter().zip(rows) {
        assert_eq!((&found["day"], &found["category"]), (&json!(day), &json!(category)));
        near(&found["cost"], *cost);
        near(&found["credits"], *credits);
        near(&found["net"], *net);
        assert_eq!(found["currency"], "USD");
    }
}

#[test]
fn every_figure_is_that_of_the_export() {
    let (env, served) = lab();
    october(&served);
    let document = env.tpu("billing --month 2026-10 --json").exits(0).json();
    are(&document, BY_SERVICE);
    assert_described("billing", &document);
    let jobmans = env.tpu("jobman billing --month 2026-10 --json").exits(0).json();
    assert_eq!(jobmans["rows"], document["rows"]);
    assert_eq!((&document["month"], &document["table"]), (&json!("2026-10"), &json!(TABLE)));
    let total = &document["totals"][0];
    near(&total["cost"], 753.175);
    near(&total["credits"], -175.8);
    near(&total["net"], 577.375);
    assert_eq!(document["totals"].as_array().unwrap().len(), 1);
    are(
        &env.tpu("billing --month 2026-10 --by sku --json").exits(0).json(),
        &[
            ("2026-10-01", "Standard", 2.125, 0.0, 2.125),
            ("2026-10-01", "v4", 400.25, -100.0, 300.25),
            ("2026-10-01", "v5e", 50.5, 0.0, 50.5),
            ("2026-10-17", "Egress", 0.2, -0.3, -0.1),
            ("2026-10-17", "Standard", 0.1, 0.0, 0.1),
            ("2026-10-31", "v4", 300.0, -75.5, 224.5),
        ],
    );
}

#[test]
fn people_see_categories_and_bars_for_the_days() {
    let (env, served) = lab();
    october(&served);
    let shown = env.tpu("billing --month 2026-10").exits(0);
    let lines: Vec<Vec<&str>> =
        shown.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    for expected in [
        vec!["Cloud", "TPU", "750.75", "-175.50", "575.25", "USD"],
        vec!["Cloud", "Storage", "2.42", "-0.30", "2.12", "USD"],
        vec!["total", "753.17", "-175.80", "577.38", "USD"],
    ] {
        let is_it =
            |line: &&Vec<&str>| line.first() == expected.first() && line.get(1) == expected.get(1);
        assert!(lines.iter().any(|line| is_it(&line)), "{expected:?} in\n{}", shown.stdout);
    }
    // The dearest day has the longest bar, a day that cost nothing in the end has none.
    let bar = |day: &str| {
        let line = shown.stdout.lines().find(|line| line.trim_start().starts_with(day)).unwrap();
        line.chars().filter(|c| ('█'..='▏').contains(c) || *c == '#').count()
    };
    assert!(bar("2026-10-01") > bar("2026-10-31"), "{}", shown.stdout);
    assert_eq!(bar("2026-10-17"), 0, "{}", shown.stdout);
    assert!(bar("2026-10-31") > 0);
}

#[test]
fn a_table_for_other_programs_says_the_same() {
    let (env, served) = lab();
    october(&served);
    let text = env.tpu("billing --month 2026-10 --csv").exits(0).stdout;
    let expected = "day,service,currency,cost,credits,net\n\
                    2026-10-01,Cloud Storage,USD,2.125,0,2.125\n\
                    2026-10-01,Cloud TPU,USD,450.75,-100,350.75\n\
                    2026-10-17,Cloud Storage,USD,0.3,-0.3,0\n\
                    2026-10-31,Cloud TPU,USD,300,-75.5,224.5\n";
    assert_eq!(text.trim_end(), expected.trim_end());
    drop(env.tpu("billing --csv --json").exits(2).says(&["two answers"]));
}

#[test]
fn currencies_are_not_added_up() {
    let (env, served) = lab();
    bill(&served, "2026-10-02", ("Cloud TPU", "v4", "lab"), (10.0, 0.0, Some("EUR")));
    bill(&served, "2026-10-02", ("Cloud TPU", "v4", "other"), (7.0, -1.0, Some("USD")));
    let document = env.tpu("billing --month 2026-10 --json").exits(0).json();
    let totals: Vec<(&Value, &Value)> = document["totals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (&t["currency"], &t["net"]))
        .collect();
    assert_eq!(totals, [(&json!("EUR"), &json!(10.0)), (&json!("USD"), &json!(6.0))]);
    env.tpu("billing --month 2026-10").exits(0).says(&["net by day, EUR", "net by day, USD"]);
    let by_project = env.tpu("billing --month 2026-10 --by project --csv").exits(0).stdout;
    assert!(by_project.contains("2026-10-02,other,USD,7,-1,6"), "{by_project}");
}

#[test]
fn a_result_is_waited_for_and_read_to_its_end() {
    let (env, served) = lab();
    october(&served);
    account(&served, AccountChange::Pages { most: 1 });
    account(&served, AccountChange::SlowQuery { looks: 2 });
    let document = env.tpu("billing --month 2026-10 --json").exits(0).json();
    are(&document, BY_SERVICE);
    let asked = served.asked();
    let count = |is_it: &dyn Fn(&str, &str) -> bool| {
        let of = |asked: &&Value| {
            is_it(asked["method"].as_str().unwrap(), asked["target"].as_str().unwrap())
        };
        asked.iter().filter(of).count()
    };
    assert_eq!(count(&|method, at| method == "POST" && at.ends_with("/queries")), 1);
    // Twice it was not done, then came the first of four pages.
    assert_eq!(count(&|method, at| method == "GET" && at.contains("/queries/job_")), 5);
    assert_eq!(count(&|_, at| at.contains("pageToken=") && at.contains("location=US")), 3);
}

#[test]
fn what_is_typed_is_a_parameter() {
    let (env, served) = lab();
    october(&served);
    drop(env.tpu("billing --month 2026-10").exits(0));
    let asked = served.asked();
    let body = &asked.iter().find(|asked| asked["method"] == "POST").unwrap()["body"];
    let text = body["query"].as_str().unwrap();
    assert!(!text.contains("2026") && text.contains(&format!("FROM `{TABLE}` ")), "{text}");
    let parameter = |name: &str| {
        let all = body["queryParameters"].as_array().unwrap();
        all.iter().find(|of| of["name"] == name).unwrap()["parameterValue"]["value"].clone()
    };
    assert_eq!(
        (parameter("first"), parameter("behind")),
        (json!("2026-10-01"), json!("2026-11-01"))
    );
    // What is no month and no table never becomes a question.
    let before = served.asked().len();
    for month in ["2026-10'; DROP TABLE x", "2026", "october", "2026-13", "2999-01"] {
        drop(env.tpu_words(&["billing", "--month", month]).exits(2));
    }
    for table in ["billing.t", "lab.b.t` WHERE true --", "lab.b.t t", "Lab.b.t"] {
        let refused = env.tpu_words(&["set-settings", "billing_table", table, "alice"]).exits(2);
        drop(refused.says(&["billing_table", "PROJECT.DATASET.TABLE"]));
    }
    drop(env.tpu("billing --by day").exits(2).says(&["service, sku, project"]));
    assert_eq!(served.asked().len(), before);
}

#[test]
fn a_missing_right_is_named_with_its_role() {
    let (env, served) = lab();
    october(&served);
    denied(&served, Call::Query, None);
    let refused = env.tpu("billing --month 2026-10").exits(4);
    drop(refused.says(&["bigquery.jobs.create", "roles/bigquery.jobUser", "lab"]));
    served.sim().pull(&tpu_lab::sim::Event::Calm).unwrap();
    denied(&served, Call::Query, Some(TABLE));
    let refused = env.tpu("billing --month 2026-10").exits(4);
    drop(refused.says(&["does not have permission to query table", "roles/bigquery.dataViewer"]));
}

#[test]
fn a_table_that_is_not_there_is_named_with_its_setting() {
    let (env, served) = lab();
    env.tpu("billing --month 2026-10").exits(3).says(&[
        "Not found: Table",
        "billing_table",
        "Billing export",
    ]);
    assert_eq!(served.asked().last().unwrap()["status"], 404);
    drop(env.tpu("reset-settings billing_table alice").exits(0));
    let without = env.tpu("billing").exits(4);
    drop(without.says(&["nobody has said where the bills are", "set-settings billing_table"]));
}

#[test]
fn a_month_without_charges_says_so() {
    let (env, served) = lab();
    october(&served);
    env.tpu("billing --month 2026-08").exits(0).says(&["has no charges of 2026-08"]);
    let document = env.tpu("billing --month 2026-08 --json").exits(0).json();
    assert_eq!((&document["rows"], &document["totals"]), (&json!([]), &json!([])));
    assert_eq!(env.tpu("billing --month 2026-08 --csv").exits(0).stdout.lines().count(), 1);
}

#[test]
fn too_many_questions_are_asked_again() {
    let (env, served) = lab();
    october(&served);
    account(&served, AccountChange::TooFast { times: 2 });
    are(&env.tpu("billing --month 2026-10 --json").exits(0).json(), BY_SERVICE);
    assert_eq!(served.asked().iter().filter(|asked| asked["status"] == 429).count(), 2);
}

#[test]
fn a_bill_is_read_once_an_hour() {
    let (env, served) = lab();
    october(&served);
    drop(env.tpu("billing --month 2026-10").exits(0));
    let asked = served.asked().len();
    are(&env.tpu("billing --month 2026-10 --json").exits(0).json(), BY_SERVICE);
    assert_eq!(served.asked().len(), asked);
    // Another question is another answer.
    drop(env.tpu("billing --month 2026-09").exits(0));
    drop(env.tpu("billing --month 2026-10 --by sku").exits(0));
    assert_eq!(served.asked().len(), asked + 2);
    drop(env.tpu("billing --month 2026-10 --fresh").exits(0));
    assert_eq!(served.asked().len(), asked + 3);
}

#[test]
fn what_cannot_be_read_is_no_bill() {
    for (body, why) in [
        ("<html>", "no JSON"),
        ("{}", "cannot be read"),
        (r#"{"jobComplete": true, "rows": 7}"#, "cannot be read"),
        (r#"{"jobComplete": true, "rows": [{"f": [{"v": "2026-10-01"}]}]}"#, "cannot be read"),
        (r#"{"jobComplete": false}"#, "cannot be read"),
        (
            r#"{"jobComplete": true, "jobReference": {"jobId": "j"}, "pageToken": "1"}"#,
            "never ends",
        ),
    ] {
        let server = Server::new(move |_| Some((200, body.to_owned())));
        let mut env = TestEnv::new();
        env.write_data(&env.two_users());
        drop(env.tpu(&format!("set-settings billing_table {TABLE} alice")).exits(0));
        for (name, value) in [
            ("TPU_USER", "alice"),
            ("TPU_CLOUD", "google"),
            ("TPU_PROJECT", "lab"),
            ("TPU_CLOUD_AUTH", "none"),
            ("TPU_CLOUD_ENDPOINT", server.url().as_str()),
        ] {
            env.set(name, value);
        }
        let shown = env.tpu("billing --month 2026-10").exits(6).says(&[why]);
        assert_eq!(shown.stdout, "", "{shown}");
    }
}

#[test]
fn a_month_of_practice_is_drawn_from_the_seed() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let month = json!({ "bill-month": { "table": TABLE, "month": "2026-10" } }).to_string();
    drop(env.tpu(&format!("set-settings billing_table {TABLE} alice")).exits(0));
    let missing = env.tpu("--cloud sim --user alice billing --month 2026-10").exits(3);
    drop(missing.says(&["bill-month", "tpu sim event account"]));
    drop(env.tpu_words(&["sim", "event", "account", &format!("change={month}")]).exits(0));
    let line = "--cloud sim --user alice billing --month 2026-10 --json";
    let document = env.tpu(line).exits(0).json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 31 * 4, "four services on each day");
    assert!(document["totals"][0]["credits"].as_f64().unwrap() < 0.0);
}
