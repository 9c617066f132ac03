#!/usr/bin/env python3
"""Makes the captures beside this file by running real programs. Optional: it needs gigabytes of wheels.

    python3 -m venv venv
    venv/bin/pip install jax numpy tqdm absl-py wandb grpcio torch lightning keras transformers accelerate
    venv/bin/python make.py [PART OF A NAME]...

A capture is what the program printed; only paths and the host's name are replaced. `blocks.jsonl` says the
command, the exit code and the class of each.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

OUT = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.dirname(sys.executable)
WORK = tempfile.mkdtemp()
ONLY = sys.argv[1:]
OLD = [json.loads(line) for line in open(OUT + "/blocks.jsonl")]
rows = []


def clean(text):
    """Makes the machine's own names neutral."""
    pairs = [(WORK, "/home/user"), (BIN, "/home/user/venv/bin"), (os.path.dirname(BIN), "/home/user/venv"),
             (os.path.expanduser("~"), "/home/user"), (os.uname().nodename, "t1v-n-5fe8a1-w-0")]
    for here, there in pairs:
        text = text.replace(here.encode(), there.encode())
    return text


def cap(name, cmd, cls, accept=(), exit_code="real", note="", pty=False, timeout=60):
    """Runs one command and keeps its output."""
    if ONLY and not any(part in name for part in ONLY):
        rows.extend(row for row in OLD if row["file"] == name + ".txt")
        return
    env = dict(os.environ, PYTHONUNBUFFERED="1", WANDB_MODE="offline", TERM="xterm-256color", COLUMNS="120",
               JAX_PLATFORMS="cpu", HOME=WORK, PATH=BIN + ":" + os.environ["PATH"])
    run = ["script", "-qefc", "stty cols 120 rows 40; " + cmd, "/dev/null"] if pty else ["bash", "-c", cmd]
    try:
        done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env=env, cwd=WORK + "/proj", timeout=timeout)
        text, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        text, code = late.stdout or b"", None
    if code is not None and code < 0:
        code = 128 - code
    text = clean(text)
    if len(text) > 16000:
        text = text[-12000:]
    with open(f"{OUT}/blocks/{name}.txt", "wb") as file:
        file.write(text)
    code = code if exit_code == "real" else exit_code
    rows.append({"file": name + ".txt", "class": cls, "accept": list(accept), "exit_code": code,
                 "made_by": clean(cmd.encode()).decode(), "note": note})


os.makedirs(WORK + "/proj")
for program in os.listdir(OUT + "/programs"):
    with open(f"{OUT}/programs/{program}") as source, open(f"{WORK}/proj/{program}", "w") as copy:
        copy.write(source.read())

T = "python train.py 30"
cap("py-keyerror", f"{T} keyerror", "python-error")
cap("py-custom-exception", f"{T} custom", "python-error")
cap("py-chained", f"{T} chain", "python-error")
cap("py-assert", f"{T} assert", "python-error")
cap("py-recursion", f"{T} recursion", "python-error")
cap("py-exit3-silent", f"{T} exit3", "none", note="sys.exit(3) after steps: it failed and nothing says why")
cap("py-enoent", f"{T} enoent", "file-error", ["python-error"])
cap("py-enospc", f"{T} enospc", "file-error")
cap("py-emfile", f"bash -c 'ulimit -n 64; {T} emfile'", "file-error", ["python-error"])
cap("py-numpy-memory", f"{T} mem", "oom")
cap("py-bytearray-memory", f"{T} mempy", "oom")
cap("py-abort", f"bash -c '{T} abort; exit $?'", "killed-by-signal")
cap("py-segv-faulthandler", f"bash -c '{T} segv; exit $?'", "killed-by-signal")
cap("py-handled-goes-on", f"{T} handled", "running", exit_code=None, note="a printed traceback, then steps")
cap("py-thread-goes-on", f"{T} thread", "running", exit_code=None, note="an exception in a thread, then steps")
cap("py-nan", f"{T} nan", "running", exit_code=None, note="loss nan: phase diverged")
cap("py-pool-worker", f"{T} pool", "python-error")
cap("py-done", f"{T} done", "finished", exit_code=None)
cap("py-done-then-noise", f"{T} after", "finished", ["python-error"], exit_code=None, note="an error after the finish")
cap("py-ok-exit0", f"{T}", "finished")
cap("py-ok-running", f"{T}", "running", exit_code=None)
cap("py-argparse", "python -c 'import argparse; p=argparse.ArgumentParser(\"train.py\"); p.add_argument(\"--lr\",type=float,required=True); p.parse_args([\"--lr\",\"fast\"])'", "python-error")
cap("py-absl-flags", "python -c 'from absl import app,flags; flags.DEFINE_float(\"lr\",1,\"\"); app.run(lambda a: None, argv=[\"train.py\",\"--lrr=3\"])'", "python-error")
cap("py-module-missing", "python -m trainer.main", "python-error", ["file-error"])
cap("py-file-missing", "python main_train.py", "file-error")
cap("py-indentation", "printf 'def f():\\nreturn 1\\n' > bad.py; python bad.py", "python-error")
cap("sh-not-found", "bash -c 'nvcc --version; exit $?'", "file-error")
cap("sh-not-executable", "printf 'x' > job.bin; chmod -x job.bin; bash -c './job.bin; exit $?'", "file-error")
cap("sh-bad-interpreter", "printf '#!/opt/conda/bin/python\\n' > run.py; chmod +x run.py; bash -c './run.py; exit $?'", "file-error")
cap("sh-cd-missing", "bash -c 'cd /nfs/team/exp && python train.py; exit $?'", "file-error")
cap("sh-cp-missing", "cp -r /nfs/team/code/. .", "file-error")
cap("sh-tar-missing", "tar xf /data/imagenet.tar", "file-error")
for sig, cls in (("KILL", "killed-by-signal"), ("TERM", "killed-by-signal"), ("SEGV", "killed-by-signal"), ("BUS", "killed-by-signal"), ("HUP", "killed-by-signal"), ("FPE", "killed-by-signal"), ("ILL", "killed-by-signal")):
    open(fWORK + "/proj/k{sig}.sh", "w").write(f"python -c 'import os,signal; print(\"step 1 loss 2.0\",flush=True); os.kill(os.getpid(), signal.SIG{sig})'\nexit $?\n")
    cap(f"sh-sig{sig.lower()}", f"bash k{sig}.sh", cls, ["oom"] if sig == "KILL" else [])
cap("py-sigint", f"timeout -s INT --preserve-status 2 {T} hang", "killed-by-signal", ["python-error"])
cap("py-sigint-pty", f"timeout -s INT --preserve-status 2 {T} hang", "killed-by-signal", ["python-error"], pty=True)
cap("py-sigterm-silent", f"timeout -s TERM --preserve-status 2 {T} hang", "killed-by-signal")
cap("ssh-refused", "ssh -o StrictHostKeyChecking=no -o ConnectTimeout=3 -p 22 127.0.0.77 'python train.py'", "ssh-lost")
cap("ssh-unresolvable", "ssh -o ConnectTimeout=3 t1v-n-00000000-w-3.invalid 'python train.py'", "ssh-lost")
cap("ssh-key-missing-host", "ssh -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o ConnectTimeout=3 -o BatchMode=yes 10.255.255.1 true", "ssh-lost", timeout=20)
cap("ssh-not-an-sshd", "python -c 'import socket,threading; s=socket.create_server((\"127.0.0.1\",22022)); print(\"up\",flush=True); c,_=s.accept(); c.close()' & sleep 1; ssh -o StrictHostKeyChecking=no -o ConnectTimeout=5 -p 22022 127.0.0.1 'python train.py'", "ssh-lost")
cap("scp-refused", "scp -o ConnectTimeout=3 train.py 127.0.0.77:/tmp/", "ssh-lost")
W = "import wandb,sys,time; r=wandb.init(project=\"p\",settings=wandb.Settings(console=\"off\"));\nfor i in range(30): r.log({\"loss\":1/(i+1)}); print(f\"step {i} loss {1/(i+1):.3f}\",flush=True)\n"
cap("wandb-ok", f"python -c '{W}'", "finished", exit_code=None)
cap("wandb-ok-exit0", f"python -c '{W}'", "finished")
cap("wandb-crash", f"python -c '{W}\nraise ValueError(\"shard 3: bad magic\")'", "python-error")
cap("wandb-crash-pty", f"python -c '{W}\nraise ValueError(\"shard 3: bad magic\")'", "python-error", pty=True)
cap("wandb-sigint", f"timeout -s INT --preserve-status 6 python -c '{W}\ntime.sleep(100)'", "killed-by-signal", ["python-error"])
J = "import jax,jax.numpy as jnp\n"
cap("jax-oom", f"python -c '{J}print(jax.devices())\nfor i in range(3): print(\"step\",i,\"loss\",9.1-i)\njnp.ones((1<<20,1<<20),jnp.float64).block_until_ready()'", "oom")
cap("jax-shape", f"python -c '{J}\njnp.dot(jnp.ones((3,4)),jnp.ones((3,4)))'", "python-error")
cap("jax-tracer", f"python -c '{J}\njax.jit(lambda x: 1 if x>0 else 2)(3.0)'", "python-error")
cap("jax-no-tpu-falls-back", "JAX_PLATFORMS= python -c 'import logging; logging.basicConfig(level=logging.INFO); import jax; print(jax.devices())\nfor i in range(5): print(f\"step {i} loss {3.0/(i+1):.3f}\")'", "running", exit_code=None)
cap("jax-tpu-missing", "JAX_PLATFORMS=tpu python -c 'import jax; print(jax.devices())'", "locked", ["python-error", "file-error", "none"], note="libtpu is not installed")
cap("jaxdist-leader-waits", "python dist.py 127.0.0.1:21511 0 2 8 5", "grpc")
cap("jaxdist-no-leader", "python dist.py 127.0.0.1:21512 1 2 8 5", "grpc")
cap("jaxdist-leader-killed", "python dist.py 127.0.0.1:21513 0 2 20 60 > /dev/null 2>&1 & L=$!; (sleep 14; kill -9 $L) & python dist.py 127.0.0.1:21513 1 2 20 60", "grpc", timeout=90)
cap("jaxdist-worker-killed", "python dist.py 127.0.0.1:21514 1 2 20 90 > /dev/null 2>&1 & L=$!; (sleep 14; kill -9 $L) & python dist.py 127.0.0.1:21514 0 2 20 90", "grpc", timeout=120)
G = "import grpc\nc=grpc.insecure_channel(\"127.0.0.1:1\")\nc.unary_unary(\"/train.Coordinator/Register\",request_serializer=bytes,response_deserializer=bytes)(b\"\",timeout=3)\n"
cap("grpc-client-refused", f"python -c '{G}'", "grpc")
cap("absl-running", "timeout -s KILL 4 python -c 'from absl import app,logging; import time; logging.set_verbosity(\"info\")\ndef main(_):\n  logging.info(\"Building model with 12 layers\")\n  for i in range(400): logging.info(\"[%d] train/loss=%.4f, train/accuracy=%.3f, steps_per_sec=9.8\",i*10,2/(i+1),1-1/(i+2)); time.sleep(.01)\napp.run(main)'", "running", exit_code=None)
cap("absl-fatal", "python -c 'from absl import app,logging\ndef main(_):\n  logging.info(\"start\"); logging.fatal(\"mesh shape %s does not match %d devices\",(2,4),4)\napp.run(main)'; exit $?", "python-error", ["killed-by-signal"])
cap("pip-no-match", "pip install --no-index jaxx==9", "none", ["file-error", "python-error"])
cap("shell-only", "ls; uptime | cut -c1-20; df -h / | tail -1 | cut -c1-20", "none", exit_code=None)
cap("tqdm-running-pty", "timeout -s KILL 3 python bar.py 2000", "running", exit_code=None, pty=True)
cap("tqdm-crash-pty", "python bar.py 300 crash", "python-error", pty=True)
cap("tqdm-crash-piped", "python bar.py 300 crash", "python-error")
cap("tqdm-done-exit0", "python bar.py 200", "finished", pty=True)
cap("torchdist-no-store", "python tdist.py 1 2 21601 5 5", "grpc")
cap("torchdist-peer-never-comes", "python tdist.py 0 2 21602 5 5", "grpc")
cap("torchdist-peer-killed", "python tdist.py 0 2 21603 30 60 > /dev/null 2>&1 & L=$!; (sleep 8; kill -9 $L) & python tdist.py 1 2 21603 30 60", "grpc", timeout=90)
cap("torch-cpu-memory", "python -c 'import torch; torch.ones(1<<50)'", "oom")
cap("torch-shape", "python -c 'import torch; torch.ones(3,4)@torch.ones(3,4)'", "python-error")
cap("torch-dataloader-raises", "python dl.py", "python-error")
cap("torch-dataloader-bus", "python dlk.py", "killed-by-signal", ["python-error", "oom"])
cap("lightning-done", "python lit.py 2", "finished", exit_code=None)
cap("lightning-done-pty", "python lit.py 2", "finished", pty=True, exit_code=None)
cap("lightning-crash", "python lit.py 2 x", "python-error")
cap("lightning-running-pty", "timeout -s KILL 14 python lit.py 2000", "running", exit_code=None, pty=True)
cap("keras-exit0", "python ker.py 3", "finished")
cap("keras-running", "python ker.py 3", "running", exit_code=None)
cap("keras-running-pty", "timeout -s KILL 9 python ker.py 3000", "running", exit_code=None, pty=True)
cap("hf-exit0", "python hf.py 30", "finished")
cap("hf-done-text", "python hf.py 30", "finished", ["running"], exit_code=None)
cap("hf-crash", "python hf.py 30 x", "python-error")

with open(OUT + "/blocks.jsonl", "w") as file:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
