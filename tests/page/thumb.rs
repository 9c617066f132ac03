//! On the way home, with a thumb: what broke and why, bring it back, stop a sweep, start a run. Each tap is counted, and no
//! more are needed than are said.

#[test]
fn what_is_needed_on_the_way_home_takes_few_taps() {
    super::keeps("thumb");
}
