//! Task 27: a machine that is reached by ssh.

use super::Newcomer;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::{write_file, write_script};

impl Newcomer {
    /// The same where `ssh gpu1` leads to the first host.
    fn with_gpu1(hosts: &Hosts) -> Self {
        let mut newcomer = Self::new();
        let address = hosts.addresses().remove(0);
        let (ip, port) = address.split_once(':').unwrap();
        let key = hosts.path("client").display().to_string();
        let config = newcomer.path("ssh-config");
        write_file(
            &config,
            &format!(
                "Host gpu1\n HostName {ip}\n Port {port}\n IdentityFile {key}\n \
                 GlobalKnownHostsFile none\n"
            ),
        );
        newcomer.dir("bin");
        // An account has it in ~/.ssh; ssh looks there by the list of accounts, and not by HOME.
        let ssh = format!("exec /usr/bin/ssh -F {} \"$@\"", config.display());
        write_script(&newcomer.path("bin/ssh"), &ssh);
        let search = format!("{}:/usr/local/bin:/usr/bin:/bin", newcomer.path("bin").display());
        newcomer.env.set("PATH", search);
        newcomer.env.set("TPU_SSH_DIR", hosts.path("s"));
        newcomer
    }
}

#[test]
fn ones_own_script_runs_on_another_machine_without_any_preparation() {
    let Some(mut hosts) = is_installed().then(|| Hosts::machines(1, "gpu")).flatten() else {
        return;
    };
    let newcomer = Newcomer::with_gpu1(&hosts);
    hosts.give_disks(&newcomer.path(".local/share/tpu/tpu-state/stage"));
    newcomer.file(
        "exp/my.py",
        "import os, socket\nprint(socket.gethostname(), sorted(os.listdir('.')))\n",
    );
    newcomer.dir("exp/.git");
    newcomer.file("exp/.gitignore", "data/\nlink\n");
    newcomer.file("exp/data/big", "");
    newcomer.file("keys", "secret");
    std::os::unix::fs::symlink(newcomer.path("keys"), newcomer.path("exp/link")).unwrap();
    let added = newcomer.types("exp", "hosts add gpu1").exits(0);
    drop(added.says(&["made user john-doe in ", "gpu1"]));
    let answer = newcomer.types("exp", "run gpu1 -q -- python3 my.py").exits(0);
    drop(answer.says(&["Started john-doe/1 on gpu1: python3 my.py (code of ~/exp)"]));
    // What git ignores stays here, and so does what a link leads to.
    let printed = newcomer.prints(1);
    assert_eq!(printed.lines().last(), Some("gpu1 ['.gitignore', '.tpu-copied', 'my.py']"));
    // Its GPUs are found as those of this machine are.
    newcomer.file("exp/e.py", "import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n");
    let found = newcomer.types("exp", "run gpu1 gpus=1 -q -- python3 e.py").exits(0);
    drop(found.says(&["found 4 GPUs on gpu1"]));
    assert_eq!(newcomer.prints(2).lines().last(), Some("0"));
    // A home stays where it is, whichever way a job would leave it.
    drop(newcomer.types("", "run local -q -- true").exits(0).says(&["(in ~, without a copy)"]));
    newcomer.prints(3);
    drop(newcomer.types("exp", "queue create far --on gpu1").exits(0));
    drop(newcomer.types("exp", "queue create near --on local").exits(0));
    newcomer.file("job.yaml", "target: local\nqueue: far\ncommand: 'true'\n");
    for line in [
        "run gpu1 -q -- true",
        "submit local queue=far -- true",
        "submit gpu1 queue=far -- true",
        "submit job.yaml",
        "rerun 3 tpu=gpu1 --force",
        "rerun 3 tpu=gpu1 --force --dry-run",
    ] {
        drop(newcomer.types("", line).exits(4).says(&["holds keys", "gpu1", "-C PATH"]));
    }
    drop(newcomer.types("", "submit local queue=near -- true").exits(0));
    drop(newcomer.types("", "rerun 3 --force").exits(0));
}

/// As in a lab where every machine has the homes: results in `data/` land beside the code, and others are brought back.
#[test]
fn a_machine_that_has_this_disk_finds_what_lies_beside_the_code() {
    let Some(hosts) = is_installed().then(|| Hosts::machines(1, "gpu")).flatten() else { return };
    let newcomer = Newcomer::with_gpu1(&hosts);
    newcomer.with_results();
    drop(newcomer.types("exp", "hosts add gpu1").exits(0));
    drop(newcomer.types("exp", "set-settings outputs runs").exits(0));
    drop(newcomer.types("exp", "run gpu1 -q -- python3 out.py").exits(0));
    assert_eq!(newcomer.prints(1), "seven\n");
    assert_eq!(newcomer.read("exp/data/y.txt"), "beside");
    assert!(newcomer.copy(1).join("runs").is_symlink());
    let listed = newcomer.types("exp", "files 1").exits(0);
    drop(listed.says(&["notes.md", "plots/a.png", "results.csv", "data is ~/exp/data"]));
}

/// Nothing of this disk is seen there: what was written is listed and brought back from there.
#[test]
fn results_are_brought_back_from_a_machine_with_a_disk_of_its_own() {
    let Some(mut hosts) = is_installed().then(|| Hosts::machines(1, "gpu")).flatten() else {
        return;
    };
    let newcomer = Newcomer::with_gpu1(&hosts);
    hosts.give_disks(&newcomer.path(".local/share/tpu/tpu-state/stage"));
    newcomer.file("exp/out.py", "import os\nos.mkdir('plots')\nfor name in ['results.csv', 'plots/a.png', 'two words']: open(name, 'w').write(name)\n");
    drop(newcomer.types("exp", "hosts add gpu1").exits(0));
    drop(newcomer.types("exp", "run gpu1 -q -- python3 out.py").exits(0));
    drop(newcomer.types("exp", "wait 1").exits(0).says(&["john-doe/1 finished"]));
    let listed = newcomer.types("exp", "files 1").exits(0);
    assert!(!listed.stdout.contains("out.py"), "{}", listed.stdout);
    drop(listed.says(&["plots/a.png", "results.csv", "two words"]));
    let got = newcomer.types("exp", "files 1 --get results.csv plots --to back").exits(0);
    drop(got.says(&["Copied ~/exp/back/results.csv"]));
    assert_eq!(newcomer.read("exp/back/results.csv"), "results.csv");
    assert_eq!(newcomer.read("exp/back/plots/a.png"), "plots/a.png");
    drop(newcomer.types("exp", "files 1 --get nothing").exits(3).says(&["wrote no nothing"]));
}
