//! `cms set jobset` remembers a file for each user, shows it, and never writes it.

use super::{SPEC, lab};
use crate::common::tmux::write_file;

#[test]
fn the_jobset_is_remembered_for_each_user_and_shown() {
    let env = lab();
    let said = env.tpu("cms set jobset").exits(3).stderr;
    assert!(said.contains("no jobset is set"), "{said}");
    let set = env.tpu("cms set jobset=spec.yaml").exits(0);
    assert!(set.stderr.contains("never written"), "{}", set.report());
    let expected = format!("jobset='{}/spec.yaml'", env.root());
    assert_eq!(env.tpu("cms set jobset").exits(0).stdout.trim(), expected);
    let info = env.tpu("cms job info").exits(0).stdout;
    assert!(info.contains("spec.yaml: 2 hosts, 1 job"), "{info}");
    drop(env.tpu("cms set jobset --user bob").exits(3));

    // Quoted, as the manual has it, no shell expands the home directory.
    write_file(&env.path("other.yaml"), SPEC);
    let home = env.variables()[std::ffi::OsStr::new("HOME")].clone();
    let below = std::path::Path::new(&home).join("mine.yaml");
    write_file(&below, SPEC);
    drop(env.tpu_words(&["cms", "job", "set", "~/mine.yaml", "--user", "bob"]).exits(0));
    let shown = env.tpu("cms set jobset --user bob --json").exits(0).json();
    assert_eq!(shown["jobset"], below.to_str().unwrap());
    assert_eq!(env.tpu("cms set jobset").exits(0).stdout.trim(), expected, "alice's is hers");
    assert_eq!(std::fs::read_to_string(env.path("spec.yaml")).unwrap(), SPEC);
}

#[test]
fn a_dry_run_remembers_nothing_and_a_bad_file_is_none() {
    let env = lab();
    drop(env.tpu("cms set jobset=spec.yaml --dry-run").exits(0));
    drop(env.tpu("cms set jobset").exits(3));
    write_file(&env.path("bad.yaml"), "cloudmesh:\n  jobset: [\n");
    write_file(&env.path("a-queue.yaml"), "a:\n  command: ls\n");
    assert!(env.tpu("cms set jobset=bad.yaml").exits(2).stderr.contains("bad.yaml:"));
    assert!(env.tpu("cms set jobset=a-queue.yaml").exits(2).stderr.contains("no jobset"));
    drop(env.tpu("cms set jobset=").exits(2));
    for other in ["host=juliet", "user", "Jobset=spec.yaml"] {
        let said = env.tpu(&format!("cms set {other}")).exits(2).stderr;
        assert!(said.contains("no variable that tpu keeps"), "{said}");
    }
    let later = env.tpu("cms set jobset=later.yaml").exits(0);
    assert!(later.stderr.contains("cms job template writes it"), "{}", later.report());
}

#[test]
fn a_jobset_that_breaks_later_keeps_nobody_from_what_is_known_here() {
    let env = lab();
    drop(env.tpu("import cloudmesh spec.yaml --no-probe").exits(0));
    drop(env.tpu("cms set jobset=spec.yaml").exits(0));
    write_file(&env.path("spec.yaml"), "cloudmesh: [\n");
    for line in ["cms job list hosts", "cms job list"] {
        let listed = env.tpu(line).exits(0);
        assert!(listed.stderr.contains("of the jobset nothing can be said"), "{}", listed.report());
    }
    assert!(env.tpu("cms job list hosts").exits(0).stdout.contains("juliet"));
    drop(env.tpu("cms job info").exits(2));
    std::fs::remove_file(env.path("spec.yaml")).unwrap();
    drop(env.tpu("cms job list hosts").exits(0));
    assert!(env.tpu("cms job info").exits(3).stderr.contains("cannot read"));
    let shown = env.tpu("cms set jobset --json").exits(0).json();
    assert_eq!(shown["is_there"], false);
}

#[test]
fn hosts_of_the_jobset_that_are_not_known_here_are_named() {
    let env = lab();
    drop(env.tpu("cms set jobset=spec.yaml").exits(0));
    let listed = env.tpu("cms job list hosts").exits(0);
    assert!(listed.stdout.contains("No hosts"), "{}", listed.report());
    assert!(listed.stderr.contains("localhost, juliet; take them over"), "{}", listed.report());
    drop(env.tpu("import cloudmesh spec.yaml --no-probe").exits(0));
    let listed = env.tpu("cms job list hosts").exits(0);
    assert!(!listed.stderr.contains("not known here"), "{}", listed.report());
    // A host that is added here stays here.
    let add = ["cms", "job", "hosts", "add", "--hostname=new", "--ip=new.lab", "--no-probe"];
    let said = env.tpu_words(&add).exits(0).stderr;
    assert!(said.contains("never written"), "{said}");
    assert_eq!(std::fs::read_to_string(env.path("spec.yaml")).unwrap(), SPEC);
}
