//! Every view at both sizes, light and dark: nothing that axe calls serious, nothing wider than the screen.

#[test]
fn every_view_is_readable_at_both_sizes_light_and_dark() {
    super::keeps("looks");
}
