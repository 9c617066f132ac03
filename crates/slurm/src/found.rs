//! The partitions of a cluster, each of which can be a target.

use std::collections::BTreeMap;

use tpu_core::model::ids::TargetName;
use tpu_core::model::options::KindOptions;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::runner::RunError;

use super::ask;
use super::client::{Client, ProgramCall};
use super::cluster::Cluster;
use super::listing::SEPARATOR;

/// Each partition that this account sees, as it is to be registered.
pub(super) fn found(
    client: &dyn Client,
    cluster: &Cluster,
    said: &Registration,
) -> Result<Vec<(TargetName, Registration)>, RunError> {
    let call = ProgramCall::new("sinfo", ask::PATIENCE)
        .arg("--noheader")
        .arg(format!("--format=%R{SEPARATOR}%G"));
    let text = ask::ask(client, &call).map_err(|why| ask::unreachable(cluster, &why))?;
    let wanted = said.options.get("partition");
    let each = read(&text).into_iter().filter(|(name, _)| wanted.is_none_or(|it| it == name));
    let registered = each.map(|(name, devices)| {
        let of_all = said.options.pairs().filter(|(option, _)| *option != "partition");
        let mut options: KindOptions = of_all.collect();
        options.say("partition", &name);
        let registration = Registration {
            kind: TargetKind::new(super::WORD),
            engine: true,
            accelerator: devices,
            options,
            ..said.clone()
        };
        (TargetName::new(name), registration)
    });
    Ok(registered.collect())
}

/// The devices of a node of each partition: `gpu:a100:2`. Each line is a sort of node of one.
fn read(text: &str) -> BTreeMap<String, Option<String>> {
    let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in text.lines() {
        let Some((name, devices)) = line.split_once(SEPARATOR) else { continue };
        // Which of them belong to which socket says nothing here.
        let bare = devices.split('(').next().unwrap_or_default().trim();
        let found = all.entry(name.trim().to_owned()).or_default();
        if !bare.is_empty() {
            found.get_or_insert_with(|| bare.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_is_found_once_with_its_devices() {
        let text = "gpu\u{1f}(null)\ngpu\u{1f}gpu:a100:2(S:0-1)\ncpu\u{1f}(null)\nodd\n";
        let all = read(text);
        assert_eq!(all.len(), 2);
        assert_eq!((all["gpu"].as_deref(), all["cpu"].as_deref()), (Some("gpu:a100:2"), None));
    }
}
