//! P14: what the daemon costs a fleet: a thousand live jobs on a hundred targets of a simulated control plane.
//!
//! A turn in which nothing is to be done is timed in this process, on real windows, step by step as
//! `daemon::turn` takes it; memory is that of a real daemon.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tpu_core::model::facts::TargetFact;
use tpu_core::model::target::ProviderName;
use tpu_engine::provider::{
    Operation, Provider, ProviderError, RequestId, TargetAt, TargetSpec, ZoneAnswer,
};
use tpu_lab::sim::{self, SimCloud};
use tpu_ops::act::outlook::survey;
use tpu_ops::act::{reconcile, record_facts};
use tpu_ops::base::providers::Providers;
use tpu_ops::base::watch::{self, Hosting};
use tpu_ops::observe::snapshot::LookMemory;
use tpu_ops::waiting::queue::pass;
use tpu_ops::{Ctx, Error};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Row, Table};
use crate::common::{Lab, ctx, data, in_turn, record, timed, tmux};
use crate::refresh::{LIST, Panes, resident};

const ROUNDS: usize = 20;
/// Numbers of jobs.
const SIZES: [u32; 4] = [10, 100, 1_000, 5_000];
const ZONES: usize = 3;
const TARGETS: usize = 100;
/// How long a real daemon may take for the turns after which its memory is read.
const LIMIT: Duration = Duration::from_secs(60);

/// Turns by the number of targets and of jobs; then a daemon as a process of its own.
pub(crate) fn turn(table: &mut Table, plan: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    let panes = Panes::open(&lab, plan.windows)?;
    for targets in [1, 10, TARGETS] {
        lab.write(&on_targets(&lab, plan.windows, (targets, "running")))?;
        on_windows(table, &lab, &panes, targets)?;
    }
    memory_of_monitor(table, &lab, "the daemon, 100 targets")?;
    on_records(table)
}

/// Turns where there are only records, by the number of jobs.
fn on_records(table: &mut Table) -> io::Result<()> {
    let mut places = Vec::new();
    for jobs in SIZES {
        let lab = Lab::new()?;
        lab.write(&on_targets(&lab, jobs as usize, (TARGETS, "finished")))?;
        let (ctx, _) = counted(&lab);
        places.push((lab, ctx, LookMemory::default()));
    }
    let turns = places.iter_mut().map(|(_, ctx, memory)| || timed_turn(ctx, memory));
    let mut turns: Vec<_> = turns.collect();
    let mut things: Vec<&mut dyn FnMut() -> io::Result<Duration>> = Vec::new();
    things.extend(turns.iter_mut().map(|turn| turn as &mut dyn FnMut() -> _));
    for (jobs, times) in SIZES.into_iter().zip(in_turn(ROUNDS, &mut things)?) {
        table.point("an idle turn of the daemon on records", "jobs", jobs, times.median());
    }
    Ok(())
}

/// A data file in which so many jobs share the first of a hundred targets in three zones.
fn on_targets(lab: &Lab, jobs: usize, (targets, status): (usize, &str)) -> Value {
    let name = |n: usize| format!("lab-v2-32-{n}");
    let records: Vec<_> =
        (1..=jobs).map(|n| record(lab.dir(), n, &name(n % targets), status)).collect();
    let mut all = data(lab.dir(), &records);
    let zones = (0..ZONES).map(|zone| {
        let names: Vec<_> = (zone..TARGETS).step_by(ZONES).map(name).collect();
        (format!("zone-{zone}"), json!(names))
    });
    all["all_tpus"] = zones.collect::<serde_json::Map<_, _>>().into();
    all["users"]["alice"]["settings"] = json!({ "cloud": "sim" });
    all["monitor_config"] = json!({ "checking_freq": 1, "checking_freq_set": true });
    all
}

/// The effects at this place, with a simulated control plane that counts the zones it is asked about.
fn counted(lab: &Lab) -> (Ctx, Arc<AtomicUsize>) {
    let ctx = ctx(lab);
    let lists = Arc::new(AtomicUsize::new(0));
    let cloud = Counting { cloud: sim::beside(&ctx), lists: Arc::clone(&lists) };
    let providers = Providers::fixed(Arc::new(cloud));
    (Ctx { providers: providers.into(), ..ctx }, lists)
}

/// One turn in which there is nothing to do.
fn idle_turn(ctx: &Ctx, memory: &mut LookMemory) -> Result<usize, Error> {
    let since = ctx.clock.now();
    let is_called = ctx.data()?.ack();
    reconcile::reconcile(ctx)?;
    // Between two turns that are due the last answer of the control plane has grown too old.
    let survey = survey(ctx, memory, Duration::ZERO)?;
    let written = record_facts::record_facts(ctx, &survey)?;
    let is_waited_for = pass::dispatch(ctx, &|_| false)?.waiting > 0;
    watch::note_turn(ctx, (since, Hosting::default(), false), None, BTreeMap::new())?;
    Ok(written + usize::from(is_called) + usize::from(is_waited_for))
}

/// Such a turn, and how long it took.
pub(crate) fn timed_turn(ctx: &Ctx, memory: &mut LookMemory) -> io::Result<Duration> {
    let (done, took) = timed(|| idle_turn(ctx, memory));
    match done {
        Ok(0) => Ok(took),
        Ok(written) => Err(io::Error::other(format!("an idle turn has done {written} things"))),
        Err(error) => Err(io::Error::other(error.message)),
    }
}

/// Turns while every window is there and none prints.
fn on_windows(table: &mut Table, lab: &Lab, panes: &Panes, targets: usize) -> io::Result<()> {
    let (ctx, lists) = counted(lab);
    let mut memory = LookMemory::default();
    // The first ones read every pane, and write down what they see.
    for _ in 0..3 {
        idle_turn(&ctx, &mut memory).map_err(|error| io::Error::other(error.message))?;
    }
    lists.store(0, Ordering::Relaxed);
    let script = panes.all.iter().step_by(10).fold(LIST.to_owned(), |mut script, (pane, _)| {
        script += &format!("capture-pane -p -J -S -200 -t {pane}\n");
        script
    });
    let mut idle = || timed_turn(&ctx, &mut memory);
    let mut floor = || Ok(tmux(lab, &script)?.0);
    let times = in_turn(ROUNDS, &mut [&mut idle, &mut floor])?;
    let [ours, floor] = times.as_slice() else {
        return Err(io::Error::other("two things give two samples"));
    };
    let (least, count) = (floor.median(), panes.all.len());
    let figure = format!("P14 an idle turn of the daemon, {count} live jobs on {targets} targets");
    let row = Row::time(figure, ours).floor(Amount::Time(least));
    table.push(&row.bound(Amount::Time(least * 13 / 10), "≤ 1.3 × P6's floor"))?;
    let size = u32::try_from(targets).unwrap_or(u32::MAX);
    table.point("an idle turn of the daemon", "targets", size, ours.median());
    // Else it would look as if a daemon ran already.
    watch::forget(&ctx);
    let asked = u32::try_from(lists.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
    let each = f64::from(asked) / f64::from(u32::try_from(ROUNDS * ZONES).unwrap_or(1));
    let row =
        Row::of(format!("P14 lists by turn and zone, {targets} targets"), Amount::Count(each));
    table.push(&row.bound(Amount::Count(1.0), "≤ 1"))
}

/// What a daemon occupies after some turns.
pub(crate) fn memory_of_monitor(table: &mut Table, lab: &Lab, what: &str) -> io::Result<()> {
    let ctx = ctx(lab);
    lab.tpu("daemon start")?;
    let clock = SystemClock::new();
    let end = clock.monotonic() + LIMIT;
    let mut turns = std::collections::BTreeSet::new();
    let pid = loop {
        let note = watch::running(&ctx);
        turns.extend(note.as_ref().map(|note| note.turned));
        match note {
            Some(note) if turns.len() > 5 => break note.pid,
            _ if clock.monotonic() > end => {
                return Err(io::Error::other("the daemon does not turn"));
            }
            _ => clock.sleep(Duration::from_millis(50)),
        }
    };
    let resident = Amount::Megabytes(resident(pid)?);
    lab.tpu("daemon stop")?;
    let row = Row::of(format!("P14 resident memory of {what}"), resident);
    table.push(&row.bound(Amount::Megabytes(60.0), "≤ 60 MB"))
}

/// A control plane that counts how many lists it gives.
struct Counting {
    cloud: SimCloud,
    lists: Arc<AtomicUsize>,
}

impl Provider for Counting {
    fn name(&self) -> ProviderName {
        self.cloud.name()
    }

    fn is_here(&self) -> bool {
        self.cloud.is_here()
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        self.lists.fetch_add(zones.len().max(1), Ordering::Relaxed);
        self.cloud.list(zones)
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        self.cloud.describe(target)
    }

    fn create(&self, spec: &TargetSpec, request: &RequestId) -> Result<Operation, ProviderError> {
        self.cloud.create(spec, request)
    }

    fn delete(&self, target: &TargetAt, force: bool) -> Result<Operation, ProviderError> {
        self.cloud.delete(target, force)
    }

    fn start(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.cloud.start(target)
    }

    fn stop(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.cloud.stop(target)
    }

    fn reboot(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.cloud.reboot(target)
    }

    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        self.cloud.operation(name)
    }
}
