//! Buckets that a job names, and where they are: a bucket in another region than its TPU is slow, and costs money.

/// Where a bucket is, by its control plane's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketPlace {
    /// A region, or the name of several: `US-CENTRAL1`, `EU`, `NAM4`.
    pub location: String,
    /// The regions of one that its owner has put together of two.
    pub regions: Vec<String>,
}

/// Names that stand for two regions (Cloud Storage documentation, bucket locations).
const PAIRS: [(&str, [&str; 2]); 6] = [
    ("asia1", ["asia-northeast1", "asia-northeast2"]),
    ("eur4", ["europe-north1", "europe-west4"]),
    ("eur5", ["europe-west1", "europe-west2"]),
    ("eur7", ["europe-west2", "europe-west3"]),
    ("eur8", ["europe-west3", "europe-west6"]),
    ("nam4", ["us-central1", "us-east1"]),
];

/// Regions of Europe that are none of the multi-region `EU` (the same).
const NOT_EU: [&str; 2] = ["europe-west2", "europe-west6"];

impl BucketPlace {
    /// Whether it is where a zone is; `None` where that cannot be told.
    pub fn is_near(&self, zone: &str) -> Option<bool> {
        let zone = zone.to_ascii_lowercase();
        let (region, letter) = zone.rsplit_once('-')?;
        let is_zone = letter.len() == 1 && region.contains('-') && ends_in_digit(region);
        if !is_zone {
            return None;
        }
        if !self.regions.is_empty() {
            return Some(self.regions.iter().any(|of| of.eq_ignore_ascii_case(region)));
        }
        let location = self.location.to_ascii_lowercase();
        if let Some((_, pair)) = PAIRS.iter().find(|(name, _)| *name == location) {
            return Some(pair.contains(&region));
        }
        Some(match location.as_str() {
            "us" => region.starts_with("us-"),
            "eu" => region.starts_with("europe-") && !NOT_EU.contains(&region),
            "asia" => region.starts_with("asia-"),
            // The beginning of a region may be another one: us-east1 is none of us-east10.
            of if of.contains('-') && ends_in_digit(of) => of == region,
            _ => return None,
        })
    }
}

fn ends_in_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

/// The buckets that text names as `gs://NAME`, in its order.
pub fn named_in(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let name = |rest: &str| {
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().trim_end_matches(['.', '-', '_']);
        (name.len() >= 3).then(|| name.to_owned())
    };
    text.split("gs://").skip(1).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_a_whole_name_and_several_hold_what_is_theirs() {
        let place = |location: &str| BucketPlace {
            location: location.to_owned(),
            ..BucketPlace::default()
        };
        for (location, zone, expected) in [
            ("US-EAST1", "us-east1-b", Some(true)),
            ("US-EAST1", "us-east10-b", Some(false)),
            ("US-EAST5", "us-east1-c", Some(false)),
            ("US", "us-east5-b", Some(true)),
            ("US", "europe-west4-a", Some(false)),
            ("EU", "europe-west4-a", Some(true)),
            ("EU", "europe-west2-a", Some(false)),
            ("ASIA", "asia-northeast1-b", Some(true)),
            ("ASIA", "us-central2-b", Some(false)),
            ("NAM4", "us-central1-a", Some(true)),
            ("NAM4", "us-east5-b", Some(false)),
            ("EUR4", "europe-west4-b", Some(true)),
            ("SOMETHING", "us-east5-b", None),
            ("US-EAST1", "zone-a", None),
            ("US-EAST1", "", None),
        ] {
            assert_eq!(place(location).is_near(zone), expected, "{location} {zone}");
        }
        let regions = vec!["US-EAST1".to_owned(), "US-WEST1".to_owned()];
        let pair = BucketPlace { regions, ..place("US") };
        assert_eq!(
            [pair.is_near("us-west1-a"), pair.is_near("us-east5-b")],
            [Some(true), Some(false)]
        );
    }

    #[test]
    fn buckets_are_found_wherever_a_path_begins() {
        assert_eq!(
            named_in("--data=gs://my-data/x --out 'gs://out.b' gs://"),
            ["my-data", "out.b"]
        );
        assert_eq!(named_in("see gs://b1x, and gs://b2x."), ["b1x", "b2x"]);
        assert!(named_in("no://bucket").is_empty());
    }
}
