//! `tpu checkpoints prune`: what anybody can still need stays, whatever is known of it; what is outside log directories is
//! nobody's to remove; and nothing goes without `-y`.

use proptest::prelude::*;

use tpu_core::plan::prune::{KeepRule, LineageNeed, PruneDir, PruneFate, PrunedStep, plan};
use tpu_engine::provider::Trouble;
use tpu_lab::sim::Call;

use super::shelves::Shelves;

fn dirs() -> impl Strategy<Value = Vec<PruneDir>> {
    let loss = prop_oneof![Just(None), (0.0..9.0).prop_map(Some), Just(Some(f64::NAN))];
    let likely = || prop::bool::weighted(0.8);
    let step =
        (0..60_u64, likely(), likely(), loss).prop_map(|(step, is_complete, is_certain, loss)| {
            PrunedStep { step, is_complete, is_certain, loss }
        });
    let dir = (prop::bool::weighted(0.85), prop::collection::vec(step, 0..7))
        .prop_map(|(is_known, steps)| PruneDir { is_known, steps });
    prop::collection::vec(dir, 0..6)
}

fn needs() -> impl Strategy<Value = Vec<LineageNeed>> {
    let places = || prop::collection::vec(0..6_usize, 0..4);
    let need = (places(), prop::collection::vec(0..6_usize, 0..2), prop::bool::weighted(0.85))
        .prop_map(|(dirs, reads, is_known)| LineageNeed { dirs, reads, is_known });
    prop::collection::vec(need, 0..5)
}

fn rules() -> impl Strategy<Value = KeepRule> {
    prop_oneof![Just(KeepRule::Newest), Just(KeepRule::Best), (1..20_u64).prop_map(KeepRule::Every)]
}

/// What a resume of a lineage loads: the newest whole one of its youngest attempt that has any; `None` if nobody can say.
fn loads(dirs: &[PruneDir], need: &LineageNeed) -> Option<(usize, u64)> {
    for at in &need.dirs {
        let dir = dirs.get(*at)?;
        let whole = dir.steps.iter().filter(|one| one.is_complete).map(|one| one.step).max();
        if let Some(step) = whole {
            return Some((*at, step));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn nothing_that_can_still_be_needed_is_removed(
        (dirs, needs, rule) in (dirs(), needs(), rules())
    ) {
        let fates = plan(&dirs, &needs, rule);
        let goes = |at: usize, step: u64| {
            let of = dirs[at].steps.iter().zip(&fates[at]);
            of.clone().any(|(one, fate)| {
                one.step == step && one.is_complete && *fate == PruneFate::Remove
            })
        };
        prop_assert_eq!(fates.len(), dirs.len());
        for (dir, fates) in dirs.iter().zip(&fates) {
            prop_assert_eq!(dir.steps.len(), fates.len());
            for (one, fate) in dir.steps.iter().zip(fates) {
                // What is being written, may be anything, or was not wholly read, is left alone.
                if !one.is_complete || !one.is_certain || !dir.is_known {
                    prop_assert_ne!(*fate, PruneFate::Remove);
                }
            }
            // Something to go on from is left of each run, even of one that is over.
            let whole = |one: &&PrunedStep| one.is_complete;
            let left = dir.steps.iter().zip(fates).any(|(one, fate)| one.is_complete && *fate != PruneFate::Remove);
            prop_assert!(left || dir.steps.iter().filter(whole).count() == 0);
        }
        for need in &needs {
            if let Some((at, step)) = loads(&dirs, need) {
                prop_assert!(!goes(at, step), "what a resume would load is gone");
            }
            for at in need.dirs.iter().filter(|at| **at < dirs.len()) {
                let whole = dirs[*at].steps.iter().filter(|one| one.is_complete);
                let mut steps: Vec<u64> = whole.map(|one| one.step).collect();
                steps.sort_unstable();
                steps.dedup();
                for step in steps.iter().rev().take(2) {
                    prop_assert!(!goes(*at, *step), "what is left if the newest is a half one");
                }
            }
            let all = need.dirs.iter().chain(&need.reads);
            let unclear = !need.is_known
                || all.clone().any(|at| dirs.get(*at).is_none_or(|dir| !dir.is_known));
            for at in all.filter(|at| **at < dirs.len()) {
                for one in &dirs[*at].steps {
                    // Of what nobody can say what is needed of nothing goes, and of what is named neither.
                    if unclear || need.reads.contains(at) {
                        prop_assert!(!goes(*at, one.step));
                    }
                }
            }
        }
    }
}

/// Two runs: a finished one, and one that was resumed once and has failed.
fn lab() -> Shelves {
    let lab = Shelves::new();
    for step in [10, 20, 30] {
        for run in ["over", "first", "second"] {
            lab.file(&format!("logs/{run}/checkpoint_{step}/w"), 100);
        }
        lab.file(&format!("elsewhere/checkpoint_{step}/w"), 100);
    }
    lab.file("logs/over/output.log", 10);
    let log = |run: &str| lab.env.path(&format!("logs/{run}")).to_str().unwrap().to_owned();
    let mut first = lab.job(2, "resumed", &log("first"));
    first["extra_msgs"]["child"] = 3.into();
    let mut second = lab.job(3, "error", &log("second"));
    second["extra_msgs"]["father"] = 2.into();
    let over = lab.job(1, "finished", &log("over"));
    lab.jobs(&[over, first, second]);
    lab
}

fn left(lab: &Shelves, run: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(lab.env.path(run))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("checkpoint"))
        .collect();
    names.sort();
    names
}

const ALL: [&str; 3] = ["checkpoint_10", "checkpoint_20", "checkpoint_30"];

#[test]
fn nothing_goes_without_a_yes_and_then_what_was_said() {
    let lab = lab();
    let plan = lab.env.tpu("checkpoints prune --keep newest").exits(0);
    plan.says(&["Would remove 4 checkpoints, 400 B", "the same with -y"]);
    assert_eq!(left(&lab, "logs/over"), ALL);
    lab.env.tpu("checkpoints prune --keep newest -y --dry-run").exits(0).says(&["Would remove 4"]);
    assert_eq!(left(&lab, "logs/first"), ALL);
    let document = lab.env.tpu("checkpoints prune --keep every 20 -y --json").exits(0).json();
    assert_eq!(document["removed"].as_array().unwrap().len(), 3);
    assert_eq!(left(&lab, "logs/second"), ["checkpoint_20", "checkpoint_30"]);
    lab.env.tpu("checkpoints prune --keep newest 1 -y").exits(0).says(&["Removed 1 checkpoint"]);
    assert_eq!(left(&lab, "logs/over"), ["checkpoint_30"]);
    assert_eq!(left(&lab, "logs/first"), ["checkpoint_20", "checkpoint_30"]);
    assert_eq!(left(&lab, "elsewhere"), ALL, "no log directory");
    lab.env.tpu("checkpoints prune --keep oldest").exits(2).says(&["every N"]);
}

#[test]
fn what_a_run_needs_stays_where_the_rule_would_let_it_go() {
    let lab = lab();
    // By the best nothing is known of any loss.
    lab.env.tpu("checkpoints prune --keep best -y").exits(0).says(&["Removed 0 checkpoints"]);
    // The failed run names the directory of the finished one.
    let mut data = lab.env.data();
    let over = lab.env.path("logs/over").join("checkpoint_10");
    data["users"]["alice"]["job_data"][2]["extra_configs"] =
        format!("--config.base={}", over.display()).into();
    lab.env.write_data(&data);
    let said = lab.env.tpu("checkpoints prune --keep newest -y").exits(0);
    said.says(&["Removed 2 checkpoints", "a run names its directory"]);
    assert_eq!(left(&lab, "logs/over"), ALL);
}

#[test]
fn what_a_command_of_its_own_names_stays_as_well() {
    let lab = lab();
    let mut data = lab.env.data();
    let over = lab.env.path("logs/over").join("checkpoint_10");
    let command = format!("python3 train.py --base={}", over.display());
    data["users"]["alice"]["job_data"][2]["customized_settings"]["command"] =
        serde_json::json!(["bash", "-c", command]);
    lab.env.write_data(&data);
    let said = lab.env.tpu("checkpoints prune --keep newest -y").exits(0);
    said.says(&["Removed 2 checkpoints", "a run names its directory"]);
    assert_eq!(left(&lab, "logs/over"), ALL);
}

#[test]
fn the_newest_may_be_a_half_one_and_the_one_before_it_stays() {
    let lab = lab();
    // Nothing tells that it is being written: no other name, no mark that comes last.
    lab.file("logs/second/checkpoint_40/w", 1);
    let said = lab.env.tpu("checkpoints prune --keep newest -y").exits(0);
    said.says(&["a run continues from it if the newest one is not complete"]);
    assert_eq!(left(&lab, "logs/second"), ["checkpoint_30", "checkpoint_40"]);
    assert_eq!(left(&lab, "logs/over"), ["checkpoint_30"], "nothing goes on from what is over");
}

#[test]
fn what_something_that_waits_names_stays() {
    let over = |lab: &Shelves| lab.env.path("logs/over/checkpoint_10").display().to_string();
    let submits: [&dyn Fn(&str) -> String; 3] = [
        &|path| format!("config.base={path}"),
        &|path| format!("config.base={path},/elsewhere/2 --sweep"),
        &|path| format!("-- python3 train.py --base={path}"),
    ];
    for words in submits {
        let lab = lab();
        lab.env.code("alice", "staging.sh", "exit 0");
        let line = format!("submit local --hold {}", words(&over(&lab)));
        drop(lab.env.tpu(&line).exits(0));
        let said = lab.env.tpu("checkpoints prune --keep newest -y").exits(0);
        said.says(&["a run names its directory"]);
        assert_eq!(left(&lab, "logs/over"), ALL, "{line}");
    }
}

#[test]
fn what_has_ended_well_and_waits_to_go_on_keeps_what_it_goes_on_from() {
    let lab = lab();
    let entry = serde_json::json!({
        "user": "alice", "number": 9, "target": "local", "since": "2024-11-04T12:00:00Z",
        "held": { "by": "alice", "since": "2024-11-04T12:00:00Z" },
        "succeeds": { "job": 1, "how": "resume", "told": true },
    });
    let mut data = lab.env.data();
    data["queue"] = serde_json::json!({ "entries": [entry] });
    lab.env.write_data(&data);
    drop(lab.env.tpu("checkpoints prune --keep newest -y").exits(0));
    assert_eq!(left(&lab, "logs/over"), ["checkpoint_20", "checkpoint_30"]);
    lab.env.tpu("checkpoints prune 1 --keep best").exits(0).says(&["Would remove 0"]);
}

#[test]
fn what_has_a_number_and_is_nothing_that_a_framework_writes_stays() {
    let lab = lab();
    for name in ["1/picture", "2/picture", "epoch_3/metrics.json", "iter_50/w"] {
        lab.file(&format!("logs/over/{name}"), 10);
    }
    for name in ["epoch_4/model.safetensors", "5/_METADATA"] {
        lab.file(&format!("logs/over/{name}"), 10);
    }
    let said = lab.env.tpu("checkpoints prune 1 --keep newest -y").exits(0);
    said.says(&["Removed 4 checkpoints", "nothing in it tells that it is a checkpoint"]);
    assert_eq!(left(&lab, "logs/over"), ["checkpoint_30"], "the newest that is one for certain");
    for (name, stays) in [
        ("1", true),
        ("2", true),
        ("epoch_3", true),
        ("iter_50", true),
        ("epoch_4", false),
        ("5", false),
    ] {
        assert_eq!(lab.env.path("logs/over").join(name).exists(), stays, "{name}");
    }
}

#[test]
fn files_that_are_one_checkpoint_together_go_together() {
    let lab = lab();
    for step in [5, 6, 7] {
        for rank in [0, 1] {
            lab.file(&format!("logs/over/checkpoints/step_{step}.rank{rank}.pt"), 10);
        }
        for part in ["index", "data-00000-of-00002", "data-00001-of-00002"] {
            lab.file(&format!("logs/first/checkpoints/model.ckpt-{step}.{part}"), 10);
        }
    }
    let said = lab.env.tpu("checkpoints prune 1 --keep every 6 -y").exits(0);
    said.says(&["step_5.rank0.pt and 1 beside it"]);
    let below = |run: &str| {
        let entries = std::fs::read_dir(lab.env.path(run).join("checkpoints")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(below("logs/over"), ["step_6.rank0.pt", "step_6.rank1.pt"], "no mark is left");
    drop(lab.env.tpu("checkpoints prune 2 --keep newest -y").exits(0));
    assert!(!below("logs/first").iter().any(|name| name.contains("ckpt-5")), "all or nothing");
    assert!(below("logs/first").is_empty() || below("logs/first").len() % 3 == 0);
}

#[test]
fn a_question_that_failed_removes_nothing_of_its_run() {
    let lab = lab();
    let mut data = lab.env.data();
    data["users"]["alice"]["job_data"][2]["log_dir"] = "gs://lab-us/logs/second".into();
    lab.env.write_data(&data);
    lab.fail(Trouble::Permission, Call::Objects, 9);
    let said = lab.env.tpu("checkpoints prune --keep newest -y").exits(0);
    said.says(&["Removed 2 checkpoints", "nothing of its run goes"]);
    assert_eq!(left(&lab, "logs/first"), ALL, "what its successor needs is not known");
    assert_eq!(left(&lab, "logs/over"), ["checkpoint_30"]);
}

#[test]
fn the_spellings_of_the_original_do_as_they_did() {
    let lab = lab();
    let run = lab.env.path("logs/over");
    let run = run.to_str().unwrap();
    lab.env.tpu(&format!("cc {run} us-central1-a")).exits(0).says(&["Copied step 30"]);
    lab.env
        .tpu(&format!("cca {run} us-central1-a"))
        .exits(0)
        .says(&["Copied step 10", "Was there"]);
    lab.env
        .tpu(&format!("cc {run} europe-west4-a us-central1-a"))
        .exits(0)
        .says(&["Copied step 30"]);
    lab.env
        .tpu(&format!("cp {run} us-central1-a europe-west4-a"))
        .exits(0)
        .says(&["Copied step 20"]);
    // A run that logs to a bucket of that region, and one that does not.
    let mut data = lab.env.data();
    data["users"]["alice"]["job_data"][0]["log_dir"] = "gs://lab-us/logs/over".into();
    lab.env.write_data(&data);
    lab.env.tpu("clean-us").exits(0).says(&["Would remove 2 checkpoints"]);
    lab.env.tpu("clean-us -f -q").exits(0).says(&["Removed 2 checkpoints"]);
    assert_eq!(left(&lab, "logs/over"), ALL);
    let us = lab.listed("1").into_iter().filter(|(_, _, place)| place.starts_with("gs://lab-us"));
    assert_eq!(us.map(|(step, ..)| step).collect::<Vec<_>>(), [30]);
    lab.env.tpu("clean-eu -f -q").exits(0).says(&["Removed 2 checkpoints"]);
}

#[test]
fn what_was_copied_to_another_region_is_seen_and_what_a_run_needs_of_it_stays() {
    let lab = lab();
    let copied = |run: &str| {
        let dir = lab.env.path(&format!("logs/{run}"));
        drop(lab.env.tpu(&format!("cca {} us-central1-a", dir.display())).exits(0));
    };
    copied("over");
    copied("second");
    // The runs log on this machine, and their copies are beside the machines of that region.
    lab.env.tpu("clean-us").exits(0).says(&["Would remove 3 checkpoints", "gs://lab-us/logs/over"]);
    lab.env.tpu("clean-eu").exits(0).says(&["No checkpoint was found"]);
    lab.env
        .tpu("checkpoints prune 1 --keep newest")
        .exits(0)
        .says(&["Would remove 4 checkpoints", "gs://lab-us/logs/over/checkpoint_10"]);
    lab.env.tpu("clean-us -f -q").exits(0).says(&["Removed 3 checkpoints"]);
    assert_eq!(left(&lab, "logs/over"), ALL, "what lies here is not meant");
    let left = |window: &str| {
        let all = lab.listed(window).into_iter();
        let us = all.filter(|(_, _, place)| place.starts_with("gs://lab-us"));
        us.map(|(step, ..)| step).collect::<Vec<_>>()
    };
    assert_eq!((left("1"), left("3")), (vec![30], vec![20, 30]), "what failed may go on from them");
}
