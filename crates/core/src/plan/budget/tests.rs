//! What the counts of a lineage mean, case by case.

use super::*;
use crate::model::execution::Execution;
use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
use crate::model::job::{LaunchMode, StoredVerdict, Stretch};
use crate::model::spec::StoredSpec;

/// A child that lived for so many seconds, whose lineage has been through `recovery`.
fn child(lasted_s: Option<i64>, recovery: Recovery) -> Job {
    let id = JobId::new(UserName::from("alice"), JobNumber(7));
    let mut job = Job::new(&id, TargetName::from("tpu-a"), "/d".to_owned());
    let at = Timestamp::from_second(1_000);
    job.father = Some(JobNumber(6));
    let ended = lasted_s.map(|seconds| at.plus_seconds(seconds));
    let claimed = Launch::claimed("t7", LaunchMode::Native, at);
    job.launch = Some(Launch { confirmed: true, ended, ..claimed });
    job.keep_counts(recovery);
    job
}

#[test]
fn only_a_known_life_of_an_own_failure_counts_for_or_against_a_crash_loop() {
    let quick = |lasted_s, kind| {
        inherited(&child(lasted_s, Recovery { quick: 2, ..Recovery::default() }), kind).quick
    };
    assert_eq!(quick(Some(60), ErrorKind::Grpc), 3);
    assert_eq!(quick(Some(61), ErrorKind::Grpc), 0);
    assert_eq!(quick(None, ErrorKind::Lost), 2, "nobody knows when it ended");
    assert_eq!(quick(Some(5), ErrorKind::Preempted), 2, "that was not the program");
    assert_eq!(quick(Some(900), ErrorKind::Preempted), 2);
    assert_eq!(quick(Some(5), ErrorKind::Launch), 2, "its program never began");
    assert_eq!(quick(Some(900), ErrorKind::Launch), 2);
    // What an engine let wait lived from when that began it.
    let at_engine = |worked: &[i64]| {
        let mut job = child(Some(900), Recovery { quick: 2, ..Recovery::default() });
        let begun = |from: &i64| Stretch { from: Timestamp::from_second(*from), until: None };
        let worked = Some(worked.iter().map(begun).collect());
        job.launch = job.launch.map(|launch| Launch { worked, ..launch });
        inherited(&job, ErrorKind::Grpc).quick
    };
    assert_eq!((at_engine(&[1_890]), at_engine(&[1_000])), (3, 0));
    assert_eq!(at_engine(&[]), 2, "it has only waited");
}

#[test]
fn what_is_left_is_the_smaller_of_the_budget_and_the_crash_loop() {
    let left = |quick, infra, kind| {
        let recovery = Recovery { infra, quick, ..Recovery::default() };
        let job = child(Some(5), recovery);
        RetryCounts::of(&job, &Progress::default(), kind).left(Budget::of(&job, kind))
    };
    assert_eq!(left(0, 1, ErrorKind::Grpc), 2, "the first that died at once");
    assert_eq!(left(1, 2, ErrorKind::Grpc), 1, "the next such death stops it");
    assert_eq!(left(2, 3, ErrorKind::Grpc), 0);
    assert_eq!(left(1, 20, ErrorKind::Grpc), 0, "the budget is the smaller one");
    assert_eq!(left(1, 2, ErrorKind::Preempted), 10_000);
    let long = child(Some(900), Recovery { infra: 2, quick: 2, ..Recovery::default() });
    let standing = RetryCounts::of(&long, &Progress::default(), ErrorKind::Grpc);
    assert_eq!(standing.left(Budget::Infrastructure), 18, "a long life ends the row");
}

#[test]
fn progress_that_was_noted_begins_one_row_and_not_every_following_one() {
    let noted = Recovery { infra: 5, capacity_row: 4, progressed: true, ..Recovery::default() };
    let mut job = child(None, noted);
    let now = Timestamp::from_second(2_000);
    for row in 1..4 {
        let counts = spent(&job, &Progress::default(), ErrorKind::Grpc, now);
        assert_eq!((counts.infra, counts.capacity_row), (row, 0));
        assert_eq!(counts.last_action_at, Some(now));
        job.keep_counts(counts);
    }
}

#[test]
fn a_child_begins_with_the_counts_and_without_the_judgement_of_its_parent() {
    let parent = Recovery {
        capacity: 3,
        infra: 2,
        best: Mark { epoch: None, step: Some(900) },
        progressed: true,
        judged: Some(Timestamp::from_second(1_500)),
        waits_since: Some(Timestamp::from_second(1_600)),
        stopped: Some("enough".to_owned()),
        ..Recovery::default()
    };
    let born = inherited(&child(Some(500), parent.clone()), ErrorKind::Grpc);
    let (judged, waits_since, stopped) = (None, None, None);
    let expected = Recovery { progressed: false, judged, waits_since, stopped, ..parent };
    assert_eq!(born, expected);
}

/// An attempt with an end, whose file wants it retried.
fn retried(code: i32, line: &str, on: &[ErrorKind], recovery: Recovery) -> Job {
    let mut job = child(Some(5), recovery);
    let retry = Retry { max: 5, on: on.to_vec(), backoff_s: Some(60) };
    let execution = Execution { retry: Some(retry), ..Execution::default() };
    job.spec = Some(Box::new(StoredSpec { execution, ..StoredSpec::default() }));
    if let Some(launch) = job.launch.as_mut() {
        launch.exit = Some(code);
    }
    let (rule, line) = ("traceback".to_owned(), line.to_owned());
    let kind = ErrorKind::PythonError;
    job.verdict = Some(StoredVerdict { kind, rule, line, ignored: false });
    job
}

/// How many retries are left after each of these failures, one attempt after the other.
fn life(kind: ErrorKind, failures: &[(i32, &str)]) -> Vec<u32> {
    let mut recovery = Recovery::default();
    let none = Progress::default();
    let mut left = Vec::new();
    for (code, line) in failures {
        let mut job = retried(*code, line, &[kind], recovery);
        left.push(RetryCounts::of(&job, &none, kind).left(Budget::of(&job, kind)));
        job.keep_counts(spent(&job, &none, kind, Timestamp::from_second(2_000)));
        recovery = inherited(&job, kind);
    }
    left
}

#[test]
fn a_program_that_fails_alike_is_retried_twice_and_others_as_often_as_their_file_says() {
    let (oom, lost) = (ErrorKind::Oom, ErrorKind::Lost);
    let same = [(1, "step 12: no memory"); 4];
    assert_eq!(life(oom, &same), [2, 1, 0, 0]);
    let numbered = [(1, "step 1: full"), (1, "step 23: full"), (1, "step 345: full")];
    assert_eq!(life(oom, &numbered), [2, 1, 0]);
    let addressed = [(1, "at 0x7f3a: bad"), (1, "at 0xbeef: bad"), (1, "at deadbeef: bad")];
    assert_eq!(life(oom, &addressed), [2, 1, 0]);
    let differ = [(1, "a"), (1, "b"), (2, "b"), (2, "b"), (3, "b"), (4, "b")];
    assert_eq!(life(oom, &differ), [2, 2, 2, 1, 1, 0]);
    assert_eq!(life(lost, &[(1, "gone"); 6]), [2, 1, 0, 0, 0, 0], "a loss of infrastructure");
    assert_eq!(life(ErrorKind::Timeout, &[(143, "its time is over"); 6]), [5, 4, 3, 2, 1, 0]);
}

#[test]
fn what_came_to_nothing_is_no_second_failure_of_the_program() {
    let (oom, none) = (ErrorKind::Oom, Progress::default());
    let mut job = retried(1, "no memory", &[oom], Recovery::default());
    for tried in 1..4 {
        job.keep_counts(in_vain(&job, &none, oom, Timestamp::from_second(2_000)));
        let standing = RetryCounts::of(&job, &none, oom);
        assert!(!standing.fails_alike(Budget::of(&job, oom)), "{tried}");
        assert_eq!(standing.left(Budget::of(&job, oom)), (5_u32 - tried).min(2));
    }
}

#[test]
fn a_failure_that_is_not_named_counts_under_its_own_kind() {
    let job = retried(1, "x", &[ErrorKind::Oom], Recovery::default());
    assert_eq!(Budget::of(&job, ErrorKind::PythonError), Budget::Program);
    assert_eq!(Budget::of(&job, ErrorKind::Preempted), Budget::Capacity);
    let none = Progress::default();
    let counts = spent(&job, &none, ErrorKind::Preempted, Timestamp::from_second(2_000));
    assert_eq!((counts.retried, counts.capacity), (0, 1));
}

#[test]
fn a_pause_that_is_asked_for_comes_before_the_first_retry_too() {
    let job = retried(1, "x", &[ErrorKind::Oom], Recovery::default());
    let ended = job.launch.as_ref().unwrap().ended;
    let standing = RetryCounts::of(&job, &Progress::default(), ErrorKind::Oom);
    let budget = Budget::of(&job, ErrorKind::Oom);
    let pause = |counts: &RetryCounts| counts.pause(budget, RetryStanding::Quick(1));
    let pace = Pace { base_s: 60, limit_s: 600 };
    assert_eq!(pause(&standing), Pause { pace, row: 1, since: ended });
    let tried = spent(&job, &Progress::default(), ErrorKind::Oom, Timestamp::from_second(9_000));
    let tried = Job { recovery: Some(Box::new(tried)), ..job };
    let standing = RetryCounts::of(&tried, &Progress::default(), ErrorKind::Oom);
    let since = Some(Timestamp::from_second(9_000));
    assert_eq!(pause(&standing), Pause { pace, row: 2, since });
}

/// Seven days, the setting where nobody has set another.
const PATIENCE_S: u64 = 7 * 86_400;

/// A child that has failed for good, and that its rules bring back.
fn failed(kind: ErrorKind, recovery: Recovery) -> Job {
    let rules = crate::model::rules::Rules::parse("grpc:resume,lost:resume,preempted:reapply");
    Job { status: Status::Error(kind), rules: rules.unwrap(), ..child(None, recovery) }
}

#[test]
fn rare_tries_follow_the_quick_ones_for_seven_days_and_progress_ends_them() {
    let (kind, none) = (ErrorKind::Grpc, Progress::default());
    let begin = Timestamp::from_second(100_000);
    let crashing = failed(kind, Recovery { infra: 4, quick: 3, ..Recovery::default() });
    let counts = patient(&crashing, &none, kind, begin);
    assert_eq!((counts.infra, counts.patient_since), (20, Some(begin)), "however few there were");
    let mut job = failed(kind, Recovery { quick: 0, ..counts });
    let mut now = begin;
    let mut tries = Vec::new();
    loop {
        let counts = RetryCounts::of(&job, &none, kind);
        let standing = counts.standing(Budget::Infrastructure, PATIENCE_S, now);
        if standing == RetryStanding::Over(Spent::Patience) {
            break;
        }
        assert_eq!(standing, RetryStanding::Patient);
        let pause = counts.pause(Budget::Infrastructure, standing);
        now = backoff::not_before(pause, now, 0.0);
        tries.push(now.seconds_since(begin) / 60);
        job.keep_counts(spent(&job, &none, kind, now));
        let recovery = inherited(&job, kind);
        job = failed(kind, recovery);
    }
    assert_eq!(tries.get(..5), Some(&[30, 90, 210, 450, 690][..]));
    assert!(tries.last().is_some_and(|last| (6 * 24 * 60..=7 * 24 * 60).contains(last)));
    let further = Progress { step: Some(1), ..none.clone() };
    let counts = RetryCounts::of(&job, &further, kind);
    let standing = counts.standing(Budget::Infrastructure, PATIENCE_S, now);
    assert_eq!((standing, counts.patient_since()), (RetryStanding::Quick(20), None));
}

#[test]
fn only_failures_of_infrastructure_are_waited_for_and_no_limit_of_a_job_file() {
    let now = Timestamp::from_second(100_000);
    let over = |kind| {
        let job = failed(kind, Recovery { infra: 20, ..Recovery::default() });
        let counts = RetryCounts::of(&job, &Progress::default(), kind);
        counts.standing(Budget::of(&job, kind), PATIENCE_S, now)
    };
    for kind in
        [ErrorKind::Grpc, ErrorKind::Locked, ErrorKind::SshLost, ErrorKind::Lost, ErrorKind::Setup]
    {
        assert_eq!(over(kind), RetryStanding::Patient, "{kind}");
    }
    for kind in [ErrorKind::Timeout, ErrorKind::Stalled, ErrorKind::Launch, ErrorKind::Unknown] {
        assert_eq!(over(kind), RetryStanding::Over(Spent::Budget), "{kind}");
    }
    assert_eq!(over(ErrorKind::Preempted), RetryStanding::Quick(10_000));
    let job =
        retried(1, "gone", &[ErrorKind::Grpc], Recovery { retried: 5, ..Recovery::default() });
    let counts = RetryCounts::of(&job, &Progress::default(), ErrorKind::Grpc);
    let budget = Budget::of(&job, ErrorKind::Grpc);
    assert_eq!(counts.standing(budget, PATIENCE_S, now), RetryStanding::Over(Spent::Budget));
}

#[test]
fn a_person_wakes_what_waits_once_and_what_is_counted_stays() {
    let (kind, now) = (ErrorKind::Grpc, Timestamp::from_second(100_000));
    let last = Some(now.plus_seconds(-5));
    let waiting = Recovery { infra: 3, last_action_at: last, ..Recovery::default() };
    let rare = Recovery { infra: 20, patient_since: last, ..Recovery::default() };
    let capacity =
        Recovery { capacity: 9, capacity_row: 2, last_action_at: last, ..Recovery::default() };
    let login = Recovery { login: Some("no key".to_owned()), ..Recovery::default() };
    let kinds = [kind, kind, ErrorKind::Preempted, kind];
    for (recovery, kind) in [waiting, rare, capacity, login].into_iter().zip(kinds) {
        let mut job = failed(kind, recovery.clone());
        assert!(is_asleep(&job, now), "{recovery:?}");
        rouse(&mut job);
        assert_eq!(job.counts(), Recovery { roused: true, login: None, ..recovery.clone() });
        assert!(!is_asleep(&job, now), "{recovery:?}");
        let after = spent(&job, &Progress::default(), kind, now);
        assert!(!after.roused, "it is over with the next reaction");
        job.keep_counts(after);
        assert!(is_asleep(&job, now), "which is waited after as ever: {recovery:?}");
    }
    for recovery in [
        Recovery { infra: 3, last_action_at: Some(now.plus_seconds(-90)), ..Recovery::default() },
        Recovery {
            infra: 3,
            last_action_at: last,
            stopped: Some("enough".to_owned()),
            ..Recovery::default()
        },
        Recovery::default(),
    ] {
        assert!(!is_asleep(&failed(kind, recovery.clone()), now), "{recovery:?}");
    }
    let running = Job {
        status: Status::Running,
        ..failed(kind, Recovery { infra: 3, last_action_at: last, ..Recovery::default() })
    };
    assert!(!is_asleep(&running, now), "its next failure is none of it");
}
