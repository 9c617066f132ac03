//! What happens on the cluster of the world: programs begin, work, keep their work and end as the batch script has them
//! end; jobs are preempted, nodes fail, the controller is away, slow, or set up anew.

use std::path::Path;
use std::sync::Arc;

use tpu::model::ids::UserName;
use tpu::model::spec::{JobSpec, TargetRequest};
use tpu::ops::launch::{self, RunRequest};
use tpu::sys::random::Random as _;

use super::actors::{self, USERS};
use super::observer::{Cause, Health, Program};
use super::slurm::{Site, TARGETS, token_of};
use super::tpu::call;
use super::world::{Pid, Purpose, World};
use crate::slurm::sim::{SimJob, Weather};

/// No process of any machine of ours: what runs on a node.
const ON_A_NODE: Pid = Pid { host: usize::MAX, pid: 0, start: 0 };

/// The name of a job of somebody else.
const THEIRS: &str = "theirs";

/// A new lineage on one of the partitions.
pub(crate) fn run(world: &Arc<World>, host: usize, on: usize, rule: &str, needs: f64) {
    let number = {
        let mut state = world.state();
        let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
        let lineage = state.observer.lineages.entry(number).or_default();
        (lineage.rule, lineage.needs) = (rule.to_owned(), needs);
        number
    };
    let of = |all: &[&'static str]| all.get(on % all.len()).copied().unwrap_or_default();
    let spec = JobSpec {
        configs: vec![("config.lineage".to_owned(), number.to_string())],
        rules: Some(rule.to_owned()),
        command: Some(vec!["./train".into()]),
        ..JobSpec::on(TargetRequest::Named(of(&TARGETS).to_owned()))
    };
    let request = RunRequest { user: UserName::from(of(&USERS)), spec, on: None, force: false };
    let _pid = call(world, &actors::start(host, Purpose::Run), move |ctx| {
        drop(launch::launch(ctx, &request));
    });
}

/// Programs run on the nodes.
pub(crate) fn nodes(world: &Arc<World>, site: &Site) {
    let mut since = world.state().now;
    loop {
        let pause = world.state().between(200, 1_500);
        actors::wait(world, pause);
        let passed = {
            let state = world.state();
            let passed = state.now.saturating_sub(since).as_secs_f64();
            since = state.now;
            passed
        };
        site.hold(world);
        for job in site.live().iter().filter(|job| job.state == "RUNNING") {
            work(world, site, (job, passed));
        }
    }
}

/// A job that Slurm has started works for a while.
fn work(world: &World, site: &Site, (job, passed): (&SimJob, f64)) {
    let Some(order) = site.order(&job.name) else { return };
    let log = order.log.clone();
    let key = (job.name.clone(), job.restarts);
    let Some((number, mut fresh)) = site.begun().get(&key).copied() else {
        if site.is_given_up(job) {
            // As the batch script does.
            site.cluster.end_by(job.id, 54);
            return;
        }
        let number = world.state().program_begins(Program {
            token: token_of(&job.name).to_owned(),
            lineage: order.lineage,
            target: TARGETS[0].to_owned(),
            pid: ON_A_NODE,
            health: Health::Working,
            cause: None,
            last_words: "",
            exit: 0,
            began: std::time::Duration::ZERO,
            struck: None,
            ended: None,
            kept: false,
        });
        site.disk.append(&log, "starting\n");
        site.begun().insert(key, (number, 0.0));
        return;
    };
    let mut state = world.state();
    let Some(program) = state.observer.programs.get(number).cloned() else { return };
    if program.health == Health::Hung {
        drop(state);
        end(site, job, (&log, program.exit, program.last_words));
        return;
    }
    let (keeps, mistake) = (state.habits.keeps_s, state.habits.mistake);
    fresh += passed;
    let known = state.observer.lineages.entry(order.lineage).or_default();
    known.worked += passed;
    let step = known.worked;
    let keeps_now = fresh >= keeps || known.kept + fresh >= known.needs;
    if keeps_now {
        known.kept += fresh;
        fresh = 0.0;
    }
    let is_done = known.kept >= known.needs;
    known.finished |= is_done;
    let has_mistake = !is_done && state.chance(mistake);
    drop(state);
    site.begun().insert(key, (number, fresh));
    site.disk.append(&log, &format!("step {step:.0} loss 0.41\n"));
    if keeps_now && let Some(dir) = log.parent() {
        let checkpoint = dir.join(format!("checkpoint_{step:.0}"));
        let _made = tpu::runner::files::Files::make_dir(&site.disk, &checkpoint);
        site.disk.write(&checkpoint.join("weights"), "w");
    }
    if is_done {
        end(site, job, (&log, 0, "done\n"));
    } else if has_mistake {
        let words = "Traceback (most recent call last):\n  File \"main.py\", line 61, in <module>\n\
                     KeyError: 'lr'\n";
        end(site, job, (&log, 1, words));
    }
}

/// A program ends by itself, and its script writes down how.
fn end(site: &Site, job: &SimJob, (log, code, words): (&Path, i32, &str)) {
    site.disk.append(log, words);
    if let Some(dir) = log.parent() {
        let text = format!("{} {} {code}\n", job.id, job.restarts);
        site.disk.write(&dir.join("slurm-exit"), &text);
    }
    site.cluster.end(job.id, code);
}

/// Things happen to the cluster, until it is enough.
pub(crate) fn fate(world: &Arc<World>, site: &Site) {
    loop {
        let nap = world.state().between(1_500, 12_000);
        actors::wait(world, nap);
        if world.state().calm {
            return;
        }
        happen(world, site);
    }
}

/// One thing.
fn happen(world: &World, site: &Site) {
    let (choice, draw, long) = {
        let state = world.state();
        (state.rng.below(100), state.rng.below(1_000), state.between(500, 12_000))
    };
    let running = || {
        let mut jobs = site.live();
        jobs.retain(|job| job.state == "RUNNING");
        let index = usize::try_from(draw.checked_rem(jobs.len() as u64)?).ok()?;
        jobs.get(index).cloned()
    };
    let note = |text: String| world.state().note(None, &text);
    match choice {
        0..25 => {
            let Some(job) = running() else { return };
            let is_requeued = draw % 3 == 0;
            note(format!("{} is preempted, requeued: {is_requeued}", job.name));
            site.cluster.preempt(job.id, is_requeued);
        }
        25..33 => {
            let node = if draw % 2 == 0 { "n1" } else { "n2" };
            note(format!("{node} fails"));
            site.cluster.fail_node(node);
        }
        33..41 => {
            note("the nodes are there again".to_owned());
            site.cluster.mend_nodes();
        }
        41..68 => {
            let weather = match draw % 6 {
                0 => Weather::Away,
                1 => Weather::Hangs,
                2 => Weather::Slow(long),
                _ => Weather::Fair,
            };
            note(format!("the controller: {weather:?}"));
            site.cluster.set_weather(weather);
        }
        68..73 => {
            note("it is set up anew".to_owned());
            site.cluster.reset();
        }
        73..80 => {
            note("it forgets what is over".to_owned());
            site.cluster.forget_ended();
        }
        80..90 => {
            let id = site.cluster.submit_by_hand(THEIRS);
            note(format!("somebody else submits {id}"));
        }
        _ => {
            let Some(job) = running() else { return };
            let mut state = world.state();
            let token = token_of(&job.name);
            let its = state.observer.live().find(|(_, program)| program.token == token);
            if let Some(number) = its.map(|(number, _)| number) {
                let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to \
                             all addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
                state.fail(number, Cause::Grpc, words, 1);
            }
        }
    }
}

/// All is well with it from now on.
pub(crate) fn calm(site: &Site) {
    site.cluster.set_weather(Weather::Fair);
    site.cluster.mend_nodes();
    // One that lists nothing at all may have lost what it had: nobody would ever know.
    site.cluster.submit_by_hand(THEIRS);
}
