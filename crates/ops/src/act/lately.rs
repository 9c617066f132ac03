//! What was asked a moment ago, for the jobs that one pass over the queue starts one after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use crate::observe::snapshot::{self, TargetUsers};
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::ids::{LaunchToken, TargetName};
use tpu_core::model::job::Handle;
use tpu_core::model::target::Target;
use tpu_engine::runner::{Ground, Runner};

/// Which numbers of windows are taken is asked again after so long: a person may open one.
const GROUND_SERVES: Duration = Duration::from_millis(500);

/// Facts that serve several launches. Who is on a target is asked once: what begins or ends later stands in the records,
/// by which each launch is claimed.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    users: RefCell<HashMap<TargetName, TargetUsers>>,
    grounds: RefCell<HashMap<String, (Duration, Ground)>>,
}

impl Lately {
    /// Who was on a target.
    pub(crate) fn users_of(&self, ctx: &Ctx, data: &Data, target: &TargetName) -> TargetUsers {
        let known = self.users.borrow().get(target).cloned();
        known.unwrap_or_else(|| {
            let users = snapshot::users_of_target(ctx, data, target);
            self.users.borrow_mut().insert(target.clone(), users.clone());
            users
        })
    }

    /// Who was on each of some targets, asked about together where that is not known.
    pub(crate) fn ask_about(&self, ctx: &Ctx, data: &Data, targets: &[Target]) {
        let is_new = |target: &&Target| !self.users.borrow().contains_key(&target.name);
        let new: Vec<&TargetName> =
            targets.iter().filter(is_new).map(|target| &target.name).collect();
        if new.is_empty() {
            return;
        }
        let mut users = snapshot::users_of_targets(ctx, data, |job| new.contains(&&job.tpu));
        let all =
            new.into_iter().map(|name| (name.clone(), users.remove(name).unwrap_or_default()));
        let all: Vec<_> = all.collect();
        self.users.borrow_mut().extend(all);
    }

    /// Where a window of a session begins.
    pub(crate) fn ground(
        &self,
        ctx: &Ctx,
        runner: &dyn Runner,
        session: &str,
        token: &LaunchToken,
    ) -> Result<Ground, Error> {
        let now = ctx.clock.monotonic();
        let known = self.grounds.borrow().get(session).cloned();
        if let Some((at, Ground { handle, taken })) = known
            && now.saturating_sub(at) < GROUND_SERVES
            && matches!(&handle, Handle::Window { place, .. } if ctx.tmux.is_there(place.server_pid))
        {
            return Ok(Ground { handle: handle.beside(token), taken });
        }
        let ground = runner.ground(session, token)?;
        self.grounds.borrow_mut().insert(session.to_owned(), (now, ground.clone()));
        Ok(ground)
    }

    /// Forgets all of it: something is not as it was.
    pub(crate) fn forget(&self) {
        self.users.borrow_mut().clear();
        self.grounds.borrow_mut().clear();
    }
}
