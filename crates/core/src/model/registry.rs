//! What data.json knows of targets: aliases, names by zone, and our own registrations.

use serde_json::{Value, json};

use super::capacity::{self, Capacity};
use super::host;
use super::ids::TargetName;
use super::options::KindOptions;
use super::read::{self, DataError, Fields, Json, Path};
use super::target::{Pricing, ProviderName, Registration, Target, TargetKind};
use super::user::set_pair;

/// The keys of `all_tpus` that are no zones: they say how a target is paid for.
pub(crate) const PSEUDO_ZONES: [(&str, Pricing); 2] =
    [("preemptible", Pricing::Preemptible), ("spot", Pricing::Spot)];

/// A list of names under each key, in the order of the file.
type NamesByKey = Vec<(String, Vec<TargetName>)>;

/// Aliases, zones and registrations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    aliases: Vec<(String, TargetName)>,
    zones: NamesByKey,
    /// Where later versions of the original keep what is preemptible and what is spot.
    pre_info: NamesByKey,
    targets: Vec<(TargetName, Registration)>,
}

/// Names that stand for nothing, as in the original's sample file.
fn is_placeholder(name: &str) -> bool {
    matches!(name, "" | "..." | "…")
}

impl Registry {
    /// Aliases and full names, in the order of the file.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &TargetName)> {
        self.aliases.iter().map(|(alias, full)| (alias.as_str(), full))
    }

    /// Sets an alias.
    pub fn set_alias(&mut self, alias: &str, full: TargetName) {
        set_pair(&mut self.aliases, alias.to_owned(), full);
    }

    /// Takes an alias out.
    pub(crate) fn forget_alias(&mut self, alias: &str) {
        self.aliases.retain(|(known, _)| known != alias);
    }

    /// The zones and the names in each, without the keys that are no zones.
    pub fn zones(&self) -> impl Iterator<Item = (&str, &[TargetName])> {
        self.zones
            .iter()
            .filter(|(zone, _)| !PSEUDO_ZONES.iter().any(|(pseudo, _)| pseudo == zone))
            .map(|(zone, names)| (zone.as_str(), names.as_slice()))
    }

    /// Every target that is known by name, each once: registrations, zones, then aliases.
    pub fn names(&self) -> Vec<TargetName> {
        let zones = self.zones.iter().chain(&self.pre_info).flat_map(|(_, names)| names);
        let all = self.targets.iter().map(|(name, _)| name).chain(zones);
        let mut names: Vec<TargetName> = Vec::new();
        for name in all.chain(self.aliases.iter().map(|(_, full)| full)) {
            if !is_placeholder(name.as_str()) && !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Every registration, in the order of the file.
    pub fn registrations(&self) -> impl Iterator<Item = (&TargetName, &Registration)> {
        self.targets.iter().map(|(name, registration)| (name, registration))
    }

    /// The registration of a full name.
    pub fn registration(&self, name: &TargetName) -> Option<&Registration> {
        self.targets.iter().find(|(known, _)| known == name).map(|(_, registration)| registration)
    }

    /// Registers a target, and enters it where the original looks for it.
    pub fn register(&mut self, name: TargetName, registration: Registration) {
        self.unlist(&name);
        if let Some(zone) = &registration.zone {
            self.list(zone, &name);
        }
        if let Some((pseudo, _)) = PSEUDO_ZONES.iter().find(|(_, p)| *p == registration.pricing) {
            self.list(pseudo, &name);
        }
        set_pair(&mut self.targets, name, registration);
    }

    /// Forgets a target: its registration, its zone, and its aliases. Whether anything knew it.
    pub fn forget(&mut self, name: &TargetName) -> bool {
        let before = self.clone();
        self.targets.retain(|(known, _)| known != name);
        self.aliases.retain(|(_, full)| full != name);
        self.unlist(name);
        before != *self
    }

    fn list(&mut self, key: &str, name: &TargetName) {
        match self.zones.iter_mut().find(|(known, _)| known == key) {
            Some((_, names)) => names.push(name.clone()),
            None => self.zones.push((key.to_owned(), vec![name.clone()])),
        }
    }

    fn unlist(&mut self, name: &TargetName) {
        for (_, names) in self.zones.iter_mut().chain(&mut self.pre_info) {
            names.retain(|known| known != name);
        }
    }

    /// Whether anything but an alias knows a full name, or it is built in.
    pub fn is_known_beside_aliases(&self, name: &TargetName) -> bool {
        let mut lists = self.zones.iter().chain(&self.pre_info);
        Target::built_in_of(name).is_some()
            || self.registration(name).is_some()
            || lists.any(|(_, names)| names.contains(name))
    }

    /// The target of a full name, if anything here knows it, or it is built in.
    pub fn target(&self, name: &TargetName) -> Option<Target> {
        if let Some(target) = Target::built_in_of(name) {
            let said = self.registration(name).and_then(|known| known.capacity);
            return Some(Target { capacity: said.unwrap_or(target.capacity), ..target });
        }
        if is_placeholder(name.as_str()) {
            return None;
        }
        let listed = |zones: &NamesByKey, key: &str| {
            zones.iter().any(|(known, names)| known == key && names.contains(name))
        };
        let pricing = PSEUDO_ZONES
            .iter()
            .find(|(key, _)| listed(&self.zones, key) || listed(&self.pre_info, key))
            .map(|(_, pricing)| *pricing);
        let zone = self.zones().find(|(_, names)| names.contains(name)).map(|(zone, _)| zone);
        let registered = self.registration(name);
        let aliased = self.aliases.iter().any(|(_, full)| full == name);
        if registered.is_none() && zone.is_none() && pricing.is_none() && !aliased {
            return None;
        }
        Some(Target {
            name: name.clone(),
            kind: registered.map(|r| r.kind.clone()).unwrap_or_default(),
            machines: registered.map(Registration::machines).unwrap_or_default(),
            zone: registered.and_then(|r| r.zone.clone()).or_else(|| zone.map(str::to_owned)),
            accelerator: registered.and_then(|r| r.accelerator.clone()),
            pricing: registered.map(|r| r.pricing).or(pricing).unwrap_or_default(),
            capacity: registered.map_or(Capacity::ONE, Registration::capacity),
        })
    }

    /// The target of an alias or a full name. An alias comes first, as in the original.
    pub fn resolve(&self, text: &str) -> Option<Target> {
        let alias = self.aliases.iter().find(|(alias, _)| alias == text);
        match alias {
            Some((_, full)) => self.target(full),
            None => self.target(&TargetName::from(text)),
        }
    }

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, DataError> {
        let word = |key: &str| Some(key.to_owned());
        let name = |value: Json<'_>, path: &Path<'_>| read::text(value, path).map(TargetName::new);
        let names = |value: Json<'_>, path: &Path<'_>| {
            read::pairs(value, path, word, |value, path| read::list(value, path, name))
        };
        Ok(Self {
            aliases: fields
                .with("tpu_aliases", |value, path| read::pairs(value, path, word, name))?
                .unwrap_or_default(),
            zones: fields.with("all_tpus", names)?.unwrap_or_default(),
            pre_info: fields.with("pre_info", names)?.unwrap_or_default(),
            targets: fields
                .with("targets", |value, path| {
                    let key = |key: &str| Some(TargetName::from(key));
                    read::pairs(value, path, key, read_registration)
                })?
                .unwrap_or_default(),
        })
    }

    /// The keys of the document whose values differ from `was`, which `old` reads as.
    pub(super) fn changes(&self, was: &Self, document: &Fields<'_>) -> Vec<(&'static str, Value)> {
        let mut changes = Vec::new();
        if self.aliases != was.aliases {
            let aliases = self.aliases.iter().map(|(alias, full)| (alias.clone(), json!(full)));
            changes.push(("tpu_aliases", Value::Object(aliases.collect())));
        }
        let by_key = |names: &NamesByKey| {
            Value::Object(names.iter().map(|(key, names)| (key.clone(), json!(names))).collect())
        };
        if self.zones != was.zones {
            changes.push(("all_tpus", by_key(&self.zones)));
        }
        if self.pre_info != was.pre_info {
            changes.push(("pre_info", by_key(&self.pre_info)));
        }
        if self.targets != was.targets {
            let old = document.get("targets").map(Json::to_value);
            let targets = self.targets.iter().map(|(name, registration)| {
                let old = old.as_ref().and_then(|old| old.get(name.as_str()));
                let same = was.registration(name) == Some(registration);
                let value = match old {
                    Some(old) if same => old.clone(),
                    _ => super::json::overlay(old, write_registration(registration)),
                };
                (name.as_str().to_owned(), value)
            });
            changes.push(("targets", Value::Object(targets.collect())));
        }
        changes
    }
}

/// The shortest alias of a target (of equally short ones the first), else its full name.
pub(super) fn label(registry: &Registry, name: &TargetName) -> String {
    let aliases = registry.aliases.iter().filter(|(_, full)| full == name);
    let shortest = aliases.min_by_key(|(alias, _)| alias.chars().count());
    shortest.map_or_else(|| name.as_str().to_owned(), |(alias, _)| alias.clone())
}

fn read_registration(value: Json<'_>, path: &Path<'_>) -> Result<Registration, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Registration {
        kind: fields.with("kind", read::text)?.map(TargetKind::new).unwrap_or_default(),
        provider: fields.with("provider", read::text)?.map(ProviderName::new),
        project: fields.with("project", read::text)?,
        endpoint: fields.with("endpoint", read::text)?,
        zone: fields.with("zone", read::text)?,
        accelerator: fields.with("type", read::text)?,
        pricing: fields
            .with("pricing", |value, path| {
                let expected = "'on-demand', 'preemptible' or 'spot'";
                read::one_of(value, path, Pricing::parse, expected)
            })?
            .unwrap_or_default(),
        origin: fields.with("origin", read::text)?,
        addresses: fields
            .with("addresses", |value, path| read::list(value, path, read::text))?
            .unwrap_or_default(),
        ssh_user: fields.with("ssh_user", read::text)?,
        ssh_key: fields.with("ssh_key", read::text)?,
        runtime_version: fields.with("runtime_version", read::text)?,
        queued: fields.with("queued", read::flag)?.unwrap_or_default(),
        engine: fields.with("engine", read::flag)?.unwrap_or_default(),
        capacity: fields.with("capacity", capacity::read_capacity)?,
        host: fields.with("host", host::read)?,
        options: fields.with("options", KindOptions::read)?.unwrap_or_default(),
    })
}

fn write_registration(registration: &Registration) -> Value {
    json!({
        "kind": registration.kind.as_str(),
        "provider": registration.provider.as_ref().map(ProviderName::as_str),
        "project": registration.project,
        "endpoint": registration.endpoint,
        "zone": registration.zone,
        "type": registration.accelerator,
        "pricing": registration.pricing.as_str(),
        "origin": registration.origin,
        "addresses": registration.addresses,
        "ssh_user": registration.ssh_user,
        "ssh_key": registration.ssh_key,
        "runtime_version": registration.runtime_version,
        "queued": registration.queued,
        "engine": registration.engine.then_some(true),
        "capacity": registration.capacity.as_ref().map(capacity::write_capacity),
        "host": registration.host.as_ref().map(host::write),
        "options": registration.options.to_value(),
    })
}
