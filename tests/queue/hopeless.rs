//! What can begin nowhere as things are set up does not wait in silence: it is refused at submission as `run` refuses it;
//! who waits already is told why and what to do, and `queue run` does not wait for it for ever.

use crate::common::env::TestEnv;

/// A lab with a target of a type that nobody has heard of; no cloud is connected.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu("register pod --type v99-8 --zone us-east5-b").exits(0));
    env
}

const WHY: &str = "no way to the workers of pod is known";
const DO: &str = "tpu register pod --address HOST";

#[test]
fn it_is_refused_as_run_refuses_it_and_a_script_brings_its_own_way() {
    let env = lab();
    let by_run = env.tpu("run pod -q -- true").exits(4).says(&[WHY, DO]);
    let by_submit = env.tpu("submit pod -- true").exits(4);
    assert_eq!(by_submit.stderr, by_run.stderr);
    drop(env.tpu("submit pod --dry-run -- true").exits(4).says(&[WHY]));
    env.code("alice", "pod.yaml", "target: pod\ncommand: 'true'\n");
    let file = env.path("code-alice/pod.yaml").display().to_string();
    drop(env.tpu_words(&["submit", &file]).exits(4).says(&["pod.yaml:1:9: no way", DO]));
    assert_eq!(env.queued(), 0);
    env.code("alice", "staging.sh", "exit 0\n");
    drop(env.tpu("submit pod --hold").exits(0));
}

#[test]
fn who_waits_already_is_told_why_and_nobody_waits_for_ever() {
    let mut env = lab();
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("submit pod --hold --name first -- true").exits(0));
    drop(env.tpu("submit local after=first --name second -- true").exits(0));
    // The cloud is connected no more.
    env.set("TPU_CLOUD", "none");
    drop(env.tpu("unhold first").exits(0));
    drop(env.tpu("explain first").exits(0).says(&[&format!("why: pod: {WHY}"), "next: ", DO]));
    let queue = env.tpu("queue --json").exits(0).json();
    let first = &queue["entries"][0];
    assert!(first["reason"].as_str().unwrap().contains(WHY), "{queue:#}");
    assert!(first["expected_start"].is_null(), "{queue:#}");
    // Whatever else can begin does, before that is said.
    drop(env.tpu("submit local --hold --name third -- true").exits(0));
    env.change(|data| data.queues_mut().entries.iter_mut().for_each(|entry| entry.held = None));
    let said = env.tpu("queue run").exits(4);
    drop(said.says(&[
        "Started alice/3",
        "alice/1 can never start as things are: no way",
        "alice/2 can never start as things are: it waits for alice/1",
        DO,
        "tpu dequeue",
    ]));
    assert_eq!(env.queued(), 2, "what is missing may yet be set up");
}
