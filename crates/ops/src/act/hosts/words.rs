//! What is said of hosts: as a table, and of each that was added or changed.

use tpu_core::model::capacity::Share;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::figures::{HostFigures, gib, used_of};
use tpu_core::model::time::{self, Timestamp};
use tpu_core::text::columns::columns;
use tpu_core::text::escape;

use super::add::Additions;
use super::{Host, in_words};

/// A host on each row: what it has for jobs, and who has it.
pub fn table(hosts: &[Host], now: Timestamp) -> String {
    // Where nobody has asked any, the columns say nothing.
    let is_asked = hosts.iter().any(|host| host.figures.is_some());
    let with_figures = |host: &Host| {
        let mut row = row(host);
        let at = row.len() - 2;
        row.splice(at..at, is_asked.then(|| figures(host, now)).into_iter().flatten());
        row
    };
    let rows: Vec<Vec<String>> = hosts.iter().map(with_figures).collect();
    let mut titles = vec!["HOST", "JOBS", "GPUS", "CPUS", "MEM", "POOLS", "STATE", "WHO"];
    titles.splice(6..6, is_asked.then_some(FIGURES).into_iter().flatten());
    columns(&titles, &rows)
}

/// The columns of figures: how many programs want a CPU, memory in use, how much the accelerators have to do and how
/// hot the hottest is, and how old that is.
const FIGURES: [&str; 4] = ["LOAD", "USED", "GPU", "AS OF"];

fn figures(host: &Host, now: Timestamp) -> [String; 4] {
    let unknown = || "-".to_owned();
    let Some(figures) = &host.figures else { return std::array::from_fn(|_| unknown()) };
    let as_of = as_of(figures, now);
    let Some(seen) = figures.known(now) else { return [unknown(), unknown(), unknown(), as_of] };
    let load = seen.machine.load.map(|load| match seen.machine.cpus {
        Some(cpus) => format!("{load:.1}/{cpus}"),
        None => format!("{load:.1}"),
    });
    let gpu = seen.gpu_percent().map(|percent| match seen.celsius() {
        Some(celsius) => format!("{percent} % {celsius} °C"),
        None => format!("{percent} %"),
    });
    let used = seen.memory().map(used_of);
    [load.unwrap_or_else(unknown), used.unwrap_or_else(unknown), gpu.unwrap_or_else(unknown), as_of]
}

/// How old what a machine said is, and whether it still says something.
pub fn as_of(figures: &HostFigures, now: Timestamp) -> String {
    match (&figures.silent, figures.age_s(now)) {
        (None, Some(age)) => format!("{} ago", time::age(age)),
        (Some(_), Some(age)) => format!("silent, {} ago", time::age(age)),
        (Some(_), None) => "silent".to_owned(),
        (None, None) => "not yet".to_owned(),
    }
}

fn row(host: &Host) -> Vec<String> {
    let capacity = &host.capacity;
    let of = |used: usize, all: Option<u32>| match all {
        Some(all) => format!("{used}/{all}"),
        None => "-".to_owned(),
    };
    let limit = |limit: Option<String>| limit.unwrap_or_else(|| "-".to_owned());
    let words = |words: &[String]| {
        if words.is_empty() { "-".to_owned() } else { escape(&words.join(",")).into_owned() }
    };
    vec![
        escape(host.name.as_str()).into_owned(),
        match capacity.jobs {
            Some(_) => of(host.jobs.len(), capacity.jobs),
            None => host.jobs.len().to_string(),
        },
        of(host.gpus_in_use(), capacity.gpus),
        limit(capacity.cpus.map(|count| count.to_string())),
        limit(capacity.memory.map(|memory| memory.to_string())),
        words(&[host.record.pools.clone(), host.record.tags.clone()].concat()),
        if host.record.drained.is_some() { "drained" } else { "open" }.to_owned(),
        who(host),
    ]
}

/// Who has a place on a host, each with its share.
pub fn who(host: &Host) -> String {
    let each = host.jobs.iter().map(|(job, share)| {
        let share = share.as_ref().map(Share::in_words).filter(|words| !words.is_empty());
        share.map_or_else(|| job.to_string(), |share| format!("{job} ({share})"))
    });
    escape(&each.collect::<Vec<_>>().join(", ")).into_owned()
}

/// What each new host takes and says of itself; and notes on those that are silent, and those that were not added.
pub fn added(Additions { added, refused }: &Additions) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let mut text = String::new();
    let mut silent = Vec::new();
    for host in added {
        let name = escape(host.name.as_str());
        text += &format!("{name} takes {}", in_words(&host.capacity));
        match &host.answer {
            Some(Ok(fact)) => text += &format!(": {}\n", machine(host.name.as_str(), fact)),
            Some(Err(why)) => {
                text.push_str(".\n");
                notes.push(added_all_the_same(&name, why));
                silent.push(name.into_owned());
            }
            None => text.push_str(".\n"),
        }
    }
    for host in refused {
        let why = escape(host.why.trim_end_matches('.'));
        let next = host.next_step();
        notes.push(format!(
            "{} is not added: {why}; {}",
            escape(host.name.as_str()),
            escape(&next)
        ));
    }
    if !silent.is_empty() {
        let names = silent.join(",");
        notes.push(format!(
            "ask again: tpu hosts probe {names}; what has a wrong name or address: tpu hosts remove {names}"
        ));
    }
    (text, notes)
}

/// What is said of a machine that has just been made known and does not answer.
pub fn added_all_the_same(name: &str, why: &str) -> String {
    let why = why.trim_end_matches('.');
    format!("{name} does not answer: {why}; it is added all the same")
}

/// What a machine says of itself, in a line; what it calls itself only where that is not what we call it.
pub fn machine(name: &str, fact: &MachineFact) -> String {
    let own = (fact.hostname != name).then(|| escape(&fact.hostname).into_owned());
    let mut parts: Vec<String> = own.into_iter().collect();
    let load = fact.load.zip(fact.cpus);
    parts.extend(load.map(|(load, cpus)| format!("load {load:.1} of {cpus} CPUs")));
    let memory = fact.available.zip(fact.memory);
    parts
        .extend(memory.map(|(free, all)| format!("memory {} of {} GiB free", gib(free), gib(all))));
    parts.extend(fact.free_disk.map(|free| format!("disk {} GiB free", gib(free))));
    if !fact.gpus.is_empty() {
        let busy = fact.busy();
        let free = fact.gpus.len().saturating_sub(busy.len());
        let who: Vec<String> =
            busy.iter().map(|(gpu, user)| format!("GPU {gpu} {}", escape(user))).collect();
        let by = if who.is_empty() { String::new() } else { format!(" ({})", who.join(", ")) };
        parts.push(format!("{free} of {} GPUs idle{by}", fact.gpus.len()));
    }
    parts.join(", ")
}
