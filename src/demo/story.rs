//! The story that the demo tells: one job finishes, one is killed by a signal in the middle and resumes
//! from its checkpoint, one runs out of memory, one is killed and cleaned away. Each sentence is an
//! expectation; the first one that does not come true ends the story.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::model::facts::ErrorKind;
use crate::model::ids::{JobId, UserName};
use crate::model::job::{Status, Succession};
use crate::model::view::JobView;
use crate::ops::ctx::job_of;
use crate::ops::launch::{self, LaunchRequest};
use crate::ops::resume::{self, AgainRequest};
use crate::ops::{Ctx, Error, Kind, checkpoint, clean, kill, logs, processes, snapshot};
use crate::sys::procs::{self, Signal};

use super::lab::{self, ALICE, BOB};

/// How long any one sentence of the story may take to come true.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often we look.
const POLL: Duration = Duration::from_millis(50);

/// Steps of the training that finishes, and of the one that is interrupted.
const STEPS: u32 = 120;

/// What can be broken on purpose, to see the story notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The checkpoints of the interrupted job disappear before it is resumed.
    Resume,
}

impl Sabotage {
    /// Reads the word behind `--sabotage`.
    pub fn parse(word: &str) -> Option<Self> {
        (word == "resume").then_some(Self::Resume)
    }
}

/// A teller of the story.
pub struct Story<'a> {
    /// The lab's effects.
    pub ctx: &'a Ctx,
    /// Where the lines go.
    pub out: &'a mut dyn Write,
    /// Set when the person interrupts.
    pub stop: &'a AtomicBool,
    /// What is broken on purpose.
    pub sabotage: Option<Sabotage>,
    begun: Duration,
}

impl<'a> Story<'a> {
    /// Begins a story; its lines count the time from here.
    pub fn new(
        ctx: &'a Ctx,
        out: &'a mut dyn Write,
        stop: &'a AtomicBool,
        sabotage: Option<Sabotage>,
    ) -> Self {
        let begun = ctx.clock.monotonic();
        Self { ctx, out, stop, sabotage, begun }
    }

    /// Tells the whole story and checks it. The first expectation that is not met is the error.
    pub fn tell(&mut self, root: &Path) -> Result<(), Error> {
        lab::lay_out(self.ctx, root)?;
        self.say("a lab in a directory of its own: alice and bob, target `local` (this machine)");
        let baseline = self.run(ALICE, "baseline", &["--config.step_ms=8".to_owned()])?;
        let victim = self.run(
            ALICE,
            "interrupted",
            &["--config.step_ms=8".to_owned(), "--config.checkpoint_every=10".to_owned()],
        )?;
        let hungry = self.run(BOB, "too-big", &["--config.oom_at=30".to_owned()])?;
        let endless = self.run(
            BOB,
            "endless",
            &["--config.steps=1000000".to_owned(), "--config.step_ms=20".to_owned()],
        )?;

        self.strike(&victim)?;
        let child = self.resume(&victim)?;
        let resumed = self.last_words(&child)?;
        let straight = self.last_words(&baseline)?;
        if resumed != straight {
            return Err(Error::failed(format!(
                "the resumed run ended with '{resumed}', the uninterrupted one with '{straight}'"
            )));
        }
        self.say(&format!("{child} ended like {baseline}, bit for bit: {straight}"));
        self.one_child(&victim, &child)?;

        let view = self
            .until(&hungry, "to be out of memory", |view| view.failure() == Some(ErrorKind::Oom))?;
        let line = view.shown.evidence.map(|evidence| evidence.line).unwrap_or_default();
        self.say(&format!("{hungry} is out of memory: \"{}\"", line.trim()));
        let next = view.next.map(|next| next.reason).unwrap_or_default();
        self.say(&format!("  what happens by itself: {next}"));

        self.kill_and_clean(&endless)
    }

    /// Lays the lab out and starts jobs, for a person to play with.
    pub fn set_the_stage(&mut self, root: &Path) -> Result<JobId, Error> {
        lab::lay_out(self.ctx, root)?;
        let pace = "--config.step_ms=150".to_owned();
        let first =
            self.run(ALICE, "baseline", &[pace.clone(), "--config.steps=2000".to_owned()])?;
        let victim = self.run(
            ALICE,
            "interrupted",
            &["--config.step_ms=60".to_owned(), "--config.checkpoint_every=10".to_owned()],
        )?;
        self.run(ALICE, "too-big", &["--config.oom_at=30".to_owned()])?;
        self.run(ALICE, "short", &["--config.step_ms=5".to_owned()])?;
        self.run(BOB, "sweep", &[pace, "--config.steps=4000".to_owned()])?;
        self.strike(&victim)?;
        Ok(first)
    }

    /// Starts a training.
    fn run(&mut self, user: &str, tag: &str, args: &[String]) -> Result<JobId, Error> {
        let mut command = vec!["./train.sh".into(), format!("--config.steps={STEPS}").into()];
        // What comes later wins, so a job may have other numbers of steps.
        command.extend(args.iter().map(std::ffi::OsString::from));
        let request = LaunchRequest {
            user: UserName::from(user),
            target: "local".to_owned(),
            dir: 1,
            configs: vec![("lr".to_owned(), "0.01".to_owned())],
            tag: Some(tag.to_owned()),
            rule: None,
            monitor: true,
            notes: None,
            log_stage: true,
            force: false,
            command: Some(command),
        };
        let launched = launch::launch(self.ctx, &request)?;
        self.say(&format!(
            "{} started ({tag}): tpu run local {user} lr=0.01 tag={tag}",
            launched.job
        ));
        Ok(launched.job)
    }

    /// Kills a training with SIGKILL once it has a checkpoint and before it is through.
    fn strike(&mut self, job: &JobId) -> Result<(), Error> {
        self.until(job, "to have a checkpoint", |view| {
            let log = view.log_dir.as_deref().unwrap_or_default();
            matches!(checkpoint::find(log, None), checkpoint::Checkpoints::Newest(step, _) if step >= 20)
        })?;
        let data = self.ctx.data()?;
        for process in processes::of_job(self.ctx, job_of(&data, job)?, None)? {
            procs::signal(&process, Signal::Kill)
                .map_err(|e| Error::failed(format!("cannot kill {}: {e}", process.pid)))?;
        }
        let view = self.until(job, "to show the signal", |view| {
            view.failure() == Some(ErrorKind::KilledBySignal) && view.exit_code.is_some()
        })?;
        let why = view.shown.evidence.map(|evidence| evidence.line).unwrap_or_default();
        self.say(&format!("{job} was killed in the middle: {} ({why})", view.shown.status));
        Ok(())
    }

    /// Resumes from the checkpoint and waits for the end.
    fn resume(&mut self, parent: &JobId) -> Result<JobId, Error> {
        if self.sabotage == Some(Sabotage::Resume) {
            let data = self.ctx.data()?;
            let log = job_of(&data, parent)?.log_dir.clone().unwrap_or_default();
            let lost = std::fs::remove_dir_all(Path::new(&log).join("checkpoints"));
            lost.map_err(|e| Error::failed(format!("the sabotage failed: {e}")))?;
        }
        let request = AgainRequest {
            job: parent.clone(),
            how: Succession::Resume,
            target: None,
            force: false,
        };
        let again = resume::again(self.ctx, &request).map_err(|error| {
            Error::failed(format!("expected {parent} to resume from its checkpoint: {error}"))
        })?;
        let child = again.launched.job;
        self.say(&format!(
            "{child} resumes {parent} from its checkpoint: tpu resume w={}",
            parent.window
        ));
        self.until(&child, "to finish", |view| view.shown.status == Status::Finished)?;
        let output = self.output(&child)?;
        let from = output.lines().find(|line| line.contains("resumed at step")).unwrap_or_default();
        self.say(&format!("{child} has finished; it began with: {}", message_of(from)));
        Ok(child)
    }

    /// The line with which a training ends: its loss, to the last bit.
    fn last_words(&mut self, job: &JobId) -> Result<String, Error> {
        self.until(job, "to finish", |view| view.shown.status == Status::Finished)?;
        let output = self.output(job)?;
        let line = output
            .lines()
            .rev()
            .find_map(|line| line.find("final loss").map(|at| line.split_at(at).1));
        line.map(str::to_owned)
            .ok_or_else(|| Error::failed(format!("{job} finished without its last line")))
    }

    fn output(&self, job: &JobId) -> Result<String, Error> {
        match logs::output(self.ctx, job)? {
            logs::Output::File(path) => std::fs::read(&path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|e| Error::failed(format!("cannot read {}: {e}", path.display()))),
            logs::Output::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        }
    }

    /// The interrupted job has this child and no other.
    fn one_child(&mut self, parent: &JobId, child: &JobId) -> Result<(), Error> {
        let data = self.ctx.data()?;
        let children: HashSet<JobId> = data
            .jobs()
            .filter(|job| job.user == parent.user && job.father == Some(parent.window))
            .map(crate::model::job::Job::id)
            .collect();
        if children == HashSet::from([child.clone()]) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "expected {parent} to have the one child {child}, found {}",
            children.len()
        )))
    }

    /// Kills a running job, then clears its user's jobs away.
    fn kill_and_clean(&mut self, job: &JobId) -> Result<(), Error> {
        let data = self.ctx.data()?;
        let record = job_of(&data, job)?.clone();
        let killed = kill::kill_one(self.ctx, job)?;
        let left = processes::of_job(self.ctx, &record, None)?;
        if !left.is_empty() {
            return Err(Error::failed(format!(
                "expected {job} to be stopped, {} processes live",
                left.len()
            )));
        }
        self.say(&format!(
            "{job} was stopped: tpu kill w={} ({} processes)",
            job.window, killed.processes
        ));
        let cleaned = clean::clean(self.ctx, &job.user, false)?;
        self.say(&format!("bob cleans up: tpu clean bob. {}", cleaned.summary()));
        let data = self.ctx.data()?;
        let left = data.jobs().filter(|other| other.user == job.user).count();
        if left != 0 {
            return Err(Error::failed(format!(
                "expected no job of {} to be left, found {left}",
                job.user
            )));
        }
        Ok(())
    }

    /// Waits until a job is as expected.
    fn until(
        &mut self,
        job: &JobId,
        expected: &str,
        is_so: impl Fn(&JobView) -> bool,
    ) -> Result<JobView, Error> {
        let deadline = self.ctx.clock.monotonic() + PATIENCE;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::Interrupted, "interrupted"));
            }
            let view = snapshot::look_at(self.ctx, job)?;
            if is_so(&view) {
                return Ok(view);
            }
            if self.ctx.clock.monotonic() >= deadline {
                return Err(Error::failed(format!(
                    "expected {job} {expected} within {} s; it is {}",
                    PATIENCE.as_secs(),
                    view.shown.status
                )));
            }
            self.ctx.clock.sleep(POLL);
        }
    }

    /// One line of the story. A reader that has gone away does not end it.
    fn say(&mut self, line: &str) {
        let since = self.ctx.clock.monotonic().saturating_sub(self.begun);
        let _told = writeln!(self.out, "{:5.1} s  {line}", since.as_secs_f64());
    }
}

/// The message of a log line, behind its date and place.
fn message_of(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, message)| message)
}
