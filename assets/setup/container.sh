# Runs a command in a container and ends with its exit code: bash -c THIS NAME IMAGE WORKDIR, then for the mounts, the
# flags and the variables how many there are and each of them, then the command. Without WORKDIR it runs where it would
# run outside. A signal is handed on; with this program the container ends.

image=$1 workdir=$2
shift 2
name=tpu-${TPU_LAUNCH:-$(uname -n)-$$}-${TPU_WORKER:-0}
words=(run --rm --init --sig-proxy=false --name "$name")
take() { # OPTION: as many of the next words as the first says
    local count=$1
    taken=$((count + 1))
    shift
    while [ "$count" -gt 0 ]; do
        case $option in
        -v) case $1 in *:*) words+=(-v "$1") ;; *) words+=(-v "$1:$1") ;; esac ;;
        '') words+=("$1") ;;
        *) words+=("$option" "$1") ;;
        esac
        shift
        count=$((count - 1))
    done
}
option=-v && take "$@" && shift "$taken"
option='' && take "$@" && shift "$taken"
option=-e && take "$@" && shift "$taken"
if [ -z "$workdir" ]; then
    workdir=$PWD
    words+=(-v "$PWD:$PWD")
fi
[ ! -d "${TPU_LOG_DIR:-/nowhere}" ] || words+=(-v "$TPU_LOG_DIR:$TPU_LOG_DIR")
words+=(-w "$workdir")

if command -v docker >/dev/null; then
    engine=(docker)
    docker info >/dev/null 2>&1 || engine=(sudo -n --preserve-env docker)
else
    engine=(podman)
fi

# Whoever stops the job stops all that carries its name, and what tells the container must not be among that.
tell() {
    env -u TPU_LAUNCH -u TPU_JOB -u TPU_MACHINE setsid "${engine[@]}" "$@" "$name" >/dev/null 2>&1 &
}
for signal in INT USR1 USR2 HUP; do
    trap "tell kill -s $signal" "$signal"
done
trap 'tell stop -t 6' TERM
"${engine[@]}" "${words[@]}" "$image" "$@" &
child=$!
wait "$child"
code=$?
# A signal to us ends the wait, not the container; how that has ended bash knows for as long as we ask.
while [ "$code" -gt 128 ] && kill -0 "$child" 2>/dev/null; do
    wait "$child"
    code=$?
done
[ "$code" -le 128 ] || { wait "$child" 2>/dev/null; again=$?; [ "$again" -eq 127 ] || code=$again; }
env -u TPU_LAUNCH -u TPU_JOB -u TPU_MACHINE "${engine[@]}" rm -f "$name" >/dev/null 2>&1
exit "$code"
