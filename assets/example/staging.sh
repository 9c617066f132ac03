#!/usr/bin/env bash
# staging.sh: takes a copy of the code and starts run_remote.sh in it, so that editing goes on here while
# the job runs there, and a resumed job finds the code it began with.
#
# `tpu run TARGET lr=0.01` calls it in the job's window as
#     source staging.sh ka=TARGET zone=ZONE --config.training.learning_rate=0.01
# It may also be run by hand, with the same arguments, in a window that `tpu run` opened.

# The body is a subshell: whoever sources this file keeps its directory, options and variables.
stage_and_run() (
  set -o pipefail

  VM_NAME='' ZONE=''
  config_args=()
  for arg in "$@"; do
    case $arg in
      ka=*) VM_NAME=${arg#ka=} ;;
      zone=*) ZONE=${arg#zone=} ;;
      --config*) config_args+=("$arg") ;;
      *)
        echo "staging.sh: cannot use the argument '$arg' (known: ka=NAME zone=ZONE --config…)" >&2
        exit 2
        ;;
    esac
  done

  source ./config.sh || exit
  source ./ka.sh || exit
  export VM_NAME ZONE

  HERE=$(pwd -P)
  commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=nogit
  stages=$DATA_ROOT/staging/${USER:-$(id -un)}
  mkdir -p "$stages" || exit
  stages=$(cd "$stages" && pwd -P) || exit
  case $stages/ in
    "$HERE"/*)
      echo "staging.sh: $stages is inside $HERE and would be copied into itself;" \
        "set DATA_ROOT in config.sh to another place" >&2
      exit 2
      ;;
  esac
  # mktemp makes a name that no other launch of the same second can have.
  STAGEDIR=$(mktemp -d "$stages/$(date +%y%m%d%H%M%S)-$commit-XXXXXX") || exit
  chmod u=rwx,go=rx "$STAGEDIR" || exit
  export STAGEDIR

  echo "Staging $HERE to $STAGEDIR"
  exclude=()
  for name in "${NOT_STAGED[@]}"; do
    exclude+=("--exclude=$name")
  done
  if ! tar -cf - "${exclude[@]}" . | tar -xf - -C "$STAGEDIR"; then
    echo "staging.sh: the copy to $STAGEDIR failed; nothing was started" >&2
    exit 1
  fi

  cd "$STAGEDIR" || exit
  source ./run_remote.sh "${config_args[@]}"
)

stage_and_run "$@"
