//! The table: found by the screen's filter, sorted, folded, opened; changes show within a moment; by the
//! keyboard alone.

#[test]
fn jobs_are_found_opened_and_seen_to_change_by_keys_alone() {
    super::keeps("jobs");
}
