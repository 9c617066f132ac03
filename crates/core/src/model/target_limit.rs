//! The targets to which a token is limited, and with it all that is started with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::pattern::{self, BadPattern};
use super::target::Target;

/// Patterns of names and types, as in `v4-*`; without any there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetLimit(Vec<String>);

impl TargetLimit {
    /// Reads patterns, as in `v4-*,lab[1-4]`.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        pattern::names(text.trim()).map(Self)
    }

    /// The patterns as a list.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a target is within the limit, by its full name or by its type. An alias does not count: others may set it.
    pub fn allows(&self, target: &Target) -> bool {
        let accelerator = target.accelerator.as_deref();
        self.allows_name(target.name.as_str()) || accelerator.is_some_and(|of| self.allows_name(of))
    }

    /// Whether a type, or a target of this name of which nothing else is known, is within the limit.
    pub fn allows_name(&self, name: &str) -> bool {
        self.is_none() || self.0.iter().any(|glob| pattern::is_like(name, glob))
    }
}

impl fmt::Display for TargetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_within_a_limit_by_its_name_or_its_type() {
        let of = |name: &str, accelerator: Option<&str>| Target {
            name: name.into(),
            accelerator: accelerator.map(str::to_owned),
            ..Target::local()
        };
        let limit = TargetLimit::parse("v4-*,lab[1-2]").unwrap();
        assert_eq!(limit.to_string(), "v4-*,lab1,lab2");
        for (target, is_within) in [
            (of("v4-8-one", None), true),
            (of("kmh-vm", Some("v4-32")), true),
            (of("lab2", None), true),
            (of("lab3", None), false),
            (of("my-v4-8", None), false),
            (of("kmh-vm", Some("v5p-8")), false),
            (Target::local(), false),
        ] {
            assert_eq!(limit.allows(&target), is_within, "{target:?}");
        }
        assert!(TargetLimit::default().allows(&Target::local()));
        for odd in ["", " ", "a,,b", "v[4"] {
            assert!(TargetLimit::parse(odd).is_err(), "{odd:?}");
        }
    }
}
