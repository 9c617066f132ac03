#!/usr/bin/env bash
# run_remote.sh: runs the training of config.sh on $VM_NAME and tells `tpu` how it went.
#
# Sourced by staging.sh, in the subshell there, with VM_NAME, ZONE and STAGEDIR set; its arguments are
# the --config… ones. Three calls tie the job to `tpu`: upd-log when it starts, finish-job or fail-job
# when it ends. Without the last one the job counts as failed.

if [ -z "${TMUX_PANE-}" ]; then
  echo "run_remote.sh: this is no tmux window; start jobs with: tpu run $VM_NAME" >&2
  exit 2
fi
window=$(tmux display-message -p -t "$TMUX_PANE" '#S:#I') || exit

now=$(date +%Y%m%d_%H%M%S)
logs=$DATA_ROOT/logs/${USER:-$(id -un)}/$TASKNAME
mkdir -p "$logs" || exit
LOGDIR=$(mktemp -d "$logs/${now}_${VM_NAME}_XXXXXX") || exit
chmod u=rwx,go=rx "$LOGDIR" || exit
echo "Log directory $LOGDIR"

# `tpu resume` needs to know these places. If they cannot be stored, better not start: nothing is lost yet.
if ! tpu upd-log "$window" "$LOGDIR" "$STAGEDIR" "$VM_NAME" "$now"; then
  echo "run_remote.sh: tpu could not store the log directory; nothing was started" >&2
  exit 1
fi

command=("${TRAIN[@]}" "--workdir=$LOGDIR" "$@")
printf 'Running on %s:' "$VM_NAME"
printf ' %q' "${command[@]}"
printf '\n'

train() {
  if [ "$VM_NAME" = local ]; then
    "${command[@]}"
  else
    # One string, read by a shell on the worker: each word is quoted for it.
    local remote
    printf -v remote '%q ' "${command[@]}"
    printf -v remote 'cd %q && %s' "$STAGEDIR" "$remote"
    # gcloud runs it again when the connection breaks: each worker lets one launch begin once.
    printf -v remote 'mkdir /tmp/begun-%q || exit 75; %s' "${TPU_LAUNCH:-$now}" "$remote"
    gcloud compute tpus tpu-vm ssh "$VM_NAME" --zone "$ZONE" --worker=all --ssh-flag=-n \
      --command "$remote"
  fi
}

# tee ignores Ctrl-C (-i), or the last words of an interrupted training would be lost.
train 2>&1 | tee -ai "$LOGDIR/output.log"
code=${PIPESTATUS[0]} # of the training; tee's is no news about it

if [ "$code" -eq 0 ]; then
  tpu finish-job "$window" || exit
else
  echo "The training ended with exit code $code"
  tpu fail-job "$window" --exit-code "$code"
fi
exit "$code"
