//! Task 28: GPUs of this machine, of which nobody has said anything.

use super::Newcomer;
use crate::common::tmux::write_script;

impl Newcomer {
    /// Programs that come first on the search path.
    fn has_program(&mut self, name: &str, script: &str) {
        self.dir("bin");
        write_script(&self.path("bin").join(name), script);
        let search = self.env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap();
        let bin = self.path("bin").display().to_string();
        if !search.starts_with(&bin) {
            let search = format!("{bin}:{search}");
            self.env.set("PATH", search);
        }
    }
}

/// The words of a driver with two GPUs.
const TWO_GPUS: &str = "case $1 in --query-gpu=*) echo '0, GPU-a, Stand-in, 0, 1, 1024, 40'; \
                        echo '1, GPU-b, Stand-in, 0, 1, 1024, 40';; esac";

/// Task 28.
#[test]
fn the_gpus_of_this_machine_are_found_when_a_job_first_asks_for_some() {
    let mut newcomer = Newcomer::new();
    newcomer.file("exp/e.py", "import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n");
    newcomer.has_program("nvidia-smi", TWO_GPUS);
    // Nobody asks for any: none is counted, and none is hidden.
    drop(newcomer.types("exp", "run local -q -- python3 e.py").exits(0));
    assert_eq!(newcomer.prints(1), "None\n");
    let answer = newcomer.types("exp", "run local gpus=1 -q -- python3 e.py").exits(0);
    drop(answer.says(&["found 2 GPUs on local"]));
    assert_eq!(newcomer.prints(2), "0\n");
    let again = newcomer.types("exp", "run local gpus=2 -q -- python3 e.py").exits(0);
    assert!(!again.stderr.contains("found"), "{again}");
    assert_eq!(newcomer.prints(3), "0,1\n");
    drop(newcomer.types("exp", "run local gpus=3 -q -- true").exits(2).says(&["it has 2"]));
    let mut waits = Newcomer::new();
    waits.file("exp/e.py", "import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n");
    waits.has_program("nvidia-smi", TWO_GPUS);
    drop(waits.types("exp", "submit local gpus=1 --dry-run -- python3 e.py").exits(0));
    assert!(!waits.path(".local/share/tpu/data.json").exists());
    drop(waits.types("exp", "submit local gpus=1 -- python3 e.py").exits(0));
    assert_eq!(waits.prints(1), "0\n");
}

/// What a driver does not say is not known, and nothing is made of it.
#[test]
fn gpus_of_which_the_driver_says_nothing_stay_unknown() {
    let hangs = "exec sleep 600";
    let fails = "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18";
    let half = "case $1 in --query-gpu=*) echo '0, GPU-a, X, 0, 1, 1024, 40'; exit 15;; esac";
    for driver in [fails, half, hangs] {
        let mut newcomer = Newcomer::new();
        newcomer.has_program("nvidia-smi", driver);
        for line in ["run local gpus=1 -q -- true", "submit local gpus=1 -- true"] {
            let refused = newcomer.types("exp", line).exits(6);
            drop(refused.says(&[
                "tpu does not know this machine's GPUs: nvidia-smi does not answer",
                "tpu hosts detect local",
            ]));
        }
        let shown = newcomer.types("exp", "hosts show local").exits(0);
        assert!(shown.stdout.contains("any number of jobs"), "{shown}");
        // As soon as it does, they are there.
        newcomer.has_program("nvidia-smi", TWO_GPUS);
        drop(newcomer.types("exp", "run local gpus=1 -q -- true").exits(0));
    }
    // A driver may know of none.
    let mut newcomer = Newcomer::new();
    newcomer.has_program("nvidia-smi", "exit 0");
    let refused = newcomer.types("exp", "run local gpus=1 -q -- true").exits(2);
    drop(refused.says(&["tpu does not know this machine's GPUs", "tpu hosts detect local"]));
}
