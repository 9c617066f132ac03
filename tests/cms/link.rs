//! A link to the program that is called `cms` is `tpu cms`.

use super::lab;
use crate::common::env::TPU;

#[test]
fn a_link_called_cms_is_tpu_cms() {
    let env = lab();
    let link = env.path("cms");
    std::os::unix::fs::symlink(TPU, &link).unwrap();
    let program = link.to_str().unwrap();
    let cms = |words: &[&str]| env.output(&env.spawn_program(program, words));
    drop(cms(&["set", "jobset=spec.yaml"]).exits(0));
    assert!(cms(&["set", "jobset"]).exits(0).stdout.contains("spec.yaml"));
    let said = cms(&["--json", "job", "scheduler", "info"]).exits(0).json();
    assert_eq!(said["policy"], "sequential");
    assert!(cms(&["job", "help"]).exits(0).stdout.contains("cms job set FILE"));
    assert!(cms(&["--help"]).exits(0).stdout.contains("tpu cms"));
    drop(cms(&["check"]).exits(2));
    // Any other name is the program itself.
    let other = env.path("cmsx");
    std::os::unix::fs::symlink(TPU, &other).unwrap();
    drop(env.output(&env.spawn_program(other.to_str().unwrap(), &["list-users"])).exits(0));
}

#[test]
fn a_question_names_the_command_that_answers_it() {
    let mut env = lab();
    env.unset("TPU_USER");
    let link = env.path("cms");
    std::os::unix::fs::symlink(TPU, &link).unwrap();
    let words = ["job", "scheduler", "--policy=random"];
    let said = env.output(&env.spawn_program(link.to_str().unwrap(), &words)).exits(2).stderr;
    assert!(said.contains("tpu cms job scheduler --policy=random --user alice"), "{said}");
}
