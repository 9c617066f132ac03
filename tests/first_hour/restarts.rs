//! Programs that take their arguments as programs do, and go on from their checkpoints (task 18, and what it stands on).

use std::time::SystemTime;

use super::Newcomer;
use crate::common::wait::wait_until;

/// Trains six steps and saves each in `checkpoints/`. The first attempt stops at the third and waits to be killed.
const TRAINS: &str = r"import argparse, os, time
p = argparse.ArgumentParser()
p.add_argument('--lr', default='none')
p.add_argument('--seed', default='none')
p.add_argument('--resume')
a = p.parse_args()
begin = int(open(a.resume).read()) if a.resume else 0
print('lr', a.lr, 'begins at', begin, flush=True)
os.makedirs('checkpoints', exist_ok=True)
for step in range(begin + 1, 7):
    with open('checkpoints/.tmp', 'w') as f: f.write(str(step))
    os.rename('checkpoints/.tmp', 'checkpoints/step_%d.pt' % step)
    print('step', step, flush=True)
    while step == 3 and not a.resume: time.sleep(0.1)
";

/// Says what it is told of its checkpoint, saves the next one, and fails.
const SAYS: &str = r"import os, sys
told = [os.environ.get('TPU_' + name) for name in ['ATTEMPT', 'CHECKPOINT', 'CHECKPOINT_DIR', 'CHECKPOINT_STEP', 'JOB']]
print('told', told, 'arguments', sys.argv[1:], flush=True)
step = int(told[3] or 0) + 10
os.makedirs('ckpt/step_%d' % step)
open('ckpt/step_%d/weights' % step, 'w').write('w')
raise SystemExit(3)
";

impl Newcomer {
    fn sets(&self, key: &str, value: &str) {
        let words = ["set-settings", key, value];
        let spawn = self.env.spawn(&words).cwd(self.path("exp"));
        drop(self.env.output(&spawn).exits(0));
    }

    /// The lines of a job that has said so much.
    fn lines(&self, job: u32) -> Vec<String> {
        let said = self.types("exp", &format!("logs {job}")).exits(0).stdout;
        said.lines().map(str::to_owned).collect()
    }

    /// Waits until a job that is still at work has printed a line.
    fn waits_for(&self, job: u32, line: &str) {
        wait_until(line, || self.lines(job).iter().any(|said| said == line));
    }

    /// What it is told and given, once it has failed.
    fn told(&self, job: u32) -> String {
        drop(self.types("exp", &format!("wait {job}")).exits(1));
        self.lines(job).remove(0)
    }
}

/// The list of what a job is told, as Python writes it.
fn told(attempt: u32, checkpoint: (&str, &str, &str), job: u32, arguments: &str) -> String {
    let (path, dir, step) = checkpoint;
    format!(
        "told ['{attempt}', '{path}', '{dir}', '{step}', 'john-doe/{job}'] arguments {arguments}"
    )
}

#[test]
fn task_18_a_program_with_options_of_its_own_goes_on_from_its_step() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/tr.py", TRAINS);
    drop(newcomer.types("exp", "run local -q lr=0.1 -- python3 tr.py").exits(0));
    newcomer.waits_for(1, "step 3");
    assert_eq!(newcomer.lines(1)[0], "lr 0.1 begins at 0");
    drop(newcomer.types("exp", "kill 1 -y").exits(0));
    newcomer.sets("resume_args", "--resume {checkpoint}");
    drop(newcomer.types("exp", "resume 1 --force -y").exits(0));
    drop(newcomer.types("exp", "wait 2").exits(0));
    let said = newcomer.lines(2);
    assert_eq!(said, ["lr 0.1 begins at 3", "step 4", "step 5", "step 6"]);
    // From scratch it is given nothing.
    drop(newcomer.types("exp", "rerun 2 --force -y").exits(0));
    newcomer.waits_for(3, "step 3");
    assert_eq!(newcomer.lines(3)[0], "lr 0.1 begins at 0");
    drop(newcomer.types("exp", "kill 3 -y").exits(0));
}

#[test]
fn each_attempt_is_told_where_its_checkpoint_is() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/says.py", SAYS);
    drop(newcomer.types("exp", "run local -q rule=pass seed=3 -- python3 says.py").exits(0));
    let arguments = "['--seed=3']";
    let nothing = ("", "", "");
    assert_eq!(newcomer.told(1), told(0, nothing, 1, arguments));
    let copy = newcomer.job(1)["stage_dir"].as_str().unwrap().to_owned();
    let at =
        |step: u32| (format!("{copy}/ckpt/step_{step}"), format!("{copy}/ckpt"), step.to_string());
    for (job, step) in [(2, 10), (3, 20)] {
        drop(newcomer.types("exp", &format!("resume {} --force -y", job - 1)).exits(0));
        let (path, dir, step) = at(step);
        let expected = told(job - 1, (&path, &dir, &step), job, arguments);
        assert_eq!(newcomer.told(job), expected);
    }
    drop(newcomer.types("exp", "rerun 3 --force -y").exits(0));
    assert_eq!(newcomer.told(4), told(3, nothing, 4, arguments));
    // What a job starts is told of itself alone.
    newcomer.file("exp/starts.sh", "exec tpu run local -q rule=pass -- python3 says.py\n");
    drop(newcomer.types("exp", "resume 4 --force -y").exits(0));
    let copy = newcomer.job(4)["stage_dir"].as_str().unwrap().to_owned();
    let (path, dir) = (format!("{copy}/ckpt/step_10"), format!("{copy}/ckpt"));
    assert_eq!(newcomer.told(5), told(4, (&path, &dir, "10"), 5, arguments));
    drop(newcomer.types("exp", "run local -q -- bash starts.sh").exits(0));
    drop(newcomer.types("exp", "wait 6").exits(0));
    assert_eq!(newcomer.told(7), told(0, nothing, 7, "[]"));
}

/// What lay there before the job began is not its own: weights that git tracks, and what jobs have left in a directory that
/// is linked into each copy.
#[test]
fn checkpoints_of_others_are_nobodys_own() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/says.py", SAYS);
    newcomer.file("exp/ckpt/step_900/weights", "of somebody");
    let weights = std::fs::File::open(newcomer.path("exp/ckpt/step_900/weights")).unwrap();
    weights.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    drop(newcomer.types("exp", "run local -q rule=pass -- python3 says.py").exits(0));
    drop(newcomer.types("exp", "wait 1").exits(1));
    drop(newcomer.types("exp", "resume 1 --force -y").exits(0));
    let copy = newcomer.job(1)["stage_dir"].as_str().unwrap().to_owned();
    let (path, dir) = (format!("{copy}/ckpt/step_10"), format!("{copy}/ckpt"));
    assert_eq!(newcomer.told(2), told(1, (&path, &dir, "10"), 2, "[]"));
    // Two jobs in one directory: nobody knows whose the newest is.
    let there = newcomer.path("exp");
    let both = "run local -q rule=pass --in-place -- python3 says.py";
    std::fs::remove_dir_all(there.join("ckpt")).unwrap();
    drop(newcomer.types("exp", both).exits(0));
    drop(newcomer.types("exp", "wait 3").exits(1));
    std::fs::remove_dir_all(there.join("ckpt")).unwrap();
    drop(newcomer.types("exp", both).exits(0));
    drop(newcomer.types("exp", "wait 4").exits(1));
    std::fs::rename(there.join("ckpt/step_10"), there.join("ckpt/step_30")).unwrap();
    let resumed = newcomer.types("exp", "resume 3 --force -y").exits(0);
    drop(resumed.says(&["unknown", "john-doe/4 keeps checkpoints in", "checkpoint_dir"]));
    let dir = there.join("ckpt").display().to_string();
    assert_eq!(newcomer.told(5), told(1, ("", &dir, ""), 5, "[]"));
}

#[test]
fn a_directory_that_is_named_holds_the_checkpoints() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/says.py", &SAYS.replace("ckpt/", "out/weights/"));
    let file = "target: local\nrules: pass\ncommand: [python3, says.py]\ncheckpoint_dir: out/weights\n\
                resume_args: '--from {checkpoint} --at={step}'\nconfigs: {lr: 1}\narguments: hydra\n";
    newcomer.file("exp/job.yaml", file);
    drop(newcomer.types("exp", "run job.yaml -q").exits(0));
    assert_eq!(newcomer.told(1), told(0, ("", "", ""), 1, "['lr=1']"));
    drop(newcomer.types("exp", "resume 1 --force -y").exits(0));
    let copy = newcomer.job(1)["stage_dir"].as_str().unwrap().to_owned();
    let (path, dir) = (format!("{copy}/out/weights/step_10"), format!("{copy}/out/weights"));
    let arguments = format!("['lr=1', '--from', '{path}', '--at=10']");
    assert_eq!(newcomer.told(2), told(1, (&path, &dir, "10"), 2, &arguments));
}

#[test]
fn arguments_arrive_in_the_style_of_the_user_and_stay_in_that_of_the_job() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/says.py", SAYS);
    let run = "run local -q rule=pass lr=0.1 model.dim=64 -- python3 says.py";
    drop(newcomer.types("exp", run).exits(0));
    assert!(newcomer.told(1).ends_with("arguments ['--lr=0.1', '--model.dim=64']"));
    let typo = newcomer.types("exp", "run local -q prioritty=80 -- python3 says.py").exits(2);
    drop(typo.says(&["priority=80", "-- COMMAND --prioritty=80"]));
    // What waits keeps the style in which it was submitted.
    drop(newcomer.types("exp", "submit local rule=pass --hold lr=0.2 -- python3 says.py").exits(0));
    newcomer.sets("arguments", "config");
    drop(newcomer.types("exp", "unhold 2").exits(0));
    assert!(newcomer.told(2).ends_with("arguments ['--lr=0.2']"), "{}", newcomer.told(2));
    drop(newcomer.types("exp", "run local -q rule=pass lr=0.1 -- python3 says.py").exits(0));
    assert!(newcomer.told(3).ends_with("arguments ['--config.training.learning_rate=0.1']"));
    assert_eq!(newcomer.job(3)["customized_settings"]["arguments"], "config");
    newcomer.sets("arguments", "hydra");
    drop(newcomer.types("exp", "resume 3 --force -y").exits(0));
    // What lies in its working directory it finds by itself: no argument is added that it may not know.
    let resumed = "arguments ['--config.training.learning_rate=0.1']";
    assert!(newcomer.told(4).ends_with(resumed), "{}", newcomer.told(4));
    drop(newcomer.types("exp", run).exits(0));
    assert!(newcomer.told(5).ends_with("arguments ['lr=0.1', 'model.dim=64']"));
}

/// Members have one copy of the code together, and one directory in it: the newest checkpoint may be another member's.
#[test]
fn members_that_share_a_directory_are_given_none_of_its_checkpoints() {
    let newcomer = Newcomer::new();
    newcomer.file("exp/says.py", &SAYS.replace("ckpt/", "out/"));
    let file = "target: local\nrules: pass\ncommand: [python3, says.py]\ncheckpoint_dir: out\narray: 1-2\n";
    newcomer.file("exp/job.yaml", file);
    drop(newcomer.types("exp", "submit job.yaml").exits(0));
    drop(newcomer.types("exp", "wait 2 3").exits(1));
    let resumed = newcomer.types("exp", "resume 2 --force -y").exits(0);
    drop(resumed.says(&["unknown", "john-doe/3 keeps checkpoints in"]));
    let dir = format!("{}/out", newcomer.job(2)["stage_dir"].as_str().unwrap());
    assert_eq!(newcomer.told(4), told(1, ("", &dir, ""), 4, "[]"));
}
