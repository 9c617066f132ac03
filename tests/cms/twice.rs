//! What is imported twice is the same, and what somebody has set here already is said and stays.

use serde_json::json;

use super::{host, lab, with};
use crate::common::tmux::write_file;

#[test]
fn importing_twice_changes_nothing() {
    let env =
        with("lab-cluster.yaml", "j1:\n  name: juliet1\n  gpu: '0,1'\nj2:\n  status: inactive\n");
    let line = "import cloudmesh spec.yaml lab-cluster.yaml --no-probe --json";
    drop(env.tpu(line).exits(0));
    let before = (env.data_bytes(), env.journal().len());
    let again = env.tpu(line).exits(0).json();
    assert_eq!((env.data_bytes(), env.journal().len()), before);
    let fates = again["files"].as_array().unwrap().iter().flat_map(|file| {
        file["hosts"].as_array().unwrap().iter().map(|host| host["fate"].as_str().unwrap())
    });
    assert_eq!(fates.collect::<Vec<_>>(), ["known"; 4], "{again}");
    assert_eq!(again["files"][0]["policy"]["fate"], "known");
    assert_eq!(again["files"][0]["jobs"][0]["fate"], "known");
    let said = env.tpu("import cloudmesh spec.yaml --no-probe").exits(0).stdout;
    assert!(said.contains("Nothing is other than before."), "{said}");
}

#[test]
fn what_differs_is_said_and_left_as_it_is() {
    let env = lab();
    drop(env.tpu("hosts add juliet --max-jobs 2 --no-probe --address elsewhere").exits(0));
    drop(env.tpu("set-settings policy frugal").exits(0));
    let said = env.tpu("import cloudmesh spec.yaml --no-probe --json").exits(0).json();
    let file = &said["files"][0];
    assert_eq!(file["hosts"][0]["fate"], "added");
    let juliet = &file["hosts"][1];
    assert_eq!(juliet["fate"], "differs");
    assert_eq!(
        juliet["differences"],
        json!([
            "address: elsewhere here, juliet.futuresystems.org in the file",
            "account: none here, username in the file",
            "jobs at a time: 2 here, 4 in the file",
            "CPUs: none here, 12 in the file",
        ])
    );
    assert_eq!(file["policy"]["fate"], "differs");
    let known = host(&env, "juliet");
    assert_eq!(known["capacity"]["jobs"], 2);
    assert_eq!(known["addresses"], json!(["elsewhere"]));
    assert_eq!(env.data()["users"]["alice"]["settings"]["policy"], "frugal");
    let said = env.tpu("import cloudmesh spec.yaml --no-probe").exits(0).stdout;
    assert!(said.contains("left alone, for alice has frugal"), "{said}");
}

#[test]
fn a_host_of_two_clusters_is_in_both_pools() {
    let env = with("a-cluster.yaml", "j1:\n  name: juliet1\n");
    write_file(&env.path("b-cluster.yaml"), "j1:\n  name: juliet1\n");
    drop(env.tpu("import cloudmesh a-cluster.yaml --no-probe").exits(0));
    let said = env.tpu("import cloudmesh b-cluster.yaml --no-probe --json").exits(0).json();
    assert_eq!(said["files"][0]["hosts"][0]["fate"], "joined");
    assert_eq!(host(&env, "j1")["pools"], json!(["a", "b"]));
}
