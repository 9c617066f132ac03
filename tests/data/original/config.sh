# config.sh: stands for a user's own. Names of the run, and the program that runs main.py.
export OWN_CONDA_ENV_NAME=NNX
export TASKNAME=${TASKNAME:-original}
export CONFIG=remote_run
export batch=256
export lr=0.01
export ep=4
export CONDA_PY_PATH=${CONDA_PY_PATH:-bash}
