//! Answers of providers that the daemons of several accounts share.

use std::collections::BTreeMap;

use tpu_core::model::time::Timestamp;

use super::{ProviderFacts, Said, watching};
use crate::Ctx;
use crate::base::fact_cache::{self, SharedAnswer};
use crate::base::providers::Numbered;

impl ProviderFacts {
    /// What other daemons were told within the last so many seconds, if that says it all: nobody is asked.
    pub(in crate::observe) fn of_others(ctx: &Ctx, young_s: u64) -> Option<Self> {
        let places = ctx.places();
        let providers = watching(ctx, &places);
        if providers.iter().all(|provider| provider.door.is_here()) {
            return None;
        }
        let answers = fact_cache::answers(ctx, young_s);
        let now = ctx.clock.now();
        let said = |provider: &Numbered| match answers.get(&provider.at.to_string()) {
            Some(answer) => Some(Said::shared(provider, answer)),
            // It answers at once.
            None if provider.door.is_here() => {
                Some(Said::of(provider, provider.door.list(&[]), now))
            }
            None => None,
        };
        let said: Vec<Said> = providers.iter().map(said).collect::<Option<_>>()?;
        let asked_at = said.iter().map(|said| said.asked_at).min()?;
        Some(Self { places, said, asked_at })
    }

    /// When the oldest of it was asked for.
    pub(in crate::observe) fn asked_at(&self) -> Timestamp {
        self.asked_at
    }

    /// The answers of whole providers, for other daemons.
    pub(in crate::observe) fn whole(&self) -> BTreeMap<String, SharedAnswer> {
        let is_whole =
            |said: &&Said| !said.is_here && said.unanswered.is_none() && !said.has_silence();
        let whole = self.said.iter().filter(is_whole);
        whole.map(|said| (said.at.to_string(), said.to_shared())).collect()
    }
}

impl Said {
    /// What another daemon was told.
    fn shared(provider: &Numbered, answer: &SharedAnswer) -> Self {
        let mut said = Self::of(provider, Vec::new(), answer.asked_at);
        for fact in &answer.targets {
            said.known.entry(fact.name.clone()).or_default().push(fact.clone());
        }
        said.zones = answer.zones.iter().map(|(zone, at)| (zone.clone(), Ok(*at))).collect();
        said
    }

    /// For other daemons.
    fn to_shared(&self) -> SharedAnswer {
        let zones = self.zones.iter();
        let answered =
            zones.filter_map(|(zone, at)| Some((zone.clone(), at.as_ref().ok().copied()?)));
        SharedAnswer {
            asked_at: self.asked_at,
            zones: answered.collect(),
            targets: self.facts().cloned().collect(),
        }
    }
}
