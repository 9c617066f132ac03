# Runs one job in its tmux window and records how it ended. Started as `bash launcher.sh` by the window.
#
# Everything it needs lies beside it, written by the launch; fields and words end in NUL, so any byte a
# word can hold arrives as it was:
#   spec   token, job, mode (native|script), directory, log file, path of tpu
#   argv   the command (native) or the arguments of staging.sh (script)
#   env    NAME=VALUE to export
# It writes: pid (process group and its start time), exit (the exit code and the token).

state=${BASH_SOURCE[0]%/*}
mapfile -d '' -t spec <"$state/spec"
mapfile -d '' -t argv <"$state/argv"
token=${spec[0]} job=${spec[1]} mode=${spec[2]} dir=${spec[3]} log=${spec[4]} tpu=${spec[5]}

while IFS= read -r -d '' pair; do
    export "$pair" 2>/dev/null
done <"$state/env"

# A handler, not an ignored signal: children get the default back, so Ctrl-C ends the job and not us.
trap ':' INT QUIT
# Ctrl-Z would stop the job and leave nobody to continue it.
stty susp undef 2>/dev/null

printf 'tpu: launch %s · job %s\n' "$token" "$job"
started=$SECONDS

# The process group that `tpu kill` may signal. Field 22 of stat is the start time, which tells a
# reused pid from ours; counted behind the name, which may contain blanks.
record_group() {
    local stat
    read -r stat 2>/dev/null <"/proc/$BASHPID/stat"
    set -- ${stat##*) }
    printf '%s %s\n' "$BASHPID" "${20:-0}" >"$state/pid"
}

# Runs its arguments in the job's directory and ends with their exit code. It waits for them whatever
# signal the group gets: a job may take its time to save a checkpoint. Handlers, again, so that the
# arguments get the defaults.
attend() {
    record_group
    export TPU_LAUNCH=$token
    trap ':' INT QUIT TERM HUP
    cd -- "$dir" || exit 126
    "$@"
    exit $?
}

# The log is written beside the job and not in its process group, so that it outlives the job's last
# words.
run_native() {
    exec 3> >(exec tee -a -- "$log")
    writer=$!
    (attend "${argv[@]}") >&3 2>&1 3>&-
    code=$?
}

# What the job left running may hold its output open for ever; its end does not wait for that.
close_log() {
    exec 3>&-
    for _ in {1..20}; do
        kill -0 "$writer" 2>/dev/null || return
        sleep 0.05
    done
}

run_script() {
    (attend bash -c 'source ./staging.sh "$@"' bash "${argv[@]}")
    code=$?
}

code=0
# Asks whether this launch still stands, and copies the code (native).
"$tpu" launcher begin "$token" || code=$?

if [ "$code" -eq 0 ]; then
    # Job control gives the job a process group of its own and the terminal with it.
    set -m
    # stderr stays the terminal: through it bash gives the terminal to the job, and with it Ctrl-C.
    "run_$mode"
    # Somebody stopped it (SIGSTOP, SIGTSTP): that is no end, and it is still a job of this shell. Wait
    # for the real one.
    while leader=$(jobs -p) && [ -n "$leader" ]; do
        while [ -n "$(jobs -ps)" ]; do
            sleep 1
        done
        wait "$leader"
        code=$?
    done
    [ "$mode" = native ] && close_log
    set +m
fi

stty sane 2>/dev/null
printf '%s %s\n' "$code" "$token" >"$state/exit.new" && mv -f "$state/exit.new" "$state/exit"
tmux set-option -p -t "$TMUX_PANE" @tpu_exit "$code" 2>/dev/null
printf 'tpu: job %s ended with exit code %s after %s s\n' "$job" "$code" "$((SECONDS - started))"
"$tpu" launcher exited "$token" "$code"

trap - INT QUIT
# Whoever works in this shell, or starts a tmux from it, is not the job any more.
unset TPU_JOB
cd -- "$dir" 2>/dev/null
[ -x "${SHELL:-}" ] || SHELL=/bin/bash
exec "$SHELL"
