//! What scripts get is described by the schema, and a dry run of any command changes nothing.

use super::lab;
use crate::cli::json_schema::assert_described;
use crate::common::tmux::write_file;

/// Commands in an order in which each works, and the command that the schema calls them.
const LINES: [(&str, &str); 30] = [
    ("import", "import cloudmesh spec.yaml lab-cluster.yaml a-queue.yaml --no-probe"),
    ("import", "import cloudmesh spec.yaml lab-cluster.yaml a-queue.yaml --no-probe"),
    ("cms", "cms set jobset=spec.yaml"),
    ("cms", "cms job set spec.yaml"),
    ("cms", "cms job template new.yaml --name=b[0-1]"),
    ("cms", "cms job hosts add --hostname=n[1-2] --ip=a,b --cpus=2 --no-probe"),
    ("cms", "cms job list hosts"),
    ("cms", "cms job scheduler --policy=random"),
    ("cms", "cms job scheduler info"),
    ("cms", "cms job list"),
    ("cms", "cms job status"),
    ("cms", "cms job help"),
    ("cms", "cms job --service info"),
    ("cms", "cms job add --name=z[0-1] --ip=localhost --executable=true"),
    ("cms", "cms job run --name=z0"),
    ("cms", "cms job kill --name=z1 -y"),
    ("cms", "cms job reset --name=z1"),
    ("cms", "cms job delete --name=z1 -y"),
    ("cms", "cms queue create --queue=night"),
    ("cms", "cms queue add --queue=night --name=q[1-2] --command=true --host=localhost"),
    ("cms", "cms queue info"),
    ("cms", "cms queue run fifo --max_parallel=2 --queue=night"),
    ("cms", "cms queue run fifo_multi --hosts=localhost --queue=night"),
    ("cms", "cms queue reset --queue=night --name=q1 --status=done"),
    ("cms", "cms queue delete --queue=default --name=ls_j -y"),
    ("cms", "cms cluster create"),
    ("cms", "cms cluster list"),
    ("cms", "cms cluster deactivate --id=j1"),
    ("cms", "cms cluster set --id=j1 --key=max_jobs_allowed --value=3"),
    ("cms", "cms cluster delete --id=j1"),
];

#[test]
fn documents_are_described_and_a_dry_run_changes_nothing() {
    let env = lab();
    write_file(&env.path("lab-cluster.yaml"), "j1:\n  name: juliet1\nj2:\n  user: me\n");
    write_file(&env.path("a-queue.yaml"), "a:\n  command: ls\n  status: run\n");
    let kept = || (env.data_bytes(), env.path("new.yaml").exists(), env.tpu("cms set jobset").code);
    for (command, line) in LINES {
        let before = kept();
        let tried = env.tpu(&format!("{line} --dry-run --json")).exits(0);
        assert_described(command, &tried.json());
        assert_eq!(kept(), before, "{line} --dry-run");
        assert_described(command, &env.tpu(&format!("{line} --json")).exits(0).json());
    }
    let refused = env.tpu("cms job run --name=nobody --json").exits(3);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_described("error", &error);
    assert!(refused.stdout.is_empty());
}
