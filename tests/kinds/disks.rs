//! Engines with disks of their own: what an attempt wrote is looked for where it wrote it, and a target that cannot
//! see it is refused.

use std::path::{Path, PathBuf};

use super::added::Lab;
use crate::common::tmux::write_file;

/// What lies under this name on the disk of an engine.
fn on(disk: &Path, path: &str) -> PathBuf {
    disk.join(path.strip_prefix('/').unwrap())
}

#[test]
fn a_resume_begins_where_the_disk_of_its_parent_says_and_only_on_one_that_sees_it() {
    let lab = Lab::new();
    let [disk, other] = ["spool", "den"].map(|spool| lab.env.path(spool).join(".disk"));
    for disk in [&disk, &other] {
        std::fs::create_dir_all(disk).unwrap();
    }
    let den = lab.env.path("den");
    drop(lab.tpu(&format!("register den --kind echo --spool {}", den.display())).exits(0));
    lab.env.code("alice", "train", "echo step\n");
    drop(lab.tpu("run cave -q -- ./train").exits(0));
    let logs = lab.env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned();
    assert!(on(&disk, &logs).is_dir() && !Path::new(&logs).exists());
    write_file(&on(&disk, &logs).join("checkpoint_10"), "weights");
    write_file(&on(&disk, &logs).join("wandb_run_id.txt"), "run-77\n");
    lab.says(1, "ended 1");
    drop(lab.tpu("resume 1").exits(0));
    let words = std::fs::read_to_string(lab.place(2).join("argv")).unwrap();
    let from = format!("--config.load_from={logs}\n--config.wandb_resume_id=run-77");
    assert!(words.contains(&from), "{words}");

    lab.says(2, "ended 1");
    let refused = lab.tpu("resume 2 tpu=den").exits(4);
    drop(refused.says(&["den does not see", "alice/2", "tpu rerun w=2 alice tpu=den"]));
    drop(lab.tpu("resume 2 tpu=local").exits(4).says(&["local does not see"]));
    assert_eq!(lab.env.jobs("alice").len(), 2, "nothing was claimed");
    // Somebody has brought it there; the code follows by itself.
    std::fs::create_dir_all(on(&other, &logs)).unwrap();
    drop(lab.tpu("resume 2 tpu=den").exits(0));
    let staged = lab.env.job("alice", 3)["stage_dir"].as_str().unwrap().to_owned();
    let train = std::fs::read_to_string(on(&other, &staged).join("train"));
    assert_eq!(train.unwrap(), "echo step\n");
}
