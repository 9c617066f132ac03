"""A process of jax.distributed. The first word is how it goes on.

    alone         nobody else comes
    two           starts a second process and goes on with it; the second is killed after a few steps
    port          the coordinator's port is taken
"""
import os
import signal
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


import jax

how = sys.argv[1]
if how == "member":
    port, index = sys.argv[2], 1
else:
    port, index = free_port(), 0
if how == "port":
    taken = socket.create_server(("0.0.0.0", port))
other = None
if how == "two":
    with open("member.log", "w") as log:
        other = subprocess.Popen([sys.executable, __file__, "member", str(port)], stdout=log, stderr=log)
patience = 10 if how == "alone" else 60
jax.distributed.initialize(f"127.0.0.1:{port}", 2, index, initialization_timeout=patience, heartbeat_timeout_seconds=10)
print(f"process {jax.process_index()} of {jax.process_count()}", flush=True)
for i in range(1, 400):
    print(f"step {i}/400 loss {9 / i:.3f}", flush=True)
    time.sleep(0.5)
    if i == 5 and other is not None:
        other.send_signal(signal.SIGKILL)
        other.wait()
