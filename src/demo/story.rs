//! The story that the demo tells, on a simulated fleet and on this machine. By itself: a target is taken away
//! in the middle of a training, is made anew, and the training goes on from its checkpoint; another one
//! loses a peer and goes on; a third runs out of memory and is left alone. By hand: one is killed by a
//! signal and resumed, one is killed and cleaned away. Each sentence is an expectation; the first one that
//! does not come true ends the story.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::emulate::ClusterBehind;
use crate::simulator::{Pull, Simulator};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::{Status, Succession};
use tpu_core::model::setup::SetUpHow;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::view::JobView;
use tpu_core::text::counted;
use tpu_ops::act::kill::Unreached;
use tpu_ops::act::launch::{self, RunRequest};
use tpu_ops::act::resume::{self, AgainRequest};
use tpu_ops::act::{kill, outlook};
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::environment::WhichEnvironment;
use tpu_ops::front::clean;
use tpu_ops::observe::{checkpoint, logs, runners, worker_processes};
use tpu_ops::{Ctx, Error, Kind};
use tpu_system::sys::procs::{self, Process, Signal, Table};

use super::cluster::{self, CLUSTER};
use super::lab::{self, ALICE, BOB, FLEET};
use super::queue::{self, RATES};

/// How long any one sentence of the story may take to come true.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often we look.
const POLL: Duration = Duration::from_millis(50);

/// Steps of the training that finishes, and of the one that is interrupted.
const STEPS: u32 = 120;

/// What can be broken on purpose, to see the story notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The checkpoints of the job whose target is taken away disappear with it.
    Resume,
    /// There is no capacity to make its target anew.
    Reapply,
    /// Nobody in the lab can tell that a program is out of memory.
    Classify,
}

impl Sabotage {
    /// Everything that can be broken, as typed behind `--sabotage`.
    pub const WORDS: [(&str, Self); 3] =
        [("resume", Self::Resume), ("reapply", Self::Reapply), ("classify", Self::Classify)];

    /// Reads the word behind `--sabotage`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, sabotage)| *sabotage)
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
        self.say("a lab of its own: alice and bob, four simulated targets, and the daemon watches");
        let [(one, ..), (four, four_name, _), (third, third_name, _), _] = FLEET;
        let baseline = self.run(ALICE, one, "baseline", &["--config.step_ms=8"])?;
        let slow = ["--config.step_ms=40", "--config.checkpoint_every=10"];
        let victim = self.run(ALICE, four, "preempted", &slow)?;
        let lonely = self.run(BOB, third, "lost-peer", &slow)?;
        let hungry = self.run(BOB, "local", "too-big", &["--config.oom_at=30"])?;
        // It is struck last, and a busy machine may take its time until then.
        let slower = ["--config.step_ms=80", "--config.checkpoint_every=10"];
        let struck = self.run(ALICE, "local", "interrupted", &slower)?;
        let endless = ["--config.steps=1000000", "--config.step_ms=20"];
        let endless = self.run(BOB, "local", "endless", &endless)?;

        // By itself.
        self.take_away(&victim, four, four_name)?;
        self.break_peers(&lonely, third, third_name)?;
        self.strike(&struck)?;
        let first = self.brought_back(&victim, ErrorKind::Preempted)?;
        let second = self.brought_back(&lonely, ErrorKind::Grpc)?;
        self.left_alone(&hungry)?;

        // By hand.
        let third = self.resume(&struck)?;
        let straight = self.last_words(&baseline)?;
        for child in [&first, &second, &third] {
            self.ends_like(child, &straight)?;
        }
        self.say(&format!(
            "{first}, {second} and {third} ended like {baseline}, bit for bit: {straight}"
        ));
        self.kill_and_clean(&endless)
    }

    /// Lays the lab out and starts jobs, for a person to play with; something happens to them by itself.
    pub fn set_the_stage(&mut self, root: &Path, behind: &ClusterBehind) -> Result<JobId, Error> {
        lab::lay_out(self.ctx, root)?;
        cluster::register(self.ctx, behind)?;
        let [(one, ..), (four, four_name, _), (third, third_name, _), (last, ..)] = FLEET;
        let slow = ["--config.step_ms=150", "--config.steps=2000", "--config.checkpoint_every=10"];
        let first = self.run(ALICE, four, "preempted", &slow)?;
        self.run(ALICE, one, "baseline", &["--config.step_ms=100", "--config.steps=4000"])?;
        self.run(ALICE, "local", "too-big", &["--config.oom_at=30"])?;
        self.run(ALICE, "local", "short", &["--config.step_ms=5"])?;
        let by_hand = ["--config.step_ms=60", "--config.checkpoint_every=10"];
        let struck = self.run(ALICE, "local", "interrupted", &by_hand)?;
        self.run(BOB, third, "lost-peer", &slow)?;
        let in_pod = cluster::command(
            &self.ctx.tpu,
            &["--config.step_ms=200", "--config.steps=1500", "--config.checkpoint_every=10"],
        );
        self.start(BOB, CLUSTER, "in-a-pod", in_pod)?;
        let sweep = queue::fill(self.ctx, BOB, last)?;
        self.say(&format!("{sweep} waits in the queue: a sweep of {} for {last}", RATES.len()));
        self.strike(&struck)?;
        let events = format!(
            "[[step]]\nat = 10\nevent = \"preempt\"\ntarget = \"{four_name}\"\n\
             [[step]]\nat = 25\nevent = \"grpc\"\ntarget = \"{third_name}\"\n"
        );
        Simulator::open(self.ctx).play(&events, "the demo's story")?;
        Ok(first)
    }

    /// Starts a training.
    fn run(&mut self, user: &str, target: &str, tag: &str, args: &[&str]) -> Result<JobId, Error> {
        let mut command = vec!["./train.sh".into(), format!("--config.steps={STEPS}").into()];
        // What comes later wins, so a job may have other numbers of steps.
        command.extend(args.iter().map(OsString::from));
        self.start(user, target, tag, command)
    }

    /// Starts a command.
    fn start(
        &mut self,
        user: &str,
        target: &str,
        tag: &str,
        command: Vec<OsString>,
    ) -> Result<JobId, Error> {
        let spec = JobSpec {
            configs: vec![("lr".to_owned(), "0.01".to_owned())],
            tag: Some(tag.to_owned()),
            log_stage: true,
            command: Some(command),
            ..JobSpec::on(TargetRequest::Named(target.to_owned()))
        };
        let request = RunRequest::new(UserName::from(user), spec);
        let launched = launch::launch(self.ctx, &request)?;
        self.say(&format!(
            "{} started ({tag}): tpu run {target} {user} lr=0.01 tag={tag}",
            launched.job
        ));
        Ok(launched.job)
    }

    /// Takes the target of a training away once that has a checkpoint; its processes die with the machines.
    fn take_away(&mut self, job: &JobId, alias: &str, name: &str) -> Result<(), Error> {
        self.has_checkpoint(job)?;
        let at_work = self.on_workers(job)?;
        if at_work.is_empty() {
            return Err(Error::failed(format!("expected {job} to have processes on {name}")));
        }
        let fleet = Simulator::open(self.ctx);
        let target = TargetName::from(name);
        if self.sabotage == Some(Sabotage::Reapply) {
            fleet.pull(&target, &Pull::NoCapacity { times: None })?;
        }
        fleet.pull(&target, &Pull::Preempt)?;
        if self.sabotage == Some(Sabotage::Resume) {
            self.lose_checkpoints(job)?;
        }
        let left = at_work.iter().filter(|process| procs::is_alive(process.pid, process.start));
        let left = left.count();
        if left > 0 {
            return Err(Error::failed(format!(
                "expected the processes of {job} to die with {name}, {left} live"
            )));
        }
        self.say(&format!(
            "{alias} is taken away, and with it {} of {job}: tpu sim preempt {alias}",
            counted(at_work.len(), "process")
        ));
        Ok(())
    }

    /// Lets a training lose its peers once it has a checkpoint.
    fn break_peers(&mut self, job: &JobId, alias: &str, name: &str) -> Result<(), Error> {
        self.has_checkpoint(job)?;
        Simulator::open(self.ctx).pull(&TargetName::from(name), &Pull::Grpc)?;
        self.say(&format!("{job} loses its connection: tpu sim grpc {alias}"));
        Ok(())
    }

    /// The daemon has brought a training back from its checkpoint, once, and it has finished.
    fn brought_back(&mut self, parent: &JobId, kind: ErrorKind) -> Result<JobId, Error> {
        let expected = format!("to be brought back after {kind}");
        let view = self.until(parent, &expected, |view| {
            view.stored == Status::Resumed(Some(kind)) && !view.leaf
        })?;
        let why = view.shown.evidence.map(|evidence| evidence.line).unwrap_or_default();
        let data = self.ctx.data()?;
        let window = job_of(&data, parent)?.child;
        let child = JobId::new(parent.user.clone(), window.expect("the leaf is another one"));
        self.say(&format!("{child} goes on for {parent}, by itself: {kind}, \"{}\"", why.trim()));
        self.finished_from_checkpoint(&child)?;
        self.one_child(parent, &child)?;
        let data = self.ctx.data()?;
        let record = job_of(&data, &child)?;
        let counts = record.counts();
        let counted = if kind == ErrorKind::Preempted { counts.capacity } else { counts.infra };
        if (record.stage, counted) != (1, 1) {
            return Err(Error::failed(format!(
                "expected {child} to be stage 1 with one reaction counted, found stage {} and {counted}",
                record.stage
            )));
        }
        Ok(child)
    }

    /// A failure of the program is shown with its evidence, and nothing happens.
    fn left_alone(&mut self, job: &JobId) -> Result<(), Error> {
        let view =
            self.until(job, "to be out of memory", |view| view.failure() == Some(ErrorKind::Oom))?;
        let line = view.shown.evidence.map(|evidence| evidence.line).unwrap_or_default();
        self.say(&format!("{job} is out of memory: \"{}\"", line.trim()));
        let next = view.next.map(|next| next.reason).unwrap_or_default();
        self.say(&format!("  what happens by itself: {next}"));
        if !view.leaf {
            return Err(Error::failed(format!("expected {job} to be left alone")));
        }
        Ok(())
    }

    fn ends_like(&mut self, job: &JobId, straight: &str) -> Result<(), Error> {
        let resumed = self.last_words(job)?;
        if resumed == straight {
            return Ok(());
        }
        Err(Error::failed(format!(
            "{job} ended with '{resumed}', the uninterrupted run with '{straight}'"
        )))
    }

    /// The processes of a job on the machines of its target.
    fn on_workers(&self, id: &JobId) -> Result<Vec<Process>, Error> {
        let data = self.ctx.data()?;
        let table = Table::read()
            .map_err(|e| Error::failed(format!("cannot read the process table: {e}")))?;
        let of = |address: &str| table.with_variable("TPU_MACHINE", address, self.ctx.env.uid);
        let workers = worker_processes::of_job(self.ctx, job_of(&data, id)?);
        Ok(workers.iter().flat_map(|worker| of(&worker.address)).cloned().collect())
    }

    /// Waits for the second checkpoint.
    fn has_checkpoint(&mut self, job: &JobId) -> Result<(), Error> {
        let ctx = self.ctx;
        self.until(job, "to have a checkpoint", |view| {
            let found = checkpoint::of_attempt(ctx, &view.id);
            matches!(found, Ok(checkpoint::Checkpoints::Newest(step, _)) if step >= 20)
        })?;
        Ok(())
    }

    fn lose_checkpoints(&self, job: &JobId) -> Result<(), Error> {
        let data = self.ctx.data()?;
        let log = job_of(&data, job)?.log_dir.clone().unwrap_or_default();
        let lost = std::fs::remove_dir_all(Path::new(&log).join("checkpoints"));
        lost.map_err(|e| Error::failed(format!("the sabotage failed: {e}")))
    }

    /// Kills a training with SIGKILL once it has a checkpoint and before it is through.
    fn strike(&mut self, job: &JobId) -> Result<(), Error> {
        self.has_checkpoint(job)?;
        let data = self.ctx.data()?;
        for process in runners::processes(self.ctx, &data, job_of(&data, job)?)? {
            procs::signal(&process, Signal::Kill)
                .map_err(|e| Error::failed(format!("cannot kill {}: {e}", process.pid)))?;
        }
        let view = self.until(job, "to show the signal", |view| {
            view.failure() == Some(ErrorKind::KilledBySignal) && view.exit.is_some()
        })?;
        let why = view.shown.evidence.map(|evidence| evidence.line).unwrap_or_default();
        self.say(&format!("{job} was killed in the middle: {} ({why})", view.shown.status));
        Ok(())
    }

    /// Resumes from the checkpoint and waits for the end.
    fn resume(&mut self, parent: &JobId) -> Result<JobId, Error> {
        let request = AgainRequest {
            job: parent.clone(),
            how: Succession::Resume,
            on: None,
            target: None,
            force: false,
            however_ended: false,
            from_nothing: false,
            setup: SetUpHow::Auto,
            turn: None,
            environment: WhichEnvironment::Kept,
        };
        let again = resume::again(self.ctx, &request).map_err(|error| {
            Error::failed(format!("expected {parent} to resume from its checkpoint: {error}"))
        })?;
        let child = again.launched.job;
        self.say(&format!(
            "{child} resumes {parent} from its checkpoint: tpu resume w={}",
            parent.window
        ));
        self.finished_from_checkpoint(&child)?;
        self.one_child(parent, &child)?;
        Ok(child)
    }

    /// A training has finished and had begun at a checkpoint.
    fn finished_from_checkpoint(&mut self, job: &JobId) -> Result<(), Error> {
        self.until(job, "to finish", |view| view.shown.status == Status::Finished)?;
        let output = self.output(job)?;
        let Some(from) = output
            .lines()
            .find_map(|line| line.find("resumed at step").map(|at| line.split_at(at).1.to_owned()))
        else {
            return Err(Error::failed(format!("expected {job} to begin at a checkpoint")));
        };
        self.say(&format!("{job} has finished; it began with: {from}"));
        Ok(())
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
        let output = logs::output(self.ctx, job)?;
        Ok(String::from_utf8_lossy(&output.bytes).into_owned())
    }

    /// The interrupted job has this child and no other.
    fn one_child(&mut self, parent: &JobId, child: &JobId) -> Result<(), Error> {
        let data = self.ctx.data()?;
        let children: HashSet<JobId> = data
            .jobs()
            .filter(|job| job.user == parent.user && job.father == Some(parent.window))
            .map(tpu_core::model::job::Job::id)
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
        let killed = kill::kill_one(self.ctx, job, Unreached::Refuse)?;
        let left = runners::processes(self.ctx, &data, &record)?;
        if !left.is_empty() {
            return Err(Error::failed(format!(
                "expected {job} to be stopped, there is still {}",
                counted(left.len(), "process")
            )));
        }
        self.say(&format!(
            "{job} was stopped: tpu kill w={} ({})",
            job.window,
            counted(killed.processes, "process")
        ));
        let cleaned = clean::clean(self.ctx, &job.user, clean::Extent::of(clean::Ends::All))?;
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
            let view = outlook::look_at(self.ctx, job)?;
            if is_so(&view) {
                return Ok(view);
            }
            if self.ctx.clock.monotonic() >= deadline {
                let evidence = view.shown.evidence.map(|evidence| evidence.line);
                return Err(Error::failed(format!(
                    "expected {job} {expected} within {} s; it is {}{}",
                    PATIENCE.as_secs(),
                    view.shown.status,
                    evidence.map(|line| format!(": \"{}\"", line.trim())).unwrap_or_default(),
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
