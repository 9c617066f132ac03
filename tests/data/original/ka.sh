# ka.sh: stands for a user's own. Sets target and zone for the name that it is given.
export VM_NAME=${1:-$VM_NAME}
export ZONE=${ZONE:-europe-west4-a}
# A window has the environment of the tmux server; what begins with TPU_ is carried by the launch.
export DATA_ROOT=${DATA_ROOT:-${TPU_TEST_DATA_ROOT:?is to be set by the test}}
export USER=${USER:-username}
