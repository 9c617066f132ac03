"""Processes that torch spawns; the second one raises or is killed."""
import os
import sys

import torch.multiprocessing as mp


def work(rank, how):
    if rank == 1 and how == "kill":
        os.kill(os.getpid(), 9)
    if rank == 1 and how == "crash":
        raise ValueError("rank 1 has no data")


if __name__ == "__main__":
    print("step 1/2 loss 0.5", flush=True)
    mp.spawn(work, (sys.argv[1],), nprocs=2)
