//! Several jobs of one pattern of names: all of them or none, each with its own value of what was given as many times.

use super::Lab;

#[test]
fn each_name_is_a_job_with_its_own_value() {
    let lab = Lab::new(1);
    lab.submit("local");
    let line = "submit local --json --name z[0-1] lr=0.1,0.01 config.model=big --hold -- true";
    let said = lab.env.tpu(line).exits(0).json();
    let jobs: Vec<_> =
        said["jobs"].as_array().unwrap().iter().map(|job| job["name"].clone()).collect();
    assert_eq!(jobs, ["z0", "z1"]);
    let data = lab.env.data();
    let entries = data["queue"]["entries"].as_array().unwrap();
    let configs: Vec<String> = entries.iter().map(|entry| entry["configs"].to_string()).collect();
    assert_eq!(configs, [r#"["lr=0.1","config.model=big"]"#, r#"["lr=0.01","config.model=big"]"#]);
    assert_eq!(entries[0]["staged"], entries[1]["staged"], "one copy of the code is enough");
    // They are called by their names.
    drop(lab.env.tpu("priority z1 80").exits(0));
    assert_eq!(lab.waiting(), [3, 2]);
    drop(lab.env.tpu("hold z[0-1] --why later").exits(0).says(&["alice/2", "alice/3"]));
    drop(lab.env.tpu("unhold name:z").exits(0).says(&["alice/2", "alice/3"]));
    drop(lab.env.tpu("explain z0").exits(0).says(&["alice/2"]));
    drop(lab.env.tpu("dequeue name:z1 -y").exits(0).says(&["alice/3"]));
    assert_eq!(lab.env.queued(), 1);
}

/// An older job of the name that has ended is not meant while another one waits.
#[test]
fn what_waits_is_meant_by_its_name_before_what_has_ended() {
    let lab = Lab::new(1);
    let first = lab.submit_what("local --name scan", "true");
    lab.env.wait_status(first, "finished");
    let second = lab.submit_what("local --name scan --hold", "true");
    drop(lab.env.tpu("kill scan --dry-run").exits(0).says(&[&format!("alice/{second}")]));
    drop(lab.env.tpu("add-tag scan best").exits(4).says(&[&format!("alice/{second} waits")]));
    let report = lab.submit("local after=scan");
    let entries = lab.env.data()["queue"]["entries"].clone();
    let own = entries.as_array().unwrap().iter().find(|entry| entry["number"] == report).unwrap();
    assert_eq!(own["after"], serde_json::json!([format!("ok:alice/{second}")]));
}

#[test]
fn what_cannot_be_given_out_or_is_no_name_is_refused_and_nothing_waits() {
    let lab = Lab::new(1);
    lab.submit("local --name=z1");
    for (words, code, says) in [
        ("submit local --name a[0-1] lr=1,2,3 -- true", 2, "3 values for 2 names"),
        ("submit local --name a[0- -- true", 2, "--name a[0-"),
        ("submit local --name [0-1] -- true", 2, "cannot be the name of a job"),
        ("submit local --name z[0-1] -- true", 4, "z1"),
    ] {
        drop(lab.env.tpu(words).exits(code).says(&[says]));
        assert_eq!(lab.env.queued(), 0, "{words}");
    }
}

/// A user may have had an alias that is called as a key of ours, from the original or an earlier version.
#[test]
fn a_key_of_ours_is_no_alias_and_that_is_said() {
    let lab = Lab::new(1);
    lab.env.change(|data| {
        let alice = data.user_mut(&"alice".into()).unwrap();
        for alias in ["queue", "cpus"] {
            alice.set_alias(alias, &format!("config.{alias}.depth"));
        }
    });
    let output = lab.env.tpu("submit local queue=default cpus=1 --hold -- true").exits(0);
    drop(output.says(&["not your alias for config.queue.depth", "config.cpus.depth=…"]));
    let data = lab.env.data();
    assert!(!data["queue"]["entries"][0].to_string().contains("depth"));
}
