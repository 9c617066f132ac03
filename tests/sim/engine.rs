//! What happens on the cluster of the world, of whatever kind: programs begin, work, keep their work and end, and
//! something befalls them.

use std::sync::Arc;

use tpu_core::model::ids::UserName;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_ops::act::launch::{self, RunRequest};
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS};
use super::cluster::{AtWork, Cluster, Draw, TARGETS};
use super::observer::{Cause, Health, Program};
use super::tpu::call;
use super::world::{Pid, Purpose, World};

/// No process of any machine of ours: what runs on a node.
const ON_A_NODE: Pid = Pid { host: usize::MAX, pid: 0, start: 0 };

/// A new lineage on one of the parts of the cluster.
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
    let request = RunRequest::new(UserName::from(of(&USERS)), spec);
    let _pid = call(world, &actors::start(host, Purpose::Run), move |ctx| {
        drop(launch::launch(ctx, &request));
    });
}

/// Programs run on the nodes.
pub(crate) fn nodes(world: &Arc<World>, cluster: &dyn Cluster) {
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
        cluster.hold(world);
        for at in cluster.at_work() {
            work(world, cluster, (&at, passed));
        }
    }
}

/// A job that the cluster has started works for a while.
fn work(world: &World, cluster: &dyn Cluster, (at, passed): (&AtWork, f64)) {
    let known = cluster.begun().get(&at.start).copied();
    let Some((number, mut fresh)) = known else {
        if cluster.refuses(at) {
            return;
        }
        let mut state = world.state();
        let began = state.now;
        let number = state.program_begins(Program {
            began,
            token: at.token.clone(),
            lineage: at.order.lineage,
            target: TARGETS[0].to_owned(),
            pid: ON_A_NODE,
            health: Health::Working,
            cause: None,
            last_words: "",
            exit: 0,
            struck: None,
            ended: None,
            kept: false,
            is_done: false,
        });
        drop(state);
        cluster.prints(at, "starting\n");
        cluster.begun().insert(at.start.clone(), (number, 0.0));
        return;
    };
    let mut state = world.state();
    let Some(program) = state.observer.programs.get(number).cloned() else { return };
    if program.health == Health::Hung {
        drop(state);
        end(cluster, at, (program.exit, program.last_words));
        return;
    }
    let (keeps, mistake) = (state.habits.keeps_s, state.habits.mistake);
    fresh += passed;
    let known = state.observer.lineages.entry(at.order.lineage).or_default();
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
    cluster.begun().insert(at.start.clone(), (number, fresh));
    cluster.prints(at, &format!("step {step:.0} loss 0.41\n"));
    if keeps_now {
        cluster.keeps(at, step);
    }
    if is_done {
        end(cluster, at, (0, "done\n"));
    } else if has_mistake {
        let words = "Traceback (most recent call last):\n  File \"main.py\", line 61, in <module>\n\
                     KeyError: 'lr'\n";
        end(cluster, at, (1, words));
    }
}

/// A program ends by itself.
fn end(cluster: &dyn Cluster, at: &AtWork, (code, words): (i32, &str)) {
    cluster.prints(at, words);
    cluster.ends(at, code);
}

/// Things happen to the cluster, until it is enough.
pub(crate) fn fate(world: &Arc<World>, cluster: &dyn Cluster) {
    loop {
        let nap = world.state().between(1_500, 12_000);
        actors::wait(world, nap);
        if world.state().calm {
            return;
        }
        let draw = {
            let state = world.state();
            let (choice, draw) = (state.rng.below(100), state.rng.below(1_000));
            Draw { choice, which: draw, long: state.between(500, 12_000) }
        };
        if draw.choice >= 90 {
            lose_connection(world, cluster, draw.which);
        } else {
            cluster.happens(world, draw);
        }
    }
}

/// A program loses its connection to its like.
fn lose_connection(world: &World, cluster: &dyn Cluster, draw: u64) {
    let at_work = cluster.at_work();
    let index =
        draw.checked_rem(at_work.len() as u64).and_then(|index| usize::try_from(index).ok());
    let Some(at) = index.and_then(|index| at_work.get(index)) else { return };
    let mut state = world.state();
    let its = state.observer.live().find(|(_, program)| program.token == at.token);
    if let Some(number) = its.map(|(number, _)| number) {
        let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to \
                     all addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
        state.fail(number, Cause::Grpc, words, 1);
    }
}
