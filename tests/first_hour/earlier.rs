//! What an earlier version has begun, or put into its queue, goes on where it was, and with what it was given.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Newcomer;
use crate::common::tmux::write_file;

/// Says where its code is from, and what it was given; with a word it stays there the first time.
const WHERE: &str = "import os, sys, time
print('code of', open('whose').read(), os.environ.get('TPU_NAME'), os.environ.get('FOO'), flush=True)
if sys.argv[1:] and not os.path.exists('been'):
    open('been', 'w').close()
    time.sleep(1000)
";

impl Newcomer {
    fn data_file(&self) -> PathBuf {
        self.path(".local/share/tpu/data.json")
    }

    /// Changes the state file as nobody of this version does.
    fn edits(&self, edit: impl FnOnce(&mut Value)) {
        let text = std::fs::read_to_string(self.data_file()).unwrap();
        let mut data: Value = serde_json::from_str(&text).unwrap();
        edit(&mut data);
        write_file(&self.data_file(), &data.to_string());
    }

    /// Makes everything as an earlier version has written it: it knew slots alone, and kept a few variables beside the
    /// launcher of a job, and those of what waits in its entry.
    fn is_of_an_earlier_version(&self) {
        self.edits(|data| {
            for job in data["users"]["john-doe"]["job_data"].as_array_mut().unwrap() {
                let spec = job.pointer_mut("/extra_msgs/spec");
                spec.map(|spec| spec.as_object_mut().unwrap().remove("links_ignored"));
            }
            let entries = data.pointer_mut("/queue/entries").and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                entry.as_object_mut().unwrap().remove("links_ignored");
            }
            let search = self.env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap();
            if let Some(kept) = data.pointer_mut("/queue/environments") {
                *kept = json!([[format!("PATH={search}"), "TPU_NAME=then"]]);
            }
        });
        let jobs = self.path(".local/share/tpu/tpu-state/jobs/john-doe");
        for job in std::fs::read_dir(jobs).unwrap().flatten() {
            for newer in ["shell", "given", "exported"] {
                drop(std::fs::remove_file(job.path().join(newer)));
            }
            let kept = job.path().join("env");
            let mut text = std::fs::read_to_string(&kept).unwrap();
            text.push_str("TPU_NAME=then\0");
            write_file(&kept, &text);
        }
    }
}

#[test]
fn each_job_goes_on_with_its_own_directory_and_environment() {
    let mut newcomer = Newcomer::new();
    for (dir, whose) in [("exp", "one"), ("other", "two")] {
        newcomer.file(&format!("{dir}/whose"), whose);
        newcomer.file(&format!("{dir}/where.py"), WHERE);
    }
    drop(newcomer.types("exp", "run local -q -- true").exits(0));
    for (slot, dir) in [(1, "exp"), (2, "other")] {
        let path = newcomer.path(dir).display().to_string();
        drop(newcomer.types("exp", &format!("set-dir {path} {slot}")).exits(0));
    }
    let typed = "dir=2 -- python3 where.py";
    // One that runs on, one that was preempted, and one that waits.
    drop(newcomer.types("exp", "run local -q dir=2 -- python3 where.py stay").exits(0));
    drop(newcomer.types("exp", &format!("run local -q {typed}")).exits(0));
    drop(newcomer.types("exp", "wait 3").exits(0));
    drop(newcomer.types("exp", &format!("submit local --hold {typed}")).exits(0));
    newcomer.is_of_an_earlier_version();
    newcomer.env.set("FOO", "of today");
    newcomer.file("exp/whose", "one, later");
    let of_then = "code of two then None\n";

    drop(newcomer.types("exp", "rerun 3 --force").exits(0));
    assert_eq!(newcomer.prints(5), of_then);
    drop(newcomer.types("exp", "unhold 4").exits(0));
    assert_eq!(newcomer.prints(4), of_then);
    drop(newcomer.types("exp", "explain 2").exits(0).says(&["john-doe/2 is running"]));
    drop(newcomer.types("exp", "kill 2 -y").exits(0));
    drop(newcomer.types("exp", "resume 2 --force").exits(0));
    assert_eq!(newcomer.prints(6), of_then);
}
