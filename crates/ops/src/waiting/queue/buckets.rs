//! Says before a target is made which of the buckets that its job names are in other regions. What cannot be asked says
//! nothing, and keeps no job from waiting.

use std::collections::BTreeSet;

use crate::Ctx;
use tpu_core::model::bucket;
use tpu_core::model::ids::TargetName;
use tpu_core::model::order::TargetOrder;
use tpu_core::model::setup::Module;
use tpu_core::model::spec::JobSpec;

/// Buckets that a job names: as directories, and in what it is given, is to run, and writes to.
fn named(spec: &JobSpec, roots: &[String]) -> BTreeSet<String> {
    let mounts = spec.execution.setup.iter().filter_map(|module| match module {
        Module::Gcsfuse(buckets) => Some(buckets.mounts.iter().map(|of| of.bucket.clone())),
        _ => None,
    });
    let variables = spec.execution.variables.iter().map(|(_, value)| value.clone());
    let configs = spec.configs.iter().map(|(_, value)| value.clone());
    let command = spec.command.iter().flatten().map(|word| word.to_string_lossy().into_owned());
    let texts = variables.chain(configs).chain(command);
    let texts = texts.chain(spec.words.iter().cloned()).chain(roots.iter().cloned());
    let found: Vec<String> = texts.flat_map(|text| bucket::named_in(&text)).collect();
    mounts.flatten().chain(found).collect()
}

/// What is to be said of the buckets of a job for which a target is made: one line for each that is elsewhere.
pub(super) fn elsewhere(
    ctx: &Ctx,
    spec: &JobSpec,
    (order, roots): (&TargetOrder, &[String]),
) -> Vec<String> {
    let buckets = named(spec, roots);
    if buckets.is_empty() {
        return Vec::new();
    }
    let Ok(provider) = ctx.provider_of(&TargetName::from(order.name.as_str())) else {
        return Vec::new();
    };
    let zones: BTreeSet<&String> = order.candidates.iter().map(|of| &of.zone).collect();
    let mut lines = Vec::new();
    for bucket in buckets {
        let Ok(place) = provider.bucket_place(&bucket) else { continue };
        let far: Vec<&str> = zones
            .iter()
            .filter(|zone| place.is_near(zone) == Some(false))
            .map(|zone| zone.as_str())
            .collect();
        if !far.is_empty() {
            lines.push(format!(
                "gs://{bucket} is in {}, and the TPU is asked for in {}: what goes between regions is slow and costs money",
                place.location,
                far.join(", ")
            ));
        }
    }
    lines
}
