//! What docs/kubernetes.md says of a Kubernetes cluster, typed word for word.

use serde_json::json;

use super::client::Cluster;
use crate::common::readme::{Newcomer, PYTHON, Page};
use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

#[test]
fn what_the_page_says_of_a_cluster_is_what_happens_there() {
    let cluster = Cluster::with_nodes(4);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    cluster.make("persistentvolumeclaims", &claim);
    let mut reader = Newcomer::new("");
    // Containers have programs of their own: that of the example is where the reader put it.
    let program = reader.bin.join("training");
    write_script(&program, PYTHON);
    reader.env.set("KUBECONFIG", cluster.kubeconfig().as_os_str());
    drop(reader.typed("tpu init --name alice"));
    let page = Page::with(6, "docs/kubernetes.md");
    for example in &mut page.examples() {
        for line in &mut example.printed {
            *line = line.replace(": python3 ", &format!(": {} ", program.display()));
        }
        let command = example.command.replace("-- python3 ", &format!("-- {} ", program.display()));
        if example.command == "tpu kill base -y" {
            let kept = || reader.typed("tpu logs base");
            wait_until("its first checkpoint", || kept().contains("step 2/300"));
            for line in ["tpu show base --raw", "tpu script base"] {
                drop(reader.typed(line));
            }
            let import = reader.typed("tpu targets import --kind kubernetes --dry-run");
            assert!(import.contains("+ admin"), "{import}");
        }
        reader.follow(example, &command);
    }
    let jobs = reader.env.jobs("alice");
    let resumed = jobs.last().unwrap();
    assert!(resumed["father"] != json!(null) || resumed["extra_msgs"]["father"] == 1, "{resumed}");
}
