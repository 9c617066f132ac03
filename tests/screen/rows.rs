//! Which jobs the list shows: filters, and lineages folded under their leaf.

use tpu_core::model::facts::{ErrorKind, Phase};
use tpu_core::model::groups::{self, Folded};
use tpu_core::model::ids::JobNumber;
use tpu_core::model::job::Status;
use tpu_core::model::member::Member;
use tpu_core::model::view::{JobView, Snapshot};
use tpu_core::plan::filter::Filter;
use tpu_screen::rows::{Arrangement, rows};

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

/// One of several will do: the key stands before the first of them.
#[test]
fn alternatives_join_what_either_would_show() {
    let oom = |job: &mut JobView| job.shown.status = Status::Error(ErrorKind::Oom);
    assert!(passes("status:oom|grpc", oom));
    assert!(passes("status:grpc|oom", oom));
    assert!(!passes("status:grpc|killed", oom));
    assert!(passes("!status:grpc|killed", oom));
    assert!(!passes("!status:oom|killed", oom), "neither, and not one of them");
    assert!(passes("killed|oom", oom), "text");
    assert!(passes("status:killed|tag:swe", |job| job.tags = Some("sweep".to_owned())));
    assert!(passes("tag:none|age>2h", |job| job.age_s = Some(7_201)));
    assert!(!passes("tag:x|agent", |job| job.configs = "agent".to_owned()), "no age, and no text");
    assert!(passes("nothing:x|agent", |job| job.configs = "agent".to_owned()), "no key");
    assert!(passes("status:|", oom) && passes("|", oom), "half typed");
    assert!(!passes("status:grpc|", oom), "what is there counts");
    assert!(Filter::parse("status:oom|age>2x").problem().is_some());
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

/// Members 0 to 2 of the group 20, of which 1 was resumed once, and a job by itself before and behind.
fn with_group() -> Snapshot {
    let mut snapshot = samples::snapshot();
    let member = |window: u32, index: u32| {
        let member = Some(Member { group: JobNumber(20), index });
        JobView { member, ..samples::job(window) }
    };
    let mut first = member(22, 1);
    first.leaf = false;
    first.lineage = vec![JobNumber(22), JobNumber(25)];
    first.shown.status = Status::Resumed(Some(ErrorKind::Grpc));
    let mut second = member(25, 1);
    second.lineage.clone_from(&first.lineage);
    second.shown.status = Status::Error(ErrorKind::Oom);
    snapshot.jobs =
        vec![samples::job(3), member(21, 0), first, member(23, 2), samples::job(24), second];
    snapshot
}

/// The rows of that: an id and for how many members it stands.
fn grouped(filter: &str, unfolded: &[u32]) -> Vec<(u32, usize)> {
    let unfolded = unfolded.iter().map(|window| samples::id(*window)).collect();
    let filter = Filter::parse(filter);
    let rows = rows(&with_group(), &filter, &unfolded, &Arrangement::default());
    rows.iter().map(|row| (row.id.window.0, row.members.len())).collect()
}

#[test]
fn members_of_a_group_fold_into_one_row_for_those_that_the_filter_finds() {
    assert_eq!(grouped("", &[]), [(3, 0), (20, 3), (24, 0)]);
    assert_eq!(grouped("", &[20]), [(3, 0), (20, 3), (21, 0), (23, 0), (25, 0), (24, 0)]);
    assert_eq!(grouped("", &[20, 25])[4..6], [(25, 0), (22, 0)]);
    assert_eq!(grouped("status:running", &[]), [(3, 0), (20, 2), (24, 0)]);
    assert_eq!(grouped("status:oom", &[]), [(25, 0)], "one alone is itself");
    assert_eq!(grouped("status:resumed", &[]), [(22, 0)], "and nothing is hidden in a fold");
    let unfolded = std::collections::BTreeSet::new();
    let all = rows(&with_group(), &Filter::parse(""), &unfolded, &Arrangement::default());
    assert_eq!(all[1].job, 5, "the worst of them leads");
}

#[test]
fn a_filter_finds_what_a_fold_hides() {
    assert_eq!(drawn("status:resumed", &[]), ["└6", "└5"]);
}

#[test]
fn members_of_a_group_are_counted_by_one_word_and_the_most_urgent_stands_for_it() {
    let mut jobs: Vec<JobView> = (1..=4).map(samples::job).collect();
    for (index, job) in (0..).zip(&mut jobs) {
        job.member = Some(Member { group: JobNumber(1), index });
    }
    jobs[1].shown.phase = Some(Phase::Diverged);
    jobs[2].shown.status = Status::Finished;
    assert_eq!(groups::counts(&jobs), "1 diverged, 2 running, 1 finished");
    let rows = groups::folded(&jobs);
    let [Folded::Group(row)] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(row.worst().unwrap().id, jobs[1].id);
}
