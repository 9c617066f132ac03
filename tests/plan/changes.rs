//! What counts as a change between two looks: over random pairs of looks, each job that has changed is told of once, and
//! no other is.

use proptest::prelude::*;

use tpu_core::model::facts::{ErrorKind, Phase, Progress};
use tpu_core::model::job::Status;
use tpu_core::model::rules::Action;
use tpu_core::model::target::Machines;
use tpu_core::model::view::{JobView, MonitorHealth, Next, Pending, Snapshot, TmuxHealth};
use tpu_core::plan::changes::{LookChange, changes, father, remembering};

use crate::common::samples::{self, held, id, job, waiting};

fn look(jobs: Vec<JobView>) -> Snapshot {
    Snapshot { jobs, ..samples::snapshot() }
}

fn at(window: u32, percent: f64) -> JobView {
    let mut job = job(window);
    job.shown.progress = Progress { percent: Some(percent), ..Progress::default() };
    job
}

fn next(action: &str, waits: bool) -> Next {
    let reason = "because".to_owned();
    Next { action: action.to_owned(), in_s: None, budget_left: None, reason, waits }
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::Unset),
        Just(Status::Starting),
        Just(Status::Running),
        Just(Status::Finished),
        Just(Status::Error(ErrorKind::Oom)),
        Just(Status::Error(ErrorKind::Grpc)),
        Just(Status::Killed(None)),
        Just(Status::Killed(Some(ErrorKind::Stalled))),
        Just(Status::Resumed(Some(ErrorKind::Grpc))),
        Just(Status::Rerunned(None)),
    ]
}

fn jobs() -> impl Strategy<Value = JobView> {
    let phase = prop_oneof![
        Just(None),
        Just(Some(Phase::Compiling)),
        Just(Some(Phase::Stalled)),
        Just(Some(Phase::Diverged)),
    ];
    let next = prop_oneof![
        Just(None),
        Just(Some(next("resume", false))),
        Just(Some(next("rerun", false))),
        Just(Some(next(Action::Pass.as_str(), true))),
        Just(Some(next(Action::Pass.as_str(), false))),
    ];
    let percent = proptest::option::of(-10.0..120.0_f64);
    let rare = || proptest::bool::weighted(0.2);
    (1_u32..6, statuses(), phase, next, percent, (rare(), rare(), rare(), rare()), 0_u8..6)
        .prop_map(
            |(window, status, phase, next, percent, (unknown, pending, intent, lost), queue)| {
                let mut job = match queue {
                    0 => waiting(window, 1),
                    1 => held(window, 1),
                    _ => job(window),
                };
                if job.shown.queued.is_none() {
                    job.shown.status = status;
                }
                job.shown.phase = phase;
                job.shown.progress = Progress { percent, ..Progress::default() };
                job.shown.unknown = unknown.then(|| "tmux does not answer".to_owned());
                job.shown.pending = pending.then(|| Pending {
                    reason: None,
                    expected_start: None,
                    raw: "PD".to_owned(),
                });
                job.intent = intent.then(|| "killing".to_owned());
                job.target_unknown = lost.then(|| "zone-a: no answer".to_owned());
                job.next = next;
                job
            },
        )
}

fn looks() -> impl Strategy<Value = Snapshot> {
    let tmux = prop_oneof![
        Just(TmuxHealth::Up),
        Just(TmuxHealth::Down),
        Just(TmuxHealth::Unknown("slow".to_owned())),
    ];
    let monitor = prop_oneof![
        Just(MonitorHealth::NotRunning),
        (0_u64..100).prop_map(|turn_age_s| MonitorHealth::Running { turn_age_s }),
        (0_u64..100).prop_map(|turn_age_s| MonitorHealth::Watching {
            turn_age_s,
            why: format!("it was told so {turn_age_s}s ago")
        }),
    ];
    (proptest::collection::vec(jobs(), 0..7), tmux, monitor)
        .prop_map(|(jobs, tmux, monitor)| Snapshot { tmux, monitor, ..look(jobs) })
}

/// The first record of a job: what counts where a file has two.
fn first(look: &Snapshot, window: u32) -> Option<&JobView> {
    look.jobs.iter().find(|job| job.id == id(window))
}

fn about(change: &LookChange<'_>) -> Option<u32> {
    match change {
        LookChange::New { job, .. }
        | LookChange::State { job, .. }
        | LookChange::Outlook(job)
        | LookChange::Tenth(job)
        | LookChange::Gone(job) => Some(job.id.window.0),
        LookChange::Daemon { .. }
        | LookChange::DaemonWatches(_)
        | LookChange::Windows(_)
        | LookChange::TargetsLost { .. }
        | LookChange::TargetsBack(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_has_changed_between_equal_looks(look in looks()) {
        prop_assert_eq!(changes(&look, &look), vec![]);
        // Nor is anything told twice.
        let told = remembering(&look, look.clone());
        prop_assert_eq!(changes(&told, &look), vec![]);
    }

    #[test]
    fn a_job_that_has_changed_is_told_of_once_and_no_other(before in looks(), after in looks()) {
        let changes = changes(&before, &after);
        for window in 1..6 {
            let told: Vec<_> =
                changes.iter().filter(|change| about(change) == Some(window)).cloned().collect();
            match (first(&before, window), first(&after, window)) {
                (None, None) => prop_assert!(told.is_empty()),
                (None, Some(job)) => {
                    let is_new = matches!(told[..], [LookChange::New { job: new, .. }] if *new == *job);
                    prop_assert!(is_new, "{:?}", told);
                }
                (Some(job), None) => prop_assert_eq!(told, vec![LookChange::Gone(job)]),
                (Some(before), Some(job)) if before.state() != job.state() => {
                    prop_assert_eq!(told, vec![LookChange::State { before, job }]);
                }
                (Some(before), Some(job)) => {
                    prop_assert!(told.len() <= 1, "{:?}", told);
                    let may_differ = before.next != job.next
                        || before.intent != job.intent
                        || before.shown.progress != job.shown.progress;
                    prop_assert!(may_differ || told.is_empty(), "{:?}", told);
                }
            }
        }
    }

    /// Whatever comes in between: from what was told to the newest look, nothing is told twice.
    #[test]
    fn what_was_told_is_not_told_again(looks in proptest::collection::vec(looks(), 2..5)) {
        let mut told = looks[0].clone();
        for look in &looks[1..] {
            told = remembering(&told, look.clone());
            prop_assert_eq!(changes(&told, look), vec![]);
        }
    }
}

#[test]
fn only_another_tenth_of_the_way_is_a_change() {
    let told = |before: f64, after: f64| {
        let (before, after) = (look(vec![at(7, before)]), look(vec![at(7, after)]));
        changes(&before, &after).len()
    };
    assert_eq!(
        [told(0.0, 9.99), told(9.9, 10.0), told(31.0, 39.0), told(39.0, 62.0)],
        [0, 1, 0, 1]
    );
    assert_eq!(told(62.0, 39.0), 0, "what goes back is no progress");
    assert_eq!(told(28.9, 29.0), 0);
    assert_eq!(told(99.9, 100.0), 1);
}

#[test]
fn a_tmux_that_does_not_answer_matters_where_jobs_run_in_windows() {
    let told = |machines: Machines, tmux: TmuxHealth| {
        let before = look(vec![JobView { machines, ..job(7) }]);
        let after = Snapshot { tmux, ..before.clone() };
        let told: Vec<_> = changes(&before, &after);
        assert_eq!(after.misses_tmux(), !told.is_empty());
        told.len()
    };
    for tmux in [TmuxHealth::Down, TmuxHealth::Unknown("tmux is not installed".to_owned())] {
        assert_eq!(told(Machines::Here, tmux.clone()), 1);
        assert_eq!(told(Machines::Fixed, tmux.clone()), 1);
        assert_eq!(told(Machines::Engine, tmux), 0, "an engine needs none");
    }
}

#[test]
fn a_bar_that_begins_anew_is_not_told_anew() {
    let mut told = look(vec![at(7, 38.0)]);
    let mut lines = 0;
    for percent in [2.0, 12.0, 38.0, 41.0, 3.0, 49.0, 50.0] {
        let look = look(vec![at(7, percent)]);
        lines += changes(&told, &look).len();
        told = remembering(&told, look);
    }
    assert_eq!(lines, 2, "40 and 50 percent");
}

#[test]
fn what_follows_is_told_once_it_is_decided_and_is_another() {
    let failed = |next: Option<Next>| {
        let mut job = samples::grpc(8);
        job.next = next;
        look(vec![job])
    };
    let resume = failed(Some(next("resume", false)));
    let open = failed(Some(next("pass", true)));
    let nothing = failed(Some(next("pass", false)));
    let told = remembering(&resume, open.clone());
    assert!(changes(&resume, &open).is_empty() && changes(&told, &resume).is_empty());
    assert!(matches!(changes(&told, &nothing)[..], [LookChange::Outlook(_)]));
    assert!(matches!(changes(&nothing, &resume)[..], [LookChange::Outlook(_)]));
}

#[test]
fn a_successor_is_new_and_goes_on_for_its_father() {
    let lineage = [5, 6].map(tpu_core::model::ids::JobNumber).to_vec();
    let mut failed = samples::grpc(5);
    failed.lineage = vec![tpu_core::model::ids::JobNumber(5)];
    let parent = samples::ancestor(5, &[5, 6], ErrorKind::Grpc);
    let mut child = job(6);
    child.lineage = lineage;
    let (before, after) = (look(vec![failed]), look(vec![parent.clone(), child.clone()]));
    let told = changes(&before, &after);
    assert!(
        matches!(&told[..], [
        LookChange::State { job, .. }, LookChange::New { job: new, of: Some(of) },
    ] if **job == parent && **new == child && **of == parent),
        "{told:?}"
    );
    assert_eq!(father(&child), Some(id(5)));
}

#[test]
fn targets_that_nobody_knows_of_are_told_together_by_reason() {
    let lost = |window: u32, label: &str, why: Option<&str>| {
        let mut job = job(window);
        job.target = label.into();
        label.clone_into(&mut job.target_label);
        job.target_unknown = why.map(str::to_owned);
        job
    };
    let known =
        look(vec![lost(1, "a", None), lost(2, "b", None), lost(3, "b", None), lost(4, "c", None)]);
    let gone = look(vec![
        lost(1, "a", Some("zone-a is silent")),
        lost(2, "b", Some("zone-a is silent")),
        lost(3, "b", Some("zone-a is silent")),
        lost(4, "c", None),
    ]);
    let told = LookChange::TargetsLost { labels: vec!["a", "b"], why: "zone-a is silent" };
    assert_eq!(changes(&known, &gone), vec![told]);
    assert_eq!(changes(&gone, &known), vec![LookChange::TargetsBack(vec!["a", "b"])]);
    // How old it is changes with each look, and is no news.
    let mut later = gone.clone();
    later.jobs[0].target_unknown = Some("zone-a is silent still".to_owned());
    assert!(changes(&gone, &later).is_empty());
}
