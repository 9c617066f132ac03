//! Files of JobMan, as they were published: ours say what theirs said, and what has no counterpart is told.

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

const QUICK_START: &str = include_str!("../cases/jobman/quick-start.yaml");
const EVERY_KEY: &str = include_str!("../cases/jobman/every-key.yaml");

/// What `tpu convert jobman` makes of a file: its notes, and the file.
fn converted(text: &str) -> (Vec<String>, String) {
    let env = TestEnv::new();
    write_file(&env.path("config.yaml"), text);
    let path = env.path("config.yaml");
    let out = env.tpu(&format!("convert jobman {}", path.display())).exits(0);
    let (notes, file): (Vec<&str>, Vec<&str>) =
        out.stdout.lines().partition(|line| line.starts_with("# "));
    (notes.into_iter().map(str::to_owned).collect(), file.join("\n") + "\n")
}

#[test]
fn the_quick_start_is_a_job_of_ours() {
    let (notes, file) = converted(QUICK_START);
    let expected = r"target:
  accelerator: v6e-1
  zone: us-east1-d
  pricing: spot
  version: v2-alpha-tpuv6e
  mode: queued-resources
tpu:
  name: yufeng-v6e-1
  number: auto
  tags:
  - jobman
  - experiment
  metadata:
    owner: yufeng
    purpose: testing jobman
setup:
- gcsfuse:
    bucket: llm_pruning_us_east1_d
    mount: /home/zephyr/gcs-bucket
- ssh_keys:
    identities:
    - private_key: /u/yx1168/.ssh/id_rsa
      public_key: /u/yx1168/.ssh/id_rsa.pub
- docker:
    image: yx3038/maxtext_base_image:latest
    mounts:
    - /home/zephyr:/home/zephyr
    - /dev:/dev
    - /run:/run
    - /home/zephyr/.ssh:/root/.ssh
    workdir: /home/zephyr
    flags:
    - --privileged
    - --network=host
workers:
- 0
command: |
  pip show jax
  pip show flax
";
    assert_eq!(file, expected);
    assert_eq!(notes.len(), 1, "{notes:#?}");
    assert!(notes[0].starts_with("# tpu.name (line 5): a number without gaps"), "{notes:#?}");
}

#[test]
fn every_key_has_its_place_or_is_told() {
    let (notes, file) = converted(EVERY_KEY);
    for said in [
        "name: train-v4-8\n",
        "user: alice\n",
        "repeat: always\n",
        "env:\n  WANDB_PROJECT: x\n",
        "  pricing: on-demand\n",
        "  mode: tpu-vm\n",
        "  startup_script: boot.sh\n",
        "  flags:\n  - --internal-ips\n",
        "- conda:\n    name: train\n    file: env.yaml\n",
        "      file_max_size_mb: 50000\n",
        "      parallel_downloads: true\n",
        "    - bucket: b\n      mount: /mnt/c\n",
        "    - bucket: d\n      mount: /mnt/d\n",
        "      config_entry: |\n        Host github.com\n          IdentityFile ~/.ssh/id\n",
        "- name: prefix-1\n  run: pip install -U pip\n  once_per: machine\n",
        "- name: wheels\n  run: pip install -r r.txt\n  workers: all\n  once_per: machine\n",
        // What a person wrote in braces is no field of ours.
        "command: |\n  echo \"it's $HOME\" && docker ps --format '{{\"{{\"}}.ID}}'\n",
    ] {
        assert!(file.contains(said), "{said}\n{file}");
    }
    let all = notes.join("\n");
    for told in [
        "job.loop (line 5): repeat: always",
        "job.queue.enabled (line 10): left out: its tasks are submitted by themselves, `tpu submit queue/tasks.yaml`",
        "job.queue.prefix.required (line 15)",
        "tpu.startup_script (line 24): it has an effect here",
        "tpu.num_workers (line 27)",
        "tpu.ips (line 28)",
        "gcsfuse.cache.prefix (line 40)",
        "ssh.private_key (line 45)",
        "venv (line 53): left out: job.env_type does not name it",
        "brevo_email.receiver (line 58)",
        "wandb (line 59): left out",
    ] {
        assert!(all.contains(told), "{told}\n{all}");
    }
    assert_eq!(notes.len(), 13, "{all}");
    assert!(!format!("{all}{file}").contains("never-shown"), "{all}{file}");
}

#[test]
fn what_is_missing_or_wrong_is_said_with_its_place() {
    let env = TestEnv::new();
    let path = env.path("config.yaml");
    let tpu = "tpu: {allocation_mode: tpu-vm, accelerator: v4-8, name: a, zone: z, version: v, pricing: spot}\n";
    for (text, says) in [
        ("ssh: {tpu_private_key: a}\n".to_owned(), ":1:1: tpu: it is missing"),
        ("gcsfuse: {bucket_name: a, mount_path: /b}\n".to_owned(), ":1:1: tpu: it is missing"),
        ("docker: {image: a}\n".to_owned(), ":1:1: tpu: it is missing"),
        ("command: {run: a}\n".to_owned(), ":1:1: tpu: it is missing"),
        ("tpu: {accelerator: v4-8}\n".to_owned(), ":1:6: tpu.allocation_mode: it is missing"),
        (tpu.replace("tpu-vm", "vm"), ":1:24: tpu.allocation_mode: no such word"),
        (format!("{tpu}docker: {{flags: []}}\n"), ":2:9: docker.image: it is missing"),
        (format!("{tpu}setup: {{modules: [docker]}}\n"), ":2:19: setup.modules: there is no block"),
        (
            format!("{tpu}docker: {{image: a}}\nconda: {{name: b}}\n"),
            ":3:8: conda: docker is its environment already",
        ),
        (format!("{tpu}job: {{env_type: pip}}\n"), ":2:17: job.env_type: no such word"),
        (format!("{tpu}command: {{run: 'a ${{HOME}}'}}\n"), "nothing is called HOME"),
    ] {
        write_file(&path, &text);
        let out = env.tpu(&format!("convert jobman {}", path.display())).exits(2);
        assert!(out.stderr.contains(says), "{text}{}", out.report());
        assert!(out.stdout.is_empty(), "{text}{}", out.report());
    }
}
