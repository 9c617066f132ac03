# What `tpu` has a worker do over a connection, whatever kind of connection it is. Run as
#   bash -s -- VERB TOKEN INDEX MACHINE [ARGS]
# with `look.sh` and this text on the standard input, and behind it what the verb reads. MACHINE is the worker's address
# as `tpu` knows it: what runs there carries it, so that the processes of one worker can be told from those
# of another one on the same host. Answers are lines that begin with `tpu:`; without one, nothing is known.
#
# `~/.tpu/runs/TOKEN.INDEX` is one command; see worker.sh, which starts it and writes down its end.

verb=$1 token=$2 index=$3 machine=$4
shift 4
base=${HOME:?}/.tpu
run=$base/runs/$token.$index

# Whether a process is the one that was written down, and no later one of that number.
alive() { # PID START
    local stat
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    set -- "$2" ${stat##*) }
    [ "${21}" = "$1" ] && [ "$2" != Z ]
}

watched() {
    local pid start
    read -r pid start 2>/dev/null <"$run/guard" && alive "$pid" "$start"
}

# Milliseconds since some moment.
now() {
    local micros=${EPOCHREALTIME:-$SECONDS.000000}
    now=$((${micros//[.,]/} / 1000))
}

# Waits a little. Fails when nobody is at the other end any more.
pause() { # SECONDS
    local line
    read -r -t "$1" line
    [ $? -ne 1 ]
}

# Takes so many bytes from the standard input; fewer are a broken connection.
take() { # COUNT FILE
    head -c "$1" >"$2" && [ "$(wc -c <"$2")" -eq "$1" ]
}

start() { # BYTES of the wrapper, of the words, of the environment, of the directory (- is none), of the secrets
    local new=$base/runs/.new-$$-$RANDOM$RANDOM last pair secrets=()
    umask 077
    mkdir -p -- "$base/runs" && : >>"$base/environment" || return
    if [ -e "$run" ]; then
        echo tpu: already
        return
    fi
    # What has ended long ago is not needed any more.
    find "$base/runs" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec sh -c \
        '[ ! -e "$1/exit" ] || rm -rf -- "$1"' - {} \; 2>/dev/null
    mkdir -- "$new" || return
    printf '%s\n' "$token" >"$new/token"
    printf '%s\n' "$index" >"$new/worker"
    printf '%s\n' "$machine" >"$new/machine"
    take "$1" "$new/worker.sh" && take "$2" "$new/argv" && take "$3" "$new/env" &&
        { [ "$4" = - ] || take "$4" "$new/dir"; } &&
        # They are on no disk: the command gets them from whoever starts it.
        { [ "${5:-0}" -eq 0 ] || mapfile -d '' -t secrets < <(head -c "$5"); } &&
        read -r last && [ "$last" = end ]
    if [ $? -ne 0 ]; then
        rm -rf -- "$new"
        echo "tpu: refused the worker did not get or could not keep the whole command"
        return
    fi
    (
        for pair in "${secrets[@]}"; do
            export "$pair"
        done
        export TPU_LAUNCH=$token TPU_MACHINE=$machine
        exec bash "$new/worker.sh" "$new" "$run"
    ) </dev/null >/dev/null 2>&1
    case $? in
    0) echo tpu: started ;;
    4) rm -rf -- "$new" && echo tpu: already ;;
    *) rm -rf -- "$new" && echo "tpu: refused the worker could not start it" ;;
    esac
}

# Whether the machine was started anew since the command began there.
restarted() {
    local was=- now=-
    read -r was 2>/dev/null <"$run/boot"
    read -r now 2>/dev/null </proc/sys/kernel/random/boot_id
    [ "$was" != - ] && [ "$now" != - ] && [ "$was" != "$now" ]
}

# Its exit code as `code`; empty where none is written, or one that is not of its own making: hangup, kill
# and terminate are what a machine sends to all that runs before it goes down.
own_end() {
    code=
    [ ! -s "$run/exit" ] || read -r code <"$run/exit"
    case $code in
    129 | 137 | 143) ! restarted || code= ;;
    esac
}

# Why nothing is left of a command that has not told its end.
why_gone() {
    if restarted; then
        echo "the machine was started anew"
    else
        echo "its processes are gone, and no exit code was recorded"
    fi
}

# The output goes to stdout as it is, and the end of it to stderr.
follow() { # OFFSET
    local over nap=0.05 code= i
    if [ ! -d "$run" ] || [ -e "$run/stopped" ]; then
        echo "tpu: lost it was never started there" >&2
        return
    fi
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ -e "$run/out" ] && [ -s "$run/guard" ] && break
        pause 0.2 || return
    done
    exec 3<"$run/out"
    tail -c "+$(($1 + 1))" <&3
    while :; do
        # In this order: what was written before the exit, or before the death, is not missed.
        over=
        watched || over=yes
        [ ! -s "$run/exit" ] || over=yes
        cat <&3
        [ -z "$over" ] || break
        pause "$nap" || return
        nap=0.1
    done
    own_end
    if [ -n "$code" ]; then
        echo "tpu: exit $code" >&2
    else
        echo "tpu: lost $(why_gone)" >&2
    fi
}

# SIGINT, after 3 s SIGTERM, after 10 s SIGKILL, to all of `current` (lines `PID START`), which the command
# brings up to date, until none lives twice and the second look names no new one; `ended` is how many there
# were. What may not be signalled keeps no other from its end.
end_all() { # COMMAND
    local signal patience deadline pid start name new left open again= current=
    local -A known told denied
    for signal in INT:3000 TERM:10000 KILL:5000; do
        patience=${signal#*:} signal=${signal%:*}
        now
        deadline=$((now + patience)) told=()
        while :; do
            "$@"
            new=
            while read -r pid start; do
                [ -n "$pid" ] && [ -z "${known[$pid.$start]}" ] || continue
                known[$pid.$start]=1 new+=" $pid"
            done <<<"$current"
            left= open=
            for name in "${!known[@]}"; do
                pid=${name%.*} start=${name#*.}
                alive "$pid" "$start" || continue
                left+=" $pid"
                if [ -z "${told[$name]}" ]; then
                    told[$name]=1
                    if ! kill -s "$signal" "$pid" 2>/dev/null && alive "$pid" "$start"; then
                        denied[$name]=1
                    fi
                fi
                [ -n "${denied[$name]}" ] || open=yes
            done
            if [ -z "$left" ]; then
                if [ -n "$again" ] && [ -z "$new" ]; then
                    ended=${#known[@]}
                    return 0
                fi
                # What forked and ended while the lists were read has a child that is in none of them.
                again=yes left=$new
                now
                [ -z "$new" ] || [ "$now" -lt "$deadline" ] || break
                continue
            fi
            again=
            if [ -z "$open" ]; then
                echo "tpu: denied$left"
                return 1
            fi
            now
            [ "$now" -lt "$deadline" ] || break
            sleep 0.1
        done
    done
    echo "tpu: stuck$left"
    return 1
}

of_token() {
    look
    current=
    while read -r t pid start; do
        [ "$t" != "$token" ] || current+="$pid $start"$'\n'
    done <<<"$found"
}

stop() {
    local ended i
    umask 077
    # What was told to stop does not start any more, whoever is on the way with it.
    if mkdir -p -- "$base/runs" && mkdir -- "$run" 2>/dev/null; then
        printf '%s\n' "$machine" >"$run/machine"
        : >"$run/stopped"
    fi
    end_all of_token || return
    # Its guard still writes down how it ended.
    for i in {1..50}; do
        watched || break
        sleep 0.1
    done
    echo "tpu: stopped $ended"
}

# Each command on this worker: `tpu: run TOKEN EXIT|- PID...`.
probe() {
    local dir t pid start code guard run
    local -A pids
    look
    while read -r t pid start; do
        [ -z "$t" ] || pids[$t]+=" $pid"
    done <<<"$found"
    for dir in "$base/runs/"*".$index"; do
        ours "$dir" && [ ! -e "$dir/stopped" ] || continue
        t=${dir##*/} t=${t%.*} run=$dir guard=
        # In this order: a guard that has gone meanwhile has written it down.
        ! watched || read -r guard _ <"$dir/guard"
        own_end
        code=${code:--}
        # Its processes are gone, and it still has to write down how: it is not over.
        [ "$code${pids[$t]}" != - ] || [ -z "$guard" ] || pids[$t]=" $guard"
        echo "tpu: run $t $code${pids[$t]}"
        unset "pids[$t]"
    done
    # Their directory is gone, and they are not.
    for t in "${!pids[@]}"; do
        echo "tpu: run $t -${pids[$t]}"
    done
    echo tpu: done
}

# Processes that are none of ours and hold a device, or are Python: `tpu: other PID START USER SECONDS COMMAND`.
others() { # PATTERN of the devices...
    local pid stat link held us pattern rest found
    look
    us=" $(cut -d ' ' -f 2 <<<"$found" | tr '\n' ' ') $$ "
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        [ "${us/ $pid /}" = "$us" ] || continue
        read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
        rest=(${stat##*) }) held=
        [ "${rest[0]}" != Z ] || continue
        case $stat in
        *"(python"*) held=yes ;;
        esac
        for link in "/proc/$pid/fd/"*; do
            [ -z "$held" ] && link=$(readlink "$link" 2>/dev/null) || continue
            for pattern; do
                # Unquoted, it is a pattern.
                [[ $link != $pattern ]] || held=yes
            done
        done
        [ -z "$held" ] ||
            echo "tpu: other $pid ${rest[19]} $(ps -o user:32=,etimes=,args= -p "$pid" 2>/dev/null)"
    done
    echo tpu: done
}

# Ends exactly these processes, given as PID.START.
end() {
    local ended names=("$@")
    given() { printf -v current '%s\n' "${names[@]/./ }"; }
    end_all given && echo "tpu: stopped $ended"
}

# Keeps a file: BYTES MODE, and its path, ending in NUL, before its contents.
put() {
    local path new
    IFS= read -r -d '' path || return
    case $path in
    "~/"*) path=$HOME/${path#"~/"} ;;
    esac
    umask 077
    mkdir -p -- "$(dirname -- "$path")" || return
    new=$path.tpu-$$
    if take "$1" "$new" && chmod "$2" -- "$new" && mv -fT -- "$new" "$path"; then
        echo tpu: kept
    else
        rm -f -- "$new"
    fi
}

# On one line: what follows it is not for the shell.
"$verb" "$@"; exit
