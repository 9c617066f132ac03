//! The worker's part of a connection in moments that are hard to meet.

use tpu_core::model::ids::LaunchToken;
use tpu_system::remote::{Stopped, Worker};

use crate::common::remote::{gcloud_here, is_running, workers, write_program};

#[test]
fn what_forks_and_ends_while_the_worker_looks_is_stopped_with_its_child() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    let bench = gcloud_here(dir.path(), "exec bash -c \"$command\"");
    let workers = workers(1);
    // Once it is told, it leaves a child and ends.
    let script = "set -m; trap 'sleep 1000 & echo $! >\"$GO.child\"; exit' USR1; \
        echo started $$; while :; do sleep 0.4; done";
    bench.start(&workers, &bench.script(script), "t1").remove(0).unwrap();
    let parent = bench.started(&workers[0], "t1");
    // It is told between two of the lists that the worker reads, of which each names other processes.
    let grep = format!(
        "#!/bin/bash\n\
         if [[ $* == *TPU_LAUNCH*/environ* ]] && mkdir '{go}.told' 2>/dev/null; then\n\
         kill -USR1 {parent}; until [ -s '{go}.child' ] && ! kill -0 {parent}; do sleep 0.4; done\n\
         fi\nPATH=${{PATH#*:}} exec grep \"$@\"\n",
        go = bench.go().display(),
    );
    write_program(&dir.path().join("bin/grep"), &grep);
    let stopped = bench.remote.stop(&workers, &LaunchToken::from("t1")).remove(0).1;
    let child = std::fs::read_to_string(bench.go().with_extension("child")).unwrap();
    let child: u32 = child.trim().parse().unwrap();
    let lives = is_running(child);
    if lives {
        let pid = rustix::process::Pid::from_raw(child.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    assert!(!lives, "{stopped:?}, and its child lives");
    assert!(matches!(stopped.unwrap(), Stopped::Ended(_)));
}

#[test]
fn what_began_while_nobody_knew_the_address_is_found_later() {
    let dir = tempfile::tempdir().unwrap();
    let token = "t1";
    let bench = gcloud_here(dir.path(), "exec bash -c \"$command\"");
    let nameless = [Worker { index: 0, address: String::new() }];
    // One process has left the group and the parent.
    let script = "stay='while [ -d \"$HOME\" ]; do sleep 0.4; done'; \
        (setsid bash -c \"echo \\$\\$ >$GO.new; mv $GO.new $GO.child; $stay\" &); \
        until [ -e \"$GO.child\" ]; do sleep 0.4; done; echo started $$; eval \"$stay\"";
    bench.start(&nameless, &bench.script(script), token).remove(0).unwrap();
    let parent = bench.started(&nameless[0], token);
    let child = std::fs::read_to_string(bench.go().with_extension("child")).unwrap();
    let all = [parent, child.trim().parse().unwrap()];
    let known = workers(1);
    let runs = bench.remote.probe(&known).remove(0).1.unwrap();
    assert_eq!(runs.len(), 1);
    assert!(all.iter().all(|pid| runs[0].processes.contains(pid)), "{all:?} {runs:?}");
    let stopped = bench.remote.stop(&known, &LaunchToken::from(token)).remove(0).1;
    assert!(matches!(stopped.unwrap(), Stopped::Ended(_)));
    assert!(!all.into_iter().any(is_running));
}

#[test]
fn a_worker_that_cannot_look_does_not_say_that_there_are_no_strangers() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    let bench = gcloud_here(dir.path(), "exec bash -c \"$command\"");
    write_program(&dir.path().join("bin/awk"), "#!/bin/sh\nexit 1\n");
    let others = bench.remote.others(&workers(1), &[]).remove(0).1;
    assert!(others.is_err(), "{others:?}");
}
