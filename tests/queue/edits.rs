//! What waits is held, let go, taken back and killed by its number or its name, and is never lost or doubled by it.

use crate::common::env::TPU;
use crate::common::terminal::Terminal;

use super::{Lab, nobody};

#[test]
fn what_is_held_waits_until_it_is_let_go_and_others_go_by() {
    let lab = Lab::new(1);
    let first = lab.submit("local --name one");
    let second = lab.submit("local --name two");
    let third = lab.submit("local");
    drop(lab.env.tpu("hold two --why data").exits(0));
    assert_eq!(lab.why(second), "held by alice: data");
    lab.kill(first);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[third]);
    lab.kill(third);
    let said = lab.env.tpu(&format!("unhold {second} --json")).exits(0).json();
    assert_eq!(super::started(&said), [second]);
    let held = lab.env.tpu("submit local --hold -- true");
    drop(held);
    drop(lab.env.tpu(&format!("hold {second}")).exits(4).says(&["does not wait: it is"]));
    drop(lab.env.tpu("hold 99").exits(3).says(&["nothing of alice that waits"]));
}

#[test]
fn what_is_taken_back_never_begins_and_its_number_is_no_others() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let group = lab.submit("local --array 0-4");
    let other = lab.submit("local");
    drop(lab.env.tpu(&format!("dequeue {group} -y")).exits(0));
    assert_eq!(lab.waiting(), [other]);
    drop(lab.env.tpu(&format!("kill {other} -y")).exits(0).says(&["never began"]));
    assert_eq!((lab.env.queued(), lab.running()), (0, vec![first]));
    let next = lab.submit("local");
    assert!(next > other, "{next} is new");
    lab.kill(first);
    drop(lab.env.tpu("clean").exits(0));
    let waits = lab.submit("v6e-16");
    drop(lab.env.tpu(&format!("reset-window-num {waits}")).exits(4).says(&["are in use"]));
}

#[test]
fn to_kill_a_group_is_to_kill_those_that_run_and_those_that_wait() {
    let lab = Lab::new(2);
    let group = lab.submit("local --array 0-4");
    assert_eq!((lab.running().len(), lab.env.queued()), (2, 1));
    drop(lab.env.tpu(&format!("kill {group} -y")).exits(0));
    assert_eq!((lab.running().len(), lab.env.queued()), (0, 0));
    assert_eq!(lab.queue()["entries"], nobody());
}

#[test]
fn a_queue_in_which_something_waits_is_not_forgotten_and_one_that_drains_takes_nothing() {
    let lab = Lab::new(1);
    drop(lab.env.tpu("queue create night --on local").exits(0));
    drop(lab.env.tpu("queue create night").exits(4).says(&["there is a queue night already"]));
    drop(lab.env.tpu("queue create odd --on nonsense").exits(3).says(&["'nonsense' is no"]));
    let first = lab.submit("local queue=night");
    let second = lab.submit("v6e-16 queue=night");
    assert!(lab.why(second).contains("none of local has room"), "{}", lab.why(second));
    drop(lab.env.tpu("queue remove night").exits(4).says(&["1 entry wait"]));
    drop(lab.env.tpu("queue drain night").exits(0));
    drop(lab.env.tpu("submit local queue=night -- true").exits(4).says(&["takes nothing new"]));
    lab.kill(first);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[second]);
    drop(lab.env.tpu("queue remove night").exits(0));
    drop(lab.env.tpu("queue remove default").exits(4).says(&["always there"]));
}

#[test]
fn to_kill_what_waits_and_what_runs_at_once_is_to_kill_both() {
    let lab = Lab::new(1);
    let runs = lab.submit("local");
    let waits = lab.submit("local");
    let stays = lab.submit("local --hold");
    drop(
        lab.env
            .tpu(&format!("kill {waits} {runs} --dry-run"))
            .exits(0)
            .says(&["alice/1", "alice/2"]),
    );
    drop(lab.env.tpu(&format!("kill {waits} {runs} -y")).exits(0).says(&["never began", "Killed"]));
    assert_eq!((lab.running().len(), lab.waiting()), (0, vec![stays]));
}

#[test]
fn nobody_is_guessed_whose_jobs_are_killed() {
    let lab = Lab::new(2);
    let group = lab.submit("local --array 0-4");
    let nobody = [("TPU_USER", ""), ("USER", "nobody"), ("LOGNAME", "nobody")];
    let line = format!("kill {group} -y");
    assert_eq!(lab.env.start_tpu(&line, &nobody).wait(), 2);
    assert_eq!((lab.running().len(), lab.waiting()), (2, vec![group]));
}

/// Members begin while a person thinks about the question: whoever kills a group means those as well.
#[test]
fn a_group_is_killed_whole_though_it_begins_while_one_is_asked() {
    for first_runs in [false, true] {
        let lab = Lab::new(1);
        let blocks = if first_runs { 0 } else { lab.submit("local") };
        let group = lab.submit("local --array 0-3");
        let terminal = Terminal::new(&lab.env);
        terminal.command(&format!("{TPU} kill {group}; echo code-$?"));
        terminal.shows("out of the queue?");
        lab.takes(3);
        drop(lab.env.tpu("queue run --once").exits(0));
        assert_eq!(lab.running().len(), 3);
        terminal.types("y");
        terminal.press("Enter");
        terminal.shows("code-0");
        let left: Vec<u64> = lab.running().into_iter().filter(|one| *one != blocks).collect();
        assert_eq!((left, lab.env.queued()), (Vec::new(), 0));
    }
}

#[test]
fn each_of_several_has_its_line_and_the_worst_decides_the_code() {
    let lab = Lab::new(1);
    let ended = lab.submit_what("local", "true");
    lab.env.wait_status(ended, "finished");
    let runs = lab.submit("local");
    let waits = lab.submit("local --name later");
    lab.wait_running(&[runs]);
    for (verb, done) in [("hold", "is held"), ("priority --first", "comes before")] {
        let said = lab.env.tpu(&format!("{verb} {runs} {waits}")).exits(4);
        let refused = format!("alice/{runs} does not wait");
        drop(said.says(&[
            &format!("alice/{waits} {done}"),
            &refused,
            "`tpu queue` lists what waits",
        ]));
    }
    // What nobody has is an error before anything is changed.
    drop(lab.env.tpu(&format!("unhold {waits} 99")).exits(3));
    assert_eq!(lab.why(waits), "held by alice");
    let said = lab.env.tpu(&format!("unhold {waits} {runs}")).exits(4);
    drop(said.says(&["starts when its turn comes", &format!("alice/{runs} does not wait")]));
    drop(lab.env.tpu(&format!("hold {waits}")).exits(0));
    let said = lab.env.tpu(&format!("requeue {ended} {waits} {runs} -y")).exits(4);
    drop(said.says(&[
        &format!("alice/{runs} continues as"),
        &format!("alice/{waits} waits"),
        &format!("alice/{ended} is finished"),
        &format!("tpu requeue {ended} alice"),
    ]));
    let said = lab.env.tpu(&format!("kill {ended} {waits} -y")).exits(4);
    drop(
        said.says(&[
            &format!("alice/{waits} waits no more"),
            &format!("alice/{ended} is finished"),
        ]),
    );
    assert!(!lab.waiting().contains(&waits));
}

#[test]
fn a_name_that_several_have_kills_none_of_them() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let first = lab.submit("local --name scan");
    let second = lab.submit("local");
    lab.env.change(|data| {
        let entries = &mut data.queues_mut().entries;
        entries[1].spec.name = Some("scan".to_owned());
    });
    let both = [format!("alice/{first} (waits)"), format!("alice/{second} (waits)")];
    drop(lab.env.tpu("kill scan -y").exits(4).says(&[&both[0], &both[1], "name:scan"]));
    assert_eq!(lab.waiting(), [first, second]);
    drop(lab.env.tpu("kill name:scan -y").exits(0).says(&["never began"]));
    assert!(lab.waiting().is_empty());
}

/// A question, and what is refused where nobody can answer it, names what it is about.
#[test]
fn the_question_about_what_waits_names_it() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let named = lab.submit("local --name scan");
    let other = lab.submit("local");
    let group = lab.submit("local --array 0-2 --name grid");
    drop(lab.env.tpu(&format!("kill {named} {other} {group}")).exits(2).says(&[
        &format!("alice/{named} (scan)"),
        &format!("alice/{other} (run.sh)"),
        &format!("3 members of alice/{group} (grid)"),
    ]));
    assert_eq!(lab.waiting(), [named, other, group]);
}

#[test]
fn hints_about_an_array_name_the_array() {
    let lab = Lab::new(2);
    drop(lab.env.tpu("run local --array 0-1 -q -- false").exits(0));
    for member in [2, 3] {
        lab.env.wait_status(member, "error");
    }
    let refused = lab.env.tpu("kill 1 -y").exits(4);
    drop(refused.says(&["alice/2", "alice/3", "tpu resume 1 alice", "tpu clean 1 alice"]));
    drop(lab.env.tpu("kill 1_0 -y").exits(4).says(&["tpu resume 1_0 alice"]));
    drop(lab.env.tpu("run local --array 0-1 -q -- bash run.sh").exits(0));
    drop(lab.env.tpu("kill 4 -y").exits(0).says(&["tpu resume 4 alice"]));
}

#[test]
fn what_waits_is_shown_and_its_queue_too() {
    let lab = Lab::new(1);
    let runs = lab.submit("local");
    lab.wait_running(&[runs]);
    let waits = lab.submit("local --name later");
    for word in [waits.to_string(), "later".to_owned()] {
        let shown = lab.env.tpu(&format!("show {word}")).exits(0);
        drop(shown.says(&[&format!("alice/{waits} is queued"), "why: "]));
    }
    drop(lab.env.tpu("show 99").exits(3));
    drop(lab.env.tpu("queue create night").exits(0));
    let shown = lab.env.tpu("queue show night --json").exits(0).json();
    assert_eq!(shown["queues"].as_array().unwrap().len(), 1);
    assert_eq!(shown["queues"][0]["name"], "night");
}

#[test]
fn a_user_stands_anywhere_beside_a_priority() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let waits = lab.submit("local");
    for (words, priority) in [
        (format!("{waits} 70 alice"), "70"),
        (format!("alice {waits} 71"), "71"),
        (format!("{waits} alice 72"), "72"),
        (format!("{waits} 73 user=alice"), "73"),
    ] {
        let said = lab.env.tpu(&format!("priority {words}")).exits(0);
        drop(said.says(&[&format!("has priority {priority}")]));
    }
    drop(lab.env.tpu(&format!("priority {waits}")).exits(2));
}
