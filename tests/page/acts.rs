//! What is done by the page: a run by the form, with its plan, started once however often it is pressed; a job
//! that is killed after its plan was shown; the order of the queue.

#[test]
fn what_is_done_is_shown_before_and_done_once() {
    super::keeps("acts");
}
