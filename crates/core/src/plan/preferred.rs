//! In which order the types and zones are tried that a job says would do, where it prefers the cheapest or the fastest.

use super::seen::{SeenOf, SeenWaits};
use crate::model::order::{Preferred, TypeInZone};

/// What is known of one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownOf {
    /// What an hour of it costs.
    pub per_hour: Option<f64>,
    /// What was seen of waiting for it, and of running there.
    pub seen: SeenOf,
}

/// Puts what would do in the order in which it is tried, and says why. What nothing is known of comes behind the rest, in
/// the order in which it was written; all of it where nothing is known of any. Of two that are as cheap, or as fast, the
/// one comes first that was taken away less often.
pub fn order(
    candidates: &[TypeInZone],
    preferred: Preferred,
    known: impl Fn(&TypeInZone) -> KnownOf,
) -> (Vec<TypeInZone>, String) {
    let mut all: Vec<(&TypeInZone, KnownOf)> =
        candidates.iter().map(|candidate| (candidate, known(candidate))).collect();
    let is_known = |of: &KnownOf| match preferred {
        Preferred::Cheapest => of.per_hour.is_some(),
        Preferred::Fastest => of.seen.waits.for_each().is_some(),
    };
    if !all.iter().any(|(_, of)| is_known(of)) {
        let what = match preferred {
            Preferred::Cheapest => "the settings name no price of any of them (prices)",
            Preferred::Fastest => "nobody has waited for any of them yet",
        };
        return (candidates.to_vec(), format!("in the order in which they are written: {what}"));
    }
    match preferred {
        Preferred::Cheapest => all.sort_by(|(_, a), (_, b)| {
            let price = |of: &KnownOf| of.per_hour.unwrap_or(f64::INFINITY);
            price(a).total_cmp(&price(b)).then_with(|| a.seen.steadier(&b.seen))
        }),
        // What nobody knows may be there at once; what never came is not likely to.
        Preferred::Fastest => {
            let wait = |of: &KnownOf| of.seen.waits.for_each().unwrap_or(u64::MAX - 1);
            all.sort_by(|(_, a), (_, b)| {
                wait(a).cmp(&wait(b)).then_with(|| a.seen.steadier(&b.seen))
            });
        }
    }
    let why: Vec<String> = all
        .iter()
        .map(|(of, known)| format!("{} in {} {}", of.accelerator, of.zone, told(preferred, known)))
        .collect();
    let sorted = all.iter().map(|(candidate, _)| (*candidate).clone()).collect();
    (sorted, format!("{} first: {}", preferred.as_str(), why.join(", ")))
}

/// What is known of one, that first by which they are put in order.
fn told(preferred: Preferred, known: &KnownOf) -> String {
    let KnownOf { per_hour, seen } = known;
    let first = match (preferred, per_hour, seen.waits) {
        (Preferred::Cheapest, Some(price), _) => format!("{price:.2} an hour"),
        (Preferred::Cheapest, None, _) => "no price is known".to_owned(),
        (Preferred::Fastest, _, SeenWaits { came: 0, vain: 0, .. }) => {
            "nobody has waited for it".to_owned()
        }
        (Preferred::Fastest, _, SeenWaits { came: 0, vain, total_s }) => {
            format!("not to be had {vain} times, in {}", crate::model::time::age(total_s))
        }
        (Preferred::Fastest, _, waits) => {
            let each = waits.for_each().unwrap_or_default();
            format!("{} for each of {}", crate::model::time::age(each), waits.came)
        }
    };
    let waited = match preferred {
        Preferred::Cheapest => seen.waited(),
        Preferred::Fastest => None,
    };
    let all: Vec<String> = [first].into_iter().chain(seen.preempted()).chain(waited).collect();
    format!("({})", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::seen::SeenRuns;
    use super::*;
    use crate::model::time::Timestamp;

    fn of(zone: &str) -> TypeInZone {
        TypeInZone { accelerator: "v4-8".to_owned(), zone: zone.to_owned() }
    }

    fn zones(of: &[TypeInZone]) -> Vec<&str> {
        of.iter().map(|one| one.zone.as_str()).collect()
    }

    #[test]
    fn the_cheapest_comes_first_and_what_has_no_price_last() {
        let price = |candidate: &TypeInZone| {
            let per_hour = match candidate.zone.as_str() {
                "a" => Some(3.0),
                "c" => Some(0.5),
                _ => None,
            };
            KnownOf { per_hour, ..KnownOf::default() }
        };
        let (sorted, why) = order(&[of("b"), of("a"), of("c")], Preferred::Cheapest, price);
        assert_eq!(zones(&sorted), ["c", "a", "b"]);
        assert!(why.starts_with("cheapest first: v4-8 in c (0.50 an hour)"), "{why}");
        assert!(why.ends_with("b (no price is known)"), "{why}");
    }

    #[test]
    fn the_fastest_is_what_came_soonest_for_all_the_waiting() {
        let seen = |candidate: &TypeInZone| {
            let waits = match candidate.zone.as_str() {
                "never" => SeenWaits { total_s: 10, came: 0, vain: 2 },
                "slow" => SeenWaits { total_s: 600, came: 2, vain: 1 },
                "quick" => SeenWaits { total_s: 90, came: 3, vain: 0 },
                _ => SeenWaits::default(),
            };
            let seen = SeenOf { waits, ..SeenOf::default() };
            KnownOf { seen, ..KnownOf::default() }
        };
        let all = [of("never"), of("new"), of("slow"), of("quick")];
        let (sorted, why) = order(&all, Preferred::Fastest, seen);
        assert_eq!(zones(&sorted), ["quick", "slow", "new", "never"]);
        assert!(why.contains("quick (30s for each of 3)"), "{why}");
        assert!(why.contains("never (not to be had 2 times, in 10s)"), "{why}");
    }

    #[test]
    fn without_anything_known_they_stay_as_they_are_written() {
        for preferred in Preferred::ALL {
            let (sorted, why) = order(&[of("b"), of("a")], preferred, |_| KnownOf::default());
            assert_eq!(zones(&sorted), ["b", "a"]);
            assert!(why.starts_with("in the order in which they are written: "), "{why}");
        }
    }

    #[test]
    fn of_two_that_are_as_cheap_the_steadier_comes_first_and_the_reason_says_what_was_seen() {
        let seen = |candidate: &TypeInZone| {
            let preemptions = if candidate.zone == "rough" { 6 } else { 1 };
            let since = Some(Timestamp::from_second(1_793_000_000));
            let runs = SeenRuns { runs: 4, worked_s: 10 * 3_600, preemptions, since };
            KnownOf { per_hour: Some(2.0), seen: SeenOf { runs, waits: SeenWaits::default() } }
        };
        let (sorted, why) = order(&[of("rough"), of("calm")], Preferred::Cheapest, seen);
        assert_eq!(zones(&sorted), ["calm", "rough"]);
        assert_eq!(
            why,
            "cheapest first: v4-8 in calm (2.00 an hour; preempted 0.10 times an hour, seen in 4 runs \
             since 2026-10-26), v4-8 in rough (2.00 an hour; preempted 0.60 times an hour, seen in 4 \
             runs since 2026-10-26)"
        );
    }
}
