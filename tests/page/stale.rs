//! A page that hears nothing says so within five seconds, and catches up by itself: the server restarted, the
//! network cut. What was under way meanwhile is not done twice.

#[test]
fn a_page_that_hears_nothing_says_so_and_catches_up_without_a_doubled_act() {
    super::keeps("stale");
}
