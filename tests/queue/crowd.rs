//! Many jobs that end at once while more wait: one process at a time passes over the queue for all of them, and a pass
//! ends with its tmux server.

use std::path::{Path, PathBuf};

use tpu_system::store::OsDisk;
use tpu_system::store::disk::{Disk as _, Lock, Locked};

use crate::common::wait::wait_until;

use super::Lab;

const AT_ONCE: usize = 30;

/// A lab in which so many jobs run at once until the file `go` is there.
fn lab() -> Lab {
    let lab = Lab::new(u32::try_from(AT_ONCE).unwrap());
    let go = lab.env.path("go");
    let wait = "do read -r -t 0.3 <> <(:); done; exit 0";
    let script = format!("until [ -e {} ]; {wait}\n", go.display());
    lab.env.code("alice", "wait.sh", &script);
    let _group = lab.submit_what(&format!("local --array 0-{}", AT_ONCE - 1), "bash wait.sh");
    wait_until("all run", || lab.with_status("running") == AT_ONCE);
    let _group = lab.submit("local --array 0-59");
    lab
}

impl Lab {
    fn with_status(&self, status: &str) -> usize {
        self.env.jobs("alice").iter().filter(|job| job["status"] == status).count()
    }

    /// The file of the right to pass, or of the note, by how its name ends.
    fn beside_the_data(&self, ending: &str) -> Option<PathBuf> {
        let all = std::fs::read_dir(self.env.path("tpu-state")).unwrap();
        let mut all = all.map(|entry| entry.unwrap().path());
        all.find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("pass-") && name.ends_with(ending)
        })
    }

    /// Holds the right to pass while something is done.
    fn passing(&self, mut work: impl FnMut()) {
        let path = self.beside_the_data(".lock").expect("somebody has passed");
        let lock = Lock { path: &path, mode: 0o660, guarded: None };
        let mut is_held = false;
        wait_until("the right", || {
            let mut once = || {
                is_held = true;
                work();
            };
            !matches!(OsDisk.with_lock(lock, b"", &mut once).unwrap(), Locked::Busy)
        });
        assert!(is_held);
    }

    /// How many launchers are saying that their job has ended.
    fn ends_under_way(&self) -> usize {
        let data = format!("TPU_DATA={}", self.env.data_path().display());
        let says = |process: &Path, file: &str, what: &str| {
            let bytes = std::fs::read(process.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ").contains(what)
        };
        let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        all.filter(|process| says(process, "cmdline", "launcher exited"))
            .filter(|process| says(process, "environ", &data))
            .count()
    }
}

#[test]
fn while_one_process_passes_the_others_leave_a_note_and_end() {
    let lab = lab();
    lab.passing(|| {
        lab.env.touch("go");
        wait_until("all ends are recorded", || lab.with_status("finished") == AT_ONCE);
        wait_until("their launchers have gone", || lab.ends_under_way() == 0);
        assert_eq!(lab.running(), [0; 0], "whoever passes starts them, and nobody else");
        assert!(lab.beside_the_data(".note").is_some());
        // A command says that it leaves the rest to the other process.
        drop(lab.env.tpu("submit local -- true").exits(0).says(&["Another process starts"]));
        assert_eq!(lab.running(), [0; 0]);
    });
    // Who had the right is gone: the next command does what is left.
    drop(lab.env.tpu("queue run --once").exits(0));
    wait_until("the next ones run", || lab.with_status("running") == AT_ONCE);
    assert_eq!(lab.env.jobs("alice").len(), 2 * AT_ONCE, "each once");
    assert!(lab.beside_the_data(".note").is_none());
}

#[test]
fn the_ends_of_many_start_as_many_without_anybody_else() {
    let lab = lab();
    lab.env.touch("go");
    wait_until("all ends are recorded", || lab.with_status("finished") == AT_ONCE);
    wait_until("the next ones run", || lab.with_status("running") == AT_ONCE);
    wait_until("nobody is left who starts more", || lab.ends_under_way() == 0);
    assert_eq!(lab.env.jobs("alice").len(), 2 * AT_ONCE, "each once");
}

#[test]
fn a_pass_ends_when_its_tmux_server_does() {
    let lab = Lab::new(40);
    lab.pauses("default", true);
    let group = lab.submit("local --array 0-39");
    lab.pauses("default", false);
    let mut passes = lab.env.start_at_points("queue run --once", "launch-confirmed=sleep(300)");
    wait_until("one runs", || lab.with_status("running") > 0);
    lab.env.tmux().kill_server();
    assert!(passes.wait().unwrap().success());
    assert_eq!(lab.env.windows("alice").iter().filter(|window| **window > 0).count(), 0);
    assert_eq!(lab.waiting(), [group], "the rest waits");
}
