//! Hosts of a jobset and of a cluster. Both say where a machine is and how many jobs it takes; a cluster also says who
//! logs in there, and whether it is to be used.

use std::collections::BTreeMap;

use super::fields::{Fields, ReadField};
use crate::BadFile;

/// A host as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedHost {
    /// What it is called.
    pub name: String,
    /// The line on which it stands.
    pub line: u64,
    /// Where it is: a name or an address.
    pub address: String,
    /// The account there.
    pub user: Option<String>,
    /// Jobs at a time.
    pub jobs: u32,
    /// CPUs to give out.
    pub cpus: Option<u32>,
    /// GPUs to give out.
    pub gpus: Option<u32>,
    /// The `activate` of the Python environment that is read there before a job begins.
    pub pyenv: Option<String>,
    /// Why no job begins there, where the file says so.
    pub closed: Option<String>,
    /// Every field, and what becomes of it.
    pub fields: Vec<ReadField>,
}

/// What one takes at a time of which nothing is said.
const JOBS: u32 = 1;

const COUNTED: &str = "nothing: it is what the file last counted; tpu counts what runs";
const MEASURED: &str = "nothing: `tpu hosts detect` asks the machine itself";
const PROBED: &str = "nothing: tpu asks the machine itself before a job begins there";

/// A host of a jobset, below its tag.
pub(super) fn read_of_jobset(tag: &str, mut fields: Fields<'_>) -> Result<ImportedHost, BadFile> {
    let name = fields.text("name", "its name")?;
    let address = fields.text("ip", "its address")?;
    let is_said = name.is_some();
    let name = name.unwrap_or_else(|| tag.to_owned());
    let mut host = read_rest(&name, address, &mut fields)?;
    host.fields = fields.rest();
    if is_said && name != tag {
        let tag = ReadField {
            name: "(tag)".to_owned(),
            value: tag.to_owned(),
            becomes: format!("nothing: it is called {name}"),
        };
        host.fields.insert(0, tag);
    }
    Ok(host)
}

/// A host of a cluster, below its id: commands call it by that, and its name is where it is if nothing else says so.
pub(super) fn read_of_cluster(id: &str, mut fields: Fields<'_>) -> Result<ImportedHost, BadFile> {
    let said = fields.text("id", "its name")?;
    if let Some(other) = said.filter(|said| said != id) {
        let what = format!("'{other}' stands below {id}");
        return Err(fields.bad("id", what, "give both the same name"));
    }
    let ip = fields.text("ip", "its address")?;
    let name = fields.text("name", "its address")?;
    if ip.is_some() && name.is_some() {
        fields.becomes("name", "nothing: `ip` says where it is");
    }
    let mut host = read_rest(id, ip.or(name), &mut fields)?;
    host.fields = fields.rest();
    Ok(host)
}

/// What both have.
fn read_rest(
    name: &str,
    address: Option<String>,
    fields: &mut Fields<'_>,
) -> Result<ImportedHost, BadFile> {
    let address = address.unwrap_or_else(|| name.to_owned());
    if is_here(&address) {
        fields.becomes("ip", "its address, by ssh; without ssh this machine is called local");
    }
    let user = fields.text("user", "the account there")?;
    let cpus = fields.number("cpus", "CPUs to give out")?;
    let cpus = cpus.or(fields.number("cpu_count", "CPUs to give out")?);
    let jobs = fields.number("max_jobs_allowed", "jobs at a time")?;
    for (field, number) in [("cpus", cpus), ("max_jobs_allowed", jobs)] {
        if number == Some(0) {
            let hint = "a number from 1 up; a host that takes no jobs has `status: inactive`";
            return Err(fields.bad(field, "it is 0", hint));
        }
    }
    fields.text("job_counter", COUNTED)?;
    for field in ["cores", "threads"] {
        fields.text(field, MEASURED)?;
    }
    for field in ["probe_status", "probe_time", "ping_status", "ping_time"] {
        fields.text(field, PROBED)?;
    }
    let pyenv = fields.text("pyenv", "read there before a job begins")?;
    Ok(ImportedHost {
        name: name.to_owned(),
        line: fields.entry_line(),
        address,
        user,
        jobs: jobs.unwrap_or(JOBS),
        cpus,
        gpus: read_gpus(fields)?,
        pyenv,
        closed: read_status(fields)?,
        fields: Vec::new(),
    })
}

/// Whether an address leads to the machine that reads the file.
fn is_here(address: &str) -> bool {
    address == "localhost" || address == "::1" || address.starts_with("127.")
}

/// GPUs as CUDA lists them. The first ones without a gap are so many to give out; other lists cannot be said so.
fn read_gpus(fields: &mut Fields<'_>) -> Result<Option<u32>, BadFile> {
    let Some(text) = fields.text("gpu", "")? else { return Ok(None) };
    let listed: Option<Vec<u32>> = text.split(',').map(|index| index.trim().parse().ok()).collect();
    let count = listed.as_ref().map_or(0, Vec::len);
    let is_whole = listed.is_some_and(|listed| (0..).zip(listed).all(|(place, at)| place == at));
    let count = u32::try_from(count).ok().filter(|_| is_whole);
    let becomes = if count.is_some() {
        "GPUs to give out, counted"
    } else {
        "nothing: tpu gives out GPUs from 0 up; so many of them: tpu hosts set NAME --gpus N"
    };
    fields.becomes("gpu", becomes);
    Ok(count)
}

/// Why no job begins there, where the status says so.
fn read_status(fields: &mut Fields<'_>) -> Result<Option<String>, BadFile> {
    let Some(status) = fields.text("status", "")? else { return Ok(None) };
    let (becomes, closed) = match status.as_str() {
        "free" | "active" => ("it takes jobs", false),
        "inactive" => ("it takes no new jobs, until `tpu hosts undrain`", true),
        _ => ("nothing: it takes jobs as far as it has room", false),
    };
    fields.becomes("status", becomes);
    Ok(closed.then(|| format!("Cloudmesh: {status}")))
}

/// Two entries of one name, and two names of one machine, would let it have more jobs than either says.
pub(super) fn refuse_one_twice(hosts: &[ImportedHost]) -> Result<(), BadFile> {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    let mut by_place: BTreeMap<(Option<&str>, &str), &ImportedHost> = BTreeMap::new();
    for host in hosts {
        if let Some(line) = by_name.insert(&host.name, host.line) {
            let what = format!("a host of this name stands on line {line} already");
            return Err(BadFile::new(host.line, &host.name, what, "give each its own name"));
        }
        if let Some(other) = by_place.insert((host.user.as_deref(), &host.address), host) {
            let what = format!("it is where {} is, on line {}", other.name, other.line);
            let hint = format!(
                "leave one of them, with `max_jobs_allowed: '{}'`",
                u64::from(other.jobs) + u64::from(host.jobs)
            );
            return Err(BadFile::new(host.line, &host.name, what, hint));
        }
    }
    Ok(())
}
