//! What others leave: another account on the same machine whose launches fail before a window opens.

use std::sync::Arc;

use tpu_core::model::facts::{ErrorKind, Place};
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::{Job, Launch, LaunchMode, Status};
use tpu_ops::Error;
use tpu_system::sys::random::Random as _;

use super::CODE;
use super::actors::{USERS, start, wait};
use super::tpu::{call, target};
use super::world::{Purpose, World};

/// The other account.
const UID: u32 = 1001;

/// Another account at a machine begins jobs, and none of them gets a window: it is told so, or dies before it is.
pub(crate) fn another_account(world: &Arc<World>, host: usize) {
    loop {
        let nap = world.state().between(4_000, 30_000);
        wait(world, nap);
        let (on, user, is_told) = {
            let state = world.state();
            if state.calm {
                return;
            }
            let of = |count: usize| usize::try_from(state.rng.below(count as u64)).unwrap_or(0);
            (of(state.targets), of(USERS.len()), of(2) == 0)
        };
        let name = UserName::from(USERS.get(user).copied().unwrap_or("alice"));
        let _pid = call(world, &start(host, Purpose::Other), move |ctx| {
            let token = format!("{:016x}", ctx.random.below(u64::MAX));
            let pushed = ctx.transact(|tx| -> Result<(), Error> {
                let Some(window) = tx.data.next_number(&name, None) else { return Ok(()) };
                let id = JobId::new(name.clone(), window);
                let mut job = Job::new(&id, TargetName::new(target(on)), CODE.to_owned());
                job.launch = Some(Launch::claimed(token.as_str(), LaunchMode::Script, tx.now));
                job.place = Some(Place {
                    host: ctx.env.hostname.clone(),
                    boot: ctx.env.boot_id.clone(),
                    uid: UID,
                    socket: format!("/tmp/tmux-{UID}/default"),
                    server_pid: 0,
                    server_start: 0,
                });
                if is_told {
                    job.status = Status::Error(ErrorKind::Launch);
                }
                tx.data.user_mut(&name).expect("it has just got a number").push_job(job);
                Ok(())
            });
            drop(pushed);
        });
    }
}

/// Says that somebody else's failed launch is in the way of a clean.
pub(crate) fn clean_is_not_held_up(world: &World, cleaned: Result<(), Error>) {
    let Err(error) = cleaned else { return };
    if error.message.contains(&format!("belongs to uid {UID}")) {
        world.state().violation(format!("12: a failed launch of another account: {error}"));
    }
}
