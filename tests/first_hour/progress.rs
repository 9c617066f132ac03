//! How many copies of the code there are, and how far one is while it is made.

use super::Newcomer;
use crate::common::wait::wait_until;

const MEMBER: &str = "import os\nopen('of-' + os.environ['TPU_MEMBER'], 'w').write('x')\n";

#[test]
fn members_of_a_group_have_one_copy_and_where_it_is_wished_each_its_own() {
    let newcomer = Newcomer::new();
    drop(newcomer.types("exp", "hosts set local --max-jobs none").exits(0));
    newcomer.file("exp/one.py", MEMBER);
    let begins =
        ["run local -q --array 0-2", "submit local --array 0-2", "submit local lr=1,2,3 --sweep"];
    // The number of the group is no job's.
    let mut first = 2;
    for line in begins {
        for each in [false, true] {
            let flag = if each { "--copy-each" } else { "" };
            let typed = format!("{line} {flag} -- python3 one.py");
            drop(newcomer.types("exp", &typed).exits(0));
            let jobs = [first, first + 1, first + 2];
            let names = jobs.map(|job| job.to_string()).join(" ");
            drop(newcomer.types("exp", &format!("wait {names}")).exits(0));
            let copies = jobs.map(|job| newcomer.copy(job));
            for (index, copy) in copies.iter().enumerate() {
                let others = copies.iter().filter(|other| *other == copy).count();
                assert_eq!(others, if each { 1 } else { 3 }, "{line} {flag}");
                assert!(copy.join(format!("of-{index}")).is_file(), "{line} {flag}");
                assert!(copy.join(".tpu-copied").is_file(), "{line} {flag}");
            }
            first += 4;
        }
    }
}

#[test]
fn what_members_write_is_in_no_copy_of_another_job() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/one.py", MEMBER);
    let array = "target: local\nname: first\narray: 0-1\ncommand: python3 one.py\n";
    let later = "target: local\nafter: [first]\ncommand: ls -1\n";
    newcomer.file("exp/two.yaml", &format!("{array}---\n{later}"));
    drop(newcomer.types("exp", "submit two.yaml").exits(0));
    // It has its number since it waits, and the members have theirs since they run.
    assert_eq!(newcomer.prints(2), "my.py\none.py\ntwo.yaml\n");
    assert!(newcomer.copy(3).join("of-1").is_file() && newcomer.copy(3) == newcomer.copy(4));
    drop(newcomer.types("exp", "wait 3").exits(0).says(&["with the others of its group"]));
}

#[test]
fn a_look_says_how_far_a_large_copy_is() {
    let mut newcomer = Newcomer::new();
    let large = std::fs::File::create(newcomer.path("exp/large.bin")).unwrap();
    large.set_len(200_000_000).unwrap();
    newcomer.env.set("FAILPOINTS", "copying-said=pause");
    drop(newcomer.types("exp", "run local -q -- true").exits(0));
    newcomer.env.unset("FAILPOINTS");
    let seen = || newcomer.types("exp", "check --json").exits(0).json()["jobs"][0].clone();
    wait_until("it is said", || seen()["evidence"]["line"] == "copying 200.0 MB");
    assert_eq!(seen()["status"], "starting");
    drop(newcomer.types("exp", "check").exits(0).says(&["starting", "now: copying 200.0 MB"]));
    drop(newcomer.types("exp", "kill 1 -y").exits(0));
    // Nobody makes it any more, although its file is there still.
    assert_eq!(seen()["status"], "killed");
}
