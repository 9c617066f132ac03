//! What was seen so far of targets of each type and zone: how often they were taken away, and how long they were waited
//! for ([`tpu_core::plan::seen`]); and what this process has gathered of it last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpu_core::model::order::TypeInZone;
use tpu_core::model::target::{Pricing, Target};
use tpu_core::plan::seen::SeenOf;

/// What was gathered is good for so long: it tells of days and weeks.
const GOOD_FOR: Duration = Duration::from_secs(600);

/// What was seen of each type in each zone, by how it is paid for.
#[derive(Debug, Default)]
pub struct SeenBefore(HashMap<SeenKey, SeenOf>);

/// A type in a zone, by how it is paid for.
pub type SeenKey = (String, String, Option<&'static str>);

impl SeenBefore {
    /// What was seen of one, to be added to.
    pub fn entry(&mut self, key: SeenKey) -> &mut SeenOf {
        self.0.entry(key).or_default()
    }

    /// What was seen of one.
    pub fn of(&self, of: &TypeInZone, pricing: Pricing) -> SeenOf {
        let key = (of.accelerator.clone(), of.zone.clone(), Some(pricing.as_str()));
        self.0.get(&key).copied().unwrap_or_default()
    }

    /// What was seen of targets like this one.
    pub fn of_target(&self, target: &Target) -> SeenOf {
        match (&target.accelerator, &target.zone) {
            (Some(accelerator), Some(zone)) => {
                let of = TypeInZone { accelerator: accelerator.clone(), zone: zone.clone() };
                self.of(&of, target.pricing)
            }
            _ => SeenOf::default(),
        }
    }
}

/// What this process has gathered last, and when, by its monotonic clock.
#[derive(Debug, Default)]
pub struct SeenLately(Mutex<Option<(Duration, Arc<SeenBefore>)>>);

impl SeenLately {
    /// What was gathered a while ago, else what is gathered now. What could not be read is not remembered.
    pub(crate) fn or_gather<E>(
        &self,
        now: Duration,
        gather: impl FnOnce() -> Result<SeenBefore, E>,
    ) -> Result<Arc<SeenBefore>, E> {
        let is_good = |at: &Duration| now.saturating_sub(*at) < GOOD_FOR;
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().as_ref().filter(|(at, _)| is_good(at)).map(|(_, seen)| Arc::clone(seen));
        if let Some(seen) = known {
            return Ok(seen);
        }
        let seen = Arc::new(gather()?);
        *kept() = Some((now, Arc::clone(&seen)));
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_gathered_once_in_a_while_and_again_where_it_could_not_be() {
        let lately = SeenLately::default();
        let at = |seconds| Duration::from_secs(seconds);
        let fails = || Err("the journal is away");
        let never = || -> Result<SeenBefore, &str> { unreachable!("it is known") };
        assert!(lately.or_gather(at(5), fails).is_err());
        let first = lately.or_gather(at(5), || Ok::<_, &str>(SeenBefore::default())).unwrap();
        let again = lately.or_gather(at(600), never).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let later = lately.or_gather(at(605), || Ok::<_, &str>(SeenBefore::default())).unwrap();
        assert!(!Arc::ptr_eq(&first, &later));
        assert!(Arc::ptr_eq(&later, &lately.or_gather(at(606), never).unwrap()));
    }
}
