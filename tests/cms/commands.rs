//! Each command as the manual prints it: what it does, or what it needs that there is not and what to type instead.

use super::{host, lab};

#[test]
fn hosts_and_the_scheduler_work_as_the_manual_prints_them() {
    let env = lab();
    let words = [
        "cms",
        "job",
        "hosts",
        "add",
        "--hostname=name1",
        "--ip=10.0.0.7",
        "--cpus=12",
        "--max_jobs_allowed=4",
    ];
    drop(env.tpu_words(&[&words[..], &["--job_counter=3", "--no-probe"]].concat()).exits(0));
    let known = host(&env, "name1");
    assert_eq!(known["addresses"][0], "10.0.0.7");
    assert_eq!(
        (known["capacity"]["jobs"].as_u64(), known["capacity"]["cpus"].as_u64()),
        (Some(4), Some(12))
    );
    let listed = env.tpu("cms job list hosts").exits(0).stdout;
    let row = listed.lines().find(|line| line.starts_with("name1")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        cells,
        ["name1", "10.0.0.7", "12", "free", "0", "4"],
        "the counter is ours\n{listed}"
    );

    let said = env.tpu("cms job scheduler info --json").exits(0).json();
    assert_eq!((&said["policy"], &said["origin"]), (&"sequential".into(), &"built in".into()));
    for policy in ["random", "smart", "frugal", "sequential"] {
        drop(env.tpu(&format!("cms job scheduler --policy={policy}")).exits(0));
        let said = env.tpu("cms job scheduler info").exits(0).stdout;
        assert!(said.contains(&format!("policy: {policy}")), "{said}");
    }
    assert!(env.tpu("cms job scheduler --policy=lucky").exits(2).stderr.contains("frugal"));
    assert!(env.tpu("cms job scheduler").exits(2).stderr.contains("--policy=random"));
}

/// Commands of the manual that need a queue, or a service.
const REFUSED: [&str; 16] = [
    "job add another.yaml",
    "job add --name=z[0-1] --ip=123,345 --executable=ls --input=../data --output=a,b",
    "job run",
    "job run --name=ls_j",
    "job reset --name=ls_j",
    "job delete --name=ls_j",
    "job --service start",
    "job --service info",
    "queue create --queue=default --experiment=./experiment",
    "queue add --name=a[1-3] --command=hostname --host=j1 --gpu=0 --pyenv=v --log=l --shell=bash",
    "queue run fifo --max_parallel=3 --timeout=10",
    "queue run fifo_multi --hosts=u@a,u@b",
    "queue reset --name=a1 --status=end",
    "queue delete --name=a1",
    "queue --service start --port=8000",
    "job kill",
];

#[test]
fn what_needs_a_queue_says_so_and_what_to_type_instead() {
    let env = lab();
    crate::common::tmux::write_file(&env.path("another.yaml"), "a:\n  executable: ls\n");
    let before = env.data_bytes();
    for line in REFUSED {
        let said = env.tpu(&format!("cms {line}")).exits(2);
        assert!(said.stdout.is_empty(), "{}", said.report());
        let hint = said.stderr.lines().any(|line| line.starts_with("hint:"));
        assert!(hint, "{}", said.report());
        let reason = ["queue", "service", "which jobs"];
        assert!(reason.iter().any(|word| said.stderr.contains(word)), "{}", said.report());
        assert!(said.stderr.contains("tpu "), "{}", said.report());
    }
    assert_eq!(env.data_bytes(), before);
    let said = env.tpu("cms job add spec.yaml").exits(2).stderr;
    assert!(said.contains("1 job cannot be added"), "{said}");
    crate::common::tmux::write_file(&env.path("another.yaml"), "a:\n  name: b\n");
    let said = env.tpu("cms job add another.yaml").exits(2).stderr;
    assert!(said.contains("another.yaml:2: a.name: 'b' stands below a"), "{said}");
}

#[test]
fn the_manual_is_printed() {
    let env = lab();
    let help = env.tpu("cms job help").exits(0).stdout;
    for line in [
        "cms job set FILE",
        "cms job hosts add --hostname=NAME --ip=IP --cpus=N --max_jobs_allowed=N",
        "cms job list hosts",
        "cms job scheduler --policy=POLICY",
        "cms job kill --name=NAME",
        "cms cluster activate --id=NAME",
    ] {
        assert!(help.contains(line), "{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 90), "{help}");
    assert_eq!(env.tpu("cms job").exits(0).stdout, help);
}
