//! A GPU is given out when nobody is on it any more by its machine's word, whatever a record says; and a successor
//! is not kept from those of its own parent.

use serde_json::{Value, json};

use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

use super::Lab;

/// Tells the driver that it is on all GPUs, and stays.
const TAKES_ALL: &str = "for gpu in 0 1 2 3; do echo \"GPU-$gpu, $$\"; done >\"$HOME/apps\"; \
                         echo \"step 1 loss 0.5 on $CUDA_VISIBLE_DEVICES\"; exec sleep 600";

fn gpus(lab: &Lab, window: u64) -> Value {
    lab.env.job("alice", window)["extra_msgs"]["share"]["gpus"].clone()
}

#[test]
fn what_outlives_its_job_keeps_its_gpu() {
    let Some(lab) = Lab::with(1, "--max-jobs 4 --gpus 2") else { return };
    let leaves = "setsid sleep 600 & echo step 1 loss 0.5; exit 0";
    drop(lab.env.tpu_words(&["run", "h1", "gpus=1", "-q", "--", "sh", "-c", leaves]).exits(0));
    lab.env.wait_status(1, "finished");
    assert_eq!(gpus(&lab, 1), json!([0]));
    drop(lab.env.tpu("run h1 gpus=1 -q -- sleep 600").exits(0));
    assert_eq!(gpus(&lab, 2), json!([1]), "GPU 0 is not free");
    drop(lab.env.tpu("run h1 gpus=1 -q -- sleep 600").exits(4).says(&["h1 has no room"]));
    drop(lab.env.tpu("kill --all -y"));
    drop(lab.env.tpu("kill-remote h1 -y"));
}

#[test]
fn a_successor_gets_the_gpus_on_which_its_parent_still_is() {
    let Some(lab) = Lab::with(1, "--max-jobs 1 --gpus 4") else { return };
    for ask in [None, Some("gpus=4")] {
        let words = ["run", "h1"].into_iter().chain(ask);
        let words: Vec<&str> = words.chain(["-q", "--", "sh", "-c", TAKES_ALL]).collect();
        drop(lab.env.tpu_words(&words).exits(0));
        let first = lab.env.jobs("alice").len() as u64;
        wait_until("it is on them", || {
            lab.env.tpu(&format!("logs {first}")).stdout.contains("step 1")
        });
        // Nobody attends to it any more, and it goes on there.
        drop(lab.env.tmux().run(&["kill-window", "-t", &format!("alice:{first}")]));
        wait_until("it is shown", || {
            lab.env.tpu(&format!("check {first}")).to_string().contains("to be asked")
        });
        drop(
            lab.env.tpu(&format!("resume {first} --yes --force")).exits(4).says(&["it continues"]),
        );
        drop(lab.env.tpu(&format!("kill {first} -y")).exits(0));
        drop(lab.env.tpu(&format!("resume {first} --yes --force")).exits(0));
        assert_eq!(gpus(&lab, first + 1), json!([0, 1, 2, 3]), "{ask:?}");
        drop(lab.env.tpu(&format!("kill {} -y", first + 1)).exits(0));
        lab.env.wait_status(first + 1, "killed");
    }
}

#[test]
fn none_is_given_out_while_nobody_can_say_who_is_on_it() {
    let Some(lab) = Lab::with(1, "--max-jobs 4 --gpus 4") else { return };
    drop(lab.env.tpu("hosts detect h1").exits(0));
    let driver = lab.hosts.home(0).join("bin/nvidia-smi");
    for broken in [
        "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
        "exec sleep 600",
    ] {
        write_script(&driver, broken);
        let refused = lab.env.tpu("run h1 gpus=1 -q -- true").exits(6);
        drop(refused.says(&["h1 cannot be used now", "nvidia-smi does not answer"]));
        // What was found before is kept.
        drop(lab.env.tpu("hosts detect h1").exits(0));
        drop(lab.env.tpu("hosts show h1").exits(0).says(&["4 × Stand-in"]));
    }
    drop(lab.env.tpu("hosts remove h1").exits(0));
    // One that has fallen off the bus: the others may have its number by now.
    let Some(lab) = Lab::with(1, "--max-jobs 4 --gpus 5") else { return };
    let refused = lab.env.tpu("run h1 gpus=1 -q -- true").exits(6);
    drop(refused.says(&["only 4 of its 5 GPUs answer"]));
    assert!(lab.env.jobs("alice").is_empty());
}
