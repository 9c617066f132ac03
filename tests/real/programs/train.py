"""A plain loop that prints its steps, and ends as its second word says."""
import os
import sys
import time

steps = int(sys.argv[1])
end = sys.argv[2] if len(sys.argv) > 2 else "ok"
print(f"loading config from configs/base.yml, mode {end}", flush=True)


class BadBatch(Exception):
    pass


class Enough(Exception):
    pass


def bad(n):
    raise BadBatch(f"cannot decode image {n}")


def half_way():
    if end == "keyerror":
        {"a": 1}["lr_schedule"]
    elif end == "custom":
        raise BadBatch("batch 17 has 3 labels for 4 images")
    elif end == "silent":
        raise Enough
    elif end == "cause":
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("cannot parse the label file") from error
    elif end == "slip":
        log = None
        try:
            {}["image"]
        except KeyError:
            log.close()
    elif end == "assert":
        assert len([1]) == 0
    elif end == "recursion":
        def deeper(n):
            return deeper(n + 1)
        deeper(0)
    elif end == "code3":
        sys.exit(3)
    elif end == "text":
        sys.exit("train.py: the checkpoint is of another model: give --fresh or another directory")
    elif end == "enoent":
        open("/data/imagenet/train/shard-00017.tfrecord")
    elif end == "enospc":
        with open("/dev/full", "w") as full:
            full.write("x" * 100000)
    elif end == "emfile":
        files = []
        while True:
            files.append(open("/dev/null"))
    elif end == "memory":
        bytearray(1 << 60)
    elif end == "array":
        import numpy
        numpy.ones((1 << 50,))
    elif end == "abort":
        os.abort()
    elif end == "segv":
        import ctypes
        ctypes.string_at(0)
    elif end == "faulthandler":
        import ctypes
        import faulthandler
        faulthandler.enable()
        ctypes.string_at(0)
    elif end == "kill":
        os.kill(os.getpid(), 9)
    elif end == "term":
        os.kill(os.getpid(), 15)
    elif end == "interrupt":
        os.kill(os.getpid(), 2)
        time.sleep(1)
    elif end == "pool":
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(bad, range(4))
    elif end == "futures":
        import concurrent.futures
        import multiprocessing
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            list(pool.map(bad, range(4)))
    elif end == "broken-pool":
        import concurrent.futures
        import multiprocessing
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            list(pool.map(os._exit, [7, 7]))
    elif end == "handled":
        import traceback
        try:
            {"a": 1}["lr_schedule"]
        except KeyError:
            traceback.print_exc()
    elif end == "thread":
        import threading
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    elif end == "ignored":
        class Loader:
            def __del__(self):
                raise TypeError("cannot close")
        globals()["loader"] = Loader()
    elif end == "group":
        import asyncio

        async def fetch():
            raise BadBatch("batch 17 has 3 labels for 4 images")

        async def all_of_them():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fetch())
        asyncio.run(all_of_them())
    elif end == "scary":
        for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scary.txt")):
            print(line, end="", flush=True)


for i in range(1, steps + 1):
    if i == steps // 2:
        half_way()
    loss = float("nan") if end == "nan" and i > steps // 2 else 2.5 / i
    print(f"step {i}/{steps} loss {loss:.4f} lr 1e-3 error_rate 0.0 steps/s {100 + i}", flush=True)
    time.sleep(0.01)
if end == "after":
    print("Training done", flush=True)
    raise RuntimeError("cannot schedule new futures after interpreter shutdown")
print("Training done" if end == "done" else f"final loss {2.5 / steps:.4f}", flush=True)
