//! What the tabs beside the jobs show, shared by the tests of the screen.

use serde_json::Value;

use tpu_core::model::curve::{Curves, Measured, Metric};
use tpu_core::model::facts::{ErrorKind, TargetFact, TargetState};
use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_core::model::job::{Lease, Status};
use tpu_core::model::prices::Prices;
use tpu_core::model::target::{Machines, Pricing, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{MonitorHealth, Next, Snapshot};
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::Board;
use tpu_ops::observe::journal::Event;
use tpu_ops::waiting::preview::{Entry, Plan};
use tpu_screen::message::{Answer, Ask, Message};

use super::samples::{self, NOW};
use super::screen::Screen;

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW - seconds)
}

pub(crate) fn row(label: &str, full: &str, state: TargetState, since: i64) -> Row {
    let word = format!("{state:?}").to_uppercase();
    let mut fact = TargetFact::new(TargetName::from(full), state, word, ago(3));
    fact.since = Some(ago(since));
    Row {
        target: TargetName::from(full),
        label: label.to_owned(),
        aliases: vec![label.to_owned()],
        kind: TargetKind::TPU,
        is_known: true,
        is_shared: false,
        zone: Some("europe-west4-a".to_owned()),
        accelerator: Some("v2-32".to_owned()),
        is_guessed: false,
        pricing: Pricing::Preemptible,
        standing: match state {
            TargetState::Ready | TargetState::NotWatched => Standing::Free,
            TargetState::Pending => Standing::Creating,
            TargetState::Unknown => Standing::Unknown,
            _ => Standing::Gone,
        },
        user: None,
        notes: String::new(),
        tags: Vec::new(),
        jobs: Vec::new(),
        until: None,
        disagreement: None,
        fact,
    }
}

/// Nine targets, every way to stand that differs for people.
pub(crate) fn board() -> Board {
    let mut local = row("local", "local", TargetState::NotWatched, 0);
    (local.zone, local.accelerator, local.fact.since) = (None, None, None);
    local.jobs = vec![samples::id(10), samples::id(11)];
    local.fact.machines = Machines::Here;
    local.aliases.clear();
    local.is_shared = true;
    local.kind = TargetKind::LOCAL;
    let mut busy = row("v2-32-p2", "lab-tpuvm-v2-32-preemptible-2", TargetState::Ready, 7_440);
    busy.jobs = vec![samples::id(7)];
    (busy.standing, busy.user) = (Standing::Running, Some("alice".to_owned()));
    busy.tags = vec!["baseline".to_owned()];
    busy.disagreement = Some("people wrote: running by carol".to_owned());
    let mut kept = row("v2-32-p4", "lab-tpuvm-v2-32-preemptible-4", TargetState::Ready, 300);
    (kept.standing, kept.user) = (Standing::Reserved, Some("bob".to_owned()));
    kept.until = Some(Timestamp::from_second(NOW + 5_400));
    "长跑 until Friday".clone_into(&mut kept.notes);
    let free = row("v2-32-p5", "lab-tpuvm-v2-32-preemptible-5", TargetState::Ready, 45);
    let mut sick = row("v3-8-日本", "lab-tpuvm-v3-8-7", TargetState::Ready, 90_000);
    sick.accelerator = Some("v3-8".to_owned());
    sick.pricing = Pricing::OnDemand;
    sick.fact.symptoms = vec!["HIGH_TEMPERATURE".to_owned()];
    let mut stuck = row("v4-128", "lab-tpuvm-v4-128-1", TargetState::Pending, 4_000);
    stuck.zone = Some("us-central2-b".to_owned());
    stuck.accelerator = Some("v4-128".to_owned());
    stuck.pricing = Pricing::Spot;
    Board {
        at: Timestamp::from_second(NOW),
        targets: vec![
            local,
            busy,
            kept,
            free,
            row("v2-32-p3", "lab-tpuvm-v2-32-preemptible-3", TargetState::Preempted, 95),
            sick,
            stuck,
            row("v4-8-2", "lab-tpuvm-v4-8-2", TargetState::Gone, 600),
            row("v5e-16", "lab-tpuvm-v5e-16-1", TargetState::Unknown, 30),
        ],
        silent: vec![("europe-west4-a".to_owned(), "no answer within 10 s".to_owned())],
        prices: Prices::default(),
        hosts: Vec::new(),
    }
}

fn event(seconds_ago: i64, window: Option<u32>, kind: &str, actor: &str, text: &str) -> Event {
    Event {
        at: ago(seconds_ago),
        actor: actor.to_owned(),
        account: None,
        user: window.map(|_| UserName::from("alice")),
        job: window.map(JobNumber),
        kind: kind.to_owned(),
        text: text.to_owned(),
        data: Value::Null,
    }
}

/// What has happened since yesterday, oldest first.
pub(crate) fn events() -> Vec<Event> {
    vec![
        event(88_000, Some(5), "launch", "run", "v2-32-p2"),
        event(40_000, Some(5), "status", "daemon", "error: preempted"),
        event(39_900, Some(6), "launch", "daemon", "v2-32-p2, resumed from 5"),
        event(9_000, None, "monitor", "daemon", "begun"),
        event(7_440, Some(7), "launch", "daemon", "v2-32-p2, resumed from 6"),
        event(900, Some(3), "tag", "monitor", "論文 📝 paper"),
        event(95, Some(9), "status", "daemon", "error: oom"),
        event(12, Some(8), "status", "daemon", "error: grpc"),
    ]
}

/// What will happen: a resume soon, one under way, and one that never comes.
pub(crate) fn plan() -> Plan {
    let entry = |view: tpu_core::model::view::JobView, reason: &str| Entry {
        next: view.next.clone(),
        reason: reason.to_owned(),
        lease: None,
        view,
    };
    let grpc = samples::grpc(8);
    let oom = samples::oom(9);
    let mut acting = samples::job(14);
    acting.shown.status = Status::Error(ErrorKind::Preempted);
    acting.next = Some(Next {
        action: "reapply".to_owned(),
        in_s: Some(0),
        budget_left: Some(9_998),
        reason: "the target was preempted".to_owned(),
        waits: false,
    });
    let until = Timestamp::from_second(NOW + 24);
    let mut acting = entry(acting, "the target was preempted");
    acting.lease = Some(Lease { owner: "lab-1:boot:4711:99".to_owned(), fence: 3, until });
    Plan {
        at: Timestamp::from_second(NOW),
        monitor: MonitorHealth::Running { turn_age_s: 4 },
        jobs: vec![
            entry(samples::job(7), "it is well"),
            entry(grpc, "second try, after 40 s"),
            entry(oom, "the program's own errors are not retried"),
            acting,
        ],
    }
}

/// A loss that falls over three attempts, of which the last two each did a part again; beside it an accuracy that rises, and
/// a learning rate that the first did not print.
pub(crate) fn curves() -> Curves {
    let mut curves = Curves::default();
    for (window, from, to) in [(5, 0, 60), (6, 45, 90), (7, 80, 120)] {
        let at = |n: u32| {
            let mut others = vec![(Metric::from("acc"), 1.0 - 1.0 / f64::from(n + 1))];
            if window > 5 {
                others.push((Metric::from("lr"), 0.001 * f64::from(120 - n)));
            }
            let (step, loss) = (f64::from(n * 100), 0.3 + 3.0 / f64::from(n + 1));
            Measured { step, loss, others }
        };
        let all: Vec<Measured> = (from..to).map(at).collect();
        curves.append(JobNumber(window), &all);
    }
    curves
}

/// The sample jobs, their attempts one after the other, and everything that is asked for beside them.
pub(crate) fn screen() -> Screen {
    let mut snapshot: Snapshot = samples::snapshot();
    for (window, began, lasted) in [(5, 88_000, 48_000), (6, 39_900, 32_000), (7, 7_440, 7_440)] {
        for job in snapshot.jobs.iter_mut().filter(|job| job.id.window.0 == window) {
            job.started_at = Some(ago(began));
            job.age_s = Some(lasted);
        }
    }
    let mut screen = Screen::showing(snapshot);
    answer(&mut screen, Ask::Targets, Answer::Targets(board()));
    answer(&mut screen, Ask::Events, Answer::Events(events()));
    answer(&mut screen, Ask::Plan, Answer::Plan(plan()));
    answer(&mut screen, Ask::Curves(samples::id(7)), Answer::Curves(curves()));
    screen
}

/// Answers a question of the screen.
pub(crate) fn answer(screen: &mut Screen, ask: Ask, answer: Answer) {
    screen.send(Message::Answer(ask, Ok(Box::new(answer))));
}
