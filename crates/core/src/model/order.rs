//! A target that a job wants to have made for it: what it is to be called, and what it may be.

use super::options::KindOptions;
use super::target::Pricing;
use super::words::words;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOrder {
    /// Its name, as far as nobody chooses it.
    pub name: String,
    /// What stands behind that.
    pub numbered: Numbered,
    /// What would do, the best first; at least one.
    pub candidates: Vec<TypeInZone>,
    /// Which of them comes first, where that is not as they are written.
    pub preferred: Option<Preferred>,
    /// How it is paid for.
    pub pricing: Pricing,
    /// Version of the machine's software; the usual one of its type without.
    pub runtime_version: Option<String>,
    /// Whether it is asked for by a queued resource, which waits for capacity in its place.
    pub is_queued: bool,
    /// The account on its workers.
    pub login: Option<String>,
    /// Whether it is deleted once the job is over for which it was made.
    pub goes_with_its_job: bool,
    /// What else is said of it, by the names of its kind's own options.
    pub options: KindOptions,
}

/// The option of a file of this machine that the target runs when it starts.
pub const STARTUP_SCRIPT: &str = "startup-script";

/// A type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInZone {
    /// Accelerator type.
    pub accelerator: String,
    /// Zone.
    pub zone: String,
}

/// Which of several comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preferred {
    /// What an hour costs least of.
    Cheapest,
    /// What was waited for least.
    Fastest,
}

words! {
    /// The spelling in a job file.
    Preferred {
        Cheapest: "cheapest",
        Fastest: "fastest",
    }
}

/// What stands behind the name of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbered {
    /// Nothing.
    #[default]
    Not,
    /// The smallest number, from 1, whose target nobody has.
    Auto,
    /// This one.
    With(u32),
}

impl TargetOrder {
    /// The full name for one of its candidates. Where there are several, their type and zone are part of it: one name is
    /// one machine in one place.
    pub fn full_name(&self, candidate: &TypeInZone, number: Option<u32>) -> String {
        let mut name = self.name.clone();
        if self.candidates.len() > 1 {
            name += &format!("-{}-{}", candidate.accelerator, candidate.zone);
        }
        if let Some(number) = number {
            name += &format!("-{number}");
        }
        name
    }

    /// The same where paths that are not whole begin at a directory.
    #[must_use]
    pub fn from(self, dir: &std::path::Path) -> Self {
        let place = |(name, value): (&str, &str)| match name {
            STARTUP_SCRIPT => (name.to_owned(), dir.join(value).to_string_lossy().into_owned()),
            _ => (name.to_owned(), value.to_owned()),
        };
        let options = self.options.pairs().map(place).collect();
        Self { options, ..self }
    }

    /// What is wished for, in words: `v6e-16 in us-east5-b or europe-west4-a`.
    pub fn in_words(&self) -> String {
        let one = |of: &TypeInZone| format!("{} in {}", of.accelerator, of.zone);
        self.candidates.iter().map(one).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_has_a_name_of_its_own() {
        let of = |accelerator: &str| TypeInZone {
            accelerator: accelerator.to_owned(),
            zone: "z-b".to_owned(),
        };
        let mut order = TargetOrder {
            name: "lab".to_owned(),
            numbered: Numbered::Not,
            candidates: vec![of("v6e-16")],
            preferred: None,
            pricing: Pricing::Spot,
            runtime_version: None,
            is_queued: false,
            login: None,
            goes_with_its_job: false,
            options: KindOptions::default(),
        };
        assert_eq!(order.full_name(&of("v6e-16"), Some(2)), "lab-2");
        order.candidates.push(of("v5p-8"));
        assert_eq!(order.full_name(&of("v5p-8"), None), "lab-v5p-8-z-b");
        assert_eq!(order.in_words(), "v6e-16 in z-b or v5p-8 in z-b");
    }
}
