//! Programs that save as their frameworks do, each killed by signal 9 under `rule=killed-by-signal:resume`: the daemon brings
//! each back, and it goes on from its checkpoint. `./x real` has the frameworks themselves.

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Trains six steps from the checkpoint that it is given; the first attempt is killed behind its third, while it saves the
/// fourth.
const TRAIN: &str = r"
import json, os, signal, sys
given = os.environ['TPU_CHECKPOINT']
def train(begin, save, half):
    print('begins at', begin, flush=True)
    for step in range(begin + 1, 7):
        if step == 4 and os.environ['TPU_ATTEMPT'] == '0':
            half(step)
            os.kill(os.getpid(), signal.SIGKILL)
        save(step)
        print('step', step, flush=True)
def write(path, step):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f: f.write(str(step))
";

/// Each with what its job file says beside its command.
const PROGRAMS: [(&str, &str, &str); 6] = [
    (
        "argparse",
        "resume_args: --resume {checkpoint}\nconfigs: {lr: 0.1}\narguments: flags\n",
        r"
import argparse
p = argparse.ArgumentParser(); p.add_argument('--lr', required=True); p.add_argument('--resume')
a = p.parse_args()
begin = int(open(a.resume).read()) if a.resume else 0
def save(step):
    write('ckpt/.partial', step)
    os.rename('ckpt/.partial', 'ckpt/step_%d.pt' % step)
train(begin, save, lambda step: write('ckpt/.partial', step))
",
    ),
    (
        "hydra",
        "configs: {lr: 0.1, model.dim: 64}\narguments: hydra\n",
        r"
assert sys.argv[1:] == ['lr=0.1', 'model.dim=64'], sys.argv
at = lambda step: os.path.join(os.environ['TPU_LOG_DIR'], 'checkpoint_%d' % step)
begin = int(open(given).read()) if given else 0
train(begin, lambda step: write(at(step), step), lambda step: None)
",
    ),
    (
        "pytorch",
        "",
        r"
begin = int(open(given).read()) if given else 0
def save(step):
    write('checkpoints/partial.tmp', step)
    os.replace('checkpoints/partial.tmp', 'checkpoints/step_%d.pt' % step)
train(begin, save, lambda step: write('checkpoints/partial.tmp', step))
",
    ),
    (
        "huggingface",
        "",
        r"
begin = json.load(open(given + '/trainer_state.json'))['global_step'] if given else 0
def save(step):
    there = 'checkpoints/checkpoint-%d' % step
    write(there + '/model.safetensors', step)
    write(there + '/trainer_state.json', json.dumps({'global_step': step}))
train(begin, save, lambda step: os.makedirs('checkpoints/checkpoint-%d' % step))
",
    ),
    (
        "lightning",
        "",
        r"
begin = int(open(given).read()) if given else 0
train(begin, lambda step: write('checkpoints/epoch=0-step=%d.ckpt' % step, step), lambda step: None)
",
    ),
    (
        "flax",
        "",
        r"
saved = os.environ['TPU_CHECKPOINT_STEP']
begin = int(open(os.path.join(os.environ['TPU_CHECKPOINT_DIR'], saved, 'd/0')).read()) if saved else 0
def half(step):
    write('checkpoints/%d.orbax-checkpoint-tmp-1/d/0' % step, step)
    write('checkpoints/%d.orbax-checkpoint-tmp-1/_CHECKPOINT_METADATA' % step, step)
def save(step):
    half(step)
    os.rename('checkpoints/%d.orbax-checkpoint-tmp-1' % step, 'checkpoints/%d' % step)
train(begin, save, half)
",
    ),
];

#[test]
fn programs_of_each_framework_go_on_from_their_checkpoints() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    for (name, said, program) in PROGRAMS {
        let code = env.path(&format!("code-{name}"));
        std::fs::create_dir_all(&code).unwrap();
        write_file(&code.join("train.py"), &format!("{TRAIN}{program}"));
        let file = format!(
            "name: {name}\ntarget: local\nrules: {{killed-by-signal: resume}}\ncommand: [python3, train.py]\n{said}"
        );
        write_file(&code.join("job.yaml"), &file);
        let words = ["run", "job.yaml", "-q"];
        drop(env.output(&env.spawn(&words).cwd(&code)).exits(0));
    }
    let daemon = env.daemon(&[]);
    let children = || {
        let is_child = |job: &Value| job["extra_msgs"]["father"].is_number();
        env.jobs("alice").into_iter().filter(is_child).collect::<Vec<_>>()
    };
    wait_until("each has finished", || {
        children().iter().filter(|job| job["status"] == "finished").count() == PROGRAMS.len()
    });
    assert_eq!(env.jobs("alice").len(), 2 * PROGRAMS.len(), "each was brought back once");
    for job in children() {
        let log = std::path::Path::new(job["log_dir"].as_str().unwrap()).join("output.log");
        let name = &job["extra_msgs"]["spec"]["name"];
        let text = std::fs::read_to_string(log).unwrap();
        let expected = ["begins at 3", "step 4", "step 5", "step 6"];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{name}");
    }
    drop(daemon);
}
