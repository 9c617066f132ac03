"""One of several processes of torch.distributed; the second of them ends as the word says."""
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for i in range(1, 21):
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 0:
        print(f"step {i}/20 loss {9 / i:.3f}", flush=True)
    if dist.get_rank() == 1 and i == 10:
        if "kill" in sys.argv:
            os.kill(os.getpid(), 9)
        if "crash" in sys.argv:
            raise ValueError("rank 1 has no data")
        if "code" in sys.argv:
            os._exit(5)
    time.sleep(0.05)
dist.destroy_process_group()
