//! The version of this program, and how that of another one stands to it.

use std::cmp::Ordering;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How the version that a process noted stands to this program's. Version 0.2 and before noted none.
pub fn to_ours(noted: Option<&str>) -> Ordering {
    noted.map_or(Ordering::Less, |noted| numbers(noted).cmp(&numbers(VERSION)))
}

/// The numbers of a version; what follows them, as in `1.2.3-rc1`, does not count.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(to_ours(None), Ordering::Less);
        assert_eq!(to_ours(Some("0.1.99")), Ordering::Less);
        assert_eq!(to_ours(Some(VERSION)), Ordering::Equal);
        assert_eq!(to_ours(Some("999.0.0-rc1")), Ordering::Greater);
        assert!(numbers("0.10.0") > numbers("0.9.12"));
    }
}
