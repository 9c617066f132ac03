# What a machine says of itself, one line for each thing: read before `probe.sh` and before `figures.sh`. Run by bash
# with nothing else; what is not there is left out. Nothing is changed. The formats are those of proc(5), `nvidia-smi
# --help-query-gpu` and `--help-query-compute-apps`, and `rocm-smi --csv`.

# What a program says in a second or two, 1024 lines at most. One that hangs keeps nobody waiting, not even in the kernel,
# where no signal ends it: it holds the end of a pipe, and nothing of ours.
heard() { # COMMAND...
    local from pid line count=0 until=$((SECONDS + 2))
    exec {from}< <(exec "$@" </dev/null 2>/dev/null)
    pid=$!
    while [ "$SECONDS" -lt "$until" ] && [ "$count" -lt 1024 ]; do
        if IFS= read -r -t 1 -n 4096 -u "$from" line; then
            printf '%s\n' "$line"
            count=$((count + 1))
        elif [ $? -le 128 ]; then
            # Its end; what stands behind the last line feed belongs to it.
            [ -z "$line" ] || printf '%s\n' "$line"
            pid=
            break
        fi
    done
    exec {from}<&-
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
    return 0
}

user_of() { # PID
    stat -c %U "/proc/$1" 2>/dev/null || ps -o user= -p "$1" 2>/dev/null || echo somebody
}

machine() {
    local boot name amount load columns line gpu pid used card use device
    echo "host $(uname -n)"
    read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id && echo "boot $boot"
    echo "cpus $(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
    while read -r name amount _; do
        case $name in
            MemTotal:) echo "memory $amount" ;;
            MemAvailable:) echo "available $amount" ;;
        esac
    done 2>/dev/null </proc/meminfo
    read -r load _ 2>/dev/null </proc/loadavg && echo "load $load"
    if command -v nvidia-smi >/dev/null; then
        columns=index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu
        heard nvidia-smi --query-gpu=$columns --format=csv,noheader,nounits | while read -r line; do
            echo "nvidia $line"
        done
        columns=gpu_uuid,pid,used_memory
        heard nvidia-smi --query-compute-apps=$columns --format=csv,noheader,nounits |
            while IFS=', ' read -r gpu pid used; do
                case $pid in *[!0-9]* | '') continue ;; esac
                echo "on $gpu $pid $(user_of "$pid") $used"
            done
    elif command -v rocm-smi >/dev/null; then
        heard rocm-smi --showuse --csv | while IFS=, read -r card use _; do
            case $card in card[0-9]*) echo "amd ${card#card} $use" ;; esac
        done
    else
        for device in /dev/accel[0-9]* /dev/vfio/[0-9]*; do
            [ -e "$device" ] && echo "chip $device"
        done
    fi
}
