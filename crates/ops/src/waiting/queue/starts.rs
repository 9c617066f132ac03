//! Starts the jobs of an entry at the places that it was given.

use std::collections::HashSet;

use crate::act::lately::Lately;
use crate::act::launch::attempt::{self, Launched};
use crate::act::launch::group;
use crate::act::launch::plan::Turn;
use crate::act::launch::{self, RunRequest};
use crate::act::reconcile;
use crate::act::resume::{self, Again, AgainRequest};
use crate::base::environment;
use crate::base::{launch_paths, records, secrets};
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{AfterWhich, Awaited, QueueEntry, QueueHold};
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::Machines;
use tpu_core::plan::board::Pick;
use tpu_core::plan::choice::Assignment;
use tpu_core::plan::decide;
use tpu_core::plan::queue::{EntryStanding, UserLimits};

use super::field::Avoided;
use super::now::with_what_was_seen;
use super::places;

/// A successor whose checkpoint is carried to another region before it begins, which may take hours.
#[derive(Clone, Debug)]
pub struct Hauling {
    pub(super) request: AgainRequest,
    pub(super) turn: Turn,
    pub(super) reason: String,
}

impl Hauling {
    /// The entry of the queue that it is.
    pub fn entry(&self) -> &JobId {
        &self.turn.entry
    }
}

/// What does not answer during one pass. Nothing more is started there before the next one.
#[derive(Debug, Default)]
pub(super) struct Silent {
    targets: HashSet<TargetName>,
    /// The tmux server in which jobs were started, where one is known.
    server: Option<u32>,
    has_lost_tmux: bool,
}

impl Silent {
    /// For a pass that follows the end of a job in this tmux server. If the server has ended, no other one is started.
    pub(super) fn in_server(server: Option<u32>) -> Self {
        Self { server, ..Self::default() }
    }

    /// The tmux server for the next pass: that in which jobs were started or, once it has ended, one that somebody has
    /// started since.
    pub(super) fn next_server(&self, ctx: &Ctx) -> Option<u32> {
        if !self.has_lost_tmux {
            return self.server;
        }
        match ctx.tmux.look() {
            TmuxFact::Up { place, .. } => Some(place.server_pid),
            TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => self.server,
        }
    }

    /// Whether something may be started on a target.
    fn is_open(&mut self, ctx: &Ctx, data: &Data, target: &TargetName) -> bool {
        if self.targets.contains(target) {
            return false;
        }
        if is_at_engine(data, target) {
            return true;
        }
        self.has_lost_tmux |= self.server.is_some_and(|server| !ctx.tmux.is_there(server));
        !self.has_lost_tmux
    }

    /// Notes that a target could not be reached: it alone, or tmux, in which all windows are.
    fn note(&mut self, ctx: &Ctx, data: &Data, target: &TargetName) {
        if !is_at_engine(data, target) && self.is_server_gone(ctx, data) {
            self.has_lost_tmux = true;
        } else {
            self.targets.insert(target.clone());
        }
    }

    /// Notes where jobs were started.
    fn has_started(&mut self, launched: &[(Launched, Pick)]) {
        let server = launched.iter().find_map(|(launched, _)| launched.server);
        self.server = self.server.or(server);
    }

    /// Whether the tmux server has ended or does not answer.
    fn is_server_gone(&self, ctx: &Ctx, data: &Data) -> bool {
        match ctx.tmux.look() {
            TmuxFact::Up { place, .. } => self.server.is_some_and(|pid| pid != place.server_pid),
            TmuxFact::Unknown { .. } => true,
            // The first job on a machine starts the server.
            TmuxFact::Down { .. } => {
                let is_in_window =
                    data.jobs().any(|job| job.status.is_live() && job.engine.is_none());
                self.server.is_some() || is_in_window
            }
        }
    }
}

fn is_at_engine(data: &Data, target: &TargetName) -> bool {
    data.target(target).is_some_and(|target| target.machines == Machines::Engine)
}

/// What has become of an entry.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) started: Vec<(Launched, Pick)>,
    pub(super) haul: Option<Hauling>,
    /// Whether one of its places was not to be had after all.
    pub(super) was_refused: bool,
    /// Whether the data file could not be written, because somebody else kept its lock.
    pub(super) is_locked_out: bool,
}

/// Starts jobs by what one reading of the data file says.
pub(super) struct Starter<'a> {
    pub(super) ctx: &'a Ctx,
    pub(super) data: &'a Data,
    /// Jobs that have failed and are over by the facts.
    pub(super) over: Vec<JobId>,
    /// Limits that users have.
    pub(super) limits: UserLimits,
    /// Whether an entry whose checkpoint has to be carried over is left to the caller.
    pub(super) leaves_hauls: bool,
    pub(super) lately: &'a Lately,
    /// Whether launches and ends that others left half done are settled.
    pub(super) is_reconciled: bool,
    pub(super) avoided: &'a mut Avoided,
    pub(super) silent: &'a mut Silent,
}

impl Starter<'_> {
    /// Starts as many jobs of an entry as it was given places.
    pub(super) fn start_all(
        &mut self,
        entry: &QueueEntry,
        standing: &EntryStanding<Vec<Pick>>,
    ) -> Result<Begun, Error> {
        let mut all = Begun::default();
        let (ctx, data) = (self.ctx, self.data);
        // Members that differ are no one submission, nor those of which a limit of ours keeps some back.
        let is_limited = || {
            let queue = data.queues().queue(&entry.queue);
            queue.is_none_or(|queue| queue.max_parallel.is_some())
                || self.limits.contains_key(&entry.user)
        };
        let is_each = entry.after.iter().any(|after| after.which == AfterWhich::Each);
        let differ = entry.sweep.is_some() || is_each;
        let may_be_whole =
            !standing.starts.is_empty() && entry.spec.array.is_some() && !differ && !is_limited();
        for (at, picks) in standing.starts.iter().enumerate() {
            let is_engine = picks.first().is_some_and(|pick| is_at_engine(data, &pick.target));
            let is_whole_group = is_engine && may_be_whole;
            if is_whole_group && at > 0 {
                break;
            }
            let is_open = |pick: &&Pick| self.silent.is_open(ctx, data, &pick.target);
            let picks: Vec<Pick> = picks.iter().filter(is_open).cloned().collect();
            if picks.is_empty() {
                break;
            }
            let member = standing.members.get(at).copied();
            let turn = Turn {
                entry: entry.id(),
                queue: entry.queue.clone(),
                member: member.filter(|_| !is_whole_group),
                is_whole_group,
                passes: standing.passes.clone(),
                over: self.over.clone(),
                server: self.silent.server,
            };
            // A store that cannot be read as it is passes by nobody's waiting.
            let may_begin = environment::given_to(ctx, entry)
                .and_then(|given| secrets::are_kept(ctx, &entry.spec.execution, &given))
                .and_then(|()| if is_engine { Ok(()) } else { self.may_log(entry) });
            if self.leaves_hauls
                && let Some(haul) = self.haul_of(entry, &picks, &turn)?
            {
                return Ok(Begun { haul: Some(haul), ..all });
            }
            let may_begin = may_begin.and_then(|()| self.reconcile());
            match may_begin.and_then(|()| self.start(entry, &picks, &turn)) {
                Ok(started) if started.is_empty() => return Ok(Begun { was_refused: true, ..all }),
                Ok(started) => {
                    self.silent.has_started(&started);
                    all.started.extend(started);
                }
                Err(error) if entry.keeper.is_some() => return Err(error),
                // It was claimed: its record says what became of it, or somebody else has started it.
                Err(_) if !still_waits(ctx, &turn) => {
                    return Ok(Begun { was_refused: true, ..all });
                }
                Err(error) if error.is_locked_out() => {
                    return Ok(Begun { is_locked_out: true, ..all });
                }
                // Whoever cannot be asked now is asked again, unless a person has to log in first.
                Err(error) if error.kind == Kind::Unreachable && error.login().is_none() => {
                    return Ok(Begun { was_refused: true, ..all });
                }
                Err(error) => {
                    hold(ctx, entry, &error)?;
                    break;
                }
            }
        }
        Ok(all)
    }

    /// Refuses what could not log on this machine; nor does the right to do so come by waiting.
    fn may_log(&self, entry: &QueueEntry) -> Result<(), Error> {
        let user = self.data.user(&entry.user).filter(|_| entry.spec.command.is_some());
        let roots = user.and_then(|user| launch_paths::roots(self.ctx, user).ok());
        roots.map_or(Ok(()), |roots| roots.may_be_used(&entry.user, false))
    }

    /// What has to be carried over before an entry begins at the first of its places, if anything has.
    fn haul_of(
        &self,
        entry: &QueueEntry,
        picks: &[Pick],
        turn: &Turn,
    ) -> Result<Option<Hauling>, Error> {
        let (ctx, data) = (self.ctx, self.data);
        let (Some(succeeds), Some(pick)) = (entry.succeeds, picks.first()) else { return Ok(None) };
        // Nobody else is asked twice where his job would begin.
        if ctx.settings(data.user(&entry.user))?.checkpoint_copy.is_empty() {
            return Ok(None);
        }
        let Pick { target, reason } = pick.clone();
        let on = Assignment { target, reason: reason.clone(), busy: None };
        let request = successor(entry, succeeds, Some(on), turn);
        // What speaks against it is told by whoever starts it.
        let plan = resume::plan(ctx, &request).ok().map(|(plan, _)| plan);
        let hauls = plan.is_some_and(|plan| plan.haul.is_some());
        Ok(hauls.then(|| Hauling { request, turn: turn.clone(), reason }))
    }

    /// Starts the next job of an entry, or all that wait of a group at an engine, at the first of its places that is to be
    /// had; nothing if none is.
    fn start(
        &mut self,
        entry: &QueueEntry,
        picks: &[Pick],
        turn: &Turn,
    ) -> Result<Vec<(Launched, Pick)>, Error> {
        let (ctx, data, lately) = (self.ctx, self.data, self.lately);
        // For one that was named there was no choice.
        let is_chosen = matches!(entry.spec.target, TargetRequest::Any(_));
        let said = is_chosen.then(|| with_what_was_seen(ctx, picks.to_vec())).transpose()?;
        let picks = said.as_deref().unwrap_or(picks);
        let mut needs_login = None;
        for (pick, busy) in places::answers(ctx, data, entry, picks, lately) {
            let Ok(busy) = busy else {
                self.avoid(entry, &pick.target);
                continue;
            };
            let Pick { target, reason } = pick.clone();
            let request = RunRequest {
                on: Some(Assignment { target, reason, busy }),
                force: entry.force,
                copies_all: true,
                ..RunRequest::new(entry.user.clone(), spec_of(entry, turn))
            };
            let error = match launch(ctx, &request, turn, entry, lately) {
                Ok(launched) => {
                    return Ok(launched.into_iter().map(|one| (one, pick.clone())).collect());
                }
                Err(error) => error,
            };
            lately.forget();
            if error.kind == Kind::Unreachable {
                self.silent.note(ctx, data, &pick.target);
            }
            // What is locked is no fault of that place: whoever stands behind would get it ahead of this one.
            if error.is_locked_out() || !is_passing(ctx, turn, &error) {
                return Err(error);
            }
            self.avoid(entry, &pick.target);
            needs_login = Some(error).filter(|error| error.login().is_some()).or(needs_login);
        }
        needs_login.map_or_else(|| Ok(Vec::new()), Err)
    }

    fn reconcile(&mut self) -> Result<(), Error> {
        if !self.is_reconciled {
            reconcile::reconcile(self.ctx)?;
            self.is_reconciled = true;
        }
        Ok(())
    }

    fn avoid(&mut self, entry: &QueueEntry, target: &TargetName) {
        self.avoided.entry(entry.id()).or_default().insert(target.clone());
    }
}

/// Carries a checkpoint over and starts the successor. What could never begin as it is is held.
pub(super) fn haul(ctx: &Ctx, haul: &Hauling) -> Result<Again, Error> {
    let data = ctx.data()?;
    resume::again(ctx, &haul.request).inspect_err(|error| {
        if let Some(entry) = data.queues().entry(&haul.turn.entry)
            && (error.login().is_some() || !is_passing(ctx, &haul.turn, error))
            && still_waits(ctx, &haul.turn)
        {
            // What cannot be written now is tried again by the next pass.
            drop(hold(ctx, entry, error));
        }
    })
}

/// The request for the attempt that an entry is to succeed another one with.
fn successor(
    entry: &QueueEntry,
    succeeds: Awaited,
    on: Option<Assignment>,
    turn: &Turn,
) -> AgainRequest {
    let job = JobId::new(entry.user.clone(), succeeds.job);
    AgainRequest { on, turn: Some(turn.clone()), ..resume::by_rules(&job, succeeds.how) }
}

/// Starts one job, or a whole group.
fn launch(
    ctx: &Ctx,
    request: &RunRequest,
    turn: &Turn,
    entry: &QueueEntry,
    lately: &Lately,
) -> Result<Vec<Launched>, Error> {
    if let Some(succeeds) = entry.succeeds {
        let again = resume::again(ctx, &successor(entry, succeeds, request.on.clone(), turn))?;
        let job = &again.launched.job;
        ctx.warn(again.warnings.iter().map(|warning| format!("{job}: {warning}")));
        return Ok(vec![again.launched]);
    }
    let env = environment::of_entry(ctx, entry)?;
    let plan = launch::plan_in_turn(ctx, request, (turn, env), lately)?;
    if turn.is_whole_group {
        let group = group::start(ctx, &plan)?;
        return Ok(group.members.into_iter().map(|(_, launched)| launched).collect());
    }
    Ok(vec![attempt::start_lately(ctx, &plan, None, lately)?])
}

/// What one job of an entry is to do.
fn spec_of(entry: &QueueEntry, turn: &Turn) -> JobSpec {
    let array = entry.spec.array.clone().filter(|_| turn.is_whole_group);
    // What an earlier version submitted says nothing of it.
    let arguments = Some(entry.spec.arguments.unwrap_or_default());
    JobSpec { array, arguments, ..entry.spec_of(turn.member) }
}

/// Whether it is trouble that may pass while the entry waits. What goes wrong once its place is handed in is told by
/// the record that it was handed in for.
fn is_passing(ctx: &Ctx, turn: &Turn, error: &Error) -> bool {
    let may_pass = matches!(error.kind, Kind::Unreachable | Kind::State | Kind::Refused);
    error.passes || may_pass && still_waits(ctx, turn)
}

/// Whether nobody has started yet what was to be started; also where that is not known.
fn still_waits(ctx: &Ctx, turn: &Turn) -> bool {
    ctx.data().map_or(true, |data| {
        let Some(entry) = data.queues().entry(&turn.entry) else { return false };
        match (turn.member, &entry.spec.array) {
            (Some(index), Some(array)) => array.indexes().contains(&index),
            (Some(_), None) => false,
            (None, _) => true,
        }
    })
}

/// Holds what could not begin wherever it was: others are not to wait behind it, and somebody has to look.
pub(super) fn hold(ctx: &Ctx, entry: &QueueEntry, error: &Error) -> Result<(), Error> {
    let id = entry.id();
    ctx.transact(|tx| {
        let now = tx.now;
        if let Some(entry) = tx.data.queues_mut().entry_mut(&id) {
            let login = error.login();
            let needs_login = login.is_some();
            let first = error.message.lines().next().unwrap_or_default();
            let why = login.map_or_else(|| first.to_owned(), |login| decide::needs_login(&login));
            let by = "tpu".to_owned();
            entry.held = Some(QueueHold { by, since: now, why: Some(why), needs_login });
            records::note(tx, &id, "held", format!("it could not begin: {}", error.message));
        }
        Ok(())
    })
}
