import sys, time, random
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
mode = sys.argv[2] if len(sys.argv) > 2 else "ok"
print(f"loading config from configs/base.yml, mode {mode}", flush=True)
for i in range(1, steps + 1):
    if mode == "keyerror" and i == steps // 2:
        {"a": 1}["lr_schedule"]
    if mode == "custom" and i == steps // 2:
        class BadBatch(Exception): pass
        raise BadBatch("batch 17 has 3 labels for 4 images")
    if mode == "chain" and i == steps // 2:
        try:
            int("x")
        except ValueError as e:
            raise RuntimeError("cannot parse the label file") from e
    if mode == "assert" and i == steps // 2:
        assert i == 0
    if mode == "recursion" and i == steps // 2:
        def f(n): return f(n + 1)
        f(0)
    if mode == "exit3" and i == steps // 2:
        sys.exit(3)
    if mode == "enoent" and i == steps // 2:
        open("/data/imagenet/train/shard-00017.tfrecord")
    if mode == "enospc" and i == steps // 2:
        f = open("/dev/full", "w"); f.write("x" * 100000); f.flush()
    if mode == "emfile" and i == steps // 2:
        fs = []
        while True: fs.append(open("/dev/null"))
    if mode == "mem" and i == steps // 2:
        import numpy as np; np.ones((1 << 50,))
    if mode == "mempy" and i == steps // 2:
        bytearray(1 << 60)
    if mode == "abort" and i == steps // 2:
        import os; os.abort()
    if mode == "segv" and i == steps // 2:
        import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)
    if mode == "handled" and i == steps // 2:
        import traceback
        try: {"a": 1}["lr_schedule"]
        except KeyError: traceback.print_exc()
    if mode == "nan" and i > steps // 2:
        print(f"step {i}/{steps} loss nan lr 1e-3", flush=True); continue
    if mode == "thread" and i == steps // 2:
        import threading
        t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()
    if mode == "pool" and i == steps // 2:
        import multiprocessing as mp
        def bad(n): raise ValueError(f"worker cannot decode image {n}")
        import builtins; builtins.bad = bad
        globals()["bad"] = bad
        with mp.get_context("fork").Pool(2) as p: p.map(bad, range(4))
    if mode == "hang" and i == steps: time.sleep(1000)
    print(f"step {i}/{steps} loss {2.5 / i:.4f} lr 1e-3 error_rate 0.0 steps/s {100 + i}", flush=True)
    time.sleep(0.01)
if mode == "after":
    print("Training done", flush=True)
    raise RuntimeError("cannot schedule new futures after interpreter shutdown")
print("Training done" if mode == "done" else f"final loss {2.5 / steps:.4f}", flush=True)
