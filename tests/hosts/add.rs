//! Machines are made known by patterns, each once, and tell what they are; those that do not answer in time are said so and
//! known all the same, those to which a person has to log in first are not added; one machine under two names is refused.

use serde_json::json;

use super::Lab;
use crate::common::tmux::{write_file, write_script};

#[test]
fn machines_are_added_by_a_pattern_and_tried_once() {
    let Some(mut lab) = Lab::new(3) else { return };
    lab.hosts.shut(1);
    let said = lab.add("h[1-3] --max-jobs 2 --gpus 4 --pool lab --tag a100").exits(0);
    assert!(said.stderr.contains("h2 does not answer"), "{}", said.report());
    assert!(said.stderr.contains("tpu hosts probe h2; what has a wrong"), "{}", said.report());
    let added = &said.json()["added"];
    assert_eq!(added[0]["name"], "h1");
    assert_eq!(added[0]["machine"]["hostname"], "h1", "{added}");
    assert_eq!(added[2]["machine"]["gpus"].as_array().unwrap().len(), 4);
    assert!(added[1]["machine"].is_null() && added[1]["silent"].is_string(), "{added}");
    let host = lab.host("h2");
    assert_eq!((&host["capacity"]["jobs"], &host["capacity"]["gpus"]), (&json!(2), &json!(4)));
    assert_eq!((&host["pools"], &host["tags"]), (&json!(["lab"]), &json!(["a100"])));
    // A pool, a tag and a pattern each mean machines.
    for words in ["lab", "a100", "h[1-3]", "h1,h2,h3"] {
        let hosts = lab.env.tpu(&format!("hosts list {words} --json")).exits(0).json();
        assert_eq!(hosts["hosts"].as_array().unwrap().len(), 3, "{words}");
    }
    drop(lab.env.tpu("hosts list labb").exits(3).says(&["did you mean 'lab'?"]));
    let pools = lab.env.tpu("pools --json").exits(0).json();
    assert_eq!(pools["pools"], json!([{ "name": "lab", "open": 3, "hosts": ["h1", "h2", "h3"] }]));
}

#[test]
fn a_machine_that_needs_a_person_is_not_added_and_the_others_of_the_pattern_are() {
    let Some(lab) = Lab::new(1) else { return };
    // No label of a name has so many letters: nothing is asked of a name server.
    let unknown = "x".repeat(70);
    let addresses = format!("{},{unknown}", lab.hosts.addresses()[0]);
    let add = |more: &str| lab.env.tpu(&format!("hosts add h[1-2] --address {addresses} {more}"));
    let said = add("--json").exits(6);
    assert!(said.stderr.contains("h2 is not added: "), "{}", said.report());
    let document = said.json();
    assert_eq!(document["added"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(document["added"][0]["name"], "h1");
    assert_eq!(document["refused"][0]["name"], "h2");
    assert_eq!(document["refused"][0]["login"], format!("ssh {unknown}"));
    drop(lab.env.tpu("hosts show h1").exits(0));
    drop(lab.env.tpu("hosts show h2").exits(3));
    // Alone, it is the whole answer.
    let add = format!("hosts add h2 --address {unknown}");
    let said = [&*format!("log in once: ssh {unknown}"), "h2 is not added: "];
    drop(lab.env.tpu(&add).exits(6).says(&said));
    drop(lab.env.tpu(&format!("{add} --no-probe")).exits(0));
}

#[test]
fn a_machine_with_an_unknown_key_or_a_refused_login_is_not_added() {
    let Some(lab) = Lab::new(1) else { return };
    let (ip, port) = lab.hosts.addresses()[0]
        .split_once(':')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let login = format!("ssh -p {port} {ip}");
    let mut options = vec!["-o".to_owned(), "StrictHostKeyChecking=yes".to_owned()];
    options.extend(lab.hosts.options());
    let settings = |options: &[String]| {
        let settings = json!({ "ssh_options": options, "ssh_key": lab.hosts.path("client") });
        write_file(&lab.env.path("settings.json"), &settings.to_string());
    };
    settings(&options);
    let refused = |why: &str| {
        let said = lab.env.tpu(&format!("hosts add h1 --address {ip}:{port}")).exits(6);
        drop(said.says(&["h1 is not added: ", why, &login]));
        drop(lab.env.tpu("hosts show h1").exits(3));
    };
    refused("Host key verification failed");
    settings(&lab.hosts.options());
    write_file(&lab.hosts.path("authorized"), "");
    refused("Permission denied");
}

#[test]
fn a_known_name_a_bad_pattern_and_a_wrong_count_are_refused_and_nothing_is_half_added() {
    let Some(lab) = Lab::with(1, "") else { return };
    let tpu = |line: &str, code: i32| lab.env.tpu(line).exits(code).stderr;
    assert!(tpu("hosts add h[1-3] --no-probe", 4).contains("h1 is known already"));
    assert!(tpu("hosts add h[3-1] --no-probe", 2).contains("column 3"));
    let said = tpu("hosts add g[1-3] --address a,b --no-probe", 2);
    assert!(said.contains("3 names and 2 addresses"), "{said}");
    assert!(tpu("hosts add local --no-probe", 2).contains("local"));
    assert!(tpu("hosts add g1 --gpus 0 --no-probe", 2).contains("--gpus 0"));
    assert!(tpu("hosts add g1 --jump=-oProxyCommand=id --no-probe", 4).contains("--jump"));
    assert!(tpu("hosts show g1", 3).contains("no target 'g1'"));
    let known = lab.env.tpu("hosts --json").exits(0).json();
    assert_eq!(known["hosts"].as_array().unwrap().len(), 2, "{known}");
}

#[test]
fn one_machine_under_two_names_is_refused_where_its_gpus_would_be_given_twice() {
    let Some(lab) = Lab::new(1) else { return };
    let address = &lab.hosts.addresses()[0];
    let add = |more: &str| {
        lab.env.tpu(&format!("hosts add a,b --address {address} --address {address} {more}"))
    };
    let said = add("").exits(4).stderr;
    assert!(said.contains("a and b are one machine") && said.contains("h1"), "{said}");
    drop(add("--any-identity").exits(0));
}

#[test]
fn what_a_machine_has_is_found_and_becomes_what_it_has_for_jobs() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 3") else { return };
    lab.hosts.shut(1);
    let said = lab.env.tpu("hosts detect h[1-2] --json").exits(6);
    let asked = &said.json()["asked"];
    assert!(asked[1]["silent"].is_string(), "{asked}");
    let capacity = &lab.host("h1")["capacity"];
    assert_eq!((&capacity["jobs"], &capacity["gpus"]), (&json!(3), &json!(4)), "{capacity}");
    assert_eq!(capacity["cpus"], asked[0]["machine"]["cpus"]);
    assert!(capacity["mem_mib"].as_u64().unwrap() > 0);
    let shown = lab.env.tpu("hosts show h1").exits(0).stdout;
    assert!(shown.contains("4 × Stand-in"), "{shown}");
    let found = &lab.host("h1")["found"];
    assert_eq!((&found["gpus"], &found["model"]), (&json!(4), &json!("Stand-in")), "{found}");
    assert!(lab.host("h2")["found"].is_null());
    // Of one that did not answer nothing is known, and nothing is taken away.
    assert_eq!(lab.host("h2")["capacity"]["gpus"], json!(null));
}

#[test]
fn a_program_that_hangs_keeps_no_machine_from_answering() {
    let Some(lab) = Lab::new(1) else { return };
    let hangs = "exec sleep 1000";
    for program in ["python3", "tmux"] {
        write_script(&lab.hosts.home(0).join("bin").join(program), hangs);
    }
    let said = lab.add("h1").exits(0).json();
    assert_eq!(said["added"][0]["machine"]["gpus"].as_array().unwrap().len(), 4, "{said}");
}

#[test]
fn a_drained_machine_takes_nothing_new_and_leaves_what_runs_alone() {
    let Some(lab) = Lab::with(1, "--max-jobs 2") else { return };
    let run = |more: &str| lab.env.tpu(&format!("run h1 -q {more} -- sleep 1000"));
    drop(run("").exits(0));
    drop(lab.env.tpu_words(&["hosts", "drain", "h1", "--why", "new disk"]).exits(0));
    let said = run("").exits(4).stderr;
    assert!(said.contains("h1 takes no new jobs: drained by alice: new disk"), "{said}");
    drop(lab.env.wait_status(1, "running"));
    // Whoever insists knows what he does.
    drop(run("--force").exits(0));
    drop(lab.env.tpu("kill 2 -y").exits(0));
    drop(lab.env.tpu("hosts undrain h1").exits(0));
    drop(run("").exits(0));
    // In use, it is not forgotten.
    let said = lab.env.tpu("hosts remove h1").exits(4).stderr;
    assert!(said.contains("alice/1"), "{said}");
    drop(lab.env.tpu("kill 1,3 -y").exits(0));
    drop(lab.env.tpu("hosts remove h1").exits(0));
    assert!(lab.env.tpu("hosts show h1").exits(3).stderr.contains("no target"));
}

#[test]
fn nor_may_one_that_is_known_already_get_another_name() {
    let Some(lab) = Lab::with(1, "--gpus 2") else { return };
    let refused = lab.add("again --gpus 2").exits(4);
    drop(refused.says(&["h1 is at 127.0.0.11"]));
    drop(lab.add("again --gpus 2 --any-identity").exits(0));
}
