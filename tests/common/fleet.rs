//! A shared fleet for the tests of the screen: five kinds of targets, groups of jobs, ten thousand jobs of two users.

use std::sync::Arc;

use tpu_core::model::capacity::Capacity;
use tpu_core::model::facts::{ErrorKind, Progress, Room, TargetState};
use tpu_core::model::host::HostRecord;
use tpu_core::model::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::member::Member;
use tpu_core::model::target::{Machines, Pricing, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, Pending, Snapshot, Whose};
use tpu_core::plan::board::{Row, Standing};
use tpu_core::plan::stats::run::{Past, PastRun, RanOn, RunOutcome};
use tpu_ops::act::board::Board;
use tpu_ops::act::hosts::Host;
use tpu_screen::message::{Answer, Ask};

use super::boards::{self, answer, row};
use super::samples::{self, NOW};
use super::screen::Screen;

/// The jobs that there are.
pub(crate) const MANY: usize = 10_000;

/// Where jobs of each kind run: full name, label, kind, whose machines.
const PLACES: [(&str, &str, &str, Machines); 5] = [
    ("local", "local", "local", Machines::Here),
    ("gpu1.lab.example", "gpu1", "ssh", Machines::Fixed),
    ("lab-tpuvm-v2-32-preemptible-2", "v2-32-p2", "tpu", Machines::Provided),
    ("slurm-a100", "slurm-a100", "slurm", Machines::Engine),
    ("k8s-train", "k8s-train", "kubernetes", Machines::Engine),
];

/// The job in one of those places.
fn on(mut job: JobView, place: usize) -> JobView {
    let (name, label, kind, machines) = PLACES[place % PLACES.len()];
    job.target = TargetName::from(name);
    label.clone_into(&mut job.target_label);
    (job.kind, job.machines) = (TargetKind::new(kind), machines);
    job.zone = job.zone.filter(|_| machines == Machines::Provided);
    job
}

/// A member of a group, of which this is the newest attempt.
fn member(mut job: JobView, group: u32, index: u32, name: &str) -> JobView {
    job.member = Some(Member { group: JobNumber(group), index });
    job.name = Some(name.to_owned());
    job
}

/// The sample jobs in places of each kind, a sweep on Slurm of which a part waits, one on Kubernetes that is well, what waits
/// in two queues, and what has ended before.
pub(crate) fn snapshot() -> Snapshot {
    let mut jobs: Vec<JobView> =
        samples::snapshot().jobs.into_iter().enumerate().map(|(at, job)| on(job, at)).collect();
    for index in 0..6 {
        let mut one = on(samples::job(100 + index), 3);
        if index == 2 {
            one = on(samples::oom(102), 3);
        } else if index > 3 {
            one.shown.status = Status::Starting;
            (one.shown.phase, one.shown.progress) = (None, Progress::default());
            one.shown.pending = Some(Pending {
                reason: Some("it waits for resources".to_owned()),
                expected_start: Some(Timestamp::from_second(NOW + 5_400)),
                raw: "PENDING".to_owned(),
            });
        }
        jobs.push(member(one, 100, index, "lr-sweep"));
    }
    jobs.extend((0..4).map(|index| member(on(samples::job(120 + index), 4), 120, index, "seeds")));
    let mut group = on(samples::waiting_group(140, 1, &[3, 4, 5, 6]), 3);
    group.name = Some("ablation".to_owned());
    jobs.push(group);
    jobs.push(on(samples::held(141, 2), 1));
    let mut night = on(samples::waiting(142, 1), 2);
    let queued = night.shown.queued.as_mut().unwrap();
    queued.queue = QueueName::from("night");
    queued.reason = Some("v2-32-p2: it has alice/7".to_owned());
    jobs.push(night);
    // What has ended, of two users.
    let ends = [
        Status::Finished,
        Status::Killed(None),
        Status::Error(ErrorKind::Preempted),
        Status::Error(ErrorKind::PythonError),
    ];
    for at in jobs.len()..MANY {
        let window = u32::try_from(at).unwrap() + 1_000;
        let mut one = on(samples::ended(window, ends[at % 7 % ends.len()].clone()), at);
        one.dir.1 = format!("/home/alice/project-{}", at % 9);
        if at % 3 == 0 {
            one.id = JobId::new(UserName::from("bob"), one.id.window);
        }
        one.started_at = Some(Timestamp::from_second(NOW - 200_000 - i64::from(window)));
        jobs.push(one);
    }
    Snapshot { whose: Whose::default(), jobs, ..samples::snapshot() }
}

/// The targets of each kind.
fn board() -> Board {
    let mut rows = vec![boards::board().targets];
    let machine = |name: &str| -> Row {
        let mut one = row(name, name, TargetState::NotWatched, 0);
        (one.kind, one.fact.machines) = (TargetKind::SSH, Machines::Fixed);
        (one.zone, one.accelerator, one.fact.since) = (None, None, None);
        one
    };
    let (mut busy, idle) = (machine("gpu1"), machine("gpu2"));
    busy.target = TargetName::from("gpu1.lab.example");
    (busy.standing, busy.jobs) = (Standing::Running, vec![samples::id(4), samples::id(9)]);
    let engine = |name: &str, kind: &str, room: Room| {
        let mut one = machine(name);
        (one.kind, one.fact.machines) = (TargetKind::new(kind), Machines::Engine);
        one.is_shared = true;
        one.fact.room = Some(Box::new(room));
        one
    };
    let slurm = Room {
        state: "up".to_owned(),
        idle: Some(3),
        mixed: Some(1),
        free_gpus: Some(26),
        running: Some(14),
        waiting: Some(7),
        my_running: Some(4),
        my_waiting: Some(2),
        limits: vec!["24 h at most".to_owned()],
        ..Room::default()
    };
    let cluster = Room {
        state: "ready".to_owned(),
        idle: Some(2),
        free_cpus: Some(96),
        free_gpus: Some(8),
        ..Room::default()
    };
    rows.push(vec![
        busy,
        idle,
        engine("slurm-a100", "slurm", slurm),
        engine("k8s-train", "kubernetes", cluster),
    ]);
    let host = |name: &str, jobs: &[u32]| Host {
        name: TargetName::from(name),
        addresses: vec![name.to_owned()],
        capacity: Capacity { jobs: Some(4), ..Capacity::default() },
        record: HostRecord::default(),
        jobs: jobs.iter().map(|job| (samples::id(*job), None)).collect(),
        figures: None,
    };
    Board {
        targets: rows.concat(),
        hosts: vec![host("gpu1.lab.example", &[4, 9]), host("gpu2", &[])],
        ..boards::board()
    }
}

/// What has run in places of each kind: as many attempts as there are jobs, one an hour back from now, of which every seventh was
/// taken away.
pub(crate) fn past() -> Past {
    let places = PLACES.map(|(name, _, kind, _)| {
        Arc::new(RanOn {
            target: TargetName::from(name),
            accelerator: (kind == "tpu").then(|| "v2-32".to_owned()),
            zone: (kind == "tpu").then(|| "europe-west4-a".to_owned()),
            kind: Some(kind.to_owned()),
            pricing: (kind == "tpu").then_some(Pricing::Spot),
        })
    });
    let runs = (0..u32::try_from(MANY).unwrap()).map(|at| {
        let began = Timestamp::from_second(NOW - i64::from(at + 1) * 3_600);
        let was_taken = at % 7 == 0;
        let on = Arc::clone(&places[at as usize % PLACES.len()]);
        PastRun {
            id: JobId::new(
                UserName::from(if at % 3 == 0 { "bob" } else { "alice" }),
                JobNumber(at + 1),
            ),
            father: None,
            tag: (at % 2 == 0).then(|| "sweep".to_owned()),
            began,
            ended: Some(began.plus_seconds(1_800 + i64::from(at % 5) * 600)),
            outcome: if was_taken {
                RunOutcome::Failed(ErrorKind::Preempted)
            } else {
                RunOutcome::Finished
            },
            worked: None,
            line: was_taken.then(|| "the machine was taken away".to_owned()),
            reached: Some(1_000.0),
            is_from_nothing: true,
            waited_s: Some(u64::from(at % 11) * 60),
            per_hour: on.pricing.map(|_| 1.5),
            on,
        }
    });
    Past { runs: runs.collect(), capacity: Vec::new() }
}

/// All of it on the screen, everybody's.
pub(crate) fn screen() -> Screen {
    let mut screen = Screen::new();
    screen.model.scope.whose = Whose::default();
    screen.send(tpu_screen::message::Message::Looked(Box::new(snapshot())));
    answer(&mut screen, Ask::Targets, Answer::Targets(board()));
    answer(&mut screen, Ask::Events, Answer::Events(boards::events()));
    answer(&mut screen, Ask::Plan, Answer::Plan(boards::plan()));
    answer(&mut screen, Ask::Curves(samples::id(7)), Answer::Curves(boards::curves()));
    screen
}
