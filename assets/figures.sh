# What `tpu` asks a machine about itself and about the jobs on it, for figures; `machine.sh` is read first. `processes` is
# set before: the command that prints `TOKEN PID START` of every process of every job, and `done` (`look.sh` has one); or
# nothing, where no job is there.
# `done` stands at the end. Nothing is changed. Field numbers are those of proc(5).

# Says how much CPU time each process has had, and how much memory it has: two such samples make a share.
sample() { # NAME
    local up token pid start stat rest
    read -r up _ 2>/dev/null </proc/uptime
    echo "sample $1 $up"
    while read -r token pid start; do
        [ -n "$pid" ] && read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
        # Behind the name, which may hold blanks, stands field 3.
        rest=(${stat##*) })
        # Parent (4), own time (14, 15), that of the children it has collected (16, 17), resident pages (24).
        [ "${rest[19]}" != "$start" ] ||
            echo "process $1 $token $pid ${rest[1]} ${rest[11]} ${rest[12]} ${rest[13]} ${rest[14]} ${rest[21]}"
    done <<<"$found"
}

# Whatever hangs here is ended with all that it has begun, so that those who ask once a minute do not become many. All of
# that is one process group where this shell leads one, as behind sshd and as `tpu` starts it.
guard() {
    local stat rest victim=$BASHPID
    read -r stat 2>/dev/null <"/proc/$$/stat"
    rest=(${stat##*) })
    [ "${rest[2]}" != "$$" ] || victim=-$$
    (
        read -r -t 9 -u 3
        kill -KILL -- "$victim"
    ) </dev/null >/dev/null 2>&1 3<> <(:) &
    watch=$!
}

# A machine of which nothing but a few files is read begins no program here: each would cost it more than all of that.
watch=
if [ -n "$processes" ] || command -v nvidia-smi rocm-smi >/dev/null; then
    guard
fi
found=
[ -z "$processes" ] || found=$($processes 2>/dev/null)
if [ "${found##*$'\n'}" = done ]; then
    found=${found%done}
    echo "clock $(getconf CLK_TCK) $(getconf PAGESIZE)"
    sample first
else
    # What cannot be looked for is not nothing.
    found=
fi
machine
if [ -n "$found" ]; then
    sleep 1
    sample second
fi
[ -z "$watch" ] || kill "$watch" 2>/dev/null
echo done
