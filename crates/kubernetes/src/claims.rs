//! Whether the volume claims are there that were named for all jobs on a target.

use tpu_core::model::options::KindOptions;

use super::options::{LOG_VOLUME, VOLUME};
use super::request::LOOK;
use super::site::Site;
use super::volumes::Volume;

/// Says of each claim that is not there what comes of that. What the cluster does not say for certain is not said.
pub(super) fn missing(site: &Site<'_>, said: &KindOptions) -> Vec<String> {
    let until = site.effects.clock.monotonic() + LOOK;
    let named = said.all(LOG_VOLUME).iter().chain(said.all(VOLUME));
    let mut claims: Vec<String> =
        named.filter_map(|text| Volume::parse(text)?.claim().map(str::to_owned)).collect();
    claims.sort_unstable();
    claims.dedup();
    let mut missing = Vec::new();
    for claim in claims {
        let left = until.saturating_sub(site.effects.clock.monotonic());
        match site.namespace().claim(&claim, left) {
            Ok(None) => missing.push(format!(
                "{} has no volume claim {claim}: jobs with it wait until there is one",
                site.cluster.in_words()
            )),
            // Who does not answer now is not asked for the others.
            Err(trouble) if trouble.code().is_none() => break,
            Ok(Some(_)) | Err(_) => {}
        }
    }
    missing
}
