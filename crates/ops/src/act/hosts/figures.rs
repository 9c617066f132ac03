//! Asks machines how much they and the jobs on them have to do, once a minute at most, and keeps what they said for
//! whoever looks.
//!
//! Who looks asks for a round, as often as he likes: only machines that nobody has asked within the last minute are
//! asked, by whichever process comes first. What they say lies beside the state file, where every screen and command
//! reads it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::watch;
use crate::observe::runners;
use crate::{Ctx, Error};
use tpu_core::model::capacity::Memory;
use tpu_core::model::data::Data;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::figures::{self, HostFigures, JobFigures, SeenFigures};
use tpu_core::model::ids::{JobId, LaunchToken, TargetName};
use tpu_core::model::job::Job;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::Timestamp;
use tpu_system::store::atomic;

use super::addresses;
use super::probe::{Answer, Question, answers, broke_off};

/// By what a machine looks for the processes of jobs.
const LOOK: &str = include_str!("../../../../../assets/look.sh");

/// What a machine is asked by.
const FIGURES: &str = concat!(
    include_str!("../../../../../assets/machine.sh"),
    include_str!("../../../../../assets/figures.sh")
);

/// Seconds from one question to a machine to the next, at least.
const EVERY_S: u64 = 60;

/// How long a machine may take. It looks twice, a second apart, and gives its driver some time.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was said longer ago than this, in seconds, is not kept any more.
const FORGOTTEN_S: u64 = 24 * 3600;

/// Mode of the file: the lab's group reads it.
const MODE: u32 = 0o660;

/// Which machines somebody wants to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All of somebody's own, and this one: somebody looks at them.
    Everyone,
    /// Those on which jobs are at work: somebody may look later.
    AtWork,
}

/// What was said last, by the names of the machines.
pub type Figures = BTreeMap<TargetName, HostFigures>;

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// Of machines that everybody reaches by one name.
    hosts: Figures,
    /// Of the machines from which this state file is used, each `local` there, by their places.
    here: BTreeMap<String, HostFigures>,
}

impl Kept {
    fn read(ctx: &Ctx) -> Self {
        let read = || ctx.store.disk().read(&ctx.store.paths().figures()).ok();
        read().and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default()
    }

    /// Whatever cannot be written is not known to others: the next round asks again.
    fn write(&self, ctx: &Ctx) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let path = ctx.store.paths().figures();
        Ok(atomic::write_passing(&**ctx.store.disk(), &path, &bytes, MODE)?)
    }

    fn get(&self, ctx: &Ctx, data: &Data, target: &Target) -> Option<&HostFigures> {
        if target.is_here() {
            return self.here.get(&watch::place(ctx));
        }
        let is_same = |host: &&HostFigures| host.addresses == addresses(data, &target.name);
        self.hosts.get(&target.name).filter(is_same)
    }

    fn set(&mut self, ctx: &Ctx, target: &Target, host: HostFigures) {
        if target.is_here() {
            self.here.insert(watch::place(ctx), host);
        } else {
            self.hosts.insert(target.name.clone(), host);
        }
    }

    /// Whether it may be asked again. A moment far ahead was written under another clock.
    fn is_due(&self, ctx: &Ctx, data: &Data, target: &Target, now: Timestamp) -> bool {
        self.get(ctx, data, target).is_none_or(|host| {
            now.seconds_since(host.asked_at) >= EVERY_S
                || host.asked_at.seconds_since(now) >= EVERY_S
        })
    }

    fn forget_old(&mut self, now: Timestamp) {
        let is_young = |host: &HostFigures| now.seconds_since(host.asked_at) < FORGOTTEN_S;
        self.hosts.retain(|_, host| is_young(host));
        self.here.retain(|_, host| is_young(host));
    }
}

/// What machines said last. Asks nobody.
pub fn last(ctx: &Ctx, data: &Data) -> Figures {
    let kept = Kept::read(ctx);
    if kept.hosts.is_empty() && kept.here.is_empty() {
        return Figures::new();
    }
    let known = measurable(ctx, data);
    known
        .into_iter()
        .filter_map(|target| {
            let host = kept.get(ctx, data, &target)?.clone();
            Some((target.name, host))
        })
        .collect()
}

/// What is known of a job, with the figures of its machine. Asks nobody.
pub fn of_job(ctx: &Ctx, data: &Data, id: &JobId) -> Option<(HostFigures, JobFigures)> {
    let target = data.target(&data.job(id)?.tpu)?;
    let host = Kept::read(ctx).get(ctx, data, &target)?.clone();
    let job = host.job(id, ctx.clock.now())?.clone();
    Some((host, job))
}

/// Asks the machines that nobody has asked within the last minute, and waits for their answers. While another process
/// asks, nobody is asked: its answers serve everybody.
pub fn round(ctx: &Ctx, whom: Whom) -> Result<(), Error> {
    let data = ctx.data()?;
    let mut wanted = measurable(ctx, &data);
    if whom == Whom::AtWork {
        wanted
            .retain(|target| data.jobs().any(|job| job.tpu == target.name && job.status.is_live()));
    }
    let due = |kept: &Kept| -> Vec<Target> {
        let now = ctx.clock.now();
        wanted.iter().filter(|target| kept.is_due(ctx, &data, target, now)).cloned().collect()
    };
    if ctx.store.is_dry_run() || due(&Kept::read(ctx)).is_empty() {
        return Ok(());
    }
    let asked = ctx.store.asking_for_figures(|| {
        let kept = Kept::read(ctx);
        // Somebody may have asked them since.
        let due = due(&kept);
        if due.is_empty() { Ok(()) } else { ask(ctx, &data, kept, &due) }
    })?;
    // Who does not ask because somebody else does has not failed.
    asked.unwrap_or(Ok(()))
}

/// The targets that are one machine each, and can be asked.
fn measurable(ctx: &Ctx, data: &Data) -> Vec<Target> {
    let built_in = Target::built_in().into_iter().map(|target| target.name);
    let own = data.registry().registrations().filter(|(_, of)| of.addresses.len() == 1);
    let names = built_in.chain(own.map(|(name, _)| name.clone()));
    let is_one = |target: &Target| match target.machines {
        Machines::Here => ctx.procs.can_tell(),
        Machines::Fixed => true,
        Machines::Provided | Machines::Engine => false,
    };
    names.filter_map(|name| data.target(&name)).filter(is_one).collect()
}

/// Asks these. That they are asked is written down before: who dies over it does not have them asked twice.
fn ask(ctx: &Ctx, data: &Data, mut kept: Kept, due: &[Target]) -> Result<(), Error> {
    let asked_at = ctx.clock.now();
    kept.forget_old(asked_at);
    for target in due {
        let before = kept.get(ctx, data, target).cloned();
        let addresses = addresses(data, &target.name);
        let (seen, silent) = before.map_or((None, None), |host| (host.seen, host.silent));
        kept.set(ctx, target, HostFigures { asked_at, addresses, seen, silent });
    }
    kept.write(ctx)?;
    let jobs: Vec<Vec<&Job>> = due.iter().map(|target| jobs_on(data, target)).collect();
    let questions = due.iter().zip(&jobs);
    let questions = questions.map(|(target, jobs)| question(ctx, data, target, jobs)).collect();
    let said = answers(ctx, data, questions, PATIENCE);
    let at = ctx.clock.now();
    for ((target, jobs), said) in due.iter().zip(&jobs).zip(said) {
        let Some(host) = kept.get(ctx, data, target).cloned() else { continue };
        let read = |answer: Answer| figures::read(&answer.text).ok_or_else(broke_off);
        let host = match said.and_then(read) {
            Ok(said) => {
                let seen = Some(seen(target, jobs, said, at));
                HostFigures { seen, silent: None, ..host }
            }
            Err(why) => HostFigures { silent: Some(why), ..host },
        };
        kept.set(ctx, target, host);
    }
    kept.write(ctx)
}

/// The jobs that may have processes on a machine.
fn jobs_on<'a>(data: &'a Data, target: &Target) -> Vec<&'a Job> {
    let may = |job: &&Job| {
        let is_unseen = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
        job.tpu == target.name && (job.status.is_live() || is_unseen)
    };
    data.jobs().filter(may).collect()
}

/// What a process of a job is marked by in the answer: on this machine the number of the job in the list of those that
/// were looked for, elsewhere its launch.
fn mark(target: &Target, (place, job): (usize, &Job)) -> Option<String> {
    if target.is_here() {
        return Some(place.to_string());
    }
    job.launch.as_ref().map(|launch| launch.token.as_str().to_owned())
}

fn question(ctx: &Ctx, data: &Data, target: &Target, jobs: &[&Job]) -> Question {
    let (processes, look, input) = if jobs.is_empty() {
        // A search through all processes is what costs a machine most.
        ("", "", String::new())
    } else if target.is_here() {
        ("cat", "", here(ctx, data, target, jobs))
    } else {
        ("listed", LOOK, String::new())
    };
    let script = format!("processes='{processes}'\n{look}{FIGURES}");
    Question { target: target.clone(), script, input: input.into_bytes() }
}

/// The processes of the jobs on this machine, as `assets/look.sh` prints them; without the end where they cannot be
/// looked at.
fn here(ctx: &Ctx, data: &Data, target: &Target, jobs: &[&Job]) -> String {
    let mut text = String::new();
    for (place, job) in jobs.iter().enumerate() {
        let Some(mark) = mark(target, (place, job)) else { continue };
        let Ok(found) = runners::processes(ctx, data, job) else { return String::new() };
        for process in found {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{mark} {} {}", process.pid, process.start);
        }
    }
    text + "done\n"
}

/// What a machine has said, with its jobs by their names.
fn seen(
    target: &Target,
    jobs: &[&Job],
    (machine, by_launch): (MachineFact, Option<figures::ByLaunch>),
    at: Timestamp,
) -> SeenFigures {
    // Where there is none to look for, nobody has looked.
    let by_launch = by_launch.or_else(|| jobs.is_empty().then(figures::ByLaunch::new));
    let named = by_launch.map(|mut by_launch| {
        let one = |(place, job): (usize, &&Job)| {
            let mark = mark(target, (place, job))?;
            let token = LaunchToken::new(mark);
            let (mut figures, pids) = by_launch.remove(&token)?;
            let given = job.share.as_ref().and_then(|share| share.gpus.clone());
            figures.gpus = given.unwrap_or_default().into_iter().map(|gpu| (gpu, None)).collect();
            for gpu in &machine.gpus {
                for process in gpu.processes.iter().filter(|on| pids.contains(&on.pid)) {
                    let used = figures.gpus.entry(gpu.index).or_default();
                    let Some(more) = process.used else { continue };
                    let sum = used.unwrap_or_default().0.saturating_add(more.0);
                    *used = Some(Memory(sum));
                }
            }
            Some((job.id(), figures))
        };
        jobs.iter().enumerate().filter_map(one).collect()
    });
    SeenFigures { at, machine, jobs: named }
}
