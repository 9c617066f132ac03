# What a machine says of itself, one line for each thing: read before `probe.sh` and before `figures.sh`. Run by bash
# with nothing else; what is not there is left out. Nothing is changed. The formats are those of proc(5), `nvidia-smi
# --help-query-gpu` and `--help-query-compute-apps`, and `rocm-smi --csv`.

# What a program says in so many seconds, 1024 lines at most. Fails where it did, or did not end in time. One that hangs keeps nobody waiting, not even in the kernel,
# where no signal ends it: it holds the end of a pipe, and nothing of ours.
heard() { # SECONDS COMMAND...
    local from pid line count=0 code=124 until=$((SECONDS + $1))
    shift
    exec {from}< <(exec "$@" </dev/null 2>/dev/null)
    pid=$!
    while [ "$SECONDS" -lt "$until" ] && [ "$count" -lt 1024 ]; do
        if IFS= read -r -t 1 -n 4096 -u "$from" line; then
            printf '%s\n' "$line"
            count=$((count + 1))
        elif [ $? -le 128 ]; then
            # Its end; what stands behind the last line feed belongs to it.
            [ -z "$line" ] || printf '%s\n' "$line"
            wait "$pid" 2>/dev/null
            code=$?
            # Of one that it has forgotten already bash says 127, and 5.2 also -1: it ended by itself.
            [ "$code" -ge 0 ] && [ "$code" -ne 127 ] || code=0
            pid=
            break
        fi
    done
    exec {from}<&-
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
    return "$code"
}

user_of() { # PID
    stat -c %U "/proc/$1" 2>/dev/null || ps -o user= -p "$1" 2>/dev/null || echo somebody
}

# How many CPUs a program may use: `nproc` would be a program of its own. Files of /proc are read at once: line by line
# the kernel would write the whole of them anew for each.
cpus() {
    local lines=() range count=0
    mapfile -t lines 2>/dev/null </proc/self/status
    [[ ${lines[*]} =~ Cpus_allowed_list:[[:space:]]*([0-9,-]+) ]]
    for range in ${BASH_REMATCH[1]//,/ }; do
        count=$((count + ${range#*-} - ${range%-*} + 1))
    done
    [ "$count" -gt 0 ] && echo "$count" || nproc 2>/dev/null || getconf _NPROCESSORS_ONLN
}

machine() {
    local boot load columns apps line gpu pid used card use device lines=()
    echo "host ${HOSTNAME:-$(uname -n)}"
    read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id && echo "boot $boot"
    printf 'cpus '
    cpus
    # What is asked for stands in the first of some fifty lines.
    mapfile -n 8 -t lines 2>/dev/null </proc/meminfo
    for line in "${lines[@]}"; do
        case $line in
            MemTotal:*) set -- $line && echo "memory $2" ;;
            MemAvailable:*) set -- $line && echo "available $2" ;;
        esac
    done
    read -r load _ 2>/dev/null </proc/loadavg && echo "load $load"
    if command -v nvidia-smi >/dev/null; then
        # Both at once: a driver that is not kept awake takes seconds for each.
        columns=gpu_uuid,pid,used_memory
        exec {apps}< <(heard 4 nvidia-smi --query-compute-apps=$columns --format=csv,noheader,nounits || echo silent)
        columns=index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu
        heard 4 nvidia-smi --query-gpu=$columns --format=csv,noheader,nounits | while read -r line; do
            echo "nvidia $line"
        done
        [ "${PIPESTATUS[0]}" -eq 0 ] || echo "silent nvidia-smi"
        while IFS=', ' read -r gpu pid used; do
            case $gpu,$pid in
                silent,) echo "silent nvidia-smi" ;;
                *,*[!0-9]* | *,) ;;
                *) echo "on $gpu $pid $(user_of "$pid") $used" ;;
            esac
        done <&"$apps"
        exec {apps}<&-
    elif command -v rocm-smi >/dev/null; then
        heard 4 rocm-smi --showuse --csv | while IFS=, read -r card use _; do
            case $card in card[0-9]*) echo "amd ${card#card} $use" ;; esac
        done
        [ "${PIPESTATUS[0]}" -eq 0 ] || echo "silent rocm-smi"
    else
        for device in /dev/accel[0-9]* /dev/vfio/[0-9]*; do
            [ -e "$device" ] && echo "chip $device"
        done
    fi
}
