//! An option has one value for all jobs, or one for each; any other count is refused with both.

use super::lab;
use crate::common::env::TestEnv;
use crate::common::output::CommandOutput;

fn typed(env: &TestEnv, verb: &str, words: &[&str]) -> CommandOutput {
    env.tpu_words(&[&["cms", "job", verb], words].concat())
}

#[test]
fn values_are_zipped_or_repeated() {
    let env = lab();
    let words =
        ["--name=z[0-1]", "--ip=123,345", "--executable=ls", "--input=../data", "--output=a,b"];
    drop(typed(&env, "template", &[&["z.yaml"], &words[..]].concat()).exits(0));
    let said = env.tpu("import cloudmesh z.yaml --dry-run --json").exits(0).json();
    let value = |job: usize, field: &str| {
        let fields = said["files"][0]["jobs"][job]["fields"].as_array().unwrap();
        let found = fields.iter().find(|known| known["name"] == field).unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    for (job, ip, output) in [(0, "123", "a"), (1, "345", "b")] {
        assert_eq!(value(job, "ip"), ip);
        assert_eq!(value(job, "output"), output);
        assert_eq!(value(job, "input"), "../data", "one value is everybody's");
    }
    drop(typed(&env, "add", &words).exits(0));
    let entries = env.data()["queue"]["entries"].clone();
    for (job, ip, output) in [(0, "123", "a/z0.log"), (1, "345", "b/z1.log")] {
        assert_eq!(entries[job]["target"], ip, "{entries}");
        let command = entries[job]["command"].as_array().unwrap();
        assert_eq!(command.last().unwrap(), output, "{entries}");
    }
}

#[test]
fn a_wrong_count_is_said_with_both() {
    let env = lab();
    let before = env.data_bytes();
    for (option, value) in [
        ("ip", "1,2,3"),
        ("input", "in[0-2]"),
        ("output", "a,b,c"),
        ("gpu", "0,1,2"),
        ("arguments", "x,y,z"),
    ] {
        let said = format!("--{option}={value}");
        for verb in ["add", "template"] {
            let file: &[&str] = if verb == "template" { &["t.yaml"] } else { &[] };
            let words = [file, &["--name=z[0-1]", &said]].concat();
            let refused = typed(&env, verb, &words).exits(2).stderr;
            assert!(refused.contains(&format!("--{option} has 3 values for 2 names")), "{refused}");
        }
    }
    let said = typed(&env, "add", &["--name=z[1-0]", "--ip=a"]).exits(2).stderr;
    assert!(said.contains("column 3"), "{said}");
    let hosts = ["hosts", "add", "--hostname=h[1-3]", "--ip=a,b", "--no-probe"];
    let said = env.tpu_words(&[&["cms", "job"], &hosts[..]].concat()).exits(2).stderr;
    assert!(said.contains("3 names and 2 addresses"), "{said}");
    assert_eq!(env.data_bytes(), before);
    assert!(!env.path("t.yaml").exists());
}
