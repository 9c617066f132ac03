//! `delete` of a target that has no machine says what it is, how it is forgotten and how it is made.

use crate::common::env::TestEnv;

#[test]
fn what_is_only_registered_is_told_from_what_was_deleted() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("register pod --type v6e-8 --zone us-east5-b").exits(0));
    drop(env.tpu("delete pod -y").exits(0).says(&["pod is not there."]));
    for words in ["delete pod -y", "delete pod --dry-run"] {
        let said = env.tpu(words).exits(0);
        drop(said.says(&["tpu del-registered pod", "tpu apply pod"]));
    }
    let said = env.tpu("delete pod -y").exits(0);
    drop(said.says(&["pod is not there: it is registered, and has no machine"]));
    drop(env.tpu("register nowhere").exits(0));
    drop(env.tpu("delete nowhere -y").exits(4).says(&[
        "nowhere is registered without its zone",
        "tpu register nowhere --zone ZONE",
        "tpu del-registered nowhere",
    ]));
}
