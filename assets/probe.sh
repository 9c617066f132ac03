# What `tpu` asks a machine about itself: one line for each thing, `done` at the end. Run by bash with nothing else; what
# is not there is left out. Nothing is changed. The formats are those of proc(5), df(1) of POSIX, `nvidia-smi
# --help-query-gpu` and `--help-query-compute-apps`, and `rocm-smi --csv`.

quick() { # COMMAND: a driver that hangs keeps nobody waiting
    if command -v timeout >/dev/null; then timeout 1 "$@"; else "$@"; fi 2>/dev/null
}

user_of() { # PID
    stat -c %U "/proc/$1" 2>/dev/null || ps -o user= -p "$1" 2>/dev/null || echo somebody
}

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
df -Pk -- "${HOME:-/}" 2>/dev/null | {
    read -r _
    read -r _ _ _ free _ && echo "disk $free"
}
command -v tmux >/dev/null && echo "tmux $(quick tmux -V)"
command -v python3 >/dev/null && echo "python $(quick python3 -V)"

if command -v nvidia-smi >/dev/null; then
    columns=index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu
    quick nvidia-smi --query-gpu=$columns --format=csv,noheader,nounits | while read -r line; do
        echo "nvidia $line"
    done
    quick nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader | while IFS=', ' read -r gpu pid; do
        echo "on $gpu $pid $(user_of "$pid")"
    done
elif command -v rocm-smi >/dev/null; then
    quick rocm-smi --showuse --csv | while IFS=, read -r card use _; do
        case $card in card[0-9]*) echo "amd ${card#card} $use" ;; esac
    done
else
    for device in /dev/accel[0-9]* /dev/vfio/[0-9]*; do
        [ -e "$device" ] && echo "chip $device"
    done
fi
echo done
