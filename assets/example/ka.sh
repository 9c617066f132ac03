# shellcheck shell=bash
# ka.sh: settles which target the job runs on, and its zone. Sourced by staging.sh, which has set VM_NAME
# and ZONE from ka=… and zone=…; `tpu run` passes both as far as it knows them.

if [ -z "$VM_NAME" ]; then
  echo "ka.sh: no target; start with: tpu run TARGET, or: source staging.sh ka=TARGET" >&2
  return 2
fi

# Targets that tpu cannot ask anyone about may be listed here.
if [ -z "$ZONE" ]; then
  case $VM_NAME in
    local) ;; # this machine has none
    # my-tpu-v4-8-*) ZONE=us-central2-b ;;
    *)
      echo "ka.sh: the zone of $VM_NAME is not known; add it to ka.sh, or: tpu register $VM_NAME --zone ZONE" >&2
      return 2
      ;;
  esac
fi
