//! Which jobs the list shows: filters, and lineages folded under their leaf.

use tpu::model::facts::ErrorKind;
use tpu::model::job::Status;
use tpu::model::view::JobView;
use tpu::screen::filter::Filter;
use tpu::screen::rows::{Arrangement, rows};

use crate::common::samples;

fn passes(text: &str, change: impl FnOnce(&mut JobView)) -> bool {
    let mut job = samples::job(7);
    change(&mut job);
    let filter = Filter::parse(text);
    assert_eq!(filter.problem(), None, "{text}");
    filter.matches(&job)
}

#[test]
fn each_key_looks_where_it_says() {
    let oom = |job: &mut JobView| job.shown.status = Status::Error(ErrorKind::Oom);
    assert!(passes("status:error", oom));
    assert!(passes("status:oom", oom));
    assert!(!passes("status:running", oom));
    assert!(passes("tag:swe", |job| job.tags = Some("Sweep".to_owned())));
    assert!(!passes("tag:swe", |job| job.tags = None));
    assert!(passes("tpu:v4", |job| job.target_label = "v4-8-2".to_owned()));
    assert!(passes("dir:imagenet", |job| job.dir = (Some(1), "/home/a/imagenet".to_owned())));
    assert!(passes("dir:3", |job| job.dir = (Some(3), "/x".to_owned())));
    assert!(!passes("user:bob", |_| ()));
}

#[test]
fn ages_compare() {
    assert!(passes("age>2h", |job| job.age_s = Some(7_201)));
    assert!(!passes("age>2h", |job| job.age_s = Some(7_200)));
    assert!(passes("age<3d", |job| job.age_s = Some(7_200)));
    assert!(!passes("age>0", |job| job.age_s = None), "an unknown age is neither");
    assert_eq!(
        Filter::parse("age>2x").problem(),
        Some("'2x' is no span: write 90s, 20m, 2h or 3d")
    );
}

#[test]
fn terms_join_and_turn_round() {
    let oom = |job: &mut JobView| job.shown.status = Status::Error(ErrorKind::Oom);
    assert!(passes("status:error !tag:sweep", oom));
    assert!(!passes("status:error tag:sweep", oom));
    assert!(!passes("!OOM", oom), "text looks at the status too, in any case");
}

#[test]
fn what_is_half_typed_hides_nothing() {
    for text in ["status:", "!", "!tag:", "age>", ""] {
        assert!(passes(text, |_| ()), "{text:?}");
    }
}

fn drawn(filter: &str, unfolded: &[u32]) -> Vec<String> {
    let snapshot = samples::snapshot();
    let unfolded = unfolded.iter().map(|window| samples::id(*window)).collect();
    let rows = rows(&snapshot, &Filter::parse(filter), &unfolded, &Arrangement::default());
    rows.iter()
        .map(|row| {
            let folded = if row.folded > 0 { format!("+{}", row.folded) } else { String::new() };
            format!("{}{}{folded}", if row.attempt { "└" } else { "" }, row.id.window)
        })
        .collect()
}

#[test]
fn lineages_fold_under_their_leaf() {
    assert_eq!(drawn("", &[])[..4], ["3", "4", "7+2", "8"]);
    assert_eq!(drawn("", &[7])[..6], ["3", "4", "7", "└6", "└5", "8"]);
}

#[test]
fn a_filter_finds_what_a_fold_hides() {
    assert_eq!(drawn("status:resumed", &[]), ["└6", "└5"]);
}
