"""A training to try things with: fits a line, prints its loss, saves checkpoints and goes on from them.

It needs nothing but Python. The options are those that `tpu run` and `tpu resume` give.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

STEPS = 300
EVERY = 10  # steps between two checkpoints


def options(words):
    """The values of --config.NAME=VALUE; what is not known here is ignored."""
    pairs = (word.removeprefix("--config.").split("=", 1) for word in words if "=" in word)
    return dict(pairs)


def newest(directory):
    """The checkpoint of the highest step, if there is one."""
    found = [path for path in directory.glob("checkpoint_*") if path.suffix == ""]
    return max(found, key=lambda path: int(path.name.split("_")[1]), default=None)


def main():
    given = options(sys.argv[1:])
    rate = float(given.get("training.learning_rate", 0.05))
    directory = Path(os.environ.get("TPU_LOG_DIR", "."))
    state = {"step": 0, "slope": 0.0, "offset": 0.0}
    begin = newest(Path(given["load_from"])) if "load_from" in given else None
    if begin:
        state = json.loads(begin.read_text())
        print(f"going on from {begin}", flush=True)
    while state["step"] < STEPS:
        state["step"] += 1
        x = random.Random(state["step"]).uniform(-1, 1)
        error = state["slope"] * x + state["offset"] - (3 * x - 1)
        state["slope"] -= rate * 2 * error * x
        state["offset"] -= rate * 2 * error
        print(f"step {state['step']}/{STEPS} loss={error * error:.4f}", flush=True)
        if state["step"] % EVERY == 0:
            # Under its own name only when it is whole: whoever resumes takes the newest one.
            partial = directory / "partial.tmp"
            partial.write_text(json.dumps(state))
            partial.rename(directory / f"checkpoint_{state['step']}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
