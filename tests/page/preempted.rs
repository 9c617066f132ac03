//! A target is taken away: its job comes back, and whoever looks sees it happen.

#[test]
fn a_preempted_job_comes_back_before_ones_eyes() {
    super::keeps("preempted");
}
