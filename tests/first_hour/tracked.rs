//! A run at Weights & Biases goes on with the job that logs to it.

use super::Newcomer;

/// Says which run it goes on with, and as Weights & Biases does where it is seen; saves a checkpoint, and fails once.
const LOGS: &str = r"import os
print('run', os.environ.get('WANDB_RUN_ID'), os.environ.get('WANDB_RESUME'))
run = os.environ.get('WANDB_RUN_ID') or 'k3x9abcd'
if not os.path.exists(os.path.expanduser('~/quiet')): print('wandb: \U0001F680 View run lively-dew-1 at: https://wandb.ai/lab/exp/runs/' + run, flush=True)
saved = os.path.join(os.environ['TPU_LOG_DIR'], 'checkpoint_10')
os.makedirs(saved, exist_ok=True)
open(os.path.join(saved, 'weights'), 'w').write('w' * 100)
raise SystemExit(3)
";

impl Newcomer {
    /// Its first line.
    fn run(&self, job: u32) -> String {
        let said = self.types("exp", &format!("logs {job}")).exits(0).stdout;
        said.lines().next().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_restart_goes_on_with_the_run_of_its_job() {
    let mut newcomer = Newcomer::new();
    newcomer.file("exp/train.py", LOGS);
    drop(newcomer.types("exp", "run local -q rule=pass -- python3 train.py").exits(0));
    drop(newcomer.types("exp", "wait 1").exits(1));
    assert_eq!(newcomer.run(1), "run None None");
    for again in [2, 3, 4] {
        // One that was taken away before it could log says nothing of a run.
        if again == 3 {
            newcomer.file("quiet", "");
        }
        drop(newcomer.types("exp", &format!("resume {} --force", again - 1)).exits(0));
        drop(newcomer.types("exp", &format!("wait {again}")).exits(1));
        assert_eq!(newcomer.run(again), "run k3x9abcd allow", "{again}");
    }
    std::fs::remove_file(newcomer.path("quiet")).unwrap();
    let link = "https://wandb.ai/lab/exp/runs/k3x9abcd";
    drop(newcomer.types("exp", "explain 2").exits(0).says(&[&format!("run: {link}")]));
    drop(newcomer.types("exp", "files 2").exits(0).says(&[link]));
    // From scratch it is another run.
    drop(newcomer.types("exp", "rerun 4 --force").exits(0));
    drop(newcomer.types("exp", "wait 5").exits(1));
    assert_eq!(newcomer.run(5), "run None None");
    // Whoever names a run means it.
    newcomer.env.set("WANDB_RUN_ID", "mine");
    drop(newcomer.types("exp", "resume 5 --force --env-now").exits(0));
    drop(newcomer.types("exp", "wait 6").exits(1));
    assert_eq!(newcomer.run(6), "run mine None");
}
