//! A dry run of what makes a target usable or anew, or follows a recipe on it, says what would be done and
//! does nothing; where the real thing would be refused, so is the dry run.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::json_schema::assert_described;

const TARGET: &str = "lab-tpuvm-v2-32-1";

const RECIPES: &str = r#"
[[recipe]]
name = "solve"

[[recipe.step]]
name = "disk"
check = "mountpoint -q /shared"
setup = '''
mkdir -p /shared
mount /shared
'''
"#;

/// A simulated target that is READY, and a recipe for it.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    std::fs::create_dir_all(env.path("config/tpu")).unwrap();
    write_file(&env.path("config/tpu/settings.json"), "{}");
    write_file(&env.path("config/tpu/recipes.toml"), RECIPES);
    drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
    env
}

/// The state of the target, and all that the data file holds.
fn all(env: &TestEnv) -> (String, String) {
    let seen = env.tpu("check-status v2-1 --json").exits(0).json();
    (seen["targets"][0]["raw_state"].to_string(), String::from_utf8(env.data_bytes()).unwrap())
}

#[test]
fn a_dry_run_says_what_would_be_done_to_a_target_and_does_nothing() {
    let env = lab();
    let before = all(&env);
    drop(env.tpu("reapply v2-1 --dry-run").exits(0).says(&[
        "target     lab-tpuvm-v2-32-1",
        "state      READY",
        "would      delete it with all that is on it, then create it",
        "zone       europe-west4-a",
        "type       v2-32",
    ]));
    drop(env.tpu("apply v2-1 --dry-run").exits(0).says(&["nothing: it is usable"]));
    let solve = env.tpu("solve v2-1 --dry-run").exits(0);
    drop(solve.says(&["on each    disk: set up where this fails: mountpoint -q /shared"]));
    let forced = env.tpu("solve v2-1 --force --dry-run").exits(0);
    drop(forced.says(&["on each    disk: set up: mkdir -p /shared …"]));
    assert_eq!(all(&env), before);

    drop(env.tpu("sim preempt v2-1").exits(0));
    let before = all(&env);
    let taken = "would      delete what is left of it, then create it";
    drop(env.tpu("reapply v2-1 --dry-run").exits(0).says(&["PREEMPTED", taken]));
    drop(env.tpu("solve v2-1 --dry-run").exits(0).says(&[taken, "on each    disk"]));
    assert_eq!(all(&env), before);

    for line in ["reapply v2-1 --dry-run", "apply v2-1 --dry-run", "solve v2-1 --dry-run"] {
        let json = env.tpu(&format!("{line} --json")).exits(0).json();
        assert_eq!(json["dry_run"], true, "{line}");
        assert_described(line.split(' ').next().unwrap(), &json);
    }
}

#[test]
fn a_dry_run_is_refused_where_the_real_thing_would_be() {
    let env = lab();
    drop(env.tpu("run v2-1 alice -q -- sleep 1000").exits(0));
    env.wait_status(1, "running");
    let dry = env.tpu("reapply v2-1 --dry-run");
    let real = env.tpu("reapply v2-1 --yes");
    assert_eq!((dry.code, &dry.stderr), (real.code, &real.stderr));
    drop(dry.says(&["in use by alice/1"]));
    drop(env.tpu("mount-disk v2-1 --dry-run").exits(4).says(&["no recipe 'mount-disk' fits"]));
}
