//! The lease of a lineage: the right to act on it, one owner at a time, with a fencing number.
//!
//! It stands in the record of the leaf and moves on to the child in the transaction that makes one. What
//! an owner does is committed with its fencing number: who has lost the lease meanwhile changes nothing.
//! A lease is free once its owner is provably dead, and otherwise after its deadline.

use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Lease, who};
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::Processes;

use super::ctx::{job_mut, job_of};
use crate::{Ctx, Error};

/// Seconds until a lease that is not renewed is free.
pub(crate) const TERM_S: i64 = 30;

/// A lease that was taken. Dropping it does not give it back: see [`release`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The leaf whose record held it when it was taken.
    pub job: JobId,
    /// Who took it.
    pub owner: String,
    /// Its fencing number.
    pub fence: u64,
}

impl Held {
    /// Whether `lease` is this one.
    fn is(&self, lease: Option<&Lease>) -> bool {
        lease.is_some_and(|lease| lease.owner == self.owner && lease.fence == self.fence)
    }

    /// Refuses unless the record still holds this lease.
    pub fn check(&self, job: &Job) -> Result<(), Error> {
        if self.is(job.lease.as_ref()) {
            return Ok(());
        }
        let by = job.lease.as_ref().map(|lease| who(&lease.owner));
        Err(Error::refused(format!(
            "the lease of {} was lost{}: what was begun is discarded",
            job.id(),
            by.map(|by| format!(" to {by}")).unwrap_or_default()
        ))
        .hint(format!("`tpu check {}` shows where it stands", job.user)))
    }
}

/// This process as an owner: `host:boot:pid:start`.
pub fn me(env: &Env) -> String {
    format!("{}:{}:{}:{}", env.hostname, env.boot_id, env.pid, env.started())
}

/// Nobody, as the owner of what its owner has given up half-way: provably dead for everybody on this machine.
pub fn nobody(env: &Env) -> String {
    // No process is number 0.
    format!("{}:{}:0:1", env.hostname, env.boot_id)
}

/// Whether an owner is there: `Some(false)` if it is provably dead, `None` if nobody here can tell.
pub fn is_alive(ctx: &Ctx, owner: &str) -> Option<bool> {
    is_there(&ctx.env, &*ctx.procs, owner)
}

fn is_there(env: &Env, procs: &dyn Processes, owner: &str) -> Option<bool> {
    let Parts { host, boot, pid, start } = Parts::of(owner)?;
    if host != env.hostname || start == 0 {
        return None;
    }
    // Without boot ids a boot is not noticed; pid and start time are then all there is.
    Some(boot == env.boot_id && procs.is_alive(pid, start))
}

/// Whether an owner was ended by a restart of this very machine.
pub(crate) fn has_rebooted(ctx: &Ctx, owner: &str) -> bool {
    let (env, parts) = (&ctx.env, Parts::of(owner));
    parts.is_some_and(|p| p.host == env.hostname && p.start != 0 && p.boot != env.boot_id)
}

/// The process that an owner is, by its id and start time, on whatever machine.
pub(crate) fn process_of(owner: &str) -> Option<(u32, u64)> {
    Parts::of(owner).map(|parts| (parts.pid, parts.start))
}

struct Parts<'a> {
    host: &'a str,
    boot: &'a str,
    pid: u32,
    start: u64,
}

impl<'a> Parts<'a> {
    fn of(owner: &'a str) -> Option<Self> {
        let mut parts = owner.rsplitn(4, ':');
        let start = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let boot = parts.next()?;
        let host = parts.next()?;
        Some(Self { host, boot, pid, start })
    }
}

/// Takes the lease of the lineage whose leaf is `id`, if it is free and `holds` accepts the record as it
/// is then. Anybody who acts on a lineage for longer than a transaction does so under its lease.
pub fn take(
    ctx: &Ctx,
    id: &JobId,
    holds: impl FnOnce(&Job) -> Result<(), Error>,
) -> Result<Held, Error> {
    // Looked at before the lock is taken; the answer is about this very lease and no other.
    let seen = job_of(&*ctx.data()?, id)?.lease.clone();
    let is_dead = seen.as_ref().is_some_and(|l| is_alive(ctx, &l.owner) == Some(false));
    let owner = me(&ctx.env);
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, id)?;
        holds(job)?;
        if let Some(lease) = &job.lease
            && lease.runs(now)
            && !(is_dead && job.lease == seen)
        {
            return Err(Error::refused(format!("{} is acting on {id}", who(&lease.owner)))
                .hint(format!("`tpu check {}` shows what came of it", id.user)));
        }
        let fence = job.lease.as_ref().map_or(1, |lease| lease.fence.saturating_add(1));
        job.lease = Some(Lease { owner: owner.clone(), fence, until: now.plus_seconds(TERM_S) });
        Ok(Held { job: id.clone(), owner, fence })
    })
}

/// Puts the deadline off. Refused when the lease was lost.
pub fn renew(ctx: &Ctx, held: &Held) -> Result<(), Error> {
    ctx.transact(|tx| {
        let until = tx.now.plus_seconds(TERM_S);
        let job = job_mut(&mut tx.data, &held.job)?;
        held.check(job)?;
        if let Some(lease) = job.lease.as_mut() {
            lease.until = until;
        }
        Ok(())
    })
}

/// Gives the lease back, in a transaction of its own. Its number stays, so that the next one is higher.
pub fn release(ctx: &Ctx, held: &Held) -> Result<(), Error> {
    ctx.transact(|tx| {
        let leaf = job_of(&tx.data, &held.job)?
            .child
            .map(|child| JobId { window: child, ..held.job.clone() });
        for id in [Some(held.job.clone()), leaf].into_iter().flatten() {
            if let Some(job) = tx.data.job_mut(&id)
                && held.is(job.lease.as_ref())
            {
                free(job);
            }
        }
        Ok(())
    })
}

/// Gives the lease back as part of a transaction.
pub fn free(job: &mut Job) {
    if let Some(lease) = job.lease.as_mut() {
        lease.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_system::sys::procs::{self, OsProcesses};

    fn env() -> Env {
        Env::fixed([("HOME", "/")])
    }

    #[test]
    fn only_what_is_provably_dead_is_dead() {
        let env = Env { start: procs::start_time(std::process::id()), ..env() };
        let me = me(&env);
        let is_alive = |owner: &str| is_there(&env, &OsProcesses, owner);
        assert_eq!(is_alive(&me), Some(true));
        let (Env { hostname, boot_id, pid, .. }, started) = (&env, env.started());
        let other_start = format!("{hostname}:{boot_id}:{pid}:{}", started + 1);
        assert_eq!(is_alive(&other_start), Some(false), "the pid was used again");
        let other_boot = format!("{hostname}:another:{pid}:{started}");
        assert_eq!(is_alive(&other_boot), Some(false), "the machine was restarted");
        let other_host = format!("elsewhere:{boot_id}:{pid}:{started}");
        assert_eq!(is_alive(&other_host), None);
        assert_eq!(is_alive(&format!("{hostname}:{boot_id}:{pid}:0")), None);
        assert_eq!(is_alive("testhost:12"), None, "from before there were owners");
    }
}
