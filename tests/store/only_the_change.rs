//! Random documents, random changes: nothing but the change is different afterwards.

use proptest::prelude::*;
use serde_json::{Value, json};
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::{Job, Status};

use crate::store::document::parse;

/// Any JSON value, with the strings and numbers that trip printers.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\\\\"\u{0}-\u{1f}{}\\[\\],:é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A document with keys that nobody knows at every level.
fn any_document() -> impl Strategy<Value = Value> {
    let extra = || prop::collection::vec(("x[a-zé\"\\\\]{0,4}", any_value()), 0..3);
    let job = (1_u32..30, extra(), extra(), any::<bool>()).prop_map(|(id, out, deep, text)| {
        let mut job = json!({"windows_id": id, "status": "running", "error": null});
        if text {
            job["windows_id"] = json!(id.to_string());
        }
        job["extra_msgs"] = Value::Object(deep.into_iter().collect());
        job.as_object_mut().unwrap().extend(out);
        job
    });
    let user = (prop::collection::vec(job, 0..5), extra()).prop_map(|(mut jobs, extra)| {
        let mut seen = std::collections::HashSet::new();
        jobs.retain(|job| seen.insert(job["windows_id"].to_string().replace('"', "")));
        let mut user = json!({"id": 0, "job_data": jobs});
        user.as_object_mut().unwrap().extend(extra);
        user
    });
    (prop::collection::vec(("[a-z]{1,5}", user), 0..3), extra()).prop_map(|(users, extra)| {
        let users: serde_json::Map<String, Value> = users.into_iter().collect();
        let mut document = json!({ "users": users, "ack_MONITOR": false });
        document.as_object_mut().unwrap().extend(extra);
        document
    })
}

fn laid_out(value: &Value, layout: usize) -> String {
    let indent: &[u8] = match layout {
        0 => return value.to_string(),
        1 => b"  ",
        2 => b"    ",
        _ => b"\t",
    };
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(indent);
    serde::Serialize::serialize(
        value,
        &mut serde_json::Serializer::with_formatter(&mut out, format),
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutation_touches_only_what_it_must(
        document in any_document(),
        layout in 0_usize..4,
        which in any::<prop::sample::Index>(),
        mutation in 0_usize..5,
    ) {
        let text = laid_out(&document, layout);
        let mut data = parse(&text);
        prop_assert_eq!(data.to_text(), text.clone());
        let ids: Vec<JobId> = data.jobs().map(Job::id).collect();
        let mut expected = document;
        if ids.is_empty() {
            data.set_ack(true);
            expected["ack_MONITOR"] = json!(true);
        } else {
            let id = which.get(&ids);
            let jobs = expected["users"][id.user.as_str()]["job_data"].as_array_mut().unwrap();
            let at = jobs.iter().position(|job| {
                job["windows_id"] == json!(id.window) || job["windows_id"] == json!(id.window.to_string())
            }).unwrap();
            let user = data.user_mut(&id.user).unwrap();
            match mutation {
                0 => {
                    user.job_mut(id.window).unwrap().status = Status::Killed(None);
                    jobs[at]["status"] = json!("killed");
                }
                1 => {
                    user.job_mut(id.window).unwrap().child = Some(JobNumber(77));
                    jobs[at]["extra_msgs"]["child"] = json!(77);
                }
                2 => {
                    user.job_mut(id.window).unwrap().job_tags = Some("é\"\n".to_owned());
                    jobs[at]["job_tags"] = json!("é\"\n");
                }
                3 => {
                    let removed = user.remove_job(id.window);
                    prop_assert_eq!(removed.unwrap().to_value(), jobs.remove(at));
                }
                _ => {
                    data.set_ack(true);
                    expected["ack_MONITOR"] = json!(true);
                }
            }
        }
        let now = data.to_text();
        let found: Value = serde_json::from_str(&now).unwrap();
        prop_assert_eq!(&found, &expected);
        // Keys in order as well, and everything in the layout that the document had.
        prop_assert_eq!(&now, &laid_out(&expected, layout));
        prop_assert_eq!(parse(&now).to_text(), now);
    }
}
