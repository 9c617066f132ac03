//! The head of a group says how its jobs are, in words and as a bar, and all heads together say what there is.

use std::collections::BTreeMap;

use tpu_core::model::ids::UserName;
use tpu_screen::model::Model;

use crate::common::samples;
use crate::common::screen::Screen;

/// The rows of the list that are heads, as they stand on a screen.
fn heads(screen: &mut Screen, size: (u16, u16)) -> Vec<String> {
    let frame = screen.frame(size);
    let names: Vec<String> =
        screen.model.list.rows.iter().filter_map(|row| row.head.clone()).collect();
    let is_head = |line: &&str| names.iter().any(|name| line.contains(&format!("│ - {name} ")));
    // The detail beside it has numbers of its own.
    let list = |line: &str| line.split("││").next().unwrap_or_default().to_owned();
    frame.lines().filter(is_head).map(list).collect()
}

/// How many jobs the heads count under each word.
fn counted(heads: &[String]) -> BTreeMap<String, usize> {
    let mut sums = BTreeMap::new();
    for head in heads {
        let words: Vec<&str> =
            head.split([' ', ',', '│']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            if let Ok(count) = pair[0].parse::<usize>() {
                *sums.entry(pair[1].to_owned()).or_default() += count;
            }
        }
    }
    sums
}

fn leaves(model: &Model) -> usize {
    model.jobs().iter().filter(|job| job.leaf).count()
}

#[test]
fn all_heads_together_count_every_job_once() {
    let mut screen = Screen::showing(samples::snapshot());
    for (key, groups) in [("v", "target"), ("v", "directory"), ("v", "user")] {
        screen.press(key);
        let heads = heads(&mut screen, (200, 50));
        assert!(!heads.is_empty(), "by {groups}");
        let counted = counted(&heads);
        assert_eq!(counted.values().sum::<usize>(), leaves(&screen.model), "{groups}: {heads:?}");
        assert_eq!(counted.get("error"), Some(&2), "{groups}: {heads:?}");
    }
    screen.press("v");
    assert!(screen.model.list.rows.iter().all(|row| !row.is_head()), "and not at all");
}

#[test]
fn each_state_is_seen_in_the_bar_however_rare_it_is() {
    let mut snapshot = samples::snapshot();
    snapshot.jobs = (1..=200).map(samples::job).collect();
    snapshot.jobs.push(samples::oom(900));
    for job in &mut snapshot.jobs {
        "one".clone_into(&mut job.target_label);
    }
    let mut screen = Screen::showing(snapshot);
    screen.press("v");
    for size in [(60, 16), (80, 24), (120, 40)] {
        let heads = heads(&mut screen, size);
        let [head] = heads.as_slice() else { panic!("{heads:?}") };
        assert!(head.contains("●●▲") && head.contains("200 running, 1 error"), "{head}");
    }
}

#[test]
fn jobs_of_several_users_are_grouped_by_them() {
    let mut snapshot = samples::snapshot();
    for job in snapshot.jobs.iter_mut().take(2) {
        job.id.user = UserName::from("bob");
    }
    let mut screen = Screen::showing(snapshot);
    screen.press("v v v");
    let heads = heads(&mut screen, (120, 40));
    assert_eq!(heads.len(), 2, "{heads:?}");
    assert!(heads[0].contains("alice") && heads[1].contains("bob"), "{heads:?}");
}
