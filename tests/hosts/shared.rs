//! Daemons of many accounts on one state file: together they ask a machine on which nothing can begin about as often as one.

use std::collections::BTreeMap;

use tpu_core::model::ids::JobNumber;
use tpu_ops::Ctx;
use tpu_ops::base::watch::{self, Hosting};
use tpu_ops::waiting::queue::pass;

use crate::common::tmux::write_script;

use super::Lab;
use super::figures::{ctx, rounds};

/// So many accounts have a daemon, and each of them a job that waits.
const ACCOUNTS: u32 = 30;
const MACHINES: usize = 6;

/// Counts how often it is asked; somebody else's program is on each of the GPUs.
fn occupied(lab: &Lab, index: usize) {
    let home = lab.hosts.home(index);
    let said = format!(
        "case $1 in\n\
         --query-gpu=*) echo asked >>'{home}/rounds'; for gpu in 0 1 2 3; do \
         echo \"$gpu, GPU-$gpu, Stand-in, 90, 1000, 8192, 60\"; done ;;\n\
         --query-compute-apps=*) for gpu in 0 1 2 3; do echo \"GPU-$gpu, {pid}\"; done ;;\nesac\nexit 0",
        home = home.display(),
        pid = std::process::id(),
    );
    write_script(&home.join("bin/nvidia-smi"), &said);
}

/// The daemon of an account: another tmux server is another place, as another account is.
fn daemon(lab: &Lab, n: u32) -> Ctx {
    let mut ctx = ctx(&lab.env);
    watch::ACTOR.clone_into(&mut ctx.effects.actor);
    ctx.effects.tmux_socket = Some(format!("{}-{n}", lab.env.tmux().socket()));
    ctx
}

/// How often machines were asked since the last call.
fn asked(lab: &Lab) -> Vec<usize> {
    let each = 0..MACHINES;
    let counts = each.clone().map(|index| rounds(lab, index)).collect();
    each.for_each(|index| drop(std::fs::remove_file(lab.hosts.home(index).join("rounds"))));
    counts
}

#[test]
fn thirty_daemons_ask_six_machines_once_a_minute() {
    let Some(lab) = Lab::with(MACHINES, "--max-jobs 8 --gpus 4 --pool lab") else { return };
    (0..MACHINES).for_each(|index| occupied(&lab, index));
    drop(lab.env.tpu("submit lab gpus=1 -- true").exits(0));
    let daemons: Vec<Ctx> = (0..ACCOUNTS).map(|n| daemon(&lab, n)).collect();
    lab.env.change(|data| {
        let queues = data.queues_mut();
        let entry = queues.entries.pop().unwrap();
        for (n, daemon) in (0..).zip(&daemons) {
            let mut entry = entry.clone();
            entry.number = JobNumber(100 + n);
            entry.place = watch::place(daemon);
            queues.entries.push(entry);
        }
    });
    for daemon in &daemons {
        let who = (daemon.clock.now(), Hosting::Foreground, false);
        watch::note_turn(daemon, who, None, BTreeMap::new()).unwrap();
    }
    drop(asked(&lab));
    for _ in 0..2 {
        for daemon in &daemons {
            let passage = pass::dispatch(daemon, &|_| false).unwrap();
            assert!(passage.started.is_empty(), "{passage:?}");
            assert_eq!(passage.waiting, 1, "each has its own account's job");
        }
    }
    let counts = asked(&lab);
    assert!(counts.iter().all(|count| *count <= 1), "each machine once for all: {counts:?}");
    // Whoever types a command asks for herself.
    lab.env.change(|data| data.queues_mut().entries.clear());
    let refused = lab.env.tpu("run lab gpus=1 -q -- true").exits(4);
    assert!(asked(&lab).iter().any(|count| *count > 0), "{refused}");
}
