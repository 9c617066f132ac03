//! How much room partitions have: two listings for all of those of one cluster.

use std::collections::BTreeMap;

use tpu_core::model::facts::Room;
use tpu_engine::runner::RunError;
use tpu_system::sys::clock::Clock;

use super::ask::{self, LOOK, TimeLeft};
use super::client::{Client, ProgramCall};
use super::cluster::Cluster;
use super::listing::SEPARATOR;

/// What is asked of each sort of node of each partition.
const FIELDS: [&str; 8] =
    ["PartitionName", "Available", "Time", "StateLong", "Nodes", "CPUsState", "Gres", "GresUsed"];

/// The rooms of the partitions of a cluster, by their names; or why it does not say.
pub(super) fn ask(
    client: &dyn Client,
    clock: &dyn Clock,
) -> Result<BTreeMap<String, Room>, String> {
    let time = TimeLeft::new(clock, LOOK);
    let format: Vec<String> = FIELDS.iter().map(|field| format!("{field}:{SEPARATOR}")).collect();
    let nodes = ProgramCall::new("sinfo", time.left())
        .args(["--noheader", "--all"])
        .arg(format!("--Format={}", format.join(",")));
    let mut rooms = of_nodes(&ask::ask(client, &nodes)?);
    for is_mine in [false, true] {
        let jobs = ProgramCall::new("squeue", time.left())
            .args(["--noheader", "--all", "--array", "--states=RUNNING,PENDING"])
            .arg(format!("--format=%P{SEPARATOR}%T"))
            .args(is_mine.then_some("--me"));
        // Not every cluster says what others do.
        if let Ok(jobs) = ask::ask(client, &jobs) {
            count(&mut rooms, &jobs, is_mine);
        }
    }
    Ok(rooms)
}

/// That of one partition.
pub(super) fn of(
    rooms: &Result<BTreeMap<String, Room>, String>,
    cluster: &Cluster,
    name: &str,
) -> Result<Room, RunError> {
    let rooms = rooms.as_ref().map_err(|why| ask::unreachable(cluster, why))?;
    // A job may be for several partitions: which of them takes it is not known before.
    let of = |name: &str| rooms.get(name).cloned();
    let first = name.split(',').find_map(of);
    first.ok_or_else(|| {
        let what = format!("{} has no partition {name}", cluster.in_words());
        RunError::not_found(what, "`sinfo` lists those that it has")
    })
}

fn of_nodes(text: &str) -> BTreeMap<String, Room> {
    let mut rooms: BTreeMap<String, Room> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(SEPARATOR).map(str::trim).collect();
        let [name, state, longest, how, nodes, cpus, gres, used, ..] = *fields.as_slice() else {
            continue;
        };
        let Ok(nodes) = nodes.parse::<u32>() else { continue };
        let room = rooms.entry(name.to_owned()).or_default();
        state.clone_into(&mut room.state);
        room.limits = limit(longest);
        let place = match how.trim_end_matches(['*', '~', '#', '$', '@', '+', '^', '!', '%', '-']) {
            "idle" => Some(&mut room.idle),
            "mixed" => Some(&mut room.mixed),
            "allocated" | "completing" => None,
            _ => Some(&mut room.down),
        };
        if let Some(place) = place {
            *place = Some(place.unwrap_or(0).saturating_add(nodes));
        }
        let free = cpus.split('/').nth(1).and_then(|free| free.parse::<u64>().ok());
        room.free_cpus = Some(room.free_cpus.unwrap_or(0) + free.unwrap_or(0));
        let is_usable = matches!(how, "idle" | "mixed" | "allocated" | "completing");
        if let Some(all) = gpus(gres) {
            let free = all.saturating_sub(gpus(used).unwrap_or(0)) * u64::from(nodes);
            room.free_gpus = Some(room.free_gpus.unwrap_or(0) + if is_usable { free } else { 0 });
        }
    }
    for room in rooms.values_mut() {
        for number in [&mut room.idle, &mut room.mixed, &mut room.down] {
            number.get_or_insert(0);
        }
    }
    rooms
}

/// `24 h at most`, as Slurm writes it.
fn limit(longest: &str) -> Vec<String> {
    match longest {
        "infinite" | "UNLIMITED" | "n/a" | "" => Vec::new(),
        longest => vec![format!("{longest} at most")],
    }
}

/// The GPUs in `gpu:a100:2(S:0-1),gpu:v100:1,shard:4`; `None` where there are none.
fn gpus(text: &str) -> Option<u64> {
    let (mut bare, mut depth) = (String::new(), 0_u32);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let of_gpus = bare.split(',').filter(|one| one.split(':').next() == Some("gpu"));
    let counts: Vec<u64> = of_gpus
        .map(|one| one.rsplit(':').next().and_then(|count| count.parse().ok()).unwrap_or(1))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn count(rooms: &mut BTreeMap<String, Room>, jobs: &str, is_mine: bool) {
    for room in rooms.values_mut() {
        let numbers = if is_mine {
            [&mut room.my_running, &mut room.my_waiting]
        } else {
            [&mut room.running, &mut room.waiting]
        };
        for number in numbers {
            *number = Some(0);
        }
    }
    for line in jobs.lines() {
        let Some((partitions, state)) = line.split_once(SEPARATOR) else { continue };
        for name in partitions.split(',') {
            let Some(room) = rooms.get_mut(name.trim()) else { continue };
            let number = match (state.trim(), is_mine) {
                ("RUNNING", false) => &mut room.running,
                ("RUNNING", true) => &mut room.my_running,
                (_, false) => &mut room.waiting,
                (_, true) => &mut room.my_waiting,
            };
            *number = Some(number.unwrap_or(0).saturating_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 22.05.8 has written it.
    const NODES: &str = "low\u{1f}up\u{1f}infinite\u{1f}drained\u{1f}1\u{1f}0/0/4/4\u{1f}gpu:a100:2\u{1f}gpu:a100:0(IDX:N/A)\u{1f}
low\u{1f}up\u{1f}infinite\u{1f}mixed\u{1f}2\u{1f}6/2/0/8\u{1f}gpu:a100:2(S:0-1)\u{1f}gpu:a100:1(IDX:0)\u{1f}
hid\u{1f}up\u{1f}1-00:00:00\u{1f}idle\u{1f}1\u{1f}0/4/0/4\u{1f}(null)\u{1f}gpu:0\u{1f}
";

    #[test]
    fn the_sorts_of_node_of_a_partition_are_added_up() {
        let mut rooms = of_nodes(NODES);
        count(&mut rooms, "low\u{1f}RUNNING\nlow,hid\u{1f}PENDING\nlow\u{1f}PENDING\n", false);
        count(&mut rooms, "low\u{1f}RUNNING\n", true);
        let low = &rooms["low"];
        assert_eq!((low.idle, low.mixed, low.down), (Some(0), Some(2), Some(1)));
        assert_eq!((low.free_cpus, low.free_gpus), (Some(2), Some(2)));
        assert_eq!(
            (low.running, low.waiting, low.my_running, low.my_waiting),
            (Some(1), Some(2), Some(1), Some(0))
        );
        let hid = &rooms["hid"];
        assert_eq!(
            (hid.idle, hid.free_gpus, hid.limits.as_slice()),
            (Some(1), None, &["1-00:00:00 at most".to_owned()][..])
        );
        assert_eq!(hid.waiting, Some(1));
    }

    #[test]
    fn gpus_are_counted_in_every_spelling() {
        assert_eq!(gpus("gpu:a100:2(S:0-1),gpu:v100:1,shard:4"), Some(3));
        assert_eq!(gpus("gpu:4"), Some(4));
        assert_eq!(gpus("(null)"), None);
    }
}
