# shellcheck shell=bash
# shellcheck disable=SC2034 # the variables are used by the scripts that source this file
# config.sh: what to change for a project of your own. Sourced by staging.sh.

# Part of the path of the log directories.
TASKNAME=example

# Below it are staging/ and logs/. With remote workers it must be a disk that they mount at this path.
DATA_ROOT=${DATA_ROOT:-$HOME/tpu-example}

# The training: a program and its first arguments. --workdir=… and the --config… arguments are added.
# This one comes with tpu and runs on `local`; yours is more like
#   TRAIN=(python3 main.py --config=configs/default.py)
TRAIN=(tpu demo-train)

# Names that are not copied to the stage directory, wherever they are.
NOT_STAGED=(.git __pycache__ wandb tmp '*.png')
