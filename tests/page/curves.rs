//! Curves of two runs beside each other: marked, compared, zoomed.

#[test]
fn two_runs_are_compared_by_their_curves() {
    super::keeps("curves");
}
