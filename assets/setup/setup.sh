# Sets this worker up, step by step, and becomes the command that is given. Started as `bash setup.sh [COMMAND...]`
# out of a directory of its own, which is removed before the command begins, and when somebody ends it:
#   steps    for each step its module, its workers (numbers, or all), the seconds that it may take, `once` or nothing,
#            what shows that it is so, and what brings it about; each ending in NUL
#   nonce    by which our own lines are known to whoever listens
#   machine  what tells this machine from a later one of its name, as far as its control plane says
#   node     by which name the machine is known; that of its system, with the worker, without (may be missing)
#   alone    no other worker is waited for (may be missing)
#   force    also what is so already is brought about (may be missing)
# What else lies there belongs to the steps.
#
# Says: NONCE STEP begins|waits|well|done|failed WHAT CODE, and NONCE ready. Ends with 70 where a step fails.

export TPU_SETUP=${BASH_SOURCE[0]%/*}
nonce=$(<"$TPU_SETUP/nonce")
name=$(uname -n)
place=$name-${TPU_WORKER:-0}
[ ! -e "$TPU_SETUP/node" ] || { name=$(<"$TPU_SETUP/node") && place=$name; }
kept=$HOME/.cache/tpu
mapfile -d '' -t steps <"$TPU_SETUP/steps"
mkdir -p "$kept/done" && chmod 700 "$kept"
own=$TPU_SETUP child=

# Whoever ends it ends the step that is at work, which leads a group of its own, and keys do not lie about.
end_all() {
    [ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null
    rm -rf -- "${own:?}"
    exit 130
}
trap end_all INT TERM HUP

# A line of our own, whatever stands before it.
say() {
    printf '\n%s %s\n' "$nonce" "$*"
}

# Runs shell text for so many seconds at most. A program that it leaves running holds no lock of ours, and is not the
# job's: it outlives it.
attempt() { # SECONDS OPTIONS TEXT
    local code
    timeout -k 10 "$1" env -u TPU_LAUNCH -u TPU_JOB bash $2 -c "$3" 9>&- </dev/null &
    child=$!
    wait "$child"
    code=$?
    child=
    return "$code"
}

# What a step is made of: its texts, and the files that they name.
identity() { # CHECK RUN
    local file
    printf '%s\0' "$@"
    for file in $(grep -o 'taken-[0-9]*-[0-9]*' <<<"$1 $2" | sort -u); do
        cat "$TPU_SETUP/$file"
    done
}

# One step; 0 where it is so, or came to be.
step() { # NUMBER SECONDS ONCE CHECK RUN
    local number=$1 seconds=$2 once=$3 check=$4 run=$5 mark= of code
    of=$(identity "$check" "$run" | sha256sum) && of=${of%% *}
    # Of several jobs on one machine one sets up, and the others find what it has made.
    exec 9>>"$kept/lock-$name-${of:0:16}"
    if ! flock -n 9; then
        say "$number waits"
        until flock -w 1 9; do :; done
    fi
    if [ -n "$once" ]; then
        mark=$kept/done/$place-${of:0:32}
    fi
    say "$number begins"
    if [ ! -e "$TPU_SETUP/force" ]; then
        if [ -n "$mark" ] && cmp -s "$TPU_SETUP/machine" "$mark"; then
            say "$number well"
            return 0
        fi
        if [ -n "$check" ] && attempt "$seconds" "" "$check"; then
            say "$number well"
            return 0
        fi
    fi
    if [ -n "$run" ]; then
        # The first line that fails is a failure of the step, and not only the last one.
        attempt "$seconds" "-e -o pipefail" "$run"
        code=$?
        if [ "$code" -ne 0 ]; then
            say "$number failed set-up $code"
            return 1
        fi
        if [ -n "$check" ]; then
            attempt "$seconds" "" "$check"
            code=$?
            [ "$code" -eq 0 ] || {
                say "$number failed again $code"
                return 1
            }
        fi
    else
        say "$number failed check 1"
        return 1
    fi
    [ -z "$mark" ] || { cp "$TPU_SETUP/machine" "$mark.$$" && mv -f "$mark.$$" "$mark"; }
    say "$number done"
}

# A machine that was made anew may have its name and its disk.
{ cat /etc/machine-id /proc/sys/kernel/random/boot_id 2>/dev/null | head -n 1; } >>"$TPU_SETUP/machine"

number=0
while [ "$number" -lt $((${#steps[@]} / 6)) ]; do
    at=$((number * 6))
    workers=${steps[at + 1]}
    case " $workers " in
    " all " | *" ${TPU_WORKER:-0} "*)
        if ! step "$number" "${steps[at + 2]}" "${steps[at + 3]}" "${steps[at + 4]}" "${steps[at + 5]}"; then
            rm -rf -- "${own:?}"
            exit 70
        fi
        ;;
    *) say "$number well" ;;
    esac
    number=$((number + 1))
done
exec 9>&-

alone=
[ ! -e "$own/alone" ] || alone=yes
unset TPU_SETUP
rm -rf -- "${own:?}"/*
say ready

# A command on several workers begins on all of them or on none.
until [ -n "$alone" ] || [ $# -eq 0 ] || [ -e "$own/go" ]; do
    sleep 0.2
done
rm -rf -- "${own:?}"
[ $# -gt 0 ] || exit 0
trap - INT TERM HUP
exec "$@"
