"""A bar of so many steps, and perhaps an exception at the two hundredth."""
import sys
import time

from tqdm import trange

bar = trange(int(sys.argv[1]), desc="Epoch 3/10")
for i in bar:
    time.sleep(0.005)
    bar.set_postfix(loss=1 / (i + 1))
    if "crash" in sys.argv and i == 200:
        raise IndexError("list index out of range")
