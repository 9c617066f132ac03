//! What somebody who waits, or asks at once, wishes to run on; and which targets could meet that.

use crate::Error;
use crate::act::hosts::choose as hosts;
use crate::act::launch::RunRequest;
use crate::base::confined;
use crate::base::named::{self, still_known};
use tpu_core::model::capacity::Ask;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::queue::Queue;
use tpu_core::model::spec::{AnyOf, TargetRequest};
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::target_limit::TargetLimit;
use tpu_core::plan::types::TypeExpr;

/// Who wishes for a target, and for which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wish {
    /// For whom.
    pub user: UserName,
    /// What the job is to compute on.
    pub target: TargetRequest,
    /// What the job asks of it.
    pub ask: Ask,
    /// The targets to which it is limited.
    pub only_on: TargetLimit,
}

/// How a wish is to be met.
pub(super) enum Way {
    /// By a whole target of some types.
    Types,
    /// By one of these machines, which have room for several.
    Machines(Vec<Target>),
    /// By one of these targets, each of which one job has for itself.
    Whole(Vec<Target>),
    /// By an engine, which takes jobs at any time, or a target without limits.
    AnyTime(Target),
}

impl Wish {
    /// What a request wishes for, whatever it names.
    pub(super) fn of_request(request: &RunRequest) -> Self {
        Self {
            user: request.user.clone(),
            target: request.spec.target.clone(),
            ask: request.spec.ask.clone(),
            only_on: request.spec.execution.only_on.clone(),
        }
    }

    /// What a request wishes for, where it names no target.
    pub fn of(request: &RunRequest) -> Option<Self> {
        let is_open = matches!(request.spec.target, TargetRequest::Any(_));
        is_open.then(|| Self::of_request(request))
    }

    /// What an entry wishes for: what its queue names, else what it names itself.
    pub fn of_entry(data: &Data, entry: &QueueEntry, queue: Option<&Queue>) -> Self {
        let on = queue.map(|queue| queue.on.as_slice()).unwrap_or_default();
        let target = if on.is_empty() { entry.spec.target.clone() } else { of_words(data, on) };
        let (ask, only_on) = (entry.spec.ask.clone(), entry.spec.execution.only_on.clone());
        Self { user: entry.user.clone(), target, ask, only_on }
    }

    /// What is wished for, in words.
    pub fn what(&self) -> String {
        match &self.target {
            TargetRequest::Named(name) => name.clone(),
            TargetRequest::Any(any_of) => any_of.in_words(),
        }
    }

    /// The target that it names.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.target {
            TargetRequest::Named(name) => Some(name),
            TargetRequest::Any(_) => None,
        }
    }

    /// Whether it names machines, a pool or a pattern of them.
    pub(super) fn is_of_machines(&self) -> bool {
        !self.any_of().among.is_empty()
    }

    /// Refuses what names targets that nobody knows any more.
    pub fn is_known(&self, data: &Data) -> Result<(), Error> {
        self.way(data).map(drop)
    }

    /// Whether a target is within its limit.
    pub(super) fn allows(&self, data: &Data, target: &TargetName) -> bool {
        self.only_on.is_none()
            || data.target(target).is_some_and(|target| self.only_on.allows(&target))
    }

    /// Refuses what is limited to some targets of which none could be meant.
    pub(super) fn is_within(&self, data: &Data) -> Result<(), Error> {
        if self.only_on.is_none() || !matches!(self.way(data)?, Way::Types) {
            return Ok(());
        }
        let words = self.any_of().types;
        let types: Vec<TypeExpr> = words.iter().filter_map(|word| TypeExpr::parse(word)).collect();
        let is_meant = |target: &Target| {
            let of = target.accelerator.as_deref();
            types.is_empty() || types.iter().any(|types| types.includes(of))
        };
        let names = data.registry().names();
        let mut targets = names.iter().filter_map(|name| data.target(name)).filter(is_meant);
        if targets.any(|target| self.only_on.allows(&target)) {
            return Ok(());
        }
        Err(confined::beyond(&self.what(), &self.only_on))
    }

    /// The one machine that it names, which has room for several jobs.
    pub(in crate::waiting) fn one_machine(&self, data: &Data) -> Option<Target> {
        match self.way(data) {
            Ok(Way::Machines(mut machines)) => machines.pop().filter(|_| machines.is_empty()),
            Ok(Way::Types | Way::Whole(_) | Way::AnyTime(_)) | Err(_) => None,
        }
    }

    /// How it is to be met, as far as what it names is still known.
    pub(super) fn way(&self, data: &Data) -> Result<Way, Error> {
        let any_of = match &self.target {
            TargetRequest::Named(name) => {
                let target = named::resolve_target(data, name)?;
                confined::may_run_on(&self.only_on, &target)?;
                let capacity = target.capacity;
                let is_unlimited = capacity.is_unlimited() && capacity.of_queue().is_none();
                return Ok(match target.machines {
                    Machines::Engine => Way::AnyTime(target),
                    Machines::Provided | Machines::Fixed | Machines::Here if is_unlimited => {
                        Way::AnyTime(target)
                    }
                    Machines::Provided if target.is_exclusive() => Way::Whole(vec![target]),
                    Machines::Provided | Machines::Fixed | Machines::Here => {
                        Way::Machines(vec![target])
                    }
                });
            }
            TargetRequest::Any(any_of) => any_of,
        };
        if any_of.among.is_empty() {
            return Ok(Way::Types);
        }
        let machines = confined::within(&self.only_on, still_known(data, &any_of.among)?);
        if machines.is_empty() && !self.only_on.is_none() {
            return Err(confined::beyond(&self.what(), &self.only_on));
        }
        hosts::refuse_engine(&machines)?;
        let is_whole =
            |target: &Target| target.machines == Machines::Provided && target.is_exclusive();
        if !machines.is_empty() && machines.iter().all(is_whole) {
            return Ok(Way::Whole(machines));
        }
        Ok(Way::Machines(machines))
    }

    pub(super) fn any_of(&self) -> AnyOf {
        match &self.target {
            TargetRequest::Named(_) => AnyOf::default(),
            TargetRequest::Any(any_of) => any_of.clone(),
        }
    }
}

/// What words name that say where jobs begin: one target, or several machines, or types.
pub fn of_words(data: &Data, words: &[String]) -> TargetRequest {
    match words {
        [one] if data.resolve_target(one).is_some() => TargetRequest::Named(one.clone()),
        words if words.iter().all(|word| is_type(data, word)) => {
            TargetRequest::Any(AnyOf { types: words.to_vec(), ..AnyOf::default() })
        }
        words => TargetRequest::Any(AnyOf { among: words.to_vec(), ..AnyOf::default() }),
    }
}

/// Refuses words that name neither targets nor types.
pub(crate) fn may_be_places(data: &Data, words: &[String]) -> Result<(), Error> {
    let Some(odd) = words.iter().find(|word| {
        data.resolve_target(word).is_none()
            && TypeExpr::parse(word).is_none()
            && !named::is_of_several(data, word)
    }) else {
        return Ok(());
    };
    Err(Error::not_found(format!("'{odd}' is no target, pool, pattern or type"))
        .hint("`tpu targets` and `tpu hosts` list what there is"))
}

/// Whether a word names types, and at least one known target is of them. What looks like a type and fits
/// nothing is more likely a name with a slip in it.
pub fn is_type(data: &Data, word: &str) -> bool {
    let Some(expr) = TypeExpr::parse(word) else { return false };
    let names = data.registry().names();
    names.iter().any(|name| {
        let registered = data.target(name).and_then(|target| target.accelerator);
        let accelerator = registered.or_else(|| tpu_core::plan::types::guess(name.as_str()));
        expr.includes(accelerator.as_deref())
    })
}
