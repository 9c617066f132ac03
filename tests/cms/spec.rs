//! The jobset of the manual is taken over: its hosts with what they allow, its policy, and its job, which is held.

use serde_json::json;

use super::{becomes, host, lab};

#[test]
fn the_jobset_of_the_manual_becomes_hosts_and_a_policy() {
    let env = lab();
    let said = env.tpu("import cloudmesh spec.yaml --no-probe --json").exits(0);
    assert!(said.stderr.contains("nothing begins by an import"), "{}", said.report());
    let file = &said.json()["files"][0];
    assert_eq!(file["is"], "a jobset");
    for (place, name, cpus, jobs, counter) in
        [(0, "localhost", 2, 1, "2"), (1, "juliet", 12, 4, "0")]
    {
        let read = &file["hosts"][place];
        assert_eq!((&read["name"], &read["fate"]), (&json!(name), &json!("added")));
        let counted = read["fields"].as_array().unwrap();
        let counted = counted.iter().find(|field| field["name"] == "job_counter").unwrap();
        assert_eq!(counted["value"], counter);
        assert!(becomes(read, "job_counter").contains("tpu counts what runs"));
        let known = host(&env, name);
        assert_eq!(known["capacity"]["cpus"], cpus, "{known}");
        assert_eq!(known["capacity"]["jobs"], jobs, "{known}");
        assert_eq!(known["jobs"], json!([]), "the counter of the file is not believed");
    }
    let juliet = host(&env, "juliet");
    assert_eq!(juliet["addresses"], json!(["juliet.futuresystems.org"]));
    let targets = env.data()["targets"].clone();
    assert_eq!(targets["juliet"]["ssh_user"], "username", "{targets}");
    assert_eq!(file["policy"], json!({ "policy": "smart", "fate": "set" }));
    assert_eq!(env.data()["users"]["alice"]["settings"]["policy"], "smart");
    assert!(env.data()["users"]["bob"]["settings"]["policy"].is_null());

    let job = &file["jobs"][0];
    assert_eq!((&job["name"], &job["becomes"]), (&json!("ls_j"), &json!("held")));
    assert_eq!(job["fate"], "added");
    assert_eq!(job["fields"].as_array().unwrap().len(), 12, "every field is listed: {job}");
    assert!(becomes(job, "gpu").contains("blank") && becomes(job, "arguments").contains("blank"));
    assert_eq!(env.data()["users"]["alice"]["job_data"], json!([]), "nothing has begun");
    let entry = env.data()["queue"]["entries"][0].clone();
    assert_eq!((&entry["name"], &entry["target"]), (&json!("ls_j"), &json!("juliet")));
    assert_eq!((&entry["user"], &entry["held"]["by"]), (&json!("alice"), &json!("alice")));
    let command = entry["command"].as_array().unwrap();
    assert!(command.contains(&json!("python test.py")) && command.contains(&json!("bash")));
}

#[test]
fn a_policy_is_nobodys_where_no_user_is_named() {
    let mut env = lab();
    env.unset("TPU_USER");
    let said = env.tpu("import cloudmesh spec.yaml --no-probe --json").exits(0).json();
    assert_eq!(said["files"][0]["policy"]["fate"], "nobody");
    assert_eq!(said["files"][0]["hosts"][1]["fate"], "added");
    for user in ["alice", "bob"] {
        assert!(env.data()["users"][user]["settings"]["policy"].is_null());
    }
    assert_eq!(said["files"][0]["jobs"][0]["fate"], "nobody");
    assert_eq!(env.queued(), 0);
    drop(env.tpu("import cloudmesh spec.yaml --no-probe --user bob").exits(0));
    assert_eq!(env.data()["users"]["bob"]["settings"]["policy"], "smart");
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let env = lab();
    let before = env.data_bytes();
    let tried = env.tpu("import cloudmesh spec.yaml --dry-run").exits(0).stdout;
    assert_eq!(env.data_bytes(), before);
    let done = env.tpu("import cloudmesh spec.yaml --no-probe").exits(0).stdout;
    let tried = tried.split_once('\n').unwrap().1;
    assert_eq!(tried, done);
    assert_ne!(env.data_bytes(), before);
}
