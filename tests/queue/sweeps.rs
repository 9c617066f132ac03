//! A sweep is one entry, whose members have each their own values; a member that comes back has its own again.

use super::Lab;

#[test]
fn each_member_has_its_own_values() {
    let lab = Lab::new(8);
    let words = "local lr=1e-3,1e-4 config.seed=0-2 config.batch=64 --sweep --name sw";
    let group = lab.submit(words);
    lab.wait_running(&[2, 3, 4, 5, 6, 7]);
    let jobs = lab.env.jobs("alice");
    let configs: Vec<&str> =
        jobs.iter().map(|job| job["extra_configs"].as_str().unwrap()).collect();
    assert_eq!(configs.len(), 6);
    assert!(configs.iter().all(|all| all.contains("config.batch=64")), "{configs:?}");
    assert!(configs[0].ends_with("learning_rate=1e-3 --config.seed=0"), "{configs:?}");
    assert!(configs[5].ends_with("learning_rate=1e-4 --config.seed=2"), "{configs:?}");
    let members: Vec<String> =
        jobs.iter().map(|job| job["extra_msgs"]["spec"]["member"].to_string()).collect();
    assert_eq!(members[5], format!("{{\"group\":{group},\"index\":5}}"));
    drop(lab.env.tpu(&format!("kill {group}_4 -y")).exits(0));
    drop(lab.env.tpu(&format!("rerun {group}_4 --force")).exits(0));
    let again = lab.env.jobs("alice").pop().unwrap();
    assert_eq!(again["extra_configs"].as_str().unwrap(), configs[4]);
}

#[test]
fn values_that_are_to_be_paired_are_as_many() {
    let lab = Lab::new(8);
    lab.submit("local lr=1e-3,1e-4 config.seed=7-8 --zip");
    let jobs = lab.env.jobs("alice");
    let last = jobs[1]["extra_configs"].as_str().unwrap();
    assert!(jobs.len() == 2 && last.ends_with("learning_rate=1e-4 --config.seed=8"), "{last}");
    let wrong = lab.env.tpu("submit local lr=1,2 config.seed=1-3 --zip -- true");
    drop(wrong.exits(2).says(&["lr has 2 values and config.seed 3"]));
    // Without a word commas are part of a value.
    lab.submit("local config.layers=1,2");
    let one = lab.env.jobs("alice").pop().unwrap();
    assert!(one["extra_configs"].as_str().unwrap().ends_with("config.layers=1,2"));
}

#[test]
fn values_with_which_no_member_could_begin_are_refused_at_once() {
    let lab = Lab::new(8);
    lab.env.code("alice", "staging.sh", "true");
    let said = lab.env.tpu("submit local config.note=a;b,c --sweep").exits(4);
    drop(said.says(&["which staging.sh would take apart"]));
    assert_eq!((lab.env.queued(), lab.env.jobs("alice").len()), (0, 0));
}
