"""torch's loader with two workers, one of which raises, or is killed."""
import os
import signal
import sys

import torch


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if index == 300 and "crash" in sys.argv:
            raise ValueError("cannot decode image 300")
        if index == 300 and "kill" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(4)


for k, batch in enumerate(torch.utils.data.DataLoader(Images(), 10, num_workers=2)):
    print(f"iter {k} loss {1 / (k + 1):.3f}", flush=True)
