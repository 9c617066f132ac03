//! A run that is like another: the form filled in as that was started and sent as it was but for what is changed; every
//! field of the form is one of a job file; several values are several runs.

#[test]
fn a_run_like_another_is_started_as_that_was_but_for_what_is_changed() {
    super::keeps("again");
}
