//! Commands as the manual prints them: hosts, the scheduler, the page itself; and what is refused.

use super::{host, lab};
use crate::common::wait::wait_until;

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

/// What somebody types who forgets something, or wants what there is not.
const REFUSED: [(&str, i32, &str); 16] = [
    ("job --service stop", 2, "start or info"),
    ("queue --service start --port=http", 2, "no port"),
    ("queue info --queue=nowhere", 3, "there is no queue 'nowhere'"),
    ("job add", 2, "which jobs?"),
    ("job add another.yaml --name=a", 2, "a file and --name"),
    ("job add --name=tag", 4, "it is a word of the grammar"),
    ("job add --name=123", 4, "'123' cannot be the name of a job"),
    ("job add nowhere.yaml", 3, "cannot read"),
    ("job run --name=ls_j", 3, "no job of alice is called 'ls_j'"),
    ("job reset", 2, "which jobs?"),
    ("job reset --name=ls_j", 3, "no job of alice is called 'ls_j'"),
    ("job delete", 2, "which jobs?"),
    ("job kill", 2, "which jobs?"),
    ("queue run fifo", 2, "how many jobs at a time?"),
    ("queue run fifo_multi --hosts=u@a,u@b", 3, "a is not a registered host"),
    ("queue add --queue=night --name=a --command=ls", 3, "there is no queue 'night'"),
];

#[test]
fn what_is_missing_is_said_and_nothing_is_changed() {
    let env = lab();
    crate::common::tmux::write_file(&env.path("another.yaml"), "a:\n  name: b\n");
    let before = env.data_bytes();
    for (line, code, what) in REFUSED {
        let said = env.tpu(&format!("cms {line}")).exits(code).says(&[what]);
        let hint = said.stderr.lines().any(|line| line.starts_with("hint:"));
        assert!(hint && said.stdout.is_empty(), "{}", said.report());
    }
    let said = env.tpu("cms job add another.yaml").exits(2).stderr;
    assert!(said.contains("another.yaml:2: a.name: 'b' stands below a"), "{said}");
    assert_eq!(env.data_bytes(), before);
    drop(env.tpu("cms job run").exits(0).says(&["Nothing is ready"]));
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

#[test]
fn the_service_answers_with_its_routes_and_says_whether_it_does() {
    let env = lab();
    // One that nobody has at the moment.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let info = format!("cms queue --service info --port={port} --json");
    assert_eq!(env.tpu(&info).exits(0).json()["answers"], false);
    let service = env.start_tpu(&format!("cms queue --service start --port={port}"), &[]);
    wait_until("it answers", || env.tpu(&info).exits(0).json()["answers"] == true);
    let said = env.tpu(&info).exits(0).json();
    assert_eq!(said["docs"], format!("http://127.0.0.1:{port}/docs"));
    let taken = env.tpu(&format!("cms queue --service start --port={port}"));
    assert_ne!(taken.code, 0, "two cannot have one port");
    drop(service);
    wait_until("it is gone", || env.tpu(&info).exits(0).json()["answers"] == false);
}
