# Runs one job in its tmux window and records how it ended. Started as `bash launcher.sh` by the window, as
# `bash launcher.sh again` by a later window for what goes on on workers, and by itself as `bash launcher.sh on_pty` at
# the terminal of a native job.
#
# Everything it needs lies beside it, written by the launch; fields and words end in NUL, so any byte a
# word can hold arrives as it was:
#   spec   token, job, mode (native|script), directory, log file, path of tpu, `secrets` where there are some,
#          and `shell` or `exported`: which file holds the variables of the shell in which it was typed
#   argv   the command (native) or the arguments of staging.sh (script)
#   env    NAME=VALUE to export
#   shell, exported  the same for the command: `shell` replaces the environment of its window, `exported` is added to it
#   secrets  the same for the command alone; taken away as it begins (may be missing, unless spec says `secrets`)
# It writes: pid (process group and its start time), exit (the exit code and the token), and spool for a moment
# (output on its way to the log). Whoever stops the job writes the token to `stopped`, and `tpu launcher closed` to
# `closed`. Whoever opens a later window writes `reopened`; it is taken away once the workers are heard there.

state=${BASH_SOURCE[0]%/*}
mapfile -d '' -t spec <"$state/spec"
mapfile -d '' -t argv <"$state/argv"
token=${spec[0]} job=${spec[1]} mode=${spec[2]} dir=${spec[3]} log=${spec[4]} tpu=${spec[5]} awaits=${spec[6]:-}
shell=${spec[7]:-}

# A handler, not an ignored signal: children get the default back, so Ctrl-C ends the job and not us.
trap ':' INT QUIT
is_closed=

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
    local pair stopped= names=
    record_group
    # In this order, as whoever stops it writes first and looks for the group then: one of both sees the other.
    read -r stopped 2>/dev/null <"$state/stopped"
    [ "$stopped" != "$token" ] || exit 143
    export TPU_LAUNCH=$token
    if [ -e "$state/secrets" ]; then
        while IFS= read -r -d '' pair; do
            export "$pair"
            names+=${pair%%=*},
        done <"$state/secrets"
        rm -f -- "$state/secrets" || exit 126
    elif [ -n "$awaits" ]; then
        echo 'tpu: its secrets are gone, with which it was to begin: tpu rerun'
        exit 126
    fi
    trap ':' INT QUIT TERM HUP
    case $dir in "~/"*) dir=$HOME/${dir#"~/"} ;; esac
    cd -- "$dir" || exit 126
    # No bash can set each variable that a shell may have exported, and some would change what this script does.
    if [ -n "$shell" ]; then
        set -- "$tpu" launcher as-typed "$state" "$names" -- "$@"
    elif [ "$mode" = native ] && [ "${1##*/}" = bash ] && [ -n "${CONDA_EXE:-}" ]; then
        # The command of a job file may say `conda activate` too.
        set -- "$tpu" launcher with-conda "$state" -- "$@"
    fi
    # What bash says of a signal that ended it is no word of the job.
    exec 8>&2 2>/dev/null
    "$@" 2>&8 8>&-
    code=$?
    # So does bash where no process can be started, and what it says of that went nowhere.
    [ "$code" -ne 254 ] || (:) || printf 'tpu: no process could be started for it\n' >&8
    exit "$code"
}

# Runs its arguments as the job of the terminal that is ours, and waits for their real end.
in_foreground() {
    local leader
    # Job control gives the job a process group of its own and the terminal with it. stderr stays the
    # terminal: through it bash gives the terminal to the job, and with it Ctrl-C.
    set -m
    (attend "$@")
    code=$?
    # Somebody stopped it (SIGSTOP, SIGTSTP): that is no end, and it is still a job of this shell. Wait
    # for the real one.
    while leader=$(jobs -p) && [ -n "$leader" ]; do
        # No event tells bash that a stopped job goes on: `wait` returns at once for it, and `wait -f` (from
        # bash 5 on) asks in a loop as fast as it can.
        while [ -n "$(jobs -ps)" ]; do
            sleep 1
        done
        wait "$leader"
        code=$?
    done
    set +m
}

# A terminal of its own, which is what the window's would be to a job that was typed there. What the job
# writes to it is relayed to the window and kept in the log. We hold its other side: a relay that is killed
# is followed by another one, and the job does not notice.
run_native() {
    local on_pty relayed is_told= is_over=
    # The relay tells the job when the window is closed (SIGHUP), and we give it the time that it takes to save
    # what it has. A script sits in the window itself: the kernel tells it, as soon as we are gone.
    trap 'is_closed=yes' HUP
    exec 9<>/dev/ptmx && "$tpu" launcher pty-open <&9 || {
        code=126
        return
    }
    "$tpu" launcher pty-exec /bin/bash "$state/launcher.sh" on_pty $again <&9 9>&- &
    on_pty=$!
    # What bash says of a relay that was killed is no word about the job: it goes nowhere.
    exec 8>&2 2>/dev/null
    while :; do
        relayed=1
        if [ -x "$tpu" ]; then
            "$tpu" launcher relay "$job" "$log" "$state/spool" "$on_pty" <&9 9>&- 2>&8 8>&-
            relayed=$?
        elif [ -z "$is_told" ]; then
            # The window is raw: nothing puts the cursor back.
            printf '\r\ntpu: %s · what it says waits for %s, which is gone\r\n' "$job" "$tpu"
            is_told=yes
        fi
        case $relayed in
        0) break ;;
        10)
            # What the job left running may sit there for ever, and its end does not wait for that.
            set -m
            "$tpu" launcher relay "$job" "$log" "$state/spool" <&9 9>&- 2>&8 8>&- &
            disown
            set +m
            break
            ;;
        esac
        # Without a relay the job would be held back for ever. Once it is over, one more hears its last words; and
        # where nobody can tell it that its window was closed, the end of its terminal does.
        if ! kill -0 "$on_pty"; then
            [ -z "$is_over" ] || break
            is_over=yes
        elif [ -n "$is_closed" ] && ! [ -x "$tpu" ]; then
            break
        fi
        # Nothing is waited for here: a relay that dies of what it meets must not be started as fast as it can.
        sleep 0.5
    done
    exec 9>&-
    # The window is no longer raw: a Ctrl-C would end the wait and not the job.
    trap '' INT QUIT
    wait "$on_pty"
    code=$?
    exec 2>&8 8>&-
}

run_script() {
    in_foreground bash -c 'source ./staging.sh "$@"' bash "${argv[@]}"
}

# Says that we end, and have not come to the end of the job. Somebody may have closed the window; a signal that nobody
# can catch says nothing.
say_closed() {
    set +m
    "$tpu" launcher closed "$token" </dev/null >/dev/null 2>&1
}

if [ "$1" = on_pty ]; then
    # What goes on has had its secrets.
    [ "$2" != again ] || awaits=
    in_foreground "${argv[@]}"
    exit "$code"
fi

trap say_closed EXIT
again=
[ "$1" != again ] || again=again

while IFS= read -r -d '' pair; do
    export "$pair" 2>/dev/null
done <"$state/env"

# Ctrl-Z would stop the job and leave nobody to continue it.
stty susp undef 2>/dev/null

printf 'tpu: launch %s · job %s\n' "$token" "$job"
started=$SECONDS

code=0
# Asks whether this launch still stands, and copies the code (native).
"$tpu" launcher "${again:-begin}" "$token" || code=$?
# A refusal to show it says nothing of how it ends.
[ -z "$again" ] || [ "$code" -eq 0 ] || exit "$code"

[ "$code" -ne 0 ] || "run_$mode"
# Whoever presses Ctrl-C once more meant the job, and none of those that write down how it ended. Ignored before they are
# forked: in a subshell a handler is the default for a moment.
trap '' INT QUIT
rm -f -- "$state/secrets"

# A later window in which no worker was heard says nothing of how the job ends.
[ -z "$again" ] || ! [ -e "$state/reopened" ] || exit "$code"
# Whatever code it ended with, it ended because it lost its window: that is no end of its own.
[ -z "$is_closed" ] || exit "$code"

stty sane 2>/dev/null
printf '%s %s\n' "$code" "$token" >"$state/exit.new" && mv -f "$state/exit.new" "$state/exit"
tmux set-option -p -t "$TMUX_PANE" @tpu_exit "$code" 2>/dev/null
printf 'tpu: job %s ended with exit code %s after %s s\n' "$job" "$code" "$((SECONDS - started))"
# One that waits in the queue again has no window.
"$tpu" launcher exited "$token" "$code"
[ $? -ne 3 ] || exit "$code"

trap - INT QUIT HUP EXIT
# Whoever works in this shell, or starts a tmux from it, is not the job any more.
unset TPU_JOB WANDB_RUN_ID WANDB_RESUME
cd -- "$dir" 2>/dev/null
[ -x "${SHELL:-}" ] || SHELL=/bin/bash
exec "$SHELL"
