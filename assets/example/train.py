"""A training to try things with: fits a line, prints its loss, saves checkpoints and goes on from them.

It needs nothing but Python. What a program needs to be restarted are the lines with TPU_CHECKPOINT and TPU_LOG_DIR.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

STEPS = 300
EVERY = 10  # steps between two checkpoints


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--lr", type=float, default=0.05)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    directory = Path(os.environ.get("TPU_LOG_DIR", "."))
    state = {"step": 0, "slope": 0.0, "offset": 0.0}
    checkpoint = os.environ.get("TPU_CHECKPOINT")  # empty on the first attempt
    if checkpoint:
        state = json.loads(Path(checkpoint).read_text())
        print(f"going on from {checkpoint}", flush=True)
    while state["step"] < STEPS:
        state["step"] += 1
        x = random.Random(state["step"] + STEPS * given.seed).uniform(-1, 1)
        error = state["slope"] * x + state["offset"] - (3 * x - 1)
        state["slope"] -= given.lr * 2 * error * x
        state["offset"] -= given.lr * 2 * error
        print(f"step {state['step']}/{STEPS} loss={error * error:.4f}", flush=True)
        if state["step"] % EVERY == 0:
            # Under its own name only when it is whole: whoever resumes takes the newest one.
            partial = directory / "partial.tmp"
            partial.write_text(json.dumps(state))
            partial.rename(directory / f"checkpoint_{state['step']}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
