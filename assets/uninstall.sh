# Lists what the jobs of one tpu have left in `~/.tpu` on a worker, or removes it. Run with `how` as `list` or `remove`, and
# `TPU_WORKER` as the index of the worker. Reads the launch tokens of jobs that are over, one on each line.
# Answers are lines that begin with `tpu:`; without `tpu: done` nothing is known.
#
# `~/.tpu/runs/TOKEN.INDEX` is one command (worker.sh). What has another name is somebody else's, and stays.

base=${HOME:?}/.tpu
over=0 stuck=0 kept=0

# Whether somebody still waits there for the end of the command.
watched() { # RUN
    local pid start stat
    read -r pid start 2>/dev/null <"$1/guard" && read -r stat 2>/dev/null <"/proc/$pid/stat" || return
    set -- ${stat##*) }
    [ "${20}" = "$start" ] && [ "$1" != Z ]
}

while IFS= read -r token; do
    case $token in '' | *[!A-Za-z0-9_-]*) continue ;; esac
    run=$base/runs/$token.$TPU_WORKER
    [ -d "$run" ] && [ ! -L "$run" ] && ! watched "$run" || continue
    over=$((over + 1))
    [ "$how" = remove ] || continue
    rm -rf -- "$run"
    [ ! -e "$run" ] || stuck=$((stuck + 1))
done

for run in "$base/runs/"* "$base/runs/".[!.]*; do
    [ ! -e "$run" ] && [ ! -L "$run" ] || kept=$((kept + 1))
done
[ "$how" = remove ] || kept=$((kept - over))

if [ "$how" = remove ] && [ "$kept" -eq 0 ] && [ ! -L "$base" ]; then
    # Only what is empty goes.
    rmdir -- "$base/runs" 2>/dev/null
    [ -s "$base/environment" ] || rm -f -- "$base/environment"
    rmdir -- "$base" 2>/dev/null
fi

echo "tpu: over $over"
echo "tpu: stuck $stuck"
echo "tpu: kept $kept"
for name in "$base/"* "$base/".[!.]*; do
    case ${name##*/} in runs | environment) continue ;; esac
    [ ! -e "$name" ] && [ ! -L "$name" ] || echo "tpu: other ${name##*/}"
done
echo "tpu: done"
exit
