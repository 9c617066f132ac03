//! Who acts in the world beside the programs: persons with their commands, whoever keeps the daemon
//! running, and fate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tpu::daemon;
use tpu_core::model::data::Data;
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::{Job, Succession};
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::view::Whose;
use tpu_engine::provider::Trouble;
use tpu_engine::runner::Unreached;
use tpu_lab::sim::{Call, Event};
use tpu_ops::act::launch::{self, RunRequest};
use tpu_ops::act::resume::{self, AgainRequest};
use tpu_ops::act::target_spec::Wish;
use tpu_ops::act::{kill, outlook, provision};
use tpu_ops::front::clean::{self, Ends, Extent};
use tpu_ops::observe::snapshot;
use tpu_ops::waiting::queue::keep::Attendant;
use tpu_ops::waiting::{ack, queue};
use tpu_system::sys::random::Random as _;
use tpu_system::tmux::Tmux as _;

use super::observer::{Cause, Health};
use super::tpu::{Start, call, target};
use super::world::{Pid, Purpose, Role, World, end_here};
use super::{DATA, engine, launcher, others};

/// Whoever waits in line, and looks so often.
pub(super) struct Looks(Duration);

impl Looks {
    /// Once in so many seconds.
    pub(super) fn every(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl Attendant for Looks {
    fn rest(&self) -> Duration {
        self.0
    }
}

/// The users of the data file.
pub(crate) const USERS: [&str; 2] = ["alice", "bob"];

/// The rules that persons choose.
const RULES: [&str; 6] = ["pre", "pre", "pre", "pass", "rerun", "reapply"];

/// Waits in the world, as somebody who is no process.
pub(crate) fn wait(world: &World, duration: Duration) {
    end_here(world, duration);
}

/// The records as they are, past all effects.
pub(crate) fn data(world: &World) -> Option<Data> {
    Data::parse(&world.disk.bytes(DATA.as_ref())?).ok()
}

/// The lineage that a record says it is of.
pub(crate) fn lineage_of(job: &Job) -> Option<u32> {
    let at = job.extra_configs.split_once("--config.lineage=")?.1;
    at.split(' ').next()?.parse().ok()
}

/// Notes what a daemon at a machine would do about each job, and why.
pub(crate) fn plan(world: &Arc<World>, host: usize) {
    let told = Arc::clone(world);
    let pid = call(world, &start(host, Purpose::Other), move |ctx| {
        let Ok(survey) =
            outlook::survey(ctx, &mut snapshot::LookMemory::default(), snapshot::ASKED_AT_MOST)
        else {
            return;
        };
        for decision in &survey.decisions {
            let text = format!("plan {}: {} ({})", decision.job, decision.action, decision.reason);
            told.state().note(None, &text);
        }
        for entry in ctx.data().iter().flat_map(|data| data.queues().entries.clone()) {
            if let Some(keeper) = &entry.keeper {
                let (id, owner, seen) = (entry.id(), &keeper.owner, keeper.seen.to_rfc3339());
                let now = ctx.clock.now().to_rfc3339();
                told.state()
                    .note(None, &format!("plan {id}: {owner} waits, seen {seen}, now {now}"));
            }
        }
        for (entry, why) in queue::why_each_waits(ctx).unwrap_or_default() {
            told.state().note(None, &format!("plan {entry}: waits: {why}"));
        }
    });
    while world.state().is_alive(pid) {
        wait(world, Duration::from_millis(100));
    }
}

/// Keeps a daemon running on a machine.
pub(crate) fn keeper(world: &Arc<World>, host: usize) {
    let mut running: Option<Pid> = None;
    loop {
        let is_there = running.is_some_and(|pid| world.state().is_alive(pid));
        if !is_there {
            let start = start(host, Purpose::Monitor);
            running = Some(call(world, &start, |ctx| {
                let never = AtomicBool::new(false);
                drop(daemon::run(ctx, daemon::DaemonRole::default(), &never, &mut std::io::sink()));
            }));
        }
        let nap = world.state().between(2_000, 25_000);
        wait(world, nap);
    }
}

pub(crate) fn start(host: usize, purpose: Purpose) -> Start {
    Start { host, purpose, parent: None, vars: Vec::new() }
}

/// A person logs in where something waits for that, and says so.
pub(crate) fn log_in(world: &Arc<World>) {
    let waits = |data: &Data| {
        data.jobs().any(|job| job.recovery.as_ref().is_some_and(|of| of.login.is_some()))
            || data.queues().makings.iter().any(|making| making.needs_login)
            || data
                .queues()
                .entries
                .iter()
                .any(|entry| entry.held.as_ref().is_some_and(|held| held.needs_login))
    };
    if data(world).is_some_and(|data| waits(&data)) {
        let _pid = call(world, &start(0, Purpose::Other), |ctx| drop(ack::ack(ctx)));
    }
}

/// Persons at a machine give commands, until they are told that it is enough.
pub(crate) fn persons(world: &Arc<World>, host: usize) {
    loop {
        let nap = world.state().between(2_000, 22_000);
        wait(world, nap);
        if world.state().calm {
            return;
        }
        command(world, host);
    }
}

/// A new lineage.
pub(crate) fn run(world: &Arc<World>, host: usize, on: usize, rule: &str, needs: f64) {
    let number = {
        let mut state = world.state();
        let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
        let lineage = state.observer.lineages.entry(number).or_default();
        rule.clone_into(&mut lineage.rule);
        lineage.needs = needs;
        number
    };
    let user = USERS.get(on % USERS.len()).copied().unwrap_or("alice");
    let spec = JobSpec {
        configs: vec![("config.lineage".to_owned(), number.to_string())],
        rules: Some(rule.to_owned()),
        ..JobSpec::on(TargetRequest::Named(target(on)))
    };
    let request = RunRequest::new(UserName::from(user), spec);
    let _pid = call(world, &start(host, Purpose::Run), move |ctx| {
        drop(launch::launch(ctx, &request));
    });
}

/// One command of a person.
fn command(world: &Arc<World>, host: usize) {
    let (choice, on, draw) = {
        let state = world.state();
        let targets = state.targets as u64;
        let on = usize::try_from(state.rng.below(targets.max(1))).unwrap_or(0);
        (state.rng.below(100), on, state.rng.below(u64::MAX))
    };
    let pick = |jobs: Vec<&Job>| {
        let count = jobs.len() as u64;
        let index = usize::try_from(draw.checked_rem(count)?).ok()?;
        jobs.get(index).map(|job| (job.id(), lineage_of(job), token(job)))
    };
    let Some(data) = data(world) else { return };
    let leaves = || data.jobs().filter(|job| job.child.is_none());
    let is_at_engine = |id: &JobId| data.job(id).is_some_and(|job| job.engine.is_some());
    match choice {
        0..25 => {
            let rule = RULES.get(usize::try_from(draw % 6).unwrap_or(0)).copied().unwrap_or("pre");
            if world.site.get().is_some() && draw % 2 == 0 {
                engine::run(world, host, on, rule, 60.0);
            } else {
                run(world, host, on, rule, 60.0);
            }
        }
        25..45 => {
            // What others have left is none of ours.
            let is_ours = |job: &&Job| lineage_of(job).is_some();
            let failed = leaves().filter(|job| !job.status.is_live()).filter(is_ours).collect();
            if let Some((id, lineage, token)) = pick(failed) {
                let how = if draw % 3 == 0 { Succession::Rerun } else { Succession::Resume };
                again(world, host, id.clone(), how, None);
                // Two people have the same thought, or nearly, or another one.
                match (draw % 7, lineage) {
                    (0..2, _) => again(world, host, id, how, None),
                    (2..5, _) if is_at_engine(&id) => again(world, host, id, how, None),
                    (2..5, _) => again(world, host, id, how, Some(target(on))),
                    (5, Some(lineage)) => kill_job(world, host, id, lineage, token),
                    _ => {}
                }
            }
        }
        45..57 => {
            // At an engine most of what is over needs nobody to stop it.
            let is_meant = |job: &&Job| world.site.get().is_none() || job.status.is_live();
            if let Some((id, Some(lineage), token)) = pick(leaves().filter(is_meant).collect()) {
                kill_job(world, host, id, lineage, token);
            }
        }
        57..65 => {
            let told = Arc::clone(world);
            let _pid = call(world, &start(host, Purpose::Clean), move |ctx| {
                let user = UserName::from(if draw % 2 == 0 { "alice" } else { "bob" });
                let force = draw % 3 == 0;
                let extent = |ends, ancestors_too| Extent { ends, ancestors_too, force };
                let cleaned = match draw % 4 {
                    0 => clean::archive_windowless(ctx, &user, force),
                    1 => clean::clear(ctx, &user, extent(Ends::Finished, true)),
                    _ => clean::clean(ctx, &user, extent(Ends::All, draw % 5 == 0)),
                };
                others::clean_is_not_held_up(&told, cleaned.map(drop));
            });
        }
        65..80 => {
            let name = TargetName::new(target(on));
            let anew = draw % 2 == 0;
            let _pid = call(world, &start(host, Purpose::Reapply), move |ctx| {
                drop(provision::provide(ctx, &name, &Wish::default(), anew));
            });
        }
        80..90 => {
            let _pid = call(world, &start(host, Purpose::Other), |ctx| drop(ack::ack(ctx)));
        }
        _ => {
            let _pid = call(world, &start(host, Purpose::Other), |ctx| {
                drop(outlook::look(ctx, &mut snapshot::LookMemory::default(), &Whose::default()));
            });
        }
    }
}

fn token(job: &Job) -> String {
    job.launch.as_ref().map_or_else(String::new, |launch| launch.token.as_str().to_owned())
}

pub(crate) fn again(
    world: &Arc<World>,
    host: usize,
    job: JobId,
    how: Succession,
    target: Option<String>,
) {
    let _pid = call(world, &start(host, Purpose::Again), move |ctx| {
        let by_rules = resume::by_rules(&job, how);
        let request = AgainRequest { target, ..by_rules };
        drop(resume::again(ctx, &request));
    });
}

fn kill_job(world: &Arc<World>, host: usize, job: JobId, lineage: u32, token: String) {
    let told = Arc::clone(world);
    let _pid = call(world, &start(host, Purpose::Kill), move |ctx| {
        told.state().observer.lineages.entry(lineage).or_default().kill_asked = true;
        if kill::kill_one(ctx, &job, Unreached::Refuse).is_ok() {
            told.state().kill_told(lineage, &token);
            if told.site.get().is_some_and(|site| site.is_live(&token)) {
                let text =
                    format!("3: lineage {lineage} is said to be killed, and its engine has it");
                told.state().violation(text);
            }
        }
    });
}

/// Things happen, until it is enough.
pub(crate) fn fate(world: &Arc<World>) {
    loop {
        let nap = world.state().between(1_500, 12_000);
        wait(world, nap);
        if world.state().calm {
            return;
        }
        happen(world);
    }
}

/// Takes a target away, if it is there.
pub(crate) fn preempt(world: &World, name: &str) {
    if world.word(name) != "READY" {
        return;
    }
    world.state().note(None, &format!("{name} is taken away"));
    drop(world.fleet.pull(&Event::Preempt { target: name.to_owned() }));
    world.state().machines_gone(name);
}

/// One thing.
fn happen(world: &Arc<World>) {
    let (choice, on, host, draw) = {
        let state = world.state();
        let of = |count: usize| usize::try_from(state.rng.below(count.max(1) as u64)).unwrap_or(0);
        (state.rng.below(100), of(state.targets), of(state.hosts.len()), state.rng.below(1_000))
    };
    let name = target(on);
    let zone = format!("zone-{}", on % 2);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a story")]
    let long = 2.0 + draw as f64 / 20.0;
    let for_s = Some(long);
    let times = Some(1 + u32::try_from(draw % 4).unwrap_or(0));
    let pull = |event: Event| {
        world.state().note(None, &format!("{event:?}"));
        drop(world.fleet.pull(&event));
    };
    match choice {
        0..22 => preempt(world, &name),
        22..30 => {
            let mut state = world.state();
            let working = state.observer.live().find(|(_, p)| p.health == Health::Working);
            if let Some(number) = working.map(|(number, _)| number) {
                let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to \
                             all addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
                state.fail(number, Cause::Grpc, words, 1);
            }
        }
        30..38 => pull(Event::Outage { zone, for_s }),
        38..44 => pull(Event::LoseAnswer { call: None, target: None, times }),
        44..48 => pull(Event::Twice { call: Some(Call::Create), target: None, times }),
        48..55 => pull(Event::NoCapacity { target: Some(name), zone: None, times, for_s: None }),
        55..60 => {
            pull(Event::Slow { seconds: long / 3.0, call: None, zone: None, times, for_s: None });
        }
        60..63 => pull(Event::Error {
            class: if draw % 2 == 0 { Trouble::Auth } else { Trouble::Permission },
            call: None,
            target: None,
            zone: Some(zone),
            times,
            for_s: None,
        }),
        63..66 => pull(Event::StickDeleting { target: name, for_s }),
        66..74 => lose_window(world, host, draw),
        74..78 => restart_tmux(world, host),
        78..82 => reboot(world, host),
        // Until when a submission may be on its way is told by the wall clock.
        82..86 if world.site.get().is_some() => {}
        82..86 => {
            let mut state = world.state();
            let skew = if draw % 2 == 0 { 3_600 } else { -3_600 };
            state.note(None, &format!("the clock of host {host} jumps by {skew} s"));
            state.jumped = true;
            if let Some(machine) = state.hosts.get_mut(host) {
                machine.skew = if machine.skew == 0 { skew } else { 0 };
            }
        }
        86..96 => strangers(world, host),
        _ => {
            let tmux = tmux(world, host);
            let session = USERS.get(on % 2).copied().unwrap_or("alice");
            let number = 400 + u32::try_from(draw).unwrap_or(0);
            if tmux.open_by_hand(session, number, "mine") {
                world.state().note(None, &format!("a person opens {session}:{number}"));
            }
        }
    }
}

fn tmux(world: &World, host: usize) -> Arc<crate::common::fakes::tmux::FakeTmux> {
    let state = world.state();
    Arc::clone(&state.hosts.get(host).expect("the machine is there").tmux)
}

/// A person closes a window, which its launcher writes down; or the kernel kills that launcher for want of memory.
fn lose_window(world: &World, host: usize, draw: u64) {
    let tmux = tmux(world, host);
    let TmuxFact::Up { panes, .. } = tmux.look() else { return };
    let jobs: Vec<_> = panes.iter().filter(|pane| pane.window_index != 0).collect();
    let Some(index) = draw.checked_rem(jobs.len() as u64) else { return };
    let Some(pane) = jobs.get(usize::try_from(index).unwrap_or(0)) else { return };
    let pid = tmux.process_id(&pane.pane_id);
    let by_hand = !draw.is_multiple_of(3);
    if let (Some(job), Some(token), true) = (&pane.job, &pane.launch, by_hand) {
        let path = launcher::paths().job(job).join("closed");
        world.disk.put(&path, format!("{token}\n").as_bytes(), 0o600, (1000, 1000));
        world.state().closed_by_hand(token.as_str());
    }
    tmux.close_by_hand(&pane.session, pane.window_index);
    let mut state = world.state();
    let how = if by_hand { "a person closes" } else { "the kernel kills what runs in" };
    state.note(None, &format!("{how} {}:{}", pane.session, pane.window_index));
    state.window_closed(None, host, (pane, pid));
}

/// All windows of a machine go.
fn windows_go(world: &World, host: usize) {
    let tmux = tmux(world, host);
    if let TmuxFact::Up { panes, .. } = tmux.look() {
        let mut state = world.state();
        for pane in &panes {
            let pid = state.process_of(host, pane);
            state.window_closed(None, host, (pane, pid));
        }
    }
}

pub(crate) fn restart_tmux(world: &World, host: usize) {
    world.state().note(None, &format!("tmux of host {host} ends"));
    windows_go(world, host);
    tmux(world, host).stop();
}

/// The machine stops and starts again: nothing that ran on it runs, and what was not on the platter is
/// gone if the disk is its own.
pub(crate) fn reboot(world: &World, host: usize) {
    windows_go(world, host);
    let power_fails = {
        let mut state = world.state();
        state.note(None, &format!("host {host} is restarted"));
        let pids: Vec<Pid> = state.hosts.get(host).map_or_else(Vec::new, |machine| {
            let all = machine.procs.iter();
            all.map(|(pid, (start, _))| Pid { host, pid: *pid, start: *start }).collect()
        });
        for pid in pids {
            if let Some(Role::Program(number)) = state.proc(pid).map(|proc| proc.role.clone())
                && let Some(program) = state.observer.programs.get_mut(number)
            {
                program.cause.get_or_insert(Cause::Window);
            }
            state.kill(pid, "the machine stops");
        }
        state.hosts.len() == 1
    };
    let mut place = tpu_core::model::facts::Place {
        host: String::new(),
        boot: String::new(),
        uid: 1000,
        socket: "/tmp/tmux-1000/default".to_owned(),
        server_pid: 0,
        server_start: 0,
    };
    let mut state = world.state();
    let time = state.time();
    if let Some(machine) = state.hosts.get_mut(host) {
        machine.boots += 1;
        place.host.clone_from(&machine.name);
        place.boot = machine.boot();
        machine.tmux = Arc::new(crate::common::fakes::tmux::FakeTmux::new(place, Arc::new(time)));
    }
    if power_fails {
        world.disk.power_failure();
        state.closed_may_be_forgotten();
        let bytes = world.disk.bytes(DATA.as_ref());
        let archive = world.disk.bytes(&super::archive());
        state.power_failed(bytes.as_deref(), archive.as_deref());
    }
}

/// Others start processes, which get ids that jobs had.
fn strangers(world: &World, host: usize) {
    let mut state = world.state();
    let now = state.now;
    let used: BTreeSet<u32> =
        state.used.iter().filter(|(at, _)| *at == host).map(|(_, pid)| *pid).collect();
    let free: Vec<u32> = used
        .into_iter()
        .filter(|pid| state.hosts.get(host).is_some_and(|h| !h.procs.contains_key(pid)))
        .collect();
    for pid in free.into_iter().rev().take(40) {
        let stranger = state.spawn(host, Role::Stranger, Some(pid));
        let ends = now + state.between(5_000, 120_000);
        if let Some(proc) = stranger.and_then(|stranger| state.proc_mut(stranger)) {
            proc.ends = Some(ends);
        }
    }
}

/// All faults end, and everybody who should be there is.
pub(crate) fn calm(world: &World) {
    {
        let mut state = world.state();
        state.note(None, "calm");
        state.calm = true;
        state.faults = super::world::Faults::default();
        state.habits.mistake = 0;
        for machine in &mut state.hosts {
            machine.skew = 0;
        }
    }
    drop(world.fleet.pull(&Event::Calm));
    if let Some(site) = world.site.get() {
        site.calm();
    }
    let hosts = world.state().hosts.len();
    for host in 0..hosts {
        // Persons work at their machines.
        let _opened: bool = tmux(world, host).open_by_hand("elsewhere", 0, "home");
    }
}
