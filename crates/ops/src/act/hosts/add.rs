//! Makes machines known as hosts.

use std::collections::BTreeMap;

use crate::act::targets;
use crate::base::names::refuse_taken;
use crate::{Ctx, Error};
use tpu_core::model::capacity::Capacity;
use tpu_core::model::data::Data;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::host::HostRecord;
use tpu_core::model::ids::TargetName;
use tpu_core::model::login;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::{Registration, Target};
use tpu_system::remote::ssh::SshConfig;

use super::probe::{self, Depth, PATIENCE};
use super::{Limits, edit};
use crate::base::named::expanded;

/// What is said of machines, beside their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewHosts {
    /// Where they are, as patterns: as many as there are names. Without one a machine is where its name leads.
    pub addresses: Vec<String>,
    /// The account there.
    pub user: Option<String>,
    /// The key for it.
    pub key: Option<String>,
    /// What else their kind wants to know.
    pub options: KindOptions,
    /// What they have for jobs.
    pub limits: Limits,
    /// Pools that they are to be in.
    pub pools: Vec<String>,
    /// Words by which they are to be found.
    pub tags: Vec<String>,
    /// What is read there before a command begins.
    pub pyenv: Option<String>,
}

/// A machine that was added.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// What it is called.
    pub name: TargetName,
    /// What it has for jobs.
    pub capacity: Capacity,
    /// What it says of itself, or why it says nothing; `None` where nobody asked.
    pub answer: Option<Result<MachineFact, String>>,
}

/// A machine that was not added: a person has to log in to it once, or to correct its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdded {
    /// What it was to be called.
    pub name: TargetName,
    /// Why, in the words of ssh.
    pub why: String,
    /// The command that shows it: `ssh alice@gpu1`.
    pub login: String,
}

/// Machines that were to be added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Additions {
    /// Those that were.
    pub added: Vec<Added>,
    /// Those that were not.
    pub refused: Vec<NotAdded>,
}

/// Makes machines known. Each is asked once, side by side, unless `is_asked` says otherwise. One that does not answer in
/// time is added; one to which ssh finds no way before a person does something is not. An error if none is added.
/// `commands` are words that no name may be.
pub fn add(
    ctx: &Ctx,
    words: &[String],
    said: &NewHosts,
    (is_asked, commands): (bool, &[String]),
) -> Result<Additions, Error> {
    let new = registrations(ctx, words, said)?;
    let data = ctx.data()?;
    for (name, registration) in &new {
        refuse_known(&data, name, commands)?;
        refuse_known_place(&data, registration)?;
    }
    said.pools.iter().chain(&said.tags).try_for_each(|word| edit::may_group(&data, word))?;
    let answers: Vec<Option<Result<MachineFact, String>>> = if is_asked {
        answers(ctx, &with(&data, &new), &new)?.into_iter().map(Some).collect()
    } else {
        vec![None; new.len()]
    };
    let (new, refused) = parted(new.into_iter().zip(answers));
    if new.is_empty() && !refused.is_empty() {
        return Err(none_added(refused));
    }
    ctx.transact(|tx| {
        for ((name, registration), _) in &new {
            refuse_known(&tx.data, name, commands)?;
            refuse_known_place(&tx.data, registration)?;
            tx.data.registry_mut().register(name.clone(), registration.clone());
            tx.edited(None, format!("{name} is a host"));
        }
        Ok(())
    })?;
    let added = new.into_iter().map(|((name, registration), answer)| Added {
        name,
        capacity: registration.capacity(),
        answer,
    });
    Ok(Additions { added: added.collect(), refused })
}

/// A machine that is to be registered.
type New = (TargetName, Registration);

/// What a machine says of itself, or why it says nothing; `None` where nobody asked.
type Answer = Option<Result<MachineFact, String>>;

/// Parts new machines into those that are added and those that are not.
fn parted(new: impl Iterator<Item = (New, Answer)>) -> (Vec<(New, Answer)>, Vec<NotAdded>) {
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for ((name, registration), answer) in new {
        match answer {
            Some(Err(why)) if login::needs_person(&why) => {
                refused.push(NotAdded { login: login_to(&registration), name, why });
            }
            answer => kept.push(((name, registration), answer)),
        }
    }
    (kept, refused)
}

/// The error for machines of which none was added.
fn none_added(refused: Vec<NotAdded>) -> Error {
    let one = |host: NotAdded| {
        let what = format!("{} is not added: {}", host.name, host.why.trim_end_matches('.'));
        Error::unreachable(what).hint(host.next_step())
    };
    let errors = refused.into_iter().map(one).collect();
    Error::all(errors).unwrap_or_else(|| Error::unreachable("no host is added"))
}

impl NotAdded {
    /// What to type next.
    pub fn next_step(&self) -> String {
        format!("log in once: {}; then add it again: tpu hosts add {}", self.login, self.name)
    }
}

/// The ssh command with which a person logs in to a machine.
fn login_to(registration: &Registration) -> String {
    let address = registration.addresses.first().map_or("", String::as_str);
    let (host, port) = SshConfig::place(address);
    let mut words = vec!["ssh".to_owned()];
    words.extend(registration.ssh_key.iter().flat_map(|key| ["-i".to_owned(), key.clone()]));
    let jump = registration.options.get("jump");
    words.extend(jump.into_iter().flat_map(|jump| ["-J".to_owned(), jump.to_owned()]));
    words.extend(port.into_iter().flat_map(|port| ["-p".to_owned(), port.to_owned()]));
    words.push(match &registration.ssh_user {
        Some(user) => format!("{user}@{host}"),
        None => host.to_owned(),
    });
    words.join(" ")
}

/// The machines that are to be added, as they are to be registered.
fn registrations(
    ctx: &Ctx,
    words: &[String],
    said: &NewHosts,
) -> Result<Vec<(TargetName, Registration)>, Error> {
    let names = each_once(words)?;
    let addresses = addresses_of(&said.addresses)?;
    let addresses = if addresses.is_empty() { names.clone() } else { addresses };
    if addresses.len() != names.len() {
        let what = format!("{} names and {} addresses", names.len(), addresses.len());
        return Err(Error::usage(what).hint("give as many addresses as names, or none"));
    }
    let one = |(name, address): (&String, String)| registration(ctx, name, address, said);
    names.iter().zip(addresses).map(one).collect()
}

/// One machine as it is to be registered.
pub(crate) fn registration(
    ctx: &Ctx,
    name: &str,
    address: String,
    said: &NewHosts,
) -> Result<(TargetName, Registration), Error> {
    targets::checked_name(name)?;
    let registration = Registration {
        kind: targets::kind(ctx, None, &["address"])?,
        addresses: vec![address],
        ssh_user: said.user.clone(),
        ssh_key: said.key.clone(),
        origin: Some("host".to_owned()),
        capacity: Some(said.limits.of(Capacity::ONE)),
        host: Some(HostRecord {
            pools: said.pools.clone(),
            tags: said.tags.clone(),
            pyenv: said.pyenv.clone(),
            ..HostRecord::default()
        }),
        options: said.options.clone(),
        ..Registration::default()
    };
    targets::checked(ctx, &registration).map(|checked| (TargetName::from(name), checked))
}

/// What new machines say of themselves, each asked once; of one that says nothing, why. `data` knows them already.
pub(crate) fn answers(
    ctx: &Ctx,
    data: &Data,
    new: &[(TargetName, Registration)],
) -> Result<Vec<Result<MachineFact, String>>, Error> {
    let there: Vec<Target> = new.iter().filter_map(|(name, _)| data.target(name)).collect();
    let answers = probe::machines(ctx, data, &there, (Depth::State, PATIENCE));
    refuse_one_machine_twice(new, &answers)?;
    Ok(answers)
}

/// Addresses may come twice, with the ports of several machines behind one; brackets around one of version 6 are no
/// pattern.
fn addresses_of(words: &[String]) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for word in words {
        let is_v6 = word.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if is_v6.is_some_and(|(inner, _)| inner.contains(':')) {
            all.push(word.clone());
        } else {
            all.extend(expanded(word)?);
        }
    }
    Ok(all)
}

fn each_once(words: &[String]) -> Result<Vec<String>, Error> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        for name in expanded(word)? {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    Ok(all)
}

/// The data with them in it, for whoever asks them before they are added.
fn with(data: &Data, new: &[(TargetName, Registration)]) -> Data {
    let mut data = data.clone();
    for (name, registration) in new {
        data.registry_mut().register(name.clone(), registration.clone());
    }
    data
}

pub(crate) fn refuse_known(
    data: &Data,
    name: &TargetName,
    commands: &[String],
) -> Result<(), Error> {
    if data.registration(name).is_some() || Target::built_in_of(name).is_some() {
        return Err(Error::refused(format!("{name} is known already")).hint(format!(
            "change it: tpu hosts set {name} …; or first: tpu hosts remove {name}"
        )));
    }
    refuse_taken(data, name.as_str(), commands)
}

/// Refuses an address at which a machine is known already: it would have two names.
fn refuse_known_place(data: &Data, registration: &Registration) -> Result<(), Error> {
    if is_any_machine(registration) {
        return Ok(());
    }
    let is_there = |known: &Registration| {
        known.options.get("jump") == registration.options.get("jump")
            && known.addresses.iter().any(|address| registration.addresses.contains(address))
    };
    match data.registry().registrations().find(|(_, known)| is_there(known)) {
        None => Ok(()),
        Some((other, known)) => {
            let what = format!("{other} is at {} already", known.addresses.join(", "));
            Err(Error::refused(what).hint(format!(
                "change it: tpu hosts set {other} …; --any-identity adds it as it is"
            )))
        }
    }
}

/// Two names of one machine would give its GPUs out twice. A machine names the time since it was started, which no
/// other one does.
fn refuse_one_machine_twice(
    new: &[(TargetName, Registration)],
    answers: &[Result<MachineFact, String>],
) -> Result<(), Error> {
    let mut by_boot: BTreeMap<&str, &TargetName> = BTreeMap::new();
    for ((name, registration), answer) in new.iter().zip(answers) {
        let Ok(fact) = answer else { continue };
        let Some(boot) = fact.boot.as_deref().filter(|_| !is_any_machine(registration)) else {
            continue;
        };
        if let Some(other) = by_boot.insert(boot, name) {
            let what =
                format!("{other} and {name} are one machine, which calls itself {}", fact.hostname);
            return Err(Error::refused(what)
                .hint("give each machine one name; --any-identity adds them as they are"));
        }
    }
    Ok(())
}

/// Whether any machine may be behind the address.
fn is_any_machine(registration: &Registration) -> bool {
    registration.options.get("identity") == Some("any")
}
