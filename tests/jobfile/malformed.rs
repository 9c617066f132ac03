//! 300 files that are wrong: each is refused with a line, a column and what to do.

use tpu_jobfile::own::{Given, KindKey, KindWords, read};

const VALID: &str = "name: train
target: {slurm: gpu, nodes: 2, sbatch: a=b}
dir: 2
command: [python, train.py]
zip: false
max_parallel: 2
array: {lr: [1e-3, 1e-4]}
tag: base
notes: first
rules: {preempted: resume}
gpus: 1
cpus: 2
mem: 3G
policy: smart
queue: night
priority: 70
hold: true
after: [12, tok]
after_any: 3
after_not: 4
after_each: 5
env: {A: x}
setup: [{docker: {image: i, flags: [a]}}, {name: s, run: x, timeout: 10m, files: [{from: a, to: ~/b}]}]
workers: [0, 2]
timeout: 2h
idle_timeout: 30m
secrets: [A_KEY]
stdin: q.txt
output: o.txt
retry: {max: 3, on: [lost, stalled], backoff: 60s}
repeat: {when: on-failure, pause: 10s}
";

fn given() -> Vec<KindWords> {
    let options = vec![KindKey::plain("nodes", false), KindKey::plain("sbatch", true)];
    vec![KindWords { word: "slurm".to_owned(), options }]
}

/// Breaks a line, in one of many ways.
fn broken(line: &str) -> Vec<String> {
    let (key, value) = line.split_once(": ").unwrap();
    vec![
        format!("{key}x: {value}"),
        format!("x{key}: {value}"),
        format!("{key}"),
        format!("{key}: {{{{nope}}}}").replace(": {{nope}}", ": '{{nope}}'"),
        format!("{key}: 'open {{{{'"),
        format!("{key}: {value}\n{key}: {value}"),
        format!("{key}: [[]]"),
        format!("{key}: [{{}}]"),
        format!("{key}: {{x: {{y: [z]}}}}"),
        format!("{key}: *nowhere"),
        format!("{key}: \"\\0\""),
        format!("{key}: ''"),
        format!("{key}: 'open"),
        format!("{key}: {value}\n\tenv: x"),
        format!("{key}: {value}\nkeep: FILE"),
    ]
}

#[test]
fn each_is_refused_with_its_place_and_what_to_do() {
    let kinds = given();
    let given = Given { set: &[], kinds: &kinds };
    assert!(read(VALID, &given).is_ok(), "{:?}", read(VALID, &given));
    let lines: Vec<&str> = VALID.lines().collect();
    let mut count = 0;
    for at in 0..lines.len() {
        for instead in broken(lines[at]) {
            let mut all: Vec<&str> = lines.clone();
            all[at] = &instead;
            let text = all.join("\n");
            let Err(bad) = read(&text, &given) else { panic!("it was read:\n{text}") };
            assert!(bad.line.is_some() && bad.column.is_some(), "{bad:?}\n{text}");
            assert!(!bad.what.is_empty() && !bad.hint.is_empty(), "{bad:?}\n{text}");
            count += 1;
        }
    }
    assert!(count >= 300, "{count} files");
}

#[test]
fn no_cut_and_no_lost_byte_makes_it_panic() {
    let kinds = given();
    let given = Given { set: &[], kinds: &kinds };
    for at in 0..VALID.len() {
        let (before, behind) = VALID.split_at(at);
        for text in
            [before.to_owned(), format!("{before}{}", &behind[1..]), format!("{before}{{{behind}")]
        {
            if let Err(bad) = read(&text, &given) {
                assert!(bad.line.is_some() && !bad.hint.is_empty(), "{bad:?}\n{text}");
            }
        }
    }
}
