//! Jobs to draw and to filter, shared by the tests of the screen.

use tpu_core::model::entry::Priority;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Evidence, Phase, Progress, Source};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::rules::Rules;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{
    InQueue, JobView, MonitorHealth, Next, Shown, Snapshot, TmuxHealth, Whose,
};

/// 2026-11-20 14:02:11 UTC.
pub(crate) const NOW: i64 = 1_795_183_331;

/// `alice/<window>`.
pub(crate) fn id(window: u32) -> JobId {
    JobId::new(UserName::from("alice"), JobNumber(window))
}

/// A healthy job at work, alone in its lineage.
pub(crate) fn job(window: u32) -> JobView {
    JobView {
        id: id(window),
        lineage: vec![JobNumber(window)],
        leaf: true,
        dir: (Some(1), "/home/alice/imagenet".to_owned()),
        target: TargetName::from("lab-tpuvm-v2-32-preemptible-2"),
        target_label: "v2-32-p2".to_owned(),
        kind: tpu_core::model::target::TargetKind::default(),
        target_unknown: None,
        machines: tpu_core::model::target::Machines::Provided,
        share: None,
        zone: Some("europe-west4-a".to_owned()),
        name: None,
        runs: None,
        title: None,
        member: None,
        tags: None,
        shown: Shown {
            status: Status::Running,
            unknown: None,
            pending: None,
            queued: None,
            phase: Some(Phase::Running),
            progress: Progress {
                epoch: Some(31.0),
                epochs: Some(100.0),
                step: Some(12_000),
                total: Some(38_700),
                percent: None,
                loss: Some(0.412),
                lr: Some(1e-3),
                steps_per_s: Some(4.2),
                eta_s: Some(11_400.0),
            },
            evidence: None,
        },
        stored: Status::Running,
        stage: 0,
        from_step: None,
        restarts: 0,
        nodes: Vec::new(),
        raw: None,
        gpus: None,
        rules: Rules::named("pre").unwrap_or_default(),
        monitor: true,
        next: None,
        needs_person: false,
        started_at: Some(Timestamp::from_second(NOW - 7_440)),
        ended_at: None,
        age_s: Some(7_440),
        worked: None,
        waited_s: None,
        cost: None,
        log_dir: Some("/data/logs/alice/20261120_115811".to_owned()),
        stage_dir: Some("/data/stage/alice/20261120_115811".to_owned()),
        exit: None,
        window_alive: Some(true),
        pane_id: Some("%12".to_owned()),
        tail: "[worker 0] step 11900 loss 0.418 lr 1e-3 4.2 it/s\n\
            [worker 0] step 12000 loss 0.412 lr 1e-3 4.2 it/s\n\
            [worker 0] saving checkpoint 12000\n"
            .into(),
        configs: "--config.training.learning_rate=0.01".to_owned(),
        intent: None,
    }
}

/// Something that waits at a place of the usual queue.
pub(crate) fn waiting(window: u32, position: usize) -> JobView {
    let mut job = job(window);
    (job.shown.status, job.stored) = (Status::Unset, Status::Unset);
    (job.shown.phase, job.shown.progress) = (None, Progress::default());
    job.shown.queued = Some(InQueue {
        queue: QueueName::usual(),
        position,
        priority: Priority::default(),
        reason: None,
        expected_start: None,
        held: false,
        members: None,
    });
    (job.started_at, job.log_dir, job.stage_dir) = (None, None, None);
    (job.window_alive, job.pane_id, job.tail) = (Some(false), None, "".into());
    job.age_s = Some(600);
    job
}

/// The same, held by somebody.
pub(crate) fn held(window: u32, position: usize) -> JobView {
    let mut job = waiting(window, position);
    let queued = job.shown.queued.as_mut().unwrap();
    (queued.held, queued.reason) = (true, Some("held by bob: paper".to_owned()));
    job
}

/// Members of a group that wait.
pub(crate) fn waiting_group(group: u32, position: usize, members: &[u32]) -> JobView {
    let mut job = waiting(group, position);
    job.shown.queued.as_mut().unwrap().members = Some(members.to_vec());
    job
}

/// A job that another one continues.
pub(crate) fn ancestor(window: u32, lineage: &[u32], kind: ErrorKind) -> JobView {
    let mut job = ended(window, Status::Resumed(Some(kind)));
    job.lineage = lineage.iter().copied().map(JobNumber).collect();
    job.leaf = false;
    job.age_s = Some(18_660);
    job
}

/// A job that has ended and whose window is closed.
pub(crate) fn ended(window: u32, status: Status) -> JobView {
    let mut job = job(window);
    job.shown.status = status.clone();
    job.shown.phase = None;
    job.shown.progress = job.shown.progress.reached();
    job.stored = status;
    job.window_alive = Some(false);
    job.pane_id = None;
    job.ended_at = Some(Timestamp::from_second(NOW - 60));
    job
}

/// A job that ran out of memory.
pub(crate) fn oom(window: u32) -> JobView {
    let mut job = job(window);
    job.dir = (Some(2), "/home/alice/sweep".to_owned());
    job.target = TargetName::from("lab-tpuvm-v4-8-2");
    "v4-8-2".clone_into(&mut job.target_label);
    job.shown.status = Status::Error(ErrorKind::Oom);
    job.shown.phase = Some(Phase::IdlePrompt);
    job.shown.progress = Progress { percent: Some(12.0), loss: Some(1.9), ..Progress::default() };
    job.shown.evidence = Some(Evidence {
        source: Source::Text,
        rule: "xla-hbm-oom".to_owned(),
        line: "Ran out of memory in memory space hbm. Used 21.9G of 7.48G hbm.".to_owned(),
        line_no: Some(14),
        worker: Some("0".to_owned()),
        age_s: Some(95),
    });
    job.rules = Rules::named("pass").unwrap_or_default();
    job.next = Some(Next {
        action: "pass".to_owned(),
        in_s: None,
        budget_left: None,
        reason: "the program's own errors are not retried".to_owned(),
        waits: false,
    });
    job.started_at = Some(Timestamp::from_second(NOW - 2_400));
    job.ended_at = Some(Timestamp::from_second(NOW - 95));
    job.age_s = Some(2_305);
    job.exit = Some(Exit::Program(1));
    job.tail = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED:\n\
        Ran out of memory in memory space hbm. Used 21.9G of 7.48G hbm.\n"
        .into();
    job
}

/// A job whose connection broke and which will be resumed.
pub(crate) fn grpc(window: u32) -> JobView {
    let mut job = job(window);
    job.dir = (Some(3), "/home/alice/画像認識の実験".to_owned());
    job.tags = Some("基準線 🚀".to_owned());
    "v3-8-日本".clone_into(&mut job.target_label);
    job.shown.status = Status::Error(ErrorKind::Grpc);
    job.shown.evidence = Some(Evidence {
        source: Source::Text,
        rule: "deadline".to_owned(),
        line: "DEADLINE_EXCEEDED: Barrier timed out".to_owned(),
        line_no: Some(1),
        worker: None,
        age_s: Some(12),
    });
    job.next = Some(Next {
        action: "resume".to_owned(),
        in_s: Some(40),
        budget_left: Some(17),
        reason: "second try, after 40 s".to_owned(),
        waits: false,
    });
    job.started_at = Some(Timestamp::from_second(NOW - 86_400));
    job.age_s = Some(90_000);
    job
}

/// Eleven jobs of alice: every status once, one lineage of three, wide characters.
pub(crate) fn snapshot() -> Snapshot {
    let lineage = [5, 6, 7];
    let mut leaf = job(7);
    leaf.lineage = lineage.iter().copied().map(JobNumber).collect();
    leaf.stage = 2;
    leaf.tags = Some("baseline".to_owned());
    let mut compiling = job(10);
    compiling.shown.phase = Some(Phase::Compiling);
    compiling.shown.progress = Progress::default();
    compiling.age_s = Some(59);
    compiling.tail = "Compiling module jit_train_step …\n".into();
    let mut starting = job(11);
    starting.shown.status = Status::Starting;
    starting.shown.phase = Some(Phase::Staging);
    starting.shown.progress = Progress::default();
    starting.age_s = Some(4);
    starting.tail = "".into();
    let mut finished = ended(3, Status::Finished);
    finished.shown.progress.step = finished.shown.progress.total;
    finished.shown.progress.epoch = finished.shown.progress.epochs;
    finished.exit = Some(Exit::Program(0));
    finished.tags = Some("paper".to_owned());
    let killed = ended(4, Status::Killed(None));
    let mut elsewhere = job(12);
    elsewhere.shown.unknown = Some("its window is on another host (lab-2)".to_owned());
    elsewhere.window_alive = None;
    elsewhere.pane_id = None;
    elsewhere.tail = "".into();
    let mut diverged = job(13);
    diverged.shown.phase = Some(Phase::Diverged);
    diverged.shown.progress.loss = None;
    Snapshot {
        at: Timestamp::from_second(NOW),
        whose: Whose::of([UserName::from("alice")]),
        users: vec![UserName::from("alice"), UserName::from("bob")],
        jobs: vec![
            finished,
            killed,
            ancestor(5, &lineage, ErrorKind::Preempted),
            ancestor(6, &lineage, ErrorKind::Grpc),
            leaf,
            grpc(8),
            oom(9),
            compiling,
            starting,
            elsewhere,
            diverged,
        ],
        orphans: Vec::new(),
        tmux: TmuxHealth::Up,
        monitor: MonitorHealth::Running { turn_age_s: 4 },
    }
}
