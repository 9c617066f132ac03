//! What people looked for in vain when they tried the screen: which member of a sweep is the best and what it was given, from
//! which step a job goes on, what of the queue will begin.

use tpu_core::model::ids::JobNumber;
use tpu_core::model::member::Member;
use tpu_screen::message::Message;

use crate::common::env::{TPU, TestEnv};
use crate::common::samples;
use crate::common::screen::Screen;
use crate::common::terminal::Terminal;

/// Four members that differ in one argument; the third has the lowest loss.
fn sweep() -> Screen {
    let mut snapshot = samples::snapshot();
    snapshot.jobs = (0..4)
        .zip([0.5, 0.3, 0.1, 0.2])
        .map(|(index, loss)| {
            let mut job = samples::job(20 + index);
            job.member = Some(Member { group: JobNumber(19), index });
            job.shown.progress.loss = Some(loss);
            job.configs = format!("--config.seed=1 --config.training.learning_rate=0.{index}");
            job
        })
        .collect();
    let mut screen = Screen::showing(snapshot.clone());
    screen.model.list.selected = Some(samples::id(19));
    screen.send(Message::Looked(Box::new(snapshot)));
    screen
}

#[test]
fn the_panel_of_a_group_says_in_what_its_members_differ_and_which_is_the_best() {
    let mut screen = sweep();
    for size in [(80, 24), (120, 40)] {
        let frame = screen.frame(size);
        assert!(frame.contains("◂ lowest loss: 19_2"), "what the sign means: {frame}");
        let best: Vec<&str> =
            frame.lines().filter(|line| line.contains(" ◂") && !line.contains("lowest")).collect();
        let [best] = best.as_slice() else { panic!("{frame}") };
        for told in ["19_2", "learning_rate=0.2", "loss 0.1"] {
            assert!(best.contains(told), "{told} in {best}");
        }
        assert!(!frame.contains("seed=1"), "what all have in common says nothing: {frame}");
        assert!(frame.contains("→ open"), "how to go on: {frame}");
    }
}

#[test]
fn a_job_that_goes_on_says_from_which_step() {
    let mut snapshot = samples::snapshot();
    let job = snapshot.jobs.iter_mut().find(|job| job.lineage.len() > 1 && job.leaf).unwrap();
    job.from_step = Some(80);
    let id = job.id.clone();
    let mut screen = Screen::showing(snapshot);
    screen.model.list.selected = Some(id);
    let frame = screen.frame((120, 40));
    assert!(frame.contains("from step 80"), "{frame}");
}

/// In a real terminal: what is struck goes on from its newest checkpoint, and what waits stands in the plan.
#[test]
fn by_hand() {
    let mut env = TestEnv::new();
    env.code(
        "alice",
        "run.sh",
        "mkdir -p \"$TPU_LOG_DIR/checkpoints/checkpoint_40\"; echo x >\"$TPU_LOG_DIR/checkpoints/checkpoint_40/a\"; \
         echo 'step 40/100 loss 0.5'; kill -9 $$\n",
    );
    env.set("TPU_USER", "alice");
    drop(env.tpu("run local alice -q -- bash run.sh").exits(0));
    env.wait_exit(1);
    drop(env.tpu("submit local alice tag=later --hold -- sleep 1000").exits(0));
    let terminal = Terminal::new(&env);
    terminal.command(&format!("clear; {TPU} monitor alice"));
    terminal.shows("killed-by-signal");
    terminal.press("r");
    terminal.shows("goes on from step 40 as alice/3");
    terminal.shows("continues 1 from step 40");
    let launch = env.job("alice", 3)["extra_msgs"]["launch"].clone();
    assert_eq!(launch["from_step"], 40, "{launch}");
    terminal.press("5");
    terminal.shows("alice/2");
    terminal.shows("held by alice");
    drop(env.tpu("hosts set local --max-jobs 1").exits(0));
    drop(env.tpu("unhold alice 2").exits(0));
    drop(env.tpu("submit local alice -- sleep 1000").exits(0));
    terminal.shows("begin");
}
