//! What follows from an accelerator type before a machine exists: how many workers it will have, which
//! software it needs, and where its devices will be.

/// The family and the number of an accelerator type: `v5litepod-16` -> `v5litepod`, 16.
fn parts(accelerator: &str) -> Option<(&str, u32)> {
    let (family, size) = accelerator.rsplit_once('-')?;
    let size = size.parse().ok().filter(|size| *size > 0)?;
    Some((family, size))
}

/// A type of each family that is known, for whoever named another one.
pub const EXAMPLES: [&str; 6] = ["v2-8", "v3-8", "v4-8", "v5litepod-16", "v5p-8", "v6e-16"];

/// Whether a word has the shape of a zone: words and digits parted by dashes, and a last letter or digit, as in
/// `us-central2-b`. What lacks that is a region.
pub fn is_zone(word: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    word.rsplit_once('-').is_some_and(|(region, last)| {
        region.split('-').all(is_part) && last.len() == 1 && is_part(last)
    })
}

/// How many workers a target of this type has; `None` for a type that is not in the table. Once it
/// exists, its own addresses say so.
pub fn workers(accelerator: &str) -> Option<u32> {
    let (family, size) = parts(accelerator)?;
    match family {
        // The number counts cores: four chips, eight cores on each host.
        "v2" | "v3" | "v4" | "v5p" => Some(size.div_ceil(8)),
        // The number counts chips: up to eight on a single host, else four on each.
        "v5litepod" | "v6e" if size <= 8 => Some(1),
        "v5litepod" | "v6e" => Some(size.div_ceil(4)),
        _ => None,
    }
}

/// How many chips a target of this type has.
pub fn chips(accelerator: &str) -> Option<u32> {
    let (family, size) = parts(accelerator)?;
    match family {
        // Two cores on each chip.
        "v2" | "v3" | "v4" | "v5p" => Some(size.div_ceil(2)),
        "v5litepod" | "v6e" => Some(size),
        _ => None,
    }
}

/// The version of the machine's software when none is asked for.
pub fn runtime_version(accelerator: &str) -> Option<&'static str> {
    match parts(accelerator)?.0 {
        "v2" | "v3" | "v4" => Some("tpu-ubuntu2204-base"),
        "v5p" => Some("v2-alpha-tpuv5"),
        "v5litepod" => Some("v2-alpha-tpuv5-lite"),
        "v6e" => Some("v2-alpha-tpuv6e"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_by_type() {
        for (accelerator, count) in [
            ("v2-8", 1),
            ("v2-32", 4),
            ("v2-512", 64),
            ("v3-8", 1),
            ("v3-32", 4),
            ("v3-2048", 256),
            ("v4-8", 1),
            ("v4-16", 2),
            ("v4-64", 8),
            ("v5p-8", 1),
            ("v5p-64", 8),
            ("v5litepod-1", 1),
            ("v5litepod-4", 1),
            ("v5litepod-8", 1),
            ("v5litepod-16", 4),
            ("v5litepod-256", 64),
            ("v6e-1", 1),
            ("v6e-8", 1),
            ("v6e-16", 4),
            ("v6e-64", 16),
        ] {
            assert_eq!(workers(accelerator), Some(count), "{accelerator}");
        }
        for accelerator in ["", "v2", "v2-", "v2-0", "v2-x", "v9-8", "v2-99999999999", "-8"] {
            assert_eq!(workers(accelerator), None, "{accelerator}");
        }
    }

    #[test]
    fn zones_by_their_shape() {
        for zone in ["us-central2-b", "europe-west4-a", "northamerica-northeast1-c", "zone-1"] {
            assert!(is_zone(zone), "{zone}");
        }
        for word in
            ["", "mars", "us-east5", "us-east5-", "-a", "US-EAST5-b", "us--b", "us-east5-bb"]
        {
            assert!(!is_zone(word), "{word}");
        }
        assert!(EXAMPLES.iter().all(|accelerator| workers(accelerator).is_some()));
    }

    #[test]
    fn chips_by_type() {
        for (accelerator, count) in [
            ("v2-8", 4),
            ("v3-32", 16),
            ("v4-8", 4),
            ("v5p-64", 32),
            ("v5litepod-16", 16),
            ("v6e-1", 1),
        ] {
            assert_eq!(chips(accelerator), Some(count), "{accelerator}");
        }
        assert_eq!(chips("v9-8"), None);
    }

    #[test]
    fn software_by_type() {
        for (accelerator, version) in [
            ("v2-8", "tpu-ubuntu2204-base"),
            ("v3-32", "tpu-ubuntu2204-base"),
            ("v4-8", "tpu-ubuntu2204-base"),
            ("v5p-8", "v2-alpha-tpuv5"),
            ("v5litepod-4", "v2-alpha-tpuv5-lite"),
            ("v6e-8", "v2-alpha-tpuv6e"),
        ] {
            assert_eq!(runtime_version(accelerator), Some(version));
        }
        assert_eq!(runtime_version("gpu-8"), None);
    }
}
