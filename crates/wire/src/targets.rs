//! Targets: what control planes say of them, what they cost, what is done to them, their names.

use std::collections::BTreeMap;

use tpu_core::model::facts::{QueuedFact, QueuedState, Room, TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::prices::Prices;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::{Row, Standing};
use tpu_ops::act::board::Board;
use tpu_ops::front::dry_run::Remake;
use tpu_ops::front::inventory::{self, Change, Class, Description, Plan, Sum};

use super::document::{documents, part};
use super::words::{Members, TimePart, Word};
use super::workers::StepPart;

documents! {
    /// Targets, each as its control plane describes it.
    pub struct TargetFactsDocument<'a> {
        /// Each of them.
        targets: Vec<TargetPart<'a>>,
    }

    /// A target after something was done to it.
    pub struct TargetFactDocument<'a> {
        /// As its control plane describes it now.
        target: TargetPart<'a>,
    }

    /// A target that is being made.
    pub struct TargetBegunDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// What has begun: apply or reapply. Events tell how it goes: of the same kind that it has begun, then `made` or
        /// `not-made`.
        begun: &'a str,
    }

    /// What a control plane says about a target.
    pub struct TargetPart<'a> from fact: &'a TargetFact {
        /// Full name.
        name: &'a TargetName,
        /// Zone, where there are zones.
        zone: Option<&'a str>,
        /// Accelerator type.
        r#type: Option<&'a str> = part(&fact.accelerator),
        /// How it is paid for; null if nobody has said.
        pricing: Option<Word<Pricing>> = pricing(fact, fact.pricing),
        /// Its state, reduced to what differs for us.
        state: Word<TargetState>,
        /// The control plane's own word.
        raw_state: &'a str,
        /// Since when it is in that state.
        since: Option<TimePart>,
        /// When it was created.
        created_at: Option<TimePart>,
        /// The control plane's word on its health.
        health: Option<&'a str>,
        /// What is wrong, in the control plane's words.
        symptoms: &'a [String],
        /// The queued request it came from.
        queued: Option<QueuedPart<'a>>,
        /// What its engine says of its room; null where nobody was asked, or has answered.
        room: Option<RoomPart<'a>> = fact.room.as_deref().map(RoomPart::from),
        /// When the control plane said so.
        observed_at: TimePart,
        /// Which control plane said so.
        source: &'a str,
    }

    /// How much room a target has; null where its engine does not say.
    pub struct RoomPart<'a> from room: &'a Room {
        /// The engine's own word for whether jobs begin there.
        state: &'a str,
        /// Nodes with nothing on them.
        idle: Option<u32>,
        /// Nodes with something on them, and with room.
        mixed: Option<u32>,
        /// Nodes on which nothing can begin.
        down: Option<u32>,
        /// CPUs that are free.
        free_cpus: Option<u64>,
        /// GPUs that are free.
        free_gpus: Option<u64>,
        /// Jobs of everybody that run.
        running: Option<u32>,
        /// Jobs of everybody that wait.
        waiting: Option<u32>,
        /// Jobs of whoever asks that run.
        my_running: Option<u32>,
        /// Jobs of whoever asks that wait.
        my_waiting: Option<u32>,
        /// What it allows, in words.
        limits: &'a [String],
    }

    /// The queued request that a target came from.
    pub struct QueuedPart<'a> from request: &'a QueuedFact {
        /// Its name.
        name: &'a str,
        /// Its state, reduced to what differs for us.
        state: Word<QueuedState>,
        /// The control plane's own word.
        raw_state: &'a str,
    }

    /// All targets, and what is in use of them.
    pub struct TargetsDocument<'a>
        from (seen, sums, prices): (&'a Board, &'a BTreeMap<Class, Sum>, &'a Prices)
    {
        /// By zone and name.
        targets: Vec<ListedTargetPart<'a>> = listed(seen, prices),
        /// What is in use, by zone, type and pricing.
        in_use: Vec<InUsePart<'a>> = sums.iter().map(InUsePart::from).collect(),
        /// Zones that said nothing.
        silent: Vec<SilentZonePart<'a>>,
    }

    /// A target with what it costs and who has it.
    pub struct ListedTargetPart<'a> from (row, prices, now): (&'a Row, &'a Prices, Timestamp) {
        /// What its control plane says.
        #[serde(flatten)]
        told: TargetPart<'a> = told(row),
        /// Its shortest alias.
        alias: Option<&'a str> = row.alias(),
        /// Whether the data file knows it.
        known: bool = row.is_known,
        /// How many chips it has; null if its type is not known.
        chips: Option<u32> = inventory::worth(row, prices).0,
        /// What an hour of it costs by the price table of the settings.
        per_hour: Option<f64> = inventory::worth(row, prices).1,
        /// Hours since it was created.
        hours: Option<f64> = inventory::hours(&row.fact, now),
        /// How many live jobs are there.
        jobs: usize = row.jobs.len(),
        /// How it stands on the board.
        standing: Word<Standing>,
        /// Who has it.
        user: Option<&'a str>,
    }

    /// Targets of one type in one zone, paid for in one way, that are in use.
    pub struct InUsePart<'a> from ((zone, kind, pricing), sum): (&'a Class, &Sum) {
        /// Zone, `-` where there is none.
        zone: &'a str = zone,
        /// Accelerator type, `-` where it is not known.
        r#type: &'a str = kind,
        /// How they are paid for.
        #[schemars(with = "Word<Pricing>")]
        pricing: &'static str = pricing,
        /// How many there are.
        targets: usize = sum.targets,
        /// Their chips; null if a type is not known.
        chips: Option<u32> = sum.chips,
        /// What they cost in an hour by the price table of the settings.
        per_hour: Option<f64> = sum.per_hour,
        /// Their hours so far.
        hours: Option<f64> = sum.hours,
        /// What they have cost so far.
        cost: Option<f64> = sum.so_far,
    }

    /// A zone that said nothing.
    pub struct SilentZonePart<'a> from (zone, reason): &'a (String, String) {
        /// Its name; `-` for the whole cloud.
        zone: &'a str = zone,
        /// Why it said nothing.
        reason: &'a str = reason,
    }

    /// What `targets import` finds to be different.
    pub struct ImportDocument<'a> from (plan, imported): (&'a Plan, bool) {
        /// Targets that are new or told differently.
        changes: Vec<ImportChangePart<'a>>,
        /// Known targets that the cloud does not have; they stay.
        absent: &'a [TargetName],
        /// Whether the changes were made.
        imported: bool = imported,
    }

    /// A target that is new or told differently.
    pub struct ImportChangePart<'a> from change: &'a Change {
        /// Full name.
        name: &'a TargetName,
        /// Whether the data file does not know it yet.
        new: bool = change.is_new,
        /// The alias it gets.
        alias: Option<&'a str>,
        /// What differs, in words.
        differences: &'a [String],
    }

    /// Everything about one target.
    pub struct DescribeDocument<'a> {
        /// The target.
        target: DescribedTargetPart<'a>,
    }

    /// Everything about one target, and what its machines say.
    pub struct DescribeMachinesDocument<'a> {
        /// The target.
        target: DescribedTargetPart<'a>,
        /// What each of its machines says; null after a dry run, which asks none.
        machines: Option<Vec<StepPart<'a>>>,
    }

    /// A target with what the data file says of it.
    pub struct DescribedTargetPart<'a> from seen: &'a Description {
        /// What its control plane says.
        #[serde(flatten)]
        told: TargetPart<'a> = part(&seen.fact),
        /// How many chips it has; null if its type is not known.
        chips: Option<u32> = seen.size.0,
        /// How many workers it has.
        workers: Option<usize> = seen.workers(),
        /// Their addresses, in order; empty for one whose address is not known yet.
        addresses: &'a [String] = &seen.fact.endpoints,
        /// Its aliases.
        aliases: &'a [String],
        /// Live jobs there, as in alice/7.
        jobs: Vec<String> = seen.jobs.iter().map(ToString::to_string).collect(),
        /// Who made it known.
        origin: Option<&'a str> =
            seen.registered.as_ref().and_then(|known| known.origin.as_deref()),
    }

    /// What a dry run would do to a target.
    pub struct TargetPlanDocument<'a> from remake: &'a Remake {
        /// Nothing was changed.
        #[schemars(extend("const" = true))]
        dry_run: bool = true,
        /// The plan.
        plan: TargetPlanPart<'a> = part(remake),
    }

    /// What a dry run would do to a target.
    pub struct TargetPlanPart<'a> from remake: &'a Remake {
        /// Full name.
        target: &'a TargetName,
        /// The control plane's word on it, and for how long that has been so.
        state: &'a str,
        /// What would be done, in words.
        would: &'a str = remake.does,
        /// The zone in which it would be asked for.
        zone: &'a str = &remake.spec.zone,
        /// The accelerator type that would be asked for.
        r#type: &'a str = &remake.spec.accelerator,
        /// How it would be paid for.
        pricing: Word<Pricing> = part(&remake.spec.pricing),
        /// Version of the machines' software; null for the usual one.
        version: Option<&'a str> = part(&remake.spec.runtime_version),
        /// Whether it would be asked for by a queued request.
        queued: bool = remake.spec.queued,
    }

    /// What something would do, had it not been a dry run.
    pub struct WouldDocument<'a> {
        /// Nothing was changed.
        #[schemars(extend("const" = true))]
        dry_run: bool,
        /// What would be done, in words.
        would: &'a str,
    }

    /// A simulated target to which something has happened.
    pub struct SimulatedTargetDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// The simulated control plane's word on it now.
        state: &'a str,
    }

    /// What happens to the simulated cloud.
    pub struct SimulatedEventDocument<'a> {
        /// The name of the event.
        event: &'a str,
    }

    /// A story that the simulated cloud plays.
    pub struct SimulatedStoryDocument {
        /// How many steps it has.
        steps: usize,
    }

    /// An alias of a target.
    pub struct TargetAliasDocument<'a> {
        /// The alias.
        alias: &'a str,
        /// The full name that it stands for.
        full: &'a str,
        /// Whether anything else is known of the target.
        known: bool,
    }

    /// The aliases of targets.
    pub struct TargetAliasesDocument<'a> {
        /// Full name by alias.
        aliases: Members<&'a str>,
    }

    /// A target that is known now.
    pub struct RegisteredDocument<'a> {
        /// Its full name.
        registered: &'a str,
    }

    /// A target that is not known any more.
    pub struct ForgottenDocument<'a> {
        /// Its full name.
        forgotten: &'a TargetName,
    }
}

/// How a target is paid for, where anybody has said so.
fn pricing(fact: &TargetFact, pricing: Pricing) -> Option<Word<Pricing>> {
    fact.told_pricing(pricing).map(|_| Word(pricing))
}

/// The targets of a look with what they cost by a table of prices.
fn listed<'a>(seen: &'a Board, prices: &'a Prices) -> Vec<ListedTargetPart<'a>> {
    seen.targets.iter().map(|row| ListedTargetPart::from((row, prices, seen.at))).collect()
}

/// What the control plane says of a target of the board; what the board knows better, as that has it.
fn told(row: &Row) -> TargetPart<'_> {
    TargetPart {
        zone: row.zone.as_deref(),
        r#type: row.told_type(),
        pricing: pricing(&row.fact, row.pricing),
        ..TargetPart::from(&row.fact)
    }
}
