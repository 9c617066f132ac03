//! One curve for each run: from its first logged loss, the same in every place, whoever looks and whenever.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;

use proptest::prelude::*;
use serde_json::json;
use tpu_core::model::curve::{Curves, Metric, Point};
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_ops::Ctx;
use tpu_ops::observe::curves::{self, CurveMemory};
use tpu_screen::backend::{Backend as _, CliFunctions};
use tpu_screen::bridge::Bridge;
use tpu_screen::message::{Answer, Ask, Message};
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;
use crate::common::samples;
use crate::common::screen::Screen;

/// A lineage of two attempts with logs.
struct Run {
    env: TestEnv,
}

impl Run {
    fn new() -> Self {
        let env = TestEnv::new();
        let mut data = env.two_users();
        let mut records = [6, 7].map(|window| env.record("alice", window, "running"));
        records[0]["status"] = json!("resumed");
        records[0]["extra_msgs"] = json!({ "child": 7 });
        records[1]["extra_msgs"] = json!({ "father": 6 });
        for (record, window) in records.iter_mut().zip([6, 7]) {
            let dir = env.path(&format!("logs-{window}"));
            fs::create_dir_all(&dir).unwrap();
            record["log_dir"] = json!(dir);
        }
        data["users"]["alice"]["job_data"] = json!(records);
        env.write_data(&data);
        Self { env }
    }

    fn ctx(&self) -> Ctx {
        self.env.ctx(Env::fixed::<&str, &str>([]))
    }

    fn log(&self, window: u32, text: &str) {
        let path = self.env.path(&format!("logs-{window}/output.log"));
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

fn id(window: u32) -> JobId {
    JobId { user: UserName::from("alice"), window: JobNumber(window) }
}

fn steps(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.step).collect()
}

/// A training's log, with set-up first and evaluations in between.
fn training(first: u32, last: u32) -> String {
    let mut text = "downloading and building, which loses time\n".repeat(40);
    for step in first..=last {
        writeln!(text, "step {step} loss {:.4} lr 0.001", 1.0 + 9.0 / f64::from(step + 1)).unwrap();
        if step % 50 == 0 {
            writeln!(text, "eval step 3/10 loss 0.9\nval_loss: 1.234").unwrap();
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_curve_that_was_read_on_the_way_is_that_of_the_whole_log(
        last in 100_u32..4_000,
        cuts in prop::collection::vec(0.0_f64..1.0, 0..6),
    ) {
        let run = Run::new();
        let ctx = run.ctx();
        let text = training(0, last);
        let mut places: Vec<usize> = cuts.iter().map(|cut| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a text")]
            let place = (cut * text.len() as f64) as usize;
            place
        }).collect();
        places.push(text.len());
        places.sort_unstable();
        let mut memory = CurveMemory::default();
        let mut from = 0;
        let mut watched = Curves::default();
        for place in places {
            run.log(7, &text[from..place]);
            from = place;
            watched = curves::of(&ctx, &mut memory, &id(7)).unwrap();
        }
        let once = curves::of(&ctx, &mut CurveMemory::default(), &id(7)).unwrap();
        prop_assert_eq!(&watched, &once);
        let whole = once.loss.whole();
        prop_assert_eq!(whole.first().map(|point| point.step), Some(0.0));
        prop_assert_eq!(whole.last().map(|point| point.step), Some(f64::from(last)));
        prop_assert!(whole.len() < 2_000, "{}", whole.len());
        // Nowhere is a part of it missing, however long the log is.
        let widest = whole.windows(2).map(|two| two[1].step - two[0].step).fold(0.0, f64::max);
        prop_assert!(widest <= f64::from(last / 50).max(4.0), "{widest} of {last}");
        let fits = |point: &Point| (point.value - 1.0 - 9.0 / (point.step + 1.0)).abs() < 1e-3;
        prop_assert!(whole.iter().all(fits), "a loss stands at its own step");
    }
}

/// Nobody types here, and nobody asks why.
const NOTHING: CliFunctions = CliFunctions {
    run: |_, request| panic!("nobody has typed {request:?}"),
    explain: |_, job| panic!("nobody has asked about {job}"),
};

#[test]
fn a_screen_that_is_opened_late_shows_the_run_from_its_first_loss() {
    let run = Run::new();
    run.log(6, &training(0, 300));
    run.log(7, &training(200, 3_000));
    // Two screens, of which one was open before; each job of the lineage is asked about.
    let answers = |bridge: &Bridge| {
        [6, 7].map(|window| match bridge.ask(&Ask::Curves(id(window))) {
            Ok(Answer::Curves(curves)) => curves,
            other => panic!("no curve: {other:?}"),
        })
    };
    let early = Bridge::new(run.ctx(), Vec::new(), NOTHING);
    answers(&early);
    run.log(7, &training(3_001, 3_500));
    let [of_parent, of_child] = answers(&early);
    let late = answers(&Bridge::new(run.ctx(), Vec::new(), NOTHING));
    assert_eq!([&of_parent, &of_child], [&late[0], &late[1]], "whenever it was opened");
    assert_eq!(of_parent, of_child, "whichever of its attempts is selected");
    let whole = steps(&of_child.loss.whole());
    assert_eq!((whole.first(), whole.last()), (Some(&0.0), Some(&3_500.0)));
    assert!((of_child.loss.redone(JobNumber(6)) - 1.0 / 3.0).abs() < 1e-9);
    // What stands beside each loss has a curve too.
    let rate = &of_child.others[&Metric::from("lr")];
    assert_eq!(steps(&rate.whole()), whole);
    assert!(rate.whole().iter().all(|point| (point.value - 0.001).abs() < 1e-9));

    // What a look sees beside that changes nothing.
    let mut snapshot = samples::snapshot();
    let mut screen = Screen::showing(snapshot.clone());
    let answer = Answer::Curves(of_child.clone());
    screen.send(Message::Answer(Ask::Curves(samples::id(7)), Ok(Box::new(answer))));
    for job in snapshot.jobs.iter_mut().filter(|job| job.id == samples::id(7)) {
        job.shown.progress.step = Some(9_999);
        job.shown.progress.loss = Some(0.1);
    }
    screen.send(Message::Looked(Box::new(snapshot)));
    let job = screen.model.job(&samples::id(7)).unwrap();
    assert_eq!(screen.model.traces.of(job).unwrap().curves, of_child);
}

#[test]
fn epochs_and_tables_give_one_curve_too() {
    let run = Run::new();
    let mut text = String::new();
    for epoch in 1..=3 {
        writeln!(text, "Epoch {epoch}/3").unwrap();
        for batch in [50, 100] {
            writeln!(text, "{batch}/100 ━━━━━━━━━━━━━━━━━━━━ 2s 20ms/step - loss: 0.5").unwrap();
        }
    }
    run.log(6, &text);
    text.clear();
    for steps in [2_048, 4_096] {
        writeln!(text, "| time/ | |\n|  total_timesteps  | {steps}  |\n|  value_loss  | 9.0 |\n|  loss  | 0.4 |\n").unwrap();
    }
    run.log(7, &text);
    let curve = curves::of(&run.ctx(), &mut CurveMemory::default(), &id(7)).unwrap().loss;
    assert_eq!(steps(&curve.parts[0].points), [50.0, 100.0, 150.0, 200.0, 250.0, 300.0]);
    assert_eq!(steps(&curve.parts[1].points), [2_048.0, 4_096.0]);
}
