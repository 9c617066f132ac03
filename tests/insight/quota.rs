//! `tpu quota`: what is granted, what of it is in use and what is left, as the cloud says it, page by page; what one may
//! not ask is named with the role for it, and nothing is made up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use tpu_core::model::target::Pricing;
use tpu_engine::provider::Trouble;
use tpu_lab::sim::{AccountChange, Call, Event};

use super::made::{account, denied};
use crate::cli::json_schema::assert_described;
use crate::common::env::TestEnv;
use crate::common::rest::Served;
use crate::common::server::Server;

/// A zone with TPUs, and its region.
const ZONE: &str = "us-central2-b";

/// A lab in the cloud: nobody's jobs, and the emulator with whatever is put into it.
fn lab() -> (TestEnv, Served) {
    let mut env = TestEnv::new();
    env.write_data(&json!({ "users": {} }));
    let served = Served::beside(&mut env);
    (env, served)
}

fn node(served: &Served, name: &str, (zone, accelerator): (&str, &str), pricing: Pricing) {
    let event = Event::Ready {
        target: name.to_owned(),
        zone: Some(zone.to_owned()),
        accelerator: Some(accelerator.to_owned()),
        pricing: Some(pricing),
    };
    served.sim().pull(&event).unwrap();
}

fn limit(served: &Served, quota: &str, location: &str, (limit, used): (i64, u64)) {
    let (quota, location) = (quota.to_owned(), location.to_owned());
    account(served, AccountChange::Limit { quota, location, limit, used });
}

/// What is granted and in use there: figures that no two rows have in common.
fn figures(served: &Served) {
    node(served, "a", (ZONE, "v4-32"), Pricing::OnDemand);
    node(served, "b", (ZONE, "v4-8"), Pricing::Spot);
    node(served, "c", (ZONE, "v4-16"), Pricing::Preemptible);
    node(served, "d", ("us-central1-a", "v2-8"), Pricing::OnDemand);
    node(served, "e", ("us-central1-a", "v2-32"), Pricing::OnDemand);
    limit(served, "TPUV4sPodPerProjectPerZoneForTPUAPI", ZONE, (64, 0));
    limit(served, "TPUV4sPreemptiblePodPerProjectPerRegionForTPUAPI", "us-central2", (200, 0));
    limit(served, "TPUV2sPerProjectPerZoneForTPUAPI", "us-central1-a", (16, 0));
    limit(served, "TPUV6EPerProjectPerZoneForTPUAPI", "europe-west4-a", (0, 0));
    limit(served, "TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", "europe-west4-a", (-1, 0));
    limit(served, "IN_USE_ADDRESSES", "us-central2", (575, 3));
    limit(served, "INSTANCES", "us-central1", (24, 5));
    limit(served, "DISKS_TOTAL_GB", "us-central1", (4_096, 700));
    limit(served, "STATIC_ADDRESSES", "global", (8, 2));
    limit(served, "CPUS", "us-central1", (99, 98));
}

fn rows(document: &Value) -> Vec<(String, String, Value, Value, Value)> {
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (text("zone"), text("type"), row["used"].clone(), row["limit"].clone(), row["free"].clone())
    };
    document["rows"].as_array().unwrap().iter().map(row).collect()
}

fn of(zone: &str, kind: &str, figures: [Value; 3]) -> (String, String, Value, Value, Value) {
    let [used, limit, free] = figures;
    (zone.to_owned(), kind.to_owned(), used, limit, free)
}

/// What the command has to say of them. Three nodes of v4 have 4, 1 and 2 workers, each with an address.
fn expected() -> Vec<(String, String, Value, Value, Value)> {
    let none = || Value::Null;
    vec![
        of("europe-west4-a", "v6e-preemptible", [json!(0), none(), none()]),
        of("us-central1-a", "v2", [json!(8), json!(16), json!(8)]),
        of("us-central1-a", "v2-pod", [json!(32), none(), none()]),
        of("us-central2", "v4-preemptible", [json!(24), json!(200), json!(176)]),
        of(ZONE, "v4", [json!(32), json!(64), json!(32)]),
        of("us-central1", "disks-total-gb", [json!(700), json!(4_096), json!(3_396)]),
        of("us-central1", "instances", [json!(5), json!(24), json!(19)]),
        of("us-central2", "in-use-addresses", [json!(10), json!(575), json!(565)]),
        of("global", "static-addresses", [json!(2), json!(8), json!(6)]),
    ]
}

#[test]
fn every_figure_is_the_clouds() {
    let (env, served) = lab();
    figures(&served);
    let document = env.tpu("quota --json").exits(0).json();
    assert_eq!(rows(&document), expected());
    assert_eq!(document["idle"], 1, "v6e on demand");
    assert_described("quota", &document);
    assert_eq!(env.tpu("jobman quota --json").exits(0).json()["rows"], document["rows"]);
    let shown = env.tpu("quota").exits(0).says(&["1 row left out"]);
    let lines: Vec<Vec<&str>> =
        shown.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines.contains(&vec![ZONE, "v4", "32", "32", "64"]), "{}", shown.stdout);
    assert!(lines.contains(&vec!["us-central1-a", "v2-pod", "32", "-", "-"]), "{}", shown.stdout);
    let all = env.tpu("quota --all --json").exits(0).json();
    let idle = of("europe-west4-a", "v6e", [json!(0), json!(0), json!(0)]);
    assert_eq!(rows(&all).first(), Some(&idle));
}

#[test]
fn a_table_for_other_programs_says_the_same() {
    let (env, served) = lab();
    figures(&served);
    let text = env.tpu("quota --csv").exits(0).stdout;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("zone,type,used,limit,free,provider"));
    let cell = |value: &Value| value.as_u64().map(|n| n.to_string()).unwrap_or_default();
    for (zone, kind, used, limit, free) in expected() {
        let line = lines.next().unwrap();
        let figures = format!("{zone},{kind},{},{},{},", cell(&used), cell(&limit), cell(&free));
        assert!(line.starts_with(&figures), "{line} is not {figures}");
        assert!(line.contains("project lab"), "{line}");
    }
    assert_eq!(lines.next(), None);
    drop(env.tpu("quota --csv --json").exits(2).says(&["two answers"]));
}

#[test]
fn words_are_zones_and_types() {
    let (env, served) = lab();
    figures(&served);
    let named = |line: &str| -> Vec<String> {
        let rows = rows(&env.tpu(&format!("quota --json {line}")).exits(0).json());
        rows.into_iter().map(|(zone, kind, ..)| format!("{zone} {kind}")).collect()
    };
    assert_eq!(named("v4"), ["us-central2 v4-preemptible", "us-central2-b v4"]);
    assert_eq!(named("v4 us-central2-b"), ["us-central2-b v4"]);
    assert_eq!(
        named("v2 V4 us"),
        [
            "us-central1-a v2",
            "us-central1-a v2-pod",
            "us-central2 v4-preemptible",
            "us-central2-b v4",
        ]
    );
    assert_eq!(named("addresses"), ["us-central2 in-use-addresses", "global static-addresses"]);
    env.tpu("quota us-centrall2-b").exits(3).says(&["'us-centrall2-b'", ZONE]);
}

#[test]
fn lists_are_read_to_their_end() {
    let (env, served) = lab();
    figures(&served);
    account(&served, AccountChange::Pages { most: 1 });
    assert_eq!(rows(&env.tpu("quota --json").exits(0).json()), expected());
    let asked = |part: &str| {
        let is_it = |asked: &&Value| asked["target"].as_str().is_some_and(|at| at.contains(part));
        served.asked().iter().filter(is_it).count()
    };
    // Five quotas and a rate, and regions with figures of their own.
    assert_eq!((asked("/quotaInfos?"), asked("/regions?")), (6, 2));
}

#[test]
fn a_missing_right_is_named_with_its_role_and_hides_nothing_else() {
    let (env, served) = lab();
    figures(&served);
    denied(&served, Call::Quota, None);
    let document = env.tpu("quota --json").exits(0).says(&["roles/cloudquotas.viewer"]).json();
    let unknown = document["providers"][0]["unknown"].as_array().unwrap();
    assert_eq!(unknown.len(), 1, "{document:#}");
    assert_described("quota", &document);
    assert!(unknown[0]["message"].as_str().unwrap().contains("'cloudquotas.quotas.get' denied"));
    let used: Vec<_> = rows(&document).into_iter().filter(|row| row.1.starts_with('v')).collect();
    let none = Value::Null;
    assert_eq!(
        used,
        [
            of("us-central1-a", "v2", [json!(8), none.clone(), none.clone()]),
            of("us-central1-a", "v2-pod", [json!(32), none.clone(), none.clone()]),
            of(ZONE, "v4", [json!(32), none.clone(), none.clone()]),
            of(ZONE, "v4-preemptible", [json!(24), none.clone(), none]),
        ]
    );
    // What lacks a part is not kept: the role was given meanwhile.
    served.sim().pull(&Event::Calm).unwrap();
    assert_eq!(rows(&env.tpu("quota --json").exits(0).json()), expected());

    denied(&served, Call::Compute, None);
    let shown = env.tpu("quota --fresh").exits(0);
    let shown = shown.says(&["roles/compute.viewer", "'compute.regions.list'", "gcloud projects"]);
    assert!(shown.stdout.contains(ZONE) && !shown.stdout.contains("instances"), "{shown}");
}

#[test]
fn who_may_ask_nothing_is_refused() {
    let (env, served) = lab();
    figures(&served);
    let class = Trouble::Permission;
    let all =
        Event::Error { class, call: None, target: None, zone: None, times: None, for_s: None };
    served.sim().pull(&all).unwrap();
    env.tpu("quota").exits(4).says(&["PERMISSION_DENIED", "roles/cloudquotas.viewer", "lab"]);
    // An API that is off is switched on, and is no matter of roles.
    let off = Server::new(|_| {
        let message = "Cloud Quotas API has not been used in project 7 before or it is disabled.";
        let error = json!({"code": 403, "status": "PERMISSION_DENIED", "message": message});
        Some((403, json!({ "error": error }).to_string()))
    });
    let mut env = TestEnv::new();
    cloud_at(&mut env, &off.url());
    env.tpu("quota").exits(4).says(&["gcloud services enable cloudquotas.googleapis.com"]);
}

#[test]
fn a_zone_that_is_silent_is_not_empty() {
    let (env, served) = lab();
    figures(&served);
    served.sim().pull(&Event::Outage { zone: ZONE.to_owned(), for_s: None }).unwrap();
    let document = env.tpu("quota v4 --json").exits(0).says(&["cannot reach zone"]).json();
    let none = Value::Null;
    assert_eq!(
        rows(&document),
        [
            of("us-central2", "v4-preemptible", [none.clone(), json!(200), none.clone()]),
            of(ZONE, "v4", [none.clone(), json!(64), none]),
        ]
    );
    env.tpu("quota v4").exits(0).says(&["?"]);
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let (env, served) = lab();
    account(&served, AccountChange::NoLimits);
    env.tpu("quota").exits(0).says(&["Nothing is granted, and nothing is in use."]);
    let document = env.tpu("quota --json").exits(0).json();
    assert_eq!((&document["rows"], &document["idle"]), (&json!([]), &json!(0)));
    assert_eq!(env.tpu("quota --csv").exits(0).stdout.lines().count(), 1);
}

#[test]
fn too_many_questions_are_asked_again() {
    let (env, served) = lab();
    figures(&served);
    account(&served, AccountChange::TooFast { times: 2 });
    assert_eq!(rows(&env.tpu("quota --json").exits(0).json()), expected());
    let refused = served.asked().iter().filter(|asked| asked["status"] == 429).count();
    assert_eq!(refused, 2);
}

#[test]
fn an_answer_is_shown_again_with_its_age_until_somebody_wants_a_fresh_one() {
    let (mut env, served) = lab();
    figures(&served);
    drop(env.tpu("quota").exits(0));
    let asked = served.asked().len();
    assert_eq!(rows(&env.tpu("quota --json").exits(0).json()), expected());
    assert_eq!(served.asked().len(), asked, "nobody was asked");
    let name = format!("tpu-state/asked-{}.json", rustix::process::getuid().as_raw());
    let text = String::from_utf8(env.wait_file(&name)).unwrap();
    let mode = std::fs::metadata(env.path(&name)).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
    // Written two minutes earlier, it is two minutes old.
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    let answers = kept["answers"].as_object_mut().unwrap();
    let mut set_back = |seconds: i64| {
        for answer in answers.values_mut() {
            let at = answer["at"].as_str().unwrap();
            let at = tpu_core::model::time::Timestamp::parse_rfc3339(at).unwrap();
            answer["at"] = json!(at.plus_seconds(-seconds).to_rfc3339());
        }
        crate::common::tmux::write_file(
            &env.path(&name),
            &json!({ "answers": answers }).to_string(),
        );
    };
    set_back(120);
    env.tpu("quota").exits(0).says(&["asked 2m", "ago (--fresh asks again)"]);
    assert_eq!(served.asked().len(), asked);
    let fresh = env.tpu("quota --fresh").exits(0);
    assert!(!fresh.stdout.contains("ago") && served.asked().len() > asked, "{fresh}");
    let asked = served.asked().len();
    set_back(200);
    drop(env.tpu("quota").exits(0));
    assert!(served.asked().len() > asked, "an old answer is asked for again");
    // What nobody can read is asked again; another project has its own answer.
    crate::common::tmux::write_file(&env.path(&name), "{");
    assert_eq!(rows(&env.tpu("quota --json").exits(0).json()), expected());
    let asked = served.asked().len();
    env.set("TPU_PROJECT", "other");
    drop(env.tpu("quota").exits(0).says(&["project other"]));
    assert!(served.asked().len() > asked);
}

/// The cloud is at this address.
fn cloud_at(env: &mut TestEnv, address: &str) {
    env.write_data(&json!({ "users": {} }));
    for (name, value) in [
        ("TPU_CLOUD", "google"),
        ("TPU_PROJECT", "lab"),
        ("TPU_CLOUD_AUTH", "none"),
        ("TPU_CLOUD_ENDPOINT", address),
    ] {
        env.set(name, value);
    }
}

#[test]
fn what_cannot_be_read_is_no_figure() {
    for (quotas, regions, why) in [
        ("<html>", "{}", "no JSON"),
        ("[]", "{}", "cannot be read as a list"),
        (r#"{"quotaInfos": [{"quotaId": 7}]}"#, "{}", "cannot be read as a list"),
        (r#"{"quotaInfos": [], "nextPageToken": "1"}"#, "{}", "never ends"),
        ("{}", r#"{"items": [{"quotas": []}]}"#, "cannot be read as a list"),
        (
            "{}",
            r#"{"items": [{"name": "r", "quotas": [{"metric": "INSTANCES", "limit": "x"}]}]}"#,
            "cannot be read as a list",
        ),
    ] {
        let tries = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&tries);
        let server = Server::new(move |asked| {
            seen.fetch_add(1, Ordering::SeqCst);
            let body = match asked.line.as_str() {
                line if line.contains("/quotaInfos") => quotas,
                line if line.contains("/regions") => regions,
                _ => "{}",
            };
            Some((200, body.to_owned()))
        });
        let mut env = TestEnv::new();
        cloud_at(&mut env, &server.url());
        let shown = env.tpu("quota").exits(0).says(&[why]);
        assert!(!shown.stdout.contains("instances"), "{shown}");
        assert!(tries.load(Ordering::SeqCst) >= 4, "every part is asked");
    }
}

#[test]
fn without_a_cloud_it_says_how_to_name_one() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    env.tpu("quota").exits(4).says(&["no control plane is set up", "set-settings cloud google"]);
    // The simulator grants by its seed: the same each time, and counts what it has.
    let first = env.tpu("--cloud sim quota --all --fresh --json").exits(0).json();
    let again = env.tpu("--cloud sim quota --all --fresh --json").exits(0).json();
    assert_eq!(first["rows"], again["rows"]);
    let used: u64 = rows(&first)
        .iter()
        .filter(|(_, kind, ..)| kind == "v2-pod" || kind == "v2-pod-preemptible")
        .filter_map(|(_, _, used, ..)| used.as_u64())
        .sum();
    assert!(used >= 32, "{first:#}");
}
