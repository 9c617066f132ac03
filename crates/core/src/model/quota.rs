//! Quotas: how much of one thing a project may have in one place, and how much of it is in use.

use serde::{Deserialize, Serialize};

/// One thing in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRow {
    /// A zone; a region, or `global`, where the limit is for all zones of it together.
    pub zone: String,
    /// What it is: a family of accelerators and how they are paid for (`v4-preemptible`), or a resource
    /// (`in-use-addresses`).
    #[serde(rename = "type")]
    pub kind: String,
    /// How much is in use; `None` where nobody can tell.
    pub used: Option<u64>,
    /// How much there may be; `None` where there is no limit, or nobody says one.
    pub limit: Option<u64>,
}

impl QuotaRow {
    /// How much more there may be. More in use than the limit leaves nothing.
    pub fn free(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.used?))
    }

    /// Whether there is nothing of it, and may be nothing.
    pub fn is_idle(&self) -> bool {
        self.limit == Some(0) && self.used.unwrap_or(0) == 0
    }

    /// Whether a word means its place.
    pub fn is_at(&self, word: &str) -> bool {
        is_meant(&self.zone, word)
    }

    /// Whether a word means its type.
    pub fn is_called(&self, word: &str) -> bool {
        // People call a family of accelerators otherwise than the API does.
        let other = word.to_ascii_lowercase().replacen("v5e", "v5litepod", 1);
        is_meant(&self.kind, &other)
    }
}

/// Whether a word is the beginning of a name or a whole part of it, in any case.
fn is_meant(name: &str, word: &str) -> bool {
    let (name, word) = (name.to_ascii_lowercase(), word.to_ascii_lowercase());
    name.starts_with(&word) || name.split('-').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(used: Option<u64>, limit: Option<u64>) -> QuotaRow {
        QuotaRow {
            zone: "us-central2-b".to_owned(),
            kind: "v4-preemptible".to_owned(),
            used,
            limit,
        }
    }

    #[test]
    fn what_is_left_is_known_where_both_figures_are() {
        assert_eq!(row(Some(8), Some(32)).free(), Some(24));
        assert_eq!(row(Some(40), Some(32)).free(), Some(0));
        assert_eq!(row(None, Some(32)).free(), None);
        assert_eq!(row(Some(8), None).free(), None);
        assert!(row(Some(0), Some(0)).is_idle() && !row(Some(8), Some(0)).is_idle());
        assert!(!row(None, None).is_idle(), "what nobody knows is not nothing");
    }

    #[test]
    fn a_family_is_meant_by_either_name() {
        let row = QuotaRow { kind: "v5litepod-serving".to_owned(), ..row(None, None) };
        assert!(row.is_called("v5e") && row.is_called("V5litepod") && row.is_called("v5e-serving"));
        assert!(!row.is_called("v5p") && !row.is_called("v5e-preemptible"));
    }

    #[test]
    fn words_mean_zones_and_types() {
        let row = row(None, None);
        for word in ["us-central2-b", "us-central2", "US", "central2"] {
            assert!(row.is_at(word) && !row.is_called(word), "{word}");
        }
        for word in ["v4", "preemptible", "v4-pre", "V"] {
            assert!(row.is_called(word) && !row.is_at(word), "{word}");
        }
        for word in ["central", "us-east", "v5"] {
            assert!(!row.is_called(word) && !row.is_at(word), "{word}");
        }
    }
}
