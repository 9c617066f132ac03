"""Logs to Weights & Biases, offline, and ends as its word says."""
import sys
import time

import wandb

run = wandb.init(project="lab", name="real")
for i in range(1, 31):
    run.log({"loss": 3 / i, "step": i})
    print(f"step {i}/30 loss {3 / i:.3f}", flush=True)
    time.sleep(0.02)
    if i == 20 and "crash" in sys.argv:
        raise ValueError("shard 3: bad magic")
    if i == 20 and "interrupt" in sys.argv:
        raise KeyboardInterrupt
    if i == 20 and "kill" in sys.argv:
        import os
        os.kill(os.getpid(), 9)
run.finish()
