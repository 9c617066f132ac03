//! `tpu flavors`: what jobs may ask for by name.

use clap::Command;
use serde_json::json;

use tpu_engine::kinds::{KindAnswer, KindCommand, KindList};

use super::table::table;
use crate::flavors::{Amounts, Flavor, amount_in_words, is_gpu};
use crate::settings::KubernetesSettings;

/// The command.
pub(super) const COMMAND: KindCommand = KindCommand {
    command: || {
        Command::new("flavors")
            .about("List the resource flavors that jobs can ask for (run -r)")
            .defer(define)
    },
    spelled: |words| words,
    destroys: |_| false,
    run: |effects, _| super::listed(KindList::Flavors, effects),
};

const HEAD: [&str; 10] = [
    "NAME",
    "CPU REQ",
    "CPU LIM",
    "MEMORY REQ",
    "MEMORY LIM",
    "NVIDIA",
    "AMD",
    "INTEL",
    "OTHER",
    "DESCRIPTION",
];

fn define(command: Command) -> Command {
    command.after_help(
        "Examples:\n  tpu flavors\n  tpu flavors --json\n\nThey are what is built in, and over it \
         /etc/tpu/kubernetes.json and\n~/.config/tpu/kubernetes.json. * is the default.",
    )
}

/// The flavors of some settings.
pub(super) fn listed(settings: &KubernetesSettings) -> KindAnswer {
    let of = &settings.job.resources;
    let is_default = |flavor: &Flavor| of.default.as_ref() == Some(&flavor.name);
    let rows: Vec<Vec<String>> =
        of.predefined.iter().map(|flavor| row(flavor, is_default(flavor))).collect();
    let none = "There is no default: a job names one with -r.\n";
    let note = if of.default.is_none() { none } else { "* is the default.\n" };
    let answer = json!({"default": of.default, "flavors": of.predefined});
    KindAnswer { text: table(&HEAD, &rows) + note, answer, ..KindAnswer::default() }
}

fn row(flavor: &Flavor, is_default: bool) -> Vec<String> {
    let (requests, limits) = (&flavor.resources.requests, &flavor.resources.limits);
    let of = |amounts: &Amounts, name: &str| {
        amounts.get(name).and_then(amount_in_words).unwrap_or_default()
    };
    let device = |name: &str| {
        let limit = of(limits, name);
        if limit.is_empty() { of(requests, name) } else { limit }
    };
    let is_other = |name: &&String| {
        name.contains('/')
            && !["nvidia.com/gpu", "amd.com/gpu"].contains(&name.as_str())
            && !is_intel(name)
    };
    let mut other: Vec<&String> = requests.keys().chain(limits.keys()).filter(is_other).collect();
    other.sort_unstable();
    other.dedup();
    let other: Vec<String> =
        other.into_iter().map(|name| format!("{name}={}", device(name))).collect();
    let intel: Vec<String> = requests
        .keys()
        .chain(limits.keys().filter(|name| !requests.contains_key(*name)))
        .filter(|name| is_intel(name))
        .map(|name| device(name))
        .collect();
    vec![
        format!("{}{}", flavor.name, if is_default { " *" } else { "" }),
        of(requests, "cpu"),
        of(limits, "cpu"),
        of(requests, "memory"),
        of(limits, "memory"),
        device("nvidia.com/gpu"),
        device("amd.com/gpu"),
        intel.join("+"),
        other.join(" "),
        flavor.description.clone().unwrap_or_default(),
    ]
}

/// Whether a resource is GPUs of Intel.
fn is_intel(name: &str) -> bool {
    name.starts_with("gpu.intel.com/") && is_gpu(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_has_its_column() {
        let text = r#"{"job": {"resources": {"default": "all", "predefined": [{"name": "all", "description": "of each",
            "resources": {"requests": {"cpu": 2, "memory": "1G", "nvidia.com/gpu": 1, "gpu.intel.com/i915": 3, "google.com/tpu": 4},
                          "limits": {"cpu": "3", "memory": "2G", "amd.com/gpu": "2"}}}]}}}"#;
        let said = listed(&KubernetesSettings::parse(text).unwrap());
        let row: Vec<&str> = said
            .text
            .lines()
            .nth(1)
            .unwrap()
            .split("  ")
            .filter(|cell| !cell.is_empty())
            .map(str::trim)
            .collect();
        assert_eq!(
            row,
            ["all *", "2", "3", "1G", "2G", "1", "2", "3", "google.com/tpu=4", "of each"]
        );
        let none = listed(&KubernetesSettings::built_in());
        assert!(none.text.contains("no default"), "{}", none.text);
        assert_eq!(none.answer["default"], json!(null));
        assert_eq!(none.answer["flavors"][1]["name"], "small-gpu");
    }
}
