//! Targets: what control planes say of them, what they cost, what is done to them, their names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::facts::{QueuedState, Room, TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::prices::Prices;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::Board;
use tpu_ops::front::dry_run::Remake;
use tpu_ops::front::inventory::{self, Change, Class, Description, Plan, Sum};

use super::words::{Members, TimePart, Word};
use super::workers::StepPart;

/// Targets, each as its control plane describes it.
#[derive(Serialize, JsonSchema)]
pub struct TargetFactsDocument<'a> {
    /// Each of them.
    pub targets: Vec<TargetPart<'a>>,
}

/// A target after something was done to it.
#[derive(Serialize, JsonSchema)]
pub struct TargetFactDocument<'a> {
    /// As its control plane describes it now.
    pub target: TargetPart<'a>,
}

/// A target that is being made.
#[derive(Serialize, JsonSchema)]
pub struct TargetBegunDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// What has begun: apply or reapply. Events tell how it goes: of the same kind that it has begun, then `made` or
    /// `not-made`.
    pub begun: &'a str,
}

/// What a control plane says about a target.
#[derive(Serialize, JsonSchema)]
pub struct TargetPart<'a> {
    /// Full name.
    pub name: &'a TargetName,
    /// Zone, where there are zones.
    pub zone: Option<&'a str>,
    /// Accelerator type.
    pub r#type: Option<&'a str>,
    /// How it is paid for; null if nobody has said.
    pub pricing: Option<Word<Pricing>>,
    /// Its state, reduced to what differs for us.
    pub state: Word<TargetState>,
    /// The control plane's own word.
    pub raw_state: &'a str,
    /// Since when it is in that state.
    pub since: Option<TimePart>,
    /// When it was created.
    pub created_at: Option<TimePart>,
    /// The control plane's word on its health.
    pub health: Option<&'a str>,
    /// What is wrong, in the control plane's words.
    pub symptoms: &'a [String],
    /// The queued request it came from.
    pub queued: Option<QueuedPart<'a>>,
    /// What its engine says of its room; null where nobody was asked, or has answered.
    pub room: Option<RoomPart<'a>>,
    /// When the control plane said so.
    pub observed_at: TimePart,
    /// Which control plane said so.
    pub source: &'a str,
}

impl<'a> From<&'a TargetFact> for TargetPart<'a> {
    fn from(fact: &'a TargetFact) -> Self {
        Self {
            name: &fact.name,
            zone: fact.zone.as_deref(),
            r#type: fact.accelerator.as_deref(),
            pricing: told(fact, fact.pricing),
            state: Word(fact.state),
            raw_state: &fact.raw_state,
            since: fact.since.map(TimePart),
            created_at: fact.created_at.map(TimePart),
            health: fact.health.as_deref(),
            symptoms: &fact.symptoms,
            queued: fact.queued.as_ref().map(|queued| QueuedPart {
                name: &queued.name,
                state: Word(queued.state),
                raw_state: &queued.raw_state,
            }),
            room: fact.room.as_deref().map(RoomPart::from),
            observed_at: TimePart(fact.observed_at),
            source: &fact.source,
        }
    }
}

/// How much room a target has; null where its engine does not say.
#[derive(Serialize, JsonSchema)]
pub struct RoomPart<'a> {
    /// The engine's own word for whether jobs begin there.
    pub state: &'a str,
    /// Nodes with nothing on them.
    pub idle: Option<u32>,
    /// Nodes with something on them, and with room.
    pub mixed: Option<u32>,
    /// Nodes on which nothing can begin.
    pub down: Option<u32>,
    /// CPUs that are free.
    pub free_cpus: Option<u64>,
    /// GPUs that are free.
    pub free_gpus: Option<u64>,
    /// Jobs of everybody that run.
    pub running: Option<u32>,
    /// Jobs of everybody that wait.
    pub waiting: Option<u32>,
    /// Jobs of whoever asks that run.
    pub my_running: Option<u32>,
    /// Jobs of whoever asks that wait.
    pub my_waiting: Option<u32>,
    /// What it allows, in words.
    pub limits: &'a [String],
}

impl<'a> From<&'a Room> for RoomPart<'a> {
    fn from(room: &'a Room) -> Self {
        let &Room { idle, mixed, down, free_cpus, free_gpus, .. } = room;
        let &Room { running, waiting, my_running, my_waiting, .. } = room;
        let (state, limits) = (room.state.as_str(), room.limits.as_slice());
        Self {
            state,
            idle,
            mixed,
            down,
            free_cpus,
            free_gpus,
            running,
            waiting,
            my_running,
            my_waiting,
            limits,
        }
    }
}

/// How a target is paid for, where anybody has said so.
fn told(fact: &TargetFact, pricing: Pricing) -> Option<Word<Pricing>> {
    fact.told_pricing(pricing).map(|_| Word(pricing))
}

/// The queued request that a target came from.
#[derive(Serialize, JsonSchema)]
pub struct QueuedPart<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its state, reduced to what differs for us.
    pub state: Word<QueuedState>,
    /// The control plane's own word.
    pub raw_state: &'a str,
}

/// All targets, and what is in use of them.
#[derive(Serialize, JsonSchema)]
pub struct TargetsDocument<'a> {
    /// By zone and name.
    pub targets: Vec<ListedTargetPart<'a>>,
    /// What is in use, by zone, type and pricing.
    pub in_use: Vec<InUsePart<'a>>,
    /// Zones that said nothing.
    pub silent: Vec<SilentZonePart<'a>>,
}

impl<'a> TargetsDocument<'a> {
    /// The targets of a look with what they cost by a table of prices.
    pub fn of(seen: &'a Board, sums: &'a BTreeMap<Class, Sum>, prices: &Prices) -> Self {
        let listed = |row| ListedTargetPart::of(row, prices, seen.at);
        Self {
            targets: seen.targets.iter().map(listed).collect(),
            in_use: sums.iter().map(InUsePart::from).collect(),
            silent: seen.silent.iter().map(SilentZonePart::from).collect(),
        }
    }
}

/// A target with what it costs and who has it.
#[derive(Serialize, JsonSchema)]
pub struct ListedTargetPart<'a> {
    /// What its control plane says.
    #[serde(flatten)]
    pub told: TargetPart<'a>,
    /// Its shortest alias.
    pub alias: Option<&'a str>,
    /// Whether the data file knows it.
    pub known: bool,
    /// How many chips it has; null if its type is not known.
    pub chips: Option<u32>,
    /// What an hour of it costs by the price table of the settings.
    pub per_hour: Option<f64>,
    /// Hours since it was created.
    pub hours: Option<f64>,
    /// How many live jobs are there.
    pub jobs: usize,
    /// How it stands on the board.
    pub standing: Word<Standing>,
    /// Who has it.
    pub user: Option<&'a str>,
}

impl<'a> ListedTargetPart<'a> {
    /// A row of the board with its costs, now.
    pub fn of(row: &'a Row, prices: &Prices, now: Timestamp) -> Self {
        let (chips, per_hour) = inventory::worth(row, prices);
        Self {
            told: TargetPart {
                zone: row.zone.as_deref(),
                r#type: row.told_type(),
                pricing: told(&row.fact, row.pricing),
                ..TargetPart::from(&row.fact)
            },
            alias: row.alias(),
            known: row.is_known,
            chips,
            per_hour,
            hours: inventory::hours(&row.fact, now),
            jobs: row.jobs.len(),
            standing: Word(row.standing),
            user: row.user.as_deref(),
        }
    }
}

/// Targets of one type in one zone, paid for in one way, that are in use.
#[derive(Serialize, JsonSchema)]
pub struct InUsePart<'a> {
    /// Zone, `-` where there is none.
    pub zone: &'a str,
    /// Accelerator type, `-` where it is not known.
    pub r#type: &'a str,
    /// How they are paid for.
    #[schemars(with = "Word<Pricing>")]
    pub pricing: &'static str,
    /// How many there are.
    pub targets: usize,
    /// Their chips; null if a type is not known.
    pub chips: Option<u32>,
    /// What they cost in an hour by the price table of the settings.
    pub per_hour: Option<f64>,
    /// Their hours so far.
    pub hours: Option<f64>,
    /// What they have cost so far.
    pub cost: Option<f64>,
}

impl<'a> From<(&'a Class, &Sum)> for InUsePart<'a> {
    fn from(((zone, kind, pricing), sum): (&'a Class, &Sum)) -> Self {
        Self {
            zone,
            r#type: kind,
            pricing,
            targets: sum.targets,
            chips: sum.chips,
            per_hour: sum.per_hour,
            hours: sum.hours,
            cost: sum.so_far,
        }
    }
}

/// A zone that said nothing.
#[derive(Serialize, JsonSchema)]
pub struct SilentZonePart<'a> {
    /// Its name; `-` for the whole cloud.
    pub zone: &'a str,
    /// Why it said nothing.
    pub reason: &'a str,
}

impl<'a> From<&'a (String, String)> for SilentZonePart<'a> {
    fn from((zone, reason): &'a (String, String)) -> Self {
        Self { zone, reason }
    }
}

/// What `targets import` finds to be different.
#[derive(Serialize, JsonSchema)]
pub struct ImportDocument<'a> {
    /// Targets that are new or told differently.
    pub changes: Vec<ImportChangePart<'a>>,
    /// Known targets that the cloud does not have; they stay.
    pub absent: &'a [TargetName],
    /// Whether the changes were made.
    pub imported: bool,
}

impl<'a> ImportDocument<'a> {
    /// A plan that was, or was not, carried out.
    pub fn of(plan: &'a Plan, imported: bool) -> Self {
        let changes = plan.changes.iter().map(ImportChangePart::from).collect();
        Self { changes, absent: &plan.absent, imported }
    }
}

/// A target that is new or told differently.
#[derive(Serialize, JsonSchema)]
pub struct ImportChangePart<'a> {
    /// Full name.
    pub name: &'a TargetName,
    /// Whether the data file does not know it yet.
    pub new: bool,
    /// The alias it gets.
    pub alias: Option<&'a str>,
    /// What differs, in words.
    pub differences: &'a [String],
}

impl<'a> From<&'a Change> for ImportChangePart<'a> {
    fn from(change: &'a Change) -> Self {
        Self {
            name: &change.name,
            new: change.is_new,
            alias: change.alias.as_deref(),
            differences: &change.differences,
        }
    }
}

/// Everything about one target.
#[derive(Serialize, JsonSchema)]
pub struct DescribeDocument<'a> {
    /// The target.
    pub target: DescribedTargetPart<'a>,
}

/// Everything about one target, and what its machines say.
#[derive(Serialize, JsonSchema)]
pub struct DescribeMachinesDocument<'a> {
    /// The target.
    pub target: DescribedTargetPart<'a>,
    /// What each of its machines says; null after a dry run, which asks none.
    pub machines: Option<Vec<StepPart<'a>>>,
}

/// A target with what the data file says of it.
#[derive(Serialize, JsonSchema)]
pub struct DescribedTargetPart<'a> {
    /// What its control plane says.
    #[serde(flatten)]
    pub told: TargetPart<'a>,
    /// How many chips it has; null if its type is not known.
    pub chips: Option<u32>,
    /// How many workers it has.
    pub workers: Option<usize>,
    /// Their addresses, in order; empty for one whose address is not known yet.
    pub addresses: &'a [String],
    /// Its aliases.
    pub aliases: &'a [String],
    /// Live jobs there, as in alice/7.
    pub jobs: Vec<String>,
    /// Who made it known.
    pub origin: Option<&'a str>,
}

impl<'a> From<&'a Description> for DescribedTargetPart<'a> {
    fn from(seen: &'a Description) -> Self {
        Self {
            told: TargetPart::from(&seen.fact),
            chips: seen.size.0,
            workers: seen.workers(),
            addresses: &seen.fact.endpoints,
            aliases: &seen.aliases,
            jobs: seen.jobs.iter().map(ToString::to_string).collect(),
            origin: seen.registered.as_ref().and_then(|known| known.origin.as_deref()),
        }
    }
}

/// What a dry run would do to a target.
#[derive(Serialize, JsonSchema)]
pub struct TargetPlanDocument<'a> {
    /// Nothing was changed.
    #[schemars(extend("const" = true))]
    pub dry_run: bool,
    /// The plan.
    pub plan: TargetPlanPart<'a>,
}

impl<'a> From<&'a Remake> for TargetPlanDocument<'a> {
    fn from(plan: &'a Remake) -> Self {
        let spec = &plan.spec;
        Self {
            dry_run: true,
            plan: TargetPlanPart {
                target: &plan.target,
                state: &plan.state,
                would: plan.does,
                zone: &spec.zone,
                r#type: &spec.accelerator,
                pricing: Word(spec.pricing),
                version: spec.runtime_version.as_deref(),
                queued: spec.queued,
            },
        }
    }
}

/// What a dry run would do to a target.
#[derive(Serialize, JsonSchema)]
pub struct TargetPlanPart<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// The control plane's word on it, and for how long that has been so.
    pub state: &'a str,
    /// What would be done, in words.
    pub would: &'a str,
    /// The zone in which it would be asked for.
    pub zone: &'a str,
    /// The accelerator type that would be asked for.
    pub r#type: &'a str,
    /// How it would be paid for.
    pub pricing: Word<Pricing>,
    /// Version of the machines' software; null for the usual one.
    pub version: Option<&'a str>,
    /// Whether it would be asked for by a queued request.
    pub queued: bool,
}

/// What something would do, had it not been a dry run.
#[derive(Serialize, JsonSchema)]
pub struct WouldDocument<'a> {
    /// Nothing was changed.
    #[schemars(extend("const" = true))]
    pub dry_run: bool,
    /// What would be done, in words.
    pub would: &'a str,
}

/// A simulated target to which something has happened.
#[derive(Serialize, JsonSchema)]
pub struct SimulatedTargetDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// The simulated control plane's word on it now.
    pub state: &'a str,
}

/// What happens to the simulated cloud.
#[derive(Serialize, JsonSchema)]
pub struct SimulatedEventDocument<'a> {
    /// The name of the event.
    pub event: &'a str,
}

/// A story that the simulated cloud plays.
#[derive(Serialize, JsonSchema)]
pub struct SimulatedStoryDocument {
    /// How many steps it has.
    pub steps: usize,
}

/// An alias of a target.
#[derive(Serialize, JsonSchema)]
pub struct TargetAliasDocument<'a> {
    /// The alias.
    pub alias: &'a str,
    /// The full name that it stands for.
    pub full: &'a str,
    /// Whether anything else is known of the target.
    pub known: bool,
}

/// The aliases of targets.
#[derive(Serialize, JsonSchema)]
pub struct TargetAliasesDocument<'a> {
    /// Full name by alias.
    pub aliases: Members<&'a str>,
}

/// A target that is known now.
#[derive(Serialize, JsonSchema)]
pub struct RegisteredDocument<'a> {
    /// Its full name.
    pub registered: &'a str,
}

/// A target that is not known any more.
#[derive(Serialize, JsonSchema)]
pub struct ForgottenDocument<'a> {
    /// Its full name.
    pub forgotten: &'a TargetName,
}
