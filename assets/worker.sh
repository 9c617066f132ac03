# Runs one command on a worker, once for each launch token, whatever becomes of the connection.
# Started as `bash worker.sh NEW RUN`: NEW holds, prepared by the caller,
#   token   the launch token
#   worker  the worker's index
#   argv    the command, each word ending in NUL
#   env     NAME=VALUE to export, each ending in NUL
#   dir     the directory to work in, ending in NUL (may be missing)
# and becomes RUN, which nobody else can then be. It writes there: guard and pid (process and its start
# time), boot (which start of the machine it was), logs (that its log directory is there), out (everything
# the command says), exit (its exit code). Ends with 0 when the command is started, with 3 when the machine is down, with 4 when RUN was
# there: the command is never started again.
#
# A simulated machine is up while `environment` lies two directories above RUN; `last-words` and
# `refusal` beside it are an exit code and a text, with which a program ends that was broken or refused.

new=$1 run=$2
machine=${run%/runs/*}

record() { # FILE PID: field 22 of stat is the start time, counted behind the name, which may hold blanks
    local stat
    read -r stat 2>/dev/null <"/proc/$2/stat"
    set -- "$1" "$2" ${stat##*) }
    printf '%s %s\n' "$2" "${22:-0}" >"$1"
}

# Says the text of FILE and takes its code for the command's.
say() {
    local words
    words=$(cat -- "$1"; printf .) && words=${words%.}
    code=${words%%$'\n'*}
    printf '%s' "${words#*$'\n'}"
}

command_itself() {
    local pair argv dir
    while IFS= read -r -d '' pair; do
        export "$pair" 2>/dev/null
    done <"$run/env"
    mapfile -d '' -t argv <"$run/argv"
    IFS= read -r TPU_LAUNCH <"$run/token"
    IFS= read -r TPU_WORKER <"$run/worker"
    export TPU_LAUNCH TPU_WORKER
    if [ -e "$run/dir" ]; then
        IFS= read -r -d '' dir <"$run/dir"
        case $dir in "~/"*) dir=$HOME/${dir#"~/"} ;; esac
        cd -- "$dir" || exit 126
    fi
    # Where it may log on a disk that only this machine sees. Once made, it is gone only with that disk.
    [ -z "$TPU_LOG_DIR" ] || { mkdir -p -- "$TPU_LOG_DIR" && : >"$run/logs"; } 2>/dev/null
    # Only a new program shows its variables to others: from here on it can be told from its guard.
    exec "${argv[@]}"
}

# Stays until the command has ended, and writes down how.
guard() {
    # Handlers, not ignored signals: the command gets the default back.
    trap ':' INT TERM HUP QUIT
    local child again
    if [ -e "$machine/refusal" ]; then
        say "$machine/refusal"
    else
        # Words for an earlier command that had ended before it could say them.
        rm -f -- "$machine/last-words"
        command_itself &
        child=$!
        record "$run/pid" "$child"
        # bash would tell of a signal, where the command said nothing.
        { wait "$child"; } 2>/dev/null
        code=$?
        # A signal to the guard ends the wait, not the command. One that ends meanwhile may be none that bash
        # knows any more (127, and -1 measured with 5.2): then it ended by what the guard was told, too.
        while kill -0 "$child" 2>/dev/null; do
            { wait "$child"; } 2>/dev/null
            again=$?
            [ "$again" -eq 127 ] || [ "$again" -lt 0 ] || code=$again
        done
        if [ -e "$machine/last-words" ]; then
            say "$machine/last-words"
            rm -f -- "$machine/last-words"
        fi
    fi
    # No program: whoever stops the command would find it by its variables and stop it as well.
    printf '%s\n' "$code" >"$run/exit"
}

[ -e "$machine/environment" ] || exit 3
mv -T -- "$new" "$run" 2>/dev/null || exit 4
# Each background command gets a process group of its own.
set -m
# Another one than this says later that the machine was started anew.
read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id && printf '%s\n' "$boot" >"$run/boot"
guard </dev/null >"$run/out" 2>&1 &
record "$run/guard" "$!"
exit 0
