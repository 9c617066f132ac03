//! New hosts are tried once, side by side, and those that do not answer are added all the same; two names of one machine
//! are refused.

use crate::common::tmux::write_file;
use crate::hosts::Lab;

#[test]
fn hosts_of_a_file_are_tried_once_and_added_all_the_same() {
    let Some(mut lab) = Lab::new(2) else { return };
    let addresses = lab.hosts.addresses();
    let host = |(place, address): (usize, &String)| format!("j{place}:\n  ip: '{address}'\n");
    let text: String = addresses.iter().enumerate().map(host).collect();
    write_file(&lab.env.path("lab-cluster.yaml"), &text);
    lab.hosts.shut(1);
    let said = lab.env.tpu("import cloudmesh lab-cluster.yaml --json").exits(0);
    assert!(said.stderr.contains("j1 does not answer"), "{}", said.report());
    let document = said.json();
    assert_eq!(document["silent"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(document["silent"][0]["name"], "j1");
    assert_eq!(lab.host("j1")["pools"][0], "lab");
    // Those that are known are not tried again.
    let again = lab.env.tpu("import cloudmesh lab-cluster.yaml --json").exits(0).json();
    assert_eq!(again["silent"].as_array().unwrap().len(), 0, "{again}");
}

#[test]
fn jobs_begin_on_imported_hosts_and_are_counted_there() {
    let Some(lab) = Lab::new(2) else { return };
    let addresses = lab.hosts.addresses();
    let host = |(place, address): (usize, &String)| {
        let (name, ip) = (format!("j{place}"), format!("ip: '{address}'"));
        format!("      {name}:\n        name: {name}\n        {ip}\n        job_counter: '7'\n")
    };
    let hosts: Vec<String> = addresses.iter().enumerate().map(host).collect();
    let text = format!("cloudmesh:\n  jobset:\n    hosts:\n{}", hosts.concat());
    write_file(&lab.env.path("spec.yaml"), &text);
    drop(lab.env.tpu("import cloudmesh spec.yaml").exits(0));
    drop(lab.env.tpu("run j[0-1] -q --name busy -- sleep 1000").exits(0));
    let rows = || {
        let listed = lab.env.tpu("cms job list hosts").exits(0).stdout;
        let cells = |row: &str| {
            let cells: Vec<&str> = row.split_whitespace().skip(3).collect();
            cells.join(" ")
        };
        listed.lines().skip(1).map(cells).collect::<Vec<_>>()
    };
    assert_eq!(rows(), ["full 1 1", "free 0 1"]);
    drop(lab.env.tpu("cms job kill --name=busy -y").exits(0));
    assert_eq!(rows(), ["free 0 1", "free 0 1"]);
}

#[test]
fn two_names_of_one_machine_are_refused_and_none_is_added() {
    let Some(lab) = Lab::new(1) else { return };
    let address = lab.hosts.addresses()[0].clone();
    let user = lab.env.output(&lab.env.spawn_program("id", &["-un"])).exits(0).stdout;
    let user = user.trim();
    let text = format!("a:\n  ip: '{address}'\nb:\n  ip: '{address}'\n  user: {user}\n");
    write_file(&lab.env.path("lab-cluster.yaml"), &text);
    let said = lab.env.tpu("import cloudmesh lab-cluster.yaml").exits(4).stderr;
    assert!(said.contains("a and b are one machine"), "{said}");
    assert!(lab.env.tpu("hosts show a").exits(3).stderr.contains("no target"));
}
