//! The log: followed as it comes, searched, to the line that broke; markup, colours and what turns a line around
//! are text.

#[test]
fn a_log_is_followed_searched_and_opens_at_what_broke() {
    super::keeps("log");
}
