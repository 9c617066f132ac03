//! A token or a link logs in, once; no token stands in an address, in the page, or where the browser keeps
//! things; a session ends when it is ended and when its token is.

#[test]
fn a_token_or_a_link_logs_in_and_neither_is_left_anywhere() {
    super::keeps("log_in");
}
