//! Hours in which the network between the workers is down: every attempt fails as soon as it has begun. Who waits for
//! infrastructure tries less and less often, and goes on when it is back; who does not is over after the quick tries.

use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::ids::UserName;
use tpu_core::model::settings::SettingOrigin;

use super::DATA;
use super::actors::{self, USERS};
use super::observer::{Cause, Health};
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::world::{Faults, World};

/// When it begins, how long it lasts, and when all should be over.
const BEGINS: Duration = Duration::from_secs(3_600);
const LASTS: Duration = Duration::from_secs(6 * 3_600);
const OVER: Duration = Duration::from_secs(24 * 3_600);

/// What a job needs, in seconds: it is at work when the outage begins.
const NEEDS_S: f64 = 7_200.0;

/// What became of the job of one user.
#[derive(Debug)]
pub(crate) struct OfUser {
    /// When each attempt began.
    pub(crate) attempts: Vec<Duration>,
    pub(crate) is_finished: bool,
    /// Why its lineage is over, by its record.
    pub(crate) stopped: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) outcome: Outcome,
    /// Of the first user, who waits as everybody does, and of the second, who does not.
    pub(crate) users: [OfUser; 2],
    /// When the network was back.
    pub(crate) back: Duration,
}

/// Plays it.
pub(crate) fn play(seed: u64) -> Told {
    let story = Story {
        seed,
        hosts: 1,
        targets: 2,
        chaos: OVER,
        faults: Faults::default(),
        print: false,
        engine: None,
        has_queues: false,
        has_others: false,
    };
    let world = new_world(&story);
    let mut data = actors::data(&world).expect("the data file of a new world");
    let impatient = UserName::from(USERS[1]);
    let origin = SettingOrigin::User(USERS[1].to_owned());
    let user = data.user_mut(&impatient).expect("a user of every world");
    user.settings.set("patience", "0", &origin).expect("a time");
    world.disk.put(DATA.as_ref(), &data.to_bytes(), 0o660, (1000, 1000));
    {
        let mut state = world.state();
        state.most_steps = u64::MAX;
        state.lazy = Duration::from_secs(20);
        state.lazy_from = Duration::from_millis(20);
        state.habits.says_ms = (20_000, 40_000);
        state.habits.keeps_s = 600.0;
        state.habits.mistake = 0;
        state.habits.counts_on = true;
    }
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    stage.actor(|world| (0..2).for_each(|on| actors::run(world, 0, on, "pre", NEEDS_S)));
    stage.actor(break_down);
    stage.actor(|world| {
        actors::wait(world, OVER);
        world.state().over = true;
    });
    stage.play();
    let users = [0, 1].map(|at| of_user(&world, at));
    Told { outcome: outcome(&world), users, back: BEGINS + LASTS }
}

/// As long as the network is down whoever works loses its peers.
fn break_down(world: &Arc<World>) {
    actors::wait(world, BEGINS);
    while world.state().now < BEGINS + LASTS {
        let mut state = world.state();
        let working = state.observer.live().filter(|(_, p)| p.health == Health::Working);
        let working: Vec<usize> = working.map(|(number, _)| number).collect();
        for number in working {
            let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to all \
                         addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
            state.fail(number, Cause::Grpc, words, 1);
        }
        drop(state);
        actors::wait(world, Duration::from_secs(5));
    }
}

fn of_user(world: &World, at: u32) -> OfUser {
    let data = actors::data(world).expect("the data file");
    let leaf =
        data.jobs().find(|job| job.child.is_none() && actors::lineage_of(job) == Some(at + 1));
    let stopped = leaf.and_then(|job| job.recovery.as_ref()?.stopped.clone());
    let state = world.state();
    let own = state.observer.programs.iter().filter(|program| program.lineage == at + 1);
    let attempts = own.map(|program| program.began).collect();
    let is_finished = state.observer.lineages.get(&(at + 1)).is_some_and(|of| of.finished);
    OfUser { attempts, is_finished, stopped }
}
