//! Every target that anybody knows: what the control plane says, what the data file holds, and who is on it.
//!
//! Only reads. A zone that says nothing is named with its reason; what is known of its targets then is that
//! nothing is known.

use std::collections::BTreeMap;

use crate::model::data::Data;
use crate::model::facts::{TargetFact, TargetState};
use crate::model::ids::{JobId, TargetName};
use crate::model::job::Job;
use crate::model::target::{LOCAL, Pricing};
use crate::model::time::Timestamp;

use super::fleet::Fleet;
use super::{Ctx, Error};

/// One target.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Full name.
    pub name: TargetName,
    /// The shortest alias, else the full name.
    pub label: String,
    /// Every alias.
    pub aliases: Vec<String>,
    /// Zone, where one is known.
    pub zone: Option<String>,
    /// Accelerator type, where one is known.
    pub accelerator: Option<String>,
    /// How it is paid for.
    pub pricing: Pricing,
    /// What was said about it, and when.
    pub fact: TargetFact,
    /// Live jobs whose records claim it.
    pub users: Vec<JobId>,
}

/// All targets at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Roster {
    /// When it was made.
    pub at: Timestamp,
    /// In the order of their names; this machine first.
    pub targets: Vec<Item>,
    /// Zones that said nothing, and why.
    pub silent: Vec<(String, String)>,
}

impl Roster {
    /// Targets that can be used, and all that a control plane watches.
    pub fn ready(&self) -> (usize, usize) {
        let watched = |item: &&Item| item.fact.state != TargetState::NotWatched;
        let ready = self.targets.iter().filter(|item| item.fact.state == TargetState::Ready);
        (ready.count(), self.targets.iter().filter(watched).count())
    }
}

/// Looks at all targets. Asks the control plane, so it may take its time.
pub fn look(ctx: &Ctx) -> Result<Roster, Error> {
    let data = ctx.data()?;
    let fleet = Fleet::ask(ctx);
    let mut users: BTreeMap<TargetName, Vec<JobId>> = BTreeMap::new();
    for job in data.jobs().filter(|job| job.status.is_live()) {
        users.entry(job.tpu.clone()).or_default().push(Job::id(job));
    }
    let mut names: Vec<TargetName> = data.registry().names();
    names.extend(fleet.targets().map(|fact| fact.name.clone()));
    names.extend(users.keys().cloned());
    names.retain(|name| name.as_str() != LOCAL);
    names.sort();
    names.dedup();
    names.insert(0, TargetName::from(LOCAL));
    let targets = names.into_iter().map(|name| item(&data, &fleet, &mut users, name)).collect();
    let silent = fleet.silent().map(|(zone, why)| (zone.to_owned(), why.clone())).collect();
    Ok(Roster { at: ctx.clock.now(), targets, silent })
}

fn item(
    data: &Data,
    fleet: &Fleet,
    users: &mut BTreeMap<TargetName, Vec<JobId>>,
    name: TargetName,
) -> Item {
    let known = data.target(&name);
    let fact = fleet.fact(data, &name);
    let aliases = data.registry().aliases().filter(|(_, full)| **full == name);
    let registered = known.as_ref().map(|target| target.pricing);
    Item {
        label: data.target_label(&name),
        aliases: aliases.map(|(alias, _)| alias.to_owned()).collect(),
        zone: known.as_ref().and_then(|target| target.zone.clone()).or_else(|| fact.zone.clone()),
        accelerator: fact
            .accelerator
            .clone()
            .or_else(|| known.as_ref().and_then(|target| target.accelerator.clone())),
        // A control plane that watches a target knows best what it costs.
        pricing: match fact.state {
            TargetState::NotWatched | TargetState::Gone | TargetState::Unknown => {
                registered.unwrap_or(fact.pricing)
            }
            _ => fact.pricing,
        },
        users: users.remove(&name).unwrap_or_default(),
        fact,
        name,
    }
}
