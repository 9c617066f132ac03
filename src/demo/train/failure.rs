//! Failures on request, in the words that real programs use: what the classifier must recognise.

use std::io::{self, Write};

use super::Stamp;

/// A step of sampling that needs more HBM than the chip has, as XLA's TPU compiler and JAX report it.
pub(super) fn out_of_memory(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        b"Traceback (most recent call last):
  File \"train.py\", line 131, in <module>
    app.run(main)
  File \"train.py\", line 104, in main
    images = sample_step(state, rng)
             ^^^^^^^^^^^^^^^^^^^^^^^
jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of \
memory in memory space hbm. Used 18.25G of 15.75G hbm. Exceeded hbm capacity by 2.50G.

Total hbm usage >= 18.50G:
    reserved        256.00M
    program          18.25G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 18.25G:
    global            1.14M
    HLO temp         18.25G (99.8% utilization: Unpadded (18.21G) Padded (18.25G), \
0.0% fragmentation (0B))

--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception. \
Set JAX_TRACEBACK_FILTERING=off to include these.
",
    )?;
    out.flush()
}

/// A peer that stopped sending heartbeats, as the coordination service of `jax.distributed` reports it
/// before it aborts the process.
pub(super) fn lost_peer(out: &mut dyn Write, stamp: &Stamp) -> io::Result<()> {
    let cause = "DEADLINE_EXCEEDED: The following tasks are unhealthy (stopped sending heartbeats):
/job:jax_worker/replica:0/task:1
The tasks have crashed. Check the task logs for an earlier error, or scheduler events (e.g. \
preemption, eviction) to debug further.";
    write!(
        out,
        "E{stamp} coordination_service_agent.cc:332] Polled an error from coordination service (this \
can be an error from this or another task).
F{stamp} client.h:80] Terminating process because the JAX distributed service detected fatal errors. \
This most likely indicates that another task died; see the other task logs for more details. \
absl::Status: {cause}

RPC: /tensorflow.CoordinationService/PollForError
*** Check failure stack trace: ***
"
    )?;
    out.flush()
}
